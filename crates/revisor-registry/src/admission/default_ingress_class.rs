//! Gives a new Ingress that names no class the one that is marked as the default: the newest, if there are several.

use revisor_object::{Object, Value};

use super::{Admission, Attributes, Operation};
use crate::{Decoded, Registry, RegistryError};

/// Marks a class as the default.
const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// The older way to name a class.
const CLASS: &str = "kubernetes.io/ingress.class";

pub(super) struct DefaultIngressClass;

impl Admission for DefaultIngressClass {
    fn name(&self) -> &'static str {
        "DefaultIngressClass"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        object: &mut Object,
    ) -> Result<(), RegistryError> {
        let names_class = |object: &Object| {
            object.at(&["spec", "ingressClassName"]).is_some()
                || object.at(&["metadata", "annotations", CLASS]).is_some()
        };
        let is_new = attributes.is_about("networking.k8s.io", "ingresses") && attributes.operation == Operation::Create;
        if is_new
            && !names_class(object)
            && let Some(class) = default_class(registry)
        {
            object.object_mut("spec").insert("ingressClassName", class);
        }
        Ok(())
    }
}

fn default_class(registry: &Registry) -> Option<String> {
    let classes = registry.known("networking.k8s.io", "v1", "ingressclasses")?;
    let snapshot = registry.cache_of(classes).snapshot();
    let marked = snapshot.range(&classes.prefix, None).filter_map(|item| {
        let class = Decoded::stored(item.bytes()).ok()?;
        let text = |path: &[&str]| class.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_default = text(&["metadata", "annotations", DEFAULT]) == "true";
        is_default.then(|| (text(&["metadata", "creationTimestamp"]), text(&["metadata", "name"])))
    });
    // Of those that are as new as each other the first by name; they come in that order.
    let newest = marked.reduce(|best, next| if next.0 > best.0 { next } else { best });
    newest.map(|(_, name)| name)
}
