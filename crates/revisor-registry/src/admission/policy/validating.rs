//! ValidatingAdmissionPolicy: what becomes of the decisions of policies (upstream: `dispatcher.Dispatch` of the plugin).

use std::time::Instant;

use revisor_admission::{Action, Decision, FailurePolicy, PolicyBinding, ValidatingPolicy, ValidationAction, Verdict};
use revisor_object::{Object, Value};

use super::params::Param;
use super::view::View;
use super::{Meant, Say, Write, conditioned};
use crate::admission::{Admission, Attributes, ExpressionAuthorizer, Operation, Waiting};
use crate::policy_book::{Hook, Hooks};
use crate::{Registry, RegistryError};

/// Where the audit log notes what was denied and went through.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// Asks the validating policies that are in force.
pub(in crate::admission) struct ValidatingAdmissionPolicy;

impl Admission for ValidatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn handles(&self, _: Operation) -> bool {
        true
    }

    fn looks_at_deleted(&self, registry: &Registry) -> bool {
        registry.policies.validating(&registry.expressions).is_some()
    }

    fn validate_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        object: &'a Object,
    ) -> Option<Waiting<'a>> {
        let all = registry.policies.validating(&registry.expressions).filter(|_| !attributes.is_outline)?;
        let hooks = match Say::of(attributes) {
            Say::All => all,
            Say::Static => registry.policies.static_validating()?,
            Say::None => return None,
        };
        let object = Some(object).filter(|_| attributes.operation != Operation::Delete);
        Some(Box::pin(async move {
            let pass = Pass::new(registry, attributes, object);
            let denied = pass.ask_all(&hooks).await?;
            denied.map_or(Ok(()), |denial| Err(pass.refusal(denial)))
        }))
    }
}

/// One pass over the policies.
struct Pass<'a> {
    write: Write<'a>,
    object: Option<&'a Object>,
    authorizer: ExpressionAuthorizer<'a>,
    begun: Instant,
}

/// Why a write is denied.
struct Denial {
    message: String,
    reason: String,
}

impl<'a> Pass<'a> {
    fn new(registry: &'a Registry, attributes: &'a Attributes<'a>, object: Option<&'a Object>) -> Pass<'a> {
        Pass {
            authorizer: ExpressionAuthorizer::new(&registry.authorizer, attributes.requester),
            write: Write::new(registry, attributes),
            object,
            begun: Instant::now(),
        }
    }

    fn refusal(&self, Denial { message, reason }: Denial) -> RegistryError {
        let reason = if reason.is_empty() { "Invalid" } else { &reason };
        let mut status = self.write.forbidden(self.object, reason, vec![message]);
        status.code = match reason {
            "Forbidden" => 403,
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        RegistryError::Denied(Box::new(status))
    }

    /// Asks all policies. The first denial decides what is answered.
    async fn ask_all(&self, hooks: &Hooks<ValidatingPolicy>) -> Result<Option<Denial>, RegistryError> {
        let mut denied = None;
        let mut views: Vec<View<'_>> = Vec::new();
        for hook in hooks.iter() {
            let policy = &*hook.policy;
            match self.meant_by(policy) {
                Ok(Some(meant)) => self.ask(hook, meant, &mut views, &mut denied).await?,
                Ok(None) => {}
                Err(why) => misconfigured(&mut denied, policy, None, &why),
            }
        }
        Ok(denied)
    }

    fn meant_by(&self, policy: &ValidatingPolicy) -> Result<Option<Meant<'_>>, String> {
        let Some(constraints) = policy.constraints() else {
            return Err("policy contained no match constraints, a required field".to_owned());
        };
        let meant = self.write.matches(constraints, self.object)?;
        if let (Some(_), Some(kind)) = (&meant, policy.param_kind()) {
            self.write.param_resource(kind)?;
        }
        Ok(meant)
    }

    /// Asks a policy for each of its bindings.
    async fn ask<'w>(
        &'w self,
        hook: &Hook<ValidatingPolicy>,
        meant: Meant<'w>,
        views: &mut Vec<View<'w>>,
        denied: &mut Option<Denial>,
    ) -> Result<(), RegistryError> {
        let Hook { policy, bindings } = hook;
        let mut annotations = Vec::new();
        for binding in bindings {
            let params = match self.params(policy, binding).await {
                Ok(params) if params.is_empty() => continue,
                Ok(params) => params,
                Err(why) => {
                    misconfigured(denied, policy, Some(binding), &why);
                    continue;
                }
            };
            let view = match View::find(&self.write, views, meant, self.object).await {
                Ok(view) => view,
                Err(why) => {
                    let why = format!("failed to convert object version: {why}");
                    misconfigured(denied, policy, Some(binding), &why);
                    continue;
                }
            };
            let namespace = self.write.shown_namespace()?;
            for param in &params {
                let verdict = self.evaluate(policy, view, param.as_ref(), namespace.as_deref());
                note(&mut annotations, &verdict);
                self.obey(policy, binding, verdict, denied);
            }
        }
        for (key, values) in annotations {
            self.write.attributes.annotate(format!("{}/{key}", policy.name()), values.join(", "));
        }
        Ok(())
    }

    /// What a policy is evaluated with for a binding; nothing if the binding does not apply to this write.
    async fn params(&self, policy: &ValidatingPolicy, binding: &PolicyBinding) -> Result<Vec<Option<Param>>, String> {
        if let Some(resources) = &binding.resources
            && self.write.matches(resources, self.object)?.is_none()
        {
            return Ok(Vec::new());
        }
        self.write.params(policy.param_kind(), binding.params.as_ref()).await
    }

    fn evaluate(
        &self,
        policy: &ValidatingPolicy,
        view: &View<'_>,
        param: Option<&Param>,
        namespace: Option<&Object>,
    ) -> Verdict {
        let clock = || self.begun.elapsed();
        policy.validate(&view.inputs(param, namespace, &self.authorizer, &clock))
    }

    /// Does what a binding wants to be done about the decisions of its policy.
    fn obey(&self, policy: &ValidatingPolicy, binding: &PolicyBinding, verdict: Verdict, denied: &mut Option<Denial>) {
        let registry = self.write.registry;
        let tally = &registry.policy_tally;
        let attributes = self.write.attributes;
        if let Some(outcome) = &verdict.conditions {
            registry.admission_metrics.evaluated_conditions(conditioned(policy.name(), attributes), outcome);
        }
        for decision in verdict.decisions {
            let count = |action| {
                tally.validated([policy.name(), &binding.name, decision.error.as_str(), action], decision.elapsed);
            };
            if decision.action == Action::Admit {
                count("allow");
                continue;
            }
            for action in &binding.actions {
                match action {
                    ValidationAction::Deny => {
                        deny(denied, policy, Some(binding), &decision.message, &decision.reason);
                        count("deny");
                    }
                    ValidationAction::Audit => {
                        attributes.annotate(FAILURE, failure(policy, binding, &decision));
                        count("audit");
                    }
                    ValidationAction::Warn => {
                        attributes.warn(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                            policy.name(),
                            binding.name,
                            decision.message
                        ));
                        count("warn");
                    }
                }
            }
        }
        for decision in verdict.failed_annotations {
            deny(denied, policy, Some(binding), &decision.message, &decision.reason);
            tally.validated([policy.name(), &binding.name, decision.error.as_str(), "deny"], decision.elapsed);
        }
    }
}

/// Gathers what several bindings and parameters have to note. What they say alike is noted once.
fn note(annotations: &mut Vec<(String, Vec<String>)>, verdict: &Verdict) {
    for annotation in &verdict.annotations {
        let at = annotations.iter().position(|(key, _)| *key == annotation.key).unwrap_or_else(|| {
            annotations.push((annotation.key.clone(), Vec::new()));
            annotations.len() - 1
        });
        if !annotations[at].1.contains(&annotation.value) {
            annotations[at].1.push(annotation.value.clone());
        }
    }
}

/// A policy or a binding cannot be followed.
fn misconfigured(denied: &mut Option<Denial>, policy: &ValidatingPolicy, binding: Option<&PolicyBinding>, why: &str) {
    if policy.failure_policy() == FailurePolicy::Ignore {
        return;
    }
    let what = if binding.is_some() { "binding" } else { "policy" };
    let message = format!("failed to configure {what}: {why}");
    deny(denied, policy, binding, &message, "");
}

fn deny(
    denied: &mut Option<Denial>,
    policy: &ValidatingPolicy,
    binding: Option<&PolicyBinding>,
    message: &str,
    reason: &str,
) {
    denied.get_or_insert_with(|| {
        let binding = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let policy = policy.name();
        let message = format!("ValidatingAdmissionPolicy '{policy}'{binding} denied request: {message}");
        Denial { message, reason: reason.to_owned() }
    });
}

/// The note about a decision that is only noted.
fn failure(policy: &ValidatingPolicy, binding: &PolicyBinding, decision: &Decision) -> String {
    // In the order of the original's fields.
    let text = |text: &str| Value::from(text).to_json();
    let actions: Vec<Value> = binding.actions.iter().map(|action| Value::from(action.as_str())).collect();
    format!(
        r#"[{{"message":{},"policy":{},"binding":{},"expressionIndex":{},"validationActions":{}}}]"#,
        text(&decision.message),
        text(policy.name()),
        text(&binding.name),
        decision.index,
        Value::Array(actions).to_json(),
    )
}
