//! [`Proxy`]: the `proxy-url` of a cluster in a kubeconfig: who passes connections on (HTTP CONNECT).

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use revisor_object::unescape_query;
use tokio::net::TcpStream;

/// An HTTP proxy.
#[derive(Debug)]
pub(super) struct Proxy {
    host: String,
    port: u16,
    authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Reads `http://[USER:PASSWORD@]HOST[:PORT]`. Proxies that are reached otherwise are refused.
    pub(super) fn parse(url: &str) -> anyhow::Result<Proxy> {
        let uri: http::Uri = url.parse().context("it is no URL")?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(other) => bail!(
                "proxies of the kind {other:?} are not supported, only those that speak http: use one, or `kubectl proxy` and --server=http://127.0.0.1:8001"
            ),
            None => bail!("it must begin with http://"),
        }
        let host = uri.host().filter(|host| !host.is_empty()).context("it has no host")?;
        let user = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@')).map(|(user, _)| user);
        let authorization = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            // In a URL a plus sign stands for itself.
            let plain = |text: &str| unescape_query(&text.replace('+', "%2B")).map_err(anyhow::Error::msg);
            let shown = format!("Basic {}", STANDARD.encode(format!("{}:{}", plain(name)?, plain(password)?)));
            let mut value = HeaderValue::from_str(&shown)?;
            value.set_sensitive(true);
            anyhow::Ok(value)
        });
        Ok(Proxy {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(80),
            authorization: authorization.transpose()?,
        })
    }

    /// A connection to a host and port, passed on by the proxy.
    pub(super) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, String> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            format!("the proxy {}:{}: {what}: {error}", self.host, self.port)
        };
        let stream = TcpStream::connect((&*self.host, self.port)).await;
        let stream = stream.map_err(|error| failed("cannot connect", &error))?;
        let shaken = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| failed("cannot connect", &error))?;
        tokio::spawn(connection.with_upgrades());
        let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut request = Request::builder().method(Method::CONNECT).uri(&target).header(header::HOST, &target);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| failed("cannot ask it", &error))?;
        let answer = sender.send_request(request).await.map_err(|error| failed("no answer", &error))?;
        if !answer.status().is_success() {
            return Err(failed("it does not pass connections on", &answer.status()));
        }
        let passed = hyper::upgrade::on(answer).await.map_err(|error| failed("it hung up", &error))?;
        let parts = passed.downcast::<TokioIo<TcpStream>>().map_err(|_| failed("it hung up", &"no connection"))?;
        // A server that speaks first is none of those that are asked here.
        if !parts.read_buf.is_empty() {
            return Err(failed("the server behind it speaks unasked", &format!("{} bytes", parts.read_buf.len())));
        }
        Ok(parts.io.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_say_where_a_proxy_is() {
        for (url, want) in [
            ("http://proxy.example.com:3128", ("proxy.example.com", 3128, None)),
            ("http://proxy/", ("proxy", 80, None)),
            ("http://[::1]:8080", ("::1", 8080, None)),
            ("http://u:p%40+@h:1", ("h", 1, Some("Basic dTpwQCs="))),
        ] {
            let proxy = Proxy::parse(url).expect(url);
            let shown = proxy.authorization.as_ref().map(|value| value.to_str().expect("a text"));
            assert_eq!((&*proxy.host, proxy.port, shown), want, "{url}");
        }
        for (url, want) in [
            ("socks5://h:1080", "\"socks5\" are not supported"),
            ("https://h", "\"https\" are not supported"),
            ("h:1", "must begin with http://"),
            ("http://", "no URL"),
        ] {
            let error = format!("{:#}", Proxy::parse(url).expect_err(url));
            assert!(error.contains(want), "{url}: {error}");
        }
    }
}
