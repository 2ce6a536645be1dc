//! How HTTP is spoken where flags say so: with pages of other sites, without HTTP/2, over connections that end by chance.

use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::client::Client;
use crate::harness::{Server, within};
use crate::objects::CONFIG_MAPS;

#[tokio::test]
async fn pages_of_other_sites_may_ask_if_their_origin_is_allowed() {
    let server = Server::start(&[r"--cors-allowed-origins=//example\.com(:|$)"]).await;
    let stranger = Client::new(server.kubeconfig.clone());
    for (method, origin, code, allowed) in [
        (Method::OPTIONS, "https://example.com", 204, Some("https://example.com")),
        (Method::GET, "http://example.com:8080", 403, Some("http://example.com:8080")),
        (Method::GET, "https://example.com.elsewhere.org", 403, None),
        (Method::OPTIONS, "https://elsewhere.org", 403, None),
    ] {
        let reply = stranger.send(method.clone(), CONFIG_MAPS, &[("origin", origin)], "").await.expect(code);
        assert_eq!(reply.header("access-control-allow-origin"), allowed, "{method} {origin}");
        assert_eq!(reply.header("access-control-allow-credentials"), allowed.map(|_| "true"), "{method} {origin}");
    }
}

#[tokio::test]
async fn http2_is_not_spoken_where_it_is_not_wanted() {
    let server = Server::start(&["--disable-http2-serving"]).await;
    assert!(server.client().connect().await.is_err(), "there is nothing that both speak");
    server.client().over_http1().get("/version").await.expect(200);
}

#[tokio::test]
async fn connections_end_by_chance_and_requests_do_not() {
    let server = Server::start(&["--goaway-chance=0.02"]).await;
    let client = server.client();
    let io = TokioIo::new(client.connect().await.expect("the server listens"));
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.expect("HTTP/2 is spoken");
    let connection = tokio::spawn(connection);
    // That so many in a row go by without one of them being the last happens once in 10^35 times.
    let mut answered = 0;
    while answered < 4000 && !connection.is_finished() {
        let request = client.request(Method::GET, "/healthz", &[], Bytes::new());
        match within(sender.try_send_request(request)).await {
            Ok(response) => {
                assert_eq!(response.status(), 200);
                response.into_body().collect().await.expect("the answer comes whole");
                answered += 1;
            }
            Err(mut error) => {
                let unsent: Option<http::Request<Full<Bytes>>> = error.take_message();
                assert!(unsent.is_some(), "a request that was sent is answered: {:?}", error.error());
                break;
            }
        }
    }
    assert!((1..4000).contains(&answered), "the connection ended after {answered} answers");
    within(connection).await.expect("does not panic").expect("it ended in good order");
}
