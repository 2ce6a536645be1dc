//! How the work of a write grows with what is sent: `cargo xtask growth`.
//!
//! For every list and map of every built-in kind ([`places`]) an object with n and with 4n items is made ([`items`]) and
//! goes the whole way of a write through a real registry ([`server`], [`survey`]): decoding, defaults, admission, managed fields,
//! validation, encoding; as a create, an update, a patch and an apply. So do objects of some custom resources
//! ([`custom`]) and the texts and selectors that are no objects ([`texts`]). What is measured is the processor's time of
//! the thread ([`clock`]), which others on the machine disturb little. The result is an exponent: 1 for work that grows
//! as its input does, 2 where each item looks at all others.
//!
//! This is a report for people. No test decides by a time.

pub mod clock;
pub mod custom;
pub mod growth;
pub mod items;
pub mod objects;
pub mod places;
pub mod report;
pub mod server;
pub mod survey;
pub mod texts;
