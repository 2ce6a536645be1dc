//! Namespaces: a deletion only marks them; they go when `spec.finalizers` is empty, which `/finalize` sees to.

use revisor_object::names::{builtin_kind_finalizer, qualified_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{keep, put_back};
use crate::strategy::spec_or_status;
use crate::{Circumstances, Part, Places, Strategy};

/// The finalizer that stands for "the namespace still has content".
const KUBERNETES: &str = "kubernetes";

/// The label by which selectors find a namespace by name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(crate) struct Namespaces;

impl Strategy for Namespaces {
    fn default(&self, object: &mut Object) {
        set_name_label(object);
        let status = object.object_mut("status");
        if status.str("phase").unwrap_or_default().is_empty() {
            status.insert("phase", "Active");
        }
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn prepare_create(&self, object: &mut Object, _: Circumstances<'_>) {
        let active: Object = [("phase", Value::from("Active"))].into_iter().collect();
        object.insert("status", active);
        let mut finalizers = spec_finalizers(object).to_vec();
        if !finalizers.contains(&Value::from(KUBERNETES)) {
            finalizers.push(Value::from(KUBERNETES));
            object.object_mut("spec").insert("finalizers", finalizers);
        }
        // Once more: the name may have been generated since the defaults were set.
        set_name_label(object);
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, _: Circumstances<'_>) {
        put_back(object, old, self.untouched(part));
        if part == Part::Whole {
            // Its finalizers are written through `finalize`; who tries to change them here is recorded all the same.
            keep(object, old, &["spec"]);
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let spec = FieldPath::root("spec");
        validate_spec_finalizers(object, |_| spec.child("finalizers").to_string())
    }

    fn validate_update(&self, object: &Object, _: &Object, part: Part<'_>) -> FieldErrors {
        match part {
            Part::Whole => self.validate(object),
            Part::STATUS => validate_phase(object),
            Part::Subresource(_) => validate_spec_finalizers(object, |at| format!("spec.finalizers[{at}]")),
        }
    }

    fn marks_deleted(&self) -> bool {
        true
    }

    fn mark_deleted(&self, object: &mut Object) {
        object.object_mut("status").insert("phase", "Terminating");
    }

    fn is_held(&self, object: &Object) -> bool {
        !spec_finalizers(object).is_empty()
    }
}

fn spec_finalizers(object: &Object) -> &[Value] {
    object.object("spec").map(|spec| spec.array("finalizers")).unwrap_or_default()
}

fn set_name_label(object: &mut Object) {
    let name = object.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default().to_owned();
    if !name.is_empty() {
        object.object_mut("metadata").object_mut("labels").insert(NAME_LABEL, name);
    }
}

fn validate_spec_finalizers(object: &Object, path: impl Fn(usize) -> String) -> FieldErrors {
    let names = spec_finalizers(object).iter().filter_map(Value::as_str).enumerate();
    names
        .flat_map(|(at, name)| {
            let problems = qualified_name(name).into_iter().chain(builtin_kind_finalizer(name));
            problems.map(|problem| FieldError::invalid(path(at), name, problem)).collect::<Vec<_>>()
        })
        .collect()
}

fn validate_phase(object: &Object) -> FieldErrors {
    let phase = object.at(&["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
    let is_marked = object.at(&["metadata", "deletionTimestamp"]).is_some();
    let (wanted, detail) = if is_marked {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    // The capital letter is the original's.
    (phase != wanted).then(|| FieldError::invalid("status.Phase", phase, detail)).into_iter().collect()
}
