//! [`Authorizer`]: may they? The modes of `--authorization-mode`, asked in their order.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::{Attributes, Identity, ResourceAttributes};

/// Paths that everybody may GET, so that load balancers and clients can find out whether, and what, this is.
const PUBLIC_PATHS: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
/// Paths below which everybody may GET single checks.
const PUBLIC_FOLDERS: [&str; 3] = ["/healthz/", "/livez/", "/readyz/"];

/// What everybody may ask about themselves: resources with their groups.
const QUESTIONS: [(&str, &str); 3] = [
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
];

/// One way to decide, as named in `--authorization-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Allows everything.
    AlwaysAllow,
    /// Allows nothing.
    AlwaysDeny,
    /// Allows kubelets what their pods need. No kubelet's pods are tracked here, so it has no opinion on any
    /// request; it is known so that command lines which list it before RBAC work unchanged.
    Node,
    /// Allows what roles grant. Granted to everybody is the public information: health and version.
    Rbac,
}

impl AuthorizationMode {
    /// Every mode, in the order in which messages list them.
    pub const ALL: [AuthorizationMode; 4] = [
        AuthorizationMode::AlwaysAllow,
        AuthorizationMode::AlwaysDeny,
        AuthorizationMode::Node,
        AuthorizationMode::Rbac,
    ];

    /// The name of the mode on the command line.
    pub fn name(self) -> &'static str {
        match self {
            AuthorizationMode::AlwaysAllow => "AlwaysAllow",
            AuthorizationMode::AlwaysDeny => "AlwaysDeny",
            AuthorizationMode::Node => "Node",
            AuthorizationMode::Rbac => "RBAC",
        }
    }
}

/// The value of `--authorization-mode`: at least one mode, none twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationModes(Vec<AuthorizationMode>);

impl AuthorizationModes {
    /// The modes, in the order in which they are asked.
    pub fn as_slice(&self) -> &[AuthorizationMode] {
        &self.0
    }

    /// Whether every request is allowed. Callers turn anonymous requests off then, as the original does: nobody
    /// should be let in who neither says who they are nor is checked.
    pub fn allow_everything(&self) -> bool {
        self.0.contains(&AuthorizationMode::AlwaysAllow)
    }
}

/// Why a value of `--authorization-mode` was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModesError {
    /// No mode was given.
    #[error("at least one authorization-mode must be passed, allowed are {}", allowed())]
    Empty,
    /// A mode does not exist.
    #[error("authorization-mode {} is not a valid mode, allowed are {}", crate::quoted::quoted(.0), allowed())]
    Unknown(String),
    /// A mode was given twice.
    #[error("authorization-mode {} is specified more than once", crate::quoted::quoted(.0))]
    Repeated(String),
}

fn allowed() -> String {
    AuthorizationMode::ALL.map(AuthorizationMode::name).join(", ")
}

impl FromStr for AuthorizationModes {
    type Err = ModesError;

    fn from_str(text: &str) -> Result<AuthorizationModes, ModesError> {
        if text.is_empty() {
            return Err(ModesError::Empty);
        }
        let mut modes = Vec::new();
        for name in text.split(',') {
            let mode = AuthorizationMode::ALL
                .into_iter()
                .find(|mode| mode.name() == name)
                .ok_or_else(|| ModesError::Unknown(name.to_owned()))?;
            if modes.contains(&mode) {
                return Err(ModesError::Repeated(name.to_owned()));
            }
            modes.push(mode);
        }
        Ok(AuthorizationModes(modes))
    }
}

impl fmt::Display for AuthorizationModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(|mode| mode.name()).collect();
        f.write_str(&names.join(","))
    }
}

/// Whether a request may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allow,
    /// It may not.
    Forbidden {
        /// What the modes had to say about it, for the end of the message; often empty.
        reason: Cow<'static, str>,
    },
}

/// Decides about requests.
///
/// Members of `system:masters` may do everything in every mode, so that no set of rules can lock everybody out.
/// For all others the first mode that allows a request decides; what none allows is forbidden.
#[derive(Debug, Clone)]
pub struct Authorizer {
    modes: AuthorizationModes,
}

impl Authorizer {
    /// An authorizer that asks `modes` in their order.
    pub fn new(modes: AuthorizationModes) -> Authorizer {
        Authorizer { modes }
    }

    /// Whether the request that `attributes` describe may go on.
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_master() {
            return Decision::Allow;
        }
        let mut reason = "";
        for mode in self.modes.as_slice() {
            match mode {
                AuthorizationMode::AlwaysAllow => return Decision::Allow,
                AuthorizationMode::AlwaysDeny => reason = "Everything is forbidden.",
                AuthorizationMode::Node => {}
                AuthorizationMode::Rbac => {
                    if asks_for_public_information(attributes) || asks_about_oneself(attributes) {
                        return Decision::Allow;
                    }
                }
            }
        }
        Decision::Forbidden { reason: Cow::Borrowed(reason) }
    }
}

/// Everybody who is known may ask who they are and what they may do.
fn asks_about_oneself(attributes: &Attributes<'_>) -> bool {
    let is_question = |resource: ResourceAttributes<'_>| QUESTIONS.contains(&(resource.group, resource.resource));
    attributes.verb == "create" && attributes.user.is_authenticated() && attributes.resource.is_some_and(is_question)
}

/// What somebody may do, as `kubectl auth can-i --list` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// Verbs on resources.
    pub resources: Vec<ResourceRule>,
    /// Verbs on bare paths.
    pub paths: Vec<PathRule>,
}

/// Verbs on resources of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRule {
    /// What may be done.
    pub verbs: Vec<String>,
    /// In these groups.
    pub groups: Vec<String>,
    /// To these resources.
    pub resources: Vec<String>,
}

/// Verbs on bare paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    /// What may be done.
    pub verbs: Vec<String>,
    /// To these paths.
    pub paths: Vec<String>,
}

impl Authorizer {
    /// What `user` may do in any namespace.
    pub fn rules_of(&self, user: &Identity) -> AccessRules {
        let all = || vec!["*".to_owned()];
        let mut rules = AccessRules::default();
        if user.is_master() || self.modes.allow_everything() {
            rules.resources.push(ResourceRule { verbs: all(), groups: all(), resources: all() });
            rules.paths.push(PathRule { verbs: all(), paths: all() });
        }
        if self.modes.as_slice().contains(&AuthorizationMode::Rbac) && user.is_asking() {
            let paths = PUBLIC_PATHS.iter().map(|path| (*path).to_owned()).collect();
            rules.paths.push(PathRule { verbs: vec!["get".to_owned()], paths });
        }
        if self.modes.as_slice().contains(&AuthorizationMode::Rbac) && user.is_authenticated() {
            for (group, resource) in QUESTIONS {
                let (groups, resources) = (vec![group.to_owned()], vec![resource.to_owned()]);
                rules.resources.push(ResourceRule { verbs: vec!["create".to_owned()], groups, resources });
            }
        }
        rules
    }
}

fn asks_for_public_information(attributes: &Attributes<'_>) -> bool {
    attributes.resource.is_none()
        && attributes.verb == "get"
        && attributes.user.is_asking()
        && (PUBLIC_PATHS.contains(&attributes.path)
            || PUBLIC_FOLDERS.iter().any(|folder| attributes.path.starts_with(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Claims;

    fn modes(text: &str) -> AuthorizationModes {
        text.parse().expect("the modes of the test exist")
    }

    #[test]
    fn modes_are_a_list_without_strangers_or_repetition() {
        for (text, want) in [
            ("RBAC", Ok("RBAC")),
            ("Node,RBAC", Ok("Node,RBAC")),
            ("AlwaysAllow", Ok("AlwaysAllow")),
            ("AlwaysDeny", Ok("AlwaysDeny")),
            (
                "",
                Err("at least one authorization-mode must be passed, allowed are AlwaysAllow, AlwaysDeny, Node, RBAC"),
            ),
            (
                "Node,ABAC",
                Err(
                    r#"authorization-mode "ABAC" is not a valid mode, allowed are AlwaysAllow, AlwaysDeny, Node, RBAC"#,
                ),
            ),
            (
                "rbac",
                Err(
                    r#"authorization-mode "rbac" is not a valid mode, allowed are AlwaysAllow, AlwaysDeny, Node, RBAC"#,
                ),
            ),
            (
                "RBAC,",
                Err(r#"authorization-mode "" is not a valid mode, allowed are AlwaysAllow, AlwaysDeny, Node, RBAC"#),
            ),
            ("RBAC,Node,RBAC", Err(r#"authorization-mode "RBAC" is specified more than once"#)),
        ] {
            let got = text.parse::<AuthorizationModes>().map(|modes| modes.to_string()).map_err(|e| e.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{text}");
        }
    }

    #[test]
    fn who_may_do_what() {
        let master = Identity::authenticated(Claims { groups: vec!["system:masters".to_owned()], ..Claims::default() });
        let bob = Identity::authenticated(Claims { name: "bob".to_owned(), ..Claims::default() });
        let nobody = Identity::anonymous();
        let pods = Some(ResourceAttributes { version: "v1", resource: "pods", ..ResourceAttributes::default() });
        let stranger = Identity::exactly(Claims { name: "somebody".to_owned(), ..Claims::default() });
        let question = Some(ResourceAttributes {
            group: "authentication.k8s.io",
            resource: "selfsubjectreviews",
            ..ResourceAttributes::default()
        });
        for (mode, user, verb, path, resource, allowed) in [
            ("RBAC", &bob, "create", "", question, true),
            ("RBAC", &nobody, "create", "", question, false),
            ("RBAC", &stranger, "get", "/healthz", None, false),
            ("RBAC", &master, "delete", "/api/v1/pods", pods, true),
            ("RBAC", &master, "get", "/metrics", None, true),
            ("RBAC", &bob, "list", "/api/v1/pods", pods, false),
            ("RBAC", &nobody, "list", "/api/v1/pods", pods, false),
            ("RBAC", &nobody, "get", "/healthz", None, true),
            ("RBAC", &nobody, "get", "/healthz/ping", None, true),
            ("RBAC", &nobody, "get", "/livez", None, true),
            ("RBAC", &nobody, "get", "/readyz/poststarthook/x", None, true),
            ("RBAC", &bob, "get", "/version", None, true),
            ("RBAC", &bob, "get", "/version/", None, true),
            ("RBAC", &bob, "get", "/version/x", None, false),
            ("RBAC", &bob, "get", "/healthzz", None, false),
            ("RBAC", &bob, "post", "/healthz", None, false),
            ("RBAC", &bob, "get", "/metrics", None, false),
            ("RBAC", &bob, "get", "/healthz", pods, false),
            ("Node", &bob, "get", "/healthz", None, false),
            ("Node,RBAC", &nobody, "get", "/healthz", None, true),
            ("AlwaysAllow", &nobody, "delete", "/api/v1/pods", pods, true),
            ("AlwaysDeny", &nobody, "get", "/healthz", None, false),
            ("AlwaysDeny", &master, "get", "/healthz", None, true),
            ("AlwaysDeny,RBAC", &nobody, "get", "/healthz", None, true),
        ] {
            let decision = Authorizer::new(modes(mode)).authorize(&Attributes { user, verb, path, resource });
            assert_eq!(decision == Decision::Allow, allowed, "{mode}: {user:?} {verb} {path} {resource:?}");
        }
    }

    #[test]
    fn only_always_deny_gives_a_reason() {
        let bob = Identity::authenticated(Claims { name: "bob".to_owned(), ..Claims::default() });
        let attributes = Attributes { user: &bob, verb: "get", path: "/x", resource: None };
        for (mode, want) in [("RBAC", ""), ("Node", ""), ("AlwaysDeny,RBAC", "Everything is forbidden.")] {
            let want = Decision::Forbidden { reason: want.into() };
            assert_eq!(Authorizer::new(modes(mode)).authorize(&attributes), want, "{mode}");
        }
    }
}
