//! [`Seen`]: what came before in a list, so that whoever looks for what comes again does not go through all of it for
//! each item. Clients decide how long lists are.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use crate::{Object, Value};

/// Up to so many are looked through one by one, which is quicker than to hash them.
const FEW: usize = 16;

/// The things that were seen so far.
#[derive(Debug, Clone)]
pub struct Seen<K> {
    few: Vec<K>,
    /// Everything, once it is more than a few.
    many: HashSet<K>,
}

impl<K> Default for Seen<K> {
    fn default() -> Seen<K> {
        Seen { few: Vec::new(), many: HashSet::new() }
    }
}

impl<K: Eq + Hash> Seen<K> {
    /// Notes a thing; answers whether it was not seen before.
    pub fn is_new(&mut self, thing: K) -> bool {
        if !self.many.is_empty() {
            return self.many.insert(thing);
        }
        if self.few.contains(&thing) {
            return false;
        }
        self.few.push(thing);
        if self.few.len() > FEW {
            self.many.extend(self.few.drain(..));
        }
        true
    }

    /// Whether a thing was seen.
    pub fn has(&self, thing: &K) -> bool {
        if self.many.is_empty() { self.few.contains(thing) } else { self.many.contains(thing) }
    }
}

impl<K: Eq + Hash> FromIterator<K> for Seen<K> {
    fn from_iter<I: IntoIterator<Item = K>>(things: I) -> Seen<K> {
        let mut seen = Seen::default();
        for thing in things {
            seen.is_new(thing);
        }
        seen
    }
}

/// A value as something to look up: two are the same if they are equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByValue<'v>(pub &'v Value);

// No value comes from JSON that is not equal to itself.
impl Eq for ByValue<'_> {}

impl Hash for ByValue<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // What is kept as a text may be equal to what is not.
        let value = self.0.plain();
        std::mem::discriminant(value).hash(state);
        match value {
            Value::Null | Value::Nothing => {}
            Value::Bool(truth) => truth.hash(state),
            Value::Int(number) => number.hash(state),
            // The two zeroes are equal.
            Value::Float(number) => (number + 0.0).to_bits().hash(state),
            Value::String(text) => text.hash(state),
            Value::Array(items) => items.iter().for_each(|item| ByValue(item).hash(state)),
            Value::Object(object) => ByMembers(object).hash(state),
            Value::Raw(raw) => ByValue(raw.value()).hash(state),
        }
    }
}

/// An object as something to look up: two are the same if they are equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByMembers<'v>(pub &'v Object);

impl Eq for ByMembers<'_> {}

impl Hash for ByMembers<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (name, value) in self.0.iter() {
            name.hash(state);
            ByValue(value).hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_json;

    /// Counts how often it is compared.
    #[derive(Clone)]
    struct Counted<'c>(usize, &'c std::cell::Cell<usize>);

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Counted<'_> {}

    impl Hash for Counted<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn many_things_are_not_compared_with_all_others() {
        let compared = std::cell::Cell::new(0);
        let mut seen = Seen::default();
        for number in 0..10_000 {
            assert!(seen.is_new(Counted(number, &compared)), "{number}");
        }
        for number in 0..10_000 {
            assert!(!seen.is_new(Counted(number, &compared)), "{number}");
            assert!(seen.has(&Counted(number, &compared)), "{number}");
        }
        assert!(!seen.has(&Counted(10_000, &compared)));
        assert!(compared.get() < 40_000, "{} comparisons", compared.get());
    }

    #[test]
    fn equal_values_are_seen_as_one() {
        let text = r#"[1,1.0,"1",true,null,[1],{"a":[0.0]},{},[]]"#;
        let parsed = parse_json(text.as_bytes()).expect("is JSON").value;
        let items = parsed.as_array().expect("is a list");
        let mut seen = Seen::default();
        assert!(items.iter().all(|item| seen.is_new(ByValue(item))));
        let again = parse_json(text.replace("0.0", "-0.0").as_bytes()).expect("is JSON").value;
        assert!(again.as_array().expect("is a list").iter().all(|item| !seen.is_new(ByValue(item))));
    }
}
