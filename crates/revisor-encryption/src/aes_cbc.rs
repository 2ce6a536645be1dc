//! AES-CBC with padding: the first 16 bytes are the initialization vector. Nothing is authenticated, as in the original.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptionContext, EncryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rand;
use bytes::Bytes;
use revisor_store::{Plain, TransformError, Transformer};

const BLOCK: usize = 16;

/// AES-CBC with one key (`NewCBCTransformer`).
pub(crate) struct AesCbc {
    encrypting: PaddedBlockEncryptingKey,
    decrypting: PaddedBlockDecryptingKey,
}

impl AesCbc {
    /// By a key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Result<AesCbc, TransformError> {
        let algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            size => return Err(TransformError::new(format!("crypto/aes: invalid key size {size}"))),
        };
        let failed = |_| TransformError::new("the key cannot be used");
        let unbound = || UnboundCipherKey::new(algorithm, key).map_err(failed);
        Ok(AesCbc {
            encrypting: PaddedBlockEncryptingKey::cbc_pkcs7(unbound()?).map_err(failed)?,
            decrypting: PaddedBlockDecryptingKey::cbc_pkcs7(unbound()?).map_err(failed)?,
        })
    }
}

impl Transformer for AesCbc {
    fn transform_from_storage(&self, data: Bytes, _: &[u8]) -> Result<Plain, TransformError> {
        let Some((vector, sealed)) = data.split_first_chunk::<BLOCK>() else {
            return Err(TransformError::new("the stored data was shorter than the required size"));
        };
        if sealed.len() % BLOCK != 0 {
            return Err(TransformError::new("the stored data is not a multiple of the block size"));
        }
        let mut plain = sealed.to_vec();
        let context = DecryptionContext::Iv128(FixedLength::from(*vector));
        let opened = self.decrypting.decrypt(&mut plain, context);
        let length = opened.map_err(|_| TransformError::new("invalid padding on input"))?.len();
        plain.truncate(length);
        Ok(Plain { bytes: plain.into(), is_stale: false })
    }

    fn transform_to_storage(&self, data: Bytes, _: &[u8]) -> Result<Bytes, TransformError> {
        let failed = |_| TransformError::new("failed to encrypt with AES-CBC");
        let mut vector = [0; BLOCK];
        rand::fill(&mut vector).map_err(|_| TransformError::new("unable to read sufficient random bytes"))?;
        let mut sealed = Vec::with_capacity(data.len() + BLOCK);
        sealed.extend_from_slice(&data);
        let context = EncryptionContext::Iv128(FixedLength::from(vector));
        self.encrypting.less_safe_encrypt(&mut sealed, context).map_err(failed)?;
        Ok([&vector[..], &sealed].concat().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_again() {
        for size in [16, 24, 32] {
            let transformer = AesCbc::new(&vec![7; size]).expect("is a key");
            for length in [0, 1, 15, 16, 17, 100] {
                let plain = Bytes::from(vec![b'a'; length]);
                let sealed = transformer.transform_to_storage(plain.clone(), b"/a").expect("is sealed");
                assert_eq!(sealed.len(), BLOCK + (length / BLOCK + 1) * BLOCK);
                let opened = transformer.transform_from_storage(sealed.clone(), b"/a").expect("is opened");
                assert_eq!(opened.bytes, plain);
                assert!(transformer.transform_from_storage(sealed.slice(..sealed.len() - 1), b"/a").is_err());
            }
        }
        assert!(AesCbc::new(&[0; 8]).is_err());
    }
}
