//! The expressions of webhooks and policies when they are written: whether they make sense, and what comes out of them.
//!
//! A new expression must make sense to the oldest release that a cluster may go back to. One that was there before may
//! use all that this program knows: it was accepted once, and to refuse it now would keep its owner from changing
//! anything else. What expressions may speak of is in `revisor-admission`, which evaluates them.

use std::collections::HashSet;

pub(super) use revisor_admission::Scope;
use revisor_admission::{AdmissionEnvironment, VariableTypes, output_problem};
use revisor_cel::{Program, Type};
use revisor_object::{FieldError, FieldPath, Object, Value};

use crate::kinds::Terms;

/// The environments of expressions about writes.
pub(crate) struct Expressions {
    new: AdmissionEnvironment,
    stored: AdmissionEnvironment,
}

/// The members that are expressions, wherever they stand.
const EXPRESSIONS: [&str; 3] = ["expression", "messageExpression", "valueExpression"];

impl Expressions {
    pub(crate) fn new(terms: &Terms) -> Expressions {
        Expressions {
            new: AdmissionEnvironment::new(terms.expressions.new.clone()),
            stored: AdmissionEnvironment::new(terms.expressions.stored.clone()),
        }
    }

    /// The expressions of something without variables of its own, in place of what was there before.
    pub(super) fn plain(&self, old: Option<&Object>) -> Composition<'_> {
        Composition { expressions: self, variables: None, known: old.map(expressions_of).unwrap_or_default() }
    }

    /// The expressions of a policy with variables of its own, none of which are known yet.
    pub(super) fn composed(&self, old: Option<&Object>) -> Composition<'_> {
        Composition { variables: Some(VariableTypes::default()), ..self.plain(old) }
    }
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
    /// The types of the policy's own variables, if it may have any.
    variables: Option<VariableTypes>,
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
        let program = match self.compile(expression, scope) {
            Err(problem) => return Some(FieldError::invalid(path, value, problem)),
            Ok(program) => program,
        };
        match output_problem(program.output_type(), wanted) {
            Some(problem) => Some(FieldError::invalid(path, value, problem)),
            None => flaw(path, &program),
        }
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
        if let Some(variables) = &mut self.variables {
            variables.declare(name, compiled.as_ref().ok().map(Program::output_type));
        }
        match compiled {
            Ok(program) => flaw(path, &program),
            Err(problem) => Some(FieldError::invalid(path, expression, problem)),
        }
    }

    fn compile(&self, expression: &str, scope: Scope) -> Result<Program, String> {
        let is_known = self.known.contains(expression.trim());
        let environment = if is_known { &self.expressions.stored } else { &self.expressions.new };
        let compiled = environment.compile(expression, scope, self.variables.as_ref());
        compiled.map_err(|issues| format!("compilation failed: {issues}"))
    }
}

/// What is constant is computed when the program is made, and what cannot be computed is no program.
fn flaw(path: FieldPath<'_>, program: &Program) -> Option<FieldError> {
    program.flaw().map(|flaw| FieldError::internal(path, format!("program instantiation failed: {flaw}")))
}

#[cfg(test)]
mod tests {
    use revisor_cel::{Environment, RuleEnvironments};
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
