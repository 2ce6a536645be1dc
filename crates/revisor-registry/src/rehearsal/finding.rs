//! [`RehearsalFinding`]: what becomes of one object, or of requests.

use std::fmt;

use revisor_object::clip;

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RehearsalEffect {
    /// Its next write would be refused.
    Refused,
    /// It would be shown with less.
    ShowsLess,
    /// It would not be there any more.
    Gone,
    /// Whoever writes it would be warned.
    Warned,
    /// It would be stored otherwise when it is written next.
    StoredOtherwise,
}

impl RehearsalEffect {
    /// All of them, the worst first.
    pub const ALL: [RehearsalEffect; 5] = [
        RehearsalEffect::Gone,
        RehearsalEffect::Refused,
        RehearsalEffect::ShowsLess,
        RehearsalEffect::Warned,
        RehearsalEffect::StoredOtherwise,
    ];

    /// Whether somebody has to do something before it comes.
    pub fn is_harm(self) -> bool {
        match self {
            RehearsalEffect::Refused | RehearsalEffect::ShowsLess | RehearsalEffect::Gone => true,
            RehearsalEffect::Warned | RehearsalEffect::StoredOtherwise => false,
        }
    }

    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            RehearsalEffect::Refused => "refused",
            RehearsalEffect::ShowsLess => "shows less",
            RehearsalEffect::Gone => "gone",
            RehearsalEffect::Warned => "warned",
            RehearsalEffect::StoredOtherwise => "stored otherwise",
        }
    }
}

impl fmt::Display for RehearsalEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What becomes of an object, or of the requests for a resource, which have no name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RehearsalFinding {
    /// `widgets.example.com`: the name of the definition, or of the built-in resource.
    pub resource: String,
    /// Empty where there is none.
    pub namespace: String,
    /// The name of the object; empty if all of the resource is meant.
    pub name: String,
    /// What becomes of it.
    pub effect: RehearsalEffect,
    /// By what, for people.
    pub message: String,
}

impl RehearsalFinding {
    /// The finding of an object by the end of its key: a name, or a namespace and a name.
    pub(super) fn new(resource: String, place: &str, effect: RehearsalEffect, message: String) -> RehearsalFinding {
        let (namespace, name) = place.split_once('/').unwrap_or(("", place));
        RehearsalFinding {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            effect,
            message: clip(message),
        }
    }
}
