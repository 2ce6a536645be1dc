//! The command line as it is typed, before it is read: flags that are given again, and the command that need not be named.

use std::ffi::OsString;

use crate::apiserver_flags::apiserver_flags;
use crate::pflag::{FlagType, Given, gather};

/// What flags say together that kube-apiserver lets one give again and again: the last of them counts, or all do. Others
/// are left as they are.
pub(crate) fn with_repeated_flags(arguments: Vec<OsString>) -> Vec<OsString> {
    let table = apiserver_flags();
    let kind = |name: &str| table.iter().find(|flag| flag.name == name).map(|flag| flag.value);
    let mut told: Vec<Given> = Vec::new();
    let mut line: Vec<OsString> = Vec::new();
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy().into_owned();
        let flag = text.strip_prefix("--").map(|flag| flag.split_once('=').unwrap_or((flag, "")));
        let Some((name, kind)) = flag.and_then(|(name, _)| Some((name.to_owned(), kind(name)?))) else {
            line.push(argument);
            continue;
        };
        let value = match text.split_once('=') {
            Some((_, value)) => value.to_owned(),
            // Truths may stand alone; what comes next is then no value.
            None if kind == FlagType::Bool => {
                line.push(argument);
                continue;
            }
            None => match rest.next() {
                Some(value) => value.to_string_lossy().into_owned(),
                None => {
                    line.push(argument);
                    continue;
                }
            },
        };
        told.push(Given { name, value });
    }
    let told = gather(told, |name| kind(name).unwrap_or(FlagType::Text));
    line.extend(told.into_iter().map(|Given { name, value }| OsString::from(format!("--{name}={value}"))));
    line
}

/// Puts `serve` where no command is named.
pub(crate) fn with_default_command(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let names_command = match arguments.get(1).map(|first| first.to_string_lossy()) {
        None => false,
        Some(first) => !first.starts_with('-') || ["-h", "--help", "-V", "--version"].contains(&&*first),
    };
    if !names_command {
        arguments.insert(1.min(arguments.len()), "serve".into());
    }
    arguments
}
