//! [`Trail`]: where in an object a value is. Nearly always nobody asks, so it becomes a text only for those who do.

use super::{EMBEDDED, push};
use crate::{Field, Struct};

/// The way from the root to a value: a chain through the frames that walk it.
#[derive(Clone, Copy)]
pub(super) struct Trail<'t> {
    before: Option<&'t Trail<'t>>,
    step: Step<'t>,
}

#[derive(Clone, Copy)]
enum Step<'t> {
    Root,
    /// A field of a struct.
    Field {
        of: &'t Struct,
        field: &'t Field,
    },
    /// An item of a list.
    Item(usize),
    /// A member of a map.
    Key(&'t str),
}

impl<'t> Trail<'t> {
    pub(super) const ROOT: Trail<'static> = Trail { before: None, step: Step::Root };

    pub(super) fn field(&'t self, of: &'t Struct, field: &'t Field) -> Trail<'t> {
        Trail { before: Some(self), step: Step::Field { of, field } }
    }

    pub(super) fn item(&'t self, at: usize) -> Trail<'t> {
        Trail { before: Some(self), step: Step::Item(at) }
    }

    pub(super) fn key(&'t self, name: &'t str) -> Trail<'t> {
        Trail { before: Some(self), step: Step::Key(name) }
    }

    /// The way with the positions in lists and the keys of maps: `spec.containers[0].env`.
    pub(super) fn path(&self) -> String {
        let mut path = self.before.map(Trail::path).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Field { field, .. } => push(&mut path, &field.name),
            Step::Item(at) => path.push_str(&format!("[{at}]")),
            Step::Key(name) => push(&mut path, name),
        }
        path
    }

    /// The same as Go's decoder tells it: fields only, and the structs that are embedded on the way.
    pub(super) fn go_path(&self) -> String {
        let mut path = self.before.map(Trail::go_path).unwrap_or_default();
        if let Step::Field { of, field } = self.step {
            let depth = field.number.as_ref().map_or(0, |number| number.0.len().saturating_sub(1));
            if depth > 0
                && let Some((_, embedded)) = EMBEDDED.iter().find(|(name, _)| *name == of.short_name())
            {
                embedded.iter().take(depth).for_each(|name| push(&mut path, name));
            }
            push(&mut path, &field.name);
        }
        path
    }
}
