//! How objects get from one version of a definition to another: not at all, or by asking a webhook.

use revisor_object::names::dns1035_label;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Seen};

use super::shown;
use crate::checks::{problems, required_one_of};
use crate::kinds::admissionregistration::validate_client_config;
use crate::kinds::certificates::pem;
use crate::kinds::members::{text, texts};

/// The versions of reviews that this server and the release before it understand.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// What is demanded of the settings. Definitions that broke a demand before it was made may go on doing so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demands {
    pub(super) known_review_version: bool,
    pub(super) valid_ca_bundle: bool,
}

/// What is wrong with the settings.
pub(super) fn validate(path: FieldPath<'_>, settings: &Object, demands: Demands) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let strategy = text(settings, "strategy");
    errors.extend(required_one_of(path.child("strategy"), strategy, &["None", "Webhook"]));
    let (at_config, at_versions) = (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    let webhook = settings.object("webhook");
    let config = webhook.and_then(|webhook| webhook.object("clientConfig"));
    let has_versions = webhook.is_some_and(|webhook| !webhook.array("conversionReviewVersions").is_empty());
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        errors.extend(config.map(|_| FieldError::forbidden(at_config, detail)));
        errors.extend(has_versions.then(|| FieldError::forbidden(at_versions, detail)));
        return errors;
    }
    match config {
        None => errors.push(FieldError::required(at_config, "required when strategy is set to Webhook")),
        Some(config) => {
            errors.extend(validate_client_config(at_config, Some(config)));
            let problem = ca_bundle_problem(config).filter(|_| demands.valid_ca_bundle);
            errors.extend(problem.map(|problem| {
                let bundle = shown::given(config.get("caBundle"));
                FieldError::invalid(at_config.child("caBundle"), bundle, problem)
            }));
        }
    }
    match webhook.filter(|_| has_versions) {
        None => errors.push(FieldError::required(at_versions, "")),
        Some(webhook) => validate_review_versions(at_versions, webhook, demands, &mut errors),
    }
    errors
}

fn validate_review_versions(path: FieldPath<'_>, webhook: &Object, demands: Demands, errors: &mut FieldErrors) {
    let mut seen = Seen::default();
    for (at, version) in texts(webhook, "conversionReviewVersions") {
        if !seen.is_new(version) {
            errors.push(FieldError::invalid(path.index(at), version, "duplicate version"));
            continue;
        }
        errors.extend(problems(path.index(at), version, dns1035_label(version)));
    }
    if demands.known_review_version && !REVIEW_VERSIONS.iter().any(|version| seen.has(version)) {
        let all = shown::given(webhook.get("conversionReviewVersions"));
        errors.push(FieldError::invalid(path, all, "must include at least one of v1, v1beta1"));
    }
}

/// Whether settings name a version of reviews that is understood, or none at all.
pub(super) fn has_known_review_version(settings: &Object) -> bool {
    let Some(webhook) = settings.object("webhook") else { return true };
    let mut versions = texts(webhook, "conversionReviewVersions").peekable();
    versions.peek().is_none() || versions.any(|(_, version)| REVIEW_VERSIONS.contains(&version))
}

/// Why no certificate can be read from the bundle of a client's configuration, if it has one.
pub(super) fn ca_bundle_problem(config: &Object) -> Option<String> {
    use base64::Engine;
    let bundle = text(config, "caBundle");
    if bundle.is_empty() {
        return None;
    }
    let bytes = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
    let pem = String::from_utf8_lossy(&bytes);
    let blocks: Vec<_> = pem::blocks(&pem).collect();
    let certificates = || blocks.iter().filter(|block| block.label == "CERTIFICATE" && !block.has_headers);
    let is_certificate = |block: &&pem::Block<'_>| x509_parser::parse_x509_certificate(&block.content).is_ok();
    if certificates().any(|block| is_certificate(&block)) {
        return None;
    }
    let problem = match certificates().next() {
        Some(_) => "failed to parse certificate: x509: malformed certificate",
        None => "unable to parse bytes as PEM block",
    };
    Some(format!("unable to load root certificates: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn settings_are_checked() {
        let all = Demands { known_review_version: true, valid_ca_bundle: true };
        let config = "FieldValueRequired c.webhookClientConfig";
        for (settings, want) in [
            (r#"{"strategy":"None"}"#, &[][..]),
            (r#"{"strategy":""}"#, &["FieldValueRequired c.strategy"]),
            (r#"{"strategy":"Magic"}"#, &["FieldValueNotSupported c.strategy"]),
            (
                r#"{"strategy":"None","webhook":{"clientConfig":{},"conversionReviewVersions":["v1"]}}"#,
                &["FieldValueForbidden c.webhookClientConfig", "FieldValueForbidden c.conversionReviewVersions"],
            ),
            (r#"{"strategy":"Webhook"}"#, &[config, "FieldValueRequired c.conversionReviewVersions"]),
            (r#"{"strategy":"Webhook","webhook":{"clientConfig":{},"conversionReviewVersions":["v1"]}}"#, &[config]),
            (
                r#"{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a","caBundle":"aGVsbG8="},"conversionReviewVersions":["v1"]}}"#,
                &["FieldValueInvalid c.webhookClientConfig.caBundle"],
            ),
            (
                r#"{"strategy":"Webhook","webhook":{"clientConfig":{"url":"http://a"},"conversionReviewVersions":["v2","v2","V"]}}"#,
                &[
                    "FieldValueInvalid c.webhookClientConfig.url",
                    "FieldValueInvalid c.conversionReviewVersions[1]",
                    "FieldValueInvalid c.conversionReviewVersions[2]",
                    "FieldValueInvalid c.conversionReviewVersions",
                ],
            ),
        ] {
            check(settings, &validate(FieldPath::root("c"), &object(settings), all), want);
        }
    }

    #[test]
    fn review_versions_are_known_or_not_named() {
        for (settings, want) in [
            ("{}", true),
            (r#"{"webhook":{}}"#, true),
            (r#"{"webhook":{"conversionReviewVersions":["v0","v1"]}}"#, true),
            (r#"{"webhook":{"conversionReviewVersions":["v0"]}}"#, false),
        ] {
            assert_eq!(has_known_review_version(&object(settings)), want, "{settings}");
        }
    }
}
