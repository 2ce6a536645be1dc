//! How fast to scale, as the annotation of the first version has it: with capital letters, as the original's own type
//! is written.

use revisor_object::{Object, Quantity, Value};

use super::go_json::{Member, json, list, object};

/// The members of both forms, those of rules first.
const RULES: [(&str, &str); 3] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Tolerance", "tolerance"),
];
const POLICY: [(&str, &str); 3] = [("Type", "type"), ("Value", "value"), ("PeriodSeconds", "periodSeconds")];

/// The JSON of the annotation.
pub(super) fn to_v1(behavior: &Object) -> String {
    object([("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")].map(|(name, from)| {
        let rules = behavior.object(from);
        Member::given(name, rules.map_or_else(|| "null".to_owned(), rules_to_v1))
    }))
}

fn rules_to_v1(rules: &Object) -> String {
    let written = |(name, from)| Member::given(name, rules.get(from).map_or_else(|| "null".to_owned(), json));
    let policies = rules.array("policies").iter().filter_map(Value::as_object);
    let policies = policies.map(|policy| object(POLICY.map(|(name, from)| Member::of(name, policy.get(from)))));
    let [window, select, tolerance] = RULES.map(written);
    let policies = if rules.contains("policies") { list(policies) } else { "null".to_owned() };
    object([window, select, Member::given("Policies", policies), tolerance])
}

/// What the annotation says; nothing if it is not such, or says nothing.
pub(super) fn to_v2(value: &Value) -> Option<Object> {
    let found = value.as_object()?;
    let mut behavior = Object::new();
    for (name, to) in [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")] {
        if let Some(rules) = member(found, name) {
            behavior.insert(to, rules_to_v2(rules.as_object()?)?);
        }
    }
    (!behavior.is_empty()).then_some(behavior)
}

fn rules_to_v2(found: &Object) -> Option<Object> {
    let mut rules = Object::new();
    for (name, to) in RULES {
        if let Some(value) = member(found, name) {
            rules.insert(to, checked(to, value)?);
        }
    }
    // Policies are not made up here: without any the behavior is refused later.
    let policies = member(found, "Policies").map_or(Some(&[][..]), Value::as_array)?;
    let policies = policies.iter().map(|policy| {
        let found = policy.as_object()?;
        let mut policy = Object::new();
        for (name, to) in POLICY {
            if let Some(value) = member(found, name) {
                policy.insert(to, checked(to, value)?);
            }
        }
        Some(Value::Object(policy))
    });
    rules.insert("policies", policies.collect::<Option<Vec<Value>>>()?);
    Some(rules)
}

/// A value of the type that its field has.
fn checked(name: &str, value: &Value) -> Option<Value> {
    Some(match name {
        "type" | "selectPolicy" => Value::from(value.as_str()?),
        "tolerance" => quantity(value)?,
        _ => Value::from(i64::from(i32::try_from(value.as_i64()?).ok()?)),
    })
}

/// A quantity in its one form; nothing if it is none.
pub(super) fn quantity(value: &Value) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.to_string(),
        Value::Int(_) | Value::Float(_) => value.to_json(),
        _ => return None,
    };
    Quantity::parse(&text).ok().map(|quantity| Value::from(quantity.to_string()))
}

/// A member that is given. Go does not care about the case of its letters.
pub(super) fn member<'o>(object: &'o Object, name: &str) -> Option<&'o Value> {
    let exact = object.get(name);
    let found =
        exact.or_else(|| object.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value));
    found.filter(|value| !value.is_null())
}
