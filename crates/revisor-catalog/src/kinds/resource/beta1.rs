//! How `v1beta1` shows claims and slices: requests had no `exactly` around what they ask for, and devices had a
//! `basic` around what they are.

use std::sync::Arc;

use revisor_object::{Object, Value};

use crate::conversion::{Conversion, SameShape};

/// What stands inside of `exactly`.
const EXACTLY: &[&str] =
    &["adminAccess", "allocationMode", "capacity", "count", "deviceClassName", "selectors", "tolerations"];

/// The conversion of a resource of `v1beta1`.
pub(crate) fn conversion(plural: &str) -> Arc<dyn Conversion> {
    match plural {
        "resourceclaims" => Arc::new(Claims),
        "resourceclaimtemplates" => Arc::new(Templates),
        "resourceslices" => Arc::new(Slices),
        _ => Arc::new(SameShape),
    }
}

struct Claims;

impl Conversion for Claims {
    fn to_stored(&self, object: &mut Object) {
        for_each(object.get_mut("spec"), &["devices"], "requests", wrap_request);
    }

    fn to_shown(&self, object: &mut Object) {
        for_each(object.get_mut("spec"), &["devices"], "requests", unwrap_request);
    }
}

struct Templates;

impl Conversion for Templates {
    fn to_stored(&self, object: &mut Object) {
        for_each(object.get_mut("spec"), &["spec", "devices"], "requests", wrap_request);
    }

    fn to_shown(&self, object: &mut Object) {
        for_each(object.get_mut("spec"), &["spec", "devices"], "requests", unwrap_request);
    }
}

struct Slices;

impl Conversion for Slices {
    fn to_stored(&self, object: &mut Object) {
        for_each(object.get_mut("spec"), &[], "devices", |device| {
            let name = device.get("name").cloned();
            let basic = device.remove("basic");
            *device = match basic {
                Some(Value::Object(basic)) => basic,
                _ => Object::new(),
            };
            device.set("name", name);
        });
    }

    fn to_shown(&self, object: &mut Object) {
        for_each(object.get_mut("spec"), &[], "devices", |device| {
            let name = device.remove("name");
            let basic = std::mem::take(device);
            device.set("name", name);
            device.insert("basic", basic);
        });
    }
}

/// Changes each object of a list, if there is one at the end of the way.
fn for_each(root: Option<&mut Value>, way: &[&str], list: &str, change: impl Fn(&mut Object)) {
    let mut holder = root;
    for step in way {
        holder = holder.and_then(Value::as_object_mut).and_then(|object| object.get_mut(step));
    }
    let Some(Value::Object(holder)) = holder else { return };
    holder.array_mut(list).into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

fn wrap_request(request: &mut Object) {
    // An empty class is as good as none.
    if request.str("deviceClassName") == Some("") {
        request.remove("deviceClassName");
    }
    // A request that asks for nothing itself has alternatives, or is none at all (`hasAnyMainRequestFieldsSet`).
    if !EXACTLY.iter().any(|name| request.contains(name)) {
        return;
    }
    let mut exactly = Object::new();
    for name in EXACTLY {
        if let Some(value) = request.remove(name) {
            exactly.insert(name, value);
        }
    }
    request.insert("exactly", exactly);
}

fn unwrap_request(request: &mut Object) {
    if let Some(Value::Object(exactly)) = request.remove("exactly") {
        for (name, value) in exactly.iter() {
            request.insert(name, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn every_object_comes_back() {
        for (plural, shown, stored) in [
            (
                "resourceclaims",
                r#"{"spec":{"devices":{"requests":[{"count":1,"deviceClassName":"c","name":"r"},{"firstAvailable":[{"name":"a"}],"name":"s"}]}}}"#,
                r#"{"spec":{"devices":{"requests":[{"exactly":{"count":1,"deviceClassName":"c"},"name":"r"},{"firstAvailable":[{"name":"a"}],"name":"s"}]}}}"#,
            ),
            // What asks for nothing is refused for that, and not for a class that it does not name.
            (
                "resourceclaims",
                r#"{"spec":{"devices":{"requests":[{"name":"r"}]}}}"#,
                r#"{"spec":{"devices":{"requests":[{"name":"r"}]}}}"#,
            ),
            (
                "resourceclaimtemplates",
                r#"{"spec":{"spec":{"devices":{"requests":[{"deviceClassName":"c","name":"r"}]}}}}"#,
                r#"{"spec":{"spec":{"devices":{"requests":[{"exactly":{"deviceClassName":"c"},"name":"r"}]}}}}"#,
            ),
            (
                "resourceslices",
                r#"{"spec":{"devices":[{"basic":{"attributes":{"x":{"int":1}}},"name":"a"}]}}"#,
                r#"{"spec":{"devices":[{"attributes":{"x":{"int":1}},"name":"a"}]}}"#,
            ),
        ] {
            let conversion = conversion(plural);
            let mut object = object(shown);
            conversion.to_stored(&mut object);
            assert_eq!(Value::from(object.clone()).to_json(), stored, "{plural}");
            conversion.to_shown(&mut object);
            assert_eq!(Value::from(object).to_json(), shown, "{plural}");
        }
    }
}
