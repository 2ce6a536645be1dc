//! Commands that reach a cluster through an HTTP proxy, as its kubeconfig says, and what `revisor health` tells.

use std::process::Command;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::harness::{Server, within};

/// A proxy for those who say who they are. Tells of every connection where it was to lead.
async fn proxy() -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.expect("the head of a request"));
            }
            let head = String::from_utf8(head).expect("a text");
            let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
            assert!(head.starts_with("CONNECT "), "{head}");
            // user:secret
            let is_known = head.to_lowercase().contains("proxy-authorization: basic dxnlcjpzzwnyzxq=");
            if !is_known {
                client.write_all(b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n").await.expect("is told");
                continue;
            }
            let mut server = TcpStream::connect(&target).await.expect("the server is there");
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("is told");
            tell.send(target).expect("the test listens");
            // Whoever hangs up has what they wanted.
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await.ok() });
        }
    });
    (port, told)
}

async fn health(kubeconfig: &std::path::Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_revisor"));
    command.arg("health").arg("--kubeconfig").arg(kubeconfig);
    let ended = within(tokio::task::spawn_blocking(move || command.output())).await;
    let output = ended.expect("does not panic").expect("the program can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[tokio::test]
async fn a_cluster_is_reached_through_the_proxy_of_its_kubeconfig() {
    let server = Server::start(&[]).await;
    let (port, mut told) = proxy().await;
    let plain = server.data().join("kubeconfig");
    let text = std::fs::read_to_string(&plain).expect("the server wrote it");
    let line = text.lines().find(|line| line.trim_start().starts_with("server: ")).expect("says where").to_owned();
    let indent = &line[..line.len() - line.trim_start().len()];
    let folder = tempfile::tempdir().expect("a folder");
    let through = |url: &str| {
        let path = folder.path().join("kubeconfig");
        let text = text.replace(&line, &format!("{line}\n{indent}proxy-url: {url}"));
        std::fs::write(&path, text).expect("is written");
        path
    };
    let (code, said) = health(&through(&format!("http://user:secret@127.0.0.1:{port}"))).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("readyz check passed"), "{said}");
    assert_eq!(told.try_recv().expect("it went through the proxy"), server.kubeconfig.address.to_string());
    for (url, want) in [
        (format!("http://127.0.0.1:{port}"), "it does not pass connections on: 407"),
        ("socks5://127.0.0.1:1".to_owned(), "proxies of the kind \"socks5\" are not supported"),
    ] {
        let (code, said) = health(&through(&url)).await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(want), "{said}");
    }
    assert!(told.try_recv().is_err());
    assert_eq!(health(&plain).await.0, Some(0));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_not_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_revisor"));
        command.arg("health").args(words).current_dir(folder.path());
        let output = command.output().expect("the program can be started");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("cannot read the kubeconfig revisor-data/kubeconfig"), "{said}");
    let (code, said) = run(&["--wait", "--timeout=50ms"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("the server is not well within 50ms"), "{said}");
}
