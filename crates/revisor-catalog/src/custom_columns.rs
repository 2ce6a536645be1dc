//! The columns of custom resources: where their definition says that values stand, and how those are shown.

use std::cell::OnceCell;

use revisor_object::{BadValue, GoJson, Object, Value};
use revisor_schema::{Precision, parse_timestamp};

use crate::json_path::JsonPath;
use crate::kinds::members::{number, part, text};
use crate::{Column, Moment};

/// One column of a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct PrinterColumn {
    /// What stands above it, and of which type it is.
    pub column: Column,
    path: JsonPath,
}

impl PrinterColumn {
    /// The columns that a version of a definition asks for, up to the first whose path is malformed; if it asks for none,
    /// the age.
    pub fn of_version(version: &Object) -> Vec<PrinterColumn> {
        let asked = version.array("additionalPrinterColumns");
        if asked.is_empty() {
            return PrinterColumn::age().into_iter().collect();
        }
        asked.iter().filter_map(Value::as_object).map_while(PrinterColumn::read).collect()
    }

    fn age() -> Option<PrinterColumn> {
        let column = Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            priority: 0,
            description: Column::of_creation(),
        };
        Some(PrinterColumn { column, path: JsonPath::parse(".metadata.creationTimestamp")? })
    }

    fn read(column: &Object) -> Option<PrinterColumn> {
        let (path, of) = (text(column, "jsonPath"), |name| text(column, name).to_owned());
        let description = match text(column, "description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description.to_owned(),
        };
        let shown = Column {
            name: of("name"),
            kind: of("type"),
            format: of("format"),
            priority: number(column, "priority"),
            description,
        };
        Some(PrinterColumn { column: shown, path: JsonPath::parse(path)? })
    }

    fn cell(&self, object: &Object, whole: &OnceCell<Value>, now: Moment) -> Value {
        let Ok(Some(value)) = self.path.first(object, whole) else { return Value::Null };
        match (self.column.kind.as_str(), value.as_ref()) {
            ("string", value) => shown(value),
            ("integer", Value::Int(number)) => Value::Int(*number),
            ("integer", Value::Float(number)) => Value::Int(truncated(*number)),
            ("number", Value::Int(_) | Value::Float(_)) | ("boolean", Value::Bool(_)) => value.into_owned(),
            ("date", Value::String(time)) => Value::from(age(time, now)),
            _ => Value::Null,
        }
    }
}

/// What stands in these columns for an object, behind its name.
pub(crate) fn cells(columns: &[PrinterColumn], object: &Object, now: Moment) -> Vec<Value> {
    let mut cells = vec![Value::from(text(part(object, "metadata"), "name"))];
    let whole = OnceCell::new();
    cells.extend(columns.iter().map(|column| column.cell(object, &whole, now)));
    cells
}

/// A number without its fraction. What an integer has no room for is the least one, as processors have it that do not
/// saturate.
fn truncated(number: f64) -> i64 {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if (-BEYOND..BEYOND).contains(&number) { number as i64 } else { i64::MIN }
}

/// A value of any type as a text.
fn shown(value: &Value) -> Value {
    match value {
        Value::Null | Value::Nothing => Value::from("<no value>"),
        Value::String(_) => value.clone(),
        Value::Array(_) | Value::Object(_) => Value::from(GoJson(value).to_string()),
        scalar => Value::from(BadValue::of(scalar).to_string()),
    }
}

fn age(time: &str, now: Moment) -> String {
    if matches!(time, "" | "null") {
        return "<unknown>".to_owned();
    }
    let moment = parse_timestamp(time, Precision::Seconds).and_then(|time| Moment::parse(&time));
    moment.map_or_else(|| "<invalid>".to_owned(), |moment| now.since(moment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn values_are_shown_by_the_type_of_their_column() {
        let thing = object(
            r#"{"metadata":{"name":"n","creationTimestamp":"2026-11-15T20:00:00Z"},
                "spec":{"i":5,"f":1.5,"b":true,"s":"x","l":[1,"a<b"],"o":{"k":null},"big":1000000.0,"huge":1e21,
                        "past":"2026-11-15T22:04:00+02:00"}}"#,
        );
        let now = Moment::parse("2026-11-15T20:05:00Z").expect("a time");
        for (kind, path, want) in [
            ("string", ".spec.s", r#""x""#),
            ("string", ".spec.i", r#""5""#),
            ("string", ".spec.big", r#""1e+06""#),
            ("string", ".spec.b", r#""true""#),
            ("string", ".spec.l", r#""[1,\"a\\u003cb\"]""#),
            ("string", ".spec.o.k", r#""<no value>""#),
            ("string", ".spec.none", "null"),
            ("integer", ".spec.i", "5"),
            ("integer", ".spec.f", "1"),
            ("integer", ".spec.huge", "-9223372036854775808"),
            ("integer", ".spec.s", "null"),
            ("number", ".spec.f", "1.5"),
            ("number", ".spec.i", "5"),
            ("boolean", ".spec.b", "true"),
            ("boolean", ".spec.i", "null"),
            ("date", ".metadata.creationTimestamp", r#""5m""#),
            ("date", ".spec.past", r#""60s""#),
            ("date", ".spec.s", r#""<invalid>""#),
            ("date", ".spec.none", "null"),
        ] {
            let version = object(&format!(
                r#"{{"additionalPrinterColumns":[{{"name":"C","type":"{kind}","jsonPath":"{path}"}}]}}"#
            ));
            let cells = cells(&PrinterColumn::of_version(&version), &thing, now);
            assert_eq!(cells[0], Value::from("n"));
            assert_eq!(cells[1].to_json(), want, "{kind} {path}");
        }
    }

    #[test]
    fn columns_end_at_the_first_that_is_malformed() {
        let version = object(
            r#"{"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a","priority":1},
                {"name":"B","type":"string","jsonPath":".b["},{"name":"C","type":"string","jsonPath":".c"}]}"#,
        );
        let columns = PrinterColumn::of_version(&version);
        assert_eq!(columns.len(), 1);
        assert_eq!(columns[0].column.description, "Custom resource definition column (in JSONPath format): .a");
        assert_eq!(columns[0].column.priority, 1);
        let usual = PrinterColumn::of_version(&object("{}"));
        assert_eq!(usual.iter().map(|column| column.column.name.as_str()).collect::<Vec<_>>(), ["Age"]);
    }
}
