//! [`List`]: lists of objects and lists that expressions make.

use std::sync::Arc;

use revisor_object::Value;

use super::error::EvalError;
use super::json::Seen;
use super::value::CelValue;

/// A list.
#[derive(Debug, Clone)]
pub struct List<'a> {
    elements: Elements<'a>,
    order: Order<'a>,
}

#[derive(Debug, Clone)]
enum Elements<'a> {
    /// Of an object, with what is known of each.
    Json(&'a [Value], Seen<'a>),
    Made(Arc<Vec<CelValue<'a>>>),
}

/// What the order of the elements means, and so when two lists are the same and what comes of adding them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order<'a> {
    /// What it says, as for any list.
    Plain,
    /// What it says, and the list is one of a schema.
    Atomic,
    /// Nothing; each element is there once.
    Set,
    /// Nothing; elements are told apart by these members.
    Map(&'a [Box<str>]),
}

impl<'a> List<'a> {
    /// A list of these.
    pub fn made(elements: Vec<CelValue<'a>>) -> List<'a> {
        List { elements: Elements::Made(Arc::new(elements)), order: Order::Plain }
    }

    pub(crate) fn ordered(elements: Vec<CelValue<'a>>, order: Order<'a>) -> List<'a> {
        List { elements: Elements::Made(Arc::new(elements)), order }
    }

    pub(crate) fn json(elements: &'a [Value], seen: Seen<'a>, order: Order<'a>) -> List<'a> {
        List { elements: Elements::Json(elements, seen), order }
    }

    pub(crate) fn order(&self) -> Order<'a> {
        self.order
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        match &self.elements {
            Elements::Json(elements, _) => elements.len(),
            Elements::Made(elements) => elements.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An element; fails if it is not what the schema promises.
    pub fn get(&self, index: usize) -> Option<Result<CelValue<'a>, EvalError>> {
        match &self.elements {
            Elements::Json(elements, seen) => elements.get(index).map(|element| seen.read(element)),
            Elements::Made(elements) => elements.get(index).cloned().map(Ok),
        }
    }

    /// All elements.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Result<CelValue<'a>, EvalError>> + '_ {
        (0..self.len()).map(|index| self.get(index).unwrap_or(Ok(CelValue::Null)))
    }

    /// All elements, at once.
    pub(crate) fn to_vec(&self) -> Result<Vec<CelValue<'a>>, EvalError> {
        self.iter().collect()
    }

    /// Whether nobody else holds the elements, so that more can be put behind them.
    pub(crate) fn grows_in_place(&self) -> bool {
        matches!(&self.elements, Elements::Made(elements) if Arc::strong_count(elements) == 1)
    }

    /// These elements followed by those of `other`. A list that nobody else holds grows in place.
    pub(crate) fn append(mut self, other: &List<'a>) -> Result<List<'a>, EvalError> {
        let more = other.to_vec()?;
        if let Elements::Made(elements) = &mut self.elements {
            Arc::make_mut(elements).extend(more);
            return Ok(self);
        }
        let mut elements = self.to_vec()?;
        elements.extend(more);
        Ok(List::ordered(elements, self.order))
    }
}
