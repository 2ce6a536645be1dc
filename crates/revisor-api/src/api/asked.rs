//! [`Asked`]: what a request asks for, as far as its head says.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use revisor_catalog::{ObjectRoute, Route, Verb};
use revisor_object::{DurationError, ResourceRef, Status};

use crate::audit_trail::Audited;
use crate::encoding::Encoding;
use crate::objects::metric_name;
use crate::query::Query;
use crate::representation::{Codec, Representation};
use crate::unread_body::UnreadBody;
use crate::{Body, RequestKind, RequestLabels, answer};

/// What a request asks for, as far as its head says.
pub(crate) struct Asked {
    pub(super) method: Method,
    /// `None` where the method means nothing there.
    pub(crate) verb: Option<Verb>,
    is_dry_run: bool,
    /// For how long the client will wait, if it says so.
    pub(super) timeout: Result<Option<Duration>, DurationError>,
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
        Asked {
            method: request.method().clone(),
            verb,
            is_dry_run: !query.text("dryRun").is_empty(),
            timeout: timeout_of(query.text("timeout")),
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

    pub(super) fn labels<'a>(&'a self, route: &'a Route) -> RequestLabels<'a> {
        let Route::Objects(route) = route else {
            return RequestLabels { verb: self.method.as_str(), ..RequestLabels::default() };
        };
        RequestLabels {
            verb: match self.verb {
                Some(verb) => metric_name(verb),
                None => self.method.as_str(),
            },
            group: &route.resource.group,
            version: &route.resource.version,
            resource: &route.resource.plural,
            subresource: route.subresource.as_deref().unwrap_or_default(),
            scope: match route {
                ObjectRoute { name: Some(_), .. } => "resource",
                ObjectRoute { namespace: Some(_), .. } => "namespace",
                _ => "cluster",
            },
            dry_run: if self.is_dry_run { "All" } else { "" },
        }
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
        _ => return representation.status(&Status::method_not_allowed()),
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
        Method::GET if query.truth("watch") == Some(true) => Verb::Watch,
        Method::GET => Verb::List,
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
