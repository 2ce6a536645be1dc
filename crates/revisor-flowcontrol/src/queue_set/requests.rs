//! The requests of a level that have not given back all that they took. Their places are used again, so that a level in
//! its stride allocates nothing.

use std::time::Duration;

use super::Arrival;
use crate::{Moment, SeatSeconds, WorkEstimate};

/// A request of a level, until it was cancelled or has given back its seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(usize);

#[derive(Debug)]
pub(super) struct Request<T> {
    pub(super) payload: T,
    pub(super) schema: usize,
    /// The queue that it came through.
    pub(super) queue: Option<usize>,
    pub(super) work: WorkEstimate,
    /// How much work it is in all, and of that after its answer.
    pub(super) cost: SeatSeconds,
    final_cost: SeatSeconds,
    pub(super) arrived: Moment,
    /// The reading of the meter then.
    pub(super) arrived_at: SeatSeconds,
    pub(super) phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Executing(Moment),
    /// It was answered, and has not given back its seats yet.
    Lingering,
}

/// What is known of a request.
#[derive(Debug)]
pub struct RequestReading<'a, T> {
    /// What the caller knows of it.
    pub payload: &'a T,
    /// Its schema.
    pub schema: &'a str,
    /// The queue that it came through.
    pub queue: Option<usize>,
    /// Its position in it, if it waits.
    pub position: Option<usize>,
    /// When it came.
    pub arrived: Moment,
    /// Since when it is served.
    pub started: Option<Moment>,
    /// How much work it is.
    pub work: WorkEstimate,
}

impl<T> Request<T> {
    pub(super) fn new(
        arrival: Arrival<T>,
        queue: Option<usize>,
        meter: SeatSeconds,
        now: Moment,
        service_time: Duration,
    ) -> Request<T> {
        let Arrival { payload, schema, work, .. } = arrival;
        let final_cost = SeatSeconds::of(work.final_seats as f64, work.additional_latency);
        let cost = SeatSeconds::of(work.initial_seats as f64, service_time).plus(final_cost);
        Request {
            payload,
            schema,
            queue,
            work,
            cost,
            final_cost,
            arrived: now,
            arrived_at: meter,
            phase: Phase::Waiting,
        }
    }

    /// Makes what comes after the answer as narrow as the level is, and longer by as much.
    pub(super) fn fit(&mut self, limit: usize) {
        if self.work.final_seats > limit as u64 {
            self.work.final_seats = limit as u64;
            self.work.additional_latency = self.final_cost.duration_per_seat(limit as f64);
        }
    }

    pub(super) fn reading<'a>(&'a self, schema: &'a str, position: Option<usize>) -> RequestReading<'a, T> {
        let started = match self.phase {
            Phase::Executing(started) => Some(started),
            _ => None,
        };
        let (queue, arrived, work) = (self.queue, self.arrived, self.work);
        RequestReading { payload: &self.payload, schema, queue, position, arrived, started, work }
    }
}

#[derive(Debug)]
pub(super) struct Requests<T> {
    pub(super) places: Vec<Option<Request<T>>>,
    free: Vec<usize>,
}

impl<T> Default for Requests<T> {
    fn default() -> Requests<T> {
        Requests { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Requests<T> {
    pub(super) fn insert(&mut self, request: Request<T>) -> RequestId {
        match self.free.pop() {
            Some(place) => {
                self.places[place] = Some(request);
                RequestId(place)
            }
            None => {
                self.places.push(Some(request));
                RequestId(self.places.len() - 1)
            }
        }
    }

    pub(super) fn remove(&mut self, id: RequestId) -> Request<T> {
        self.free.push(id.0);
        self.places[id.0].take().expect("a request gives back its place once")
    }

    pub(super) fn get(&self, id: RequestId) -> &Request<T> {
        self.places[id.0].as_ref().expect("a request has its place until it gives it back")
    }

    pub(super) fn get_mut(&mut self, id: RequestId) -> &mut Request<T> {
        self.places[id.0].as_mut().expect("a request has its place until it gives it back")
    }

    pub(super) fn executing(&self) -> impl Iterator<Item = RequestId> {
        let is_executing = |request: &Option<Request<T>>| {
            request.as_ref().is_some_and(|request| matches!(request.phase, Phase::Executing(_)))
        };
        (0..self.places.len()).filter(move |place| is_executing(&self.places[*place])).map(RequestId)
    }

    /// A queue is gone; those behind it have moved up.
    pub(super) fn close_gap(&mut self, gone: usize) {
        for request in self.places.iter_mut().flatten() {
            match &mut request.queue {
                Some(queue) if *queue > gone => *queue -= 1,
                _ => {}
            }
        }
    }
}
