//! The containers of a spec, and what all kinds use to look at members.

use revisor_object::Object;

pub(super) use crate::kinds::members::{
    NONE, entries, flag, given_number, is_true, number, objects, part, text, texts,
};

/// All containers of a spec, with the list that each stands in and its place there.
pub(super) fn all_containers(spec: &Object) -> impl Iterator<Item = (&'static str, usize, &Object)> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(move |list| objects(spec, list).map(move |(at, container)| (list, at, container)))
}
