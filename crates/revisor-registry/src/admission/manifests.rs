//! [`StaticManifests`]: the webhooks or policies that a plugin has from files, beside those that are stored.
//!
//! They are read, held to the rules of their kind and compiled before they count, all of a plugin at once. They come
//! before what is stored, nobody can change them by the API, and they are asked about stored webhooks and policies too:
//! who can stop everything by a file can take it back by the file (upstream: `plugin/manifest`). Where the files are,
//! and when they are read again, is for the program.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use revisor_admission::{AdmissionEnvironment, MutatingPolicy, PolicyBinding, ValidatingPolicy};
use revisor_catalog::{Catalog, Resource, validate_metadata};
use revisor_object::{Object, Value, aggregate_message};

use super::AdmissionPlugin;
use super::webhooks::Webhook;
use crate::policy_book::{GROUP, Hook, Hooks};
use crate::{Decoded, FieldValidation, Format, Registry};

/// What the names of all of them end with, and of nothing that is stored.
const SUFFIX: &str = ".static.k8s.io";

/// How deep lists may stand in lists.
const MAX_DEPTH: usize = 8;

/// One document of a file.
#[derive(Debug, Clone, Copy)]
pub struct ManifestDocument<'a> {
    /// The path of the file.
    pub file: &'a str,
    /// What the document says, in JSON or YAML.
    pub text: &'a [u8],
}

/// Why the manifests of a plugin do not count.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A document cannot be taken.
    #[error("error loading {file}: {problem}")]
    Document {
        /// The file that it stands in.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// A binding is of a policy that is in no file.
    #[error("binding {binding:?} references policy {policy:?} which does not exist in the manifest directory")]
    NoPolicy {
        /// The name of the binding.
        binding: String,
        /// The name of the policy.
        policy: String,
    },
    /// The plugin takes no manifests, or the server does not know what would stand in them.
    #[error("{0} takes no manifests")]
    NoManifests(AdmissionPlugin),
}

/// What a plugin has from files.
#[derive(Clone)]
pub struct StaticManifests {
    plugin: AdmissionPlugin,
    content: Content,
}

#[derive(Clone)]
enum Content {
    Webhooks(Arc<[Arc<Webhook>]>),
    ValidatingPolicies(Hooks<ValidatingPolicy>),
    MutatingPolicies(Hooks<MutatingPolicy>),
}

impl fmt::Debug for StaticManifests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticManifests").field("plugin", &self.plugin).field("len", &self.len()).finish()
    }
}

impl StaticManifests {
    /// Reads the documents of a plugin.
    ///
    /// # Errors
    /// Something is wrong with one of them; then none of them counts.
    pub fn read(
        catalog: &Catalog,
        plugin: AdmissionPlugin,
        documents: &[ManifestDocument<'_>],
    ) -> Result<StaticManifests, ManifestError> {
        let environment = AdmissionEnvironment::new(catalog.rule_environment().clone());
        let mut manifests = Manifests::of(catalog, plugin).ok_or(ManifestError::NoManifests(plugin))?;
        for document in documents {
            manifests.take(document).map_err(|problem| ManifestError::Document {
                file: document.file.to_owned(),
                problem: problem.into_text(),
            })?;
        }
        let [first, bindings] = manifests.into_sorted();
        let content = match plugin {
            AdmissionPlugin::MutatingAdmissionPolicy => {
                Content::MutatingPolicies(hooks(&first, &bindings, |name, policy| {
                    MutatingPolicy::compile(&environment, name, policy)
                })?)
            }
            AdmissionPlugin::ValidatingAdmissionPolicy => {
                Content::ValidatingPolicies(hooks(&first, &bindings, |name, policy| {
                    ValidatingPolicy::compile(&environment, name, policy)
                })?)
            }
            _ => Content::Webhooks(
                first.iter().flat_map(|(_, object)| Webhook::read_static(&environment, object)).collect(),
            ),
        };
        Ok(StaticManifests { plugin, content })
    }

    /// Whose they are.
    pub fn plugin(&self) -> AdmissionPlugin {
        self.plugin
    }

    /// How many webhooks, or policies in force, there are.
    pub fn len(&self) -> usize {
        match &self.content {
            Content::Webhooks(webhooks) => webhooks.len(),
            Content::ValidatingPolicies(hooks) => hooks.len(),
            Content::MutatingPolicies(hooks) => hooks.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Registry {
    /// Puts the manifests of a plugin in the place of those that it had. They are in force with the next request.
    pub fn take_manifests(&self, manifests: &StaticManifests) {
        let StaticManifests { plugin, content } = manifests;
        match content {
            Content::Webhooks(webhooks) => {
                let mutating = *plugin == AdmissionPlugin::MutatingAdmissionWebhook;
                self.admission_webhooks.take_static(mutating, webhooks.clone());
            }
            Content::ValidatingPolicies(hooks) => self.policies.take_static_validating(hooks.clone()),
            Content::MutatingPolicies(hooks) => self.policies.take_static_mutating(hooks.clone()),
        }
    }
}

/// Policies with their bindings.
fn hooks<P>(
    policies: &[(String, Object)],
    bindings: &[(String, Object)],
    compile: impl Fn(&str, &Object) -> P,
) -> Result<Hooks<P>, ManifestError> {
    let mut bound: HashMap<&str, Vec<Arc<PolicyBinding>>> =
        policies.iter().map(|(name, _)| (name.as_str(), Vec::new())).collect();
    for (name, object) in bindings {
        let binding = PolicyBinding::read(name, object);
        match bound.get_mut(binding.policy.as_str()) {
            Some(bindings) => bindings.push(Arc::new(binding)),
            None => return Err(ManifestError::NoPolicy { binding: name.clone(), policy: binding.policy }),
        }
    }
    let hooks = policies.iter().filter_map(|(name, policy)| {
        // What nothing binds is asked about nothing.
        let bindings = bound.remove(name.as_str()).filter(|bindings| !bindings.is_empty())?;
        Some(Hook { policy: Arc::new(compile(name, policy)), bindings })
    });
    Ok(hooks.collect())
}

/// What is wrong with a document.
enum Problem {
    /// It is not written as it should be.
    Decoding(String),
    /// It is of a type that does not belong here.
    Type(String),
    /// It breaks the rules of its kind, or those for manifests.
    Rules(String),
}

impl Problem {
    fn into_text(self) -> String {
        match self {
            Problem::Decoding(text) | Problem::Rules(text) => text,
            Problem::Type(kind) => format!("unsupported resource type {kind}"),
        }
    }
}

/// The objects of all documents, by their two kinds: configurations of webhooks, or policies and bindings.
struct Manifests<'c> {
    resources: Vec<&'c Arc<Resource>>,
    /// The file that each name was seen in, for each kind.
    seen: Vec<HashMap<String, String>>,
    found: [Vec<(String, Object)>; 2],
}

impl<'c> Manifests<'c> {
    fn of(catalog: &'c Catalog, plugin: AdmissionPlugin) -> Option<Manifests<'c>> {
        let plurals: &[&str] = match plugin {
            AdmissionPlugin::MutatingAdmissionWebhook => &["mutatingwebhookconfigurations"],
            AdmissionPlugin::ValidatingAdmissionWebhook => &["validatingwebhookconfigurations"],
            AdmissionPlugin::MutatingAdmissionPolicy => {
                &["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"]
            }
            AdmissionPlugin::ValidatingAdmissionPolicy => {
                &["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
            }
            _ => return None,
        };
        let resources: Option<Vec<_>> = plurals.iter().map(|plural| catalog.resource(GROUP, "v1", plural)).collect();
        let seen = plurals.iter().map(|_| HashMap::new()).collect();
        Some(Manifests { resources: resources?, seen, found: [Vec::new(), Vec::new()] })
    }

    fn into_sorted(self) -> [Vec<(String, Object)>; 2] {
        self.found.map(|mut found| {
            found.sort_by(|(one, _), (other, _)| one.cmp(other));
            found
        })
    }

    fn take(&mut self, document: &ManifestDocument<'_>) -> Result<(), Problem> {
        let text = document.text;
        let is_json = text.trim_ascii_start().starts_with(b"{");
        let parsed = if is_json {
            revisor_object::parse_json(text).map_err(|error| error.to_string())
        } else {
            revisor_object::parse_yaml(text).map_err(|error| error.to_string())
        };
        let parsed = parsed.map_err(|why| Problem::Decoding(format!("couldn't get version/kind; {why}")))?;
        if let [first, ..] = parsed.duplicates.as_slice() {
            return Err(Problem::Decoding(format!("strict decoding error: duplicate field {first:?}")));
        }
        self.take_value(document.file, parsed.value, MAX_DEPTH)
    }

    fn take_value(&mut self, file: &str, value: Value, depth: usize) -> Result<(), Problem> {
        let Value::Object(object) = value else {
            return Err(Problem::Decoding(format!("couldn't get version/kind; it is a {}", value.type_name())));
        };
        let text = |name| object.str(name).unwrap_or_default().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        if kind.is_empty() {
            return Err(Problem::Decoding("Object 'Kind' is missing".to_owned()));
        }
        let is = |resource: &Resource, kind: &str| resource.api_version == api_version && resource.kind == kind;
        let of_list = kind.strip_suffix("List").unwrap_or_default();
        let is_typed_list = self.resources.iter().any(|resource| is(resource, of_list));
        if kind == "List" || is_typed_list {
            let Some(depth) = depth.checked_sub(1) else {
                return Err(Problem::Rules("lists stand too deep in lists".to_owned()));
            };
            for item in object.array("items") {
                let mut item = item.clone();
                if let (true, Value::Object(item)) = (is_typed_list, &mut item) {
                    // In a list of one kind, items need not say it.
                    item.insert("kind", of_list);
                    item.insert("apiVersion", api_version.as_str());
                }
                self.take_value(file, item, depth)?;
            }
            return Ok(());
        }
        let at = self.resources.iter().position(|resource| is(resource, &kind));
        let Some(at) = at else { return Err(Problem::Type(format!("{api_version}, Kind={kind}"))) };
        self.take_object(file, at, object)
    }

    fn take_object(&mut self, file: &str, at: usize, object: Object) -> Result<(), Problem> {
        let resource = self.resources[at];
        let text = Value::Object(object).to_json();
        let decoded = Decoded::read(resource, Format::Json, text.as_bytes(), FieldValidation::Strict);
        let mut object = decoded.map_err(|error| Problem::Decoding(told(&error.to_string())))?.into_object();
        resource.to_stored(&mut object);
        resource.default(&mut object);
        let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default().to_owned();
        validate(resource, &name, &object).map_err(Problem::Rules)?;
        let seen = &mut self.seen[at];
        if name.is_empty() {
            return Err(Problem::Rules(format!("resource in file {file:?} must have a name")));
        }
        if !name.ends_with(SUFFIX) {
            return Err(Problem::Rules(format!("{name:?} in file {file:?} must have a name ending with {SUFFIX:?}")));
        }
        if let Some(before) = seen.insert(name.clone(), file.to_owned()) {
            let why = format!("duplicate name {name:?} found in file {file:?} (previously seen in {before:?})");
            return Err(Problem::Rules(why));
        }
        constrain(&resource.kind, &name, file, &object).map_err(Problem::Rules)?;
        self.found[at].push((name, object));
        Ok(())
    }
}

/// What is told of an object that cannot be read, without what a client would be told of its request.
fn told(error: &str) -> String {
    let problem = error.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "));
    problem.map_or(error, |(_, problem)| problem).to_owned()
}

/// Holds an object to the rules of its kind.
fn validate(resource: &Resource, name: &str, object: &Object) -> Result<(), String> {
    let empty = Object::new();
    let metadata = object.object("metadata").unwrap_or(&empty);
    let mut errors = validate_metadata(metadata, resource.namespaced, resource.rules.names);
    // Its name is one that is kept for manifests. Nothing else depends on it.
    let mut renamed = object.clone();
    renamed.object_mut("metadata").insert("name", name.strip_suffix(SUFFIX).unwrap_or(name));
    errors.extend(resource.strategy.validate(&renamed));
    if errors.is_empty() {
        return Ok(());
    }
    Err(format!("{} {name:?}: {}", resource.kind, aggregate_message(&errors)))
}

/// What is not possible in manifests: what needs other objects, which somebody could change.
fn constrain(kind: &str, name: &str, file: &str, object: &Object) -> Result<(), String> {
    match kind {
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => match object.at(&["spec", "paramKind"]) {
            Some(_) => Err(format!("{kind} {name:?}: spec.paramKind is not supported for static manifests")),
            None => Ok(()),
        },
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            let policy = object.at(&["spec", "policyName"]).and_then(Value::as_str).unwrap_or_default();
            if policy.is_empty() {
                Err(format!("binding {name:?} must reference a policy (spec.policyName)"))
            } else if !policy.ends_with(SUFFIX) {
                Err(format!("binding {name:?}: spec.policyName {policy:?} must end with {SUFFIX:?}"))
            } else if object.at(&["spec", "paramRef"]).is_some() {
                Err(format!("binding {name:?}: spec.paramRef is not supported for static manifests"))
            } else {
                Ok(())
            }
        }
        _ => object.array("webhooks").iter().filter_map(Value::as_object).try_for_each(|webhook| {
            let place = format!("webhook {:?} in {name:?} (file {file:?})", webhook.str("name").unwrap_or_default());
            let of_client = |name| webhook.object("clientConfig").and_then(|client| client.get(name));
            if of_client("service").is_some() {
                Err(format!(
                    "{place}: clientConfig.service is not supported for static manifests; use clientConfig.url instead"
                ))
            } else if of_client("url").and_then(Value::as_str).unwrap_or_default().is_empty() {
                Err(format!("{place}: clientConfig.url is required for static manifests"))
            } else {
                Ok(())
            }
        }),
    }
}

#[cfg(test)]
mod tests;
