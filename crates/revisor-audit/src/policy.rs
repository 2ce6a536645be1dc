//! [`AuditPolicy`]: how much is written of which requests. The first rule that matches decides; what none matches is not
//! written.

use revisor_auth::Attributes;
use revisor_object::names::NameRule;
use revisor_object::{BadValue, FieldError, FieldPath, Object, Value};

use crate::{Level, Stage, StageSet};

/// An audit policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPolicy {
    rules: Vec<Rule>,
    /// What holds for requests that no rule matches; of those nothing is written.
    omit_stages: StageSet,
}

/// How much is written of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestAudit {
    /// How much.
    pub level: Level,
    /// At which stages nothing is written.
    pub omit_stages: StageSet,
    /// Whether who manages which fields is left out of objects.
    pub omit_managed_fields: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    audit: RequestAudit,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    paths: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    names: Vec<String>,
}

impl AuditPolicy {
    /// The policy that an object of kind `Policy` describes, or all that is wrong with it.
    pub fn read(policy: &Object) -> Result<AuditPolicy, Vec<FieldError>> {
        let mut errors = Vec::new();
        let omit_stages = stages(policy, &FieldPath::root("omitStages"), &mut errors);
        let omit_managed_fields = truth(policy, "omitManagedFields").unwrap_or_default();
        let path = FieldPath::root("rules");
        let rules: Vec<Rule> = policy
            .array("rules")
            .iter()
            .filter_map(Value::as_object)
            .enumerate()
            .map(|(at, rule)| Rule::read(rule, &path.index(at), omit_stages, omit_managed_fields, &mut errors))
            .collect();
        if rules.is_empty() {
            errors.push(FieldError::required(path, "loaded illegal policy with 0 rules"));
        }
        if errors.is_empty() { Ok(AuditPolicy { rules, omit_stages }) } else { Err(errors) }
    }

    /// How much is written of a request.
    pub fn evaluate(&self, request: &Attributes<'_>) -> RequestAudit {
        let matching = self.rules.iter().find(|rule| rule.matches(request));
        let nothing = RequestAudit { level: Level::None, omit_stages: self.omit_stages, omit_managed_fields: false };
        matching.map_or(nothing, |rule| rule.audit)
    }
}

impl Rule {
    fn read(
        rule: &Object,
        path: &FieldPath,
        omit_stages: StageSet,
        omit_managed_fields: bool,
        errors: &mut Vec<FieldError>,
    ) -> Rule {
        let level = read_level(rule, path.child("level"), errors);
        let paths = texts(rule, "nonResourceURLs");
        check_paths(&paths, &path.child("nonResourceURLs"), errors);
        let read = |resources: &Object| GroupResources {
            group: resources.str("group").unwrap_or_default().to_owned(),
            resources: texts(resources, "resources"),
            names: texts(resources, "resourceNames"),
        };
        let resources: Vec<GroupResources> =
            rule.array("resources").iter().filter_map(Value::as_object).map(read).collect();
        check_resources(&resources, &path.child("resources"), errors);
        let namespaces = texts(rule, "namespaces");
        let own_stages = stages(rule, &path.child("omitStages"), errors);
        if !paths.is_empty() && (!resources.is_empty() || !namespaces.is_empty()) {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(path.child("nonResourceURLs"), BadValue::of(&paths), detail));
        }
        let audit = RequestAudit {
            level,
            omit_stages: omit_stages.union(own_stages),
            omit_managed_fields: truth(rule, "omitManagedFields").unwrap_or(omit_managed_fields),
        };
        let (users, groups, verbs) = (texts(rule, "users"), texts(rule, "userGroups"), texts(rule, "verbs"));
        Rule { audit, users, groups, verbs, resources, namespaces, paths }
    }

    fn matches(&self, request: &Attributes<'_>) -> bool {
        let (user, groups) = (request.user.name(), request.user.groups());
        let among = |known: &[String], name: &str| known.iter().any(|known| known == name);
        if !(self.users.is_empty() || among(&self.users, user))
            || !(self.groups.is_empty() || groups.iter().any(|group| self.groups.contains(group)))
            || !(self.verbs.is_empty() || among(&self.verbs, request.verb))
        {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            let Some(target) = &request.resource else { return false };
            let namespace = target.namespace.unwrap_or_default();
            return (self.namespaces.is_empty() || among(&self.namespaces, namespace))
                && (self.resources.is_empty()
                    || self.resources.iter().any(|resources| resources.match_target(target)));
        }
        if !self.paths.is_empty() {
            return request.resource.is_none() && self.paths.iter().any(|spec| path_matches(spec, request.path));
        }
        true
    }
}

impl GroupResources {
    fn match_target(&self, target: &revisor_auth::ResourceAttributes<'_>) -> bool {
        if self.group != target.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let name = target.name.unwrap_or_default();
        if !(self.names.is_empty() || self.names.iter().any(|known| known == name)) {
            return false;
        }
        let part = target.subresource.unwrap_or_default();
        self.resources.iter().any(|known| match (known.as_str(), known.split_once('/')) {
            ("*", _) => true,
            (known, None) => known == target.resource && part.is_empty(),
            // As in the original `*/*` matches nothing.
            (_, Some(("*", wanted))) => !part.is_empty() && wanted == part,
            (_, Some((resource, "*"))) => resource == target.resource,
            (_, Some((resource, wanted))) => resource == target.resource && wanted == part && !part.is_empty(),
        })
    }
}

fn path_matches(spec: &str, path: &str) -> bool {
    spec == "*" || spec == path || spec.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
}

fn texts(object: &Object, name: &str) -> Vec<String> {
    object.array(name).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn truth(object: &Object, name: &str) -> Option<bool> {
    object.get(name).and_then(Value::as_bool)
}

fn read_level(rule: &Object, path: FieldPath, errors: &mut Vec<FieldError>) -> Level {
    let text = rule.str("level").unwrap_or_default();
    match Level::ALL.into_iter().find(|level| level.name() == text) {
        Some(level) => level,
        None => {
            errors.push(match text {
                "" => FieldError::required(path, ""),
                text => FieldError::not_supported(path, text, &Level::ALL.map(Level::name)),
            });
            Level::None
        }
    }
}

fn stages(object: &Object, path: &FieldPath, errors: &mut Vec<FieldError>) -> StageSet {
    let mut set = StageSet::default();
    for (at, name) in texts(object, "omitStages").iter().enumerate() {
        match Stage::ALL.into_iter().find(|stage| stage.name() == name) {
            Some(stage) => set.insert(stage),
            None => {
                let detail = format!("allowed stages are {}", Stage::ALL.map(Stage::name).join(","));
                errors.push(FieldError::invalid(path.index(at), name.as_str(), detail));
            }
        }
    }
    set
}

fn check_paths(paths: &[String], place: &FieldPath, errors: &mut Vec<FieldError>) {
    for (at, path) in paths.iter().enumerate().filter(|(_, path)| *path != "*") {
        if !path.starts_with('/') {
            let detail = "non-resource URL rules must begin with a '/' character";
            errors.push(FieldError::invalid(place.index(at), path.as_str(), detail));
        }
        if path.strip_suffix('*').unwrap_or(path).contains('*') {
            let detail = "non-resource URL wildcards '*' must be the final character of the rule";
            errors.push(FieldError::invalid(place.index(at), path.as_str(), detail));
        }
    }
}

fn check_resources(resources: &[GroupResources], place: &FieldPath, errors: &mut Vec<FieldError>) {
    for GroupResources { group, resources, names } in resources {
        if !matches!(group.as_str(), "" | "*") {
            let problems = NameRule::Dns1123Subdomain.check(group);
            if !problems.is_empty() {
                errors.push(FieldError::invalid(place.child("group"), group.as_str(), problems.join(",")));
            }
        }
        if !names.is_empty() && resources.is_empty() {
            let detail = "using resourceNames requires at least one resource";
            errors.push(FieldError::invalid(place.child("resourceNames"), BadValue::of(names), detail));
        }
    }
}

#[cfg(test)]
mod tests {
    use revisor_auth::{Claims, Identity, ResourceAttributes};
    use revisor_object::parse_yaml;

    use super::*;

    fn read(text: &str) -> Result<AuditPolicy, String> {
        let value = parse_yaml(text.as_bytes()).expect("YAML").value;
        AuditPolicy::read(value.as_object().expect("an object"))
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let pods = ResourceAttributes { version: "v1", resource: "pods", namespace: Some("a"), ..Default::default() };
        let status = ResourceAttributes { subresource: Some("status"), name: Some("x"), ..pods };
        for (rule, target, path, want) in [
            ("{level: Request}", Some(pods), "", true),
            ("{level: Request, users: [bob]}", Some(pods), "", true),
            ("{level: Request, users: [eve]}", Some(pods), "", false),
            ("{level: Request, userGroups: [g]}", Some(pods), "", true),
            ("{level: Request, userGroups: [h]}", Some(pods), "", false),
            ("{level: Request, verbs: [get]}", Some(pods), "", true),
            ("{level: Request, verbs: [list]}", Some(pods), "", false),
            ("{level: Request, namespaces: [a]}", Some(pods), "", true),
            ("{level: Request, namespaces: [b]}", Some(pods), "", false),
            ("{level: Request, namespaces: [a]}", None, "/version", false),
            ("{level: Request, resources: [{group: ''}]}", Some(pods), "", true),
            ("{level: Request, resources: [{group: apps}]}", Some(pods), "", false),
            ("{level: Request, resources: [{group: '*', resources: [pods]}]}", Some(pods), "", true),
            ("{level: Request, resources: [{resources: [pods]}]}", Some(status), "", false),
            ("{level: Request, resources: [{resources: [pods/status]}]}", Some(status), "", true),
            ("{level: Request, resources: [{resources: [pods/*]}]}", Some(status), "", true),
            ("{level: Request, resources: [{resources: [pods/*]}]}", Some(pods), "", true),
            ("{level: Request, resources: [{resources: ['*/status']}]}", Some(status), "", true),
            ("{level: Request, resources: [{resources: ['*/*']}]}", Some(status), "", false),
            ("{level: Request, resources: [{resources: [pods/status], resourceNames: [x]}]}", Some(status), "", true),
            (
                "{level: Request, resources: [{resources: [pods/status], resourceNames: [other]}]}",
                Some(status),
                "",
                false,
            ),
            ("{level: Request, nonResourceURLs: [/healthz*]}", None, "/healthz/etcd", true),
            ("{level: Request, nonResourceURLs: [/healthz]}", None, "/healthz/etcd", false),
            ("{level: Request, nonResourceURLs: ['*']}", Some(pods), "", false),
        ] {
            let policy = read(&format!("rules:\n- {rule}\n- {{level: Metadata}}\n")).expect(rule);
            let user = Identity::authenticated(Claims {
                name: "bob".to_owned(),
                groups: vec!["g".to_owned()],
                ..Claims::default()
            });
            let level = policy.evaluate(&Attributes { user: &user, verb: "get", path, resource: target }).level;
            assert_eq!(level == Level::Request, want, "{rule} {target:?} {path}");
        }
    }

    #[test]
    fn stages_and_managed_fields_are_left_out_where_it_says_so() {
        let policy = read(
            "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n- {level: Metadata, users: [bob], omitStages: \
             [Panic], omitManagedFields: false}\n- {level: None}\n",
        )
        .expect("a policy");
        let audit = policy.rules[0].audit;
        assert!(audit.omit_stages.contains(Stage::RequestReceived) && audit.omit_stages.contains(Stage::Panic));
        assert!(!audit.omit_stages.contains(Stage::ResponseComplete) && !audit.omit_managed_fields);
        assert!(policy.rules[1].audit.omit_managed_fields);
    }

    #[test]
    fn everything_that_is_wrong_is_named() {
        for (text, want) in [
            ("rules: []", "rules: Required value: loaded illegal policy with 0 rules"),
            ("rules: [{}]", "rules[0].level: Required value"),
            (
                "rules: [{level: All}]",
                "rules[0].level: Unsupported value: \"All\": supported values: \"None\", \"Metadata\", \"Request\", \
                 \"RequestResponse\"",
            ),
            (
                "omitStages: [Later]\nrules: [{level: None}]",
                "omitStages[0]: Invalid value: \"Later\": allowed stages are \
                 RequestReceived,ResponseStarted,ResponseComplete,Panic",
            ),
            (
                "rules: [{level: None, nonResourceURLs: [x]}]",
                "rules[0].nonResourceURLs[0]: Invalid value: \"x\": non-resource URL rules must begin with a '/' character",
            ),
            (
                "rules: [{level: None, nonResourceURLs: [/a*b], namespaces: [c]}]",
                "rules[0].nonResourceURLs[0]: Invalid value: \"/a*b\": non-resource URL wildcards '*' must be the final \
                 character of the rule\nrules[0].nonResourceURLs: Invalid value: [\"/a*b\"]: rules cannot apply to both \
                 regular resources and non-resource URLs",
            ),
            (
                "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
                "rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames requires at least one resource",
            ),
        ] {
            assert_eq!(read(text).expect_err(text), want);
        }
    }
}
