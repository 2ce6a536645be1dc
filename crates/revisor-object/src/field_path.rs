//! [`FieldPath`]: where in an object a value stands.
//!
//! Paths are built on the way down while an object is checked, and nearly all of them are never shown. So a path is
//! one link to its parent on the caller's stack; only a path that ends up in a
//! [`FieldError`](crate::FieldError) becomes text.

use std::fmt;

/// The way from the root of an object to one of its fields.
///
/// ```
/// use revisor_object::FieldPath;
///
/// let spec = FieldPath::root("spec");
/// let containers = spec.child("containers");
/// assert_eq!(containers.index(0).child("env").key("name").to_string(), "spec.containers[0].env[name]");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    None,
    Name(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> FieldPath<'a> {
    /// The path of a top-level field.
    pub const fn root(name: &'a str) -> FieldPath<'a> {
        FieldPath { parent: None, step: Step::Name(name) }
    }

    /// The path that leads nowhere yet. Its children are top-level fields.
    ///
    /// Shown by itself it is `<nil>`, which is what clients read where Kubernetes has no path to name.
    ///
    /// ```
    /// # use revisor_object::FieldPath;
    /// assert_eq!(FieldPath::none().child("spec").to_string(), "spec");
    /// assert_eq!(FieldPath::none().to_string(), "<nil>");
    /// ```
    pub const fn none() -> FieldPath<'static> {
        FieldPath { parent: None, step: Step::None }
    }

    /// A field of the object at this path.
    pub const fn child(&'a self, name: &'a str) -> FieldPath<'a> {
        FieldPath { parent: Some(self), step: Step::Name(name) }
    }

    /// The value of a key in the map at this path.
    pub const fn key(&'a self, key: &'a str) -> FieldPath<'a> {
        FieldPath { parent: Some(self), step: Step::Key(key) }
    }

    /// An element of the list at this path.
    pub const fn index(&'a self, index: usize) -> FieldPath<'a> {
        FieldPath { parent: Some(self), step: Step::Index(index) }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Gathered in a list rather than by recursion, so that a deeply nested object cannot exhaust the stack here.
        let steps: Vec<Step<'_>> = std::iter::successors(Some(self), |path| path.parent)
            .map(|path| path.step)
            .filter(|step| !matches!(step, Step::None))
            .collect();
        if steps.is_empty() {
            return f.write_str("<nil>");
        }
        for (depth, step) in steps.iter().rev().enumerate() {
            match step {
                Step::None => {}
                // A field without a name is shown as an empty subscript, as Kubernetes shows it.
                Step::Name("") => f.write_str("[]")?,
                Step::Name(name) if depth == 0 => f.write_str(name)?,
                Step::Name(name) => write!(f, ".{name}")?,
                Step::Key(key) => write!(f, "[{key}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_in_kubernetes() {
        let metadata = FieldPath::root("metadata");
        let spec = FieldPath::root("spec");
        let none = FieldPath::none();
        let containers = spec.child("containers");
        for (path, want) in [
            (metadata.to_string(), "metadata"),
            (metadata.child("labels").key("a.b/c").to_string(), "metadata.labels[a.b/c]"),
            (containers.index(0).child("env").key("name").to_string(), "spec.containers[0].env[name]"),
            (containers.index(1).index(2).to_string(), "spec.containers[1][2]"),
            (none.to_string(), "<nil>"),
            (none.child("values").index(0).key("k").to_string(), "values[0][k]"),
            (none.index(3).child("name").to_string(), "[3].name"),
            (spec.key("").to_string(), "spec[]"),
            (spec.child("").to_string(), "spec[]"),
        ] {
            assert_eq!(path, want);
        }
    }

    #[test]
    fn depth_is_no_danger() {
        fn descend(path: &FieldPath<'_>, levels: usize) -> usize {
            if levels == 0 { path.to_string().len() } else { descend(&path.child("a"), levels - 1) }
        }
        assert_eq!(descend(&FieldPath::root("a"), 1000), 2001);
    }
}
