//! Every flag that kube-apiserver has in the releases that this program can be: its type, its default, since when, and
//! what it means here. `revisor flags` prints them.
//!
//! Whether a flag has an effect is not written down: it has one if `revisor serve` has it. What the table says for the
//! others is why nothing depends on them.

use clap::{Command, CommandFactory};
use revisor_version::Release;
use serde_json::Value;

use crate::flags::{Arguments, FlagsFlags};
use crate::pflag::FlagType;
use crate::reports::report;

const TABLE: &str = include_str!("../tables/kube_apiserver_flags.csv");

/// One flag of kube-apiserver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiserverFlag {
    pub(crate) name: &'static str,
    pub(crate) value: FlagType,
    pub(crate) default: String,
    /// The release that it came with, if that is not the oldest of all.
    pub(crate) since: Option<Release>,
    /// What whoever uses it is told, if it will go.
    pub(crate) deprecated: String,
    /// Why nothing depends on it, where nothing does.
    pub(crate) here: String,
}

/// The table.
pub(crate) fn apiserver_flags() -> Vec<ApiserverFlag> {
    TABLE.lines().skip(1).filter(|line| !line.is_empty()).map(read).collect()
}

fn read(line: &'static str) -> ApiserverFlag {
    let mut cells = cells(line).into_iter();
    let mut next = || cells.next().unwrap_or_default();
    let name = line.split(',').next().unwrap_or_default();
    next();
    let value = FlagType::named(&next());
    ApiserverFlag {
        name,
        value: value.expect("a test reads the whole table"),
        default: next(),
        since: Some(next())
            .filter(|since| !since.is_empty())
            .map(|since| since.parse().expect("a test reads the whole table")),
        deprecated: next(),
        here: next(),
    }
}

/// The cells of a line; those with commas in them stand in quotes.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().expect("there is always one").push(c),
        }
    }
    cells
}

/// `revisor serve` as it is, to ask which flags it has.
pub(crate) fn serve_command() -> Command {
    let mut command = Arguments::command();
    command.build();
    command.find_subcommand("serve").expect("is a command").clone()
}

/// Whether `revisor serve` has a flag, by this name or as another spelling.
pub(crate) fn serves(serve: &Command, name: &str) -> bool {
    serve.get_arguments().any(|flag| {
        let others = flag.get_all_aliases().unwrap_or_default();
        flag.get_long() == Some(name) || others.contains(&name)
    })
}

/// What `revisor flags` prints.
pub(crate) fn flags(flags: &FlagsFlags) -> String {
    let serve = serve_command();
    let rows = apiserver_flags().into_iter().map(|flag| {
        let has_effect = serves(&serve, flag.name);
        let here = match has_effect {
            true => "as in kube-apiserver".to_owned(),
            false => format!("none: {}", flag.here),
        };
        let since = flag.since.map_or_else(|| "1.33".to_owned(), |since| since.to_string());
        let row = [flag.name.to_owned(), flag.value.name().to_owned(), flag.default, since];
        row.into_iter().map(Value::from).chain([Value::from(!flag.deprecated.is_empty()), Value::from(here)]).collect()
    });
    report(&["name", "type", "default", "since", "deprecated", "effect"], rows.collect(), flags.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read_and_tells_of_every_flag_why_it_has_no_effect() {
        let (serve, flags) = (serve_command(), apiserver_flags());
        assert!(flags.len() > 170, "{}", flags.len());
        assert!(flags.windows(2).all(|pair| pair[0].name < pair[1].name), "in order, each once");
        for flag in &flags {
            assert_eq!(serves(&serve, flag.name), flag.here.is_empty(), "{}: it has an effect or a reason", flag.name);
        }
        let kubelet = flags.iter().find(|flag| flag.name == "kubelet-preferred-address-types").expect("is there");
        assert_eq!(kubelet.default, "[Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP]");
    }

    #[test]
    fn what_both_have_is_named_alike() {
        // Those that only this program has say what it alone can do.
        let serve = serve_command();
        for own in ["data-dir", "controllers", "history", "max-watches"] {
            assert!(serves(&serve, own) && !apiserver_flags().iter().any(|flag| flag.name == own), "{own}");
        }
    }
}
