//! What is wrong with the addresses and families of a Service, by themselves and in place of others.

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value, parse_ip_sloppy};

use super::ServiceSpec;
use crate::Features;
use crate::kinds::addresses::legacy_ip;

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/// What is wrong with `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy`. Asked before addresses are given
/// out, so that who does it need not think of malformed ones, and once more with the rest of the Service.
pub fn validate_cluster_ips(service: &Object, old: Option<&Object>, features: Features) -> FieldErrors {
    let spec = ServiceSpec::of(service);
    let mut errors = FieldErrors::new();
    if spec.is_external_name() {
        return errors;
    }
    let path = SPEC.child("clusterIPs");
    let ips = spec.cluster_ips();
    let all = || shown(ips);
    let first = ips.first().and_then(Value::as_str);
    match (spec.cluster_ip(), first) {
        ("", Some(_)) => {
            errors.push(FieldError::invalid(path, all(), "must be empty when `clusterIP` is not specified"));
        }
        ("", None) => {}
        (_, None) => errors.push(FieldError::required(path, "")),
        (singular, Some(first)) if singular != first => {
            errors.push(FieldError::invalid(path, all(), "first value must match `clusterIP`"));
        }
        _ => {}
    }
    validate_families(spec, &mut errors);
    if let Some(policy) = spec.ip_family_policy().filter(|policy| !POLICIES.contains(policy)) {
        errors.push(FieldError::not_supported(SPEC.child("ipFamilyPolicy"), policy, &POLICIES));
    }

    let known: Seen<&str> = texts(old.map(|old| ServiceSpec::of(old).cluster_ips()).unwrap_or_default()).collect();
    let mut has_invalid = false;
    for (at, ip) in texts(ips).enumerate() {
        if at == 0 && ip == "None" {
            if ips.len() > 1 {
                has_invalid = true;
                errors.push(FieldError::invalid(path, all(), "'None' must be the first and only value"));
            }
            continue;
        }
        let found = legacy_ip(path.index(at), ip, features, |_| known.has(&ip));
        has_invalid |= !found.is_empty();
        errors.extend(found);
    }
    if ips.len() > 2 {
        errors.push(FieldError::invalid(path, all(), "may only hold up to 2 values"));
    }
    // More would only confuse while it is not clear which addresses are meant.
    if has_invalid {
        return errors;
    }
    if ips.len() > 1 && !is_of_both_families(ips) {
        errors.push(FieldError::invalid(path, all(), "may specify no more than one IP for each IP family"));
    }
    if !spec.is_headless() {
        for (at, (ip, family)) in texts(ips).zip(texts(spec.ip_families())).enumerate() {
            if FAMILIES.contains(&family) && family != family_of(ip) {
                let detail = format!("expected an {family} value as indicated by `ipFamilies[{at}]`");
                errors.push(FieldError::invalid(path.index(at), ip, detail));
            }
        }
    }
    errors
}

fn validate_families(spec: ServiceSpec<'_>, errors: &mut FieldErrors) {
    let path = SPEC.child("ipFamilies");
    let mut seen = Seen::default();
    for (at, family) in texts(spec.ip_families()).enumerate() {
        if !FAMILIES.contains(&family) {
            errors.push(FieldError::not_supported(path.index(at), family, &FAMILIES));
        }
        if !seen.is_new(family) {
            errors.push(FieldError::duplicate(path.index(at), family));
        }
    }
}

/// What was changed of the addresses that a Service has once and for all. A second one may come and go.
pub(super) fn validate_cluster_ip_changes(new: ServiceSpec<'_>, was: ServiceSpec<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if new.is_external_name() || was.is_external_name() || (new.is_headless() && was.is_headless()) {
        return errors;
    }
    let path = SPEC.child("clusterIPs");
    let (ips, old) = (new.cluster_ips(), was.cluster_ips());
    let changed = |at: usize| FieldError::invalid(path.index(at), shown(ips), "may not change once set");
    if ips.len() == old.len() {
        errors.extend((0..ips.len()).filter(|at| ips[*at] != old[*at]).map(changed));
        return errors;
    }
    if ips.is_empty() {
        errors.push(FieldError::invalid(
            path.index(0),
            BadValue::of(&Value::Null),
            "primary clusterIP can not be unset",
        ));
    }
    if let (Some(first), Some(before)) = (ips.first(), old.first())
        && first != before
    {
        errors.push(changed(0));
    }
    if ips.len() == 1 && old.len() > 1 {
        errors.extend(released_without_policy(
            new,
            "must be set to 'SingleStack' when releasing the secondary clusterIP",
        ));
    }
    errors
}

/// The same for the families.
pub(super) fn validate_family_changes(new: ServiceSpec<'_>, was: ServiceSpec<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if new.is_external_name() || was.is_external_name() || new.is_headless() || was.is_headless() {
        return errors;
    }
    let path = SPEC.child("ipFamilies");
    let (families, old) = (new.ip_families(), was.ip_families());
    if families.len() == old.len() {
        // The original names the first whichever it is.
        let changed = families.iter().zip(old).filter(|(new, old)| new != old);
        errors.extend(changed.map(|_| FieldError::invalid(path.index(0), shown(families), "may not change once set")));
        return errors;
    }
    let is_reduced = families.len() < old.len();
    if is_reduced && new.cluster_ips().is_empty() {
        errors.push(FieldError::invalid(path.index(0), shown(families), "primary ipFamily can not be unset"));
    }
    if let (Some(first), Some(before)) = (families.first(), old.first())
        && first != before
    {
        errors.push(FieldError::invalid(path.index(0), shown(new.cluster_ips()), "may not change once set"));
    }
    if is_reduced && families.len() == 1 {
        errors
            .extend(released_without_policy(new, "must be set to 'SingleStack' when releasing the secondary ipFamily"));
    }
    errors
}

fn released_without_policy(new: ServiceSpec<'_>, detail: &str) -> Option<FieldError> {
    let policy = new.ip_family_policy();
    let value = policy.map_or(BadValue::of(&Value::Null), BadValue::from);
    (policy != Some("SingleStack")).then(|| FieldError::invalid(SPEC.child("ipFamilyPolicy"), value, detail))
}

/// Whether there is an address of each family.
fn is_of_both_families(ips: &[Value]) -> bool {
    let is_six = |ip: &str| family_of(ip) == "IPv6";
    texts(ips).any(is_six) && texts(ips).any(|ip| !is_six(ip))
}

fn family_of(ip: &str) -> &'static str {
    match parse_ip_sloppy(ip) {
        Some(ip) if ip.is_ipv6() => "IPv6",
        _ => "IPv4",
    }
}

fn texts(values: &[Value]) -> impl Iterator<Item = &str> {
    values.iter().map(|value| value.as_str().unwrap_or_default())
}

/// A list as messages show it; the original has no list where ours is empty.
fn shown(values: &[Value]) -> BadValue {
    if values.is_empty() { BadValue::of(&Value::Null) } else { BadValue::of(&values) }
}
