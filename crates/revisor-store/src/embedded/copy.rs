//! A copy of a store's folder, for those who want to look into it and must not change it: to open a store writes to it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use super::OpenError;

/// How deep the folders of a store nest at most.
const MAX_DEPTH: usize = 8;

/// Copies the store in `folder` to `copy`, which must not be there yet. The store stays as it is, and nobody can open it
/// meanwhile; one that is open is refused.
pub fn copy_store(folder: &Path, copy: &Path) -> Result<(), OpenError> {
    let file = folder.join("LOCK");
    // A store always has the file, and this one is not to be made one.
    let lock = match File::open(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let found = if folder.is_dir() { "no LOCK" } else { "nothing" }.to_owned();
            return Err(OpenError::NotAStore { folder: folder.to_owned(), found });
        }
        lock => lock.map_err(OpenError::io("open", &file))?,
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => return Err(OpenError::io("lock", &file)(source)),
    }
    let copied = copy_folder(folder, copy, 0);
    lock.unlock().map_err(OpenError::io("unlock", &file))?;
    copied
}

fn copy_folder(from: &Path, to: &Path, depth: usize) -> Result<(), OpenError> {
    if depth > MAX_DEPTH {
        return Err(OpenError::damaged(from, "folders nest deeper than those of a store"));
    }
    fs::create_dir(to).map_err(OpenError::io("create", to))?;
    for item in fs::read_dir(from).map_err(OpenError::io("list", from))? {
        let item = item.map_err(OpenError::io("list", from))?;
        let (path, target) = (item.path(), to.join(item.file_name()));
        let kind = item.file_type().map_err(OpenError::io("look at", &path))?;
        if kind.is_dir() {
            copy_folder(&path, &target, depth + 1)?;
        } else if kind.is_file() {
            fs::copy(&path, &target).map_err(OpenError::io("copy", &path))?;
        }
    }
    Ok(())
}
