//! The program called as `kube-apiserver`: the flags of the original, turned into those of `revisor serve`.
//!
//! Every flag that the original has is accepted and checked; those that mean nothing here are told in the log, those that
//! it does not have are refused in its words. Defaults are the original's. Flags that only `revisor serve` has are taken
//! too. State is kept where the etcd that is named keeps its own, if that is this program (`etcd_marker.rs`).

use std::ffi::OsString;
use std::path::Path;

use clap::Command;
use revisor_catalog::BINARY;
use revisor_version::Release;

use crate::apiserver_flags::{ApiserverFlag, apiserver_flags, serve_command, serves};
use crate::component::release_of_folder;
use crate::etcd_marker;
use crate::pflag::{FlagType, Given, gather, parse};

/// What `revisor serve` does otherwise unless it is told: where both have a default, and not the same.
const DEFAULTS: [(&str, &str); 4] = [
    ("allow-privileged", "false"),
    ("authorization-mode", "AlwaysAllow"),
    ("bind-address", "0.0.0.0"),
    ("http2-max-streams-per-connection", "0"),
];

/// The controllers that run unless somebody says otherwise. Those that put objects into every namespace are left out: whoever
/// starts the original finds none there, and tests of operators count them.
const CONTROLLERS: &str = "*,-root-ca-certificate-publisher-controller,-serviceaccount-controller";

/// The variable that names the controllers to run.
pub(crate) const CONTROLLERS_VARIABLE: &str = "REVISOR_CONTROLLERS";

/// The variable that names the release to be.
pub(crate) const EMULATION_VERSION: &str = "REVISOR_EMULATION_VERSION";

/// What a command line of the original asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To serve, with these arguments of this program.
    Serve(Vec<OsString>),
    /// To print something and end.
    Print(String),
}

/// A server that is about to start, and what whoever starts it is told before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub(crate) asked: Asked,
    /// Lines about flags that will go, as the original prints them.
    pub(crate) deprecated: Vec<String>,
    /// Flags that mean nothing here.
    pub(crate) idle: Vec<String>,
}

/// Reads a command line of the original. `environment` is the release that the environment asks for, if it does.
pub(crate) fn invocation(arguments: Vec<String>, environment: Option<String>) -> Result<Invocation, String> {
    let (program, arguments) = match arguments.split_first() {
        Some((program, rest)) => (program.as_str(), rest.to_vec()),
        None => ("kube-apiserver", Vec::new()),
    };
    let (serve, table) = (serve_command(), apiserver_flags());
    let release = environment.or_else(|| release_of_folder(Path::new(program)).map(|release| release.to_string()));
    let is = release.as_deref().and_then(|release| release.parse::<Release>().ok()).unwrap_or(BINARY);
    let find = |name: &str| table.iter().find(|flag| flag.name == name && flag.since.is_none_or(|since| since <= is));
    // A flag that the original has in another release only is none here.
    let is_of_another = |name: &str| table.iter().any(|flag| flag.name == name);
    let kind = |name: &str| match find(name) {
        Some(flag) => Some(flag.value),
        None if is_of_another(name) => None,
        None => own_flag(&serve, name),
    };
    let parsed = parse(arguments, kind)?;
    let print = |text| Invocation { asked: Asked::Print(text), deprecated: Vec::new(), idle: Vec::new() };
    if parsed.wants_help {
        return Ok(print(help(&table, is)));
    }
    let version = parsed.given.iter().rev().find(|flag| flag.name == "version").map(|flag| flag.value.as_str());
    match version {
        Some("false") | None => {}
        Some(_) => return Ok(print(format!("Kubernetes v{is}.0\n"))),
    }
    if !parsed.others.is_empty() {
        let others: Vec<String> = parsed.others.iter().map(|other| format!("{other:?}")).collect();
        return Err(format!("\"kube-apiserver\" does not take any arguments, got [{}]", others.join(" ")));
    }
    let mut deprecated: Vec<String> = Vec::new();
    for flag in parsed.given.iter().filter_map(|given| find(&given.name)).filter(|flag| !flag.deprecated.is_empty()) {
        let line = format!("Flag --{} has been deprecated, {}", flag.name, flag.deprecated);
        if !deprecated.contains(&line) {
            deprecated.push(line);
        }
    }
    let given = gather(parsed.given, |name| kind(name).unwrap_or(FlagType::Text));
    let given: Vec<Given> = given.into_iter().filter(|flag| flag.name != "version").collect();
    let (effective, idle): (Vec<Given>, Vec<Given>) = given.into_iter().partition(|flag| serves(&serve, &flag.name));
    let mut effective = settle_state(effective, &idle, &serve)?;
    let says = |flags: &[Given], name: &str| flags.iter().any(|flag| flag.name == name);
    for (name, value) in DEFAULTS {
        // The modes may stand in a file instead.
        let is_in_file = name == "authorization-mode" && says(&effective, "authorization-config");
        if !is_in_file && !says(&effective, name) {
            effective.push(Given { name: name.to_owned(), value: value.to_owned() });
        }
    }
    if !says(&effective, "controllers") && std::env::var_os(CONTROLLERS_VARIABLE).is_none() {
        effective.push(Given { name: "controllers".to_owned(), value: CONTROLLERS.to_owned() });
    }
    if let Some(release) = release
        && !says(&effective, "emulated-version")
        && !says(&effective, "emulation-version")
    {
        effective.push(Given { name: "emulation-version".to_owned(), value: release });
    }
    let line = ["kube-apiserver".to_owned(), "serve".to_owned()].into_iter();
    let line = line.chain(effective.into_iter().map(|Given { name, value }| format!("--{name}={value}")));
    let idle = idle.into_iter().map(|flag| flag.name).filter(|name| name != "etcd-servers").collect();
    Ok(Invocation { asked: Asked::Serve(line.map(OsString::from).collect()), deprecated, idle })
}

/// What a flag of `revisor serve` takes that the original does not have.
fn own_flag(serve: &Command, name: &str) -> Option<FlagType> {
    let others = |flag: &&clap::Arg| flag.get_all_aliases().unwrap_or_default().contains(&name);
    let flag = serve.get_arguments().find(|flag| flag.get_long() == Some(name) || others(flag))?;
    let takes_none = flag.get_num_args().is_some_and(|count| count.min_values() == 0);
    Some(match flag.get_action() {
        _ if takes_none => FlagType::Bool,
        clap::ArgAction::Append => FlagType::Texts,
        _ => FlagType::Text,
    })
}

/// Says where state is kept: in the folder of the etcd that is named if that only marks it, or else in that etcd, if this
/// program can do that.
fn settle_state(mut effective: Vec<Given>, idle: &[Given], serve: &Command) -> Result<Vec<Given>, String> {
    if effective.iter().any(|flag| flag.name == "data-dir") {
        return Ok(effective);
    }
    let servers = effective.iter().chain(idle).find(|flag| flag.name == "etcd-servers");
    let Some(servers) = servers.map(|flag| flag.value.clone()) else {
        return Err("--etcd-servers must be specified".to_owned());
    };
    match etcd_marker::marked_folder(&servers)? {
        Some(folder) => {
            effective.retain(|flag| !(flag.name.starts_with("etcd-") && flag.name != "etcd-compaction-interval"));
            effective.push(Given { name: "data-dir".to_owned(), value: folder });
        }
        None if serves(serve, "etcd-servers") => {}
        None => {
            return Err(format!(
                "{servers} is an etcd of its own, and this program keeps its state in folders only: start it as \
                 `etcd`, or say --data-dir"
            ));
        }
    }
    Ok(effective)
}

/// What `--help` prints: each flag at the beginning of a line, which is how tools find out which there are.
fn help(table: &[ApiserverFlag], release: Release) -> String {
    let mut text =
        "The Kubernetes API, served by Revisor.\n\nUsage:\n  kube-apiserver [flags]\n\nFlags:\n\n".to_owned();
    let serve = serve_command();
    let known = table.iter().filter(|flag| flag.since.is_none_or(|since| since <= release));
    let lines: Vec<(String, String)> = known
        .map(|flag| {
            let kind = if flag.value == FlagType::Bool { "" } else { flag.value.name() };
            let effect = match (serves(&serve, flag.name), flag.here.as_str()) {
                (false, here) if !here.is_empty() => format!("No effect: {here}."),
                _ => String::new(),
            };
            let default = match flag.default.as_str() {
                "" | "[]" | "false" | "0" => String::new(),
                default => format!(" (default {default})"),
            };
            (
                format!("      --{} {kind}", flag.name).trim_end().to_owned(),
                format!("{effect}{default}").trim().to_owned(),
            )
        })
        .collect();
    let width = lines.iter().map(|(flag, _)| flag.len()).max().unwrap_or_default() + 3;
    for (flag, about) in lines {
        text.push_str(format!("{flag:<width$}{about}").trim_end());
        text.push('\n');
    }
    text.push_str(
        "\n  -h, --help   help for kube-apiserver\n\nAlso the flags of `revisor serve`; `revisor flags` tells more.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Invocation, String> {
        let words = std::iter::once("kube-apiserver").chain(line.split_whitespace());
        invocation(words.map(str::to_owned).collect(), None)
    }

    fn served(line: &str) -> Vec<String> {
        match asked(line).unwrap_or_else(|problem| panic!("{line}: {problem}")).asked {
            Asked::Serve(arguments) => arguments.into_iter().map(|text| text.to_string_lossy().into_owned()).collect(),
            Asked::Print(text) => panic!("{line}: {text}"),
        }
    }

    #[test]
    fn flags_of_the_original_become_those_of_this_program() {
        let arguments =
            served("--data-dir=/x --secure-port 7000 --runtime-config=a/v1=true --runtime-config b/v1=true");
        assert!(arguments.contains(&"--secure-port=7000".to_owned()), "{arguments:?}");
        assert!(arguments.contains(&"--runtime-config=a/v1=true,b/v1=true".to_owned()), "{arguments:?}");
        assert!(arguments.contains(&"--bind-address=0.0.0.0".to_owned()), "{arguments:?}");
        let arguments = served("--data-dir=/x --authorization-mode=Node --authorization-mode=RBAC --allow-privileged");
        assert!(arguments.contains(&"--authorization-mode=Node,RBAC".to_owned()), "{arguments:?}");
        assert!(arguments.contains(&"--allow-privileged=true".to_owned()), "{arguments:?}");
        let controllers =
            |line: &str| served(line).into_iter().filter(|word| word.starts_with("--controllers=")).collect::<Vec<_>>();
        assert_eq!(controllers("--data-dir=/x"), [format!("--controllers={CONTROLLERS}")]);
        assert_eq!(controllers("--data-dir=/x --controllers=none"), ["--controllers=none"]);
    }

    #[test]
    fn every_flag_of_the_table_is_taken() {
        let value = |flag: &ApiserverFlag| match flag.value {
            FlagType::Bool => "true",
            FlagType::Int | FlagType::Uint | FlagType::Level | FlagType::Float | FlagType::Ints => "1",
            FlagType::Duration => "1m",
            FlagType::Ip => "127.0.0.1",
            FlagType::Quantity => "1Mi",
            FlagType::PortRange => "30000-30001",
            FlagType::Map | FlagType::StringMap | FlagType::Gates => "a=b",
            FlagType::Modules => "a=1",
            _ => "x",
        };
        for flag in apiserver_flags().iter().filter(|flag| flag.name != "version") {
            let line = format!("--data-dir=/x --{}={}", flag.name, value(flag));
            let invocation = asked(&line).unwrap_or_else(|problem| panic!("{line}: {problem}"));
            let is_idle = invocation.idle.contains(&flag.name.to_owned());
            assert!(is_idle != serves(&serve_command(), flag.name) || flag.name == "etcd-servers", "{}", flag.name);
            assert_eq!(invocation.deprecated.is_empty(), flag.deprecated.is_empty(), "{}", flag.name);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_in_the_words_of_the_original() {
        for (line, want) in [
            ("--foo", "unknown flag: --foo"),
            ("positional", "\"kube-apiserver\" does not take any arguments, got [\"positional\"]"),
            ("", "--etcd-servers must be specified"),
        ] {
            assert_eq!(asked(line), Err(want.to_owned()), "{line}");
        }
    }

    #[test]
    fn releases_know_their_own_flags() {
        let line = ["kube-apiserver", "--data-dir=/x", "--min-compatibility-version=1.33"].map(str::to_owned).to_vec();
        let refused = invocation(line.clone(), Some("1.33".to_owned()));
        assert_eq!(refused, Err("unknown flag: --min-compatibility-version".to_owned()));
        assert!(invocation(line, None).is_ok());
        let version = |release: Option<&str>| {
            let line = ["kube-apiserver", "--version"].map(str::to_owned).to_vec();
            invocation(line, release.map(str::to_owned)).expect("is fine").asked
        };
        assert_eq!(version(Some("1.34")), Asked::Print("Kubernetes v1.34.0\n".to_owned()));
        assert_eq!(version(None), Asked::Print(format!("Kubernetes v{BINARY}.0\n")));
    }

    #[test]
    fn help_names_each_flag_at_the_beginning_of_a_line() {
        let Asked::Print(text) = asked("--help").expect("is fine").asked else { panic!("help is printed") };
        for flag in ["--etcd-servers", "--secure-port", "--feature-gates"] {
            assert!(text.lines().any(|line| line.trim_start().starts_with(flag)), "{flag}");
        }
        assert!(!text.contains("--insecure-port"));
    }
}
