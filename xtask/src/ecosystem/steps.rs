//! Steps of a suite that consists of commands: each has to end as it should, and say what it should.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::server::Server;
use super::tally::Tally;

/// One command, and what is expected of it.
pub(super) struct Step {
    pub(super) what: &'static str,
    /// The program and its arguments.
    pub(super) line: &'static str,
    pub(super) wanted: Wanted,
}

/// What a command has to say.
pub(super) enum Wanted {
    /// It ends well, and this is in what it prints.
    Says(&'static str),
    /// It fails, and this is in what it complains about.
    Fails(&'static str),
}

/// The programs of steps, by their names.
pub(super) struct Stage<'a> {
    pub(super) programs: &'a [(&'static str, PathBuf)],
    pub(super) server: &'a Server,
    /// Where the commands run. What they remember they keep in the folder of the server.
    pub(super) folder: &'a Path,
}

impl Stage<'_> {
    /// Goes through the steps, each whether or not those before it went well.
    pub(super) fn play(&self, steps: &[Step]) -> Result<Tally> {
        let begun = Instant::now();
        let mut tally = Tally::default();
        for step in steps {
            let complaint = self.take(step)?;
            println!("{}: {}", step.what, complaint.as_deref().unwrap_or("ok"));
            match complaint {
                None => tally.passed += 1,
                Some(_) => tally.failed += 1,
            }
        }
        tally.time = begun.elapsed();
        Ok(tally)
    }

    /// What is wrong with a step, if anything.
    fn take(&self, step: &Step) -> Result<Option<String>> {
        let mut words = step.line.split(' ');
        let name = words.next().unwrap_or_default();
        let program = self.programs.iter().find(|(known, _)| *known == name);
        let (_, program) = program.with_context(|| format!("{name} is no program of this suite"))?;
        let output = Command::new(program)
            .args(words)
            .current_dir(self.folder)
            .env("KUBECONFIG", self.server.kubeconfig())
            .env("HOME", &self.server.folder)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start {name}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        let good = match step.wanted {
            Wanted::Says(text) => output.status.success() && said.contains(text),
            Wanted::Fails(text) => !output.status.success() && complained.contains(text),
        };
        Ok((!good).then(|| format!("FAILED\n{}\n{said}{complained}", step.line)))
    }
}
