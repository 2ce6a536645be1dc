//! [`Generated`]: groups of requests made from the tables of the catalog, the same ones for the same number.
//!
//! Every resource has its turn, in the order of the catalog. A turn is one of four: objects with something wrong or odd
//! in them that are only tried (`tries`), metadata that is odd (`metadata`), texts that are no proper JSON or YAML
//! or say something twice (`texts`), or the life of an object from its creation to its end (`life`). `options`
//! are what a query may say. [`empties`] stands beside them: it goes through all places of all kinds, and comes to an end.

pub mod empties;
mod life;
mod metadata;
mod options;
mod texts;
mod tries;

use std::sync::Arc;

use revisor_catalog::{Catalog, Resource, Verb};
use revisor_fuzz::{Choices, Generator};
use revisor_growth::objects::small;
use revisor_object::{Object, Value};

use crate::group::Group;

/// Kinds that change what the server does with other requests, so that they are only tried: none of them is stored.
const HAZARDS: &[&str] = &[
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "FlowSchema",
    "PriorityLevelConfiguration",
    "CustomResourceDefinition",
    "ServiceCIDR",
    "IPAddress",
    "StorageVersion",
];

/// Endless groups.
pub struct Generated {
    resources: Vec<Arc<Resource>>,
    seed: u64,
    turns: u64,
}

impl Generated {
    /// The groups of this number, for resources with `only` in their names.
    pub fn new(seed: u64, only: &str) -> Generated {
        Generated { resources: resources(only), seed, turns: 0 }
    }
}

/// The resources with `only` in their names.
fn resources(only: &str) -> Vec<Arc<Resource>> {
    let catalog = Catalog::default();
    let is_asked = |resource: &&Arc<Resource>| {
        // What Revisor adds to the API has nothing to be held against.
        let is_own = resource.group.contains("revisor");
        !is_own && format!("{}/{}", resource.api_version, resource.plural).contains(only)
    };
    catalog.resources().filter(is_asked).cloned().collect()
}

impl Iterator for Generated {
    type Item = Group;

    fn next(&mut self) -> Option<Group> {
        let count = u64::try_from(self.resources.len()).ok().filter(|count| *count > 0)?;
        let turn = self.turns;
        self.turns += 1;
        let resource = &self.resources[usize::try_from(turn % count).ok()?];
        let mut subject = Subject::new(resource, Choices::seeded(self.seed.wrapping_mul(1_000_003).wrapping_add(turn)));
        let (style, steps) = match subject.choices.below(8) {
            0 => ("texts", texts::steps(&mut subject)),
            1 => ("metadata", metadata::steps(&mut subject)),
            2..=4 => ("tries", tries::steps(&mut subject)),
            _ => ("life", life::steps(&mut subject)),
        };
        let title = format!("{} {} {style}, turn {turn}", resource.api_version, resource.plural);
        Some(Group { title, steps })
    }
}

/// A resource whose turn it is.
struct Subject<'a> {
    resource: &'a Resource,
    choices: Choices<'static>,
}

impl<'a> Subject<'a> {
    fn new(resource: &'a Resource, choices: Choices<'static>) -> Subject<'a> {
        Subject { resource, choices }
    }

    /// The path of its collection.
    fn collection(&self) -> String {
        let resource = self.resource;
        let root = if resource.group.is_empty() { "/api" } else { "/apis" };
        let namespace = if resource.namespaced { "/namespaces/${ns}" } else { "" };
        format!("{root}/{}{namespace}/{}", resource.api_version, resource.plural)
    }

    /// The path of its object.
    fn object_path(&self) -> String {
        format!("{}/${{name}}", self.collection())
    }

    /// Whether its objects may be stored.
    fn is_storable(&self) -> bool {
        !HAZARDS.contains(&self.resource.kind.as_str())
            && self.has(Verb::Get)
            && self.has(Verb::Create)
            && small(self.resource).at(&["metadata", "name"]).and_then(Value::as_str) == Some("growth")
    }

    fn has(&self, verb: Verb) -> bool {
        self.resource.verbs.contains(&verb)
    }

    /// A good object under the name of the group.
    fn good(&mut self) -> Object {
        named(small(self.resource))
    }

    /// An object that is good but for something, or not good at all.
    fn odd(&mut self) -> Object {
        let (types, id) = self.resource.typed();
        let number = self.choices.below(1 << 16) as u64 | (self.choices.below(1 << 16) as u64) << 16;
        let mut generator = Generator::new(types, Choices::seeded(number));
        let object = if self.choices.once_in(2) {
            generator.object(id, &self.resource.kind, &self.resource.api_version)
        } else {
            let mut object = small(self.resource);
            object = generator.changed(id, &object);
            object
        };
        named(object)
    }

    /// Something that stands in the part of an object with this name.
    fn part(&mut self, part: &str) -> Option<Value> {
        let (types, id) = self.resource.typed();
        let field = types.get(id).field(part)?;
        let revisor_schema::Shape::Struct(inner) = field.shape else { return None };
        let number = self.choices.below(1 << 16) as u64;
        let mut made = Generator::new(types, Choices::seeded(number)).object(inner, "", "");
        made.remove("kind");
        made.remove("apiVersion");
        made.remove("metadata");
        Some(Value::Object(made))
    }
}

/// The object under the name of the group, if it may have any.
fn named(mut object: Object) -> Object {
    let metadata = object.object_mut("metadata");
    if matches!(metadata.str("name"), None | Some("growth" | "a" | "my-name" | "a.b" | "odd")) {
        metadata.insert("name", "${name}");
    }
    metadata.remove("namespace");
    object
}
