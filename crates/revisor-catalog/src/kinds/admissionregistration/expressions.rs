//! What the expressions of webhooks and policies may speak of, and what must come out of them.
//!
//! A new expression must make sense to the oldest release that a cluster may go back to. One that was there before may
//! use all that this program knows: it was accepted once, and to refuse it now would keep its owner from changing
//! anything else.

use std::collections::HashSet;

use revisor_cel::{Environment, Library, ObjectType, Shape, Type};
use revisor_object::{FieldError, FieldPath, Object, Value};

use crate::kinds::Terms;

/// The name of the type of a policy's own variables.
const VARIABLES: &str = "kubernetes.variables";

/// The environments of expressions about writes.
pub(crate) struct Expressions {
    new: Environments,
    stored: Environments,
}

/// One environment for each set of variables that there is.
type Environments = [Environment; 8];

/// The members that are expressions, wherever they stand.
const EXPRESSIONS: [&str; 3] = ["expression", "messageExpression", "valueExpression"];

/// Where an expression stands, as far as that decides what it may speak of.
#[derive(Clone, Copy, Default)]
pub(super) struct Scope {
    /// Whether there are parameters.
    pub(super) params: bool,
    /// Whether it may ask what the user may do.
    pub(super) authorizer: bool,
    /// Whether it describes a change.
    pub(super) patch: bool,
}

impl Scope {
    fn index(self) -> usize {
        usize::from(self.params) | usize::from(self.authorizer) << 1 | usize::from(self.patch) << 2
    }
}

impl Expressions {
    pub(crate) fn new(terms: &Terms) -> Expressions {
        Expressions {
            new: environments(terms.expressions.new.clone()),
            stored: environments(terms.expressions.stored.clone()),
        }
    }

    /// The expressions of something without variables of its own, in place of what was there before.
    pub(super) fn plain(&self, old: Option<&Object>) -> Composition<'_> {
        Composition { expressions: self, variables: None, known: old.map(expressions_of).unwrap_or_default() }
    }

    /// The expressions of a policy with variables of its own, none of which are known yet.
    pub(super) fn composed(&self, old: Option<&Object>) -> Composition<'_> {
        Composition { variables: Some(ObjectType::new(VARIABLES)), ..self.plain(old) }
    }
}

fn environments(base: Environment) -> Environments {
    let plain =
        with_request(with_namespace(base)).with_variable("object", Type::Dyn).with_variable("oldObject", Type::Dyn);
    let patch = plain.clone().with_library(Library::JsonPatch).with_patch_types();
    std::array::from_fn(|index| {
        let mut environment = if index & 4 == 0 { plain.clone() } else { patch.clone() };
        if index & 1 != 0 {
            environment = environment.with_variable("params", Type::Dyn);
        }
        if index & 2 != 0 {
            environment = environment
                .with_variable("authorizer", Type::object("kubernetes.authorization.Authorizer"))
                .with_variable("authorizer.requestResource", Type::object("kubernetes.authorization.ResourceCheck"));
        }
        environment
    })
}

/// Every expression in an object.
fn expressions_of(object: &Object) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut rest: Vec<&Object> = vec![object];
    while let Some(object) = rest.pop() {
        for (name, value) in object.iter() {
            match value {
                Value::Object(member) => rest.push(member),
                Value::Array(elements) => rest.extend(elements.iter().filter_map(Value::as_object)),
                other => {
                    if let Some(text) = other.as_str().filter(|_| EXPRESSIONS.contains(&name)) {
                        found.insert(text.trim().to_owned());
                    }
                }
            }
        }
    }
    found
}

/// The expressions of one object.
pub(super) struct Composition<'a> {
    expressions: &'a Expressions,
    /// The type of `variables`, if there is such a variable.
    variables: Option<ObjectType>,
    /// The expressions that were there before.
    known: HashSet<String>,
}

impl Composition<'_> {
    /// What is wrong with an expression out of which one of `wanted` must come. `value` is what the error shows.
    pub(super) fn check(
        &self,
        path: FieldPath<'_>,
        (expression, value): (&str, &str),
        scope: Scope,
        wanted: &[Type],
    ) -> Option<FieldError> {
        let problem = match self.compile(expression, scope) {
            Err(problem) => problem,
            Ok(found) if wanted.contains(&found) => return None,
            Ok(found) => match wanted {
                [one] => format!("must evaluate to {one} but got {found}"),
                many => {
                    let many: Vec<String> = many.iter().map(Type::to_string).collect();
                    format!("must evaluate to one of [{}] but got {found}", many.join(" "))
                }
            },
        };
        Some(FieldError::invalid(path, value, problem))
    }

    /// What is wrong with the expression of a variable. Later expressions can speak of it also if something is.
    pub(super) fn add_variable(
        &mut self,
        path: FieldPath<'_>,
        name: &str,
        expression: &str,
        scope: Scope,
    ) -> Option<FieldError> {
        let compiled = self.compile(expression, scope);
        let kind = compiled.as_ref().map_or(Type::Dyn, of_variable);
        self.variables = self.variables.take().map(|variables| variables.with_field(name, kind));
        compiled.err().map(|problem| FieldError::invalid(path, expression, problem))
    }

    /// The type of what comes out of an expression.
    fn compile(&self, expression: &str, scope: Scope) -> Result<Type, String> {
        let is_known = self.known.contains(expression.trim());
        let environments = if is_known { &self.expressions.stored } else { &self.expressions.new };
        let environment = &environments[scope.index()];
        let compiled = match &self.variables {
            None => environment.compile(expression),
            Some(variables) => environment
                .clone()
                .with_object(variables.clone())
                .with_variable("variables", Type::object(VARIABLES))
                .compile(expression),
        };
        compiled.map(|program| program.output_type().clone()).map_err(|issues| format!("compilation failed: {issues}"))
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

#[cfg(test)]
mod tests {
    use revisor_cel::RuleEnvironments;
    use revisor_version::Release;

    use super::*;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn what_can_be_spoken_of_depends_on_the_place() {
        let expressions = Expressions::new(&terms());
        let scope = |params, authorizer, patch| Scope { params, authorizer, patch };
        for (text, scope, want) in [
            ("object.x == oldObject.x", scope(false, false, false), true),
            ("request.userInfo.groups.exists(g, g == 'a')", scope(false, false, false), true),
            ("namespaceObject.metadata.labels['a'] == 'b'", scope(false, false, false), true),
            ("namespaceObject.metadata.uid == ''", scope(false, false, false), false),
            ("params.x == 1", scope(false, true, true), false),
            ("params.x == 1", scope(true, false, false), true),
            ("authorizer.requestResource.check('get').allowed()", scope(true, false, true), false),
            ("authorizer.requestResource.check('get').allowed()", scope(false, true, false), true),
            ("Object{} == object", scope(true, true, false), false),
            ("Object{} == object", scope(false, false, true), true),
            ("variables.x", scope(true, true, true), false),
        ] {
            let problem = expressions.plain(None).check(FieldPath::root("e"), (text, text), scope, &[Type::Bool]);
            assert_eq!(problem.is_none(), want, "{text}: {problem:?}");
        }
    }

    #[test]
    fn variables_are_known_after_they_are_declared() {
        let expressions = Expressions::new(&terms());
        let mut policy = expressions.composed(None);
        let path = FieldPath::root("e");
        let scope = Scope::default();
        assert!(policy.add_variable(path, "a", "variables.b", scope).is_some(), "not yet");
        for (name, text) in [("b", "[object.x, 'y']"), ("c", "[1]"), ("d", "quantity('1')"), ("e", "variables.c[0]")] {
            let problem = policy.add_variable(path, name, text, scope);
            assert_eq!(problem.is_none(), name != "b", "{problem:?}");
        }
        for (text, want) in [
            ("variables.a == 1", None),
            (
                "variables.c == ['a']",
                Some("found no matching overload for '_==_' applied to '(list(int), list(string))'"),
            ),
            ("variables.d.anything == 1", None),
            ("variables.e == 'a'", Some("found no matching overload for '_==_' applied to '(int, string)'")),
            ("variables.z == 1", Some("undefined field 'z'")),
        ] {
            let problem = policy.check(path, (text, text), scope, &[Type::Bool]);
            match want {
                None => assert_eq!(problem, None, "{text}"),
                Some(want) => assert!(format!("{problem:?}").contains(want), "{text}: {problem:?}"),
            }
        }
    }

    #[test]
    fn what_comes_out_is_named_if_it_is_not_wanted() {
        let expressions = Expressions::new(&terms());
        let plain = expressions.plain(None);
        for (wanted, want) in [
            (&[Type::Bool][..], "must evaluate to bool but got dyn"),
            (&[Type::String, Type::Null], "must evaluate to one of [string null_type] but got dyn"),
        ] {
            let problem = plain.check(FieldPath::root("e"), ("object.x", "object.x"), Scope::default(), wanted);
            assert!(format!("{problem:?}").contains(want), "{problem:?}");
        }
    }

    #[test]
    fn what_was_there_before_may_use_newer_libraries() {
        let release = |minor| Environment::new(Release { major: 1, minor });
        let expressions = Expressions::new(&Terms {
            expressions: RuleEnvironments { new: release(33), stored: release(36) },
            ..terms()
        });
        let newer = "[2, 1].sort() == [1, 2]";
        let old = object(&format!(r#"{{"webhooks":[{{"matchConditions":[{{"expression":"{newer}"}}]}}]}}"#));
        let path = FieldPath::root("e");
        for (old, is_good) in [(None, false), (Some(&old), true)] {
            let policy = expressions.plain(old);
            let error = policy.check(path, (newer, newer), Scope::default(), &[Type::Bool]);
            assert_eq!(error.is_none(), is_good, "{error:?}");
        }
    }
}
