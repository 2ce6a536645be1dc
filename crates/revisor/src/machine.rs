//! What the machine can carry, for limits that nobody has set.

use std::fs;
use std::path::{Path, PathBuf};

/// A store is never given more than this unless somebody asks for it; where etcd warns about its own quota.
const MOST: u64 = 8 << 30;

/// The default of `--quota-backend-bytes`: a quarter of the memory, because what is stored is also served from there and
/// more than once while it is; and half of what the disk has room for, because what is replaced stays there for a while.
pub(crate) fn default_quota(folder: &Path) -> u64 {
    let memory = memory(Path::new("/"));
    let disk = room_on_disk(folder);
    share(memory, disk)
}

fn share(memory: Option<u64>, disk: Option<u64>) -> u64 {
    let shares = [memory.map(|bytes| bytes / 4), disk.map(|bytes| bytes / 2)];
    shares.into_iter().flatten().fold(MOST, u64::min)
}

/// The memory of the machine, or of the control groups that this process is in if they have less. `root` is where the
/// file system begins.
fn memory(root: &Path) -> Option<u64> {
    let physical = read(&root.join("proc/meminfo")).and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
    });
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(memory_group).flat_map(|(files, name, group)| {
        // A limit of any group above holds too. In a container the groups above are not to be seen, and its own may be
        // shown as the root.
        let above = Path::new(group).ancestors().map(|above| above.strip_prefix("/").unwrap_or(above).to_owned());
        above.map(|above| root.join(files).join(above).join(name)).collect::<Vec<PathBuf>>()
    });
    let limits = limits.filter_map(|file| read(&file)?.trim().parse::<u64>().ok());
    physical.into_iter().chain(limits).min()
}

/// Of a line that names a control group: where the files of such groups are, the file with the limit of memory, and the
/// group. A line is `number:controllers:group`; the second version has the number 0 and names no controllers.
fn memory_group(line: &str) -> Option<(&'static str, &'static str, &str)> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    if controllers.split(',').any(|controller| controller == "memory") {
        return Some(("sys/fs/cgroup/memory", "memory.limit_in_bytes", group));
    }
    (number == "0" && controllers.is_empty()).then_some(("sys/fs/cgroup", "memory.max", group))
}

/// What the disk has left for the folder, and what the folder takes of it now.
fn room_on_disk(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)?.checked_add(size(folder))
}

/// How many bytes the files under `folder` have. What cannot be read counts as nothing.
fn size(folder: &Path) -> u64 {
    let Ok(items) = fs::read_dir(folder) else { return 0 };
    let sizes = items.flatten().map(|item| match item.metadata() {
        Ok(data) if data.is_dir() => size(&item.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_share_counts() {
        for (name, memory, disk, want) in [
            ("nothing is known", None, None, 8 << 30),
            ("a small memory", Some(2 << 30), Some(1 << 40), 512 << 20),
            ("a small disk", Some(64 << 30), Some(3 << 30), 1536 << 20),
            ("a large machine", Some(1 << 40), Some(1 << 40), 8 << 30),
        ] {
            assert_eq!(share(memory, disk), want, "{name}");
        }
    }

    #[test]
    fn control_groups_of_both_versions_bound_the_memory() {
        const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:   1 kB\n");
        for (name, files, want) in [
            ("no groups", vec![MEMINFO], Some(16 << 30)),
            ("nothing can be read", vec![], None),
            (
                "the second version",
                vec![MEMINFO, ("proc/self/cgroup", "0::/a/b\n"), ("sys/fs/cgroup/a/b/memory.max", "1048576\n")],
                Some(1 << 20),
            ),
            (
                "a group above has less",
                vec![
                    MEMINFO,
                    ("proc/self/cgroup", "0::/a/b\n"),
                    ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                    ("sys/fs/cgroup/a/memory.max", "2097152\n"),
                ],
                Some(2 << 20),
            ),
            (
                "a container that sees only itself",
                vec![MEMINFO, ("proc/self/cgroup", "0::/../x\n"), ("sys/fs/cgroup/memory.max", "3145728\n")],
                Some(3 << 20),
            ),
            (
                "the first version",
                vec![
                    MEMINFO,
                    ("proc/self/cgroup", "4:cpu,memory:/a\n1:name=systemd:/b\n"),
                    ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4194304\n"),
                ],
                Some(4 << 20),
            ),
            (
                "the first version without a limit",
                vec![
                    MEMINFO,
                    ("proc/self/cgroup", "4:memory:/\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ],
                Some(16 << 30),
            ),
        ] {
            let root = tempfile::tempdir().expect("a temporary folder");
            for (path, text) in files {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().expect("is below the root")).expect("a folder can be made");
                fs::write(path, text).expect("a file can be written");
            }
            assert_eq!(memory(root.path()), want, "{name}");
        }
    }

    #[test]
    fn room_on_disk_has_what_the_folder_takes_itself() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("inner")).expect("a folder can be made");
        fs::write(folder.path().join("inner/file"), [0; 1000]).expect("a file can be written");
        assert_eq!(size(folder.path()), 1000);
        assert!(room_on_disk(folder.path()).is_some_and(|bytes| bytes >= 1000));
        assert_eq!(room_on_disk(&folder.path().join("missing")), None);
    }
}
