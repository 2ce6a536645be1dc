//! Every target, on every seed and on a bounded number of damaged seeds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use revisor_fuzz::{Mutator, TARGETS};

/// Damaged inputs per target. Enough to catch a careless index, few enough for every run of the tests.
const ROUNDS: u32 = 5_000;

fn seeds_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(seeds_folder().join(target)).expect("every target has a folder of seeds");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    // The order of a folder is the file system's; the inputs must not depend on it.
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a seed can be read")).collect()
}

/// Shows the input if the target panics on it, in a form that can be pasted into a test.
struct Shown<'a> {
    target: &'a str,
    input: &'a [u8],
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text = format!("target {} broke on b\"{}\"\n", self.target, self.input.escape_ascii());
            // The error is of no interest beside the panic that is under way.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        }
    }
}

#[test]
fn targets_hold_on_seeds_and_on_damaged_seeds() {
    for (target, number) in TARGETS.iter().zip(1..) {
        let seeds = seeds(target.name);
        let mut mutator = Mutator::new(&seeds, number);
        let damaged = std::iter::repeat_with(|| mutator.next_input()).take(ROUNDS as usize);
        for input in seeds.iter().cloned().chain(damaged) {
            let _shown = Shown { target: target.name, input: &input };
            (target.run)(&input);
        }
    }
}

#[test]
fn targets_and_folders_of_seeds_agree() {
    let entries = std::fs::read_dir(seeds_folder()).expect("the folder of seeds is committed");
    let folders: BTreeSet<String> = entries
        .map(|entry| entry.expect("the folder can be read").file_name().to_string_lossy().into_owned())
        .collect();
    let targets: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(folders, targets);
    assert!(TARGETS.is_sorted_by_key(|target| target.name), "sorted, and so unique");
    for target in TARGETS {
        assert!(!seeds(target.name).is_empty(), "{} has no seed", target.name);
    }
}
