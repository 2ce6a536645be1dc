//! `revisor envtest`: a folder in which tools that start a control plane for tests find this program by the names that
//! they look for (`KUBEBUILDER_ASSETS`).

use std::path::{Path, PathBuf};

use anyhow::Context;
use revisor_catalog::BINARY;
use revisor_version::{EffectiveVersion, Release};

use crate::flags::{EnvtestCommand, EnvtestFlags};
use crate::print;

/// The names that lead here.
const NAMES: [&str; 2] = ["etcd", "kube-apiserver"];

/// Does what the command asks for.
pub(crate) fn run(command: &EnvtestCommand) -> anyhow::Result<()> {
    match command {
        EnvtestCommand::Install(flags) => {
            let folder = assets(flags)?;
            install(&folder)?;
            print(&format!("{}\n", exports(&whole(&folder)?)?))
        }
        EnvtestCommand::Env(flags) => {
            let folder = assets(flags)?;
            let program = folder.join("kube-apiserver");
            anyhow::ensure!(program.exists(), "{} is not there; `revisor envtest install` makes it", program.display());
            print(&format!("{}\n", exports(&whole(&folder)?)?))
        }
    }
}

/// The folder for the programs: the one that was named; or, for a release, the one in it that setup-envtest would use, by
/// whose name the programs know which release they are.
fn assets(flags: &EnvtestFlags) -> anyhow::Result<PathBuf> {
    let Some(release) = &flags.release else { return Ok(flags.folder.clone()) };
    let asked: Release = release.parse().with_context(|| format!("{release} is not a release"))?;
    EffectiveVersion::parse(BINARY, &[asked.to_string()], &[])?;
    let name = format!("{asked}.0-{}-{}", std::env::consts::OS, crate::version::go_architecture());
    Ok(flags.folder.join("k8s").join(name))
}

fn install(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let program = std::env::current_exe().context("cannot find out where this program is")?;
    for name in NAMES {
        link(&program, &folder.join(name))?;
    }
    match on_path("kubectl") {
        Some(kubectl) => link(&kubectl, &folder.join("kubectl")),
        None => Ok(()),
    }
}

/// Puts a link where there is none, or another one. A file that is no link is somebody's.
fn link(target: &Path, link: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot make the link {}", link.display());
    match std::fs::read_link(link) {
        Ok(known) if known == target => return Ok(()),
        Ok(_) => std::fs::remove_file(link).with_context(cannot)?,
        Err(_) => anyhow::ensure!(!link.exists(), "{} is there and is no link; remove it first", link.display()),
    }
    std::os::unix::fs::symlink(target, link).with_context(cannot)
}

/// A program that the shell would find.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name)).filter(|program| program.is_file());
    found.find_map(|program| std::fs::canonicalize(program).ok())
}

fn whole(folder: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(folder).with_context(|| format!("cannot use the folder {}", folder.display()))
}

/// What a shell has to be told.
fn exports(folder: &Path) -> anyhow::Result<String> {
    let folder = folder.to_str().context("the path of the folder is no text")?;
    Ok(format!("export KUBEBUILDER_ASSETS='{}'", folder.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_folders_as_setup_envtest_names_them() {
        let folder = |release: Option<&str>| {
            assets(&EnvtestFlags { folder: "/x".into(), release: release.map(str::to_owned) })
                .map(|folder| folder.display().to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(folder(None), Ok("/x".to_owned()));
        assert!(folder(Some("1.34")).is_ok_and(|folder| folder.starts_with("/x/k8s/1.34.0-")));
        assert!(folder(Some("1.12")).is_err_and(|error| error.contains("1.12")));
        assert_eq!(exports(Path::new("/it's")).ok().as_deref(), Some("export KUBEBUILDER_ASSETS='/it'\\''s'"));
    }
}
