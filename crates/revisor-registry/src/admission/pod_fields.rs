//! Reading the parts of a pod that several plugins look at.

use revisor_object::{Object, Value};

/// The annotation of a pod that only shows what a kubelet runs by itself.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

const NONE: &Object = &Object::new();

/// The spec of a pod.
pub(super) fn spec(pod: &Object) -> &Object {
    pod.object("spec").unwrap_or(NONE)
}

/// The annotations of an object.
pub(super) fn annotations(object: &Object) -> &Object {
    object.object("metadata").and_then(|metadata| metadata.object("annotations")).unwrap_or(NONE)
}

/// The labels of an object.
pub(super) fn labels(object: &Object) -> &Object {
    object.object("metadata").and_then(|metadata| metadata.object("labels")).unwrap_or(NONE)
}

/// The elements of a list of objects.
pub(super) fn objects<'a>(object: &'a Object, list: &str) -> impl Iterator<Item = &'a Object> {
    object.array(list).iter().filter_map(Value::as_object)
}

/// The elements of a list of objects, to be changed.
pub(super) fn objects_mut<'a>(object: &'a mut Object, list: &str) -> impl Iterator<Item = &'a mut Object> {
    object.array_mut(list).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Adds to a list, which is made if there is none.
pub(super) fn append(object: &mut Object, list: &str, item: Object) {
    match object.array_mut(list) {
        Some(items) => items.push(Value::from(item)),
        None => {
            object.insert(list, vec![Value::from(item)]);
        }
    }
}

/// The text of a member; empty if there is none.
pub(super) fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.str(name).unwrap_or_default()
}
