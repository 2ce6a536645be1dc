//! Ingresses: which requests from outside go to which services.

use revisor_object::names::{
    dns1035_label, dns1123_label, dns1123_subdomain, port_name, port_number, wildcard_dns1123_subdomain,
};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value, ip_warnings};

use super::ingress_class::validate_reference;
use crate::checks::problems;
use crate::kinds::addresses::{legacy_ip, not_an_address};
use crate::strategy::spec_or_status;
use crate::{Feature, Features, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
const BAD_SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const BAD_ENDS: [&str; 2] = ["/..", "/."];

/// The older way to name a class.
pub(crate) const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

pub(crate) struct Ingresses {
    pub(crate) features: Features,
}

/// What is let pass because the object had it before.
#[derive(Debug, Clone, Copy, Default)]
struct Allowances {
    bad_secret_names: bool,
    bad_rules_of_wildcards: bool,
    /// Services whose names begin with a digit.
    relaxed_services: bool,
}

impl Allowances {
    /// Of a new object.
    fn new(features: Features) -> Allowances {
        let relaxed_services = features.has(Feature::RelaxedServiceNameValidation);
        Allowances { relaxed_services, ..Allowances::default() }
    }
}

impl Strategy for Ingresses {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_spec(object, Allowances::new(self.features));
        let class = object.at(&["spec", "ingressClassName"]).and_then(Value::as_str);
        if let (Some(annotated), Some(class)) = (annotated_class(object), class)
            && annotated != class
        {
            let annotations = FieldPath::root("annotations");
            let detail = "must match `ingressClassName` when both are specified";
            errors.push(FieldError::invalid(annotations.child(CLASS_ANNOTATION), annotated, detail));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        match part {
            Part::Whole => validate_spec(object, allowances(old, self.features)),
            Part::Subresource(_) => validate_status(object, old, self.features),
        }
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let is_named = object.at(&["spec", "ingressClassName"]).is_some();
        if old.is_some() || is_named || annotated_class(object).is_none() {
            return Vec::new();
        }
        vec![format!(r#"annotation "{CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead"#)]
    }

    fn subresource_warnings(&self, object: &Object, _: &Object) -> Vec<String> {
        let ips = entries(object).iter().map(ip_of).enumerate();
        ips.filter(|(_, ip)| !ip.is_empty())
            .flat_map(|(at, ip)| ip_warnings(format_args!("status.loadBalancer.ingress[{at}]"), ip))
            .collect()
    }
}

fn annotated_class(object: &Object) -> Option<&str> {
    object.at(&["metadata", "annotations", CLASS_ANNOTATION]).and_then(Value::as_str)
}

/// An object that was stored when less was asked of it may stay as it is.
fn allowances(old: &Object, features: Features) -> Allowances {
    let spec = old.object("spec");
    let objects = |name| spec.map(|spec| spec.array(name)).unwrap_or_default().iter().filter_map(Value::as_object);
    let is_bad_secret = |tls: &Object| !secret_name_problems(tls).is_empty();
    let is_bad_wildcard = |rule: &Object| {
        let mut errors = FieldErrors::new();
        validate_http(FieldPath::none(), rule, Allowances::default(), &mut errors);
        rule.str("host").unwrap_or_default().contains('*') && !errors.is_empty()
    };
    Allowances {
        bad_secret_names: objects("tls").any(is_bad_secret),
        bad_rules_of_wildcards: objects("rules").any(is_bad_wildcard),
        relaxed_services: features.has(Feature::RelaxedServiceNameValidation) || has_relaxed_service(old),
    }
}

/// Whether a backend is a service whose name only the relaxed rule lets pass.
fn has_relaxed_service(object: &Object) -> bool {
    let spec = object.object("spec");
    let rules = spec.map(|spec| spec.array("rules")).unwrap_or_default().iter().filter_map(Value::as_object);
    let paths = rules.filter_map(|rule| rule.object("http")).flat_map(|http| http.array("paths"));
    let backends = paths.filter_map(Value::as_object).filter_map(|path| path.object("backend"));
    let services =
        backends.chain(spec.and_then(|spec| spec.object("defaultBackend"))).filter_map(|it| it.object("service"));
    services
        .filter_map(|service| service.str("name"))
        .any(|name| dns1123_label(name).is_empty() && !dns1035_label(name).is_empty())
}

fn validate_spec(object: &Object, allowances: Allowances) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let empty = Object::new();
    let spec = object.object("spec").unwrap_or(&empty);
    let backend = spec.object("defaultBackend");
    if spec.array("rules").is_empty() && backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(FieldError::invalid(SPEC, BadValue::nothing(), detail));
    }
    if let Some(backend) = backend {
        validate_backend(SPEC.child("defaultBackend"), backend, allowances, &mut errors);
    }
    let path = SPEC.child("rules");
    for (at, rule) in spec.array("rules").iter().filter_map(Value::as_object).enumerate() {
        validate_rule(path.index(at), rule, allowances, &mut errors);
    }
    let path = SPEC.child("tls");
    for (at, tls) in spec.array("tls").iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let hosts = path.child("hosts");
        for (index, host) in tls.array("hosts").iter().map(|host| host.as_str().unwrap_or_default()).enumerate() {
            errors.extend(problems(hosts.index(index), host, host_problems(host)));
        }
        if !allowances.bad_secret_names {
            let name = tls.str("secretName").unwrap_or_default();
            errors.extend(problems(path.child("secretName"), name, secret_name_problems(tls)));
        }
    }
    if let Some(class) = spec.str("ingressClassName") {
        errors.extend(problems(SPEC.child("ingressClassName"), class, dns1123_subdomain(class)));
    }
    errors
}

fn host_problems(host: &str) -> Vec<&'static str> {
    if host.contains('*') { wildcard_dns1123_subdomain(host) } else { dns1123_subdomain(host) }
}

fn secret_name_problems(tls: &Object) -> Vec<&'static str> {
    tls.str("secretName").map(dns1123_subdomain).unwrap_or_default()
}

fn validate_rule(path: FieldPath<'_>, rule: &Object, allowances: Allowances, errors: &mut FieldErrors) {
    let host = rule.str("host").unwrap_or_default();
    if !host.is_empty() {
        errors.extend(not_an_address(path.child("host"), host));
        errors.extend(problems(path.child("host"), host, host_problems(host)));
    }
    if !(host.contains('*') && allowances.bad_rules_of_wildcards) {
        validate_http(path, rule, allowances, errors);
    }
}

fn validate_http(path: FieldPath<'_>, rule: &Object, allowances: Allowances, errors: &mut FieldErrors) {
    let Some(http) = rule.object("http") else { return };
    let http_path = path.child("http");
    let path = http_path.child("paths");
    if http.array("paths").is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    for (at, entry) in http.array("paths").iter().filter_map(Value::as_object).enumerate() {
        validate_path(path.index(at), entry, allowances, errors);
    }
}

fn validate_path(at: FieldPath<'_>, entry: &Object, allowances: Allowances, errors: &mut FieldErrors) {
    let Some(path_type) = entry.str("pathType") else {
        errors.push(FieldError::required(at.child("pathType"), "pathType must be specified"));
        return;
    };
    let path = entry.str("path").unwrap_or_default();
    let mut invalid = |detail: String| errors.push(FieldError::invalid(at.child("path"), path, detail));
    let is_relative = !path.starts_with('/');
    match path_type {
        "Exact" | "Prefix" => {
            if is_relative {
                invalid("must be an absolute path".to_owned());
            }
            for sequence in BAD_SEQUENCES.iter().filter(|sequence| path.contains(*sequence)) {
                invalid(format!("must not contain '{sequence}'"));
            }
            for end in BAD_ENDS.iter().filter(|end| path.ends_with(*end)) {
                invalid(format!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" => {
            if is_relative && !path.is_empty() {
                invalid("must be an absolute path".to_owned());
            }
        }
        other => errors.push(FieldError::not_supported(at.child("pathType"), other, &PATH_TYPES)),
    }
    let empty = Object::new();
    validate_backend(at.child("backend"), entry.object("backend").unwrap_or(&empty), allowances, errors);
}

fn validate_backend(path: FieldPath<'_>, backend: &Object, allowances: Allowances, errors: &mut FieldErrors) {
    let service = match (backend.object("resource"), backend.object("service")) {
        (Some(_), Some(_)) => {
            errors.push(FieldError::invalid(path, "", "cannot set both resource and service backends"));
            return;
        }
        (Some(resource), None) => {
            validate_reference(path.child("resource"), resource, errors);
            return;
        }
        (None, None) => {
            errors.push(FieldError::invalid(path, "", "resource or service backend is required"));
            return;
        }
        (None, Some(service)) => service,
    };
    let service_path = path.child("service");
    match service.str("name").unwrap_or_default() {
        "" => errors.push(FieldError::required(service_path.child("name"), "")),
        name => {
            let rule = if allowances.relaxed_services { dns1123_label } else { dns1035_label };
            errors.extend(problems(service_path.child("name"), name, rule(name)));
        }
    }
    let port_path = service_path.child("port");
    let port = service.object("port");
    let name = port.and_then(|port| port.str("name")).unwrap_or_default();
    let number = port.and_then(|port| port.get("number")).and_then(Value::as_i64).unwrap_or_default();
    match (name, number) {
        ("", 0) => errors.push(FieldError::required(path, "port name or number is required")),
        ("", number) => {
            let path = port_path.child("number");
            errors.extend(port_number(number).into_iter().map(|problem| FieldError::invalid(path, number, problem)));
        }
        (name, 0) => errors.extend(problems(port_path.child("name"), name, port_name(name))),
        _ => errors.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
    }
}

fn validate_status(object: &Object, old: &Object, features: Features) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let status = FieldPath::root("status");
    let balancer = status.child("loadBalancer");
    let path = balancer.child("ingress");
    let known: Seen<&str> = entries(old).iter().map(ip_of).collect();
    for (at, entry) in entries(object).iter().enumerate() {
        let path = path.index(at);
        let ip = ip_of(entry);
        if !ip.is_empty() {
            errors.extend(legacy_ip(path.child("ip"), ip, features, |_| known.has(&ip)));
        }
        if let Some(host) = entry.as_object().and_then(|entry| entry.str("hostname")) {
            errors.extend(problems(path.child("hostname"), host, dns1123_subdomain(host)));
            errors.extend(not_an_address(path.child("hostname"), host));
        }
    }
    errors
}

fn entries(object: &Object) -> &[Value] {
    object.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array).unwrap_or_default()
}

fn ip_of(entry: &Value) -> &str {
    entry.as_object().and_then(|entry| entry.str("ip")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::terms;

    fn ingresses() -> Ingresses {
        Ingresses { features: terms().features }
    }
    use revisor_object::parse_json;

    fn object(spec: &str) -> Object {
        let value = parse_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).expect("is JSON").value;
        value.as_object().expect("is an object").clone()
    }

    #[test]
    fn what_is_wrong_is_told_by_field() {
        let backend = r#"{"service":{"name":"s","port":{"number":80}}}"#;
        let path = |fields: &str| {
            object(&format!(r#"{{"rules":[{{"http":{{"paths":[{{{fields},"backend":{backend}}}]}}}}]}}"#))
        };
        let at = "spec.rules[0].http.paths[0]";
        for (name, ingress, want) in [
            ("nothing", object("{}"), vec!["spec".to_owned()]),
            ("a path", path(r#""pathType":"Prefix","path":"/""#), vec![]),
            ("no type", path(r#""path":"/""#), vec![format!("{at}.pathType")]),
            ("any type", path(r#""pathType":"Any""#), vec![format!("{at}.pathType")]),
            ("a relative path", path(r#""pathType":"Exact""#), vec![format!("{at}.path")]),
            ("no path at all", path(r#""pathType":"ImplementationSpecific""#), vec![]),
            ("two faults", path(r#""pathType":"Prefix","path":"/a//b/..""#), vec![format!("{at}.path"); 2]),
            ("no backend", object(r#"{"defaultBackend":{}}"#), vec!["spec.defaultBackend".to_owned()]),
            (
                "a bad service",
                object(r#"{"defaultBackend":{"service":{"name":"A","port":{"name":"a--b"}}}}"#),
                vec!["spec.defaultBackend.service.name".to_owned(), "spec.defaultBackend.service.port.name".to_owned()],
            ),
            (
                "bad hosts",
                object(&format!(
                    r#"{{"defaultBackend":{backend},"rules":[{{"host":"1.2.3.4"}},{{"host":"a.*"}}],
                        "tls":[{{"hosts":["*.a","A"],"secretName":"B"}}],"ingressClassName":"C"}}"#
                )),
                ["rules[0].host", "rules[1].host", "tls[0].hosts[1]", "tls[0].secretName", "ingressClassName"]
                    .map(|field| format!("spec.{field}"))
                    .to_vec(),
            ),
        ] {
            let fields: Vec<String> = ingresses().validate(&ingress).into_iter().map(|error| error.field).collect();
            assert_eq!(fields, want, "{name}");
        }
    }

    #[test]
    fn what_was_stored_before_the_rules_may_stay() {
        let backend = r#""defaultBackend":{"service":{"name":"s","port":{"number":80}}}"#;
        let old =
            object(&format!(r#"{{{backend},"tls":[{{"secretName":"A"}}],"rules":[{{"host":"*.a","http":{{}}}}]}}"#));
        assert!(ingresses().validate_update(&old, &old, Part::Whole).is_empty());
        assert_eq!(ingresses().validate(&old).len(), 2);
    }
}
