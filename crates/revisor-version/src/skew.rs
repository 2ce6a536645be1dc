//! How far apart the components of a cluster and its servers may be, and what a client's name says of its release.
//!
//! The rules are Kubernetes' version skew policy, read for a server that is three releases at once
//! ([`EffectiveVersion`]). Clients see the release that the server behaves as, so that is what they are measured
//! against. The oldest release with which the server keeps compatible is a promise to the control plane around it: it
//! lets older controllers in, and it alone says how old another server on the same objects may be.

use std::fmt;

use crate::{EffectiveVersion, Release};

/// A client of which the policy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// The manager of clouds.
    CloudControllerManager,
    /// Another server.
    KubeApiserver,
    /// The manager of controllers.
    KubeControllerManager,
    /// The proxy on every node.
    KubeProxy,
    /// The scheduler.
    KubeScheduler,
    /// A person's hand.
    Kubectl,
    /// The agent on every node.
    Kubelet,
}

impl Component {
    /// All of them, by name.
    pub const ALL: [Component; 7] = [
        Component::CloudControllerManager,
        Component::KubeApiserver,
        Component::KubeControllerManager,
        Component::KubeProxy,
        Component::KubeScheduler,
        Component::Kubectl,
        Component::Kubelet,
    ];

    /// What its program is called.
    pub const fn name(self) -> &'static str {
        match self {
            Component::CloudControllerManager => "cloud-controller-manager",
            Component::KubeApiserver => "kube-apiserver",
            Component::KubeControllerManager => "kube-controller-manager",
            Component::KubeProxy => "kube-proxy",
            Component::KubeScheduler => "kube-scheduler",
            Component::Kubectl => "kubectl",
            Component::Kubelet => "kubelet",
        }
    }

    /// The component whose program is called so.
    pub fn named(program: &str) -> Option<Component> {
        let program = program.strip_suffix(".exe").unwrap_or(program);
        Component::ALL.into_iter().find(|component| component.name() == program)
    }

    /// The oldest and the newest release of this component that may talk to a server.
    ///
    /// | component | oldest | newest |
    /// |---|---|---|
    /// | kubectl | one before the emulated release | one after it |
    /// | kubelet, kube-proxy | three before it | itself |
    /// | controller managers, scheduler | one before it, or the oldest compatible one if that is older | itself |
    /// | another server | the oldest compatible one | one after it |
    pub fn allowed(self, server: EffectiveVersion) -> (Release, Release) {
        let (emulation, compatible) = (server.emulation(), server.min_compatibility());
        match self {
            Component::Kubectl => (emulation.minus(1), emulation.plus(1)),
            Component::Kubelet | Component::KubeProxy => (emulation.minus(3), emulation),
            Component::CloudControllerManager | Component::KubeControllerManager | Component::KubeScheduler => {
                (emulation.minus(1).min(compatible), emulation)
            }
            Component::KubeApiserver => (compatible, emulation.plus(1)),
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A component of some release.
///
/// ```
/// use revisor_version::{Component, ComponentVersion, EffectiveVersion, Release};
///
/// let kubectl = ComponentVersion::from_user_agent("kubectl/v1.34.2 (linux/amd64) kubernetes/8cc511e").unwrap();
/// assert_eq!((kubectl.component, kubectl.release), (Component::Kubectl, Release { major: 1, minor: 34 }));
/// assert!(!kubectl.is_allowed(EffectiveVersion::of(Release { major: 1, minor: 36 })));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentVersion {
    /// The component.
    pub component: Component,
    /// Its release.
    pub release: Release,
}

impl ComponentVersion {
    /// What a client says of itself in `User-Agent`: its program, a slash, its version, and more that is of no interest
    /// here. `None` for programs of which the policy does not speak, and for builds that do not know their version and
    /// call it `v0.0.0`. It looks at the first few characters only and allocates nothing: every request is asked.
    pub fn from_user_agent(agent: &str) -> Option<ComponentVersion> {
        let (program, rest) = agent.split_once('/')?;
        let component = Component::named(program)?;
        let mut numbers = rest.strip_prefix('v')?.splitn(3, '.');
        let (major, minor) = (numbers.next()?.parse().ok()?, numbers.next()?);
        // Builds of providers add a plus to the minor number.
        let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
        let release = Release { major, minor: minor[..digits].parse().ok()? };
        (release.major > 0).then_some(ComponentVersion { component, release })
    }

    /// Whether it may talk to a server.
    pub fn is_allowed(self, server: EffectiveVersion) -> bool {
        let (oldest, newest) = self.component.allowed(server);
        (oldest..=newest).contains(&self.release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: Release = Release { major: 1, minor: 36 };

    fn server(emulation: &str, compatible: &str) -> EffectiveVersion {
        EffectiveVersion::parse(BINARY, &[emulation], &[compatible]).expect("can be reached")
    }

    #[test]
    fn clients_are_allowed_as_far_apart_as_the_policy_says() {
        use Component::{
            CloudControllerManager, KubeApiserver, KubeControllerManager, KubeProxy, KubeScheduler, Kubectl, Kubelet,
        };
        let usual = server("1.36", "1.35");
        let emulating = server("1.34", "1.33");
        let reaching_back = server("1.36", "1.33");
        let alone = server("1.36", "1.36");
        for (component, server, oldest, newest) in [
            (Kubectl, usual, 35, 37),
            (Kubectl, emulating, 33, 35),
            (Kubectl, reaching_back, 35, 37),
            (Kubectl, alone, 35, 37),
            (Kubelet, usual, 33, 36),
            (Kubelet, emulating, 31, 34),
            (Kubelet, reaching_back, 33, 36),
            (KubeProxy, usual, 33, 36),
            (KubeProxy, emulating, 31, 34),
            (KubeControllerManager, usual, 35, 36),
            (KubeControllerManager, emulating, 33, 34),
            (KubeControllerManager, reaching_back, 33, 36),
            (KubeControllerManager, alone, 35, 36),
            (KubeScheduler, usual, 35, 36),
            (KubeScheduler, reaching_back, 33, 36),
            (CloudControllerManager, usual, 35, 36),
            (CloudControllerManager, emulating, 33, 34),
            (KubeApiserver, usual, 35, 37),
            (KubeApiserver, emulating, 33, 35),
            (KubeApiserver, reaching_back, 33, 37),
            (KubeApiserver, alone, 36, 37),
        ] {
            for minor in 28..40 {
                let client = ComponentVersion { component, release: Release { major: 1, minor } };
                let want = (oldest..=newest).contains(&minor);
                assert_eq!(client.is_allowed(server), want, "{component} 1.{minor} with a server {server}");
            }
            for major in [0, 2] {
                let client = ComponentVersion { component, release: Release { major, minor: newest } };
                assert!(!client.is_allowed(server), "{component} {} with a server {server}", client.release);
            }
        }
    }

    #[test]
    fn clients_say_their_release_in_their_name() {
        for (agent, want) in [
            ("kubectl/v1.34.2 (linux/amd64) kubernetes/8cc511e", Some("kubectl 1.34")),
            ("kubectl.exe/v1.36.0 (windows/amd64) kubernetes/abc", Some("kubectl 1.36")),
            ("kubectl/v1.33", Some("kubectl 1.33")),
            ("kubectl/v1.37.0-alpha.1 (darwin/arm64) kubernetes/abc", Some("kubectl 1.37")),
            ("kubelet/v1.35.0-eks-1a2b3c (linux/amd64) kubernetes/abc", Some("kubelet 1.35")),
            ("kubelet/v1.35+ (linux/amd64) kubernetes/abc", Some("kubelet 1.35")),
            (
                "kube-controller-manager/v1.35.0 (linux/amd64) kubernetes/abc/leader-election",
                Some("kube-controller-manager 1.35"),
            ),
            ("kube-scheduler/v1.35.0 (linux/amd64) kubernetes/abc/scheduler", Some("kube-scheduler 1.35")),
            ("kube-proxy/v1.33.1 (linux/arm64) kubernetes/abc", Some("kube-proxy 1.33")),
            ("kube-apiserver/v1.36.0 (linux/amd64) kubernetes/abc", Some("kube-apiserver 1.36")),
            ("cloud-controller-manager/v1.36.0 (linux/amd64) kubernetes/abc", Some("cloud-controller-manager 1.36")),
            ("kubectl/v0.0.0-master+$Format:%H$ (linux/amd64) kubernetes/$Format", None),
            ("controller/v0.0.0 (linux/amd64) kubernetes/$Format", None),
            ("kubectl-neat/v1.20.0 (linux/amd64) kubernetes/abc", None),
            ("kubectl/1.34.2", None),
            ("kubectl/v1", None),
            ("kubectl/vx.34", None),
            ("kubectl/v1.99999999", None),
            ("kubectl/v1.é", None),
            ("kubectl", None),
            ("curl/8.5.0", None),
            ("", None),
        ] {
            let read = ComponentVersion::from_user_agent(agent);
            let read = read.map(|read| format!("{} {}", read.component, read.release));
            assert_eq!(read.as_deref(), want, "{agent}");
        }
    }

    #[test]
    fn components_are_found_by_the_name_of_their_program() {
        for component in Component::ALL {
            assert_eq!(Component::named(component.name()), Some(component));
        }
        assert!(Component::ALL.is_sorted_by_key(|component| component.name()));
        assert_eq!(Component::named("Kubectl"), None);
    }
}
