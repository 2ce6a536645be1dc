//! Calls: what is sent, what comes back, what is kept, and what is said when nothing comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, Version};
use http_body_util::Full;
use revisor_webhook::{CallError, ClientConfig, Limits, NetError, ServiceReference, Target, WebhookClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Barrier;

use crate::harness::{Authority, Hook, PATIENCE, Reply, Services, client, client_with, good, params, reply, versions};

const BODY: Bytes = Bytes::from_static(b"{}");

/// Short enough to be waited for. The tests are about what is said then, not about when.
const SOON: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_call_posts_json_and_returns_the_answer() {
    for (protocols, version) in
        [(&["h2", "http/1.1"][..], Version::HTTP_2), (&["http/1.1"], Version::HTTP_11), (&[], Version::HTTP_11)]
    {
        let (hook, config) = good(protocols, |_, body| reply(200, "application/json", body.clone())).await;
        let answer = client().post(&config, Bytes::from_static(b"{\"a\":1}"), PATIENCE).await.expect("it answers");
        assert_eq!((answer.status.as_u16(), answer.content_type.as_str()), (200, "application/json"));
        assert_eq!(answer.body, "{\"a\":1}");
        let (parts, _) = hook.requests().remove(0);
        assert_eq!((parts.method.as_str(), parts.version), ("POST", version));
        assert_eq!(parts.uri.path_and_query().map(|path| path.as_str()), Some("/hook?timeout=30s"));
        let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(header("content-type"), Some("application/json"));
        assert_eq!(header("accept"), Some("application/json, */*"));
        assert!(header("user-agent").is_some_and(|agent| agent.starts_with("revisor/")));
        let host = header("host").or(parts.uri.authority().map(|authority| authority.as_str()));
        assert_eq!(host, Some(hook.address.to_string().as_str()));
    }
}

#[tokio::test]
async fn a_service_is_asked_where_it_is_and_verified_by_its_name() {
    let authority = Authority::new("authority");
    let identity = authority.issue(params("hook", &["hook.ns.svc"]));
    let hook = Hook::start(&identity, &["h2", "http/1.1"], |_, _| reply(200, "application/json", "{}")).await;
    let client = WebhookClient::new(Arc::new(Services(vec![("ns/hook", hook.address)])), Limits::default());
    let config = |name: &str| ClientConfig {
        target: Target::Service(ServiceReference {
            namespace: "ns".into(),
            name: name.into(),
            path: "/convert".into(),
            port: 443,
        }),
        ca_bundle: authority.pem.clone().into(),
    };
    client.post(&config("hook"), BODY, PATIENCE).await.expect("it answers");
    let (parts, _) = hook.requests().remove(0);
    assert_eq!((parts.version, parts.headers["host"].to_str().ok()), (Version::HTTP_11, Some("hook.ns.svc:443")));

    let error = client.post(&config("gone"), BODY, PATIENCE).await.expect_err("there is no such service");
    assert_eq!(error.to_string(), r#"Post "https://gone.ns.svc:443/convert?timeout=30s": service "gone" not found"#);
}

#[tokio::test]
async fn connections_are_used_again() {
    for protocols in [&["h2"][..], &["http/1.1"]] {
        let (hook, config) = good(protocols, |_, _| reply(200, "application/json", "{}")).await;
        let client = client();
        for _ in 0..5 {
            client.clone().post(&config, BODY, PATIENCE).await.expect("it answers");
        }
        assert_eq!((hook.connections(), versions(&hook).len()), (1, 5), "{protocols:?}");
    }
}

#[tokio::test]
async fn connections_that_were_hung_up_are_replaced() {
    let (hook, config) = good(&["http/1.1"], |_, _| {
        let response = Response::builder().header("Connection", "close");
        Reply::Answer(response.body(Full::from("{}")).expect("the parts are valid"))
    })
    .await;
    let client = client();
    for _ in 0..3 {
        client.post(&config, BODY, PATIENCE).await.expect("it answers");
    }
    assert_eq!(hook.connections(), 3);
}

#[tokio::test]
async fn idle_connections_are_few_and_do_not_grow_old() {
    let (hook, config) = good(&["http/1.1"], |_, _| reply(200, "application/json", "{}")).await;
    let none_kept = client_with(Limits { max_idle_connections: 0, ..Limits::default() });
    let soon_closed = client_with(Limits { idle_age: Duration::from_millis(1), ..Limits::default() });
    for _ in 0..2 {
        none_kept.post(&config, BODY, PATIENCE).await.expect("it answers");
    }
    assert_eq!(hook.connections(), 2);

    // The server sees the connection end when the client closes it.
    let closed = Arc::new(tokio::sync::Notify::new());
    let authority = Authority::new("authority");
    let identity = authority.issue(params("hook", &["127.0.0.1"]));
    let inner = Hook::start(&identity, &[], |_, _| reply(200, "application/json", "{}")).await;
    let (target, notify) = (inner.address, closed.clone());
    let proxy = Hook::raw(move |mut stream| {
        let notify = notify.clone();
        Box::pin(async move {
            let mut onward = tokio::net::TcpStream::connect(target).await.expect("the webhook listens");
            drop(tokio::io::copy_bidirectional(&mut stream, &mut onward).await);
            notify.notify_one();
        })
    })
    .await;
    soon_closed.post(&proxy.config(&authority.pem), BODY, PATIENCE).await.expect("it answers");
    tokio::time::timeout(PATIENCE, closed.notified()).await.expect("the connection is closed");
}

#[tokio::test]
async fn webhooks_that_were_not_called_for_long_are_forgotten() {
    let (hook, config) = good(&["http/1.1"], |_, _| reply(200, "application/json", "{}")).await;
    let client = client_with(Limits { max_webhooks: 1, ..Limits::default() });
    let other = ClientConfig { target: Target::Url(hook.url("/other")), ..config.clone() };
    for config in [&config, &config, &other, &config] {
        client.post(config, BODY, PATIENCE).await.expect("it answers");
    }
    assert_eq!(hook.connections(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_run_side_by_side() {
    for protocols in [&["h2"][..], &["http/1.1"]] {
        // The webhook answers nobody before it was asked by all.
        let all = 40;
        let barrier = Arc::new(Barrier::new(all));
        let (hook, config) =
            good(protocols, move |_, body| Reply::Together(barrier.clone(), Response::new(Full::new(body.clone()))))
                .await;
        let client = client();
        for _ in 0..2 {
            let calls: Vec<_> = (0..all)
                .map(|number| {
                    let (client, config) = (client.clone(), config.clone());
                    tokio::spawn(async move {
                        let body = Bytes::from(format!("{{\"n\":{number}}}"));
                        (client.post(&config, body.clone(), PATIENCE).await.expect("it answers").body, body)
                    })
                })
                .collect();
            for call in calls {
                let (answered, sent) = call.await.expect("no call panics");
                assert_eq!(answered, sent);
            }
        }
        assert_eq!(versions(&hook).len(), 2 * all);
        if protocols == ["http/1.1"] {
            assert_eq!(hook.connections(), all, "connections that many needed at a time are used again");
        }
    }
}

#[tokio::test]
async fn calls_beyond_the_limit_wait_for_their_turn() {
    let (asked, heard) = (AtomicUsize::new(0), Arc::new(tokio::sync::Notify::new()));
    let notify = heard.clone();
    let (hook, config) = good(&["http/1.1"], move |_, _| {
        notify.notify_one();
        if asked.fetch_add(1, Ordering::SeqCst) == 0 { Reply::Hang } else { reply(200, "application/json", "{}") }
    })
    .await;
    let client = client_with(Limits { max_calls: 1, ..Limits::default() });
    let first = tokio::spawn({
        let (client, config) = (client.clone(), config.clone());
        async move { client.post(&config, BODY, PATIENCE).await }
    });
    tokio::time::timeout(PATIENCE, heard.notified()).await.expect("the webhook is asked");

    let error = client.post(&config, BODY, SOON).await.expect_err("it is not its turn");
    assert!(matches!(error, CallError::Net { cause: NetError::Timeout, .. }), "{error}");
    assert_eq!(versions(&hook).len(), 1);

    // A call that is given up makes room for the next.
    first.abort();
    client.post(&config, BODY, PATIENCE).await.expect("it answers");
}

#[tokio::test]
async fn a_webhook_that_asks_for_patience_is_asked_again() {
    for code in [429, 503] {
        let asked = AtomicUsize::new(0);
        let (hook, config) = good(&["http/1.1"], move |_, _| {
            let status = if asked.fetch_add(1, Ordering::SeqCst) < 2 { code } else { 200 };
            let response = Response::builder().status(status).header("Retry-After", "0");
            Reply::Answer(response.body(Full::from("{}")).expect("the parts are valid"))
        })
        .await;
        client().post(&config, BODY, PATIENCE).await.expect("it answers in the end");
        assert_eq!(versions(&hook).len(), 3);
    }
    let (hook, config) = good(&["http/1.1"], |_, _| {
        let response = Response::builder().status(429).header("Retry-After", "0");
        Reply::Answer(response.body(Full::from("{}")).expect("the parts are valid"))
    })
    .await;
    client().post(&config, BODY, PATIENCE).await.expect_err("it never does");
    assert_eq!(versions(&hook).len(), 11);
}

#[tokio::test]
async fn errors_are_told_and_redirects_not_followed() {
    for (status, body, want) in [
        (302, "", "the server responded with the status code 302 but did not return more information"),
        (307, "", "the server responded with the status code 307 but did not return more information"),
        (404, "x", "the server could not find the requested resource"),
        (500, "nope here\n", r#"an error on the server ("nope here") has prevented the request from succeeding"#),
    ] {
        let (hook, config) = good(&["http/1.1"], move |_, _| {
            let response = Response::builder().status(status).header("Location", "/elsewhere");
            Reply::Answer(response.body(Full::from(body)).expect("the parts are valid"))
        })
        .await;
        let error = client().post(&config, BODY, PATIENCE).await.expect_err("it is an error");
        assert!(matches!(&error, CallError::Status(answer) if answer.code.as_u16() == status), "{error:?}");
        assert_eq!((error.to_string().as_str(), versions(&hook).len()), (want, 1));
    }
}

#[tokio::test]
async fn an_answer_may_not_be_too_large() {
    let limits = Limits { max_response_bytes: 1000, ..Limits::default() };
    for protocols in [&["h2"][..], &["http/1.1"]] {
        for (size, fits) in [(1000, true), (1001, false)] {
            let (_hook, config) = good(protocols, move |_, _| reply(200, "application/json", " ".repeat(size))).await;
            let result = client_with(limits.clone()).post(&config, BODY, PATIENCE).await;
            match result {
                Ok(answer) => assert!(fits && answer.body.len() == size),
                Err(error) => assert!(!fits && matches!(error, CallError::TooLarge(1000)), "{error}"),
            }
        }
    }
    // One that does not say how long it will be is stopped on the way.
    let (_hook, config) = endless().await;
    let error = client_with(limits).post(&config, BODY, PATIENCE).await.expect_err("it never ends");
    assert_eq!(error.to_string(), "the response is larger than 1000 bytes");
}

/// A webhook that goes on answering for as long as someone listens.
async fn endless() -> (Hook, ClientConfig) {
    tls_talker(|mut stream| {
        Box::pin(async move {
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
            let mut result = stream.write_all(head).await;
            while result.is_ok() {
                result = stream.write_all(b"100\r\n").await;
                result = result.and(stream.write_all(&[b' '; 256]).await).and(stream.write_all(b"\r\n").await);
            }
        })
    })
    .await
}

type Talk = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
type TlsStream = tokio_rustls::server::TlsStream<tokio::net::TcpStream>;

/// A server that reads the beginning of a request over TLS and then talks as it likes.
async fn tls_talker(talk: impl Fn(TlsStream) -> Talk + Send + Sync + 'static) -> (Hook, ClientConfig) {
    let authority = Authority::new("authority");
    let acceptor = authority.issue(params("hook", &["127.0.0.1"])).acceptor(&[]);
    let talk = Arc::new(talk);
    let hook = Hook::raw(move |stream| {
        let (acceptor, talk) = (acceptor.clone(), talk.clone());
        Box::pin(async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let mut request = [0; 4096];
            if stream.read(&mut request).await.is_ok() {
                talk(stream).await;
            }
        })
    })
    .await;
    let config = hook.config(&authority.pem);
    (hook, config)
}

#[tokio::test]
async fn what_breaks_on_the_way_is_told_as_go_tells_it() {
    let expect = async |config: &ClientConfig, timeout: Duration, want: &str| {
        let error = client().post(config, BODY, timeout).await.expect_err(want).to_string();
        let Target::Url(url) = &config.target else { panic!("the tests use URLs") };
        let shown = revisor_object::Duration::from_nanos(i64::try_from(timeout.as_nanos()).expect("it is short"));
        assert_eq!(error, want.replace("{POST}", &format!("Post \"{url}?timeout={shown}\"")));
    };
    let at = |url: &str| ClientConfig { target: Target::Url(url.into()), ca_bundle: Vec::new() };

    // A port that was free a moment ago: nobody listens there.
    let closed = Hook::raw(|_| Box::pin(async {})).await;
    let free = closed.address;
    drop(closed);
    let until_closed = async {
        while tokio::net::TcpStream::connect(free).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, until_closed).await.expect("the listener is closed");
    let refused = format!("{{POST}}: dial tcp {free}: connect: connection refused");
    expect(&at(&format!("https://{free}/hook")), PATIENCE, &refused).await;

    let hangs_up = Hook::raw(|_| Box::pin(async {})).await;
    let bundle = Authority::new("authority").pem;
    // The two sides race: the end may come as an end or, as the greeting was not read, as a reset.
    let error = client().post(&hangs_up.config(&bundle), BODY, PATIENCE).await.expect_err("it hangs up").to_string();
    assert!(error.ends_with(": EOF") || error.ends_with("connection reset by peer"), "{error}");

    for (greeting, want) in [
        ("hello, this is not TLS\r\n\r\n", "{POST}: tls: first record does not look like a TLS handshake"),
        ("HTTP/1.0 400 Bad Request\r\n\r\n", "{POST}: http: server gave HTTP response to HTTPS client"),
    ] {
        let no_tls = Hook::raw(move |mut stream| {
            Box::pin(async move {
                drop(stream.read(&mut [0; 4096]).await);
                drop(stream.write_all(greeting.as_bytes()).await);
            })
        })
        .await;
        expect(&no_tls.config(&bundle), PATIENCE, want).await;
    }

    let silent = Hook::raw(|stream| {
        Box::pin(async move {
            std::future::pending::<()>().await;
            drop(stream);
        })
    })
    .await;
    expect(&silent.config(&bundle), SOON, "{POST}: context deadline exceeded").await;

    for protocols in [&["h2"][..], &["http/1.1"]] {
        let (_hook, config) = good(protocols, |_, _| Reply::Hang).await;
        expect(&config, SOON, "{POST}: context deadline exceeded").await;
    }
    let (_hook, config) = good(&["http/1.1"], |_, _| Reply::Close).await;
    expect(&config, PATIENCE, "{POST}: EOF").await;

    let broken_off = "unexpected error when reading response body. Please retry. Original error: ";
    let (_hook, config) = tls_talker(|mut stream| {
        Box::pin(async move {
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{").await);
            drop(stream.shutdown().await);
        })
    })
    .await;
    expect(&config, PATIENCE, &format!("{broken_off}unexpected EOF")).await;

    let (_hook, config) = tls_talker(|mut stream| {
        Box::pin(async move {
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{").await);
            drop(stream.flush().await);
            std::future::pending::<()>().await;
        })
    })
    .await;
    expect(&config, SOON, &format!("{broken_off}context deadline exceeded")).await;

    let (_hook, config) = tls_talker(|mut stream| {
        Box::pin(async move {
            drop(stream.write_all(b"hello, this is not HTTP\r\n\r\n").await);
            drop(stream.shutdown().await);
        })
    })
    .await;
    let not_http = "{POST}: net/http: HTTP/1.x transport connection broken: malformed HTTP response";
    expect(&config, PATIENCE, not_http).await;
}

#[tokio::test]
async fn an_answer_may_end_with_the_connection_without_a_goodbye() {
    let (_hook, config) = tls_talker(|mut stream| {
        Box::pin(async move {
            drop(stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\":1}").await);
            drop(stream.flush().await);
            drop(stream.into_inner().0.shutdown().await);
        })
    })
    .await;
    let answer = client().post(&config, BODY, PATIENCE).await.expect("it answers");
    assert_eq!(answer.body, "{\"a\":1}");
}
