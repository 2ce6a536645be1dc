//! What can be read of a level: for dumps, for metrics, and for those who divide the seats among levels.

use super::queue::Queue;
use super::{QueueReading, QueueSet, RequestReading};
use crate::{HistogramReading, Moment, SchemaTally, SeatDemand, SeatSeconds, TimingHistogram};

const UTILIZATION: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const REQUESTS: &[f64] = &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const DEMAND: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];

/// What has happened at a level since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that got their seats.
    pub dispatched: u64,
    /// Requests that were refused.
    pub rejected: u64,
    /// Requests whose time ended while they were served.
    pub timed_out: u64,
    /// Requests that went, or were sent away, while they waited.
    pub cancelled: u64,
    /// How often the meter was wound back.
    pub epochs: u64,
}

/// For how long which part of a level was used.
#[derive(Debug)]
pub(super) struct Timings {
    pub(super) waiting: TimingHistogram,
    pub(super) executing: TimingHistogram,
    pub(super) seats: TimingHistogram,
    pub(super) demand: TimingHistogram,
}

/// The meters at the last dispatch from a queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DispatchReading {
    pub(super) r: SeatSeconds,
    pub(super) s: SeatSeconds,
    pub(super) bounds: (SeatSeconds, SeatSeconds),
    pub(super) discounted: (SeatSeconds, SeatSeconds),
}

impl Timings {
    pub(super) fn new(now: Moment) -> Timings {
        Timings {
            waiting: TimingHistogram::new(REQUESTS, 0.0, 1.0, now),
            executing: TimingHistogram::new(REQUESTS, 0.0, 1.0, now),
            seats: TimingHistogram::new(UTILIZATION, 0.0, 1.0, now),
            demand: TimingHistogram::new(DEMAND, 0.0, 1.0, now),
        }
    }
}

impl<T> QueueSet<T> {
    /// Whether nothing waits and nothing is served.
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing == 0
    }

    /// What it could use.
    pub fn demand_mut(&mut self) -> &mut SeatDemand {
        &mut self.demand
    }

    /// The seats that it has now.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Requests that wait, requests that are served, and the seats of the latter.
    pub fn occupancy(&self) -> (usize, usize, usize) {
        (self.waiting, self.executing, self.seats_in_use)
    }

    /// What has happened.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What was counted of each schema.
    pub fn tallies(&self) -> &[SchemaTally] {
        &self.tallies
    }

    /// The meter.
    pub fn meter(&self) -> SeatSeconds {
        self.meter
    }

    /// The meters at the last dispatch from a queue: that of the level, that of the request, the lowest and the highest of
    /// all queues, and those without what is being worked on.
    pub fn dispatch_meters(&self) -> Option<[f64; 6]> {
        let DispatchReading { r, s, bounds, discounted } = self.dispatch?;
        Some([r, s, bounds.0, bounds.1, discounted.0, discounted.1].map(SeatSeconds::as_f64))
    }

    /// For how long which part was used: of the room for those who wait, of seats by requests, of seats, and of seats by
    /// all who want them.
    pub fn timings(&mut self, now: Moment) -> [Option<HistogramReading>; 4] {
        let Timings { waiting, executing, seats, demand } = &mut self.timings;
        [waiting, executing, seats, demand].map(|timing| timing.reading(now))
    }

    /// The queues.
    pub fn queues(&self) -> impl Iterator<Item = QueueReading> {
        self.queues.iter().map(Queue::reading)
    }

    /// The requests that wait, in each queue in their order, and then those that are served.
    pub fn requests(&self) -> impl Iterator<Item = RequestReading<'_, T>> {
        let waiting = self.queues.iter().flat_map(|queue| queue.waiting.iter().enumerate());
        let waiting = waiting.map(|(position, id)| (Some(position), *id));
        let executing = self.requests.executing().map(|id| (None, id));
        waiting.chain(executing).map(|(position, id)| {
            let request = self.requests.get(id);
            request.reading(&self.tallies[request.schema].schema, position)
        })
    }
}
