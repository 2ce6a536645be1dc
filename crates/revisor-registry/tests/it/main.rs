//! The registry over a real store in a folder of its own.

mod fixture;
mod pods;
mod reading;
mod services;
mod scaling;
mod writing;
