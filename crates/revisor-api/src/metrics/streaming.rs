//! How clients are served that speak WebSocket with what runs in pods.

use prometheus::{IntCounterVec, Opts, Registry};

use super::registered;

pub(super) struct StreamingMetrics {
    translated: IntCounterVec,
    tunneled: IntCounterVec,
    routed: IntCounterVec,
}

impl StreamingMetrics {
    pub(super) fn new(registry: &Registry) -> StreamingMetrics {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            registered(registry, IntCounterVec::new(Opts::new(format!("apiserver_{name}_total"), help), labels))
        };
        StreamingMetrics {
            translated: counter(
                "stream_translator_requests",
                "Requests over WebSocket that were translated to SPDY, by how they ended",
                &["code"],
            ),
            tunneled: counter(
                "stream_tunnel_requests",
                "Requests for SPDY inside of WebSocket, by what they were answered with",
                &["code"],
            ),
            routed: counter(
                "websocket_streaming_requests",
                "Requests for ways into pods, by whether kubelets speak WebSocket themselves",
                &["subresource", "proxy_type"],
            ),
        }
    }

    pub(super) fn translated(&self, code: u16) {
        self.translated.with_label_values(&[&code.to_string()]).inc();
    }

    pub(super) fn tunneled(&self, code: u16) {
        self.tunneled.with_label_values(&[&code.to_string()]).inc();
    }

    pub(super) fn routed(&self, subresource: &str, to_kubelet: bool) {
        let kind = if to_kubelet { "proxied_to_kubelet" } else { "translated_at_apiserver" };
        self.routed.with_label_values(&[subresource, kind]).inc();
    }
}
