//! [`Activation`]: the values that an evaluation is given.

use super::error::EvalError;
use super::value::CelValue;

/// Where the values of variables come from.
///
/// A list of names and values is one. Callers whose values are costly to come by implement it themselves and compute
/// them when they are asked for; they are asked again each time, so they should remember the answer.
pub trait Activation<'a> {
    /// The value of a variable, if there is one.
    fn variable(&self, name: &str) -> Option<Result<CelValue<'a>, EvalError>>;

    /// The field of a variable, where the variable as a whole is not at hand. Asked first for `variable.field`.
    fn member(&self, _variable: &str, _field: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        None
    }
}

impl<'a> Activation<'a> for [(&str, CelValue<'a>)] {
    fn variable(&self, name: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| Ok(value.clone()))
    }
}

impl<'a, const N: usize> Activation<'a> for [(&str, CelValue<'a>); N] {
    fn variable(&self, name: &str) -> Option<Result<CelValue<'a>, EvalError>> {
        self.as_slice().variable(name)
    }
}
