//! [`WebhookHandler`]: what is answered at which path.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use revisor_api::{Body, Handler, HealthChecks, Metrics, RequestBodyError, Standing, read_body};
use revisor_object::Status;
use rustls_pki_types::CertificateDer;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::review::Review;
use super::rule_book::RuleBook;
use super::tally::Tally;

/// Where reviews are sent to.
pub(super) const PATH: &str = "/convert";

/// What room for reviews is counted in: semaphores count no further than bytes would take them.
const ROOM_UNIT: usize = 1024;

/// Answers reviews by the rules of the moment.
pub(super) struct WebhookHandler {
    rules: watch::Receiver<Arc<RuleBook>>,
    health: HealthChecks,
    metrics: Arc<Metrics>,
    tally: Arc<Tally>,
    limits: ReviewLimits,
    /// Room for the bytes of reviews.
    room: Arc<Semaphore>,
    callers: Callers,
    /// The threads that convert.
    threads: Arc<Semaphore>,
}

/// What a review may take.
pub(super) struct ReviewLimits {
    pub(super) bytes: usize,
    pub(super) time: Duration,
    pub(super) threads: usize,
}

impl WebhookHandler {
    pub(super) fn new(
        rules: watch::Receiver<Arc<RuleBook>>,
        health: HealthChecks,
        metrics: Arc<Metrics>,
        tally: Arc<Tally>,
        limits: ReviewLimits,
    ) -> WebhookHandler {
        let room = Arc::new(Semaphore::new(2 * units(limits.bytes) as usize));
        let threads = Arc::new(Semaphore::new(limits.threads));
        let callers = Callers { share: units(limits.bytes) as usize, known: Mutex::default() };
        WebhookHandler { rules, health, metrics, tally, limits, room, callers, threads }
    }

    async fn answer(&self, share: &Arc<Semaphore>, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        if path == PATH {
            if request.method() != Method::POST {
                let mut response = refusal(&Status::method_not_allowed());
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
                return response;
            }
            let deadline = Instant::now() + self.limits.time;
            let late = || refusal(&Status::timeout("the review did not complete within its time", 1));
            return tokio::time::timeout_at(deadline, self.convert(share, request.into_body(), deadline))
                .await
                .unwrap_or_else(|_| late());
        }
        if let Some(answer) = self.health.answer(path, request.uri().query()) {
            return answer;
        }
        if path == "/metrics" {
            return self.metrics.response();
        }
        refusal(&Status::no_such_resource())
    }

    async fn convert(&self, share: &Arc<Semaphore>, body: Incoming, deadline: Instant) -> Response<Body> {
        // Who does not say how much will come is taken to bring as much as may come.
        let announced = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        let limit = self.limits.bytes;
        let bytes = announced.unwrap_or(limit);
        if bytes > limit {
            return refusal(&unread(&RequestBodyError::TooLarge { limit }));
        }
        // First of the caller's own share: who waits for that holds nothing that others wait for.
        let Some(own) = take(share, units(bytes)).await else { return going_away() };
        let Some(room) = take(&self.room, units(bytes)).await else { return going_away() };
        let body = match read_body(body, limit, deadline).await {
            Ok(body) => body,
            Err(error) => return refusal(&unread(&error)),
        };
        let (rules, tally) = (self.rules.borrow().clone(), Arc::clone(&self.tally));
        let most = self.limits.threads;
        let Some(mut working) = take(&self.threads, 1).await else { return going_away() };
        let threads = Arc::clone(&self.threads);
        // What was read is given back only when it is gone, whether or not the client still waits.
        let work = tokio::task::spawn_blocking(move || {
            let review = Review::read(&body)?;
            drop(body);
            let more = u32::try_from(review.threads(most) - 1).unwrap_or_default();
            // Those that are busy are not waited for.
            let count = match threads.try_acquire_many_owned(more) {
                Ok(others) => {
                    working.merge(others);
                    more as usize + 1
                }
                Err(_) => 1,
            };
            let answer = review.answer(&rules, count, &tally);
            drop((working, room, own));
            Ok::<_, String>(answer)
        });
        match work.await {
            Ok(Ok(answer)) => json(StatusCode::OK, answer),
            Ok(Err(why)) => refusal(&Status::bad_request(why)),
            Err(error) => refusal(&Status::internal_error(error)),
        }
    }
}

impl Handler for WebhookHandler {
    /// The room that the caller may take.
    type Connection = Arc<Semaphore>;

    fn connected(&self, from: SocketAddr, _: &[CertificateDer<'static>], _: Arc<Standing>) -> Arc<Semaphore> {
        self.callers.share_of(from.ip())
    }

    async fn handle(self: Arc<Self>, share: Arc<Arc<Semaphore>>, request: Request<Incoming>) -> Response<Body> {
        self.answer(&share, request).await
    }
}

/// How much of the room each address may take. Nobody knows who calls, and whoever sends slowly holds room for as long as
/// a review may take; but it is never more than half of it, and others get the rest.
struct Callers {
    share: usize,
    /// Those that are connected.
    known: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
}

impl Callers {
    fn share_of(&self, address: IpAddr) -> Arc<Semaphore> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = known.get(&address).and_then(Weak::upgrade) {
            return share;
        }
        known.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.share));
        known.insert(address, Arc::downgrade(&share));
        share
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(ROOM_UNIT).max(1)).unwrap_or(u32::MAX)
}

/// Nothing if nothing will ever be free again.
async fn take(semaphore: &Arc<Semaphore>, count: u32) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).acquire_many_owned(count).await.ok()
}

fn going_away() -> Response<Body> {
    refusal(&Status::service_unavailable("the webhook is shutting down"))
}

fn unread(error: &RequestBodyError) -> Status {
    match error {
        RequestBodyError::TooLarge { .. } => Status::request_entity_too_large(error),
        RequestBodyError::TimedOut => Status::timeout(error, 1),
        RequestBodyError::Broken(_) => Status::bad_request(error.to_string()),
    }
}

/// What is said to who asked for something that there is not.
fn refusal(status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(code, status.to_json())
}

fn json(code: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_share_for_as_long_as_it_is_connected() {
        let callers = Callers { share: 4, known: Mutex::default() };
        let [one, other] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let first = callers.share_of(one);
        let held = first.clone().try_acquire_many_owned(4).expect("all of it is free");
        assert_eq!(callers.share_of(one).available_permits(), 0, "whichever connection asks");
        assert_eq!(callers.share_of(other).available_permits(), 4, "others have their own");
        drop((first, held));
        assert_eq!(callers.share_of(one).available_permits(), 4);
        assert!(callers.known.lock().is_ok_and(|known| known.len() <= 2), "those that went are forgotten");
    }
}
