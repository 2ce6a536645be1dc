//! NetworkPolicies: which traffic pods may have.

use revisor_object::names::{port_name, port_number};
use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, Seen, StructuredLabelSelector, Value,
    cidr_warnings, parse_cidr_sloppy,
};

use crate::checks::problems;
use crate::kinds::addresses::legacy_cidr;
use crate::{Features, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const POLICY_TYPES: [&str; 2] = ["Ingress", "Egress"];

/// Both directions, and what their rules call the other side.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

pub(crate) struct NetworkPolicies {
    pub(crate) features: Features,
}

impl Strategy for NetworkPolicies {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        // It is always written, and must be there for a change to be one.
        spec.object_mut("podSelector");
        if spec.array("policyTypes").is_empty() {
            let count = if spec.array("egress").is_empty() { 1 } else { 2 };
            let types: Vec<Value> = POLICY_TYPES[..count].iter().map(|name| Value::from(*name)).collect();
            spec.insert("policyTypes", types);
        }
    }

    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    /// What was sent empty counts as a change, each time: it is not stored (upstream: `reflect.DeepEqual`).
    fn is_changed(&self, object: &Object, old: &Object) -> bool {
        object.get("spec") != old.get("spec") || object.get("spec").is_some_and(Value::has_sent_empty)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_spec(
            object,
            LabelSelectorOptions::default(),
            Ranges { known: &Seen::default(), features: self.features },
        )
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let was_invalid = selector(old).is_some_and(|selector| {
            let found = selector.validate(&FieldPath::none(), LabelSelectorOptions::default());
            !found.is_empty()
        });
        let options = LabelSelectorOptions { allow_invalid_values: was_invalid, ..LabelSelectorOptions::default() };
        validate_spec(object, options, Ranges { known: &known_ranges(old), features: self.features })
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let mut warnings = Vec::new();
        for_each_peer(object, |path, peer| {
            let Some(block) = peer.object("ipBlock") else { return };
            let path = path.child("ipBlock");
            warnings.extend(cidr_warnings(path.child("cidr"), block.str("cidr").unwrap_or_default()));
            let except = path.child("except");
            for (at, range) in texts(block.array("except")).enumerate() {
                warnings.extend(cidr_warnings(except.index(at), range));
            }
        });
        warnings
    }
}

fn selector(object: &Object) -> Option<StructuredLabelSelector<'_>> {
    object.at(&["spec", "podSelector"]).and_then(Value::as_object).map(StructuredLabelSelector::new)
}

fn rules<'a>(object: &'a Object, direction: &str) -> impl Iterator<Item = &'a Object> {
    let rules = object.object("spec").map(|spec| spec.array(direction)).unwrap_or_default();
    rules.iter().filter_map(Value::as_object)
}

fn for_each_peer<'a>(object: &'a Object, mut visit: impl FnMut(FieldPath<'_>, &'a Object)) {
    for (direction, side) in DIRECTIONS {
        let path = SPEC.child(direction);
        for (at, rule) in rules(object, direction).enumerate() {
            let path = path.index(at);
            let path = path.child(side);
            for (index, peer) in rule.array(side).iter().filter_map(Value::as_object).enumerate() {
                visit(path.index(index), peer);
            }
        }
    }
}

/// The ranges that the policy had before, wherever they stood: they may stay, and also be moved.
fn known_ranges(old: &Object) -> Seen<&str> {
    let mut known = Vec::new();
    for_each_peer(old, |_, peer| {
        if let Some(block) = peer.object("ipBlock") {
            known.extend(block.str("cidr"));
            known.extend(texts(block.array("except")));
        }
    });
    known.into_iter().collect()
}

/// How ranges may be written.
#[derive(Clone, Copy)]
struct Ranges<'a> {
    /// Those that may stay as they are.
    known: &'a Seen<&'a str>,
    features: Features,
}

fn validate_spec(object: &Object, options: LabelSelectorOptions, ranges: Ranges<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if let Some(selector) = selector(object) {
        errors.extend(selector.validate(&SPEC.child("podSelector"), options));
    }
    for (direction, side) in DIRECTIONS {
        let path = SPEC.child(direction);
        for (at, rule) in rules(object, direction).enumerate() {
            let path = path.index(at);
            let ports = path.child("ports");
            for (index, port) in rule.array("ports").iter().filter_map(Value::as_object).enumerate() {
                validate_port(ports.index(index), port, &mut errors);
            }
            let peers = path.child(side);
            for (index, peer) in rule.array(side).iter().filter_map(Value::as_object).enumerate() {
                validate_peer(peers.index(index), peer, options, ranges, &mut errors);
            }
        }
    }
    let path = SPEC.child("policyTypes");
    let types = object.object("spec").map(|spec| spec.array("policyTypes")).unwrap_or_default();
    if types.len() > POLICY_TYPES.len() {
        errors.push(FieldError::invalid(path, BadValue::of(&types), "may not specify more than two policyTypes"));
        return errors;
    }
    for (at, name) in texts(types).enumerate().filter(|(_, name)| !POLICY_TYPES.contains(name)) {
        errors.push(FieldError::not_supported(path.index(at), name, &POLICY_TYPES));
    }
    errors
}

fn validate_port(path: FieldPath<'_>, port: &Object, errors: &mut FieldErrors) {
    if let Some(protocol) = port.str("protocol").filter(|protocol| !PROTOCOLS.contains(protocol)) {
        errors.push(FieldError::not_supported(path.child("protocol"), protocol, &PROTOCOLS));
    }
    let (port_path, end_path) = (path.child("port"), path.child("endPort"));
    let end = port.get("endPort").and_then(Value::as_i64);
    let number = |path: FieldPath<'_>, number: i64| -> FieldErrors {
        port_number(number).into_iter().map(|problem| FieldError::invalid(path, number, problem)).collect()
    };
    match (port.get("port"), end) {
        (Some(Value::Int(start)), end) => {
            errors.extend(number(port_path, *start));
            if let Some(end) = end {
                if end < *start {
                    // The value is the original's, which shows where the range begins.
                    errors.push(FieldError::invalid(end_path, *start, "must be greater than or equal to `port`"));
                }
                errors.extend(number(end_path, end));
            }
        }
        (Some(name), end) => {
            if let Some(end) = end {
                errors.push(FieldError::invalid(end_path, end, "may not be specified when `port` is non-numeric"));
            }
            let name = name.as_str().unwrap_or_default();
            errors.extend(problems(port_path, name, port_name(name)));
        }
        (None, Some(end)) => {
            errors.push(FieldError::invalid(end_path, end, "may not be specified when `port` is not specified"));
        }
        (None, None) => {}
    }
}

fn validate_peer(
    path: FieldPath<'_>,
    peer: &Object,
    options: LabelSelectorOptions,
    ranges: Ranges<'_>,
    errors: &mut FieldErrors,
) {
    let mut count = 0;
    for name in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = peer.object(name) {
            count += 1;
            errors.extend(StructuredLabelSelector::new(selector).validate(&path.child(name), options));
        }
    }
    let block = peer.object("ipBlock");
    if let Some(block) = block {
        count += 1;
        validate_block(path.child("ipBlock"), block, ranges, errors);
    }
    if count == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    } else if count > 1 && block.is_some() {
        errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
    }
}

fn validate_block(path: FieldPath<'_>, block: &Object, ranges: Ranges<'_>, errors: &mut FieldErrors) {
    let Ranges { known, features } = ranges;
    let text = block.str("cidr").unwrap_or_default();
    if text.is_empty() {
        errors.push(FieldError::required(path.child("cidr"), ""));
        return;
    }
    errors.extend(legacy_cidr(path.child("cidr"), text, features, |_| known.has(&text)));
    let Some(range) = parse_cidr_sloppy(text) else { return };
    let path = path.child("except");
    for (at, text) in texts(block.array("except")).enumerate() {
        errors.extend(legacy_cidr(path.index(at), text, features, |_| known.has(&text)));
        let Some(except) = parse_cidr_sloppy(text) else { continue };
        if !range.contains(except.network()) || range.prefix() >= except.prefix() {
            errors.push(FieldError::invalid(path.index(at), text, "must be a strict subset of `cidr`"));
        }
    }
}

fn texts(values: &[Value]) -> impl Iterator<Item = &str> {
    values.iter().map(|value| value.as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::terms;

    fn policies() -> NetworkPolicies {
        NetworkPolicies { features: terms().features }
    }
    use revisor_object::parse_json;

    fn object(spec: &str) -> Object {
        let value = parse_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).expect("is JSON").value;
        value.as_object().expect("is an object").clone()
    }

    #[test]
    fn a_policy_is_about_what_it_has_rules_for() {
        for (spec, want) in [
            ("{}", r#"["Ingress"]"#),
            (r#"{"egress":[{}]}"#, r#"["Ingress","Egress"]"#),
            (r#"{"policyTypes":["Egress"]}"#, r#"["Egress"]"#),
        ] {
            let mut policy = object(spec);
            policies().default(&mut policy);
            let types = policy.at(&["spec", "policyTypes"]).expect("is set").to_json();
            assert_eq!(types, want, "{spec}");
            assert!(policy.at(&["spec", "podSelector"]).is_some(), "{spec}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_field() {
        for (spec, want) in [
            (r#"{"ingress":[{}]}"#, vec![]),
            (r#"{"ingress":[{"from":[{}]}]}"#, vec!["spec.ingress[0].from[0]"]),
            (r#"{"egress":[{"ports":[{"port":"A--"}]}]}"#, vec!["spec.egress[0].ports[0].port"; 4]),
            (r#"{"egress":[{"ports":[{"endPort":5}]}]}"#, vec!["spec.egress[0].ports[0].endPort"]),
            (
                r#"{"egress":[{"ports":[{"port":5,"endPort":70000,"protocol":"X"}]}]}"#,
                vec!["spec.egress[0].ports[0].protocol", "spec.egress[0].ports[0].endPort"],
            ),
            (
                r#"{"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.0.0.0/8","11.0.0.0/16","x"]}}]}]}"#,
                vec![
                    "spec.egress[0].to[0].ipBlock.except[0]",
                    "spec.egress[0].to[0].ipBlock.except[1]",
                    "spec.egress[0].to[0].ipBlock.except[2]",
                ],
            ),
            (r#"{"policyTypes":["Ingress","Other"]}"#, vec!["spec.policyTypes[1]"]),
        ] {
            let errors = policies().validate(&object(spec));
            assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), want, "{spec}");
        }
    }

    #[test]
    fn ranges_that_were_stored_may_move() {
        let old = object(r#"{"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.1/8"}}]}]}"#);
        let new = object(r#"{"egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.1/8"}}]}]}"#);
        assert_eq!(policies().validate(&new).len(), 1);
        assert!(policies().validate_update(&new, &old, Part::Whole).is_empty());
    }
}
