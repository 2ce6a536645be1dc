//! Whole objects on the way of a write: fitted, defaulted, prepared, validated, shown.

use std::sync::Arc;

use revisor_catalog::{Circumstances, Moment, Part, Requester, Resource, validate_metadata, validate_metadata_update};
use revisor_object::{Object, Value, parse_json};

use super::resources::all_resources;
use crate::{Choices, Generator};

const NOW: &str = "2024-01-02T03:04:05Z";

/// An object that the input decides on is made and changed. Whatever is wrong with it, nothing panics; what defaults
/// fill in stays as it is when they are filled in again; and what would be stored can be read back.
pub(super) fn write(data: &[u8]) {
    let mut choices = Choices::of_bytes(data);
    let resource = choices.of(&all_resources()).clone();
    let (types, id) = resource.typed();
    let mut generator = Generator::new(types, choices);
    let sent = generator.object(id, &resource.kind, &resource.api_version);
    let Some(mut old) = fitted(&resource, &sent) else { return };
    let circumstances = Circumstances { now: NOW, requester: Requester::default() };
    drop(resource.strategy.warnings_as_sent(&old));
    resource.prepare_create(&mut old, circumstances);
    let metadata = old.object("metadata").cloned().unwrap_or_default();
    drop(validate_metadata(&metadata, resource.namespaced, resource.rules.names));
    drop(resource.strategy.validate(&old));
    drop(resource.strategy.warnings(&old, None));
    check_shown(&resource, &old);

    for part in [Part::Whole, Part::STATUS] {
        let Some(mut new) = fitted(&resource, &generator.changed(id, &sent)) else { continue };
        resource.prepare_update(&mut new, &old, part, circumstances);
        drop(validate_metadata_update(&new.object("metadata").cloned().unwrap_or_default(), &metadata));
        drop(resource.strategy.validate_update(&new, &old, part));
        match part {
            Part::Whole => drop(resource.strategy.warnings(&new, Some(&old))),
            Part::Subresource(_) => drop(resource.strategy.subresource_warnings(&new, &old)),
        }
        drop(resource.compare(&old, &new));
        check_shown(&resource, &new);
        let mut patched = Value::Object(old.clone());
        if resource.strategic_merge_patch(&mut patched, Value::Object(new)).is_ok() {
            drop(resource.conform(&mut patched));
        }
    }
}

/// The object as the registry would go on with it; `None` if it would not.
fn fitted(resource: &Arc<Resource>, sent: &Object) -> Option<Object> {
    let text = Value::Object(sent.clone()).to_json();
    let mut value = parse_json(text.as_bytes()).ok()?.value;
    resource.conform(&mut value).ok()?;
    let Value::Object(mut object) = value else { return None };
    object.remove("kind");
    object.remove("apiVersion");
    resource.to_stored(&mut object);
    let stored = resource.working();
    stored.default(&mut object);
    let once = object.clone();
    stored.default(&mut object);
    assert_eq!(object, once, "defaults of {} change what they made of {text}", resource.kind);
    stored.complete(&mut object);
    Some(object)
}

fn check_shown(resource: &Arc<Resource>, object: &Object) {
    let stored = resource.working();
    let bytes = stored.encode(object).bytes;
    let read = parse_json(&bytes).map(|parsed| parsed.value);
    let Ok(Value::Object(read)) = read else { panic!("{} cannot be read: {bytes:?}", resource.kind) };
    let mut shown = read;
    resource.to_shown(&mut shown);
    if let Some(now) = Moment::parse(NOW) {
        drop(resource.columns.cells(&shown, now));
    }
    drop(resource.filled(&shown));
}
