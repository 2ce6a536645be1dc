//! ReplicationControllers: the first kind that kept so many pods of one template.

use revisor_object::names::NameRule;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::kinds::pod_spec::PodPolicy;
use crate::kinds::workload::{
    available_beyond_ready, beyond_replicas, is_counted, mismatch, negative, spec, status, template_labels,
    template_warnings, validate_lasting_pods, warnings_on_create,
};
use crate::kinds::{Kind, USUAL, field, pod_spec};
use crate::strategy::spec_or_status;
use crate::{Part, Places, Rules, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// What the prefix of annotations says that tell of fields that could not be converted from an earlier version.
const NOT_CONVERTED: &str = "non-convertible.kubernetes.io";

pub(super) fn kind(policy: PodPolicy) -> Kind {
    Kind {
        rules: Rules { names: NameRule::LongName, ..USUAL },
        selectable: vec![field("status.replicas", &[&["status", "replicas"]])],
        ..Kind::usual(ReplicationControllers { policy })
    }
}

pub(crate) struct ReplicationControllers {
    pub(crate) policy: PodPolicy,
}

impl Strategy for ReplicationControllers {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        let Some(template) = spec.get_mut("template").and_then(Value::as_object_mut) else { return };
        template.object_mut("spec");
        pod_spec::default_template(template, self.policy.features);
        let Some(labels) = template_labels(spec).cloned() else { return };
        if spec.object("selector").is_none_or(Object::is_empty) {
            spec.insert("selector", labels.clone());
        }
        let metadata = object.object_mut("metadata");
        if metadata.object("labels").is_none_or(Object::is_empty) {
            metadata.insert("labels", labels);
        }
    }

    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_spec(spec(object), None, self.policy)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::STATUS {
            return validate_status(status(object));
        }
        let mut errors = validate_spec(spec(object), Some(spec(old)), self.policy);
        errors.extend(validate_unconverted(object, old));
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        match old {
            None => warnings_on_create(object, self.policy.features),
            // As the original: of the two, the template that is replaced is the one that is looked at.
            Some(old) if is_counted(object, old) => template_warnings(spec(old), self.policy.features),
            Some(_) => Vec::new(),
        }
    }

    fn orphans_by_default(&self) -> bool {
        true
    }
}

fn validate_spec(spec: &Object, old: Option<&Object>, policy: PodPolicy) -> FieldErrors {
    let mut errors = negative(SPEC, spec, &["minReadySeconds", "replicas"]);
    let selector = spec.object("selector").filter(|selector| !selector.is_empty());
    if selector.is_none() {
        errors.push(FieldError::required(SPEC.child("selector"), ""));
    }
    let Some(template) = spec.object("template") else {
        errors.push(FieldError::required(SPEC.child("template"), ""));
        return errors;
    };
    if selector.is_some_and(|selector| !is_found(selector, template_labels(spec))) {
        errors.push(mismatch(spec));
    }
    let old_template = old.and_then(|old| old.object("template"));
    errors.extend(pod_spec::validate_template(SPEC.child("template"), template, old_template, policy));
    errors.extend(validate_lasting_pods(spec, "ReplicationController"));
    errors
}

/// Whether labels have all that a selector asks for.
fn is_found(selector: &Object, labels: Option<&Object>) -> bool {
    selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

/// What was not converted may not be changed.
fn validate_unconverted(object: &Object, old: &Object) -> FieldErrors {
    let annotations = old.at(&["metadata", "annotations"]).and_then(Value::as_object);
    let mut errors = FieldErrors::new();
    for (key, value) in annotations.into_iter().flat_map(Object::iter) {
        let Some(broken) = key.strip_prefix(NOT_CONVERTED).and_then(|rest| rest.strip_prefix('/')) else { continue };
        if broken.contains('/') {
            continue;
        }
        let selector = spec(object).get("selector");
        if !broken.contains("selector") {
            let mut error = FieldError::not_found(broken, value.as_str().unwrap_or_default());
            error.detail = "unknown non-convertible field".to_owned();
            errors.push(error);
        } else if selector != spec(old).get("selector") {
            let shown = selector.map_or(BadValue::Omitted, BadValue::of);
            let detail = "cannot update non-convertible selector";
            errors.push(FieldError::invalid(SPEC.child("selector"), shown, detail));
        }
    }
    errors
}

fn validate_status(status: &Object) -> FieldErrors {
    let path = FieldPath::root("status");
    let counts = ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    let mut errors = negative(path, status, &counts);
    errors.extend(beyond_replicas(path, status, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]));
    errors.extend(available_beyond_ready(path, status, "readyReplicas"));
    errors
}
