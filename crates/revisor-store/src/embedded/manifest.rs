//! A look at the engine's manifests before the engine opens them.
//!
//! The engine (fjall, format 3) keeps each keyspace in a folder with a number. In it `current` names the manifest of
//! the keyspace, `v<number>`, and holds its checksum. The engine does not compare the two, and panics over a manifest
//! that says something unexpected, in places where a panic ends the process. So they are compared here.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::OpenError;

/// Checks what the engine would not survive in the folder `engine`. Nothing is there yet in a new store.
pub(super) fn check(engine: &Path) -> Result<(), OpenError> {
    let keyspaces = engine.join("keyspaces");
    let items = match fs::read_dir(&keyspaces) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        items => items.map_err(OpenError::io("list", &keyspaces))?,
    };
    for item in items {
        let folder = item.map_err(OpenError::io("list", &keyspaces))?.path();
        if !folder.is_dir() {
            continue;
        }
        if folder.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok()).is_none() {
            return Err(OpenError::damaged(folder, "it does not belong there"));
        }
        check_keyspace(&folder)?;
    }
    Ok(())
}

fn check_keyspace(folder: &Path) -> Result<(), OpenError> {
    let current = folder.join("current");
    let bytes = match fs::read(&current) {
        // The engine would take the keyspace for an unfinished one and remove it. But a store that was not finished
        // is made anew before it comes here.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(OpenError::damaged(current, "the file is missing"));
        }
        bytes => bytes.map_err(OpenError::io("read", &current))?,
    };
    let parse = || {
        let (number, rest) = bytes.split_first_chunk()?;
        let (sum, kind) = rest.split_first_chunk()?;
        (kind == [0]).then_some((u64::from_le_bytes(*number), u128::from_le_bytes(*sum)))
    };
    let (number, sum) = parse().ok_or_else(|| OpenError::damaged(&current, "it names no manifest"))?;
    let manifest = folder.join(format!("v{number}"));
    let bytes = match fs::read(&manifest) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(OpenError::damaged(manifest, "the file is missing"));
        }
        bytes => bytes.map_err(OpenError::io("read", &manifest))?,
    };
    if xxh3_128(&bytes) != sum {
        return Err(OpenError::damaged(manifest, "its checksum does not fit"));
    }
    Ok(())
}
