//! What can be done with HTTP/2 to a server that lets itself be kept busy, and what comes of it here.

use std::time::Duration;

use http::StatusCode;
use revisor_api::Limits;
use tokio::io::AsyncWriteExt;

use crate::frames::{
    ACK, CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frames, GOAWAY, HEADERS, PING,
    REFUSED_STREAM, RST_STREAM, SETTINGS, frame, get, get_fields, reset, window_update,
};
use crate::harness::{TestServer, within};

const WINDOW: u32 = 65_535;
const SOON: Duration = Duration::from_millis(200);

/// The numbers that a client gives to its streams.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|at| 2 * at + 1)
}

async fn assert_others_are_served(server: &TestServer) {
    for (protocol, mut client) in server.clients().await {
        assert_eq!(client.text("/peer").await.0, StatusCode::OK, "{protocol}");
    }
}

#[tokio::test]
async fn strangers_have_few_streams_and_acquaintances_many() {
    let limits = Limits { unauthenticated_streams: 5, streams: 20, ..Limits::default() };
    let server = TestServer::with(limits, Duration::ZERO);
    let mut stranger = Frames::connect(&server, WINDOW).await;
    for stream in streams(5) {
        stranger.send(&get(stream, "/watch")).await.expect("sent");
        assert_eq!(stranger.next_of(DATA).await.expect("hello").stream, stream);
    }
    for stream in streams(25).skip(5) {
        stranger.send(&get(stream, "/watch")).await.expect("sent");
        let refused = stranger.next_of(RST_STREAM).await.expect("refused");
        assert_eq!((refused.stream, refused.reason()), (stream, REFUSED_STREAM));
    }
    // Who does not listen is sent away.
    stranger.send(&get(51, "/watch")).await.expect("sent");
    while stranger.next().await.is_some() {}

    let mut acquaintance = Frames::connect(&server, WINDOW).await;
    acquaintance.send(&get(1, "/login")).await.expect("sent");
    assert_eq!(acquaintance.next_of(DATA).await.expect("an answer").payload, b"hello");
    for stream in streams(21).skip(1) {
        acquaintance.send(&get(stream, "/watch")).await.expect("sent");
        assert_eq!(acquaintance.next_of(DATA).await.expect("hello").stream, stream);
    }
    acquaintance.send(&get(43, "/watch")).await.expect("sent");
    assert_eq!(acquaintance.next_of(RST_STREAM).await.expect("refused").reason(), REFUSED_STREAM);
}

#[tokio::test]
async fn a_connection_of_somebody_who_stays_unknown_ends_with_its_answer() {
    let server = TestServer::start();
    let mut stranger = Frames::connect(&server, WINDOW).await;
    stranger.send(&get(1, "/stranger")).await.expect("sent");
    let (mut answer, mut goes_away) = (Vec::new(), false);
    while let Some(received) = stranger.next().await {
        match received.kind {
            DATA => answer.extend(received.payload),
            GOAWAY => goes_away = true,
            PING if received.flags & ACK == 0 => {
                stranger.send(&frame(PING, ACK, 0, &received.payload)).await.expect("sent");
            }
            _ => {}
        }
    }
    assert_eq!(answer, b"and good bye");
    assert!(goes_away, "the client is told to look for another connection");
}

#[tokio::test]
async fn streams_that_are_reset_as_soon_as_they_are_opened_end_the_connection() {
    let server = TestServer::start();
    let mut rapid = Frames::connect(&server, WINDOW).await;
    let flood: Vec<u8> = streams(1000).flat_map(|stream| [get(stream, "/gated"), reset(stream)].concat()).collect();
    // Whether all of it can still be sent does not matter.
    let _ = rapid.send(&flood).await;
    assert_eq!(rapid.next_of(GOAWAY).await.expect("told why").reason(), ENHANCE_YOUR_CALM);
    while rapid.next().await.is_some() {}
    assert_others_are_served(&server).await;
}

#[tokio::test]
async fn heads_without_end_end_the_connection() {
    let server = TestServer::start();
    let literal = |at: u32| {
        // A field that is not to be remembered, with a name and a value of its own.
        let name = format!("x-{at:05}");
        [&[0, name.len() as u8], name.as_bytes(), &[1, b'y']].concat()
    };
    for (name, size) in [("empty pieces", 0), ("small pieces", 1), ("large pieces", 1400)] {
        let mut endless = Frames::connect(&server, WINDOW).await;
        let mut flood = frame(HEADERS, END_STREAM, 1, &get_fields("/peer"));
        let piece: Vec<u8> = (0..size).flat_map(literal).collect();
        for _ in 0..2000 {
            flood.extend(frame(CONTINUATION, 0, 1, &piece));
        }
        let _ = endless.send(&flood).await;
        let told = endless.next_of(GOAWAY).await.expect(name);
        assert_eq!(told.reason(), ENHANCE_YOUR_CALM, "{name}");
        while endless.next().await.is_some() {}
    }
    // A head that is only too large is refused, and the connection goes on.
    let mut large = Frames::connect(&server, WINDOW).await;
    let mut head = frame(HEADERS, END_STREAM, 1, &get_fields("/peer"));
    head.extend(frame(CONTINUATION, 0, 1, &(0..1000).flat_map(literal).collect::<Vec<u8>>()));
    head.extend(frame(CONTINUATION, END_HEADERS, 1, &(1000..2000).flat_map(literal).collect::<Vec<u8>>()));
    large.send(&head).await.expect("sent");
    large.send(&get(3, "/peer")).await.expect("sent");
    assert_eq!(large.next_of(DATA).await.expect("an answer").stream, 3);
    assert_others_are_served(&server).await;
}

#[tokio::test]
async fn floods_of_what_must_be_answered_are_not_taken_faster_than_the_answers() {
    let server = TestServer::start();
    for (name, kind, payload) in [("settings", SETTINGS, &[][..]), ("pings", PING, &[0; 8])] {
        let Frames { mut reading, mut writing } = Frames::connect(&server, WINDOW).await;
        // More than all buffers on the way hold. Nothing is read, so at some point nothing more is taken.
        let flood = frame(kind, 0, 0, payload).repeat(10_000);
        let flooding = async {
            for _ in 0..200 {
                if writing.write_all(&flood).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = flooding => panic!("{name}: all of it was taken, though no answer was read"),
            () = assert_others_are_served(&server) => {}
        }
        // Who reads gets the answers, and the server is ready for more.
        let received = async { tokio::io::AsyncReadExt::read_exact(&mut reading, &mut [0; 9 * 1000]).await };
        within(received).await.expect(name);
    }
    assert_others_are_served(&server).await;
}

#[tokio::test]
async fn a_stream_that_is_not_read_ends_and_the_others_go_on() {
    let server = TestServer::with(Limits { unread_timeout: SOON, ..Limits::default() }, Duration::ZERO);
    let mut client = Frames::connect(&server, 0).await;
    client.send(&[get(1, "/list"), get(3, "/watch")].concat()).await.expect("sent");
    client.send(&window_update(3, 1000)).await.expect("sent");
    assert_eq!(client.next_of(DATA).await.expect("hello").stream, 3);
    let ended = client.next_of(RST_STREAM).await.expect("ended");
    assert_eq!((ended.stream, ended.reason()), (1, CANCEL));
    // A watch without news is not unread.
    client.send(&get(5, "/peer")).await.expect("sent");
    client.send(&window_update(5, 1000)).await.expect("sent");
    assert_eq!(client.next_of(DATA).await.expect("an answer").stream, 5);
    assert!(server.metrics.render().contains("\nrevisor_answers_cut_off_total 1\n"));
}

#[tokio::test]
async fn an_end_that_is_not_read_takes_the_connection_with_it() {
    let server = TestServer::with(Limits { unread_timeout: SOON, ..Limits::default() }, Duration::ZERO);
    let mut client = Frames::connect(&server, 1).await;
    // All of the answer is on its way when one byte of it has left.
    client.send(&get(1, "/peer")).await.expect("sent");
    assert_eq!(client.next_of(DATA).await.expect("a byte").payload.len(), 1);
    while client.next().await.is_some() {}
    assert!(server.metrics.render().contains("\nrevisor_answers_cut_off_total 1\n"));
}
