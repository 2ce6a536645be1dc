//! [`EncryptedObject`]: what is stored of an object behind the prefix of a key service, and what may be in it.

use std::collections::BTreeMap;

use bytes::Bytes;
use revisor_grpc::wire;
use revisor_object::FieldPath;
use revisor_object::names::fully_qualified_domain_name;
use revisor_store::TransformError;

const MOST_ANNOTATION_BYTES: usize = 32 << 10;
const MOST_KEY_ID_BYTES: usize = 1 << 10;
const MOST_DEK_SOURCE_BYTES: usize = 1 << 10;

/// What the key in an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DekSourceType {
    /// The key itself (`AES_GCM_KEY`), which older releases stored.
    AesGcmKey = 0,
    /// The seed of keys (`HKDF_SHA256_XNONCE_AES_GCM_SEED`).
    Seed = 1,
}

/// An object as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EncryptedObject {
    pub(crate) data: Bytes,
    /// The service's key with which `dek_source` was encrypted.
    pub(crate) key_id: String,
    pub(crate) dek_source: Vec<u8>,
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
    pub(crate) dek_source_type: DekSourceType,
}

impl EncryptedObject {
    pub(crate) fn encode(&self) -> Bytes {
        wire::Writer::new()
            .bytes(1, &self.data)
            .bytes(2, &self.key_id)
            .bytes(3, &self.dek_source)
            .map(4, &self.annotations)
            .number(5, self.dek_source_type as u64)
            .finish()
            .into()
    }

    pub(crate) fn decode(stored: &Bytes) -> Result<EncryptedObject, TransformError> {
        let odd = |what: &'static str| TransformError::new(what);
        let mut object = EncryptedObject {
            data: Bytes::new(),
            key_id: String::new(),
            dek_source: Vec::new(),
            annotations: BTreeMap::new(),
            dek_source_type: DekSourceType::AesGcmKey,
        };
        for field in wire::read(stored) {
            match field.map_err(odd)? {
                (1, bytes) => object.data = stored.slice_ref(bytes.as_bytes()),
                (2, text) => object.key_id = text.as_text().map_err(odd)?,
                (3, bytes) => object.dek_source = bytes.as_bytes().to_vec(),
                (4, entry) => object.annotations.extend([entry.as_entry().map_err(odd)?]),
                (5, number) => {
                    object.dek_source_type = match number.as_number() {
                        0 => DekSourceType::AesGcmKey,
                        1 => DekSourceType::Seed,
                        other => {
                            return Err(TransformError::new(format!("unknown encryptedDEKSourceType: {other}")));
                        }
                    };
                }
                _ => {}
            }
        }
        if object.data.is_empty() {
            return Err(TransformError::new("encrypted data is empty"));
        }
        object.validate()?;
        Ok(object)
    }

    /// Whether all but the data can be (`ValidateEncryptedObject`).
    pub(crate) fn validate(&self) -> Result<(), TransformError> {
        let source = match self.dek_source.len() {
            0 => Err(TransformError::new("encrypted DEK source is empty")),
            length if length > MOST_DEK_SOURCE_BYTES => Err(TransformError::new(format!(
                "encrypted DEK source is {length} bytes, which exceeds the max size of {MOST_DEK_SOURCE_BYTES}"
            ))),
            _ => Ok(()),
        };
        source.map_err(|error| error.context("failed to validate encrypted DEK source"))?;
        validate_key_id(&self.key_id).map_err(|(_, error)| error.context("failed to validate key id"))?;
        self.validate_annotations().map_err(|error| error.context("failed to validate annotations"))
    }

    fn validate_annotations(&self) -> Result<(), TransformError> {
        let path = FieldPath::root("annotations");
        let mut errors: Vec<String> = Vec::new();
        for name in self.annotations.keys() {
            errors.extend(fully_qualified_domain_name(&path, name).into_iter().map(|error| error.to_string()));
        }
        let total: usize = self.annotations.iter().map(|(name, value)| name.len() + value.len()).sum();
        if total > MOST_ANNOTATION_BYTES {
            let most = MOST_ANNOTATION_BYTES;
            errors.push(format!("total size of annotations is {total}, which exceeds the max size of {most}"));
        }
        if errors.is_empty() { Ok(()) } else { Err(TransformError::new(errors.join(", "))) }
    }

    /// What tells the key in one object from those in others (`generateCacheKey`).
    pub(crate) fn cache_key(&self) -> Vec<u8> {
        wire::Writer::new()
            .number(5, self.dek_source_type as u64)
            .bytes(3, &self.dek_source)
            .bytes(2, &self.key_id)
            .map(4, &self.annotations)
            .finish()
    }
}

/// Whether a service's key can have this id; else by which word metrics tell what is wrong, and what that is.
pub(crate) fn validate_key_id(id: &str) -> Result<(), (&'static str, TransformError)> {
    match id.len() {
        0 => Err(("empty", TransformError::new("keyID is empty"))),
        length if length > MOST_KEY_ID_BYTES => {
            let what = format!("keyID is {length} bytes, which exceeds the max size of {MOST_KEY_ID_BYTES}");
            Err(("too_long", TransformError::new(what)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> EncryptedObject {
        EncryptedObject {
            data: Bytes::from_static(b"data"),
            key_id: "1".to_owned(),
            dek_source: b"seed".to_vec(),
            annotations: BTreeMap::from([("local.key.io".to_owned(), vec![1])]),
            dek_source_type: DekSourceType::Seed,
        }
    }

    #[test]
    fn an_object_is_read_as_it_was_written() {
        let stored = object().encode();
        assert_eq!(EncryptedObject::decode(&stored), Ok(object()));
        // Field for field as the original's encoder writes it.
        let head = [&b"\x0a\x04data\x12\x011\x1a\x04seed\x22\x11\x0a\x0clocal.key.io\x12\x01\x01\x28\x01"[..]].concat();
        assert_eq!(stored, head);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let text = |object: EncryptedObject| EncryptedObject::decode(&object.encode()).expect_err("is odd").to_string();
        let long = |length: usize| "x".repeat(length);
        for (odd, want) in [
            (EncryptedObject { data: Bytes::new(), ..object() }, "encrypted data is empty"),
            (EncryptedObject { key_id: String::new(), ..object() }, "failed to validate key id: keyID is empty"),
            (
                EncryptedObject { key_id: long(1025), ..object() },
                "failed to validate key id: keyID is 1025 bytes, which exceeds the max size of 1024",
            ),
            (
                EncryptedObject { dek_source: Vec::new(), ..object() },
                "failed to validate encrypted DEK source: encrypted DEK source is empty",
            ),
            (
                EncryptedObject { annotations: BTreeMap::from([("a.io".to_owned(), vec![0; 32 << 10])]), ..object() },
                "failed to validate annotations: total size of annotations is 32772, which exceeds the max size of 32768",
            ),
        ] {
            assert_eq!(text(odd), want);
        }
        let unqualified = BTreeMap::from([("nodots".to_owned(), vec![])]);
        assert!(text(EncryptedObject { annotations: unqualified, ..object() }).contains("annotations"));
        assert!(EncryptedObject::decode(&Bytes::from_static(b"\xff\xff")).is_err());
    }
}
