//! The targets under libFuzzer, which owns `main`. Built and started by `cargo xtask fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use revisor_fuzz::{TARGETS, Target};

/// Names the target to run; libFuzzer itself has no notion of several targets in one binary.
const VARIABLE: &str = "REVISOR_FUZZ_TARGET";

fn chosen() -> &'static Target {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    match TARGETS.iter().find(|target| target.name == name) {
        Some(target) => target,
        None => panic!("{VARIABLE} must name a target"),
    }
}

// libFuzzer calls a plain function and passes it no state, so the choice is made again for each input. That costs less
// than the shortest parse.
fuzz_target!(|data: &[u8]| {
    (chosen().run)(data);
});
