//! `/statusz` and `/flagz`: what the server is, and how it was started.
//!
//! Kinds, forms and texts are the original's, where the text is for people and its separators change from call to call;
//! here they stay. What the server says beyond that comes behind it: the oldest release that it keeps compatible with,
//! what everything is stored as, the other servers, and the components that are too old or too new.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::SystemTime;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WARNING};
use http::{HeaderMap, Response};
use revisor_catalog::Catalog;
use revisor_object::{Object, Value};
use revisor_registry::KnownServer;
use revisor_schema::{Precision, format_timestamp};
use revisor_version::EffectiveVersion;
use time::OffsetDateTime;

use crate::metrics::DeprecatedApi;
use crate::negotiate::{PageForm, PageVersion, negotiate_page};
use crate::representation::Representation;
use crate::skewed_clients::SkewedClient;
use crate::{Body, Metrics};

/// What the server calls itself on its pages.
const NAME: &str = "apiserver";

/// What the text of a page begins with, behind the name of the page.
const NOTICE: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                      guarantees and is for debugging purposes only.\n";

/// The paths of the server that say something of it.
const PATHS: [&str; 5] = ["/healthz", "/livez", "/metrics", "/readyz", "/version"];

/// Where the pages are.
const STATUSZ: &str = "/statusz";
const FLAGZ: &str = "/flagz";

/// What the pages tell that does not change while the server runs.
#[derive(Debug, Clone)]
pub struct StatusPages {
    /// When the server started.
    pub started: SystemTime,
    /// The version of the program, with all that belongs to it.
    pub binary: String,
    /// What the server is, behaves as, and keeps compatible with.
    pub version: EffectiveVersion,
    /// Whether there is `/statusz`.
    pub has_statusz: bool,
    /// All flags and their values, as `/flagz` shows them; `None` if there is no such page.
    pub flags: Option<BTreeMap<String, String>>,
}

/// What `/statusz` tells that changes.
pub(crate) struct Circumstances<'a> {
    pub(crate) now: OffsetDateTime,
    pub(crate) catalog: &'a Catalog,
    pub(crate) clients: Vec<SkewedClient>,
    pub(crate) servers: Vec<KnownServer>,
}

/// A page that somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Statusz,
    Flagz,
}

impl Page {
    fn kind(self) -> &'static str {
        match self {
            Page::Statusz => "Statusz",
            Page::Flagz => "Flagz",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Page::Statusz => "statusz",
            Page::Flagz => "flagz",
        }
    }

    /// What clients are told that ask for an old version.
    fn deprecation(self) -> &'static str {
        match self {
            Page::Statusz => {
                r#"299 - "This version of the statusz endpoint is deprecated. Please use a newer version.""#
            }
            Page::Flagz => r#"299 - "This version of the flagz endpoint is deprecated. Please use a newer version.""#,
        }
    }
}

impl StatusPages {
    /// The page at a path, if there is one.
    pub(crate) fn page(&self, path: &str) -> Option<Page> {
        match path {
            STATUSZ if self.has_statusz => Some(Page::Statusz),
            FLAGZ if self.flags.is_some() => Some(Page::Flagz),
            _ => None,
        }
    }

    /// The paths of the pages that there are.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'static str> {
        [FLAGZ, STATUSZ].into_iter().filter(|path| self.page(path).is_some())
    }

    /// Answers with a page, in the form that the client accepts.
    pub(crate) fn answer<'a>(
        &self,
        page: Page,
        headers: &HeaderMap,
        representation: &Representation,
        metrics: &Metrics,
        circumstances: impl FnOnce() -> Circumstances<'a>,
    ) -> Response<Body> {
        let (encoding, version, is_pretty) = match negotiate_page(headers, page.kind(), representation.encodings()) {
            Ok(PageForm::Object { encoding, version, is_pretty }) => (encoding, version, is_pretty),
            Ok(PageForm::Text) => {
                let text = match page {
                    Page::Statusz => self.status_text(&circumstances()),
                    Page::Flagz => self.flags_text(),
                };
                return typed(text.into(), "text/plain; charset=utf-8".to_owned());
            }
            Err(refusal) => return representation.status(&refusal),
        };
        let api_version = format!("{}/{}", PageVersion::GROUP, version.name());
        let mut told = vec![
            ("kind", Value::from(page.kind())),
            ("apiVersion", Value::from(api_version)),
            ("metadata", Value::from(members([("name", NAME.into())]))),
        ];
        match page {
            Page::Statusz => self.add_status(&mut told, &circumstances()),
            Page::Flagz => {
                told.push(("flags", Value::from(members(self.flags().map(|(name, value)| (name, value.into()))))))
            }
        }
        let json = in_order(&told);
        let body = match representation.page(encoding, is_pretty, json.into()) {
            Ok(body) => Body::from(body),
            Err(refusal) => return representation.status(&refusal),
        };
        let media_type = encoding.media_type();
        let form = format!("{media_type};g={};v={};as={}", PageVersion::GROUP, version.name(), page.kind());
        let mut response = typed(body, form);
        if version == PageVersion::V1Alpha1 {
            let (group, version, resource) = (PageVersion::GROUP, version.name(), page.name());
            metrics.deprecated_api_requested(&DeprecatedApi { group, version, resource, subresource: "", removed: "" });
            response.headers_mut().insert(WARNING, HeaderValue::from_static(page.deprecation()));
        }
        response
    }

    fn add_status(&self, told: &mut Vec<(&str, Value)>, circumstances: &Circumstances<'_>) {
        let now = circumstances.now;
        let started = OffsetDateTime::from(self.started);
        told.push(("startTime", format_timestamp(started, Precision::Seconds).into()));
        told.push(("uptimeSeconds", (now - started).whole_seconds().max(0).into()));
        told.push(("goVersion", "".into()));
        told.push(("binaryVersion", self.binary.as_str().into()));
        told.push(("emulationVersion", self.version.emulation().to_string().into()));
        let paths: Vec<Value> = self.shown_paths().into_iter().map(Value::from).collect();
        told.push(("paths", paths.into()));
        told.push(("minCompatibilityVersion", self.version.min_compatibility().to_string().into()));
        let storage = storage_versions(circumstances.catalog).into_iter().map(|stored| {
            let StoredAs { group, resource, kind, api_version } = stored;
            let group = (!group.is_empty()).then(|| ("group", Value::from(group)));
            let rest = [("resource", resource.into()), ("kind", kind.into()), ("apiVersion", api_version.into())];
            Value::from(members(group.into_iter().chain(rest)))
        });
        told.push(("storageVersions", storage.collect::<Vec<_>>().into()));
        let servers = circumstances.servers.iter().map(|server| {
            let version = server.version.map(|version| {
                let is_allowed = Value::from(version.is_allowed(self.version));
                [("emulationVersion", Value::from(version.release.to_string())), ("withinSkew", is_allowed)]
            });
            let known = [("name", &server.name), ("hostname", &server.hostname), ("holderIdentity", &server.holder)];
            let known = known.into_iter().chain([("renewTime", &server.renewed)]);
            let known = known.filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, text.as_str().into()));
            Value::from(members(known.chain(version.into_iter().flatten())))
        });
        told.push(("servers", servers.collect::<Vec<_>>().into()));
        let clients = circumstances.clients.iter().map(|client| {
            Value::from(members([
                ("component", client.component.name().into()),
                ("version", client.version.as_str().into()),
                ("requests", i64::try_from(client.requests).unwrap_or(i64::MAX).into()),
                ("lastSeen", format_timestamp(client.last, Precision::Seconds).into()),
                ("userAgent", client.agent.as_str().into()),
            ]))
        });
        told.push(("clientsOutsideSkew", clients.collect::<Vec<_>>().into()));
    }

    fn status_text(&self, circumstances: &Circumstances<'_>) -> String {
        let started = OffsetDateTime::from(self.started);
        let up = (circumstances.now - started).whole_seconds().max(0);
        let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
        let (emulation, least) = (self.version.emulation(), self.version.min_compatibility());
        let mut text = format!(
            "\n{NAME} statusz\n{NOTICE}\nStarted: {}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\nGo version: \n\
             Binary version: {}\nEmulation version: {emulation}\nPaths: {}\nMinimum compatibility version: {least}\n",
            unix_date(started),
            self.binary,
            self.shown_paths().join(" "),
        );
        let mut line = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a text grows");
        line(format_args!("Storage versions:"));
        for StoredAs { group, resource, api_version, .. } in storage_versions(circumstances.catalog) {
            let dot = if group.is_empty() { "" } else { "." };
            line(format_args!("  {resource}{dot}{group}: {api_version}"));
        }
        line(format_args!("Servers:"));
        for KnownServer { name, hostname, renewed, version, .. } in &circumstances.servers {
            let version = version.map_or("an unknown release".to_owned(), |version| {
                let verdict = if version.is_allowed(self.version) { "" } else { ", too far from this server" };
                format!("behaving as {}{verdict}", version.release)
            });
            line(format_args!("  {name}: on {hostname}, renewed {renewed}, {version}"));
        }
        line(format_args!("Clients outside the skew:"));
        for SkewedClient { component, version, requests, last, agent } in &circumstances.clients {
            let last = format_timestamp(*last, Precision::Seconds);
            line(format_args!("  {component} {version}: requests {requests}, last {last}, as {agent}"));
        }
        text
    }

    fn shown_paths(&self) -> Vec<&'static str> {
        let mut paths: Vec<&str> = PATHS.into_iter().chain(self.paths()).collect();
        paths.sort_unstable();
        paths
    }

    fn flags(&self) -> impl Iterator<Item = (&str, &str)> {
        self.flags.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn flags_text(&self) -> String {
        let mut text = format!("\n{NAME} flagz\n{NOTICE}");
        for (name, value) in self.flags() {
            writeln!(text, "{name}: {value}").expect("a text grows");
        }
        text
    }
}

fn members<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Object {
    members.into_iter().collect()
}

/// An object whose members come in this order, as those of the original's objects do.
fn in_order(told: &[(&str, Value)]) -> String {
    let told: Vec<String> = told.iter().map(|(name, value)| format!("\"{name}\":{}", value.to_json())).collect();
    format!("{{{}}}", told.join(","))
}

fn typed(body: Body, content_type: String) -> Response<Body> {
    let mut response = Response::new(body);
    let content_type = HeaderValue::try_from(content_type).expect("media types are made of letters");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// What the objects of a resource are stored as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct StoredAs {
    group: String,
    resource: String,
    kind: String,
    api_version: String,
}

/// What everything is stored as, custom resources among them.
fn storage_versions(catalog: &Catalog) -> Vec<StoredAs> {
    let built_in = catalog.storage_versions().iter().map(|stored| StoredAs {
        group: stored.group.to_owned(),
        resource: stored.resource.to_owned(),
        kind: stored.kind.to_owned(),
        api_version: stored.api_version.clone(),
    });
    let custom = catalog.resources().filter_map(|resource| {
        let api_version = resource.custom()?.storage_version().to_string();
        let (group, plural) = (resource.group.to_string(), resource.plural.to_string());
        Some(StoredAs { group, resource: plural, kind: resource.kind.to_string(), api_version })
    });
    let mut all: Vec<StoredAs> = built_in.chain(custom).collect();
    all.sort();
    // Every version of a custom resource says it.
    all.dedup();
    all
}

/// A time as `date` prints it.
fn unix_date(time: OffsetDateTime) -> String {
    let (weekday, month) = (time.weekday().to_string(), time.month().to_string());
    let (hour, minute, second) = time.to_hms();
    format!("{} {} {:>2} {hour:02}:{minute:02}:{second:02} UTC {}", &weekday[..3], &month[..3], time.day(), time.year())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::header::ACCEPT;
    use revisor_version::{Component, Release};

    use http::StatusCode;

    use super::*;

    const START: u64 = 1_794_807_367;

    fn pages() -> StatusPages {
        StatusPages {
            started: SystemTime::UNIX_EPOCH + Duration::from_secs(START),
            binary: "1.36.0+revisor-0".to_owned(),
            version: EffectiveVersion::of(Release { major: 1, minor: 36 }),
            has_statusz: true,
            flags: Some([("v", "0"), ("api-audiences", "[]")].map(|(a, b)| (a.to_owned(), b.to_owned())).into()),
        }
    }

    fn circumstances(catalog: &Catalog) -> Circumstances<'_> {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::from_secs(START + 3_725);
        let version = Release { major: 1, minor: 33 };
        Circumstances {
            now,
            catalog,
            clients: vec![SkewedClient {
                component: Component::Kubectl,
                version: "1.30".to_owned(),
                requests: 7,
                last: now,
                agent: "kubectl/v1.30.1".to_owned(),
            }],
            servers: vec![KnownServer {
                name: "apiserver-a".to_owned(),
                hostname: "a".to_owned(),
                holder: String::new(),
                renewed: "2026-11-16T06:00:00.000000Z".to_owned(),
                version: Some(revisor_version::ComponentVersion {
                    component: Component::KubeApiserver,
                    release: version,
                }),
            }],
        }
    }

    fn ask(page: Page, accept: &str) -> (StatusCode, HeaderMap, String) {
        let catalog = Catalog::default();
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().expect("a header"))]);
        let metrics = Metrics::new(Vec::new);
        let (parts, body) = pages()
            .answer(page, &headers, &Representation::of_own(&headers), &metrics, || circumstances(&catalog))
            .into_parts();
        let Body::Full(bytes) = body else { panic!("{accept} is answered in pieces") };
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).expect("a text"))
    }

    #[test]
    fn the_status_is_the_originals_with_more_behind_it() {
        let (_, headers, text) = ask(Page::Statusz, "text/plain");
        assert_eq!(headers[CONTENT_TYPE], "text/plain; charset=utf-8");
        let start = format!(
            "\napiserver statusz\n{NOTICE}\nStarted: Mon Nov 16 05:36:07 UTC 2026\nUp: 1 hr 02 min 05 sec\n\
             Go version: \nBinary version: 1.36.0+revisor-0\nEmulation version: 1.36\n\
             Paths: /flagz /healthz /livez /metrics /readyz /statusz /version\n"
        );
        assert!(text.starts_with(&start), "{text}");
        for line in [
            "Minimum compatibility version: 1.35",
            "  configmaps: v1",
            "  deployments.apps: apps/v1",
            "  apiserver-a: on a, renewed 2026-11-16T06:00:00.000000Z, behaving as 1.33, too far from this server",
            "  kubectl 1.30: requests 7, last 2026-11-16T06:38:12Z, as kubectl/v1.30.1",
        ] {
            assert!(text.lines().any(|got| got == line), "{line}\nis not in\n{text}");
        }
        let (_, headers, json) = ask(Page::Statusz, "application/json;v=v1beta1;g=config.k8s.io;as=Statusz");
        assert_eq!(headers[CONTENT_TYPE], "application/json;g=config.k8s.io;v=v1beta1;as=Statusz");
        let start = r#"{"kind":"Statusz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"apiserver"},"#
            .to_owned()
            + r#""startTime":"2026-11-16T05:36:07Z","uptimeSeconds":3725,"goVersion":"","#
            + r#""binaryVersion":"1.36.0+revisor-0","emulationVersion":"1.36","paths":["/flagz","#;
        assert!(json.starts_with(&start), "{json}");
        for part in [
            r#""minCompatibilityVersion":"1.35","#,
            r#"{"apiVersion":"v1","kind":"ConfigMap","resource":"configmaps"}"#,
            r#"{"apiVersion":"apps/v1","group":"apps","kind":"Deployment","resource":"deployments"}"#,
            r#"{"emulationVersion":"1.33","hostname":"a","name":"apiserver-a","renewTime":"2026-11-16T06:00:00.000000Z","#,
            r#"{"component":"kubectl","lastSeen":"2026-11-16T06:38:12Z","requests":7,"userAgent":"kubectl/v1.30.1","#,
        ] {
            assert!(json.contains(part), "{part}\nis not in\n{json}");
        }
    }

    #[test]
    fn flags_are_shown_by_name() {
        let (_, _, text) = ask(Page::Flagz, "*/*");
        assert_eq!(text, format!("\napiserver flagz\n{NOTICE}api-audiences: []\nv: 0\n"));
        let (_, headers, yaml) = ask(Page::Flagz, "application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz");
        let want = "apiVersion: config.k8s.io/v1alpha1\nflags:\n  api-audiences: '[]'\n  v: \"0\"\nkind: Flagz\n\
                    metadata:\n  name: apiserver\n";
        assert_eq!(yaml, want);
        assert_eq!(headers[CONTENT_TYPE], "application/yaml;g=config.k8s.io;v=v1alpha1;as=Flagz");
        let warning = "299 - \"This version of the flagz endpoint is deprecated. Please use a newer version.\"";
        assert_eq!(headers[WARNING], warning);
    }

    #[test]
    fn a_refusal_is_written_as_the_client_reads() {
        for (accept, content_type) in
            [("application/json", "application/json"), ("application/yaml", "application/yaml")]
        {
            let (status, headers, _) = ask(Page::Statusz, accept);
            assert_eq!(status.as_u16(), 406, "{accept}");
            assert_eq!(headers[CONTENT_TYPE], content_type);
        }
    }

    #[test]
    fn pages_are_where_their_gates_are_open() {
        let none = StatusPages { has_statusz: false, flags: None, ..pages() };
        for (pages, paths, shown) in [(pages(), vec!["/flagz", "/statusz"], Some(Page::Statusz)), (none, vec![], None)]
        {
            assert_eq!(pages.paths().collect::<Vec<_>>(), paths);
            assert_eq!(pages.page("/statusz"), shown);
            assert_eq!(pages.page("/statusz/"), None);
        }
    }
}
