//! [`Inflight`]: how much may be served at once.
//!
//! Requests are let in by [`FlowControl`] (`--enable-priority-and-fairness`): they take seats of their priority level,
//! and wait for them in a queue. Without it, two numbers bound them as in the original, and one too many is told to come
//! back. Either way what a client has not sent yet, and what it waits for, is bounded apart and without queues: bodies on
//! their way by their bytes, watches by their number. Of those, users have [shares](crate::places). What clients have not
//! read yet is bounded by [`UnreadLists`].
//!
//! Upholds B1: a request has its seats from when there is something to do to the last byte of its answer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::RETRY_AFTER;
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use prometheus::IntGauge;
use revisor_auth::{Attributes, Identity};
use revisor_catalog::Resource;

use crate::accounting::Accounting;
use crate::answer::text;
use crate::body::Body;
use crate::flow_control::{Classified, FlowControl, NoSeat, Seat, TrackedWatch};
use crate::metrics::Metrics;
use crate::places::{Holder, NoPlace, Place, Places};
use crate::request_body::MAX_REQUEST_BODY;
use crate::unread_lists::UnreadLists;

/// What a request whose body is on its way costs beside the body.
const WAITING: usize = 32 * 1024;

/// How much may be served at once. Zero means that there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InflightLimits {
    /// Requests that change nothing.
    pub read_only: usize,
    /// Requests that do.
    pub mutating: usize,
    /// Watches.
    pub watches: usize,
    /// Bytes of requests that clients have begun to send.
    pub incoming_bytes: usize,
    /// Bytes of replaced objects that are in memory only for lists that are on their way.
    pub unread_list_bytes: u64,
}

impl Default for InflightLimits {
    fn default() -> InflightLimits {
        InflightLimits {
            read_only: 400,
            mutating: 200,
            watches: 50_000,
            incoming_bytes: 256 * 1024 * 1024,
            unread_list_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Which of the two limits a request counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// get, list and everything else that changes nothing.
    ReadOnly,
    /// Everything else.
    Mutating,
}

/// The places for what is being served.
#[derive(Debug)]
pub struct Inflight {
    read_only: (Places, IntGauge),
    mutating: (Places, IntGauge),
    flow_control: Option<FlowControl>,
    watches: Places,
    incoming: Places,
    lists: UnreadLists,
}

/// A request that wants to be served.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) kind: RequestKind,
    pub(crate) user: Identity,
    /// The flow that it belongs to; none without priority and fairness.
    pub(crate) flow: Option<Classified>,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    /// How long it may take in all.
    pub(crate) timeout: Duration,
}

impl Inflight {
    /// Places within `limits`; how many are taken shows in `metrics`.
    pub fn new(limits: InflightLimits, metrics: &Metrics) -> Inflight {
        Inflight {
            read_only: (Places::new(limits.read_only), metrics.inflight(RequestKind::ReadOnly)),
            mutating: (Places::new(limits.mutating), metrics.inflight(RequestKind::Mutating)),
            flow_control: None,
            watches: Places::new(limits.watches),
            incoming: Places::new(limits.incoming_bytes),
            lists: UnreadLists::new(limits.unread_list_bytes),
        }
    }

    /// The same, with requests that are let in by priority and fairness.
    #[must_use]
    pub fn with_flow_control(self, flow_control: FlowControl) -> Inflight {
        Inflight { flow_control: Some(flow_control), ..self }
    }

    /// Priority and fairness, if requests are let in by it.
    pub(crate) fn flow_control(&self) -> Option<&FlowControl> {
        self.flow_control.as_ref()
    }

    /// The flow that a request belongs to; none without priority and fairness.
    pub(crate) fn classify(
        &self,
        attributes: &Attributes<'_>,
        query: Option<&str>,
        resource: Option<&Resource>,
    ) -> Option<Classified> {
        Some(self.flow_control.as_ref()?.classify(attributes, query, resource))
    }

    /// A place for a request, for as long as the guard lives.
    pub(crate) async fn admit(&self, asking: &Asking) -> Result<InflightGuard, TooManyRequests> {
        let (Some(flow_control), Some(flow)) = (&self.flow_control, &asking.flow) else {
            return self.take_place(asking.kind, &asking.user);
        };
        let asked = (&asking.method, &asking.uri);
        let begun = Instant::now();
        let seat = flow_control.seat(flow, asking.kind, &asking.user, asked, asking.timeout).await?;
        Ok(InflightGuard::new(Hold::Seat(seat), &self.of(asking.kind).1, begun.elapsed()))
    }

    /// A place among those of its kind.
    ///
    /// Members of `system:masters` are always served: whoever must repair an overloaded server has to be able to
    /// speak to it.
    fn take_place(&self, kind: RequestKind, user: &Identity) -> Result<InflightGuard, TooManyRequests> {
        let (places, gauge) = self.of(kind);
        Ok(InflightGuard::new(Hold::Place(places.take(holder(user), 1)?), gauge, Duration::ZERO))
    }

    /// The same, as soon as there is one.
    async fn take_place_when_free(&self, kind: RequestKind, user: &Identity) -> InflightGuard {
        let (places, gauge) = self.of(kind);
        InflightGuard::new(Hold::Place(places.take_when_free(holder(user), 1).await), gauge, Duration::ZERO)
    }

    fn of(&self, kind: RequestKind) -> &(Places, IntGauge) {
        match kind {
            RequestKind::ReadOnly => &self.read_only,
            RequestKind::Mutating => &self.mutating,
        }
    }

    /// A place for a watch.
    pub(crate) fn watch(&self, user: &Identity) -> Result<Place, TooManyRequests> {
        Ok(self.watches.take(holder(user), 1)?)
    }

    /// The lists that are on their way.
    pub(crate) fn lists(&self) -> &UnreadLists {
        &self.lists
    }

    /// Room for a body until it is there, which says that it has so many bytes.
    fn receive(&self, announced: Option<u64>, user: &Identity) -> Result<Place, TooManyRequests> {
        let most = MAX_REQUEST_BODY as u64;
        let bytes = announced.unwrap_or(most).min(most) as usize;
        Ok(self.incoming.take(holder(user), WAITING + bytes)?)
    }
}

fn holder(user: &Identity) -> Holder<'_> {
    Holder { name: user.name(), is_privileged: user.is_master() }
}

/// What a request holds.
#[derive(Debug)]
enum Hold {
    Place(#[expect(dead_code, reason = "held, not looked at")] Place),
    Seat(#[expect(dead_code, reason = "held, not looked at")] Seat),
}

/// A request's place; free again when this is dropped. It belongs to the answer's body, see [`Body::on_end`]: a
/// request is served until its last byte has left.
#[derive(Debug)]
pub struct InflightGuard {
    _hold: Hold,
    gauge: IntGauge,
    queued: Duration,
}

impl InflightGuard {
    fn new(hold: Hold, gauge: &IntGauge, queued: Duration) -> InflightGuard {
        gauge.inc();
        InflightGuard { _hold: hold, gauge: gauge.clone(), queued }
    }

    /// How long the request waited for its place.
    pub(crate) fn queued(&self) -> Duration {
        self.queued
    }
}

impl Drop for InflightGuard {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}

/// What a watch holds: its seats until the state that comes first was sent, and its part in what writes cost until it
/// ends. In the extensions of its request.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchHold(Arc<Mutex<(Option<InflightGuard>, Option<TrackedWatch>)>>);

impl WatchHold {
    pub(crate) fn new(seat: Option<InflightGuard>, tracked: Option<TrackedWatch>) -> WatchHold {
        WatchHold(Arc::new(Mutex::new((seat, tracked))))
    }

    /// Takes what is held.
    pub(crate) fn take(&self) -> (Option<InflightGuard>, Option<TrackedWatch>) {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The way of a request that changes something to its place: first its body has to be there.
#[derive(Debug, Clone)]
pub(crate) struct Entrance(Arc<Way>);

#[derive(Debug)]
struct Way {
    asking: Asking,
    place: Mutex<Option<InflightGuard>>,
}

impl Entrance {
    /// The way of a request; `place` is what it has already.
    pub(crate) fn new(asking: Asking, place: Option<InflightGuard>) -> Entrance {
        Entrance(Arc::new(Way { asking, place: Mutex::new(place) }))
    }

    /// Room for the body until it is there.
    pub(crate) fn receive(&self, inflight: &Inflight, announced: Option<u64>) -> Result<Place, TooManyRequests> {
        inflight.receive(announced, &self.0.asking.user)
    }

    /// Waits for the body. Without priority and fairness, a request that found no place at its head takes one that
    /// becomes free meanwhile: there is nothing to be refused before the body is there.
    pub(crate) async fn meanwhile<F: Future>(&self, inflight: &Inflight, mut body: Pin<&mut F>) -> F::Output {
        let Way { asking, place } = &*self.0;
        let place = || place.lock().unwrap_or_else(PoisonError::into_inner);
        if asking.flow.is_none() && place().is_none() {
            tokio::select! {
                biased;
                received = &mut body => return received,
                taken = inflight.take_place_when_free(asking.kind, &asking.user) => *place() = Some(taken),
            }
        }
        body.await
    }

    /// The body is there, and the request takes its place, if it has none.
    pub(crate) async fn enter(&self, inflight: &Inflight) -> Result<(), TooManyRequests> {
        let place = || self.0.place.lock().unwrap_or_else(PoisonError::into_inner);
        if place().is_none() {
            let taken = inflight.admit(&self.0.asking).await?;
            *place() = Some(taken);
        }
        Ok(())
    }

    /// The place of the request, if it came to have one.
    pub(crate) fn into_place(self) -> Option<InflightGuard> {
        self.0.place.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// All places are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are being served")]
pub struct TooManyRequests {
    /// After how many seconds the client may come back.
    pub retry_after: u64,
}

impl From<NoPlace> for TooManyRequests {
    fn from(NoPlace: NoPlace) -> TooManyRequests {
        TooManyRequests { retry_after: 1 }
    }
}

impl From<NoSeat> for TooManyRequests {
    fn from(NoSeat { retry_after }: NoSeat) -> TooManyRequests {
        TooManyRequests { retry_after }
    }
}

impl TooManyRequests {
    /// How the client is told: in plain text, as the original does, because at this point no encoding was agreed.
    pub fn response(self) -> Response<Body> {
        let message = "Too many requests, please try again later.\n";
        let mut response = text(StatusCode::TOO_MANY_REQUESTS, message);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
        Accounting::terminated(response)
    }
}

#[cfg(test)]
mod tests {
    use revisor_auth::Claims;

    use super::RequestKind::{Mutating, ReadOnly};
    use super::*;

    fn master() -> Identity {
        let groups = vec!["system:masters".to_owned()];
        Identity::authenticated(Claims { name: "admin".to_owned(), groups, ..Claims::default() })
    }

    #[test]
    fn places() {
        for (name, limits, taken, asks, privileged, admitted) in [
            ("room", (2, 1), vec![ReadOnly], ReadOnly, false, true),
            ("full", (2, 1), vec![ReadOnly, ReadOnly], ReadOnly, false, false),
            ("full, but privileged", (2, 1), vec![ReadOnly, ReadOnly], ReadOnly, true, true),
            ("writes have their own", (2, 1), vec![ReadOnly, ReadOnly], Mutating, false, true),
            ("writes full", (2, 1), vec![Mutating], Mutating, false, false),
            ("writes full, reads not", (2, 1), vec![Mutating], ReadOnly, false, true),
            ("no limit on reads", (0, 1), vec![ReadOnly; 1000], ReadOnly, false, true),
            ("no limit on writes", (1, 0), vec![Mutating; 1000], Mutating, false, true),
        ] {
            let metrics = Metrics::new(Vec::new);
            let limits = InflightLimits { read_only: limits.0, mutating: limits.1, ..InflightLimits::default() };
            let inflight = Inflight::new(limits, &metrics);
            let guest = Identity::anonymous();
            let asking = if privileged { master() } else { guest.clone() };
            let guards: Vec<_> = taken
                .iter()
                .map(|kind| inflight.take_place(*kind, &guest).expect("the table's own places are free"))
                .collect();
            let got = inflight.take_place(asks, &asking);
            assert_eq!(got.is_ok(), admitted, "{name}");
            drop((guards, got));
            for kind in [ReadOnly, Mutating] {
                assert_eq!(metrics.inflight(kind).get(), 0, "{name}: {kind:?} after the guards are gone");
                assert!(inflight.take_place(kind, &guest).is_ok(), "{name}: {kind:?} is free again");
            }
        }
    }

    #[test]
    fn the_answer() {
        let response = TooManyRequests { retry_after: 1 }.response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        let Body::Full(text) = response.into_body() else { panic!("a text") };
        assert_eq!(text, "Too many requests, please try again later.\n");
    }
}
