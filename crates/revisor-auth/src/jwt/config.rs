//! [`JwtConfig`]: what an operator says of an issuer, and whether that can be meant. The rules and their words are those of
//! `ValidateAuthenticationConfiguration`.

use std::collections::HashSet;

use revisor_object::names::domain_prefixed_path;
use revisor_object::{BadValue, FieldError, FieldPath, Object, Url, Value};
use revisor_version::Release;

use super::claims::{Environments, Expression, Wanted};
use super::web_key::SigningAlgorithm;
use crate::quoted::quoted;

/// How many issuers there may be.
const MOST_ISSUERS: usize = 64;

/// What an operator says of an issuer.
#[derive(Debug)]
pub struct JwtConfig {
    pub(crate) issuer: String,
    pub(crate) discovery: Option<String>,
    pub(crate) ca_bundle: Vec<u8>,
    pub(crate) audiences: Vec<String>,
    pub(crate) algorithms: Vec<SigningAlgorithm>,
    pub(crate) username: Mapping,
    pub(crate) groups: Option<Mapping>,
    pub(crate) uid: Option<Mapping>,
    pub(crate) extra: Vec<(String, Expression)>,
    pub(crate) required_claims: Vec<(String, String)>,
    pub(crate) claim_rules: Vec<Rule>,
    pub(crate) user_rules: Vec<Rule>,
}

/// Where something about a user comes from.
#[derive(Debug)]
pub(crate) enum Mapping {
    /// From a claim, behind a prefix.
    Claim { name: String, prefix: String },
    /// Out of an expression.
    Expression(Box<Expression>),
}

impl Mapping {
    fn of(expression: Expression) -> Mapping {
        Mapping::Expression(Box::new(expression))
    }
}

/// What must be true.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) expression: Expression,
    pub(crate) message: String,
}

/// How issuers are read.
#[derive(Debug, Clone, Copy)]
pub struct JwtReading<'a> {
    /// Whose libraries expressions have.
    pub release: Release,
    /// Issuers of which tokens come otherwise.
    pub disallowed: &'a [String],
    /// How tokens may be signed.
    pub algorithms: &'a [SigningAlgorithm],
    /// Whether the feature gate `StructuredAuthenticationConfigurationEgressSelector` is on.
    pub has_egress: bool,
}

/// Reads the member `jwt` of an AuthenticationConfiguration, whose members are known to be of their types.
pub fn read_issuers(list: &[Value], reading: JwtReading<'_>) -> Result<Vec<JwtConfig>, Vec<FieldError>> {
    let root = FieldPath::root("jwt");
    if list.len() > MOST_ISSUERS {
        return Err(vec![FieldError::too_many(root, list.len(), MOST_ISSUERS)]);
    }
    let environments = Environments::of(reading.release);
    let mut reader = Reader { errors: Vec::new(), environments, reading };
    let (mut issuers, mut discoveries) = (HashSet::new(), HashSet::new());
    let mut configs = Vec::new();
    for (index, member) in list.iter().filter_map(Value::as_object).enumerate() {
        let path = root.index(index);
        configs.extend(reader.authenticator(member, &path));
        let issuer = member.object("issuer");
        let text = |name: &str| issuer.and_then(|issuer| issuer.str(name)).unwrap_or_default();
        let at = path.child("issuer");
        for (name, known) in [("url", &mut issuers), ("discoveryURL", &mut discoveries)] {
            let value = text(name);
            if (name == "url" || !value.is_empty()) && !known.insert(value.to_owned()) {
                reader.errors.push(FieldError::duplicate(at.child(name), value));
            }
        }
    }
    if reader.errors.is_empty() { Ok(configs) } else { Err(reader.errors) }
}

struct Reader<'a> {
    errors: Vec<FieldError>,
    environments: Environments,
    reading: JwtReading<'a>,
}

impl Reader<'_> {
    fn invalid(&mut self, path: &FieldPath<'_>, value: impl Into<BadValue>, detail: impl Into<String>) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    fn required(&mut self, path: &FieldPath<'_>, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    fn authenticator(&mut self, member: &Object, path: &FieldPath<'_>) -> Option<JwtConfig> {
        let empty = Object::new();
        let issuer = member.object("issuer").unwrap_or(&empty);
        let at = path.child("issuer");
        let url = issuer.str("url").unwrap_or_default();
        if url.is_empty() {
            self.required(&at.child("url"), "");
        } else {
            self.url(url, true, &at.child("url"));
        }
        let discovery = issuer.str("discoveryURL").filter(|url| !url.is_empty());
        if let Some(discovery) = discovery {
            let at = at.child("discoveryURL");
            if !url.is_empty() && url.trim_end_matches('/') == discovery.trim_end_matches('/') {
                self.invalid(&at, discovery, "discoveryURL must be different from URL");
            }
            self.url(discovery, false, &at);
        }
        let audiences = self.audiences(issuer, &at);
        let ca_bundle = self.ca_bundle(issuer, &at.child("certificateAuthority"));
        self.egress(issuer, &at.child("egressSelectorType"));

        let (required_claims, claim_rules) = self.claim_rules(member, &path.child("claimValidationRules"));
        let mappings = member.object("claimMappings").unwrap_or(&empty);
        let at = path.child("claimMappings");
        let username = self.mapping(mappings.object("username"), &at.child("username"), true);
        let groups = self.mapping(mappings.object("groups"), &at.child("groups"), false);
        let uid = self.uid(mappings.object("uid"), &at.child("uid"));
        let extra = self.extra(mappings, &at.child("extra"));
        if let Some(Mapping::Expression(expression)) = &username
            && expression.selects_claim("email")
        {
            let extra = extra.iter().map(|(_, expression)| expression);
            let mut others = claim_rules.iter().map(|rule| &rule.expression).chain(extra).chain([&**expression]);
            if !others.any(|expression| expression.selects_claim("email_verified")) {
                let detail = "claims.email_verified must be used in claimMappings.username.expression or \
                              claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when \
                              claims.email is used in claimMappings.username.expression";
                let text = expression.text.clone();
                self.invalid(&at.child("username").child("expression"), text, detail);
            }
        }
        let user_rules = self.user_rules(member, &path.child("userValidationRules"));
        Some(JwtConfig {
            issuer: url.to_owned(),
            discovery: discovery.map(str::to_owned),
            ca_bundle,
            audiences,
            algorithms: self.reading.algorithms.to_vec(),
            username: username?,
            groups,
            uid,
            extra,
            required_claims,
            claim_rules,
            user_rules,
        })
    }

    fn url(&mut self, text: &str, is_issuer: bool, path: &FieldPath<'_>) {
        if is_issuer && self.reading.disallowed.iter().any(|known| known == text) {
            let mut known = self.reading.disallowed.to_vec();
            known.sort();
            let known = known.join(" ");
            self.invalid(path, text, format!("URL must not overlap with disallowed issuers: [{known}]"));
        }
        let url = match Url::parse(text) {
            Ok(url) => url,
            Err(problem) => return self.invalid(path, text, format!("parse {}: {problem}", quoted(text))),
        };
        if url.scheme != "https" {
            self.invalid(path, text, "URL scheme must be https");
        }
        if text.split("://").nth(1).and_then(|rest| rest.split('/').next()).is_some_and(|host| host.contains('@')) {
            self.invalid(path, text, "URL must not contain a username or password");
        }
        if !url.query.is_empty() {
            self.invalid(path, text, "URL must not contain a query");
        }
        if !url.fragment.is_empty() {
            self.invalid(path, text, "URL must not contain a fragment");
        }
    }

    fn audiences(&mut self, issuer: &Object, path: &FieldPath<'_>) -> Vec<String> {
        let at = path.child("audiences");
        let audiences: Vec<&str> = issuer.array("audiences").iter().filter_map(Value::as_str).collect();
        let policy = issuer.str("audienceMatchPolicy").unwrap_or_default();
        let policy_at = path.child("audienceMatchPolicy");
        if audiences.is_empty() {
            self.required(&at, &format!("at least one {at} is required"));
            return Vec::new();
        }
        let mut seen = HashSet::new();
        for (index, audience) in audiences.iter().enumerate() {
            if audience.is_empty() {
                self.required(&at.index(index), "");
            }
            if !seen.insert(*audience) {
                self.errors.push(FieldError::duplicate(at.index(index), *audience));
            }
        }
        if audiences.len() > 1 && policy != "MatchAny" {
            self.invalid(&policy_at, policy, "audienceMatchPolicy must be MatchAny for multiple audiences");
        }
        if audiences.len() == 1 && !matches!(policy, "" | "MatchAny") {
            let detail = "audienceMatchPolicy must be empty or MatchAny for single audience";
            self.invalid(&policy_at, policy, detail);
        }
        audiences.into_iter().map(str::to_owned).collect()
    }

    fn ca_bundle(&mut self, issuer: &Object, path: &FieldPath<'_>) -> Vec<u8> {
        let bundle = issuer.str("certificateAuthority").unwrap_or_default();
        if !bundle.is_empty() && !bundle.contains("-----BEGIN CERTIFICATE-----") {
            self.invalid(path, "<omitted>", "data does not contain any valid RSA or ECDSA certificates");
        }
        bundle.as_bytes().to_vec()
    }

    fn egress(&mut self, issuer: &Object, path: &FieldPath<'_>) {
        let Some(egress) = issuer.str("egressSelectorType").filter(|egress| !egress.is_empty()) else { return };
        if !self.reading.has_egress {
            let detail = "egress selector is not supported when StructuredAuthenticationConfigurationEgressSelector \
                          feature gate is disabled";
            self.invalid(path, egress, detail);
        }
        if matches!(egress, "controlplane" | "cluster") {
            self.invalid(path, egress, format!("oidc: egress lookup required with egress selector type {egress:?}"));
        } else {
            self.invalid(path, egress, "egress selector must be either controlplane or cluster");
        }
    }

    fn expression(&mut self, text: &str, wanted: Wanted, path: &FieldPath<'_>) -> Option<Expression> {
        match self.environments.of_claims(text, wanted) {
            Ok(expression) => Some(expression),
            Err(problem) => {
                self.invalid(path, text, problem);
                None
            }
        }
    }

    fn claim_rules(&mut self, member: &Object, path: &FieldPath<'_>) -> (Vec<(String, String)>, Vec<Rule>) {
        let (mut claims, mut rules) = (Vec::new(), Vec::new());
        let (mut seen_claims, mut seen_expressions) = (HashSet::new(), HashSet::new());
        let members = member.array("claimValidationRules").iter().filter_map(Value::as_object);
        for (index, rule) in members.enumerate() {
            let at = path.index(index);
            let text = |name: &str| rule.str(name).unwrap_or_default();
            match (text("claim"), text("expression")) {
                ("", "") => self.required(&at, "claim or expression is required"),
                (claim, "") => {
                    if !text("message").is_empty() {
                        let detail = "may not be specified when claim is set";
                        self.invalid(&at.child("message"), text("message"), detail);
                    }
                    if !seen_claims.insert(claim.to_owned()) {
                        self.errors.push(FieldError::duplicate(at.child("claim"), claim));
                    }
                    claims.push((claim.to_owned(), text("requiredValue").to_owned()));
                }
                ("", expression) => {
                    if !text("requiredValue").is_empty() {
                        let detail = "may not be specified when expression is set";
                        self.invalid(&at.child("requiredValue"), text("requiredValue"), detail);
                    }
                    if !seen_expressions.insert(expression.to_owned()) {
                        self.errors.push(FieldError::duplicate(at.child("expression"), expression));
                        continue;
                    }
                    let compiled = self.expression(expression, Wanted::Truth, &at.child("expression"));
                    let message = text("message").to_owned();
                    rules.extend(compiled.map(|expression| Rule { expression, message }));
                }
                (claim, _) => self.invalid(&at, claim, "claim and expression can't both be set"),
            }
        }
        (claims, rules)
    }

    fn mapping(&mut self, member: Option<&Object>, path: &FieldPath<'_>, is_required: bool) -> Option<Mapping> {
        let text = |name: &str| member.and_then(|member| member.str(name));
        let prefix = text("prefix");
        match (text("claim").unwrap_or_default(), text("expression").unwrap_or_default()) {
            ("", "") => {
                if is_required {
                    self.required(path, "claim or expression is required");
                }
                None
            }
            (claim, "") => {
                if prefix.is_none() {
                    let detail = "prefix is required when claim is set. It can be set to an empty string to disable \
                                  prefixing";
                    self.required(&path.child("prefix"), detail);
                }
                Some(Mapping::Claim { name: claim.to_owned(), prefix: prefix.unwrap_or_default().to_owned() })
            }
            ("", expression) => {
                if let Some(prefix) = prefix {
                    self.invalid(&path.child("prefix"), prefix, "may not be specified when expression is set");
                }
                self.expression(expression, Wanted::Anything, &path.child("expression")).map(Mapping::of)
            }
            _ => {
                self.invalid(path, "", "claim and expression can't both be set");
                None
            }
        }
    }

    fn uid(&mut self, member: Option<&Object>, path: &FieldPath<'_>) -> Option<Mapping> {
        let text = |name: &str| member.and_then(|member| member.str(name)).unwrap_or_default();
        match (text("claim"), text("expression")) {
            ("", "") => None,
            (claim, "") => Some(Mapping::Claim { name: claim.to_owned(), prefix: String::new() }),
            ("", expression) => {
                self.expression(expression, Wanted::Anything, &path.child("expression")).map(Mapping::of)
            }
            _ => {
                self.invalid(path, "", "claim and expression can't both be set");
                None
            }
        }
    }

    fn extra(&mut self, mappings: &Object, path: &FieldPath<'_>) -> Vec<(String, Expression)> {
        let mut extra = Vec::new();
        let mut seen = HashSet::new();
        for (index, member) in mappings.array("extra").iter().filter_map(Value::as_object).enumerate() {
            let at = path.index(index);
            let (key, key_at) = (member.str("key").unwrap_or_default(), at.child("key"));
            self.errors.extend(domain_prefixed_path(&key_at, key));
            if key.to_lowercase() != key {
                self.invalid(&key_at, key, "must be lowercase");
            }
            let domain = key.split_once('/').map_or("", |(domain, _)| domain);
            let is_reserved = |owner: &str| domain == owner || domain.ends_with(&format!(".{owner}"));
            if is_reserved("kubernetes.io") || is_reserved("k8s.io") {
                let detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
                self.invalid(&key_at, key, detail);
            }
            if !seen.insert(key.to_owned()) {
                self.errors.push(FieldError::duplicate(key_at, key));
                continue;
            }
            let value_at = at.child("valueExpression");
            match member.str("valueExpression").filter(|text| !text.is_empty()) {
                None => self.required(&value_at, ""),
                Some(text) => {
                    let compiled = self.expression(text, Wanted::Anything, &value_at);
                    extra.extend(compiled.map(|expression| (key.to_owned(), expression)));
                }
            }
        }
        extra
    }

    fn user_rules(&mut self, member: &Object, path: &FieldPath<'_>) -> Vec<Rule> {
        let mut rules = Vec::new();
        let mut seen = HashSet::new();
        let members = member.array("userValidationRules").iter().filter_map(Value::as_object);
        for (index, rule) in members.enumerate() {
            let item = path.index(index);
            let at = item.child("expression");
            let Some(text) = rule.str("expression").filter(|text| !text.is_empty()) else {
                self.required(&at, "");
                continue;
            };
            if !seen.insert(text.to_owned()) {
                self.errors.push(FieldError::duplicate(at, text));
                continue;
            }
            match self.environments.of_user(text) {
                Ok(expression) => {
                    rules.push(Rule { expression, message: rule.str("message").unwrap_or_default().to_owned() });
                }
                Err(problem) => self.invalid(&at, text, problem),
            }
        }
        rules
    }
}
