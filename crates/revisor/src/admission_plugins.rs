//! The flags that switch admission plugins, and what becomes of them together (upstream: `AdmissionOptions`).

use std::collections::BTreeSet;

use revisor_registry::AdmissionPlugin;

/// What flags say of plugins.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PluginSwitches<'a> {
    /// Those that are asked beside the default.
    pub(crate) enable: &'a [String],
    /// Those that are not.
    pub(crate) disable: &'a [String],
    /// The older way: these and no others.
    pub(crate) exactly: Option<&'a [String]>,
}

/// The plugins that are asked. Flags may name a plugin often, but not enable and disable the same one; answers all that is
/// wrong with them.
pub(crate) fn enabled_plugins(switches: PluginSwitches<'_>) -> Result<Vec<AdmissionPlugin>, Vec<String>> {
    let PluginSwitches { enable, disable, exactly } = switches;
    let mut problems = Vec::new();
    if exactly.is_some() && !(enable.is_empty() && disable.is_empty()) {
        problems.push(
            "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
                .to_owned(),
        );
    }
    let mut read = |flag: &str, names: &[String]| -> BTreeSet<AdmissionPlugin> {
        let mut known = BTreeSet::new();
        // A flag that is given without a name names none.
        for name in names.iter().filter(|name| !name.is_empty()) {
            match AdmissionPlugin::named(name) {
                Some(plugin) => {
                    known.insert(plugin);
                }
                None => problems.push(format!("{flag} plugin {name:?} is unknown")),
            }
        }
        known
    };
    let exactly = exactly.map(|names| read("admission-control", names));
    let (enabled, disabled) = (read("enable-admission-plugins", enable), read("disable-admission-plugins", disable));
    let mut both: Vec<&str> = enabled.intersection(&disabled).map(|plugin| plugin.name()).collect();
    both.sort_unstable();
    if !both.is_empty() {
        let both = both.join(" ");
        problems.push(format!("[{both}] in enable-admission-plugins and disable-admission-plugins overlapped"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let is_on = |plugin: &AdmissionPlugin| match &exactly {
        Some(exactly) => exactly.contains(plugin),
        None => enabled.contains(plugin) || (plugin.is_default() && !disabled.contains(plugin)),
    };
    Ok(AdmissionPlugin::ALL.iter().copied().filter(is_on).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn plugins_are_switched_on_and_off() {
        let default = enabled_plugins(PluginSwitches::default()).expect("is fine");
        assert!(default.contains(&AdmissionPlugin::ServiceAccount) && !default.contains(&AdmissionPlugin::AlwaysDeny));
        let disable = names(&["ServiceAccount", "ServiceAccount", ""]);
        let enable = names(&["NodeRestriction", "AlwaysAdmit", "Priority"]);
        let switches = PluginSwitches { enable: &enable, disable: &disable, exactly: None };
        let switched = enabled_plugins(switches).expect("is fine");
        assert_eq!(switched.len(), default.len() + 2 - 1);
        assert_eq!(switched.first(), Some(&AdmissionPlugin::AlwaysAdmit), "the order is that of all plugins");
        assert!(!switched.contains(&AdmissionPlugin::ServiceAccount));
        let exactly = names(&["Priority", "AlwaysAdmit"]);
        let switches = PluginSwitches { exactly: Some(&exactly), ..PluginSwitches::default() };
        let want = [AdmissionPlugin::AlwaysAdmit, AdmissionPlugin::Priority];
        assert_eq!(enabled_plugins(switches).expect("is fine"), want, "these and no others");
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let enable = names(&["Nothing", "Priority", "AlwaysDeny"]);
        let disable = names(&["Priority", "None", "AlwaysDeny"]);
        let exactly = names(&["Nobody"]);
        let wrong = enabled_plugins(PluginSwitches { enable: &enable, disable: &disable, exactly: Some(&exactly) });
        assert_eq!(
            wrong.expect_err("is wrong"),
            [
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive",
                "admission-control plugin \"Nobody\" is unknown",
                "enable-admission-plugins plugin \"Nothing\" is unknown",
                "disable-admission-plugins plugin \"None\" is unknown",
                "[AlwaysDeny Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
            ]
        );
    }
}
