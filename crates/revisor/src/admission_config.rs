//! `--admission-control-config-file`: a file of kind `AdmissionConfiguration`, which tells single plugins how to do their
//! work, in itself or in other files. What a plugin that is switched off would have been told is not read.

mod image_policy;
mod plugins;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use revisor_object::{Object, Value};
use revisor_registry::{AdmissionConfig, AdmissionPlugin};

use crate::config_file::{Kind, Member, Type, parse, read};

const KIND: Kind = Kind {
    name: "AdmissionConfiguration",
    versions: &["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"],
    members: &[Member(
        "plugins",
        Type::List,
        &[Member("name", Type::Text, &[]), Member("path", Type::Text, &[]), Member("configuration", Type::Any, &[])],
    )],
};

/// Plugins that were told something before such files had a kind, and the member that gives those files away.
const WITHOUT_KIND: [(AdmissionPlugin, &str); 2] = [
    (AdmissionPlugin::ImagePolicyWebhook, "imagePolicy"),
    (AdmissionPlugin::PodNodeSelector, "podNodeSelectorPluginConfig"),
];

/// What one plugin is told: where that stands, and what stands there.
struct Told {
    file: PathBuf,
    value: Value,
}

/// What the enabled plugins are told. `config` has what the flags told them already. Whether they may have webhooks and
/// policies in files is a feature.
pub(crate) fn load(
    file: Option<&Path>,
    enabled: &[AdmissionPlugin],
    mut config: AdmissionConfig,
    reads_manifests: bool,
) -> anyhow::Result<AdmissionConfig> {
    let told = match file {
        Some(file) => sections(file, enabled)?,
        None => Vec::new(),
    };
    for plugin in enabled {
        let told = told.iter().find(|(name, _)| name == plugin.name()).map(|(_, told)| told);
        let taken = plugins::take(*plugin, told.map(|told| &told.value), &mut config, reads_manifests);
        taken.with_context(|| {
            let place = told.map(|told| format!(" as {} configures it", told.file.display())).unwrap_or_default();
            format!("couldn't init admission plugin {:?}{place}", plugin.name())
        })?;
    }
    Ok(config)
}

/// What the file has for each plugin, by its name. Of two sections with one name the first counts.
fn sections(file: &Path, enabled: &[AdmissionPlugin]) -> anyhow::Result<Vec<(String, Told)>> {
    let failed = || format!("unable to read admission control configuration from {:?}", file.display().to_string());
    let text = read(file).with_context(failed)?;
    let parsed = parse(&text).with_context(failed)?;
    if let Value::Object(object) = &parsed.value
        && (object.str("kind").is_none() || object.str("apiVersion").is_none())
    {
        let old: Vec<_> = WITHOUT_KIND.iter().filter(|(_, member)| object.contains(member)).collect();
        if !old.is_empty() {
            let meant = WITHOUT_KIND.iter().filter(|(plugin, _)| enabled.contains(plugin));
            let told = |plugin: &AdmissionPlugin| {
                (plugin.name().to_owned(), Told { file: file.to_owned(), value: parsed.value.clone() })
            };
            return Ok(meant.map(|(plugin, _)| told(plugin)).collect());
        }
    }
    let object = KIND.decode(&text).with_context(failed)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut sections: Vec<(String, Told)> = Vec::new();
    for plugin in object.array("plugins").iter().filter_map(Value::as_object) {
        let name = plugin.str("name").unwrap_or_default();
        let is_enabled = enabled.iter().any(|enabled| enabled.name() == name);
        if !is_enabled || sections.iter().any(|(known, _)| known == name) {
            continue;
        }
        if let Some(told) = section(file, folder, plugin)? {
            sections.push((name.to_owned(), told));
        }
    }
    Ok(sections)
}

fn section(file: &Path, folder: &Path, plugin: &Object) -> anyhow::Result<Option<Told>> {
    if let Some(value) = plugin.get("configuration").filter(|value| !value.is_null()) {
        return Ok(Some(Told { file: file.to_owned(), value: value.clone() }));
    }
    let Some(path) = plugin.str("path").filter(|path| !path.is_empty()) else { return Ok(None) };
    let path = folder.join(path);
    let told = read(&path).and_then(|text| {
        let parsed = parse(&text)?;
        if let [first, ..] = parsed.duplicates.as_slice() {
            bail!("duplicate field {first:?}");
        }
        Ok(parsed.value)
    });
    let value = told.with_context(|| format!("Couldn't open admission plugin configuration {}", path.display()))?;
    Ok(Some(Told { file: path, value }))
}

#[cfg(test)]
mod tests;
