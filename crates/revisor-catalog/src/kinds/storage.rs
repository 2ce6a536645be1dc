//! The group `storage.k8s.io`: classes of storage, the drivers behind them and what they attach.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod parameters;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use super::{Kind, Terms, USUAL};
use crate::{DeleteAnswer, Rules};

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    let conditional = Rules { unconditional_update: false, delete_answer: DeleteAnswer::Object, ..USUAL };
    let unconditional = Rules { delete_answer: DeleteAnswer::Object, ..USUAL };
    let features = terms.features;
    let (rules, kind) = match plural {
        "csidrivers" => (conditional, Kind::usual(csi_driver::CsiDrivers { features })),
        "csinodes" => (conditional, Kind::usual(csi_node::CsiNodes { features })),
        "csistoragecapacities" => {
            let rules = Rules { unconditional_update: false, ..USUAL };
            (rules, Kind::usual(csi_storage_capacity::CsiStorageCapacities))
        }
        "storageclasses" => (unconditional, Kind::usual(storage_class::StorageClasses)),
        "volumeattachments" => (conditional, Kind::usual(volume_attachment::VolumeAttachments)),
        "volumeattributesclasses" => (unconditional, Kind::usual(volume_attributes_class::VolumeAttributesClasses)),
        _ => return None,
    };
    Some(Kind { rules, selects_namespace: Some(true), ..kind })
}
