//! `revisor crd`: definitions and Conversions in files, checked and used without a server.

mod check;
mod convert;
mod documents;
mod files;
mod infer;
mod migrate;
mod prove;
mod usage;
mod yaml_text;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use revisor_catalog::{BINARY, Catalog};
use revisor_cel::Environment;
use revisor_convert::{Conversion, Definition, Spec};
use revisor_object::{FieldErrors, Object, Value};

use crate::flags::CrdCommand;
pub(crate) use check::CheckFlags;
pub(crate) use documents::Document;
pub(crate) use files::{Located, SourceFile, is_definition};
pub(crate) use migrate::MigrateFlags;
pub(crate) use prove::Finding;
pub(crate) use usage::UsageFlags;
pub(crate) use yaml_text::to_yaml;

/// How long a problem may be that is shown with the value that has it.
const MAX_PROBLEM: usize = 400;

/// The only version of definitions that there is any more.
const DEFINITION_VERSION: &str = "apiextensions.k8s.io/v1";

/// The only version of Conversions so far.
const CONVERSION_VERSION: &str = "versioning.revisor.dev/v1alpha1";

/// How the program ends when files cannot be read: what they say is not known then.
pub(crate) const UNREADABLE: u8 = 2;

/// Carries out a command.
pub(crate) fn run(command: &CrdCommand) -> ExitCode {
    let done = match command {
        CrdCommand::Check(flags) => check::check(flags),
        CrdCommand::Prove(flags) => prove::prove(flags),
        CrdCommand::Convert(flags) => convert::convert(flags),
        CrdCommand::Infer(flags) => infer::infer(flags),
        CrdCommand::Usage(flags) => usage::usage(flags),
        CrdCommand::Migrate(flags) => migrate::migrate(flags),
    };
    done.unwrap_or_else(|error| {
        crate::complain(&format!("revisor: {error:#}"));
        ExitCode::from(UNREADABLE)
    })
}

/// A Conversion of a file, beside its definition.
pub(crate) struct Pair {
    pub(crate) definition: Arc<Definition>,
    pub(crate) conversion: Object,
}

impl Pair {
    /// Makes the rules ready, or says what keeps them from being carried out.
    pub(crate) fn compile(&self) -> Result<Conversion, FieldErrors> {
        let spec = Spec::read(&self.conversion)?;
        Conversion::compile(Arc::clone(&self.definition), &spec, &environment())
    }
}

fn environment() -> Environment {
    Environment::new(BINARY)
}

/// The definition of a file. Of one that cannot be read, everything is told that a server would find wrong with it.
pub(crate) fn read_definition(found: &Located) -> anyhow::Result<Arc<Definition>> {
    let place = &found.place;
    let version = found.object.str("apiVersion").unwrap_or_default();
    if version != DEFINITION_VERSION {
        bail!(
            "{place}: it is of {version:?}, and only {DEFINITION_VERSION} can be read: write it so, with a schema in each \
             of its versions"
        );
    }
    match Definition::read(&found.object, &environment(), BINARY.minor.into()) {
        Ok(definition) => Ok(Arc::new(definition)),
        Err(error) => {
            let more = problems(&found.object).into_iter().map(|problem| format!("\n{place}: {problem}"));
            bail!("{place}: {error}{}", more.collect::<String>())
        }
    }
}

/// What a server would find wrong with a new definition.
fn problems(definition: &Object) -> Vec<String> {
    let catalog = Catalog::default();
    let Some(resource) = catalog.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions") else {
        return Vec::new();
    };
    let mut value = Value::Object(definition.clone());
    if let Err(why) = resource.conform(&mut value) {
        return vec![why];
    }
    let Value::Object(mut object) = value else { return Vec::new() };
    resource.default(&mut object);
    let errors = resource.strategy.validate(&object);
    // What the server itself writes there is nothing that a file has to say.
    let told = errors.iter().filter(|error| !error.field.starts_with("status"));
    told.map(|error| {
        // Some show all that they are about.
        let text = error.to_string();
        if text.len() > MAX_PROBLEM { format!("{}: {}", error.field, error.detail) } else { text }
    })
    .collect()
}

/// The Conversions of one file with their definitions in another; they have the same names.
fn pairs(definitions: &Path, conversions: &Path) -> anyhow::Result<Vec<Pair>> {
    let mut known = Vec::new();
    for found in SourceFile::read(definitions)?.objects()?.into_iter().filter(Located::is_definition) {
        known.push(read_definition(&found.in_v1())?);
    }
    if known.is_empty() {
        bail!("{}: there is no CustomResourceDefinition in this file", definitions.display());
    }
    let mut pairs = Vec::new();
    for found in SourceFile::read(conversions)?.objects()?.into_iter().filter(Located::is_conversion) {
        let version = found.object.str("apiVersion").unwrap_or_default();
        if version != CONVERSION_VERSION {
            bail!("{}: it is of {version:?}, and only {CONVERSION_VERSION} is known here", found.place);
        }
        let Some(definition) = known.iter().find(|definition| definition.name() == found.name()) else {
            let names: Vec<&str> = known.iter().map(|definition| definition.name()).collect();
            bail!(
                "{}: the Conversion {:?} has no definition in {}: it must be named like one of them: {}",
                found.place,
                found.name(),
                definitions.display(),
                names.join(", ")
            );
        };
        pairs.push(Pair { definition: Arc::clone(definition), conversion: found.object });
    }
    if pairs.is_empty() {
        bail!("{}: there is no Conversion of versioning.revisor.dev in this file", conversions.display());
    }
    Ok(pairs)
}
