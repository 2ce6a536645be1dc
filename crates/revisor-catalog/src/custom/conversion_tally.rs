//! [`ConversionTally`]: how often the objects of a definition were converted, from which version to which, in which way,
//! and how long that took. It outlives the states of its definition, and is asked when someone wants to know.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// The conversions of one definition.
#[derive(Debug, Default)]
pub(crate) struct ConversionTally {
    ways: RwLock<Vec<(Way, Sum)>>,
    kept_bytes: AtomicU64,
}

/// How many ways are counted apart. A definition has a handful; who renames its versions again and again has more.
const MAX_WAYS: usize = 256;

#[derive(Debug, PartialEq, Eq)]
struct Way {
    from: String,
    to: String,
    way: &'static str,
}

#[derive(Debug, Default)]
struct Sum {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

/// The conversions of one definition at the time of a scrape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionSample {
    /// The name of the definition.
    pub definition: String,
    /// Those between two versions.
    pub ways: Vec<ConversionWay>,
    /// How many bytes writes have stored of what other versions keep.
    pub kept_bytes: u64,
}

/// The conversions from one version to another in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionWay {
    /// The one version.
    pub from: String,
    /// The other.
    pub to: String,
    /// How it was done: by `name`, by `rules`, by a `webhook`.
    pub way: &'static str,
    /// How often.
    pub count: u64,
    /// How long all of them took.
    pub time: Duration,
}

impl ConversionTally {
    pub(crate) fn count(&self, from: &str, to: &str, way: &'static str, time: Duration) {
        let add = |sum: &Sum| {
            sum.count.fetch_add(1, Ordering::Relaxed);
            sum.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        };
        let is_it = |known: &Way| known.from == from && known.to == to && known.way == way;
        let ways = self.ways.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sum)) = ways.iter().find(|(known, _)| is_it(known)) {
            return add(sum);
        }
        drop(ways);
        let mut ways = self.ways.write().unwrap_or_else(PoisonError::into_inner);
        match ways.iter().position(|(known, _)| is_it(known)) {
            Some(at) => add(&ways[at].1),
            None if ways.len() < MAX_WAYS => {
                let sum = Sum::default();
                add(&sum);
                ways.push((Way { from: from.to_owned(), to: to.to_owned(), way }, sum));
            }
            None => {}
        }
    }

    pub(crate) fn count_kept(&self, bytes: usize) {
        self.kept_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn sample(&self, definition: &str) -> ConversionSample {
        let ways = self.ways.read().unwrap_or_else(PoisonError::into_inner);
        let sample = |(way, sum): &(Way, Sum)| {
            let time = Duration::from_nanos(sum.nanoseconds.load(Ordering::Relaxed));
            let (from, to, count) = (way.from.clone(), way.to.clone(), sum.count.load(Ordering::Relaxed));
            ConversionWay { from, to, way: way.way, count, time }
        };
        ConversionSample {
            definition: definition.to_owned(),
            ways: ways.iter().map(sample).collect(),
            kept_bytes: self.kept_bytes.load(Ordering::Relaxed),
        }
    }
}

/// The tallies of all definitions that are served.
#[derive(Debug, Default)]
pub(crate) struct ConversionTallies(Mutex<HashMap<String, Arc<ConversionTally>>>);

impl ConversionTallies {
    /// That of a definition, for all of its states.
    pub(crate) fn of(&self, definition: &str) -> Arc<ConversionTally> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A definition that is gone is held by nobody else.
        known.retain(|name, tally| name == definition || Arc::strong_count(tally) > 1);
        known.entry(definition.to_owned()).or_default().clone()
    }

    /// What was counted, by the names of the definitions.
    pub(crate) fn samples(&self) -> Vec<ConversionSample> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sorted: BTreeMap<&String, &Arc<ConversionTally>> = known.iter().collect();
        sorted.into_iter().map(|(name, tally)| tally.sample(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_counted_apart_and_outlive_a_state() {
        let tallies = ConversionTallies::default();
        let first = tallies.of("a");
        let second = tallies.of("a");
        first.count("v1", "v2", "rules", Duration::from_millis(2));
        drop(first);
        second.count("v1", "v2", "rules", Duration::from_millis(1));
        second.count("v2", "v1", "rules", Duration::ZERO);
        second.count_kept(7);
        let [sample] = &tallies.samples()[..] else { panic!("there is one definition") };
        assert_eq!((&*sample.definition, sample.kept_bytes), ("a", 7));
        let way = |from: &str, to: &str, count, time| ConversionWay {
            from: from.to_owned(),
            to: to.to_owned(),
            way: "rules",
            count,
            time,
        };
        let want = [way("v1", "v2", 2, Duration::from_millis(3)), way("v2", "v1", 1, Duration::ZERO)];
        assert_eq!(sample.ways, want);
        drop(second);
        tallies.of("b");
        assert_eq!(tallies.samples().len(), 1, "nobody holds the first any more");
    }

    #[test]
    fn there_are_not_too_many_ways() {
        let tally = ConversionTally::default();
        (0..MAX_WAYS + 10).for_each(|number| tally.count(&number.to_string(), "v1", "name", Duration::ZERO));
        assert_eq!(tally.sample("a").ways.len(), MAX_WAYS);
    }
}
