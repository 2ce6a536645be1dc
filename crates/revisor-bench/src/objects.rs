//! The objects that the load is made of: configmaps of about one kibibyte in a namespace of their own.

use anyhow::{Context, Result};

use crate::http::find;

/// Bytes of text in each object; with metadata an object comes to about a kibibyte.
pub(crate) const PAYLOAD: usize = 800;

/// An object that exists on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) index: u32,
    /// The revision that it was last seen at.
    pub(crate) revision: u64,
}

/// Where the objects live.
#[derive(Debug, Clone)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    /// The path of all configmaps in it.
    pub(crate) collection: String,
    payload: String,
}

impl Namespace {
    pub(crate) fn new(name: String) -> Self {
        let collection = format!("/api/v1/namespaces/{name}/configmaps");
        let payload = "All work and no play makes a server fast. ".chars().cycle().take(PAYLOAD).collect();
        Self { name, collection, payload }
    }

    /// The namespace itself.
    pub(crate) fn manifest(&self) -> String {
        format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}}"#, self.name)
    }

    /// The path of one object.
    pub(crate) fn path(&self, index: u32) -> String {
        format!("{}/cm-{index:07}", self.collection)
    }

    /// An object as a client sends it: without a revision to create it, with one to replace it. `turn` makes each
    /// version differ from the last, because a write that changes nothing is no write.
    pub(crate) fn object(&self, index: u32, turn: u64, revision: Option<u64>) -> String {
        let revision = revision.map(|revision| format!(r#","resourceVersion":"{revision}""#)).unwrap_or_default();
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"cm-{index:07}","namespace":"{}","labels":{{"app":"bench","shard":"{}"}}{revision}}},"data":{{"turn":"{turn}","text":"{}"}}}}"#,
            self.name,
            index % 16,
            self.payload,
        )
    }
}

/// The revision in the metadata of an object or list.
pub(crate) fn revision(body: &[u8]) -> Result<u64> {
    let text = string_after(body, br#""resourceVersion":""#).context("an answer has no resourceVersion")?;
    text.parse().with_context(|| format!("a resourceVersion is {text:?}"))
}

/// The token for the next page, if there is one. The parts are the beginning and the end of a list; metadata stands in
/// either, and the items between them are not worth searching.
pub(crate) fn continue_token(parts: [&[u8]; 2]) -> Option<&str> {
    parts.into_iter().find_map(|part| string_after(part, br#""continue":""#)).filter(|token| !token.is_empty())
}

fn string_after<'a>(body: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let start = find(body, key)? + key.len();
    let end = start + body[start..].iter().position(|&byte| byte == b'"')?;
    std::str::from_utf8(&body[start..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_json_of_about_a_kibibyte() {
        let namespace = Namespace::new("bench-1".into());
        for (revision, want) in [(None, serde_json::Value::Null), (Some(7), "7".into())] {
            let text = namespace.object(3, 5, revision);
            let object: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!(object["metadata"]["name"], "cm-0000003");
            assert_eq!(object["metadata"]["resourceVersion"], want);
            assert_eq!(object["data"]["turn"], "5");
            assert!((900..1200).contains(&text.len()), "{}", text.len());
        }
        assert!(serde_json::from_str::<serde_json::Value>(&namespace.manifest()).is_ok());
        assert_eq!(namespace.path(3), "/api/v1/namespaces/bench-1/configmaps/cm-0000003");
    }

    #[test]
    fn answers_are_searched_not_parsed() {
        let list = br#"{"kind":"List","metadata":{"resourceVersion":"42","continue":"abc"},"items":[]}"#;
        assert_eq!(revision(list).expect("there is one"), 42);
        assert_eq!(continue_token([list, b""]), Some("abc"));
        assert_eq!(continue_token([b"", list]), Some("abc"));
        assert_eq!(continue_token([br#"{"metadata":{"continue":""}}"#, b""]), None);
        assert_eq!(continue_token([b"{}", b"\"continue\":\"cut of"]), None);
        assert!(revision(b"{}").is_err());
        assert!(revision(br#"{"resourceVersion":"x"}"#).is_err());
    }
}
