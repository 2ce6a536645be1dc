//! The rules of the built-in kinds, by group. A resource of the table is served when its group knows its [`Kind`].

mod coordination;
pub(crate) mod core;
pub(crate) mod pod_spec;

use std::sync::Arc;

use revisor_object::names::NameRule;

use crate::{DeleteAnswer, Rules, SelectableField, Strategy};

/// What nearly every kind has.
const USUAL: Rules = Rules {
    names: NameRule::Dns1123Subdomain,
    create_on_update: false,
    unconditional_update: true,
    validates_metadata: true,
    delete_answer: DeleteAnswer::Status,
};

/// What a kind has beyond its row in the table.
pub(crate) struct Kind {
    pub(crate) rules: Rules,
    /// What field selectors may name beside the name and the namespace.
    pub(crate) selectable: Vec<SelectableField>,
    /// Whether field selectors may name the namespace, where that is not as usual: for kinds in namespaces only.
    pub(crate) selects_namespace: Option<bool>,
    pub(crate) strategy: Arc<dyn Strategy>,
}

impl Kind {
    /// A kind that only has a strategy of its own.
    fn usual(strategy: impl Strategy) -> Kind {
        Kind { rules: USUAL, selectable: Vec::new(), selects_namespace: None, strategy: Arc::new(strategy) }
    }
}

/// A selectable field with its places.
const fn field(name: &'static str, paths: &'static [&'static [&'static str]]) -> SelectableField {
    SelectableField { name, paths }
}

/// The kind of a resource of the table.
pub(crate) fn kind(group: &str, _version: &str, plural: &str) -> Option<Kind> {
    match group {
        "" => core::kind(plural),
        "coordination.k8s.io" => coordination::kind(plural),
        _ => None,
    }
}
