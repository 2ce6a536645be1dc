//! Tables: what a person wants to see of objects, in columns. One row an object, written straight into the answer.
//!
//! To print an object costs far more than to copy it. So the row of an object of the cache is printed once and remembered
//! beside it, for each shape in which it is shown; what changes in it as time goes by, the ages, is filled in when it is written.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use revisor_cache::Item;
use revisor_catalog::{Columns, Moment, Resource, TimedText};
use revisor_object::{FieldError, FieldPath, Object, Status, Value, parse_json, push_json_value};
use revisor_registry::present_item;

use crate::negotiate::MetaVersion;
use crate::raw_json;
use crate::representation::as_json;

/// The annotation of the bookmark that ends the initial events. Its row always has an object, or nobody could see it.
pub(crate) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What the rows of a table include of their objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    /// What the query parameter `includeObject` asks for.
    pub(crate) fn parse(text: &str) -> Result<Include, Box<Status>> {
        match text {
            "None" => Ok(Include::Nothing),
            "" | "Metadata" => Ok(Include::Metadata),
            "Object" => Ok(Include::Object),
            other => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid(FieldPath::root("includeObject"), other, detail);
                Err(Box::new(Status::bad_request(format!("Unable to convert to Table as requested: {error}"))))
            }
        }
    }
}

/// How rows are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) version: MetaVersion,
    pub(crate) include: Include,
    /// Ages are reckoned from here.
    pub(crate) now: Moment,
}

/// Everything before the list of rows. `columns` are `null` where the client has them already.
pub(crate) fn head(version: MetaVersion, metadata: &str, columns: &str) -> String {
    format!(
        "{{\"kind\":\"Table\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"columnDefinitions\":{columns},\"rows\":",
        version.api_version()
    )
}

/// A table of one object.
pub(crate) fn of_one(rows: Rows, resource: &Resource, object: &[u8], with_columns: bool) -> BytesMut {
    let metadata = raw_json::member(object, "metadata");
    let parsed = parse(object, metadata.clone());
    let version = parsed.at(&["metadata", "resourceVersion"]).and_then(Value::as_str);
    let of_table: Object = version.map(|version| ("resourceVersion", Value::from(version))).into_iter().collect();
    let of_part = columns_of_part(resource, &parsed);
    let columns = of_part.as_ref().unwrap_or(&resource.columns);
    let definitions = if with_columns { columns.definitions() } else { "null" };
    let head = head(rows.version, &Value::from(of_table).to_json(), definitions);
    let mut table = BytesMut::with_capacity(head.len() + object.len() + 64);
    table.put_slice(head.as_bytes());
    table.put_u8(b'[');
    table.put_slice(front(columns, &parsed, rows.now).as_bytes());
    rows.push_object(resource, object, metadata, ends_initial_events(&parsed), &mut table);
    table.put_slice(b"]}");
    table
}

impl Rows {
    /// Appends the row of one object.
    pub(crate) fn push(&self, resource: &Resource, object: &[u8], out: &mut BytesMut) {
        let metadata = raw_json::member(object, "metadata");
        let parsed = parse(object, metadata.clone());
        out.put_slice(front(&resource.columns, &parsed, self.now).as_bytes());
        self.push_object(resource, object, metadata, ends_initial_events(&parsed), out);
    }

    /// Appends the row of an object of the cache.
    pub(crate) fn push_item(&self, resource: &Resource, item: &Item, out: &mut BytesMut) {
        self.push_shown(resource, item, &as_json(&present_item(resource, item)), out);
    }

    /// Appends the row of an object of the cache, which is shown so.
    pub(crate) fn push_shown(&self, resource: &Resource, item: &Item, shown: &Bytes, out: &mut BytesMut) {
        if let Some(Some(row)) = item.recall::<Option<Row>>(resource.shape)
            && row.is_of(shown)
        {
            return self.push_row(resource, row, shown, out);
        }
        match item.remember(resource.shape, || Row::of(resource, shown)).as_deref() {
            Some(Some(row)) if row.is_of(shown) => self.push_row(resource, row, shown, out),
            _ => self.push(resource, shown, out),
        }
    }

    fn push_row(&self, resource: &Resource, row: &Row, shown: &[u8], out: &mut BytesMut) {
        // Writing to memory does not fail.
        let _ = row.front.write(self.now, out);
        self.push_object(resource, shown, row.metadata.clone(), row.ends_initial_events, out);
    }

    /// Appends the end of a row: what it includes of its object.
    fn push_object(
        &self,
        resource: &Resource,
        object: &[u8],
        metadata: Option<Range<usize>>,
        ends_events: bool,
        out: &mut BytesMut,
    ) {
        match self.include {
            Include::Object => out.put_slice(object),
            Include::Nothing if !ends_events => out.put_slice(b"null"),
            Include::Nothing | Include::Metadata => {
                push_metadata_at(self.version, Some(resource), object, metadata, out);
            }
        }
        out.put_slice(b"}");
    }
}

/// What is remembered of the row of an object of the cache.
struct Row {
    /// What it is the row of. Who converts objects may do it otherwise the next time.
    of: Bytes,
    /// Everything before what the row includes of its object.
    front: TimedText,
    /// Where the object's metadata stand in its text.
    metadata: Option<Range<usize>>,
    ends_initial_events: bool,
}

impl Row {
    /// `None` for objects that have to be printed anew each time.
    fn of(resource: &Resource, object: &Bytes) -> Option<Row> {
        let metadata = raw_json::member(object, "metadata");
        let parsed = parse(object, metadata.clone());
        let front = TimedText::of(|now| front(&resource.columns, &parsed, now))?;
        Some(Row { of: object.clone(), front, metadata, ends_initial_events: ends_initial_events(&parsed) })
    }

    /// Whether it is the row of what is shown now.
    fn is_of(&self, shown: &Bytes) -> bool {
        (self.of.as_ptr() == shown.as_ptr() && self.of.len() == shown.len()) || self.of == shown
    }
}

/// The first byte of what is remembered of the row of an object, for those who want it in the processor's cache.
pub(crate) fn first_byte_of_row(resource: &Resource, item: &Item) -> Option<u8> {
    item.recall::<Option<Row>>(resource.shape)?.as_ref()?.front.text().bytes().next()
}

/// The columns of what a subresource shows, where that is no object of the resource: of all such kinds, only scales have
/// columns of their own. Those of custom objects are of the same names and other types.
fn columns_of_part(resource: &Resource, shown: &Object) -> Option<Columns> {
    let is_scale = shown.str("kind") == Some("Scale") && resource.kind != "Scale";
    let group = if resource.custom().is_some() { "apiextensions.k8s.io" } else { "autoscaling" };
    is_scale.then(|| Columns::of(group, "scales"))
}

/// Everything in a row before what it includes of its object.
fn front(columns: &Columns, parsed: &Object, now: Moment) -> String {
    let mut front = String::from("{\"cells\":");
    let mut cells = Vec::new();
    push_json_value(&Value::Array(columns.cells(parsed, now)), &mut cells);
    front.push_str(&String::from_utf8_lossy(&cells));
    if let Some(completion) = columns.completion(parsed) {
        front.push_str(",\"conditions\":[{\"type\":\"Completed\",\"status\":\"True\",\"reason\":\"");
        front.push_str(completion.reason);
        front.push_str("\",\"message\":\"");
        front.push_str(completion.message);
        front.push_str("\"}]");
    }
    front.push_str(",\"object\":");
    front
}

fn ends_initial_events(object: &Object) -> bool {
    object.at(&["metadata", "annotations", INITIAL_EVENTS_END]).and_then(Value::as_str) == Some("true")
}

/// Appends an object that shows nothing but the metadata of this one.
pub(crate) fn push_metadata(version: MetaVersion, resource: Option<&Resource>, object: &[u8], out: &mut BytesMut) {
    push_metadata_at(version, resource, object, raw_json::member(object, "metadata"), out);
}

/// The metadata in the text of an object, where nothing else is shown of it.
pub(crate) fn metadata_of<'a>(resource: Option<&Resource>, object: &'a [u8]) -> Cow<'a, [u8]> {
    match raw_json::member(object, "metadata") {
        Some(metadata) => alone(resource, &object[metadata]),
        None => Cow::Borrowed(b"{}"),
    }
}

/// Metadata without the annotations that only the whole object shows.
fn alone<'a>(resource: Option<&Resource>, metadata: &'a [u8]) -> Cow<'a, [u8]> {
    let mut shown = Cow::Borrowed(metadata);
    for name in resource.map(Resource::converted_annotations).unwrap_or_default() {
        let Some(annotations) = raw_json::member(&shown, "annotations") else { break };
        if let Some(rest) = raw_json::without(&shown, annotations, name) {
            shown = Cow::Owned(rest);
        }
    }
    let is_empty = |text: &[u8]| raw_json::member(text, "annotations").is_some_and(|at| &text[at] == b"{}");
    match shown {
        Cow::Owned(text) if is_empty(&text) => {
            Cow::Owned(raw_json::without(&text, 0..text.len(), "annotations").unwrap_or(text))
        }
        shown => shown,
    }
}

fn push_metadata_at(
    version: MetaVersion,
    resource: Option<&Resource>,
    object: &[u8],
    metadata: Option<Range<usize>>,
    out: &mut BytesMut,
) {
    out.put_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
    out.put_slice(version.api_version().as_bytes());
    out.put_slice(b"\",\"metadata\":");
    match metadata {
        Some(metadata) => out.put_slice(&alone(resource, &object[metadata])),
        None => out.put_slice(b"{}"),
    }
    out.put_slice(b"}");
}

/// What comes before the name in the order of the rows.
pub(crate) fn rank(resource: &Resource, object: &[u8]) -> Option<i64> {
    resource.columns.rank(&parse(object, raw_json::member(object, "metadata")))
}

/// An encoded object to be printed, whose metadata stand at that place in its text. Managed fields are left out:
/// nothing prints them, and they are often half of it.
fn parse(object: &[u8], metadata: Option<Range<usize>>) -> Object {
    let slim = metadata.and_then(|metadata| raw_json::without(object, metadata, "managedFields"));
    match parse_json(slim.as_deref().unwrap_or(object)) {
        Ok(parsed) => match parsed.value {
            Value::Object(object) => object,
            _ => Object::new(),
        },
        // What is stored was written by this server. If it cannot be read, its row stays empty; to read the object
        // itself tells what is wrong.
        Err(_) => Object::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use revisor_catalog::Catalog;
    use revisor_store::{Draft, Entry, Key};
    use revisor_version::Revision;

    use super::*;

    const STORED: &str = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7","creationTimestamp":"2026-11-15T20:00:00Z","managedFields":[{"manager":"m"}]},"data":{"k":"v"}}"#;

    fn rows(include: Include) -> Rows {
        let now = Moment::parse("2026-11-15T20:05:00Z").expect("a time");
        Rows { version: MetaVersion::V1, include, now }
    }

    #[test]
    fn scales_have_columns_of_their_own() {
        let catalog = Catalog::default();
        let deployments = catalog.resource("apps", "v1", "deployments").expect("is served");
        let scale = r#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a","creationTimestamp":"2026-11-15T20:00:00Z"},"spec":{"replicas":3},"status":{"replicas":1}}"#;
        let table = of_one(rows(Include::Nothing), deployments, scale.as_bytes(), true);
        let table: serde_json::Value = serde_json::from_slice(&table).expect("JSON");
        let names: Vec<&str> = table["columnDefinitions"]
            .as_array()
            .expect("columns")
            .iter()
            .filter_map(|column| column["name"].as_str())
            .collect();
        assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
        let (name, age) = (&table["columnDefinitions"][0], &table["columnDefinitions"][3]);
        assert_eq!((&name["format"], &age["type"]), (&"".into(), &"string".into()));
        assert_eq!(table["rows"][0]["cells"], serde_json::json!(["a", 3, 1, "5m"]));
    }

    #[test]
    fn rows_include_what_is_asked_for() {
        let catalog = Catalog::default();
        let config_maps = catalog.resource("", "v1", "configmaps").expect("is served");
        let metadata = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","resourceVersion":"7","creationTimestamp":"2026-11-15T20:00:00Z","managedFields":[{"manager":"m"}]}}"#;
        for (include, want) in [(Include::Nothing, "null"), (Include::Metadata, metadata), (Include::Object, STORED)] {
            let mut row = BytesMut::new();
            rows(include).push(config_maps, STORED.as_bytes(), &mut row);
            let want = format!(r#"{{"cells":["a",1,"5m"],"object":{want}}}"#);
            assert_eq!(std::str::from_utf8(&row), Ok(want.as_str()), "{include:?}");
        }
        let end = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
        let table = of_one(rows(Include::Nothing), config_maps, end.as_bytes(), false);
        let want = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":null,"rows":[{"cells":["",0,"\u003cunknown\u003e"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}]}"#;
        assert_eq!(std::str::from_utf8(&table), Ok(want));
    }

    #[test]
    fn metadata_alone_lack_annotations_that_stand_for_fields() {
        let catalog = Catalog::default();
        let daemon_sets = catalog.resource("apps", "v1", "daemonsets").expect("is served");
        for (annotations, want) in [
            (r#""annotations":{"deprecated.daemonset.template.generation":"1"},"#, ""),
            (
                r#""annotations":{"a":"b","deprecated.daemonset.template.generation":"1","z":"y"},"#,
                r#""annotations":{"a":"b","z":"y"},"#,
            ),
            (r#""annotations":{"a":"b"},"#, r#""annotations":{"a":"b"},"#),
            ("", ""),
        ] {
            let object =
                format!(r#"{{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{{{annotations}"name":"a"}}}}"#);
            let metadata = format!(r#"{{{want}"name":"a"}}"#);
            let shown = metadata_of(Some(daemon_sets), object.as_bytes());
            assert_eq!(std::str::from_utf8(&shown), Ok(metadata.as_str()));
            let mut row = BytesMut::new();
            rows(Include::Metadata).push(daemon_sets, object.as_bytes(), &mut row);
            let end = format!(
                r#""object":{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{metadata}}}}}"#
            );
            assert!(row.ends_with(end.as_bytes()), "{annotations}");
            let mut whole = BytesMut::new();
            rows(Include::Object).push(daemon_sets, object.as_bytes(), &mut whole);
            assert!(whole.ends_with(format!("{object}}}").as_bytes()), "{annotations}");
        }
    }

    #[test]
    fn rows_are_remembered_and_grow_older() {
        let catalog = Catalog::default();
        let pods = catalog.resource("", "v1", "pods").expect("is served");
        let ends = r#""annotations":{"k8s.io/initial-events-end":"true"}"#;
        for (name, rest, phase) in [
            ("plain", r#""managedFields":[{"manager":"m"}]"#, "Running"),
            ("ended", ends, "Succeeded"),
            ("mark \u{e000}5\u{e001}", r#""labels":{"a":"b"}"#, "Failed"),
        ] {
            let stored = format!(
                r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","creationTimestamp":"2026-11-15T20:00:00Z",{rest}}},"status":{{"phase":"{phase}","containerStatuses":[{{"name":"c","restartCount":2,"lastState":{{"terminated":{{"finishedAt":"2026-11-15T20:04:00Z"}}}}}}]}}}}"#
            );
            let draft = Draft::opaque(stored.clone().into_bytes());
            let item = Item::new(Arc::new(Entry::new(Key::new("/a"), Revision::FIRST, &draft)));
            for include in [Include::Nothing, Include::Metadata, Include::Object] {
                for (now, age) in [("2026-11-15T20:05:00Z", "5m"), ("2026-11-18T20:05:00Z", "3d")] {
                    let rows = Rows { now: Moment::parse(now).expect("a time"), ..rows(include) };
                    let (mut want, mut got) = (BytesMut::new(), BytesMut::new());
                    rows.push(pods, stored.as_bytes(), &mut want);
                    rows.push_item(pods, &item, &mut got);
                    assert_eq!(std::str::from_utf8(&got), std::str::from_utf8(&want), "{name} {include:?}");
                    let cells = std::str::from_utf8(&got).expect("text");
                    assert!(cells.contains(&format!(r#" ago)","{age}","#)), "{cells}");
                }
            }
            assert_eq!(first_byte_of_row(pods, &item), (!name.starts_with("mark")).then_some(b'{'), "{name}");
        }
    }

    #[test]
    fn what_is_included_is_one_of_three() {
        for (text, want) in [
            ("", Some(Include::Metadata)),
            ("Metadata", Some(Include::Metadata)),
            ("Object", Some(Include::Object)),
            ("None", Some(Include::Nothing)),
        ] {
            assert_eq!(Include::parse(text).ok(), want, "{text}");
        }
        let refusal = Include::parse("all").expect_err("is refused");
        assert_eq!(
            (refusal.code(), refusal.message.as_str()),
            (
                400,
                "Unable to convert to Table as requested: includeObject: Invalid value: \"all\": must be 'Metadata', \
                 'Object', 'None', or empty"
            )
        );
    }
}
