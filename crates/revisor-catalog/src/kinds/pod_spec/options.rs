//! What is let pass because an older release, or an older object, did.

use revisor_object::{FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector};

use super::members::{NONE, all_containers, entries, is_true, objects, part, text};
use super::{PodPolicy, affinity, annotations, file_path, resources, security_context, topology_spread};
use crate::kinds::node_selectors;

/// How strictly a spec is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    /// Whether the spec is that of a pod rather than of a template.
    pub(super) is_pod: bool,
    /// Containers that are privileged, and processes of the host.
    pub(super) allow_privileged: bool,
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
    /// Init containers that restart when resized.
    pub(super) restarting_init_containers: bool,
    /// Block devices together with user namespaces.
    pub(super) devices_in_user_namespaces: bool,
    /// The host's network together with user namespaces.
    pub(super) host_network_in_user_namespaces: bool,
}

impl Options {
    /// For a new spec, or for one in place of an old one.
    pub(super) fn new(is_pod: bool, old: Option<&Object>) -> Options {
        let Some(old) = old else { return Options { is_pod, ..Options::default() } };
        let in_user_namespace = old.get("hostUsers").and_then(revisor_object::Value::as_bool) == Some(false);
        Options {
            is_pod,
            allow_privileged: false,
            any_deletion_cost: false,
            partial_huge_pages: has_partial_huge_pages(old),
            bad_affinity_values: has_bad_affinity_selector(old),
            bad_node_values: node_selectors::has_invalid_value(part(
                part(part(old, "affinity"), "nodeAffinity"),
                affinity::REQUIRED,
            )),
            bad_spread_selectors: objects(old, "topologySpreadConstraints")
                .any(|(_, constraint)| !selector_is_sound(constraint, "labelSelector")),
            older_spread_keys: objects(old, "topologySpreadConstraints")
                .any(|(_, constraint)| !topology_spread::keys_are_sound(constraint)),
            tokens_anywhere: has_token_elsewhere(old),
            host_sysctls: objects(part(old, "securityContext"), "sysctls")
                .any(|(_, sysctl)| security_context::shared_namespace(old, text(sysctl, "name")).is_some()),
            any_relabelling: part(old, "securityContext").contains("seLinuxChangePolicy"),
            comparing_tolerations: objects(old, "tolerations")
                .any(|(_, toleration)| matches!(text(toleration, "operator"), "Lt" | "Gt")),
            restarting_init_containers: objects(old, "initContainers").any(|(_, container)| {
                !super::resource_list::is_sidecar(container)
                    && objects(container, "resizePolicy")
                        .any(|(_, policy)| text(policy, "restartPolicy") == "RestartContainer")
            }),
            devices_in_user_namespaces: in_user_namespace
                && all_containers(old).any(|(_, _, container)| !container.array("volumeDevices").is_empty()),
            host_network_in_user_namespaces: in_user_namespace && is_true(old, "hostNetwork"),
        }
    }

    /// The same, given what the old object said of itself.
    pub(super) fn with_metadata(self, old: Option<&Object>) -> Options {
        let any_deletion_cost = old.is_some_and(|metadata| !annotations::has_sound_deletion_cost(metadata));
        Options { any_deletion_cost, ..self }
    }

    /// The same, under a policy. Without one nothing is privileged.
    pub(super) fn with_policy(self, policy: PodPolicy) -> Options {
        Options { allow_privileged: policy.allow_privileged, ..self }
    }
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
