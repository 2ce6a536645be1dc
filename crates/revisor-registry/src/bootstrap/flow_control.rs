//! The flow schemas and priority levels that every server has, and what the server says of all of them.
//!
//! As in the original (`registry/flowcontrol/ensurer`), what is mandatory is put back to what it was; what is only
//! suggested is kept at what this release suggests for as long as its annotation says so, or nobody has changed its spec.
//! Suggestions of other releases go. The original looks every minute, and when it starts.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::try_join_all;
use revisor_cache::Feed;
use revisor_catalog::{BootstrapFlowControl, Resource};
use revisor_flowcontrol::PriorityLevel;
use revisor_object::{Object, Value, Warnings};

use crate::flow_book::{GROUP, LEVELS, SCHEMAS};
use crate::{Decoded, DeleteOptions, PatchKind, Place, Registry, RegistryError, WriteOptions};

/// Says whether the server looks after the spec of an object.
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// In whose name the objects are written, and in whose what is said of them.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

/// How often they are looked after.
const INTERVAL: Duration = Duration::from_secs(60);

/// How often in such an interval something is said of one schema, at most: other servers may say something else.
const MAX_UPDATES: usize = 6;

/// The level whose shares an operator may set, though all else of it is mandatory.
const EXEMPT: &str = "exempt";

impl Registry {
    /// Brings all of them into order, at once, and says of every schema whether its level is there.
    pub(super) async fn ensure_flow_control(&self, options: WriteOptions<'_>) -> Result<(), RegistryError> {
        let wanted = self.catalog.bootstrap_flow_control();
        try_join_all(wanted.iter().map(|wanted| self.ensure_flow_object(wanted, options))).await?;
        for plural in [SCHEMAS, LEVELS] {
            self.remove_former_suggestions(plural, &wanted, options).await?;
        }
        self.settle_flow_schemas(&mut HashMap::new(), options).await
    }

    /// Looks after them for as long as the registry lives.
    pub fn keep_flow_control(self: &Arc<Self>) {
        let served = |plural| self.catalog.resource(GROUP, "v1", plural);
        let (Some(schemas), Some(levels)) = (served(SCHEMAS), served(LEVELS)) else { return };
        let feeds = [schemas, levels].map(|resource| Feed::open(&self.cache_of(resource), None));
        self.runtime.spawn(keep(Arc::downgrade(self), feeds));
    }

    async fn ensure_flow_object(
        &self,
        wanted: &BootstrapFlowControl,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let Some(resource) = self.catalog.resource(GROUP, "v1", wanted.plural) else { return Ok(()) };
        let options = WriteOptions { field_manager: PRODUCER, ..options };
        let decoded = |object: Object| Decoded { object, warnings: Warnings::default() };
        let place = Place { resource, namespace: None, name: None };
        let done = match self.cache_of(resource).get(&resource.key(None, wanted.name)) {
            None => self.create(place, decoded(wanted.object.clone()), options).await,
            Some(stored) => match revised(&Decoded::stored(stored.bytes())?, wanted) {
                None => return Ok(()),
                Some(object) => self.update(Place { name: Some(wanted.name), ..place }, decoded(object), options).await,
            },
        };
        unless_somebody_was_faster(done.map(drop))
    }

    async fn remove_former_suggestions(
        &self,
        plural: &str,
        wanted: &[BootstrapFlowControl],
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let Some(resource) = self.catalog.resource(GROUP, "v1", plural) else { return Ok(()) };
        for (name, object) in self.flow_objects(resource) {
            let is_wanted = wanted.iter().any(|wanted| wanted.plural == plural && wanted.name == name);
            if !is_wanted && auto_update(&object) == Some(true) {
                let place = Place { resource, namespace: None, name: Some(&name) };
                unless_somebody_was_faster(self.delete_for(place, &DeleteOptions::default(), options).await.map(drop))?;
            }
        }
        Ok(())
    }

    /// Says of every schema whether its level is there. `updates` tells how often that was said of each lately.
    async fn settle_flow_schemas(
        &self,
        updates: &mut HashMap<String, usize>,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let served = |plural| self.catalog.resource(GROUP, "v1", plural);
        let (Some(schemas), Some(levels)) = (served(SCHEMAS), served(LEVELS)) else { return Ok(()) };
        let levels: Vec<PriorityLevel> =
            self.flow_objects(levels).iter().filter_map(|(_, level)| PriorityLevel::read(level)).collect();
        let mut statements = Vec::new();
        for (name, schema) in self.flow_objects(schemas) {
            let level = schema.at(&["spec", "priorityLevelConfiguration", "name"]).and_then(Value::as_str);
            let level = level.unwrap_or_default();
            let is_found = levels.iter().any(|known| known.name == level);
            let Some(statement) = statement(&schema, &name, level, is_found, &self.environment.timestamp()) else {
                continue;
            };
            let count = updates.entry(name.clone()).or_default();
            if *count < MAX_UPDATES {
                *count += 1;
                statements.push((name, statement));
            }
        }
        let say = |(name, statement): (String, Object)| async move {
            let options = WriteOptions {
                subresource: Some("status"),
                field_manager: CONSUMER,
                is_apply: true,
                force: true,
                ..options
            };
            let place = Place { resource: schemas, namespace: None, name: Some(&name) };
            let text = Value::from(statement).to_json();
            unless_somebody_was_faster(self.patch(place, PatchKind::Apply, text.as_bytes(), options).await.map(drop))
        };
        try_join_all(statements.into_iter().map(say)).await.map(drop)
    }

    fn flow_objects(&self, resource: &Resource) -> Vec<(String, Object)> {
        let snapshot = self.cache_of(resource).snapshot();
        let read = |bytes: &[u8]| {
            let object = Decoded::stored(bytes).ok()?;
            Some((object.at(&["metadata", "name"])?.as_str()?.to_owned(), object))
        };
        snapshot.range(&resource.prefix, None).filter_map(|item| read(item.bytes())).collect()
    }
}

async fn keep(registry: Weak<Registry>, [mut schemas, mut levels]: [Feed; 2]) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.tick().await;
    let mut updates = HashMap::new();
    loop {
        let is_due = tokio::select! {
            news = schemas.next() => match news { Some(_) => false, None => return },
            news = levels.next() => match news { Some(_) => false, None => return },
            _ = ticks.tick() => true,
        };
        let Some(registry) = registry.upgrade() else { return };
        let done = if is_due {
            updates.clear();
            registry.ensure_flow_control(registry.own.options()).await
        } else {
            registry.settle_flow_schemas(&mut updates, registry.own.options()).await
        };
        if let Err(error) = done {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot look after flow schemas and priority levels"
            );
        }
    }
}

/// Another server on the same store, or a client, may have been faster. It is looked at again in time.
fn unless_somebody_was_faster(done: Result<(), RegistryError>) -> Result<(), RegistryError> {
    match done {
        Err(RegistryError::AlreadyExists { .. } | RegistryError::Conflict { .. } | RegistryError::NotFound { .. }) => {
            Ok(())
        }
        done => done,
    }
}

/// What the annotation says, if it can be understood.
fn auto_update(object: &Object) -> Option<bool> {
    match object.at(&["metadata", "annotations", AUTO_UPDATE])?.as_str()? {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// The object as it should be; `None` if it is (upstream: `ReviseIfNeeded`).
fn revised(stored: &Object, wanted: &BootstrapFlowControl) -> Option<Object> {
    let said = auto_update(stored);
    // Without a word, a spec that nobody has changed is still the server's.
    let is_unchanged = || stored.at(&["metadata", "generation"]).and_then(Value::as_i64) == Some(1);
    let is_ours = wanted.is_mandatory || said.unwrap_or_else(is_unchanged);
    let mut object = stored.clone();
    if said != Some(is_ours) {
        let annotations = object.object_mut("metadata").object_mut("annotations");
        annotations.insert(AUTO_UPDATE, if is_ours { "true" } else { "false" });
    }
    if is_ours {
        let mut spec = wanted.object.get("spec").cloned();
        if let (EXEMPT, LEVELS, Some(spec)) = (wanted.name, wanted.plural, spec.as_mut().and_then(Value::as_object_mut))
            && let Some(own) = stored.at(&["spec", "exempt"])
        {
            spec.insert("exempt", own.clone());
        }
        object.set("spec", spec);
    }
    (object != *stored).then_some(object)
}

/// What is to be said of a schema; `None` if that stands there already (upstream: `presyncFlowSchemaStatus`).
fn statement(schema: &Object, name: &str, level: &str, is_found: bool, now: &str) -> Option<Object> {
    let start = format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?}");
    let (status, reason, message) = match is_found {
        true => ("False", "Found", format!("{start} and it exists")),
        false => ("True", "NotFound", format!("{start} but there is no such object")),
    };
    let conditions = schema.object("status").map(|status| status.array("conditions")).unwrap_or_default();
    let mut conditions = conditions.iter().filter_map(Value::as_object);
    let is_said = conditions.any(|condition| {
        let text = |name| condition.str(name).unwrap_or_default();
        (text("type"), text("status"), text("reason"), text("message")) == ("Dangling", status, reason, &message)
    });
    if is_said {
        return None;
    }
    let condition: Object = [
        ("type", Value::from("Dangling")),
        ("status", status.into()),
        ("lastTransitionTime", now.into()),
        ("reason", reason.into()),
        ("message", message.into()),
    ]
    .into_iter()
    .collect();
    let metadata: Object = [("name", Value::from(name))].into_iter().collect();
    let conditions: Object = [("conditions", Value::from(vec![Value::from(condition)]))].into_iter().collect();
    let members = [
        ("apiVersion", Value::from(format!("{GROUP}/v1"))),
        ("kind", "FlowSchema".into()),
        ("metadata", metadata.into()),
        ("status", conditions.into()),
    ];
    Some(members.into_iter().collect())
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

    #[test]
    fn what_an_operator_has_changed_stays_unless_it_is_mandatory() {
        let stored = |annotation: &str, generation: u8, spec: u8| {
            object(&format!(
                r#"{{"metadata":{{"generation":{generation},"annotations":{{{annotation}}}}},"spec":{{"x":{spec}}}}}"#
            ))
        };
        let yes = r#""apf.kubernetes.io/autoupdate-spec":"true""#;
        let no = r#""apf.kubernetes.io/autoupdate-spec":"false""#;
        for (name, stored, is_mandatory, want) in [
            ("as it should be", stored(yes, 1, 1), false, None),
            ("another release suggested something else", stored(yes, 1, 2), false, Some(stored(yes, 1, 1))),
            ("it is the operator's", stored(no, 2, 2), false, None),
            ("nobody says, and it was changed", stored("", 2, 2), false, Some(stored(no, 2, 2))),
            ("nobody says, and it was not", stored("", 1, 2), false, Some(stored(yes, 1, 1))),
            ("mandatory", stored(no, 2, 2), true, Some(stored(yes, 2, 1))),
            ("nonsense", stored(&no.replace("false", "maybe"), 2, 2), false, Some(stored(no, 2, 2))),
        ] {
            let object = object(r#"{"metadata":{},"spec":{"x":1}}"#);
            let wanted = BootstrapFlowControl { plural: SCHEMAS, name: "a", is_mandatory, object };
            assert_eq!(revised(&stored, &wanted), want, "{name}");
        }
    }

    #[test]
    fn what_is_said_of_a_schema_is_said_once() {
        let mut schema = object("{}");
        let said = statement(&schema, "a", "l", false, "now").expect("nothing was said");
        let message =
            "This FlowSchema references the PriorityLevelConfiguration object named \"l\" but there is no such object";
        let condition =
            said.object("status").expect("a status").array("conditions")[0].as_object().expect("one").clone();
        assert_eq!((condition.str("reason"), condition.str("message")), (Some("NotFound"), Some(message)));
        schema.set("status", said.get("status").cloned());
        assert_eq!(statement(&schema, "a", "l", false, "later"), None);
        assert!(statement(&schema, "a", "l", true, "later").is_some());
    }
}
