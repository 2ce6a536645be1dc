//! [`Uid`]: the identity of an object, small enough to keep one for each of a million.

use std::fmt;

use uuid::Uuid;

/// The identity of an object. Those that this server gives out are UUIDs and take no memory of their own; what others
/// wrote into an owner reference can be any text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Uid {
    // Bytes and not a number: a number would double the size by its alignment.
    Uuid([u8; 16]),
    Other(Box<str>),
}

impl Uid {
    /// Not after any other.
    pub(crate) const FIRST: Uid = Uid::Uuid([0; 16]);

    /// The identity that is written like this. Only the canonical form is taken as a UUID: identities are compared as
    /// texts, and two spellings of one number are two identities.
    pub(crate) fn new(text: &str) -> Uid {
        if let Ok(uuid) = Uuid::try_parse(text) {
            let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
            if uuid.hyphenated().encode_lower(&mut buffer) == text {
                return Uid::Uuid(*uuid.as_bytes());
            }
        }
        Uid::Other(text.into())
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uid::Uuid(bytes) => Uuid::from_bytes(*bytes).hyphenated().fmt(f),
            Uid::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_reads_as_it_was_written() {
        for (text, is_compact) in [
            ("00000000-0000-4000-8000-000000000007", true),
            ("F0000000-0000-4000-8000-00000000000A", false),
            ("f0000000-0000-4000-8000-00000000000a", true),
            ("f0000000000040008000000000000000", false),
            ("anything else", false),
            ("", false),
        ] {
            let uid = Uid::new(text);
            assert_eq!(uid.to_string(), text);
            assert_eq!(matches!(uid, Uid::Uuid(_)), is_compact, "{text}");
            assert!(Uid::FIRST <= uid, "{text}");
        }
        assert_eq!(size_of::<Uid>(), 24);
    }
}
