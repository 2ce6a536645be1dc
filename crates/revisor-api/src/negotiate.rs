//! What the client sends and wants: media types, forms of objects, and whether a person is reading.
//!
//! The rules are the original's. A request goes through two gates. The first is that of the route: one of the types in
//! `Accept` must be one that is offered, or `*/*`. The second chooses: it sorts the clauses, and takes the first whose
//! type is offered and whose parameters make sense here. Quality sorts, but an exact type always comes before a
//! wildcard, and a quality of zero excludes nothing.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use revisor_object::{Status, StatusDetails};
use revisor_registry::{Format, PatchKind};

/// The types that objects can be answered in.
pub(crate) const ANSWERED: &[&str] = &["application/json", "application/yaml"];

/// The types that objects can be sent in.
pub(crate) const READ: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The types that patches can be sent in.
pub(crate) const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The types that patches of custom objects can be sent in: only built-in kinds have a strategy for merging.
pub(crate) const CUSTOM_PATCHES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// The types that events can be answered in.
pub(crate) const STREAMED: &[&str] = &["application/json;stream=watch"];

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

impl Encoding {
    /// In the order of preference for clients that have none.
    const ALL: [Encoding; 2] = [Encoding::Json, Encoding::Yaml];

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
        }
    }
}

/// The version of the forms that objects of all kinds can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What is shown of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of it.
    Whole,
    /// Its metadata.
    Metadata(MetaVersion),
    /// The metadata of each object of a list.
    MetadataList(MetaVersion),
    /// What a person wants to see of it, in columns.
    Table(MetaVersion),
}

/// What the client gets of what it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) encoding: Encoding,
    pub(crate) form: Form,
    /// Whether the header asks for an answer that is laid out for people.
    pub(crate) is_pretty: bool,
}

const DEFAULT: Accepted = Accepted { encoding: Encoding::Json, form: Form::Whole, is_pretty: false };

/// What kind of answer is negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// One object.
    Object,
    /// A list, or its changes.
    List,
    /// The changes of a list.
    Events,
}

/// Chooses the answer's encoding and form; a `Status` if none of what the client accepts is on offer.
pub(crate) fn negotiate(headers: &HeaderMap, answer: Answer) -> Result<Accepted, Box<Status>> {
    let accept = accept(headers);
    if !passes_route(accept) {
        let mut offered = ANSWERED.to_vec();
        if answer != Answer::Object {
            offered.extend_from_slice(STREAMED);
        }
        return Err(not_acceptable(&offered));
    }
    let accepted = choose(accept, true).ok_or_else(|| Box::new(Status::not_acceptable(ANSWERED)))?;
    if answer == Answer::Events && accepted.encoding != Encoding::Json {
        return Err(Box::new(Status::not_acceptable(STREAMED)));
    }
    Ok(accepted)
}

/// How the aggregated form of discovery is asked for, and what its answer is called, behind the encoding.
pub(crate) const FORM_OF_AGGREGATED: &str = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// How discovery is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiscoveryForm {
    /// All at once.
    Aggregated(Encoding),
    /// One document per group and version. How it is written is decided for all plain answers alike.
    Plain,
}

/// Chooses how `/api` and `/apis` are told: whoever accepts the aggregated form gets it, whatever else they accept.
pub(crate) fn negotiate_discovery(headers: &HeaderMap) -> Result<DiscoveryForm, Box<Status>> {
    let mut clauses: Vec<Clause<'_>> = accept(headers).split(',').filter_map(Clause::parse).collect();
    sort(&mut clauses);
    let aggregated = clauses.iter().find_map(|clause| {
        let mut covered = Encoding::ALL.into_iter().filter(|encoding| clause.covers(*encoding));
        covered.find(|encoding| clause.is_aggregated(*encoding))
    });
    match aggregated {
        Some(encoding) => Ok(DiscoveryForm::Aggregated(encoding)),
        None => accept_plain(headers).map(|()| DiscoveryForm::Plain),
    }
}

/// The types that the server's pages about itself can be answered in.
const PAGES: &[&str] = &["application/json", "application/yaml", "text/plain"];

/// How a page of the server about itself is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageForm {
    /// As a text for people.
    Text,
    /// As an object of a kind of its own.
    Object {
        encoding: Encoding,
        version: PageVersion,
        /// Whether the header asks for an answer that is laid out for people.
        is_pretty: bool,
    },
}

/// The versions of the kinds of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageVersion {
    V1Alpha1,
    V1Beta1,
}

impl PageVersion {
    pub(crate) const GROUP: &str = "config.k8s.io";

    pub(crate) fn name(self) -> &'static str {
        match self {
            PageVersion::V1Alpha1 => "v1alpha1",
            PageVersion::V1Beta1 => "v1beta1",
        }
    }
}

/// Chooses how a page of this kind is told. An object must be asked for by its kind: whoever wants JSON of any kind gets
/// none, because what it would be must be able to change.
pub(crate) fn negotiate_page(headers: &HeaderMap, kind: &str) -> Result<PageForm, Box<Status>> {
    let accept = accept(headers);
    if accept.trim().is_empty() {
        return Ok(PageForm::Text);
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    sort(&mut clauses);
    let chosen = clauses.iter().find_map(|clause| {
        if clause.parameter("stream").or_else(|| clause.parameter("sv")).is_some() {
            return None;
        }
        match (clause.parameter("as"), clause.parameter("g"), clause.parameter("v")) {
            (None, None, None) => clause.covers_type("text", "plain").then_some(PageForm::Text),
            (Some(wanted), Some(PageVersion::GROUP), Some(version)) if wanted == kind => {
                let mut versions = [PageVersion::V1Alpha1, PageVersion::V1Beta1].into_iter();
                let version = versions.find(|known| known.name() == version)?;
                let encoding = Encoding::ALL.into_iter().find(|encoding| clause.covers(*encoding))?;
                Some(PageForm::Object { encoding, version, is_pretty: clause.parameter("pretty") == Some("1") })
            }
            _ => None,
        }
    });
    chosen.ok_or_else(|| Box::new(Status::not_acceptable(PAGES)))
}

/// Refuses a client that accepts nothing of what has one form only.
pub(crate) fn accept_plain(headers: &HeaderMap) -> Result<(), Box<Status>> {
    choose(accept(headers), false).map(|_| ()).ok_or_else(|| Box::new(Status::not_acceptable(ANSWERED)))
}

/// The same for paths that look at the type alone before.
pub(crate) fn accept_plain_route(headers: &HeaderMap) -> Result<(), Box<Status>> {
    accept_route(headers).and_then(|()| accept_plain(headers))
}

/// Refuses a client that accepts none of the types, whatever their parameters.
pub(crate) fn accept_route(headers: &HeaderMap) -> Result<(), Box<Status>> {
    if passes_route(accept(headers)) { Ok(()) } else { Err(not_acceptable(ANSWERED)) }
}

/// How answers are written to this client that have no other form: errors, and what is no object.
pub(crate) fn plain_encoding(headers: &HeaderMap) -> Encoding {
    choose(accept(headers), false).unwrap_or(DEFAULT).encoding
}

/// Of what is on offer under these types, what the client accepts first. Who accepts nothing by name accepts anything.
pub(crate) fn first_accepted<T: Copy>(headers: &HeaderMap, offered: &[(&str, T)]) -> Option<T> {
    let accept = Some(accept(headers)).filter(|accept| !accept.is_empty()).unwrap_or("*/*");
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    sort(&mut clauses);
    clauses.iter().find_map(|clause| {
        let covers = |media_type: &str| {
            let (main, sub) = media_type.split_once('/').unwrap_or_default();
            [main, "*"].contains(&clause.main) && [sub, "*"].contains(&clause.sub)
        };
        offered.iter().find(|(media_type, _)| covers(media_type)).map(|(_, offer)| *offer)
    })
}

/// What a client is told that accepts none of the types of a route.
fn not_acceptable(offered: &[&str]) -> Box<Status> {
    let mut status = Status::not_acceptable(&[]);
    status.message = format!("406: Not Acceptable\n\nAvailable representations: {}", offered.join(", "));
    status.details = Some(StatusDetails::default());
    Box::new(status)
}

/// What the original looks at: the first header of this name only.
fn accept(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn passes_route(accept: &str) -> bool {
    accept.is_empty()
        || accept.split(',').any(|clause| {
            let media_type = clause.split(';').next().unwrap_or_default().trim_matches(' ');
            media_type == "*/*" || ANSWERED.contains(&media_type)
        })
}

fn choose(accept: &str, has_forms: bool) -> Option<Accepted> {
    // What nearly every client sends.
    if matches!(accept, "" | "*/*" | "application/json") {
        return Some(DEFAULT);
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').filter_map(Clause::parse).collect();
    sort(&mut clauses);
    clauses.iter().find_map(|clause| {
        Encoding::ALL.into_iter().filter(|encoding| clause.covers(*encoding)).find_map(|encoding| {
            let accepted = clause.accepted(encoding)?;
            let is_plain = accepted.form == Form::Whole && clause.parameter("sv").is_none();
            (has_forms || is_plain).then_some(accepted)
        })
    })
}

/// One clause of the header.
#[derive(Debug, Clone)]
struct Clause<'a> {
    main: &'a str,
    sub: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Clause<'a>> {
        let mut parts = text.trim_matches(' ').split(';');
        let media_type = parts.next()?;
        let (main, sub) = media_type.split_once('/').unwrap_or((media_type, ""));
        let main = main.trim_matches(' ');
        let sub = if main == "*" && sub.is_empty() { "*" } else { sub };
        if sub.is_empty() || sub.contains('/') {
            return None;
        }
        let mut clause = Clause { main, sub: sub.trim_matches(' '), quality: 1.0, parameters: Vec::new() };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            if value.is_empty() || value.contains('=') {
                continue;
            }
            match name.trim_matches(' ') {
                "q" => clause.quality = value.parse().unwrap_or_default(),
                name => clause.parameters.push((name, value.trim_matches(' '))),
            }
        }
        Some(clause)
    }

    fn covers(&self, encoding: Encoding) -> bool {
        let (main, sub) = encoding.media_type().split_once('/').unwrap_or_default();
        self.covers_type(main, sub)
    }

    fn covers_type(&self, main: &str, sub: &str) -> bool {
        (self.main == main && (self.sub == sub || self.sub == "*")) || (self.main == "*" && self.sub == "*")
    }

    /// Of two parameters with one name the last counts.
    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Whether what this clause says of streams makes sense in this encoding.
    fn allows_stream(&self, encoding: Encoding) -> bool {
        self.parameter("stream").is_none_or(|stream| stream == "watch" && encoding == Encoding::Json)
    }

    /// Whether this clause asks for the aggregated form of discovery.
    fn is_aggregated(&self, encoding: Encoding) -> bool {
        let target = (self.parameter("g"), self.parameter("v"), self.parameter("as"));
        target == (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList"))
            && self.parameter("sv").is_none()
            && self.allows_stream(encoding)
    }

    /// What this clause asks for in this encoding; `None` if that cannot be.
    fn accepted(&self, encoding: Encoding) -> Option<Accepted> {
        if !self.allows_stream(encoding) {
            return None;
        }
        if self.parameter("sv").is_some_and(|version| version != "v1") {
            return None;
        }
        let target = (self.parameter("as"), self.parameter("g"), self.parameter("v"));
        let form = match target {
            (None, None, None) => Form::Whole,
            (Some(kind), Some("meta.k8s.io"), Some(version)) => {
                let version = match version {
                    "v1" => MetaVersion::V1,
                    "v1beta1" => MetaVersion::V1Beta1,
                    _ => return None,
                };
                match kind {
                    "Table" => Form::Table(version),
                    "PartialObjectMetadata" => Form::Metadata(version),
                    "PartialObjectMetadataList" => Form::MetadataList(version),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Accepted { encoding, form, is_pretty: self.parameter("pretty") == Some("1") })
    }

    /// Whether this clause comes before the other. This is no order: each of two can come before the other.
    fn precedes(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality || (self.main != "*" && other.main == "*") || (self.sub != "*" && other.sub == "*")
    }
}

/// As many clauses are sorted as the original sorts them. Since they have no order, the outcome depends on the way.
const SORTED_BY_INSERTION: usize = 12;

fn sort(clauses: &mut [Clause<'_>]) {
    if clauses.len() > SORTED_BY_INSERTION {
        clauses.sort_by(|one, other| {
            let wildcards = |clause: &Clause<'_>| (clause.main == "*", clause.sub == "*");
            other.quality.total_cmp(&one.quality).then_with(|| wildcards(one).cmp(&wildcards(other)))
        });
        return;
    }
    for last in 1..clauses.len() {
        let mut at = last;
        while at > 0 && clauses[at].precedes(&clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
}

fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// How the body is written; JSON if the client does not say. `None` for a type that is not read.
pub(crate) fn body_format(headers: &HeaderMap) -> Option<Format> {
    // A header that says something else than a type is not silence.
    if headers.get(CONTENT_TYPE).is_none_or(|value| value.as_bytes().trim_ascii().is_empty()) {
        return Some(Format::Json);
    }
    match media_type(headers) {
        "application/json" => Some(Format::Json),
        "application/yaml" => Some(Format::Yaml),
        "application/vnd.kubernetes.protobuf" => Some(Format::Protobuf),
        _ => None,
    }
}

/// How the patch is written. `None` for a type that is not read.
pub(crate) fn patch_kind(headers: &HeaderMap) -> Option<PatchKind> {
    match media_type(headers) {
        "application/merge-patch+json" => Some(PatchKind::Merge),
        "application/json-patch+json" => Some(PatchKind::Json),
        "application/strategic-merge-patch+json" => Some(PatchKind::Strategic),
        "application/apply-patch+yaml" => Some(PatchKind::Apply),
        _ => None,
    }
}

/// Whether the answer should be laid out for a person: when asked for, or when a browser or curl asks and does not say.
pub(crate) fn is_pretty(headers: &HeaderMap, asked: Option<bool>) -> bool {
    asked.unwrap_or_else(|| {
        let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        ["curl", "Wget", "Mozilla/5.0"].iter().any(|person| agent.starts_with(person))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(accept: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, accept.parse().expect("a header"))])
    }

    #[test]
    fn the_first_clause_that_makes_sense_is_served() {
        use Encoding::{Json, Yaml};
        use MetaVersion::{V1, V1Beta1};
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                       application/json";
        let many = format!("{}*/*", "text/html,".repeat(20));
        for (accept, want) in [
            ("", Some((Json, Form::Whole))),
            ("application/json", Some((Json, Form::Whole))),
            ("*/*", Some((Json, Form::Whole))),
            (kubectl, Some((Json, Form::Table(V1)))),
            ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Some((Json, Form::Table(V1Beta1)))),
            ("application/yaml;as=Table;v=v1;g=meta.k8s.io", Some((Yaml, Form::Table(V1)))),
            ("application/json; as=PartialObjectMetadata; v=v1; g=meta.k8s.io", Some((Json, Form::Metadata(V1)))),
            ("*/*;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", Some((Json, Form::MetadataList(V1)))),
            ("application/vnd.kubernetes.protobuf,application/json", Some((Json, Form::Whole))),
            ("application/vnd.kubernetes.protobuf, */*;q=0.8", Some((Json, Form::Whole))),
            ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Some((Json, Form::Whole))),
            ("application/json;as=Table,application/yaml", Some((Yaml, Form::Whole))),
            ("application/json;q=0", Some((Json, Form::Whole))),
            ("application/json;q=0.1,application/yaml;q=0.9", Some((Yaml, Form::Whole))),
            ("*/*,application/yaml;q=0.1", Some((Yaml, Form::Whole))),
            ("application/*,application/json;as=Nonsense", Some((Json, Form::Whole))),
            ("application/yaml;stream=watch,application/json;stream=watch", Some((Json, Form::Whole))),
            ("application/json;stream=other", None),
            ("application/json;sv=v2", None),
            ("application/*", None),
            ("application/vnd.kubernetes.protobuf", None),
            ("application/json;as=Nonsense;v=v1;g=meta.k8s.io", None),
            ("application/json;as=Table;v=v1", None),
            ("text/html", None),
            ("text/html,*/*", Some((Json, Form::Whole))),
            (&many, Some((Json, Form::Whole))),
            ("nonsense,/,a/b/c,application/yaml", Some((Yaml, Form::Whole))),
        ] {
            let accepted = negotiate(&with(accept), Answer::Object).ok();
            assert_eq!(accepted.map(|accepted| (accepted.encoding, accepted.form)), want, "{accept}");
        }
        assert_eq!(negotiate(&HeaderMap::new(), Answer::Events), Ok(DEFAULT));
    }

    #[test]
    fn a_refusal_names_what_is_on_offer() {
        let types = "application/json, application/yaml";
        for (accept, answer, want) in [
            ("text/html", Answer::Object, format!("406: Not Acceptable\n\nAvailable representations: {types}")),
            (
                "text/html",
                Answer::List,
                format!("406: Not Acceptable\n\nAvailable representations: {types}, application/json;stream=watch"),
            ),
            (
                "application/json;as=Nonsense",
                Answer::Object,
                format!("only the following media types are accepted: {types}"),
            ),
            (
                "application/yaml",
                Answer::Events,
                "only the following media types are accepted: application/json;stream=watch".to_owned(),
            ),
        ] {
            let refusal = negotiate(&with(accept), answer).expect_err("is refused");
            assert_eq!((refusal.code(), refusal.message.as_str()), (406, want.as_str()), "{accept}");
        }
    }

    #[test]
    fn discovery_is_aggregated_for_whoever_accepts_that() {
        use DiscoveryForm::{Aggregated, Plain};
        let form = FORM_OF_AGGREGATED;
        let beta = form.replace("v2", "v2beta1");
        for (accept, want) in [
            (String::new(), Some(Plain)),
            ("*/*".to_owned(), Some(Plain)),
            ("application/yaml".to_owned(), Some(Plain)),
            (format!("application/json;{form}"), Some(Aggregated(Encoding::Json))),
            (format!("application/json;{form};profile=nopeer"), Some(Aggregated(Encoding::Json))),
            (format!("application/yaml;{form}"), Some(Aggregated(Encoding::Yaml))),
            (format!("*/*;{form}"), Some(Aggregated(Encoding::Json))),
            (format!("application/json;q=0.9,application/json;{form};q=0.1"), Some(Aggregated(Encoding::Json))),
            (format!("application/json;{beta},application/json;{form}"), Some(Aggregated(Encoding::Json))),
            (format!("application/json;{beta},application/json"), Some(Plain)),
            (format!("application/json;{form};stream=watch"), Some(Aggregated(Encoding::Json))),
            (format!("application/vnd.kubernetes.protobuf;{form},application/json"), Some(Plain)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json".to_owned(), Some(Plain)),
            (format!("application/json;{beta}"), None),
            (format!("application/json;{form};sv=v1"), None),
            ("application/json;sv=v1".to_owned(), None),
            ("application/json;as=Table;v=v1;g=meta.k8s.io".to_owned(), None),
            ("text/plain".to_owned(), None),
        ] {
            assert_eq!(negotiate_discovery(&with(&accept)).ok(), want, "{accept}");
        }
        for (accept, message) in [
            ("text/plain", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"),
            (&*beta, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"),
            (
                "application/json;sv=v1",
                "only the following media types are accepted: application/json, application/yaml",
            ),
        ] {
            let refusal = accept_plain_route(&with(accept)).expect_err("is refused");
            assert_eq!(refusal.message, message, "{accept}");
        }
    }

    #[test]
    fn pages_are_texts_unless_their_kind_is_asked_for() {
        use PageForm::{Object, Text};
        use PageVersion::{V1Alpha1, V1Beta1};
        let beta = Object { encoding: Encoding::Json, version: V1Beta1, is_pretty: false };
        for (accept, want) in [
            ("", Some(Text)),
            (" ", Some(Text)),
            ("*/*", Some(Text)),
            ("text/plain", Some(Text)),
            ("text/*", Some(Text)),
            ("application/json,text/plain", Some(Text)),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", Some(beta)),
            ("*/*;v=v1beta1;g=config.k8s.io;as=Statusz", Some(beta)),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz,text/plain;q=0.5", Some(beta)),
            (
                "application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz;pretty=1",
                Some(Object { encoding: Encoding::Yaml, version: V1Alpha1, is_pretty: true }),
            ),
            ("application/json", None),
            ("application/yaml", None),
            ("application/*", None),
            ("application/cbor", None),
            ("application/cbor;v=v1beta1;g=config.k8s.io;as=Statusz", None),
            ("application/vnd.kubernetes.protobuf;v=v1beta1;g=config.k8s.io;as=Statusz", None),
            ("text/html", None),
            ("text/plain;v=v1beta1;g=config.k8s.io;as=Statusz", None),
            ("application/json;v=v1;g=config.k8s.io;as=Statusz", None),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", None),
            ("application/json;v=v1beta1;as=Statusz", None),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz;stream=watch", None),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz;sv=v1", None),
        ] {
            assert_eq!(negotiate_page(&with(accept), "Statusz").ok(), want, "{accept}");
        }
        let refusal = negotiate_page(&with("application/json"), "Statusz").expect_err("is refused");
        let types = "application/json, application/yaml, text/plain";
        assert_eq!(refusal.message, format!("only the following media types are accepted: {types}"));
    }

    #[test]
    fn errors_are_written_as_plain_answers_are() {
        for (accept, want) in [
            ("application/yaml", Encoding::Yaml),
            ("application/yaml;as=Table;v=v1;g=meta.k8s.io", Encoding::Json),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml", Encoding::Yaml),
            ("text/html", Encoding::Json),
        ] {
            assert_eq!(plain_encoding(&with(accept)), want, "{accept}");
        }
        assert_eq!(Encoding::ALL.map(Encoding::media_type), ANSWERED);
    }

    #[test]
    fn bodies_are_json_unless_the_client_says_otherwise() {
        for (content_type, want) in [
            (None, Some(Format::Json)),
            (Some(""), Some(Format::Json)),
            (Some("application/json; charset=utf-8"), Some(Format::Json)),
            (Some("application/yaml"), Some(Format::Yaml)),
            (Some(";;;"), None),
            (Some("text/plain"), None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(content_type) = content_type {
                headers.insert(CONTENT_TYPE, content_type.parse().expect("a header"));
            }
            assert_eq!(body_format(&headers), want, "{content_type:?}");
        }
    }
}
