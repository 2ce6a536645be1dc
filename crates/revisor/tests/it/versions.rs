//! Versions as clients meet them: one sequence, states that can be read again, changes that can be followed.

mod history;
mod pages;
mod watching;
