//! [`StoreKeys`]: the keys of a file by which the embedded store is encrypted as a whole.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_store::TransformError;
use revisor_store::embedded::{KeyName, RecordCipher};
use sha2::{Digest as _, Sha256};

use crate::aes_gcm::{ExtendedNonceGcm, SEED};
use crate::cipher::Cipher as _;

/// How many keys a file may have.
const MOST_KEYS: usize = 100;

/// Keys of which the first encrypts; all decrypt.
pub struct StoreKeys(Vec<(KeyName, ExtendedNonceGcm)>);

impl StoreKeys {
    /// The keys of a file: one in each line, 32 bytes in base64. Empty lines, and those that begin with `#`, do not count.
    pub fn parse(text: &str) -> Result<StoreKeys, String> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let mut keys = Vec::new();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let seed = STANDARD.decode(line).ok().filter(|seed| seed.len() == SEED);
            let seed = seed.ok_or_else(|| format!("line {at}: not {SEED} bytes in base64"))?;
            let cipher = ExtendedNonceGcm::new(&seed).map_err(|error| format!("line {at}: {error}"))?;
            keys.push((name(&seed), cipher));
        }
        match keys.len() {
            0 => Err("it has no keys".to_owned()),
            1..=MOST_KEYS => Ok(StoreKeys(keys)),
            _ => Err(format!("it has more than {MOST_KEYS} keys")),
        }
    }
}

/// A key is called by a hash that is used for nothing else.
fn name(seed: &[u8]) -> KeyName {
    let hash = Sha256::new().chain_update(b"revisor store key ").chain_update(seed).finalize();
    hash.first_chunk().copied().unwrap_or_default()
}

impl RecordCipher for StoreKeys {
    fn current(&self) -> KeyName {
        self.0.first().map(|(name, _)| *name).unwrap_or_default()
    }

    fn seal(&self, plain: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, TransformError> {
        let (_, cipher) = self.0.first().ok_or_else(|| TransformError::new("there is no key"))?;
        let mut sealed = Vec::with_capacity(plain.len() + cipher.extra());
        cipher.seal_into(&mut sealed, plain, authenticated)?;
        Ok(sealed)
    }

    fn open(&self, key: KeyName, sealed: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, TransformError> {
        let known = self.0.iter().find(|(name, _)| *name == key);
        let (_, cipher) = known.ok_or_else(|| {
            let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            TransformError::new(format!("it is encrypted with the key {digits}, which the key file does not have"))
        })?;
        cipher.open(sealed, authenticated)
    }
}

/// Without the keys.
impl fmt::Debug for StoreKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreKeys").field(&self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> String {
        STANDARD.encode([byte; SEED])
    }

    #[test]
    fn old_keys_decrypt_and_the_first_encrypts() {
        let one = StoreKeys::parse(&format!("# mine\n{}\n", key(1))).expect("is a key");
        let both = StoreKeys::parse(&format!("{}\n\n{}", key(2), key(1))).expect("are keys");
        let sealed = one.seal(b"secret", b"7").expect("is sealed");
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_eq!(both.open(one.current(), &sealed, b"7").ok().as_deref(), Some(&b"secret"[..]));
        assert!(both.open(one.current(), &sealed, b"8").is_err(), "in another place");
        let newer = both.seal(b"secret", b"7").expect("is sealed");
        let refused = one.open(both.current(), &newer, b"7").expect_err("the key is not there");
        assert!(refused.to_string().contains("which the key file does not have"), "{refused}");
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_shown() {
        for (text, want) in [("", "it has no keys"), ("#", "it has no keys"), ("QUJD", "line 1"), ("hunter2", "line 1")]
        {
            let problem = StoreKeys::parse(text).expect_err("is no key");
            assert!(problem.contains(want) && !problem.contains("hunter2"), "{problem}");
        }
    }
}
