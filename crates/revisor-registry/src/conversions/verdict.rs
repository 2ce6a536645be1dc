//! [`Verdict`]: what is known of a Conversion beside its definition, and how its status tells it.

use std::sync::Arc;

use revisor_catalog::{Catalog, Condition, ESTABLISHED};
use revisor_convert::{Broken, Conversion, Effort, Report, Spec};
use revisor_object::{FieldErrors, Object, Value, clip};

const ACCEPTED: &str = "Accepted";
const COMPLETE: &str = "Complete";
const IN_USE: &str = "InUse";

/// So many steps are searched as far as one is; of more, each less.
const FULL_EFFORT: usize = 4;

/// What is known of a Conversion beside its definition.
#[derive(Clone)]
pub(crate) enum Verdict {
    /// There is no definition to check it against.
    Waiting,
    /// It cannot be carried out, or breaks a law.
    Refused(FieldErrors),
    /// No object was found that breaks a law.
    Accepted(Accepted),
}

/// Rules that keep the laws.
#[derive(Clone)]
pub(crate) struct Accepted {
    pub(crate) rules: Arc<Conversion>,
    pub(crate) report: Report,
}

/// Whether objects are converted by rules that were accepted.
#[derive(Clone, Copy)]
enum Use {
    Yes,
    Webhook,
    NotEstablished,
}

/// Checks the laws; nothing if the time was over before all was found out.
pub(crate) fn judge(
    catalog: &Catalog,
    conversion: &Object,
    definition: &Object,
    is_over: &dyn Fn() -> bool,
) -> Option<Verdict> {
    let rules = match compile(catalog, conversion, definition) {
        Ok(Some(rules)) => rules,
        Ok(None) => return Some(Verdict::Waiting),
        Err(errors) => return Some(Verdict::Refused(errors)),
    };
    let Effort { objects, work } = Effort::default();
    let share = rules.step_count().div_ceil(FULL_EFFORT).max(1);
    let report = rules.check_in_time(Effort { objects: objects / share, work: work / share }, is_over)?;
    if !report.broken.is_empty() {
        return Some(Verdict::Refused(report.broken.iter().map(Broken::error).collect()));
    }
    Some(Verdict::Accepted(Accepted { rules: Arc::new(rules), report }))
}

/// The rules of a Conversion, ready; nothing if the object beside it is no definition.
pub(crate) fn compile(
    catalog: &Catalog,
    conversion: &Object,
    definition: &Object,
) -> Result<Option<Conversion>, FieldErrors> {
    let spec = Spec::read(conversion)?;
    let Ok(definition) = catalog.convertible(definition) else { return Ok(None) };
    Conversion::compile(Arc::new(definition), &spec, catalog.rule_environment()).map(Some)
}

impl Use {
    fn of(definition: &Object) -> Use {
        if definition.at(&["spec", "conversion", "strategy"]).and_then(Value::as_str) == Some("Webhook") {
            return Use::Webhook;
        }
        let established = condition(definition, ESTABLISHED);
        if established.and_then(|found| found.str("status")) == Some("True") { Use::Yes } else { Use::NotEstablished }
    }

    fn condition(self) -> Condition {
        let (status, reason, message) = match self {
            Use::Yes => ("True", "RulesConvert", "objects are converted by these rules"),
            Use::Webhook => ("False", "WebhookConverts", "the definition has the strategy Webhook, which goes first"),
            Use::NotEstablished => ("False", "NotEstablished", "the definition is not established"),
        };
        Condition::new(IN_USE, status, reason, message)
    }
}

impl Verdict {
    /// The rules that objects are converted by.
    pub(crate) fn rules(&self) -> Option<Arc<Conversion>> {
        match self {
            Verdict::Accepted(accepted) => Some(accepted.rules.clone()),
            Verdict::Waiting | Verdict::Refused(_) => None,
        }
    }

    /// What its author should know.
    pub(crate) fn warnings(&self, name: &str) -> Vec<String> {
        match self {
            Verdict::Waiting => {
                vec![format!("there is no definition {name} yet: the rules are checked and used when it comes")]
            }
            Verdict::Refused(errors) => {
                let lines = errors.iter().map(ToString::to_string);
                lines.filter_map(|text| text.lines().next().map(|line| format!("it is not used: {line}"))).collect()
            }
            Verdict::Accepted(accepted) => accepted.report.warnings.clone(),
        }
    }

    /// Says in the status of a Conversion what is known of it beside its definition.
    pub(crate) fn tell(&self, conversion: &mut Object, definition: Option<&Object>, now: &str) {
        let generation = |object: &Object| object.at(&["metadata", "generation"]).cloned();
        let (observed, checked) = (generation(conversion), definition.and_then(generation));
        let (steps, conditions) = match self {
            Verdict::Waiting => {
                let (reason, message) = ("NoDefinition", "there is no definition of this name yet");
                (Vec::new(), unused(reason, message, "Unknown"))
            }
            Verdict::Refused(errors) => {
                let message = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
                (Vec::new(), unused("RulesRefused", &clip(message), "False"))
            }
            Verdict::Accepted(accepted) => {
                let use_of = definition.map_or(Use::NotEstablished, Use::of);
                (accepted.steps(), accepted.conditions(use_of))
            }
        };
        for condition in conditions {
            condition.put(conversion, now);
        }
        let status = conversion.object_mut("status");
        status.set("observedGeneration", observed);
        status.set("definitionGeneration", checked);
        status.insert("steps", steps);
    }
}

/// The conditions of a Conversion that was not accepted.
fn unused(reason: &str, message: &str, accepted: &'static str) -> [Condition; 3] {
    [
        Condition::new(ACCEPTED, accepted, reason, message),
        Condition::new(COMPLETE, "Unknown", "NotAccepted", "it is not accepted"),
        Condition::new(IN_USE, "False", "NotAccepted", "it is not accepted"),
    ]
}

impl Accepted {
    fn steps(&self) -> Vec<Value> {
        let step = |report: &revisor_convert::StepReport| {
            let mut step = Object::new();
            step.insert("from", report.from.as_str());
            step.insert("to", report.to.as_str());
            step.insert("verdict", report.verdict.to_string());
            step.insert("objects", i64::try_from(report.objects).unwrap_or(i64::MAX));
            Value::Object(step)
        };
        self.report.steps.iter().map(step).collect()
    }

    fn conditions(&self, use_of: Use) -> [Condition; 3] {
        let unreached = self.rules.unreached().join(", ");
        let complete = if unreached.is_empty() {
            Condition::new(COMPLETE, "True", "AllReached", "steps lead from every version to others")
        } else {
            let message = format!("no step reaches {unreached}: shown by name only, as with strategy None");
            Condition::new(COMPLETE, "False", "VersionsUnreached", message)
        };
        let message = "no object was found that breaks a law";
        [Condition::new(ACCEPTED, "True", "LawsKept", message), complete, use_of.condition()]
    }
}

/// What the status of a Conversion says that was checked against just this definition: its rules, without looking for
/// broken laws once more.
pub(crate) fn known(catalog: &Catalog, conversion: &Object, definition: &Object) -> Option<Arc<Conversion>> {
    let generation = |object: &Object| object.at(&["metadata", "generation"]).cloned();
    let status = |name: &str| conversion.at(&["status", name]).cloned();
    let is_known = is_accepted(conversion)
        && status("observedGeneration") == generation(conversion)
        && status("definitionGeneration") == generation(definition)
        && Use::of(definition).condition().is_in(conversion);
    let rules = is_known.then(|| compile(catalog, conversion, definition));
    rules.and_then(|rules| rules.ok().flatten()).map(Arc::new)
}

/// Whether a Conversion was accepted when it was checked last.
pub(crate) fn is_accepted(conversion: &Object) -> bool {
    condition(conversion, ACCEPTED).and_then(|found| found.str("status")) == Some("True")
}

fn condition<'a>(object: &'a Object, kind: &str) -> Option<&'a Object> {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().filter_map(Value::as_object).find(|condition| condition.str("type") == Some(kind))
}
