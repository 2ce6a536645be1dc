//! [`AuditTrail`]: what is written down of a request, whatever becomes of it: it is answered, its client goes, or serving
//! it panics.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use revisor_audit::{AuditRecord, Stage};
use revisor_auth::AuthenticationNotes;

/// After how long it is told how long a request took.
const SLOW: Duration = Duration::from_millis(500);

/// A request that may be written down, from when it comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Audited(Option<Arc<OnceLock<Known>>>);

#[derive(Debug)]
struct Known {
    record: AuditRecord,
    is_long_running: bool,
}

impl Audited {
    /// One for which it will be known whether it is.
    pub(crate) fn unknown() -> Audited {
        Audited(Some(Arc::default()))
    }

    /// It is.
    pub(crate) fn begin(&self, record: AuditRecord, is_long_running: bool) {
        if let Some(cell) = &self.0 {
            // Nobody begins twice.
            let _ = cell.set(Known { record, is_long_running });
        }
    }

    /// What is written down, if it is.
    pub(crate) fn record(&self) -> Option<&AuditRecord> {
        Some(&self.0.as_ref()?.get()?.record)
    }

    /// Adds what was found out about the credentials before anybody wrote.
    pub(crate) fn annotate(&self, notes: &AuthenticationNotes) {
        if let Some(record) = self.record() {
            notes.annotations.iter().for_each(|(key, value)| record.annotate(key, value));
        }
    }

    fn is_long_running(&self) -> bool {
        self.0.as_ref().and_then(|cell| cell.get()).is_some_and(|known| known.is_long_running)
    }
}

/// Sees to it that the end of a request is written down.
#[derive(Debug)]
pub(crate) struct AuditTrail {
    audited: Audited,
    received: SystemTime,
    /// Whether nothing is to be written any more.
    is_over: bool,
}

impl AuditTrail {
    pub(crate) fn new(audited: Audited, received: SystemTime) -> AuditTrail {
        AuditTrail { audited, received, is_over: false }
    }

    /// There is an answer with this code. Of what lasts, that is written down at once.
    pub(crate) async fn answered(&mut self, code: u16, is_refused: bool) {
        let Some(record) = self.audited.record() else { return };
        record.answered_code(code);
        if is_refused || self.audited.is_long_running() {
            record.reach(Stage::ResponseStarted).wait().await;
        }
        // Who was not let in was never received.
        self.is_over = is_refused;
    }

    /// All of the answer has left.
    pub(crate) fn complete(self) {
        drop(self);
    }
}

impl Drop for AuditTrail {
    fn drop(&mut self) {
        let Some(record) = self.audited.record().filter(|_| !self.is_over) else { return };
        if std::thread::panicking() {
            record.panicked();
            record.reach(Stage::Panic).detach();
            return;
        }
        record.unanswered();
        let took = self.received.elapsed().unwrap_or_default();
        // As in the original, nobody counts the time of what lasts as long as its client likes.
        if took > SLOW && !self.audited.is_long_running() {
            let nanos = i64::try_from(took.as_nanos()).unwrap_or(i64::MAX);
            let total = revisor_object::Duration::from_nanos(nanos).to_string();
            record.annotate("apiserver.latency.k8s.io/total", &total);
        }
        record.reach(Stage::ResponseComplete).detach();
    }
}

/// Where a request comes from: what proxies say of it, and the address of the connection, which is sure.
pub(crate) fn source_ips(headers: &HeaderMap, peer: IpAddr) -> Vec<IpAddr> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut addresses: Vec<IpAddr> =
        text("x-forwarded-for").split(',').filter_map(|part| part.trim().parse().ok()).collect();
    if let Ok(real) = text("x-real-ip").parse::<IpAddr>()
        && !addresses.contains(&real)
    {
        addresses.push(real);
    }
    let peer = peer.to_canonical();
    if addresses.last() != Some(&peer) {
        addresses.push(peer);
    }
    addresses
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn addresses_are_told_from_the_client_to_the_server() {
        for (forwarded, real, want) in [
            ("", "", &["10.0.0.1"][..]),
            ("1.2.3.4, nonsense,5.6.7.8", "", &["1.2.3.4", "5.6.7.8", "10.0.0.1"]),
            ("1.2.3.4", "1.2.3.4", &["1.2.3.4", "10.0.0.1"]),
            ("1.2.3.4", "9.9.9.9", &["1.2.3.4", "9.9.9.9", "10.0.0.1"]),
            ("10.0.0.1", "", &["10.0.0.1"]),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("x-forwarded-for", forwarded), ("x-real-ip", real)] {
                if !value.is_empty() {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            let got = source_ips(&headers, [10, 0, 0, 1].into());
            assert_eq!(got.iter().map(ToString::to_string).collect::<Vec<_>>(), want, "{forwarded} {real}");
        }
    }
}
