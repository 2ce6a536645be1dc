//! [`SchemaTally`]: what is counted of the requests of one flow schema at one level.

use crate::Histogram;

const QUEUE_LENGTH: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const SECONDS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const WATCHES: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0];
const SEATS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];

/// What is counted of the requests of a schema. Whoever holds the queues holds this.
#[derive(Debug, Clone)]
pub struct SchemaTally {
    /// The schema.
    pub schema: String,
    /// Whether there is such a schema now, and it belongs to this level.
    pub(crate) is_current: bool,
    /// Requests that were served.
    pub dispatched: u64,
    /// Requests that were refused because all seats were taken, because the queue was full, and because they had waited
    /// for too long.
    pub rejected: [u64; 3],
    /// Requests that wait, and the seats that they wait for.
    pub waiting: (usize, usize),
    /// Requests that are being served.
    pub executing: usize,
    /// The seats that they take, or have not given back yet.
    pub seats: usize,
    /// How often the next request of the level was one of these and found too few seats.
    pub not_accommodated: u64,
    /// The lengths of the queues that requests joined.
    pub queue_lengths: Histogram,
    /// The seconds that requests waited which were taken in, and those that were not.
    pub waits: [Histogram; 2],
    /// The seconds that requests took, and those that watches took to begin.
    pub executions: [Histogram; 2],
    /// The watches that were told of writes.
    pub watch_counts: Histogram,
    /// The seats that requests were thought to need.
    pub estimated_seats: Histogram,
}

impl SchemaTally {
    pub(crate) fn new(schema: &str) -> SchemaTally {
        let seconds = || Histogram::new(SECONDS);
        SchemaTally {
            schema: schema.to_owned(),
            is_current: true,
            dispatched: 0,
            rejected: [0; 3],
            waiting: (0, 0),
            executing: 0,
            seats: 0,
            not_accommodated: 0,
            queue_lengths: Histogram::new(QUEUE_LENGTH),
            waits: [seconds(), seconds()],
            executions: [seconds(), seconds()],
            watch_counts: Histogram::new(WATCHES),
            estimated_seats: Histogram::new(SEATS),
        }
    }

    /// Whether nothing of it is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.0 == 0 && self.executing == 0 && self.seats == 0
    }
}
