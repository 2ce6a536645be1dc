//! The rules for paths of files: that they stay within a volume and do not clash with what kubelets put there.

use revisor_object::{FieldError, FieldErrors, FieldPath};

/// A path that must not lead upwards.
pub(super) fn no_backsteps(path: FieldPath<'_>, text: &str) -> Option<FieldError> {
    steps_back(text).then(|| FieldError::invalid(path, text, "must not contain '..'"))
}

/// A path that must stay below where it starts.
pub(super) fn descending(path: FieldPath<'_>, text: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if text.starts_with('/') {
        errors.push(FieldError::invalid(path, text, "must be a relative path"));
    }
    errors.extend(no_backsteps(path, text));
    errors
}

/// A path that must stay below where it starts, and whose name kubelets do not use themselves.
pub(super) fn local_and_free(path: FieldPath<'_>, text: &str) -> FieldErrors {
    let mut errors = descending(path, text);
    if is_reserved(text) {
        errors.push(FieldError::invalid(path, text, "must not start with '..'"));
    }
    errors
}

/// Whether [`local_and_free`] has nothing to say.
pub(super) fn is_local_and_free(text: &str) -> bool {
    !text.starts_with('/') && !steps_back(text) && !is_reserved(text)
}

/// Whether a path leads upwards somewhere.
pub(super) fn steps_back(text: &str) -> bool {
    text.split('/').any(|step| step == "..")
}

fn is_reserved(text: &str) -> bool {
    text.starts_with("..") && !text.starts_with("../")
}
