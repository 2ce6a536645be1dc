//! [`Environment`]: what a write takes from outside: the time, new identifiers, random letters.

use std::fmt;
use std::sync::Arc;

use revisor_schema::{Precision, format_timestamp};
use time::OffsetDateTime;

/// Letters of generated names: no vowels, so that they make no words, and none that look alike.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many letters are generated.
const SUFFIX: usize = 5;

/// How long a generated name may become.
const MAX_GENERATED: usize = 63;

/// The clock and the randomness of the registry. They are passed in so that tests can own them.
#[derive(Clone)]
pub struct Environment {
    now: Arc<dyn Fn() -> OffsetDateTime + Send + Sync>,
    random: Arc<dyn Fn() -> u128 + Send + Sync>,
}

impl Environment {
    /// The machine's clock and random numbers.
    pub fn system() -> Environment {
        Environment { now: Arc::new(OffsetDateTime::now_utc), random: Arc::new(|| uuid::Uuid::new_v4().as_u128()) }
    }

    /// A clock and random numbers of the caller's.
    pub fn new(
        now: impl Fn() -> OffsetDateTime + Send + Sync + 'static,
        random: impl Fn() -> u128 + Send + Sync + 'static,
    ) -> Environment {
        Environment { now: Arc::new(now), random: Arc::new(random) }
    }

    /// The time.
    pub(crate) fn now(&self) -> OffsetDateTime {
        (self.now)()
    }

    /// The time as metadata shows it.
    pub(crate) fn timestamp(&self) -> String {
        format_timestamp((self.now)(), Precision::Seconds)
    }

    /// A new object's identity.
    pub(crate) fn uid(&self) -> String {
        uuid::Builder::from_random_bytes((self.random)().to_be_bytes()).into_uuid().to_string()
    }

    /// A random number.
    pub(crate) fn random(&self) -> u64 {
        // The lower half, which is where the numbers of tests differ.
        (self.random)() as u64
    }

    /// A name that begins with `prefix`.
    pub(crate) fn generated_name(&self, prefix: &str) -> String {
        let mut end = prefix.len().min(MAX_GENERATED - SUFFIX);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let mut random = (self.random)();
        let mut name = prefix[..end].to_owned();
        for _ in 0..SUFFIX {
            let letters = ALPHABET.len() as u128;
            name.push(char::from(ALPHABET[(random % letters) as usize]));
            random /= letters;
        }
        name
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_keep_within_a_dns_label() {
        let environment = Environment::new(|| OffsetDateTime::UNIX_EPOCH, || 7);
        assert_eq!(environment.generated_name("web-"), "web-kbbbb");
        assert_eq!(environment.generated_name(&"é".repeat(40)).len(), MAX_GENERATED);
        assert_eq!(environment.timestamp(), "1970-01-01T00:00:00Z");
        assert_eq!(environment.uid(), "00000000-0000-4000-8000-000000000007");
    }
}
