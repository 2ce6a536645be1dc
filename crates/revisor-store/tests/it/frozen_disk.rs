//! A machine that loses power, at each moment that matters: a workload runs once counting its syncs, and then once
//! for each of them with the disk frozen there. What was acknowledged must be there when the store is opened again.

use std::path::{Path, PathBuf};
use std::process::Command;

use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_store::{Change, Draft, Expect, Key, Store, Write};
use tempfile::TempDir;

use crate::child;
use crate::ledger::{Ledger, tell};

/// How many moments to try in each mode, spread over all.
const MOMENTS: u64 = 24;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_disk_freezes() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let shim = compile(folder.path());
    for mode in ["lost", "torn", "vanished"] {
        let count = folder.path().join(format!("count-{mode}"));
        let whole = run(&shim, &folder.path().join(format!("whole-{mode}")), |command| {
            command.env("FROZEN_COUNT", &count).env("FROZEN_MODE", mode);
        });
        assert_eq!(whole.code, Some(0), "{}", whole.output);
        let syncs = count.metadata().expect("syncs were counted").len();
        assert!(syncs > 50, "a workload with {syncs} syncs shows little");
        for moment in (0..MOMENTS).map(|number| 1 + number * syncs / MOMENTS) {
            let data = folder.path().join(format!("{mode}-{moment}"));
            let frozen = run(&shim, &data, |command| {
                command.env("FROZEN_AT", moment.to_string()).env("FROZEN_MODE", mode);
            });
            // The engine's own threads sync too, so a run may have a few syncs less than the one that was counted.
            assert!(matches!(frozen.code, Some(77 | 0)), "{mode} at {moment}: {}", frozen.output);
            check(&data, &frozen, &format!("{mode} at sync {moment} of {syncs}")).await;
        }
    }
}

/// Opens what a frozen disk holds and compares it with what the child was told.
async fn check(data: &Path, frozen: &Run, moment: &str) {
    let mut ledger = Ledger::default();
    child::said(&frozen.output).for_each(|line| {
        ledger.note_line(line);
    });
    for round in 0..2 {
        let store = match EmbeddedStore::open(options(data)).await {
            Ok(store) => store,
            Err(error) => panic!("{moment}: {error}"),
        };
        ledger.check(&store).await;
        let change = Change::Put(Draft::opaque(format!("after-{round}")));
        let write = Write { key: Key::new("/after"), expect: Expect::Anything, change };
        let event = store.write(write).await.expect("the store takes writes again");
        assert_eq!(event.revision.get(), ledger.newest() + 1, "{moment}");
        ledger.note_line(&tell(&event));
        store.close().await;
    }
}

struct Run {
    code: Option<i32>,
    output: String,
}

fn run(shim: &Path, data: &Path, setup: impl FnOnce(&mut Command)) -> Run {
    std::fs::create_dir(data).expect("a folder can be made");
    let mut command = child::command("frozen", data, "");
    command.env("LD_PRELOAD", shim).env("FROZEN_FOLDER", data);
    setup(&mut command);
    let output = command.output().expect("the child can be started");
    Run { code: output.status.code(), output: String::from_utf8_lossy(&output.stdout).into_owned() }
}

/// The preloaded library, built with the compiler that built this test.
fn compile(folder: &Path) -> PathBuf {
    let library = folder.join("libfrozen_disk.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shim/frozen_disk.rs");
    let compiler = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let status = Command::new(compiler)
        .args(["--edition=2024", "--crate-type=cdylib", "-O", "-o"])
        .args([&library, &source])
        .status()
        .expect("the compiler can be started");
    assert!(status.success(), "the library to preload does not compile");
    library
}

fn options(folder: &Path) -> EmbeddedOptions {
    let mut options = EmbeddedOptions::new(folder);
    // Small, so that the engine writes and merges tables within a short workload.
    options.tuning.memtable_bytes = 8 << 10;
    options
}

/// The workload: rounds of concurrent writers, some compaction, a close and a reopen on the way.
pub(crate) async fn child(folder: &Path) {
    for life in 0..3 {
        let store = EmbeddedStore::open(options(folder)).await.expect("the store can be opened");
        for round in 0..8 {
            let write = async |writer: usize| {
                let key = Key::new(format!("/k/{}", (round * 5 + writer) % 13));
                let there = store.get(key.as_str()).await.expect("an open store answers").is_some();
                let change = if there && (round + writer).is_multiple_of(4) {
                    Change::Delete
                } else {
                    Change::Put(Draft::opaque(format!("{life}-{round}-{writer}-{}", "x".repeat(400))))
                };
                match store.write(Write { key, expect: Expect::Anything, change }).await {
                    Ok(event) => child::say(&tell(&event)),
                    Err(error) => panic!("{error}"),
                }
            };
            tokio::join!(write(0), write(1), write(2), write(3));
            if round % 4 == 3 {
                let newest = store.current_revision().await.expect("an open store answers");
                let oldest = newest.and_then(|newest| revisor_version::Revision::new(newest.get() - 10));
                store.compact(oldest.expect("there were more writes")).await.expect("the revision was written");
            }
        }
        if life == 1 {
            store.close().await;
        }
    }
}
