//! The flags for those who want to know what a server is doing.

use std::path::PathBuf;

use clap::Args;

/// What can be asked of a running server beside its API.
#[derive(Debug, Clone, Args)]
pub(crate) struct DebuggingFlags {
    /// Whether /debug/pprof/profile tells what threads take of the processor, in the format of pprof, and /debug/flags/v
    /// sets how much is logged
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) profiling: bool,

    /// A socket at which the same is served to whoever may open it, without asking who they are
    #[arg(long, value_name = "FILE")]
    pub(crate) debug_socket_path: Option<PathBuf>,
}
