//! Whatever clients send, of every kind and in every place, is answered: with odd Unicode, lengths, numbers and nesting.
//!
//! Objects come from the generator that the fuzz targets use. The same ones are sent every time; `REVISOR_TEST_SEED`
//! gives others.

mod objects;
mod requests;

use crate::client::Reply;
use crate::dice::Dice;
use crate::harness::Server;

/// No answer to one object is longer. The longest tell what is wrong with it in many places.
const MAX_ANSWER: usize = 1 << 20;

/// Failures of the server that are none, by how their messages begin, and why.
const FAILURES: &[(&str, &str)] = &[
    ("failed to create typed patch object", "so the original answers to a configuration that is not of its type"),
    ("errors:\n  ", "so it answers where managers know an object with repeated keys in another version"),
];

/// What a seed of the environment adds to the numbers that inputs are made of; nothing if there is none.
fn seed() -> u64 {
    std::env::var("REVISOR_TEST_SEED").map_or(0, |_| Dice::any_seed())
}

/// Fails the test if this is not an answer to one who sent something odd: a refusal at most, bounded, and readable.
#[track_caller]
fn check(reply: &Reply, sent: &str) {
    let shown = || format!("{}\nsent: {}", reply.text(), &sent[..sent.floor_char_boundary(4096)]);
    let is_listed = |message: &str| FAILURES.iter().any(|(beginning, _)| message.starts_with(beginning));
    let is_answer = reply.code < 500 || is_listed(reply.json()["message"].as_str().unwrap_or_default());
    assert!(is_answer, "{}: {}", reply.code, shown());
    assert!(reply.body.len() <= MAX_ANSWER, "{} bytes: {}", reply.body.len(), shown());
    let media_type = reply.header("content-type").unwrap_or_default();
    let is_readable = match media_type.split(';').next().unwrap_or_default() {
        "application/json" => serde_json::from_slice::<serde_json::Value>(&reply.body).is_ok(),
        "application/yaml" => revisor_object::parse_yaml(&reply.body).is_ok(),
        _ => std::str::from_utf8(&reply.body).is_ok(),
    };
    assert!(is_readable, "{media_type}: {}", shown());
}

/// Fails the test if anything that was sent hurt the server.
async fn assert_unhurt(server: &Server) {
    server.assert_well().await;
    let log = server.process.log();
    assert!(!log.contains("panicked"), "{log}");
}
