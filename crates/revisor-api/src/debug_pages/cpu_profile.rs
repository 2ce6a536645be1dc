//! Profiles of the processor: how much of its time each thread took, in its own code and in the kernel.
//!
//! The kernel counts that for everybody, so a profile costs nothing and asks no thread what it is doing. Which functions a
//! thread is in it does not know; a profile has threads where one of Go's has functions.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::profile_message::{Call, Profile, Stack};

/// What the kernel counts in. A constant of Linux' interface to programs.
const TICK: Duration = Duration::from_millis(10);

/// The threads of this process.
const THREADS: &str = "/proc/self/task";

/// What a thread has taken so far, in ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Taken {
    thread: String,
    user: i64,
    kernel: i64,
}

/// What the processor does from now on, for so long: compressed, in the format of pprof. Whoever stops to wait for it ends
/// it.
pub(super) async fn take(time: Duration) -> Result<Vec<u8>, String> {
    let begun = SystemTime::now();
    let before = threads().map_err(unreadable)?;
    tokio::time::sleep(time).await;
    let after = threads().map_err(unreadable)?;
    let profile = Profile::of_processor(stacks(&before, &after).into_iter(), begun, time, TICK);
    compressed(&profile).map_err(|problem| problem.to_string())
}

fn unreadable(problem: io::Error) -> String {
    format!("{THREADS}: {problem}")
}

/// What each thread has taken so far, by its number.
fn threads() -> io::Result<HashMap<u64, Taken>> {
    let mut threads = HashMap::new();
    for entry in fs::read_dir(THREADS)? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        // A thread may end while it is looked at.
        let taken = fs::read_to_string(entry.path().join("stat")).ok().and_then(|stat| Taken::read(&stat));
        threads.extend(id.zip(taken));
    }
    Ok(threads)
}

impl Taken {
    /// What `stat` of a thread says.
    fn read(stat: &str) -> Option<Taken> {
        // The name stands in parentheses, and may itself hold spaces and parentheses.
        let (head, rest) = stat.rsplit_once(')')?;
        let (_, thread) = head.split_once('(')?;
        let mut times = rest.split_ascii_whitespace().skip(11).map(|ticks| ticks.parse().ok());
        Some(Taken { thread: thread.to_owned(), user: times.next()??, kernel: times.next()?? })
    }
}

/// What threads took in between. Those that began since took all of it since; those that ended are not known any more.
fn stacks(before: &HashMap<u64, Taken>, after: &HashMap<u64, Taken>) -> Vec<Stack> {
    let mut stacks = Vec::new();
    for (id, now) in after {
        let (user, kernel) = before.get(id).map_or((0, 0), |before| (before.user, before.kernel));
        for (place, count) in [("user", now.user - user), ("kernel", now.kernel - kernel)] {
            if count > 0 {
                let calls = vec![vec![Call::named(place)], vec![Call::named(&now.thread)]];
                stacks.push(Stack { calls, thread: id.to_string(), count });
            }
        }
    }
    stacks
}

fn compressed(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&profile.encode_to_vec())?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_apart_by_what_they_took() {
        let stat = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0";
        let read = Taken::read(stat).expect("it can be read");
        assert_eq!(read, Taken { thread: "a (b) c".to_owned(), user: 150, kernel: 50 });
        assert_eq!(Taken::read("42 (a"), None);
        let earlier = Taken { user: 140, ..read.clone() };
        let (before, after) = (HashMap::from([(42, earlier)]), HashMap::from([(42, read)]));
        let counts: Vec<(String, i64)> = stacks(&before, &after)
            .into_iter()
            .map(|stack| {
                (stack.calls.iter().map(|calls| calls[0].function.as_str()).collect::<Vec<_>>().join("<"), stack.count)
            })
            .collect();
        assert_eq!(counts, [("user<a (b) c".to_owned(), 10)]);
        assert_eq!(stacks(&HashMap::new(), &after).len(), 2);
    }
}
