//! `revisor man`: the manual pages of all commands, from what they say with `--help`.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::flags::Arguments;

/// Writes a page for each command into a folder, which is made if it is not there. Answers how many there are.
pub(crate) fn write_pages(folder: &Path) -> anyhow::Result<String> {
    let failed = || format!("cannot write manual pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    clap_mangen::generate_to(Arguments::command(), folder).with_context(failed)?;
    Ok(format!(
        "wrote the manual pages to {}; read them with man -l {}/revisor.1\n",
        folder.display(),
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The names of all flags of a command and of those below it.
    fn flags(command: &clap::Command, known: &mut BTreeSet<String>) {
        for argument in command.get_arguments() {
            let names = argument.get_long().into_iter().chain(argument.get_all_aliases().into_iter().flatten());
            known.extend(names.map(|name| format!("--{name}")));
        }
        for below in command.get_subcommands() {
            flags(below, known);
        }
    }

    #[test]
    fn the_pages_of_operators_name_only_flags_that_there_are() {
        let mut known = BTreeSet::new();
        let mut command = Arguments::command();
        command.build();
        flags(&command, &mut known);
        let page = include_str!("../../../docs/operations.md").lines();
        let unit = include_str!("../../../packaging/revisor.service").lines().filter(|line| line.starts_with("Exec"));
        let image = include_str!("../../../Containerfile").lines();
        let image = image.filter_map(|line| line.split_once("CMD")).map(|(_, command)| command);
        let mut named = 0;
        let others = ["cargo ", "podman ", "etcdutl ", "kubectl "];
        let ours = page.chain(unit).chain(image).filter(|line| !others.iter().any(|other| line.contains(other)));
        for word in ours.flat_map(|line| line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))) {
            if word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic())) {
                named += 1;
                assert!(known.contains(word), "there is no flag {word}");
            }
        }
        assert!(named > 50, "{named}");
    }

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        write_pages(&folder.path().join("man")).expect("are written");
        for page in ["revisor.1", "revisor-serve.1", "revisor-crd-check.1", "revisor-conformance-resource-versions.1"] {
            let text = std::fs::read_to_string(folder.path().join("man").join(page)).expect(page);
            assert!(text.contains(".SH NAME"), "{page}");
        }
    }
}
