//! [`Status`]: why a call failed.

use std::fmt;

/// The codes of gRPC, by the names that Go gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(u32);

impl Code {
    /// All is well.
    pub const OK: Code = Code(0);
    /// Nobody knows what went wrong.
    pub const UNKNOWN: Code = Code(2);
    /// It took too long.
    pub const DEADLINE_EXCEEDED: Code = Code(4);
    /// One of both broke a promise.
    pub const INTERNAL: Code = Code(13);
    /// Nobody is there.
    pub const UNAVAILABLE: Code = Code(14);

    const NAMES: [&'static str; 17] = [
        "OK",
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    ];

    /// The code with this number; one that is not known is told as unknown.
    pub fn new(number: u32) -> Code {
        if (number as usize) < Code::NAMES.len() { Code(number) } else { Code::UNKNOWN }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Code::NAMES.get(self.0 as usize).copied().unwrap_or("Unknown")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a call failed, in the words of the original's client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rpc error: code = {code} desc = {message}")]
pub struct Status {
    /// Which kind of failure it is.
    pub code: Code,
    /// What is said about it.
    pub message: String,
}

impl Status {
    /// A failure with this code.
    pub fn new(code: Code, message: impl Into<String>) -> Status {
        Status { code, message: message.into() }
    }
}
