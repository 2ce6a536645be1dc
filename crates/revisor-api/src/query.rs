//! [`Query`]: what the query of a request asks for, read as the original reads it.

use std::borrow::Cow;

use revisor_catalog::validate_field_manager;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath};
use revisor_registry::{DeleteOptions, FieldValidation, ListVersions, RegistryError};

/// The query of a request. Of several values of one name the first counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    pub(crate) fn parse(query: Option<&'a str>) -> Query<'a> {
        Query { pairs: form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect() }
    }

    /// The value of `name`; empty where it is missing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn given(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// A truth: everything but `0` and `false` is true, also nothing behind the name.
    pub(crate) fn truth(&self, name: &str) -> Option<bool> {
        self.given(name).map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, RegistryError> {
        let Some(text) = self.given(name) else { return Ok(None) };
        let bad = |problem| RegistryError::BadRequest(format!("strconv.ParseInt: parsing {text:?}: {problem}"));
        text.parse().map(Some).map_err(|error: std::num::ParseIntError| match error.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => bad("value out of range"),
            _ => bad("invalid syntax"),
        })
    }

    /// What a list or watch says about versions.
    pub(crate) fn versions(&self) -> ListVersions<'_> {
        ListVersions {
            resource_version: self.text("resourceVersion"),
            resource_version_match: self.text("resourceVersionMatch"),
            continue_token: self.text("continue"),
            has_limit: false,
            send_initial_events: self.truth("sendInitialEvents"),
        }
    }

    /// Whether others' fields are taken over by an apply, and whether that and its manager are said where they should.
    pub(crate) fn apply_options(&self, is_apply: bool) -> Result<bool, RegistryError> {
        let force = self.truth("force");
        let mut errors = FieldErrors::new();
        if is_apply && self.text("fieldManager").is_empty() {
            errors.push(FieldError::required(FieldPath::root("fieldManager"), "is required for apply patch"));
        }
        if !is_apply && force.is_some() {
            let detail = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden(FieldPath::root("force"), detail));
        }
        if !errors.is_empty() {
            return Err(RegistryError::InvalidOptions { kind: "PatchOptions", errors });
        }
        Ok(force == Some(true))
    }

    /// Whether nothing is to be stored, and what to do about odd fields. `kind` names the options in errors.
    pub(crate) fn write_options(&self, kind: &'static str) -> Result<(bool, FieldValidation), RegistryError> {
        let mut errors = FieldErrors::new();
        let dry_run = self.dry_run(&mut errors);
        let validation = match self.text("fieldValidation") {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                let path = FieldPath::root("fieldValidation");
                errors.push(FieldError::not_supported(path, other, &["", "Ignore", "Strict", "Warn"]));
                FieldValidation::Warn
            }
        };
        let manager = self.text("fieldManager");
        errors.extend(validate_field_manager(FieldPath::root("fieldManager"), manager));
        if errors.is_empty() { Ok((dry_run, validation)) } else { Err(RegistryError::InvalidOptions { kind, errors }) }
    }

    /// Every value that a name is given.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    fn dry_run(&self, errors: &mut FieldErrors) -> bool {
        let values: Vec<&str> =
            self.pairs.iter().filter(|(name, _)| name == "dryRun").map(|(_, value)| &**value).collect();
        if values.iter().any(|value| *value != "All") {
            errors.push(FieldError::not_supported(FieldPath::root("dryRun"), BadValue::of(&values), &["All"]));
        }
        !values.is_empty()
    }

    /// How to delete, where there is no body that says so.
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions, RegistryError> {
        let mut errors = FieldErrors::new();
        let dry_run = self.dry_run(&mut errors);
        if !errors.is_empty() {
            return Err(RegistryError::InvalidOptions { kind: "DeleteOptions", errors });
        }
        Ok(DeleteOptions {
            dry_run,
            grace_period_seconds: self.number("gracePeriodSeconds")?,
            orphan_dependents: self.truth("orphanDependents"),
            propagation_policy: self.given("propagationPolicy").filter(|policy| !policy.is_empty()).map(str::to_owned),
            ..DeleteOptions::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truths_are_read_as_the_original_reads_them() {
        for (query, want) in [
            ("", None),
            ("watch", Some(true)),
            ("watch=", Some(true)),
            ("watch=1", Some(true)),
            ("watch=true", Some(true)),
            ("watch=yes", Some(true)),
            ("watch=0", Some(false)),
            ("watch=FALSE", Some(false)),
            ("watch=false&watch=true", Some(false)),
        ] {
            assert_eq!(Query::parse(Some(query)).truth("watch"), want, "{query}");
        }
    }

    #[test]
    fn numbers_that_are_none_are_a_bad_request() {
        for (query, want) in [
            ("limit=5", Ok(Some(5))),
            ("limit=-1", Ok(Some(-1))),
            ("", Ok(None)),
            ("limit=x", Err("strconv.ParseInt: parsing \"x\": invalid syntax")),
            ("limit=", Err("strconv.ParseInt: parsing \"\": invalid syntax")),
            ("limit=9223372036854775808", Err("strconv.ParseInt: parsing \"9223372036854775808\": value out of range")),
        ] {
            let number = Query::parse(Some(query)).number("limit").map_err(|error| error.to_string());
            assert_eq!(number, want.map_err(str::to_owned), "{query}");
        }
    }

    #[test]
    fn options_are_refused_with_every_cause() {
        let error = Query::parse(Some("fieldValidation=x&dryRun=b"))
            .write_options("CreateOptions")
            .expect_err("both are wrong");
        let RegistryError::InvalidOptions { errors, .. } = error else { panic!("{error}") };
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                r#"dryRun: Unsupported value: ["b"]: supported values: "All""#,
                r#"fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn""#
            ]
        );
    }
}
