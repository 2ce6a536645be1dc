//! The resources that targets try their inputs on.

use std::rc::Rc;
use std::sync::Arc;

use revisor_catalog::{Catalog, CatalogOptions, Resource};

/// How many resources one input is tried on. Over many inputs all of them have their turn.
const TRIED: usize = 4;

thread_local! {
    // To build the catalog takes longer than to try an input on it.
    static CATALOG: Rc<Catalog> = Rc::new(Catalog::default());
    static EVERYTHING: Rc<[Arc<Resource>]> = everything();
}

fn everything() -> Rc<[Arc<Resource>]> {
    let catalog = Catalog::build(&CatalogOptions::everything()).expect("there is everything that there is");
    catalog.resources().cloned().collect()
}

/// The resources of a server of which everything is asked, alpha versions too.
pub(super) fn all_resources() -> Rc<[Arc<Resource>]> {
    EVERYTHING.with(Rc::clone)
}

/// The catalog, built once.
pub(super) fn catalog() -> Rc<Catalog> {
    CATALOG.with(Rc::clone)
}

/// Some resources, chosen by the input alone, so that an input that fails once fails again.
pub(super) fn some_resources(data: &[u8]) -> Vec<Arc<Resource>> {
    let catalog = catalog();
    let all: Vec<&Arc<Resource>> = catalog.resources().collect();
    let first = data.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    (0..TRIED).map(|turn| all[first.wrapping_add(turn * 17) % all.len()].clone()).collect()
}
