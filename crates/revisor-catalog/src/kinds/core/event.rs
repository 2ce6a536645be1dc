//! Core events: notes about other objects. Those with an `eventTime` are of the newer sort and held to more.

use revisor_object::names::{dns1123_subdomain, qualified_name};
use revisor_object::{FieldError, FieldPath, Object};

use crate::{Part, Strategy};

const MAX_REPORTING_INSTANCE: usize = 128;
const MAX_ACTION: usize = 128;
const MAX_REASON: usize = 128;
const MAX_MESSAGE: usize = 1024;

pub(crate) struct Events;

impl Strategy for Events {
    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let text = |name| object.str(name).unwrap_or_default();
        let namespace = object.object("metadata").and_then(|metadata| metadata.str("namespace")).unwrap_or_default();
        let about = object.object("involvedObject").and_then(|about| about.str("namespace")).unwrap_or_default();
        let is_new = object.contains("eventTime");
        let agrees = match (is_new, about) {
            (false, "") => matches!(namespace, "" | "default"),
            (false, about) => about == namespace,
            (true, "") => matches!(namespace, "default" | "kube-system"),
            (true, _) => true,
        };
        if !agrees {
            let involved = FieldPath::root("involvedObject");
            let detail = "does not match event.namespace";
            errors.push(FieldError::invalid(involved.child("namespace"), about, detail));
        }
        if is_new {
            let reporter = FieldPath::root("reportingComponent");
            if text("reportingComponent").is_empty() {
                errors.push(FieldError::required(reporter, ""));
            }
            for problem in qualified_name(text("reportingComponent")) {
                errors.push(FieldError::invalid(reporter, text("reportingComponent"), problem));
            }
            for (name, most, is_required) in [
                ("reportingInstance", MAX_REPORTING_INSTANCE, true),
                ("action", MAX_ACTION, true),
                ("reason", MAX_REASON, true),
                ("message", MAX_MESSAGE, false),
            ] {
                let path = FieldPath::root(name);
                if is_required && text(name).is_empty() {
                    errors.push(FieldError::required(path, ""));
                }
                if text(name).len() > most {
                    errors.push(FieldError::invalid(path, "", format!("can have at most {most} characters")));
                }
            }
        }
        for problem in dns1123_subdomain(namespace) {
            errors.push(FieldError::invalid(FieldPath::root("namespace"), namespace, problem));
        }
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, _: Part<'_>) -> Vec<FieldError> {
        self.validate(object)
    }
}
