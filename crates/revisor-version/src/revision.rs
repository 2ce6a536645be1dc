//! [`Revision`]: a position in a store's history.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Position of a write in the history of a store.
///
/// Never zero: "unset" and "0" are vocabulary of requests, not positions in history. The state before the first
/// write is `None` of `Option<Revision>`, which orders before every revision and costs no extra byte.
///
/// ```
/// use revisor_version::Revision;
///
/// let first = Revision::FIRST;
/// assert_eq!(first.to_string(), "1");
/// assert!(first.next() > first);
/// assert_eq!("10245".parse::<Revision>().unwrap().get(), 10245);
/// assert!("007".parse::<Revision>().is_err());
/// assert!(None < Some(first));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(NonZeroU64);

impl Revision {
    /// The revision of the first write to an empty store.
    pub const FIRST: Revision = Revision(NonZeroU64::MIN);

    /// The revision with this number, or `None` for zero.
    ///
    /// ```
    /// # use revisor_version::Revision;
    /// assert_eq!(Revision::new(0), None);
    /// assert_eq!(Revision::new(1), Some(Revision::FIRST));
    /// ```
    pub const fn new(number: u64) -> Option<Revision> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Revision(number)),
            None => None,
        }
    }

    /// The number of this revision.
    ///
    /// ```
    /// # use revisor_version::Revision;
    /// assert_eq!(Revision::FIRST.get(), 1);
    /// ```
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The revision of the write after this one.
    ///
    /// At a million writes a second the sequence lasts for half a million years; the addition saturates so that
    /// there is no panic to reason about.
    ///
    /// ```
    /// # use revisor_version::Revision;
    /// assert_eq!(Revision::FIRST.next().get(), 2);
    /// ```
    pub const fn next(self) -> Revision {
        Revision(self.0.saturating_add(1))
    }

    /// The revision of the write before this one, or `None` before the first.
    ///
    /// ```
    /// # use revisor_version::Revision;
    /// assert_eq!(Revision::FIRST.previous(), None);
    /// ```
    pub const fn previous(self) -> Option<Revision> {
        Revision::new(self.0.get() - 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text is not a [`Revision`].
///
/// ```
/// use revisor_version::{ParseRevisionError, Revision};
/// assert_eq!("0".parse::<Revision>(), Err(ParseRevisionError));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a revision: expected a decimal number from 1 to 18446744073709551615 without leading zeros")]
pub struct ParseRevisionError;

impl FromStr for Revision {
    type Err = ParseRevisionError;

    fn from_str(text: &str) -> Result<Revision, ParseRevisionError> {
        let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        if !canonical {
            return Err(ParseRevisionError);
        }
        text.parse().ok().and_then(Revision::new).ok_or(ParseRevisionError)
    }
}
