//! [`AdmissionEnvironment`]: what the expressions of webhooks and policies may speak of.

use std::sync::{Arc, OnceLock};

use revisor_cel::{Environment, Issues, Library, ObjectType, Program, Shape, Type};

/// The name of the type of a policy's own variables.
const VARIABLES: &str = "kubernetes.variables";

/// What expressions about writes may speak of, with the libraries of one release.
#[derive(Debug, Clone)]
pub struct AdmissionEnvironment {
    /// The libraries, for those who know more of the variables.
    base: Environment,
    /// One for each set of variables that there is, by [`Scope::index`]; made when the first expression is in it.
    scoped: Arc<[OnceLock<Environment>; 8]>,
}

/// Where an expression stands, as far as that decides what it may speak of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scope {
    /// Whether there are parameters.
    pub params: bool,
    /// Whether it may ask what the user may do.
    pub authorizer: bool,
    /// Whether it describes a change.
    pub patch: bool,
}

impl Scope {
    fn index(self) -> usize {
        usize::from(self.params) | usize::from(self.authorizer) << 1 | usize::from(self.patch) << 2
    }

    /// What expressions here may speak of, with these libraries.
    fn environment(self, base: &Environment) -> Environment {
        let mut environment = with_request(with_namespace(base.clone()))
            .with_variable("object", Type::Dyn)
            .with_variable("oldObject", Type::Dyn);
        if self.patch {
            environment = environment.with_library(Library::JsonPatch).with_patch_types();
        }
        if self.params {
            environment = environment.with_variable("params", Type::Dyn);
        }
        if self.authorizer {
            environment = with_authorizer(environment)
                .with_variable("authorizer.requestResource", Type::object("kubernetes.authorization.ResourceCheck"));
        }
        environment
    }
}

/// The types of a policy's own variables, as far as they are declared.
#[derive(Debug, Clone)]
pub struct VariableTypes(ObjectType);

impl Default for VariableTypes {
    fn default() -> VariableTypes {
        VariableTypes(ObjectType::new(VARIABLES))
    }
}

impl VariableTypes {
    /// Declares one more. Of the type lists and maps of simple types are remembered, and otherwise nothing; nothing too
    /// of a variable that makes no sense.
    pub fn declare(&mut self, name: &str, kind: Option<&Type>) {
        let kind = kind.map_or(Type::Dyn, of_variable);
        self.0.declare(name, kind);
    }

    pub(crate) fn declare_in(&self, environment: Environment) -> Environment {
        environment.with_object(self.0.clone()).with_variable("variables", Type::object(VARIABLES))
    }
}

impl AdmissionEnvironment {
    /// The environment of expressions that may use these libraries.
    pub fn new(base: Environment) -> AdmissionEnvironment {
        AdmissionEnvironment { base, scoped: Arc::default() }
    }

    /// The libraries with all that is known of every write, but not what it is about.
    pub(crate) fn without_objects(&self) -> Environment {
        with_authorizer(with_request(with_namespace(self.base.clone())))
    }

    /// Parses and checks an expression, which may speak of a policy's own variables if there are any.
    pub fn compile(
        &self,
        expression: &str,
        scope: Scope,
        variables: Option<&VariableTypes>,
    ) -> Result<Program, Issues> {
        let environment = self.scoped[scope.index()].get_or_init(|| scope.environment(&self.base));
        match variables {
            None => environment.compile(expression),
            Some(variables) => variables.declare_in(environment.clone()).compile(expression),
        }
    }
}

/// Why what comes out of an expression is none of what is wanted.
pub fn output_problem(found: &Type, wanted: &[Type]) -> Option<String> {
    match wanted {
        _ if wanted.contains(found) => None,
        [one] => Some(format!("must evaluate to {one} but got {found}")),
        many => {
            let many: Vec<String> = many.iter().map(Type::to_string).collect();
            Some(format!("must evaluate to one of [{}] but got {found}", many.join(" ")))
        }
    }
}

/// What is remembered of the type of a variable: lists and maps of simple types, and otherwise nothing.
fn of_variable(kind: &Type) -> Type {
    match (kind.shape(), kind.params()) {
        (Some(Shape::List), [element]) => Type::list(of_variable(element)),
        (Some(Shape::Map), [key, value]) => Type::map(of_variable(key), of_variable(value)),
        (Some(_), _) => Type::Dyn,
        (None, _) => match kind {
            Type::Object(_) | Type::Param(_) | Type::Error => Type::Dyn,
            simple => simple.clone(),
        },
    }
}

fn with_authorizer(environment: Environment) -> Environment {
    environment.with_variable("authorizer", Type::object("kubernetes.authorization.Authorizer"))
}

/// A type with fields, each given by its name and type.
fn object(name: &str, fields: &[(&str, &Type)]) -> ObjectType {
    fields.iter().fold(ObjectType::new(name), |object, (name, kind)| object.with_field(name, (*kind).clone()))
}

fn with_request(environment: Environment) -> Environment {
    let text = &Type::String;
    let kind = &Type::object("kubernetes.GroupVersionKind");
    let resource = &Type::object("kubernetes.GroupVersionResource");
    let user = &Type::object("kubernetes.UserInfo");
    let texts = &Type::list(Type::String);
    let extra = &Type::map(Type::String, texts.clone());
    environment
        .with_object(object("kubernetes.GroupVersionKind", &[("group", text), ("version", text), ("kind", text)]))
        .with_object(object(
            "kubernetes.GroupVersionResource",
            &[("group", text), ("version", text), ("resource", text)],
        ))
        .with_object(object(
            "kubernetes.UserInfo",
            &[("username", text), ("uid", text), ("groups", texts), ("extra", extra)],
        ))
        .with_object(object(
            "kubernetes.AdmissionRequest",
            &[
                ("kind", kind),
                ("resource", resource),
                ("subResource", text),
                ("requestKind", kind),
                ("requestResource", resource),
                ("requestSubResource", text),
                ("name", text),
                ("namespace", text),
                ("operation", text),
                ("userInfo", user),
                ("dryRun", &Type::Bool),
                ("options", &Type::Dyn),
            ],
        ))
        .with_variable("request", Type::object("kubernetes.AdmissionRequest"))
}

fn with_namespace(environment: Environment) -> Environment {
    let text = &Type::String;
    let time = &Type::Timestamp;
    let texts = &Type::list(Type::String);
    let pairs = &Type::map(Type::String, Type::String);
    let conditions = &Type::list(Type::object("kubernetes.NamespaceCondition"));
    environment
        .with_object(object("kubernetes.NamespaceSpec", &[("finalizers", texts)]))
        .with_object(object(
            "kubernetes.NamespaceCondition",
            &[("status", text), ("type", text), ("lastTransitionTime", time), ("message", text), ("reason", text)],
        ))
        .with_object(object("kubernetes.NamespaceStatus", &[("conditions", conditions), ("phase", text)]))
        .with_object(object(
            "kubernetes.NamespaceMetadata",
            &[
                ("name", text),
                ("generateName", text),
                ("namespace", text),
                ("labels", pairs),
                ("annotations", pairs),
                ("UID", text),
                ("creationTimestamp", time),
                ("deletionGracePeriodSeconds", &Type::Int),
                ("deletionTimestamp", time),
                ("generation", &Type::Int),
                ("resourceVersion", text),
                ("finalizers", texts),
            ],
        ))
        .with_object(object(
            "kubernetes.Namespace",
            &[
                ("metadata", &Type::object("kubernetes.NamespaceMetadata")),
                ("spec", &Type::object("kubernetes.NamespaceSpec")),
                ("status", &Type::object("kubernetes.NamespaceStatus")),
            ],
        ))
        .with_variable("namespaceObject", Type::object("kubernetes.Namespace"))
}
