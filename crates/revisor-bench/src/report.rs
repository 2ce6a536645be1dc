//! The figures, and the tables that show them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::workload::Outcome;

/// From this size of an answer on, bytes are what a phase moves.
const BULK: u64 = 16 * 1024;

/// What a phase came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// What was done.
    pub name: String,
    /// How often.
    pub operations: u64,
    /// For how long, in all.
    pub seconds: f64,
    /// The time that half of the operations did not exceed.
    pub p50_micros: u32,
    /// The time that ninety-nine of a hundred operations did not exceed.
    pub p99_micros: u32,
    /// CPU time that the server used, if its processes are known.
    pub cpu_seconds: Option<f64>,
    /// Bytes of all answers, where answers are large.
    pub bytes: Option<u64>,
    /// Memory of the server behind the phase, if its processes are known.
    pub resident_bytes: Option<u64>,
}

impl Phase {
    pub(crate) fn new(name: &str, outcome: Outcome, resident_bytes: Option<u64>) -> Self {
        let bulk = outcome.bytes >= BULK * outcome.operations.max(1);
        let (p50_micros, p99_micros) = outcome.latencies.median_and_p99();
        Self {
            name: name.to_owned(),
            operations: outcome.operations,
            seconds: outcome.elapsed.as_secs_f64(),
            p50_micros,
            p99_micros,
            cpu_seconds: outcome.cpu.as_ref().map(Duration::as_secs_f64),
            bytes: bulk.then_some(outcome.bytes),
            resident_bytes,
        }
    }

    /// Operations in a second.
    pub fn rate(&self) -> f64 {
        ratio(self.operations as f64, self.seconds)
    }

    /// Microseconds of the server's CPU time per operation.
    pub fn cpu_micros(&self) -> Option<f64> {
        self.cpu_seconds.map(|seconds| ratio(seconds * 1e6, self.operations as f64))
    }

    fn megabytes(&self) -> Option<f64> {
        self.bytes.map(|bytes| bytes as f64 / 1e6)
    }

    fn megabytes_per_second(&self) -> Option<f64> {
        self.megabytes().map(|megabytes| ratio(megabytes, self.seconds))
    }

    fn cpu_millis_per_megabyte(&self) -> Option<f64> {
        self.cpu_seconds.zip(self.megabytes()).map(|(seconds, megabytes)| ratio(seconds * 1e3, megabytes))
    }
}

/// All that was measured of one server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerReport {
    /// What it is called in the tables.
    pub name: String,
    /// From its start on an empty folder until it was ready, if it was started here.
    pub ready_seconds: Option<f64>,
    /// Memory at rest, before any object was there.
    pub idle_bytes: Option<u64>,
    /// Memory at rest with the objects.
    pub loaded_bytes: Option<u64>,
    /// How many objects those were; zero if they were not counted this way.
    pub objects: u32,
    /// The phases in order.
    pub phases: Vec<Phase>,
}

/// The whole measurement: one server, or two to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The server in question first.
    pub servers: Vec<ServerReport>,
}

impl Report {
    /// For a terminal.
    pub fn aligned(&self) -> String {
        self.tables().iter().map(|table| format!("{}\n", table.aligned())).collect()
    }

    /// For a document.
    pub fn markdown(&self) -> String {
        self.tables().iter().map(|table| format!("{}\n", table.markdown())).collect()
    }

    /// For a program.
    pub fn json(&self) -> Value {
        let phase = |phase: &Phase| {
            json!({
                "name": phase.name,
                "operations": phase.operations,
                "seconds": phase.seconds,
                "operationsPerSecond": phase.rate(),
                "p50Micros": phase.p50_micros,
                "p99Micros": phase.p99_micros,
                "cpuSeconds": phase.cpu_seconds,
                "cpuMicrosPerOperation": phase.cpu_micros(),
                "bytes": phase.bytes,
                "residentBytes": phase.resident_bytes,
            })
        };
        let server = |server: &ServerReport| {
            json!({
                "name": server.name,
                "readySeconds": server.ready_seconds,
                "idleBytes": server.idle_bytes,
                "loadedBytes": server.loaded_bytes,
                "objects": server.objects,
                "phases": server.phases.iter().map(phase).collect::<Vec<_>>(),
            })
        };
        json!({ "servers": self.servers.iter().map(server).collect::<Vec<_>>() })
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.state_table()];
        tables.extend(self.servers.iter().map(phase_table));
        if let [ours, peer] = &self.servers[..] {
            tables.push(comparison_table(ours, peer));
        }
        tables.retain(|table| !table.rows.is_empty());
        tables
    }

    /// Start and memory.
    fn state_table(&self) -> Table {
        let names = self.servers.iter().map(|server| server.name.clone());
        let mut table = Table::new(std::iter::once("server".to_owned()).chain(names));
        let mut row = |name: String, value: fn(&ServerReport) -> Option<f64>| {
            let values: Vec<Option<f64>> = self.servers.iter().map(value).collect();
            if values.iter().any(Option::is_some) {
                table.rows.push(std::iter::once(name).chain(values.into_iter().map(figure)).collect());
            }
        };
        row("ready on an empty folder, ms".into(), |server| server.ready_seconds.map(|seconds| seconds * 1e3));
        row("memory at rest, empty, MiB".into(), |server| server.idle_bytes.map(mebibytes));
        let objects = self.servers.first().map(|server| server.objects).unwrap_or_default();
        row(format!("memory at rest with {objects} objects, MiB"), |server| server.loaded_bytes.map(mebibytes));
        table
    }
}

/// One row per phase. The times of events are those of whole rounds; see `fan_out`.
fn phase_table(server: &ServerReport) -> Table {
    let header = ["", "ops/s", "p50 ms", "p99 ms", "CPU µs/op", "MB/s", "CPU ms/MB", "memory MiB"].map(String::from);
    let mut table = Table::new(header);
    table.header[0].clone_from(&server.name);
    for phase in &server.phases {
        table.rows.push(vec![
            phase.name.clone(),
            figure(Some(phase.rate())),
            figure(Some(f64::from(phase.p50_micros) / 1e3)),
            figure(Some(f64::from(phase.p99_micros) / 1e3)),
            figure(phase.cpu_micros()),
            figure(phase.megabytes_per_second()),
            figure(phase.cpu_millis_per_megabyte()),
            figure(phase.resident_bytes.map(mebibytes)),
        ]);
    }
    table
}

/// How many times better than its peer a server is: above one is better in every column.
fn comparison_table(ours: &ServerReport, peer: &ServerReport) -> Table {
    let header = ["times better", "ops/s", "p50", "p99", "CPU per op", "memory"].map(String::from);
    let mut table = Table::new(header);
    for phase in &ours.phases {
        let Some(other) = peer.phases.iter().find(|other| other.name == phase.name) else { continue };
        let memory = phase.resident_bytes.zip(other.resident_bytes);
        let factors = [
            Some(ratio(phase.rate(), other.rate())),
            Some(ratio(other.p50_micros.into(), phase.p50_micros.into())),
            Some(ratio(other.p99_micros.into(), phase.p99_micros.into())),
            phase.cpu_micros().zip(other.cpu_micros()).map(|(ours, theirs)| ratio(theirs, ours)),
            memory.map(|(ours, theirs)| ratio(theirs as f64, ours as f64)),
        ];
        let factors = factors.map(|factor| factor.map_or_else(|| "–".to_owned(), |factor| format!("{factor:.1}×")));
        table.rows.push(std::iter::once(phase.name.clone()).chain(factors).collect());
    }
    table
}

/// A table of text, the first column to the left and figures to the right.
struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(header: impl IntoIterator<Item = String>) -> Self {
        Self { header: header.into_iter().collect(), rows: Vec::new() }
    }

    fn aligned(&self) -> String {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let width = |column: usize| {
            lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let mut text = String::new();
        for line in lines() {
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                let cell = if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
                text.push_str(&cell);
            }
            text.push('\n');
        }
        text
    }

    fn markdown(&self) -> String {
        let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> =
            (0..self.header.len()).map(|column| if column == 0 { "---" } else { "--:" }.to_owned()).collect();
        let mut text = row(&self.header) + &format!("|{}|\n", rule.join("|"));
        self.rows.iter().for_each(|cells| text.push_str(&row(cells)));
        text
    }
}

/// A figure with about three digits; a dash if it is not known.
fn figure(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

/// A quotient, or zero where there is nothing to divide by.
fn ratio(value: f64, by: f64) -> f64 {
    if by > 0.0 { value / by } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, operations: u64, cpu_seconds: f64) -> ServerReport {
        let phase = Phase {
            name: "get".into(),
            operations,
            seconds: 2.0,
            p50_micros: 500,
            p99_micros: 12_340,
            cpu_seconds: Some(cpu_seconds),
            bytes: None,
            resident_bytes: Some(50 << 20),
        };
        let list = Phase { name: "list".into(), bytes: Some(10_000_000), resident_bytes: None, ..phase.clone() };
        ServerReport {
            name: name.into(),
            ready_seconds: Some(0.05),
            idle_bytes: Some(10 << 20),
            loaded_bytes: Some(40 << 20),
            objects: 100,
            phases: vec![phase, list],
        }
    }

    #[test]
    fn one_server_is_shown_in_two_tables() {
        let report = Report { servers: vec![server("revisor", 1000, 0.5)] };
        let want = "\
| server | revisor |
|---|--:|
| ready on an empty folder, ms | 50.0 |
| memory at rest, empty, MiB | 10.0 |
| memory at rest with 100 objects, MiB | 40.0 |

| revisor | ops/s | p50 ms | p99 ms | CPU µs/op | MB/s | CPU ms/MB | memory MiB |
|---|--:|--:|--:|--:|--:|--:|--:|
| get | 500 | 0.50 | 12.3 | 500 | – | – | 50.0 |
| list | 500 | 0.50 | 12.3 | 500 | 5.00 | 50.0 | – |

";
        assert_eq!(report.markdown(), want);
        let aligned = report.aligned();
        let widths: Vec<usize> = aligned.lines().take(4).map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{aligned}");
    }

    #[test]
    fn two_servers_are_compared() {
        let report = Report { servers: vec![server("revisor", 1000, 0.5), server("peer", 100, 0.5)] };
        let markdown = report.markdown();
        assert!(markdown.contains("| get | 10.0× | 1.0× | 1.0× | 10.0× | 1.0× |"), "{markdown}");
        assert!(markdown.contains("| list | 10.0× | 1.0× | 1.0× | 10.0× | – |"), "{markdown}");
    }

    #[test]
    fn programs_get_the_same_figures() {
        let json = Report { servers: vec![server("revisor", 1000, 0.5)] }.json();
        assert_eq!(json["servers"][0]["phases"][0]["operationsPerSecond"], 500.0);
        assert_eq!(json["servers"][0]["phases"][0]["cpuMicrosPerOperation"], 500.0);
        assert_eq!(json["servers"][0]["phases"][1]["residentBytes"], Value::Null);
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        let empty = Phase::new("get", Outcome::default(), None);
        assert_eq!((empty.rate(), empty.cpu_micros()), (0.0, None));
    }
}
