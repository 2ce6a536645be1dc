//! Who is asking, and may they: [`Authenticator`] turns a client certificate or a bearer token into an
//! [`Identity`], [`Authorizer`] decides whether that identity may do what it asks for, and [`LiveCertificates`] keeps
//! the keys and certificates that the program needs to be reached at all.
//!
//! Nothing here knows of HTTP statuses or bodies: the decisions are values, and the API turns them into answers.

mod abac;
mod anonymous;
mod attributes;
mod authentication_notes;
mod authenticator;
mod authority_bundle;
mod authorizer;
mod bootstrap_tokens;
mod certificate_authority;
mod certificates;
mod client_trust;
mod credential_file;
mod credential_ledger;
mod credentials;
mod identity;
mod impersonation;
mod jwt;
mod kubeconfig;
mod live_certificates;
mod node;
mod peer;
mod quoted;
mod rbac;
mod request_header;
mod selectors;
mod service_accounts;
mod shown_certificates;
mod tls_config;
mod tls_options;
mod token_authenticator;
mod token_file;
mod token_key;
mod token_webhook;
mod validity;
mod version_one;
mod webhook_authorizer;

pub use abac::AbacPolicy;
pub use anonymous::Anonymous;
pub use attributes::{Attributes, Forbidden, ResourceAttributes, why_forbidden};
pub use authentication_notes::AuthenticationNotes;
pub use authenticator::{Authenticator, Unauthenticated, authorization_warning};
pub use authority_bundle::joined_authorities;
pub use authorizer::{
    AccessRules, AuthorizationMode, AuthorizationModes, Authorizer, Decision, Explanation, ModesError, NotAllowed, Step,
};
pub use bootstrap_tokens::{BootstrapTokens, SecretLookup};
pub use certificates::{CertificateError, Certificates, Holdings, ServingFiles, brought_serving_files, server_names};
pub use client_trust::ClientTrust;
pub use credential_ledger::{Credential, NotASerial, Serial, TooManyCredentials};
pub use credentials::{ListedCredential, Revoked, list_credentials, renew_administrator, revoke_credentials};
pub use identity::{Claims, Identity};
pub use impersonation::{Impersonated, Impersonation, NoUser};
pub use jwt::{JwtAuthenticator, JwtAuthenticators, JwtConfig, JwtReading, SigningAlgorithm, read_issuers};
pub use live_certificates::{LiveCertificates, LiveOptions};
pub use node::{NodeBook, NodeFeatures, NodeGraph, VertexKind, node_identity};
pub use peer::{Peer, PeerIdentity, PeerVerifier};
pub use rbac::{
    Binding, Escalation, GrantBook, Grants, MissingRoles, PolicyRule, RoleKind, RoleRef, Subject, missing_rights,
};
pub use request_header::{RequestHeader, RequestHeaderNames};
pub use selectors::Selectors;
pub use service_accounts::{
    ExternalSigner, ExternalSignerError, LegacySecret, LegacyTokens, NewToken, ObjectLookup, ServiceAccountMetrics,
    ServiceAccountOptions, ServiceAccounts, TokenHolder, TokenObject, TokenObjectState, TokenSigner, TokenSubject,
};
pub use shown_certificates::{NamedFiles, NamedFilesError};
pub use tls_config::{ServerTls, crypto_provider};
pub use tls_options::{CipherSuite, MinTlsVersion, TlsOptions, TlsOptionsError};
pub use token_authenticator::{BoxFuture, TokenAuthenticator};
pub use token_file::{TokenFile, TokenFileError, TokenFileWarning};
pub use token_key::{SigningKey, TokenKeyError, VerifyingKey};
pub use token_webhook::{TokenWebhook, TokenWebhookOptions};
pub use webhook_authorizer::{WebhookAuthorizer, WebhookAuthorizerOptions, WebhookCondition};
