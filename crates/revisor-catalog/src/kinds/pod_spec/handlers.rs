//! What is done to a container from outside: probes of its health, and hooks when it starts and stops.

use revisor_object::names::{http_header_name, port_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use super::members::{all_containers, given_number, number, objects, part, text};
use super::options::Options;
use crate::checks::{self, not_negative, one_of, problems, required};

const SCHEMES: &[&str] = &["HTTP", "HTTPS"];

const LINUX_SIGNALS: &[&str] = &[
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGRTMAX",
    "SIGRTMAX-1",
    "SIGRTMAX-10",
    "SIGRTMAX-11",
    "SIGRTMAX-12",
    "SIGRTMAX-13",
    "SIGRTMAX-14",
    "SIGRTMAX-2",
    "SIGRTMAX-3",
    "SIGRTMAX-4",
    "SIGRTMAX-5",
    "SIGRTMAX-6",
    "SIGRTMAX-7",
    "SIGRTMAX-8",
    "SIGRTMAX-9",
    "SIGRTMIN",
    "SIGRTMIN+1",
    "SIGRTMIN+10",
    "SIGRTMIN+11",
    "SIGRTMIN+12",
    "SIGRTMIN+13",
    "SIGRTMIN+14",
    "SIGRTMIN+15",
    "SIGRTMIN+2",
    "SIGRTMIN+3",
    "SIGRTMIN+4",
    "SIGRTMIN+5",
    "SIGRTMIN+6",
    "SIGRTMIN+7",
    "SIGRTMIN+8",
    "SIGRTMIN+9",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
];
const WINDOWS_SIGNALS: &[&str] = &["SIGKILL", "SIGTERM"];

/// What is wrong with the probes and hooks of a container that may have them.
pub(super) fn validate(
    path: FieldPath<'_>,
    container: &Object,
    spec: &Object,
    options: Options,
    errors: &mut FieldErrors,
) {
    let grace_period = given_number(spec, "terminationGracePeriodSeconds");
    if let Some(lifecycle) = container.object("lifecycle") {
        let path = path.child("lifecycle");
        for name in ["postStart", "preStop"] {
            if let Some(hook) = lifecycle.object(name) {
                validate_handler(path.child(name), hook, grace_period, options, errors);
            }
        }
        if let Some(signal) = lifecycle.str("stopSignal") {
            errors.extend(validate_signal(path.child("stopSignal"), signal, spec.object("os")));
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.object(name) else { continue };
        let path = path.child(name);
        validate_probe(path, probe, grace_period, options, errors);
        if name == "readinessProbe" {
            if let Some(period) = given_number(probe, "terminationGracePeriodSeconds") {
                let path = path.child("terminationGracePeriodSeconds");
                errors.push(FieldError::invalid(path, period, "must not be set for readinessProbes"));
            }
        } else if number(probe, "successThreshold") != 1 {
            let threshold = number(probe, "successThreshold");
            errors.push(FieldError::invalid(path.child("successThreshold"), threshold, "must be 1"));
        }
    }
}

fn validate_probe(
    path: FieldPath<'_>,
    probe: &Object,
    grace_period: Option<i64>,
    options: Options,
    errors: &mut FieldErrors,
) {
    validate_handler(path, probe, grace_period, options, errors);
    for name in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        errors.extend(not_negative(path.child(name), number(probe, name)));
    }
    if let Some(period) = given_number(probe, "terminationGracePeriodSeconds").filter(|period| *period <= 0) {
        let path = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(path, period, "must be greater than 0"));
    }
}

fn validate_handler(
    path: FieldPath<'_>,
    handler: &Object,
    grace_period: Option<i64>,
    options: Options,
    errors: &mut FieldErrors,
) {
    let given = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"]
        .into_iter()
        .filter_map(|name| Some((name, handler.object(name)?)));
    let mut is_first = true;
    for (name, action) in given {
        let path = path.child(name);
        if !is_first {
            errors.push(FieldError::forbidden(path, "may not specify more than 1 handler type"));
            continue;
        }
        is_first = false;
        match name {
            "exec" if action.array("command").is_empty() => {
                errors.push(FieldError::required(path.child("command"), ""));
            }
            "exec" => {}
            "httpGet" => validate_http(path, action, errors),
            "sleep" => errors.extend(validate_sleep(path, number(action, "seconds"), grace_period, options)),
            _ => validate_port(path.child("port"), action.get("port"), errors),
        }
    }
    if is_first {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn validate_http(path: FieldPath<'_>, action: &Object, errors: &mut FieldErrors) {
    errors.extend(required(path.child("path"), text(action, "path")));
    validate_port(path.child("port"), action.get("port"), errors);
    errors.extend(one_of(path.child("scheme"), text(action, "scheme"), SCHEMES));
    for (_, header) in objects(action, "httpHeaders") {
        let name = text(header, "name");
        errors.extend(problems(path.child("httpHeaders"), name, http_header_name(name)));
    }
}

/// What is wrong with a port that is given by number or by name.
fn validate_port(path: FieldPath<'_>, port: Option<&Value>, errors: &mut FieldErrors) {
    match port {
        Some(Value::String(name)) => errors.extend(problems(path, name, port_name(name))),
        number => errors.extend(checks::port(path, number.and_then(Value::as_i64).unwrap_or_default())),
    }
}

fn validate_sleep(
    path: FieldPath<'_>,
    seconds: i64,
    grace_period: Option<i64>,
    options: Options,
) -> Option<FieldError> {
    // A missing grace period is a fault of its own.
    let most = grace_period?;
    let detail = if options.zero_sleeps {
        format!("must be non-negative and less than terminationGracePeriodSeconds ({most})")
    } else {
        format!(
            "must be greater than 0 and less than terminationGracePeriodSeconds ({most}). Enable \
             AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
        )
    };
    let least = if options.zero_sleeps { 0 } else { 1 };
    (seconds < least || seconds > most).then(|| FieldError::invalid(path, seconds, detail))
}

/// Whether a hook of a spec sleeps for no time at all.
pub(super) fn has_zero_sleep(spec: &Object) -> bool {
    all_containers(spec).any(|(_, _, container)| {
        let lifecycle = part(container, "lifecycle");
        let sleeps = ["preStop", "postStart"].iter().filter_map(|hook| part(lifecycle, hook).object("sleep"));
        sleeps.into_iter().any(|sleep| number(sleep, "seconds") == 0)
    })
}

fn validate_signal(path: FieldPath<'_>, signal: &str, os: Option<&Object>) -> Option<FieldError> {
    match os.map(|os| text(os, "name")) {
        None => Some(FieldError::forbidden(path, "may not be set for containers with empty `spec.os.name`")),
        Some("windows") => one_of(path, signal, WINDOWS_SIGNALS),
        Some("linux") => one_of(path, signal, LINUX_SIGNALS),
        Some(_) => None,
    }
}

/// What init containers that end before the others start may not have.
pub(super) fn forbid(path: FieldPath<'_>, container: &Object, errors: &mut FieldErrors) {
    for name in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.contains(name) {
            let detail = "may not be set for init containers without restartPolicy=Always";
            errors.push(FieldError::forbidden(path.child(name), detail));
        }
    }
}

/// Whether a container says with which signal it is to be stopped.
pub(super) fn has_stop_signal(container: &Object) -> bool {
    part(container, "lifecycle").contains("stopSignal")
}
