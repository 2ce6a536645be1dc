//! [`Members`]: the members of one etcd, which of them is asked, and what is done when one does not answer.
//!
//! Calls go to the members in turn. One that cannot be reached is left alone for a while, longer each time, unless there
//! is no other. A call that nobody has seen is made at the next member; one that may have been seen only if it changes
//! nothing. All of it ends with the time of the call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prost::Message;

use crate::EtcdError;
use crate::endpoint::{Connected, Endpoint, EndpointError, TlsFiles};
use crate::grpc::{Line, PendingReceiving, Sending};

/// How long it may take to connect to one member.
const CONNECTING: Duration = Duration::from_secs(3);

/// How long a member is left alone that could not be reached: at first, and at most.
const SHORT_REST: Duration = Duration::from_millis(50);
const LONG_REST: Duration = Duration::from_secs(5);

/// How long nobody is asked when nobody could be reached.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether a call may be seen by etcd more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing.
    Harmless,
    /// It is made again only if nobody has seen it.
    Never,
}

/// The members of one etcd.
pub(crate) struct Members {
    members: Vec<Member>,
    turn: AtomicUsize,
}

struct Member {
    number: usize,
    endpoint: Endpoint,
    connecting: tokio::sync::Mutex<()>,
    state: Mutex<MemberState>,
}

#[derive(Default)]
struct MemberState {
    connected: Option<Connected>,
    failures: u32,
    rests_until: Option<Instant>,
}

impl Members {
    pub(crate) fn new(urls: &[String], files: &TlsFiles) -> Result<Members, EndpointError> {
        let member = |(number, url): (usize, &String)| {
            let endpoint = Endpoint::parse(url.trim(), files)?;
            Ok(Member { number, endpoint, connecting: tokio::sync::Mutex::default(), state: Mutex::default() })
        };
        let members = urls.iter().enumerate().map(member).collect::<Result<Vec<_>, EndpointError>>()?;
        if members.is_empty() {
            return Err(EndpointError::Url { url: String::new(), problem: "there must be one at least" });
        }
        Ok(Members { members, turn: AtomicUsize::new(0) })
    }

    /// One message there and one back, from whoever answers within `timeout`.
    pub(crate) async fn call<Q: Message, R: Message + Default>(
        &self,
        path: &'static str,
        request: &Q,
        repeat: Repeat,
        timeout: Duration,
    ) -> Result<R, EtcdError> {
        let deadline = Instant::now() + timeout;
        let mut last = None;
        for attempt in 0.. {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let member = self.next();
            let call = async {
                let line = member.line().await?;
                line.call(path, request, left).await
            };
            let error = match tokio::time::timeout(left, call).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => {
                    // It may hang for everybody who comes after.
                    member.give_up();
                    return Err(last.unwrap_or(EtcdError::TimedOut));
                }
            };
            let goes_on = match repeat {
                Repeat::Harmless => error.may_pass(),
                Repeat::Never => error.was_not_seen(),
            };
            if matches!(error, EtcdError::Broken { .. } | EtcdError::Unreadable(_)) {
                member.give_up();
            }
            if !goes_on {
                return Err(error);
            }
            last = Some(error);
            if (attempt + 1) % self.members.len() == 0 {
                tokio::time::sleep(PAUSE.min(deadline.saturating_duration_since(Instant::now()))).await;
            }
        }
        Err(last.unwrap_or(EtcdError::TimedOut))
    }

    /// Opens a stream at one of the members; answers which.
    pub(crate) async fn stream<Q: Message>(
        &self,
        path: &'static str,
        first: &Q,
    ) -> Result<(usize, (Sending, PendingReceiving)), EtcdError> {
        let member = self.next();
        Ok((member.number, member.line().await?.stream(path, first).await?))
    }

    /// Ends the connection to a member, with all that goes on there.
    pub(crate) fn give_up(&self, number: usize) {
        self.members[number].give_up();
    }

    /// The member whose turn it is, of those that do not rest; if all rest, the one that does for the shortest time.
    fn next(&self) -> &Member {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let in_turn = (0..self.members.len()).map(|step| &self.members[(turn + step) % self.members.len()]);
        let rests = |member: &&Member| member.state().rests_until.filter(|until| *until > now);
        in_turn.min_by_key(|member| rests(member)).expect("there is one at least")
    }
}

impl Member {
    fn state(&self) -> MutexGuard<'_, MemberState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_line(&self) -> Option<Line> {
        let state = self.state();
        state.connected.as_ref().filter(|connected| connected.is_alive()).map(|connected| connected.line.clone())
    }

    /// The connection to this member, made at need, by one for all who wait for it.
    async fn line(&self) -> Result<Line, EtcdError> {
        if let Some(line) = self.known_line() {
            return Ok(line);
        }
        let _turn = self.connecting.lock().await;
        if let Some(line) = self.known_line() {
            return Ok(line);
        }
        let connected = match tokio::time::timeout(CONNECTING, self.endpoint.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(EtcdError::Unreached {
                endpoint: self.endpoint.url.clone(),
                problem: "it does not answer".to_owned(),
            }),
        };
        let mut state = self.state();
        match connected {
            Ok(connected) => {
                let line = connected.line.clone();
                *state = MemberState { connected: Some(connected), ..MemberState::default() };
                Ok(line)
            }
            Err(error) => {
                let rest = SHORT_REST.saturating_mul(1 << state.failures.min(10)).min(LONG_REST);
                state.failures = state.failures.saturating_add(1);
                state.rests_until = Some(Instant::now() + rest);
                state.connected = None;
                Err(error)
            }
        }
    }

    /// Ends the connection, with all that goes on there.
    fn give_up(&self) {
        let ended = self.state().connected.take();
        drop(ended);
    }
}
