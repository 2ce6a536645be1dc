//! [`Plan`]: an expression made ready to be evaluated, once.
//!
//! Names are replaced by places, functions by what carries them out, and what does not depend on anything by its value.
//! Costs follow the shape of the plan: a name with all the fields and indexes after it is one step, and constants are
//! free.

use std::sync::Arc;

use regex::Regex;

use super::cost::CallCost;
use super::error::{Budget, EvalError};
use super::functions::{self, Function, Scope};
use super::pattern;
use super::value::{Blob, CelValue, Text};
use crate::ast::{Call, Comprehension, Expr, ExprId, ExprKind, Literal, Struct};
use crate::environment::{Program, Reference};
use crate::types::{Shape, Type};

/// An expression that is ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) root: Node,
    /// How many folds there are. Each has a place for its variables; none is ever inside itself.
    pub(crate) folds: usize,
}

/// A step.
#[derive(Debug)]
pub(crate) enum Node {
    Const(CelValue<'static>),
    /// A name or a value with what is selected from it.
    Path(Box<Path>),
    /// Whether the last thing that is selected is there.
    Has(Box<Path>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Equal {
        negated: bool,
        args: Box<[Node; 2]>,
    },
    Call(Box<CallNode>),
    /// Whether a value is among constants.
    Among(Box<(Node, Vec<CelValue<'static>>)>),
    /// An optional that has a value, or else another.
    Either(Box<[Node; 2]>),
    /// What an optional holds, or else a value.
    Held(Box<[Node; 2]>),
    List(Vec<(Node, bool)>),
    Map(Vec<EntryNode>),
    Structure(Box<StructureNode>),
    Fold(Box<FoldNode>),
}

/// Where something begins, and what is selected from it, one after the other.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) start: Start,
    pub(crate) steps: Vec<PathStep>,
}

#[derive(Debug)]
pub(crate) enum Start {
    /// A variable that the caller brings.
    Variable(Box<str>),
    /// What the fold at this place accumulates.
    Accumulator(usize),
    /// The same, and nobody will ask for it again.
    TakenAccumulator(usize),
    /// The element that the fold at this place is at, or its index or key if there are two variables.
    First(usize),
    /// The second variable of the fold at this place.
    Second(usize),
    Value(Node),
    /// One of two paths, which cost nothing by themselves here.
    Choice(Node, Box<[Path; 2]>),
}

#[derive(Debug)]
pub(crate) struct PathStep {
    pub(crate) by: Selector,
    /// Whether what is not there makes the whole absent, rather than fail.
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum Selector {
    Const(CelValue<'static>),
    Path(Path),
    Value(Node),
}

#[derive(Debug)]
pub(crate) struct CallNode {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    pub(crate) args: Vec<Node>,
    pub(crate) cost: CallCost,
    /// The pattern that the function searches for, if it is written out.
    pub(crate) pattern: Option<Regex>,
    /// Whether arguments after one that fails are left alone.
    pub(crate) stops_early: bool,
    /// Whether errors say which types were given.
    pub(crate) names_types: bool,
}

#[derive(Debug)]
pub(crate) struct EntryNode {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct StructureNode {
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<(Arc<str>, Node, bool)>,
}

#[derive(Debug)]
pub(crate) struct FoldNode {
    pub(crate) place: usize,
    pub(crate) range: Node,
    pub(crate) two_variables: bool,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

/// Makes a checked expression ready. Fails if a constant cannot be converted or a pattern is none.
pub(crate) fn plan(program: &Program) -> Result<Plan, EvalError> {
    let mut planner = Planner { program, folds: 0, scopes: Vec::new() };
    let root = planner.node(program.root())?;
    Ok(Plan { root, folds: planner.folds })
}

struct Planner<'a> {
    program: &'a Program,
    folds: usize,
    scopes: Vec<LocalName>,
}

struct LocalName {
    name: String,
    role: Role,
    place: usize,
}

#[derive(Clone, Copy)]
enum Role {
    Accumulator,
    First,
    Second,
}

impl Planner<'_> {
    fn node(&mut self, expr: &Expr) -> Result<Node, EvalError> {
        match &expr.kind {
            ExprKind::Unspecified => Err(EvalError::failed("unsupported expr")),
            ExprKind::Literal(literal) => Ok(Node::Const(constant(literal))),
            ExprKind::Ident(name) => Ok(self.ident(expr.id, name)),
            ExprKind::Select(select) => {
                let operand = self.node(&select.operand)?;
                let mut path = path_of(operand);
                let by = Selector::Const(CelValue::text(select.field.clone()));
                path.steps.push(PathStep { by, optional: false });
                Ok(if select.test { Node::Has(path) } else { Node::Path(path) })
            }
            ExprKind::Call(call) => self.call(expr.id, call),
            ExprKind::List(elements) => {
                let mut nodes = Vec::with_capacity(elements.len());
                for element in elements {
                    nodes.push((self.node(&element.value)?, element.optional));
                }
                Ok(fold_list(nodes))
            }
            ExprKind::Map(entries) => {
                let mut nodes = Vec::with_capacity(entries.len());
                for entry in entries {
                    let (key, value) = (self.node(&entry.key)?, self.node(&entry.value)?);
                    nodes.push(EntryNode { key, value, optional: entry.optional });
                }
                fold_map(nodes)
            }
            ExprKind::Struct(object) => self.structure(object),
            ExprKind::Comprehension(fold) => self.fold(fold),
        }
    }

    fn ident(&self, id: ExprId, name: &str) -> Node {
        let local = self.scopes.iter().rev().find(|local| local.name == name);
        let start = match local {
            Some(LocalName { role: Role::Accumulator, place, .. }) => Start::Accumulator(*place),
            Some(LocalName { role: Role::First, place, .. }) => Start::First(*place),
            Some(LocalName { role: Role::Second, place, .. }) => Start::Second(*place),
            None => {
                let kind = self.program.type_of(id);
                if let Some(Shape::Type) = kind.and_then(Type::shape) {
                    let of = kind.and_then(|kind| kind.params().first()).cloned();
                    return Node::Const(CelValue::Type(of.unwrap_or_else(|| Type::compound(Shape::Type, vec![]))));
                }
                Start::Variable(name.into())
            }
        };
        Node::Path(Box::new(Path { start, steps: Vec::new() }))
    }

    fn structure(&mut self, object: &Struct) -> Result<Node, EvalError> {
        let mut fields = Vec::with_capacity(object.fields.len());
        for field in &object.fields {
            fields.push((field.name.as_str().into(), self.node(&field.value)?, field.optional));
        }
        Ok(Node::Structure(Box::new(StructureNode { name: object.name.as_str().into(), fields })))
    }

    fn call(&mut self, id: ExprId, call: &Call) -> Result<Node, EvalError> {
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for arg in call.target.iter().chain(&call.args) {
            args.push(self.node(arg)?);
        }
        let pair = |args: Vec<Node>| <Box<[Node; 2]>>::try_from(args).map_err(|_| EvalError::no_such_overload());
        match call.function.as_str() {
            "_&&_" => return Ok(Node::And(pair(args)?)),
            "_||_" => return Ok(Node::Or(pair(args)?)),
            "_==_" => return Ok(Node::Equal { negated: false, args: pair(args)? }),
            "_!=_" => return Ok(Node::Equal { negated: true, args: pair(args)? }),
            "_?_:_" => return choice(args),
            "_[_]" => return index(*pair(args)?, false),
            "_?._" | "_[?_]" => return index(*pair(args)?, true),
            "or" => return Ok(Node::Either(pair(args)?)),
            "orValue" => return Ok(Node::Held(pair(args)?)),
            _ => {}
        }
        let overloads: &[&'static str] = match self.program.reference(id) {
            Some(Reference::Overloads(overloads)) => overloads,
            _ => &[],
        };
        // Which signature is meant is known beforehand only if there is one.
        let overload = if let [overload] = overloads { overload } else { "" };
        let Some((name, function)) = functions::find(&call.function, overload) else {
            return Err(EvalError::failed(format!("no such overload: {}", call.function)));
        };
        let operator = functions::is_operator(name);
        let pattern = match (name, args.get(1)) {
            ("matches" | "find" | "findAll", Some(Node::Const(CelValue::String(text)))) => {
                Some(pattern::compile(text)?)
            }
            _ => None,
        };
        let mut node = CallNode {
            name,
            function,
            cost: CallCost::of(name, overload),
            stops_early: args.len() > 2 || pattern.is_some() || (overload.is_empty() && !operator),
            names_types: functions::names_types(name),
            pattern,
            args,
        };
        if overload == "in_list"
            && let Some(among) = among(&mut node)
        {
            return Ok(among);
        }
        if functions::is_conversion(name)
            && let [Node::Const(value)] = node.args.as_slice()
        {
            let mut budget = Budget::new(u64::MAX);
            let mut scope = Scope { budget: &mut budget, pattern: None };
            return node.run(&mut scope, &mut [value.clone()]).map(Node::Const);
        }
        Ok(Node::Call(Box::new(node)))
    }

    fn fold(&mut self, fold: &Comprehension) -> Result<Node, EvalError> {
        let place = self.folds;
        self.folds += 1;
        let init = self.node(&fold.init)?;
        let range = self.node(&fold.range)?;
        let outside = self.scopes.len();
        let mut local = |name: &str, role| self.scopes.push(LocalName { name: name.to_owned(), role, place });
        local(&fold.accumulator, Role::Accumulator);
        let with_accumulator = outside + 1;
        local(&fold.variable, Role::First);
        if let Some(name) = &fold.second_variable {
            local(name, Role::Second);
        }
        // The accumulator comes before the variables if they have one name.
        let hidden = |name: &str| name == fold.accumulator;
        self.scopes
            .retain(|local| local.place != place || matches!(local.role, Role::Accumulator) || !hidden(&local.name));
        let condition = self.node(&fold.condition)?;
        let mut step = self.node(&fold.step)?;
        self.scopes.truncate(with_accumulator);
        let result = self.node(&fold.result)?;
        self.scopes.truncate(outside);
        take_accumulator(&mut step, place);
        let two_variables = fold.second_variable.is_some();
        Ok(Node::Fold(Box::new(FoldNode { place, range, two_variables, init, condition, step, result })))
    }
}

fn constant(literal: &Literal) -> CelValue<'static> {
    match literal {
        Literal::Null => CelValue::Null,
        Literal::Bool(truth) => CelValue::Bool(*truth),
        Literal::Int(number) => CelValue::Int(*number),
        Literal::Uint(number) => CelValue::Uint(*number),
        Literal::Double(number) => CelValue::Double(*number),
        Literal::String(text) => CelValue::String(Text::Owned(text.as_str().into())),
        Literal::Bytes(bytes) => CelValue::Bytes(Blob::Owned(bytes.as_slice().into())),
    }
}

/// The path that a node is, or one that begins with it.
fn path_of(node: Node) -> Box<Path> {
    match node {
        Node::Path(path) => path,
        node => Box::new(Path { start: Start::Value(node), steps: Vec::new() }),
    }
}

fn choice(args: Vec<Node>) -> Result<Node, EvalError> {
    let Ok([condition, truthy, falsy]) = <[Node; 3]>::try_from(args) else {
        return Err(EvalError::no_such_overload());
    };
    let branches = Box::new([*path_of(truthy), *path_of(falsy)]);
    Ok(Node::Path(Box::new(Path { start: Start::Choice(condition, branches), steps: Vec::new() })))
}

fn index([operand, index]: [Node; 2], optional: bool) -> Result<Node, EvalError> {
    let mut path = path_of(operand);
    let by = match index {
        Node::Const(value) => Selector::Const(value),
        Node::Path(path) => Selector::Path(*path),
        node => Selector::Value(node),
    };
    path.steps.push(PathStep { by, optional });
    Ok(Node::Path(path))
}

/// A list of constants is a constant.
fn fold_list(nodes: Vec<(Node, bool)>) -> Node {
    let constants: Option<Vec<CelValue<'static>>> = nodes
        .iter()
        .map(|(node, optional)| match node {
            Node::Const(value) if !optional => Some(value.clone()),
            _ => None,
        })
        .collect();
    match constants {
        Some(elements) => Node::Const(CelValue::list(elements)),
        None => Node::List(nodes),
    }
}

/// A map of constants is a constant.
fn fold_map(nodes: Vec<EntryNode>) -> Result<Node, EvalError> {
    let constants: Option<Vec<(CelValue<'static>, CelValue<'static>)>> = nodes
        .iter()
        .map(|entry| match (&entry.key, &entry.value) {
            (Node::Const(key), Node::Const(value)) if !entry.optional => Some((key.clone(), value.clone())),
            _ => None,
        })
        .collect();
    match constants {
        Some(entries) => Ok(Node::Const(CelValue::Map(super::map::Map::made(entries)?))),
        None => Ok(Node::Map(nodes)),
    }
}

/// A search in a list of constants, which is free but for what is searched for.
fn among(call: &mut CallNode) -> Option<Node> {
    let Node::Const(CelValue::List(list)) = call.args.get(1)? else { return None };
    if list.is_empty() {
        return Some(Node::Const(CelValue::Bool(false)));
    }
    let elements = list.to_vec().ok()?;
    let simple = |value: &CelValue<'_>| {
        use CelValue::{Bool, Double, Int, String, Uint};
        matches!(value, Bool(_) | Int(_) | Uint(_) | Double(_) | String(_))
    };
    if !elements.iter().all(simple) {
        return None;
    }
    Some(Node::Among(Box::new((call.args.swap_remove(0), elements))))
}

/// Lets a step that adds to what is accumulated take it, so that it grows in place: nothing else can ask for it.
fn take_accumulator(step: &mut Node, place: usize) {
    match step {
        Node::Call(call) if matches!(call.name, "_+_" | "cel.@mapInsert") => {
            if let Some(Node::Path(path)) = call.args.first_mut()
                && path.steps.is_empty()
                && matches!(path.start, Start::Accumulator(at) if at == place)
            {
                path.start = Start::TakenAccumulator(place);
            }
        }
        Node::Path(path) if path.steps.is_empty() => {
            if let Start::Choice(_, branches) = &mut path.start {
                for branch in branches.iter_mut().filter(|branch| branch.steps.is_empty()) {
                    if let Start::Value(node) = &mut branch.start {
                        take_accumulator(node, place);
                    }
                }
            }
        }
        _ => {}
    }
}
