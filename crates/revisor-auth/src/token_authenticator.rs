//! [`TokenAuthenticator`]: others who may know whose a bearer token is, beside the token file and the service accounts.
//! They are asked one after the other, and may have to ask somebody themselves.

use std::future::Future;
use std::pin::Pin;
use std::time::SystemTime;

use crate::TokenHolder;

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Knows whose some tokens are.
pub trait TokenAuthenticator: Send + Sync {
    /// Whose token this is; nobody if it is for others to say. The error is for the log: why a token that should be known
    /// is not good. `audiences` are those whom the token is wanted to be for, which are those of this server if whoever asks
    /// names none; there are none if it has none.
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenHolder>, String>>;
}
