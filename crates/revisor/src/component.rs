//! [`Component`]: what the program is, by the name that it was called by. Tools that start a control plane look for files
//! of certain names; links by these names lead here.

use std::ffi::OsStr;
use std::path::Path;

use revisor_catalog::BINARY;
use revisor_version::Release;

/// What the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    /// Itself, with commands.
    Revisor,
    /// The server, with the flags of the original.
    KubeApiserver,
    /// What marks the folder in which the server beside it keeps its state.
    Etcd,
}

impl Component {
    /// What a program is that was called by this name.
    pub(crate) fn called(program: Option<&OsStr>) -> Component {
        let name = program.map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
        match name {
            Some("kube-apiserver") => Component::KubeApiserver,
            Some("etcd") => Component::Etcd,
            _ => Component::Revisor,
        }
    }
}

/// The release that the folder of a program names, in the way of setup-envtest: `k8s/1.34.1-linux-amd64/kube-apiserver`.
/// Only releases that this program can be are meant.
pub(crate) fn release_of_folder(program: &Path) -> Option<Release> {
    let folder = program.parent()?;
    let is_of_envtest = folder.parent().and_then(Path::file_name).is_some_and(|name| name == "k8s");
    let name = folder.file_name()?.to_str().filter(|_| is_of_envtest)?;
    let version = name.split('-').next()?.trim_start_matches('v');
    let mut parts = version.split('.');
    let release: Release = format!("{}.{}", parts.next()?, parts.next()?).parse().ok()?;
    (release.major == BINARY.major && release <= BINARY).then_some(release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_the_program_is() {
        for (name, want) in [
            ("revisor", Component::Revisor),
            ("/usr/bin/revisor", Component::Revisor),
            ("kube-apiserver", Component::KubeApiserver),
            ("/assets/kube-apiserver", Component::KubeApiserver),
            ("./etcd", Component::Etcd),
            ("", Component::Revisor),
        ] {
            assert_eq!(Component::called(Some(OsStr::new(name))), want, "{name}");
        }
        assert_eq!(Component::called(None), Component::Revisor);
    }

    #[test]
    fn folders_of_envtest_tell_the_release() {
        for (path, want) in [
            ("/x/k8s/1.34.1-linux-amd64/kube-apiserver", Some("1.34")),
            ("/x/k8s/v1.33.0/etcd", Some("1.33")),
            ("/x/k8s/1.99.0-linux-amd64/kube-apiserver", None),
            ("/x/bin/1.34.1-linux-amd64/kube-apiserver", None),
            ("kube-apiserver", None),
            ("k8s/latest/kube-apiserver", None),
        ] {
            assert_eq!(
                release_of_folder(Path::new(path)).map(|release| release.to_string()).as_deref(),
                want,
                "{path}"
            );
        }
    }
}
