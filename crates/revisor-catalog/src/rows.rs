//! The rows of the built-in resources: `tables/resources.csv`, read once when the catalog is built. To add a kind is to
//! add a row there, its fields to `tables/fields.csv`, and its rules to the module of its group in [`kinds`](crate::kinds).

use std::sync::Arc;

use compact_str::CompactString;
use revisor_object::Shape;
use revisor_schema::Types;
use revisor_version::{ApiVersion, Release};
use sha2::{Digest, Sha256};

use crate::disabled_fields::DisabledFields;
use crate::kinds::{self, Kind, Terms};
use crate::resource::{BuiltIn, Nature, Stored};
use crate::{Columns, DeprecationNotice, Feature, Features, Resource, ScalePaths, Subresource, Verb};

/// The fields of all built-in types.
pub(crate) const FIELDS: &str = include_str!("../tables/fields.csv");

/// The names that the original has for the types of fields, where they are neither basic types nor structs.
pub(crate) const GO_TYPES: &str = include_str!("../tables/go_types.csv");

/// All built-in resources, in the order of discovery.
pub(crate) const RESOURCES: &str = include_str!("../tables/resources.csv");

/// The release that this program is: the newest one that its tables know.
pub const BINARY: Release = Release { major: 1, minor: 36 };

/// What came with the very first release, or with one that nobody noted.
const EVER: Release = Release { major: 0, minor: 0 };

/// What nearly every resource can do.
const USUAL_VERBS: &str = "create+delete+deletecollection+get+list+patch+update+watch";

/// Resources that are stored under another name than their own: for historical reasons of the original, or where custom
/// resources of their group are.
const STORED_ELSEWHERE: &[(&str, &str, &str)] = &[
    ("", "endpoints", "services/endpoints"),
    ("", "nodes", "minions"),
    ("", "replicationcontrollers", "controllers"),
    ("", "services", "services/specs"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "apiextensions.k8s.io/customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices", "apiregistration.k8s.io/apiservices"),
    ("networking.k8s.io", "ingresses", "ingress"),
    ("versioning.revisor.dev", "conversions", "versioning.revisor.dev/conversions"),
];

/// One resource as the table has it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    /// The version as it compares with others.
    pub(crate) api: ApiVersion,
    /// The first release that has it.
    pub(crate) introduced: Release,
    /// The first release that no longer has it.
    pub(crate) removed: Option<Release>,
    /// The feature without which it is not there.
    pub(crate) feature: Option<Feature>,
    singular: &'static str,
    short_names: Vec<&'static str>,
    categories: Vec<&'static str>,
    namespaced: bool,
    verbs: Vec<Verb>,
    subresources: Vec<GatedSubresource>,
    deprecation: Option<Deprecation>,
}

/// A subresource, and the feature without which it is not there.
#[derive(Debug, Clone)]
struct GatedSubresource {
    subresource: Subresource,
    feature: Option<Feature>,
}

/// That a resource should not be used any more, as the table says it.
#[derive(Debug, Clone, Copy)]
struct Deprecation {
    since: &'static str,
    /// The release that no longer has it; empty if that is not decided.
    removed: &'static str,
    /// `GROUP/VERSION/KIND` of what takes its place; empty if nothing does.
    replacement: &'static str,
}

/// All rows of a table.
///
/// # Panics
/// If the table is malformed: a fault of the program that its tests find.
pub(crate) fn rows(table: &'static str) -> impl Iterator<Item = Row> {
    table.lines().skip(1).map(|line| Row::parse(line).unwrap_or_else(|| panic!("a malformed row: {line}")))
}

impl Row {
    fn parse(line: &'static str) -> Option<Row> {
        let mut columns = line.split(',');
        let mut next = || columns.next();
        let (group, version, plural, kind, singular) = (next()?, next()?, next()?, next()?, next()?);
        let (short_names, categories) = (list(next()?), list(next()?));
        let namespaced = match next()? {
            "yes" => true,
            "" => false,
            _ => return None,
        };
        let verbs = verbs(match next()? {
            "usual" => USUAL_VERBS,
            some => some,
        })?;
        let subresources = next()?.split_whitespace().map(subresource).collect::<Option<_>>()?;
        let (introduced, since, removed, replacement) = (next()?, next()?, next()?, next()?);
        let deprecation = (!since.is_empty()).then_some(Deprecation { since, removed, replacement });
        Some(Row {
            group,
            version,
            plural,
            kind,
            api: version.parse().ok()?,
            introduced: if introduced.is_empty() { EVER } else { introduced.parse().ok()? },
            removed: if removed.is_empty() { None } else { Some(removed.parse().ok()?) },
            feature: feature(next()?)?,
            singular,
            short_names,
            categories,
            namespaced,
            verbs,
            subresources,
            deprecation,
        })
    }

    /// `version` or `group/version`.
    pub(crate) fn group_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether another row is another version of the same resource.
    pub(crate) fn is_sibling(&self, other: &Row) -> bool {
        (self.group, self.plural) == (other.group, other.plural) && self.version != other.version
    }

    /// The resource, if the rules of its kind are known. `stored` is the resource that it is stored as, where it is not
    /// stored as itself.
    pub(crate) fn resource(self, types: &Arc<Types>, stored: Option<Stored>, terms: &Terms) -> Option<Resource> {
        let kind = kinds::kind(self.group, self.version, self.plural, terms)?;
        Some(self.of_kind(kind, types, stored, terms))
    }

    /// What the subresources of this row speak of, where that is another kind: kinds that are sent to an object and
    /// are never at an address of their own.
    pub(crate) fn other_kinds(&self, types: &Arc<Types>, terms: &Terms) -> Vec<Resource> {
        let other = |gated: &GatedSubresource| {
            let part = &gated.subresource;
            let (api_version, kind) = part.other_kind?;
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            types.id(&type_name(group, version, kind))?;
            let row = Row {
                group,
                version,
                plural: part.name,
                kind,
                api: version.parse().ok()?,
                introduced: EVER,
                removed: None,
                feature: None,
                singular: "",
                short_names: Vec::new(),
                categories: Vec::new(),
                namespaced: self.namespaced,
                verbs: Vec::new(),
                subresources: Vec::new(),
                deprecation: None,
            };
            Some(row.of_kind(Kind::without_rules(), types, None, terms))
        };
        self.subresources.iter().filter_map(other).collect()
    }

    fn of_kind(self, of: Kind, types: &Arc<Types>, stored: Option<Stored>, terms: &Terms) -> Resource {
        let api_version = self.group_version();
        let Row { group, version, plural, kind, .. } = self;
        let subresources = served(self.subresources, terms.features);
        let Kind { rules, selectable, selects_namespace, strategy } = of;
        let stored_at =
            STORED_ELSEWHERE.iter().find(|(of, name, _)| (*of, *name) == (group, plural)).map_or(plural, |row| row.2);
        let deprecation = self.deprecation.and_then(|deprecation| deprecation.notice(&api_version, kind, terms.binary));
        let root = types.id(&type_name(group, version, kind)).expect("every row has its fields in the table");
        Resource {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            list_kind: format!("{kind}List"),
            plural: plural.into(),
            singular: self.singular.to_owned(),
            short_names: self.short_names.into_iter().map(CompactString::from).collect(),
            categories: self.categories.into_iter().map(CompactString::from).collect(),
            namespaced: self.namespaced,
            verbs: self.verbs,
            scale: ScalePaths::of_built_in(group, subresources.iter().map(|subresource| subresource.name)),
            subresources,
            prefix: match &stored {
                Some(stored) => stored.resource.prefix.clone(),
                None => format!("/registry/{stored_at}/"),
            },
            selectable,
            selects_namespace: selects_namespace.unwrap_or(self.namespaced),
            rules,
            strategy,
            columns: Columns::of(group, plural),
            shape: if stored.is_some() { shape_of_version(&api_version) } else { Shape::STORED },
            type_prefix: format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\","),
            deprecation,
            nature: Nature::BuiltIn(stored.map_or(BuiltIn::Stored { variously: false }, BuiltIn::Shown)),
            disabled: DisabledFields::of(types, root, terms.features),
            root,
            types: types.clone(),
            api_version,
        }
    }
}

impl Deprecation {
    /// What clients are told if the program is of the release that deprecates the resource, or a later one. Which
    /// release it behaves as does not matter: who is about to go forward should know.
    fn notice(self, api_version: &str, kind: &str, binary: Release) -> Option<DeprecationNotice> {
        let Deprecation { since, removed, replacement } = self;
        let since: Release = since.parse().ok()?;
        if since > binary {
            return None;
        }
        let mut warning = format!("{api_version} {kind} is deprecated in v{since}+");
        if !removed.is_empty() {
            warning.push_str(&format!(", unavailable in v{removed}+"));
        }
        if let Some((group_version, kind)) = replacement.rsplit_once('/') {
            warning.push_str(&format!("; use {group_version} {kind}"));
        }
        Some(DeprecationNotice { warning, removed: removed.to_owned() })
    }
}

/// Those of these subresources whose feature is on.
fn served(subresources: Vec<GatedSubresource>, features: Features) -> Vec<Subresource> {
    let is_on = |gated: &GatedSubresource| gated.feature.is_none_or(|feature| features.has(feature));
    subresources.into_iter().filter(is_on).map(|gated| gated.subresource).collect()
}

/// The type of all scales, as a resource that is not served by itself.
///
/// # Panics
/// If the table of fields has no such type: a fault of the program that its tests find.
pub(crate) fn scale_resource(types: &Arc<Types>, terms: &Terms) -> Resource {
    let row = Row::parse("autoscaling,v1,scales,Scale,scale,,,yes,get+patch+update,,,,,,").expect("is well formed");
    row.of_kind(Kind::without_rules(), types, None, terms)
}

/// The resources that speak of the versions of others. They stand in no table of what is served: they are there as long
/// as there are definitions, and a server without any shows the groups of the original and nothing else.
const VERSIONING: [&str; 2] = [
    "versioning.revisor.dev,v1alpha1,conversions,Conversion,conversion,conv,,,usual,status=get+patch+update,,,,,",
    "versioning.revisor.dev,v1alpha1,versionreports,VersionReport,versionreport,vr,,,get+list,fields=get:.VersionFields,,,,,",
];

/// The group and version of these.
pub(crate) const VERSIONING_GROUP_VERSION: &str = "versioning.revisor.dev/v1alpha1";

/// The conversions between versions of custom resources, and the reports on these.
///
/// # Panics
/// If the tables do not know them: a fault of the program that its tests find.
pub(crate) fn versioning_resources(types: &Arc<Types>, terms: &Terms) -> [Resource; 2] {
    VERSIONING.map(|row| {
        let row = Row::parse(row).expect("is well formed");
        row.resource(types, None, terms).expect("has a kind")
    })
}

/// A shape that no other version of the same resource has.
fn shape_of_version(api_version: &str) -> Shape {
    let digest = Sha256::digest(api_version.as_bytes());
    // Never zero, which is for what is stored.
    Shape::of_built_in(digest[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)) | 1)
}

/// The name of a kind's type in the table of fields: `core.v1.Pod`.
pub(crate) fn type_name(group: &str, version: &str, kind: &str) -> String {
    let package = match group {
        "" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        _ => group.split('.').next().unwrap_or_default(),
    };
    format!("{package}.{version}.{kind}")
}

fn list(text: &'static str) -> Vec<&'static str> {
    text.split('+').filter(|item| !item.is_empty()).collect()
}

fn verbs(text: &str) -> Option<Vec<Verb>> {
    text.split('+').map(Verb::parse).collect()
}

/// The feature with this name; no name, no feature.
fn feature(name: &str) -> Option<Option<Feature>> {
    if name.is_empty() { Some(None) } else { Feature::named(name).map(Some) }
}

/// `NAME=VERBS`, and `:GROUP/VERSION.KIND` behind it where the subresource speaks of another kind, and `?GATE` where it
/// is only there with a feature.
fn subresource(text: &'static str) -> Option<GatedSubresource> {
    let (name, rest) = text.split_once('=')?;
    let (rest, gate) = rest.split_once('?').unwrap_or((rest, ""));
    let (verb_names, other) = match rest.split_once(':') {
        Some((verb_names, other)) => (verb_names, Some(other.rsplit_once('.')?)),
        None => (rest, None),
    };
    let subresource = Subresource { name, verbs: verbs(verb_names)?, other_kind: other };
    Some(GatedSubresource { subresource, feature: feature(gate)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecations_are_told_from_their_release_on() {
        for (since, removed, replacement, want) in [
            ("1.33", "", "g/v1/K", Some("v1 A is deprecated in v1.33+; use g/v1 K")),
            ("1.34", "1.37", "", Some("v1 A is deprecated in v1.34+, unavailable in v1.37+")),
            ("1.37", "1.40", "", None),
        ] {
            let notice = Deprecation { since, removed, replacement }.notice("v1", "A", BINARY);
            assert_eq!(notice.as_ref().map(|notice| notice.warning.as_str()), want, "{since}");
            assert!(notice.is_none_or(|notice| notice.removed == removed));
        }
    }
}
