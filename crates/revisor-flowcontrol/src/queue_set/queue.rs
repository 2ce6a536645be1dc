//! One queue: those who wait in it, in the order in which they came, and what they add up to.

use std::collections::VecDeque;

use super::RequestId;
use crate::SeatSeconds;

/// A queue of a level.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<RequestId>,
    /// The reading of the meter at which its next request begins.
    pub(super) next: SeatSeconds,
    pub(super) executing: usize,
    pub(super) seats_in_use: usize,
    /// What those who wait add up to.
    pub(super) work: SeatSeconds,
    initial_seats: usize,
    max_seats: usize,
}

/// What a queue holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueReading {
    /// Requests that wait.
    pub waiting: usize,
    /// Requests of it that are served.
    pub executing: usize,
    /// The seats that those take, or have not given back yet.
    pub seats_in_use: usize,
    /// The reading of the meter at which its next request begins.
    pub next: SeatSeconds,
    /// The seats that those who wait will take while they are served.
    pub initial_seats: usize,
    /// The most that they will take.
    pub max_seats: usize,
    /// How much work they are.
    pub work: SeatSeconds,
}

impl Queue {
    pub(super) fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.executing > 0
    }

    pub(super) fn join(&mut self, id: RequestId, initial_seats: usize, max_seats: usize, work: SeatSeconds) {
        self.waiting.push_back(id);
        self.initial_seats += initial_seats;
        self.max_seats += max_seats;
        self.work = self.work.plus(work);
    }

    pub(super) fn leave(&mut self, id: RequestId, initial_seats: usize, max_seats: usize, work: SeatSeconds) {
        // Nearly always the first.
        if let Some(at) = self.waiting.iter().position(|waiting| *waiting == id) {
            self.waiting.remove(at);
            self.initial_seats -= initial_seats;
            self.max_seats -= max_seats;
            self.work = self.work.minus(work);
        }
    }

    pub(super) fn reading(&self) -> QueueReading {
        QueueReading {
            waiting: self.waiting.len(),
            executing: self.executing,
            seats_in_use: self.seats_in_use,
            next: self.next,
            initial_seats: self.initial_seats,
            max_seats: self.max_seats,
            work: self.work,
        }
    }
}
