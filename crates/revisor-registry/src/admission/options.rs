//! [`AdmissionOptions`]: which plugins are asked, and what they were told at the start; and the chain that it makes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use revisor_webhook::CredentialBook;

use super::{
    Admission, AdmissionPlugin, EventLimit, ImagePolicyConfig, LimitedResource, PodSecurityConfig, StaticManifests,
    TolerationDefaults, TolerationSeconds, always_admit_and_deny, always_pull_images, anti_affinity_topology,
    certificate_approval, certificate_signing, certificate_subject_restriction, claim_resize,
    cluster_trust_bundle_attest, default_ingress_class, default_storage_class, default_toleration_seconds,
    deny_service_external_ips, device_admin_access, event_rate_limit, extended_resource_toleration,
    image_policy_webhook, job_validation, limit_ranger, namespace_lifecycle, namespaces_on_demand,
    node_declared_features, node_restriction, owner_references, pod_group, pod_node_selector, pod_resize, pod_security,
    pod_toleration_restriction, pod_topology_labels, policy, priority, resource_claim_status, runtime_class,
    service_account, storage_protection, taint_nodes_by_condition, webhooks,
};

/// Which plugins are asked about writes, and how.
#[derive(Debug, Clone)]
pub struct AdmissionOptions {
    /// Those that are asked. Their order is not of interest: that of [`AdmissionPlugin::ALL`] counts.
    pub plugins: Vec<AdmissionPlugin>,
    /// What they were told.
    pub config: AdmissionConfig,
    /// The webhooks and policies that they have from files.
    pub manifests: Vec<StaticManifests>,
}

impl Default for AdmissionOptions {
    fn default() -> AdmissionOptions {
        let plugins = AdmissionPlugin::ALL.iter().copied().filter(|plugin| plugin.is_default()).collect();
        AdmissionOptions { plugins, config: AdmissionConfig::default(), manifests: Vec::new() }
    }
}

/// What plugins were told at the start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdmissionConfig {
    /// For DefaultTolerationSeconds.
    pub toleration_seconds: TolerationSeconds,
    /// For EventRateLimit.
    pub event_limits: Vec<EventLimit>,
    /// For ImagePolicyWebhook, which cannot do without.
    pub image_policy: Option<ImagePolicyConfig>,
    /// For PodNodeSelector: selectors by namespace, and `clusterDefaultNodeSelector`.
    pub pod_node_selectors: BTreeMap<String, String>,
    /// For PodSecurity.
    pub pod_security: PodSecurityConfig,
    /// For PodTolerationRestriction.
    pub tolerations: TolerationDefaults,
    /// For ResourceQuota: what nobody has without a quota for it.
    pub limited_resources: Vec<LimitedResource>,
    /// For MutatingAdmissionWebhook: who the server is to webhooks.
    pub mutating_webhook_credentials: CredentialBook,
    /// For ValidatingAdmissionWebhook.
    pub validating_webhook_credentials: CredentialBook,
    /// Where those plugins that take webhooks or policies from files have them. Whoever starts the server reads them.
    pub manifest_folders: BTreeMap<AdmissionPlugin, PathBuf>,
}

impl AdmissionOptions {
    /// Whether a plugin is asked.
    pub fn has(&self, plugin: AdmissionPlugin) -> bool {
        self.plugins.contains(&plugin)
    }
}

/// The plugins in the order in which they are asked. ResourceQuota comes after all of them: what it charges is held until
/// the write is done, see `quota.rs`.
pub(crate) fn chain(options: &AdmissionOptions) -> Vec<Box<dyn Admission>> {
    let enabled = AdmissionPlugin::ALL.iter().copied().filter(|plugin| options.has(*plugin));
    let mut chain: Vec<Box<dyn Admission>> = enabled.filter_map(|plugin| make(plugin, &options.config)).collect();
    // What the original does outside of its chain, so that nobody can switch it off.
    chain.push(Box::new(device_admin_access::DeviceAdminAccess));
    chain.push(Box::new(resource_claim_status::ResourceClaimStatus));
    chain
}

fn make(plugin: AdmissionPlugin, config: &AdmissionConfig) -> Option<Box<dyn Admission>> {
    Some(match plugin {
        AdmissionPlugin::AlwaysAdmit => Box::new(always_admit_and_deny::AlwaysAdmit),
        AdmissionPlugin::NamespaceAutoProvision => Box::new(namespaces_on_demand::NamespaceAutoProvision),
        AdmissionPlugin::NamespaceLifecycle => Box::new(namespace_lifecycle::NamespaceLifecycle),
        AdmissionPlugin::NamespaceExists => Box::new(namespaces_on_demand::NamespaceExists),
        AdmissionPlugin::LimitPodHardAntiAffinityTopology => {
            Box::new(anti_affinity_topology::LimitPodHardAntiAffinityTopology)
        }
        AdmissionPlugin::LimitRanger => Box::new(limit_ranger::LimitRanger),
        AdmissionPlugin::ServiceAccount => Box::new(service_account::ServiceAccount),
        AdmissionPlugin::NodeRestriction => Box::new(node_restriction::NodeRestriction),
        AdmissionPlugin::TaintNodesByCondition => Box::new(taint_nodes_by_condition::TaintNodesByCondition),
        AdmissionPlugin::AlwaysPullImages => Box::new(always_pull_images::AlwaysPullImages),
        AdmissionPlugin::ImagePolicyWebhook => {
            Box::new(image_policy_webhook::ImagePolicyWebhook::new(config.image_policy.clone()?))
        }
        AdmissionPlugin::PodSecurity => Box::new(pod_security::PodSecurity(config.pod_security.clone())),
        AdmissionPlugin::PodNodeSelector => {
            Box::new(pod_node_selector::PodNodeSelector(config.pod_node_selectors.clone()))
        }
        AdmissionPlugin::Priority => Box::new(priority::Priority),
        AdmissionPlugin::DefaultTolerationSeconds => {
            Box::new(default_toleration_seconds::DefaultTolerationSeconds(config.toleration_seconds))
        }
        AdmissionPlugin::PodTolerationRestriction => {
            Box::new(pod_toleration_restriction::PodTolerationRestriction(config.tolerations.clone()))
        }
        AdmissionPlugin::EventRateLimit => Box::new(event_rate_limit::EventRateLimit::new(&config.event_limits)),
        AdmissionPlugin::ExtendedResourceToleration => {
            Box::new(extended_resource_toleration::ExtendedResourceToleration)
        }
        AdmissionPlugin::DefaultStorageClass => Box::new(default_storage_class::DefaultStorageClass),
        AdmissionPlugin::StorageObjectInUseProtection => Box::new(storage_protection::StorageProtection),
        AdmissionPlugin::PodGroupProtection => Box::new(pod_group::PodGroupProtection),
        AdmissionPlugin::OwnerReferencesPermissionEnforcement => {
            Box::new(owner_references::OwnerReferencesPermissionEnforcement)
        }
        AdmissionPlugin::PersistentVolumeClaimResize => Box::new(claim_resize::ClaimResize),
        AdmissionPlugin::RuntimeClass => Box::new(runtime_class::RuntimeClass),
        AdmissionPlugin::CertificateApproval => Box::new(certificate_approval::CertificateApproval),
        AdmissionPlugin::CertificateSigning => Box::new(certificate_signing::CertificateSigning),
        AdmissionPlugin::ClusterTrustBundleAttest => Box::new(cluster_trust_bundle_attest::ClusterTrustBundleAttest),
        AdmissionPlugin::CertificateSubjectRestriction => {
            Box::new(certificate_subject_restriction::CertificateSubjectRestriction)
        }
        AdmissionPlugin::DefaultIngressClass => Box::new(default_ingress_class::DefaultIngressClass),
        AdmissionPlugin::DenyServiceExternalIPs => Box::new(deny_service_external_ips::DenyServiceExternalIPs),
        AdmissionPlugin::PodTopologyLabels => Box::new(pod_topology_labels::PodTopologyLabels),
        AdmissionPlugin::PodGroupWorkloadExists => Box::new(pod_group::PodGroupWorkloadExists),
        AdmissionPlugin::NodeDeclaredFeatureValidator => Box::new(node_declared_features::NodeDeclaredFeatureValidator),
        AdmissionPlugin::JobValidation => Box::new(job_validation::JobValidation),
        AdmissionPlugin::PodResizeValidator => Box::new(pod_resize::PodResizeValidator),
        AdmissionPlugin::AlwaysDeny => Box::new(always_admit_and_deny::AlwaysDeny),
        AdmissionPlugin::MutatingAdmissionPolicy => Box::new(policy::MutatingAdmissionPolicy),
        AdmissionPlugin::MutatingAdmissionWebhook => Box::new(webhooks::MutatingAdmissionWebhook),
        AdmissionPlugin::ValidatingAdmissionPolicy => Box::new(policy::ValidatingAdmissionPolicy),
        AdmissionPlugin::ValidatingAdmissionWebhook => Box::new(webhooks::ValidatingAdmissionWebhook),
        // Quotas are charged at the end of the write itself.
        AdmissionPlugin::ResourceQuota => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_asked_in_their_order_whatever_the_order_of_the_flags() {
        let plugins = ["AlwaysDeny", "Priority", "NamespaceLifecycle", "AlwaysAdmit"];
        let plugins = plugins.map(|name| AdmissionPlugin::named(name).expect("is one")).to_vec();
        let options = AdmissionOptions { plugins, ..AdmissionOptions::default() };
        let names: Vec<&str> = chain(&options).iter().map(|plugin| plugin.name()).collect();
        let always = ["DeviceAdminAccess", "ResourceClaimStatus"];
        assert_eq!(names[..4], ["AlwaysAdmit", "NamespaceLifecycle", "Priority", "AlwaysDeny"]);
        assert_eq!(names[4..], always);
    }

    #[test]
    fn every_plugin_has_the_name_that_switches_it() {
        for plugin in AdmissionPlugin::ALL {
            let made = make(*plugin, &AdmissionConfig::default());
            assert!(made.is_none_or(|made| made.name() == plugin.name()), "{plugin}");
        }
        assert_eq!(AdmissionOptions::default().plugins.len(), 27);
    }
}
