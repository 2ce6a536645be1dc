//! Calls to webhooks: [`WebhookClient`] posts JSON over TLS to where a [`ClientConfig`] points, and
//! [`WebhookClient::convert`] has custom objects converted by a [`ConversionWebhook`], [`WebhookClient::review`] asks an
//! admission webhook about a write, and [`WebhookClient::ask_for_review`] whoever decides about tokens, access and images.
//!
//! The clients of the server see why a call failed, so every failure has a type and a text, and the texts are those
//! that clients of Kubernetes know, down to those of Go's network library. Everything is bounded: time, the size of an
//! answer, connections, and how many webhooks are remembered.
//!
//! What webhooks need is what everybody needs who calls somebody else over TLS: [`Connection`] and [`tls_client_config`]
//! are for those who pass requests on, too.
//!
//! Nothing here knows of requests to the server, of statuses, or when a webhook is to be called.

mod admission;
mod answer;
mod call_error;
mod client;
mod client_config;
mod connection;
mod conversion;
mod credentials;
mod location;
mod media_type;
mod pool;
mod review;
mod service_resolver;
mod stream;
mod trust;
mod x509_error;

pub use admission::{AdmissionAnswer, AdmissionQuestion, AdmissionReviewError, AdmissionReviewVersion};
pub use answer::{Answer, AnswerError};
pub use call_error::{CallError, NetError, StatusAnswer};
pub use client::{Limits, WebhookClient};
pub use client_config::{ClientConfig, ClientConfigError, ServiceReference, Target};
pub use connection::{Connection, Privacy, Unanswered};
pub use conversion::{ConversionError, ConversionWebhook};
pub use credentials::{CredentialBook, Credentials, Identity};
pub use review::{ReviewError, ReviewKind, ReviewPatience};
pub use service_resolver::{Endpoint, Resolving, ServiceResolver, UnresolvedService};
pub use trust::{tls_client_config, unverified_tls_client_config};
pub use x509_error::X509Error;
