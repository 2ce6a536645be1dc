//! [`Expression`]: an expression of a policy with what became of it when it was compiled, and what it came to.

use std::fmt;
use std::time::Duration;

use revisor_cel::{CelValue, Program, Type};

use crate::environment::{AdmissionEnvironment, Scope, VariableTypes, output_problem};

/// An expression of a policy or webhook that is evaluated again and again.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    /// The program, or what is wrong with it. It was right when it was stored, but that may have been another release.
    pub(crate) program: Result<Program, String>,
}

impl Expression {
    /// Compiles an expression out of which one of `wanted` must come.
    pub(crate) fn compile(
        environment: &AdmissionEnvironment,
        text: &str,
        scope: Scope,
        variables: Option<&VariableTypes>,
        wanted: &[Type],
    ) -> Expression {
        let program = environment
            .compile(text, scope, variables)
            .map_err(|issues| format!("compilation failed: {issues}"))
            .and_then(|program| match output_problem(program.output_type(), wanted) {
                Some(problem) => Err(problem),
                None => Ok(program),
            })
            .and_then(|program| match program.flaw() {
                Some(flaw) => Err(format!("program instantiation failed: {flaw}")),
                None => Ok(program),
            });
        Expression { text: text.to_owned(), program }
    }
}

/// What an expression came to.
#[derive(Debug)]
pub(crate) struct Evaluated<'a> {
    /// The value, or why there is none.
    pub(crate) value: Result<CelValue<'a>, String>,
    /// How long it took.
    pub(crate) elapsed: Duration,
}

/// The budget of a policy is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

impl fmt::Display for OutOfBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("validation failed due to running out of cost budget, no further validation rules will be run")
    }
}

/// What sort of error a decision is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorType {
    /// None.
    NoError,
    /// An expression makes no sense.
    CompileError,
    /// An expression cannot be answered, or the answer is no.
    InvalidError,
    /// The budget was spent.
    OutOfBudget,
}

impl ErrorType {
    /// The name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorType::NoError => "no_error",
            ErrorType::CompileError => "compile_error",
            ErrorType::InvalidError => "invalid_error",
            ErrorType::OutOfBudget => "out_of_budget",
        }
    }

    /// What the original takes an error with this message for.
    pub(crate) fn of_message(message: &str) -> ErrorType {
        match message {
            _ if message.starts_with("compilation") => ErrorType::CompileError,
            _ if message.starts_with("validation failed due to running out of cost budget") => ErrorType::OutOfBudget,
            _ => ErrorType::InvalidError,
        }
    }
}
