//! Tests of the whole program: the real binary, on a real port, with real clients.
//!
//! `harness` starts and ends servers, `client` talks to them; every other module is one promise of the program.

mod admission_plugins;
mod admission_webhooks;
mod anonymous;
mod api;
mod auth;
mod bad_input;
mod certificates;
mod client;
mod compatibility;
mod controllers;
mod conversion_webhook;
mod conversions;
mod crash;
mod crd;
mod crd_check;
mod crowds;
mod custom;
mod dice;
mod feature_gates;
mod files;
mod harness;
mod kube_rs;
mod kubectl;
mod lifecycle;
mod migrations;
mod objects;
mod odd_input;
mod policies;
mod python_client;
mod quota;
mod rehearse;
mod reviews;
mod roles;
mod runtime_config;
mod status_pages;
mod versions;
mod xtask;
