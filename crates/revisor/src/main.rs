//! The program: its sub-commands, and what becomes of their errors.

mod addresses;
mod admission_config;
mod admission_plugins;
mod authentication_config;
mod certificate_keeper;
mod cluster;
mod config_file;
mod controllers;
mod conversion_webhook;
mod crd;
mod credentials;
mod duration;
mod flag_values;
mod flags;
mod ip_range;
mod kept_secret;
mod logging;
mod machine;
mod manifest_keeper;
mod open_files;
mod port_range;
mod presence;
mod private_folder;
mod rehearse;
mod reports;
mod serve;
mod service_accounts;
mod usage_keeper;
mod version;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use flags::{Arguments, Command};

/// Requests are many small allocations that live short and die together; the system's allocator spends a sixth of a
/// write on them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    private_folder::withhold_from_others();
    let mut command = Arguments::command();
    command.build();
    let parsed = command
        .try_get_matches_from_mut(flags::with_default_command(std::env::args_os()))
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
                flag_values::flag_values(command, matches)
            });
            serve::serve(*flags, shown.unwrap_or_default())
        }
        Command::Gates(flags) => reports::gates(&flags).and_then(|text| print(&text)),
        Command::StorageVersions(flags) => reports::storage_versions(&flags).and_then(|text| print(&text)),
        Command::Crd(command) => return crd::run(&command),
        Command::Rehearse(flags) => return rehearse::run(&flags),
        Command::ConversionWebhook(flags) => conversion_webhook::run(*flags),
        Command::Credentials { command } => credentials::run(&command).and_then(|text| print(&text)),
        Command::Version => print(&version::text()),
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
        let has_findings = matches!(command, Some("crd" | "rehearse"));
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
