//! [`Cipher`]: what makes stored bytes of objects by one key, and objects of stored bytes.

use bytes::Bytes;
use revisor_store::TransformError;

/// One key of one cipher. `authenticated` is the key under which an object is stored; not every cipher looks at it.
pub(crate) trait Cipher: Send + Sync {
    /// By how much an object is longer at most when it is sealed.
    fn extra(&self) -> usize;

    /// Appends what is stored of `plain` to `out`. If that fails, something of it may be there.
    fn seal_into(&self, out: &mut Vec<u8>, plain: &[u8], authenticated: &[u8]) -> Result<(), TransformError>;

    /// The object of which `sealed` is stored.
    fn open(&self, sealed: &[u8], authenticated: &[u8]) -> Result<Vec<u8>, TransformError>;

    /// What is stored of `plain`, behind `prefix`: written once, where it stays.
    fn seal_behind(&self, prefix: &[&str], plain: &[u8], authenticated: &[u8]) -> Result<Bytes, TransformError> {
        let length = prefix.iter().map(|part| part.len()).sum::<usize>() + plain.len() + self.extra();
        let mut out = Vec::with_capacity(length);
        prefix.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        self.seal_into(&mut out, plain, authenticated)?;
        Ok(out.into())
    }
}
