//! The flags and their values as `/flagz` shows them, in the way of kube-apiserver's.
//!
//! They are taken from what the command line itself knows of its flags, so that none can be forgotten. No flag has a
//! secret for a value, only the names of files that keep one; a flag that did would have to be left out here.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use revisor_auth::{AuthorizationModes, NamedFiles};
use revisor_catalog::RuntimeConfig;

use crate::controllers::ControllersFlag;
use crate::ip_range::IpRange;

/// All flags of a command by the names that they have there, other spellings among them.
pub(crate) fn flag_values(command: &Command, matches: &ArgMatches) -> BTreeMap<String, String> {
    let flags = command.get_arguments().flat_map(|flag| {
        let value = value(flag, matches);
        let spellings = flag.get_long().into_iter().chain(flag.get_all_aliases().into_iter().flatten());
        spellings.map(|name| (name.to_owned(), value.clone())).collect::<Vec<_>>()
    });
    flags.collect()
}

fn value(flag: &Arg, matches: &ArgMatches) -> String {
    match flag.get_action() {
        // Who asks for help gets that, and no server.
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version => return "false".to_owned(),
        _ => {}
    }
    let id = flag.get_id().as_str();
    let is = |other: TypeId| flag.get_value_parser().type_id() == other;
    let texts = || {
        let texts = matches.get_raw(id).into_iter().flatten();
        texts.map(|text| text.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    if is(TypeId::of::<Duration>()) {
        let duration = matches.get_one::<Duration>(id).copied().unwrap_or_default();
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        return revisor_object::Duration::from_nanos(nanos).to_string();
    }
    if is(TypeId::of::<RuntimeConfig>()) {
        return matches.get_one::<RuntimeConfig>(id).map(RuntimeConfig::to_string).unwrap_or_default();
    }
    if id == "feature_gates" {
        return gates(&texts().join(","));
    }
    if is(TypeId::of::<NamedFiles>()) {
        // Their texts have commas of their own.
        return format!("[{}]", texts().join(";"));
    }
    let is_list = matches!(flag.get_action(), ArgAction::Append) && !is(TypeId::of::<IpRange>());
    if is_list || is(TypeId::of::<AuthorizationModes>()) || is(TypeId::of::<ControllersFlag>()) {
        return format!("[{}]", texts().join(","));
    }
    texts().join(",")
}

/// Gates as the original shows them: each with its component before it, though it has no name.
fn gates(text: &str) -> String {
    let gates = text.split(',').map(str::trim).filter(|gate| !gate.is_empty());
    gates
        .map(|gate| if gate.contains(':') { gate.to_owned() } else { format!(":{gate}") })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::flags::Arguments;

    fn shown(line: &str) -> BTreeMap<String, String> {
        let mut command = Arguments::command();
        command.build();
        let matches = command.clone().get_matches_from(["revisor", "serve"].into_iter().chain(line.split_whitespace()));
        let serve = command.find_subcommand("serve").expect("is a command");
        flag_values(serve, matches.subcommand_matches("serve").expect("is asked for"))
    }

    #[test]
    fn values_are_written_as_kube_apiserver_writes_them() {
        for (line, name, want) in [
            ("", "min-compatibility-version", "[]"),
            ("--min-compatibility-version=1.34", "min-compatibility-version", "[1.34]"),
            ("--emulation-version=kube=1.35", "emulated-version", "[kube=1.35]"),
            ("--emulated-version=1.35", "emulation-version", "[1.35]"),
            ("--runtime-config=batch/v1=false", "runtime-config", "batch/v1=false"),
            (
                "--runtime-config=storage.k8s.io/v1beta1=true,api/beta=false",
                "runtime-config",
                "api/beta=false,storage.k8s.io/v1beta1=true",
            ),
            ("", "runtime-config", ""),
            (
                "--feature-gates=WatchList=false --feature-gates=AllBeta=true",
                "feature-gates",
                ":WatchList=false,:AllBeta=true",
            ),
            ("--feature-gates=kube:WatchList=false", "feature-gates", "kube:WatchList=false"),
            ("", "feature-gates", ""),
            ("", "request-timeout", "1m0s"),
            ("", "event-ttl", "1h0m0s"),
            ("", "service-account-max-token-expiration", "0s"),
            ("--history=90s", "history", "1m30s"),
            ("--history=90s", "etcd-compaction-interval", "1m30s"),
            ("", "authorization-mode", "[RBAC]"),
            ("--authorization-mode=Node,RBAC", "authorization-mode", "[Node,RBAC]"),
            ("--controllers=none", "controllers", "[none]"),
            ("--service-account-issuer=a --service-account-issuer=b", "service-account-issuer", "[a,b]"),
            ("--api-audiences=a,b", "api-audiences", "[a,b]"),
            ("", "service-cluster-ip-range", "10.0.0.0/24"),
            ("--service-cluster-ip-range=10.0.0.0/24,fd00::/112", "service-cluster-ip-range", "10.0.0.0/24,fd00::/112"),
            ("", "service-node-port-range", "30000-32767"),
            ("", "client-ca-file", ""),
            ("", "tls-sni-cert-key", "[]"),
            (
                "--tls-sni-cert-key=a.crt,a.key --tls-sni-cert-key=b.crt,b.key:*.b,b",
                "tls-sni-cert-key",
                "[a.crt,a.key;b.crt,b.key:*.b,b]",
            ),
            ("", "tls-min-version", ""),
            ("--tls-min-version=VersionTLS13", "tls-min-version", "VersionTLS13"),
            ("", "tls-cipher-suites", "[]"),
            (
                "--strict-transport-security-directives=max-age=5,preload",
                "strict-transport-security-directives",
                "[max-age=5,preload]",
            ),
            ("", "anonymous-auth", "true"),
            ("--emulation-forward-compatible", "emulation-forward-compatible", "true"),
            ("", "emulation-forward-compatible", "false"),
            ("", "secure-port", "6443"),
            ("-v 4", "v", "4"),
            ("", "logging-format", "text"),
            ("", "help", "false"),
        ] {
            assert_eq!(shown(line).get(name).map(String::as_str), Some(want), "{name} of {line:?}");
        }
    }

    #[test]
    fn every_flag_is_shown() {
        let mut command = Arguments::command();
        command.build();
        let serve = command.find_subcommand("serve").expect("is a command");
        let shown = shown("");
        let names: Vec<&str> = serve.get_arguments().filter_map(Arg::get_long).collect();
        assert!(names.len() > 40, "{names:?}");
        for name in names {
            assert!(shown.contains_key(name), "{name}");
        }
    }
}
