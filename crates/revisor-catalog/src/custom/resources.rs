//! The resources of a definition: one for each of its versions that is served.

use std::sync::Arc;

use compact_str::CompactString;
use revisor_cel::{CompiledRules, Environment};
use revisor_object::Shape;
use revisor_object::names::NameRule;
use revisor_schema::{CustomSchema, MetadataType};

use super::{Custom, CustomField, CustomStrategy, Family, WritesUnderWay};
use crate::disabled_fields::DisabledFields;
use crate::kinds::apiextensions::definition::segments;
use crate::resource::Nature;
use crate::{
    Catalog, Columns, DefinedVersion, Definition, DeleteAnswer, DeprecationNotice, Resource, Rules, Subresource, Verb,
};

/// What can be asked of every custom resource.
const VERBS: [Verb; 8] =
    [Verb::Create, Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch];

/// What nearly every custom resource has.
const RULES: Rules = Rules {
    names: NameRule::Dns1123Subdomain,
    create_on_update: false,
    unconditional_update: false,
    names_nameless: false,
    prefix_is_name: false,
    known_finalizers: false,
    delete_answer: DeleteAnswer::Status,
};

/// To look at a schema takes as long as to work on so many bytes of an object.
const BYTES_PER_SCHEMA: usize = 8;

/// The resources of a definition.
#[derive(Debug)]
pub struct CustomResources {
    /// Those that clients can use.
    pub served: Vec<Arc<Resource>>,
    /// The one that is stored, whether clients can use it or not.
    pub storage: Arc<Resource>,
}

impl Definition {
    /// The resources that this definition makes; `None` if it says of no version that it is stored. `rules` are those of
    /// its Conversion, if there is one: they count where the definition asks for nothing else. `catalog` knows the type
    /// of metadata, and what rules and formats there are.
    pub fn resources(
        &self,
        catalog: &Catalog,
        rules: Option<Arc<revisor_convert::Conversion>>,
    ) -> Option<CustomResources> {
        let state = catalog.next_state();
        let (types, environment) = (catalog.types(), catalog.rule_environment());
        let storage = self.versions.iter().position(|version| version.storage)?;
        let metadata = types.id("meta.v1.ObjectMeta")?;
        let metadata_type = MetadataType { types, id: metadata };
        let compiled: Vec<(CompactString, Arc<CustomSchema>)> = self
            .versions
            .iter()
            .map(|version| {
                let api_version = CompactString::from(format!("{}/{}", self.group, version.name));
                let compiled =
                    CustomSchema::compile(version.schema.clone(), metadata_type, catalog.formats().minor.into());
                (api_version, Arc::new(compiled))
            })
            .collect();
        let kind = &self.accepted.kind;
        let typed = self.versions.iter().zip(&compiled).map(|(version, (_, schema))| {
            let (types, root) = schema.types(&format!("{}.{kind}", version.name), metadata_type);
            (Arc::new(types), root)
        });
        let family = Arc::new(Family {
            kind: kind.as_str().into(),
            typed: typed.collect(),
            versions: compiled,
            storage,
            serves_storage: self.versions[storage].served,
            conversion: self.conversion.with_rules(rules),
            tally: catalog.conversion_tally(&format!("{}.{}", self.accepted.plural, self.group)),
            writes: WritesUnderWay::default(),
            preserves_unknown_fields: self.preserves_unknown_fields,
            types: types.clone(),
            metadata,
        });
        let all: Vec<(bool, Arc<Resource>)> = (self.versions.iter().enumerate())
            .filter(|(at, version)| version.served || *at == storage)
            .map(|(at, version)| (version.served, Arc::new(self.resource(version, at, state, &family, environment))))
            .collect();
        let stored = all.iter().find(|(_, resource)| resource.is_storage()).map(|(_, resource)| resource.clone());
        let served = all.into_iter().filter(|(is_served, _)| *is_served).map(|(_, resource)| resource).collect();
        Some(CustomResources { served, storage: stored? })
    }

    fn resource(
        &self,
        version: &DefinedVersion,
        at: usize,
        state: u64,
        family: &Arc<Family>,
        environment: &Environment,
    ) -> Resource {
        let (api_version, schema) = &family.versions[at];
        let names = &self.accepted;
        let rules = CompiledRules::compile(schema.structural(), true, environment);
        // A unit of cost takes as long as a byte.
        let cost = rules.as_ref().map_or(0, |rules| usize::try_from(rules.cost()).unwrap_or(usize::MAX));
        let weight = cost.saturating_add(schema.structural().nodes().saturating_mul(BYTES_PER_SCHEMA));
        let custom = Arc::new(Custom {
            fields: version
                .selectable
                .iter()
                .map(|path| CustomField {
                    name: path.strip_prefix('.').unwrap_or(path).to_owned(),
                    path: segments(path),
                })
                .collect(),
            is_terminating: self.is_terminating,
            frozen: version.frozen.clone(),
            family: family.clone(),
            api_version: api_version.clone(),
            rules,
            weight,
            schema: schema.clone(),
            has_status: version.has_status,
            scale: version.scale.clone(),
        });
        let written = || vec![Verb::Get, Verb::Patch, Verb::Update];
        let status = version.has_status.then(|| Subresource { name: "status", verbs: written(), other_kind: None });
        let scale = version.scale.as_ref().map(|_| Subresource {
            name: "scale",
            verbs: written(),
            other_kind: Some(("autoscaling/v1", "Scale")),
        });
        let texts = |texts: &[String]| texts.iter().map(|text| CompactString::from(text.as_str())).collect();
        let (types, root) = family.typed[at].clone();
        Resource {
            group: self.group.as_str().into(),
            version: version.name.as_str().into(),
            kind: names.kind.as_str().into(),
            list_kind: names.list_kind.clone(),
            plural: names.plural.as_str().into(),
            singular: names.singular.clone(),
            short_names: texts(&names.short_names),
            categories: texts(&names.categories),
            namespaced: self.namespaced,
            verbs: VERBS.to_vec(),
            subresources: status.into_iter().chain(scale).collect(),
            scale: version.scale.clone(),
            prefix: format!("/registry/{}/{}/", self.group, names.plural),
            selectable: Vec::new(),
            selects_namespace: self.namespaced,
            rules: RULES,
            strategy: Arc::new(CustomStrategy(custom.clone())),
            columns: Columns::of_custom(&version.columns),
            shape: Shape::of_defined(at, state),
            type_prefix: format!("{{\"kind\":\"{}\",\"apiVersion\":\"{api_version}\",", names.kind),
            deprecation: version
                .deprecation
                .clone()
                .map(|warning| DeprecationNotice { warning, removed: String::new() }),
            nature: Nature::Custom(custom),
            disabled: DisabledFields::default(),
            types,
            root,
            api_version: api_version.to_string(),
        }
    }
}
