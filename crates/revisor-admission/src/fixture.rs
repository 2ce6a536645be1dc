//! A write of a config map, for tests.

use std::time::Duration;

use revisor_cel::{Authorizer, Decision, Environment, Question, Target};
use revisor_object::{Object, Value, parse_json};
use revisor_version::Release;

use crate::{
    AdmissionEnvironment, AdmissionRequest, GroupVersionKind, GroupVersionResource, Inputs, Operation, RequestValue,
    Typed, UserInfo,
};

/// The environment of the newest release.
pub(crate) fn environment() -> AdmissionEnvironment {
    AdmissionEnvironment::new(Environment::new(Release { major: 1, minor: 36 }))
}

pub(crate) fn object(text: &str) -> Object {
    match parse_json(text.as_bytes()).expect(text).value {
        Value::Object(object) => object,
        other => panic!("{other:?} is no object"),
    }
}

/// May get everything and do nothing else.
#[derive(Debug)]
struct Reader;

impl Authorizer for Reader {
    fn authorize(&self, question: &Question) -> Decision {
        let is_named = matches!(&question.target, Target::Resource(target) if target.name == "a");
        Decision { allowed: question.verb == "get" || is_named, ..Decision::default() }
    }
}

/// The objects of a write.
#[derive(Default)]
pub(crate) struct Write {
    pub(crate) object: Option<Object>,
    pub(crate) old: Option<Object>,
    pub(crate) params: Option<Object>,
}

impl Write {
    pub(crate) fn creating(text: &str) -> Write {
        Write { object: Some(object(text)), ..Write::default() }
    }

    /// What `look` makes of the inputs of this write.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Inputs<'_>) -> R) -> R {
        let resource = GroupVersionResource { group: "", version: "v1", resource: "configmaps" };
        let kind = GroupVersionKind { group: "", version: "v1", kind: "ConfigMap" };
        let groups = ["readers".to_owned()];
        let request = AdmissionRequest {
            kind,
            resource,
            request_kind: kind,
            request_resource: resource,
            subresource: "",
            name: "a",
            namespace: "n",
            operation: if self.old.is_some() { Operation::Update } else { Operation::Create },
            user: UserInfo { username: "ann", uid: "", groups: &groups, extra: &[] },
            dry_run: false,
            options: None,
        };
        let request = RequestValue::new(request);
        let namespace = object(r#"{"metadata":{"name":"n","labels":{"team":"red"}},"spec":{}}"#);
        let typed = |object| Typed { object, api_version: "v1", kind: "ConfigMap" };
        look(&Inputs {
            request: &request,
            plain_request: &request,
            object: self.object.as_ref().map(typed),
            old_object: self.old.as_ref().map(typed),
            params: self.params.as_ref().map(typed),
            namespace: Some(&namespace),
            authorizer: &Reader,
            clock: &|| Duration::ZERO,
        })
    }
}
