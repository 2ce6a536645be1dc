//! [`Expressions`]: the expressions of `compute`, compiled with variables whose types are those of their places.

use std::cell::RefCell;

use revisor_cel::{Environment, Expr, ExprKind, Literal, Program, Range, SchemaType, Shape, Type};
use revisor_object::Value;
use revisor_schema::{JsonType, Structural};

use crate::program::Read;

/// What an expression may cost at most. In the items of a list it may cost so much for the largest: together they are no
/// larger than a request, and what costs more than its size is already too much for one.
const MAX_COST: u64 = 10_000_000;

/// The name that messages have for what the variables are fields of.
const VARIABLES: &str = "variables";

/// Compiles expressions, and remembers what is written out in them.
#[derive(Debug)]
pub(crate) struct Expressions<'e> {
    environment: &'e Environment,
    constants: RefCell<Vec<Value>>,
}

impl<'e> Expressions<'e> {
    pub(crate) fn new(environment: &'e Environment) -> Expressions<'e> {
        Expressions { environment, constants: RefCell::default() }
    }

    /// Compiles an expression for a place with the schema `target`.
    pub(crate) fn compile(&self, text: &str, reads: &[Read], target: &Structural) -> Result<Program, String> {
        let mut properties: Vec<(Box<str>, Structural)> =
            reads.iter().map(|read| (read.name.as_str().into(), (*read.schema).clone())).collect();
        properties.sort_by(|(one, _), (other, _)| one.cmp(other));
        let holder = Structural { kind: Some(JsonType::Object), properties, ..Structural::default() };
        let Some(variables) = SchemaType::of(&holder, false) else { return Err("has no variables".to_owned()) };
        let mut environment = self.environment.clone().with_schema(VARIABLES, &variables);
        for read in reads {
            // Of what has no type in its schema, expressions know nothing.
            let kind = variables.field(&read.name);
            let kind = kind.map_or(Type::Dyn, |kind| kind.kind(&format!("{VARIABLES}.{}", read.name)));
            environment = environment.with_variable(&read.name, kind);
        }
        let program = environment.compile(text).map_err(|issues| format!("compilation failed: {issues}"))?;
        if let Some(flaw) = program.flaw() {
            return Err(format!("cannot be evaluated: {flaw}"));
        }
        if !is_accepted(program.output_type(), target) {
            let wanted = target.kind.map_or("anything", JsonType::as_str);
            return Err(format!("is of type {}, where its place wants {wanted}", program.output_type()));
        }
        // Clients do not see this number: that nothing is larger than a request is enough to know.
        let cost = program.estimate_cost_of_variables(&variables, Some(Range::IN_REQUEST)).max;
        if cost > MAX_COST {
            return Err(format!(
                "estimated cost {cost} exceeds the limit of {MAX_COST} (try a simpler expression, or maxItems, \
                 maxProperties and maxLength in the schema of what it reads)"
            ));
        }
        gather(program.root(), &mut self.constants.borrow_mut());
        Ok(program)
    }

    /// What is written out in the expressions so far.
    pub(crate) fn constants(&self) -> Vec<Value> {
        self.constants.borrow().clone()
    }
}

/// Whether a place takes what an expression makes.
fn is_accepted(made: &Type, target: &Structural) -> bool {
    if *made == Type::Dyn || target.is_int_or_string {
        return true;
    }
    match target.kind {
        None => true,
        Some(JsonType::Boolean) => *made == Type::Bool,
        Some(JsonType::Integer) => matches!(made, Type::Int | Type::Uint),
        Some(JsonType::Number) => matches!(made, Type::Int | Type::Uint | Type::Double),
        Some(JsonType::String) => matches!(made, Type::String | Type::Bytes | Type::Timestamp | Type::Duration),
        Some(JsonType::Array) => made.shape() == Some(&Shape::List),
        Some(JsonType::Object) => matches!(made, Type::Object(_)) || made.shape() == Some(&Shape::Map),
    }
}

/// How many constants are worth a try.
const MAX_CONSTANTS: usize = 64;

fn gather(expr: &Expr, found: &mut Vec<Value>) {
    if found.len() >= MAX_CONSTANTS {
        return;
    }
    match &expr.kind {
        ExprKind::Literal(Literal::Int(number)) => found.push(Value::Int(*number)),
        ExprKind::Literal(Literal::String(text)) => found.push(Value::from(text.as_str())),
        ExprKind::Literal(_) | ExprKind::Unspecified | ExprKind::Ident(_) => {}
        ExprKind::Select(select) => gather(&select.operand, found),
        ExprKind::Call(call) => call.target.iter().chain(&call.args).for_each(|part| gather(part, found)),
        ExprKind::List(elements) => elements.iter().for_each(|element| gather(&element.value, found)),
        ExprKind::Map(entries) => entries.iter().for_each(|entry| {
            gather(&entry.key, found);
            gather(&entry.value, found);
        }),
        ExprKind::Struct(made) => made.fields.iter().for_each(|field| gather(&field.value, found)),
        ExprKind::Comprehension(fold) => {
            [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result]
                .into_iter()
                .for_each(|part| gather(part, found));
        }
    }
}
