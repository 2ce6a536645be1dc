//! The checks of `/healthz`, `/livez` and `/readyz`: those that the original has, by its names and in its order.

use revisor_api::HealthCheck;
use revisor_catalog::CatalogOptions;

use crate::backend::Backend;
use crate::encryption_config::EncryptionFile;

/// All checks. What the original's hooks do after the start is done here before anybody is served, so they can only be
/// well.
pub(crate) fn health_checks(
    backend: &Backend,
    encryption: Option<&EncryptionFile>,
    options: &CatalogOptions,
) -> Vec<HealthCheck> {
    let hooks = HOOKS.iter().filter(|(_, gate)| gate.is_none_or(|gate| options.gates.is_enabled(gate)));
    let mut checks = vec![HealthCheck::done("log"), HealthCheck::done("loopback-serving-certificate").of_life()];
    checks.extend(backend.checks());
    checks.extend(encryption.filter(|file| file.has_health()).map(keys_check));
    checks.push(HealthCheck::done("informer-sync").of_readiness());
    checks.extend(hooks.map(|(name, _)| HealthCheck::done(*name)));
    checks.extend(backend.alarm());
    checks
}

/// Tells that services that hold keys are not well.
fn keys_check(file: &EncryptionFile) -> HealthCheck {
    let encryption = file.encryption.clone();
    HealthCheck::new("kms-providers", move || encryption.check_health())
}

/// What the original does after its start, and the feature that it does it for.
const HOOKS: [(&str, Option<&str>); 30] = [
    ("poststarthook/start-apiserver-admission-initializer", None),
    ("poststarthook/generic-apiserver-start-informers", None),
    ("poststarthook/priority-and-fairness-config-consumer", None),
    ("poststarthook/priority-and-fairness-filter", None),
    ("poststarthook/storage-object-count-tracker-hook", None),
    ("poststarthook/start-apiextensions-informers", None),
    ("poststarthook/start-apiextensions-controllers", None),
    ("poststarthook/crd-informer-synced", None),
    ("poststarthook/start-system-namespaces-controller", None),
    ("poststarthook/peer-endpoint-reconciler-controller", Some("UnknownVersionInteroperabilityProxy")),
    ("poststarthook/start-cluster-authentication-info-controller", None),
    ("poststarthook/start-kube-apiserver-identity-lease-controller", Some("APIServerIdentity")),
    ("poststarthook/start-kube-apiserver-identity-lease-garbage-collector", Some("APIServerIdentity")),
    ("poststarthook/storage-readiness", Some("WatchCacheInitializationPostStartHook")),
    ("poststarthook/start-legacy-token-tracking-controller", None),
    ("poststarthook/start-service-ip-repair-controllers", None),
    ("poststarthook/rbac/bootstrap-roles", None),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", None),
    ("poststarthook/priority-and-fairness-config-producer", None),
    ("poststarthook/bootstrap-controller", None),
    ("poststarthook/start-kubernetes-service-cidr-controller", Some("MultiCIDRServiceAllocator")),
    ("poststarthook/start-kube-aggregator-informers", None),
    ("poststarthook/apiservice-status-local-available-controller", None),
    ("poststarthook/apiservice-status-remote-available-controller", None),
    ("poststarthook/apiservice-registration-controller", None),
    ("poststarthook/apiservice-discovery-controller", None),
    ("poststarthook/kube-apiserver-autoregistration", None),
    ("autoregister-completion", None),
    ("poststarthook/apiservice-openapi-controller", None),
    ("poststarthook/apiservice-openapiv3-controller", None),
];
