//! Tables of expressions with what they cost and what they are. A table begins with the value of `self`; each of its
//! rows is a cost, an expression and its result, which fails if it begins with `ERR`, and cannot even be planned if it
//! begins with `PROGRAM`.

use std::cell::Cell;

use revisor_object::{Value, parse_json};
use revisor_schema::{Additional, JsonType, Structural};
use revisor_version::Release;

use super::functions;
use crate::eval::opaque::Opaque;
use crate::{
    Activation, Authorization, Authorizer, Budget, CelValue, Decision, Environment, EvalError, ObjectType, Program,
    Question, Target, Type,
};

const RELEASE: Release = Release { major: 1, minor: 36 };

fn environment(kind: Type) -> Environment {
    Environment::new(RELEASE).with_variable("self", kind)
}

fn json(text: &str) -> Value {
    parse_json(text.as_bytes()).expect("is JSON").value
}

/// A value as the tables write it.
fn shown(value: &CelValue<'_>) -> String {
    match value {
        CelValue::Null => "null".to_owned(),
        CelValue::Bool(truth) => truth.to_string(),
        CelValue::Int(number) => format!("i:{number}"),
        CelValue::Uint(number) => format!("u:{number}"),
        CelValue::Double(number) => format!("d:{}", functions::double_text(*number)),
        CelValue::String(text) => format!("s:{}", Value::from(&**text).to_json()),
        CelValue::Bytes(bytes) => format!("b:{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        CelValue::Timestamp(_) => format!("t:{}", functions::display(value)),
        CelValue::Duration(_) => format!("dur:{}", functions::display(value)),
        CelValue::Type(kind) => format!("T:{}", kind.runtime_name()),
        CelValue::Optional(None) => "none".to_owned(),
        CelValue::Optional(Some(held)) => format!("some({})", shown(held)),
        CelValue::List(list) => format!("[{}]", list.iter().map(outcome).collect::<Vec<_>>().join(",")),
        CelValue::Map(map) => {
            let entry = |key: &CelValue<'_>| {
                let value = map.get(key).map(|value| value.unwrap_or(CelValue::Null));
                format!("{}={}", shown(key), outcome(value))
            };
            let mut entries: Vec<String> = map.keys().iter().map(entry).collect();
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        CelValue::Opaque(Opaque::Quantity { quantity, .. }) => format!("kubernetes.Quantity:{quantity}"),
        CelValue::Opaque(Opaque::Url(url)) => format!("kubernetes.URL:{url}"),
        CelValue::Opaque(Opaque::Ip(_) | Opaque::Cidr(_)) => {
            format!("{}:{}", value.type_name(), functions::display(value))
        }
        value => value.type_name().to_owned(),
    }
}

fn outcome(outcome: Result<CelValue<'_>, EvalError>) -> String {
    outcome.map_or_else(|error| format!("ERR {error}"), |value| shown(&value))
}

/// How the value of a table is seen.
#[derive(Clone, Copy)]
enum View<'a> {
    Dynamic,
    Schema(&'a Structural),
    Resource(&'a Structural),
}

/// Evaluates all rows of a table, and says where they differ.
fn check(table: &str, environment: &Environment, view: View<'_>) {
    let mut lines = table.lines();
    let value = json(lines.next().and_then(|line| line.strip_prefix("# ")).expect("a table begins with a value"));
    let bound = match view {
        View::Dynamic => CelValue::dynamic(&value),
        View::Schema(schema) => CelValue::with_schema(&value, schema).expect("fits its schema"),
        View::Resource(schema) => CelValue::resource(&value, schema).expect("fits its schema"),
    };
    let mut wrong = Vec::new();
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[cost, expression, want] = columns.as_slice() else { panic!("{line} is no row") };
        let program = environment.compile(expression).unwrap_or_else(|issues| panic!("{expression}: {issues}"));
        let mut budget = Budget::default();
        let got = match program.flaw() {
            Some(flaw) => format!("PROGRAM {flaw}"),
            None => outcome(program.evaluate(&[("self", bound.clone())], &mut budget)),
        };
        if got != want || budget.spent().to_string() != cost {
            wrong.push(format!("{expression}\n  want {want} for {cost}\n  got  {got} for {}", budget.spent()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn expressions_are_and_cost_what_they_should() {
    check(include_str!("tests/dynamic.txt"), &environment(Type::Dyn), View::Dynamic);
}

/// Each row of this table has its own value, after the result.
#[test]
fn libraries_read_what_the_original_reads() {
    let environment = environment(Type::Dyn);
    let mut wrong = Vec::new();
    for line in include_str!("tests/libraries.txt").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[cost, expression, want, value] = columns.as_slice() else { panic!("{line} is no row") };
        let program = environment.compile(expression).unwrap_or_else(|issues| panic!("{expression}: {issues}"));
        let (value, mut budget) = (json(value), Budget::default());
        let got = outcome(program.evaluate(&[("self", CelValue::dynamic(&value))], &mut budget));
        if got != want || budget.spent().to_string() != cost {
            wrong.push(format!("{line}\n  got  {got} for {}", budget.spent()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Expressions as deep as they may be are evaluated on a stack of ordinary size.
#[test]
fn deep_expressions_are_evaluated() {
    let mut list = "1".to_owned();
    let mut choice = "true".to_owned();
    for _ in 0..100 {
        list = format!("[{list}]");
        choice = format!("(self ? {choice} : false)");
    }
    for expression in [
        format!("{list} == {list}"),
        choice,
        ["self"; 2000].join(" && "),
        format!("{}self", "!".repeat(200)),
        format!("{} == 200", ["1"; 200].join(" + ")),
    ] {
        let got = evaluate(&expression, Type::Bool, CelValue::Bool(true), &mut Budget::default());
        assert_eq!(got, "true", "{expression:.40}");
    }
}

/// The type of the values of a schema, and the types with fields in it.
fn type_of(schema: &Structural, name: &str, environment: &mut Environment) -> Option<Type> {
    if schema.is_int_or_string {
        return Some(Type::Dyn);
    }
    let format = schema.checks.as_ref().map_or("", |checks| &checks.format);
    Some(match schema.kind? {
        JsonType::Object => {
            if let Some(Additional::Schema(member)) = &schema.additional {
                return Some(Type::map(Type::String, type_of(member, name, environment)?));
            }
            let mut object = ObjectType::new(name);
            for (field, property) in &schema.properties {
                let Some(escaped) = super::escaping::escape(field) else { continue };
                if let Some(kind) = type_of(property, &format!("{name}.{escaped}"), environment) {
                    object = object.with_field(&escaped, kind);
                }
            }
            if schema.is_embedded_resource {
                object = with_metadata(object, name, environment);
            }
            *environment = environment.clone().with_object(object);
            Type::object(name)
        }
        JsonType::Array => Type::list(type_of(schema.items.as_ref()?, &format!("{name}.items"), environment)?),
        JsonType::String => match format {
            "date" | "date-time" => Type::Timestamp,
            "duration" => Type::Duration,
            "byte" => Type::Bytes,
            _ => Type::String,
        },
        JsonType::Integer => Type::Int,
        JsonType::Number => Type::Double,
        JsonType::Boolean => Type::Bool,
    })
}

fn with_metadata(object: ObjectType, name: &str, environment: &mut Environment) -> ObjectType {
    let metadata = format!("{name}.metadata");
    let fields = ObjectType::new(&metadata).with_field("name", Type::String).with_field("generateName", Type::String);
    *environment = environment.clone().with_object(fields);
    object
        .with_field("apiVersion", Type::String)
        .with_field("kind", Type::String)
        .with_field("metadata", Type::object(&metadata))
}

fn schema() -> Structural {
    Structural::read(json(include_str!("tests/schema.json")).as_object().expect("is an object"))
}

#[test]
fn values_are_seen_through_their_schema() {
    let schema = schema();
    let mut environment = Environment::new(RELEASE);
    let kind = type_of(&schema, "Self", &mut environment).expect("has a type");
    let environment = environment.with_variable("self", kind);
    for table in [include_str!("tests/schema.txt"), include_str!("tests/mismatch.txt")] {
        check(table, &environment, View::Schema(&schema));
    }
}

#[test]
fn whole_resources_have_their_metadata() {
    let mut schema = schema();
    schema.is_embedded_resource = true;
    let mut environment = Environment::new(RELEASE);
    let kind = type_of(&schema, "Self", &mut environment).expect("has a type");
    schema.is_embedded_resource = false;
    let environment = environment.with_variable("self", kind);
    check(include_str!("tests/resource.txt"), &environment, View::Resource(&schema));
}

fn evaluate<'a>(expression: &str, kind: Type, value: CelValue<'a>, budget: &mut Budget) -> String {
    let program = environment(kind).compile(expression).unwrap_or_else(|issues| panic!("{expression}: {issues}"));
    outcome(program.evaluate(&[("self", value)], budget))
}

#[test]
fn an_evaluation_ends_where_its_budget_does() {
    for (limit, want, spent) in [
        (7, "true", 7),
        (6, "ERR operation cancelled: actual cost limit exceeded", 7),
        (0, "ERR operation cancelled: actual cost limit exceeded", 1),
    ] {
        let mut budget = Budget::new(limit);
        let value = json("[1]");
        let got = evaluate("self.all(x, x > 0)", Type::list(Type::Int), CelValue::dynamic(&value), &mut budget);
        assert_eq!((got.as_str(), budget.spent()), (want, spent), "within {limit}");
    }
    // Nothing passes over it.
    let mut budget = Budget::new(3);
    let got = evaluate("self + self + self == 'x' || true", Type::String, CelValue::text("a"), &mut budget);
    assert_eq!(got, "ERR operation cancelled: actual cost limit exceeded");
}

/// What is cheap by the count of costs must still end in reasonable time with large values.
#[test]
fn toil_that_costs_leave_out_is_bounded() {
    let elements = vec![Value::from("x"); 50_000];
    let value = Value::from(vec![Value::from(elements.clone()), Value::from(elements)]);
    let over_budget = "ERR operation cancelled: actual cost limit exceeded";
    for expression in [
        "self[0].exists_one(x, self[1].exists_one(y, false))",
        "self[0].all(x, size(self[0] + self[1]) > 0)",
        "self[0].all(x, self == self)",
        "self[0].all(x, self[0].isSorted())",
        "self[0].distinct() == []",
        "self[0].join('').split('').all(x, self[0].join('').size() > 0)",
        "lists.range(9223372036854775807) == []",
    ] {
        let mut budget = Budget::new(100_000);
        let got = evaluate(expression, Type::list(Type::list(Type::String)), CelValue::dynamic(&value), &mut budget);
        assert_eq!(got, over_budget, "{expression}");
    }
}

#[test]
fn lists_grow_in_place() {
    let mut budget = Budget::new(100_000_000);
    let value = Value::from(vec![Value::from("x"); 300_000]);
    let got = evaluate(
        "self.map(x, x + 'y').filter(x, true).transformMap(i, x, x).size()",
        Type::list(Type::String),
        CelValue::dynamic(&value),
        &mut budget,
    );
    assert_eq!(got, "i:300000");
}

#[test]
fn programs_can_be_shared_among_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Program>();
}

/// Computes a variable when it is asked for.
struct Lazy {
    asked: Cell<u32>,
}

impl<'a> Activation<'a> for Lazy {
    fn variable(&self, name: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        (name == "self").then(|| {
            self.asked.set(self.asked.get() + 1);
            Ok(CelValue::Int(5))
        })
    }

    fn member(&self, variable: &str, field: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        match (variable, field) {
            ("variables", "ready") => Some(Ok(CelValue::Bool(true))),
            ("variables", "broken") => Some(Err(EvalError::failed("cannot be computed"))),
            _ => None,
        }
    }
}

#[test]
fn variables_are_asked_for_when_they_are_used() {
    let environment = environment(Type::Int).with_variable("variables", Type::map(Type::String, Type::Bool));
    for (expression, want, asked, spent) in [
        ("true || self > 3", "true", 0, 0),
        ("self > 3", "true", 1, 2),
        ("variables.ready", "true", 0, 2),
        ("variables.ready && self == 5", "true", 1, 4),
        ("variables.broken", "ERR cannot be computed", 0, 2),
        ("variables.broken || true", "true", 0, 2),
        ("variables.gone", "ERR no such attribute(s): variables", 0, 1),
    ] {
        let program = environment.compile(expression).expect("makes sense");
        let (lazy, mut budget) = (Lazy { asked: Cell::new(0) }, Budget::default());
        let got = outcome(program.evaluate(&lazy, &mut budget));
        assert_eq!((got.as_str(), lazy.asked.get(), budget.spent()), (want, asked, spent), "{expression}");
    }
}

/// Allows to get, and to do whatever a service account called `admin` wants.
#[derive(Debug)]
struct Permissions;

impl Authorizer for Permissions {
    fn authorize(&self, question: &Question) -> Decision {
        let admin = question.service_account.as_ref().is_some_and(|account| account.name == "admin");
        let what = match &question.target {
            Target::Path(path) => path.clone(),
            Target::Resource(target) => format!("{}/{}/{}", target.group, target.resource, target.name),
        };
        Decision { allowed: admin || question.verb == "get", reason: what, error: None }
    }
}

#[test]
fn permissions_are_asked_for() {
    let kind = Type::object("kubernetes.authorization.Authorizer");
    for (expression, want, spent) in [
        ("self.path('/healthz').check('get').allowed()", "true", 350_003),
        ("self.path('/healthz').check('post').allowed()", "false", 350_003),
        ("self.path(' ').check('post').allowed()", "ERR path must not be empty", 350_003),
        (
            "self.group('apps').resource('deployments').name('a').check('get').reason()",
            "s:\"apps/deployments/a\"",
            350_005,
        ),
        ("self.serviceAccount('ns', 'admin').group('').resource('pods').check('create').allowed()", "true", 350_005),
        (
            "self.serviceAccount('ns', 'A').group('').resource('pods').check('create').allowed()",
            "ERR Invalid service account name",
            350_005,
        ),
        ("self.path('/').check('get').errored()", "false", 350_003),
        ("self.path('/').check('get').error()", "s:\"\"", 350_003),
        ("self.group('').resource('pods').labelSelector('a=b').check('get').allowed()", "true", 350_115),
    ] {
        let value =
            CelValue::Opaque(Opaque::Authorization(std::sync::Arc::new(Authorization::authorizer(&Permissions))));
        let mut budget = Budget::default();
        let got = evaluate(expression, kind.clone(), value, &mut budget);
        assert_eq!((got.as_str(), budget.spent()), (want, spent), "{expression}");
    }
}
