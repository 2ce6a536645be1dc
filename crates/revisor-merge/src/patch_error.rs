//! [`PatchError`]: why a patch changed nothing.

/// Why a patch was refused, one variant or group of variants for each answer that a client can get.
///
/// The text of an error says what happened, for logs. What a client is told is [`PatchError::client_message`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The body is JSON but no patch. A bad request.
    #[error("{0}")]
    Malformed(String),
    /// The patch has more operations than one request may ask for. A request entity too large.
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {count}")]
    TooManyOperations {
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// An operation does not fit the object. Unprocessable, as are all that follow.
    #[error("{0}")]
    NotApplicable(String),
    /// A `test` operation found another value than it names.
    #[error("the value at \"{path}\" is not the one tested for")]
    TestFailed {
        /// Where it looked, cut short if it is long.
        path: String,
    },
    /// The `copy` operations together would let the object grow too much.
    #[error("the copies of the patch add {size} bytes, the limit is {limit}")]
    CopyTooLarge {
        /// How many bytes they would have added when the limit was passed.
        size: usize,
        /// How many they may add.
        limit: usize,
    },
    /// The object would nest so deeply that it could not be read back.
    #[error("the patched object nests deeper than {limit} levels")]
    TooDeep {
        /// How many levels there may be.
        limit: usize,
    },
    /// The operations together would move so many elements about that one request would occupy the server for long.
    #[error("the patch takes more than {limit} steps to apply")]
    TooMuchWork {
        /// How many steps it may take.
        limit: usize,
    },
}

impl PatchError {
    /// The message for the client.
    ///
    /// Kubernetes keeps the details of a patch that does not fit to itself, and clients match on the sentence that
    /// they get instead.
    ///
    /// ```
    /// use revisor_merge::PatchError;
    ///
    /// let error = PatchError::TooManyOperations { count: 10_001, limit: 10_000 };
    /// assert_eq!(error.client_message(), "The allowed maximum operations in a JSON patch is 10000, got 10001");
    /// let error = PatchError::TestFailed { path: "/metadata/uid".to_owned() };
    /// assert_eq!(error.client_message(), "the server rejected our request due to an error in our request");
    /// ```
    pub fn client_message(&self) -> String {
        match self {
            PatchError::Malformed(_) | PatchError::TooManyOperations { .. } => self.to_string(),
            PatchError::NotApplicable(_)
            | PatchError::TestFailed { .. }
            | PatchError::CopyTooLarge { .. }
            | PatchError::TooDeep { .. }
            | PatchError::TooMuchWork { .. } => {
                "the server rejected our request due to an error in our request".to_owned()
            }
        }
    }
}
