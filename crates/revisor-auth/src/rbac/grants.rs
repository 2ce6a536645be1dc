//! [`Grants`]: all roles and bindings, indexed by whom they are for.
//!
//! A request looks up the bindings of its user and of each of their groups, of the whole cluster and of one namespace;
//! however many others there are costs it nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use revisor_object::{Object, Value};

use super::PolicyRule;
use crate::quoted::quoted;
use crate::{Attributes, Identity};

/// Keeps the [`Grants`] of a server.
pub trait GrantBook: fmt::Debug + Send + Sync {
    /// The grants with every write that was answered before. They stay as they are for as long as the guard is held,
    /// which should be short: writers wait for it.
    fn read(&self) -> RwLockReadGuard<'_, Grants>;
}

impl GrantBook for RwLock<Grants> {
    fn read(&self) -> RwLockReadGuard<'_, Grants> {
        RwLock::read(self).expect("no holder of the grants panics")
    }
}

/// The two kinds of role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleKind {
    /// Of the whole cluster.
    ClusterRole,
    /// Of one namespace.
    Role,
}

impl RoleKind {
    fn name(self) -> &'static str {
        match self {
            RoleKind::Role => "Role",
            RoleKind::ClusterRole => "ClusterRole",
        }
    }
}

/// The role that a binding is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoleRef {
    /// Which kind.
    pub kind: RoleKind,
    /// Its name.
    pub name: String,
}

impl RoleRef {
    /// The role of a binding as it is stored; `None` if it is of no kind that there is.
    pub fn of(binding: &Object) -> Option<RoleRef> {
        let role = binding.object("roleRef")?;
        let kind = match role.str("kind")? {
            "Role" => RoleKind::Role,
            "ClusterRole" => RoleKind::ClusterRole,
            _ => return None,
        };
        Some(RoleRef { kind, name: role.str("name").unwrap_or_default().to_owned() })
    }
}

/// Roles that bindings name and that are not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MissingRoles(BTreeSet<RoleRef>);

impl MissingRoles {
    /// What decisions say about them; empty if there are none.
    pub fn in_decisions(&self) -> String {
        self.described(|role| role.kind.name().to_ascii_lowercase())
    }

    /// What is said about them to those who write objects of this resource; empty if there are none. As in the
    /// original, whatever is missing is called by the resource of the request.
    pub fn in_writes(&self, plural: &str) -> String {
        self.described(|_| plural.to_owned())
    }

    fn described(&self, called: impl Fn(&RoleRef) -> String) -> String {
        let problem =
            |role: &RoleRef| format!("{}.rbac.authorization.k8s.io {} not found", called(role), quoted(&role.name));
        let problems: Vec<String> = self.0.iter().map(problem).collect();
        if problems.len() < 2 { problems.concat() } else { format!("[{}]", problems.join(", ")) }
    }
}

/// Whom a binding is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The user with this name.
    User(String),
    /// The members of this group.
    Group(String),
    /// A service account.
    ServiceAccount {
        /// Its namespace; the binding's own if it is not said.
        namespace: Option<String>,
        /// Its name.
        name: String,
    },
}

impl Subject {
    fn read(subject: &Object) -> Option<Subject> {
        let text = |name| subject.str(name).unwrap_or_default().to_owned();
        Some(match subject.str("kind")? {
            "User" => Subject::User(text("name")),
            "Group" => Subject::Group(text("name")),
            "ServiceAccount" => Subject::ServiceAccount {
                namespace: Some(text("namespace")).filter(|namespace| !namespace.is_empty()),
                name: text("name"),
            },
            _ => return None,
        })
    }

    /// The name of the user that this is, if it is one.
    fn user<'a>(&'a self, of: Option<&str>) -> Option<std::borrow::Cow<'a, str>> {
        match self {
            Subject::User(name) => Some(name.into()),
            Subject::Group(_) => None,
            Subject::ServiceAccount { namespace, name } => {
                let namespace = namespace.as_deref().or(of)?;
                Some(format!("system:serviceaccount:{namespace}:{name}").into())
            }
        }
    }

    fn is(&self, user: &Identity, of: Option<&str>) -> bool {
        match self {
            Subject::Group(group) => user.groups().contains(group),
            other => other.user(of).is_some_and(|name| name == user.name()),
        }
    }

    fn describe(&self, of: Option<&str>) -> String {
        match self {
            Subject::User(name) => format!("User {}", quoted(name)),
            Subject::Group(name) => format!("Group {}", quoted(name)),
            Subject::ServiceAccount { namespace, name } => {
                let namespace = namespace.as_deref().or(of).unwrap_or_default();
                format!("ServiceAccount {}", quoted(&format!("{name}/{namespace}")))
            }
        }
    }
}

/// Who has a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    namespace: Option<Arc<str>>,
    name: Arc<str>,
    role: RoleRef,
    subjects: Vec<Subject>,
}

impl Binding {
    /// A binding of a namespace, or of the whole cluster.
    pub fn new(namespace: Option<&str>, name: &str, role: RoleRef, subjects: Vec<Subject>) -> Binding {
        Binding { namespace: namespace.map(Arc::from), name: name.into(), role, subjects }
    }

    /// A binding as it is stored; `None` if it means nothing.
    pub fn read(namespace: Option<&str>, name: &str, binding: &Object) -> Option<Binding> {
        let subjects = binding.array("subjects").iter().filter_map(Value::as_object).filter_map(Subject::read);
        Some(Binding::new(namespace, name, RoleRef::of(binding)?, subjects.collect()))
    }

    /// Why this binding lets `user` do what its role allows.
    fn describe(&self, user: &Identity) -> String {
        let namespace = self.namespace.as_deref();
        let (kind, name) = match namespace {
            None => ("ClusterRoleBinding", quoted(&self.name)),
            Some(namespace) => ("RoleBinding", quoted(&format!("{}/{namespace}", self.name))),
        };
        let subject = self.subjects.iter().find(|subject| subject.is(user, namespace));
        let subject = subject.map(|subject| subject.describe(namespace)).unwrap_or_default();
        format!("{kind} {name} of {} {} to {subject}", self.role.kind.name(), quoted(&self.role.name))
    }
}

/// What the grants say about a request.
pub(crate) enum Verdict<'a> {
    /// A role allows it that this binding gives.
    Allowed(&'a Binding),
    /// No role allows it. Bindings that could have may name roles that are not there.
    Nothing {
        /// What is said about that; often empty.
        problems: String,
    },
}

impl Verdict<'_> {
    /// What is said of the decision about `user`.
    pub(crate) fn reason(&self, user: &Identity) -> String {
        match self {
            Verdict::Allowed(binding) => format!("RBAC: allowed by {}", binding.describe(user)),
            Verdict::Nothing { problems } if problems.is_empty() => String::new(),
            Verdict::Nothing { problems } => format!("RBAC: {problems}"),
        }
    }
}

/// All roles and bindings.
#[derive(Debug, Default)]
pub struct Grants {
    roles: Placed<HashMap<String, Arc<[PolicyRule]>>>,
    bindings: Placed<Bindings>,
}

/// What there is of the whole cluster, and of each namespace that has something.
#[derive(Debug, Default)]
struct Placed<T> {
    cluster: T,
    namespaces: HashMap<String, T>,
}

impl<T: Default> Placed<T> {
    fn at(&self, namespace: Option<&str>) -> Option<&T> {
        match namespace {
            None => Some(&self.cluster),
            Some(namespace) => self.namespaces.get(namespace),
        }
    }

    /// Changes what is there, and keeps nothing of a namespace in which nothing is left.
    fn change(&mut self, namespace: Option<&str>, change: impl FnOnce(&mut T), is_empty: impl FnOnce(&T) -> bool) {
        let Some(namespace) = namespace else { return change(&mut self.cluster) };
        let there = self.namespaces.entry(namespace.to_owned()).or_default();
        change(there);
        if is_empty(there) {
            self.namespaces.remove(namespace);
        }
    }
}

/// The bindings of one namespace, or those of the whole cluster.
#[derive(Debug, Default)]
struct Bindings {
    by_name: HashMap<Arc<str>, Arc<Binding>>,
    users: HashMap<String, BTreeMap<Arc<str>, Arc<Binding>>>,
    groups: HashMap<String, BTreeMap<Arc<str>, Arc<Binding>>>,
}

impl Grants {
    /// Puts the rules of a role in place of those that it had; without a namespace it is a cluster role.
    pub fn put_role(&mut self, namespace: Option<&str>, name: &str, rules: Vec<PolicyRule>) {
        let put = |roles: &mut HashMap<_, _>| {
            roles.insert(name.to_owned(), Arc::from(rules));
        };
        self.roles.change(namespace, put, HashMap::is_empty);
    }

    /// Forgets a role.
    pub fn remove_role(&mut self, namespace: Option<&str>, name: &str) {
        let remove = |roles: &mut HashMap<_, _>| {
            roles.remove(name);
        };
        self.roles.change(namespace, remove, HashMap::is_empty);
    }

    /// Puts a binding in place of the one with its name.
    pub fn put_binding(&mut self, binding: Binding) {
        let namespace = binding.namespace.clone();
        self.bindings.change(namespace.as_deref(), |bindings| bindings.put(binding), Bindings::is_empty);
    }

    /// Forgets a binding.
    pub fn remove_binding(&mut self, namespace: Option<&str>, name: &str) {
        self.bindings.change(namespace, |bindings| bindings.remove(name), Bindings::is_empty);
    }

    /// Forgets all roles of the whole cluster.
    pub fn forget_cluster_roles(&mut self) {
        self.roles.cluster = HashMap::new();
    }

    /// Forgets all roles of namespaces.
    pub fn forget_roles(&mut self) {
        self.roles.namespaces = HashMap::new();
    }

    /// Forgets all bindings of the whole cluster.
    pub fn forget_cluster_bindings(&mut self) {
        self.bindings.cluster = Bindings::default();
    }

    /// Forgets all bindings of namespaces.
    pub fn forget_bindings(&mut self) {
        self.bindings.namespaces = HashMap::new();
    }

    /// The rules of the role that a binding of this namespace has, if there is such a role.
    pub fn role(&self, role: &RoleRef, namespace: Option<&str>) -> Option<&Arc<[PolicyRule]>> {
        let place = match role.kind {
            RoleKind::ClusterRole => None,
            RoleKind::Role => Some(namespace?),
        };
        self.roles.at(place)?.get(&role.name)
    }

    /// What the roles of its user say about a request.
    pub(crate) fn decide(&self, asked: &Attributes<'_>) -> Verdict<'_> {
        let namespace = asked.resource.and_then(|resource| resource.namespace).filter(|name| !name.is_empty());
        let mut missing = MissingRoles::default();
        for place in self.places(namespace) {
            for binding in place.of(asked.user) {
                match self.role(&binding.role, binding.namespace.as_deref()) {
                    Some(rules) if rules.iter().any(|rule| rule.allows(asked)) => return Verdict::Allowed(binding),
                    Some(_) => {}
                    None => {
                        missing.0.insert(binding.role.clone());
                    }
                }
            }
        }
        Verdict::Nothing { problems: missing.in_decisions() }
    }

    /// All rules that hold for `user` in a namespace, or in the whole cluster, and the roles that they were given but
    /// that are not there.
    pub fn rules_of(&self, user: &Identity, namespace: Option<&str>) -> (Vec<PolicyRule>, MissingRoles) {
        let (mut rules, mut missing) = (Vec::new(), MissingRoles::default());
        for place in self.places(namespace.filter(|name| !name.is_empty())) {
            // One binding may be for somebody in several ways.
            let bindings: BTreeMap<&Arc<str>, &Arc<Binding>> =
                place.of(user).map(|binding| (&binding.name, binding)).collect();
            for binding in bindings.into_values() {
                match self.role(&binding.role, binding.namespace.as_deref()) {
                    Some(own) => rules.extend_from_slice(own),
                    None => {
                        missing.0.insert(binding.role.clone());
                    }
                }
            }
        }
        (rules, missing)
    }

    /// The bindings that may matter: those of the cluster, then those of the namespace.
    fn places(&self, namespace: Option<&str>) -> impl Iterator<Item = &Bindings> {
        let local = namespace.and_then(|namespace| self.bindings.at(Some(namespace)));
        std::iter::once(&self.bindings.cluster).chain(local)
    }
}

impl Bindings {
    fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    fn put(&mut self, binding: Binding) {
        self.remove(&binding.name);
        let binding = Arc::new(binding);
        for subject in &binding.subjects {
            let (holders, holder) = match (subject, subject.user(binding.namespace.as_deref())) {
                (Subject::Group(group), _) => (&mut self.groups, group.clone()),
                (_, Some(user)) => (&mut self.users, user.into_owned()),
                // A service account without a namespace is nobody.
                (_, None) => continue,
            };
            holders.entry(holder).or_default().insert(binding.name.clone(), binding.clone());
        }
        self.by_name.insert(binding.name.clone(), binding);
    }

    fn remove(&mut self, name: &str) {
        let Some(binding) = self.by_name.remove(name) else { return };
        for subject in &binding.subjects {
            let (holders, holder) = match (subject, subject.user(binding.namespace.as_deref())) {
                (Subject::Group(group), _) => (&mut self.groups, group.as_str().into()),
                (_, Some(user)) => (&mut self.users, user),
                (_, None) => continue,
            };
            if let Some(bindings) = holders.get_mut(&*holder) {
                bindings.remove(name);
                if bindings.is_empty() {
                    holders.remove(&*holder);
                }
            }
        }
    }

    /// Those that are for `user`, some perhaps twice.
    fn of<'a, 'u>(&'a self, user: &'u Identity) -> impl Iterator<Item = &'a Arc<Binding>> + use<'a, 'u> {
        let by_group = user.groups().iter().filter_map(|group| self.groups.get(group));
        self.users.get(user.name()).into_iter().chain(by_group).flat_map(BTreeMap::values)
    }
}

#[cfg(test)]
mod tests;
