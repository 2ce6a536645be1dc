//! Conversions as objects: what is demanded of one when it is written, of the definition that it belongs to when that is
//! written, and what keeps it from being deleted. How objects are converted is in [`conversion`](crate::conversion), how
//! rules take effect in [`definitions`](crate::definitions).
//!
//! A Conversion and its definition are two objects that must go together. Whoever writes one of them holds a turn from
//! when it is checked against the other until it is stored, so that never both change at once.

mod stake;
mod verdict;

pub(crate) use verdict::{Verdict, compile, is_accepted, judge, known};

use std::collections::VecDeque;
use std::fmt::Display;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, Mutex};

use revisor_catalog::Resource;
use revisor_object::{FieldError, Object, Value};

use self::stake::Stake;
use self::verdict::Accepted;
use crate::admission::Attributes;
use crate::definitions::is_definitions;
use crate::workbench::off_the_workers;
use crate::write::{encode, is_free_to_go, reject_invalid};
use crate::{Decoded, Registry, RegistryError, WriteOptions};

/// How many turns there are. Names that share one wait for each other.
const TURNS: usize = 64;

/// How many verdicts wait for those whom they concern.
const MAX_VERDICTS: usize = 16;

/// To check rules takes as long as to work on so many bytes.
const WEIGHT: usize = 1024 * 1024;

/// Whether these are the conversions between versions.
pub(crate) fn is_conversions(resource: &Resource) -> bool {
    resource.custom().is_none() && resource.name() == ("versioning.revisor.dev", "conversions")
}

/// What is known of conversions between two requests.
pub(crate) struct Conversions {
    turns: Vec<tokio::sync::Mutex<()>>,
    /// What was found out for a write that is on its way to the store.
    verdicts: Mutex<VecDeque<Found>>,
}

/// What was found out about a Conversion and a definition.
struct Found {
    name: String,
    conversion: Option<Value>,
    definition: Option<Value>,
    accepted: Accepted,
}

/// A write that was judged, and the turn that it has until it is dropped.
#[derive(Default)]
pub(crate) struct Judged<'r> {
    /// What the writer should know.
    pub(crate) warnings: Vec<String>,
    /// The rules that go with what a definition is to be.
    pub(crate) rules: Option<Arc<revisor_convert::Conversion>>,
    _turn: Option<tokio::sync::MutexGuard<'r, ()>>,
}

impl Default for Conversions {
    fn default() -> Conversions {
        Conversions { turns: (0..TURNS).map(|_| tokio::sync::Mutex::default()).collect(), verdicts: Mutex::default() }
    }
}

impl Conversions {
    async fn turn(&self, name: &str) -> tokio::sync::MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        self.turns[hash as usize % TURNS].lock().await
    }

    fn verdicts(&self) -> std::sync::MutexGuard<'_, VecDeque<Found>> {
        self.verdicts.lock().expect("nobody panics while they look at verdicts")
    }

    fn remember(&self, name: &str, [conversion, definition]: [&Object; 2], accepted: Accepted) {
        let spec = |object: &Object| object.get("spec").cloned();
        let (conversion, definition) = (spec(conversion), spec(definition));
        let mut verdicts = self.verdicts();
        verdicts.truncate(MAX_VERDICTS - 1);
        verdicts.push_front(Found { name: name.to_owned(), conversion, definition, accepted });
    }

    /// What was found out about these two, if that was just now.
    pub(crate) fn recall(&self, name: &str, conversion: &Object, definition: &Object) -> Option<Verdict> {
        let mut verdicts = self.verdicts();
        let is_it = |found: &Found| {
            found.name == name
                && found.conversion.as_ref() == conversion.get("spec")
                && found.definition.as_ref() == definition.get("spec")
        };
        let at = verdicts.iter().position(is_it)?;
        verdicts.remove(at).map(|found| Verdict::Accepted(found.accepted))
    }
}

impl Registry {
    /// The Conversion with this name, as it is stored.
    pub(crate) fn stored_conversion(&self, name: &str) -> Option<Object> {
        let conversions = self.catalog.conversions();
        let item = self.cache_of(conversions).get(&conversions.key(None, name))?;
        Decoded::stored(item.bytes()).ok()
    }

    fn stored_definition(&self, name: &str) -> Option<Object> {
        self.stored("apiextensions.k8s.io", "v1", "customresourcedefinitions", None, name)
    }

    /// How much more a write of this object is about than its bytes.
    pub(crate) fn weight_of_rules(&self, resource: &Resource, name: Option<&str>) -> usize {
        let is_concerned = is_conversions(resource)
            || is_definitions(resource) && {
                let conversions = self.catalog.conversions();
                let cache = self.cache_of(conversions);
                // The name of what is to be made is not known yet.
                name.map_or(!cache.is_empty(), |name| cache.get(&conversions.key(None, name)).is_some())
            };
        if is_concerned { WEIGHT } else { 0 }
    }

    /// Checks a Conversion against its definition, or a definition against its Conversion, as it is to be stored, and
    /// says in the status of a Conversion what is known. Nothing is asked of other objects.
    pub(crate) async fn judge(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Object,
        options: WriteOptions<'_>,
    ) -> Result<Judged<'_>, RegistryError> {
        let resource = attributes.resource;
        let is_conversion = is_conversions(resource);
        if options.subresource.is_some() || !(is_conversion || is_definitions(resource)) {
            return Ok(Judged::default());
        }
        if is_conversion && attributes.old.is_some_and(|old| is_free_to_go(resource, object, old)) {
            self.refuse_needed(resource, attributes.name).await?;
        }
        // Compared as what is stored: written and read again.
        let new = Decoded::stored(encode(resource, object).bytes())?;
        if attributes.old.is_some_and(|old| old.get("spec") == new.get("spec")) {
            return Ok(Judged::default());
        }
        // Upholds V4.
        let turn = self.conversions.turn(attributes.name).await;
        let mut rules = None;
        let warnings = if is_conversion {
            let definition = self.stored_definition(attributes.name);
            let verdict = self.judge_conversion(attributes, &new, definition.as_ref(), options)?;
            verdict.tell(object, definition.as_ref(), &self.now());
            verdict.warnings(attributes.name)
        } else {
            match self.judge_definition(attributes, &new, options)? {
                Some(verdict) => {
                    rules = verdict.rules();
                    let warnings = verdict.warnings(attributes.name).into_iter();
                    warnings.map(|warning| format!("Conversion {}: {warning}", attributes.name)).collect()
                }
                None => Vec::new(),
            }
        };
        Ok(Judged { warnings, rules, _turn: Some(turn) })
    }

    fn judge_conversion(
        &self,
        attributes: &Attributes<'_>,
        conversion: &Object,
        definition: Option<&Object>,
        options: WriteOptions<'_>,
    ) -> Result<Verdict, RegistryError> {
        let name = attributes.name;
        let Some(definition) = definition else { return Ok(Verdict::Waiting) };
        let verdict = self.found(conversion, definition, options)?;
        match &verdict {
            Verdict::Waiting => {}
            Verdict::Refused(errors) => reject_invalid(attributes.resource, name, errors.clone())?,
            Verdict::Accepted(accepted) => {
                if let Some(old) = attributes.old.filter(|old| is_accepted(old))
                    && let Some(stake) = Stake::of(self, definition)
                {
                    let losing = off_the_workers(|| stake.losing(old, &accepted.rules));
                    let what = ["would lose something by this change"; 2];
                    refuse_loss(attributes.resource, name, losing, what)?;
                }
                if !options.dry_run {
                    self.conversions.remember(name, [conversion, definition], accepted.clone());
                }
            }
        }
        Ok(verdict)
    }

    fn judge_definition(
        &self,
        attributes: &Attributes<'_>,
        definition: &Object,
        options: WriteOptions<'_>,
    ) -> Result<Option<Verdict>, RegistryError> {
        let name = attributes.name;
        let Some(conversion) = self.stored_conversion(name) else { return Ok(None) };
        let verdict = self.found(&conversion, definition, options)?;
        match &verdict {
            Verdict::Waiting => {}
            // What was never in force for this definition holds nobody up.
            Verdict::Refused(errors) if attributes.old.is_some() && is_accepted(&conversion) => {
                let told = errors.iter().map(|error| FieldError {
                    detail: format!("in Conversion {name}: {}", error.detail),
                    ..error.clone()
                });
                reject_invalid(attributes.resource, name, told.collect())?;
            }
            Verdict::Accepted(accepted) if !options.dry_run => {
                self.conversions.remember(name, [&conversion, definition], accepted.clone());
            }
            Verdict::Refused(_) | Verdict::Accepted(_) => {}
        }
        Ok(Some(verdict))
    }

    /// What is found out in the time of a request.
    fn found(
        &self,
        conversion: &Object,
        definition: &Object,
        options: WriteOptions<'_>,
    ) -> Result<Verdict, RegistryError> {
        options.in_time()?;
        // Whoever comes again because another was faster need not find it out again.
        let name = conversion.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        if let Some(verdict) = self.conversions.recall(name, conversion, definition) {
            return Ok(verdict);
        }
        let is_over = || options.in_time().is_err();
        let verdict = off_the_workers(|| judge(&self.catalog, conversion, definition, &is_over));
        verdict.ok_or(RegistryError::TimedOut)
    }

    /// Refuses to delete a Conversion that stored objects need.
    pub(crate) async fn refuse_needed(&self, resource: &Arc<Resource>, name: &str) -> Result<(), RegistryError> {
        let (Some(conversion), Some(definition)) = (self.stored_conversion(name), self.stored_definition(name)) else {
            return Ok(());
        };
        // What was never in force is in nobody's need.
        let Some(stake) = Stake::of(self, &definition).filter(|_| is_accepted(&conversion)) else { return Ok(()) };
        let needing = off_the_workers(|| stake.needing(&conversion));
        let what = ["needs", "need"].map(|needs| format!("{needs} it to be shown in every version that is served"));
        refuse_loss(resource, name, needing, what)
    }
}

/// Refuses what objects would suffer from; `what` they do is said of one and of many.
fn refuse_loss(
    resource: &Arc<Resource>,
    name: &str,
    objects: u64,
    [of_one, of_many]: [impl Display; 2],
) -> Result<(), RegistryError> {
    let why = match objects {
        0 => return Ok(()),
        1 => format!("1 object is stored that {of_one}"),
        objects => format!("{objects} objects are stored that {of_many}"),
    };
    Err(RegistryError::conflict(resource, name, why))
}
