//! [`WorkEstimate`]: how many seats a request takes, and for how long after its answer.
//!
//! The numbers are the original's (`request/config.go`, `list_work_estimator.go`, `mutating_work_estimator.go`).

use std::time::Duration;

use crate::SeatSeconds;

/// The most seats that a list takes, by size and by number.
const MAX_LIST_SEATS: u64 = 100;
const MAX_COUNTED_LIST_SEATS: u64 = 10;
/// The most that a write takes.
const MAX_WRITE_SEATS: u64 = 10;
/// What one seat stands for.
const BYTES_PER_SEAT: u64 = 100_000;
const OBJECTS_PER_SEAT: u64 = 100;
const WATCHES_PER_SEAT: usize = 10;
/// A list from memory is written in pieces and never needs more than this at once.
const STREAMED_AT_ONCE: u64 = 1_000_000;
/// For how long one seat is busy with telling watchers of a write.
const EVENT_TIME: Duration = Duration::from_millis(5);

/// How much work a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkEstimate {
    /// The seats that it takes while it is served.
    pub initial_seats: u64,
    /// The seats that it takes afterwards.
    pub final_seats: u64,
    /// For how long it takes those. Nobody waits for that.
    pub additional_latency: Duration,
}

/// What is known of the objects that a list is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredObjects {
    /// How many there are.
    pub count: u64,
    /// How large they are, in all.
    pub bytes: u64,
}

/// A list, or a watch that begins with one.
#[derive(Debug, Clone, Copy)]
pub struct ListWork {
    /// What is stored; `None` if that is not known, as for what another server serves.
    pub stored: Option<StoredObjects>,
    /// The most that is asked for; zero for all.
    pub limit: u64,
    /// Whether it can be answered from the newest state in memory.
    pub is_from_cache: bool,
    /// Whether it asks for one name.
    pub is_single: bool,
    /// Whether it selects by labels or fields.
    pub selects: bool,
    /// Whether the size of objects counts, and not only their number (`SizeBasedListCostEstimate`).
    pub by_size: bool,
}

impl WorkEstimate {
    /// What most requests are.
    pub const ONE: WorkEstimate = WorkEstimate { initial_seats: 1, final_seats: 0, additional_latency: Duration::ZERO };

    /// The most seats that it takes at any time.
    pub fn max_seats(&self) -> usize {
        self.initial_seats.max(self.final_seats) as usize
    }

    /// What a list is, at a level that lets a request have at most so many seats; zero if it does not say.
    pub fn of_list(list: &ListWork, max_seats: u64) -> WorkEstimate {
        let Some(stored) = list.stored else { return WorkEstimate::ONE };
        let most = if list.by_size { MAX_LIST_SEATS } else { MAX_COUNTED_LIST_SEATS };
        let most = if max_seats == 0 { most } else { max_seats.min(most) };
        let seats = if list.by_size { list.seats_by_size(stored) } else { list.seats_by_count(stored) };
        WorkEstimate { initial_seats: seats.clamp(1, most), ..WorkEstimate::ONE }
    }

    /// The worst that a list can be: for options that cannot be read.
    pub fn of_unreadable_list(by_size: bool, max_seats: u64) -> WorkEstimate {
        let most = if by_size { MAX_LIST_SEATS } else { MAX_COUNTED_LIST_SEATS };
        let most = if max_seats == 0 { most } else { max_seats.min(most) };
        WorkEstimate { initial_seats: most, ..WorkEstimate::ONE }
    }

    /// What a write is that so many watches are told of.
    pub fn of_write(watches: usize, max_seats: u64) -> WorkEstimate {
        if watches < WATCHES_PER_SEAT {
            return WorkEstimate::ONE;
        }
        let most = if max_seats == 0 { MAX_WRITE_SEATS } else { max_seats.min(MAX_WRITE_SEATS) };
        let wanted = watches.div_ceil(WATCHES_PER_SEAT) as u64;
        let work = SeatSeconds::of(wanted as f64, EVENT_TIME);
        // Narrower and longer, but not less.
        let final_seats = wanted.min(most);
        let additional_latency = work.duration_per_seat(final_seats as f64);
        WorkEstimate { initial_seats: 1, final_seats, additional_latency }
    }
}

impl ListWork {
    fn limited(&self, stored: StoredObjects) -> u64 {
        if self.limit > 0 { self.limit.min(stored.count) } else { stored.count }
    }

    fn seats_by_size(&self, stored: StoredObjects) -> u64 {
        let limited = self.limited(stored);
        let loaded = match () {
            () if self.is_single => 1,
            () if self.is_from_cache || !self.selects => limited,
            () => limited.max(stored.count / 2),
        };
        let average = stored.bytes.checked_div(stored.count).unwrap_or_default();
        let at_once = loaded.saturating_mul(average);
        let at_once = if self.is_from_cache { at_once.min(STREAMED_AT_ONCE) } else { at_once };
        at_once.div_ceil(BYTES_PER_SEAT)
    }

    fn seats_by_count(&self, stored: StoredObjects) -> u64 {
        let limited = self.limited(stored);
        let looked_at = match () {
            () if self.is_single => 1,
            () if self.is_from_cache => stored.count,
            () if self.selects => stored.count + limited,
            () => 2 * limited,
        };
        looked_at.div_ceil(OBJECTS_PER_SEAT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_cost_what_they_hold() {
        let list = ListWork {
            stored: Some(StoredObjects { count: 1_000, bytes: 400_000 }),
            limit: 0,
            is_from_cache: true,
            is_single: false,
            selects: false,
            by_size: true,
        };
        let large = Some(StoredObjects { count: 10_000, bytes: 50_000_000 });
        for (name, list, most, want) in [
            ("by size", list, 0, 4),
            ("a page", ListWork { limit: 10, ..list }, 0, 1),
            ("one name", ListWork { is_single: true, ..list }, 0, 1),
            ("from memory it is streamed", ListWork { stored: large, ..list }, 0, 10),
            ("from disk it is not", ListWork { stored: large, is_from_cache: false, ..list }, 0, 100),
            ("a level may allow less", ListWork { stored: large, ..list }, 3, 3),
            ("nothing is stored", ListWork { stored: Some(StoredObjects { count: 0, bytes: 0 }), ..list }, 0, 1),
            ("nothing is known", ListWork { stored: None, ..list }, 0, 1),
            ("by number", ListWork { by_size: false, ..list }, 0, 10),
            (
                "by number, a page from disk",
                ListWork { by_size: false, is_from_cache: false, limit: 100, ..list },
                0,
                2,
            ),
            (
                "by number, selected from disk",
                ListWork { by_size: false, is_from_cache: false, selects: true, limit: 100, ..list },
                0,
                10,
            ),
        ] {
            assert_eq!(WorkEstimate::of_list(&list, most).initial_seats, want, "{name}");
        }
    }

    #[test]
    fn writes_cost_what_their_watchers_do() {
        for (watches, most, seats, millis) in
            [(0, 0, 0, 0), (9, 0, 0, 0), (10, 0, 1, 5), (95, 0, 10, 5), (1_000, 0, 10, 50), (1_000, 5, 5, 100)]
        {
            let work = WorkEstimate::of_write(watches, most);
            let latency = Duration::from_millis(millis);
            assert_eq!(
                (work.initial_seats, work.final_seats, work.additional_latency),
                (1, seats, latency),
                "{watches}"
            );
        }
    }
}
