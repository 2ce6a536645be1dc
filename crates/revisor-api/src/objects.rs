//! The verbs on objects: what HTTP says, turned into a request to the registry, and its result turned into an answer.

mod pod_actions;

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Request, Response, StatusCode};
use revisor_auth::Identity;
use revisor_catalog::{DeleteAnswer, ObjectRoute, Requester, Resource, Verb};
use revisor_object::names::NameRule;
use revisor_object::{Status, StatusDetails};
use revisor_registry::{
    Decoded, DeleteOptions, Deleted, Format, GetRequest, ListRequest, PatchKind, Place, RegistryError, Saved,
    Selection, WatchRequest, Watched, WriteOptions,
};

use crate::list_body::{ItemWriter, ListBody, list_head};
use crate::query::Query;
use crate::unread_body::UnreadBody;
use crate::watch_body::{WatchBody, WatchOptions, error_frame};
use crate::{Api, Body, LongRunning, MAX_REQUEST_BODY, RequestBodyError, RequestLabels, answer, negotiate, read_body};

/// How the metrics call a verb.
pub(crate) fn metric_name(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "POST",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Patch => "PATCH",
        Verb::Update => "PUT",
        Verb::Watch => "WATCH",
    }
}

/// Why a request on objects was not done.
enum Refusal {
    Registry(RegistryError),
    Status(Box<Status>),
}

impl From<RegistryError> for Refusal {
    fn from(error: RegistryError) -> Refusal {
        Refusal::Registry(error)
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
    ) -> Response<Body> {
        if let Some(status) = unusable_name(&route) {
            return answer::status(&status);
        }
        let served = match verb {
            verb if pod_actions::is_pod_action(&route, verb) => self.serve_pod_action(&route, verb, request).await,
            Verb::Get => self.get(&route, &request).await,
            Verb::List => self.list(&route, &request).await,
            Verb::Watch => self.watch(&route, &request).await,
            Verb::Create => self.create(&route, request).await,
            Verb::Update => self.update(&route, request).await,
            Verb::Patch => self.patch(&route, request).await,
            Verb::Delete => self.delete(&route, request).await,
            Verb::DeleteCollection => self.delete_collection(&route, request).await,
        };
        let mut response = match served {
            Ok(response) => response,
            Err(Refusal::Status(status)) => answer::status(&status),
            Err(Refusal::Registry(error)) => {
                if let RegistryError::Store(error) = &error {
                    tracing::error!(error = error as &dyn std::error::Error, "the store failed a request");
                }
                answer::status(&answer::error_status(&error))
            }
        };
        answer::add_warnings(&mut response, route.resource.deprecation.as_slice());
        response
    }

    async fn get(&self, route: &ObjectRoute, request: &Request<UnreadBody>) -> Result<Response<Body>, Refusal> {
        check_accept(request)?;
        let query = Query::parse(request.uri().query());
        let registry = &self.options.registry;
        let wanted = GetRequest {
            resource: &route.resource,
            namespace: route.namespace.as_deref(),
            name: route.name.as_deref().unwrap_or_default(),
            resource_version: query.text("resourceVersion"),
            resource_version_match: query.text("resourceVersionMatch"),
        };
        let got = match route.subresource.as_deref() {
            Some("scale") => registry.get_scale(wanted).await?,
            _ => registry.get(wanted).await?,
        };
        Ok(answer::json_served_at(got.bytes, got.served_at))
    }

    async fn list(&self, route: &ObjectRoute, request: &Request<UnreadBody>) -> Result<Response<Body>, Refusal> {
        check_accept(request)?;
        let query = Query::parse(request.uri().query());
        let selection = selection(route, &query)?;
        let limit = query.number("limit")?.unwrap_or_default();
        query.number("timeoutSeconds")?;
        let listed = self
            .options
            .registry
            .list(ListRequest {
                resource: &route.resource,
                namespace: route.namespace.as_deref(),
                selection: &selection,
                versions: query.versions(),
                limit,
            })
            .await?;
        let revision = listed.revision;
        Ok(answer::json_served_at(Body::stream(ListBody::new(&route.resource, listed)), revision))
    }

    async fn watch(&self, route: &ObjectRoute, request: &Request<UnreadBody>) -> Result<Response<Body>, Refusal> {
        check_accept(request)?;
        let query = Query::parse(request.uri().query());
        let selection = selection(route, &query)?;
        query.number("limit")?;
        let lifetime = self.watch_lifetime(query.number("timeoutSeconds")?);
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
        let body = match watched {
            Watched::Failed(error) => Body::stream(OneFrame(Some(error_frame(&answer::error_status(&error))))),
            Watched::Stream(watcher) => {
                let labels = RequestLabels {
                    verb: "WATCH",
                    group: resource.group,
                    version: resource.version,
                    resource: resource.plural,
                    scope: if route.namespace.is_some() { "namespace" } else { "cluster" },
                    ..RequestLabels::default()
                };
                let metrics = &self.options.metrics;
                Body::stream(WatchBody::new(
                    watcher,
                    WatchOptions {
                        resource: resource.clone(),
                        bookmarks: query.truth("allowWatchBookmarks") == Some(true),
                        lifetime,
                        sent: metrics.watch_events(resource.group, resource.version, resource.plural),
                        end: self.options.drain.watches_should_end(),
                        guard: metrics.requests(&labels).long_running(),
                    },
                ))
            }
        };
        let mut response = answer::json(StatusCode::OK, body);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.extensions_mut().insert(LongRunning);
        Ok(response)
    }

    /// How long a watch lasts: as long as the client says, or some time between the least and twice that, so that
    /// watches that began together do not end together.
    fn watch_lifetime(&self, asked: Option<i64>) -> Duration {
        match asked.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0) {
            Some(seconds) => Duration::from_secs(seconds.min(MAX_WATCH_SECONDS)),
            None => {
                let least = self.options.min_request_timeout;
                let spread = uuid::Uuid::new_v4().as_u128() % (least.as_millis().max(1));
                least + Duration::from_millis(spread as u64)
            }
        }
    }

    async fn create(&self, route: &ObjectRoute, request: Request<UnreadBody>) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        check_accept_headers(&parts.headers)?;
        let query = Query::parse(parts.uri.query());
        let (dry_run, validation) = query.write_options("CreateOptions")?;
        let format = body_format(&parts.headers)?;
        let text = self.read(body).await?;
        let decoded = Decoded::read(&route.resource, format, &text, validation)?;
        let subresource = route.subresource.as_deref();
        let options = WriteOptions {
            dry_run,
            subresource,
            validation,
            requester: requester(&parts),
            field_manager: &field_manager(&query, &parts),
            written_as: &route.resource.api_version,
            ..WriteOptions::default()
        };
        let saved = self.options.registry.create(place(route), decoded, options).await?;
        Ok(answer_saved(saved))
    }

    async fn update(&self, route: &ObjectRoute, request: Request<UnreadBody>) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        check_accept_headers(&parts.headers)?;
        let query = Query::parse(parts.uri.query());
        let (dry_run, validation) = query.write_options("UpdateOptions")?;
        let format = body_format(&parts.headers)?;
        let text = self.read(body).await?;
        let subresource = route.subresource.as_deref();
        let resource = self.options.registry.body_resource(&route.resource, subresource);
        let decoded = Decoded::read(resource, format, &text, validation)?;
        let options = WriteOptions {
            dry_run,
            subresource,
            validation,
            requester: requester(&parts),
            field_manager: &field_manager(&query, &parts),
            written_as: &route.resource.api_version,
            ..WriteOptions::default()
        };
        let saved = self.options.registry.update(place(route), decoded, options).await?;
        Ok(answer_saved(saved))
    }

    async fn patch(&self, route: &ObjectRoute, request: Request<UnreadBody>) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        check_accept_headers(&parts.headers)?;
        let query = Query::parse(parts.uri.query());
        let (dry_run, validation) = query.write_options("PatchOptions")?;
        let Some(kind) = negotiate::patch_kind(&parts.headers) else {
            return Err(Box::new(Status::unsupported_media_type(negotiate::PATCHES)).into());
        };
        let is_apply = kind == PatchKind::Apply;
        let force = query.apply_options(is_apply)?;
        let text = self.read(body).await?;
        let subresource = route.subresource.as_deref();
        let options = WriteOptions {
            dry_run,
            subresource,
            validation,
            requester: requester(&parts),
            field_manager: &field_manager(&query, &parts),
            written_as: &route.resource.api_version,
            is_apply,
            force,
        };
        let saved = self.options.registry.patch(place(route), kind, &text, options).await?;
        Ok(answer_saved(saved))
    }

    async fn delete(&self, route: &ObjectRoute, request: Request<UnreadBody>) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        check_accept_headers(&parts.headers)?;
        let options = self.delete_options(&parts, body).await?;
        let deleted = self.options.registry.delete(place(route), &options).await?;
        let body = match deleted {
            Deleted::Marked(bytes) => bytes,
            Deleted::Gone { bytes, uid } => match route.resource.rules.delete_answer {
                DeleteAnswer::Object => bytes,
                DeleteAnswer::Status => {
                    let details = StatusDetails {
                        name: route.name.clone().unwrap_or_default(),
                        group: route.resource.group.to_owned(),
                        kind: route.resource.plural.to_owned(),
                        uid,
                        ..StatusDetails::default()
                    };
                    Status::success(details).to_json().into()
                }
            },
        };
        Ok(answer::json(StatusCode::OK, body))
    }

    async fn delete_collection(
        &self,
        route: &ObjectRoute,
        request: Request<UnreadBody>,
    ) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        check_accept_headers(&parts.headers)?;
        let query = Query::parse(parts.uri.query());
        let selection = selection(route, &query)?;
        let limit = query.number("limit")?.unwrap_or_default();
        let options = self.delete_options(&parts, body).await?;
        let registry = &self.options.registry;
        let (resource, namespace) = (&route.resource, route.namespace.as_deref());
        let deleted =
            registry.delete_collection(resource, namespace, &selection, query.versions(), limit, &options).await?;
        Ok(answer::json(StatusCode::OK, whole_list(resource, &deleted, registry.cache().revision())))
    }

    /// How to delete: as the body says, if there is one, or else as the query says.
    async fn delete_options(&self, parts: &http::request::Parts, body: UnreadBody) -> Result<DeleteOptions, Refusal> {
        let text = self.read(body).await?;
        if text.is_empty() {
            return Ok(Query::parse(parts.uri.query()).delete_options()?);
        }
        let format = body_format(&parts.headers)?;
        Ok(DeleteOptions::read(self.options.registry.catalog(), format, &text)?)
    }

    async fn read(&self, body: UnreadBody) -> Result<Bytes, Box<Status>> {
        let deadline = tokio::time::Instant::now() + self.options.request_timeout;
        read_body(body, MAX_REQUEST_BODY, deadline).await.map_err(|error| {
            Box::new(match error {
                RequestBodyError::TooLarge { limit } => Status::request_entity_too_large(format!("limit is {limit}")),
                RequestBodyError::TimedOut => Status::timeout("the request body was not received in time", 1),
                RequestBodyError::Broken(error) => {
                    Status::bad_request(format!("the request body could not be read: {error}"))
                }
            })
        })
    }
}

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

/// In whose name a write is recorded: as the query says, or else as the program calls itself.
fn field_manager<'a>(query: &'a Query<'_>, parts: &'a http::request::Parts) -> Cow<'a, str> {
    match query.text("fieldManager") {
        "" => {
            let agent = parts.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
            let program = agent.split('/').next().unwrap_or_default();
            program.get(..MAX_FIELD_MANAGER).unwrap_or(program).into()
        }
        name => name.into(),
    }
}

fn place(route: &ObjectRoute) -> Place<'_> {
    Place { resource: &route.resource, namespace: route.namespace.as_deref(), name: route.name.as_deref() }
}

fn selection(route: &ObjectRoute, query: &Query<'_>) -> Result<Selection, RegistryError> {
    Selection::parse(&route.resource, query.text("labelSelector"), query.text("fieldSelector"))
}

/// What a client is told about a name that no object can have, because it would not be one segment of a path.
fn unusable_name(route: &ObjectRoute) -> Option<Status> {
    let name = route.name.as_deref()?;
    let problems = NameRule::PathSegment.check(name);
    let refused = || Status::bad_request(format!("Name parameter invalid: {name:?}: {}", problems.join(";")));
    (!problems.is_empty()).then(refused)
}

fn check_accept(request: &Request<UnreadBody>) -> Result<(), Box<Status>> {
    check_accept_headers(request.headers())
}

fn check_accept_headers(headers: &http::HeaderMap) -> Result<(), Box<Status>> {
    if negotiate::accepts_json(headers) { Ok(()) } else { Err(Box::new(Status::not_acceptable(negotiate::ANSWERED))) }
}

fn body_format(headers: &http::HeaderMap) -> Result<Format, Box<Status>> {
    negotiate::body_format(headers).ok_or_else(|| Box::new(Status::unsupported_media_type(negotiate::READ)))
}

fn answer_saved(saved: Saved) -> Response<Body> {
    let code = if saved.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = answer::json(code, saved.bytes);
    answer::add_warnings(&mut response, &saved.warnings);
    response
}

/// A list of objects that are no longer stored.
fn whole_list(resource: &Resource, objects: &[Bytes], revision: Option<revisor_version::Revision>) -> Bytes {
    let metadata = format!("{{\"resourceVersion\":\"{}\"}}", revision.map_or(0, |revision| revision.get()));
    let mut list = BytesMut::from(list_head(resource, &metadata).as_bytes());
    let mut is_first = true;
    for object in objects {
        ItemWriter { resource, chunk: &mut list, is_first: &mut is_first }.push(object);
    }
    list.extend_from_slice(b"]}");
    list.freeze()
}

/// A stream of one line.
struct OneFrame(Option<Bytes>);

impl crate::ByteSource for OneFrame {
    fn poll_next(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Option<Bytes>> {
        std::task::Poll::Ready(self.0.take())
    }
}
