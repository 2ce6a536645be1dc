//! [`FailurePolicy`]: what becomes of a write when a policy cannot be asked about it.

/// What becomes of a write about which a policy or webhook has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// It is denied.
    #[default]
    Fail,
    /// It goes on, as if nobody had been asked.
    Ignore,
}

impl FailurePolicy {
    /// What a specification says, which is `Fail` if it says nothing.
    pub fn read(text: Option<&str>) -> FailurePolicy {
        if text == Some("Ignore") { FailurePolicy::Ignore } else { FailurePolicy::Fail }
    }
}
