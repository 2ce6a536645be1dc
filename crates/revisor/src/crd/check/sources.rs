//! [`Source`]: where definitions come from.

use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context, bail};

use super::super::files::MAX_BYTES;
use super::super::{Located, SourceFile};
use super::git;
use crate::cluster::{Cluster, block_on};

/// From how many definitions on it is cheaper to ask a cluster for all.
const MANY: usize = 20;

/// Where definitions come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A file or a folder.
    Files(PathBuf),
    /// A path in a revision of the repository that one stands in.
    Git { revision: String, path: String },
    /// Standard input.
    Input,
}

impl Source {
    /// What a word means: what is there, is meant.
    pub(super) fn parse(word: &str) -> Source {
        if word == "-" {
            return Source::Input;
        }
        let path = PathBuf::from(word);
        match word.split_once(':') {
            Some((revision, below)) if !path.exists() => {
                Source::Git { revision: revision.to_owned(), path: below.to_owned() }
            }
            _ => Source::Files(path),
        }
    }

    /// All objects that are there.
    pub(super) fn objects(&self) -> anyhow::Result<Vec<Located>> {
        let files = match self {
            Source::Files(path) => SourceFile::read_all(std::slice::from_ref(path))?,
            Source::Git { revision, path } => git::files(revision, path)?,
            Source::Input => {
                let mut text = String::new();
                let read = std::io::stdin().take(MAX_BYTES as u64 + 1).read_to_string(&mut text);
                read.context("cannot read standard input")?;
                if text.len() > MAX_BYTES {
                    bail!("standard input has more than {MAX_BYTES} bytes");
                }
                vec![SourceFile { path: "-".into(), text }]
            }
        };
        let mut objects = Vec::new();
        for file in &files {
            objects.extend(file.objects()?);
        }
        Ok(objects)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Files(path) => write!(f, "{}", path.display()),
            Source::Git { revision, path } => write!(f, "{revision}:{path}"),
            Source::Input => f.write_str("standard input"),
        }
    }
}

/// The definitions of these names that a cluster has.
pub(super) fn of_cluster(cluster: &Cluster, names: &[&str]) -> anyhow::Result<Vec<Located>> {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut objects = Vec::new();
    block_on(async {
        if names.len() > MANY {
            return cluster.list(DEFINITIONS, |object| objects.push(object)).await;
        }
        for name in names {
            match cluster.get(&format!("{DEFINITIONS}/{name}")).await {
                Ok(object) => objects.push(object),
                Err(error) if error.code() == Some(404) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })?
    .context("cannot read the definitions of the cluster")?;
    let located = objects.into_iter().map(|mut object| {
        // Items of a list do not say what they are.
        object.insert("apiVersion", "apiextensions.k8s.io/v1");
        object.insert("kind", "CustomResourceDefinition");
        Located { object, ..Located::at(cluster.url()) }
    });
    Ok(located.filter(|found| names.contains(&found.name())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_meant_and_a_colon_means_a_revision_otherwise() {
        let git = |revision: &str, path: &str| Source::Git { revision: revision.to_owned(), path: path.to_owned() };
        assert_eq!(Source::parse("-"), Source::Input);
        assert_eq!(Source::parse("nowhere.yaml"), Source::Files("nowhere.yaml".into()));
        assert_eq!(Source::parse("v1.2.0:config/crd"), git("v1.2.0", "config/crd"));
        assert_eq!(Source::parse(":staged.yaml"), git("", "staged.yaml"));
        let folder = tempfile::tempdir().expect("a folder");
        let odd = folder.path().join("a:b.yaml");
        std::fs::write(&odd, "").expect("is written");
        assert_eq!(Source::parse(&odd.to_string_lossy()), Source::Files(odd));
    }
}
