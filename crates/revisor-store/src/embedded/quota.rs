//! [`Quota`]: how many bytes a store may hold, what is refused when they are there, and the alarm about it.
//!
//! Both what is in memory and what the next start must load are bounded by it, so that a store never takes more than
//! it can carry. To open a store does not ask for the quota: what was accepted can always be loaded.
//!
//! When the bytes run out, history gives way first. Then what makes the state larger is refused, but never a step that
//! makes it smaller or leads to that: deletions, the marks of deletions, updates that do not grow their object. A part
//! is kept back from new objects, so that those who tidy up get through: some of it for small updates, like a condition
//! that tells how far a deletion is, and some for history.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Usage;
use crate::StoreError;

/// Stands for no quota.
const UNBOUNDED: u64 = u64::MAX;
/// An update that makes an object larger by no more than this is a small one.
const SMALL_GROWTH: u64 = 4 << 10;

/// The bound on the bytes of a store. Set from outside, asked by the sequencer.
#[derive(Debug)]
pub(super) struct Quota {
    bytes: AtomicU64,
    alarm: AtomicBool,
}

impl Default for Quota {
    fn default() -> Quota {
        Quota { bytes: AtomicU64::new(UNBOUNDED), alarm: AtomicBool::new(false) }
    }
}

impl Quota {
    /// Bounds a store that holds `usage` from now on; `None` lifts the bound.
    pub(super) fn set(&self, bytes: Option<u64>, usage: Usage) {
        self.bytes.store(bytes.unwrap_or(UNBOUNDED), Ordering::Relaxed);
        if usage.state > self.for_new_objects() {
            self.raise_alarm(usage.state);
        } else {
            self.clear_alarm(usage);
        }
    }

    /// The bound, if there is one.
    pub(super) fn get(&self) -> Option<u64> {
        Some(self.bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes != UNBOUNDED)
    }

    /// Whether writes are being refused.
    pub(super) fn alarm(&self) -> bool {
        self.alarm.load(Ordering::Relaxed)
    }

    /// Lets an entry of `new` bytes take the place of one of `old` in a state of `state`, or refuses.
    pub(super) fn admit(&self, state: u64, old: Option<u64>, new: u64) -> Result<(), StoreError> {
        let growth = new.saturating_sub(old.unwrap_or(0));
        let is_small = old.is_some() && growth <= SMALL_GROWTH;
        let bound = if is_small { self.for_small_updates() } else { self.for_new_objects() };
        if growth == 0 || state.saturating_add(growth) <= bound {
            return Ok(());
        }
        self.raise_alarm(state);
        Err(StoreError::NoSpace { used: state, quota: self.bytes.load(Ordering::Relaxed) })
    }

    /// How many bytes history may take beside a state of `state`.
    pub(super) fn history_room(&self, state: u64) -> u64 {
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes.saturating_sub(state).max(bytes / 32)
    }

    /// Ends the alarm when there is room again: some more than none, so that it does not come and go with every write.
    pub(super) fn clear_alarm(&self, usage: Usage) {
        let bound = self.for_new_objects();
        if self.alarm() && usage.state <= bound - bound / 32 {
            self.alarm.store(false, Ordering::Relaxed);
            tracing::info!(used = usage.state, quota = self.get(), "the store has room again");
        }
    }

    fn raise_alarm(&self, used: u64) {
        if !self.alarm.swap(true, Ordering::Relaxed) {
            tracing::error!(used, quota = self.get(), "the store is full: only what makes it smaller is accepted");
        }
    }

    fn for_new_objects(&self) -> u64 {
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes - bytes / 16
    }

    fn for_small_updates(&self) -> u64 {
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes - bytes / 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_the_state_is_refused_at_the_bound_and_nothing_else_is() {
        const QUOTA: u64 = 320_000;
        let quota = Quota::default();
        quota.set(Some(QUOTA), Usage::default());
        for (name, state, old, new, is_admitted) in [
            ("the last new object that fits", 299_000, None, 1_000, true),
            ("one byte more", 299_000, None, 1_001, false),
            ("a new object at the bound", 300_000, None, 1, false),
            ("a small update at the bound for new objects", 300_000, Some(5_000), 9_096, true),
            ("a larger one", 300_000, Some(5_000), 9_097, false),
            ("a small update beyond its own bound", 309_999, Some(5_000), 5_002, false),
            ("an update that does not grow, beyond every bound", 900_000, Some(5_000), 5_000, true),
            ("an update that shrinks, beyond every bound", 900_000, Some(5_000), 4_000, true),
            ("numbers without end", u64::MAX, None, u64::MAX, false),
        ] {
            assert_eq!(quota.admit(state, old, new).is_ok(), is_admitted, "{name}");
        }
        quota.set(None, Usage::default());
        assert!(quota.admit(u64::MAX / 2, None, 1 << 40).is_ok(), "without a bound there is room");
    }

    #[test]
    fn the_alarm_begins_with_a_refusal_and_ends_with_room() {
        let quota = Quota::default();
        let usage = |state| Usage { state, history: 0 };
        quota.set(Some(320_000), usage(299_000));
        assert!(!quota.alarm(), "nothing was refused");
        quota.admit(299_000, None, 2_000).expect_err("it is one too many");
        assert!(quota.alarm());
        quota.clear_alarm(usage(299_000));
        assert!(quota.alarm(), "there is hardly any room");
        quota.clear_alarm(usage(290_000));
        assert!(!quota.alarm());
        quota.set(Some(160_000), usage(290_000));
        assert!(quota.alarm(), "the bound was lowered below what is there");
        quota.set(Some(640_000), usage(290_000));
        assert!(!quota.alarm(), "the bound was raised");
    }

    #[test]
    fn history_gives_way_but_keeps_a_share() {
        let quota = Quota::default();
        assert_eq!(quota.history_room(0), u64::MAX);
        quota.set(Some(320_000), Usage::default());
        for (state, room) in [(0, 320_000), (200_000, 120_000), (319_000, 10_000), (400_000, 10_000)] {
            assert_eq!(quota.history_room(state), room, "beside {state}");
        }
    }
}
