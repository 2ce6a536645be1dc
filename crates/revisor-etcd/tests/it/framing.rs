//! A codec that keeps bytes as they are, and beside them where they show their revision.

use bytes::Bytes;
use revisor_etcd::{Codec, Decoded};
use revisor_store::{BoxError, Draft, Key};

pub(crate) struct Framing;

impl Codec for Framing {
    fn encode(&self, _: &Key, draft: &Draft) -> Result<Bytes, BoxError> {
        let at = draft.splice_at().unwrap_or(u32::MAX);
        Ok([&at.to_be_bytes()[..], &draft.bytes()[..]].concat().into())
    }

    fn decode(&self, _: &Key, value: &Bytes) -> Result<Decoded, BoxError> {
        let (at, bytes) = value.split_first_chunk::<4>().ok_or("there is no frame")?;
        let draft = match u32::from_be_bytes(*at) {
            u32::MAX => Draft::opaque(bytes.to_vec()),
            at if at as usize <= bytes.len() => Draft::showing_revision_at(bytes.to_vec(), at),
            _ => return Err("the frame is too short".into()),
        };
        Ok(Decoded { draft, is_outdated: false })
    }
}
