//! What persistent volume claims hold: storage, counted again for its class.

use std::collections::BTreeSet;

use revisor_catalog::Feature;
use revisor_object::{Object, Quantity};

use super::evaluator::{Usage, one, selects, text};
use crate::Registry;

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

pub(super) fn counts(name: &str) -> bool {
    let of_class = name.rsplit_once(STORAGE_CLASS).map(|(_, what)| what);
    matches!(of_class.unwrap_or(name), "persistentvolumeclaims" | "requests.storage")
}

/// The classes of attributes that a claim has, had and is to have: until a change is done it counts for each.
pub(super) fn class_names(claim: &Object) -> BTreeSet<&str> {
    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    paths.into_iter().map(|path| text(claim, path)).filter(|name| !name.is_empty()).collect()
}

pub(super) fn is_in_scope(scope: &str, selector: Option<&Object>, claim: &Object) -> bool {
    if scope != "VolumeAttributesClass" {
        return false;
    }
    let names = class_names(claim);
    if names.is_empty() { selects(selector, "") } else { names.into_iter().any(|name| selects(selector, name)) }
}

pub(super) fn add_usage(registry: &Registry, claim: &Object, usage: &mut Usage) {
    let annotated = text(claim, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    let class = if annotated.is_empty() { text(claim, &["spec", "storageClassName"]) } else { annotated };
    let mut count = |name: &str, amount: Quantity| {
        if !class.is_empty() {
            usage.insert(format!("{class}{STORAGE_CLASS}{name}"), amount.clone());
        }
        usage.insert(name.to_owned(), amount);
    };
    count("persistentvolumeclaims", one());
    if let Some(storage) = storage(registry, claim) {
        count("requests.storage", storage);
    }
}

/// What is asked for, or what was given beyond that, in whole bytes (upstream: `getStorageUsage`).
fn storage(registry: &Registry, claim: &Object) -> Option<Quantity> {
    let parse = |path: &[&str]| Quantity::parse(text(claim, path)).ok();
    let asked = whole(parse(&["spec", "resources", "requests", "storage"])?);
    if !registry.catalog.features().has(Feature::RecoverVolumeExpansionFailure) {
        return Some(asked);
    }
    let allocated = parse(&["status", "allocatedResources", "storage"]);
    Some(allocated.filter(|allocated| *allocated > asked).map_or(asked, whole))
}

fn whole(amount: Quantity) -> Quantity {
    if amount.is_integer() { amount } else { Quantity::from_units(amount.value(), amount.notation()) }
}
