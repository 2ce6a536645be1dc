//! The registry over a real store in a folder of its own.

mod conversions;
mod custom;
mod fixture;
mod pods;
mod reading;
mod roles;
mod scaling;
mod server_identity;
mod services;
mod writing;
