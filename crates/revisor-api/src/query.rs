//! [`Query`]: what the query of a request asks for, read as the original reads it.

use std::borrow::Cow;

use revisor_catalog::validate_field_manager;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath};
use revisor_registry::{DeleteOptions, FieldValidation, ListVersions, Preconditions, RegistryError};

/// What a query says of every write: whether nothing is to be stored, and what to do about odd fields.
pub(crate) type SaidOfWrite = (bool, FieldValidation);

/// What a list or watch says in numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListNumbers {
    pub(crate) timeout_seconds: Option<i64>,
    pub(crate) limit: i64,
}

/// The query of a request. Of several values of one name the first counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    pub(crate) fn parse(query: Option<&'a str>) -> Query<'a> {
        let query = query.unwrap_or_default();
        if is_readable(query) {
            return Query { pairs: form_urlencoded::parse(query.as_bytes()).collect() };
        }
        // As in Go, what cannot be read is left out.
        let readable = query.split('&').filter(|pair| is_readable(pair));
        Query { pairs: readable.flat_map(|pair| form_urlencoded::parse(pair.as_bytes())).collect() }
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

    /// What a list or watch says in numbers. It is read before what it selects, as in
    /// `Convert_url_Values_To_v1_ListOptions`, which comes before the selectors are parsed.
    pub(crate) fn list_numbers(&self) -> Result<ListNumbers, RegistryError> {
        let timeout_seconds = self.number("timeoutSeconds")?;
        Ok(ListNumbers { timeout_seconds, limit: self.number("limit")?.unwrap_or_default() })
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

    /// Whether nothing is to be stored, and what to do about odd fields. `kind` names the options in errors.
    pub(crate) fn write_options(&self, kind: &'static str) -> Result<SaidOfWrite, RegistryError> {
        self.options_of_write(kind, FieldErrors::new())
    }

    /// The same of a patch, and whether others' fields are taken over by an apply.
    pub(crate) fn patch_options(&self, is_apply: bool) -> Result<(SaidOfWrite, bool), RegistryError> {
        let force = self.truth("force");
        let mut errors = FieldErrors::new();
        if is_apply && self.text("fieldManager").is_empty() {
            errors.push(FieldError::required(FieldPath::root("fieldManager"), "is required for apply patch"));
        }
        if !is_apply && force.is_some() {
            let detail = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden(FieldPath::root("force"), detail));
        }
        Ok((self.options_of_write("PatchOptions", errors)?, force == Some(true)))
    }

    /// The same, where these errors were found before.
    fn options_of_write(&self, kind: &'static str, mut errors: FieldErrors) -> Result<SaidOfWrite, RegistryError> {
        errors.extend(validate_field_manager(FieldPath::root("fieldManager"), self.text("fieldManager")));
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
        // Upstream: `Convert_url_Values_To_v1_DeleteOptions`.
        let given = |name| self.given(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let preconditions = Preconditions { uid: given("uid"), resource_version: given("resourceVersion") };
        Ok(DeleteOptions {
            dry_run,
            grace_period_seconds: self.number("gracePeriodSeconds")?,
            orphan_dependents: self.truth("orphanDependents"),
            ignore_store_read_error: self.truth("ignoreStoreReadErrorWithClusterBreakingPotential").unwrap_or_default(),
            propagation_policy: self.given("propagationPolicy").map(str::to_owned),
            has_preconditions: preconditions != Preconditions::default(),
            preconditions,
        })
    }
}

/// Whether every sign that is written by its number has one, and pairs are separated by nothing but `&`.
fn is_readable(query: &str) -> bool {
    let mut rests = query.match_indices('%').map(|(at, _)| query.as_bytes().get(at + 1..at + 3));
    !query.contains(';') && rests.all(|digits| digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
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
            ("limit=%zz", Ok(None)),
            ("limit=%3&limit=%37", Ok(Some(7))),
            ("limit=1;limit=2&a=%20", Ok(None)),
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
    fn a_query_may_say_what_must_be_true_of_what_is_deleted() {
        for (query, uid, version) in
            [("", None, None), ("uid=a", Some("a"), None), ("uid=&resourceVersion=7", None, Some("7"))]
        {
            let options = Query::parse(Some(query)).delete_options().expect("are options");
            let Preconditions { uid: wanted_uid, resource_version } = &options.preconditions;
            assert_eq!((wanted_uid.as_deref(), resource_version.as_deref()), (uid, version), "{query}");
            assert_eq!(options.has_preconditions, uid.is_some() || version.is_some(), "{query}");
        }
        let options = Query::parse(Some("propagationPolicy=")).delete_options().expect("are options");
        assert_eq!(options.propagation_policy.as_deref(), Some(""));
    }

    #[test]
    fn options_are_refused_with_every_cause() {
        let query = Query::parse(Some("fieldValidation=x&dryRun=b&force=1"));
        let dry_run = r#"dryRun: Unsupported value: ["b"]: supported values: "All""#;
        let validation = r#"fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn""#;
        let nobody = "fieldManager: Required value: is required for apply patch";
        let needless = "force: Forbidden: may not be specified for non-apply patch";
        for (error, want) in [
            (query.write_options("CreateOptions").err(), vec![dry_run, validation]),
            (query.patch_options(true).err(), vec![nobody, dry_run, validation]),
            (query.patch_options(false).err(), vec![needless, dry_run, validation]),
        ] {
            let Some(RegistryError::InvalidOptions { errors, .. }) = error else { panic!("{error:?}") };
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, want);
        }
    }
}
