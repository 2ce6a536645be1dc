//! Whether a field is seen as one value or as many.

use revisor_schema::{Field, Shape, Topology, Types};

/// How server-side apply sees a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Granularity {
    /// As one value that has one manager.
    One,
    /// As many values, each with managers of its own.
    Many,
}

/// How server-side apply sees `field`.
pub(crate) fn granularity(types: &Types, field: &Field) -> Granularity {
    let is_one = match (&field.topology, &field.shape) {
        (Topology::Atomic, _) | (Topology::Usual, Shape::List(_)) => true,
        (Topology::Usual, Shape::Struct(id)) => types.get(*id).is_atomic,
        (_, Shape::Struct(_) | Shape::Map(_) | Shape::List(_)) => false,
        _ => true,
    };
    if is_one { Granularity::One } else { Granularity::Many }
}
