//! XSalsa20 and Poly1305, which NaCl calls a secret box: the first 24 bytes are the nonce. The storage key is not
//! authenticated, as in the original.

use aws_lc_rs::rand;
use bytes::Bytes;
use crypto_secretbox::aead::{Aead, KeyInit};
use crypto_secretbox::{Nonce, XSalsa20Poly1305};
use revisor_store::{Plain, TransformError, Transformer};

const NONCE: usize = 24;
const TAG: usize = 16;
pub(crate) const KEY: usize = 32;

/// A secret box with one key (`NewSecretboxTransformer`).
pub(crate) struct Secretbox(XSalsa20Poly1305);

impl Secretbox {
    pub(crate) fn new(key: &[u8; KEY]) -> Secretbox {
        Secretbox(XSalsa20Poly1305::new(key.into()))
    }
}

impl Transformer for Secretbox {
    fn transform_from_storage(&self, data: Bytes, _: &[u8]) -> Result<Plain, TransformError> {
        let (nonce, sealed) = match data.split_first_chunk::<NONCE>() {
            Some((nonce, sealed)) if sealed.len() >= TAG => (nonce, sealed),
            _ => return Err(TransformError::new("the stored data was shorter than the required size")),
        };
        match self.0.decrypt(Nonce::from_slice(nonce), sealed) {
            Ok(plain) => Ok(Plain { bytes: plain.into(), is_stale: false }),
            // In the original's words, which are about something else.
            Err(_) => Err(TransformError::new("output array was not large enough for encryption")),
        }
    }

    fn transform_to_storage(&self, data: Bytes, _: &[u8]) -> Result<Bytes, TransformError> {
        let mut nonce = [0; NONCE];
        rand::fill(&mut nonce).map_err(|_| TransformError::new("unable to read sufficient random bytes"))?;
        let sealed = self.0.encrypt(Nonce::from_slice(&nonce), &data[..]);
        let sealed = sealed.map_err(|_| TransformError::new("failed to encrypt with a secret box"))?;
        Ok([&nonce[..], &sealed].concat().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_again_and_nothing_else_is() {
        let transformer = Secretbox::new(&[7; 32]);
        let plain = Bytes::from_static(b"a secret");
        let sealed = transformer.transform_to_storage(plain.clone(), b"/a").expect("is sealed");
        assert_eq!(sealed.len(), NONCE + TAG + plain.len());
        let opened = transformer.transform_from_storage(sealed.clone(), b"/b").expect("is opened");
        assert_eq!(opened.bytes, plain);
        for at in 0..sealed.len() {
            let mut changed = sealed.to_vec();
            changed[at] ^= 1;
            assert!(transformer.transform_from_storage(changed.into(), b"/a").is_err(), "changed at {at}");
            assert!(transformer.transform_from_storage(sealed.slice(..at), b"/a").is_err(), "cut at {at}");
        }
    }
}
