//! Eviction: a deletion of a pod that the disruption budgets of its namespace must allow.

use std::sync::Arc;
use std::time::Instant;

use revisor_catalog::Resource;
use revisor_object::{
    FieldError, FieldPath, KindRef, Object, ResourceRef, Status, StructuredLabelSelector, Value, Warnings,
};

use crate::body::{BodyType, Unread, fit, no_object, unfit};
use crate::delete::{check_preconditions, corrupt};
use crate::overwrite::set_condition;
use crate::write::match_namespace;
use crate::{
    Decoded, DeleteOptions, FieldValidation, Format, GroupVersionKind, Operation, Place, Registry, RegistryError,
    UnstoredWrite, WriteOptions,
};

const KIND: &str = "Eviction";

const VERSION: &str = "policy/v1";

/// The version that evictions had before, which is still read.
const OLDER_VERSION: &str = "policy/v1beta1";

/// So many evictions may wait to be noticed by who keeps the budget.
const MAX_DISRUPTED_PODS: usize = 2000;

/// How often an eviction is tried anew because others changed the pod in between.
const MAX_ATTEMPTS: usize = 20;

const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// After so many seconds a budget that is being worked on may be asked again.
const RETRY_SECONDS: u32 = 10;

/// A request to evict a pod.
#[derive(Debug, Clone, Default)]
pub struct Eviction {
    object: Object,
    /// What the client should be told although its request is done.
    pub warnings: Warnings,
}

impl Eviction {
    /// Reads the body of an eviction, which may be of the older version too.
    pub fn read(
        registry: &Registry,
        format: Format,
        text: &[u8],
        validation: FieldValidation,
    ) -> Result<Eviction, RegistryError> {
        let Some(kind) = Eviction::kind(registry) else { return Err(RegistryError::Unreadable) };
        let (types, id) = kind.typed();
        let parsed = format.parse(text, BodyType { kind: KIND, api_version: None, types, id: Some(id) });
        let refused = |unread: Unread| RegistryError::BadRequest(unread.message(KIND, VERSION, text));
        let (mut value, repeated) = parsed.map_err(refused)?;
        if !matches!(value, Value::Object(_) | Value::Null) {
            return Err(refused(Unread::Syntax(no_object(&value))));
        }
        let said = |value: &Value, name| value.as_object().and_then(|object| object.str(name)).unwrap_or("").to_owned();
        let sent = [said(&value, "kind"), said(&value, "apiVersion")];
        if let Some(object) = value.as_object_mut().filter(|_| sent[1] == OLDER_VERSION) {
            object.insert("apiVersion", VERSION);
        }
        let decoded = fit(kind, value, repeated, validation);
        let decoded = decoded
            .map_err(|problem| RegistryError::BadRequest(unfit([&sent[0], &sent[1]], [KIND, VERSION], problem)))?;
        Ok(Eviction { object: decoded.object, warnings: decoded.warnings })
    }

    /// The kind of what is sent.
    pub fn kind(registry: &Registry) -> Option<&Arc<Resource>> {
        registry.catalog.other_kind(VERSION, KIND)
    }

    /// What is sent.
    pub fn object(&self) -> &Object {
        &self.object
    }

    fn name(&self) -> &str {
        name_of(&self.object)
    }

    /// How the pod is to be deleted.
    fn options(&self) -> Result<DeleteOptions, RegistryError> {
        let Some(mut options) = self.object.object("deleteOptions").cloned() else {
            return Ok(DeleteOptions::default());
        };
        // They are a part of the request, whatever they say that they are.
        options.remove("kind");
        options.remove("apiVersion");
        DeleteOptions::of(&options)
    }
}

impl Registry {
    /// Deletes a pod if the budgets that select it allow it.
    pub async fn evict(
        &self,
        place: Place<'_>,
        mut eviction: Eviction,
        write: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let Place { resource: pods, namespace, name } = place;
        let name = name.unwrap_or_default();
        let unstored = UnstoredWrite {
            place,
            own_kind: Some(GroupVersionKind { group: "policy", version: "v1", kind: KIND }),
            operation: Operation::Create,
            options: WriteOptions { subresource: Some("eviction"), ..write },
        };
        write.keep_sent(&eviction.warnings);
        match_namespace(pods, eviction.object.object_mut("metadata"), namespace)?;
        if let Some(kind) = Eviction::kind(self) {
            self.record_sender(kind, &mut eviction.object, unstored.options).await;
        }
        self.admit_unstored(&unstored, &mut eviction.object).await?;
        if eviction.name() != name {
            let message = "name in URL does not match name in Eviction object";
            return Err(RegistryError::BadRequest(message.to_owned()));
        }
        // What the options ask is refused where the pod would be deleted, and not before it is found (upstream:
        // `ValidateDeleteOptions` in `BeforeDelete`).
        let (mut options, refused) = match eviction.options() {
            Err(error @ RegistryError::InvalidOptions { .. }) => {
                (DeleteOptions { dry_run: true, ..DeleteOptions::default() }, Some(error))
            }
            options => (options?, None),
        };
        if options.ignore_store_read_error {
            let options = FieldPath::root("deleteOptions");
            let path = options.child(corrupt::OPTION);
            let why = "can not be set for pod eviction, try after removing the option";
            let kind = KindRef { group: "policy", kind: KIND };
            let status = Status::invalid(kind, name, &[FieldError::invalid(path, true, why)]);
            return Err(RegistryError::Denied(Box::new(status)));
        }
        options.dry_run |= write.dry_run;
        self.validate_unstored(&unstored, &eviction.object).await?;
        let insists = options.preconditions.resource_version.is_some();
        let mut last = RegistryError::Contended { resource: pods.clone(), name: name.to_owned() };
        for _ in 0..MAX_ATTEMPTS {
            self.cache.freshen().await?;
            let key = pods.key(namespace, name);
            let item = self.cache_of(pods).get(&key).ok_or_else(|| RegistryError::not_found(pods, name))?;
            let pod = Decoded::stored(item.entry().bytes())?;
            // No number of attempts makes it the pod that was meant.
            check_preconditions(pods, name, item.entry(), &pod, &options.preconditions)?;
            let mut guarded = options.clone();
            let protection = self.protection(namespace, &pod, name, options.dry_run, write.deadline).await?;
            if let Some(error) = refused {
                return Err(error);
            }
            if protection.depends_on_version() && !insists {
                // It must not have become one that is protected since.
                guarded.preconditions.resource_version = Some(item.entry().revision().to_string());
            }
            match (self.mark_and_delete(place, guarded).await, protection) {
                // Somebody changed the pod while it was being looked at: look again.
                (Err(error @ RegistryError::Conflict { .. }), Protection::Unfinished) if !insists => last = error,
                (Err(RegistryError::Conflict { .. }), Protection::Unready(budget)) if !insists => {
                    return Err(still_processed(&budget));
                }
                (done, _) => return done,
            }
        }
        Err(last)
    }

    /// What stands between a pod and its eviction; charges the budget that guards it, if one does. As in the original that
    /// is a request that the server makes to itself, and a dry run makes none.
    async fn protection(
        &self,
        namespace: Option<&str>,
        pod: &Object,
        name: &str,
        dry_run: bool,
        deadline: Option<Instant>,
    ) -> Result<Protection, RegistryError> {
        let phase = pod.at(&["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
        let is_marked = pod.at(&["metadata", "deletionTimestamp"]).is_some();
        if is_marked || matches!(phase, "Succeeded" | "Failed") {
            return Ok(Protection::None);
        }
        if phase == "Pending" {
            return Ok(Protection::Unfinished);
        }
        let Some(budgets) = self.known("policy", "v1", "poddisruptionbudgets") else { return Ok(Protection::None) };
        let all = self.all_read_once("policy", "v1", "poddisruptionbudgets", namespace);
        let mut selecting = all.iter().filter(|budget| selects(budget, pod));
        let Some(budget) = selecting.next() else { return Ok(Protection::None) };
        if selecting.next().is_some() {
            return Err(RegistryError::ManyBudgets);
        }
        let budget_name = name_of(budget).to_owned();
        if !is_ready(pod) && allows_unready(budget) {
            return Ok(Protection::Unready(budget_name));
        }
        let now = self.environment.timestamp();
        if dry_run {
            charge(&mut Object::clone(budget), name, &now)?;
            return Ok(Protection::None);
        }
        let place = Place { resource: budgets, namespace, name: Some(&budget_name) };
        let options = self.own.options_until(deadline);
        self.tell_as_server(place, options, |budget| charge(budget, name, &now)).await?;
        Ok(Protection::None)
    }

    /// Notes on a pod why it ends, and ends it.
    async fn mark_and_delete(&self, place: Place<'_>, mut options: DeleteOptions) -> Result<(), RegistryError> {
        let Place { resource: pods, namespace, name } = place;
        if !options.dry_run {
            let now = self.environment.timestamp();
            let condition = [
                ("type", "DisruptionTarget"),
                ("status", "True"),
                ("reason", "EvictionByEvictionAPI"),
                ("message", "Eviction API: evicting"),
            ];
            let version = self
                .overwrite(pods, namespace, name.unwrap_or_default(), false, |entry, pod| {
                    check_preconditions(pods, name.unwrap_or_default(), entry, pod, &options.preconditions)?;
                    set_condition(pod, condition, &now);
                    Ok(())
                })
                .await?;
            if options.preconditions.resource_version.is_some() {
                options.preconditions.resource_version = Some(version);
            }
        }
        // The eviction was admitted; the deletion is its doing.
        self.delete_admitted(place, &options, None).await.map(drop)
    }
}

/// What the eviction of a pod depends on.
#[derive(Debug, PartialEq, Eq)]
enum Protection {
    /// On nothing more.
    None,
    /// On that it has not begun to run.
    Unfinished,
    /// On that it is still not ready; the budget protects only pods that are.
    Unready(String),
}

impl Protection {
    fn depends_on_version(&self) -> bool {
        !matches!(self, Protection::None)
    }
}

fn name_of(object: &Object) -> &str {
    object.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default()
}

/// Whether a budget is about a pod. One without a selector is about none, and so is one that cannot be understood.
fn selects(budget: &Object, pod: &Object) -> bool {
    let selector = budget.object("spec").and_then(|spec| spec.object("selector"));
    let Some(Ok(selector)) = selector.map(|selector| StructuredLabelSelector::new(selector).to_selector()) else {
        return false;
    };
    let labels = pod.object("metadata").and_then(|metadata| metadata.object("labels"));
    selector.matches(|key| labels.and_then(|labels| labels.str(key)))
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.object("status").map(|status| status.array("conditions")).unwrap_or_default();
    let mut conditions = conditions.iter().filter_map(Value::as_object);
    conditions.any(|condition| condition.str("type") == Some("Ready") && condition.str("status") == Some("True"))
}

fn number(budget: &Object, name: &str) -> i64 {
    budget.at(&["status", name]).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether a pod that is not ready may go without counting.
fn allows_unready(budget: &Object) -> bool {
    let policy = budget.at(&["spec", "unhealthyPodEvictionPolicy"]).and_then(Value::as_str);
    let desired = number(budget, "desiredHealthy");
    policy == Some("AlwaysAllow") || (number(budget, "currentHealthy") >= desired && desired > 0)
}

/// Takes one disruption off a budget.
fn charge(budget: &mut Object, pod: &str, now: &str) -> Result<(), RegistryError> {
    let name = name_of(budget).to_owned();
    let generation = budget.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    if number(budget, "observedGeneration") < generation {
        return Err(still_processed(&name));
    }
    // As the original calls them here.
    let budgets = ResourceRef { group: "policy", resource: "poddisruptionbudget" };
    let forbidden = |why: &str| RegistryError::Denied(Box::new(Status::forbidden(budgets, &name, why)));
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    let disrupted = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object).map_or(0, Object::len);
    if disrupted > MAX_DISRUPTED_PODS {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(forbidden(why));
    }
    if allowed == 0 {
        return Err(RegistryError::BudgetExhausted {
            message: VIOLATED,
            cause: exhausted(budget, &name),
            retry_seconds: 0,
        });
    }
    let status = budget.object_mut("status");
    status.insert("disruptionsAllowed", allowed - 1);
    status.object_mut("disruptedPods").insert(pod, now);
    if allowed == 1 {
        set_disruption_not_allowed(status, generation, now);
    }
    Ok(())
}

fn still_processed(name: &str) -> RegistryError {
    RegistryError::BudgetExhausted {
        message: VIOLATED,
        cause: format!("The disruption budget {name} is still being processed by the server."),
        retry_seconds: RETRY_SECONDS,
    }
}

fn disruption_allowed(status: &Object) -> Option<&Object> {
    let mut conditions = status.array("conditions").iter().filter_map(Value::as_object);
    conditions.find(|condition| condition.str("type") == Some("DisruptionAllowed"))
}

/// Why a budget allows nothing.
fn exhausted(budget: &Object, name: &str) -> String {
    let condition = budget.object("status").and_then(disruption_allowed);
    let condition = condition.filter(|condition| condition.str("status") == Some("False"));
    let text = |name| condition.and_then(|condition| condition.str(name)).unwrap_or_default();
    let (reason, message) = (text("reason"), text("message"));
    let (desired, current) = (number(budget, "desiredHealthy"), number(budget, "currentHealthy"));
    if reason == "SyncFailed" && !message.is_empty() {
        format!("The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}")
    } else if current <= desired {
        format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
    } else if !message.is_empty() {
        format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

fn set_disruption_not_allowed(status: &mut Object, generation: i64, now: &str) {
    let known = disruption_allowed(status).filter(|known| known.str("status") == Some("False"));
    let time = known.and_then(|known| known.get("lastTransitionTime")).cloned().unwrap_or_else(|| Value::from(now));
    let condition = Object::from_iter([
        ("type", Value::from("DisruptionAllowed")),
        ("status", Value::from("False")),
        ("reason", Value::from("InsufficientPods")),
        ("message", Value::from("")),
        ("observedGeneration", Value::from(generation)),
        ("lastTransitionTime", time),
    ]);
    let mut conditions = status.array("conditions").to_vec();
    let is_it = |value: &Value| value.as_object().and_then(|it| it.str("type")) == Some("DisruptionAllowed");
    match conditions.iter_mut().find(|value| is_it(value)) {
        Some(known) => *known = Value::from(condition),
        None => conditions.push(Value::from(condition)),
    }
    status.insert("conditions", conditions);
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn object(text: &str) -> Object {
        match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("no object: {other:?}"),
        }
    }

    fn budget(status: &str) -> Object {
        object(&format!(r#"{{"metadata":{{"name":"b","generation":2}},"status":{status}}}"#))
    }

    #[test]
    fn a_budget_is_charged_until_it_is_exhausted() {
        let needs = "The disruption budget b needs 2 healthy pods and has 2 currently";
        let failed = "The disruption budget b does not allow evicting pods currently because it failed sync: why";
        let other = "The disruption budget b does not allow evicting pods currently (R): why";
        let condition = |reason: &str| {
            format!(
                r#""conditions":[{{"type":"DisruptionAllowed","status":"False","reason":"{reason}","message":"why"}}]"#
            )
        };
        let sync_failed = format!(r#"{{"observedGeneration":2,{}}}"#, condition("SyncFailed"));
        let unhealthy =
            format!(r#"{{"observedGeneration":2,"currentHealthy":3,"desiredHealthy":2,{}}}"#, condition("R"));
        for (status, want, seconds) in [
            (r#"{"observedGeneration":1}"#, "The disruption budget b is still being processed by the server.", 10),
            (r#"{"observedGeneration":2,"currentHealthy":2,"desiredHealthy":2}"#, needs, 0),
            (&*sync_failed, failed, 0),
            (&*unhealthy, other, 0),
        ] {
            match charge(&mut budget(status), "p", "now") {
                Err(RegistryError::BudgetExhausted { cause, retry_seconds, .. }) => {
                    assert_eq!((&*cause, retry_seconds), (want, seconds), "{status}");
                }
                other => panic!("{status}: {other:?}"),
            }
        }
        let mut last = budget(r#"{"observedGeneration":2,"disruptionsAllowed":1}"#);
        charge(&mut last, "p", "now").expect("is allowed");
        assert_eq!(last.at(&["status", "disruptionsAllowed"]), Some(&Value::Int(0)));
        assert_eq!(last.at(&["status", "disruptedPods", "p"]), Some(&Value::from("now")));
        let shown = last.at(&["status", "conditions"]).map(Value::to_json).expect("says that it is exhausted");
        assert!(shown.contains(r#""reason":"InsufficientPods","status":"False""#), "{shown}");
        let negative = charge(&mut budget(r#"{"observedGeneration":2,"disruptionsAllowed":-1}"#), "p", "now");
        assert!(matches!(negative, Err(RegistryError::Denied(_))));
    }

    #[test]
    fn budgets_select_by_labels_and_protect_what_is_ready() {
        let pod = object(r#"{"metadata":{"labels":{"a":"b"}}}"#);
        for (spec, want) in [
            ("{}", false),
            (r#"{"selector":{}}"#, true),
            (r#"{"selector":{"matchLabels":{"a":"b"}}}"#, true),
            (r#"{"selector":{"matchLabels":{"a":"c"}}}"#, false),
            (r#"{"selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]}}"#, false),
        ] {
            assert_eq!(selects(&object(&format!("{{\"spec\":{spec}}}")), &pod), want, "{spec}");
        }
        for (text, want) in [
            (r#"{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}"#, true),
            (r#"{"status":{"currentHealthy":2,"desiredHealthy":2}}"#, true),
            (r#"{"status":{"currentHealthy":1,"desiredHealthy":2}}"#, false),
            (r#"{"status":{"currentHealthy":0,"desiredHealthy":0}}"#, false),
        ] {
            assert_eq!(allows_unready(&object(text)), want, "{text}");
        }
    }
}
