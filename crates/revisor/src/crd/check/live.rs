//! `--live`: the objects that a cluster has, held against the definitions that are to come.

use std::collections::BTreeMap;

use anyhow::Context;
use revisor_catalog::{Catalog, Definition, DefinitionChange, DefinitionState};
use revisor_check::{Class, Finding, to_v1};
use revisor_object::{Object, Value};

use super::sources::of_cluster;
use super::{Checked, Definitions, Rules};
use crate::cluster::{Cluster, block_on};

/// Adds what becomes of the objects of a cluster to what was found.
pub(super) fn check(
    cluster: &Cluster,
    new: &Definitions,
    rules: &Rules,
    catalog: &Catalog,
    checked: &mut [Checked],
) -> anyhow::Result<()> {
    let names: Vec<&str> = new.keys().map(String::as_str).collect();
    let there = of_cluster(cluster, &names)?;
    let there: BTreeMap<&str, &Object> = there.iter().map(|found| (found.name(), &found.object)).collect();
    for found in checked {
        let (Some(before), Some(after)) = (there.get(found.name.as_str()), new.get(&found.name)) else {
            found.notes.push("the cluster does not have it, and no objects of it".to_owned());
            continue;
        };
        look(cluster, before, &after.object, rules, catalog, found).with_context(|| found.name.clone())?;
    }
    Ok(())
}

fn look(
    cluster: &Cluster,
    before: &Object,
    after: &Object,
    rules: &Rules,
    catalog: &Catalog,
    checked: &mut Checked,
) -> anyhow::Result<()> {
    let after = as_stored(after, before, catalog);
    let states = [
        DefinitionState { object: before, rules: None },
        DefinitionState { object: &after, rules: rules.get(&checked.name).cloned() },
    ];
    let Some(mut change) = DefinitionChange::between(states, catalog) else {
        checked.notes.push("nothing changes for the objects that the cluster has".to_owned());
        return Ok(());
    };
    let list = path_of(before).context("the cluster serves no version of it")?;
    let name_of = |object: &Object| {
        let text = |field: &str| object.at(&["metadata", field]).and_then(Value::as_str).unwrap_or_default();
        match (text("namespace"), text("name")) {
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        }
    };
    block_on(cluster.list(&list.all, |object| change.look_at(&name_of(&object), &object)))?
        .context("cannot read the objects of the cluster")?;
    let (seen, plural) = (change.looked_at(), &list.plural);
    if change.effects().next().is_none() {
        checked.notes.push(format!("none of the {seen} {plural} that the cluster has is concerned"));
    }
    for effect in change.effects() {
        let message = format!(
            "{} of the {seen} {plural} that the cluster has {}: {}",
            effect.objects,
            effect.what,
            effect.names.join(", ")
        );
        let witness = effect.names.first().map(|name| block_on(cluster.get(&list.one(name)))).transpose()?;
        checked.report.findings.push(Finding {
            definition: checked.name.clone(),
            version: Some(effect.versions.join(", ")),
            path: effect.path.to_owned(),
            class: if effect.is_refusal { Class::BreaksWriters } else { Class::BreaksReaders },
            message,
            // Somebody may have deleted it meanwhile.
            witness: witness.and_then(Result::ok).map(without_bookkeeping),
        });
    }
    checked.report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.class));
    Ok(())
}

/// A definition as the cluster would have it: what is left out filled in, and with the names that were accepted.
fn as_stored(after: &Object, before: &Object, catalog: &Catalog) -> Object {
    let mut value = Value::Object(to_v1(after.clone()));
    if let Some(resource) = catalog.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions") {
        let _ = resource.conform(&mut value);
        if let Value::Object(object) = &mut value {
            resource.default(object);
        }
    }
    let Value::Object(mut object) = value else { return after.clone() };
    object.set("status", before.get("status").cloned());
    object
}

/// Where the objects of a definition are.
struct Places {
    plural: String,
    root: String,
    all: String,
}

impl Places {
    fn one(&self, name: &str) -> String {
        match name.split_once('/') {
            Some((namespace, name)) => format!("{}/namespaces/{namespace}/{}/{name}", self.root, self.plural),
            None => format!("{}/{}/{name}", self.root, self.plural),
        }
    }
}

/// In the version that is stored, if it is served: then nobody has to convert them.
fn path_of(definition: &Object) -> Option<Places> {
    let read = Definition::read(definition);
    let versions = definition.object("spec")?.array("versions").iter().filter_map(Value::as_object);
    let flag = |version: &Object, name: &str| version.get(name).and_then(Value::as_bool) == Some(true);
    let served = versions.filter(|version| flag(version, "served")).collect::<Vec<_>>();
    let chosen = served.iter().find(|version| flag(version, "storage")).or(served.first())?;
    let plural = definition.at(&["spec", "names", "plural"])?.as_str()?.to_owned();
    let root = format!("/apis/{}/{}", read.group, chosen.str("name")?);
    Some(Places { all: format!("{root}/{plural}"), plural, root })
}

fn without_bookkeeping(mut object: Object) -> Value {
    object.object_mut("metadata").remove("managedFields");
    Value::Object(object)
}
