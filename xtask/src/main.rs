//! Developers' tasks, run as `cargo xtask <task>`.
//!
//! | task | does | module |
//! |---|---|---|
//! | `test` | exactly what CI runs | `pipeline` |
//! | `tidy` | the rules that the compiler cannot check | `tidy` |
//! | `kubectl` | provides a kubectl, a current or the oldest one, and prints its path | `kubectl` |
//! | `etcd` | provides an etcd, a current or the oldest one, and prints its path | `etcd` |
//! | `extension` | provides the sample API server and prints its path | `extension` |
//! | `python` | provides a Python with the Kubernetes client and prints its path | `python` |
//! | `ecosystem` | runs suites of the field against the program | `ecosystem` |
//! | `interop` | runs the tests of a shared etcd with a genuine kube-apiserver | `interop` |
//! | `fuzz` | runs the fuzz targets under a coverage-guided engine | `fuzz` |
//! | `bench` | measures a server, alone or beside another | `bench` |
//! | `profile` | shows which functions an operation spends its instructions in | `instructions` |
//! | `differ` | asks a server and a genuine one the same, and tells where they differ | `differ` |
//! | `growth` | measures how work grows with every list and map that can be sent | `growth` |
//! | `costs` | measures what security costs a request | `costs` |
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task talks to the person who runs it")]

mod bench;
mod costs;
mod differ;
mod ecosystem;
mod etcd;
mod extension;
mod fuzz;
mod go_program;
mod growth;
mod instructions;
mod interop;
mod kubectl;
mod pipeline;
mod python;
mod tidy;
mod valgrind;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developers' tasks of Revisor")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run exactly what CI runs, and stop at the first failure
    Test,
    /// Check the crate table, the invariants, the licences and the rules for sources
    Tidy,
    /// Print the path of a kubectl that the tests can use; build it if need be
    Kubectl {
        /// Of the oldest that is to work, instead of a current one
        #[arg(long)]
        oldest: bool,
    },
    /// Print the path of an etcd that the tests can use; build it if need be
    Etcd {
        /// Of the oldest that is to work, instead of a current one
        #[arg(long)]
        oldest: bool,
    },
    /// Print the path of the sample API server that the tests put behind the program; build it if need be
    Extension,
    /// Print the path of a Python that has the Kubernetes client; install it if need be
    Python,
    /// Run suites and tools of the field, as they are, against this program, and show a table of results
    Ecosystem(ecosystem::Options),
    /// Run the tests of servers that share an etcd, with a genuine kube-apiserver as the other one
    Interop(interop::Options),
    /// Run fuzz targets under libFuzzer, guided by coverage, on the stable toolchain
    Fuzz(fuzz::Options),
    /// Measure a server; see `cargo xtask bench --help`
    #[command(disable_help_flag = true)]
    Bench {
        /// Passed on to `revisor-bench`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Show which functions an operation spends its instructions in: `pods-create`, as `bench --instructions` names it
    Profile {
        /// The operation
        operation: String,
    },
    /// Hold a server against a genuine one; see `cargo xtask differ --help`
    #[command(disable_help_flag = true)]
    Differ {
        /// Passed on to `revisor-differ`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure how work grows with what is sent; see `cargo xtask growth --help`
    #[command(disable_help_flag = true)]
    Growth {
        /// Passed on to `revisor-growth`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure what knowing, allowing, ordering, writing down and sealing cost a request
    Costs,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let workspace = Workspace::of_this_build();
    let outcome = match arguments.task {
        Task::Test => pipeline::run(&workspace),
        Task::Tidy => tidy::run(&workspace),
        Task::Kubectl { oldest } => {
            let provided = if oldest { kubectl::provide_oldest(&workspace) } else { kubectl::provide(&workspace) };
            provided.map(|path| println!("{}", path.display()))
        }
        Task::Etcd { oldest } => {
            let provided = if oldest { etcd::provide_oldest(&workspace) } else { etcd::provide(&workspace) };
            provided.map(|path| println!("{}", path.display()))
        }
        Task::Extension => extension::provide(&workspace).map(|path| println!("{}", path.display())),
        Task::Python => python::provide(&workspace).map(|path| println!("{}", path.display())),
        Task::Ecosystem(options) => ecosystem::run(&workspace, &options),
        Task::Interop(options) => interop::run(&workspace, &options),
        Task::Fuzz(options) => fuzz::run(&workspace, &options),
        Task::Bench { arguments } => bench::run(&workspace, &arguments),
        Task::Profile { operation } => valgrind::provide().and_then(|()| instructions::profile(&workspace, &operation)),
        Task::Differ { arguments } => differ::run(&workspace, &arguments),
        Task::Costs => costs::run(&workspace),
        Task::Growth { arguments } => growth::run(&workspace, &arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
