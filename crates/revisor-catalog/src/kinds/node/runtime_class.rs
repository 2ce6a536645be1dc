//! Runtime classes: which handler of the node runs the containers of a pod, and what that costs.

use revisor_object::names::dns1123_label;
use revisor_object::{BadValue, ByValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value};

use crate::checks::{self, immutable, problems};
use crate::kinds::node_selectors::deprecated_label;
use crate::kinds::resource_names::{container_resource_name, is_huge_page};
use crate::kinds::{amounts, taints};
use crate::{Part, Strategy};

const HANDLER: FieldPath<'static> = FieldPath::root("handler");
const OVERHEAD: FieldPath<'static> = FieldPath::root("overhead");
const SCHEDULING: FieldPath<'static> = FieldPath::root("scheduling");

pub(crate) struct RuntimeClasses;

impl Strategy for RuntimeClasses {
    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = match object.str("handler").unwrap_or_default() {
            "" => FieldErrors::from([FieldError::required(HANDLER, "")]),
            handler => problems(HANDLER, handler, dns1123_label(handler)),
        };
        if let Some(overhead) = object.object("overhead") {
            errors.extend(validate_overhead(overhead));
        }
        if let Some(scheduling) = object.object("scheduling") {
            errors.extend(checks::labels(SCHEDULING.child("nodeSelector"), scheduling.object("nodeSelector")));
            errors.extend(validate_tolerations(scheduling.array("tolerations")));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = self.validate(object);
        errors.extend(immutable(HANDLER, object.get("handler"), old.get("handler")));
        errors
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let selector = object.at(&["scheduling", "nodeSelector"]).and_then(Value::as_object);
        let labels = selector.into_iter().flat_map(Object::iter);
        let messages = labels.filter_map(|(label, _)| deprecated_label(label));
        messages.map(|message| format!("scheduling.nodeSelector: {message}")).collect()
    }
}

/// The overhead is checked as the limits of a container, and errors call it that.
fn validate_overhead(overhead: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = OVERHEAD.child("limits");
    let fixed = || overhead.object("podFixed").into_iter().flat_map(Object::iter);
    for (name, value) in fixed() {
        let path = path.key(name);
        let quantity = amounts::amount(value);
        errors.extend(container_resource_name(path, name));
        errors.extend(amounts::of_resource(path, name, &quantity));
        if is_huge_page(name) && !amounts::is_whole_pages(name, &quantity) {
            let detail = format!("{quantity} is not positive integer multiple of {name}");
            errors.push(FieldError::invalid(path, quantity.to_string(), detail));
        }
    }
    let has_compute = fixed().any(|(name, _)| matches!(name, "cpu" | "memory"));
    if !has_compute && fixed().any(|(name, _)| is_huge_page(name)) {
        errors.push(FieldError::forbidden(OVERHEAD, "HugePages require cpu or memory"));
    }
    errors
}

fn validate_tolerations(tolerations: &[Value]) -> FieldErrors {
    let path = SCHEDULING.child("tolerations");
    let mut errors = taints::validate_tolerations(path, tolerations, false);
    let mut seen = Seen::default();
    for (at, toleration) in tolerations.iter().filter_map(Value::as_object).enumerate() {
        if !seen.is_new(["key", "operator", "value", "effect"].map(|name| toleration.get(name).map(ByValue))) {
            errors.push(FieldError::duplicate(path.index(at), BadValue::of(toleration)));
        }
    }
    errors
}
