//! [`Runner`]: has groups played by both servers and compares what they answer.

use anyhow::{Context, Result};

use crate::client::Party;
use crate::finding::{Finding, compare, is_together};
use crate::group::{Group, Step};
use crate::normal::Normal;

/// A difference, and where it showed.
#[derive(Debug, Clone)]
pub struct Difference {
    /// Which request of the group it was.
    pub step: usize,
    /// How the answers differ.
    pub finding: Finding,
}

/// Has groups played by both servers.
pub struct Runner {
    ours: Party,
    theirs: Party,
    groups: u64,
    requests: u64,
}

impl Runner {
    /// A runner for these servers.
    pub fn new(ours: Party, theirs: Party) -> Runner {
        Runner { ours, theirs, groups: 0, requests: 0 }
    }

    /// How many requests were compared.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Plays a group, and answers what our server says and what the other does.
    pub async fn play(&mut self, group: &Group) -> Result<(Vec<Normal>, Vec<Normal>)> {
        self.groups += 1;
        let (ours, theirs) = tokio::join!(self.ours.play(group, self.groups), self.theirs.play(group, self.groups));
        self.requests += group.steps.len() as u64;
        Ok((ours.context("our server")?, theirs.context("the other server")?))
    }

    /// Plays a group and tells how the answers differ.
    pub async fn run(&mut self, group: &Group) -> Result<Vec<Difference>> {
        let (ours, theirs) = self.play(group).await?;
        Ok(differences(group, &ours, &theirs))
    }
}

/// How the answers to a group differ, until the servers part: what follows would tell nothing.
pub fn differences(group: &Group, ours: &[Normal], theirs: &[Normal]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (at, (step, (ours, theirs))) in group.steps.iter().zip(ours.iter().zip(theirs)).enumerate() {
        let found = compare(&subject(step), ours, theirs);
        differences.extend(found.into_iter().map(|finding| Difference { step: at, finding }));
        // What was only tried leaves nothing behind.
        if !is_together(ours, theirs) && !step.path.contains("dryRun=All") {
            break;
        }
    }
    differences
}

/// What a request is about: the method, the resource and its part, without names.
fn subject(step: &Step) -> String {
    let path = step.path.split('?').next().unwrap_or_default();
    let is_shown = |part: &&str| {
        !part.is_empty() && !part.contains("${ns}") && (*part != "namespaces" || path.ends_with("namespaces"))
    };
    let parts = path.split('/').filter(is_shown).map(|part| if part.contains("${") { "*" } else { part });
    let named: Vec<&str> = parts.collect();
    let query = step.path.split_once('?').map_or("", |(_, query)| query);
    let watch = if query.contains("watch=") { " watch" } else { "" };
    let accept = step.headers.iter().find(|(name, _)| name == "Accept").map_or("", |(_, value)| value.as_str());
    let form = if accept.contains("as=Table") { " as a table" } else { "" };
    format!("{} /{}{watch}{form}", step.method, named.join("/"))
}
