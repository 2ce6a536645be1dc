//! What the processes of a server use, read from `/proc`.

use std::time::Duration;

use anyhow::{Context, Result};

/// Length of a tick of `/proc/PID/stat`. The kernel reports in hundredths of a second on every architecture.
const TICK: Duration = Duration::from_millis(10);

/// The processes that make up a server. May be empty: then nothing is known.
#[derive(Debug, Clone)]
pub(crate) struct Processes(Vec<u32>);

impl Processes {
    pub(crate) fn new(pids: Vec<u32>) -> Self {
        Self(pids)
    }

    /// CPU time that all of them have used since they started.
    pub(crate) fn cpu(&self) -> Result<Option<Duration>> {
        self.sum("stat", |text| cpu_ticks(text).map(|ticks| TICK.as_micros() as u64 * ticks))
            .map(|sum| sum.map(Duration::from_micros))
    }

    /// Bytes of memory that all of them hold.
    pub(crate) fn resident(&self) -> Result<Option<u64>> {
        self.sum("status", resident_bytes)
    }

    /// The same while nobody asks for anything: the mean over so many seconds, since a server at rest goes on with its own
    /// work and gives memory back in between.
    pub(crate) async fn resident_at_rest(&self, seconds: u32) -> Result<Option<u64>> {
        if seconds == 0 || self.0.is_empty() {
            return self.resident();
        }
        let mut sum = 0;
        for _ in 0..seconds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            sum += self.resident()?.unwrap_or_default();
        }
        Ok(Some(sum / u64::from(seconds)))
    }

    fn sum(&self, file: &str, read: impl Fn(&str) -> Option<u64>) -> Result<Option<u64>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut sum = 0;
        for pid in &self.0 {
            let path = format!("/proc/{pid}/{file}");
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
            sum += read(&text).with_context(|| format!("{path} is not what it should be"))?;
        }
        Ok(Some(sum))
    }
}

/// CPU time that the calling thread has used since it started.
pub(crate) fn thread_cpu() -> Result<Duration> {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Ok(Duration::from_nanos(nanoseconds.with_context(|| format!("{path} is not what it should be"))?))
}

/// Time in user and system mode. The name of the program stands in parentheses before them and may hold anything, so
/// fields are counted from the last parenthesis.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 1 2 3 4 700 30 5 6 20 0 9 0 123";
        assert_eq!(cpu_ticks(stat), Some(730));
        assert_eq!(cpu_ticks("42 (a) S 1"), None);
        assert_eq!(resident_bytes("Name:\ta\nVmRSS:\t    2048 kB\n"), Some(2 * 1024 * 1024));
        assert_eq!(resident_bytes("Name:\ta\n"), None);
    }

    #[test]
    fn this_process_uses_memory() {
        let processes = Processes::new(vec![std::process::id()]);
        assert!(processes.resident().expect("it runs").expect("it is known") > 0);
        assert!(processes.cpu().expect("it runs").is_some());
        assert!(thread_cpu().expect("it runs") > Duration::ZERO);
        assert_eq!(Processes::new(Vec::new()).resident().expect("nothing is asked"), None);
    }
}
