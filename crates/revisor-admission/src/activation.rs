//! [`Inputs`]: what expressions are evaluated for, and [`Phase`]: one pass over expressions that share their variables.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::time::Duration;

use revisor_cel::{Activation, Authorization, Authorizer, Budget, CelValue, EvalError, Map, Opaque, ResourceTarget};
use revisor_object::{Object, Value};

use crate::AdmissionRequest;
use crate::expression::{Evaluated, Expression, OutOfBudget};

/// An object that is kept without its type, which stands beside it.
#[derive(Debug, Clone, Copy)]
pub struct Typed<'a> {
    /// The object.
    pub object: &'a Object,
    /// Its API version.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
}

impl<'a> Typed<'a> {
    fn value(this: Option<Typed<'a>>) -> CelValue<'a> {
        this.map_or(CelValue::Null, |typed| CelValue::Map(Map::typed(typed.object, typed.api_version, typed.kind)))
    }
}

/// The request of a write, and its value once an expression has asked for it.
#[derive(Debug)]
pub struct RequestValue<'a> {
    request: AdmissionRequest<'a>,
    value: OnceLock<Value>,
}

impl<'a> RequestValue<'a> {
    /// A request that nobody has asked for yet.
    pub fn new(request: AdmissionRequest<'a>) -> RequestValue<'a> {
        RequestValue { request, value: OnceLock::new() }
    }

    fn value(&self) -> &Value {
        self.value.get_or_init(|| self.request.to_value())
    }
}

/// What the expressions of a policy are evaluated for.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// What is known of the write.
    pub request: &'a RequestValue<'a>,
    /// The same as match conditions see it, which are asked in the version that the client speaks of.
    pub plain_request: &'a RequestValue<'a>,
    /// The object as it is to be; none if it is deleted.
    pub object: Option<Typed<'a>>,
    /// The object as it was, if there was one.
    pub old_object: Option<Typed<'a>>,
    /// The parameters, if there are any.
    pub params: Option<Typed<'a>>,
    /// The namespace, unless the object is in none.
    pub namespace: Option<&'a Object>,
    /// Who knows what the user may do.
    pub authorizer: &'a dyn Authorizer,
    /// The time, from any beginning, to tell how long evaluations take.
    pub clock: &'a dyn Fn() -> Duration,
}

impl<'a> Inputs<'a> {
    /// What `authorizer.requestResource` asks about.
    fn request_resource(&self) -> ResourceTarget {
        let request = &self.request.request;
        ResourceTarget {
            group: request.request_resource.group.to_owned(),
            resource: request.request_resource.resource.to_owned(),
            subresource: request.subresource.to_owned(),
            namespace: request.namespace.to_owned(),
            name: request.name.to_owned(),
            ..ResourceTarget::default()
        }
    }
}

/// A variable of a policy.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) expression: Expression,
}

/// What the expressions of a pass may see beyond the objects.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct View {
    /// Whether there is somebody to ask what the user may do.
    pub(crate) authorizer: bool,
    /// Whether the namespace is shown.
    pub(crate) namespace: bool,
    /// Whether the request is shown as the client made it.
    pub(crate) plain_request: bool,
}

/// One pass over expressions: each variable is evaluated at most once in it, when it is first asked for.
pub(crate) struct Phase<'v, 'a> {
    inputs: &'v Inputs<'a>,
    view: View,
    variables: &'v [Variable],
    known: RefCell<Vec<Known<'a>>>,
    /// What variables cost that were evaluated on behalf of the expression at hand.
    spent: Cell<u64>,
    remaining: u64,
}

/// What became of a variable.
#[derive(Clone)]
enum Known<'a> {
    /// Nobody asked for it.
    No,
    /// It is being evaluated. No variable can speak of itself, so nobody sees this.
    Asked,
    Value(Result<CelValue<'a>, EvalError>),
}

impl<'v, 'a> Phase<'v, 'a> {
    pub(crate) fn new(inputs: &'v Inputs<'a>, view: View, variables: &'v [Variable], budget: u64) -> Phase<'v, 'a> {
        let known = RefCell::new(vec![Known::No; variables.len()]);
        Phase { inputs, view, variables, known, spent: Cell::new(0), remaining: budget }
    }

    /// What is left of the budget.
    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Evaluates an expression, and takes what it costs from the budget.
    pub(crate) fn evaluate(&mut self, expression: &Expression) -> Result<Evaluated<'a>, OutOfBudget> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(problem) => {
                let value = Err(format!("compilation error: {problem}"));
                return Ok(Evaluated { value, elapsed: Duration::ZERO });
            }
        };
        let begun = (self.inputs.clock)();
        let mut budget = Budget::default();
        let value = program.evaluate(&*self, &mut budget);
        let elapsed = (self.inputs.clock)().saturating_sub(begun);
        let cost = self.spent.take().saturating_add(budget.spent());
        self.remaining = self.remaining.checked_sub(cost).ok_or(OutOfBudget)?;
        let value = value.map_err(|error| format!("expression '{}' resulted in error: {error}", expression.text));
        Ok(Evaluated { value, elapsed })
    }

    fn of_variable(&self, at: usize) -> Result<CelValue<'a>, EvalError> {
        if let Known::Value(value) = &self.known.borrow()[at] {
            return value.clone();
        }
        let Variable { name, expression } = &self.variables[at];
        self.known.borrow_mut()[at] = Known::Asked;
        let value = match &expression.program {
            Ok(program) => {
                let mut budget = Budget::default();
                let value = program.evaluate(self, &mut budget);
                self.spent.set(self.spent.get().saturating_add(budget.spent()));
                value.map_err(|error| {
                    EvalError::failed(format!("composited variable {name:?} fails to evaluate: {error}"))
                })
            }
            Err(problem) => Err(EvalError::failed(format!("composited variable {name:?} fails to compile: {problem}"))),
        };
        self.known.borrow_mut()[at] = Known::Value(value.clone());
        value
    }
}

impl<'a> Activation<'a> for Phase<'_, 'a> {
    fn variable(&self, name: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        let inputs = self.inputs;
        let authorization = |authorization| CelValue::Opaque(Opaque::Authorization(std::sync::Arc::new(authorization)));
        Some(Ok(match name {
            "object" => Typed::value(inputs.object),
            "oldObject" => Typed::value(inputs.old_object),
            "params" => Typed::value(inputs.params),
            "request" if self.view.plain_request => CelValue::dynamic(inputs.plain_request.value()),
            "request" => CelValue::dynamic(inputs.request.value()),
            "namespaceObject" => {
                let namespace = inputs.namespace.filter(|_| self.view.namespace);
                namespace.map_or(CelValue::Null, CelValue::object)
            }
            "authorizer" if self.view.authorizer => authorization(Authorization::authorizer(inputs.authorizer)),
            "authorizer.requestResource" if self.view.authorizer => {
                authorization(Authorization::resource(inputs.authorizer, inputs.request_resource()))
            }
            "variables" => {
                let all = self
                    .variables
                    .iter()
                    .enumerate()
                    .map(|(at, variable)| Ok((CelValue::text(variable.name.as_str()), self.of_variable(at)?)));
                return Some(all.collect::<Result<Vec<_>, EvalError>>().and_then(Map::made).map(CelValue::Map));
            }
            _ => return None,
        }))
    }

    fn member(&self, variable: &str, field: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        if variable != "variables" {
            return None;
        }
        // A name that is declared twice stands for what was declared last.
        let at = self.variables.iter().rposition(|variable| variable.name == field)?;
        Some(self.of_variable(at))
    }
}
