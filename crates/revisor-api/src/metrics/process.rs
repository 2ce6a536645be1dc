//! What the operating system knows about the process, read from `/proc` at every scrape. Where there is no `/proc`
//! the metrics are absent rather than wrong.

use std::fs;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{MetricFamily, MetricType};

use super::resources::metric;

/// Clock ticks per second in what `/proc` shows. A constant of Linux' interface to programs on every architecture
/// that this runs on, whatever the kernel ticks at.
const TICKS: f64 = 100.0;

/// A metric: name, help, type and where its value comes from.
struct Row(&'static str, &'static str, MetricType, fn() -> Option<f64>);

const ROWS: [Row; 8] = [
    Row("process_start_time_seconds", "When the process started, in seconds since 1970", MetricType::GAUGE, start_time),
    Row("process_cpu_seconds_total", "Processor time used, in seconds", MetricType::COUNTER, cpu_seconds),
    Row("process_resident_memory_bytes", "Memory in use that is not swapped out", MetricType::GAUGE, || {
        memory("VmRSS:")
    }),
    Row("process_virtual_memory_bytes", "Size of the address space", MetricType::GAUGE, || memory("VmSize:")),
    Row("process_open_fds", "File descriptors that are open", MetricType::GAUGE, open_files),
    Row("process_max_fds", "File descriptors that may be open", MetricType::GAUGE, max_files),
    Row("go_goroutines", "Tasks that exist now: what stands here for goroutines", MetricType::GAUGE, tasks),
    Row("go_threads", "Threads of the process", MetricType::GAUGE, threads),
];

#[derive(Clone)]
pub(super) struct ProcessCollector {
    descriptions: Vec<Desc>,
}

impl ProcessCollector {
    pub(super) fn new() -> ProcessCollector {
        let describe = |Row(name, help, ..): &Row| {
            Desc::new((*name).to_owned(), (*help).to_owned(), Vec::new(), Default::default())
                .expect("metric names are valid")
        };
        ProcessCollector { descriptions: ROWS.iter().map(describe).collect() }
    }
}

impl Collector for ProcessCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        ROWS.iter()
            .filter_map(|Row(name, help, kind, value)| {
                let mut family = MetricFamily::default();
                family.set_name((*name).to_owned());
                family.set_help((*help).to_owned());
                family.set_field_type(*kind);
                family.set_metric(vec![metric(*kind, value()?, Vec::new())]);
                Some(family)
            })
            .collect()
    }
}

/// A field of `/proc/self/stat`, counted from 1 as its manual does.
fn stat_field(number: usize) -> Option<f64> {
    nth_stat_field(&fs::read_to_string("/proc/self/stat").ok()?, number)
}

fn nth_stat_field(stat: &str, number: usize) -> Option<f64> {
    // The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

fn cpu_seconds() -> Option<f64> {
    Some((stat_field(14)? + stat_field(15)?) / TICKS)
}

fn start_time() -> Option<f64> {
    let system = fs::read_to_string("/proc/stat").ok()?;
    let booted: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(booted + stat_field(22)? / TICKS)
}

fn memory(name: &str) -> Option<f64> {
    kilobytes(&fs::read_to_string("/proc/self/status").ok()?, name)
}

fn kilobytes(status: &str, name: &str) -> Option<f64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

/// How many tasks there are. Whoever scrapes is one of them, so there is a runtime to ask, except in tests.
fn tasks() -> Option<f64> {
    Some(tokio::runtime::Handle::try_current().ok()?.metrics().num_alive_tasks() as f64)
}

fn threads() -> Option<f64> {
    stat_field(20)
}

fn open_files() -> Option<f64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

fn max_files() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing() {
        let stat = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0";
        for (number, want) in [(14, Some(150.0)), (15, Some(50.0)), (4, Some(1.0)), (99, None), (1, None)] {
            // Field 14 is the eleventh after the state, which is field 3.
            assert_eq!(nth_stat_field(stat, number), want, "{number}");
        }
        let status = "Name:\tx\nVmSize:\t  20 kB\nVmRSS:\t   8 kB\n";
        for (name, want) in [("VmRSS:", Some(8192.0)), ("VmSize:", Some(20480.0)), ("VmSwap:", None)] {
            assert_eq!(kilobytes(status, name), want, "{name}");
        }
    }
}
