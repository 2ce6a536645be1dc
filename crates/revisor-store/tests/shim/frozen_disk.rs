//! A library to preload into a process, which turns its disk into one that loses everything unsynced at a moment of
//! the test's choosing. Compiled by the test that uses it, with the standard library alone.
//!
//! The model: a file keeps the bytes that it had when its last sync ended. What was written later is lost in one of
//! three ways, all of which a machine that loses power may show:
//!
//! - `lost`: none of it reached the disk; a file that was never synced is there and empty;
//! - `vanished`: the same, and new files are not there at all if neither they nor their folder were synced;
//! - `torn`: its beginning and its end reached the disk and the middle did not, because pages are written in any order.
//!
//! Other changes of names are durable at once: what was renamed or removed stays so.
//!
//! The environment says what to do: `FROZEN_FOLDER` the files concerned, `FROZEN_COUNT` a file that gets a byte for
//! each sync, `FROZEN_AT` the sync before which the disk freezes and the process ends, `FROZEN_MODE` the way.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

unsafe extern "C" {
    fn dlsym(library: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn fallocate64(fd: c_int, mode: c_int, offset: i64, length: i64) -> c_int;
    fn lseek64(fd: c_int, offset: i64, whence: c_int) -> i64;
    fn _exit(code: c_int) -> !;
}

const NEXT_LIBRARY: *mut c_void = -1isize as *mut c_void;
const FROM_HERE: c_int = 1;
const PUNCH_HOLE_KEEP_SIZE: c_int = 3;

/// A number of an inode may be used again, so the time of its birth belongs to it.
type FileId = (u64, Option<SystemTime>);

/// How far a file was written, and how far and long it was at its last sync.
#[derive(Default, Clone, Copy)]
struct Extent {
    written: u64,
    synced: Option<(u64, u64)>,
    /// Whether the folder was synced with this file in it.
    named: bool,
}

#[derive(Default)]
struct Disk {
    files: HashMap<FileId, Extent>,
    syncs: u64,
}

static DISK: OnceLock<Mutex<Disk>> = OnceLock::new();

fn disk() -> MutexGuard<'static, Disk> {
    DISK.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn folder() -> Option<PathBuf> {
    std::env::var_os("FROZEN_FOLDER").map(PathBuf::from)
}

/// The real function of this name.
macro_rules! real {
    ($name:literal, $type:ty) => {
        unsafe {
            let found = dlsym(NEXT_LIBRARY, concat!($name, "\0").as_ptr().cast());
            std::mem::transmute::<*mut c_void, $type>(found)
        }
    };
}

/// Whether `fd` is a file or folder of the disk that is to freeze.
fn concerned(fd: c_int) -> bool {
    let path = fs::read_link(format!("/proc/self/fd/{fd}"));
    matches!((path, folder()), (Ok(path), Some(folder)) if path.starts_with(&folder))
}

fn identify(file: &File) -> FileId {
    file.metadata().map(|data| (data.ino(), data.created().ok())).unwrap_or_default()
}

/// Runs `write` and notes how far the file reaches after it. All of it under the lock, so that the disk cannot freeze
/// in between.
fn track(fd: c_int, end: impl FnOnce() -> i64, write: impl FnOnce() -> isize) -> isize {
    if !concerned(fd) {
        return write();
    }
    let mut disk = disk();
    let result = write();
    if result > 0 {
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let extent = disk.files.entry(identify(&file)).or_default();
        extent.written = extent.written.max(end() as u64);
    }
    result
}

#[unsafe(no_mangle)]
pub extern "C" fn write(fd: c_int, bytes: *const c_void, count: usize) -> isize {
    let real = real!("write", unsafe extern "C" fn(c_int, *const c_void, usize) -> isize);
    track(fd, || unsafe { lseek64(fd, 0, FROM_HERE) }, || unsafe { real(fd, bytes, count) })
}

#[unsafe(no_mangle)]
pub extern "C" fn writev(fd: c_int, parts: *const c_void, count: c_int) -> isize {
    let real = real!("writev", unsafe extern "C" fn(c_int, *const c_void, c_int) -> isize);
    track(fd, || unsafe { lseek64(fd, 0, FROM_HERE) }, || unsafe { real(fd, parts, count) })
}

#[unsafe(no_mangle)]
pub extern "C" fn pwrite64(fd: c_int, bytes: *const c_void, count: usize, at: i64) -> isize {
    let real = real!("pwrite64", unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize);
    track(fd, || at + count as i64, || unsafe { real(fd, bytes, count, at) })
}

#[unsafe(no_mangle)]
pub extern "C" fn fsync(fd: c_int) -> c_int {
    sync(fd, real!("fsync", unsafe extern "C" fn(c_int) -> c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync(fd, real!("fdatasync", unsafe extern "C" fn(c_int) -> c_int))
}

fn sync(fd: c_int, real: unsafe extern "C" fn(c_int) -> c_int) -> c_int {
    if !concerned(fd) {
        return unsafe { real(fd) };
    }
    let mut disk = disk();
    disk.syncs += 1;
    if let Some(counter) = std::env::var_os("FROZEN_COUNT") {
        let counted =
            OpenOptions::new().append(true).create(true).open(counter).and_then(|mut file| file.write_all(b"."));
        assert!(counted.is_ok(), "cannot count a sync");
    }
    let frozen_at = std::env::var("FROZEN_AT").ok().and_then(|at| at.parse().ok());
    if Some(disk.syncs) == frozen_at {
        freeze(&folder().unwrap_or_default(), &disk.files);
        unsafe { _exit(77) }
    }
    // That the sync really happens is of no use to the test, which does not cut the power; but it is what is tested.
    let result = unsafe { real(fd) };
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    let Ok(data) = file.metadata() else { return result };
    if data.is_dir() {
        for item in fs::read_dir(format!("/proc/self/fd/{fd}/")).into_iter().flatten().flatten() {
            if let Ok(data) = item.metadata() {
                disk.files.entry((data.ino(), data.created().ok())).or_default().named = true;
            }
        }
    } else {
        let extent = disk.files.entry(identify(&file)).or_default();
        // A file may have been cut since it was written.
        extent.written = extent.written.min(data.len());
        extent.synced = Some((extent.written, data.len()));
    }
    result
}

/// Takes from every file under `folder` what was not synced.
fn freeze(folder: &Path, files: &HashMap<FileId, Extent>) {
    let mode = std::env::var("FROZEN_MODE").unwrap_or_default();
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = item.path();
        if path.is_dir() {
            freeze(&path, files);
            continue;
        }
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        let extent = files.get(&identify(&file)).copied().unwrap_or_default();
        let length = file.metadata().map(|data| data.len()).unwrap_or_default();
        let written = extent.written.min(length);
        let done = match (mode.as_str(), extent.synced) {
            ("torn", synced) => {
                let from = synced.map_or(0, |(reached, _)| reached).min(written);
                let third = ((written - from) / 3) as i64;
                let middle = from as i64 + third;
                third == 0 || unsafe { fallocate64(file.as_raw_fd(), PUNCH_HOLE_KEEP_SIZE, middle, third) } == 0
            }
            ("vanished", None) if !extent.named => fs::remove_file(&path).is_ok(),
            (_, None) => file.set_len(0).is_ok(),
            // Cut to what is durable, and grown again with zeros to the length that is durable.
            (_, Some((reached, length))) => file.set_len(reached).is_ok() && file.set_len(length).is_ok(),
        };
        if !done {
            unsafe { _exit(78) }
        }
    }
}
