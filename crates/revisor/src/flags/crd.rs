//! The commands about definitions and Conversions, and their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::commands::OutputFormat;
use crate::crd::{CheckFlags, MigrateFlags, UsageFlags};

const CHECK_EXAMPLE: &str = "\
Examples:
  revisor crd check old.yaml new.yaml
  revisor crd check origin/main:config/crd config/crd -o github
  revisor crd check --context=staging --live config/crd";

/// What is done with definitions and Conversions in files.
#[derive(Debug, Subcommand)]
pub(crate) enum CrdCommand {
    /// Tell what a change of definitions breaks, and for whom.
    ///
    /// Compares definitions version by version, and the versions that are served with each other. What breaks somebody is
    /// shown by the smallest object found that was accepted and is refused, or that shows something else. Sources are
    /// files, folders, `REV:path` of the git repository that one stands in, `-` for standard input, and, if OLD is left
    /// out, what the cluster has. Ends with 0 if nothing breaks or the annotation versioning.revisor.dev/semver declares a
    /// step that is large enough, with 1 if something breaks, and with 2 if the sources cannot be compared.
    #[command(after_help = CHECK_EXAMPLE)]
    Check(Box<CheckFlags>),
    /// Look for an object that a Conversion would lose or spoil.
    ///
    /// Prints what is known of each step: Proved if the shapes of both versions decide it, Tested with the number of
    /// objects that were tried, or Tolerated. What breaks a law is shown with the rule that is to blame and the smallest
    /// object that breaks it. Ends with 0 if nothing was found, with 1 if the Conversion must not be used, and with 2 if
    /// the files cannot be read.
    #[command(after_help = "Example: revisor crd prove crd.yaml conversion.yaml")]
    Prove(ProveFlags),
    /// Convert the objects of a YAML stream from standard input to another version.
    ///
    /// What that version cannot say travels in the annotation versioning.revisor.dev/kept and is there again on the way
    /// back. Objects of other kinds pass as they are. Ends with 0 if all is converted, with 1, and prints no objects, if one
    /// cannot be converted, and with 2 if the files cannot be read.
    #[command(
        after_help = "Example: revisor crd convert --crd crd.yaml --conversion conversion.yaml --to v1 < objects.yaml"
    )]
    Convert(ConvertFlags),
    /// Propose a Conversion from two definitions, or from the versions of one.
    ///
    /// Finds fields that were moved or renamed by their names and shapes, single values that became lists, and values
    /// that are written otherwise. Each rule is marked with how sure it is, and the whole is checked as `prove` does: ends
    /// with 0 if it keeps the laws, with 1 if it does not yet, which the comments explain, and with 2 if the files cannot
    /// be read. A version that looks otherwise in both definitions gets rules for its canonical form.
    #[command(after_help = "Example: revisor crd infer old.yaml new.yaml > conversion.yaml")]
    Infer(InferFlags),
    /// Show which fields of each version objects set, how many, and who manages them.
    ///
    /// A server that has version reports is asked for them. Of any other cluster all objects are read in each version
    /// that is served, and counted here. Ends with 2 if it cannot be found out.
    #[command(after_help = "Example: revisor crd usage widgets.example.com")]
    Usage(UsageFlags),
    /// Store all objects of a resource anew, in the version that is stored now, and wait until that is done.
    ///
    /// Makes a StorageVersionMigration, which the cluster must have (storagemigration.k8s.io/v1beta1), and shows how far
    /// it is. Ends with 0 when everything is stored anew, with 1 if that failed, and with 2 if it is not known what
    /// became of it.
    #[command(after_help = "Example: revisor crd migrate widgets.example.com")]
    Migrate(MigrateFlags),
}

#[derive(Debug, Args)]
pub(crate) struct InferFlags {
    /// The file or folder with the CustomResourceDefinitions as they were, or as they are if no other one is given
    #[arg(value_name = "OLD")]
    pub(crate) old: PathBuf,

    /// The file or folder with the CustomResourceDefinitions as they will be
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<PathBuf>,

    /// The version to begin with; otherwise each version is followed by the next
    #[arg(long, value_name = "VERSION", requires = "to")]
    pub(crate) from: Option<String>,

    /// The version to end with
    #[arg(long, value_name = "VERSION", requires = "from")]
    pub(crate) to: Option<String>,

    /// How to print it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ProveFlags {
    /// The file with the CustomResourceDefinition; it may hold other objects too
    #[arg(value_name = "CRD")]
    pub(crate) definitions: PathBuf,

    /// The file with its Conversion, which has the same name
    #[arg(value_name = "CONVERSION")]
    pub(crate) conversions: PathBuf,

    /// How to print it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertFlags {
    /// The file with the CustomResourceDefinition; it may hold other objects too
    #[arg(long, value_name = "FILE")]
    pub(crate) crd: PathBuf,

    /// The file with its Conversion, which has the same name
    #[arg(long, value_name = "FILE")]
    pub(crate) conversion: PathBuf,

    /// The version to convert to
    #[arg(long, value_name = "VERSION")]
    pub(crate) to: String,

    /// How to print the objects: as they were written, or all in one list of JSON
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "yaml")]
    pub(crate) output: ObjectFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ObjectFormat {
    Yaml,
    Json,
}
