//! [`Log`]: a file to which events are written, a line each, and what becomes of it when it is full.
//!
//! Files are rotated as the original's are (by `lumberjack`): a full one is renamed after the moment, and those that are
//! too many or too old go.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::GzEncoder;
use time::OffsetDateTime;

/// What counts as a megabyte.
const MEGABYTE: u64 = 1 << 20;

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// As objects.
    Json,
    /// As one line of text.
    Legacy,
}

/// Which file, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// The file; `-` for standard output.
    pub path: PathBuf,
    /// How events are written.
    pub format: LogFormat,
    /// How many days old files are kept; zero for ever.
    pub max_age: u64,
    /// How many of them are kept; zero for all.
    pub max_backups: usize,
    /// After how many megabytes a file is full; zero for never.
    pub max_size: u64,
    /// Whether old files are compressed.
    pub compress: bool,
}

#[derive(Debug)]
pub(crate) struct Log {
    options: LogOptions,
    file: Mutex<Option<Current>>,
}

/// The file that is written to, and how large it is.
#[derive(Debug)]
struct Current {
    file: File,
    size: u64,
}

impl Log {
    pub(crate) fn open(options: LogOptions) -> io::Result<Log> {
        let log = Log { options, file: Mutex::default() };
        if !log.is_standard_output() {
            let current = log.append()?;
            *log.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(current);
        }
        Ok(log)
    }

    pub(crate) fn format(&self) -> LogFormat {
        self.options.format
    }

    fn is_standard_output(&self) -> bool {
        self.options.path == Path::new("-")
    }

    fn append(&self) -> io::Result<Current> {
        if let Some(folder) = self.options.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.options.path)?;
        let size = file.metadata()?.len();
        Ok(Current { file, size })
    }

    pub(crate) fn write(&self, text: &[u8]) -> io::Result<()> {
        if self.is_standard_output() {
            return io::stdout().lock().write_all(text);
        }
        let mut current = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let most = self.options.max_size * MEGABYTE;
        let length = text.len() as u64;
        if most > 0 && length > most {
            return Err(io::Error::other(format!("write length {length} exceeds maximum file size {most}")));
        }
        if most > 0 && current.as_ref().is_some_and(|current| current.size + length > most) {
            *current = None;
            self.rotate()?;
        }
        let current = match &mut *current {
            Some(current) => current,
            none => none.insert(self.append()?),
        };
        current.file.write_all(text)?;
        current.size += length;
        Ok(())
    }

    /// Puts the file aside, and looks after those that were put aside before, beside whoever writes.
    fn rotate(&self) -> io::Result<()> {
        fs::rename(&self.options.path, self.backup_name(SystemTime::now()))?;
        let options = self.options.clone();
        std::thread::spawn(move || {
            if let Err(error) = look_after_backups(&options, SystemTime::now()) {
                tracing::warn!(%error, "cannot look after old audit logs");
            }
        });
        Ok(())
    }

    fn backup_name(&self, now: SystemTime) -> PathBuf {
        let (stem, extension) = name_parts(&self.options.path);
        let now = OffsetDateTime::from(now);
        let stamp = format!(
            "{:04}-{:02}-{:02}T{:02}-{:02}-{:02}.{:03}",
            now.year(),
            u8::from(now.month()),
            now.day(),
            now.hour(),
            now.minute(),
            now.second(),
            now.millisecond()
        );
        self.options.path.with_file_name(format!("{stem}-{stamp}{extension}"))
    }
}

/// The name of a file without and its extension, with the dot.
fn name_parts(path: &Path) -> (String, String) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map_or_else(String::new, |extension| format!(".{}", extension.to_string_lossy()));
    (stem, extension)
}

/// Removes old files that are too many or too old, and compresses the others if that is wanted.
fn look_after_backups(options: &LogOptions, now: SystemTime) -> io::Result<()> {
    let (stem, extension) = name_parts(&options.path);
    let prefix = format!("{stem}-");
    let folder = options.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut backups = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let stamp = plain.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(extension.as_str()));
        if let Some(stamp) = stamp.filter(|stamp| is_stamp(stamp)) {
            backups.push((stamp.to_owned(), entry.path(), entry.metadata()?.modified()?));
        }
    }
    // The newest first; stamps are in the order of time.
    backups.sort_by(|one, two| two.0.cmp(&one.0));
    let oldest = (options.max_age > 0).then(|| now - Duration::from_secs(options.max_age * 24 * 60 * 60));
    let mut seen: Vec<&str> = Vec::new();
    for (stamp, path, modified) in &backups {
        if seen.last() != Some(&stamp.as_str()) {
            seen.push(stamp);
        }
        let is_spare = options.max_backups > 0 && seen.len() > options.max_backups;
        if is_spare || oldest.is_some_and(|oldest| *modified < oldest) {
            fs::remove_file(path)?;
        } else if options.compress && path.extension().is_none_or(|extension| extension != "gz") {
            compress(path)?;
        }
    }
    Ok(())
}

/// Whether this is a moment as files are named after.
fn is_stamp(text: &str) -> bool {
    let shape = "0000-00-00T00-00-00.000";
    let fits = |(found, wanted): (u8, u8)| if wanted == b'0' { found.is_ascii_digit() } else { found == wanted };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

fn compress(path: &Path) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    let mut source = File::open(path)?;
    let target = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(PathBuf::from(&name))?;
    let mut encoder = GzEncoder::new(target, Compression::default());
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(path: PathBuf) -> LogOptions {
        LogOptions { path, format: LogFormat::Json, max_age: 0, max_backups: 2, max_size: 1, compress: false }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_is_put_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = Log::open(options(folder.path().join("deep/audit.log"))).expect("a log");
        let line = vec![b'x'; 700_000];
        log.write(&line).expect("written");
        log.write(&line).expect("written");
        let names = names(&folder.path().join("deep"));
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names[0].starts_with("audit-20") && names[0].ends_with(".log"), "{names:?}");
        assert_eq!(fs::metadata(folder.path().join("deep/audit.log")).expect("a file").len(), 700_000);
        assert!(log.write(&vec![b'x'; 2 << 20]).is_err(), "more than a file may hold");
    }

    #[test]
    fn old_files_go_or_are_compressed() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = [
            "audit-2024-01-01T00-00-00.000.log",
            "audit-2024-01-02T00-00-00.000.log",
            "audit-2024-01-03T00-00-00.000.log",
        ];
        for name in own.into_iter().chain(["audit-later.log", "other.log"]) {
            fs::write(folder.path().join(name), name).expect("written");
        }
        let options = LogOptions { compress: true, ..options(folder.path().join("audit.log")) };
        look_after_backups(&options, SystemTime::now()).expect("looked after");
        let want = [
            "audit-2024-01-02T00-00-00.000.log.gz",
            "audit-2024-01-03T00-00-00.000.log.gz",
            "audit-later.log",
            "other.log",
        ];
        assert_eq!(names(folder.path()), want);
        let aged = LogOptions { max_age: 1, ..options };
        look_after_backups(&aged, SystemTime::now() + Duration::from_secs(3 * 24 * 60 * 60)).expect("looked after");
        assert_eq!(names(folder.path()), want[2..]);
    }
}
