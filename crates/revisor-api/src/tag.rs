//! [`Tag`]: how a client knows a document that it has already.

use std::fmt::Write;

use http::HeaderMap;
use http::header::{HeaderValue, IF_NONE_MATCH};
use sha2::{Digest, Sha512};

/// The hash of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// In hexadecimal digits.
    hash: String,
    /// As a header has it.
    header: HeaderValue,
}

impl Tag {
    /// The tag of these bytes.
    pub(crate) fn of(document: &[u8]) -> Tag {
        let mut hash = String::new();
        for byte in Sha512::digest(document) {
            // Text can always be written to.
            let _ = write!(hash, "{byte:02X}");
        }
        let header = HeaderValue::try_from(format!("\"{hash}\"")).expect("hexadecimal digits in quotes are a header");
        Tag { hash, header }
    }

    /// The hash in hexadecimal digits.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// The hash as the header `ETag` has it.
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Whether the client has this document already. A weak tag counts too: a proxy that compresses makes them weak.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
        tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == self.header.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_name_several_tags_and_weak_ones() {
        let tag = Tag::of(b"a document");
        let own = tag.header().to_str().expect("is text").to_owned();
        for (sent, want) in [
            (own.clone(), true),
            (format!("W/{own}"), true),
            (format!("\"other\", {own}"), true),
            ("*".to_owned(), true),
            ("\"other\"".to_owned(), false),
            (tag.hash().to_owned(), false),
            (String::new(), false),
        ] {
            let headers = HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::try_from(&sent).expect("a header"))]);
            assert_eq!(tag.is_known(&headers), want, "{sent}");
        }
        assert!(!tag.is_known(&HeaderMap::new()));
    }
}
