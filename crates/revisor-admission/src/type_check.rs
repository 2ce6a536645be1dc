//! [`TypeCheck`]: what is odd about the expressions of a ValidatingAdmissionPolicy, given the types of the objects that it
//! is about. The odd is told in the status of the policy, and keeps it from nothing.

use std::sync::Arc;

use revisor_cel::{Environment, SchemaType, Type};
use revisor_object::{Object, Value};

use crate::GroupVersionKind;
use crate::environment::{AdmissionEnvironment, VariableTypes};
use crate::validating_policy::ParamKind;

/// Against how many types one rule of a policy is checked at most.
pub const MOST_TYPES: usize = 10;

/// A type that a policy is about.
#[derive(Debug, Clone)]
pub struct CheckedType<'a> {
    /// What it is called.
    pub kind: GroupVersionKind<'a>,
    /// What is known of it.
    pub schema: Option<Arc<SchemaType>>,
}

/// Something odd about an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionWarning {
    /// Where the expression stands.
    pub field: String,
    /// What is odd, for each type for which it is.
    pub warning: String,
}

/// What a policy is checked against.
#[derive(Debug)]
pub struct TypeCheck<'a> {
    /// The libraries.
    pub environment: &'a AdmissionEnvironment,
    /// The types of objects, in the order in which they are told.
    pub types: &'a [CheckedType<'a>],
    /// What is known of the parameters.
    pub params: Option<Arc<SchemaType>>,
}

impl TypeCheck<'_> {
    /// What is odd about a policy, as `TypeChecker.Check` of the original finds it.
    pub fn check(&self, policy: &Object) -> Vec<ExpressionWarning> {
        let empty = Object::new();
        let spec = policy.object("spec").unwrap_or(&empty);
        let environments: Vec<(GroupVersionKind<'_>, Environment)> =
            self.types.iter().map(|checked| (checked.kind, self.environment_of(checked, spec))).collect();
        let mut warnings = Vec::new();
        for (at, validation) in spec.array("validations").iter().enumerate() {
            for member in ["expression", "messageExpression"] {
                let text = validation.as_object().and_then(|validation| validation.str(member)).unwrap_or_default();
                if member == "messageExpression" && text.is_empty() {
                    continue;
                }
                let problems = environments.iter().filter_map(|(kind, environment)| {
                    let issues = environment.compile(text).err()?;
                    Some(format!("{kind}: {issues}\n"))
                });
                let problems: Vec<String> = problems.collect();
                if !problems.is_empty() {
                    let field = format!("spec.validations[{at}].{member}");
                    warnings.push(ExpressionWarning { field, warning: problems.join("\n") });
                }
            }
        }
        warnings
    }

    /// What expressions may speak of if the object is of a type, with the variables of the policy.
    fn environment_of(&self, checked: &CheckedType<'_>, spec: &Object) -> Environment {
        let mut environment = self.environment.without_objects();
        let declare = |environment: Environment, names: &[&str], schema: Option<&Arc<SchemaType>>, kind: String| {
            let (mut environment, found) = match schema {
                Some(schema) => (environment.with_schema(&kind, schema), schema.kind(&kind)),
                None => (environment, Type::Dyn),
            };
            for name in names {
                environment = environment.with_variable(name, found.clone());
            }
            environment
        };
        environment =
            declare(environment, &["object", "oldObject"], checked.schema.as_ref(), format!("{}0", checked.kind.kind));
        if let Some(kind) = ParamKind::read(spec) {
            environment = declare(environment, &["params"], self.params.as_ref(), format!("{}1", kind.kind));
        }
        let mut variables = VariableTypes::default();
        for variable in spec.array("variables").iter().filter_map(Value::as_object) {
            let text = variable.str("expression").unwrap_or_default();
            let program = variables.declare_in(environment.clone()).compile(text).ok();
            let kind = program.as_ref().map(|program| program.output_type());
            variables.declare(variable.str("name").unwrap_or_default(), kind);
        }
        variables.declare_in(environment)
    }
}

#[cfg(test)]
mod tests;
