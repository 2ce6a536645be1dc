//! `--authentication-config`: a file of kind `AuthenticationConfiguration`, read as strictly as the original reads it.
//!
//! It names issuers of tokens (`jwt`), which can change while the server runs, and says which requests may be anonymous,
//! which cannot, as in the original.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use revisor_auth::{Anonymous, AuthorizationModes, JwtReading, SigningAlgorithm, read_issuers};
use revisor_catalog::{CatalogOptions, Feature};
use revisor_object::{BadValue, FieldError, Object, Value, aggregate_message};
use revisor_version::{FeatureGates, Release};

use crate::config_file::{Kind, Member, Type, read};

const KIND: Kind = Kind {
    name: "AuthenticationConfiguration",
    versions: &["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"],
    members: MEMBERS,
};

/// What an authentication configuration says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AuthenticationConfig {
    /// Which requests without credentials are let in; `None` if it does not say.
    pub(crate) anonymous: Option<Anonymous>,
    /// The issuers of tokens, which were found to be good.
    pub(crate) jwt: Vec<Value>,
}

/// What decides how such a file is read.
#[derive(Debug, Clone)]
pub(crate) struct ConfigContext {
    gates: FeatureGates,
    release: Release,
    /// Whose tokens come otherwise.
    own_issuers: Vec<String>,
}

impl ConfigContext {
    pub(crate) fn new(options: &CatalogOptions, own_issuers: &[String]) -> ConfigContext {
        let release = options.version.emulation();
        ConfigContext { gates: options.gates.clone(), release, own_issuers: own_issuers.to_vec() }
    }

    pub(crate) fn reading(&self) -> JwtReading<'_> {
        JwtReading {
            release: self.release,
            disallowed: &self.own_issuers,
            algorithms: &SigningAlgorithm::ALL,
            has_egress: self.gates.is_enabled("StructuredAuthenticationConfigurationEgressSelector"),
        }
    }
}

/// What the flags and the authorization have to say about requests without credentials.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnonymousFlag {
    /// `--anonymous-auth`.
    pub(crate) is_allowed: bool,
    /// Whether somebody set the flag.
    pub(crate) is_given: bool,
}

impl AuthenticationConfig {
    /// Reads the file at `path`.
    pub(crate) fn load(path: &Path, context: &ConfigContext) -> anyhow::Result<AuthenticationConfig> {
        let gates = &context.gates;
        let gate = Feature::StructuredAuthenticationConfiguration.name();
        anyhow::ensure!(gates.is_enabled(gate), "set --feature-gates={gate}=true to use authentication-config file");
        let decoded = read(path).and_then(|text| KIND.decode(&text));
        let object =
            decoded.with_context(|| format!("failed to load authentication configuration from file {path:?}"))?;
        AuthenticationConfig::of(&object, context)
            .map_err(|errors| anyhow!("invalid authentication configuration: {}", aggregate_message(&errors)))
    }

    /// What an object that was decoded says, if that can be.
    fn of(object: &Object, context: &ConfigContext) -> Result<AuthenticationConfig, Vec<FieldError>> {
        let gates = &context.gates;
        let jwt = object.array("jwt");
        let mut errors = read_issuers(jwt, context.reading()).err().unwrap_or_default();
        let mut config = AuthenticationConfig { jwt: jwt.to_vec(), anonymous: None };
        if let Some(anonymous) = object.object("anonymous") {
            if !gates.is_enabled(Feature::AnonymousAuthConfigurableEndpoints.name()) {
                let detail =
                    "anonymous is not supported when AnonymousAuthConfigurableEndpoints feature gate is disabled";
                errors.push(FieldError::forbidden("anonymous", detail));
            }
            let is_enabled = anonymous.get("enabled") == Some(&Value::Bool(true));
            let paths: Vec<&str> = anonymous.array("conditions").iter().map(path_of).collect();
            if !is_enabled && !paths.is_empty() {
                let shown: Vec<_> = paths.iter().map(|path| serde_json::json!({"Path": path})).collect();
                let detail = "enabled should be set to true when conditions are defined";
                errors.push(FieldError::invalid("anonymous.conditions", BadValue::of(&shown), detail));
            }
            config.anonymous = Some(match (is_enabled, paths.is_empty()) {
                (false, _) => Anonymous::Nowhere,
                (true, true) => Anonymous::Everywhere,
                (true, false) => Anonymous::At(paths.into_iter().map(str::to_owned).collect()),
            });
        }
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }

    /// Which requests without credentials are let in, all in all. Where everybody may do everything, nobody is who does
    /// not say who they are, unless that was asked for; what it comes to is said in the log.
    ///
    /// DIFFERENCE: the original takes `--anonymous-auth=true` for asked for in the file only, and turns the flag off.
    pub(crate) fn anonymous(
        &self,
        flag: AnonymousFlag,
        authorization: &AuthorizationModes,
    ) -> anyhow::Result<Anonymous> {
        let is_asked_for = self.anonymous.is_some() || flag.is_given;
        let anonymous = match self.anonymous.clone() {
            Some(_) if flag.is_given => {
                let detail = "--anonymous-auth flag cannot be set when anonymous field is configured in authentication \
                     configuration file";
                bail!(FieldError::forbidden("anonymous", detail));
            }
            Some(configured) => configured,
            None if flag.is_allowed => Anonymous::Everywhere,
            None => Anonymous::Nowhere,
        };
        if !authorization.allow_everything() || anonymous == Anonymous::Nowhere {
            return Ok(anonymous);
        }
        if is_asked_for {
            tracing::warn!("requests without credentials may do everything, because of the AlwaysAllow authorizer");
            return Ok(anonymous);
        }
        tracing::warn!(
            "requests without credentials are refused, because the AlwaysAllow authorizer would let them do \
             everything; use a different authorizer, or ask for it with --anonymous-auth=true"
        );
        Ok(Anonymous::Nowhere)
    }
}

fn path_of(condition: &Value) -> &str {
    condition.as_object().and_then(|condition| condition.str("path")).unwrap_or_default()
}

const MEMBERS: &[Member] = &[
    Member("apiVersion", Type::Text, &[]),
    Member("kind", Type::Text, &[]),
    Member("jwt", Type::List, JWT),
    Member(
        "anonymous",
        Type::Object,
        &[Member("enabled", Type::Bool, &[]), Member("conditions", Type::List, &[Member("path", Type::Text, &[])])],
    ),
];

const MAPPING: &[Member] =
    &[Member("claim", Type::Text, &[]), Member("prefix", Type::Text, &[]), Member("expression", Type::Text, &[])];

const JWT: &[Member] = &[
    Member(
        "issuer",
        Type::Object,
        &[
            Member("url", Type::Text, &[]),
            Member("discoveryURL", Type::Text, &[]),
            Member("certificateAuthority", Type::Text, &[]),
            Member("audiences", Type::Texts, &[]),
            Member("audienceMatchPolicy", Type::Text, &[]),
            Member("egressSelectorType", Type::Text, &[]),
        ],
    ),
    Member(
        "claimValidationRules",
        Type::List,
        &[
            Member("claim", Type::Text, &[]),
            Member("requiredValue", Type::Text, &[]),
            Member("expression", Type::Text, &[]),
            Member("message", Type::Text, &[]),
        ],
    ),
    Member(
        "claimMappings",
        Type::Object,
        &[
            Member("username", Type::Object, MAPPING),
            Member("groups", Type::Object, MAPPING),
            Member("uid", Type::Object, &[Member("claim", Type::Text, &[]), Member("expression", Type::Text, &[])]),
            Member("extra", Type::List, &[Member("key", Type::Text, &[]), Member("valueExpression", Type::Text, &[])]),
        ],
    ),
    Member(
        "userValidationRules",
        Type::List,
        &[Member("expression", Type::Text, &[]), Member("message", Type::Text, &[])],
    ),
];

#[cfg(test)]
mod tests {
    use revisor_catalog::BINARY;
    use revisor_version::EffectiveVersion;

    use super::*;

    const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";

    fn load(text: &str, release: &str, gates: &[&str]) -> Result<AuthenticationConfig, String> {
        let version = EffectiveVersion::parse(BINARY, &[release.to_owned()], &[]).expect("the release is there");
        let gates = FeatureGates::parse(gates, version, false).expect("the gates are there");
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("a file can be written");
        let named = format!("{:?}", file.path());
        let options = CatalogOptions { version, gates, ..CatalogOptions::default() };
        let context = ConfigContext::new(&options, &[]);
        AuthenticationConfig::load(file.path(), &context).map_err(|error| format!("{error:#}").replace(&named, "FILE"))
    }

    #[test]
    fn a_configuration_says_who_may_be_anonymous() {
        let health = || Anonymous::At(["/livez".to_owned(), "/readyz".to_owned()].into());
        for (name, text, want) in [
            ("nothing", HEAD.to_owned(), None),
            ("nothing in an older version", HEAD.replace("/v1", "/v1beta1"), None),
            ("null", format!("{HEAD}anonymous: null\njwt: []"), None),
            ("off", format!("{HEAD}anonymous: {{enabled: false}}"), Some(Anonymous::Nowhere)),
            ("off because nobody says on", format!("{HEAD}anonymous: {{}}"), Some(Anonymous::Nowhere)),
            ("on", format!("{HEAD}anonymous: {{enabled: true, conditions: []}}"), Some(Anonymous::Everywhere)),
            (
                "paths",
                format!("{HEAD}anonymous: {{enabled: true, conditions: [{{path: /livez}}, {{path: /readyz}}]}}"),
                Some(health()),
            ),
            (
                "JSON",
                r#"{"apiVersion": "apiserver.config.k8s.io/v1alpha1", "kind": "AuthenticationConfiguration",
                    "anonymous": {"enabled": true, "conditions": [{"path": "/livez"}, {"path": "/readyz"}]}}"#
                    .to_owned(),
                Some(health()),
            ),
        ] {
            assert_eq!(
                load(&text, "1.36", &[]),
                Ok(AuthenticationConfig { anonymous: want, jwt: Vec::new() }),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_wrong_with_a_configuration_is_said_as_in_the_original() {
        const FAILED: &str = "failed to load authentication configuration from file FILE: ";
        const INVALID: &str = "invalid authentication configuration: ";
        for (text, want) in [
            ("", format!("{FAILED}empty config data")),
            ("a: [", format!("{FAILED}yaml: line 2: did not find expected node content")),
            ("{\"a\"", FAILED.to_owned()),
            ("[]", format!("{FAILED}couldn't get version/kind: it is a array and no object")),
            ("a: b", format!("{FAILED}Object 'Kind' is missing")),
            ("apiVersion: v1\nkind: Pod", format!("{FAILED}no kind \"Pod\" is registered for version \"v1\"")),
            (
                &format!("{HEAD}anonymus: {{}}\nanonymous: {{enable: true, conditions: [{{path: /a, verb: get}}]}}"),
                format!(
                    "{FAILED}strict decoding error: unknown field \"anonymous.conditions[0].verb\", \
                     unknown field \"anonymous.enable\", unknown field \"anonymus\""
                ),
            ),
            (
                &format!("{HEAD}anonymous: {{enabled: true, enabled: false}}"),
                format!("{FAILED}strict decoding error: duplicate field \"anonymous.enabled\""),
            ),
            (
                &format!("{HEAD}anonymous: {{enabled: \"yes\"}}"),
                format!(
                    "{FAILED}json: cannot unmarshal string into Go struct field \
                     AuthenticationConfiguration.anonymous.enabled"
                ),
            ),
            (
                &format!("{HEAD}anonymous: {{conditions: [{{path: /a}}]}}\njwt: [{{issuer: {{url: https://a}}}}]"),
                format!(
                    "{INVALID}[jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required, \
                     jwt[0].claimMappings.username: Required value: claim or expression is required, \
                     anonymous.conditions: Invalid value: [{{\"Path\":\"/a\"}}]: enabled should be set to true when \
                     conditions are defined]"
                ),
            ),
        ] {
            let error = load(text, "1.36", &[]).expect_err(text);
            assert!(error.starts_with(&want), "{text}: {error}");
        }
    }

    #[test]
    fn the_gates_of_older_releases_count() {
        let text = format!("{HEAD}anonymous: {{enabled: true}}");
        let error = load(&text, "1.33", &["AnonymousAuthConfigurableEndpoints=false"]).expect_err("it is off");
        assert!(error.starts_with("invalid authentication configuration: anonymous: Forbidden: "), "{error}");
        let error = load(&text, "1.33", &["StructuredAuthenticationConfiguration=false"]).expect_err("it is off");
        assert!(error.starts_with("set --feature-gates=StructuredAuthenticationConfiguration=true"), "{error}");
        load(&text, "1.33", &[]).expect("both are on by default");
    }

    #[test]
    fn where_everybody_may_do_everything_nobody_is_anonymous_unasked() {
        let (configured, unset) = (Some(Anonymous::Everywhere), (true, false));
        for (name, configured, (is_allowed, is_given), modes, want) in [
            ("by default", None, unset, "RBAC", Ok(Anonymous::Everywhere)),
            ("by default, everything allowed", None, unset, "AlwaysAllow", Ok(Anonymous::Nowhere)),
            ("among other modes", None, unset, "Node,AlwaysAllow", Ok(Anonymous::Nowhere)),
            ("asked for by the flag", None, (true, true), "AlwaysAllow", Ok(Anonymous::Everywhere)),
            ("turned off by the flag", None, (false, true), "AlwaysAllow", Ok(Anonymous::Nowhere)),
            ("turned off by the flag, with roles", None, (false, true), "RBAC", Ok(Anonymous::Nowhere)),
            ("asked for by the file", configured.clone(), unset, "AlwaysAllow", Ok(Anonymous::Everywhere)),
            ("turned off by the file", Some(Anonymous::Nowhere), unset, "RBAC", Ok(Anonymous::Nowhere)),
            (
                "both the file and the flag",
                configured,
                (true, true),
                "RBAC",
                Err("anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in \
                     authentication configuration file"),
            ),
        ] {
            let modes = modes.parse().expect("the modes are there");
            let flag = AnonymousFlag { is_allowed, is_given };
            let got = AuthenticationConfig { anonymous: configured, jwt: Vec::new() }.anonymous(flag, &modes);
            assert_eq!(got.map_err(|error| error.to_string()), want.map_err(str::to_owned), "{name}");
        }
    }
}
