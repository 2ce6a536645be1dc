//! Which rows of the table are served, and which of them objects are stored as: the rules of lifecycles, switches and
//! forward compatibility, and nothing else.

use revisor_version::{EffectiveVersion, Release, Stability};

use crate::rows::Row;
use crate::{CatalogOptions, Features};

/// Why the server cannot serve what it is asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// A version is switched on that came with a later release.
    #[error(
        "cannot enable version {group_version} in runtime-config because all the resources have been introduced after the current version {emulation}. Consider setting --runtime-config-emulation-forward-compatible=true"
    )]
    VersionTooNew {
        /// The version.
        group_version: String,
        /// The release that the server behaves as.
        emulation: Release,
    },
    /// A resource is switched on that came with a later release.
    #[error(
        "cannot enable resource {group_version}, Resource={resource} in runtime-config because it is introduced at {introduced} after the current version {emulation}. Consider setting --runtime-config-emulation-forward-compatible=true"
    )]
    ResourceTooNew {
        /// The version.
        group_version: String,
        /// The name of the resource.
        resource: String,
        /// The release that it came with.
        introduced: Release,
        /// The release that the server behaves as.
        emulation: Release,
    },
    /// Something alpha of another release is switched on: nobody sees to it that it can be upgraded.
    #[error(
        "cannot enable {key} in runtime-config at emulated version {emulation}: alpha APIs are not made to be upgraded; --allow-alpha-under-emulation allows it all the same"
    )]
    Alpha {
        /// What was switched on.
        key: String,
        /// The release that the server behaves as.
        emulation: Release,
    },
    /// Newer versions are asked for where there are none.
    #[error("{0} cannot be set to true if the emulation version is the same as the binary version")]
    NothingAhead(&'static str),
}

/// Which of these rows are served, row by row.
pub(crate) fn served(rows: &[Row], options: &CatalogOptions) -> Result<Vec<bool>, CatalogError> {
    let version = options.version;
    if !version.is_emulated() {
        if options.emulation_forward_compatible {
            return Err(CatalogError::NothingAhead("EmulationForwardCompatible"));
        }
        if options.runtime_config_forward_compatible {
            return Err(CatalogError::NothingAhead("RuntimeConfigEmulationForwardCompatible"));
        }
    } else if let Some(key) = options.runtime_config.alpha_key().filter(|_| !options.allow_alpha) {
        return Err(CatalogError::Alpha { key, emulation: version.emulation() });
    }
    let features = Features::of(&options.gates);
    let is_wanted = |row: &Row| {
        is_switched_on(row, rows, options)
            && row.feature.is_none_or(|feature| features.has(feature))
            && row.removed.is_none_or(|removed| removed > version.emulation())
            && (row.api.stability() != Stability::Alpha || !version.is_emulated() || options.allow_alpha)
    };
    let mut wanted: Vec<usize> = (0..rows.len()).filter(|at| is_wanted(&rows[*at])).collect();
    // Lesser versions decide about better ones, so they come first.
    wanted.sort_by(|one, two| rows[*one].api.cmp(&rows[*two].api));
    let mut served = vec![false; rows.len()];
    for at in &wanted {
        let row = &rows[*at];
        let has_lesser = rows.iter().zip(&served).any(|(other, is_served)| {
            *is_served && row.is_sibling(other) && other.api < row.api && other.api.stability() > Stability::Alpha
        });
        served[*at] = is_there(row, has_lesser, options)?;
    }
    let empty = wanted.iter().map(|at| &rows[*at]).find(|row| {
        let is_served = |other: &Row| (other.group, other.version) == (row.group, row.version);
        options.runtime_config.says_of_version(&row.group_version()) == Some(true)
            && !rows.iter().zip(&served).any(|(other, there)| *there && is_served(other))
    });
    match empty {
        Some(row) => {
            Err(CatalogError::VersionTooNew { group_version: row.group_version(), emulation: version.emulation() })
        }
        None => Ok(served),
    }
}

/// Whether a resource is switched on, by itself or, with forward compatibility, by a lesser version of it or its group.
fn is_switched_on(row: &Row, rows: &[Row], options: &CatalogOptions) -> bool {
    let config = &options.runtime_config;
    let group_version = row.group_version();
    let explicit =
        config.says_of_resource(&group_version, row.plural).or_else(|| config.says_of_version(&group_version));
    if let Some(explicit) = explicit {
        return explicit;
    }
    if config.serves(&group_version, row.api.stability(), row.plural) {
        return true;
    }
    options.emulation_forward_compatible
        && rows.iter().any(|other| {
            let stability = other.api.stability();
            let group_version = other.group_version();
            // A name that no resource has asks for the version as such.
            let brings = config.says_of_resource(&group_version, row.plural) == Some(true)
                || config.serves(&group_version, stability, "");
            other.group == row.group && other.api < row.api && stability > Stability::Alpha && brings
        })
}

/// Whether a resource that is switched on is there at the release that the server behaves as, or brought along.
fn is_there(row: &Row, has_lesser: bool, options: &CatalogOptions) -> Result<bool, CatalogError> {
    let emulation = options.version.emulation();
    if row.introduced <= emulation || (options.emulation_forward_compatible && has_lesser) {
        return Ok(true);
    }
    let group_version = row.group_version();
    let is_named = options.runtime_config.says_of_resource(&group_version, row.plural) == Some(true);
    let is_version_named = options.runtime_config.says_of_version(&group_version) == Some(true);
    if options.runtime_config_forward_compatible && (is_named || is_version_named) {
        return Ok(true);
    }
    if is_named {
        let (resource, introduced) = (row.plural.to_owned(), row.introduced);
        return Err(CatalogError::ResourceTooNew { group_version, resource, introduced, emulation });
    }
    Ok(false)
}

/// The version of a resource that its objects are stored as: the best one that all releases can read from the oldest
/// that the server is to be compatible with (V2). Later ones can: what is no longer served is still read. But an alpha
/// version that is gone nobody can read any more who came later, and nobody promised that they could.
///
/// Where the oldest knows no version at all that is left, it has no use for the objects, and the best that the server's
/// own release knows is taken.
///
/// # Panics
/// If the row is not among the rows: a fault of the caller.
pub(crate) fn storage<'r>(row: &Row, rows: &'r [Row], version: EffectiveVersion) -> &'r Row {
    let family = || rows.iter().filter(|other| (other.group, other.plural) == (row.group, row.plural));
    let is_left = |other: &&'r Row| {
        other.api.stability() > Stability::Alpha || other.removed.is_none_or(|removed| removed > version.emulation())
    };
    let best = |release: Release| {
        let known = family().filter(is_left).filter(move |other| other.introduced <= release);
        known.max_by(|one, two| one.api.cmp(&two.api))
    };
    best(version.min_compatibility())
        .or_else(|| best(version.emulation()))
        .or_else(|| best(version.binary()))
        .expect("a resource is one of its own family")
}

#[cfg(test)]
mod tests;
