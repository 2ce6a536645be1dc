//! What a claim asks for: requests of devices, constraints between them and configuration. Claims and their templates
//! share it.

use revisor_object::names::{label_value, qualified_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, RawJson, Value};

use super::selectors::Selectors;
use super::{lists, names};
use crate::checks::{self, problems};
use crate::kinds::members::text;
use crate::{Feature, Features};

/// At most so many requests, and so many names of them in one place.
pub(super) const MAX_REQUESTS: usize = 32;

const MAX_CONSTRAINTS: usize = 32;
pub(super) const MAX_CONFIGURATIONS: usize = 32;
pub(super) const MAX_SELECTORS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;

/// The longest parameters of a driver.
const MAX_PARAMETER_BYTES: usize = 10 * 1024;

/// What taints do, as tolerations and taints of devices name it.
pub(super) const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];

/// Fills in how many devices each request asks for.
pub(super) fn default_spec(spec: &mut Object) {
    let Some(Value::Object(devices)) = spec.get_mut("devices") else { return };
    for request in devices.array_mut("requests").into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(Value::Object(exactly)) = request.get_mut("exactly") {
            default_count(exactly);
        }
        for alternative in request.array_mut("firstAvailable").into_iter().flatten() {
            if let Value::Object(alternative) = alternative {
                default_count(alternative);
            }
        }
    }
}

fn default_count(request: &mut Object) {
    if request.str("allocationMode") == Some("ExactCount") && !request.contains("count") {
        request.insert("count", 1);
    }
}

/// The names of the requests of a claim, and those of their alternatives.
pub(super) struct RequestNames<'a> {
    requests: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> RequestNames<'a> {
    pub(super) fn of(spec: Option<&'a Object>) -> RequestNames<'a> {
        let requests = spec.and_then(|spec| spec.object("devices")).map(|devices| devices.array("requests"));
        let requests = requests.unwrap_or_default().iter().filter_map(Value::as_object).map(|request| {
            let alternatives = request.array("firstAvailable").iter().filter_map(Value::as_object);
            (text(request, "name"), alternatives.map(|alternative| text(alternative, "name")).collect())
        });
        RequestNames { requests: requests.collect() }
    }

    fn has(&self, name: &str) -> bool {
        let (name, alternative) = name.split_once('/').map_or((name, None), |(name, rest)| (name, Some(rest)));
        // Of two requests with one name the last counts.
        let found = self.requests.iter().rev().find(|(request, _)| *request == name);
        found.is_some_and(|(_, alternatives)| alternative.is_none_or(|name| alternatives.contains(&name)))
    }

    /// What is wrong with a reference to a request.
    pub(super) fn validate(&self, path: FieldPath<'_>, name: &str) -> FieldErrors {
        let unknown = || {
            let detail = "must be the name of a request in the claim or the name of a request and a subrequest \
                          separated by '/'";
            FieldError::invalid(path, name, detail)
        };
        if name.split('/').count() > 2 {
            return FieldErrors::from([unknown()]);
        }
        let mut errors: FieldErrors = name.split('/').flat_map(|segment| names::label(path, segment)).collect();
        if !self.has(name) {
            errors.push(unknown());
        }
        errors
    }

    /// What is wrong with a list of references.
    pub(super) fn validate_all(&self, path: FieldPath<'_>, references: &[Value]) -> FieldErrors {
        lists::distinct_texts(path, references, MAX_REQUESTS, |path, name| self.validate(path, name))
    }
}

/// What is wrong with the spec of a claim.
pub(super) fn validate_spec(
    path: FieldPath<'_>,
    spec: &Object,
    selectors: &Selectors,
    features: Features,
) -> FieldErrors {
    let empty = Object::new();
    let devices = spec.object("devices").unwrap_or(&empty);
    let path = path.child("devices");
    let requests = RequestNames::of(Some(spec));
    let mut errors =
        lists::named(path.child("requests"), devices.array("requests"), MAX_REQUESTS, "name", |path, request| {
            validate_request(path, request, selectors)
        });
    let constraints = devices.array("constraints");
    errors.extend(lists::objects(path.child("constraints"), constraints, MAX_CONSTRAINTS, |path, constraint| {
        validate_constraint(path, constraint, &requests, features)
    }));
    errors.extend(lists::objects(path.child("config"), devices.array("config"), MAX_CONFIGURATIONS, |path, config| {
        let mut errors = requests.validate_all(path.child("requests"), config.array("requests"));
        errors.extend(validate_configuration(path, config));
        errors
    }));
    errors
}

fn validate_request(path: FieldPath<'_>, request: &Object, selectors: &Selectors) -> FieldErrors {
    let mut errors = names::label(path.child("name"), text(request, "name"));
    let alternatives = request.array("firstAvailable");
    match (request.object("exactly"), alternatives.is_empty()) {
        (None, true) => {
            errors.push(FieldError::required(path, "exactly one of `exactly` or `firstAvailable` is required"));
        }
        (Some(_), false) => {
            let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.push(FieldError::invalid(path, BadValue::nothing(), detail));
        }
        (Some(exactly), true) => errors.extend(validate_wish(path.child("exactly"), exactly, selectors)),
        (None, false) => {
            let path = path.child("firstAvailable");
            errors.extend(lists::named(path, alternatives, MAX_ALTERNATIVES, "name", |path, alternative| {
                let mut errors = names::label(path.child("name"), text(alternative, "name"));
                errors.extend(validate_wish(path, alternative, selectors));
                errors
            }));
        }
    }
    errors
}

/// What requests and their alternatives have in common.
fn validate_wish(path: FieldPath<'_>, wish: &Object, selectors: &Selectors) -> FieldErrors {
    let mut errors = names::class(path.child("deviceClassName"), text(wish, "deviceClassName"));
    let wanted = wish.array("selectors");
    errors.extend(lists::objects(path.child("selectors"), wanted, MAX_SELECTORS, |path, selector| {
        selectors.validate(path, selector, false)
    }));
    let count = wish.get("count").and_then(Value::as_i64).unwrap_or_default();
    let count_path = path.child("count");
    match text(wish, "allocationMode") {
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.push(FieldError::invalid(count_path, count, detail));
        }
        "All" => {}
        "ExactCount" => errors.extend(checks::positive(count_path, count)),
        mode => {
            let path = path.child("allocationMode");
            errors.push(FieldError::not_supported(path, mode, &["All", "ExactCount"]));
        }
    }
    let tolerations = path.child("tolerations");
    for (at, toleration) in wish.array("tolerations").iter().filter_map(Value::as_object).enumerate() {
        errors.extend(validate_toleration(tolerations.index(at), toleration));
    }
    errors
}

fn validate_toleration(path: FieldPath<'_>, toleration: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (key, value, effect) = (text(toleration, "key"), text(toleration, "value"), text(toleration, "effect"));
    if !key.is_empty() {
        errors.extend(problems(path.child("key"), key, qualified_name(key)));
    }
    match text(toleration, "operator") {
        "Exists" if value.is_empty() => {}
        "Exists" => {
            errors.push(FieldError::invalid(path.child("value"), value, "must be empty for operator `Exists`"));
        }
        "Equal" => errors.extend(problems(path.child("value"), value, label_value(value))),
        operator => errors.extend(checks::required_one_of(path.child("operator"), operator, &["Equal", "Exists"])),
    }
    if !effect.is_empty() {
        errors.extend(checks::one_of(path.child("effect"), effect, EFFECTS));
    }
    errors
}

fn validate_constraint(
    path: FieldPath<'_>,
    constraint: &Object,
    requests: &RequestNames<'_>,
    features: Features,
) -> FieldErrors {
    let mut errors = requests.validate_all(path.child("requests"), constraint.array("requests"));
    match (constraint.str("matchAttribute"), constraint.str("distinctAttribute")) {
        (Some(name), _) => errors.extend(names::fully_qualified(path.child("matchAttribute"), name)),
        (None, Some(name)) => errors.extend(names::fully_qualified(path.child("distinctAttribute"), name)),
        (None, None) if !features.has(Feature::DRAConsumableCapacity) => {
            errors.push(FieldError::required(path.child("matchAttribute"), ""));
        }
        (None, None) => {
            let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields \
                          are set";
            errors.push(FieldError::required(path, detail));
        }
    }
    errors
}

/// What is wrong with the configuration of a driver.
pub(super) fn validate_configuration(path: FieldPath<'_>, config: &Object) -> FieldErrors {
    let path = path.child("opaque");
    let Some(opaque) = config.object("opaque") else { return FieldErrors::from([FieldError::required(path, "")]) };
    let mut errors = names::driver(path.child("driver"), text(opaque, "driver"));
    errors.extend(validate_raw(path.child("parameters"), opaque.get("parameters"), MAX_PARAMETER_BYTES));
    errors
}

/// Something that only a driver understands, but that must be an object.
pub(super) fn validate_raw(path: FieldPath<'_>, value: Option<&Value>, most: usize) -> Option<FieldError> {
    let spelled;
    let raw = match value {
        Some(Value::Raw(raw)) if !raw.text().is_empty() => &**raw,
        Some(Value::Raw(_) | Value::Null) | None => return Some(FieldError::required(path, "")),
        Some(value) => {
            spelled = RawJson::of(value.clone());
            &spelled
        }
    };
    if raw.text().len() > most {
        return Some(FieldError::too_long(path, most));
    }
    if let Some(problem) = raw.problem() {
        let detail = format!("error parsing data as JSON: {problem}");
        return Some(FieldError::invalid(path, "<value omitted>", detail));
    }
    match raw.value() {
        Value::Null => Some(FieldError::required(path, "")),
        Value::Object(_) => None,
        _ => Some(FieldError::invalid(path, "<value omitted>", "must be a valid JSON object")),
    }
}
