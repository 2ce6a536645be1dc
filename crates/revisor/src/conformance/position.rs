//! [`Position`]: a resource version that keeps what KEP-5504 promises: a decimal number of at most 128 bits.

use std::fmt;

use revisor_object::{Object, Value};
use revisor_version::compare_resource_versions;

/// A place in the history of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position(u128);

impl Position {
    /// The oldest that there can be.
    pub(super) const FIRST: Position = Position(1);

    /// Reads a resource version, or says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Position, String> {
        // The comparison is the one that clients use, so what it refuses is what they cannot compare.
        if let Err(error) = compare_resource_versions(text, "1") {
            return Err(format!("{text:?} {}", error.fault));
        }
        text.parse().map(Position).map_err(|_| format!("{text:?} has more than 128 bits"))
    }

    /// That of an object or a list.
    pub(super) fn of(object: &Object) -> Result<Position, String> {
        Position::parse(text_of(object))
    }

    /// One so much later; the last that there can be, if it is near.
    pub(super) fn later(self, by: u128) -> Position {
        Position(self.0.saturating_add(by))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The resource version of an object or a list, as it stands there.
pub(super) fn text_of(object: &Object) -> &str {
    object.at(&["metadata", "resourceVersion"]).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_clients_can_compare_is_a_position() {
        let most = u128::MAX.to_string();
        for (text, want) in [
            ("1", Ok(1)),
            ("10245", Ok(10245)),
            (&*most, Ok(u128::MAX)),
            ("", Err("is empty")),
            ("0", Err("is zero")),
            ("07", Err("leading zero")),
            ("0x7", Err("other than a digit")),
            ("12345-abcdef", Err("other than a digit")),
            ("340282366920938463463374607431768211456", Err("more than 128 bits")),
        ] {
            match (Position::parse(text), want) {
                (Ok(read), Ok(want)) => assert_eq!(read, Position(want)),
                (Err(error), Err(want)) => assert!(error.contains(want), "{text}: {error}"),
                (read, want) => panic!("{text}: got {read:?}, want {want:?}"),
            }
        }
        assert!(Position::FIRST < Position::FIRST.later(1) && Position(u128::MAX).later(1) == Position(u128::MAX));
    }
}
