//! [`EvalError`]: why an evaluation has no result, and [`Budget`]: what it may cost.

/// Why an evaluation has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The expression cannot be answered for these values.
    #[error("{0}")]
    Failed(String),
    /// It costs more than it may.
    #[error("operation cancelled: actual cost limit exceeded")]
    OverBudget,
}

impl EvalError {
    /// A failure with this message.
    pub fn failed(message: impl Into<String>) -> EvalError {
        EvalError::Failed(message.into())
    }

    /// A function was given what it does not take. Callers explain this one further, as it says so little.
    pub(crate) fn no_such_overload() -> EvalError {
        EvalError::failed("no such overload")
    }

    /// Whether a function was given what it does not take.
    pub fn is_no_such_overload(&self) -> bool {
        matches!(self, EvalError::Failed(message) if message.starts_with("no such overload"))
    }
}

/// What an evaluation may cost, and has cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    limit: u64,
    spent: u64,
    toil: u64,
}

/// How much toil is allowed for each unit of cost. Costs leave out what is fast; with large values, or often enough,
/// it is not.
const TOIL: u64 = 10;

impl Budget {
    /// What one evaluation may cost.
    pub const PER_CALL: u64 = 1_000_000;

    /// A budget of which nothing is spent.
    pub const fn new(limit: u64) -> Budget {
        Budget { limit, spent: 0, toil: 0 }
    }

    /// What was spent; more than the limit if that stopped the evaluation.
    pub const fn spent(&self) -> u64 {
        self.spent
    }

    /// Whether so much more can be spent.
    pub(crate) fn allows(&self, cost: u64) -> bool {
        self.spent.saturating_add(cost) <= self.limit
    }

    /// Counts steps that cost nothing, but take time.
    pub(crate) fn toil(&mut self, steps: usize) -> Result<(), EvalError> {
        self.toil = self.toil.saturating_add(steps as u64);
        if self.toil > self.limit.saturating_mul(TOIL) { Err(EvalError::OverBudget) } else { Ok(()) }
    }

    pub(crate) fn spend(&mut self, cost: u64) -> Result<(), EvalError> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit { Err(EvalError::OverBudget) } else { Ok(()) }
    }
}

/// The budget of one evaluation.
impl Default for Budget {
    fn default() -> Budget {
        Budget::new(Budget::PER_CALL)
    }
}
