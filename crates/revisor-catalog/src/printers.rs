//! The printers: what stands in the columns of a built-in kind for one object. One file per area of the API.
//!
//! A printer reads the object as it is stored. What is missing there counts as the zero of its type, as in the
//! original, which prints from structs. Printers are pure: the time is passed in. They ask it for nothing but how long
//! ago something was, and keep the answer as it is: rows are printed once and read at many times.

mod admission;
mod core;
mod devices;
mod events;
mod fields;
mod flow_control;
mod identity;
mod networking;
mod pods;
mod scaling;
mod selectors;
mod storage;
mod versioning;
mod workloads;

#[cfg(test)]
mod tests;

use revisor_object::{Object, Value};

use crate::Moment;

/// The cells of one object, from left to right.
pub(crate) type Printer = fn(&Object, Moment) -> Vec<Value>;

pub(crate) use flow_control::rank as flow_schema_rank;
pub(crate) use pods::completion as pod_completion;

/// The cells of a row, each turned into a value.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(revisor_object::Value::from($cell)),*] };
}
use cells;

/// The printer of a resource; of one that has none, the name and the time of creation.
pub(crate) fn of(group: &str, plural: &str) -> Printer {
    match (group, plural) {
        ("", "componentstatuses") => core::component_status,
        ("", "configmaps") => core::config_map,
        ("", "endpoints") => networking::endpoints,
        ("" | "events.k8s.io", "events") => events::event,
        ("", "namespaces") => core::namespace,
        ("", "nodes") => core::node,
        ("", "persistentvolumeclaims") => storage::claim,
        ("", "persistentvolumes") => storage::volume,
        ("", "pods") => pods::pod,
        ("", "podtemplates") => workloads::pod_template,
        ("", "replicationcontrollers") => workloads::replication_controller,
        ("", "resourcequotas") => core::resource_quota,
        ("", "secrets") => core::secret,
        ("", "services") => networking::service,
        ("", "serviceaccounts")
        | ("resource.k8s.io", "deviceclasses" | "resourceclaimtemplates")
        | ("scheduling.k8s.io", "workloads") => fields::name_and_age,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => admission::mutating_policy,
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => admission::validating_policy,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings") => {
            admission::policy_binding
        }
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            admission::webhooks
        }
        ("apiregistration.k8s.io", "apiservices") => core::api_service,
        ("apps", "controllerrevisions") => workloads::controller_revision,
        ("apps", "daemonsets") => workloads::daemon_set,
        ("apps", "deployments") => workloads::deployment,
        ("apps", "replicasets") => workloads::replica_set,
        ("apps", "statefulsets") => workloads::stateful_set,
        ("autoscaling", "horizontalpodautoscalers") => scaling::autoscaler,
        ("autoscaling" | "apiextensions.k8s.io", "scales") => scaling::scale,
        ("batch", "cronjobs") => workloads::cron_job,
        ("batch", "jobs") => workloads::job,
        ("certificates.k8s.io", "certificatesigningrequests") => identity::signing_request,
        ("certificates.k8s.io", "clustertrustbundles") => identity::trust_bundle,
        ("certificates.k8s.io", "podcertificaterequests") => identity::pod_certificate_request,
        ("coordination.k8s.io", "leases") => core::lease,
        ("coordination.k8s.io", "leasecandidates") => core::lease_candidate,
        ("discovery.k8s.io", "endpointslices") => networking::endpoint_slice,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => flow_control::flow_schema,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => flow_control::priority_level,
        ("internal.apiserver.k8s.io", "storageversions") => storage::storage_version,
        ("networking.k8s.io", "ingressclasses") => networking::ingress_class,
        ("networking.k8s.io", "ingresses") => networking::ingress,
        ("networking.k8s.io", "ipaddresses") => networking::ip_address,
        ("networking.k8s.io", "networkpolicies") => networking::network_policy,
        ("networking.k8s.io", "servicecidrs") => networking::service_cidr,
        ("node.k8s.io", "runtimeclasses") => core::runtime_class,
        ("policy", "poddisruptionbudgets") => workloads::disruption_budget,
        ("rbac.authorization.k8s.io", "clusterrolebindings" | "rolebindings") => identity::role_binding,
        ("resource.k8s.io", "devicetaintrules") => devices::taint_rule,
        ("resource.k8s.io", "resourceclaims") => devices::claim,
        ("resource.k8s.io", "resourcepoolstatusrequests") => devices::pool_status_request,
        ("resource.k8s.io", "resourceslices") => devices::slice,
        ("scheduling.k8s.io", "podgroups") => workloads::pod_group,
        ("scheduling.k8s.io", "priorityclasses") => workloads::priority_class,
        ("storage.k8s.io", "csidrivers") => storage::driver,
        ("storage.k8s.io", "csinodes") => storage::node,
        ("storage.k8s.io", "storageclasses") => storage::storage_class,
        ("storage.k8s.io", "volumeattachments") => storage::attachment,
        ("storage.k8s.io", "volumeattributesclasses") => storage::attributes_class,
        ("storagemigration.k8s.io", "storageversionmigrations") => storage::migration,
        ("versioning.revisor.dev", "conversions") => versioning::conversion,
        ("versioning.revisor.dev", "versionreports") => versioning::version_report,
        _ => fields::name_and_creation,
    }
}
