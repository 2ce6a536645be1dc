//! [`Report`]: the differences by their causes, each shown once.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::deliberate;
use crate::group::Group;
use crate::run::Difference;

/// All that was found.
#[derive(Debug, Default)]
pub struct Report {
    causes: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    times: usize,
    /// The smallest group that shows it.
    group: Group,
    ours: String,
    theirs: String,
}

impl Report {
    /// Whether the cause was not seen before.
    pub fn is_new(&self, cause: &str) -> bool {
        !self.causes.contains_key(cause)
    }

    /// Counts a difference, and keeps the group that shows it if it is the first.
    pub fn add(&mut self, group: &Group, difference: &Difference) {
        let finding = &difference.finding;
        let entry = self.causes.entry(finding.cause.clone()).or_insert_with(|| Entry {
            times: 0,
            group: Group { title: group.title.clone(), steps: group.steps[..=difference.step].to_vec() },
            ours: finding.ours.clone(),
            theirs: finding.theirs.clone(),
        });
        entry.times += 1;
    }

    /// Shows this group for a cause from now on.
    pub fn show(&mut self, cause: &str, group: Group) {
        if let Some(entry) = self.causes.get_mut(cause) {
            entry.group = group;
        }
    }

    /// How many causes there are that nobody meant.
    pub fn unmeant(&self) -> usize {
        self.causes.keys().filter(|cause| deliberate::find(cause).is_none()).count()
    }

    /// The report for people: what nobody meant, most frequent first, then what is meant.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut entries: Vec<(&String, &Entry)> = self.causes.iter().collect();
        entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.times));
        let (meant, unmeant): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(cause, _)| deliberate::find(cause).is_some());
        for (cause, entry) in unmeant {
            // Writing to a text cannot fail.
            let _ = writeln!(text, "=== {} × {cause}\n    ({})", entry.times, entry.group.title);
            for step in &entry.group.steps {
                let _ = writeln!(text, "{}", indented(&step.to_string()));
            }
            let _ = writeln!(text, "  ours:   {}\n  theirs: {}\n", entry.ours, entry.theirs);
        }
        for (cause, entry) in meant {
            let reason = deliberate::find(cause).map_or("", |row| row.reason);
            let _ = writeln!(text, "meant, {} × {cause}: {reason}", entry.times);
        }
        text
    }
}

fn indented(text: &str) -> String {
    let clipped: String = text.chars().take(3000).collect();
    clipped.lines().map(|line| format!("    {line}\n")).collect::<String>().trim_end().to_owned()
}
