//! [`Selectors`]: to what a list, a watch or a deletion of many is limited, as far as authorization looks at it
//! (`AuthorizeWithSelectors`).

use revisor_object::{FieldOperator, FieldSelector, LabelOperator, LabelSelector, Object, Value};

/// What a request is limited to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selectors {
    /// By the values of fields.
    pub fields: FieldSelector,
    /// By labels.
    pub labels: LabelSelector,
}

impl Selectors {
    /// Whether it is limited to nothing.
    pub fn is_everything(&self) -> bool {
        self.fields.is_everything() && self.labels.is_everything()
    }

    /// The requirements about fields, as reviews write them.
    pub(crate) fn field_requirements(&self) -> Vec<Value> {
        let terms = self.fields.terms().iter().map(|term| {
            let operator = if term.operator == FieldOperator::Equals { "In" } else { "NotIn" };
            requirement(&term.field, operator, std::slice::from_ref(&term.value))
        });
        terms.collect()
    }

    /// The requirements about labels, as reviews write them.
    pub(crate) fn label_requirements(&self) -> Vec<Value> {
        let terms = self.labels.requirements().iter().filter_map(|term| {
            let operator = match term.operator() {
                LabelOperator::In | LabelOperator::Equals | LabelOperator::DoubleEquals => "In",
                LabelOperator::NotIn | LabelOperator::NotEquals => "NotIn",
                LabelOperator::Exists => "Exists",
                LabelOperator::DoesNotExist => "DoesNotExist",
                // As in the original, comparisons of numbers have no place in a review.
                LabelOperator::GreaterThan | LabelOperator::LessThan => return None,
            };
            Some(requirement(term.key(), operator, term.values()))
        });
        terms.collect()
    }
}

fn requirement(key: &str, operator: &str, values: &[String]) -> Value {
    let mut requirement: Object = [("key", Value::from(key)), ("operator", operator.into())].into_iter().collect();
    if !values.is_empty() {
        requirement.insert("values", values.iter().map(|value| Value::from(value.as_str())).collect::<Vec<_>>());
    }
    requirement.into()
}
