//! Files that hold credentials: read with a bound, written whole or not at all, private from their first byte.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What only the owner may do: to read and to write.
const OWNERS_ONLY: u32 = 0o600;

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is replaced.
    Replaced,
    /// It stays, and to write is an error: nothing was there when the new one was made up, and a secret that somebody
    /// has put there since must not be lost.
    Kept,
}

/// The text of the file at `path`, which must be no longer than `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(limit + 1).read_to_string(&mut text)?;
    if text.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {limit} bytes")));
    }
    Ok(text)
}

/// A file to be written.
pub(crate) struct NewFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) standing: Standing,
}

/// Which file could not be written, and why.
#[derive(Debug)]
pub(crate) struct WriteError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Puts `files` in their places, in their order. A reader, also one after a crash, sees of each the old file or the
/// whole new one; when one of them cannot be made, none is put in its place.
///
/// The temporary files are written side by side, because each waits for the disk and a disk syncs many files in
/// about the time of one.
pub(crate) fn write_all(files: &[NewFile]) -> Result<(), WriteError> {
    let prepared: Vec<io::Result<PathBuf>> = std::thread::scope(|scope| {
        let started: Vec<_> =
            files.iter().map(|file| std::thread::Builder::new().spawn_scoped(scope, || prepare(file))).collect();
        started
            .into_iter()
            .map(|thread| thread?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let placed = place(files, &prepared);
    if placed.is_err() {
        for temporary in prepared.iter().flatten() {
            // The first failure is what the caller has to know; a file that cannot be removed either is replaced by
            // the next attempt.
            let _ = std::fs::remove_file(temporary);
        }
    }
    placed
}

/// Writes `file` beside its place and returns where.
///
/// It has its final mode from its creation: to write first and restrict later would leave a moment in which others
/// can open a private key.
fn prepare(file: &NewFile) -> io::Result<PathBuf> {
    let temporary = temporary_name(&file.path)?;
    // One may be left from a crash, with unknown contents and mode, so it is not reused.
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut open = OpenOptions::new().write(true).create_new(true).mode(OWNERS_ONLY).open(&temporary)?;
    let written = open.write_all(file.text.as_bytes()).and_then(|()| open.sync_all());
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written.map(|()| temporary)
}

/// Moves prepared files to their places, once all of them are prepared.
fn place(files: &[NewFile], prepared: &[io::Result<PathBuf>]) -> Result<(), WriteError> {
    let fail = |file: &NewFile, source: io::Error| WriteError { path: file.path.clone(), source };
    let mut ready = Vec::with_capacity(files.len());
    for (file, temporary) in files.iter().zip(prepared) {
        match temporary {
            Ok(temporary) => ready.push((file, temporary)),
            Err(error) => return Err(fail(file, io::Error::new(error.kind(), error.to_string()))),
        }
    }
    for (file, temporary) in &ready {
        let placed = match file.standing {
            Standing::Replaced => std::fs::rename(temporary, &file.path),
            Standing::Kept => std::fs::hard_link(temporary, &file.path).and_then(|()| std::fs::remove_file(temporary)),
        };
        placed.map_err(|source| fail(file, source))?;
    }
    let mut synced: Option<&Path> = None;
    for file in files {
        let folder = folder_of(&file.path);
        if synced != Some(folder) {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(|source| fail(file, source))?;
            synced = Some(folder);
        }
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let name =
        path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it does not name a file"))?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(".tmp");
    Ok(path.with_file_name(temporary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn write(path: &Path, text: &str, standing: Standing) -> Result<(), WriteError> {
        write_all(&[NewFile { path: path.to_owned(), text: text.to_owned(), standing }])
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("the file was written").permissions().mode() & 0o777
    }

    #[test]
    fn a_written_file_has_its_text_and_mode_and_leaves_nothing_beside() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        // Left by a crash, readable by all: neither its mode nor its contents may survive.
        std::fs::write(folder.path().join(".key.tmp"), "old").expect("the folder can be written");
        write(&path, "first", Standing::Replaced).expect("the file can be written");
        assert_eq!((read(&path, 5).expect("the file can be read").as_str(), mode(&path)), ("first", 0o600));
        write(&path, "second", Standing::Replaced).expect("the file can be replaced");
        assert_eq!((read(&path, 6).expect("the file can be read").as_str(), mode(&path)), ("second", 0o600));
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder can be read").count(), 1);
    }

    #[test]
    fn a_new_secret_takes_no_other_ones_place() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        write(&path, "first", Standing::Kept).expect("nothing is there");
        let error = write(&path, "second", Standing::Kept).expect_err("something is there");
        assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((read(&path, 5).expect("the file can be read").as_str(), mode(&path)), ("first", 0o600));
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder can be read").count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        // A folder cannot be replaced by a file, whoever runs the test.
        std::fs::create_dir_all(path.join("inside")).expect("the folder can be made");
        assert!(write(&path, "text", Standing::Replaced).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder can be read").count(), 1);
        assert!(path.join("inside").is_dir());
    }

    #[test]
    fn of_several_files_all_are_placed_or_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = |name: &str| NewFile {
            path: folder.path().join(name),
            text: name.rsplit('/').next().unwrap_or_default().to_owned(),
            standing: Standing::Replaced,
        };
        let error = write_all(&[file("a"), file("nowhere/b"), file("c")]).expect_err("one folder is missing");
        assert_eq!((error.path, error.source.kind()), (folder.path().join("nowhere/b"), io::ErrorKind::NotFound));
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder can be read").count(), 0);

        std::fs::create_dir(folder.path().join("nowhere")).expect("the folder can be made");
        write_all(&[file("a"), file("nowhere/b"), file("c")]).expect("all folders are there");
        for (name, text) in [("a", "a"), ("nowhere/b", "b"), ("c", "c")] {
            assert_eq!(read(&folder.path().join(name), 1).expect("the file is there"), text);
        }
    }

    #[test]
    fn reading_is_bounded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("long");
        std::fs::write(&path, "12345").expect("the folder can be written");
        assert_eq!(read(&path, 5).expect("five bytes are within five").as_str(), "12345");
        assert_eq!(read(&path, 4).expect_err("five bytes are beyond four").to_string(), "it is longer than 4 bytes");
    }
}
