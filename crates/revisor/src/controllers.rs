//! [`ControllersFlag`]: which controllers run, in kube-controller-manager's syntax.

use std::str::FromStr;

use revisor_controllers::Controller;

/// Which controllers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControllersFlag {
    enabled: Vec<Controller>,
}

impl ControllersFlag {
    /// Those that run.
    pub(crate) fn enabled(&self) -> &[Controller] {
        &self.enabled
    }
}

impl FromStr for ControllersFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<ControllersFlag, String> {
        let mut all = false;
        let (mut named, mut left_out) = (Vec::new(), Vec::new());
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            match item {
                "*" => all = true,
                "none" if text.trim() == "none" => {}
                "none" => return Err("\"none\" stands alone: it leaves no controller to name".to_owned()),
                _ => match item.strip_prefix('-') {
                    Some(name) => left_out.push(controller(name)?),
                    None => named.push(controller(item)?),
                },
            }
        }
        let runs = |controller: &Controller| (all || named.contains(controller)) && !left_out.contains(controller);
        Ok(ControllersFlag { enabled: Controller::ALL.into_iter().filter(runs).collect() })
    }
}

fn controller(name: &str) -> Result<Controller, String> {
    let found = Controller::ALL.into_iter().find(|known| [known.name(), known.alias()].contains(&name));
    found.ok_or_else(|| {
        let names = Controller::ALL.map(Controller::name).join(", ");
        format!("{name:?} is not in the list of known controllers: {names}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Controller::{
        ClusterRoleAggregation, GarbageCollector, Namespace, ResourceQuota, RootCaPublisher, ServiceAccount,
    };

    /// All but the publisher of certificates.
    fn all_but_publisher() -> Vec<Controller> {
        Controller::ALL.into_iter().filter(|controller| *controller != RootCaPublisher).collect()
    }

    #[test]
    fn controllers_are_named_as_kube_controller_manager_names_them() {
        for (text, want) in [
            ("*", Some(Controller::ALL.to_vec())),
            ("none", Some(vec![])),
            ("", Some(vec![])),
            ("namespace-controller", Some(vec![Namespace])),
            ("namespace", Some(vec![Namespace])),
            ("serviceaccount-controller, garbagecollector", Some(vec![GarbageCollector, ServiceAccount])),
            ("clusterrole-aggregation", Some(vec![ClusterRoleAggregation])),
            ("*,-root-ca-certificate-publisher-controller", Some(all_but_publisher())),
            ("-root-ca-cert-publisher,*", Some(all_but_publisher())),
            ("validatingadmissionpolicy-status", Some(vec![Controller::ValidatingAdmissionPolicyStatus])),
            ("storage-version-migrator-controller", Some(vec![Controller::StorageVersionMigrator])),
            ("root-ca-cert-publisher,-namespace", Some(vec![RootCaPublisher])),
            ("resourcequota", Some(vec![ResourceQuota])),
            ("-namespace", Some(vec![])),
            ("nothing-we-know", None),
            ("*,-nothing-we-know", None),
            ("none,namespace", None),
        ] {
            let parsed: Option<ControllersFlag> = text.parse().ok();
            assert_eq!(parsed.map(|flag| flag.enabled), want, "{text:?}");
        }
    }
}
