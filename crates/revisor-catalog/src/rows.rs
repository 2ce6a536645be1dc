//! The rows of the built-in resources. To add a kind is to add a row here, its fields to `tables/fields.csv`, and a
//! strategy where it has rules of its own.

use std::sync::Arc;

use revisor_object::names::NameRule;
use revisor_schema::Types;

use crate::Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
use crate::kinds::{ConfigMaps, Events, Leases, Namespaces, Secrets, ServiceAccounts};
use crate::{DeleteAnswer, Resource, Rules, SelectableField, Strategy, Subresource, Verb};

/// The fields of all built-in types.
pub(crate) const FIELDS: &str = include_str!("../tables/fields.csv");

/// What nearly every resource can do.
const USUAL_VERBS: &[Verb] = &[Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch];

const USUAL: Rules = Rules {
    names: NameRule::Dns1123Subdomain,
    create_on_update: false,
    unconditional_update: true,
    validates_metadata: true,
    delete_answer: DeleteAnswer::Status,
};

/// One resource as the table has it.
pub(crate) struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    verbs: &'static [Verb],
    subresources: &'static [Subresource],
    selectable: &'static [SelectableField],
    rules: Rules,
    strategy: fn() -> Arc<dyn Strategy>,
}

const fn field(name: &'static str, paths: &'static [&'static [&'static str]]) -> SelectableField {
    SelectableField { name, paths }
}

pub(crate) const ROWS: &[Row] = &[
    Row {
        group: "",
        version: "v1",
        kind: "ConfigMap",
        plural: "configmaps",
        short_names: &["cm"],
        namespaced: true,
        verbs: USUAL_VERBS,
        subresources: &[],
        selectable: &[],
        rules: USUAL,
        strategy: || Arc::new(ConfigMaps),
    },
    Row {
        group: "",
        version: "v1",
        kind: "Event",
        plural: "events",
        short_names: &["ev"],
        namespaced: true,
        verbs: USUAL_VERBS,
        subresources: &[],
        selectable: &[
            field("involvedObject.kind", &[&["involvedObject", "kind"]]),
            field("involvedObject.namespace", &[&["involvedObject", "namespace"]]),
            field("involvedObject.name", &[&["involvedObject", "name"]]),
            field("involvedObject.uid", &[&["involvedObject", "uid"]]),
            field("involvedObject.apiVersion", &[&["involvedObject", "apiVersion"]]),
            field("involvedObject.resourceVersion", &[&["involvedObject", "resourceVersion"]]),
            field("involvedObject.fieldPath", &[&["involvedObject", "fieldPath"]]),
            field("reason", &[&["reason"]]),
            field("reportingComponent", &[&["reportingComponent"]]),
            field("source", &[&["source", "component"], &["reportingComponent"]]),
            field("type", &[&["type"]]),
        ],
        rules: Rules { names: NameRule::PathSegment, create_on_update: true, validates_metadata: false, ..USUAL },
        strategy: || Arc::new(Events),
    },
    Row {
        group: "",
        version: "v1",
        kind: "Namespace",
        plural: "namespaces",
        short_names: &["ns"],
        namespaced: false,
        verbs: &[Create, Delete, Get, List, Patch, Update, Watch],
        subresources: &[
            Subresource { name: "finalize", verbs: &[Update] },
            Subresource { name: "status", verbs: &[Get, Patch, Update] },
        ],
        selectable: &[field("status.phase", &[&["status", "phase"]])],
        rules: Rules { names: NameRule::Dns1123Label, ..USUAL },
        strategy: || Arc::new(Namespaces),
    },
    Row {
        group: "",
        version: "v1",
        kind: "Secret",
        plural: "secrets",
        short_names: &[],
        namespaced: true,
        verbs: USUAL_VERBS,
        subresources: &[],
        selectable: &[field("type", &[&["type"]])],
        rules: USUAL,
        strategy: || Arc::new(Secrets),
    },
    Row {
        group: "",
        version: "v1",
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        short_names: &["sa"],
        namespaced: true,
        verbs: USUAL_VERBS,
        subresources: &[],
        selectable: &[],
        rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL },
        strategy: || Arc::new(ServiceAccounts),
    },
    Row {
        group: "coordination.k8s.io",
        version: "v1",
        kind: "Lease",
        plural: "leases",
        short_names: &[],
        namespaced: true,
        verbs: USUAL_VERBS,
        subresources: &[],
        selectable: &[],
        rules: Rules { create_on_update: true, unconditional_update: false, ..USUAL },
        strategy: || Arc::new(Leases),
    },
];

impl Row {
    pub(crate) fn resource(&self, types: &Arc<Types>) -> Resource {
        let api_version =
            if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) };
        let type_prefix = format!("{{\"kind\":\"{}\",\"apiVersion\":\"{api_version}\",", self.kind);
        Resource {
            group: self.group,
            version: self.version,
            kind: self.kind,
            list_kind: format!("{}List", self.kind),
            plural: self.plural,
            singular: self.kind.to_lowercase(),
            short_names: self.short_names,
            categories: &[],
            namespaced: self.namespaced,
            verbs: self.verbs,
            subresources: self.subresources,
            prefix: format!("/registry/{}/", self.plural),
            selectable: self.selectable,
            selects_namespace: self.namespaced,
            rules: self.rules,
            strategy: (self.strategy)(),
            root: types.id(self.kind).expect("every row has its fields in the table"),
            types: types.clone(),
            api_version,
            type_prefix,
        }
    }
}
