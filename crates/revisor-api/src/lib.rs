//! HTTP in front of the registry: connections, bodies, limits, and what an operator may look at.
//!
//! The transport half knows nothing of Kubernetes objects. A connection is accepted, encrypted and bounded by
//! [`Server`]; a request goes to one [`Handler`]; its answer is a [`Body`], whole or streamed. Around it stand the
//! parts a handler calls: [`read_body`], [`Inflight`], [`maybe_compress`], [`HealthChecks`], [`Metrics`].

mod accept;
mod access_log;
mod accounting;
mod aggregation;
mod answer;
mod api;
mod audit_trail;
mod body;
mod compress;
mod content_type;
mod cross_origin;
#[cfg(test)]
mod custom_fixture;
mod cut_off;
mod debug_pages;
mod discovery;
mod drain;
mod encoding;
mod flow_control;
mod health;
mod inflight;
mod issuer;
mod kubelets;
mod list_body;
mod metrics;
mod negotiate;
mod objects;
mod openapi;
mod passed_on;
mod places;
mod pretty;
mod publication;
mod query;
mod raw_json;
mod remote_command;
mod representation;
mod request_body;
mod request_info;
mod reviews;
mod server;
mod skewed_clients;
mod status_pages;
mod strict_transport_security;
mod table;
mod tag;
mod token_request;
mod unread_body;
mod unread_lists;
mod watch_body;
mod web_socket;

pub use access_log::{LongRunning, RequestId};
pub use api::{Api, ApiOptions};
pub use body::{Body, ByteSource, ObservedBody};
pub use compress::{CompressedPieces, GZIP_THRESHOLD, accepts_gzip, maybe_compress};
pub use cross_origin::{AllowedOrigin, CrossOrigin, NotAnOrigin};
pub use debug_pages::{DebugPages, SetVerbosity};
pub use drain::{Drain, WatchEnd};
pub use flow_control::FlowControl;
pub use health::{Check, HealthCheck, HealthChecks};
pub use inflight::{Inflight, InflightGuard, InflightLimits, RequestKind, TooManyRequests};
pub use kubelets::{KubeletOptions, Kubelets};
pub use metrics::{
    Distribution, LongRunningGuard, Metrics, RequestLabels, RequestSeries, ResourceSample, StoreSample, WorkQueueSample,
};
pub use request_body::{MAX_REQUEST_BODY, RequestBodyError, read_body};
pub use server::{Drained, Handler, Limits, Server, ServerOptions, Standing};
pub use status_pages::StatusPages;
pub use strict_transport_security::{NotADirective, StrictTransportSecurity, TransportDirective};
pub use token_request::StoredObjects;
