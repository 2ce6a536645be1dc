//! [`AdmissionRequest`]: what is known of a write beside the objects that it is about, as expressions see it in
//! `request`.

use std::fmt;

use revisor_object::{Object, Value};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new object.
    Create,
    /// Another object in place of one.
    Update,
    /// The end of an object.
    Delete,
    /// A connection to something that an object stands for.
    Connect,
}

impl Operation {
    /// The name that rules and expressions have for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// A kind of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GroupVersionKind<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

/// As the original writes it in messages.
impl fmt::Display for GroupVersionKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// A resource of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GroupVersionResource<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The name in paths.
    pub resource: &'a str,
}

/// As the original writes it in messages.
impl fmt::Display for GroupVersionResource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

/// Who makes the write.
#[derive(Debug, Clone, Copy, Default)]
pub struct UserInfo<'a> {
    /// The name.
    pub username: &'a str,
    /// The identity; empty if it has none.
    pub uid: &'a str,
    /// The groups.
    pub groups: &'a [String],
    /// What else is known.
    pub extra: &'a [(String, Vec<String>)],
}

/// What is known of a write beside the objects that it is about.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// The kind of the objects, as they are shown to who is asked.
    pub kind: GroupVersionKind<'a>,
    /// The resource that who is asked wants to be asked about.
    pub resource: GroupVersionResource<'a>,
    /// The kind that the client speaks of.
    pub request_kind: GroupVersionKind<'a>,
    /// The resource that the client speaks of.
    pub request_resource: GroupVersionResource<'a>,
    /// The part of the object; empty for the whole.
    pub subresource: &'a str,
    /// The name of the object; empty if it is to be generated.
    pub name: &'a str,
    /// The namespace; empty for what is in none.
    pub namespace: &'a str,
    /// What is done.
    pub operation: Operation,
    /// Who does it.
    pub user: UserInfo<'a>,
    /// Whether nothing is stored.
    pub dry_run: bool,
    /// The options of the request with their type.
    pub options: Option<&'a Object>,
}

impl AdmissionRequest<'_> {
    /// The value of `request`: what is empty is left out, and the objects are not in it.
    pub fn to_value(&self) -> Value {
        let kind = |kind: GroupVersionKind<'_>| group(kind.group, kind.version, ("kind", kind.kind));
        let resource = |resource: GroupVersionResource<'_>| {
            group(resource.group, resource.version, ("resource", resource.resource))
        };
        let mut user = Object::new();
        let texts = |texts: &[String]| texts.iter().map(|text| Value::from(text.as_str())).collect::<Vec<Value>>();
        put(&mut user, "username", self.user.username);
        put(&mut user, "uid", self.user.uid);
        if !self.user.groups.is_empty() {
            user.insert("groups", texts(self.user.groups));
        }
        if !self.user.extra.is_empty() {
            let mut extra = Object::new();
            for (name, values) in self.user.extra {
                extra.insert(name, texts(values));
            }
            user.insert("extra", Value::Object(extra));
        }
        let mut request = Object::new();
        request.insert("uid", "");
        request.insert("kind", kind(self.kind));
        request.insert("resource", resource(self.resource));
        put(&mut request, "subResource", self.subresource);
        request.insert("requestKind", kind(self.request_kind));
        request.insert("requestResource", resource(self.request_resource));
        put(&mut request, "requestSubResource", self.subresource);
        put(&mut request, "name", self.name);
        put(&mut request, "namespace", self.namespace);
        request.insert("operation", self.operation.as_str());
        request.insert("userInfo", Value::Object(user));
        request.insert("object", Value::Null);
        request.insert("oldObject", Value::Null);
        request.insert("dryRun", Value::Bool(self.dry_run));
        request.insert("options", self.options.map_or(Value::Null, |options| Value::Object(options.clone())));
        Value::Object(request)
    }
}

fn put(object: &mut Object, name: &str, text: &str) {
    if !text.is_empty() {
        object.insert(name, text);
    }
}

fn group(group: &str, version: &str, (name, last): (&str, &str)) -> Value {
    let mut object = Object::new();
    object.insert("group", group);
    object.insert("version", version);
    object.insert(name, last);
    Value::Object(object)
}
