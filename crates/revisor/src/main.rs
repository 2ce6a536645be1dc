//! The program: its sub-commands, and what becomes of their errors.

mod addresses;
mod admission_config;
mod admission_plugins;
mod apiserver_flags;
mod audit;
mod authentication;
mod authentication_config;
mod authorization;
mod backend;
mod behind;
mod certificate_keeper;
mod cluster;
mod component;
mod config_file;
mod conformance;
mod controllers;
mod conversion_webhook;
mod crd;
mod credentials;
mod debug_socket;
mod duration;
mod encryption_config;
mod envtest;
mod etcd;
mod etcd_access;
mod etcd_flags;
mod etcd_marker;
mod etcd_overrides;
mod flag_values;
mod flags;
mod folder_copy;
mod health;
mod health_checks;
mod ip_range;
mod kept_secret;
mod kube_apiserver;
mod kubeconfig;
mod leader_election_flags;
mod live_config;
mod logging;
mod machine;
mod manifest_keeper;
mod manual;
mod moving;
mod open_files;
mod outward;
mod own_config_maps;
mod pflag;
mod port_range;
mod presence;
mod private_folder;
mod progress;
mod rehearse;
mod reload_metrics;
mod reports;
mod serve;
mod service_accounts;
mod spare_memory;
mod usage_keeper;
mod version;
mod webhook_users;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use component::Component;
use flags::{Arguments, Command};
use kube_apiserver::{Asked, EMULATION_VERSION};

/// Requests are many small allocations that live short and die together; the system's allocator spends a sixth of a
/// write on them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    private_folder::withhold_from_others();
    let program = std::env::args_os().next();
    match Component::called(program.as_deref()) {
        Component::Revisor => run(flags::with_default_command(std::env::args_os()), Vec::new()),
        Component::KubeApiserver => run_as_kube_apiserver(),
        Component::Etcd => etcd::run(std::env::args().skip(1).collect()),
    }
}

fn run_as_kube_apiserver() -> ExitCode {
    let release = std::env::var(EMULATION_VERSION).ok().filter(|release| !release.is_empty());
    let invocation = match kube_apiserver::invocation(std::env::args().collect(), release) {
        Ok(invocation) => invocation,
        Err(problem) => {
            complain(&format!("Error: {problem}"));
            return ExitCode::FAILURE;
        }
    };
    invocation.deprecated.iter().for_each(|line| complain(line));
    match invocation.asked {
        Asked::Serve(arguments) => run(arguments, invocation.idle),
        Asked::Print(text) => match print(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
    }
}

/// Runs the command that these arguments name. `idle` are flags that were given to a server and mean nothing to it.
fn run(arguments: Vec<OsString>, idle: Vec<String>) -> ExitCode {
    let mut command = Arguments::command();
    command.build();
    let is_serve = arguments.get(1).is_some_and(|name| name == "serve");
    let arguments = if is_serve { flags::with_repeated_flags(arguments) } else { arguments };
    let parsed = command
        .try_get_matches_from_mut(arguments)
        .and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error.format(&mut command), std::env::args().nth(1).as_deref()),
    };
    let done = match arguments.command {
        Command::Serve(mut flags) => {
            let shown = command.find_subcommand("serve").zip(matches.subcommand_matches("serve"));
            let shown = shown.map(|(command, matches)| {
                flags.note_given(matches);
                flags.idle = idle;
                flag_values::flag_values(command, matches)
            });
            // What is known of all flags is of no use to a server that runs for months.
            drop((command, matches));
            serve::serve(*flags, shown.unwrap_or_default())
        }
        Command::Gates(flags) => reports::gates(&flags).and_then(|text| print(&text)),
        Command::StorageVersions(flags) => reports::storage_versions(&flags).and_then(|text| print(&text)),
        Command::Crd(command) => return crd::run(&command),
        Command::Rehearse(flags) => return rehearse::run(&flags),
        Command::Import(flags) => return moving::import(&flags),
        Command::Export(flags) => return moving::export(&flags),
        Command::Conformance(command) => return conformance::run(&command),
        Command::ConversionWebhook(flags) => conversion_webhook::run(*flags),
        Command::Credentials { command } => credentials::run(&command).and_then(|text| print(&text)),
        Command::Envtest(command) => envtest::run(&command),
        Command::Flags(flags) => print(&apiserver_flags::flags(&flags)),
        Command::Version => print(&version::text()),
        Command::Health(flags) => health::health(&flags).and_then(|text| print(&text)),
        Command::Man { folder } => manual::write_pages(&folder).and_then(|text| print(&text)),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "revisor", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("revisor: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Help is no error. Everything else that is wrong with the flags ends the program with code 1, and with 2 where 1 tells
/// what was found.
fn refuse(error: &clap::Error, command: Option<&str>) -> ExitCode {
    if error.use_stderr() {
        complain(error.to_string().trim_end());
        let has_findings = matches!(command, Some("crd" | "rehearse" | "import" | "export" | "conformance"));
        return if has_findings { ExitCode::from(crd::UNREADABLE) } else { ExitCode::FAILURE };
    }
    match print(&error.to_string()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn complain(text: &str) {
    // If nobody can be told, there is nobody to tell that either.
    let _ = writeln!(std::io::stderr(), "{text}");
}
