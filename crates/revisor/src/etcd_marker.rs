//! How the program called as `kube-apiserver` finds the folder of the program called as `etcd`: it asks the address that it
//! was told. An etcd that is one does not know what it is asked, and is left to those who talk to it.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Where the marker tells what it marks.
pub(crate) const MARKER_PATH: &str = "/revisor/marker";

/// How long an etcd is waited for that may just be starting, as the original waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(5);

/// The longest answer that is read.
const MAX_ANSWER: u64 = 64 * 1024;

/// What the marker marks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Marker {
    /// The folder for the state of the server, as a whole path.
    pub(crate) data_dir: String,
}

/// The folder that the first of these servers marks; `None` if it is an etcd of its own.
pub(crate) fn marked_folder(servers: &str) -> Result<Option<String>, String> {
    let first = servers.split(',').map(str::trim).find(|server| !server.is_empty()).unwrap_or_default();
    // The marker is for one machine and has no certificates.
    let Some(address) = first.strip_prefix("http://") else { return Ok(None) };
    let address = address.trim_end_matches('/');
    let begun = Instant::now();
    loop {
        match ask(address) {
            Ok(answer) => return Ok(answer.map(|marker| marker.data_dir)),
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(50)),
            Err(error) => return Err(format!("cannot reach the etcd at {first}: {error}")),
        }
    }
}

fn ask(address: &str) -> std::io::Result<Option<Marker>> {
    let refused = || std::io::Error::other("it has no address");
    let target = address.to_socket_addrs()?.next().ok_or_else(refused)?;
    let mut stream = TcpStream::connect_timeout(&target, ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    write!(stream, "GET {MARKER_PATH} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    // What is no text is no marker.
    if stream.take(MAX_ANSWER).read_to_string(&mut answer).is_err() {
        return Ok(None);
    }
    Ok(read(&answer))
}

fn read(answer: &str) -> Option<Marker> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let is_found = head.split_whitespace().nth(1) == Some("200");
    is_found.then(|| serde_json::from_str(body).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marker_is_taken_for_one() {
        let marker = Some(Marker { data_dir: "/x".to_owned() });
        for (answer, want) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"dataDir\":\"/x\"}", marker),
            ("HTTP/1.1 404 Not Found\r\n\r\n404 page not found\n", None),
            ("HTTP/1.1 200 OK\r\n\r\n{\"health\":\"true\"}", None),
            ("", None),
        ] {
            assert_eq!(read(answer), want, "{answer}");
        }
        assert_eq!(marked_folder("https://127.0.0.1:2379"), Ok(None), "one with certificates is one of its own");
    }
}
