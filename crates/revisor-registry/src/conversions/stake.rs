//! [`Stake`]: which stored objects of a definition need its Conversion, and which would lose something by another one.
//!
//! Every object is looked at, because the answer must be exact; nearly always its first bytes tell. It is asked only
//! when a Conversion is changed or deleted.

use revisor_cache::{Item, Snapshot};
use revisor_convert::{Conversion, KEPT_ANNOTATION, Stored};
use revisor_object::{Object, Value};

use super::verdict::compile;
use crate::version_reports::stored_version;
use crate::{Decoded, Registry};

/// The stored objects of a definition.
pub(super) struct Stake<'a> {
    registry: &'a Registry,
    definition: &'a Object,
    objects: Snapshot,
    storage: &'a str,
    served: Vec<&'a str>,
}

impl<'a> Stake<'a> {
    /// Nothing if no objects of the definition are there.
    pub(super) fn of(registry: &'a Registry, definition: &'a Object) -> Option<Stake<'a>> {
        let text = |path: &[&str]| definition.at(path).and_then(Value::as_str).unwrap_or_default();
        let (group, plural) = (text(&["spec", "group"]), text(&["status", "acceptedNames", "plural"]));
        let cache = registry.custom_cache(&format!("/registry/{group}/{plural}/"))?;
        let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
        let versions = versions.iter().filter_map(Value::as_object);
        let having = |truth: &str| {
            let versions = versions.clone().filter(move |version| version.get(truth) == Some(&Value::Bool(true)));
            versions.filter_map(|version| version.str("name")).collect::<Vec<_>>()
        };
        let storage = having("storage").first().copied()?;
        Some(Stake { registry, definition, objects: cache.snapshot(), storage, served: having("served") })
    }

    /// How many objects need the Conversion: those that are not stored in the storage version, those of which something
    /// is kept for a version that is served, and those that are not canonical.
    pub(super) fn needing(&self, conversion: &Object) -> u64 {
        let rules = compile(&self.registry.catalog, conversion, self.definition).ok().flatten();
        self.count(|item| {
            let version = stored_version(item.bytes());
            (self.converts_by_rules() && version != self.storage)
                || self.has_kept(item)
                || rules.as_ref().is_some_and(|rules| is_odd(rules, &version, item))
        })
    }

    /// How many objects show less by other rules than by those of the Conversion so far.
    pub(super) fn losing(&self, conversion: &Object, rules: &Conversion) -> u64 {
        let Ok(Some(old)) = compile(&self.registry.catalog, conversion, self.definition) else { return 0 };
        self.count(|item| {
            let version = stored_version(item.bytes());
            let is_cut_off = self.converts_by_rules()
                && version != self.storage
                && old.connects(&version, self.storage)
                && !rules.connects(&version, self.storage);
            is_cut_off
                || (self.has_kept(item) && !self.keeps(item, &old, rules))
                || (is_odd(&old, &version, item) && !is_as_canonical(&old, rules, &version, item))
        })
    }

    fn count(&self, counts: impl Fn(&Item) -> bool) -> u64 {
        self.objects.range("", None).filter(|item| counts(item)).count() as u64
    }

    fn converts_by_rules(&self) -> bool {
        let strategy = self.definition.at(&["spec", "conversion", "strategy"]).and_then(Value::as_str);
        strategy != Some("Webhook")
    }

    /// Whether something is kept for a version that is served.
    fn has_kept(&self, item: &Item) -> bool {
        let is_served = |stored: Stored| stored.kept.keys().any(|version| self.served.contains(&version.as_str()));
        has_annotation(item) && unpacked(item).is_some_and(is_served)
    }

    /// Whether all that is kept for versions that are served is shown by other rules as it was.
    fn keeps(&self, item: &Item, old: &Conversion, rules: &Conversion) -> bool {
        let Some(stored) = unpacked(item) else { return true };
        let kept = stored.kept.keys().filter(|version| self.served.contains(&version.as_str()));
        kept.cloned().collect::<Vec<_>>().iter().all(|version| {
            let mut without = stored.clone();
            without.kept.remove(version);
            let (Ok(real), Ok(made)) = (old.read(&stored, version), old.read(&without, version)) else { return true };
            rules.read(&stored, version).is_ok_and(|new| is_shown(Some(&real), Some(&made), Some(&new)))
        })
    }
}

/// Whether an object is not canonical.
fn is_odd(rules: &Conversion, version: &str, item: &Item) -> bool {
    rules.canonicalizes(version)
        && Decoded::stored(item.bytes())
            .is_ok_and(|object| rules.canonicalize(version, &mut Value::Object(object)).unwrap_or_default())
}

/// Whether what is canonical by the old rules is so by the others.
fn is_as_canonical(old: &Conversion, rules: &Conversion, version: &str, item: &Item) -> bool {
    let Ok(stored) = Decoded::stored(item.bytes()) else { return true };
    let canonical = |rules: &Conversion| {
        let mut object = Value::Object(stored.clone());
        rules.canonicalize(version, &mut object).is_ok().then_some(object)
    };
    is_shown(canonical(old).as_ref(), Some(&Value::Object(stored.clone())), canonical(rules).as_ref())
}

/// Whether `new` has everything in which `real` differs from what is `made` without it.
fn is_shown(real: Option<&Value>, made: Option<&Value>, new: Option<&Value>) -> bool {
    if real == made || real == new {
        return true;
    }
    match (real, made, new) {
        (Some(Value::Object(real)), Some(Value::Object(made)), Some(Value::Object(new))) => {
            let names = real.iter().chain(made.iter()).map(|(name, _)| name);
            names.into_iter().all(|name| is_shown(real.get(name), made.get(name), new.get(name)))
        }
        (Some(Value::Array(real)), Some(Value::Array(made)), Some(Value::Array(new)))
            if real.len() == made.len() && real.len() == new.len() =>
        {
            (0..real.len()).all(|at| is_shown(real.get(at), made.get(at), new.get(at)))
        }
        _ => false,
    }
}

fn has_annotation(item: &Item) -> bool {
    sonic_rs::get(&item.bytes()[..], ["metadata", "annotations", KEPT_ANNOTATION]).is_ok()
}

fn unpacked(item: &Item) -> Option<Stored> {
    // What cannot be read can be brought back by nobody.
    Decoded::stored(item.bytes()).ok().and_then(|object| Stored::unpack(Value::Object(object)).ok())
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn what_was_kept_must_be_shown_and_nothing_else() {
        for (name, real, made, new, want) in [
            ("the same", r#"{"a":1,"b":2}"#, r#"{"a":1}"#, r#"{"a":1,"b":2}"#, true),
            ("what was not kept may differ", r#"{"a":1,"b":2}"#, r#"{"a":1}"#, r#"{"a":9,"b":2}"#, true),
            ("what was kept is gone", r#"{"a":1,"b":2}"#, r#"{"a":1}"#, r#"{"a":1}"#, false),
            ("it is something else", r#"{"b":2}"#, r#"{}"#, r#"{"b":3}"#, false),
            ("that there was none is shown", r#"{}"#, r#"{"b":"x"}"#, r#"{}"#, true),
            ("that there was none is forgotten", r#"{}"#, r#"{"b":"x"}"#, r#"{"b":"x"}"#, false),
            ("in an item", r#"{"l":[{"a":1,"b":2}]}"#, r#"{"l":[{"a":1}]}"#, r#"{"l":[{"a":3,"b":2}]}"#, true),
            ("an item that is gone", r#"{"l":[{"a":1,"b":2}]}"#, r#"{"l":[{"a":1}]}"#, r#"{"l":[]}"#, false),
            ("behind the first", r#"{"l":[1,2]}"#, r#"{"l":[1]}"#, r#"{"l":[1]}"#, false),
        ] {
            let [real, made, new] = [real, made, new].map(|text| parse_json(text.as_bytes()).expect("is JSON").value);
            assert_eq!(is_shown(Some(&real), Some(&made), Some(&new)), want, "{name}");
        }
    }
}
