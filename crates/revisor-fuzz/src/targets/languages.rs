//! The small languages that stand in texts of objects: expressions, patterns, and the formats of single values.

use revisor_cel::{Budget, CelValue, Environment, Library, Type};
use revisor_object::names::NameRule;
use revisor_object::{
    Duration, FieldPath, IntOrString, Quantity, Url, Value, check_cron, cidr_problems, ip_problems, parse_cidr_sloppy,
    parse_ip_sloppy, parse_json, time_zone_problems, unescape_query,
};
use revisor_schema::{Pattern, Precision, Structural, Validator, parse_timestamp};
use revisor_version::Release;

const RELEASE: Release = Release { major: 1, minor: 36 };

/// What expressions speak of.
const SUBJECT: &str = r#"{"n":3,"f":0.5,"t":"aäb€c","l":[1,"x",null,{"k":"v"}],"m":{"a":"b","ä":"c","":""}}"#;

/// The longest text that is tried: what is long costs time and shows nothing new.
const MAX_TEXT: usize = 600;

const FORMAT_NAMES: [&str; 14] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uri",
    "uuid",
    "isbn",
    "k8s-short-name",
    "creditcard",
];

thread_local! {
    // To gather the libraries takes longer than to try an input with them.
    static ENVIRONMENT: Environment = Environment::new(RELEASE)
        .with_library(Library::Bindings)
        .with_library(Library::JsonPatch)
        .with_variable("self", Type::Dyn)
        .with_variable("oldSelf", Type::String);
    static FORMATS: Vec<Validator> = FORMAT_NAMES.iter().filter_map(|name| format_validator(name)).collect();
}

fn format_validator(name: &str) -> Option<Validator> {
    let schema = format!(r#"{{"type":"string","format":"{name}"}}"#);
    let schema = parse_json(schema.as_bytes()).ok()?.value;
    Some(Validator::compile(&Structural::read(schema.as_object()?), u32::from(RELEASE.minor)))
}

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok().filter(|text| text.len() <= MAX_TEXT)
}

/// An expression is refused with its issues, or is evaluated within its budget.
pub(super) fn expression(data: &[u8]) {
    let Some(text) = text(data) else { return };
    match ENVIRONMENT.with(|environment| environment.compile(text)) {
        Err(issues) => assert!(issues.iter().next().is_some() && !issues.to_string().is_empty(), "{text}"),
        Ok(program) => {
            let Ok(subject) = parse_json(SUBJECT.as_bytes()) else { return };
            let variables = [("self", CelValue::dynamic(&subject.value)), ("oldSelf", CelValue::text("aäb"))];
            drop(program.flaw());
            drop(program.evaluate(&variables, &mut Budget::new(10_000)));
        }
    }
}

/// A pattern is refused or can be asked, in schemas and in expressions, and both think the same of it.
pub(super) fn pattern(data: &[u8]) {
    let Some(text) = text(data) else { return };
    assert_eq!(Pattern::check(text).is_ok(), Pattern::compile(text).is_ok(), "{text}");
    if let Ok(pattern) = Pattern::compile(text) {
        _ = pattern.is_match("aäb€c 12.x");
    }
    let quoted = Value::from(text).to_json();
    expression(format!("'aäb€c'.matches({quoted})").as_bytes());
}

/// Texts that stand for single values are read or refused; what was read and written is read as the same.
pub(super) fn scalar(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(quantity) = Quantity::parse(text) {
        let written = quantity.to_string();
        let again = Quantity::parse(&written).unwrap_or_else(|error| panic!("{text}: {written}: {error}"));
        assert!(again.to_string() == written, "{text}: {written} and {again}");
        drop((quantity.value(), quantity.milli_value(), quantity.add(&again), quantity.sub(&again)));
    }
    if let Ok(duration) = text.parse::<Duration>() {
        assert_eq!(duration.to_string().parse::<Duration>().as_ref(), Ok(&duration), "{text}");
    }
    for precision in [Precision::Seconds, Precision::Microseconds] {
        if let Some(written) = parse_timestamp(text, precision) {
            assert_eq!(parse_timestamp(&written, precision), Some(written), "{text}");
        }
    }
    drop((check_cron(text), time_zone_problems(text), unescape_query(text), Url::parse_request(text)));
    if let Ok(url) = Url::parse(text) {
        drop((url.hostname().len(), url.port().len(), url.escaped_path(), url.to_string()));
    }
    drop((ip_problems(text), cidr_problems(text), parse_ip_sloppy(text), parse_cidr_sloppy(text)));
    let value = Value::from(text);
    if let Some(either) = IntOrString::of(&value) {
        drop((either.percent(), either.int_value(), either.scaled(i64::MAX, true), either.scaled(7, false)));
    }
    drop(NameRule::PathSegment.check(text));
    FORMATS.with(|formats| {
        formats.iter().for_each(|format| drop(format.validate(&FieldPath::root("t"), &value)));
    });
}
