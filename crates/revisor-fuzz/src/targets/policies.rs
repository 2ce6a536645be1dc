//! Admission policies: the first line of the input is the object that is written, the rest the policy.

use std::time::Duration;

use revisor_admission::{
    AdmissionEnvironment, AdmissionRequest, GroupVersionKind, GroupVersionResource, Inputs, MutatingPolicy, Operation,
    Patch, RequestValue, Typed, UserInfo, ValidatingPolicy, merge_configuration,
};
use revisor_cel::{Authorizer, Decision, Environment, Question};
use revisor_object::{Object, Value, parse_json};
use revisor_version::Release;

use super::resources::some_resources;

thread_local! {
    // To gather the libraries takes longer than to try an input with them.
    static ENVIRONMENT: AdmissionEnvironment =
        AdmissionEnvironment::new(Environment::new(Release { major: 1, minor: 36 }));
}

/// Longer inputs cost time and show nothing new.
const MAX_INPUT: usize = 2000;

#[derive(Debug)]
struct Nobody;

impl Authorizer for Nobody {
    fn authorize(&self, _: &Question) -> Decision {
        Decision::default()
    }
}

/// A policy decides about an object, or changes it to one that can be read back; each within its budget.
pub(super) fn policy(data: &[u8]) {
    let Some(at) = data.iter().position(|byte| *byte == b'\n').filter(|_| data.len() <= MAX_INPUT) else { return };
    let read = |text: &[u8]| match parse_json(text).ok()?.value {
        Value::Object(object) => Some(object),
        _ => None,
    };
    let (Some(object), Some(policy)) = (read(&data[..at]), read(&data[at + 1..])) else { return };
    ENVIRONMENT.with(|environment| {
        let validating = ValidatingPolicy::compile(environment, "p", &policy);
        let mutating = MutatingPolicy::compile(environment, "p", &policy);
        with_inputs(&object, |inputs| {
            let validations = policy.at(&["spec", "validations"]).and_then(Value::as_array).map_or(0, <[Value]>::len);
            assert!(validating.validate(inputs).decisions.len() <= validations.max(1));
            drop(mutating.conditions_hold(inputs));
            for mutation in mutating.mutations() {
                if let Ok(patch) = mutating.patch(mutation, inputs).0 {
                    change(&object, &patch, data);
                }
            }
        });
    });
}

fn change(object: &Object, patch: &Patch, data: &[u8]) {
    match patch {
        Patch::Json(patch) => {
            let mut value = Value::Object(object.clone());
            if patch.apply(&mut value).is_ok() {
                let text = value.to_json();
                assert!(parse_json(text.as_bytes()).is_ok(), "{text}");
            }
        }
        Patch::Configuration(configuration) => {
            for resource in some_resources(data) {
                let (types, id) = resource.typed();
                let mut merged = object.clone();
                if types.typed_problems(id, &merged).is_none()
                    && merge_configuration(types, id, &mut merged, configuration).is_ok()
                {
                    assert_eq!(types.typed_problems(id, &merged), None);
                }
            }
        }
    }
}

fn with_inputs(object: &Object, look: impl FnOnce(&Inputs<'_>)) {
    let kind = GroupVersionKind { group: "", version: "v1", kind: "Pod" };
    let resource = GroupVersionResource { group: "", version: "v1", resource: "pods" };
    let request = RequestValue::new(AdmissionRequest {
        kind,
        resource,
        request_kind: kind,
        request_resource: resource,
        subresource: "",
        name: "a",
        namespace: "n",
        operation: Operation::Update,
        user: UserInfo::default(),
        dry_run: false,
        options: None,
    });
    let typed = Typed { object, api_version: "v1", kind: "Pod" };
    look(&Inputs {
        request: &request,
        plain_request: &request,
        object: Some(typed),
        old_object: Some(typed),
        params: Some(typed),
        namespace: Some(object),
        authorizer: &Nobody,
        clock: &|| Duration::ZERO,
    });
}
