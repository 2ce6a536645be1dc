//! [`OpenError`]: why a folder was not opened as a store, for whoever has to mend it.

use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Why a store was not opened. Each names the file or folder concerned and says what can be done.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another store of this process, has the folder open.
    #[error("the store in {} is in use by another process: stop that one, or choose another folder", folder.display())]
    InUse {
        /// The folder of the store.
        folder: PathBuf,
    },
    /// The folder holds something else.
    #[error(
        "{} is not a store, it holds {found}: choose an empty folder, or restore the missing files from a backup",
        folder.display()
    )]
    NotAStore {
        /// The folder that was to be opened.
        folder: PathBuf,
        /// What was found in it.
        found: String,
    },
    /// The store was written by a program that is newer than this one.
    #[error(
        "{} says format {found}, this program reads up to format {supported}: use the newer program that wrote it",
        file.display()
    )]
    NewerFormat {
        /// The file that says so.
        file: PathBuf,
        /// The format of the store.
        found: u32,
        /// The newest format that this program reads.
        supported: u32,
    },
    /// What is on disk is not what was written. Nothing was served from it.
    #[error("{} is damaged: {what}; restore the folder from a backup", path.display())]
    Damaged {
        /// The file or folder that is damaged, as closely as it is known.
        path: PathBuf,
        /// How that shows.
        what: String,
    },
    /// What is stored cannot be decrypted. Nothing was served from it.
    #[error("{cause}; start with an encryption configuration that has the key with which it was written")]
    Encrypted {
        /// Which object, and why.
        cause: StoreError,
    },
    /// The store is encrypted as a whole, and not with the keys that were given. Nothing was served from it.
    #[error(
        "the store cannot be decrypted: {what}; start with the key file (--store-key-file) that it was written with"
    )]
    Sealed {
        /// What cannot be, and why.
        what: String,
    },
    /// The operating system refused.
    #[error("cannot {doing} {}: check that the disk is there, has room, and that permissions allow it", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    pub(super) fn damaged(path: impl AsRef<Path>, what: impl Into<String>) -> OpenError {
        OpenError::Damaged { path: path.as_ref().to_owned(), what: what.into() }
    }

    pub(super) fn sealed(what: impl Into<String>) -> OpenError {
        OpenError::Sealed { what: what.into() }
    }

    pub(super) fn io(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> OpenError {
        let path = path.as_ref().to_owned();
        move |source| OpenError::Io { doing, path, source }
    }
}
