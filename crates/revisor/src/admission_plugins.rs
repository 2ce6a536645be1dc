//! The flags that switch admission plugins, and what becomes of them together (upstream: `AdmissionOptions`).

use std::collections::BTreeSet;

use revisor_registry::AdmissionPlugin;

/// The plugins that are asked, by what is enabled and disabled beside the default. Both may name a plugin often, but not
/// the same one; answers all that is wrong with them.
pub(crate) fn enabled_plugins(enable: &[String], disable: &[String]) -> Result<Vec<AdmissionPlugin>, Vec<String>> {
    let mut problems = Vec::new();
    let mut read = |flag: &str, names: &[String]| -> BTreeSet<AdmissionPlugin> {
        let mut known = BTreeSet::new();
        // A flag that is given without a name names none.
        for name in names.iter().filter(|name| !name.is_empty()) {
            match AdmissionPlugin::named(name) {
                Some(plugin) => {
                    known.insert(plugin);
                }
                None => problems.push(format!("{flag}-admission-plugins plugin {name:?} is unknown")),
            }
        }
        known
    };
    let (enabled, disabled) = (read("enable", enable), read("disable", disable));
    let mut both: Vec<&str> = enabled.intersection(&disabled).map(|plugin| plugin.name()).collect();
    both.sort_unstable();
    if !both.is_empty() {
        let both = both.join(" ");
        problems.push(format!("[{both}] in enable-admission-plugins and disable-admission-plugins overlapped"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let is_on =
        |plugin: &AdmissionPlugin| enabled.contains(plugin) || (plugin.is_default() && !disabled.contains(plugin));
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
        let default = enabled_plugins(&[], &[]).expect("is fine");
        assert!(default.contains(&AdmissionPlugin::ServiceAccount) && !default.contains(&AdmissionPlugin::AlwaysDeny));
        let disable = names(&["ServiceAccount", "ServiceAccount", ""]);
        let switched = enabled_plugins(&names(&["NodeRestriction", "AlwaysAdmit", "Priority"]), &disable);
        let switched = switched.expect("is fine");
        assert_eq!(switched.len(), default.len() + 2 - 1);
        assert_eq!(switched.first(), Some(&AdmissionPlugin::AlwaysAdmit), "the order is that of all plugins");
        assert!(!switched.contains(&AdmissionPlugin::ServiceAccount));
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let wrong = enabled_plugins(
            &names(&["Nothing", "Priority", "AlwaysDeny"]),
            &names(&["Priority", "None", "AlwaysDeny"]),
        );
        assert_eq!(
            wrong.expect_err("is wrong"),
            [
                "enable-admission-plugins plugin \"Nothing\" is unknown",
                "disable-admission-plugins plugin \"None\" is unknown",
                "[AlwaysDeny Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
            ]
        );
    }
}
