//! What an expression costs to evaluate, before there are values: [`Program::estimate_cost`].
//!
//! Costs and sizes are ranges. Of literals the size is known, of what a schema describes its bounds, and of everything
//! that is computed what follows from its parts. Which functions cost what is in `cost/functions.rs`.
//!
//! Clients see these numbers: a definition whose rules are too costly is refused. So they are what they are in every
//! Kubernetes server, also where they could be better.

mod functions;
mod path;
mod range;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::ast::{Call, Comprehension, Element, Entry, Expr, ExprId, ExprKind, Literal, Select};
use crate::environment::{Program, Reference};
use crate::macros::OLD_ACCUMULATOR;
use crate::schema_types::SchemaType;
use crate::types::{Shape, Type};

use functions::CallCost;
use path::Path;
pub use range::Range;

/// What a literal list, map or object costs beside what is in it.
const NEW_LIST: Range = Range::fixed(10);
const NEW_MAP: Range = Range::fixed(30);
const NEW_OBJECT: Range = Range::fixed(40);

/// What a name or a field costs, and also a call of which nothing else is known.
const ONE: Range = Range::fixed(1);

impl Program {
    /// What the expression costs to evaluate. The sizes of its variables are those of `schema`.
    pub fn estimate_cost(&self, schema: Option<&SchemaType>) -> Range {
        self.estimate(schema, false, None)
    }

    /// What an expression of named variables costs to evaluate: each of them is a field of `variables`. What they say
    /// nothing about is of the size `otherwise`, or may be as large as there are numbers.
    pub fn estimate_cost_of_variables(&self, variables: &SchemaType, otherwise: Option<Range>) -> Range {
        self.estimate(Some(variables), true, otherwise)
    }

    fn estimate(&self, schema: Option<&SchemaType>, has_variables: bool, otherwise: Option<Range>) -> Range {
        let mut estimator = Estimator {
            program: self,
            schema,
            has_variables,
            otherwise,
            paths: HashMap::new(),
            sizes: HashMap::new(),
            entries: HashMap::new(),
            locals: HashMap::new(),
        };
        estimator.cost(self.root())
    }
}

/// The sizes of what is in a list or a map.
#[derive(Debug, Clone, Copy)]
struct Entries {
    of_list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn or(self, other: Entries) -> Entries {
        Entries { of_list: self.of_list, key: self.key.or(other.key), value: self.value.or(other.value) }
    }
}

/// What a path leads to, as far as its size is known.
#[derive(Debug, Clone, Copy)]
enum Sized<'a> {
    Value(&'a SchemaType),
    /// A key of a map, and how long it may be.
    Key(i64),
}

/// A variable of a fold.
#[derive(Debug, Clone)]
struct Local {
    path: Path,
    size: Option<Range>,
    entries: Option<Entries>,
}

/// A part of an expression, as the estimates for functions see it.
#[derive(Debug)]
struct Node<'a> {
    expr: Option<&'a Expr>,
    kind: Type,
    path: Path,
    size: Option<Range>,
}

impl Node<'_> {
    fn size_or_unknown(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

struct Estimator<'a> {
    program: &'a Program,
    schema: Option<&'a SchemaType>,
    /// Whether variables are fields of what the schema describes, and not each the whole of it.
    has_variables: bool,
    /// The size of what nothing is known of.
    otherwise: Option<Range>,
    paths: HashMap<ExprId, Path>,
    /// The sizes that were computed.
    sizes: HashMap<ExprId, Range>,
    entries: HashMap<ExprId, Entries>,
    /// The variables of the folds around the place at hand, by name, innermost last.
    locals: HashMap<&'a str, Vec<Local>>,
}

impl<'a> Estimator<'a> {
    fn cost(&mut self, expr: &'a Expr) -> Range {
        match &expr.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) => Range::ZERO,
            ExprKind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => Path::default().then(name),
                };
                self.paths.insert(expr.id, path);
                ONE
            }
            ExprKind::Select(select) => self.select(expr.id, select),
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(elements) => self.list(expr.id, elements),
            ExprKind::Map(entries) => self.map(expr.id, entries),
            ExprKind::Struct(object) => {
                object.fields.iter().fold(NEW_OBJECT, |sum, field| sum.plus(self.cost(&field.value)))
            }
            ExprKind::Comprehension(fold) if is_binding(fold) => self.binding(expr.id, fold),
            ExprKind::Comprehension(fold) => self.comprehension(expr.id, fold),
        }
    }

    fn select(&mut self, id: ExprId, select: &'a Select) -> Range {
        let mut sum = self.cost(&select.operand);
        if select.test {
            // Whether something is there is asked for free.
            return sum;
        }
        let kind = self.kind(&select.operand);
        if matches!(kind, Type::Object(_) | Type::Param(_)) || kind.shape() == Some(&Shape::Map) {
            sum = sum.plus(ONE);
        }
        let path = self.path(&select.operand).then(&select.field);
        self.paths.insert(id, path);
        sum
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Range {
        if call.function == "dyn"
            && let [arg] = call.args.as_slice()
        {
            // Only the type is forgotten.
            let cost = self.cost(arg);
            self.copy_sizes(expr.id, arg);
            return ONE.plus(cost);
        }
        let mut args = Vec::with_capacity(call.args.len());
        let mut costs = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            costs.push(self.cost(arg));
            args.push(self.node(arg));
        }
        let program = self.program;
        let Some(Reference::Overloads(overloads)) = program.reference(expr.id) else { return Range::ZERO };
        let mut sum = Range::ZERO;
        let target = call.target.as_ref().map(|target| {
            sum = sum.plus(self.cost(target));
            self.node(target)
        });
        // Which signature is meant may show only later: the range covers all of them.
        let mut cost = Range { min: u64::MAX, max: 0 };
        let mut size: Option<Range> = None;
        for overload in overloads {
            let found = self.function(expr, &call.function, overload, target.as_ref(), &args, &costs);
            cost = cost.or(found.cost);
            size = match (size, found.size) {
                (Some(before), Some(found)) => Some(before.or(found)),
                (before, found) => before.or(found),
            };
            let step = match *overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(step), Some(container)) = (step, call.args.first()) {
                size = self.entries(container).map(|entries| entries.value);
                let path = self.path(container).then(step);
                self.paths.insert(expr.id, path);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        self.set_size(expr.id, size);
        sum.plus(cost)
    }

    fn list(&mut self, id: ExprId, elements: &'a [Element]) -> Range {
        let mut sum = NEW_LIST;
        let mut sizes = Range { min: if elements.is_empty() { 0 } else { u64::MAX }, max: 0 };
        for element in elements {
            sum = sum.plus(self.cost(&element.value));
            sizes = sizes.or(self.size_or_unknown(&element.value));
        }
        self.entries.insert(id, Entries { of_list: true, key: ONE, value: sizes });
        sum
    }

    fn map(&mut self, id: ExprId, entries: &'a [Entry]) -> Range {
        let mut sum = NEW_MAP;
        let mut keys = Range { min: if entries.is_empty() { 0 } else { u64::MAX }, max: 0 };
        let mut values = keys;
        for entry in entries {
            sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            keys = keys.or(self.size_or_unknown(&entry.key));
            values = values.or(self.size_or_unknown(&entry.value));
        }
        self.entries.insert(id, Entries { of_list: false, key: keys, value: values });
        sum
    }

    fn comprehension(&mut self, id: ExprId, fold: &'a Comprehension) -> Range {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        let accumulated =
            Local { path: self.path(&fold.init), entries: self.entries(&fold.init), size: self.size(&fold.init) };
        self.push(&fold.accumulator, accumulated);

        let entries = self.entries(&fold.range);
        let of_list = match entries {
            Some(entries) => entries.of_list,
            None => self.kind(&fold.range).shape() == Some(&Shape::List),
        };
        let key = entries.map(|entries| entries.key);
        let value = entries.map(|entries| entries.value);
        let mut variable = |name: &'a str, step: &str, size: Option<Range>| {
            let path = self.path(&fold.range).then(step);
            self.push(name, Local { path, size, entries: None });
        };
        match &fold.second_variable {
            Some(second) => {
                variable(&fold.variable, if of_list { "@indices" } else { "@keys" }, key);
                variable(second, if of_list { "@items" } else { "@values" }, value);
            }
            None if of_list => variable(&fold.variable, "@items", value),
            None => variable(&fold.variable, "@keys", key),
        }
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.pop(&fold.variable);
        if let Some(second) = &fold.second_variable {
            self.pop(second);
        }
        sum = sum.plus(self.cost(&fold.result));
        self.pop(&fold.accumulator);

        let count = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&fold.init);
                self.set_size(id, size);
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.set_size(id, Some(count));
                if let Some(entries) = self.entries(&fold.step) {
                    self.entries.insert(id, entries);
                }
            }
            _ => {}
        }
        sum.plus(count.times(step.plus(condition)))
    }

    /// A fold over nothing that only gives a name to a value.
    fn binding(&mut self, id: ExprId, fold: &'a Comprehension) -> Range {
        let sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        let bound =
            Local { path: self.path(&fold.init), entries: self.entries(&fold.init), size: self.size(&fold.init) };
        self.push(&fold.accumulator, bound);
        let sum = sum.plus(self.cost(&fold.result));
        self.pop(&fold.accumulator);
        self.copy_sizes(id, &fold.result);
        sum
    }

    fn function(
        &mut self,
        expr: &'a Expr,
        function: &str,
        overload: &str,
        target: Option<&Node<'a>>,
        args: &[Node<'a>],
        costs: &[Range],
    ) -> CallCost {
        let of_args = costs.iter().fold(Range::ZERO, |sum, cost| sum.plus(*cost));
        let found = self.extension(overload, target, args).or_else(|| self.library(function, overload, target, args));
        if let Some(found) = found {
            return CallCost { cost: found.cost.plus(of_args), size: found.size };
        }
        match (overload, args, costs) {
            // The second may not be evaluated at all.
            ("logical_or" | "logical_and", [..], [left, right]) => {
                CallCost { cost: Range { min: left.min, max: left.plus(*right).max }, size: None }
            }
            ("conditional", [_, yes, no], [condition, if_yes, if_no]) => {
                let entries = match (yes.expr, no.expr) {
                    (Some(yes), Some(no)) => self.entries(yes).zip(self.entries(no)),
                    _ => None,
                };
                if let Some((yes, no)) = entries {
                    self.entries.insert(expr.id, yes.or(no));
                }
                let size = yes.size_or_unknown().or(no.size_or_unknown());
                CallCost { cost: condition.plus(if_yes.or(*if_no)), size: Some(size) }
            }
            ("add_string" | "add_bytes" | "add_list", [left, right], _) => {
                let size = left.size_or_unknown().plus(right.size_or_unknown());
                let entries = match (left.expr, right.expr) {
                    (Some(left), Some(right)) => self.entries(left).zip(self.entries(right)),
                    _ => None,
                };
                if let Some((left, right)) = entries {
                    self.entries.insert(expr.id, left.or(right));
                }
                let cost = if overload == "add_list" { ONE } else { size.scaled(functions::PER_CHARACTER) };
                CallCost { cost: cost.plus(of_args), size: Some(size) }
            }
            _ => {
                let found = functions::standard(overload, target, args).unwrap_or(CallCost { cost: ONE, size: None });
                CallCost { cost: found.cost.plus(of_args), size: found.size }
            }
        }
    }

    fn node(&mut self, expr: &'a Expr) -> Node<'a> {
        let path = self.path(expr);
        let size = self.size(expr).or(self.otherwise);
        Node { expr: Some(expr), kind: self.kind(expr).clone(), path, size }
    }

    fn kind(&self, expr: &Expr) -> &'a Type {
        self.program.type_of(expr.id).unwrap_or(&Type::Dyn)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.get(name)?.last()
    }

    fn push(&mut self, name: &'a str, local: Local) {
        self.locals.entry(name).or_default().push(local);
    }

    fn pop(&mut self, name: &str) {
        if let Some(locals) = self.locals.get_mut(name) {
            locals.pop();
        }
    }

    fn set_size(&mut self, id: ExprId, size: Option<Range>) {
        if let Some(size) = size {
            self.sizes.insert(id, size);
        }
    }

    fn copy_sizes(&mut self, id: ExprId, from: &'a Expr) {
        let size = self.size(from);
        self.set_size(id, size);
        if let Some(entries) = self.entries(from) {
            self.entries.insert(id, entries);
        }
    }

    fn size_or_unknown(&mut self, expr: &'a Expr) -> Range {
        self.size(expr).or(self.otherwise).unwrap_or(Range::UNKNOWN)
    }

    fn size(&mut self, expr: &'a Expr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = written_size(expr) {
            return Some(Range::fixed(size));
        }
        if let Some(size) = self.size_by_schema(&self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.kind(expr)) {
            return Some(ONE);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    /// What the schema says of the size at the end of a path. The path begins at the value that the schema describes,
    /// whatever variable it is that it begins with, unless it says of itself what the variables are.
    fn size_by_schema(&self, path: &Path) -> Option<Range> {
        if path.is_empty() {
            return None;
        }
        let skipped = usize::from(!self.has_variables);
        let end = path.follow(Sized::Value(self.schema?), skipped, |at, step| {
            let Sized::Value(at) = at else { return None };
            match step {
                "@items" | "@values" => Some(Sized::Value(at.element()?)),
                "@keys" => Some(Sized::Key(at.longest_key()?)),
                name => Some(Sized::Value(at.sized_field(name)?)),
            }
        })?;
        let most = match end {
            Sized::Value(value) => value.most,
            Sized::Key(longest) => longest,
        };
        Some(Range { min: 0, max: most as u64 })
    }

    fn entries(&self, expr: &Expr) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&expr.id) {
            return Some(*entries);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.entries,
            _ => None,
        }
    }
}

fn is_binding(fold: &Comprehension) -> bool {
    matches!(&fold.range.kind, ExprKind::List(elements) if elements.is_empty())
        && matches!(fold.condition.kind, ExprKind::Literal(Literal::Bool(false)))
        && fold.accumulator != OLD_ACCUMULATOR
}

/// The size of what is written out.
fn written_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => text.chars().count() as u64,
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        ExprKind::Literal(_) => 1,
        ExprKind::List(elements) => elements.len() as u64,
        ExprKind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}

/// Whether all values of the type have the same size.
fn is_scalar(kind: &Type) -> bool {
    match kind {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        _ => kind.optional_value().is_some_and(is_scalar),
    }
}
