//! A secret of the server that outlives it: random bytes in a file that only its owner reads.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};

/// The secret in `path`, made if it is not there. Continue tokens are sealed with it, so that they survive a restart.
pub(crate) fn kept_secret(path: &Path) -> anyhow::Result<[u8; 32]> {
    let read = || read(path).with_context(|| format!("cannot read {}", path.display()));
    let found = match read()? {
        Some(found) => found,
        None => {
            make(path).with_context(|| format!("cannot write {}", path.display()))?;
            read()?.unwrap_or_default()
        }
    };
    let Ok(secret) = <[u8; 32]>::try_from(found) else {
        bail!("{} does not hold 32 bytes: remove it to have it made anew", path.display());
    };
    Ok(secret)
}

/// What is in the file, as far as it can be a secret; `None` if there is no file.
fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let mut found = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(64).read_to_end(&mut found)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(found))
}

/// Makes a secret that nobody could have prepared: the file is new under a name that nobody can guess, and takes its
/// place only if nothing else has taken it in between. What has is left there, to be read.
fn make(path: &Path) -> std::io::Result<()> {
    let mut secret = [0; 32];
    for half in secret.chunks_mut(16) {
        // Version and variant bits are fixed in a UUID; hashing is not needed, 244 random bits are plenty for a seal.
        half.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    }
    let temporary = path.with_extension(format!("{}.new", uuid::Uuid::new_v4()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let placed = file.write_all(&secret).and_then(|()| file.sync_all()).and_then(|()| {
        match std::fs::hard_link(&temporary, path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    });
    std::fs::remove_file(&temporary)?;
    placed?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_made_once_and_only_for_its_owner() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.key");
        let secret = kept_secret(&path).expect("it can be made");
        assert_eq!(kept_secret(&path).expect("it can be read"), secret);
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        assert_ne!(kept_secret(&folder.path().join("b.key")).expect("it can be made"), secret);
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("the folder can be read").count(),
            2,
            "nothing is left over"
        );
    }

    #[test]
    fn what_is_there_is_never_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.key");
        std::fs::write(&path, [7; 32]).expect("a file can be written");
        make(&path).expect("somebody was faster");
        assert_eq!(std::fs::read(&path).expect("it is there"), [7; 32]);
        for wrong in [vec![], vec![7; 31], vec![7; 100]] {
            std::fs::write(&path, wrong).expect("a file can be written");
            let error = kept_secret(&path).expect_err("it is no secret").to_string();
            assert!(error.contains("does not hold 32 bytes"), "{error}");
        }
    }
}
