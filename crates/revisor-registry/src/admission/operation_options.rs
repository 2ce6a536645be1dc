//! [`OperationOptions`]: the options of an operation as reviews and expressions show them.
//!
//! Whatever a client sends, the chain sees the options of what is done: a patch that makes an object has CreateOptions,
//! one that changes it has UpdateOptions.

use revisor_object::{Object, Value};

use crate::DeleteOptions;

/// The version of all options.
const API_VERSION: &str = "meta.k8s.io/v1";

/// The options of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OperationOptions<'a> {
    /// Of one that has none.
    None,
    /// Of one that makes an object.
    Create(SentOptions<'a>),
    /// Of one that changes it.
    Update(SentOptions<'a>),
    /// Of one that deletes it.
    Delete(&'a DeleteOptions),
}

/// What the query of a write says, as it says it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SentOptions<'a> {
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// In whose name managed fields are to be kept; empty if it is not said.
    pub field_manager: &'a str,
    /// What is to be done about odd fields; empty if it is not said.
    pub field_validation: &'a str,
}

impl OperationOptions<'_> {
    /// The options as an object with its type; `None` if there are none.
    pub(crate) fn to_object(self) -> Option<Object> {
        let (kind, mut object) = match self {
            OperationOptions::None => return None,
            OperationOptions::Create(sent) => ("CreateOptions", sent.to_object()),
            OperationOptions::Update(sent) => ("UpdateOptions", sent.to_object()),
            OperationOptions::Delete(options) => ("DeleteOptions", options.to_object()),
        };
        object.insert("kind", kind);
        object.insert("apiVersion", API_VERSION);
        Some(object)
    }
}

impl SentOptions<'_> {
    fn to_object(self) -> Object {
        let mut object = Object::new();
        object.set("dryRun", dry_run(self.dry_run));
        for (name, text) in [("fieldManager", self.field_manager), ("fieldValidation", self.field_validation)] {
            object.set(name, (!text.is_empty()).then(|| Value::from(text)));
        }
        object
    }
}

impl DeleteOptions {
    fn to_object(&self) -> Object {
        let mut object = Object::new();
        object.set("dryRun", dry_run(self.dry_run));
        object.set("gracePeriodSeconds", self.grace_period_seconds.map(Value::from));
        object.set("orphanDependents", self.orphan_dependents.map(Value::from));
        object.set("propagationPolicy", self.propagation_policy.as_deref().map(Value::from));
        let mut preconditions = Object::new();
        preconditions.set("uid", self.preconditions.uid.as_deref().map(Value::from));
        preconditions.set("resourceVersion", self.preconditions.resource_version.as_deref().map(Value::from));
        object.set("preconditions", (!preconditions.is_empty()).then(|| Value::from(preconditions)));
        object
    }
}

fn dry_run(is_dry_run: bool) -> Option<Value> {
    is_dry_run.then(|| Value::from(vec![Value::from("All")]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preconditions;

    #[test]
    fn options_are_shown_as_they_were_sent() {
        let sent = SentOptions { dry_run: true, field_manager: "m", field_validation: "Strict" };
        let delete = DeleteOptions {
            grace_period_seconds: Some(0),
            preconditions: Preconditions { uid: Some("u".to_owned()), resource_version: None },
            ..DeleteOptions::default()
        };
        for (options, want) in [
            (OperationOptions::None, None),
            (
                OperationOptions::Create(sent),
                Some(
                    r#"{"apiVersion":"meta.k8s.io/v1","dryRun":["All"],"fieldManager":"m","fieldValidation":"Strict","kind":"CreateOptions"}"#,
                ),
            ),
            (
                OperationOptions::Update(SentOptions::default()),
                Some(r#"{"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}"#),
            ),
            (
                OperationOptions::Delete(&delete),
                Some(
                    r#"{"apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":0,"kind":"DeleteOptions","preconditions":{"uid":"u"}}"#,
                ),
            ),
        ] {
            let shown = options.to_object().map(|object| Value::Object(object).to_json());
            assert_eq!(shown.as_deref(), want);
        }
    }
}
