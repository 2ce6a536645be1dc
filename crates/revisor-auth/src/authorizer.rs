//! [`Authorizer`]: may they? The modes of `--authorization-mode`, or the steps of a configuration, asked in their order.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::pin::pin;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};

use crate::node;
use crate::rbac::Verdict;
use crate::webhook_authorizer::{Answer, Opinion};
use crate::{
    AbacPolicy, Attributes, Escalation, GrantBook, Identity, NodeBook, PolicyRule, WebhookAuthorizer, missing_rights,
    node_identity,
};

/// What the rules of nodes say about themselves to those who want to see all rules.
const NODE_RULES: &str = "node authorizer does not support user rule resolution";

/// One way to decide, as named in `--authorization-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Allows everything.
    AlwaysAllow,
    /// Allows nothing.
    AlwaysDeny,
    /// Allows what the lines of a file allow.
    Abac,
    /// Asks a webhook.
    Webhook,
    /// Allows kubelets what their pods need.
    Node,
    /// Allows what roles grant to those whom bindings name.
    Rbac,
}

/// Who is asked about a request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Allows everything.
    AlwaysAllow,
    /// Allows nothing.
    AlwaysDeny,
    /// Allows kubelets what their pods need.
    Node,
    /// Allows what roles grant to those whom bindings name.
    Rbac,
    /// Allows what the lines of a file allow.
    Abac(Arc<AbacPolicy>),
    /// Asks a webhook, which may also deny.
    Webhook(Arc<WebhookAuthorizer>),
}

impl AuthorizationMode {
    /// Every mode, in the order in which messages list them.
    pub const ALL: [AuthorizationMode; 6] = [
        AuthorizationMode::Abac,
        AuthorizationMode::AlwaysAllow,
        AuthorizationMode::AlwaysDeny,
        AuthorizationMode::Node,
        AuthorizationMode::Rbac,
        AuthorizationMode::Webhook,
    ];

    /// The name of the mode on the command line.
    pub fn name(self) -> &'static str {
        match self {
            AuthorizationMode::AlwaysAllow => "AlwaysAllow",
            AuthorizationMode::AlwaysDeny => "AlwaysDeny",
            AuthorizationMode::Abac => "ABAC",
            AuthorizationMode::Webhook => "Webhook",
            AuthorizationMode::Node => "Node",
            AuthorizationMode::Rbac => "RBAC",
        }
    }
}

/// The value of `--authorization-mode`: at least one mode, none twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationModes(Vec<AuthorizationMode>);

/// What is asked if nothing else is said: roles.
impl Default for AuthorizationModes {
    fn default() -> AuthorizationModes {
        AuthorizationModes(vec![AuthorizationMode::Rbac])
    }
}

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
    Forbidden(NotAllowed),
}

/// That a request may not go on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NotAllowed {
    /// What the modes had to say about it, for the end of the message; often empty.
    pub reason: Cow<'static, str>,
    /// Whether somebody denied it, after whom nobody is asked; else nobody allowed it.
    pub is_denied: bool,
    /// Why somebody who might have allowed it could not say so. Then nobody knows whether the request may go on.
    pub error: Option<String>,
}

/// A decision, and what is said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explanation {
    /// The request may go on, for this reason; often empty.
    Allow(String),
    /// It may not.
    Forbidden(NotAllowed),
}

impl NotAllowed {
    /// All that was said: what was wrong, and the reason (upstream: `checkAuthorization` of impersonation).
    pub fn in_full(&self) -> Cow<'_, str> {
        match &self.error {
            None => Cow::Borrowed(&self.reason),
            Some(error) if self.reason.is_empty() => Cow::Borrowed(error),
            Some(error) => Cow::Owned(format!("{error}: {}", self.reason)),
        }
    }
}

/// Decides about requests.
///
/// Members of `system:masters` may do everything in every mode, so that no set of rules can lock everybody out.
/// For all others the first mode that allows a request decides; what none allows is forbidden.
#[derive(Debug, Clone)]
pub struct Authorizer {
    /// Shared by all clones, so that they follow a configuration that changes.
    steps: Arc<RwLock<Arc<[Step]>>>,
    grants: Arc<dyn GrantBook>,
    nodes: Option<Arc<dyn NodeBook>>,
}

impl Authorizer {
    /// An authorizer that asks `modes` in their order, of which RBAC looks into these grants.
    pub fn new(modes: AuthorizationModes, grants: Arc<dyn GrantBook>) -> Authorizer {
        let steps = modes.as_slice().iter().filter_map(|mode| match mode {
            AuthorizationMode::AlwaysAllow => Some(Step::AlwaysAllow),
            AuthorizationMode::AlwaysDeny => Some(Step::AlwaysDeny),
            AuthorizationMode::Node => Some(Step::Node),
            AuthorizationMode::Rbac => Some(Step::Rbac),
            // They are configured by files, and come with `replace`.
            AuthorizationMode::Abac | AuthorizationMode::Webhook => None,
        });
        Authorizer { steps: Arc::new(RwLock::new(steps.collect())), grants, nodes: None }
    }

    /// The same, which knows what nodes have to do with.
    pub fn with_nodes(self, nodes: Arc<dyn NodeBook>) -> Authorizer {
        Authorizer { nodes: Some(nodes), ..self }
    }

    /// Asks these from now on, in this order.
    pub fn replace(&self, steps: Vec<Step>) {
        *self.steps.write().unwrap_or_else(PoisonError::into_inner) = steps.into();
    }

    fn steps(&self) -> Arc<[Step]> {
        self.steps.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the request that `attributes` describe may go on. Waits for webhooks in place: where many wait,
    /// [`Authorizer::authorize_request`] is better.
    pub fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        in_place(self.decide(attributes, |_| (), drop)).1
    }

    /// The same for those who may be kept waiting.
    pub async fn authorize_request(&self, attributes: &Attributes<'_>) -> Decision {
        self.decide(attributes, |_| (), drop).await.1
    }

    /// The same as [`explain`](Authorizer::explain) for those who cannot be kept waiting, see [`Authorizer::authorize`].
    pub fn explain_in_place(&self, attributes: &Attributes<'_>) -> Explanation {
        in_place(self.explain(attributes))
    }

    /// Whether it may, and what is said about that: why it may, or what the modes had to say against it.
    pub async fn explain(&self, attributes: &Attributes<'_>) -> Explanation {
        match self.decide(attributes, |verdict| verdict.reason(attributes.user), |why| why).await {
            (why, Decision::Allow) => Explanation::Allow(why.unwrap_or_default()),
            (_, Decision::Forbidden(refusal)) => Explanation::Forbidden(refusal),
        }
    }

    /// The decision, and what `look` makes of the verdict that allows it, or `told` of what a webhook says: most who ask
    /// do not want to be told why.
    async fn decide<R>(
        &self,
        attributes: &Attributes<'_>,
        look: impl Fn(&Verdict<'_>) -> R,
        told: impl Fn(String) -> R,
    ) -> (Option<R>, Decision) {
        if attributes.user.is_master() {
            return (None, Decision::Allow);
        }
        let mut reason = Cow::Borrowed("");
        let mut errors = Vec::new();
        let mut add = |more: Cow<'static, str>| match (reason.is_empty(), more.is_empty()) {
            (_, true) => {}
            (true, false) => reason = more,
            (false, false) => reason = format!("{reason}\n{more}").into(),
        };
        for step in self.steps().iter() {
            match step {
                Step::AlwaysAllow => return (None, Decision::Allow),
                Step::AlwaysDeny => add(Cow::Borrowed("Everything is forbidden.")),
                Step::Node => match self.nodes.as_deref().and_then(|book| node::authorize(book, attributes)) {
                    Some(Ok(())) => return (None, Decision::Allow),
                    Some(Err(why)) => add(why),
                    None => {}
                },
                Step::Rbac => match self.grants.read().decide(attributes) {
                    verdict @ Verdict::Allowed(_) => return (Some(look(&verdict)), Decision::Allow),
                    verdict @ Verdict::Nothing { .. } => add(verdict.reason(attributes.user).into()),
                },
                Step::Abac(policy) if policy.allows(attributes) => return (None, Decision::Allow),
                Step::Abac(_) => add(Cow::Borrowed("No policy matched.")),
                // Boxed, as all that few requests need and much room is for: each would carry it about.
                Step::Webhook(webhook) => match Box::pin(webhook.authorize(attributes)).await {
                    Answer { opinion: Opinion::Allow, reason, .. } => return (Some(told(reason)), Decision::Allow),
                    // What is denied is not for others to allow, and what those before had to say does not matter.
                    Answer { opinion: Opinion::Deny, reason, error } => {
                        let refusal = NotAllowed { reason: reason.into(), is_denied: true, error };
                        return (None, Decision::Forbidden(refusal));
                    }
                    Answer { opinion: Opinion::None, reason, error } => {
                        add(reason.into());
                        errors.extend(error);
                    }
                },
            }
        }
        (None, Decision::Forbidden(NotAllowed { reason, is_denied: false, error: aggregate(errors) }))
    }

    /// What `user` may do in a namespace.
    pub fn rules_of(&self, user: &Identity, namespace: &str) -> AccessRules {
        let all = || vec!["*".to_owned()];
        let (mut rules, mut problems) = (Vec::new(), Vec::new());
        let mut is_incomplete = false;
        for step in self.steps().iter() {
            match step {
                Step::AlwaysAllow => {
                    let everything =
                        PolicyRule { verbs: all(), groups: all(), resources: all(), ..PolicyRule::default() };
                    rules.extend([everything, PolicyRule { verbs: all(), paths: all(), ..PolicyRule::default() }]);
                }
                Step::AlwaysDeny => {}
                Step::Node => {
                    if node_identity(user).is_some() {
                        is_incomplete = true;
                        problems.push(NODE_RULES.to_owned());
                    }
                }
                Step::Rbac => {
                    let (own, missing) = self.grants.read().rules_of(user, Some(namespace));
                    rules.extend(own);
                    problems.extend(Some(missing.in_decisions()).filter(|problem| !problem.is_empty()));
                }
                Step::Abac(_) => {
                    is_incomplete = true;
                    problems.push("ABAC authorizer does not support user rule resolution".to_owned());
                }
                Step::Webhook(_) => {
                    is_incomplete = true;
                    problems.push("webhook authorizer does not support user rule resolution".to_owned());
                }
            }
        }
        AccessRules { rules, is_incomplete, problem: aggregate(problems).unwrap_or_default() }
    }

    /// The grants that roles are looked up in, whether or not the modes ask them.
    pub fn grants(&self) -> &Arc<dyn GrantBook> {
        &self.grants
    }

    /// Refuses `user` who is about to grant rules in a namespace, or in the whole cluster, without having them there.
    /// Only roles count for what they have. `plural` is the resource that they write.
    pub fn refuse_escalation(
        &self,
        user: &Identity,
        namespace: Option<&str>,
        granted: &[PolicyRule],
        plural: &str,
    ) -> Result<(), Escalation> {
        let (held, unknown) = self.grants.read().rules_of(user, namespace);
        match missing_rights(&held, granted) {
            missing if missing.is_empty() => Ok(()),
            missing => Err(Escalation::new(user, missing, &unknown.in_writes(plural))),
        }
    }
}

/// The outcome of a decision, which is there at once unless a webhook has to be asked; then the thread is given up to
/// others while it waits. Has to be called on a thread of a runtime with several of them where there are webhooks, which
/// may start as many more as there can be requests that wait here.
fn in_place<T>(decision: impl Future<Output = T>) -> T {
    let mut decision = pin!(decision);
    match decision.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(decided) => decided,
        Poll::Pending => tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(decision)),
    }
}

/// Several problems as one, each told once (upstream: `Aggregate`).
fn aggregate(problems: Vec<String>) -> Option<String> {
    let mut seen = HashSet::new();
    let told: Vec<&str> = problems.iter().map(String::as_str).filter(|problem| seen.insert(*problem)).collect();
    match told.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

/// What somebody may do, as `kubectl auth can-i --list` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// All rules that hold.
    pub rules: Vec<PolicyRule>,
    /// Whether there may be more that could not be listed.
    pub is_incomplete: bool,
    /// What was wrong with some of them; often empty.
    pub problem: String,
}

#[cfg(test)]
mod tests {
    use std::sync::RwLock;

    use super::*;
    use crate::{Binding, Claims, Grants, ResourceAttributes, RoleKind, RoleRef, Subject};

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
                Err(
                    "at least one authorization-mode must be passed, allowed are ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook",
                ),
            ),
            (
                "Node,NoSuch",
                Err(
                    r#"authorization-mode "NoSuch" is not a valid mode, allowed are ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook"#,
                ),
            ),
            (
                "rbac",
                Err(
                    r#"authorization-mode "rbac" is not a valid mode, allowed are ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook"#,
                ),
            ),
            (
                "RBAC,",
                Err(
                    r#"authorization-mode "" is not a valid mode, allowed are ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook"#,
                ),
            ),
            ("RBAC,Node,RBAC", Err(r#"authorization-mode "RBAC" is specified more than once"#)),
        ] {
            let got = text.parse::<AuthorizationModes>().map(|modes| modes.to_string()).map_err(|e| e.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{text}");
        }
    }

    /// Everybody may get the health, and those who are known may ask about themselves.
    fn grants() -> Arc<RwLock<Grants>> {
        let get = |paths: &[&str]| PolicyRule {
            verbs: vec!["get".to_owned()],
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            ..PolicyRule::default()
        };
        let ask = PolicyRule {
            verbs: vec!["create".to_owned()],
            groups: vec!["authentication.k8s.io".to_owned()],
            resources: vec!["selfsubjectreviews".to_owned()],
            ..PolicyRule::default()
        };
        let mut grants = Grants::default();
        grants.put_role(None, "public", vec![get(&["/healthz", "/version"])]);
        grants.put_role(None, "basic", vec![ask]);
        for (name, groups) in [
            ("public", &["system:authenticated", "system:unauthenticated"][..]),
            ("basic", &["system:authenticated"]),
            ("lost", &["lost"]),
        ] {
            let subjects = groups.iter().map(|group| Subject::Group((*group).to_owned())).collect();
            let role = RoleRef { kind: RoleKind::ClusterRole, name: name.to_owned() };
            grants.put_binding(Binding::new(None, name, role, subjects));
        }
        Arc::new(RwLock::new(grants))
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
            ("RBAC", &nobody, "get", "/healthz", None, true),
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
            let authorizer = Authorizer::new(modes(mode), grants());
            let decision = authorizer.authorize(&Attributes { user, verb, path, resource });
            assert_eq!(decision == Decision::Allow, allowed, "{mode}: {user:?} {verb} {path} {resource:?}");
        }
    }

    #[test]
    fn decisions_have_their_reasons() {
        let lost = Claims { name: "bob".to_owned(), groups: vec!["lost".to_owned()], ..Claims::default() };
        let bob = Identity::authenticated(lost);
        let missing = r#"RBAC: clusterrole.rbac.authorization.k8s.io "lost" not found"#;
        let allowed =
            r#"RBAC: allowed by ClusterRoleBinding "public" of ClusterRole "public" to Group "system:authenticated""#;
        let both = format!("Everything is forbidden.\n{missing}");
        for (mode, path, want) in [
            ("RBAC", "/x", (false, missing)),
            ("Node", "/x", (false, "")),
            ("AlwaysDeny,RBAC", "/x", (false, &*both)),
            ("AlwaysDeny,RBAC", "/version", (true, allowed)),
            ("AlwaysAllow,RBAC", "/version", (true, "")),
        ] {
            let attributes = Attributes { user: &bob, verb: "get", path, resource: None };
            let got = match Authorizer::new(modes(mode), grants()).explain_in_place(&attributes) {
                Explanation::Allow(reason) => (true, reason),
                Explanation::Forbidden(refusal) => (false, refusal.reason.into_owned()),
            };
            assert_eq!((got.0, &*got.1), want, "{mode} {path}");
        }
    }

    #[test]
    fn problems_are_told_once_and_together() {
        let told = |problems: &[&str]| aggregate(problems.iter().map(|problem| (*problem).to_owned()).collect());
        for (problems, want) in [(&[][..], None), (&["a"], Some("a")), (&["a", "b", "a"], Some("[a, b]"))] {
            assert_eq!(told(problems).as_deref(), want);
        }
        let refusal = |reason, error: Option<&str>| {
            let error = error.map(str::to_owned);
            NotAllowed { reason: Cow::Borrowed(reason), error, is_denied: false }.in_full().into_owned()
        };
        assert_eq!(refusal("r", None), "r");
        assert_eq!(refusal("", Some("e")), "e");
        assert_eq!(refusal("r", Some("e")), "e: r");
    }

    #[test]
    fn all_modes_have_a_say_in_the_list_of_rules() {
        let bob = Identity::authenticated(Claims { name: "bob".to_owned(), ..Claims::default() });
        for (mode, count, is_incomplete, problem) in [
            ("RBAC", 2, false, ""),
            ("AlwaysAllow", 2, false, ""),
            ("AlwaysDeny", 0, false, ""),
            ("Node,RBAC", 2, false, ""),
        ] {
            let rules = Authorizer::new(modes(mode), grants()).rules_of(&bob, "default");
            assert_eq!((rules.rules.len(), rules.is_incomplete, &*rules.problem), (count, is_incomplete, problem));
        }
        let groups = vec!["system:nodes".to_owned()];
        let node = Identity::authenticated(Claims { name: "system:node:a".to_owned(), groups, ..Claims::default() });
        let rules = Authorizer::new(modes("Node,RBAC"), grants()).rules_of(&node, "default");
        assert_eq!(
            (rules.is_incomplete, &*rules.problem),
            (true, NODE_RULES),
            "what a node may do depends on its pods"
        );
    }
}
