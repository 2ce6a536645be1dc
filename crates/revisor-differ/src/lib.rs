//! Asks two API servers the same and tells where their answers differ: `cargo xtask differ`.
//!
//! A [`Group`] of requests is sent to both servers, one request after the other, so that what one leaves behind is the
//! same for the next on both sides. Groups come from a script, a text that people write ([`script`]), or are made from
//! the tables of the catalog by a number, the same ones for the same number ([`generate`]). Answers are compared after
//! everything is taken out of them that has to differ ([`normal`]); what is left is named by its cause ([`finding`]),
//! the request that shows it is made as small as it can be ([`shrink`]), and told once ([`report`]). What differs on
//! purpose is a table with reasons ([`deliberate`]).

pub mod client;
pub mod deliberate;
pub mod finding;
pub mod generate;
pub mod group;
pub mod normal;
pub mod report;
pub mod run;
pub mod script;
pub mod shrink;

pub use group::{Group, Step};
