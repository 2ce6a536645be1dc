//! Names: how a pod resolves those of others, and which it has itself.

use revisor_object::names::{dns1123_subdomain, dns1123_subdomain_with_underscore};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value, legacy_ip_problems};

use super::members::{is_true, objects, text, texts};
use super::options::Options;
use crate::checks::problems;

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;
const MAX_HOSTNAME: usize = 64;

/// What is wrong with how a pod resolves names.
pub(super) fn validate(path: FieldPath<'_>, spec: &Object, options: Options, errors: &mut FieldErrors) {
    let config = spec.object("dnsConfig");
    if text(spec, "dnsPolicy") == "None" {
        match config {
            None => {
                errors.push(FieldError::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
                return;
            }
            Some(config) if config.array("nameservers").is_empty() => {
                let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
                errors.push(FieldError::required(path.child("nameservers"), detail));
                return;
            }
            Some(_) => {}
        }
    }
    let Some(config) = config else { return };
    let shown = |name: &str| BadValue::of(config.get(name).unwrap_or(&Value::Null));
    let at_servers = path.child("nameservers");
    if config.array("nameservers").len() > MAX_NAMESERVERS {
        let detail = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        errors.push(FieldError::invalid(at_servers, shown("nameservers"), detail));
    }
    for (at, server) in texts(config, "nameservers") {
        errors.extend(problems(at_servers.index(at), server, legacy_ip_problems(server, options.addresses)));
    }
    let at_searches = path.child("searches");
    let searches = config.array("searches");
    if searches.len() > MAX_SEARCHES {
        let detail = format!("must not have more than {MAX_SEARCHES} search paths");
        errors.push(FieldError::invalid(at_searches, shown("searches"), detail));
    }
    let characters: usize = texts(config, "searches").map(|(_, search)| search.len() + 1).sum();
    if characters > MAX_SEARCH_CHARACTERS + 1 {
        let detail =
            format!("must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list");
        errors.push(FieldError::invalid(at_searches, shown("searches"), detail));
    }
    let rule = if options.relaxed_searches { dns1123_subdomain_with_underscore } else { dns1123_subdomain };
    for (at, search) in texts(config, "searches").filter(|(_, search)| *search != "." || !options.relaxed_searches) {
        let search = search.strip_suffix('.').unwrap_or(search);
        errors.extend(problems(at_searches.index(at), search, rule(search)));
    }
    let at_options = path.child("options");
    for (at, option) in objects(config, "options") {
        if text(option, "name").is_empty() {
            errors.push(FieldError::required(at_options.index(at), "must not be empty"));
        }
    }
}

/// Whether a search domain of a spec is one that only the relaxed rule lets pass.
pub(super) fn has_relaxed_search(spec: &Object) -> bool {
    spec.object("dnsConfig")
        .is_some_and(|config| texts(config, "searches").any(|(_, search)| search == "." || search.contains('_')))
}

/// What is wrong with the names that a pod adds to its file of hosts.
pub(super) fn validate_aliases(path: FieldPath<'_>, spec: &Object, options: Options, errors: &mut FieldErrors) {
    for (at, alias) in objects(spec, "hostAliases") {
        let path = path.index(at);
        let ip = text(alias, "ip");
        errors.extend(problems(path.child("ip"), ip, legacy_ip_problems(ip, options.addresses)));
        let path = path.child("hostnames");
        for (at, name) in texts(alias, "hostnames") {
            errors.extend(problems(path.index(at), name, dns1123_subdomain(name)));
        }
    }
}

/// What is wrong with the name that a pod gives its host instead of its own.
pub(super) fn validate_override(path: FieldPath<'_>, spec: &Object, errors: &mut FieldErrors) {
    let Some(name) = spec.str("hostnameOverride") else { return };
    let path = path.child("hostnameOverride");
    for other in ["setHostnameAsFQDN", "hostNetwork"] {
        if is_true(spec, other) {
            errors.push(FieldError::forbidden(path, format!("may not be specified when {other} is true")));
        }
    }
    if name.len() > MAX_HOSTNAME {
        errors.push(FieldError::too_long(path, MAX_HOSTNAME));
    }
    errors.extend(problems(path, name, dns1123_subdomain(name)));
}
