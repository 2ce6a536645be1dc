//! MutatingAdmissionPolicy: what policies change about a write (upstream: `dispatchInvocations` of the plugin).

use std::sync::Arc;
use std::time::Instant;

use revisor_admission::{
    ConditionsOutcome, ErrorType, FailurePolicy, Matched, MutatingPolicy, MutationError, Patch, PolicyBinding,
    merge_configuration,
};
use revisor_catalog::Resource;
use revisor_merge::PatchError;
use revisor_object::{Object, Value};

use super::params::Param;
use super::view::View;
use super::{Meant, Say, Write, conditioned};
use crate::admission::{Admission, Attributes, ExpressionAuthorizer, Operation, Waiting};
use crate::policy_book::Hooks;
use crate::{Registry, RegistryError};

/// The name of the plugin.
const NAME: &str = "MutatingAdmissionPolicy";

/// Lets the mutating policies that are in force change what is written.
pub(in crate::admission) struct MutatingAdmissionPolicy;

impl Admission for MutatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn handles(&self, operation: Operation) -> bool {
        // Of a deletion there is nothing to change.
        operation != Operation::Delete
    }

    fn admit_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        object: &'a mut Object,
    ) -> Option<Waiting<'a>> {
        let all = registry.policies.mutating(&registry.expressions)?;
        let hooks = match Say::of(attributes) {
            Say::All => all,
            Say::Static => registry.policies.static_mutating()?,
            Say::None => return None,
        };
        Some(Box::pin(async move {
            let pass = Pass {
                authorizer: ExpressionAuthorizer::new(&registry.authorizer, attributes.requester),
                write: Write::new(registry, attributes),
                begun: Instant::now(),
            };
            let mut problems = Vec::new();
            let invocations = pass.invocations(&hooks, object, &mut problems).await;
            if !invocations.is_empty() {
                if let Some(reinvocation) = attributes.reinvocation {
                    reinvocation.begin(NAME, object);
                }
                pass.invoke_all(invocations, object, &mut problems).await?;
                if let Some(reinvocation) = attributes.reinvocation {
                    reinvocation.end(NAME, object);
                }
            }
            pass.conclude(problems, object)
        }))
    }
}

/// One pass over the policies.
struct Pass<'a> {
    write: Write<'a>,
    authorizer: ExpressionAuthorizer<'a>,
    begun: Instant,
}

/// A policy that is asked, for one of its bindings and one parameter.
struct Invocation<'w> {
    policy: &'w MutatingPolicy,
    binding: &'w PolicyBinding,
    meant: Meant<'w>,
    param: Option<Param>,
}

impl Invocation<'_> {
    /// What tells it apart from others when policies are asked again.
    fn id(&self) -> String {
        let param = self.param.as_ref().map(|param| param.key.as_str()).unwrap_or_default();
        format!("{}/{}/{param}", self.policy.name(), self.binding.name)
    }
}

/// What a policy made of an object.
struct Invoked {
    object: Object,
    /// Whether one of its patches fitted, also if it said nothing new.
    is_patched: bool,
}

/// Why a policy does not let a write pass.
struct Problem {
    message: String,
    reason: &'static str,
}

impl Pass<'_> {
    /// All who are asked about a write. Who cannot be asked is a problem.
    async fn invocations<'w>(
        &'w self,
        hooks: &'w Hooks<MutatingPolicy>,
        object: &Object,
        problems: &mut Vec<Problem>,
    ) -> Vec<Invocation<'w>> {
        let mut invocations = Vec::new();
        for hook in hooks.iter() {
            let policy = &*hook.policy;
            let meant = match self.meant_by(policy, object) {
                Ok(Some(meant)) => meant,
                Ok(None) => continue,
                Err(why) => {
                    let why = format!("failed to configure policy: {why}");
                    problems.extend(problem(policy, None, &why, ""));
                    continue;
                }
            };
            for binding in &hook.bindings {
                match self.params(policy, binding, object).await {
                    Ok(params) => {
                        invocations.extend(params.into_iter().map(|param| Invocation { policy, binding, meant, param }))
                    }
                    Err(why) => {
                        let why = format!("failed to configure binding: {why}");
                        problems.extend(problem(policy, Some(binding), &why, ""));
                    }
                }
            }
        }
        invocations
    }

    fn meant_by(&self, policy: &MutatingPolicy, object: &Object) -> Result<Option<Meant<'_>>, String> {
        let Some(constraints) = policy.constraints() else {
            return Err("policy contained no match constraints, a required field".to_owned());
        };
        let meant = self.write.matches(constraints, Some(object))?;
        if let (Some(_), Some(kind)) = (&meant, policy.param_kind()) {
            self.write.param_resource(kind)?;
        }
        Ok(meant)
    }

    async fn params(
        &self,
        policy: &MutatingPolicy,
        binding: &PolicyBinding,
        object: &Object,
    ) -> Result<Vec<Option<Param>>, String> {
        if let Some(resources) = &binding.resources
            && self.write.matches(resources, Some(object))?.is_none()
        {
            return Ok(Vec::new());
        }
        self.write.params(policy.param_kind(), binding.params.as_ref()).await
    }

    async fn invoke_all(
        &self,
        invocations: Vec<Invocation<'_>>,
        object: &mut Object,
        problems: &mut Vec<Problem>,
    ) -> Result<(), RegistryError> {
        let namespace = self.write.shown_namespace()?;
        // The versions in which the object was patched, and the one in which it was looked at last.
        let (mut patched, mut last): (Vec<&Arc<Resource>>, Option<&Arc<Resource>>) = (Vec::new(), None);
        for invocation in &invocations {
            let invoked = self.invoke(invocation, object, namespace.as_deref(), problems).await?;
            let Some(Invoked { object: changed, is_patched }) = invoked else { continue };
            let has_changed = changed != *object;
            *object = changed;
            if !invocation.policy.mutations().is_empty() {
                last = Some(invocation.meant.version);
                patched.extend(last.filter(|_| is_patched));
            }
            if let Some(reinvocation) = self.write.attributes.reinvocation {
                reinvocation.called(NAME, &invocation.id(), has_changed, invocation.policy.is_reinvoked());
            }
        }
        // As in the original, all are asked again then who want to be, also the one that patched it, whether or not the
        // object is another one.
        let is_patched = last.is_some_and(|last| patched.iter().any(|version| Arc::ptr_eq(version, last)));
        if let Some(reinvocation) = self.write.attributes.reinvocation.filter(|_| is_patched) {
            reinvocation.reinvoke_all(NAME);
        }
        Ok(())
    }

    /// What a policy makes of an object; `None` if it was not asked.
    async fn invoke(
        &self,
        invocation: &Invocation<'_>,
        object: &Object,
        namespace: Option<&Object>,
        problems: &mut Vec<Problem>,
    ) -> Result<Option<Invoked>, RegistryError> {
        let Invocation { policy, binding, meant, param } = invocation;
        let view = View::new(&self.write, *meant, Some(object)).await;
        let mut view = match view {
            Ok(view) => view,
            Err(why) => {
                problems.extend(problem(policy, None, &format!("failed to configure policy: {why}"), ""));
                return Ok(None);
            }
        };
        let outcome = self.conditions_hold(policy, &view, param.as_ref(), namespace);
        let counted = conditioned(policy.name(), self.write.attributes);
        self.write.registry.admission_metrics.evaluated_conditions(counted, &outcome);
        match outcome.matched {
            Matched::Yes => {}
            Matched::No { .. } => return Ok(None),
            Matched::Failed(why) => {
                problems.extend(problem(policy, Some(binding), &why, "Invalid"));
                return Ok(None);
            }
        }
        let reinvocation = self.write.attributes.reinvocation;
        if reinvocation.is_some_and(|reinvocation| !reinvocation.is_due(NAME, &invocation.id())) {
            return Ok(None);
        }
        let mut is_patched = false;
        for at in 0..policy.mutations().len() {
            let begun = Instant::now();
            let patched = self.patched(invocation, at, &view, namespace);
            let error = match &patched {
                Ok(_) => ErrorType::NoError,
                Err(Unpatched::Problem(error)) => error.kind(),
                Err(Unpatched::Fatal(_)) => ErrorType::InvalidError,
            };
            let labels = [policy.name(), &binding.name, error.as_str()];
            self.write.registry.policy_tally.mutated(labels, begun.elapsed());
            match patched {
                Ok(patched) => {
                    is_patched = true;
                    view.replace(patched);
                }
                Err(Unpatched::Problem(error)) => {
                    problems.extend(problem(policy, Some(binding), &error.message, "Invalid"));
                }
                Err(Unpatched::Fatal(error)) => return Err(error),
            }
        }
        let Some(changed) = view.into_object().filter(|_| is_patched) else {
            return Ok(Some(Invoked { object: object.clone(), is_patched }));
        };
        let attributes = self.write.attributes;
        if attributes.own_kind.is_some() {
            return Ok(Some(Invoked { object: changed, is_patched }));
        }
        let taken_back = self.write.registry.back_from_version(attributes, meant.version, changed).await;
        let mut changed =
            taken_back.map_err(|error| RegistryError::Internal(format!("failed to convert object: {error}")))?;
        attributes.resource.default(&mut changed);
        Ok(Some(Invoked { object: changed, is_patched }))
    }

    fn conditions_hold(
        &self,
        policy: &MutatingPolicy,
        view: &View<'_>,
        param: Option<&Param>,
        namespace: Option<&Object>,
    ) -> ConditionsOutcome {
        let clock = || self.begun.elapsed();
        policy.conditions_hold(&view.inputs(param, namespace, &self.authorizer, &clock))
    }

    /// The object as one mutation of a policy leaves it.
    fn patched(
        &self,
        invocation: &Invocation<'_>,
        at: usize,
        view: &View<'_>,
        namespace: Option<&Object>,
    ) -> Result<Object, Unpatched> {
        let Invocation { policy, meant, param, .. } = invocation;
        let clock = || self.begun.elapsed();
        let inputs = view.inputs(param.as_ref(), namespace, &self.authorizer, &clock);
        let patch = policy.patch(&policy.mutations()[at], &inputs).0?;
        let mut object = view.object().cloned().unwrap_or_default();
        let resource = self.patched_kind(*meant)?;
        match patch {
            Patch::Configuration(configuration) => {
                let (types, id) = resource.typed();
                merge_configuration(types, id, &mut object, &configuration).map_err(MutationError::new)?;
            }
            Patch::Json(patch) => {
                object.insert("apiVersion", meant.api_version());
                object.insert("kind", meant.kind.kind);
                let before = object.clone();
                resource.open_raw(&mut object);
                let mut value = Value::Object(object);
                match patch.apply(&mut value) {
                    Ok(()) => {}
                    // A patch whose test fails is not applied, and that is all.
                    Err(PatchError::TestFailed { .. }) => return Ok(view.object().cloned().unwrap_or_default()),
                    Err(error) => return Err(MutationError::new(format!("JSON Patch: {error}")).into()),
                }
                object = decoded(resource, value)?;
                resource.restore_raw(&mut object, &before);
                let is_of_type = |name, wanted: &str| object.str(name) == Some(wanted);
                if !is_of_type("apiVersion", &meant.api_version()) || !is_of_type("kind", meant.kind.kind) {
                    let why = format!("a patch must not change what an object is, which is {}", meant.kind);
                    return Err(Unpatched::Fatal(RegistryError::Internal(why)));
                }
            }
        }
        object.remove("apiVersion");
        object.remove("kind");
        if resource.custom().is_some() || resource.is_storage() {
            resource.default(&mut object);
        }
        Ok(object)
    }

    /// What the object is that a policy patches.
    fn patched_kind<'w>(&'w self, meant: Meant<'w>) -> Result<&'w Arc<Resource>, Unpatched> {
        if self.write.attributes.own_kind.is_none() {
            return Ok(meant.version);
        }
        let (catalog, api_version) = (&self.write.catalog, meant.api_version());
        let scale = Some(catalog.scale()).filter(|scale| scale.kind == meant.kind.kind);
        scale.or_else(|| catalog.other_kind(&api_version, meant.kind.kind)).ok_or_else(|| {
            let why = format!("there is no type for {}", meant.kind);
            Unpatched::Problem(MutationError::new(why))
        })
    }

    /// The answer to a write, given what went wrong.
    fn conclude(&self, problems: Vec<Problem>, object: &Object) -> Result<(), RegistryError> {
        let Some(first) = problems.first() else { return Ok(()) };
        let reason = if first.reason.is_empty() { "Forbidden" } else { first.reason };
        let message = first.message.clone();
        let denials = problems.into_iter().map(|problem| problem.message).collect();
        let mut status = self.write.forbidden(Some(object), reason, denials);
        status.message = message;
        Err(RegistryError::Denied(Box::new(status)))
    }
}

/// Why a mutation was not made.
enum Unpatched {
    /// What the policy says cannot be done, which obeys its failure policy.
    Problem(MutationError),
    /// What comes of it is no object, which does not.
    Fatal(RegistryError),
}

impl From<MutationError> for Unpatched {
    fn from(error: MutationError) -> Unpatched {
        Unpatched::Problem(error)
    }
}

/// Reads what a patch made as strictly as the original does.
fn decoded(resource: &Arc<Resource>, mut value: Value) -> Result<Object, Unpatched> {
    let fatal = |why: String| Unpatched::Fatal(RegistryError::Internal(why));
    let findings = resource.conform(&mut value).map_err(fatal)?;
    let unknown: Vec<String> = findings.unknown_fields.iter().map(|field| format!("unknown field {field:?}")).collect();
    if !unknown.is_empty() && resource.custom().is_none() {
        return Err(fatal(format!("strict decoding error: {}", unknown.join(", "))));
    }
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(fatal("the patch makes something that is no object".to_owned())),
    }
}

/// What is told of a problem, unless the policy wants problems to be ignored.
fn problem(
    policy: &MutatingPolicy,
    binding: Option<&PolicyBinding>,
    why: &str,
    reason: &'static str,
) -> Option<Problem> {
    let name = policy.name();
    let message = match binding {
        Some(binding) => format!("policy '{name}' with binding '{}' denied request: {why}", binding.name),
        None => format!("policy {name:?} denied request: {why}"),
    };
    (policy.failure_policy() == FailurePolicy::Fail).then_some(Problem { message, reason })
}
