//! [`Asked`]: what a request asks for, as far as its head says.

use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use revisor_catalog::{ObjectRoute, Route, Verb};
use revisor_object::{DurationError, ResourceRef, Status};

use crate::audit_trail::Audited;
use crate::encoding::Encoding;
use crate::metrics::COMPONENT;
use crate::query::Query;
use crate::representation::{Codec, Representation};
use crate::unread_body::UnreadBody;
use crate::{Body, RequestKind, RequestLabels, answer, negotiate};

/// The content type of what is applied, as the original compares it for metrics.
const APPLY: &str = "application/apply-patch+yaml";

/// What a request asks for, as far as its head says.
pub(crate) struct Asked {
    pub(super) method: Method,
    /// `None` where the method means nothing there.
    pub(crate) verb: Option<Verb>,
    /// What metrics call the verb, and the dry run.
    metric_verb: &'static str,
    dry_run: &'static str,
    /// For how long the client will wait, if it says so.
    pub(super) timeout: Result<Option<Duration>, DurationError>,
    /// Whether all of discovery is asked for at once.
    is_aggregated: bool,
    /// How it is answered.
    pub(super) representation: Representation,
    /// What is written down of it.
    pub(super) audited: Audited,
}

impl Asked {
    pub(super) fn new(
        codec: &Arc<Codec>,
        encodings: &'static [Encoding],
        route: &Route,
        request: &Request<UnreadBody>,
        audited: Audited,
    ) -> Asked {
        let query = Query::parse(request.uri().query());
        let verb = match route {
            Route::Objects(route) => verb_of(route, request.method(), &query),
            _ => None,
        };
        let metric_verb = match route {
            Route::Objects(route) => metric_verb(route, request, &query),
            _ => "GET",
        };
        Asked {
            method: request.method().clone(),
            verb,
            metric_verb,
            dry_run: match query.text("dryRun") {
                "" => "",
                "All" => "All",
                _ => "invalid",
            },
            timeout: timeout_of(query.text("timeout")),
            is_aggregated: matches!(route, Route::Groups | Route::CoreVersions)
                && negotiate::aggregated_discovery(request.headers(), Encoding::ALL).is_some(),
            representation: Representation::of(codec, encodings, route, request.headers(), &query)
                .audited(audited.clone()),
            audited,
        }
    }

    pub(super) fn kind(&self) -> RequestKind {
        match self.method {
            Method::GET | Method::HEAD | Method::OPTIONS => RequestKind::ReadOnly,
            _ => RequestKind::Mutating,
        }
    }

    /// As what the request is counted once it was served; `None` for what the original does not count: what makes no sense
    /// on its path, and most of what is not about objects.
    pub(super) fn labels<'a>(&'a self, route: &'a Route, path: &'a str) -> Option<RequestLabels<'a>> {
        let own = RequestLabels { verb: "GET", component: COMPONENT, ..RequestLabels::default() };
        match route {
            Route::Objects(route) => self.verb.is_some().then(|| RequestLabels {
                verb: self.metric_verb,
                group: &route.resource.group,
                version: &route.resource.version,
                resource: &route.resource.plural,
                subresource: route.subresource.as_deref().unwrap_or_default(),
                scope: scope_of(route, &self.method),
                dry_run: self.dry_run,
                component: COMPONENT,
            }),
            Route::Groups if self.is_aggregated => Some(RequestLabels { subresource: "/apis", ..own }),
            Route::CoreVersions if self.is_aggregated => Some(RequestLabels { subresource: "/api", ..own }),
            Route::Other => match path {
                "/healthz" | "/livez" | "/readyz" => Some(RequestLabels { subresource: path, component: "", ..own }),
                "/openapi/v3" => Some(RequestLabels { subresource: "openapi/v3", component: "", ..own }),
                "/statusz" => Some(RequestLabels { resource: "statusz", ..own }),
                "/flagz" => Some(RequestLabels { resource: "flagz", ..own }),
                _ if path.starts_with("/openapi/v3/") => {
                    Some(RequestLabels { subresource: "openapi/v3/", component: "", ..own })
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// How much a request is about (upstream: `CleanScope`).
fn scope_of(route: &ObjectRoute, method: &Method) -> &'static str {
    match route {
        _ if *method == Method::POST => "resource",
        ObjectRoute { name: Some(_), .. } => "resource",
        ObjectRoute { namespace: Some(_), .. } => "namespace",
        _ => "cluster",
    }
}

/// What metrics call the verb of a request (upstream: `cleanVerb`).
fn metric_verb(route: &ObjectRoute, request: &Request<UnreadBody>, query: &Query<'_>) -> &'static str {
    let is_connection = |part: &str| matches!(part, "attach" | "exec" | "log" | "portforward" | "proxy");
    if route.is_watch_path {
        return "WATCH";
    }
    if route.subresource.as_deref().is_some_and(is_connection) {
        return "CONNECT";
    }
    let is_apply = || request.headers().get(CONTENT_TYPE).is_some_and(|given| given == APPLY);
    match *request.method() {
        Method::GET if query.truth("watch") == Some(true) => "WATCH",
        Method::GET if scope_of(route, &Method::GET) == "resource" => "GET",
        Method::GET => "LIST",
        Method::PATCH if is_apply() => "APPLY",
        Method::PATCH => "PATCH",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// For how long a client will wait that says this. What is not positive says nothing.
fn timeout_of(text: &str) -> Result<Option<Duration>, DurationError> {
    if text.is_empty() {
        return Ok(None);
    }
    let nanos = text.parse::<revisor_object::Duration>()?.nanos();
    Ok(u64::try_from(nanos).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos))
}

/// Whether a path is one that its resource does not have at all: the name of an object of which nothing can be asked by
/// name, such as a review, a collection over all namespaces that cannot be listed, or the changes of one that has none.
pub(super) fn is_no_path(route: &ObjectRoute) -> bool {
    let ObjectRoute { resource, namespace, name, subresource, is_watch_path } = route;
    let has = |wanted: &[Verb]| resource.verbs.iter().any(|verb| wanted.contains(verb));
    let is_never_named =
        name.is_some() && subresource.is_none() && !has(&[Verb::Get, Verb::Update, Verb::Patch, Verb::Delete]);
    let is_never_listed = resource.namespaced && namespace.is_none() && !has(&[Verb::List]);
    is_never_named || is_never_listed || (*is_watch_path && !has(&[Verb::Watch]))
}

/// The answer to a request that makes no sense of custom resources. Their paths lead to one handler in the original, which
/// looks at them when it knows what is asked of it.
pub(super) fn without_verb(route: &ObjectRoute, method: &Method, representation: &Representation) -> Response<Body> {
    let ObjectRoute { resource, namespace, name, subresource, .. } = route;
    if resource.namespaced && namespace.is_none() {
        return answer::no_such_page();
    }
    let verb = match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        Method::GET => return representation.status(&Status::method_not_allowed()),
        // What is no verb has no name.
        _ => {
            let of = ResourceRef { group: &resource.group, resource: &resource.plural };
            return representation.status(&Status::method_not_supported(of, ""));
        }
    };
    let mut response = representation.status(&match subresource {
        Some(_) => {
            let of = ResourceRef { group: &resource.group, resource: &resource.plural };
            Status::method_not_supported(of, verb.as_str())
        }
        None if name.is_none() => Status::bad_request("name must be provided"),
        None => Status::method_not_allowed(),
    });
    answer::add_deprecation(&mut response, resource);
    response
}

/// Whether a collection is asked for its changes that can only be listed.
pub(super) fn is_unwatchable(route: &ObjectRoute, request: &Request<UnreadBody>) -> bool {
    let is_list = verb_of(route, request.method(), &Query::parse(None)) == Some(Verb::List);
    is_list && Query::parse(request.uri().query()).truth("watch") == Some(true)
}

/// What a method means on a path; `None` where it means nothing.
fn verb_of(route: &ObjectRoute, method: &Method, query: &Query<'_>) -> Option<Verb> {
    let has_name = route.name.is_some();
    let verb = match *method {
        Method::GET if route.is_watch_path => Verb::Watch,
        _ if route.is_watch_path => return None,
        Method::GET if has_name => Verb::Get,
        // Who is behind a proxy knows what these mean.
        Method::HEAD | Method::OPTIONS if has_name && route.subresource.as_deref() == Some("proxy") => Verb::Get,
        Method::GET if query.truth("watch") == Some(true) => Verb::Watch,
        // The one handler of custom resources in the original looks at what is asked, and not at the method.
        Method::HEAD if has_name && route.resource.custom().is_some() => Verb::Get,
        Method::GET => Verb::List,
        Method::HEAD if route.resource.custom().is_some() => Verb::List,
        Method::POST if !has_name || route.subresource.is_some() => Verb::Create,
        // Custom resources have no route of their own for each verb in the original, and what is sent says its name.
        Method::POST if route.resource.custom().is_some() => Verb::Create,
        Method::PUT if has_name => Verb::Update,
        Method::PATCH if has_name => Verb::Patch,
        Method::DELETE if has_name => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => return None,
    };
    // A collection over all namespaces can be read, but not written to.
    let is_over_namespaces = route.resource.namespaced && route.namespace.is_none();
    if is_over_namespaces && !matches!(verb, Verb::List | Verb::Watch) {
        return None;
    }
    let allowed = match &route.subresource {
        Some(name) => &route.resource.subresource(name)?.verbs,
        None => &route.resource.verbs,
    };
    allowed.contains(&verb).then_some(verb)
}
