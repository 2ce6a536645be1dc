//! [`Attributes`]: what of a request the decision about it depends on, and the words of a refusal.

use crate::quoted::quoted;
use crate::{Identity, Selectors};

/// What of a request matters to whether it is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a Identity,
    /// What they want to do: `get`, `list`, `watch`, `create`, …; without a resource the HTTP method in lower case.
    pub verb: &'a str,
    /// The path of the request.
    pub path: &'a str,
    /// The resource that the request is about, unless it is about a bare path like `/healthz`.
    pub resource: Option<ResourceAttributes<'a>>,
}

/// The resource that a request is about.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResourceAttributes<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The part of the object that is meant, for instance `status`.
    pub subresource: Option<&'a str>,
    /// The namespace, unless the request is about the whole cluster.
    pub namespace: Option<&'a str>,
    /// The name of the object, unless the request is about a collection.
    pub name: Option<&'a str>,
    /// To what a request about a collection is limited, if it is.
    pub selectors: Option<&'a Selectors>,
}

/// The refusal of a request, in the words that clients know, and what it was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forbidden {
    /// The message of the answer.
    pub message: String,
    /// The group of the resource; empty for the core group and for bare paths.
    pub group: String,
    /// The resource; empty for bare paths.
    pub resource: String,
    /// The name of the object; empty for collections.
    pub name: String,
}

impl Forbidden {
    /// The refusal of what `attributes` describe.
    ///
    /// `reason` is what the authorizer gave (see [`NotAllowed`](crate::NotAllowed)); it may be empty.
    pub fn of(attributes: &Attributes<'_>, reason: &str) -> Forbidden {
        let ResourceAttributes { group, resource, name, .. } = attributes.resource.unwrap_or_default();
        let name = name.unwrap_or_default();
        let mut message = String::new();
        if !(group.is_empty() && resource.is_empty()) {
            let dot = if group.is_empty() { "" } else { "." };
            let name = if name.is_empty() { String::new() } else { format!(" {}", quoted(name)) };
            message = format!("{resource}{dot}{group}{name} is ");
        }
        message.push_str("forbidden: ");
        message.push_str(&why_forbidden(attributes, reason));
        Forbidden { message, group: group.to_owned(), resource: resource.to_owned(), name: name.to_owned() }
    }
}

/// Who may not do what where: the end of the message of a refusal.
pub fn why_forbidden(attributes: &Attributes<'_>, reason: &str) -> String {
    let mut why = without_markup(&cannot(attributes));
    if !reason.is_empty() {
        why.push_str(": ");
        why.push_str(reason);
    }
    why
}

fn cannot(attributes: &Attributes<'_>) -> String {
    let (user, verb) = (quoted(attributes.user.name()), attributes.verb);
    let Some(target) = attributes.resource else {
        return format!("User {user} cannot {verb} path {}", quoted(attributes.path));
    };
    let resource = match target.subresource.filter(|subresource| !subresource.is_empty()) {
        Some(subresource) => quoted(&format!("{}/{subresource}", target.resource)),
        None => quoted(target.resource),
    };
    let scope = match target.namespace.filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("in the namespace {}", quoted(namespace)),
        None => "at the cluster scope".to_owned(),
    };
    format!("User {user} cannot {verb} resource {resource} in API group {} {scope}", quoted(target.group))
}

/// Paths and names come from the client; a browser that shows the message must not take them for markup.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Claims;

    #[test]
    fn refusals_are_worded_as_clients_know_them() {
        let core = ResourceAttributes { version: "v1", resource: "configmaps", ..ResourceAttributes::default() };
        let apps = ResourceAttributes { group: "apps", resource: "deployments", ..core };
        for (verb, path, resource, reason, want) in [
            (
                "list",
                "",
                Some(ResourceAttributes { namespace: Some("x"), ..core }),
                "",
                r#"configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "x""#,
            ),
            (
                "list",
                "",
                Some(core),
                "",
                r#"configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" at the cluster scope"#,
            ),
            (
                "get",
                "",
                Some(ResourceAttributes { namespace: Some("x"), name: Some("a"), ..core }),
                "",
                r#"configmaps "a" is forbidden: User "bob" cannot get resource "configmaps" in API group "" in the namespace "x""#,
            ),
            (
                "patch",
                "",
                Some(ResourceAttributes { namespace: Some("x"), name: Some("d"), subresource: Some("status"), ..apps }),
                "",
                r#"deployments.apps "d" is forbidden: User "bob" cannot patch resource "deployments/status" in API group "apps" in the namespace "x""#,
            ),
            ("get", "/foo", None, "", r#"forbidden: User "bob" cannot get path "/foo""#),
            ("get", "/<script>&", None, "", r#"forbidden: User "bob" cannot get path "/&lt;script&gt;&amp;""#),
            (
                "get",
                "/a\"b",
                None,
                "Everything is forbidden.",
                r#"forbidden: User "bob" cannot get path "/a\"b": Everything is forbidden."#,
            ),
        ] {
            let user = Identity::authenticated(Claims { name: "bob".to_owned(), ..Claims::default() });
            let attributes = Attributes { user: &user, verb, path, resource };
            assert_eq!(Forbidden::of(&attributes, reason).message, want);
        }
    }

    #[test]
    fn anonymous_is_named_too() {
        let user = Identity::anonymous();
        let attributes = Attributes { user: &user, verb: "get", path: "/foo", resource: None };
        let refusal = Forbidden::of(&attributes, "");
        assert_eq!(refusal.message, r#"forbidden: User "system:anonymous" cannot get path "/foo""#);
        assert_eq!((refusal.group, refusal.resource, refusal.name), Default::default());
    }
}
