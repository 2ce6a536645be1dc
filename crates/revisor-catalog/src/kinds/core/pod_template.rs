//! Pod templates: a template that stands alone. Its whole content is that of [`pod_spec`](crate::kinds::pod_spec).

use revisor_object::{FieldErrors, FieldPath, Object};

use crate::kinds::pod_spec::{self, PodPolicy};
use crate::{Part, Places, Strategy};

const TEMPLATE: FieldPath<'static> = FieldPath::root("template");

pub(crate) struct PodTemplates {
    pub(crate) policy: PodPolicy,
}

impl Strategy for PodTemplates {
    fn default(&self, object: &mut Object) {
        pod_spec::default_template(object.object_mut("template"), self.policy.features);
    }

    fn tracked(&self) -> Places {
        &[&["template"]]
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let empty = Object::new();
        pod_spec::validate_template(TEMPLATE, object.object("template").unwrap_or(&empty), None, self.policy)
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let empty = Object::new();
        let template = object.object("template").unwrap_or(&empty);
        pod_spec::validate_template(TEMPLATE, template, old.object("template"), self.policy)
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let Some(template) = object.object("template") else { return Vec::new() };
        pod_spec::template_warnings(TEMPLATE, template, self.policy.features)
    }
}
