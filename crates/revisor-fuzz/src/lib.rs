//! Fuzz targets for everything that parses outside data.
//!
//! A target is a function that takes any bytes and panics when a law is broken. It is written once and run by two
//! engines: `cargo test` mutates the seeds for a bounded number of rounds, the same ones every time ([`Mutator`]), and
//! `cargo xtask fuzz` lets libFuzzer search, guided by coverage, for as long as it is told to.
//!
//! To add a target: write the function in the module of its subject, add its row to [`TARGETS`], and give it a folder
//! of seeds, one file per seed, under `seeds/<name>`. An input that once broke a target stays there as a seed.

mod choices;
mod generator;
mod mutator;
mod targets;

pub use choices::Choices;
pub use generator::{Generator, examples, odd_text};
pub use mutator::Mutator;
pub use targets::{TARGETS, Target};
