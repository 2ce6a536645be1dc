//! `revisor import` and `revisor export`: all objects from an etcd, or a snapshot of one, into a data folder, and back.
//!
//! What was moved is read again where it arrived, and counted and hashed on both sides ([`Tally`]): nothing is called done
//! that was not found there.

mod export;
mod import;
mod tally;

use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::crd::UNREADABLE;
use crate::flags::OutputFormat;
use crate::serve::{THREAD_STACK, stop_signal};
pub(crate) use export::{EXPORT_EXAMPLE, ExportFlags};
pub(crate) use import::{IMPORT_EXAMPLE, ImportFlags};
use tally::Tally;

/// Imports, and says by the exit code what became of it.
pub(crate) fn import(flags: &ImportFlags) -> ExitCode {
    finish(flags.output, import::import(flags))
}

/// Exports, and says by the exit code what became of it.
pub(crate) fn export(flags: &ExportFlags) -> ExitCode {
    finish(flags.output, export::export(flags))
}

/// What became of it.
struct Moved {
    /// For people.
    text: String,
    /// For programs.
    json: serde_json::Value,
    /// Whether it is there as it should be.
    is_good: bool,
}

fn finish(output: OutputFormat, work: impl Future<Output = anyhow::Result<Moved>>) -> ExitCode {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.enable_all().thread_stack_size(THREAD_STACK);
    let moved = threads.build().context("cannot start threads").and_then(|threads| {
        threads.block_on(async {
            // Who gives up leaves nothing behind that could be taken for the whole.
            tokio::select! {
                moved = work => moved,
                () = stop_signal()? => bail!("stopped"),
            }
        })
    });
    let printed = moved.and_then(|moved| {
        crate::print(&match output {
            OutputFormat::Text => moved.text,
            OutputFormat::Json => format!("{:#}\n", moved.json),
        })?;
        Ok(moved.is_good)
    });
    match printed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            crate::complain(&format!("revisor: {error:#}"));
            ExitCode::from(UNREADABLE)
        }
    }
}
