//! Which names a definition gets, and what its status says of that.
//!
//! Names belong to whoever got them first. A definition that asks for a name which another one of its group has is not
//! served until the name is free.

use std::collections::BTreeSet;

use revisor_object::{Object, Value};

use super::approval::api_approval;
use super::condition::{self, Condition, ESTABLISHED, NAMES_ACCEPTED};
use super::conversion_settings::ca_bundle_problem;
use super::definition::Names;
use super::schema_condition;
use crate::kinds::members::part;

/// The names that the definitions of one group have got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenNames {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl TakenNames {
    /// Adds the names of others.
    pub fn extend(&mut self, others: &TakenNames) {
        self.resources.extend(others.resources.iter().cloned());
        self.kinds.extend(others.kinds.iter().cloned());
    }

    /// Whether these are among them.
    pub fn include(&self, others: &TakenNames) -> bool {
        self.resources.is_superset(&others.resources) && self.kinds.is_superset(&others.kinds)
    }

    /// Adds the names that a stored definition has got.
    pub fn add(&mut self, definition: &Object) {
        let names = Names::read(part(part(definition, "status"), "acceptedNames"));
        self.resources.extend([names.plural, names.singular]);
        self.resources.extend(names.short_names);
        self.kinds.extend([names.kind, names.list_kind]);
    }
}

/// Brings the status of a definition up to date. `taken` are the names of all definitions of its group, its own among
/// them. Says whether anything changed.
pub fn settle_status(definition: &mut Object, taken: &TakenNames, now: &str) -> bool {
    let before = definition.get("status").cloned();
    settle_names(definition, taken, now);
    establish(definition, now);
    if let Some(approval) = api_approval(definition).filter(|approval| !approval.is_in(definition)) {
        approval.put(definition, now);
    }
    schema_condition::settle(definition, now);
    definition.get("status") != before.as_ref()
}

fn settle_names(definition: &mut Object, taken: &TakenNames, now: &str) {
    let requested = Names::read(part(part(definition, "spec"), "names"));
    let had = Names::read(part(part(definition, "status"), "acceptedNames"));
    // Whoever has what it asks for is left alone, whatever its conditions say.
    if requested == had {
        return;
    }
    let mut accepted = had.clone();
    let refused: Vec<String> = (requested.short_names.iter())
        .filter(|name| !had.short_names.contains(name) && taken.resources.contains(*name))
        .map(|name| in_use(name))
        .collect();
    let short_names = match &refused[..] {
        [] => {
            accepted.short_names.clone_from(&requested.short_names);
            None
        }
        [one] => Some(("ShortNamesConflict", one.clone())),
        several => Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
    };
    let TakenNames { resources, kinds } = taken;
    // Of several conflicts the last is told.
    let conflict = [
        settle(&requested.plural, &mut accepted.plural, resources, "PluralConflict"),
        settle(&requested.singular, &mut accepted.singular, resources, "SingularConflict"),
        short_names,
        settle(&requested.kind, &mut accepted.kind, kinds, "KindConflict"),
        settle(&requested.list_kind, &mut accepted.list_kind, kinds, "ListKindConflict"),
    ]
    .into_iter()
    .flatten()
    .next_back();
    accepted.categories = requested.categories;

    let is_accepted = conflict.is_none();
    let names = match conflict {
        None => Condition::new(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => Condition::new(NAMES_ACCEPTED, "False", reason, message),
    };
    definition.object_mut("status").insert("acceptedNames", Value::Object(accepted.write()));
    names.put(definition, now);
    // Who is established stays so: what it got first is still its own. Why another is not is told once.
    if !is_accepted && condition::find(definition, ESTABLISHED).is_none() {
        let message = "not all names are accepted";
        Condition::new(ESTABLISHED, "False", "NotAccepted", message).put(definition, now);
    }
}

/// Lets a definition be served that has got its names, unless its webhook cannot be trusted.
fn establish(definition: &mut Object, now: &str) {
    if !condition::is_true(definition, NAMES_ACCEPTED) || condition::is_true(definition, ESTABLISHED) {
        return;
    }
    let webhook = part(part(part(definition, "spec"), "conversion"), "webhook");
    let is_trusted = webhook.object("clientConfig").is_none_or(|config| ca_bundle_problem(config).is_none());
    let established = if is_trusted {
        Condition::new(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")
    } else {
        let message = "The conversion webhook CABundle is invalid";
        Condition::new(ESTABLISHED, "False", "InvalidCABundle", message)
    };
    if !established.is_in(definition) {
        established.put(definition, now);
    }
}

/// Gives a definition a name that it asks for, or says why not.
fn settle(
    requested: &str,
    own: &mut String,
    taken: &BTreeSet<String>,
    reason: &'static str,
) -> Option<(&'static str, String)> {
    if requested != own.as_str() && taken.contains(requested) {
        return Some((reason, in_use(requested)));
    }
    requested.clone_into(own);
    None
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::members::text;
    use crate::kinds::tests::object;

    fn definition(plural: &str, kind: &str, short: &str) -> Object {
        object(&format!(
            r#"{{"spec":{{"group":"example.com","names":{{"plural":"{plural}","singular":"{plural}1","kind":"{kind}",
                "listKind":"{kind}List","shortNames":["{short}"]}}}}}}"#
        ))
    }

    fn condition_of(definition: &Object, kind: &str) -> String {
        let found = condition::find(definition, kind).expect("was put");
        format!("{} {}: {}", text(found, "status"), text(found, "reason"), text(found, "message"))
    }

    #[test]
    fn names_belong_to_whoever_got_them_first() {
        let mut first = definition("things", "Thing", "th");
        assert!(settle_status(&mut first, &TakenNames::default(), "t1"));
        assert_eq!(condition_of(&first, NAMES_ACCEPTED), "True NoConflicts: no conflicts found");
        assert_eq!(
            condition_of(&first, ESTABLISHED),
            "True InitialNamesAccepted: the initial names have been accepted"
        );
        let mut taken = TakenNames::default();
        taken.add(&first);
        assert!(!settle_status(&mut first, &taken, "t2"), "nothing changes");

        let mut second = definition("others", "Thing", "th");
        settle_status(&mut second, &taken, "t3");
        assert_eq!(condition_of(&second, NAMES_ACCEPTED), "False ListKindConflict: \"ThingList\" is already in use");
        assert_eq!(condition_of(&second, ESTABLISHED), "False NotAccepted: not all names are accepted");
        let accepted = Names::read(part(part(&second, "status"), "acceptedNames"));
        assert_eq!((accepted.plural.as_str(), accepted.kind.as_str()), ("others", ""));
        assert!(accepted.short_names.is_empty());

        let mut untrusted = definition("others", "Other", "ot");
        let config = object(r#"{"webhook":{"clientConfig":{"url":"https://a","caBundle":"aGVsbG8="}}}"#);
        untrusted.object_mut("spec").insert("conversion", config);
        settle_status(&mut untrusted, &taken, "t3");
        assert_eq!(
            condition_of(&untrusted, ESTABLISHED),
            "False InvalidCABundle: The conversion webhook CABundle is invalid"
        );

        let mut free = TakenNames::default();
        free.add(&second);
        assert!(settle_status(&mut second, &free, "t4"), "the names are free now");
        assert_eq!(condition_of(&second, NAMES_ACCEPTED), "True NoConflicts: no conflicts found");
        assert_eq!(
            condition_of(&second, ESTABLISHED),
            "True InitialNamesAccepted: the initial names have been accepted"
        );
    }

    #[test]
    fn who_has_its_names_is_left_alone() {
        let mut definition = definition("things", "Thing", "th");
        settle_status(&mut definition, &TakenNames::default(), "t1");
        let mut taken = TakenNames::default();
        taken.add(&definition);
        definition.object_mut("status").insert("conditions", Vec::new());
        assert!(!settle_status(&mut definition, &taken, "t2"), "nobody asked for names");
        let accepted = Condition::new(NAMES_ACCEPTED, "True", "Said", "so");
        accepted.put(&mut definition, "t3");
        assert!(settle_status(&mut definition, &taken, "t3"), "it is to be served");
        assert_eq!(condition_of(&definition, NAMES_ACCEPTED), "True Said: so");
        assert_eq!(
            condition_of(&definition, ESTABLISHED),
            "True InitialNamesAccepted: the initial names have been accepted"
        );
    }
}
