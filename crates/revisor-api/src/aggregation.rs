//! Requests for what other API servers serve: which they are, and how they are passed on.
//!
//! By then it is decided who asks, whether they may, and whether there is room: servers behind this one are told whom they
//! serve, and decide again for themselves.

use std::sync::Arc;

use http::{Request, Response};
use hyper::upgrade::OnUpgrade;
use revisor_aggregator::{AggregationError, Asker, Registration};
use revisor_auth::Identity;
use revisor_catalog::Route;
use revisor_proxy::headers::RemoteUser;

use crate::api::ClientAddress;
use crate::inflight::WatchHold;
use crate::passed_on::{self, to_be_sent};
use crate::request_info::RequestInfo;
use crate::unread_body::UnreadBody;
use crate::{Api, Body, LongRunning, RequestId, answer};

/// What a request is about that another server serves; one of its extensions.
#[derive(Debug, Clone)]
pub(crate) struct Aggregated(pub(crate) Arc<Registration>);

/// Whether a request for what another server serves is a watch.
pub(crate) fn is_watch(request: &Request<UnreadBody>) -> bool {
    let is_aggregated = request.extensions().get::<Aggregated>().is_some();
    is_aggregated && RequestInfo::of(request).is_ok_and(|info| info.is_watch())
}

impl Api {
    /// What a request is about. What another server serves is noted with the request, and is not looked into: whether
    /// there is anything of the same name here does not matter.
    pub(crate) fn route(&self, request: &mut Request<UnreadBody>) -> Route {
        let path = request.uri().path();
        if let Some(aggregator) = &self.options.aggregator {
            let book = aggregator.book();
            if let Some(registration) = book.remote_of(path).cloned() {
                request.extensions_mut().insert(Aggregated(registration));
                return Route::Other;
            }
            let group = path.strip_prefix("/apis/").map(|rest| rest.trim_end_matches('/'));
            if let Some(group) = group.filter(|group| !group.contains('/') && book.has_remote_group(group)) {
                return Route::Group(group.to_owned());
            }
        }
        Route::parse(&self.options.registry.catalog(), path)
    }

    /// Passes a request on to the server of an APIService.
    pub(crate) async fn serve_aggregated(
        &self,
        registration: &Registration,
        mut request: Request<UnreadBody>,
    ) -> Response<Body> {
        let Some(aggregator) = &self.options.aggregator else {
            return refused(&AggregationError::Unavailable);
        };
        if let Some(entrance) = request.body_mut().take_entrance()
            && let Err(refusal) = entrance.enter(&self.options.inflight).await
        {
            return refusal.response();
        }
        let extensions = request.extensions();
        let user = extensions.get::<Identity>().cloned().unwrap_or_else(Identity::anonymous);
        let client = extensions.get::<ClientAddress>().map_or([0, 0, 0, 0].into(), |client| client.0);
        let audit_id = extensions.get::<RequestId>().cloned();
        let upgrade = extensions.get::<OnUpgrade>().cloned();
        let hold = extensions.get::<WatchHold>().cloned();
        let method = request.method().clone();
        let (is_watch, lasts) =
            RequestInfo::of(&request).map_or((false, false), |info| (info.is_watch(), info.is_long_running()));
        let place = match is_watch.then(|| self.options.inflight.watch(&user)).transpose() {
            Ok(place) => place,
            Err(refusal) => return refusal.response(),
        };
        let asker = Asker {
            user: RemoteUser { name: user.name(), uid: user.uid(), groups: user.groups(), extra: user.extra() },
            client,
            audit_id: audit_id.as_ref().map_or("", RequestId::as_str),
        };
        let passed = aggregator.pass_on(registration, to_be_sent(request), asker).await;
        // A watch has begun when its head is there; its part in what writes cost lasts longer.
        let tracked = hold.and_then(|hold| hold.take().1);
        let forwarded = match passed {
            Ok(forwarded) => forwarded,
            Err(error) => {
                tracing::debug!(api_service = registration.name, ?error, "a request was not passed on");
                return refused(&error);
            }
        };
        let mut response = passed_on::answer(forwarded, &method, upgrade);
        if lasts || response.status() == http::StatusCode::SWITCHING_PROTOCOLS {
            response.extensions_mut().insert(LongRunning);
            let end = self.options.drain.watches_should_end();
            response = response.map(|body| body.until(end).on_end(move |_| drop((place, tracked))));
        }
        response
    }
}

/// What a client is told, in plain text as by the original.
fn refused(error: &AggregationError) -> Response<Body> {
    let (code, mut text) = error.answer();
    text.push('\n');
    answer::text(code, text)
}
