//! AES-GCM: with a key as it is, or with one that is derived from a seed for each object.
//!
//! ```text
//! by key   nonce 12, ciphertext and tag; authenticated: the storage key
//! by seed  info 32, then as above with the key HKDF-Expand(SHA-256, seed, info)
//! ```

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use aws_lc_rs::rand;
use revisor_store::TransformError;

use crate::cipher::Cipher;

const NONCE: usize = 12;
const TAG: usize = 16;
/// How long seeds, derived keys and what they are derived with are.
pub(crate) const SEED: usize = 32;
/// The longest seed that the derivation takes.
const MOST_SEED: usize = 64;

const TOO_SHORT: &str = "the stored data was shorter than the required size";

/// AES-GCM with one key and random nonces (`NewGCMTransformer`).
pub(crate) struct AesGcm(LessSafeKey);

impl AesGcm {
    /// By a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Result<AesGcm, TransformError> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            24 => &AES_192_GCM,
            32 => &AES_256_GCM,
            size => return Err(TransformError::new(format!("crypto/aes: invalid key size {size}"))),
        };
        let key = UnboundKey::new(algorithm, key).map_err(|_| TransformError::new("the key cannot be used"))?;
        Ok(AesGcm(LessSafeKey::new(key)))
    }
}

impl Cipher for AesGcm {
    fn extra(&self) -> usize {
        NONCE + TAG
    }

    fn seal_into(&self, out: &mut Vec<u8>, plain: &[u8], authenticated: &[u8]) -> Result<(), TransformError> {
        let failed = |_| TransformError::new("failed to encrypt with AES-GCM");
        let mut nonce = [0; NONCE];
        rand::fill(&mut nonce).map_err(|_| TransformError::new("failed to write nonce for AES-GCM"))?;
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(authenticated), &mut out[start..]);
        out.extend_from_slice(tag.map_err(failed)?.as_ref());
        Ok(())
    }

    fn open(&self, sealed: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, TransformError> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE>().ok_or_else(|| TransformError::new(TOO_SHORT))?;
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_in_place(nonce, Aad::from(authenticated), &mut plain);
        let length = opened.map_err(|_| TransformError::new("cipher: message authentication failed"))?.len();
        plain.truncate(length);
        Ok(plain)
    }
}

/// AES-GCM with a key for each object that is derived from a seed (`NewHKDFExtendedNonceGCMTransformer`), so that no key
/// wears out.
pub(crate) struct ExtendedNonceGcm(Prk);

impl ExtendedNonceGcm {
    /// By a seed of 32 bytes at least.
    pub(crate) fn new(seed: &[u8]) -> Result<ExtendedNonceGcm, TransformError> {
        if !(SEED..=MOST_SEED).contains(&seed.len()) {
            let length = seed.len();
            return Err(TransformError::new(format!("invalid seed length {length} used for key generation")));
        }
        Ok(ExtendedNonceGcm(Prk::new_less_safe(HKDF_SHA256, seed)))
    }

    fn derived(&self, info: &[u8]) -> Result<AesGcm, TransformError> {
        let failed = |_| TransformError::new("failed to KDF expand seed with info");
        let mut key = [0; SEED];
        self.0.expand(&[info], Length).map_err(failed)?.fill(&mut key).map_err(failed)?;
        AesGcm::new(&key)
    }
}

/// The length of derived keys.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        SEED
    }
}

impl Cipher for ExtendedNonceGcm {
    fn extra(&self) -> usize {
        SEED + NONCE + TAG
    }

    fn seal_into(&self, out: &mut Vec<u8>, plain: &[u8], authenticated: &[u8]) -> Result<(), TransformError> {
        let mut info = [0; SEED];
        rand::fill(&mut info).map_err(|_| TransformError::new("failed to generate info for KDF"))?;
        out.extend_from_slice(&info);
        self.derived(&info)?.seal_into(out, plain, authenticated)
    }

    fn open(&self, sealed: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, TransformError> {
        let (info, sealed) = sealed.split_first_chunk::<SEED>().ok_or_else(|| TransformError::new(TOO_SHORT))?;
        self.derived(info)?.open(sealed, authenticated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_under_one_key_of_the_store_is_not_read_under_another() {
        let by_key = |size: usize| Box::new(AesGcm::new(&vec![7; size]).expect("is a key")) as Box<dyn Cipher>;
        let by_seed = Box::new(ExtendedNonceGcm::new(&[7; 32]).expect("is a seed")) as Box<dyn Cipher>;
        for cipher in [by_key(16), by_key(24), by_key(32), by_seed] {
            let seal = || cipher.seal_behind(&[], b"a secret", b"/a").expect("is sealed");
            let sealed = seal();
            assert_eq!(sealed.len(), b"a secret".len() + cipher.extra());
            assert_eq!(cipher.open(&sealed, b"/a").expect("is opened"), b"a secret");
            assert_ne!(sealed, seal(), "nonces are random");
            let elsewhere = cipher.open(&sealed, b"/b").expect_err("it was moved");
            assert_eq!(elsewhere.to_string(), "cipher: message authentication failed");
            for length in 0..sealed.len() {
                assert!(cipher.open(&sealed[..length], b"/a").is_err(), "cut at {length}");
            }
        }
        assert!(AesGcm::new(&[0; 31]).is_err() && ExtendedNonceGcm::new(&[0; 31]).is_err());
    }
}
