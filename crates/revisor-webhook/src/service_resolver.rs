//! [`ServiceResolver`]: from a service to where it can be reached. The services themselves are kept elsewhere.

use std::future::Future;
use std::pin::Pin;

/// Where something listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// An IP address, without brackets, or a name.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why a service leads nowhere, in the words that the client is to see: `service "hook" not found`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnresolvedService(pub String);

/// The answer of a resolver, on its way.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = Result<Endpoint, UnresolvedService>> + Send + 'a>>;

/// Knows where services are.
///
/// Asked whenever a connection is made, and not before: what it answers may change from call to call. The time that it
/// takes counts towards the timeout of the call, which drops the future when it is over.
pub trait ServiceResolver: Send + Sync {
    /// Where the service's `port` can be reached.
    fn resolve<'a>(&'a self, namespace: &'a str, name: &'a str, port: u16) -> Resolving<'a>;
}
