//! [`Selection`]: which objects of a collection a request is about, by labels and fields.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use revisor_cache::{Filter, Item, Trigger, TriggerValue, View};
use revisor_catalog::{CustomField, Resource};
use revisor_object::{FieldOperator, FieldSelector, LabelSelector};
use sonic_rs::{JsonValueTrait, LazyValue};

use crate::{RegistryError, present_item};

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// Label and field selectors of one request, checked against the resource.
#[derive(Debug, Clone)]
pub struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Reads both selectors; an empty text selects everything.
    pub fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Selection, RegistryError> {
        Selection::parse_between(resource, labels, fields, || Ok(()))
    }

    /// The same, with a check that comes when the selectors are known to be some, and before the fields are known to be
    /// some of the resource.
    pub fn parse_between(
        resource: &Resource,
        labels: &str,
        fields: &str,
        check: impl FnOnce() -> Result<(), RegistryError>,
    ) -> Result<Selection, RegistryError> {
        let bad = |error: &dyn std::fmt::Display| RegistryError::BadRequest(error.to_string());
        let labels: LabelSelector = labels.parse().map_err(|error| bad(&error))?;
        let mut fields: FieldSelector = fields.parse().map_err(|error| bad(&error))?;
        check()?;
        for term in fields.terms_mut() {
            let mut known = resource.selectable.iter();
            if let Some(field) = known.find(|field| !term.field.is_empty() && field.older_name == term.field) {
                field.name.clone_into(&mut term.field);
            }
        }
        for term in fields.terms() {
            let is_known = match term.field.as_str() {
                NAME => true,
                NAMESPACE => resource.selects_namespace,
                name => {
                    resource.selectable.iter().any(|field| field.name == name) || custom_field(resource, name).is_some()
                }
            };
            if !is_known {
                return Err(RegistryError::BadRequest(unknown_field(resource, &term.field)));
            }
        }
        Ok(Selection { labels, fields })
    }

    /// The selection of the objects that have such labels.
    pub(crate) fn of_labels(labels: &LabelSelector) -> Selection {
        Selection { labels: labels.clone(), fields: FieldSelector::everything() }
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether objects have to be looked into, so that only those can be told apart that are shown.
    pub(crate) fn reads_objects(&self) -> bool {
        let is_read = |field: &str| field != NAME && field != NAMESPACE;
        !self.labels.is_everything() || self.fields.terms().iter().any(|term| is_read(&term.field))
    }

    /// Whether it goes with a name that a path asks for: it must not speak of fields, or must select this name.
    pub(crate) fn suits_name(&self, name: &str) -> bool {
        self.fields.is_everything() || self.exact_name() == Some(name)
    }

    /// The one name that can be selected, if there is only one.
    pub(crate) fn exact_name(&self) -> Option<&str> {
        self.fields.exact(NAME)
    }

    /// The selection as the cache wants it; `None` where it selects everything.
    pub(crate) fn filter(&self, resource: &Arc<Resource>) -> Option<Filter> {
        if self.is_everything() {
            return None;
        }
        let (selection, resource) = (self.clone(), resource.clone());
        Some(Arc::new(move |item| selection.matches(&resource, item)))
    }

    /// The value that every selected object has of some field, if the selection names one. Of what custom objects show
    /// there is none, because their versions differ in it.
    pub(crate) fn trigger(&self, resource: &Arc<Resource>) -> Option<Trigger> {
        let stored = resource.storage().clone();
        let mut exact = self.fields.terms().iter().filter(|term| term.operator == FieldOperator::Equals);
        let (at, value) = exact.find_map(|term| Some((stored_position(resource, &term.field)?, &*term.value)))?;
        let name = stored.selectable.get(at)?.name;
        let read: TriggerValue = Arc::new(move |item| {
            let view = item.view(|bytes| read_view(&stored, bytes));
            view.fields.get(at).map_or("", |value| &**value)
        });
        Some(Trigger { name, value: value.into(), read })
    }

    /// Whether an object of a resource is selected that may show other labels than are stored: by what is shown of it.
    pub(crate) fn admits(&self, resource: &Resource, item: &Item, shown: &Bytes) -> bool {
        let (namespace, name) = place(resource, item.key().as_str());
        let fields_match = self.fields.matches(|field| match field {
            NAME => Some(Cow::Borrowed(name)),
            NAMESPACE => Some(Cow::Borrowed(namespace)),
            other => custom_value(custom_field(resource, other)?, shown),
        });
        fields_match && (self.labels.is_everything() || self.admits_labels(&read_view(resource, shown)))
    }

    fn admits_labels(&self, view: &View) -> bool {
        self.labels.matches(|key| {
            let at = view.labels.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
            Some(&*view.labels[at].1)
        })
    }

    /// Whether an object of a resource is selected, by what is stored of it.
    pub(crate) fn matches(&self, resource: &Arc<Resource>, item: &Item) -> bool {
        let (namespace, name) = place(resource, item.key().as_str());
        // Versions of one resource share its items, so all read them in one way.
        let stored = resource.storage();
        let view = || item.view(|bytes| read_view(stored, bytes));
        let fields_match = self.fields.is_everything()
            || self.fields.matches(|field| match field {
                NAME => Some(Cow::Borrowed(name)),
                NAMESPACE => Some(Cow::Borrowed(namespace)),
                other => {
                    if let Some(field) = custom_field(resource, other) {
                        // Versions and states of a definition differ in what can be selected, so no view is kept.
                        return custom_value(field, &present_item(resource, item));
                    }
                    let at = stored_position(resource, other)?;
                    view().fields.get(at).map(|value| Cow::Borrowed(&**value))
                }
            });
        fields_match && (self.labels.is_everything() || self.admits_labels(view()))
    }
}

/// What a field selector compares.
fn custom_value<'v>(field: &CustomField, shown: &[u8]) -> Option<Cow<'v, str>> {
    sonic_rs::get(shown, &field.path).ok().map(|value| Cow::Owned(text(&value)))
}

fn custom_field<'r>(resource: &'r Resource, name: &str) -> Option<&'r CustomField> {
    resource.custom()?.fields.iter().find(|field| field.name == name)
}

/// Where the value of a field stands in the view of what is stored.
fn stored_position(resource: &Arc<Resource>, name: &str) -> Option<usize> {
    let field = resource.selectable.iter().find(|field| field.name == name)?;
    resource.storage().selectable.iter().position(|known| known.paths == field.paths)
}

/// The namespace and name that a key stands for.
pub(crate) fn place<'k>(resource: &Resource, key: &'k str) -> (&'k str, &'k str) {
    let place = key.strip_prefix(&*resource.prefix).unwrap_or(key);
    if resource.namespaced { place.split_once('/').unwrap_or(("", place)) } else { ("", place) }
}

fn unknown_field(resource: &Resource, field: &str) -> String {
    match (resource.group.as_str(), resource.kind.as_str()) {
        // Two kinds have words of their own (upstream: `addConversionFuncs` of their groups).
        ("batch", "Job") => format!("field label {field:?} not supported for Job"),
        ("resource.k8s.io", kind @ "ResourceSlice") => {
            format!("field label not supported for {}, Kind={kind}: {field}", resource.api_version)
        }
        // Kinds without selectable fields of their own say what there is; the others only say what there is not.
        _ if resource.selectable.is_empty() && resource.custom().is_none() => {
            format!("{field:?} is not a known field selector: only \"{NAME}\", \"{NAMESPACE}\"")
        }
        _ => format!("field label not supported: {field}"),
    }
}

/// Reads the labels and the selectable fields of an encoded object, and nothing else of it.
fn read_view(resource: &Resource, bytes: &[u8]) -> View {
    let mut labels: Vec<(Box<str>, Box<str>)> = Vec::new();
    if let Ok(object) = sonic_rs::get(bytes, ["metadata", "labels"]) {
        for (key, value) in sonic_rs::to_object_iter(object.as_raw_str()).flatten() {
            labels.push(((*key).into(), text(&value).into()));
        }
    }
    labels.sort();
    let fields = resource
        .selectable
        .iter()
        .map(|field| {
            let values = field.paths.iter().filter_map(|path| sonic_rs::get(bytes, *path).ok());
            let value = values.map(|value| text(&value)).find(|value| !value.is_empty());
            value.map_or_else(|| field.absent.into(), Into::into)
        })
        .collect();
    View { labels, fields }
}

fn text(value: &LazyValue<'_>) -> String {
    value.as_str().map_or_else(|| value.as_raw_str().to_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_catalog::Catalog;

    #[test]
    fn labels_and_fields_are_read_from_the_bytes() {
        let catalog = Catalog::default();
        let events = catalog.resource("", "v1", "events").expect("is there");
        let bytes =
            br#"{"metadata":{"labels":{"b":"2","a":"x\"y"}},"involvedObject":{"kind":"Pod"},"reportingComponent":"c"}"#;
        let view = read_view(events, bytes);
        assert_eq!(view.labels, [("a".into(), "x\"y".into()), ("b".into(), "2".into())]);
        let field = |name| {
            let at = events.selectable.iter().position(|field| field.name == name).expect("is selectable");
            &*view.fields[at]
        };
        assert_eq!((field("involvedObject.kind"), field("source"), field("reason")), ("Pod", "c", ""));
    }

    #[test]
    fn whoever_asks_for_one_value_of_a_field_is_triggered_by_it() {
        let catalog = Catalog::default();
        for (group, plural, selector, want) in [
            ("", "pods", "spec.nodeName=a", Some(("spec.nodeName", "a"))),
            ("", "pods", "metadata.namespace=b,spec.nodeName==a,status.phase=Running", Some(("spec.nodeName", "a"))),
            ("", "pods", "spec.host=a", Some(("spec.nodeName", "a"))),
            ("", "pods", "spec.nodeName!=a", None),
            ("", "pods", "metadata.name=a", None),
            ("", "pods", "", None),
            ("", "events", "reason=Killing", Some(("reason", "Killing"))),
        ] {
            let resource = catalog.resource(group, "v1", plural).expect("is there");
            let trigger = Selection::parse(resource, "", selector).expect("is known").trigger(resource);
            let found = trigger.as_ref().map(|trigger| (trigger.name, &*trigger.value));
            assert_eq!(found, want, "{plural} {selector}");
        }
    }

    #[test]
    fn fields_that_a_kind_does_not_have_are_refused() {
        let catalog = Catalog::default();
        for (plural, selector, is_known) in [
            ("configmaps", "metadata.name=a", true),
            ("configmaps", "metadata.namespace=a", true),
            ("configmaps", "type=a", false),
            ("secrets", "type=a", true),
            ("namespaces", "status.phase=Active", true),
            ("namespaces", "metadata.namespace=a", false),
        ] {
            let resource = catalog.resource("", "v1", plural).expect("is there");
            assert_eq!(Selection::parse(resource, "", selector).is_ok(), is_known, "{plural} {selector}");
        }
    }

    #[test]
    fn kinds_say_in_their_own_words_what_cannot_be_selected() {
        let catalog = Catalog::default();
        for (group, plural, want) in [
            ("", "secrets", "field label not supported: x"),
            ("apps", "deployments", r#""x" is not a known field selector: only "metadata.name", "metadata.namespace""#),
            ("batch", "jobs", r#"field label "x" not supported for Job"#),
            (
                "resource.k8s.io",
                "resourceslices",
                "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x",
            ),
        ] {
            let resource = catalog.resource(group, "v1", plural).expect("is there");
            assert_eq!(unknown_field(resource, "x"), want, "{plural}");
        }
    }
}
