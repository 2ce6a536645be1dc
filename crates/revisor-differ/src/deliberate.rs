//! What differs on purpose: a table with reasons. ARCHITECTURE.md tells the same to people.

use regex::Regex;

/// A difference that is meant.
#[derive(Debug, Clone, Copy)]
pub struct Deliberate {
    /// A pattern that the causes of such findings match.
    pub cause: &'static str,
    /// Why it is meant.
    pub reason: &'static str,
}

/// All of them.
pub const DELIBERATE: &[Deliberate] = &[
    Deliberate {
        cause: r"^status of .*theirs # .*strconv\.ParseUint.*, ours # BadRequest resourceVersion: Invalid value",
        reason: "a resource version that is no number is the client's fault: 400, where the original answers 500",
    },
    Deliberate {
        cause: r"^status of POST .*ours # BadRequest resourceVersion should not be set on objects to be created",
        reason: "the client's fault: 400, where the original answers 500",
    },
    Deliberate {
        cause: r"^status of PATCH .*theirs # +(failed to convert new object|.*declared merge key|unknown patch type|list element types|The order in patch list)",
        reason: "a patch that makes no sense is the client's fault, where the original answers 500",
    },
    Deliberate {
        cause: r"columnDefinitions\[\]\.(description|type|format)$",
        reason: "where the original has no documentation of a field, columns are described in words of our own; what stands in them is the same",
    },
    Deliberate {
        cause: r"^cause (missing|too much): FieldValueInvalid …patch: Invalid value: .….: strict decoding error",
        reason: "the result of a patch is printed with its members in order; the original keeps what was not patched",
    },
    Deliberate {
        cause: r"^order of causes of the members of a map$",
        reason: "the original goes through its maps in an order that changes from request to request",
    },
    Deliberate {
        cause: r"^(POST|PUT|PATCH) [^ ]+: \.metadata\.name$|^Status: \.details\.name$|^cause (missing|too much): FieldValueInvalid …metadata\.name: Invalid value: .….: a lowercase RFC # (subdomain|label)",
        reason: "a generated name is another on each server, and told where it is not valid",
    },
];

/// The row that a cause belongs to.
pub fn find(cause: &str) -> Option<&'static Deliberate> {
    DELIBERATE.iter().find(|row| Regex::new(row.cause).expect("a pattern of the table").is_match(cause))
}
