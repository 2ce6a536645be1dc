//! What the client gets of what it accepts: encodings, forms of objects, and whether a person is reading.
//!
//! The rules are the original's. A request for a built-in kind goes through two gates. The first is that of the route: one
//! of the types in `Accept` must be one that is offered, or `*/*`. The second chooses: it takes the first clause whose
//! type is offered and whose parameters make sense here.

use http::HeaderMap;
use http::header::USER_AGENT;
use revisor_object::{Status, StatusDetails};

use crate::accept::{Accept, Clause, accept};
use crate::encoding::Encoding;

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

/// What an answer can be had as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Objects of built-in kinds.
    BuiltIn,
    /// Objects of built-in kinds that have no columns.
    WithoutColumns,
    /// Objects of custom resources. Nobody knows their messages, so protobuf has their metadata only.
    Custom,
    /// What has one form only: errors, discovery.
    Plain,
}

impl Offer {
    /// Whether this form can be had in this encoding. As the original's `AllowsMediaTypeTransform`.
    fn has(self, encoding: Encoding, form: Form) -> bool {
        match (self, form) {
            (Offer::BuiltIn | Offer::WithoutColumns | Offer::Plain, Form::Whole) => true,
            (Offer::Plain, _) | (Offer::WithoutColumns, Form::Table(_)) => false,
            (Offer::Custom, Form::Whole) => encoding != Encoding::Protobuf,
            (_, Form::Metadata(_) | Form::MetadataList(_)) => true,
            (_, Form::Table(_)) => Encoding::TEXTS.contains(&encoding),
        }
    }
}

/// What a client gets: of objects that are offered so, and of what has one form only. `None` if nothing of what it accepts
/// is on offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) objects: Option<Accepted>,
    pub(crate) plain: Option<Accepted>,
}

/// Chooses the encoding and form of answers.
pub(crate) fn choose(headers: &HeaderMap, offer: Offer, encodings: &[Encoding]) -> Chosen {
    let accept = accept(headers);
    // What nearly every client sends.
    if matches!(accept, "" | "*/*" | "application/json") {
        return Chosen { objects: Some(DEFAULT), plain: Some(DEFAULT) };
    }
    let accept = Accept::parse(accept);
    let first = |offer: Offer| {
        accept.clauses().iter().find_map(|clause| {
            let covered = encodings.iter().filter(|encoding| clause.covers(encoding.media_type()));
            covered.copied().find_map(|encoding| accepted(clause, encoding, offer))
        })
    };
    Chosen { objects: first(offer), plain: first(Offer::Plain) }
}

/// Whether one of the types in `Accept` is one of these, whatever its parameters. Routes of built-in kinds look at that
/// alone before anything else.
pub(crate) fn passes_route(headers: &HeaderMap, offered: &[&str]) -> bool {
    accept(headers).is_empty() || names_one_of(headers, offered) || names_one_of(headers, &["*/*"])
}

/// What routes of objects look at alone before anything else: which of the types in `Accept` they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteTypes {
    /// One of those that objects come in.
    pub(crate) object: bool,
    /// That of texts, which logs are.
    pub(crate) text: bool,
    /// That of sequences of CBOR, which only streams are.
    pub(crate) sequence: bool,
}

impl RouteTypes {
    pub(crate) fn of(headers: &HeaderMap, encodings: &[Encoding]) -> RouteTypes {
        // What nearly every client sends.
        if matches!(accept(headers), "" | "*/*" | "application/json") {
            return RouteTypes { object: true, text: false, sequence: false };
        }
        RouteTypes {
            object: passes_route(headers, &Encoding::media_types(encodings)),
            text: names_one_of(headers, &[TEXT]),
            sequence: encodings.contains(&Encoding::Cbor) && names_one_of(headers, &[Encoding::Cbor.watch_type()]),
        }
    }
}

/// What texts for people are called.
pub(crate) const TEXT: &str = "text/plain";

/// Whether `Accept` has one of these types, whatever its parameters.
fn names_one_of(headers: &HeaderMap, types: &[&str]) -> bool {
    accept(headers).split(',').any(|clause| {
        let media_type = clause.split(';').next().unwrap_or_default().trim_matches(' ');
        types.contains(&media_type)
    })
}

/// What a client is told that accepts none of the types of a route.
pub(crate) fn route_refusal(offered: &[&str]) -> Box<Status> {
    let mut status = Status::not_acceptable(&[]);
    status.message = format!("406: Not Acceptable\n\nAvailable representations: {}", offered.join(", "));
    status.details = Some(StatusDetails::default());
    Box::new(status)
}

/// How the aggregated form of discovery is asked for, and what its answer is called, behind the encoding.
pub(crate) const FORM_OF_AGGREGATED: &str = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// In which encoding a client accepts the aggregated form of discovery, if it does. Whoever accepts it gets it, whatever
/// else they accept.
pub(crate) fn aggregated_discovery(headers: &HeaderMap, encodings: &[Encoding]) -> Option<Encoding> {
    Accept::parse(accept(headers)).clauses().iter().find_map(|clause| {
        let mut covered = encodings.iter().filter(|encoding| clause.covers(encoding.media_type()));
        covered.find(|encoding| is_aggregated(clause, **encoding)).copied()
    })
}

/// The types that the server's pages about itself can be answered in.
const PAGES: &[&str] = &["application/json", "application/yaml", "text/plain"];

/// The same where CBOR is switched on.
const PAGES_WITH_CBOR: &[&str] = &["application/json", "application/yaml", "text/plain", "application/cbor"];

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
/// none, because what it would be must be able to change. Of what is on `offer`, pages have all but protobuf.
pub(crate) fn negotiate_page(headers: &HeaderMap, kind: &str, offer: &[Encoding]) -> Result<PageForm, Box<Status>> {
    let accept = accept(headers);
    if accept.trim().is_empty() {
        return Ok(PageForm::Text);
    }
    let chosen = Accept::parse(accept).clauses().iter().find_map(|clause| {
        if clause.parameter("stream").or_else(|| clause.parameter("sv")).is_some() {
            return None;
        }
        match (clause.parameter("as"), clause.parameter("g"), clause.parameter("v")) {
            (None, None, None) => clause.covers("text/plain").then_some(PageForm::Text),
            (Some(wanted), Some(PageVersion::GROUP), Some(version)) if wanted == kind => {
                let mut versions = [PageVersion::V1Alpha1, PageVersion::V1Beta1].into_iter();
                let version = versions.find(|known| known.name() == version)?;
                let mut offered = offer.iter().filter(|encoding| **encoding != Encoding::Protobuf);
                let encoding = offered.find(|encoding| clause.covers(encoding.media_type()))?;
                let is_pretty = clause.parameter("pretty") == Some("1");
                Some(PageForm::Object { encoding: *encoding, version, is_pretty })
            }
            _ => None,
        }
    });
    let types = if offer.contains(&Encoding::Cbor) { PAGES_WITH_CBOR } else { PAGES };
    chosen.ok_or_else(|| Box::new(Status::not_acceptable(types)))
}

/// Of what is on offer under these types, what the client accepts first. Who accepts nothing by name accepts anything.
pub(crate) fn first_accepted<T: Copy>(headers: &HeaderMap, offered: &[(&str, T)]) -> Option<T> {
    let accept = Some(accept(headers)).filter(|accept| !accept.is_empty()).unwrap_or("*/*");
    Accept::parse(accept).clauses().iter().find_map(|clause| {
        offered.iter().find(|(media_type, _)| clause.covers_part(media_type)).map(|(_, offer)| *offer)
    })
}

/// Whether what a clause says of streams makes sense in this encoding.
fn allows_stream(clause: &Clause<'_>, encoding: Encoding) -> bool {
    clause.parameter("stream").is_none_or(|stream| stream == "watch" && encoding.stream_type().is_some())
}

/// Whether a clause asks for the aggregated form of discovery.
fn is_aggregated(clause: &Clause<'_>, encoding: Encoding) -> bool {
    let target = (clause.parameter("g"), clause.parameter("v"), clause.parameter("as"));
    target == (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList"))
        && clause.parameter("sv").is_none()
        && allows_stream(clause, encoding)
}

/// What a clause asks for in this encoding; `None` if that cannot be had.
fn accepted(clause: &Clause<'_>, encoding: Encoding, offer: Offer) -> Option<Accepted> {
    if !allows_stream(clause, encoding) {
        return None;
    }
    // Only what is about a resource has a version for it.
    if clause.parameter("sv").is_some_and(|version| version != "v1" || offer == Offer::Plain) {
        return None;
    }
    let target = (clause.parameter("as"), clause.parameter("g"), clause.parameter("v"));
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
    offer.has(encoding, form).then(|| Accepted { encoding, form, is_pretty: clause.parameter("pretty") == Some("1") })
}

/// Whether the answer should be laid out for a person: when asked for, or when a browser or curl asks and does not say.
pub(crate) fn is_pretty(headers: &HeaderMap, asked: &str) -> bool {
    match asked {
        "" => {
            let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|person| agent.starts_with(person))
        }
        // What Go takes for a truth.
        "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
