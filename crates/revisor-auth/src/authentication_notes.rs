//! [`AuthenticationNotes`]: what there is to say of credentials beside whose they are. It is known before anybody writes a
//! request down, and also of those that are refused.

/// Gathers what the audit should know of a credential, and what its holder should be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthenticationNotes {
    /// What is written down of the request, by key.
    pub annotations: Vec<(&'static str, String)>,
    /// What whoever shows the credential is told.
    pub warnings: Vec<String>,
}

impl AuthenticationNotes {
    /// Leaves a note for the audit.
    pub(crate) fn annotate(&mut self, key: &'static str, value: impl Into<String>) {
        self.annotations.push((key, value.into()));
    }
}
