//! Input that nobody should send: each gets the fitting answer, and the server goes on as if nothing had been.

mod answers;
mod large;
mod requests;
mod wire;
