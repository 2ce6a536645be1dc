//! The expressions by which devices are selected.

use std::sync::{Arc, OnceLock};

use revisor_cel::{Environment, Library, ObjectType, Program, RuleEnvironments, SchemaType, Type};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use crate::Feature;
use crate::kinds::Terms;

/// The longest expression of a selector.
const MAX_EXPRESSION_BYTES: usize = 10 * 1024;

/// What the expression of a selector may cost to evaluate for one device (`CELSelectorExpressionMaxCost`).
const MAX_COST: u64 = 1_000_000;

/// How long the names of drivers, domains of attributes and attributes may be, and the text of an attribute.
const MAX_DRIVER: i64 = 63;
const MAX_DOMAIN: i64 = 63;
const MAX_ID: i64 = 32;
const MAX_ATTRIBUTE: i64 = 64;

/// How many attributes and capacities a device may have.
const MAX_ATTRIBUTES: i64 = 32;

/// What the expressions of selectors may speak of. New ones must make sense to the release to which a cluster may go
/// back; those that were there before may use all that this program knows. Made when the first selector is written.
pub(crate) struct Selectors {
    libraries: RuleEnvironments,
    has_consumable_capacity: bool,
    /// Whether attributes may be lists, which shows only when a device is at hand.
    has_list_attributes: bool,
    new: OnceLock<Environment>,
    stored: OnceLock<Environment>,
    /// How large a device and its parts may be.
    variables: OnceLock<Arc<SchemaType>>,
}

impl Selectors {
    pub(crate) fn new(terms: &Terms) -> Selectors {
        Selectors {
            libraries: terms.expressions.clone(),
            has_consumable_capacity: terms.features.has(Feature::DRAConsumableCapacity),
            has_list_attributes: terms.features.has(Feature::DRAListTypeAttributes),
            new: OnceLock::new(),
            stored: OnceLock::new(),
            variables: OnceLock::new(),
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
            .with_field("attributes", by_domain(if self.has_list_attributes { Type::Dyn } else { Type::Any }))
            .with_field("capacity", by_domain(Type::object("kubernetes.Quantity")));
        let mut environment = libraries.clone().with_library(Library::Bindings);
        if self.has_list_attributes {
            environment = environment.with_library(Library::DeviceAttributes);
        }
        environment.with_object(device).with_variable("device", Type::object("kubernetes.DRADevice"))
    }

    /// What an expression may cost to evaluate.
    fn cost(&self, program: &Program) -> u64 {
        program.estimate_cost_of_variables(self.variables.get_or_init(variables), None).max
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
        let program = match self.environment(is_stored).compile(expression) {
            Ok(program) => program,
            Err(issues) => {
                let problem = format!("compilation failed: {issues}");
                return FieldErrors::from([FieldError::invalid(path, expression, problem)]);
            }
        };
        match program.output_type() {
            // An attribute may well be a boolean.
            Type::Bool | Type::Any => {}
            Type::Dyn if self.has_list_attributes => {}
            other => {
                let problem = format!("must evaluate to bool or the unknown type, not {other}");
                return FieldErrors::from([FieldError::invalid(path, expression, problem)]);
            }
        }
        if self.cost(&program) > MAX_COST {
            return FieldErrors::from([FieldError::forbidden(path, "too complex, exceeds cost limit")]);
        }
        FieldErrors::new()
    }
}

/// The only variable, and how large it may be, part by part.
fn variables() -> Arc<SchemaType> {
    let by_domain = |members| SchemaType::sized_map(MAX_DOMAIN, members, MAX_ATTRIBUTES, false);
    // A list of values is shorter than a text may be, so the same bound holds for both.
    let attributes = SchemaType::sized_map(MAX_ID, SchemaType::sized(Type::Any, MAX_ATTRIBUTE), MAX_ATTRIBUTES, true);
    let quantities = SchemaType::sized(Type::object("kubernetes.Quantity"), 0);
    let capacities = SchemaType::sized_map(MAX_ID, quantities, MAX_ATTRIBUTES, false);
    let device = SchemaType::sized_object([
        ("driver", SchemaType::sized(Type::String, MAX_DRIVER)),
        ("allowMultipleAllocations", SchemaType::sized(Type::Bool, 1)),
        ("attributes", by_domain(attributes)),
        ("capacity", by_domain(capacities)),
    ]);
    SchemaType::sized_object([("device", device)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::terms;

    /// The costs are those that the original finds.
    #[test]
    fn expressions_cost_what_the_parts_of_a_device_can_be() {
        let plain = Selectors::new(&terms());
        let features = terms().features.with(Feature::DRAListTypeAttributes);
        let lists = Selectors::new(&Terms { features, ..terms() });
        let cost = |selectors: &Selectors, expression: &str| {
            selectors.cost(&selectors.environment(false).compile(expression).expect(expression))
        };
        for (expression, want) in [
            ("device.attributes.all(d, device.attributes[d].all(k, device.attributes[d][k] == 'a'))", 10_499),
            ("device.attributes.all(d, true)", 99),
            ("device.attributes['a'].all(d, true)", 100),
            ("device.attributes['a']['b'] == 'a'", 5),
            ("device.attributes['a'].b", 4),
            ("device.attributes.all(d, d == 'a')", 163),
            ("device.attributes.all(d, device.attributes[d]['x'] == 'a')", 291),
            ("device.attributes.all(d, d.contains('abc'))", 355),
            ("device.attributes['a'].b.matches('^a.*b$')", 18),
            ("device.attributes['a'].exists(k, k.startsWith('x'))", 196),
            ("device.driver.contains('abcdefghij')", 9),
            ("device.driver.matches('[a-z]+')", 16),
            (
                "device.capacity.all(d, device.capacity[d].all(k, device.capacity[d][k].isGreaterThan(quantity('1'))))",
                11_523,
            ),
            ("device.capacity['a'].b.compareTo(quantity('1Gi')) > 0", 7),
            ("cel.bind(a, device.attributes['a'], a.x.lowerAscii() == a.y)", 31),
            ("device.allowMultipleAllocations == (device.driver == 'a')", 6),
            ("device.attributes['a']['b'] == device.attributes['a']['c']", 15),
            ("device.attributes.exists(d, device.attributes.exists(e, device.attributes.exists(f, d == e)))", 433_379),
            ("device.capacity['a'].exists(k, device.capacity['a'][k] == quantity('1'))", 356),
            ("device.attributes['a'].b.findAll('[a-z]').all(x, x.size() < 3)", 403),
            ("device.attributes.map(d, d + device.driver).all(x, x.matches('a+'))", 1_454),
            ("device.attributes['a'].b.isGreaterThan(semver('1.0.0'))", 6),
            ("device.attributes['a'].b in ['a','b','c']", 17),
            ("device.capacity['a'].b.isLessThan(device.capacity['a'].c)", 9),
        ] {
            assert_eq!(cost(&plain, expression), want, "{expression}");
            assert_eq!(cost(&lists, expression), want, "{expression}, where attributes may be lists");
        }
        for (expression, want) in [
            ("device.attributes['a'].b.includes('x')", 52),
            ("device.attributes['a'].b.exists(x, x == 'a')", 389),
            ("[1,2].includes(1)", 58),
        ] {
            assert_eq!(cost(&lists, expression), want, "{expression}");
            assert!(plain.environment(false).compile(expression).is_err(), "{expression} is for lists");
        }
    }

    #[test]
    fn what_costs_too_much_is_refused() {
        let selectors = Selectors::new(&terms());
        let pairs = |inner: &str| format!("device.attributes.all(d1, device.attributes.all(e1, {inner}))");
        for (expression, is_taken) in [
            ("device.attributes['a'].b.split('').map(x, x + 'a').join('') == 'b'".to_string(), false),
            (pairs("device.attributes.all(d, d.contains('abc'))"), true),
            (pairs("device.attributes.all(f1, device.attributes.all(d, d.contains('abc')))"), false),
        ] {
            let mut cel = Object::new();
            cel.object_mut("cel").set("expression", Some(expression.as_str().into()));
            let errors = selectors.validate(FieldPath::root("s"), &cel, false);
            let want = if is_taken { "" } else { "s.cel.expression: Forbidden: too complex, exceeds cost limit" };
            let told: String = errors.iter().map(ToString::to_string).collect();
            assert_eq!(told, want, "{expression}");
        }
    }

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
