//! The folders of the server: nobody but their owner gets at what is in them.
//!
//! What the program makes is private because of [`withhold_from_others`], whatever the rights are that whoever started
//! it leaves to new files. What was there before is put right at the start: older versions and backups leave files that
//! everybody can read.
//!
//! Links are not followed: somebody else may have laid them, to have rights changed elsewhere.

use std::ffi::CStr;
use std::fs::DirBuilder;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// The rights of others and of the group.
const OF_OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);
const OWN_FOLDER: Mode = Mode::RWXU;
const OWN_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// How deep folders may nest that are looked through. The server's own nest four deep.
const MAX_DEPTH: usize = 32;

/// At the root of a file system there is a folder of the system's own.
const OF_THE_SYSTEM: &CStr = c"lost+found";

/// Files and folders that this process makes from now on are its owner's only.
pub(crate) fn withhold_from_others() {
    rustix::process::umask(OF_OTHERS);
}

/// Makes the folder that keeps all state if it is not there, and everything in it private. Refuses one that belongs to
/// somebody else, or holds what does.
pub(crate) fn secure(folder: &Path) -> anyhow::Result<()> {
    let mut walk = Walk { keys_only: false, repaired: 0 };
    walk.folder(open(folder)?, folder, 0)?;
    walk.report(folder);
    Ok(())
}

/// The same for a folder that others may have their files in too: there only keys are made private, and new folders.
pub(crate) fn secure_keys(folder: &Path) -> anyhow::Result<()> {
    let mut walk = Walk { keys_only: true, repaired: 0 };
    walk.folder(open(folder)?, folder, 0)?;
    walk.report(folder);
    Ok(())
}

/// Refuses a folder that belongs to somebody else; what is not there belongs to nobody.
pub(crate) fn require_own(folder: &Path) -> anyhow::Result<()> {
    match rustix::fs::stat(folder) {
        Ok(stat) => check_owner(folder, stat.st_uid, rustix::process::geteuid().as_raw()),
        Err(_) => Ok(()),
    }
}

/// Opens a folder, made with all that lead to it if it is not there.
fn open(folder: &Path) -> anyhow::Result<OwnedFd> {
    let made = DirBuilder::new().recursive(true).mode(OWN_FOLDER.bits()).create(folder);
    made.with_context(|| format!("cannot make {}", folder.display()))?;
    // Where it leads to is up to whoever named it, so a link is followed here and nowhere else.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty());
    opened.with_context(|| format!("cannot open {}", folder.display()))
}

/// A way through a folder.
struct Walk {
    /// Whether only keys are made private.
    keys_only: bool,
    repaired: usize,
}

impl Walk {
    fn folder(&mut self, folder: OwnedFd, path: &Path, depth: usize) -> anyhow::Result<()> {
        if depth > MAX_DEPTH {
            bail!("{} is nested too deeply to belong to a server", path.display());
        }
        let cannot = || format!("cannot look through {}", path.display());
        let stat = rustix::fs::fstat(&folder).with_context(cannot)?;
        check_owner(path, stat.st_uid, rustix::process::geteuid().as_raw())?;
        // First, so that nothing is laid into it while it is looked through.
        if !self.keys_only {
            self.restrict(&folder, &stat, OWN_FOLDER).with_context(cannot)?;
        }
        for item in Dir::read_from(&folder).with_context(cannot)? {
            let item = item.with_context(cannot)?;
            let name = item.file_name();
            if [c".", c"..", OF_THE_SYSTEM].contains(&name) {
                continue;
            }
            let path = path.join(name.to_string_lossy().as_ref());
            self.item(&folder, name, path, depth)?;
        }
        Ok(())
    }

    fn item(&mut self, folder: &OwnedFd, name: &CStr, path: PathBuf, depth: usize) -> anyhow::Result<()> {
        let stat = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            // Temporary files come and go.
            Err(Errno::NOENT) => return Ok(()),
            stat => stat.with_context(|| format!("cannot look at {}", path.display()))?,
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_key = name.to_bytes().ends_with(b".key");
        let (flags, is_wanted) = match kind {
            FileType::Directory => (OFlags::DIRECTORY, !self.keys_only),
            // Without waiting for a writer, should it have become a pipe in between.
            FileType::RegularFile => (OFlags::NONBLOCK, is_key || !self.keys_only),
            FileType::Symlink if !self.keys_only => {
                tracing::warn!(path = %path.display(), "the rights to what this link leads to are not looked at");
                return Ok(());
            }
            _ => return Ok(()),
        };
        if !is_wanted {
            return Ok(());
        }
        let cannot = || format!("cannot make {} private", path.display());
        check_owner(&path, stat.st_uid, rustix::process::geteuid().as_raw())?;
        if kind == FileType::RegularFile && !is_open_to_others(&stat) {
            return Ok(());
        }
        let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(folder, name, flags, Mode::empty()).with_context(cannot)?;
        if kind == FileType::Directory {
            return self.folder(opened, &path, depth + 1);
        }
        let stat = rustix::fs::fstat(&opened).with_context(cannot)?;
        self.restrict(&opened, &stat, OWN_FILE).with_context(cannot)
    }

    /// Takes all rights away that are not among `allowed`.
    fn restrict(&mut self, opened: &OwnedFd, stat: &Stat, allowed: Mode) -> rustix::io::Result<()> {
        if is_open_to_others(stat) {
            rustix::fs::fchmod(opened, Mode::from_raw_mode(stat.st_mode) & allowed)?;
            self.repaired += 1;
        }
        Ok(())
    }

    fn report(&self, folder: &Path) {
        if self.repaired > 0 {
            tracing::warn!(
                folder = %folder.display(),
                count = self.repaired,
                "files and folders were open to other users; they are private now"
            );
        }
    }
}

fn is_open_to_others(stat: &Stat) -> bool {
    Mode::from_raw_mode(stat.st_mode).intersects(OF_OTHERS)
}

/// Refuses what belongs to another user than the one who runs the server, be it root: that user could read and change
/// it at any time.
fn check_owner(path: &Path, owner: u32, runs_as: u32) -> anyhow::Result<()> {
    if owner != runs_as {
        bail!(
            "{} belongs to user {owner}, but the server runs as user {runs_as}: run it as that user, choose another \
             folder, or make it yours (chown -R {runs_as})",
            path.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn make(path: &Path, mode: u32) {
        if path.extension().is_some() {
            fs::write(path, "text").expect("a file can be written");
        } else {
            fs::create_dir(path).expect("a folder can be made");
        }
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("the rights of an own file can be set");
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    #[test]
    fn what_was_open_is_closed_and_links_are_left_alone() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let data = root.path().join("data");
        for (name, mode) in
            [("data", 0o2755), ("elsewhere.txt", 0o644), ("data/store", 0o777), ("data/store/HEAD.txt", 0o644)]
        {
            make(&root.path().join(name), mode);
        }
        for (name, mode) in [("program.sh", 0o755), ("kept.key", 0o400), ("open.key", 0o440), ("private.key", 0o600)] {
            make(&data.join(name), mode);
        }
        symlink(root.path().join("elsewhere.txt"), data.join("link.txt")).expect("a link can be made");
        symlink(root.path(), data.join("up")).expect("a link can be made");
        secure(&data).expect("the folder is ours");
        for (name, want) in [
            ("", 0o700),
            ("store", 0o700),
            ("store/HEAD.txt", 0o600),
            ("program.sh", 0o600),
            ("kept.key", 0o400),
            ("open.key", 0o400),
            ("private.key", 0o600),
        ] {
            assert_eq!(format!("{:o}", mode(&data.join(name))), format!("{want:o}"), "{name}");
        }
        assert_eq!(mode(&root.path().join("elsewhere.txt")), 0o644, "what a link leads to");
        assert_ne!(mode(root.path()), 0, "a link upwards is not followed");
    }

    #[test]
    fn in_a_shared_folder_only_keys_are_closed() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let shared = root.path().join("shared");
        make(&shared, 0o755);
        for (name, mode) in [("ca.key", 0o644), ("ca.crt", 0o644), ("others", 0o755), ("others/own.key", 0o644)] {
            make(&shared.join(name), mode);
        }
        secure_keys(&shared).expect("the folder is ours");
        let names = ["", "ca.key", "ca.crt", "others", "others/own.key"];
        assert_eq!(names.map(|name| mode(&shared.join(name))), [0o755, 0o600, 0o644, 0o755, 0o644]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_made_for_its_owner_only() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let data = root.path().join("a").join("b");
        secure(&data).expect("the folder can be made");
        assert_eq!(mode(&data) & 0o077, 0);
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused_whoever_runs_the_server() {
        let path = Path::new("/data");
        check_owner(path, 1000, 1000).expect("it is theirs");
        check_owner(path, 0, 0).expect("it is root's");
        for (owner, runs_as) in [(1000, 0), (0, 1000), (1000, 1001)] {
            let error = check_owner(path, owner, runs_as).expect_err("it is somebody else's").to_string();
            assert!(
                error.starts_with(&format!("/data belongs to user {owner}, but the server runs as user {runs_as}"))
            );
        }
    }
}
