//! [`Authenticator`]: who makes this request? First a proxy in front of the server is asked, then the certificate of the
//! connection, then the bearer token; a request with none of them is anonymous.

use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::{
    Anonymous, AuthenticationNotes, Identity, PeerIdentity, RequestHeader, ServiceAccounts, TokenAuthenticator,
    TokenFile, TokenHolder,
};

/// Turns the credentials of a request into an [`Identity`].
#[derive(Clone)]
pub struct Authenticator {
    tokens: TokenFile,
    /// Makes and checks the tokens of service accounts.
    service_accounts: Option<ServiceAccounts>,
    /// Others who know tokens, in the order in which they are asked.
    others: Vec<Arc<dyn TokenAuthenticator>>,
    /// Proxies that name users in headers.
    request_header: Option<RequestHeader>,
    anonymous: Anonymous,
    /// Kept, so that an anonymous request costs no allocation.
    nobody: Identity,
}

/// Why a request was made by nobody that the server knows. The details are for the log; a client learns only that
/// it is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unauthenticated {
    /// The client's certificate does not count.
    #[error("the client certificate was refused: {0}")]
    Certificate(Arc<str>),
    /// The bearer token is not known.
    #[error("invalid bearer token")]
    Token,
    /// The bearer token is one of a service account, but not good.
    #[error("[invalid bearer token, {0}]")]
    ServiceAccount(Arc<str>),
    /// The bearer token is one of those whom others know, but not good.
    #[error("[invalid bearer token, {0}]")]
    Others(Arc<str>),
    /// There are no credentials, and anonymous requests are turned off, at least for this path.
    #[error("no credentials were given")]
    NoCredentials,
}

impl Authenticator {
    /// An authenticator that knows `tokens`, and lets those requests without credentials in that `anonymous` admits.
    pub fn new(tokens: TokenFile, anonymous: Anonymous) -> Authenticator {
        Authenticator {
            tokens,
            service_accounts: None,
            others: Vec::new(),
            request_header: None,
            anonymous,
            nobody: Identity::anonymous(),
        }
    }

    /// The same, but with the tokens of service accounts beside those that it knows.
    pub fn with_service_accounts(self, service_accounts: ServiceAccounts) -> Authenticator {
        Authenticator { service_accounts: Some(service_accounts), ..self }
    }

    /// The same, but with others who are asked about tokens that it does not know, in this order.
    pub fn with_others(self, others: Vec<Arc<dyn TokenAuthenticator>>) -> Authenticator {
        Authenticator { others, ..self }
    }

    /// The same, but with proxies that name users in headers.
    pub fn with_request_header(self, request_header: Option<RequestHeader>) -> Authenticator {
        Authenticator { request_header, ..self }
    }

    /// The proxies that name users in headers, if any do.
    pub fn request_header(&self) -> Option<&RequestHeader> {
        self.request_header.as_ref()
    }

    /// Who makes and checks the tokens of service accounts.
    pub fn service_accounts(&self) -> Option<&ServiceAccounts> {
        self.service_accounts.as_ref()
    }

    /// Whose token this is, if it is good for one of `audiences`; if none are named, for this server. Tokens of the file
    /// are for this server. What else there is to say goes to `notes`.
    ///
    /// As in the original the token is what somebody would send behind `Bearer`: blanks end it, and one that begins with
    /// a blank is none, with which a request would be anonymous.
    pub async fn authenticate_token(
        &self,
        token: &str,
        audiences: &[String],
        now: SystemTime,
        notes: &mut AuthenticationNotes,
    ) -> Result<TokenHolder, Unauthenticated> {
        let own = self.service_accounts.as_ref().map(ServiceAccounts::audiences).unwrap_or_default();
        let wanted = if audiences.is_empty() { own } else { audiences };
        let sent = format!("Bearer {token}");
        let Authorization::Bearer(token) = Authorization::read(sent.as_bytes()) else {
            return match &self.anonymous {
                Anonymous::Everywhere => Ok(TokenHolder { identity: self.nobody.clone(), audiences: wanted.to_vec() }),
                // Nobody is anonymous where there is no path.
                Anonymous::Nowhere | Anonymous::At(_) => Err(Unauthenticated::NoCredentials),
            };
        };
        if let Some(identity) = self.tokens.holder(token) {
            let audiences = in_common(wanted, own).ok_or(Unauthenticated::Token)?;
            return Ok(TokenHolder { identity: identity.clone(), audiences });
        }
        let token = std::str::from_utf8(token).map_err(|_| Unauthenticated::Token)?;
        let verified = match &self.service_accounts {
            Some(accounts) => accounts.verify(token, wanted, now, notes).await,
            None => Err(Unauthenticated::Token),
        };
        match verified {
            Err(Unauthenticated::Token) => self.ask_others(token, wanted, now).await,
            done => done,
        }
    }

    /// Whose token this is, if it is good for this server: what is asked of every request, and made as little of as can
    /// be.
    async fn identify(
        &self,
        token: &[u8],
        now: SystemTime,
        notes: &mut AuthenticationNotes,
    ) -> Result<Identity, Unauthenticated> {
        if let Some(identity) = self.tokens.holder(token) {
            return Ok(identity.clone());
        }
        let token = std::str::from_utf8(token).map_err(|_| Unauthenticated::Token)?;
        let verified = match &self.service_accounts {
            Some(accounts) => accounts.identify(token, now, notes).await,
            None => Err(Unauthenticated::Token),
        };
        match verified {
            // Boxed: all others would carry the room for it about.
            Err(Unauthenticated::Token) => {
                let own = self.service_accounts.as_ref().map(ServiceAccounts::audiences).unwrap_or_default();
                Box::pin(self.ask_others(token, own, now)).await.map(|holder| holder.identity)
            }
            done => done,
        }
    }

    /// Asks others about a token that is none of a service account. One of those that is not good is not shown to them.
    async fn ask_others(
        &self,
        token: &str,
        audiences: &[String],
        now: SystemTime,
    ) -> Result<TokenHolder, Unauthenticated> {
        let mut problems = Vec::new();
        for other in &self.others {
            match other.authenticate(token, audiences, now).await {
                Ok(Some(holder)) => return Ok(holder),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        match problems.as_slice() {
            [] => Err(Unauthenticated::Token),
            problems => Err(Unauthenticated::Others(problems.join(", ").into())),
        }
    }

    /// Who makes a request for `path` with `headers` on a connection whose client proved to be `peer`, and `proxy` to
    /// those who believe proxies.
    ///
    /// The first credential that is good decides, so a wrong token next to a good certificate goes unnoticed. When
    /// none is good and one was tried, the request is refused and not anonymous: who has credentials means them.
    pub async fn authenticate(
        &self,
        path: &str,
        headers: &HeaderMap,
        peer: &PeerIdentity,
        proxy: &PeerIdentity,
        now: SystemTime,
        notes: &mut AuthenticationNotes,
    ) -> Result<Identity, Unauthenticated> {
        if let Some(user) = self.request_header.as_ref().and_then(|known| known.authenticate(headers, proxy)) {
            return Ok(user);
        }
        let refused = match peer {
            PeerIdentity::Verified(identity) => return Ok(identity.clone()),
            PeerIdentity::Refused(reason) => Some(Unauthenticated::Certificate(reason.clone())),
            PeerIdentity::Unknown => None,
        };
        if let Authorization::Bearer(token) = authorization(headers) {
            return self.identify(token, now, notes).await;
        }
        match refused {
            Some(refused) => Err(refused),
            None if self.anonymous.admits(path) => Ok(self.nobody.clone()),
            None => Err(Unauthenticated::NoCredentials),
        }
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticator").field("anonymous", &self.anonymous).finish_non_exhaustive()
    }
}

/// The warning that a client deserves whose token is overlooked because of a space too many.
pub fn authorization_warning(headers: &HeaderMap) -> Option<&'static str> {
    match authorization(headers) {
        Authorization::Misspelt => {
            Some("the provided Authorization header contains extra space before the bearer token, and is ignored")
        }
        Authorization::Absent | Authorization::Bearer(_) => None,
    }
}

/// What the `Authorization` header holds, as far as this server cares.
#[derive(Debug, PartialEq, Eq)]
enum Authorization<'a> {
    /// Nothing, or something that is not a bearer token.
    Absent,
    /// A bearer token with a space too many before it. It is ignored.
    Misspelt,
    /// A bearer token.
    Bearer(&'a [u8]),
}

fn authorization(headers: &HeaderMap) -> Authorization<'_> {
    headers.get(AUTHORIZATION).map_or(Authorization::Absent, |value| Authorization::read(value.as_bytes()))
}

impl Authorization<'_> {
    fn read(value: &[u8]) -> Authorization<'_> {
        let mut words = value.trim_ascii().splitn(3, |byte| *byte == b' ');
        let scheme = words.next().unwrap_or_default();
        match (words.next(), words.next()) {
            _ if !scheme.eq_ignore_ascii_case(b"bearer") => Authorization::Absent,
            (None, _) | (Some(b""), None) => Authorization::Absent,
            (Some(b""), Some(_)) => Authorization::Misspelt,
            (Some(token), _) => Authorization::Bearer(token),
        }
    }
}

/// For whom a token is good that somebody vouches for who says nothing about that, so that it is for the server; `None` if
/// it is for none of those who are asked about (upstream: `WrapAudienceAgnosticToken`).
pub(crate) fn in_common(wanted: &[String], own: &[String]) -> Option<Vec<String>> {
    let common: Vec<String> = wanted.iter().filter(|audience| own.contains(audience)).cloned().collect();
    (wanted.is_empty() || !common.is_empty()).then_some(common)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::Claims;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    const PATH: &str = "/api";

    fn authenticator(anonymous: Anonymous) -> Authenticator {
        let (tokens, _) = TokenFile::parse("good,tina,7,dev").expect("the tokens are valid");
        Authenticator::new(tokens, anonymous)
    }

    fn headers(authorization: Option<&[u8]>) -> HeaderMap {
        let value = authorization.map(|value| HeaderValue::from_bytes(value).expect("a header can hold the value"));
        value.into_iter().map(|value| (AUTHORIZATION, value)).collect()
    }

    async fn ask(
        authenticator: &Authenticator,
        path: &str,
        headers: HeaderMap,
        peer: &PeerIdentity,
    ) -> Result<Identity, Unauthenticated> {
        let mut notes = AuthenticationNotes::default();
        authenticator.authenticate(path, &headers, peer, &PeerIdentity::Unknown, NOW, &mut notes).await
    }

    #[tokio::test]
    async fn the_authorization_header_is_read_as_clients_expect() {
        for (value, want) in [
            (None, Ok("system:anonymous")),
            (Some("".as_bytes()), Ok("system:anonymous")),
            (Some(b"Basic Zm9vOmJhcg=="), Ok("system:anonymous")),
            (Some(b"Bearer"), Ok("system:anonymous")),
            (Some(b"Bearer "), Ok("system:anonymous")),
            (Some(b"good"), Ok("system:anonymous")),
            (Some(b"Bearer  good"), Ok("system:anonymous")),
            (Some(b"Bearer good"), Ok("tina")),
            (Some(b"bEARER good"), Ok("tina")),
            (Some(b"  Bearer good  "), Ok("tina")),
            (Some(b"Bearer good and more"), Ok("tina")),
            (Some(b"Bearer\tgood"), Ok("system:anonymous")),
            (Some(b"Bearer bad"), Err(Unauthenticated::Token)),
            (Some(b"Bearer \xff"), Err(Unauthenticated::Token)),
        ] {
            let authenticator = authenticator(Anonymous::Everywhere);
            let got = ask(&authenticator, PATH, headers(value), &PeerIdentity::Unknown).await;
            assert_eq!(got.as_ref().map(Identity::name), want.as_ref().copied(), "{value:?}");
        }
    }

    #[test]
    fn a_space_too_many_is_worth_a_warning() {
        for (value, warned) in [(None, false), (Some("Bearer a"), false), (Some("Bearer  a"), true)] {
            let headers = headers(value.map(str::as_bytes));
            assert_eq!(authorization_warning(&headers).is_some(), warned, "{value:?}");
        }
    }

    #[tokio::test]
    async fn certificates_come_before_tokens_and_bad_ones_do_not_hide_good_tokens() {
        let carl = Identity::authenticated(Claims { name: "carl".to_owned(), ..Claims::default() });
        let valid = PeerIdentity::Verified(carl);
        let refused = PeerIdentity::Refused("why".into());
        for (case, peer, token, want) in [
            ("certificate", &valid, None, Ok("carl")),
            ("certificate and token", &valid, Some("Bearer good"), Ok("carl")),
            ("certificate and wrong token", &valid, Some("Bearer bad"), Ok("carl")),
            ("refused certificate", &refused, None, Err(Unauthenticated::Certificate("why".into()))),
            ("refused certificate and token", &refused, Some("Bearer good"), Ok("tina")),
            ("refused certificate and wrong token", &refused, Some("Bearer bad"), Err(Unauthenticated::Token)),
        ] {
            let authenticator = authenticator(Anonymous::Everywhere);
            let got = ask(&authenticator, PATH, headers(token.map(str::as_bytes)), peer).await;
            assert_eq!(got.as_ref().map(Identity::name), want.as_ref().copied(), "{case}");
        }
    }

    #[tokio::test]
    async fn anonymous_requests_can_be_turned_off_and_kept_to_paths() {
        let health = Anonymous::At(["/healthz".to_owned()].into());
        for (anonymous, path, is_admitted) in [
            (Anonymous::Everywhere, "/api", true),
            (Anonymous::Nowhere, "/healthz", false),
            (health.clone(), "/healthz", true),
            (health.clone(), "/healthz/", false),
            (health.clone(), "/healthz/ping", false),
            (health.clone(), "/%68ealthz", false),
            (health, "/api", false),
        ] {
            let authenticator = authenticator(anonymous.clone());
            let got = ask(&authenticator, path, headers(None), &PeerIdentity::Unknown).await;
            let want = if is_admitted { Ok("system:anonymous") } else { Err(&Unauthenticated::NoCredentials) };
            assert_eq!(got.as_ref().map(Identity::name), want, "{anonymous:?} at {path}");
            let got = ask(&authenticator, path, headers(Some(b"Bearer good")), &PeerIdentity::Unknown).await;
            assert_eq!(got.expect("the token is known").groups(), ["dev", "system:authenticated"]);
        }
    }
}
