//! [`AbacPolicy`]: lines of a file that allow users and groups to do something (`--authorization-policy-file`). For those
//! who have it: roles can say more, and can be changed.

use revisor_object::{Object, Value, parse_json};

use crate::rbac::path_covers;
use crate::{Attributes, Identity};

/// How many lines there may be.
const MOST_LINES: usize = 100_000;

/// The lines of a policy file.
#[derive(Debug, Default)]
pub struct AbacPolicy(Vec<Line>);

#[derive(Debug, Default)]
struct Line {
    user: String,
    group: String,
    readonly: bool,
    api_group: String,
    resource: String,
    namespace: String,
    path: String,
}

impl AbacPolicy {
    /// Reads a file. The error names the line and what is wrong with it.
    pub fn parse(text: &str) -> Result<AbacPolicy, String> {
        let mut lines = Vec::new();
        for (number, text) in text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let line =
                Line::parse(text).map_err(|problem| format!("error reading policy line {}: {problem}", number + 1))?;
            lines.push(line);
            if lines.len() > MOST_LINES {
                return Err(format!("there are more than {MOST_LINES} lines"));
            }
        }
        Ok(AbacPolicy(lines))
    }

    /// Whether a line allows what is asked.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        self.0.iter().any(|line| line.names(asked.user) && line.covers(asked))
    }
}

impl Line {
    fn parse(text: &str) -> Result<Line, String> {
        let parsed = parse_json(text.as_bytes()).map_err(|error| error.to_string())?;
        let Value::Object(object) = parsed.value else { return Err("it is no object".to_owned()) };
        match (object.str("apiVersion").unwrap_or_default(), object.str("kind").unwrap_or_default()) {
            // Lines without a version are from before there were any.
            ("", "") => Ok(Line::unversioned(&object)),
            ("abac.authorization.kubernetes.io/v1beta1", "Policy") => {
                let empty = Object::new();
                Ok(Line::of(object.object("spec").unwrap_or(&empty)))
            }
            ("abac.authorization.kubernetes.io/v0", "Policy") => Ok(Line::unversioned(&object)),
            (version, kind) => Err(format!("no kind {kind:?} is registered for version {version:?}")),
        }
    }

    fn of(spec: &Object) -> Line {
        let text = |name: &str| spec.str(name).unwrap_or_default().to_owned();
        Line {
            user: text("user"),
            group: text("group"),
            readonly: spec.get("readonly").and_then(Value::as_bool) == Some(true),
            api_group: text("apiGroup"),
            resource: text("resource"),
            namespace: text("namespace"),
            path: text("nonResourcePath"),
        }
    }

    /// In the first version, what is not said is everything (`Convert_v0_Policy_To_abac_Policy`).
    fn unversioned(object: &Object) -> Line {
        let line = Line::of(object);
        let any = |text: String| if text.is_empty() { "*".to_owned() } else { text };
        let is_about_nobody = line.user.is_empty() && line.group.is_empty();
        Line {
            user: line.user,
            group: if is_about_nobody { "system:authenticated".to_owned() } else { line.group },
            readonly: line.readonly,
            api_group: "*".to_owned(),
            path: if line.namespace.is_empty() && line.resource.is_empty() { "*".to_owned() } else { String::new() },
            resource: any(line.resource),
            namespace: any(line.namespace),
        }
    }

    /// Whether a user is among those whom the line is about (`subjectMatches`).
    fn names(&self, user: &Identity) -> bool {
        let named = |name: &str, matches: &dyn Fn() -> bool| match name {
            "" => None,
            "*" => Some(true),
            _ => Some(matches()),
        };
        let by_user = named(&self.user, &|| self.user == user.name());
        let by_group = named(&self.group, &|| user.groups().contains(&self.group));
        match (by_user, by_group) {
            (None, None) => false,
            (user, group) => user.unwrap_or(true) && group.unwrap_or(true),
        }
    }

    fn covers(&self, asked: &Attributes<'_>) -> bool {
        let is = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        let is_verb = !self.readonly || matches!(asked.verb, "get" | "list" | "watch");
        is_verb
            && match &asked.resource {
                Some(target) => {
                    is(&self.namespace, target.namespace.unwrap_or_default())
                        && is(&self.resource, target.resource)
                        && is(&self.api_group, target.group)
                }
                None => !self.path.is_empty() && path_covers(&self.path, asked.path),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claims, ResourceAttributes};

    #[test]
    fn lines_allow_what_they_say() {
        let text = r#"
# comment
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"*"}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob","namespace":"n","resource":"pods","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"viewers","readonly":true,"nonResourcePath":"/healthz*"}}
{"user":"old","resource":"secrets"}
"#;
        let policy = AbacPolicy::parse(text).expect("is a policy");
        let pods = |namespace| ResourceAttributes { resource: "pods", namespace, ..ResourceAttributes::default() };
        let secrets = ResourceAttributes { resource: "secrets", namespace: Some("n"), ..ResourceAttributes::default() };
        for (user, group, verb, path, resource, want) in [
            ("alice", "", "delete", "", Some(pods(Some("x"))), true),
            ("alice", "", "get", "/metrics", None, true),
            ("bob", "", "get", "", Some(pods(Some("n"))), true),
            ("bob", "", "create", "", Some(pods(Some("n"))), false),
            ("bob", "", "get", "", Some(pods(Some("m"))), false),
            ("carl", "viewers", "get", "/healthz/ping", None, true),
            ("carl", "viewers", "post", "/healthz", None, false),
            ("old", "", "delete", "", Some(secrets), true),
            ("dora", "", "get", "/healthz", None, false),
        ] {
            let claims = Claims { name: user.to_owned(), groups: vec![group.to_owned()], ..Claims::default() };
            let user = &Identity::exactly(claims);
            assert_eq!(policy.allows(&Attributes { user, verb, path, resource }), want, "{user:?} {verb} {path}");
        }
        let error = AbacPolicy::parse("\n{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}").expect_err("is none");
        assert_eq!(error, "error reading policy line 2: no kind \"Pod\" is registered for version \"v1\"");
    }
}
