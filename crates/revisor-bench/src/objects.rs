//! The objects that the load is made of, in a namespace of their own.

use anyhow::{Context, Result};

use crate::encoding::{Encoding, text_at};
use crate::http::find;
use serde_json::Value;

use crate::widgets::{self, Conversion};

/// Bytes of text in each object; with metadata an object comes to about a kibibyte.
pub(crate) const PAYLOAD: usize = 800;

/// A pod of a usual web service.
pub(crate) const POD: &str = r#"{"containers":[{"name":"web","image":"registry.example/web:1.2.3","args":["--listen=:8080"],"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},{"name":"MODE","value":"production"}],"ports":[{"name":"http","containerPort":8080}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},"readinessProbe":{"httpGet":{"path":"/ready","port":"http"}},"volumeMounts":[{"name":"config","mountPath":"/etc/web"},{"name":"scratch","mountPath":"/tmp"}],"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}},{"name":"proxy","image":"registry.example/proxy:4","ports":[{"containerPort":9090}]}],"volumes":[{"name":"config","configMap":{"name":"web"}},{"name":"scratch","emptyDir":{}}],"securityContext":{"runAsNonRoot":true,"runAsUser":1000},"tolerations":[{"key":"dedicated","operator":"Equal","value":"web","effect":"NoSchedule"}]}"#;

/// An object that exists on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) index: u32,
    /// The revision that it was last seen at.
    pub(crate) revision: u64,
}

/// What the load is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Kind {
    /// Configmaps with a text: next to nothing is defaulted or validated.
    #[default]
    Configmaps,
    /// Pods as workloads make them: most is defaulted and all is validated.
    Pods,
    /// Custom objects with a hundred fields and ten rules.
    Widgets,
}

/// Where the objects live.
#[derive(Debug, Clone)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    /// The path of all objects in it.
    pub(crate) collection: String,
    pub(crate) kind: Kind,
    conversion: Option<Conversion>,
    pub(crate) encoding: Encoding,
    payload: String,
}

impl Namespace {
    pub(crate) fn new(name: String, kind: Kind, conversion: Option<Conversion>, encoding: Encoding) -> Self {
        let collection = match kind {
            Kind::Configmaps => format!("/api/v1/namespaces/{name}/configmaps"),
            Kind::Pods => format!("/api/v1/namespaces/{name}/pods"),
            Kind::Widgets => {
                format!("/apis/{}/namespaces/{name}/{}", widgets::api_version(conversion), widgets::PLURAL)
            }
        };
        let payload = "All work and no play makes a server fast. ".chars().cycle().take(PAYLOAD).collect();
        Self { name, collection, kind, conversion, encoding, payload }
    }

    /// The namespace itself.
    pub(crate) fn manifest(&self) -> String {
        format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}}"#, self.name)
    }

    /// What the objects need beside their namespace, with the collection that it is made in and its name. It may be
    /// there already. `webhook` is where one is found that converts.
    pub(crate) fn needs(&self, webhook: Option<&Value>) -> Vec<(String, String, String)> {
        match self.kind {
            Kind::Configmaps => Vec::new(),
            // No controller may look after the namespace.
            Kind::Pods => {
                let account = r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#;
                let path = format!("/api/v1/namespaces/{}/serviceaccounts", self.name);
                vec![(path, "default".to_owned(), account.to_owned())]
            }
            Kind::Widgets => {
                let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
                let definition = widgets::definition(self.conversion, webhook);
                let name = widgets::name(self.conversion);
                let mut needs = vec![(definitions.to_owned(), name.clone(), definition.to_string())];
                if self.conversion == Some(Conversion::Rules) {
                    let conversions = "/apis/versioning.revisor.dev/v1alpha1/conversions";
                    needs.push((conversions.to_owned(), name, widgets::conversion(self.conversion).to_string()));
                }
                needs
            }
        }
    }

    /// The path of one object.
    pub(crate) fn path(&self, index: u32) -> String {
        format!("{}/o-{index:07}", self.collection)
    }

    /// How a client changes an object at this revision: what it sends, as what, and by which method. Of a pod little
    /// may be changed, and what the server added to it must stay, so it is patched.
    pub(crate) fn change(&self, index: u32, turn: u64, revision: u64) -> (&'static str, &'static str, Vec<u8>) {
        match self.kind {
            Kind::Configmaps | Kind::Widgets => {
                ("PUT", self.encoding.media_type(), self.encoding.write(self.object(index, turn, Some(revision))))
            }
            Kind::Pods => {
                let patch =
                    format!(r#"{{"metadata":{{"resourceVersion":"{revision}","annotations":{{"turn":"{turn}"}}}}}}"#);
                ("PATCH", "application/merge-patch+json", patch.into_bytes())
            }
        }
    }

    /// An object as a client sends it: without a revision to create it, with one to replace it. `turn` makes each
    /// version differ from the last, because a write that changes nothing is no write.
    pub(crate) fn object(&self, index: u32, turn: u64, revision: Option<u64>) -> String {
        let revision = revision.map(|revision| format!(r#","resourceVersion":"{revision}""#)).unwrap_or_default();
        let (version, kind, content) = match self.kind {
            Kind::Configmaps => {
                ("v1".to_owned(), "ConfigMap", format!(r#""data":{{"turn":"{turn}","text":"{}"}}"#, self.payload))
            }
            Kind::Pods => ("v1".to_owned(), "Pod", format!(r#""spec":{POD}"#)),
            Kind::Widgets => {
                let spec = widgets::spec(turn, self.conversion);
                (widgets::api_version(self.conversion), "Widget", format!(r#""spec":{spec}"#))
            }
        };
        format!(
            r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"name":"o-{index:07}","namespace":"{}","labels":{{"app":"bench","shard":"{}"}},"annotations":{{"turn":"{turn}"}}{revision}}},{content}}}"#,
            self.name,
            index % 16,
        )
    }
}

/// The revision in the metadata of an object.
pub(crate) fn revision(encoding: Encoding, body: &[u8]) -> Result<u64> {
    let text = match encoding {
        Encoding::Json => string_after(body, REVISION),
        Encoding::Protobuf => text_at(body, &[1, 6]),
    };
    let text = text.context("an answer has no resourceVersion")?;
    text.parse().with_context(|| format!("a resourceVersion is {text:?}"))
}

/// The revision of a list: none of its items has a later one, and its metadata may stand before or behind them.
pub(crate) fn list_revision(encoding: Encoding, body: &[u8]) -> Result<u64> {
    if encoding == Encoding::Protobuf {
        return text_at(body, &[1, 2]).context("a list has no resourceVersion")?.parse().context("is no number");
    }
    let mut newest = revision(encoding, body)?;
    let mut rest = body;
    while let Some(at) = find(rest, REVISION) {
        rest = &rest[at..];
        newest = newest.max(revision(encoding, rest)?);
        rest = &rest[REVISION.len()..];
    }
    Ok(newest)
}

const REVISION: &[u8] = br#""resourceVersion":""#;

/// The token for the next page, if there is one. The parts are the beginning and the end of a list; metadata stands in
/// either, and the items between them are not worth searching.
pub(crate) fn continue_token(encoding: Encoding, parts: [&[u8]; 2]) -> Option<&str> {
    if encoding == Encoding::Protobuf {
        return text_at(parts[0], &[1, 3]).filter(|token| !token.is_empty());
    }
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

    const JSON: Encoding = Encoding::Json;

    #[test]
    fn objects_are_json_of_about_a_kibibyte() {
        let namespace = Namespace::new("bench-1".into(), Kind::Configmaps, None, JSON);
        for (revision, want) in [(None, serde_json::Value::Null), (Some(7), "7".into())] {
            let text = namespace.object(3, 5, revision);
            let object: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            assert_eq!(object["metadata"]["name"], "o-0000003");
            assert_eq!(object["metadata"]["resourceVersion"], want);
            assert_eq!(object["metadata"]["annotations"]["turn"], "5");
            assert!((900..1200).contains(&text.len()), "{}", text.len());
        }
        assert!(serde_json::from_str::<serde_json::Value>(&namespace.manifest()).is_ok());
        let pod = Namespace::new("bench-1".into(), Kind::Pods, None, JSON).object(3, 5, None);
        let pod: serde_json::Value = serde_json::from_str(&pod).expect("it is JSON");
        assert_eq!(pod["spec"]["containers"][0]["name"], "web");
        assert_eq!(namespace.path(3), "/api/v1/namespaces/bench-1/configmaps/o-0000003");
    }

    #[test]
    fn answers_are_searched_not_parsed() {
        let list = br#"{"kind":"List","metadata":{"resourceVersion":"42","continue":"abc"},"items":[]}"#;
        assert_eq!(revision(JSON, list).expect("there is one"), 42);
        let behind = br#"{"items":[{"metadata":{"resourceVersion":"7"}}],"metadata":{"resourceVersion":"42"}}"#;
        assert_eq!((list_revision(JSON, list).ok(), list_revision(JSON, behind).ok()), (Some(42), Some(42)));
        assert_eq!(continue_token(JSON, [list, b""]), Some("abc"));
        assert_eq!(continue_token(JSON, [b"", list]), Some("abc"));
        assert_eq!(continue_token(JSON, [br#"{"metadata":{"continue":""}}"#, b""]), None);
        assert_eq!(continue_token(JSON, [b"{}", b"\"continue\":\"cut of"]), None);
        assert!(revision(JSON, b"{}").is_err());
        assert!(revision(JSON, br#"{"resourceVersion":"x"}"#).is_err());
    }
}
