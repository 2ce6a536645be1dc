//! [`WebhookClient`]: posts JSON to webhooks.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};

use crate::call_error::Ends;
use crate::connection::{Carriage, Connection, Outgoing, Privacy, Unanswered};
use crate::location::{Dial, exact_path};
use crate::media_type::media_type;
use crate::pool::Pool;
use crate::trust::Trust;
use crate::{
    Answer, CallError, ClientConfig, ClientConfigError, Credentials, Endpoint, NetError, ServiceResolver, StatusAnswer,
    Target,
};

/// How often a call is made again because the webhook asks for it.
const MAX_RETRIES: usize = 10;

/// The longest timeout there is. Longer ones are cut to it, so that no deadline is out of reach of the clock.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How far a client goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest body of an answer.
    pub max_response_bytes: usize,
    /// The most calls to one webhook at a time; others wait, at most until their timeout.
    pub max_calls: usize,
    /// The most connections to one webhook that are kept for later. Where it is less than `max_calls`, who calls more
    /// often at a time than that shakes hands for the rest again and again, which costs more than all else of a call.
    pub max_idle_connections: usize,
    /// For how long they are kept.
    pub idle_age: Duration,
    /// How many webhooks are remembered; beyond that the one that was not called for the longest time is forgotten.
    pub max_webhooks: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_response_bytes: 32 << 20,
            max_calls: 100,
            max_idle_connections: 100,
            idle_age: Duration::from_secs(90),
            max_webhooks: 200,
        }
    }
}

/// Calls webhooks and remembers connections to them. Clones share what they remember.
///
/// It has to be used within a tokio runtime. Redirects are not followed: where a webhook is, is for the one who
/// configured it to say, not for the webhook.
#[derive(Clone)]
pub struct WebhookClient {
    inner: Arc<Inner>,
}

struct Inner {
    resolver: Arc<dyn ServiceResolver>,
    limits: Limits,
    user_agent: HeaderValue,
    system_trust: OnceCell<Arc<Trust>>,
    pools: Mutex<Pools>,
}

#[derive(Default)]
struct Pools {
    /// One for each who the server is to a webhook; that is hardly ever more than one.
    by_config: HashMap<ClientConfig, Vec<Remembered>>,
    /// Counts the calls, to tell which webhook was called last.
    calls: u64,
    /// Whether a task looks after connections that grow old.
    is_swept: bool,
}

struct Remembered {
    pool: Arc<Pool>,
    last_call: u64,
}

impl WebhookClient {
    /// A client that finds services by `resolver`.
    pub fn new(resolver: Arc<dyn ServiceResolver>, limits: Limits) -> WebhookClient {
        let user_agent = HeaderValue::from_static(concat!("revisor/", env!("CARGO_PKG_VERSION")));
        let (system_trust, pools) = (OnceCell::new(), Mutex::default());
        WebhookClient { inner: Arc::new(Inner { resolver, limits, user_agent, system_trust, pools }) }
    }

    /// Posts `body`, which is JSON, and returns what is answered with a status from 200 to 206 within `timeout`.
    ///
    /// When the webhook answers 429 or 5xx and says after how many seconds to try again, that is done, within the same
    /// timeout. A call whose future is dropped is given up, and so is its connection.
    pub async fn post(&self, config: &ClientConfig, body: Bytes, timeout: Duration) -> Result<Answer, CallError> {
        self.post_for(config, body, timeout, usize::MAX).await
    }

    /// The same, showing these credentials, for an answer that has no reason to be larger than `most` bytes.
    pub async fn post_as(
        &self,
        config: &ClientConfig,
        credentials: Option<&Arc<Credentials>>,
        body: Bytes,
        timeout: Duration,
        most: usize,
    ) -> Result<Answer, CallError> {
        self.send(config, credentials, Some(body), timeout, most).await
    }

    /// The same, for an answer that has no reason to be larger than `most` bytes, whatever the limit.
    pub(crate) async fn post_for(
        &self,
        config: &ClientConfig,
        body: Bytes,
        timeout: Duration,
        most: usize,
    ) -> Result<Answer, CallError> {
        self.send(config, None, Some(body), timeout, most).await
    }

    /// What is at a URL, not larger than `most` bytes; for documents that say how others can be believed.
    pub async fn get(&self, config: &ClientConfig, timeout: Duration, most: usize) -> Result<Answer, CallError> {
        self.send(config, None, None, timeout, most).await
    }

    /// The same for one who shows who they are.
    pub async fn get_as(
        &self,
        config: &ClientConfig,
        credentials: Option<&Arc<Credentials>>,
        timeout: Duration,
        most: usize,
    ) -> Result<Answer, CallError> {
        self.send(config, credentials, None, timeout, most).await
    }

    async fn send(
        &self,
        config: &ClientConfig,
        credentials: Option<&Arc<Credentials>>,
        body: Option<Bytes>,
        timeout: Duration,
        most: usize,
    ) -> Result<Answer, CallError> {
        let most = most.min(self.inner.limits.max_response_bytes);
        let pool = self.inner.pool(config, credentials)?;
        let deadline = Instant::now() + timeout.min(MAX_TIMEOUT);
        let net = |cause| CallError::Net { url: pool.location.url(timeout), cause };
        let refuse = |error: http::Error| net(NetError::Protocol(error.to_string()));
        let outgoing = Outgoing {
            host: pool.host.clone(),
            path_and_query: match (&body, &config.target) {
                // Documents are where their URL says, to the letter.
                (None, Target::Url(url)) => {
                    PathAndQuery::try_from(exact_path(url)).map_err(|error| refuse(error.into()))?
                }
                _ => pool.path_and_query(timeout).map_err(refuse)?,
            },
            user_agent: self.inner.user_agent.clone(),
            authorization: credentials.map_or(Ok(None), |credentials| credentials.authorization())?,
            body,
        };
        let timed_out = |_| net(NetError::Timeout);
        let permit = timeout_at(deadline, pool.calls.acquire()).await.map_err(timed_out)?;
        let _permit = permit.map_err(|_| net(NetError::Timeout))?;

        let mut retries = 0;
        loop {
            let asked = timeout_at(deadline, self.inner.ask(&pool, &outgoing)).await.map_err(timed_out)?;
            let (response, mut connection) = asked.map_err(|failure| match failure {
                AskError::Config(error) => CallError::Config(error),
                AskError::Net(cause) => net(cause),
            })?;
            let (head, incoming) = response.into_parts();
            let ends = connection.ends;
            let body = match timeout_at(deadline, connection.receive(read(incoming, ends, most))).await {
                Ok(body) => body?,
                Err(_) => return Err(CallError::Body(NetError::Timeout)),
            };
            self.inner.give(&pool, connection);
            match retry_after(head.status, &head.headers) {
                Some(wait) if retries < MAX_RETRIES => {
                    retries += 1;
                    timeout_at(deadline, tokio::time::sleep(wait)).await.map_err(timed_out)?;
                }
                _ => return answer(head.status, &head.headers, body),
            }
        }
    }
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookClient").field("limits", &self.inner.limits).finish_non_exhaustive()
    }
}

impl Pools {
    /// Forgets those that were not called for the longest time, until there are fewer than so many.
    fn make_room(&mut self, most: usize) {
        while self.by_config.values().map(Vec::len).sum::<usize>() >= most {
            let of_one = |(config, known): (&ClientConfig, &Vec<Remembered>)| {
                known.iter().map(|remembered| remembered.last_call).min().map(|last| (last, config.clone()))
            };
            let Some((oldest, config)) = self.by_config.iter().filter_map(of_one).min_by_key(|(last, _)| *last) else {
                return;
            };
            if let Some(known) = self.by_config.get_mut(&config) {
                known.retain(|remembered| remembered.last_call != oldest);
                if known.is_empty() {
                    self.by_config.remove(&config);
                }
            }
        }
    }
}

enum AskError {
    Config(ClientConfigError),
    Net(NetError),
}

impl Inner {
    /// What is remembered of a webhook to which the server is this one.
    fn pool(
        &self,
        config: &ClientConfig,
        credentials: Option<&Arc<Credentials>>,
    ) -> Result<Arc<Pool>, ClientConfigError> {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.calls += 1;
        let last_call = pools.calls;
        let is_it = |remembered: &&mut Remembered| remembered.pool.credentials.as_ref() == credentials;
        if let Some(remembered) = pools.by_config.get_mut(config).and_then(|known| known.iter_mut().find(is_it)) {
            remembered.last_call = last_call;
            return Ok(remembered.pool.clone());
        }
        let pool = Pool::new(config, credentials, self.limits.max_calls, self.limits.max_idle_connections)?;
        let pool = Arc::new(pool);
        pools.make_room(self.limits.max_webhooks.max(1));
        let remembered = Remembered { pool: pool.clone(), last_call };
        pools.by_config.entry(config.clone()).or_default().push(remembered);
        Ok(pool)
    }

    /// Sends a request on a connection that waited, or on a new one.
    async fn ask(&self, pool: &Pool, outgoing: &Outgoing) -> Result<(Response<Incoming>, Connection), AskError> {
        // Connections that waited may have been hung up meanwhile. Then nothing was sent, and the next one is tried.
        for _ in 0..=self.limits.max_idle_connections {
            let Some(mut connection) = pool.take() else { break };
            match connection.ask(outgoing).await {
                Ok(response) => return Ok((response, connection)),
                Err(Unanswered { unsent: Some(_), .. }) => (),
                Err(Unanswered { error, .. }) => return Err(AskError::Net(error)),
            }
        }
        let mut connection = self.connect(pool).await?;
        if let Some(shared) = connection.share() {
            pool.give(shared);
        }
        match connection.ask(outgoing).await {
            Ok(response) => Ok((response, connection)),
            Err(Unanswered { error, .. }) => Err(AskError::Net(error)),
        }
    }

    async fn connect(&self, pool: &Pool) -> Result<Connection, AskError> {
        let tls = pool.tls.get_or_try_init(async || {
            let trust = if pool.config.ca_bundle.is_empty() {
                self.system_trust().await?
            } else {
                Arc::new(Trust::bundle(&pool.config.ca_bundle)?)
            };
            let identity = pool.credentials.as_deref().map_or(Ok(None), Credentials::identity)?;
            trust.client_config(pool.location.offers_http2, identity).map(Arc::new)
        });
        let tls = tls.await.map_err(AskError::Config)?.clone();
        let Endpoint { host, port } = match &pool.location.dial {
            Dial::Host { host, port } => Endpoint { host: host.clone(), port: *port },
            Dial::Service { namespace, name, port } => {
                let resolved = self.resolver.resolve(namespace, name, *port).await;
                resolved.map_err(|error| AskError::Net(error.into()))?
            }
        };
        let privacy = Privacy { server_name: pool.location.server_name.clone(), tls };
        let opened = Connection::open_carried(&host, port, Some(&privacy), Carriage::Asker).await;
        opened.map_err(AskError::Net)
    }

    /// Read once, when the first webhook without a bundle is called, and away from the runtime's threads.
    async fn system_trust(&self) -> Result<Arc<Trust>, ClientConfigError> {
        let trust = self.system_trust.get_or_try_init(async || {
            let read = tokio::task::spawn_blocking(Trust::system).await;
            read.map_err(|error| ClientConfigError::CaBundle(error.to_string()))?.map(Arc::new)
        });
        trust.await.cloned()
    }

    /// Keeps a connection, and sees to it that it is closed when it waited for too long.
    fn give(self: &Arc<Inner>, pool: &Pool, connection: Connection) {
        pool.give(connection);
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut pools.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self), self.limits.idle_age));
        }
    }
}

/// The body of an answer.
async fn read(incoming: Incoming, ends: Ends, most: usize) -> Result<Bytes, CallError> {
    let announced = incoming.size_hint().lower();
    if usize::try_from(announced).map_or(true, |announced| announced > most) {
        return Err(CallError::TooLarge(most));
    }
    match Limited::new(incoming, most).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(CallError::TooLarge(most)),
        Err(error) => Err(CallError::Body(match error.downcast_ref::<hyper::Error>() {
            Some(error) => NetError::reading(ends, error),
            None => NetError::Protocol(error.to_string()),
        })),
    }
}

/// Closes connections that waited for too long, until none waits or the client is gone.
async fn sweep(inner: Weak<Inner>, age: Duration) {
    loop {
        tokio::time::sleep(age).await;
        let Some(inner) = inner.upgrade() else { return };
        let mut pools = inner.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let all = pools.by_config.values().flatten();
        let waiting = all.filter(|remembered| remembered.pool.sweep(age)).count();
        if waiting == 0 {
            pools.is_swept = false;
            return;
        }
    }
}

/// After which time the webhook wants to be asked again.
fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let seconds: i64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn answer(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Result<Answer, CallError> {
    let given = headers.get(header::CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let given = given.as_deref().filter(|text| !text.is_empty());
    if let Some(given) = given {
        media_type(given).map_err(CallError::ContentType)?;
    }
    if !(StatusCode::OK..=StatusCode::PARTIAL_CONTENT).contains(&status) {
        return Err(CallError::Status(StatusAnswer::of(status, given, &body)));
    }
    Ok(Answer { status, content_type: given.unwrap_or("application/json").to_owned(), body })
}
