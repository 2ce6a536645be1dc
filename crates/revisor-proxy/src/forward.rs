//! [`Forward`]: one request, from here to those behind, and its answer back (upstream: `proxy.UpgradeAwareHandler`).

use std::net::IpAddr;

use http::header::{EXPECT, HOST, HeaderValue, LOCATION};
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, Uri, Version};

use crate::headers::{asks_for_upgrade, prepare_answer, prepare_request};
use crate::{ProxyClient, ProxyError, ReceivedBody, Rewriting, SentBody, Target, Tunnel};

/// How a request is passed on.
#[derive(Debug)]
pub struct Forward<'a> {
    /// Whom it goes to.
    pub target: &'a Target,
    /// What is asked for there.
    pub path_and_query: String,
    /// The host that is asked for there.
    pub host: &'a str,
    /// Who sent it.
    pub client: IpAddr,
    /// How places behind are told to those in front; nothing if they are not.
    pub rewriting: Option<Rewriting>,
    /// Whether those behind may not send clients elsewhere.
    pub refuses_redirects: bool,
}

/// What came back.
#[derive(Debug)]
pub enum Forwarded {
    /// An answer.
    Answer(Response<ReceivedBody>),
    /// The head of an answer behind which both sides say what they want.
    Tunnel(Response<()>, Tunnel),
    /// A redirection that is not passed on.
    Redirected,
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// Nobody was reached, or nobody answered.
    #[error("error trying to reach service: {0}")]
    Reaching(ProxyError),
    /// The same for a request that asked for an upgrade.
    #[error("error dialing backend: {0}")]
    Dialing(ProxyError),
    /// An upgrade was answered with something else, which is no error.
    #[error("invalid upgrade response: status code {0}")]
    NoUpgrade(u16),
    /// What was asked for cannot be said.
    #[error("{0}")]
    Request(String),
    /// Where the answer points to cannot be read.
    #[error("error trying to parse Location header: {0}")]
    Location(String),
}

impl Forward<'_> {
    /// Passes a request on. Who the client is must have been taken out of it.
    pub async fn send(self, client: &ProxyClient, request: Request<SentBody>) -> Result<Forwarded, ForwardError> {
        let is_upgrade = asks_for_upgrade(request.headers());
        let request = self.prepare(request, is_upgrade)?;
        if is_upgrade {
            let (response, tunnel) = client.upgrade(self.target, request).await.map_err(ForwardError::Dialing)?;
            return match tunnel {
                Some(tunnel) => Ok(Forwarded::Tunnel(response.map(drop), tunnel)),
                None if response.status().as_u16() < 400 => Err(ForwardError::NoUpgrade(response.status().as_u16())),
                None => Ok(Forwarded::Answer(prepared(response))),
            };
        }
        let response = client.send(self.target, request).await.map_err(ForwardError::Reaching)?;
        // An upgrade that nobody asked for leads nowhere.
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(ForwardError::NoUpgrade(response.status().as_u16()));
        }
        let is_elsewhere = response.status().is_redirection() && response.headers().contains_key(LOCATION);
        if is_elsewhere && self.refuses_redirects {
            return Ok(Forwarded::Redirected);
        }
        let mut response = prepared(response);
        if let Some(rewriting) = &self.rewriting {
            rewriting.rewrite_location(response.headers_mut()).map_err(ForwardError::Location)?;
        }
        Ok(Forwarded::Answer(response))
    }

    fn prepare(&self, request: Request<SentBody>, is_upgrade: bool) -> Result<Request<SentBody>, ForwardError> {
        let refuse = |error: http::Error| ForwardError::Request(error.to_string());
        let (parts, body) = request.into_parts();
        let mut sent = Request::new(body);
        *sent.method_mut() = parts.method;
        *sent.version_mut() = Version::HTTP_11;
        *sent.headers_mut() = parts.headers;
        let asked = PathAndQuery::try_from(self.path_and_query.as_str()).map_err(|error| refuse(error.into()))?;
        *sent.uri_mut() = Uri::builder().path_and_query(asked).build().map_err(refuse)?;
        let headers = sent.headers_mut();
        prepare_request(headers, self.client, is_upgrade);
        // Whoever waited to be asked for the body is asked by this server.
        headers.remove(EXPECT);
        headers.insert(HOST, HeaderValue::try_from(self.host).map_err(|error| refuse(error.into()))?);
        if let Some(rewriting) = self.rewriting.as_ref().filter(|_| !is_upgrade) {
            let path = self.path_and_query.split('?').next().unwrap_or_default();
            rewriting.tell(headers, path);
        }
        Ok(sent)
    }
}

fn prepared(mut response: Response<ReceivedBody>) -> Response<ReceivedBody> {
    prepare_answer(response.headers_mut());
    response
}
