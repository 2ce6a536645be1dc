//! [`make`]: a new engine is made in memory and put on the disk as a whole.
//!
//! The engine syncs each of the steps in which it is made, some fifty times. None of them matters by itself: `HEAD` says
//! that the engine is being made until all of it is durable, and one that was cut short is cleared away. So the steps are
//! done where to sync costs nothing, and what comes of them is synced once.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;

use xxhash_rust::xxh3::xxh3_64;

use super::OpenError;

/// A file system in memory.
const MEMORY: &str = "/dev/shm";

/// Makes the engine in `engine`, which must not be there, of what `create` makes in the folder that it is given. Makes
/// nothing where there is no room in memory; then it is to be made in its place.
pub(super) fn make(engine: &Path, create: impl FnOnce(&Path) -> Result<(), OpenError>) -> Result<(), OpenError> {
    let Some(cradle) = Cradle::new(Path::new(MEMORY), engine) else { return Ok(()) };
    let made = cradle.0.join("engine");
    if let Err(error) = create(&made) {
        tracing::debug!(error = &error as &dyn std::error::Error, "the store is not made in memory");
        return Ok(());
    }
    let mut copied = vec![];
    let io = |source| OpenError::io("create", engine)(source);
    copy(&made, engine, &mut copied).map_err(io)?;
    copied.extend(engine.parent().map(Path::to_owned));
    sync(&copied).map_err(io)
}

/// A folder in memory that goes with this.
struct Cradle(PathBuf);

impl Cradle {
    /// The one in which `engine` is made, which nobody else makes at the same time.
    fn new(memory: &Path, engine: &Path) -> Option<Cradle> {
        let place = xxh3_64(engine.as_os_str().as_bytes());
        let path = memory.join(format!("revisor-{}-{place:016x}", process::id()));
        // Fails if something of this name is there, whoever made it.
        DirBuilder::new().mode(0o700).create(&path).ok()?;
        Some(Cradle(path))
    }
}

impl Drop for Cradle {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, folder = %self.0.display(), "cannot remove a folder");
        }
    }
}

/// Copies a folder that nobody changes, and adds what it made to `copied`.
fn copy(from: &Path, to: &Path, copied: &mut Vec<PathBuf>) -> io::Result<()> {
    fs::create_dir(to)?;
    for item in fs::read_dir(from)? {
        let item = item?;
        let (path, target) = (item.path(), to.join(item.file_name()));
        let about = item.metadata()?;
        if about.is_dir() {
            copy(&path, &target, copied)?;
            continue;
        }
        // A journal is long from its beginning, and is cut when it is opened: of what nothing was written to, nothing is read.
        let text = if about.blocks() == 0 { vec![] } else { fs::read(&path)? };
        File::create_new(&target)?.write_all(&text)?;
        copied.push(target);
    }
    copied.push(to.to_owned());
    Ok(())
}

/// Makes files and folders durable, all at once, so that they share what the disk has to do for it.
fn sync(paths: &[PathBuf]) -> io::Result<()> {
    thread::scope(|scope| {
        let spawn = |path| thread::Builder::new().spawn_scoped(scope, move || File::open(path)?.sync_all());
        let syncing: Vec<_> = paths.iter().map(spawn).collect::<io::Result<_>>()?;
        syncing.into_iter().try_for_each(|synced| synced.join().unwrap_or_else(|_| Err(io::Error::other("panicked"))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = vec![];
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for item in fs::read_dir(&next).expect("a folder") {
                let path = item.expect("an item").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(folder).expect("inside").to_owned();
                    found.push((name, fs::read(&path).expect("a file")));
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn what_is_made_elsewhere_is_put_in_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = folder.path().join("engine");
        let mut place = None;
        make(&engine, |made| {
            fs::create_dir_all(made.join("keyspaces/0")).expect("made");
            fs::write(made.join("keyspaces/0/current"), "v0").expect("made");
            fs::write(made.join("lock"), "").expect("made");
            File::create_new(made.join("0.jnl")).and_then(|file| file.set_len(1 << 20)).expect("made");
            place = made.parent().map(Path::to_owned);
            Ok(())
        })
        .expect("can be made");
        // Without a file system in memory it is left to whoever asked.
        if let Some(place) = place {
            let want = [("0.jnl", ""), ("keyspaces/0/current", "v0"), ("lock", "")];
            assert_eq!(files(&engine), want.map(|(name, text)| (name.into(), text.into())));
            assert!(!place.exists(), "nothing stays behind");
        }
    }

    #[test]
    fn what_cannot_be_made_elsewhere_is_left_to_be_made_in_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = folder.path().join("engine");
        make(&engine, |made| Err(OpenError::damaged(made, "as the test wants"))).expect("is no failure");
        assert!(!engine.exists());
        assert!(Cradle::new(&folder.path().join("missing"), &engine).is_none());
    }
}
