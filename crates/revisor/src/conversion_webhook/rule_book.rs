//! [`RuleBook`]: all definitions and Conversions of some files, checked and ready to be used.

use std::collections::HashMap;
use std::sync::Arc;

use revisor_convert::{Conversion, Definition};

use crate::crd::{Finding, Located, Pair, SourceFile, read_definition};

/// What is known of one definition.
pub(super) struct Entry {
    pub(super) definition: Arc<Definition>,
    /// Nothing if no file has one.
    pub(super) conversion: Option<Conversion>,
}

/// The definitions by group and kind, with their Conversions.
pub(super) struct RuleBook {
    entries: Vec<Entry>,
    by_kind: HashMap<(String, String), usize>,
}

impl RuleBook {
    /// Takes what is in the files, all of it or nothing, and then everything that is wrong with them is answered: rules
    /// that cannot be carried out or break a law are refused in the words of `revisor crd prove`.
    pub(super) fn read(files: &[SourceFile]) -> Result<RuleBook, Vec<String>> {
        let mut problems = Vec::new();
        let (mut definitions, mut conversions) = (Vec::new(), Vec::new());
        for file in files {
            match file.objects() {
                Err(error) => problems.push(format!("{error:#}")),
                Ok(objects) => {
                    let known = objects.into_iter().filter(|found| found.is_definition() || found.is_conversion());
                    for found in known {
                        if found.is_definition() { definitions.push(found) } else { conversions.push(found) }
                    }
                }
            }
        }
        problems.extend(repeated(&definitions).chain(repeated(&conversions)));
        if definitions.is_empty() && problems.is_empty() {
            problems.push("there is no CustomResourceDefinition in the files".to_owned());
        }
        let mut book = RuleBook { entries: Vec::new(), by_kind: HashMap::new() };
        for found in &definitions {
            match read_definition(found) {
                Err(error) => problems.push(format!("{error:#}")),
                Ok(definition) => problems.extend(book.add(definition, &found.place).err()),
            }
        }
        for found in conversions {
            problems.extend(book.convert_by(found).err());
        }
        if problems.is_empty() { Ok(book) } else { Err(problems) }
    }

    fn add(&mut self, definition: Arc<Definition>, place: &str) -> Result<(), String> {
        let storage = definition.storage();
        let (group, _) = split(storage.api_version());
        let kind = (group.to_owned(), storage.kind().to_owned());
        if let Some(other) = self.by_kind.insert(kind, self.entries.len()) {
            let other = self.entries[other].definition.name();
            if other != definition.name() {
                return Err(format!("{place}: {other} has the same group and kind"));
            }
        }
        self.entries.push(Entry { definition, conversion: None });
        Ok(())
    }

    /// Takes a Conversion, if its definition is there and no law is broken.
    fn convert_by(&mut self, found: Located) -> Result<(), String> {
        let entry = self.entries.iter_mut().find(|entry| entry.definition.name() == found.name());
        let Some(entry) = entry else {
            return Err(format!("{}: there is no definition {:?} in the files", found.place, found.name()));
        };
        let pair = Pair { definition: Arc::clone(&entry.definition), conversion: found.object };
        let (finding, conversion) = Finding::of(&pair);
        if !finding.is_good() {
            return Err(format!("{}: {}", found.place, finding.text().trim_end()));
        }
        for warning in finding.warnings() {
            tracing::warn!(definition = entry.definition.name(), warning, "a Conversion can be used, but");
        }
        entry.conversion = conversion;
        Ok(())
    }

    /// The definitions.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The number of the definition of a kind.
    pub(super) fn number_of(&self, group: &str, kind: &str) -> Option<usize> {
        self.by_kind.get(&(group.to_owned(), kind.to_owned())).copied()
    }

    /// The definitions that nothing is converted by.
    pub(super) fn unconverted(&self) -> impl Iterator<Item = &str> {
        let without = self.entries.iter().filter(|entry| entry.conversion.is_none());
        without.filter(|entry| entry.definition.versions().len() > 1).map(|entry| entry.definition.name())
    }
}

/// Group and version.
pub(super) fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// What stands in the files twice, of which nobody knows which one is meant.
fn repeated(objects: &[Located]) -> impl Iterator<Item = String> {
    objects.iter().enumerate().filter_map(|(number, found)| {
        let earlier = objects[..number].iter().find(|other| other.name() == found.name())?;
        let (kind, name) = (found.object.str("kind").unwrap_or_default(), found.name());
        Some(format!("{}: the {kind} {name:?} stands in {} already", found.place, earlier.place))
    })
}
