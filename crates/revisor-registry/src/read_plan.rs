//! Which read a request means: the table of `resourceVersion` × `resourceVersionMatch` × paging, as pure functions.
//!
//! | match | paging | unset | `"0"` | N |
//! |---|---|---|---|---|
//! | unset | no limit | most recent | any | not older than N |
//! | unset | limit | most recent | any | exact N |
//! | unset | continue | the token's snapshot | the token's snapshot | 400 |
//! | Exact | with or without limit | 422 | 422 | exact N |
//! | NotOlderThan | with or without limit | 422 | any | not older than N |

use revisor_object::{FieldError, FieldErrors, FieldPath};
use revisor_version::Revision;

use crate::RegistryError;

const EXACT: &str = "Exact";
const NOT_OLDER_THAN: &str = "NotOlderThan";
const MATCH: FieldPath<'static> = FieldPath::root("resourceVersionMatch");

/// What a list or watch says about versions and paging.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListVersions<'a> {
    /// `resourceVersion`; unset and empty mean the same.
    pub resource_version: &'a str,
    /// `resourceVersionMatch`; unset and empty mean the same.
    pub resource_version_match: &'a str,
    /// `continue`; unset and empty mean the same.
    pub continue_token: &'a str,
    /// Whether there is a `limit` above zero.
    pub has_limit: bool,
    /// `sendInitialEvents`.
    pub send_initial_events: Option<bool>,
}

/// The read that a list means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListPlan {
    /// The newest state that the store has.
    Latest,
    /// Whatever is at hand.
    Any,
    /// This revision or a newer one.
    NotOlderThan(Revision),
    /// Exactly this revision.
    Exact(Revision),
    /// The next page of the list that the token belongs to.
    Continue {
        /// Whether a version is given as well, which is refused. As in the original (`ValidateListOptions`), a token that
        /// is none is told first.
        beside_version: bool,
    },
}

/// The read that a watch means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchPlan {
    /// The newest state as additions, then changes.
    LatestState,
    /// Whatever state is at hand as additions, then changes.
    AnyState,
    /// The state at this revision or a newer one as additions, then changes.
    StateNotOlderThan(Revision),
    /// Changes after this revision.
    After(Revision),
    /// Changes from now on.
    FromNow,
}

/// Whether what a list says of versions goes together. Upstream: `ValidateListOptions`.
pub(crate) fn validate_list(versions: &ListVersions<'_>) -> Result<(), RegistryError> {
    let ListVersions { resource_version, resource_version_match, continue_token, .. } = *versions;
    let mut errors = FieldErrors::new();
    if !resource_version_match.is_empty() {
        if resource_version.is_empty() {
            let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
        if !continue_token.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
        if ![EXACT, NOT_OLDER_THAN].contains(&resource_version_match) {
            errors.push(FieldError::not_supported(MATCH, resource_version_match, &[EXACT, NOT_OLDER_THAN, ""]));
        }
        if resource_version_match == EXACT && resource_version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
    }
    if versions.send_initial_events.is_some() {
        let path = FieldPath::root("sendInitialEvents");
        errors.push(FieldError::forbidden(path, "sendInitialEvents is forbidden for list"));
    }
    reject(errors)
}

/// Decides which read a list means.
pub fn plan_list(versions: &ListVersions<'_>) -> Result<ListPlan, RegistryError> {
    validate_list(versions)?;
    let ListVersions { resource_version, resource_version_match, continue_token, has_limit, .. } = *versions;
    if !continue_token.is_empty() {
        return Ok(ListPlan::Continue { beside_version: !matches!(resource_version, "" | "0") });
    }
    let Some(revision) = parse_version(resource_version).map_err(|detail| {
        RegistryError::BadRequest(format!("invalid resource version: {}", invalid_version(resource_version, detail)))
    })?
    else {
        return Ok(if resource_version.is_empty() { ListPlan::Latest } else { ListPlan::Any });
    };
    Ok(match resource_version_match {
        EXACT => ListPlan::Exact(revision),
        NOT_OLDER_THAN => ListPlan::NotOlderThan(revision),
        _ if has_limit => ListPlan::Exact(revision),
        _ => ListPlan::NotOlderThan(revision),
    })
}

/// A watch without a start has always begun with the state: it is the older spelling of the newer option.
fn in_newer_words<'a>(versions: &ListVersions<'a>) -> ListVersions<'a> {
    let is_legacy = versions.send_initial_events.is_none() && versions.resource_version_match.is_empty();
    if is_legacy && matches!(versions.resource_version, "" | "0") {
        return ListVersions { send_initial_events: Some(true), resource_version_match: NOT_OLDER_THAN, ..*versions };
    }
    *versions
}

/// Whether what a watch says of versions goes together. `can_send_state` is whether clients may ask by a word of its own
/// for the state to come first; some releases do not know it. Upstream: `ValidateListOptions`.
pub(crate) fn validate_watch(versions: &ListVersions<'_>, can_send_state: bool) -> Result<(), RegistryError> {
    let ListVersions { resource_version_match, continue_token, send_initial_events, .. } = in_newer_words(versions);
    let mut errors = FieldErrors::new();
    if send_initial_events.is_some() && resource_version_match != NOT_OLDER_THAN {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(MATCH, detail));
    }
    if versions.send_initial_events.is_some() && !can_send_state {
        let detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        errors.push(FieldError::forbidden(FieldPath::root("sendInitialEvents"), detail));
    }
    if !resource_version_match.is_empty() {
        if send_initial_events.is_none() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
        if resource_version_match != NOT_OLDER_THAN {
            errors.push(FieldError::not_supported(MATCH, resource_version_match, &[NOT_OLDER_THAN]));
        }
        if !continue_token.is_empty() {
            let detail = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(MATCH, detail));
        }
    }
    reject(errors)
}

/// Decides which read a watch means, if it goes together (`validate_watch`).
pub fn plan_watch(versions: &ListVersions<'_>, can_send_state: bool) -> Result<WatchPlan, RegistryError> {
    validate_watch(versions, can_send_state)?;
    let ListVersions { resource_version, send_initial_events, .. } = in_newer_words(versions);
    // DIFFERENCE: the original answers 500 to a version that is no number here.
    let revision = parse_version(resource_version)
        .map_err(|detail| RegistryError::BadRequest(invalid_version(resource_version, detail)))?;
    Ok(match (send_initial_events, revision) {
        (Some(true), Some(revision)) => WatchPlan::StateNotOlderThan(revision),
        (Some(true), None) if resource_version.is_empty() => WatchPlan::LatestState,
        (Some(true), None) => WatchPlan::AnyState,
        (_, Some(revision)) => WatchPlan::After(revision),
        (_, None) => WatchPlan::FromNow,
    })
}

/// The revision that a request names; `None` where it is unset or "0".
pub(crate) fn parse_version(text: &str) -> Result<Option<Revision>, &'static str> {
    if text.is_empty() {
        return Ok(None);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("invalid syntax");
    }
    text.parse().map(Revision::new).map_err(|_| "value out of range")
}

/// The original's words for a version that is no number.
pub(crate) fn invalid_version(text: &str, detail: &str) -> String {
    format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {detail}")
}

fn reject(errors: FieldErrors) -> Result<(), RegistryError> {
    if errors.is_empty() { Ok(()) } else { Err(RegistryError::InvalidOptions { kind: "ListOptions", errors }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    fn outcome<P>(result: Result<P, RegistryError>) -> Result<P, &'static str> {
        result.map_err(|error| match error {
            RegistryError::InvalidOptions { .. } => "422",
            RegistryError::BadRequest(_) => "400",
            _ => "other",
        })
    }

    #[test]
    fn every_cell_of_the_list_table() {
        use ListPlan::{Any, Continue, Exact, Latest, NotOlderThan};
        for (version, matching, limit, token, want) in [
            ("", "", false, "", Ok(Latest)),
            ("", "", true, "", Ok(Latest)),
            ("0", "", false, "", Ok(Any)),
            ("0", "", true, "", Ok(Any)),
            ("7", "", false, "", Ok(NotOlderThan(at(7)))),
            ("7", "", true, "", Ok(Exact(at(7)))),
            ("", "", true, "t", Ok(Continue { beside_version: false })),
            ("0", "", true, "t", Ok(Continue { beside_version: false })),
            ("7", "", true, "t", Ok(Continue { beside_version: true })),
            ("x", "", false, "t", Ok(Continue { beside_version: true })),
            ("", "Exact", false, "", Err("422")),
            ("0", "Exact", true, "", Err("422")),
            ("7", "Exact", false, "", Ok(Exact(at(7)))),
            ("7", "Exact", true, "", Ok(Exact(at(7)))),
            ("7", "Exact", true, "t", Err("422")),
            ("", "NotOlderThan", false, "", Err("422")),
            ("0", "NotOlderThan", false, "", Ok(Any)),
            ("0", "NotOlderThan", true, "", Ok(Any)),
            ("7", "NotOlderThan", false, "", Ok(NotOlderThan(at(7)))),
            ("7", "NotOlderThan", true, "", Ok(NotOlderThan(at(7)))),
            ("7", "exact", false, "", Err("422")),
            ("x", "", false, "", Err("400")),
            ("-1", "Exact", false, "", Err("400")),
            ("18446744073709551616", "", false, "", Err("400")),
        ] {
            let versions = ListVersions {
                resource_version: version,
                resource_version_match: matching,
                continue_token: token,
                has_limit: limit,
                send_initial_events: None,
            };
            assert_eq!(outcome(plan_list(&versions)), want, "{versions:?}");
        }
    }

    #[test]
    fn every_cell_of_the_watch_table() {
        use WatchPlan::{After, AnyState, FromNow, LatestState, StateNotOlderThan};
        for (version, matching, initial, want) in [
            ("", "", None, Ok(LatestState)),
            ("0", "", None, Ok(AnyState)),
            ("7", "", None, Ok(After(at(7)))),
            ("x", "", None, Err("400")),
            ("", "NotOlderThan", Some(true), Ok(LatestState)),
            ("0", "NotOlderThan", Some(true), Ok(AnyState)),
            ("7", "NotOlderThan", Some(true), Ok(StateNotOlderThan(at(7)))),
            ("7", "NotOlderThan", Some(false), Ok(After(at(7)))),
            ("", "NotOlderThan", Some(false), Ok(FromNow)),
            ("7", "NotOlderThan", None, Err("422")),
            ("7", "Exact", Some(true), Err("422")),
            ("7", "", Some(true), Err("422")),
            ("7", "", Some(false), Err("422")),
        ] {
            let versions = ListVersions {
                resource_version: version,
                resource_version_match: matching,
                send_initial_events: initial,
                ..ListVersions::default()
            };
            assert_eq!(outcome(plan_watch(&versions, true)), want, "{versions:?}");
            // Where nobody may ask for the state by a word of its own, the older spelling means the same.
            let without = if versions.send_initial_events.is_some() { Err("422") } else { want };
            assert_eq!(outcome(plan_watch(&versions, false)), without, "{versions:?}");
        }
    }
}
