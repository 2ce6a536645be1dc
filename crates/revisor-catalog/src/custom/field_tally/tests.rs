//! Which fields are told, how they are counted, and who is named as their manager.

use revisor_schema::JsonType;

use super::*;

fn object(text: &str) -> Object {
    match parse_json(text.as_bytes()).expect("is JSON").value {
        Value::Object(object) => object,
        other => panic!("no object: {other:?}"),
    }
}

fn with(members: &[(&str, Structural)]) -> Structural {
    let mut properties: Vec<(Box<str>, Structural)> =
        members.iter().map(|(name, schema)| ((*name).into(), schema.clone())).collect();
    properties.sort_by(|one, other| one.0.cmp(&other.0));
    Structural { kind: Some(JsonType::Object), properties, ..Structural::default() }
}

fn text() -> Structural {
    Structural { kind: Some(JsonType::String), ..Structural::default() }
}

fn schema() -> Structural {
    let port = with(&[("name", text()), ("port", text())]);
    let ports = Structural { items: Some(Box::new(port.clone())), ..Structural::default() };
    let pools = Structural { additional: Some(Additional::Schema(Box::new(port))), ..Structural::default() };
    let free = Structural { preserves_unknown_fields: true, ..with(&[]) };
    let spec = with(&[("a", text()), ("b", text()), ("ports", ports), ("pools", pools), ("free", free)]);
    with(&[("apiVersion", text()), ("kind", text()), ("metadata", with(&[])), ("spec", spec)])
}

fn tally(objects: &[&str]) -> FieldTally {
    let mut tally = FieldTally::new("g/v1", &schema());
    objects.iter().for_each(|text| tally.count(&schema(), &object(text)));
    tally
}

fn told(tally: &FieldTally) -> Vec<String> {
    let manager = |(name, time): &(String, Option<String>)| format!(" {name}@{}", time.as_deref().unwrap_or("?"));
    let line = |field: FieldUse| {
        let managers: String = field.managers.iter().map(manager).collect();
        format!("{} {}{managers}", field.path, field.objects)
    };
    tally.fields().into_iter().map(line).collect()
}

#[test]
fn every_field_of_the_schema_is_told_and_counted_once_for_each_object() {
    let tally = tally(&[
        r#"{"apiVersion":"g/v1","metadata":{"labels":{"x":"y"}},"spec":{"a":"1","ports":[{"name":"x"},{"name":"y"}]}}"#,
        r#"{"spec":{"a":null,"ports":[],"pools":{"p":{"port":"1"},"q":{"port":"2"}}}}"#,
        r#"{"spec":{"free":{"odd.one":{"x":1},"list":[{"y":1}]}}}"#,
    ]);
    assert_eq!(tally.objects(), 3);
    assert_eq!(
        told(&tally),
        [
            ".spec 3",
            ".spec.a 2",
            ".spec.b 0",
            ".spec.free 1",
            ".spec.free.list 1",
            ".spec.free.list[*].y 1",
            r#".spec.free["odd.one"] 1"#,
            r#".spec.free["odd.one"].x 1"#,
            ".spec.pools 1",
            ".spec.pools[*].name 0",
            ".spec.pools[*].port 1",
            ".spec.ports 2",
            ".spec.ports[*].name 1",
            ".spec.ports[*].port 0",
        ]
    );
}

#[test]
fn managers_are_named_at_the_fields_of_their_own_version_with_their_last_write() {
    let managed = |entries: &str| format!(r#"{{"metadata":{{"managedFields":[{entries}]}},"spec":{{"a":"1"}}}}"#);
    let entry = |manager: &str, version: &str, time: &str, fields: &str| {
        format!(
            r#"{{"manager":"{manager}","operation":"Update","apiVersion":"{version}"{time},"fieldsType":"FieldsV1","fieldsV1":{fields}}}"#
        )
    };
    let at = |second: u32| format!(r#","time":"2026-01-01T00:00:0{second}Z""#);
    let ports = r#"{"f:metadata":{"f:labels":{}},"f:spec":{".":{},"f:ports":{".":{},"k:{\"name\":\"x\"}":{".":{},"f:name":{}}}}}"#;
    let pools = r#"{"f:spec":{"f:pools":{"f:p":{"f:port":{}}}}}"#;
    let tally = tally(&[
        &managed(&[entry("ada", "g/v1", &at(1), ports), entry("bob", "g/v2", &at(2), ports)].join(",")),
        &managed(&[entry("ada", "g/v1", &at(3), pools), entry("cyd", "g/v1", "", pools)].join(",")),
    ]);
    let managers: Vec<String> =
        told(&tally).into_iter().filter_map(|line| line.split_once(" 0 ").map(|(a, b)| format!("{a} {b}"))).collect();
    let (one, three) = ("ada@2026-01-01T00:00:01Z", "ada@2026-01-01T00:00:03Z");
    assert_eq!(
        managers,
        [
            format!(".spec.pools {three} cyd@?"),
            format!(".spec.pools[*].port {three} cyd@?"),
            format!(".spec.ports {one}"),
            format!(".spec.ports[*].name {one}"),
        ]
    );
    assert_eq!(told(&tally)[0], format!(".spec 2 {three} cyd@?"), "who manages something in it manages it");
}

#[test]
fn what_is_managed_as_one_value_is_managed_with_everything_in_it() {
    let managed = r#"{"manager":"ada","apiVersion":"g/v1","fieldsV1":{"f:spec":{"f:ports":{},"f:pools":{"f:p":{}},
        "f:free":{"f:list":{"k:{\"id\":2}":{".":{},"f:deep":{}}}}}}}"#;
    let spec = r#"{"a":"x","ports":[{"name":"x"}],"pools":{"p":{"port":"1"}},
        "free":{"list":[{"id":1,"deep":{"other":1}},{"id":2,"deep":{"own":1}}]}}"#;
    let tally = tally(&[&format!(r#"{{"metadata":{{"managedFields":[{managed}]}},"spec":{spec}}}"#)]);
    let all = told(&tally);
    let managed: Vec<&str> = all.iter().filter_map(|line| line.split_once(" 1 ada@?").map(|(path, _)| path)).collect();
    assert_eq!(
        managed,
        [
            ".spec",
            ".spec.free",
            ".spec.free.list",
            ".spec.free.list[*].deep",
            ".spec.free.list[*].deep.own",
            ".spec.pools",
            ".spec.pools[*].port",
            ".spec.ports",
            ".spec.ports[*].name",
        ]
    );
}

#[test]
fn what_is_told_apart_is_bounded() {
    let many: Vec<String> = (0..MAX_UNKNOWN + 5).map(|number| format!(r#""f{number}":1"#)).collect();
    let full = format!(r#"{{"spec":{{"b":"x","free":{{{}}}}}}}"#, many.join(","));
    let tally = tally(&[&full, &full]);
    assert!(tally.is_truncated());
    let fields = tally.fields();
    assert_eq!(fields.len(), MAX_UNKNOWN + 10);
    assert!(fields.iter().any(|field| field.path.to_string() == ".spec.b" && field.objects == 2));

    let mut node = Node::default();
    for number in 0..150 {
        node.note(&format!("m{number}"), Some(&format!("{number:04}")));
    }
    assert_eq!(node.managers.len(), MAX_MANAGERS);
    assert!(node.managers.contains_key("m149") && !node.managers.contains_key("m49"));
}
