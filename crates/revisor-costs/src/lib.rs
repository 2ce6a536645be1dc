//! What security costs a request: who is asking, may they, whose turn is it, what is written down, and what is sealed.
//! Each part is measured alone, with the crate that does it in the server, in nanoseconds of one processor. What the
//! server does around them (looking up the objects that a token is bound to, locks that others hold) is not in it.

pub mod asking;
mod clock;
pub mod noting;
pub mod queueing;
pub mod sealing;

pub use clock::nanoseconds;

use revisor_object::{Object, Value, parse_json};

/// The object that a text of this crate describes.
fn object(text: &str) -> anyhow::Result<Object> {
    match parse_json(text.as_bytes()).map(|parsed| parsed.value) {
        Ok(Value::Object(object)) => Ok(object),
        _ => anyhow::bail!("not an object: {text}"),
    }
}
