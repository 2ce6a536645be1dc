//! The parameters of policies: the objects that a binding names or selects (upstream: `CollectParams`).

use std::sync::Arc;

use revisor_admission::{GroupVersionKind, ParamKind, ParamRef, Typed};
use revisor_cache::Item;
use revisor_catalog::Resource;
use revisor_object::Object;

use super::Write;
use crate::Selection;
use crate::admission::read_item;
use crate::selection::place;

/// A parameter.
pub(super) struct Param {
    object: Arc<Object>,
    kind: ParamKind,
    /// Where it is, to tell it apart from others.
    pub(super) key: String,
}

impl Param {
    pub(super) fn typed(&self) -> Typed<'_> {
        Typed { object: &self.object, api_version: &self.kind.api_version, kind: &self.kind.kind }
    }
}

impl Write<'_> {
    /// The resource of a policy's parameters.
    ///
    /// # Errors
    /// That there is none.
    pub(super) fn param_resource(&self, kind: &ParamKind) -> Result<&Arc<Resource>, String> {
        let (group, version) = kind.group_version();
        let versions = self.catalog.versions_of(group).filter(|known| known.version == version);
        let found = versions.flat_map(|known| &known.resources).find(|resource| *resource.kind == *kind.kind);
        found.filter(|resource| resource.is_stored()).ok_or_else(|| {
            let kind = GroupVersionKind { group, version, kind: &kind.kind };
            format!("failed to find resource referenced by paramKind: '{kind}'")
        })
    }

    /// What a policy is evaluated with, one after the other: nothing where it has no parameters or its binding names
    /// none.
    ///
    /// # Errors
    /// Why the binding cannot be followed.
    pub(super) async fn params(
        &self,
        kind: Option<&ParamKind>,
        reference: Option<&ParamRef>,
    ) -> Result<Vec<Option<Param>>, String> {
        let (Some(kind), Some(reference)) = (kind, reference) else { return Ok(vec![None]) };
        let resource = self.param_resource(kind)?;
        let namespace = match (resource.namespaced, reference.namespace.as_str()) {
            (true, "") if self.namespace().is_empty() => {
                let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
                return Err(why.to_owned());
            }
            (true, "") => Some(self.namespace()),
            (true, named) => Some(named),
            (false, "") => None,
            (false, _) => {
                return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
            }
        };
        let cache = self.registry.cache_of(resource);
        let mut params = Vec::new();
        match &reference.selector {
            None => {
                if let Some(item) = cache.get(&resource.key(namespace, &reference.name)) {
                    params.push(Some(self.param(resource, kind, &item).await?));
                }
            }
            Some(Err(why)) => return Err(why.clone()),
            Some(Ok(selector)) => {
                // Labels are remembered beside the objects, so that only those are read that are selected.
                let selection = Selection::of_labels(selector);
                let snapshot = cache.snapshot();
                let selected = snapshot.range(&resource.collection(namespace), None);
                let selected: Vec<Arc<Item>> =
                    selected.filter(|item| selection.matches(resource, item)).cloned().collect();
                for item in selected {
                    params.push(Some(self.param(resource, kind, &item).await?));
                }
            }
        }
        if params.is_empty() && reference.denies_missing {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
        }
        Ok(params)
    }

    async fn param(&self, resource: &Arc<Resource>, kind: &ParamKind, item: &Item) -> Result<Param, String> {
        let (namespace, name) = place(resource, item.key().as_str());
        let key = format!("{namespace}/{name}");
        // Most are shown as they are stored, and are remembered so.
        let object = match resource.custom() {
            None => {
                let unreadable = || format!("{} cannot be read", item.key().as_str());
                let stored = read_item(item).ok_or_else(unreadable)?;
                match resource.is_storage() {
                    true => stored,
                    false => {
                        let mut object = Object::clone(&stored);
                        resource.to_shown(&mut object);
                        Arc::new(object)
                    }
                }
            }
            Some(_) => {
                let current = self.registry.read_stored(resource, item.entry()).await;
                Arc::new(current.map_err(|error| error.to_string())?.object)
            }
        };
        Ok(Param { object, kind: kind.clone(), key })
    }
}
