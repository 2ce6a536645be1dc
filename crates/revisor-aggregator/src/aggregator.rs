//! [`Aggregator`]: passes requests on to the API servers behind this one.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderValue;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use revisor_cache::ResourceCache;
use revisor_proxy::headers::{RemoteUser, name_user, remove_credentials};
use revisor_proxy::{Forward, ForwardError, Forwarded, ReceivedBody, Rewriting, SentBody, Target, empty_body};
use revisor_registry::Registry;
use revisor_webhook::Credentials;
use tokio::sync::watch;

use crate::availability_metrics::AvailabilityMetrics;
use crate::book::{Book, Registration};
use crate::knowledge::Knowledge;
use crate::remote::{NoWay, Remote};
use crate::view::View;

/// How long a server has for a document of discovery (upstream: `aggregatedDiscoveryTimeout`).
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// What an aggregator is made of.
pub struct AggregatorOptions {
    /// Keeps APIServices and services.
    pub registry: Arc<Registry>,
    /// Whether services are reached by their endpoints alone.
    pub by_endpoints: bool,
    /// Whether answers that send clients elsewhere are refused.
    pub refuses_redirects: bool,
    /// Whether users are named with their uids.
    pub tells_uids: bool,
}

/// Knows the API servers behind this one.
pub struct Aggregator {
    pub(crate) registry: Arc<Registry>,
    /// What holds APIServices; nothing if there are none.
    services: Option<Arc<ResourceCache>>,
    pub(crate) metrics: AvailabilityMetrics,
    by_endpoints: bool,
    refuses_redirects: bool,
    tells_uids: bool,
    /// What this server shows of itself.
    credentials: RwLock<Option<Arc<Credentials>>>,
    book: RwLock<Arc<Book>>,
    pub(crate) knowledge: Mutex<Arc<Knowledge>>,
    view: Mutex<Arc<View>>,
    /// Grows with whatever may change what other servers serve.
    pub(crate) changes: watch::Sender<u64>,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The user.
    pub user: RemoteUser<'a>,
    /// From where.
    pub client: IpAddr,
    /// By which the request is known.
    pub audit_id: &'a str,
}

/// What came back of a request.
pub type Passed = Forwarded;

/// Why a request was not passed on. The texts are those that clients of the original see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AggregationError {
    /// It is not available, or leads nowhere.
    Unavailable,
    /// What its APIService says cannot be used.
    Config(String),
    /// Nothing came back.
    Failed(String),
    /// A document of discovery did not come in time.
    Late,
}

impl AggregationError {
    /// The status and the text of the answer.
    pub fn answer(&self) -> (StatusCode, String) {
        match self {
            AggregationError::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "service unavailable".to_owned()),
            AggregationError::Config(why) => (StatusCode::INTERNAL_SERVER_ERROR, why.clone()),
            AggregationError::Failed(why) => (StatusCode::SERVICE_UNAVAILABLE, why.clone()),
            AggregationError::Late => {
                let why = "error trying to reach service: context deadline exceeded";
                (StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
            }
        }
    }
}

/// A document that a server was asked for by this one.
pub(crate) struct Fetched {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What this server asks for by itself.
pub(crate) struct Fetch<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) user: RemoteUser<'a>,
    pub(crate) accept: &'a str,
    /// The tag of what is known already.
    pub(crate) known: Option<&'a str>,
    /// What is sent with it, and what type it has.
    pub(crate) body: Option<(&'a str, &'a str)>,
    pub(crate) timeout: Duration,
    /// The most that is read of an answer.
    pub(crate) most: usize,
}

impl Aggregator {
    /// An aggregator that nobody has asked anything yet.
    pub fn new(options: AggregatorOptions) -> Arc<Aggregator> {
        let AggregatorOptions { registry, by_endpoints, refuses_redirects, tells_uids } = options;
        Arc::new(Aggregator {
            services: registry.api_services().map(|(_, cache)| cache),
            metrics: AvailabilityMetrics::default(),
            registry,
            by_endpoints,
            refuses_redirects,
            tells_uids,
            credentials: RwLock::default(),
            book: RwLock::new(Arc::new(Book::unread())),
            knowledge: Mutex::default(),
            view: Mutex::default(),
            changes: watch::Sender::default(),
        })
    }

    /// What is counted of the availability of servers.
    pub fn metrics(&self) -> &AvailabilityMetrics {
        &self.metrics
    }

    /// Shows this certificate to servers from now on.
    pub fn show(&self, credentials: Option<Credentials>) {
        *self.credentials.write().unwrap_or_else(PoisonError::into_inner) = credentials.map(Arc::new);
    }

    /// All APIServices as they are stored now: one that was written counts with the next request.
    pub fn book(&self) -> Arc<Book> {
        let Some(cache) = &self.services else { return Arc::default() };
        // Before the objects: what changes meanwhile is read once more.
        let newest = cache.delivered().map_or(0, |revision| revision.get());
        let known = self.book.read().unwrap_or_else(PoisonError::into_inner).clone();
        if known.seen == newest {
            return known;
        }
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        if book.seen != newest {
            *book = Arc::new(Book::read(&self.registry.stored_api_services(), newest, &book));
        }
        book.clone()
    }

    /// What is known of the servers, for those who tell clients.
    pub fn view(&self) -> Arc<View> {
        let (book, knowledge) = (self.book(), self.knowledge());
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if !view.is_of(&book, &knowledge) {
            *view = Arc::new(View::new(book, knowledge));
        }
        view.clone()
    }

    pub(crate) fn knowledge(&self) -> Arc<Knowledge> {
        self.knowledge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where a server is now.
    pub(crate) fn target(&self, remote: &Remote) -> Result<Target, NoWay> {
        let credentials = self.credentials.read().unwrap_or_else(PoisonError::into_inner).clone();
        remote.target(&self.registry, self.by_endpoints, credentials)
    }

    /// Passes a request on to the server of an APIService, in the name of whoever asks (upstream: `proxyHandler`).
    pub async fn pass_on(
        &self,
        registration: &Registration,
        mut request: Request<SentBody>,
        asker: Asker<'_>,
    ) -> Result<Passed, AggregationError> {
        let remote = registration.remote.as_ref().filter(|_| registration.is_available);
        let remote = remote.ok_or(AggregationError::Unavailable)?;
        let target = self.target(remote).map_err(|error| match error {
            NoWay::Unresolved(why) => {
                tracing::warn!(api_service = registration.name, why, "the service of an APIService leads nowhere");
                AggregationError::Unavailable
            }
            NoWay::Config(why) => AggregationError::Config(why),
        })?;
        let path_and_query = request.uri().path_and_query().map_or("/", |asked| asked.as_str()).to_owned();
        let path = request.uri().path().to_owned();
        let named = request.uri().authority().map(|authority| authority.to_string()).unwrap_or_default();
        let authority = target.authority();
        let headers = request.headers_mut();
        remove_credentials(headers);
        let user = RemoteUser { uid: asker.user.uid.filter(|_| self.tells_uids), ..asker.user };
        name_user(headers, user);
        if let Ok(id) = HeaderValue::try_from(asker.audit_id) {
            headers.insert("audit-id", id);
        }
        let forward = Forward {
            target: &target,
            path_and_query,
            host: &authority,
            client: asker.client,
            rewriting: Some(
                Rewriting::new(&path, &path, &authority, &named).told_as(target.scheme(), &target.authority()),
            ),
            refuses_redirects: self.refuses_redirects,
        };
        let sending = forward.send(&remote.client, request);
        let is_discovery = path.trim_matches('/').split('/').count() == 3;
        let sent = match is_discovery {
            true => tokio::time::timeout(DISCOVERY_TIMEOUT, sending).await.map_err(|_| AggregationError::Late)?,
            false => sending.await,
        };
        sent.map_err(|error| match error {
            ForwardError::Location(why) => AggregationError::Failed(format!("Internal error occurred: {why}")),
            error => AggregationError::Failed(error.to_string()),
        })
    }

    /// Asks a server for a document in the name of this one, whether it is said to be available or not.
    pub(crate) async fn fetch(&self, remote: &Remote, fetch: Fetch<'_>) -> Result<Fetched, String> {
        let target = self.way(remote)?;
        let asking = async {
            let (head, body) = send(remote, &target, &fetch).await?.into_parts();
            let read = Limited::new(body, fetch.most).collect().await.map_err(|error| error.to_string())?;
            Ok(Fetched { status: head.status, headers: head.headers, body: read.to_bytes() })
        };
        within(&target, &fetch, asking).await
    }

    /// The same for an answer that is read as it comes. It has to begin in time.
    pub(crate) async fn open(&self, remote: &Remote, fetch: &Fetch<'_>) -> Result<Response<ReceivedBody>, String> {
        let target = self.way(remote)?;
        within(&target, fetch, send(remote, &target, fetch)).await
    }

    fn way(&self, remote: &Remote) -> Result<Target, String> {
        self.target(remote).map_err(|error| match error {
            NoWay::Unresolved(why) | NoWay::Config(why) => why,
        })
    }
}

async fn send(remote: &Remote, target: &Target, fetch: &Fetch<'_>) -> Result<Response<ReceivedBody>, String> {
    let body = match fetch.body {
        Some((_, text)) => {
            Full::new(Bytes::copy_from_slice(text.as_bytes())).map_err(|never| match never {}).boxed_unsync()
        }
        None => empty_body(),
    };
    let request = Request::builder().method(fetch.method.clone()).uri(fetch.path).body(body);
    let mut request = request.map_err(|error| error.to_string())?;
    let headers = request.headers_mut();
    for (name, text) in [("host", target.authority().as_str()), ("accept", fetch.accept)] {
        headers.insert(name, HeaderValue::try_from(text).map_err(|error| error.to_string())?);
    }
    if let Some(Ok(tag)) = fetch.known.map(HeaderValue::try_from) {
        headers.insert(http::header::IF_NONE_MATCH, tag);
    }
    if let Some(Ok(content_type)) = fetch.body.map(|(content_type, _)| HeaderValue::try_from(content_type)) {
        headers.insert(http::header::CONTENT_TYPE, content_type);
    }
    name_user(headers, fetch.user);
    remote.client.send(target, request).await.map_err(|error| error.to_string())
}

/// Gives a server no more time than it has, and says what it was asked for if nothing comes of it.
async fn within<T>(
    target: &Target,
    fetch: &Fetch<'_>,
    asking: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let late = |_| Err("context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned());
    let asked = tokio::time::timeout(fetch.timeout, asking).await.unwrap_or_else(late);
    asked.map_err(|why| format!("Get {:?}: {why}", format!("https://{}{}", target.authority(), fetch.path)))
}

impl std::fmt::Debug for Aggregator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aggregator").finish_non_exhaustive()
    }
}
