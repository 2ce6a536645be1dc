//! Tokens of issuers that an operator names (OpenID Connect): [`JwtAuthenticators`] are the issuers in force, which can be
//! replaced while the server runs. What an issuer is told by is in `config`, its keys in `key_set`, what its tokens say in
//! `authenticator`, and the expressions that look at that in `claims`.

mod authenticator;
mod claims;
mod config;
mod distributed_claims;
mod key_set;
mod token;
mod web_key;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

pub use authenticator::JwtAuthenticator;
pub use config::{JwtConfig, JwtReading, read_issuers};
pub use web_key::SigningAlgorithm;

use crate::TokenHolder;
use crate::authenticator::in_common;
use crate::token_authenticator::{BoxFuture, TokenAuthenticator};

/// The issuers in force.
pub struct JwtAuthenticators {
    issuers: RwLock<Arc<[Arc<JwtAuthenticator>]>>,
    /// For whom their tokens are good here, whomever they name: that an issuer names the server is looked at with each.
    audiences: Vec<String>,
}

impl JwtAuthenticators {
    /// Those with nobody in force yet, for a server of which `audiences` are names.
    pub fn new(audiences: Vec<String>) -> JwtAuthenticators {
        JwtAuthenticators { issuers: RwLock::default(), audiences }
    }

    /// Believes these issuers from now on, and no others.
    pub fn replace(&self, issuers: Vec<Arc<JwtAuthenticator>>) {
        *self.issuers.write().unwrap_or_else(PoisonError::into_inner) = issuers.into();
    }

    fn current(&self) -> Arc<[Arc<JwtAuthenticator>]> {
        self.issuers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl TokenAuthenticator for JwtAuthenticators {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenHolder>, String>> {
        Box::pin(async move {
            let Some(audiences) = in_common(audiences, &self.audiences) else { return Ok(None) };
            for issuer in self.current().iter() {
                if let Some(identity) = issuer.authenticate(token, now).await? {
                    return Ok(Some(TokenHolder { identity, audiences }));
                }
            }
            Ok(None)
        })
    }
}
