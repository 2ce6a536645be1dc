//! `revisor crd`: definitions and Conversions in files, checked and used without a server.

mod convert;
mod documents;
mod prove;
mod yaml_text;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use revisor_catalog::BINARY;
use revisor_cel::Environment;
use revisor_convert::{Conversion, Definition, Spec};
use revisor_object::{FieldErrors, Object};

use crate::flags::CrdCommand;
use documents::Document;

/// How the program ends when files cannot be read: what they say is not known then.
const UNREADABLE: u8 = 2;

/// Carries out a command.
pub(crate) fn run(command: &CrdCommand) -> ExitCode {
    let done = match command {
        CrdCommand::Prove(flags) => prove::prove(flags),
        CrdCommand::Convert(flags) => convert::convert(flags),
    };
    done.unwrap_or_else(|error| {
        crate::complain(&format!("revisor: {error:#}"));
        ExitCode::from(UNREADABLE)
    })
}

/// A Conversion of a file, beside its definition.
struct Pair {
    definition: Arc<Definition>,
    conversion: Object,
}

impl Pair {
    /// Makes the rules ready, or says what keeps them from being carried out.
    fn compile(&self) -> Result<Conversion, FieldErrors> {
        let spec = Spec::read(&self.conversion)?;
        Conversion::compile(Arc::clone(&self.definition), &spec, &environment())
    }
}

fn environment() -> Environment {
    Environment::new(BINARY)
}

/// The Conversions of one file with their definitions in another; they have the same names.
fn pairs(definitions: &Path, conversions: &Path) -> anyhow::Result<Vec<Pair>> {
    let mut known = Vec::new();
    for object in objects(definitions)? {
        if object.str("kind") == Some("CustomResourceDefinition") {
            let read = Definition::read(&object, &environment(), BINARY.minor.into());
            known.push(Arc::new(read.with_context(|| definitions.display().to_string())?));
        }
    }
    if known.is_empty() {
        bail!("{}: there is no CustomResourceDefinition in this file", definitions.display());
    }
    let mut pairs = Vec::new();
    for object in objects(conversions)? {
        let version = object.str("apiVersion").unwrap_or_default();
        if object.str("kind") != Some("Conversion") || !version.starts_with("versioning.revisor.dev/") {
            continue;
        }
        let name = object.at(&["metadata", "name"]).and_then(|name| name.as_str()).unwrap_or_default();
        let Some(definition) = known.iter().find(|definition| definition.name() == name) else {
            let names: Vec<&str> = known.iter().map(|definition| definition.name()).collect();
            bail!(
                "{}: the Conversion {name:?} has no definition in {}: it must be named like one of them: {}",
                conversions.display(),
                definitions.display(),
                names.join(", ")
            );
        };
        pairs.push(Pair { definition: Arc::clone(definition), conversion: object });
    }
    if pairs.is_empty() {
        bail!("{}: there is no Conversion of versioning.revisor.dev in this file", conversions.display());
    }
    Ok(pairs)
}

/// The objects of a file.
fn objects(file: &Path) -> anyhow::Result<Vec<Object>> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{} is no text", file.display()))?;
    let mut objects = Vec::new();
    for document in Document::all(&text) {
        let value = document.value().with_context(|| format!("{}, {}", file.display(), document.place()))?;
        objects.extend(value.as_object().cloned());
    }
    Ok(objects)
}
