//! Nobody grants what they do not have: roles and bindings are written by those who hold all that they grant, or who
//! were given the right to write more. And who makes an object by a write that could have changed one needs the right
//! to make it.

use revisor_auth::{
    Attributes as Question, Claims, Decision, Identity, PolicyRule, ResourceAttributes, RoleKind, RoleRef,
    why_forbidden,
};
use revisor_catalog::Requester;
use revisor_object::names::path_segment_name;
use revisor_object::{Object, Value};

use crate::admission::Attributes;
use crate::role_book::GROUP;
use crate::{Registry, RegistryError, WriteOptions};

/// What of an object's metadata only says who else depends on it.
const BOOKKEEPING: [&str; 5] = ["ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion"];

impl Registry {
    /// Refuses a role or a binding that grants more than its writer has.
    pub(crate) fn refuse_escalation(
        &self,
        attributes: &Attributes<'_>,
        object: &Object,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        if attributes.resource.group != GROUP {
            return Ok(());
        }
        let Some(user) = user(options.requester).filter(|user| !user.is_master()) else { return Ok(()) };
        match attributes.resource.plural.as_str() {
            "clusterroles" | "roles" => {
                // Only who changes a role speaks of it by its name; who makes one does not.
                let is_addressed = attributes.old.is_some() || options.is_addressed;
                let name = is_addressed.then_some(attributes.name);
                let resource = ResourceAttributes { resource: &attributes.resource.plural, name, ..of(attributes) };
                if self.allows(&user, "escalate", resource) || is_bookkeeping(attributes, object) {
                    return Ok(());
                }
                self.refuse_granting(attributes, &user, &PolicyRule::all_of(object))?;
                if gathers(object) || attributes.old.is_some_and(gathers) {
                    // What is gathered may be anything.
                    let refused = self.authorizer.refuse_escalation(&user, attributes.namespace, &everything(), "");
                    let why = "must have cluster-admin privileges to use the aggregationRule";
                    refused.map_err(|_| attributes.forbidden(why))?;
                }
                Ok(())
            }
            "clusterrolebindings" | "rolebindings" => {
                if is_bookkeeping(attributes, object) {
                    return Ok(());
                }
                // What is of no kind that there is, is not valid and grants nothing.
                let Some(role) = RoleRef::of(object) else { return Ok(()) };
                let plural = match role.kind {
                    RoleKind::ClusterRole => "clusterroles",
                    RoleKind::Role => "roles",
                };
                let group = object.at(&["roleRef", "apiGroup"]).and_then(Value::as_str).unwrap_or_default();
                let resource = ResourceAttributes { group, resource: plural, name: Some(&role.name), ..of(attributes) };
                if self.allows(&user, "bind", resource) {
                    return Ok(());
                }
                if role.kind == RoleKind::Role && attributes.namespace.is_none() {
                    return Err(RegistryError::BadRequest("Namespace parameter required.".to_owned()));
                }
                // The original gets the role by its own storage, which refuses such names.
                if role.name.is_empty() {
                    return Err(RegistryError::BadRequest("Name parameter required.".to_owned()));
                }
                let problems = path_segment_name(&role.name);
                if !problems.is_empty() {
                    let why = problems.join(";");
                    return Err(RegistryError::BadRequest(format!("Name parameter invalid: {:?}: {why}", role.name)));
                }
                let rules = self.authorizer.grants().read().role(&role, attributes.namespace).cloned();
                match rules {
                    Some(rules) => self.refuse_granting(attributes, &user, &rules),
                    // As in the original, what is missing is called by the resource of the request.
                    None => Err(RegistryError::not_found(attributes.resource, &role.name)),
                }
            }
            _ => Ok(()),
        }
    }

    /// Refuses to make an object for one who may only change it.
    pub(crate) fn require_right_to_create(
        &self,
        attributes: &Attributes<'_>,
        options: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        if !options.is_addressed {
            return Ok(());
        }
        let Some(user) = user(options.requester).filter(|user| !user.is_master()) else { return Ok(()) };
        let shown = attributes.shown;
        let resource = ResourceAttributes {
            version: &shown.version,
            resource: &shown.plural,
            name: Some(attributes.name),
            ..of(attributes)
        };
        let asked = Question { user: &user, verb: "create", path: "", resource: Some(resource) };
        match self.authorizer.authorize(&asked) {
            Decision::Allow => Ok(()),
            Decision::Forbidden(refusal) => Err(attributes.forbidden(why_forbidden(&asked, &refusal.reason))),
        }
    }

    pub(crate) fn allows(&self, user: &Identity, verb: &str, resource: ResourceAttributes<'_>) -> bool {
        let asked = Question { user, verb, path: "", resource: Some(resource) };
        self.authorizer.authorize(&asked) == Decision::Allow
    }

    fn refuse_granting(
        &self,
        attributes: &Attributes<'_>,
        user: &Identity,
        granted: &[PolicyRule],
    ) -> Result<(), RegistryError> {
        let plural = &attributes.resource.plural;
        let refused = self.authorizer.refuse_escalation(user, attributes.namespace, granted, plural);
        refused.map_err(|escalation| attributes.forbidden(escalation.to_string()))
    }
}

/// Who writes; `None` if it is the server itself. Everybody else is in a group: that of those who are known or that of
/// those who are not.
pub(crate) fn user(requester: Requester<'_>) -> Option<Identity> {
    if requester.name.is_empty() && requester.groups.is_empty() {
        return None;
    }
    Some(Identity::exactly(Claims {
        name: requester.name.to_owned(),
        uid: Some(requester.uid).filter(|uid| !uid.is_empty()).map(str::to_owned),
        groups: requester.groups.to_vec(),
        extra: requester.extra.to_vec(),
    }))
}

/// What all questions about a write have in common.
fn of<'a>(attributes: &Attributes<'a>) -> ResourceAttributes<'a> {
    ResourceAttributes {
        group: &attributes.resource.group,
        version: "*",
        namespace: attributes.namespace,
        ..ResourceAttributes::default()
    }
}

fn gathers(role: &Object) -> bool {
    role.object("aggregationRule").is_some_and(|rule| !rule.array("clusterRoleSelectors").is_empty())
}

fn everything() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    let resources = PolicyRule { verbs: all(), groups: all(), resources: all(), ..PolicyRule::default() };
    [resources, PolicyRule { verbs: all(), paths: all(), ..PolicyRule::default() }]
}

/// Whether a write changes nothing but who depends on the object: that grants nothing.
pub(crate) fn is_bookkeeping(attributes: &Attributes<'_>, object: &Object) -> bool {
    let Some(old) = attributes.old else { return false };
    let none = Object::new();
    same_but(object, old, &["kind", "apiVersion", "metadata"])
        && same_but(object.object("metadata").unwrap_or(&none), old.object("metadata").unwrap_or(&none), &BOOKKEEPING)
}

/// Whether two objects have the same members, leaving these aside.
fn same_but(one: &Object, other: &Object, aside: &[&str]) -> bool {
    let count = |object: &Object| object.iter().filter(|(name, _)| !aside.contains(name)).count();
    let mut members = one.iter().filter(|(name, _)| !aside.contains(name));
    members.all(|(name, value)| other.get(name) == Some(value)) && count(one) == count(other)
}
