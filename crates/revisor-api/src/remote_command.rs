//! [`RemoteCommand`]: exec and attach for clients that speak WebSocket, by kubelets that speak SPDY (upstream:
//! `StreamTranslatorHandler`).
//!
//! The client is agreed to before the kubelet is asked, as in the original; why a command could not be run it learns where
//! it learns how one ended, on the channel for errors. What is said on channels is in [`channels`], the conversation with
//! the kubelet in [`conversation`], and what its last words mean in [`protocol`].

mod channels;
mod conversation;
mod protocol;

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, LOCATION, UPGRADE};
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper_util::rt::TokioIo;
use revisor_proxy::{ProxyClient, ReceivedBody, Target, Tunnel, empty_body, spdy};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::channels::{Channel, Channels, Said};
use self::conversation::converse;
use self::protocol::{Outcome, Protocol};
use crate::Metrics;
use crate::web_socket::close_frame;
use crate::web_socket::talk::{LAST_WORDS, QUEUE, listen, speak};

/// The subprotocol that is translated: it can say that a channel is over (upstream: `protocolSupportsStreamClose`).
pub(crate) const SUBPROTOCOL: &str = "v5.channel.k8s.io";

/// Where both sides of SPDY name what they speak on it.
pub(crate) const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// How long a kubelet may take to agree. Runtimes that are busy take their time.
const AGREEING: Duration = Duration::from_secs(60);

/// The most that is shown of what a kubelet says instead of agreeing.
const SHOWN_REFUSAL: usize = 50_000;

/// How long neither side may say anything (upstream: `defaultIdleConnectionTimeout`).
const IDLE: Duration = Duration::from_secs(4 * 60 * 60);

/// Which streams of a command a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) tty: bool,
}

/// A command that a kubelet is to run, or has been running.
pub(crate) struct RemoteCommand {
    pub(crate) client: ProxyClient,
    pub(crate) target: Target,
    pub(crate) path_and_query: String,
    pub(crate) wanted: Wanted,
    pub(crate) metrics: Arc<Metrics>,
}

impl RemoteCommand {
    /// Lets the kubelet and the client talk until the command has ended, and tells the client how.
    pub(crate) async fn run(
        self,
        from_client: impl AsyncRead + Unpin,
        to_client: &mut (impl AsyncWrite + Unpin),
        sent: impl Fn(usize),
    ) {
        let (out, frames) = mpsc::channel(QUEUE);
        let (said, heard) = mpsc::channel(QUEUE);
        let activity = Activity::default();
        let mut speaking = pin!(speak(to_client, frames, |bytes| {
            activity.note();
            sent(bytes);
        }));
        {
            let listening = async {
                hear(from_client, said, &out, &activity).await;
                // What it said is still carried.
                std::future::pending::<()>().await;
            };
            let mut work = pin!(async {
                let _ = out.send(Channel::first_told(self.wanted).frame(b"")).await;
                let outcome = tokio::select! {
                    outcome = self.execute(heard, &out) => outcome,
                    () = listening => return,
                };
                self.metrics.stream_translated(outcome.code());
                let _ = out.send(Channel::Error.frame(&outcome.to_json())).await;
                let _ = out.send(close_frame()).await;
            });
            tokio::select! {
                // Nobody hears the end, but it comes.
                () = &mut speaking => return work.await,
                () = &mut work => {}
                () = activity.ceases() => return,
            }
        }
        drop(out);
        let _ = tokio::time::timeout(LAST_WORDS, speaking).await;
    }

    /// How a command ended, or why it did not begin.
    async fn execute(&self, mut heard: mpsc::Receiver<Said>, out: &mpsc::Sender<Bytes>) -> Outcome {
        match self.connect().await {
            Ok((mut tunnel, protocol)) => {
                converse(TokioIo::new(&mut tunnel.stream), protocol, self.wanted, &mut heard, out).await
            }
            Err(why) => Outcome::Failed(why),
        }
    }

    async fn connect(&self) -> Result<(Tunnel, Protocol), String> {
        let url = format!("{}://{}{}", self.target.scheme(), self.target.authority(), self.path_and_query);
        let unsent = |why: &dyn std::fmt::Display| format!("error sending request: Post {url:?}: {why}");
        let mut request = Request::post(&self.path_and_query)
            .header(HOST, self.target.authority())
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, spdy::PROTOCOL);
        for name in Protocol::OFFERED {
            request = request.header(STREAM_PROTOCOL, name);
        }
        let request = request.body(empty_body()).map_err(|error| unsent(&error))?;
        let asking = tokio::time::timeout(AGREEING, self.client.upgrade(&self.target, request));
        let answered = asking.await.map_err(|_| unsent(&"i/o timeout"))?;
        let (response, tunnel) = answered.map_err(|error| unsent(&error))?;
        if response.status().is_redirection() && response.headers().contains_key(LOCATION) {
            return Err(unsent(&"redirect not allowed"));
        }
        let Some(tunnel) = tunnel.filter(|_| speaks_spdy(&response)) else {
            return Err(format!("unable to upgrade connection: {}", refusal(response).await));
        };
        let name = response.headers().get(STREAM_PROTOCOL).and_then(|name| name.to_str().ok()).unwrap_or_default();
        let protocol = Protocol::named(name).ok_or_else(|| format!("unknown protocol {name:?} of the kubelet"))?;
        Ok((tunnel, protocol))
    }
}

/// Hands on what a client says on its channels, until it closes or breaks the rules.
async fn hear(
    from: impl AsyncRead + Unpin,
    said: mpsc::Sender<Said>,
    answers: &mpsc::Sender<Bytes>,
    activity: &Activity,
) {
    let (parts, mut came) = mpsc::channel(1);
    let telling = async {
        let mut channels = Channels::default();
        while let Some(part) = came.recv().await {
            activity.note();
            match channels.take(part) {
                Ok(Some(it)) => {
                    if said.send(it).await.is_err() {
                        return;
                    }
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
    };
    let listening = async {
        listen(from, parts, answers.clone()).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = telling => {}
        () = listening => {}
    }
}

fn speaks_spdy(response: &Response<ReceivedBody>) -> bool {
    let upgrade = response.headers().get(UPGRADE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    response.status() == StatusCode::SWITCHING_PROTOCOLS
        && upgrade.to_ascii_lowercase().contains(&spdy::PROTOCOL.to_ascii_lowercase())
}

/// What a kubelet says instead of agreeing (upstream: `upgradeErrorMessage`).
async fn refusal(response: Response<ReceivedBody>) -> String {
    let Ok(body) = Limited::new(response.into_body(), SHOWN_REFUSAL).collect().await else {
        return "unable to read error from server response".to_owned();
    };
    let body = body.to_bytes();
    let parsed: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
    let member = |name: &str| Some(parsed.as_ref()?.get(name)?.as_str()?.trim().to_owned());
    let plain = || String::from_utf8_lossy(&body).trim().to_owned();
    let mut known = [member("message"), member("error"), Some(plain())].into_iter().flatten();
    known.find(|it| !it.is_empty()).unwrap_or_else(|| "empty server response".to_owned())
}

/// When something was last said.
struct Activity(Mutex<Instant>);

impl Default for Activity {
    fn default() -> Activity {
        Activity(Mutex::new(Instant::now()))
    }
}

impl Activity {
    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Once nothing was said for too long.
    async fn ceases(&self) {
        loop {
            let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner) + IDLE;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}
