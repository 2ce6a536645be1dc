//! [`ToCome`]: the definitions and Conversions that are to come, laid over those that are stored as `kubectl apply` would
//! lay them. What would be refused of them is found here already.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use revisor_catalog::{
    Catalog, Circumstances, DefinitionChange, DefinitionState, Part, Requester, Resource, TakenNames, settle_status,
};
use revisor_convert::Conversion;
use revisor_object::{FieldErrors, Object, Value, Warnings, clip_joined};

use super::{Rehearsal, RehearsalEffect, RehearsalFinding};
use crate::conversions::{Verdict, compile, is_accepted, judge};
use crate::write::{check_updated_metadata, encode};
use crate::{Decoded, Environment};

/// The definitions and Conversions that are stored.
#[derive(Debug, Default)]
pub struct Stored {
    /// As they are stored.
    pub definitions: Vec<Object>,
    /// As they are stored.
    pub conversions: Vec<Object>,
}

/// What is to come.
#[derive(Debug)]
pub struct ToCome {
    /// The resources of the release.
    pub catalog: Catalog,
    /// The clock.
    pub environment: Environment,
    /// Definitions that are new or take the place of those that are stored. What is not named here stays as it is.
    pub definitions: Vec<Object>,
    /// Conversions, likewise.
    pub conversions: Vec<Object>,
}

/// An object now and then.
#[derive(Default)]
struct Pair {
    stored: Option<Object>,
    to_come: Option<Object>,
}

impl ToCome {
    /// Makes ready for the objects that are stored, and tells what would be refused of the definitions and Conversions
    /// themselves.
    pub fn rehearse(self, stored: Stored) -> (Rehearsal, Vec<RehearsalFinding>) {
        let now = self.environment.timestamp();
        let mut found = Vec::new();
        let definitions = self.catalog.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned();
        let mut custom = HashMap::new();
        if let Some(resource) = definitions {
            let mut pairs = paired(&resource, stored.definitions, self.definitions, &now, &mut found);
            settle_names(&mut pairs, &now);
            let resource = self.catalog.conversions();
            let mut conversions = paired(resource, stored.conversions, self.conversions, &now, &mut found);
            for (name, pair) in &pairs {
                let conversion = conversions.remove(name).unwrap_or_default();
                custom.extend(change(&self.catalog, name, pair, &conversion, &mut found));
            }
            for (name, conversion) in conversions {
                if conversion.to_come.is_some() {
                    let message = "there is no definition of this name: it is checked when one comes".to_owned();
                    found.push(finding(resource, &name, RehearsalEffect::Warned, message));
                }
            }
        }
        (Rehearsal::new(Arc::new(self.catalog), self.environment, custom), found)
    }
}

/// What is stored and what is to come, by name. What is to come is as it would be stored.
fn paired(
    resource: &Arc<Resource>,
    stored: Vec<Object>,
    to_come: Vec<Object>,
    now: &str,
    found: &mut Vec<RehearsalFinding>,
) -> BTreeMap<String, Pair> {
    let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
    for object in stored {
        let name = name_of(&object).to_owned();
        pairs.entry(name).or_default().stored = Some(object);
    }
    for sent in to_come {
        let name = name_of(&sent).to_owned();
        let pair = pairs.entry(name.clone()).or_default();
        match written(resource, sent, pair.stored.as_ref(), now) {
            Ok((object, errors)) => {
                if !errors.is_empty() {
                    let message = clip_joined(&errors, "; ");
                    found.push(finding(resource, &name, RehearsalEffect::Refused, message));
                }
                pair.to_come = Some(object);
            }
            Err(why) => found.push(finding(resource, &name, RehearsalEffect::Refused, why)),
        }
    }
    pairs
}

/// What would be stored of an object that is applied, and what is wrong with it.
fn written(
    resource: &Arc<Resource>,
    sent: Object,
    old: Option<&Object>,
    now: &str,
) -> Result<(Object, FieldErrors), String> {
    let circumstances = Circumstances { now, requester: Requester::default() };
    let mut sent = Value::Object(sent);
    resource.conform(&mut sent)?;
    let Value::Object(mut object) = sent else { return Err("it is no object".to_owned()) };
    let strategy = &resource.strategy;
    let errors = match old {
        Some(old) => {
            let mut merged = old.clone();
            merged.set("spec", object.remove("spec"));
            if let Some(annotations) = object.at(&["metadata", "annotations"]).and_then(Value::as_object) {
                let known = merged.object_mut("metadata").object_mut("annotations");
                annotations.iter().for_each(|(name, value)| {
                    known.insert(name, value.clone());
                });
            }
            object = merged;
            resource.default(&mut object);
            resource.complete(&mut object);
            resource.prepare_update(&mut object, old, Part::Whole, circumstances);
            let mut errors = check_updated_metadata(resource, &object, old, Part::Whole);
            let mut warnings = Warnings::default();
            errors.extend(strategy.validate_update_warning(&object, old, Part::Whole, circumstances, &mut warnings));
            errors
        }
        None => {
            object.object_mut("metadata").insert("creationTimestamp", now);
            resource.default(&mut object);
            resource.prepare_create(&mut object, circumstances);
            strategy.validate(&object)
        }
    };
    // Compared as what is stored: written and read again.
    let object = Decoded::stored(encode(resource, &object).bytes()).map_err(|error| error.to_string())?;
    Ok((object, errors))
}

/// Gives what is to come the names that it would get.
fn settle_names(pairs: &mut BTreeMap<String, Pair>, now: &str) {
    let group = |object: &Object| object.at(&["spec", "group"]).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut taken: HashMap<String, TakenNames> = HashMap::new();
    for stored in pairs.values().filter_map(|pair| pair.stored.as_ref()) {
        taken.entry(group(stored)).or_default().add(stored);
    }
    for object in pairs.values_mut().filter_map(|pair| pair.to_come.as_mut()) {
        let taken = taken.entry(group(object)).or_default();
        settle_status(object, taken, now);
        taken.add(object);
    }
}

/// What becomes of the objects of a definition, by what their keys begin with.
fn change(
    catalog: &Catalog,
    name: &str,
    definition: &Pair,
    conversion: &Pair,
    found: &mut Vec<RehearsalFinding>,
) -> Option<(String, DefinitionChange)> {
    let rules_after = rules_to_come(catalog, name, definition, conversion, found);
    // Of what is only to come there are no objects.
    let before = definition.stored.as_ref()?;
    let after = definition.to_come.as_ref().unwrap_or(before);
    let rules_before = conversion.stored.as_ref().filter(|stored| is_accepted(stored));
    let rules_before = rules_before.and_then(|stored| compiled(catalog, stored, before));
    let states = [
        DefinitionState { object: before, rules: rules_before },
        DefinitionState { object: after, rules: rules_after },
    ];
    let change = DefinitionChange::of(states, catalog)?;
    Some((change.after().storage.prefix.clone(), change))
}

/// The rules that are to come, used also if they break a law: what else they do is of interest then, too.
fn rules_to_come(
    catalog: &Catalog,
    name: &str,
    definition: &Pair,
    conversion: &Pair,
    found: &mut Vec<RehearsalFinding>,
) -> Option<Arc<Conversion>> {
    let beside = definition.to_come.as_ref().or(definition.stored.as_ref())?;
    let rules = conversion.to_come.as_ref().or(conversion.stored.as_ref().filter(|stored| is_accepted(stored)))?;
    if definition.to_come.is_none() && conversion.to_come.is_none() {
        return compiled(catalog, rules, beside);
    }
    match judge(catalog, rules, beside, &|| false)? {
        Verdict::Waiting => None,
        Verdict::Accepted(accepted) => {
            let warnings = &accepted.report.warnings;
            if conversion.to_come.is_some() && !warnings.is_empty() {
                let message = clip_joined(warnings, "; ");
                found.push(finding(catalog.conversions(), name, RehearsalEffect::Warned, message));
            }
            Some(accepted.rules)
        }
        Verdict::Refused(errors) => {
            found.push(finding(catalog.conversions(), name, RehearsalEffect::Refused, clip_joined(&errors, "; ")));
            compiled(catalog, rules, beside)
        }
    }
}

fn compiled(catalog: &Catalog, conversion: &Object, definition: &Object) -> Option<Arc<Conversion>> {
    compile(catalog, conversion, definition).ok().flatten().map(Arc::new)
}

fn name_of(object: &Object) -> &str {
    object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default()
}

fn finding(resource: &Resource, name: &str, effect: RehearsalEffect, message: String) -> RehearsalFinding {
    RehearsalFinding::new(resource.qualified_name(), name, effect, message)
}
