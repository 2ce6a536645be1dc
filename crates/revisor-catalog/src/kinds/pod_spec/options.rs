//! What is let pass because a feature is on, or because an older object had it.

use revisor_object::{FieldPath, LabelSelectorOptions, Object, Strictness, StructuredLabelSelector};

use super::members::{NONE, all_containers, entries, flag, is_true, objects, part, text};
use super::resource_list::is_sidecar;
use super::restart_rules::RestartRules;
use super::{
    PodPolicy, affinity, annotations, disabled, dns, env, file_path, handlers, resources, security_context,
    topology_spread,
};
use crate::kinds::{addresses, node_selectors};
use crate::{Feature, Features};

/// How strictly a spec is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Whether the spec is that of a pod rather than of a template.
    pub(super) is_pod: bool,
    /// Containers that are privileged, and processes of the host.
    pub(super) allow_privileged: bool,
    /// The features that are on.
    pub(super) features: Features,
    /// How addresses may be written.
    pub(super) addresses: Strictness,
    /// Costs of deletion that are no numbers.
    pub(super) any_deletion_cost: bool,
    /// Huge pages that are not whole.
    pub(super) partial_huge_pages: bool,
    /// Values that no label can have, in the selectors of pod affinities.
    pub(super) bad_affinity_values: bool,
    /// Values that no label can have, in required node affinities.
    pub(super) bad_node_values: bool,
    /// Selectors of spread constraints that make no sense.
    pub(super) bad_spread_selectors: bool,
    /// Label keys of spread constraints by the older rule.
    pub(super) older_spread_keys: bool,
    /// Tokens at places outside of their volume.
    pub(super) tokens_anywhere: bool,
    /// Kernel parameters of namespaces that are shared with the host.
    pub(super) host_sysctls: bool,
    /// Every way to relabel volumes rather than only the recursive one.
    pub(super) any_relabelling: bool,
    /// Tolerations that compare numbers.
    pub(super) comparing_tolerations: bool,
    /// What containers may say about when they restart.
    pub(super) restart_rules: RestartRules,
    /// Init containers that say what a change of their resources means.
    pub(super) resize_of_init_containers: bool,
    /// Init containers that restart when resized.
    pub(super) restarting_init_containers: bool,
    /// Block devices together with user namespaces.
    pub(super) devices_in_user_namespaces: bool,
    /// The host's network together with user namespaces.
    pub(super) host_network_in_user_namespaces: bool,
    /// Names of variables that are nearly any text.
    pub(super) relaxed_variables: bool,
    /// Search domains that are a dot or have underscores.
    pub(super) relaxed_searches: bool,
    /// Variables that come from files.
    pub(super) variable_files: bool,
    /// Hooks that sleep for no time.
    pub(super) zero_sleeps: bool,
    /// Whether the resources of the pod as a whole are looked at.
    pub(super) pod_resources: bool,
}

impl Options {
    /// For a new spec, or for one in place of an old one.
    pub(super) fn new(is_pod: bool, spec: &Object, old: Option<&Object>, policy: PodPolicy) -> Options {
        let features = policy.features;
        let on_or_used =
            |feature: Feature, is_used: fn(&Object) -> bool| features.has(feature) || old.is_some_and(is_used);
        Options {
            is_pod,
            allow_privileged: policy.allow_privileged,
            features,
            addresses: addresses::strictness(features),
            any_deletion_cost: !features.has(Feature::PodDeletionCost),
            partial_huge_pages: old.is_some_and(has_partial_huge_pages),
            bad_affinity_values: old.is_some_and(has_bad_affinity_selector),
            bad_node_values: old.is_some_and(has_bad_node_value),
            bad_spread_selectors: old.is_some_and(has_bad_spread_selector),
            older_spread_keys: topology_spread::has_older_keys(old, features),
            tokens_anywhere: old.is_some_and(has_token_elsewhere),
            host_sysctls: old.is_some_and(has_host_sysctl),
            any_relabelling: on_or_used(Feature::SELinuxMount, |old| {
                part(old, "securityContext").contains("seLinuxChangePolicy")
            }),
            comparing_tolerations: on_or_used(Feature::TaintTolerationComparisonOperators, |old| {
                objects(old, "tolerations").any(|(_, toleration)| matches!(text(toleration, "operator"), "Lt" | "Gt"))
            }),
            restart_rules: RestartRules::new(old, features),
            resize_of_init_containers: on_or_used(Feature::InPlacePodVerticalScaling, |old| {
                objects(old, "initContainers")
                    .any(|(_, container)| is_sidecar(container) && !container.array("resizePolicy").is_empty())
            }),
            restarting_init_containers: old.is_some_and(has_restarting_init_container),
            devices_in_user_namespaces: old.is_some_and(|old| {
                has_user_namespace(old)
                    && all_containers(old).any(|(_, _, container)| !container.array("volumeDevices").is_empty())
            }),
            host_network_in_user_namespaces: on_or_used(Feature::UserNamespacesHostNetworkSupport, |old| {
                has_user_namespace(old) && is_true(old, "hostNetwork")
            }),
            relaxed_variables: features.has(Feature::RelaxedEnvironmentVariableValidation)
                || old.is_some_and(|old| env::keeps_relaxed_name(spec, old)),
            relaxed_searches: on_or_used(Feature::RelaxedDNSSearchValidation, dns::has_relaxed_search),
            variable_files: on_or_used(Feature::EnvFiles, disabled::has_variable_file),
            zero_sleeps: on_or_used(Feature::PodLifecycleSleepActionAllowZero, handlers::has_zero_sleep),
            pod_resources: features.has(Feature::PodLevelResources),
        }
    }

    /// The same, given what the old object said of itself.
    pub(super) fn with_metadata(self, old: Option<&Object>) -> Options {
        let is_unsound = old.is_some_and(|metadata| !annotations::has_sound_deletion_cost(metadata));
        Options { any_deletion_cost: self.any_deletion_cost || is_unsound, ..self }
    }
}

fn has_user_namespace(spec: &Object) -> bool {
    flag(spec, "hostUsers") == Some(false)
}

fn has_bad_node_value(spec: &Object) -> bool {
    let affinity = part(part(spec, "affinity"), "nodeAffinity");
    node_selectors::has_invalid_value(part(affinity, affinity::REQUIRED))
}

fn has_bad_spread_selector(spec: &Object) -> bool {
    objects(spec, "topologySpreadConstraints").any(|(_, constraint)| !selector_is_sound(constraint, "labelSelector"))
}

fn has_host_sysctl(spec: &Object) -> bool {
    objects(part(spec, "securityContext"), "sysctls")
        .any(|(_, sysctl)| security_context::shared_namespace(spec, text(sysctl, "name")).is_some())
}

fn has_restarting_init_container(spec: &Object) -> bool {
    objects(spec, "initContainers").any(|(_, container)| {
        let restarts = || {
            objects(container, "resizePolicy").any(|(_, policy)| text(policy, "restartPolicy") == "RestartContainer")
        };
        !is_sidecar(container) && restarts()
    })
}

fn has_partial_huge_pages(spec: &Object) -> bool {
    let is_partial = |(name, value)| resources::is_partial_huge_page(name, value);
    let of_containers = all_containers(spec).any(|(_, _, container)| {
        let resources = part(container, "resources");
        entries(resources, "limits").chain(entries(resources, "requests")).any(is_partial)
    });
    of_containers || entries(spec, "overhead").any(is_partial)
}

fn has_bad_affinity_selector(spec: &Object) -> bool {
    let affinity = part(spec, "affinity");
    let is_sound =
        |term: &Object| selector_is_sound(term, "labelSelector") && selector_is_sound(term, "namespaceSelector");
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let kind = part(affinity, kind);
        objects(kind, affinity::REQUIRED).any(|(_, term)| !is_sound(term))
            || objects(kind, affinity::PREFERRED).any(|(_, term)| !is_sound(part(term, "podAffinityTerm")))
    })
}

fn selector_is_sound(of: &Object, name: &str) -> bool {
    let selector = StructuredLabelSelector::new(of.object(name).unwrap_or(NONE));
    selector.validate(&FieldPath::none(), LabelSelectorOptions::default()).is_empty()
}

fn has_token_elsewhere(spec: &Object) -> bool {
    objects(spec, "volumes").any(|(_, volume)| {
        objects(part(volume, "projected"), "sources").any(|(_, source)| {
            let token = source.object("serviceAccountToken");
            token.is_some_and(|token| !file_path::is_local_and_free(text(token, "path")))
        })
    })
}
