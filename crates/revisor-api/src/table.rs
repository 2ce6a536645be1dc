//! Tables: what a person wants to see of objects, in columns. One row an object, written straight into the answer.

use bytes::{BufMut, BytesMut};
use revisor_catalog::{Moment, Resource};
use revisor_object::{FieldError, FieldPath, Object, Status, Value, parse_json};

use crate::negotiate::MetaVersion;
use crate::raw_json;

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

/// Everything before the first row. `columns` are `null` where the client has them already.
pub(crate) fn head(version: MetaVersion, metadata: &str, columns: &str) -> String {
    format!(
        "{{\"kind\":\"Table\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"columnDefinitions\":{columns},\"rows\":[",
        version.api_version()
    )
}

/// A table of one object.
pub(crate) fn of_one(rows: Rows, resource: &Resource, object: &[u8], with_columns: bool) -> BytesMut {
    let parsed = parse(object);
    let version = parsed.at(&["metadata", "resourceVersion"]).and_then(Value::as_str);
    let metadata: Object = version.map(|version| ("resourceVersion", Value::from(version))).into_iter().collect();
    let columns = if with_columns { resource.columns.definitions() } else { "null" };
    let head = head(rows.version, &Value::from(metadata).to_json(), columns);
    let mut table = BytesMut::with_capacity(head.len() + object.len() + 64);
    table.put_slice(head.as_bytes());
    rows.push_parsed(resource, object, &parsed, &mut table);
    table.put_slice(b"]}");
    table
}

impl Rows {
    /// Appends the row of one object.
    pub(crate) fn push(&self, resource: &Resource, object: &[u8], out: &mut BytesMut) {
        self.push_parsed(resource, object, &parse(object), out);
    }

    fn push_parsed(&self, resource: &Resource, object: &[u8], parsed: &Object, out: &mut BytesMut) {
        out.put_slice(b"{\"cells\":");
        out.put_slice(Value::Array(resource.columns.cells(parsed, self.now)).to_json().as_bytes());
        if let Some(completion) = resource.columns.completion(parsed) {
            out.put_slice(b",\"conditions\":[{\"type\":\"Completed\",\"status\":\"True\",\"reason\":\"");
            out.put_slice(completion.reason.as_bytes());
            out.put_slice(b"\",\"message\":\"");
            out.put_slice(completion.message.as_bytes());
            out.put_slice(b"\"}]");
        }
        out.put_slice(b",\"object\":");
        match self.include {
            Include::Object => out.put_slice(object),
            Include::Nothing if !ends_initial_events(parsed) => out.put_slice(b"null"),
            Include::Nothing | Include::Metadata => push_metadata(self.version, object, out),
        }
        out.put_slice(b"}");
    }
}

fn ends_initial_events(object: &Object) -> bool {
    object.at(&["metadata", "annotations", INITIAL_EVENTS_END]).and_then(Value::as_str) == Some("true")
}

/// Appends an object that shows nothing but the metadata of this one.
pub(crate) fn push_metadata(version: MetaVersion, object: &[u8], out: &mut BytesMut) {
    out.put_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
    out.put_slice(version.api_version().as_bytes());
    out.put_slice(b"\",\"metadata\":");
    match raw_json::member(object, "metadata") {
        Some(metadata) => out.put_slice(&object[metadata]),
        None => out.put_slice(b"{}"),
    }
    out.put_slice(b"}");
}

/// An encoded object to be printed. Managed fields are left out: nothing prints them, and they are often half of it.
pub(crate) fn parse(object: &[u8]) -> Object {
    let slim = raw_json::without(object, "metadata", "managedFields");
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
    use revisor_catalog::Catalog;

    use super::*;

    const STORED: &str = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7","creationTimestamp":"2026-11-15T20:00:00Z","managedFields":[{"manager":"m"}]},"data":{"k":"v"}}"#;

    fn rows(include: Include) -> Rows {
        let now = Moment::parse("2026-11-15T20:05:00Z").expect("a time");
        Rows { version: MetaVersion::V1, include, now }
    }

    #[test]
    fn rows_include_what_is_asked_for() {
        let catalog = Catalog::build();
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
        let want = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":null,"rows":[{"cells":["",0,"<unknown>"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}]}"#;
        assert_eq!(std::str::from_utf8(&table), Ok(want));
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
