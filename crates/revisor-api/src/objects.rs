//! The verbs on objects: what HTTP says, turned into a request to the registry, and its result turned into an answer.

mod connections;
mod insides;
mod log_options;
mod pod_actions;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::upgrade::OnUpgrade;
use revisor_audit::MAX_OBJECT;
use revisor_auth::Identity;
use revisor_cache::Footprint;
use revisor_catalog::{DeleteAnswer, Feature, Moment, ObjectRoute, Requester, Resource, Verb};
use revisor_object::names::NameRule;
use revisor_object::{Object, Status, StatusDetails, Value, compact_json, is_printable, parse_json, parse_yaml};
use revisor_registry::{
    AdmissionNotes, Decoded, DeleteOptions, Deleted, Format, GetRequest, Got, ListRequest, PatchKind, Place,
    RegistryError, Saved, Selection, SentOptions, WatchRequest, Watched, WriteOptions, is_light,
};
use revisor_schema::{is_spelled, read_cbor_map};

pub(crate) use insides::Insides;

use crate::accounting::Accounting;
use crate::cut_off::CutOff;
use crate::encoding::Encoding;
use crate::inflight::WatchHold;
use crate::list_body::{ListBody, cannot_be_listed, whole_list};
use crate::metrics::COMPONENT;
use crate::query::{ListNumbers, Query, SaidOfWrite};
use crate::representation::{Answer, ListMetadata, Representation, no_yaml};
use crate::request_info::selected_name;
use crate::unread_body::UnreadBody;
use crate::unread_lists::UnreadList;
use crate::watch_body::{WatchBody, WatchOptions};
use crate::web_socket::{self, WebSocketUpgrade};
use crate::{
    Api, Body, LongRunning, MAX_REQUEST_BODY, RequestBodyError, RequestLabels, TooManyRequests, answer, content_type,
    pretty, read_body,
};

/// When the time of a request is over; one of its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(pub(crate) Instant);

/// What a program that calls itself something odd is called, without what is not printed (upstream:
/// `prefixFromUserAgent`); one of the extensions of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OddProgram(String);

impl OddProgram {
    /// The name of a program that is not plain.
    pub(crate) fn of(headers: &HeaderMap) -> Option<OddProgram> {
        let agent = headers.get(USER_AGENT)?.as_bytes();
        let program = agent.split(|byte| *byte == b'/').next().unwrap_or_default();
        if program.iter().all(|byte| matches!(byte, b' '..=b'~')) {
            return None;
        }
        let mut name: String = String::from_utf8_lossy(program).chars().filter(|it| is_printable(*it)).collect();
        name.truncate(name.floor_char_boundary(MAX_FIELD_MANAGER));
        Some(OddProgram(name))
    }
}

/// Why a request on objects was not done.
pub(crate) enum Refusal {
    Registry(RegistryError),
    Status(Box<Status>),
    TooMany(TooManyRequests),
}

impl Refusal {
    /// How the client is told. Until here an error is what it was where it was made.
    pub(crate) fn response(self, representation: &Representation) -> Response<Body> {
        match self {
            Refusal::Status(status) => representation.status(&status),
            Refusal::TooMany(refusal) => refusal.response(),
            Refusal::Registry(error) => {
                if let RegistryError::Store(error) = &error {
                    tracing::error!(error = error as &dyn std::error::Error, "the store failed a request");
                }
                representation.status(&answer::error_status(&error))
            }
        }
    }
}

impl From<RegistryError> for Refusal {
    fn from(error: RegistryError) -> Refusal {
        Refusal::Registry(error)
    }
}

impl From<TooManyRequests> for Refusal {
    fn from(refusal: TooManyRequests) -> Refusal {
        Refusal::TooMany(refusal)
    }
}

impl From<Box<Status>> for Refusal {
    fn from(status: Box<Status>) -> Refusal {
        Refusal::Status(status)
    }
}

impl Api {
    pub(crate) async fn serve_objects(
        &self,
        route: ObjectRoute,
        verb: Verb,
        request: Request<UnreadBody>,
        representation: &Representation,
    ) -> Response<Body> {
        if let Some(status) = unusable_name(&route) {
            return representation.status(&status);
        }
        let notes = AdmissionNotes::default();
        // All but the smallest and most frequent are boxed: a request is as large as the largest of what it may turn out
        // to be, and is moved several times before it begins.
        let served = match verb {
            verb if pod_actions::is_pod_action(&route, verb) => {
                Box::pin(self.serve_pod_action(&route, verb, request, &notes, representation)).await
            }
            Verb::Get => self.get(&route, &request, representation).await,
            Verb::List => Box::pin(self.list(&route, &request, representation)).await,
            Verb::Watch => Box::pin(self.watch(&route, &request, representation)).await,
            Verb::Create => Box::pin(self.create(&route, request, &notes, representation)).await,
            Verb::Update => Box::pin(self.update(&route, request, &notes, representation)).await,
            Verb::Patch => Box::pin(self.patch(&route, request, &notes, representation)).await,
            Verb::Delete => Box::pin(self.delete(&route, request, &notes, representation)).await,
            Verb::DeleteCollection => Box::pin(self.delete_collection(&route, request, &notes, representation)).await,
        };
        if let Some(record) = representation.record() {
            for note in notes.take_annotations() {
                if !note.of_request || record.wants_request() {
                    record.annotate(&note.key, &note.value);
                }
            }
        }
        let mut response = match served {
            Ok(response) => response,
            Err(refusal) => {
                let mut response = refusal.response(representation);
                answer::add_warnings(&mut response, notes.take_sent());
                response
            }
        };
        // Who did not get as far as the kind is not told of it.
        answer::add_warnings(&mut response, notes.take_warnings());
        Accounting::note_elsewhere(&mut response, notes.webhook_time());
        if representation.passes_route() {
            answer::add_deprecation(&mut response, &route.resource);
        }
        response
    }

    async fn get(
        &self,
        route: &ObjectRoute,
        request: &Request<UnreadBody>,
        representation: &Representation,
    ) -> Result<Response<Body>, Refusal> {
        let query = Query::parse(request.uri().query());
        representation.require(Answer::Object)?;
        if query.truth("export") == Some(true) {
            let message = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(Box::new(Status::bad_request(message)).into());
        }
        let registry = &self.options.registry;
        let place = GetRequest {
            resource: &route.resource,
            namespace: route.namespace.as_deref(),
            name: route.name.as_deref().unwrap_or_default(),
            resource_version: query.text("resourceVersion"),
            resource_version_match: query.text("resourceVersionMatch"),
        };
        let got = match route.subresource.as_deref() {
            Some("scale") => Box::pin(registry.get_scale(place)).await?,
            Some("fields") if route.is_about("versioning.revisor.dev", "versionreports") => {
                Box::pin(self.version_fields(place, request)).await?
            }
            _ => registry.get(place).await?,
        };
        let write = || representation.object(StatusCode::OK, got.bytes.clone(), got.item.as_deref(), now());
        let response = if !representation.is_work() || is_light(got.bytes.len()) {
            write()?
        } else {
            let user = request.extensions().get::<Identity>().map_or("", Identity::name);
            Box::pin(self.workbench.run(user, async { write() })).await?
        };
        Ok(answer::served_at(response, got.served_at))
    }

    /// How the fields of a definition's versions are used: every object of it is looked at.
    async fn version_fields(&self, place: GetRequest<'_>, request: &Request<UnreadBody>) -> Result<Got, Refusal> {
        let registry = &self.options.registry;
        let user = request.extensions().get::<Identity>().map_or("", Identity::name);
        let work = pin!(registry.version_fields(place.resource, place.name));
        Ok(self.at_the_bench(user, registry.version_fields_weight(place.name), work).await?)
    }

    /// Which objects a list or watch is about, if what it says of versions goes together.
    fn selection(&self, route: &ObjectRoute, query: &Query<'_>, is_watch: bool) -> Result<Selection, RegistryError> {
        let check = || self.options.registry.validate_versions(&query.versions(), is_watch);
        Selection::parse_between(&route.resource, query.text("labelSelector"), query.text("fieldSelector"), check)
    }

    async fn list(
        &self,
        route: &ObjectRoute,
        request: &Request<UnreadBody>,
        representation: &Representation,
    ) -> Result<Response<Body>, Refusal> {
        let query = Query::parse(request.uri().query());
        representation.require(Answer::List)?;
        let ListNumbers { limit, .. } = query.list_numbers()?;
        let selection = self.selection(route, &query, false)?;
        let registry = &self.options.registry;
        let wanted_items = ListRequest {
            resource: &route.resource,
            namespace: route.namespace.as_deref(),
            selection: &selection,
            versions: query.versions(),
            limit,
        };
        let user = request.extensions().get::<Identity>().map_or("", Identity::name);
        let work = pin!(registry.list(wanted_items));
        let listed = self.at_the_bench(user, registry.list_weight(&wanted_items), work).await?;
        let (revision, footprint) = (listed.revision, listed.footprint.clone());
        let shape = representation.list(&route.resource, now())?;
        let (encoding, is_pretty) = (shape.encoding(), shape.is_pretty());
        if cannot_be_listed(&shape, &listed) {
            return Err(no_yaml().into());
        }
        if let Some(record) = representation.record().filter(|record| record.wants_response()) {
            match ListBody::new(shape.in_json(), listed.clone()).whole(MAX_OBJECT) {
                Some(json) => record.answered(json),
                None => record.too_large(),
            }
        }
        let mut list = ListBody::new(shape, listed);
        let mut cut_off = None;
        if let Some(footprint) = footprint.filter(|_| !list.is_made()) {
            let footprint = match list.page_bytes() {
                Some(bytes) => footprint.of_part(bytes),
                None => footprint,
            };
            list.watched_by(self.hold_on_to(&route.resource, footprint, &mut cut_off));
        }
        let body = Body::stream(list);
        let body = if is_pretty { pretty::prettify(body) } else { body };
        let mut response = answer::encoded(StatusCode::OK, encoding, body);
        if let Some(cut_off) = cut_off {
            response.extensions_mut().insert(cut_off);
        }
        Ok(answer::served_at(response, revision))
    }

    async fn watch(
        &self,
        route: &ObjectRoute,
        request: &Request<UnreadBody>,
        representation: &Representation,
    ) -> Result<Response<Body>, Refusal> {
        let query = Query::parse(request.uri().query());
        representation.require(Answer::Events)?;
        let upgrade = request.extensions().get::<OnUpgrade>().filter(|_| web_socket::is_asked_for(request.headers()));
        let numbers = query.list_numbers()?;
        let selection = self.selection(route, &query, true)?;
        let shape = representation.events(&route.resource)?;
        // As messages, events need no length before them.
        let (is_text, is_prefixed) = (shape.encoding().is_text(), shape.encoding() == Encoding::Protobuf);
        let lifetime = self.watch_lifetime(numbers.timeout_seconds);
        let user = request.extensions().get::<Identity>().cloned().unwrap_or_else(Identity::anonymous);
        let place = self.options.inflight.watch(&user)?;
        let hold = request.extensions().get::<WatchHold>().cloned().unwrap_or_default();
        let watched = self
            .options
            .registry
            .watch(WatchRequest {
                resource: &route.resource,
                namespace: route.namespace.as_deref(),
                name: route.name.as_deref(),
                selection: &selection,
                versions: query.versions(),
            })
            .await?;
        let resource = &route.resource;
        let mut cut_off = None;
        let body = match watched {
            Watched::Failed(error) => Body::stream(OneFrame(Some(shape.error_frame(&answer::error_status(&error))))),
            Watched::Stream(watcher) => {
                let labels = RequestLabels {
                    verb: "WATCH",
                    group: &resource.group,
                    version: &resource.version,
                    resource: &resource.plural,
                    scope: match (&route.name, &route.namespace) {
                        _ if selected_name(&query).is_some() => "resource",
                        (Some(_), _) => "resource",
                        (None, Some(_)) => "namespace",
                        (None, None) => "cluster",
                    },
                    component: COMPONENT,
                    ..RequestLabels::default()
                };
                let metrics = &self.options.metrics;
                let footprint = watcher.initial_footprint().filter(|footprint| footprint.bytes() > SMALL_STATE);
                let unread = footprint.map(|footprint| self.hold_on_to(resource, footprint, &mut cut_off));
                let (seat, tracked) = hold.take();
                // Where no state comes first, the watch has begun.
                let seat = seat.filter(|_| watcher.initial_footprint().is_some());
                Body::stream(WatchBody::new(
                    watcher,
                    WatchOptions {
                        shape,
                        bookmarks: query.truth("allowWatchBookmarks") == Some(true),
                        completes_state: self.features().has(Feature::WatchList),
                        apart: upgrade.is_some(),
                        lifetime,
                        sent: metrics.watch_events(&resource.group, &resource.version, &resource.plural),
                        end: self.options.drain.watches_should_end(),
                        guard: metrics.requests(&labels).long_running(),
                        place,
                        seat,
                        tracked,
                        unread,
                    },
                ))
            }
        };
        let mut response = match upgrade {
            Some(upgrade) => {
                let mut response = web_socket::handshake(request.headers());
                if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                    return Ok(response);
                }
                response.extensions_mut().insert(WebSocketUpgrade { upgrade: upgrade.clone(), is_text });
                *response.body_mut() = if is_prefixed { Body::stream(WithoutLengths(body)) } else { body };
                response
            }
            None => representation.stream(body),
        };
        response.extensions_mut().insert(LongRunning);
        if let Some(cut_off) = cut_off {
            response.extensions_mut().insert(cut_off);
        }
        Ok(response)
    }

    /// Notes that a state is held on to for an answer, which can be ended by the handle that it has to bear.
    fn hold_on_to(&self, resource: &Resource, footprint: Footprint, cut_off: &mut Option<CutOff>) -> UnreadList {
        let cut_off = cut_off.insert(CutOff::default()).clone();
        self.options.inflight.lists().begin(&resource.collection(None), footprint, cut_off)
    }

    /// How long a watch lasts: as long as the client says, or some time between the least and twice that, so that
    /// watches that began together do not end together.
    fn watch_lifetime(&self, asked: Option<i64>) -> Duration {
        match asked.filter(|seconds| *seconds != 0) {
            // As in the original, a time that was over before it began ends the watch at once.
            Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default().min(MAX_WATCH_SECONDS)),
            None => {
                let least = self.options.min_request_timeout;
                let spread = uuid::Uuid::new_v4().as_u128() % (least.as_millis().max(1));
                least + Duration::from_millis(spread as u64)
            }
        }
    }

    async fn create(
        &self,
        route: &ObjectRoute,
        request: Request<UnreadBody>,
        notes: &AdmissionNotes,
        representation: &Representation,
    ) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        representation.require(Answer::Object)?;
        let options = write_options(query.write_options("CreateOptions")?, route, &query, &parts, notes);
        let format = body_format(&parts.headers, representation)?;
        let text = self.read(body).await?;
        let work = pin!(async {
            if route.is_about("", "serviceaccounts") && route.subresource.as_deref() == Some("token") {
                // Boxed, as reviews are: all others would carry the room for it about.
                let saved = Box::pin(self.request_token(route, format, &text, options, representation)).await?;
                return Ok(answer_saved(representation, saved)?);
            }
            let decoded = Decoded::read(&route.resource, format, &text, options.validation)?;
            note_sent(representation, &route.resource, decoded.object());
            if !route.resource.is_stored() {
                let user = parts.extensions.get::<Identity>().cloned().unwrap_or_else(Identity::anonymous);
                let warnings = decoded.warnings.clone();
                notes.keep_sent(&warnings);
                let bytes = Box::pin(self.review(route, &user, decoded.into_object(), options)).await?;
                return Ok(answer_saved(representation, Saved::new(bytes, true, warnings))?);
            }
            // Whatever the path names: a new object says itself what it is called.
            let saved = self.options.registry.create(Place { name: None, ..place(route) }, decoded, options).await?;
            Ok(answer_saved(representation, saved)?)
        });
        self.at_the_bench(options.requester.name, self.options.registry.weight(place(route), text.len()), work).await
    }

    async fn update(
        &self,
        route: &ObjectRoute,
        request: Request<UnreadBody>,
        notes: &AdmissionNotes,
        representation: &Representation,
    ) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        representation.require(Answer::Object)?;
        let options = write_options(query.write_options("UpdateOptions")?, route, &query, &parts, notes);
        let format = body_format(&parts.headers, representation)?;
        let text = self.read(body).await?;
        let resource = self.options.registry.body_resource(&route.resource, options.subresource);
        let work = pin!(async {
            let decoded = Decoded::read(resource, format, &text, options.validation)?;
            note_sent(representation, resource, decoded.object());
            let saved = self.options.registry.update(place(route), decoded, options).await?;
            Ok(answer_saved(representation, saved)?)
        });
        self.at_the_bench(options.requester.name, self.options.registry.weight(place(route), text.len()), work).await
    }

    async fn patch(
        &self,
        route: &ObjectRoute,
        request: Request<UnreadBody>,
        notes: &AdmissionNotes,
        representation: &Representation,
    ) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        // That a patch cannot be read is said before that its answer cannot be had.
        let is_custom = route.resource.custom().is_some();
        let has_cbor = representation.encodings().contains(&Encoding::Cbor);
        let sent = content_type::patch_kind(&parts.headers, has_cbor)
            .filter(|kind| !is_custom || *kind != PatchKind::Strategic);
        let Some(kind) = sent else {
            if !is_custom && !content_type::is_routed_patch(&parts.headers, has_cbor) {
                return Ok(representation.status_at_route(&content_type::unrouted_patch()));
            }
            return Err(content_type::unsupported_patch(is_custom, has_cbor).into());
        };
        representation.require(Answer::Object)?;
        let is_apply = kind.is_apply();
        let (said, force) = query.patch_options(is_apply)?;
        let options = WriteOptions { is_apply, force, ..write_options(said, route, &query, &parts, notes) };
        let text = self.read(body).await?;
        let weight = self.options.registry.weight(place(route), text.len());
        let work = pin!(async {
            note_patch(representation, kind == PatchKind::ApplyCbor, &text);
            let saved = self.options.registry.patch(place(route), kind, &text, options).await?;
            Ok(answer_saved(representation, saved)?)
        });
        self.at_the_bench(options.requester.name, weight, work).await
    }

    async fn delete(
        &self,
        route: &ObjectRoute,
        request: Request<UnreadBody>,
        notes: &AdmissionNotes,
        representation: &Representation,
    ) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        representation.require(Answer::Object)?;
        let options = self.delete_options(&parts, body, representation).await?;
        let write = deletion(&parts, notes);
        let work = pin!(self.options.registry.delete_for(place(route), &options, write));
        let deleted =
            self.at_the_bench(write.requester.name, self.options.registry.weight(place(route), 0), work).await?;
        match deleted {
            Deleted::Marked(bytes) => {
                // Only who asked in the older way for dependents to go too is told that it has not happened yet.
                let is_awaited = options.orphan_dependents == Some(false);
                let code = if is_awaited { StatusCode::ACCEPTED } else { StatusCode::OK };
                Ok(representation.object(code, bytes, None, now())?)
            }
            Deleted::Gone { bytes, uid } => match route.resource.rules.delete_answer {
                DeleteAnswer::Object => Ok(representation.object(StatusCode::OK, bytes, None, now())?),
                DeleteAnswer::Status => {
                    let details = StatusDetails {
                        name: route.name.clone().unwrap_or_default(),
                        group: route.resource.group.to_string(),
                        kind: route.resource.plural.to_string(),
                        uid,
                        ..StatusDetails::default()
                    };
                    Ok(representation.done(StatusCode::OK, &Status::success(details)))
                }
            },
            Deleted::Unread => {
                let details = StatusDetails {
                    name: route.name.clone().unwrap_or_default(),
                    kind: route.resource.kind.to_string(),
                    ..StatusDetails::default()
                };
                let mut status = Status::success(details);
                status.code = StatusCode::OK.as_u16();
                Ok(representation.done(StatusCode::OK, &status))
            }
        }
    }

    async fn delete_collection(
        &self,
        route: &ObjectRoute,
        request: Request<UnreadBody>,
        notes: &AdmissionNotes,
        representation: &Representation,
    ) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        representation.require(Answer::Object)?;
        let ListNumbers { limit, .. } = query.list_numbers()?;
        let selection = self.selection(route, &query, false)?;
        let options = self.delete_options(&parts, body, representation).await?;
        let registry = &self.options.registry;
        let resource = &route.resource;
        let selected = ListRequest {
            resource,
            namespace: route.namespace.as_deref(),
            selection: &selection,
            versions: query.versions(),
            limit,
        };
        let deleted = registry.delete_collection(selected, &options, deletion(&parts, notes)).await?;
        let shape = representation.list(resource, now())?;
        let list_metadata = || ListMetadata {
            revision: deleted.revision.map(|revision| revision.to_string()),
            token: deleted.continue_token.as_deref(),
            remaining: deleted.remaining,
        };
        let list = whole_list(&shape, &deleted.objects, &shape.metadata(list_metadata()));
        if let Some(record) = representation.record().filter(|record| record.wants_response()) {
            let json = shape.in_json();
            record.answered(whole_list(&json, &deleted.objects, &json.metadata(list_metadata())));
        }
        let body = Body::from(list);
        let body = if shape.is_pretty() { pretty::prettify(body) } else { body };
        Ok(answer::encoded(StatusCode::OK, shape.encoding(), body))
    }

    /// How to delete: as the body says, if there is one, or else as the query says.
    async fn delete_options(
        &self,
        parts: &http::request::Parts,
        body: UnreadBody,
        representation: &Representation,
    ) -> Result<DeleteOptions, Refusal> {
        let text = self.read(body).await?;
        if text.is_empty() {
            return Ok(Query::parse(parts.uri.query()).delete_options()?);
        }
        let format = body_format(&parts.headers, representation)?;
        note_delete_options(representation, format == Format::Cbor, &text);
        Ok(DeleteOptions::read(self.options.registry.built_in(), format, &text)?)
    }

    /// Does what is left of a request once it is known how much it is about: where it holds up nobody, if that is much.
    /// Upholds R2. It is pinned by the caller, because a future that takes another by value has room for it twice, and
    /// all of that is moved about with every request.
    async fn at_the_bench<F: Future>(&self, user: &str, bytes: usize, work: Pin<&mut F>) -> F::Output {
        if is_light(bytes) { work.await } else { self.workbench.run(user, work).await }
    }

    /// The body of a request, which takes its place in flight when that is there.
    async fn read(&self, mut body: UnreadBody) -> Result<Bytes, Refusal> {
        let inflight = &self.options.inflight;
        let entrance = body.take_entrance();
        let announced = body.size_hint().exact();
        let room = entrance.as_ref().map(|entrance| entrance.receive(inflight, announced)).transpose()?;
        let deadline = tokio::time::Instant::now() + self.options.request_timeout;
        let reading = pin!(read_body(body, MAX_REQUEST_BODY, deadline));
        let received = match &entrance {
            Some(entrance) => entrance.meanwhile(inflight, reading).await,
            None => reading.await,
        };
        let bytes = received.map_err(|error| {
            Box::new(match error {
                RequestBodyError::TooLarge { limit } => Status::request_entity_too_large(format!("limit is {limit}")),
                RequestBodyError::TimedOut => Status::timeout("the request body was not received in time", 1),
                RequestBodyError::Broken(error) => {
                    Status::bad_request(format!("the request body could not be read: {error}"))
                }
            })
        })?;
        drop(room);
        if let Some(entrance) = entrance {
            entrance.enter(inflight).await?;
        }
        Ok(bytes)
    }
}

/// Writes down an object that was sent, with what it means where it says nothing, as the original does.
pub(crate) fn note_sent(representation: &Representation, resource: &Arc<Resource>, object: &Object) {
    let Some(record) = representation.record() else { return };
    record.sent_metadata(object);
    if record.wants_request() {
        let mut object = object.clone();
        resource.to_stored(&mut object);
        resource.working().default(&mut object);
        resource.to_shown(&mut object);
        let json = if resource.custom().is_none() {
            let bytes = resource.encode_as_it_is(&object);
            if is_spelled(&bytes) { compact_json(&bytes).into_owned() } else { bytes }
        } else {
            object.insert("apiVersion", resource.api_version.as_str());
            object.insert("kind", resource.kind.to_string());
            Value::from(object).to_json().into()
        };
        record.sent(json.into());
    }
}

/// Writes down how something is to be deleted, under the name that the original's own type has.
fn note_delete_options(representation: &Representation, is_cbor: bool, text: &[u8]) {
    note_json(representation, is_cbor, text, |value| {
        if let Some(options) = value.as_object_mut() {
            options.insert("kind", "DeleteOptions");
            options.insert("apiVersion", "meta.k8s.io/__internal");
        }
    });
}

/// Writes down a patch as it was sent.
fn note_patch(representation: &Representation, is_cbor: bool, text: &[u8]) {
    note_json(representation, is_cbor, text, |_| {});
}

fn note_json(representation: &Representation, is_cbor: bool, text: &[u8], name: impl FnOnce(&mut Value)) {
    let Some(record) = representation.record().filter(|record| record.wants_request()) else { return };
    let value = match is_cbor {
        true => read_cbor_map(text).ok(),
        false => parse_json(text).ok().or_else(|| parse_yaml(text).ok()).map(|parsed| parsed.value),
    };
    if let Some(mut value) = value {
        name(&mut value);
        record.sent(value.to_json().into());
    }
}

/// Up to how many bytes a state may have that is held on to without being counted.
const SMALL_STATE: u64 = 64 * 1024;

/// How long the name of a field manager may be.
const MAX_FIELD_MANAGER: usize = 128;

/// No client needs a watch for longer than this, and timers have an end.
const MAX_WATCH_SECONDS: u64 = 10 * 365 * 24 * 60 * 60;

/// Who asks; known since the request was authenticated.
fn requester(parts: &http::request::Parts) -> Requester<'_> {
    let identity = parts.extensions.get::<Identity>();
    identity.map_or_else(Requester::default, |identity| Requester {
        name: identity.name(),
        uid: identity.uid().unwrap_or_default(),
        groups: identity.groups(),
        extra: identity.extra(),
    })
}

/// Who deletes, and where what they should be told is left. How is said by the options of the deletion.
fn deletion<'a>(parts: &'a http::request::Parts, notes: &'a AdmissionNotes) -> WriteOptions<'a> {
    WriteOptions {
        requester: requester(parts),
        deadline: parts.extensions.get::<Deadline>().map(|deadline| deadline.0),
        notes: Some(notes),
        ..WriteOptions::default()
    }
}

/// What a request says about the way it writes.
fn write_options<'a>(
    (dry_run, validation): SaidOfWrite,
    route: &'a ObjectRoute,
    query: &'a Query<'_>,
    parts: &'a http::request::Parts,
    notes: &'a AdmissionNotes,
) -> WriteOptions<'a> {
    WriteOptions {
        dry_run,
        subresource: route.subresource.as_deref(),
        validation,
        requester: requester(parts),
        field_manager: field_manager(query, parts),
        deadline: parts.extensions.get::<Deadline>().map(|deadline| deadline.0),
        sent: SentOptions {
            dry_run,
            field_manager: query.text("fieldManager"),
            field_validation: query.text("fieldValidation"),
        },
        notes: Some(notes),
        ..WriteOptions::default()
    }
}

/// In whose name a write is recorded: as the query says, or else as the program calls itself.
fn field_manager<'a>(query: &'a Query<'_>, parts: &'a http::request::Parts) -> &'a str {
    match query.text("fieldManager") {
        "" => {
            let program = match parts.extensions.get::<OddProgram>() {
                Some(OddProgram(name)) => name,
                None => {
                    let agent = parts.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
                    agent.split('/').next().unwrap_or_default()
                }
            };
            match program.get(..MAX_FIELD_MANAGER).unwrap_or(program) {
                "" => "unknown",
                program => program,
            }
        }
        name => name,
    }
}

pub(crate) fn place(route: &ObjectRoute) -> Place<'_> {
    Place { resource: &route.resource, namespace: route.namespace.as_deref(), name: route.name.as_deref() }
}

/// What a client is told about a name that no object can have, because it would not be one segment of a path.
fn unusable_name(route: &ObjectRoute) -> Option<Status> {
    let name = route.name.as_deref()?;
    let problems = NameRule::PathSegment.check(name);
    let refused = || Status::bad_request(format!("Name parameter invalid: {name:?}: {}", problems.join(";")));
    (!problems.is_empty()).then(refused)
}

fn body_format(headers: &http::HeaderMap, representation: &Representation) -> Result<Format, Box<Status>> {
    let encodings = representation.encodings();
    let unsupported = || Box::new(Status::unsupported_media_type(&Encoding::media_types(encodings)));
    content_type::body_format(headers, encodings.contains(&Encoding::Cbor)).ok_or_else(unsupported)
}

fn answer_saved(representation: &Representation, saved: Saved) -> Result<Response<Body>, Box<Status>> {
    let code = if saved.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = representation.object(code, saved.bytes, None, now())?;
    answer::add_warnings(&mut response, saved.warnings);
    Ok(response)
}

/// Ages are reckoned from here.
fn now() -> Moment {
    Moment::from(SystemTime::now())
}

/// A stream of one line.
struct OneFrame(Option<Bytes>);

impl crate::ByteSource for OneFrame {
    fn poll_next(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Option<Bytes>> {
        std::task::Poll::Ready(self.0.take())
    }
}

/// Events without the four bytes of their length before them.
struct WithoutLengths(Body);

impl crate::ByteSource for WithoutLengths {
    fn poll_next(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<Bytes>> {
        self.0.poll_next(cx).map(|event| event.map(|event| event.slice(event.len().min(4)..)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How large the future is that this makes of a request.
    fn room<F>(
        _: impl FnOnce(&'static Api, &'static ObjectRoute, Request<UnreadBody>, &'static Representation) -> F,
    ) -> usize {
        size_of::<F>()
    }

    fn notes() -> &'static AdmissionNotes {
        Box::leak(Box::default())
    }

    #[test]
    fn programs_are_called_what_can_be_printed_of_their_names() {
        for (agent, want) in [
            (&b"kubectl/v1.36.0 (linux)"[..], None),
            (b"a b", None),
            (b"a\tb/1\t", Some("ab")),
            ("n\u{e9}e\u{200b}/1".as_bytes(), Some("n\u{e9}e")),
            (b"\xe9/1", Some("\u{fffd}")),
            (b"a/\t", None),
        ] {
            let headers = HeaderMap::from_iter([(USER_AGENT, agent.try_into().expect("a header"))]);
            assert_eq!(OddProgram::of(&headers), want.map(|name| OddProgram(name.to_owned())), "{agent:?}");
        }
    }

    #[test]
    fn requests_take_little_room() {
        for (name, room, most) in [
            ("all", room(|api, route, request, how| api.serve_objects(route.clone(), Verb::Get, request, how)), 2048),
            ("get", room(|api, route, request, how| async move { api.get(route, &request, how).await.is_ok() }), 2048),
            ("create", room(|api, route, request, how| api.create(route, request, notes(), how)), 8192),
            ("update", room(|api, route, request, how| api.update(route, request, notes(), how)), 8192),
            ("patch", room(|api, route, request, how| api.patch(route, request, notes(), how)), 8192),
            ("delete", room(|api, route, request, how| api.delete(route, request, notes(), how)), 8192),
        ] {
            assert!(room <= most, "{name} takes {room} bytes, which are moved with every request");
        }
    }
}
