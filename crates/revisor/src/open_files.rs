//! How many files the process may have open, and how many of them can be connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The part of all open files that is not for connections but for the store and everything else, and the least of it.
const RESERVED_SHARE: u64 = 4;
const RESERVED_LEAST: u64 = 64;

/// How many files may be open at once; `None` for any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenFiles(Option<u64>);

/// Raises the limit to the highest one that the process may have, as Go programs do, and answers it. The lower one that
/// processes start with is for programs that cannot deal with more.
pub(crate) fn raise_open_files() -> OpenFiles {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        return OpenFiles(limit.maximum);
    }
    tracing::warn!(limit = ?limit.current, "the limit of open files could not be raised");
    OpenFiles(limit.current)
}

impl OpenFiles {
    /// How many connections there can be, of so many wanted ones: those that are served, and those on which nothing was
    /// asked yet.
    pub(crate) fn connections(self, served: u32, new: u32) -> (u32, u32) {
        let Some(limit) = self.0 else { return (served, new) };
        let room = limit.saturating_sub((limit / RESERVED_SHARE).max(RESERVED_LEAST));
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let new = new.min(room / 4).max(1);
        let fitting = served.min(room.saturating_sub(new)).max(1);
        if fitting < served {
            tracing::warn!(limit, connections = fitting, "so few files can be open that connections are limited");
        }
        (fitting, new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_to_others() {
        for (name, limit, want) in [
            ("no limit", None, (10_000, 1_000)),
            ("plenty", Some(1_048_576), (10_000, 1_000)),
            ("some", Some(4_096), (2_304, 768)),
            ("few", Some(256), (144, 48)),
            ("hardly any", Some(10), (1, 1)),
        ] {
            assert_eq!(OpenFiles(limit).connections(10_000, 1_000), want, "{name}");
        }
    }

    #[test]
    fn the_limit_is_raised_to_the_highest() {
        let raised = raise_open_files();
        assert_eq!(raised, raise_open_files(), "it is as high as it gets");
        assert!(raised.0 >= getrlimit(Resource::Nofile).current, "{raised:?}");
    }
}
