//! [`FlowSchema`]: which requests belong to which level, and which of them are one flow.
//!
//! Matching is the original's `rule.go`: the first schema that has a rule with the user among its subjects and the
//! request among its resources or paths.

use revisor_object::{Object, Value};

/// Stands for all of something.
const ALL: &str = "*";

/// What the names of service accounts begin with.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// A FlowSchema, as far as requests are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSchema {
    /// Its name.
    pub name: String,
    /// What tells it from others that had the name.
    pub uid: String,
    /// The level of its requests.
    pub level: String,
    /// What tells its flows apart.
    pub distinguisher: Option<Distinguisher>,
    precedence: i64,
    rules: Vec<Rule>,
}

/// What tells the flows of a schema apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinguisher {
    /// Who asks.
    ByUser,
    /// The namespace that they ask about.
    ByNamespace,
}

/// What of a request decides to which flow it belongs.
#[derive(Debug, Clone, Copy)]
pub struct RequestDigest<'a> {
    /// Who asks.
    pub user: &'a str,
    /// The groups that they are in.
    pub groups: &'a [String],
    /// What they want to do.
    pub verb: &'a str,
    /// The path of the request.
    pub path: &'a str,
    /// The resource that it is about, unless it is about a bare path.
    pub resource: Option<ResourceDigest<'a>>,
}

/// The resource that a request is about.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResourceDigest<'a> {
    /// Its group.
    pub group: &'a str,
    /// Its plural name.
    pub resource: &'a str,
    /// The part of it that is meant; empty for all of it.
    pub subresource: &'a str,
    /// The namespace; empty where there is none.
    pub namespace: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ResourceRule {
    verbs: Names,
    groups: Names,
    /// A resource, or `resource/subresource`.
    resources: Names,
    namespaces: Names,
    cluster_scope: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PathRule {
    verbs: Names,
    paths: Vec<String>,
}

/// Some names, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    All,
    These(Vec<String>),
}

impl FlowSchema {
    /// The schema that a stored object describes; `None` if it is broken.
    pub fn read(object: &Object) -> Option<FlowSchema> {
        let metadata = object.object("metadata")?;
        let spec = object.object("spec")?;
        let distinguisher = match spec.object("distinguisherMethod").and_then(|method| method.str("type")) {
            Some("ByUser") => Some(Distinguisher::ByUser),
            Some("ByNamespace") => Some(Distinguisher::ByNamespace),
            _ => None,
        };
        let rules = spec.array("rules").iter().filter_map(Value::as_object).map(Rule::read).collect();
        Some(FlowSchema {
            name: metadata.str("name")?.to_owned(),
            uid: metadata.str("uid").unwrap_or_default().to_owned(),
            level: spec.object("priorityLevelConfiguration")?.str("name")?.to_owned(),
            distinguisher,
            precedence: spec.get("matchingPrecedence").and_then(Value::as_i64).unwrap_or(1000),
            rules,
        })
    }

    /// By what schemas are tried in turn.
    pub fn order(&self) -> (i64, &str) {
        (self.precedence, &self.name)
    }

    /// Whether a request belongs to it.
    pub fn matches(&self, request: &RequestDigest<'_>) -> bool {
        self.rules.iter().any(|rule| rule.matches(request))
    }

    /// What tells the flow of this request from others of the schema.
    pub fn distinguisher<'a>(&self, request: &RequestDigest<'a>) -> &'a str {
        match self.distinguisher {
            None => "",
            Some(Distinguisher::ByUser) => request.user,
            Some(Distinguisher::ByNamespace) => request.resource.map_or("", |resource| resource.namespace),
        }
    }
}

impl Rule {
    fn read(rule: &Object) -> Rule {
        let members = |name: &str| rule.array(name).iter().filter_map(Value::as_object);
        Rule {
            subjects: members("subjects").filter_map(Subject::read).collect(),
            resources: members("resourceRules").map(ResourceRule::read).collect(),
            paths: members("nonResourceRules").map(PathRule::read).collect(),
        }
    }

    fn matches(&self, request: &RequestDigest<'_>) -> bool {
        self.subjects.iter().any(|subject| subject.matches(request))
            && match &request.resource {
                Some(resource) => self.resources.iter().any(|rule| rule.matches(request.verb, resource)),
                None => self.paths.iter().any(|rule| rule.matches(request)),
            }
    }
}

impl Subject {
    fn read(subject: &Object) -> Option<Subject> {
        let named = |kind: &str| subject.object(kind)?.str("name").map(str::to_owned);
        match subject.str("kind")? {
            "User" => named("user").map(Subject::User),
            "Group" => named("group").map(Subject::Group),
            "ServiceAccount" => {
                let account = subject.object("serviceAccount")?;
                let namespace = account.str("namespace").unwrap_or_default().to_owned();
                Some(Subject::ServiceAccount { namespace, name: account.str("name")?.to_owned() })
            }
            _ => None,
        }
    }

    fn matches(&self, request: &RequestDigest<'_>) -> bool {
        match self {
            Subject::User(name) => name == ALL || name == request.user,
            Subject::Group(name) => name == ALL || request.groups.contains(name),
            Subject::ServiceAccount { namespace, name } => {
                let rest = request.user.strip_prefix(SERVICE_ACCOUNT);
                let rest = rest.and_then(|rest| rest.strip_prefix(namespace.as_str())?.strip_prefix(':'));
                rest.is_some_and(|account| name == ALL || account == name)
            }
        }
    }
}

impl ResourceRule {
    fn read(rule: &Object) -> ResourceRule {
        ResourceRule {
            verbs: Names::read(rule, "verbs"),
            groups: Names::read(rule, "apiGroups"),
            resources: Names::read(rule, "resources"),
            namespaces: Names::read(rule, "namespaces"),
            cluster_scope: rule.get("clusterScope").and_then(Value::as_bool).unwrap_or_default(),
        }
    }

    fn matches(&self, verb: &str, target: &ResourceDigest<'_>) -> bool {
        self.verbs.contains(verb)
            && self.resources.any(|known| is_resource(known, target))
            && self.groups.contains(target.group)
            && match target.namespace {
                "" => self.cluster_scope,
                namespace => self.namespaces.contains(namespace),
            }
    }
}

/// Whether a name of a rule is this resource, or this part of one.
fn is_resource(known: &str, target: &ResourceDigest<'_>) -> bool {
    let rest = known.strip_prefix(target.resource);
    match target.subresource {
        "" => rest == Some(""),
        part => rest.and_then(|rest| rest.strip_prefix('/')) == Some(part),
    }
}

impl PathRule {
    fn read(rule: &Object) -> PathRule {
        let paths = rule.array("nonResourceURLs").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        PathRule { verbs: Names::read(rule, "verbs"), paths }
    }

    fn matches(&self, request: &RequestDigest<'_>) -> bool {
        let is_below = |rule: &String| {
            // Whatever the rule ends with, what is below it begins with a slash.
            let prefix = rule.strip_suffix('*').unwrap_or(rule);
            let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
            request.path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
        };
        self.verbs.contains(request.verb)
            && self.paths.iter().any(|rule| rule == ALL || rule == request.path || is_below(rule))
    }
}

impl Names {
    fn read(rule: &Object, member: &str) -> Names {
        match rule.array(member) {
            [only] if only.as_str() == Some(ALL) => Names::All,
            names => Names::These(names.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.any(|known| known == name)
    }

    fn any(&self, mut is_it: impl FnMut(&str) -> bool) -> bool {
        match self {
            Names::All => true,
            Names::These(names) => names.iter().any(|known| is_it(known)),
        }
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn schema(subject: &str, rules: &str) -> FlowSchema {
        let text = format!(
            r#"{{"metadata":{{"name":"s"}},"spec":{{"priorityLevelConfiguration":{{"name":"l"}},"matchingPrecedence":5,
                "distinguisherMethod":{{"type":"ByNamespace"}},"rules":[{{"subjects":[{subject}],{rules}}}]}}}}"#
        );
        let parsed = parse_json(text.as_bytes()).expect("JSON").value;
        FlowSchema::read(parsed.as_object().expect("an object")).expect("a schema")
    }

    const ANY: &str = r#"{"kind":"Group","group":{"name":"*"}}"#;

    #[test]
    fn subjects() {
        let everything = r#""nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]"#;
        let account = |name: &str| {
            format!(r#"{{"kind":"ServiceAccount","serviceAccount":{{"namespace":"ns","name":"{name}"}}}}"#)
        };
        for (subject, user, want) in [
            (r#"{"kind":"User","user":{"name":"bob"}}"#.to_owned(), "bob", true),
            (r#"{"kind":"User","user":{"name":"bob"}}"#.to_owned(), "bobby", false),
            (r#"{"kind":"User","user":{"name":"*"}}"#.to_owned(), "x", true),
            (r#"{"kind":"Group","group":{"name":"g"}}"#.to_owned(), "x", true),
            (r#"{"kind":"Group","group":{"name":"h"}}"#.to_owned(), "x", false),
            (account("*"), "system:serviceaccount:ns:a", true),
            (account("a"), "system:serviceaccount:ns:a", true),
            (account("b"), "system:serviceaccount:ns:a", false),
            (account("*"), "system:serviceaccount:nsx:a", false),
            (account("*"), "ns:a", false),
        ] {
            let groups = ["g".to_owned()];
            let request = RequestDigest { user, groups: &groups, verb: "get", path: "/version", resource: None };
            assert_eq!(schema(&subject, everything).matches(&request), want, "{subject} {user}");
        }
    }

    #[test]
    fn resources() {
        let rule = |rest: &str| format!(r#""resourceRules":[{{{rest}}}]"#);
        let all = r#""verbs":["*"],"apiGroups":["*"],"resources":["*"]"#;
        let pods = ResourceDigest { resource: "pods", namespace: "a", ..ResourceDigest::default() };
        let status = ResourceDigest { subresource: "status", ..pods };
        let nodes = ResourceDigest { resource: "nodes", ..ResourceDigest::default() };
        for (rest, target, want) in [
            (format!(r#"{all},"namespaces":["*"]"#), pods, true),
            (format!(r#"{all},"namespaces":["a"]"#), pods, true),
            (format!(r#"{all},"namespaces":["b"]"#), pods, false),
            (format!(r#"{all},"clusterScope":true"#), pods, false),
            (format!(r#"{all},"clusterScope":true"#), nodes, true),
            (format!(r#"{all},"namespaces":["*"]"#), nodes, false),
            (r#""verbs":["get"],"apiGroups":[""],"resources":["pods"],"namespaces":["*"]"#.to_owned(), pods, true),
            (r#""verbs":["get"],"apiGroups":[""],"resources":["pods"],"namespaces":["*"]"#.to_owned(), status, false),
            (
                r#""verbs":["get"],"apiGroups":[""],"resources":["pods/status"],"namespaces":["*"]"#.to_owned(),
                status,
                true,
            ),
            (
                r#""verbs":["get"],"apiGroups":[""],"resources":["pods/status"],"namespaces":["*"]"#.to_owned(),
                pods,
                false,
            ),
            (r#""verbs":["list"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"]"#.to_owned(), pods, false),
            (r#""verbs":["*"],"apiGroups":["apps"],"resources":["*"],"namespaces":["*"]"#.to_owned(), pods, false),
        ] {
            let schema = schema(ANY, &rule(&rest));
            let request = RequestDigest { user: "x", groups: &[], verb: "get", path: "", resource: Some(target) };
            assert_eq!(schema.matches(&request), want, "{rest} {target:?}");
            assert_eq!(schema.distinguisher(&request), target.namespace);
        }
    }

    #[test]
    fn paths() {
        for (rule, path, want) in [
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/etcd", true),
            ("/healthz", "/healthzz", false),
            ("/healthz/*", "/healthz/etcd", true),
            ("/healthz/*", "/healthz", false),
            ("*", "/x", true),
            ("/", "/x", true),
        ] {
            let schema =
                schema(ANY, &format!(r#""nonResourceRules":[{{"verbs":["get"],"nonResourceURLs":["{rule}"]}}]"#));
            let request = RequestDigest { user: "x", groups: &[], verb: "get", path, resource: None };
            assert_eq!(schema.matches(&request), want, "{rule} {path}");
            assert!(!schema.matches(&RequestDigest { verb: "post", ..request }));
        }
    }
}
