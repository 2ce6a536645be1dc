//! [`Trigger`]: watches that are about objects with one value of something, found by that value.
//!
//! Every kubelet watches the pods of its node. If each of them were asked about every pod, an event would cost as much as
//! there are nodes. So those who wait for one value are found by it, and only they are asked (upstream: `IndexerFuncs` and
//! the triggers of the cacher).

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::Item;
use crate::index::{Round, Row, Seat};

/// Reads of an object what a trigger compares. It must not block: the dispatcher calls it.
pub type TriggerValue = Arc<dyn Fn(&Item) -> &str + Send + Sync>;

/// What objects have in common that a watch is about.
#[derive(Clone)]
pub struct Trigger {
    /// What is compared; all who watch a resource must mean the same by one name, and read it in the same way.
    pub name: &'static str,
    /// The value that objects have.
    pub value: Box<str>,
    /// How it is read of an object.
    pub read: TriggerValue,
}

impl PartialEq for Trigger {
    fn eq(&self, other: &Trigger) -> bool {
        (self.name, &self.value) == (other.name, &other.value)
    }
}

impl Eq for Trigger {}

impl fmt::Debug for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trigger({}={})", self.name, self.value)
    }
}

/// The seats of those who wait for one value of the same.
pub(crate) struct Triggered {
    read: TriggerValue,
    rows: HashMap<Box<str>, Row>,
}

impl Triggered {
    /// Nobody yet, of those whose trigger is of the same name as this.
    pub(crate) fn new(trigger: &Trigger) -> Triggered {
        Triggered { read: trigger.read.clone(), rows: HashMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Where those sit who wait for the same value.
    pub(crate) fn row(&mut self, trigger: &Trigger) -> &mut Row {
        self.rows.entry(trigger.value.clone()).or_default()
    }

    pub(crate) fn rows(&mut self) -> impl Iterator<Item = &mut Row> {
        self.rows.values_mut()
    }

    pub(crate) fn remove(&mut self, trigger: &Trigger, seat: &Arc<Seat>) {
        if let Some(row) = self.rows.get_mut(&trigger.value) {
            row.remove(seat);
            if row.is_empty() {
                self.rows.remove(&trigger.value);
            }
        }
    }

    /// Offers a change to those who wait for the value that the object had or has. Upholds W1: to all others it was and
    /// is not selected.
    pub(crate) fn offer(&mut self, round: &mut Round<'_>) {
        let change = round.change;
        let read = &self.read;
        let values = catch_unwind(AssertUnwindSafe(|| {
            let [old, new] = [change.old_item(), change.new_item()].map(|side| side.map(|item| read(item)));
            [old, new.filter(|_| old != new)]
        }));
        let Ok(values) = values else {
            // Who can tell finds out by their own filters.
            self.rows.values_mut().for_each(|row| row.offer(round));
            self.rows.retain(|_, row| !row.is_empty());
            return;
        };
        for value in values.into_iter().flatten() {
            if let Some(row) = self.rows.get_mut(value) {
                row.offer(round);
                if row.is_empty() {
                    self.rows.remove(value);
                }
            }
        }
    }
}
