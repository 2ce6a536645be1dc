//! AES-CBC with padding: the first 16 bytes are the initialization vector. Nothing is authenticated, as in the original.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptionContext, EncryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::rand;
use revisor_store::TransformError;

use crate::cipher::Cipher;

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

impl Cipher for AesCbc {
    fn extra(&self) -> usize {
        2 * BLOCK
    }

    fn seal_into(&self, out: &mut Vec<u8>, plain: &[u8], _: &[u8]) -> Result<(), TransformError> {
        let failed = |_| TransformError::new("failed to encrypt with AES-CBC");
        let mut vector = [0; BLOCK];
        rand::fill(&mut vector).map_err(|_| TransformError::new("unable to read sufficient random bytes"))?;
        out.extend_from_slice(&vector);
        let context = EncryptionContext::Iv128(FixedLength::from(vector));
        let mut text = Behind { start: out.len(), out };
        text.out.extend_from_slice(plain);
        self.encrypting.less_safe_encrypt(&mut text, context).map_err(failed)?;
        Ok(())
    }

    fn open(&self, sealed: &[u8], _: &[u8]) -> Result<Vec<u8>, TransformError> {
        let Some((vector, sealed)) = sealed.split_first_chunk::<BLOCK>() else {
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
        Ok(plain)
    }
}

/// What stands behind something else, and can grow.
struct Behind<'a> {
    start: usize,
    out: &'a mut Vec<u8>,
}

impl AsMut<[u8]> for Behind<'_> {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.out[self.start..]
    }
}

impl<'a> Extend<&'a u8> for Behind<'_> {
    fn extend<T: IntoIterator<Item = &'a u8>>(&mut self, bytes: T) {
        self.out.extend(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_again() {
        for size in [16, 24, 32] {
            let cipher = AesCbc::new(&vec![7; size]).expect("is a key");
            for length in [0, 1, 15, 16, 17, 100] {
                let (plain, mut sealed) = (vec![b'a'; length], b"before".to_vec());
                cipher.seal_into(&mut sealed, &plain, b"/a").expect("is sealed");
                let sealed = sealed.strip_prefix(b"before").expect("what was there is there");
                assert_eq!(sealed.len(), BLOCK + (length / BLOCK + 1) * BLOCK);
                assert!(sealed.len() <= length + cipher.extra());
                assert_eq!(cipher.open(sealed, b"/a").expect("is opened"), plain);
                assert!(cipher.open(&sealed[..sealed.len() - 1], b"/a").is_err());
            }
        }
        assert!(AesCbc::new(&[0; 8]).is_err());
    }
}
