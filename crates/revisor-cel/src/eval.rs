//! Evaluation: [`Program::evaluate`] answers what an expression is for given values.
//!
//! A tree of steps (`eval/plan.rs`) is walked. Errors are values on the way: `||` and `&&` pass over them if the other
//! side decides. Costs are counted as the original counts them, and beside them the toil that it does not count, so
//! that time is bounded whatever an object contains.

pub(crate) mod activation;
pub(crate) mod authorization;
mod cost;
mod equality;
pub(crate) mod error;
pub(crate) mod escaping;
pub(crate) mod functions;
mod json;
pub(crate) mod list;
pub(crate) mod map;
pub(crate) mod opaque;
pub(crate) mod pattern;
pub(crate) mod plan;
#[cfg(test)]
mod tests;
pub(crate) mod value;

use std::sync::Arc;

use smallvec::SmallVec;

use self::activation::Activation;
use self::error::{Budget, EvalError};
use self::functions::Scope;
use self::map::Map;
use self::plan::{CallNode, FoldNode, Node, Path, PathStep, Plan, Selector, Start};
use self::value::{CelValue, Structure};
use crate::environment::Program;

impl Program {
    /// What the expression is, given the values of its variables. What it costs is taken from the budget, also if it
    /// fails.
    ///
    /// ```
    /// use revisor_cel::{Budget, CelValue, Environment, Type};
    /// use revisor_object::parse_json;
    /// use revisor_version::Release;
    ///
    /// let environment = Environment::new(Release { major: 1, minor: 36 }).with_variable("self", Type::Dyn);
    /// let program = environment.compile("self.replicas.all(x, x > 0)").unwrap();
    /// let object = parse_json(br#"{"replicas":[1,2,3]}"#).unwrap().value;
    ///
    /// let mut budget = Budget::default();
    /// let answer = program.evaluate(&[("self", CelValue::dynamic(&object))], &mut budget).unwrap();
    /// assert_eq!(answer.as_bool(), Some(true));
    /// assert_eq!(budget.spent(), 18);
    /// ```
    pub fn evaluate<'a>(&self, variables: &dyn Activation<'a>, budget: &mut Budget) -> Result<CelValue<'a>, EvalError> {
        evaluate(self.plan()?, variables, budget)
    }

    /// Why the expression cannot be evaluated, although it makes sense: a constant in it cannot be converted, or a
    /// pattern is none.
    pub fn flaw(&self) -> Option<EvalError> {
        self.plan().err()
    }
}

fn evaluate<'a>(plan: &Plan, variables: &dyn Activation<'a>, budget: &mut Budget) -> Result<CelValue<'a>, EvalError> {
    let mut frames = Vec::new();
    frames.resize_with(plan.folds, Frame::default);
    Evaluation { variables, budget, frames }.node(&plan.root)
}

type Outcome<'a> = Result<CelValue<'a>, EvalError>;

struct Evaluation<'p, 'e, 'a> {
    variables: &'e dyn Activation<'a>,
    budget: &'e mut Budget,
    frames: Vec<Frame<'p, 'a>>,
}

/// The variables of a fold.
#[derive(Default)]
struct Frame<'p, 'a> {
    fold: Option<&'p FoldNode>,
    /// Absent until it is asked for.
    accumulator: Option<Outcome<'a>>,
    first: Option<Outcome<'a>>,
    second: Option<Outcome<'a>>,
}

/// What was selected: a value, or the absence of an optional one.
enum Selected<'a> {
    Value(CelValue<'a>),
    Absent,
}

impl<'p, 'a> Evaluation<'p, '_, 'a> {
    fn node(&mut self, node: &'p Node) -> Outcome<'a> {
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Path(path) => {
                let outcome = self.resolve(path);
                let cost = u64::from(!matches!(path.start, Start::Choice(..)));
                self.charged(cost, outcome)
            }
            Node::Has(path) => self.has(path),
            Node::And(terms) => self.logic(terms, false),
            Node::Or(terms) => self.logic(terms, true),
            Node::Equal { negated, args } => self.equal(*negated, args),
            Node::Call(call) => self.call(call),
            Node::Among(search) => {
                let (value, constants) = &**search;
                let value = self.node(value)?;
                self.budget.toil(constants.len())?;
                for constant in constants {
                    match equality::equal(&value, constant, self.budget) {
                        Ok(true) => return Ok(CelValue::Bool(true)),
                        Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
                        _ => {}
                    }
                }
                Ok(CelValue::Bool(false))
            }
            Node::Either(args) => match self.node(&args[0])? {
                CelValue::Optional(None) => self.node(&args[1]),
                value => Ok(value),
            },
            Node::Held(args) => match self.node(&args[0])? {
                CelValue::Optional(None) => self.node(&args[1]),
                CelValue::Optional(Some(value)) => Ok((*value).clone()),
                value => Ok(value),
            },
            Node::List(elements) => {
                let outcome = self.list(elements);
                self.charged(cost::LIST, outcome)
            }
            Node::Map(entries) => {
                let outcome = self.map(entries);
                self.charged(cost::MAP, outcome)
            }
            Node::Structure(structure) => {
                let outcome = self.structure(structure);
                self.charged(cost::STRUCTURE, outcome)
            }
            Node::Fold(fold) => self.fold(fold),
        }
    }

    /// An outcome that has to be paid for, also if it is a failure.
    fn charged(&mut self, cost: u64, outcome: Outcome<'a>) -> Outcome<'a> {
        if !matches!(outcome, Err(EvalError::OverBudget)) {
            self.budget.spend(cost)?;
        }
        outcome
    }

    /// `&&` decides with `false`, `||` with `true`; if neither side decides, the first failure is the result.
    fn logic(&mut self, terms: &'p [Node; 2], decisive: bool) -> Outcome<'a> {
        let mut failure = None;
        for term in terms {
            let failed = match self.node(term) {
                Ok(CelValue::Bool(truth)) if truth == decisive => return Ok(CelValue::Bool(decisive)),
                Ok(CelValue::Bool(_)) => continue,
                Ok(_) => EvalError::no_such_overload(),
                Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
                Err(failed) => failed,
            };
            failure.get_or_insert(failed);
        }
        failure.map_or(Ok(CelValue::Bool(!decisive)), Err)
    }

    fn equal(&mut self, negated: bool, args: &'p [Node; 2]) -> Outcome<'a> {
        let outcomes = [self.node(&args[0]), self.node(&args[1])];
        let mut failure = None;
        let values = outcomes.map(|outcome| match outcome {
            Ok(value) => value,
            Err(failed) => {
                if failure.is_none() || failed == EvalError::OverBudget {
                    failure = Some(failed);
                }
                CelValue::Null
            }
        });
        self.budget.spend(cost::of_equality(negated, &values))?;
        if let Some(failed) = failure {
            return Err(failed);
        }
        let equal = equality::equal(&values[0], &values[1], self.budget);
        match equal {
            Err(EvalError::OverBudget) => Err(EvalError::OverBudget),
            // What cannot be compared is different.
            equal if negated => Ok(CelValue::Bool(equal != Ok(true))),
            equal => equal.map(CelValue::Bool),
        }
    }

    fn call(&mut self, call: &'p CallNode) -> Outcome<'a> {
        let mut args: SmallVec<[CelValue<'a>; 3]> = SmallVec::with_capacity(call.args.len());
        let mut failure = None;
        for (index, arg) in call.args.iter().enumerate() {
            match self.node(arg) {
                Ok(value) => args.push(value),
                Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
                Err(failed) if call.stops_early && index + 1 < call.args.len() => return Err(failed),
                Err(failed) => {
                    failure.get_or_insert(failed);
                    args.push(CelValue::Null);
                }
            }
        }
        if call.name == "@not_strictly_false" {
            self.budget.spend(1)?;
            let is_false = failure.is_none() && matches!(args.first(), Some(CelValue::Bool(false)));
            return Ok(CelValue::Bool(!is_false));
        }
        if !call.cost.is_of_result() {
            self.budget.spend(call.cost.reckon(&args, None))?;
        }
        if let Some(failed) = failure {
            let cost = if call.cost.is_of_result() { call.cost.reckon(&args, None) } else { 0 };
            return self.charged(cost, Err(failed));
        }
        self.budget.toil(toil_of(call, &args))?;
        let mut scope = Scope { budget: self.budget, pattern: call.pattern.as_ref() };
        let outcome = call.run(&mut scope, &mut args);
        if call.cost.is_of_result() {
            let cost = call.cost.reckon(&args, outcome.as_ref().ok());
            return self.charged(cost, outcome);
        }
        outcome
    }

    fn list(&mut self, elements: &'p [(Node, bool)]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for (element, optional) in elements {
            match self.node(element)? {
                CelValue::Optional(held) if *optional => values.extend(held.map(|held| (*held).clone())),
                value if *optional => {
                    let value = functions::display(&value);
                    let message = "cannot initialize optional list element from non-optional value";
                    return Err(EvalError::failed(format!("{message} {value}")));
                }
                value => values.push(value),
            }
        }
        Ok(CelValue::list(values))
    }

    fn map(&mut self, entries: &'p [plan::EntryNode]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.node(&entry.key)?;
            match self.node(&entry.value)? {
                CelValue::Optional(held) if entry.optional => values.extend(held.map(|held| (key, (*held).clone()))),
                value if entry.optional => return Err(not_optional(&functions::display(&key), &value)),
                value => values.push((key, value)),
            }
        }
        Ok(CelValue::Map(Map::made(values)?))
    }

    fn structure(&mut self, node: &'p plan::StructureNode) -> Outcome<'a> {
        let mut fields = Vec::with_capacity(node.fields.len());
        for (name, value, optional) in &node.fields {
            match self.node(value)? {
                CelValue::Optional(held) if *optional => {
                    fields.extend(held.map(|held| (name.clone(), (*held).clone())));
                }
                value if *optional => return Err(not_optional(name, &value)),
                value => fields.push((name.clone(), value)),
            }
        }
        Ok(CelValue::Structure(Arc::new(Structure { name: node.name.clone(), fields })))
    }

    fn fold(&mut self, fold: &'p FoldNode) -> Outcome<'a> {
        let range = self.node(&fold.range)?;
        self.frames[fold.place] = Frame { fold: Some(fold), ..Frame::default() };
        match (&range, fold.two_variables) {
            (CelValue::List(list), two) => {
                for (index, element) in list.iter().enumerate() {
                    let (first, second) = match two {
                        true => (Ok(CelValue::Int(index as i64)), Some(element)),
                        false => (element, None),
                    };
                    if !self.fold_once(fold, first, second)? {
                        break;
                    }
                }
            }
            (CelValue::Map(map), two) => {
                self.budget.toil(map.len())?;
                for key in map.keys() {
                    let second =
                        if two { Some(map.get(&key).map(|value| value.unwrap_or(CelValue::Null))) } else { None };
                    if !self.fold_once(fold, Ok(key), second)? {
                        break;
                    }
                }
            }
            (range, true) => {
                let message = format!("unsupported comprehension range type: {}", internal_name(range));
                return Err(EvalError::failed(message));
            }
            (range, false) => {
                return Err(EvalError::failed(format!("got '{}', expected iterable type", internal_name(range))));
            }
        }
        let result = self.node(&fold.result);
        self.frames[fold.place] = Frame::default();
        result
    }

    /// One round; answers whether to go on.
    fn fold_once(
        &mut self,
        fold: &'p FoldNode,
        first: Outcome<'a>,
        second: Option<Outcome<'a>>,
    ) -> Result<bool, EvalError> {
        self.budget.toil(1)?;
        let frame = &mut self.frames[fold.place];
        frame.first = Some(first);
        frame.second = second;
        match self.node(&fold.condition) {
            Ok(CelValue::Bool(false)) => return Ok(false),
            Err(EvalError::OverBudget) => return Err(EvalError::OverBudget),
            _ => {}
        }
        let accumulated = self.node(&fold.step);
        if matches!(accumulated, Err(EvalError::OverBudget)) {
            return Err(EvalError::OverBudget);
        }
        self.frames[fold.place].accumulator = Some(accumulated);
        Ok(true)
    }

    /// What a fold has accumulated; made when it is first asked for, so that what nobody uses costs nothing.
    fn accumulator(&mut self, place: usize, take: bool) -> Outcome<'a> {
        if self.frames[place].accumulator.is_none()
            && let Some(fold) = self.frames[place].fold
        {
            let init = self.node(&fold.init);
            if matches!(init, Err(EvalError::OverBudget)) {
                return init;
            }
            self.frames[place].accumulator = Some(init);
        }
        let accumulator = &mut self.frames[place].accumulator;
        let value = if take { accumulator.replace(Ok(CelValue::Null)) } else { accumulator.clone() };
        value.unwrap_or_else(|| Err(EvalError::failed("no such attribute(s): accumulator")))
    }

    /// Where a path begins, and which of its steps are left.
    fn start(&mut self, path: &'p Path) -> Result<(CelValue<'a>, &'p [PathStep]), EvalError> {
        let frame_value = |value: &Option<Outcome<'a>>| match value {
            Some(value) => value.clone(),
            None => Err(EvalError::failed("no such attribute(s): iteration variable")),
        };
        let value = match &path.start {
            Start::Variable(name) => {
                if let Some(PathStep { by: Selector::Const(CelValue::String(field)), .. }) = path.steps.first()
                    && let Some(value) = self.variables.member(name, field)
                {
                    self.budget.spend(1)?;
                    return Ok((value?, &path.steps[1..]));
                }
                match self.variables.variable(name) {
                    Some(value) => value?,
                    None => return Err(EvalError::failed(format!("no such attribute(s): {name}"))),
                }
            }
            Start::Accumulator(place) => self.accumulator(*place, false)?,
            Start::TakenAccumulator(place) => self.accumulator(*place, true)?,
            Start::First(place) => frame_value(&self.frames[*place].first)?,
            Start::Second(place) => frame_value(&self.frames[*place].second)?,
            Start::Value(node) => self.node(node)?,
            Start::Choice(condition, branches) => match self.node(condition)? {
                CelValue::Bool(truth) => self.resolve(&branches[usize::from(!truth)])?,
                _ => return Err(EvalError::no_such_overload()),
            },
        };
        Ok((value, &path.steps))
    }

    /// The value at the end of a path.
    fn resolve(&mut self, path: &'p Path) -> Outcome<'a> {
        let (value, steps) = self.start(path)?;
        if steps.is_empty() {
            return Ok(value);
        }
        let (value, mut optional) = match value {
            CelValue::Optional(None) => return Ok(CelValue::none()),
            CelValue::Optional(Some(held)) => ((*held).clone(), true),
            value => (value, false),
        };
        match self.select(value, steps, &mut optional)? {
            Selected::Absent => Ok(CelValue::none()),
            Selected::Value(value) if optional => Ok(CelValue::some(value)),
            Selected::Value(value) => Ok(value),
        }
    }

    fn select(
        &mut self,
        mut value: CelValue<'a>,
        steps: &'p [PathStep],
        optional: &mut bool,
    ) -> Result<Selected<'a>, EvalError> {
        for step in steps {
            *optional |= step.optional;
            let found = match &step.by {
                Selector::Const(by) => select_one(&value, by, *optional),
                by => self.selector(by).and_then(|by| select_one(&value, &by, *optional)),
            };
            match found {
                Ok(Some(found)) => {
                    self.budget.spend(1)?;
                    value = found;
                }
                Ok(None) => return Ok(Selected::Absent),
                Err(failed) => {
                    // What may be absent is not paid for unless it is there.
                    return Err(self
                        .charged(u64::from(!*optional), Err(failed))
                        .err()
                        .unwrap_or(EvalError::OverBudget));
                }
            }
        }
        Ok(Selected::Value(value))
    }

    fn selector(&mut self, by: &'p Selector) -> Outcome<'a> {
        match by {
            Selector::Const(value) => Ok(value.clone()),
            Selector::Path(path) => self.resolve(path),
            Selector::Value(node) => self.node(node),
        }
    }

    /// Whether what the last step of a path selects is there.
    fn has(&mut self, path: &'p Path) -> Outcome<'a> {
        let (value, steps) = self.start(path)?;
        let Some((last, steps)) = steps.split_last() else { return Ok(CelValue::Bool(true)) };
        let (value, mut optional) = match value {
            CelValue::Optional(None) => return Ok(CelValue::Bool(false)),
            CelValue::Optional(Some(held)) => ((*held).clone(), true),
            value => (value, false),
        };
        let value = match self.select(value, steps, &mut optional)? {
            Selected::Absent => return Ok(CelValue::Bool(false)),
            Selected::Value(value) => value,
        };
        let found = self.selector(&last.by).and_then(|by| qualify(&value, &by));
        match found {
            Ok(None) if optional => Ok(CelValue::Bool(false)),
            found => self.charged(1, found.map(|found| CelValue::Bool(found.is_some()))),
        }
    }
}

impl CallNode {
    /// Carries out the function.
    pub(crate) fn run<'a>(&self, scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
        (self.function)(scope, args).map_err(|error| match error {
            EvalError::Failed(message) if self.names_types && message == "no such overload" => {
                let types: Vec<&str> = args.iter().map(CelValue::type_name).collect();
                EvalError::failed(format!("no such overload: {}({})", self.name, types.join(", ")))
            }
            error => error,
        })
    }
}

/// What the arguments make a function do beyond what it costs.
fn toil_of(call: &CallNode, args: &[CelValue<'_>]) -> usize {
    let toil = |arg: &CelValue<'_>| match arg {
        CelValue::String(text) => text.len() / 64,
        CelValue::Bytes(bytes) => bytes.len() / 64,
        CelValue::List(list) if !matches!(call.name, "_+_" | "size" | "first" | "last" | "dyn") => list.len(),
        _ => 0,
    };
    args.iter().map(toil).sum()
}

/// What a key or an index selects from a value. What is not there is absent or a failure.
fn select_one<'a>(value: &CelValue<'a>, by: &CelValue<'a>, optional: bool) -> Result<Option<CelValue<'a>>, EvalError> {
    match qualify(value, by)? {
        None if !optional => Err(missing(value, by)),
        found => Ok(found),
    }
}

/// What a key or an index selects from a value, if it is there.
fn qualify<'a>(value: &CelValue<'a>, by: &CelValue<'a>) -> Result<Option<CelValue<'a>>, EvalError> {
    match value {
        CelValue::Map(map) => map.get(by),
        CelValue::List(list) => match list_index(by)? {
            Some(index) => list.get(index).transpose(),
            None => Ok(None),
        },
        CelValue::Structure(structure) => Ok(by.as_str().and_then(|name| structure.field(name)).cloned()),
        _ => Ok(None),
    }
}

/// The index that a value is; `None` if it is out of every list's bounds.
fn list_index(by: &CelValue<'_>) -> Result<Option<usize>, EvalError> {
    match by {
        CelValue::Int(index) => Ok(usize::try_from(*index).ok()),
        CelValue::Uint(index) => Ok(usize::try_from(*index).ok()),
        CelValue::Double(index) if index.fract() == 0.0 => {
            Ok((*index >= 0.0 && *index < 1e15).then_some(*index as usize))
        }
        CelValue::Double(index) => {
            Err(EvalError::failed(format!("unsupported index value {} in list", functions::double_text(*index))))
        }
        by => Err(EvalError::failed(format!("unsupported index type '{}' in list", by.type_name()))),
    }
}

fn missing(value: &CelValue<'_>, by: &CelValue<'_>) -> EvalError {
    let by = functions::display(by);
    match value {
        CelValue::List(_) => EvalError::failed(format!("index out of bounds: {by}")),
        _ => EvalError::failed(format!("no such key: {by}")),
    }
}

/// What the original calls the type of a value in its own language, where it lets that show.
fn internal_name(value: &CelValue<'_>) -> &'static str {
    match value {
        CelValue::Null => "types.Null",
        CelValue::Bool(_) => "types.Bool",
        CelValue::Int(_) => "types.Int",
        CelValue::Uint(_) => "types.Uint",
        CelValue::Double(_) => "types.Double",
        CelValue::String(_) => "types.String",
        CelValue::Bytes(_) => "types.Bytes",
        CelValue::Timestamp(_) => "types.Timestamp",
        CelValue::Duration(_) => "types.Duration",
        CelValue::Type(_) => "*types.Type",
        CelValue::Optional(_) => "*types.Optional",
        CelValue::Opaque(opaque) => opaque.type_name(),
        CelValue::List(_) => "list",
        CelValue::Map(_) => "map",
        CelValue::Structure(_) | CelValue::Preserved(_) => "object",
    }
}

fn not_optional(name: &str, value: &CelValue<'_>) -> EvalError {
    let value = functions::display(value);
    EvalError::failed(format!("cannot initialize optional entry '{name}' from non-optional value {value}"))
}
