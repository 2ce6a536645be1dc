//! [`Folder`]: the files around the engine that make a folder a store, and keep it from being opened wrongly.
//!
//! - `LOCK` is locked while the store is open, so that two processes never write to one folder.
//! - `FORMAT` says which program can read the rest.
//! - `HEAD` says up to which revision writes are known to be durable. The engine cuts its journal at the first
//!   entry that it cannot read, as it must after a crash; only who knows how far the journal once reached can tell
//!   a torn tail from lost writes.
//! - `engine/` belongs to the engine.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::OpenError;

/// The format that this program writes, and the newest that it reads. Since the second, history may be shorter for
/// some keys than for others; programs that know only the first would take the gaps for damage. The first is brought
/// up to date when it is opened. The third is that of stores that are encrypted as a whole.
const FORMAT: u32 = 3;
const PLAIN_FORMAT: u32 = 2;
const OLDEST_FORMAT: u32 = 1;
const FORMAT_PREFIX: &str = "revisor-store ";
const HEAD_PREFIX: &str = "revisor-head 1 ";

/// A locked folder. The lock goes with the value, also when the process dies.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    lock: File,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // To close the file is not enough: a process that is just being forked has it open too, until it executes.
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, folder = %self.path.display(), "cannot unlock the store");
        }
    }
}

/// What `HEAD` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// The engine's files are being made; nothing was ever written.
    Creating,
    /// Every write up to this revision was durable; zero stands for none.
    Durable(u64),
}

impl Folder {
    /// Takes hold of the folder at `path`, and creates it if it is not there.
    pub(super) fn lock(path: &Path) -> Result<Folder, OpenError> {
        let existed = path.try_exists().map_err(OpenError::io("look for", path))?;
        fs::create_dir_all(path).map_err(OpenError::io("create", path))?;
        if !existed && let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_folder(parent).map_err(OpenError::io("sync", parent))?;
        }
        let file = path.join("LOCK");
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&file)
            .map_err(OpenError::io("open", &file))?;
        match lock.try_lock() {
            Ok(()) => Ok(Folder { path: path.to_owned(), lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { folder: path.to_owned() }),
            Err(TryLockError::Error(source)) => Err(OpenError::io("lock", &file)(source)),
        }
    }

    /// Checks that the folder is a store which this program can read, or makes it one if it is empty. An engine
    /// whose creation was cut short is cleared away, because nothing can have been written to it.
    pub(super) fn prepare(&self, is_sealed: bool) -> Result<Head, OpenError> {
        let wanted = if is_sealed { FORMAT } else { PLAIN_FORMAT };
        let head = match (self.read("FORMAT")?, self.read("HEAD")?) {
            (None, None) => {
                self.check_empty()?;
                Head::Creating
            }
            // HEAD comes before FORMAT when a store is made, so this is where a crash may have left it.
            (None, Some(head)) if self.parse_head(&head)? == Head::Creating => Head::Creating,
            (None, Some(_)) => return Err(OpenError::damaged(self.file("FORMAT"), "the file is missing")),
            (Some(_), None) => return Err(OpenError::damaged(self.file("HEAD"), "the file is missing")),
            (Some(format), Some(head)) => {
                let format = self.check_format(&format)?;
                let head = self.parse_head(&head)?;
                if format == FORMAT && !is_sealed {
                    let format = self.file("FORMAT");
                    return Err(OpenError::sealed(format!(
                        "it is encrypted, as {} says, and no key is given",
                        format.display()
                    )));
                }
                if format < wanted && head != Head::Creating {
                    self.write_format(wanted)?;
                }
                head
            }
        };
        if head == Head::Creating {
            self.write_head(head).map_err(OpenError::io("write", self.file("HEAD")))?;
            self.write_format(wanted)?;
            let engine = self.engine();
            match fs::remove_dir_all(&engine) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(OpenError::io("clear", &engine)(error));
                }
                _ => {}
            }
        }
        Ok(head)
    }

    /// Makes `head` durable.
    pub(super) fn write_head(&self, head: Head) -> io::Result<()> {
        let body = match head {
            Head::Creating => "creating".to_owned(),
            Head::Durable(revision) => revision.to_string(),
        };
        self.replace("HEAD", &format!("{HEAD_PREFIX}{body} {:08x}\n", crc32fast::hash(body.as_bytes())))
    }

    /// Where the engine keeps its files.
    pub(super) fn engine(&self) -> PathBuf {
        self.path.join("engine")
    }

    /// The path of one of the files beside the engine.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn check_empty(&self) -> Result<(), OpenError> {
        let io = |source| OpenError::io("list", &self.path)(source);
        for item in fs::read_dir(&self.path).map_err(io)? {
            let name = item.map_err(io)?.file_name();
            // A crash may leave a temporary file, and a file system of its own has a folder at its root.
            if !["LOCK", "HEAD.new", "FORMAT.new", "lost+found"].iter().any(|known| name == *known) {
                let found = format!("{:?} but neither FORMAT nor HEAD", name.to_string_lossy());
                return Err(OpenError::NotAStore { folder: self.path.clone(), found });
            }
        }
        Ok(())
    }

    fn write_format(&self, format: u32) -> Result<(), OpenError> {
        let text = format!("{FORMAT_PREFIX}{format}\n");
        self.replace("FORMAT", &text).map_err(OpenError::io("write", self.file("FORMAT")))
    }

    fn check_format(&self, text: &str) -> Result<u32, OpenError> {
        let number = text.strip_prefix(FORMAT_PREFIX).and_then(|rest| rest.trim_end().parse::<u32>().ok());
        match number {
            Some(found @ OLDEST_FORMAT..=FORMAT) => Ok(found),
            Some(found) if found > FORMAT => {
                Err(OpenError::NewerFormat { file: self.file("FORMAT"), found, supported: FORMAT })
            }
            _ => Err(OpenError::damaged(self.file("FORMAT"), "it names no known format")),
        }
    }

    fn parse_head(&self, text: &str) -> Result<Head, OpenError> {
        let parse = || {
            let (body, sum) = text.strip_prefix(HEAD_PREFIX)?.strip_suffix('\n')?.split_once(' ')?;
            if sum != format!("{:08x}", crc32fast::hash(body.as_bytes())) {
                return None;
            }
            if body == "creating" { Some(Head::Creating) } else { body.parse().ok().map(Head::Durable) }
        };
        parse().ok_or_else(|| OpenError::damaged(self.file("HEAD"), "its checksum does not fit"))
    }

    /// The text of a file, `None` if there is no such file. Bytes that are no text cannot parse, so they may change.
    fn read(&self, name: &str) -> Result<Option<String>, OpenError> {
        match fs::read(self.file(name)) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OpenError::io("read", self.file(name))(error)),
        }
    }

    /// Replaces a file so that a crash leaves either the old or the new one.
    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.file(&format!("{name}.new"));
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, self.file(name))?;
        sync_folder(&self.path)
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
