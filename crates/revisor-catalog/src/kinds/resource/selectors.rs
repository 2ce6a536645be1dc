//! The expressions by which devices are selected.

use std::sync::OnceLock;

use revisor_cel::{Environment, Library, ObjectType, RuleEnvironments, Type};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use crate::Feature;
use crate::kinds::Terms;

/// The longest expression of a selector.
const MAX_EXPRESSION_BYTES: usize = 10 * 1024;

/// What the expressions of selectors may speak of. New ones must make sense to the release to which a cluster may go
/// back; those that were there before may use all that this program knows. Made when the first selector is written.
pub(crate) struct Selectors {
    libraries: RuleEnvironments,
    has_consumable_capacity: bool,
    new: OnceLock<Environment>,
    stored: OnceLock<Environment>,
}

impl Selectors {
    pub(crate) fn new(terms: &Terms) -> Selectors {
        Selectors {
            libraries: terms.expressions.clone(),
            has_consumable_capacity: terms.features.has(Feature::DRAConsumableCapacity),
            new: OnceLock::new(),
            stored: OnceLock::new(),
        }
    }

    /// What a selector may speak of that is new, or `is_stored` already.
    fn environment(&self, is_stored: bool) -> &Environment {
        let RuleEnvironments { new, stored } = &self.libraries;
        let (made, libraries) = if is_stored { (&self.stored, stored) } else { (&self.new, new) };
        made.get_or_init(|| self.about_device(libraries))
    }

    fn about_device(&self, libraries: &Environment) -> Environment {
        let by_domain = |kind| Type::map(Type::String, Type::map(Type::String, kind));
        let mut device = ObjectType::new("kubernetes.DRADevice").with_field("driver", Type::String);
        if self.has_consumable_capacity {
            device = device.with_field("allowMultipleAllocations", Type::Bool);
        }
        let device = device
            .with_field("attributes", by_domain(Type::Any))
            .with_field("capacity", by_domain(Type::object("kubernetes.Quantity")));
        libraries
            .clone()
            .with_library(Library::Bindings)
            .with_object(device)
            .with_variable("device", Type::object("kubernetes.DRADevice"))
    }

    /// What is wrong with a selector of devices that is new, or `is_stored` already.
    pub(super) fn validate(&self, path: FieldPath<'_>, selector: &Object, is_stored: bool) -> FieldErrors {
        let Some(cel) = selector.object("cel") else {
            return FieldErrors::from([FieldError::required(path.child("cel"), "")]);
        };
        let path = path.child("cel");
        let path = path.child("expression");
        let expression = cel.str("expression").unwrap_or_default();
        if expression.len() > MAX_EXPRESSION_BYTES {
            return FieldErrors::from([FieldError::too_long(path, MAX_EXPRESSION_BYTES)]);
        }
        let problem = match self.environment(is_stored).compile(expression) {
            Err(issues) => format!("compilation failed: {issues}"),
            // An attribute may well be a boolean.
            Ok(program) if matches!(program.output_type(), Type::Bool | Type::Any) => return FieldErrors::new(),
            Ok(program) => format!("must evaluate to bool or the unknown type, not {}", program.output_type()),
        };
        FieldErrors::from([FieldError::invalid(path, expression, problem)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::terms;

    #[test]
    fn selectors_speak_of_a_device() {
        let selectors = Selectors::new(&terms());
        for (expression, want) in [
            ("device.driver == 'a'", None),
            ("device.attributes['a'].isFast", None),
            ("cel.bind(a, device.attributes['a'], a.x && a.y > 1)", None),
            ("device.capacity['a'].memory.isGreaterThan(quantity('1Gi'))", None),
            ("device.allowMultipleAllocations", None),
            ("device.driver", Some("must evaluate to bool or the unknown type, not string")),
            ("device.name == 'a'", Some("compilation failed: ERROR: <input>:1:7: undefined field 'name'")),
            ("", Some("compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting")),
        ] {
            let mut cel = Object::new();
            cel.object_mut("cel").set("expression", Some(expression.into()));
            let errors = selectors.validate(FieldPath::root("s"), &cel, false);
            match want {
                None => assert_eq!(errors, [], "{expression}"),
                Some(want) => assert!(format!("{errors:?}").contains(want), "{expression}: {errors:?}"),
            }
        }
    }
}
