//! [`Catalog`]: all resources that are served, found by group, version and name.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use compact_str::CompactString;
use revisor_cel::{Environment, RuleEnvironments};
use revisor_convert::DefinitionError;
use revisor_object::Object;
use revisor_schema::Types;
use revisor_version::{ApiVersion, EffectiveVersion, FeatureGates, Release};

use crate::availability::{CatalogError, served, storage};
use crate::conversion::between;
use crate::custom::{ConversionSample, ConversionTallies, ConversionTally};
use crate::kinds::{self, Terms};
use crate::resource::{BuiltIn, Nature, Stored};
use crate::rows::{
    BINARY, FIELDS, GO_TYPES, RESOURCES, Row, VERSIONING_GROUP_VERSION, rows, scale_resource, versioning_resources,
};
use crate::{Features, Resource, RuntimeConfig, RuntimeConfigError};

/// A group and one of its versions that is served.
#[derive(Debug, Clone)]
pub struct GroupVersion {
    /// The group; empty for the core group.
    pub group: CompactString,
    /// The version.
    pub version: CompactString,
    /// Its resources, in the order of their names.
    pub resources: Vec<Arc<Resource>>,
}

/// What whoever runs the server decides about what it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogOptions {
    /// What the server is, what it behaves as, and with whom it gets along.
    pub version: EffectiveVersion,
    /// The features that are on.
    pub gates: FeatureGates,
    /// What is switched on or off beside what is served by default.
    pub runtime_config: RuntimeConfig,
    /// Whether what is served brings along its better versions of later releases.
    pub emulation_forward_compatible: bool,
    /// Whether versions and resources of later releases are served if they are switched on by name.
    pub runtime_config_forward_compatible: bool,
    /// Whether alpha versions of another release may be served.
    pub allow_alpha: bool,
    /// Whether containers may be privileged, or processes of the host.
    pub allow_privileged: bool,
}

impl CatalogOptions {
    /// Whether the group of this server's own is served while there are definitions. Where a kube-apiserver may serve the
    /// same objects (`is_shared`), clients must not be able to tell which one they talk to: only if it is switched on.
    pub fn shows_versioning(&self, is_shared: bool) -> bool {
        self.runtime_config.says_of_version(VERSIONING_GROUP_VERSION).unwrap_or(!is_shared)
    }
}

impl Default for CatalogOptions {
    fn default() -> CatalogOptions {
        CatalogOptions {
            version: EffectiveVersion::of(BINARY),
            gates: FeatureGates::of(BINARY),
            runtime_config: RuntimeConfig::default(),
            emulation_forward_compatible: false,
            runtime_config_forward_compatible: false,
            allow_alpha: false,
            allow_privileged: true,
        }
    }
}

impl CatalogOptions {
    /// The options of a server of which everything is asked that there is.
    ///
    /// # Panics
    /// If the built-in tables contradict themselves: a fault of the program that its tests find.
    pub fn everything() -> CatalogOptions {
        let version = EffectiveVersion::of(BINARY);
        CatalogOptions {
            version,
            gates: FeatureGates::parse(&["AllAlpha=true,AllBeta=true"], version, true).expect("both are known"),
            runtime_config: Catalog::read_runtime_config("api/all=true").expect("is known"),
            ..CatalogOptions::default()
        }
    }
}

/// All resources that are served.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// In the order of discovery: built-in ones as their table has them, then those of custom resources by group.
    group_versions: Vec<Arc<GroupVersion>>,
    /// How many of them are built in.
    built_in: usize,
    /// What the objects of built-in resources are stored as, whether or not any version of them is served.
    stored_kinds: Vec<Arc<Resource>>,
    /// What subresources speak of, where that is another kind.
    other_kinds: Vec<Arc<Resource>>,
    types: Arc<Types>,
    /// What stored rules of custom resources may speak of.
    rule_environment: Environment,
    /// The release whose formats custom resources may ask for.
    formats: Release,
    features: Features,
    /// What the objects of each built-in resource are stored as, by group and name.
    storage_versions: Vec<StorageVersion>,
    scale: Arc<Resource>,
    conversions: Arc<Resource>,
    version_reports: Arc<Resource>,
    /// The versions of definitions that serve none of them, by group and plural.
    pub(crate) hidden: BTreeMap<(CompactString, CompactString), Vec<CompactString>>,
    /// How many states of definitions there have been, for all catalogs that were made of one.
    states: Arc<AtomicU64>,
    /// How their objects were converted, likewise.
    conversion_tallies: Arc<ConversionTallies>,
}

/// What the objects of a built-in resource are stored as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StorageVersion {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The name of the resource in paths.
    pub resource: &'static str,
    /// `version` or `group/version`.
    pub api_version: String,
    /// The kind.
    pub kind: &'static str,
}

impl Default for Catalog {
    /// The catalog of a server of which nothing is asked.
    fn default() -> Catalog {
        Catalog::build(&CatalogOptions::default()).expect("the defaults ask for nothing that there is not")
    }
}

impl Catalog {
    /// The catalog of what is served under these options. Here, and nowhere else, it is asked which release the server
    /// behaves as (V1).
    ///
    /// # Errors
    /// If the options ask for what there is not.
    ///
    /// # Panics
    /// If the built-in tables contradict themselves: a fault of the program that its tests find.
    pub fn build(options: &CatalogOptions) -> Result<Catalog, CatalogError> {
        Catalog::in_tables(RESOURCES, FIELDS, options)
    }

    /// The same with other tables.
    pub(crate) fn in_tables(
        resources: &'static str,
        fields: &str,
        options: &CatalogOptions,
    ) -> Result<Catalog, CatalogError> {
        let version = options.version;
        let terms = Terms {
            allow_privileged: options.allow_privileged,
            features: Features::of(&options.gates),
            expressions: RuleEnvironments {
                new: Environment::new(version.min_compatibility()),
                stored: Environment::new(version.binary()),
            },
            min_compatibility: version.min_compatibility(),
            binary: version.binary(),
        };
        let rows: Vec<Row> = rows(resources).collect();
        let is_served = served(&rows, options)?;
        let mut types = Types::parse(fields).expect("the table of fields is well formed");
        types.name_go_types(GO_TYPES);
        let types = Arc::new(types);
        // What others are stored as comes first, whether it is served or not.
        let mut stored = HashMap::new();
        let mut storage_versions = Vec::new();
        for row in &rows {
            let is_storage = kinds::stored_as(row.group, row.plural).is_none()
                && storage(row, &rows, version).version == row.version;
            if !is_storage {
                continue;
            }
            if let Some(mut resource) = row.clone().resource(&types, None, &terms) {
                let variously = rows.iter().any(|other| row.is_sibling(other));
                resource.nature = Nature::BuiltIn(BuiltIn::Stored { variously });
                if resource.is_stored() {
                    let (group, resource, kind) = (row.group, row.plural, row.kind);
                    storage_versions.push(StorageVersion { group, resource, kind, api_version: row.group_version() });
                }
                stored.insert((row.group, row.plural), Arc::new(resource));
            }
        }
        storage_versions.sort();
        let mut group_versions: Vec<GroupVersion> = Vec::new();
        let mut other_kinds = Vec::new();
        for (row, _) in rows.iter().zip(is_served).filter(|(_, is_served)| *is_served) {
            add_other_kinds(&mut other_kinds, row.other_kinds(&types, &terms));
            let place = kinds::stored_as(row.group, row.plural).unwrap_or((row.group, row.plural));
            let Some(storage) = stored.get(&place) else { continue };
            let resource = if (&*storage.group, &*storage.version) == (row.group, row.version) {
                Some(storage.clone())
            } else {
                let of = |group: &str, version: &str| kinds::conversion(group, version, row.plural);
                let conversion = between(of(row.group, row.version), of(&storage.group, &storage.version));
                let way = Stored { resource: storage.clone(), conversion };
                row.clone().resource(&types, Some(way), &terms).map(Arc::new)
            };
            if let Some(resource) = resource {
                insert(&mut group_versions, resource);
            }
        }
        let group_versions: Vec<Arc<GroupVersion>> = group_versions.into_iter().map(Arc::new).collect();
        let [conversions, version_reports] = versioning_resources(&types, &terms).map(Arc::new);
        Ok(Catalog {
            // What is stored may have been written by any release up to this one.
            rule_environment: terms.expressions.stored.clone(),
            formats: terms.min_compatibility,
            features: terms.features,
            storage_versions,
            built_in: group_versions.len(),
            group_versions,
            stored_kinds: stored.into_values().filter(|resource| resource.is_stored()).collect(),
            other_kinds,
            scale: Arc::new(scale_resource(&types, &terms)),
            conversions,
            version_reports,
            hidden: BTreeMap::new(),
            states: Arc::default(),
            conversion_tallies: Arc::default(),
            types,
        })
    }

    /// This catalog with these as all versions of the custom resource `plural` of a group. Without any, it is gone.
    pub fn with_custom(&self, group: &str, plural: &str, resources: Vec<Arc<Resource>>) -> Catalog {
        let (before, after) = self.custom(group);
        let kept = self.group_versions[before..after].iter().flat_map(|known| &known.resources);
        let mut of_group: Vec<GroupVersion> = Vec::new();
        for resource in kept.filter(|known| known.plural != plural).cloned().chain(resources) {
            insert(&mut of_group, resource);
        }
        // Names of versions were checked with their definition.
        of_group.sort_by_cached_key(|known| Reverse(known.version.parse::<ApiVersion>().ok()));
        let mut catalog = self.clone();
        catalog.group_versions.splice(before..after, of_group.into_iter().map(Arc::new));
        catalog
    }

    /// This catalog with all versions of a definition that serves none of them: clients who ask for one are told so.
    /// Without any, nothing is known of it.
    pub fn with_hidden(&self, group: &str, plural: &str, versions: &[&str]) -> Catalog {
        let mut catalog = self.clone();
        let name = (group.into(), plural.into());
        if versions.is_empty() {
            catalog.hidden.remove(&name);
        } else {
            catalog.hidden.insert(name, versions.iter().map(|version| (*version).into()).collect());
        }
        catalog
    }

    /// Whether there is a definition of this name that serves none of its versions.
    pub fn hides(&self, group: &str, plural: &str) -> bool {
        self.hidden.contains_key(&(group.into(), plural.into()))
    }

    /// Whether there is one of this group.
    pub(crate) fn hides_in(&self, group: &str) -> bool {
        self.hidden.keys().any(|(known, _)| known == group)
    }

    /// The same resources for who only tries what definitions would do: what is converted by those that are made of it is
    /// not counted with the conversions of clients.
    pub(crate) fn uncounted(&self) -> Catalog {
        Catalog { conversion_tallies: Arc::default(), ..self.clone() }
    }

    /// A number for a state of a definition and its conversion that no other state has.
    pub(crate) fn next_state(&self) -> u64 {
        self.states.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Where the conversions of a definition are counted.
    pub(crate) fn conversion_tally(&self, definition: &str) -> Arc<ConversionTally> {
        self.conversion_tallies.of(definition)
    }

    /// How custom objects were converted so far, by definition.
    pub fn conversion_samples(&self) -> Vec<ConversionSample> {
        self.conversion_tallies.samples()
    }

    /// Where the custom resources of a group stand.
    fn custom(&self, group: &str) -> (usize, usize) {
        let custom = &self.group_versions[self.built_in..];
        let before = custom.partition_point(|known| known.group.as_str() < group);
        let after = custom.partition_point(|known| known.group.as_str() <= group);
        (self.built_in + before, self.built_in + after)
    }

    /// All versions of a group, built-in ones first.
    pub fn versions_of(&self, group: &str) -> impl Iterator<Item = &Arc<GroupVersion>> {
        let (before, after) = self.custom(group);
        let built_in = self.group_versions[..self.built_in].iter();
        // Two groups with one name cannot be told apart here as there.
        let group = CompactString::from(group);
        built_in.filter(move |known| known.group == group).chain(&self.group_versions[before..after])
    }

    /// Reads what is to be switched on and off beside what is served by default.
    pub fn read_runtime_config(text: &str) -> Result<RuntimeConfig, RuntimeConfigError> {
        let own = VERSIONING_GROUP_VERSION.split_once('/');
        let known: Vec<(&str, &str)> = rows(RESOURCES).map(|row| (row.group, row.version)).chain(own).collect();
        RuntimeConfig::parse(text, &known)
    }

    /// The resources that a configuration names and that there are not, in no release that the program knows. As in the
    /// original that is no error: who shares a command line between releases may well name what only some have.
    pub fn unknown_resources(config: &RuntimeConfig) -> Vec<String> {
        let known: Vec<(String, &str)> = rows(RESOURCES).map(|row| (row.group_version(), row.plural)).collect();
        let is_known =
            |(version, resource): &(&str, &str)| known.iter().any(|row| row.0 == *version && row.1 == *resource);
        let unknown = config.named_resources().filter(|named| !is_known(named));
        unknown.map(|(version, resource)| format!("{version}/{resource}")).collect()
    }

    /// The features that are on.
    pub fn features(&self) -> Features {
        self.features
    }

    /// What the objects of each built-in resource are stored as, by group and name.
    pub fn storage_versions(&self) -> &[StorageVersion] {
        &self.storage_versions
    }

    /// The release whose formats custom resources may ask for: the oldest with which the server is compatible.
    pub(crate) fn formats(&self) -> Release {
        self.formats
    }

    /// The kind that subresources speak of under this name, such as `authentication.k8s.io/v1` `TokenRequest`. It is
    /// read and written like a resource, but has no address of its own and nothing is stored of it.
    pub fn other_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.other_kinds.iter().find(|known| known.api_version == api_version && known.kind == kind)
    }

    /// The types of all objects and options.
    pub fn types(&self) -> &Arc<Types> {
        &self.types
    }

    /// What stored rules of custom resources may speak of. Made once: to read its libraries takes longer than most
    /// rules.
    pub fn rule_environment(&self) -> &Environment {
        &self.rule_environment
    }

    /// A definition as conversions between its versions see it.
    ///
    /// # Errors
    /// If the object is no definition.
    pub fn convertible(&self, definition: &Object) -> Result<revisor_convert::Definition, DefinitionError> {
        revisor_convert::Definition::read(definition, &self.rule_environment, self.formats.minor.into())
    }

    /// A definition as it is compared with another one.
    ///
    /// # Errors
    /// If the object is no definition.
    pub fn comparable(&self, definition: &Object) -> Result<revisor_check::Crd, revisor_check::CrdError> {
        revisor_check::Crd::read(definition, &self.rule_environment, self.formats.minor.into())
    }

    /// The type of all scales, as a resource. It is not served by itself: its objects are parts of others.
    pub fn scale(&self) -> &Arc<Resource> {
        &self.scale
    }

    /// The conversions between the versions of custom resources. They are stored always, and served beside these, as long
    /// as there are any.
    pub fn conversions(&self) -> &Arc<Resource> {
        &self.conversions
    }

    /// The reports on the versions of custom resources. They are served beside these, as long as there are any.
    pub fn version_reports(&self) -> &Arc<Resource> {
        &self.version_reports
    }

    /// Everything built in that can be stored, also what is not served: what the server's own rules look at does not
    /// depend on that.
    pub fn stored_kinds(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.stored_kinds.iter()
    }

    /// The built-in resource `plural` of a group, as it is stored.
    pub fn stored_kind(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.stored_kinds.iter().find(|resource| resource.name() == (group, plural))
    }

    /// The resource with this name in paths.
    pub fn resource<'c>(&'c self, group: &str, version: &str, plural: &str) -> Option<&'c Arc<Resource>> {
        let find_in = |versions: &'c [Arc<GroupVersion>]| {
            versions.iter().filter(|known| known.version == version && known.group == group).find_map(|known| {
                let at = known.resources.binary_search_by(|known| known.plural.as_str().cmp(plural)).ok()?;
                Some(&known.resources[at])
            })
        };
        // Nearly always it is a built-in one.
        find_in(&self.group_versions[..self.built_in]).or_else(|| {
            let (before, after) = self.custom(group);
            find_in(&self.group_versions[before..after])
        })
    }

    /// Whether any version of this group is served.
    pub fn has_group(&self, group: &str) -> bool {
        self.versions_of(group).next().is_some()
    }

    /// Whether the group has resources that need no definition.
    pub fn has_built_in(&self, group: &str) -> bool {
        self.versions_of(group).any(|known| known.resources.iter().any(|resource| resource.custom().is_none()))
    }

    /// The group and version, if they are served.
    pub fn group_version(&self, group: &str, version: &str) -> Option<&Arc<GroupVersion>> {
        self.versions_of(group).find(|known| known.version == version)
    }

    /// Every group and version, in the order of discovery.
    pub fn group_versions(&self) -> &[Arc<GroupVersion>] {
        &self.group_versions
    }

    /// Every resource.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.group_versions.iter().flat_map(|known| &known.resources)
    }
}

fn insert(group_versions: &mut Vec<GroupVersion>, resource: Arc<Resource>) {
    let (group, version) = (&resource.group, &resource.version);
    let known = group_versions.iter().position(|known| known.group == *group && known.version == *version);
    let at = known.unwrap_or_else(|| {
        let (group, version) = (group.clone(), version.clone());
        group_versions.push(GroupVersion { group, version, resources: Vec::new() });
        group_versions.len() - 1
    });
    let resources = &mut group_versions[at].resources;
    let at = resources.partition_point(|known| known.plural < resource.plural);
    resources.insert(at, resource);
}

fn add_other_kinds(known: &mut Vec<Arc<Resource>>, kinds: Vec<Resource>) {
    for kind in kinds {
        if !known.iter().any(|other| other.api_version == kind.api_version && other.kind == kind.kind) {
            known.push(Arc::new(kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::{Value, parse_json};

    use super::*;

    fn everything() -> Catalog {
        Catalog::build(&CatalogOptions::everything()).expect("there is all of it")
    }

    #[test]
    fn stored_versions_have_the_hashes_of_the_original() {
        let catalog = Catalog::default();
        for (group, plural, want) in [
            ("", "configmaps", "qFsyl6wFWjQ="),
            ("apps", "deployments", "8aSe+NMegvE="),
            ("apiextensions.k8s.io", "customresourcedefinitions", "jfWCUB31mvA="),
        ] {
            let resource = catalog.resource(group, "v1", plural).expect(plural);
            assert_eq!(resource.storage_version_hash(), want, "{plural}");
        }
    }

    #[test]
    fn the_built_in_tables_are_consistent() {
        let catalog = everything();
        let stored = catalog.resources().filter(|resource| resource.is_storage());
        let mut prefixes: Vec<&str> = stored.map(|resource| resource.prefix.as_str()).collect();
        prefixes.sort_unstable();
        for pair in prefixes.windows(2) {
            assert!(!pair[1].starts_with(pair[0]), "{} and {} would share keys", pair[0], pair[1]);
        }
    }

    fn configured(text: &str) -> Catalog {
        let runtime_config = Catalog::read_runtime_config(text).expect("is known");
        Catalog::build(&CatalogOptions { runtime_config, ..CatalogOptions::default() }).expect("there is all of it")
    }

    #[test]
    fn everything_is_served_when_everything_is_switched_on() {
        let catalog = everything();
        let is_gone = |row: &Row| row.removed.is_some_and(|removed| removed <= BINARY);
        for row in rows(RESOURCES).filter(|row| !is_gone(row)) {
            let name = (row.group, row.version, row.plural);
            let is_served = catalog.resource(row.group, row.version, row.plural).is_some();
            assert!(is_served, "{name:?}");
        }
        let order: Vec<(&str, &str)> =
            catalog.group_versions().iter().map(|known| (&*known.group, &*known.version)).collect();
        let mut wanted: Vec<(&str, &str)> = Vec::new();
        for row in rows(RESOURCES).filter(|row| !is_gone(row)) {
            if wanted.last() != Some(&(row.group, row.version)) {
                wanted.push((row.group, row.version));
            }
        }
        assert_eq!(order, wanted, "in the order of the table");
    }

    #[test]
    fn names_of_nothing_are_told() {
        let config = "apps/v1/deployments=true,apps/v1/nothing=false,apps/v1beta1/deployments=true";
        let config = Catalog::read_runtime_config(config).expect("the versions are known");
        assert_eq!(Catalog::unknown_resources(&config), ["apps/v1/nothing", "apps/v1beta1/deployments"]);
    }

    #[test]
    fn nothing_else_goes_when_one_resource_is_switched_off() {
        let all = Catalog::default();
        for resource in all.resources() {
            let key = format!("{}/{}", resource.api_version, resource.plural);
            let rest = configured(&format!("{key}=false"));
            assert!(rest.resource(&resource.group, &resource.version, &resource.plural).is_none(), "{key}");
            assert_eq!(rest.resources().count() + 1, all.resources().count(), "{key}");
        }
    }

    #[test]
    fn objects_are_stored_as_the_release_before_can_read_them() {
        let catalog = everything();
        for (group, plural, shown, stored) in [
            (
                "admissionregistration.k8s.io",
                "mutatingadmissionpolicies",
                &["v1", "v1beta1", "v1alpha1"][..],
                "v1beta1",
            ),
            ("admissionregistration.k8s.io", "validatingadmissionpolicies", &["v1"], "v1"),
            ("autoscaling", "horizontalpodautoscalers", &["v1", "v2"], "v2"),
            ("certificates.k8s.io", "clustertrustbundles", &["v1beta1", "v1alpha1"], "v1beta1"),
            ("coordination.k8s.io", "leasecandidates", &["v1beta1", "v1alpha2"], "v1beta1"),
            ("networking.k8s.io", "ipaddresses", &["v1", "v1beta1"], "v1"),
            ("resource.k8s.io", "devicetaintrules", &["v1beta2", "v1alpha3"], "v1alpha3"),
            ("resource.k8s.io", "resourceclaims", &["v1", "v1beta2", "v1beta1"], "v1"),
            ("storage.k8s.io", "volumeattributesclasses", &["v1", "v1beta1"], "v1"),
        ] {
            for version in shown {
                let resource = catalog.resource(group, version, plural).expect("is served");
                assert_eq!(resource.storage().version, stored, "{plural} of {version}");
            }
        }
    }

    #[test]
    fn resources_are_found_by_group_version_and_name_only() {
        let catalog = Catalog::default();
        assert_eq!(catalog.resource("", "v1", "configmaps").map(|found| found.kind.as_str()), Some("ConfigMap"));
        assert!(catalog.resource("", "v1", "leases").is_none());
        assert!(catalog.resource("coordination.k8s.io", "v1", "leases").is_some());
        assert!(catalog.resource("coordination.k8s.io", "v2", "leases").is_none());
    }

    #[test]
    fn every_kind_with_pods_obeys_the_policy_on_privileges() {
        let pod = r#"{"containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}"#;
        let template = format!(r#"{{"metadata":{{"labels":{{"a":"b"}}}},"spec":{pod}}}"#);
        let with_selector = format!(r#"{{"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},"template":{template}}}}}"#);
        for (group, plural, written) in [
            ("", "pods", format!(r#"{{"spec":{pod}}}"#)),
            ("", "podtemplates", format!(r#"{{"template":{template}}}"#)),
            ("", "replicationcontrollers", format!(r#"{{"spec":{{"selector":{{"a":"b"}},"template":{template}}}}}"#)),
            ("apps", "daemonsets", with_selector.clone()),
            ("apps", "deployments", with_selector.clone()),
            ("apps", "replicasets", with_selector.clone()),
            ("apps", "statefulsets", with_selector.clone()),
            ("batch", "jobs", with_selector),
            ("batch", "cronjobs", format!(r#"{{"spec":{{"jobTemplate":{{"spec":{{"template":{template}}}}}}}}}"#)),
        ] {
            for allow_privileged in [true, false] {
                let catalog = Catalog::build(&CatalogOptions { allow_privileged, ..CatalogOptions::default() })
                    .expect("there is all of it");
                let resource = catalog.resource(group, "v1", plural).expect("is served");
                let mut object = match parse_json(written.as_bytes()).expect("is JSON").value {
                    Value::Object(object) => object,
                    other => panic!("no object: {other:?}"),
                };
                resource.strategy.default(&mut object);
                let errors = resource.strategy.validate(&object);
                let is_refused = errors.iter().any(|error| error.field.ends_with(".privileged"));
                assert_eq!(is_refused, !allow_privileged, "{plural}: {errors:?}");
            }
        }
    }
}
