//! [`SignedTokens`]: tokens whose signature was good. To check one takes longer than most requests, and what it says
//! cannot change; whether it still counts is asked at each request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use super::legacy::LegacyClaims;
use super::token_claims::TokenClaims;
use crate::Identity;

/// How many are remembered. When there are more, all are forgotten, which costs a check for each.
const MOST: usize = 10_000;

/// What a token says that was signed with a key of ours.
#[derive(Debug)]
pub(super) enum SignedToken {
    /// One that was asked for, and who shows it.
    Bound(Box<TokenClaims>, Identity),
    /// One of a secret.
    Legacy(LegacyClaims),
}

impl SignedToken {
    /// Whom it names as those that it is meant for.
    pub(super) fn audiences(&self) -> &[String] {
        match self {
            SignedToken::Bound(claims, _) => claims.aud.as_slice(),
            SignedToken::Legacy(claims) => claims.aud.as_slice(),
        }
    }

    /// Whose it says that it is.
    pub(super) fn subject(&self) -> &str {
        match self {
            SignedToken::Bound(claims, _) => &claims.sub,
            SignedToken::Legacy(claims) => &claims.sub,
        }
    }
}

/// Stands for a token without being one.
pub(super) type TokenDigest = [u8; 32];

/// The tokens that were shown, by their digests, with the keys that they were checked with.
#[derive(Debug, Default)]
pub(super) struct SignedTokens(Mutex<HashMap<TokenDigest, (u64, Arc<SignedToken>)>>);

impl SignedTokens {
    pub(super) fn digest(token: &str) -> TokenDigest {
        Sha256::digest(token).into()
    }

    /// The token, if it was signed with one of the keys of this generation.
    pub(super) fn recall(&self, digest: &TokenDigest, generation: u64) -> Option<Arc<SignedToken>> {
        let known = self.lock();
        known.get(digest).filter(|(checked, _)| *checked == generation).map(|(_, token)| token.clone())
    }

    pub(super) fn remember(&self, digest: TokenDigest, generation: u64, token: &Arc<SignedToken>) {
        let mut known = self.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(digest, (generation, token.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TokenDigest, (u64, Arc<SignedToken>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
