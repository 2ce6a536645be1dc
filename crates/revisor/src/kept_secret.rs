//! A secret of the server that outlives it: random bytes in a file that only its owner reads.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};

/// The secret in `path`, made if it is not there. Continue tokens are sealed with it, so that they survive a restart.
pub(crate) fn kept_secret(path: &Path) -> anyhow::Result<[u8; 32]> {
    match File::open(path) {
        Ok(mut file) => {
            let mut secret = Vec::new();
            file.read_to_end(&mut secret).with_context(|| format!("cannot read {}", path.display()))?;
            let Ok(secret) = <[u8; 32]>::try_from(secret) else {
                bail!("{} does not hold 32 bytes: remove it to have it made anew", path.display());
            };
            Ok(secret)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(path).with_context(|| format!("cannot write {}", path.display()))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn make(path: &Path) -> std::io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    for half in secret.chunks_mut(16) {
        // Version and variant bits are fixed in a UUID; hashing is not needed, 244 random bits are plenty for a seal.
        half.copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    }
    let temporary = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(&secret)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    Ok(secret)
}
