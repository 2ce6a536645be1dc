//! Who is asking, and may they: [`Authenticator`] turns a client certificate or a bearer token into an
//! [`Identity`], [`Authorizer`] decides whether that identity may do what it asks for, and [`Certificates`] keeps
//! the keys and certificates that the program needs to be reached at all.
//!
//! Nothing here knows of HTTP statuses or bodies: the decisions are values, and the API turns them into answers.

mod anonymous;
mod attributes;
mod authenticator;
mod authorizer;
mod certificate_authority;
mod certificates;
mod credential_file;
mod identity;
mod impersonation;
mod kubeconfig;
mod peer;
mod quoted;
mod rbac;
mod service_accounts;
mod tls_config;
mod token_file;
mod token_key;

pub use anonymous::Anonymous;
pub use attributes::{Attributes, Forbidden, ResourceAttributes, why_forbidden};
pub use authenticator::{Authenticator, Unauthenticated, authorization_warning};
pub use authorizer::{AccessRules, AuthorizationMode, AuthorizationModes, Authorizer, Decision, ModesError};
pub use certificates::{CertificateError, Certificates, ServingFiles, server_names};
pub use identity::{Claims, Identity};
pub use impersonation::{Impersonated, Impersonation, NoUser};
pub use kubeconfig::{kubeconfig, write_kubeconfig};
pub use peer::{PeerIdentity, PeerVerifier};
pub use rbac::{
    Binding, Escalation, GrantBook, Grants, MissingRoles, PolicyRule, RoleKind, RoleRef, Subject, missing_rights,
};
pub use service_accounts::{
    LiveObject, NewToken, ObjectLookup, ServiceAccountOptions, ServiceAccounts, TokenHolder, TokenObject, TokenSubject,
};
pub use tls_config::{crypto_provider, roots_from_pem_file, server_config};
pub use token_file::{TokenFile, TokenFileError, TokenFileWarning};
pub use token_key::{SigningKey, TokenKeyError, VerifyingKey};
