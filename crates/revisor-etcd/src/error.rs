//! [`EtcdError`]: what etcd, or the way to it, answered instead of an answer.

use std::sync::Arc;

use revisor_store::StoreError;

/// Why a call of etcd failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EtcdError {
    /// It answered with a status that says why.
    #[error("{message}")]
    Status {
        /// The code of gRPC.
        code: Code,
        /// What etcd said.
        message: String,
    },
    /// It was not reached, and has not seen the call.
    #[error("cannot reach etcd at {endpoint}: {problem}")]
    Unreached {
        /// Where it should be.
        endpoint: Arc<str>,
        /// What happened instead.
        problem: String,
    },
    /// The connection broke under the call. Nobody knows what became of it.
    #[error("the connection to etcd at {endpoint} broke: {problem}")]
    Broken {
        /// With whom.
        endpoint: Arc<str>,
        /// What happened.
        problem: String,
    },
    /// It did not answer in time. Nobody knows what became of the call.
    #[error("etcd did not answer in time")]
    TimedOut,
    /// It answered something that cannot be read.
    #[error("etcd answered with what cannot be read: {0}")]
    Unreadable(String),
}

/// The codes of gRPC that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The request makes no sense, or is too large.
    InvalidArgument,
    /// It took too long.
    DeadlineExceeded,
    /// Nobody may do that.
    PermissionDenied,
    /// There is no room.
    ResourceExhausted,
    /// A revision is compacted, or in the future.
    OutOfRange,
    /// Another member may know better.
    Unavailable,
    /// Any other.
    Other(u32),
}

impl Code {
    pub(crate) fn new(number: u32) -> Code {
        match number {
            3 => Code::InvalidArgument,
            4 => Code::DeadlineExceeded,
            7 => Code::PermissionDenied,
            8 => Code::ResourceExhausted,
            11 => Code::OutOfRange,
            14 => Code::Unavailable,
            other => Code::Other(other),
        }
    }
}

impl EtcdError {
    /// Whether etcd has not seen the call, so that it can be sent again whatever it does.
    pub(crate) fn was_not_seen(&self) -> bool {
        matches!(self, EtcdError::Unreached { .. })
    }

    /// Whether another member may answer. For calls that may be seen twice.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            EtcdError::Unreached { .. } | EtcdError::Broken { .. } => true,
            EtcdError::Status { code, .. } => *code == Code::Unavailable,
            EtcdError::TimedOut | EtcdError::Unreadable(_) => false,
        }
    }

    /// Whether the revision that was asked for is compacted.
    pub(crate) fn is_compacted(&self) -> bool {
        matches!(self, EtcdError::Status { code: Code::OutOfRange, message } if message.contains("compacted"))
    }

    /// Whether the revision that was asked for is in the future.
    pub(crate) fn is_future(&self) -> bool {
        matches!(self, EtcdError::Status { code: Code::OutOfRange, message } if message.contains("future"))
    }

    /// Whether there is no room for what was to be written.
    pub(crate) fn is_no_space(&self) -> bool {
        matches!(self, EtcdError::Status { code: Code::ResourceExhausted, message } if message.contains("space"))
    }

    /// Whether what was to be written is larger than etcd takes.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, EtcdError::Status { message, .. }
            if message.contains("request is too large") || message.contains("larger than max"))
    }
}

impl From<EtcdError> for StoreError {
    fn from(error: EtcdError) -> StoreError {
        StoreError::Backend(Arc::new(error))
    }
}
