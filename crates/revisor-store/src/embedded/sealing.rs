//! Objects on their way to the log and back: what a record holds of an object is what its transformer made of it.

use crate::{Draft, Entry, Key, ResourceTransformers, StoreError};

/// What a record is to hold of an object. The offset of its revision stays that in the plain bytes.
pub(super) fn seal(transformers: &dyn ResourceTransformers, key: &Key, draft: &Draft) -> Result<Draft, StoreError> {
    let sealed = transformers.transformer_for(key.as_str());
    let sealed = sealed.transform_to_storage(draft.bytes.clone(), key.as_str().as_bytes());
    match sealed {
        Ok(bytes) => Ok(Draft { bytes, splice_at: draft.splice_at, shown_as: None }),
        Err(cause) => Err(StoreError::Transform { key: key.clone(), cause }),
    }
}

/// The object of which a record holds `sealed`, and whether it should be written anew.
pub(super) fn unseal(
    transformers: &dyn ResourceTransformers,
    key: &Key,
    sealed: &Draft,
) -> Result<(Draft, bool), StoreError> {
    let failed = |cause| StoreError::Transform { key: key.clone(), cause };
    let transformer = transformers.transformer_for(key.as_str());
    let plain = transformer.transform_from_storage(sealed.bytes.clone(), key.as_str().as_bytes()).map_err(failed)?;
    // What nobody authenticates may have any length.
    if sealed.splice_at.is_some_and(|at| at as usize > plain.bytes.len()) {
        return Err(failed(crate::TransformError::new("the decrypted object is too short")));
    }
    Ok((Draft { bytes: plain.bytes, splice_at: sealed.splice_at, shown_as: None }, plain.is_stale))
}

/// The entry that is meant by one that was made of what a record holds; `None` if it is the same.
pub(super) fn unseal_entry(
    transformers: &dyn ResourceTransformers,
    entry: &Entry,
) -> Result<Option<Entry>, StoreError> {
    // Most stores encrypt nothing, or little: what is stored as it is does not have to be copied to be looked at.
    if transformers.transformer_for(entry.key().as_str()).is_identity() && !entry.is_encrypted() {
        return Ok(None);
    }
    let (plain, _) = unseal(transformers, entry.key(), &entry.to_draft())?;
    Ok(Some(Entry::new(entry.key().clone(), entry.revision(), &plain)))
}
