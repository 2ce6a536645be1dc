//! `admissionregistration.k8s.io`: webhooks and policies that are asked about writes, and where they apply.

mod client_config;
mod expressions;
mod match_conditions;
mod match_resources;
mod mutating_policy;
mod param;
mod policy_binding;
mod reserved_names;
mod resource_rule;
mod validating_policy;
mod webhook_configuration;

pub(super) use self::client_config::validate_client_config;
use self::expressions::Expressions;
use super::{Kind, Terms, USUAL};
use crate::{Rules, Strategy};

/// What happens when a webhook or policy fails.
const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];

/// How a rule is compared with the resource of a write.
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];

/// Whether it is asked again when others have changed the object since.
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    let features = terms.features;
    Some(match plural {
        "mutatingadmissionpolicies" => {
            versioned(mutating_policy::MutatingAdmissionPolicies { expressions: Expressions::new(terms), features })
        }
        "mutatingadmissionpolicybindings" => versioned(policy_binding::MutatingAdmissionPolicyBindings { features }),
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => {
            versioned(webhook_configuration::WebhookConfigurations { expressions: Expressions::new(terms), features })
        }
        "validatingadmissionpolicies" => {
            versioned(validating_policy::ValidatingAdmissionPolicies { expressions: Expressions::new(terms), features })
        }
        "validatingadmissionpolicybindings" => {
            versioned(policy_binding::ValidatingAdmissionPolicyBindings { features })
        }
        _ => return None,
    })
}

/// Nobody changes what decides about all other writes without having seen its newest version.
fn versioned(strategy: impl Strategy) -> Kind {
    Kind {
        rules: Rules { unconditional_update: false, known_finalizers: false, ..USUAL },
        ..Kind::usual(strategy).selecting_namespace()
    }
}
