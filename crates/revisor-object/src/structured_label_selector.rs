//! [`StructuredLabelSelector`]: a label selector that stands in an object, as `matchLabels` and `matchExpressions`.
//!
//! A view of the object that was read. It is checked as Kubernetes checks it, and turned into the [`LabelSelector`]
//! that does the matching. Values of the wrong type count as absent; refusing those is the schema's.

use crate::bad_value::Quoted;
use crate::field_error::{FieldError, aggregate_message};
use crate::field_errors::FieldErrors;
use crate::field_path::FieldPath;
use crate::label_selector::{LabelOperator, LabelSelector, Requirement};
use crate::names;
use crate::value::{Object, Value};

/// A selector in its structured form.
///
/// Where a field may lack its selector, absent and empty are opposites: the one matches nothing, the other everything.
///
/// ```
/// use revisor_object::{StructuredLabelSelector, parse_json};
///
/// let value = parse_json(br#"{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"canary","operator":"DoesNotExist"}]}"#)
///     .unwrap()
///     .value;
/// let selector = StructuredLabelSelector::new(value.as_object().unwrap());
/// assert_eq!(selector.to_selector().unwrap().to_string(), "app=web,!canary");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct StructuredLabelSelector<'a> {
    object: &'a Object,
}

/// What is let pass when a selector is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabelSelectorOptions {
    /// Values that cannot be the value of a label. For objects that were stored with one.
    pub allow_invalid_values: bool,
    /// Operators that do not exist. For reviews of access, which look further than the operator.
    pub allow_unknown_operators: bool,
}

/// Why a structured selector cannot be evaluated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StructuredSelectorError {
    /// There is no such operator.
    #[error("{} is not a valid label selector operator", Quoted(.0))]
    UnknownOperator(String),
    /// A key or value cannot be one, or there are too many or too few values.
    #[error("{}", aggregate_message(.0))]
    Requirement(FieldErrors),
}

/// One element of `matchExpressions`.
#[derive(Clone, Copy)]
struct Expression<'a>(&'a Object);

impl<'a> Expression<'a> {
    fn key(self) -> &'a str {
        self.0.str("key").unwrap_or_default()
    }

    fn operator(self) -> &'a str {
        self.0.str("operator").unwrap_or_default()
    }

    fn values(self) -> impl ExactSizeIterator<Item = &'a str> {
        self.0.array("values").iter().map(|value| value.as_str().unwrap_or_default())
    }
}

impl<'a> StructuredLabelSelector<'a> {
    /// The selector that this object describes.
    pub const fn new(object: &'a Object) -> StructuredLabelSelector<'a> {
        StructuredLabelSelector { object }
    }

    fn labels(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let labels = self.object.object("matchLabels").into_iter().flat_map(Object::iter);
        labels.map(|(key, value)| (key, value.as_str().unwrap_or_default()))
    }

    fn expressions(self) -> impl Iterator<Item = Expression<'a>> {
        // An element that is no object stays in its place, so that the indices in errors are right.
        const NONE: &Object = &Object::new();
        let elements = self.object.array("matchExpressions").iter();
        elements.map(|element| Expression(Value::as_object(element).unwrap_or(NONE)))
    }

    /// Whether it asks for nothing, and so matches everything.
    pub fn is_empty(self) -> bool {
        self.labels().next().is_none() && self.expressions().next().is_none()
    }

    /// Whether an expression names a value that cannot be the value of a label.
    ///
    /// An update of an object that was stored so is checked with
    /// [`allow_invalid_values`](LabelSelectorOptions::allow_invalid_values).
    pub fn has_invalid_value(self) -> bool {
        self.expressions().any(|expression| expression.values().any(|value| !names::label_value(value).is_empty()))
    }

    /// Everything that is wrong with it.
    pub fn validate(self, path: &FieldPath<'_>, options: LabelSelectorOptions) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let at_labels = path.child("matchLabels");
        for (key, value) in self.labels() {
            let invalid = |text: &str, problem: &str| FieldError::invalid(at_labels, text, problem);
            errors.extend(names::qualified_name(key).into_iter().map(|problem| invalid(key, problem)));
            errors.extend(names::label_value(value).into_iter().map(|problem| invalid(value, problem)));
        }
        let at_expressions = path.child("matchExpressions");
        for (index, expression) in self.expressions().enumerate() {
            validate_expression(expression, &at_expressions.index(index), options, &mut errors);
        }
        errors
    }

    /// The selector that does the matching. Its text is what `status.selector` of a Scale shows.
    ///
    /// # Errors
    ///
    /// Where the original fails too: at the first requirement that makes no sense.
    pub fn to_selector(self) -> Result<LabelSelector, StructuredSelectorError> {
        let mut requirements = Vec::new();
        let mut add = |key: &str, operator, values| match Requirement::new(key, operator, values) {
            Ok(requirement) => {
                requirements.push(requirement);
                Ok(())
            }
            Err(errors) => Err(StructuredSelectorError::Requirement(errors)),
        };
        for (key, value) in self.labels() {
            add(key, LabelOperator::Equals, vec![value.to_owned()])?;
        }
        for expression in self.expressions() {
            let operator = operator(expression.operator())
                .ok_or_else(|| StructuredSelectorError::UnknownOperator(expression.operator().to_owned()))?;
            add(expression.key(), operator, expression.values().map(str::to_owned).collect())?;
        }
        Ok(LabelSelector::new(requirements))
    }

    /// Whether these labels, an object of strings, satisfy it. A selector that makes no sense is satisfied by none.
    pub fn matches(self, labels: Option<&Object>) -> bool {
        self.to_selector().is_ok_and(|selector| selector.matches(|key| labels.and_then(|labels| labels.str(key))))
    }
}

fn operator(name: &str) -> Option<LabelOperator> {
    Some(match name {
        "In" => LabelOperator::In,
        "NotIn" => LabelOperator::NotIn,
        "Exists" => LabelOperator::Exists,
        "DoesNotExist" => LabelOperator::DoesNotExist,
        _ => return None,
    })
}

fn validate_expression(
    expression: Expression<'_>,
    path: &FieldPath<'_>,
    options: LabelSelectorOptions,
    errors: &mut FieldErrors,
) {
    let values = path.child("values");
    match operator(expression.operator()) {
        Some(LabelOperator::In | LabelOperator::NotIn) => {
            if expression.values().len() == 0 {
                errors.push(FieldError::required(values, "must be specified when `operator` is 'In' or 'NotIn'"));
            }
        }
        Some(_) => {
            if expression.values().len() > 0 {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(values, detail));
            }
        }
        None if options.allow_unknown_operators => {}
        None => {
            let shown = expression.operator();
            errors.push(FieldError::invalid(path.child("operator"), shown, "not a valid selector operator"));
        }
    }
    let key = expression.key();
    errors.extend(
        names::qualified_name(key).into_iter().map(|problem| FieldError::invalid(path.child("key"), key, problem)),
    );
    if options.allow_invalid_values {
        return;
    }
    for (index, value) in expression.values().enumerate() {
        for problem in names::label_value(value) {
            errors.push(FieldError::invalid(values.index(index), value, problem));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_json;

    fn object(text: &str) -> Object {
        match parse_json(text.as_bytes()).expect(text).value {
            Value::Object(object) => object,
            other => panic!("{other:?}"),
        }
    }

    const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

    #[test]
    fn faults_are_found() {
        let strict = LabelSelectorOptions::default();
        let values = LabelSelectorOptions { allow_invalid_values: true, ..strict };
        let operators = LabelSelectorOptions { allow_unknown_operators: true, ..strict };
        for (text, options, want) in [
            ("{}", strict, vec![]),
            (r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}"#, strict, vec![]),
            (r#"{"matchExpressions":[{"key":"k","operator":"Exists"},{"key":"k","operator":"DoesNotExist"}]}"#, strict, vec![]),
            (
                r#"{"matchLabels":{"a b":"c d"}}"#,
                strict,
                vec![
                    format!(r#"s.matchLabels: Invalid value: "a b": {NAME_PART}"#),
                    format!(r#"s.matchLabels: Invalid value: "c d": {LABEL_VALUE}"#),
                ],
            ),
            (
                r#"{"matchExpressions":[{"key":"k","operator":"Exists"},{"key":"k","operator":"NotIn","values":[]}]}"#,
                strict,
                vec!["s.matchExpressions[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned()],
            ),
            (
                r#"{"matchExpressions":[{"key":"k","operator":"Exists","values":["v"]}]}"#,
                strict,
                vec!["s.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'".to_owned()],
            ),
            (
                r#"{"matchExpressions":[{"key":"k","operator":"Gt","values":["1"]}]}"#,
                strict,
                vec![r#"s.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator"#.to_owned()],
            ),
            (r#"{"matchExpressions":[{"key":"k","operator":"Gt","values":["1"]}]}"#, operators, vec![]),
            (
                r#"{"matchExpressions":[{"key":"a b","operator":"In","values":["v","c d"]}]}"#,
                strict,
                vec![
                    format!(r#"s.matchExpressions[0].key: Invalid value: "a b": {NAME_PART}"#),
                    format!(r#"s.matchExpressions[0].values[1]: Invalid value: "c d": {LABEL_VALUE}"#),
                ],
            ),
            (r#"{"matchExpressions":[{"key":"k","operator":"In","values":["c d"]}]}"#, values, vec![]),
        ] {
            let object = object(text);
            let errors = StructuredLabelSelector::new(&object).validate(&FieldPath::root("s"), options);
            assert_eq!(errors.iter().map(FieldError::to_string).collect::<Vec<_>>(), want, "{text}");
        }
    }

    #[test]
    fn selectors_have_a_text() {
        for (text, want) in [
            ("{}", Ok("")),
            (r#"{"matchLabels":{"b":"2","a":"1"}}"#, Ok("a=1,b=2")),
            (
                r#"{"matchLabels":{"b":""},"matchExpressions":[{"key":"a","operator":"In","values":["y","x","y"]}]}"#,
                Ok("a in (x,y),b="),
            ),
            (
                r#"{"matchExpressions":[{"key":"c","operator":"NotIn","values":["x"]},{"key":"b","operator":"Exists"},{"key":"a","operator":"DoesNotExist"}]}"#,
                Ok("!a,b,c notin (x)"),
            ),
            (
                r#"{"matchExpressions":[{"key":"a","operator":"Gt"}]}"#,
                Err(r#""Gt" is not a valid label selector operator"#.to_owned()),
            ),
            (
                r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#,
                Err("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty".to_owned()),
            ),
        ] {
            let object = object(text);
            let selector = StructuredLabelSelector::new(&object).to_selector();
            let shown = selector.map(|selector| selector.to_string()).map_err(|error| error.to_string());
            assert_eq!(shown, want.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn labels_match() {
        let both = r#"{"matchLabels":{"a":"1"},"matchExpressions":[{"key":"b","operator":"NotIn","values":["2"]}]}"#;
        for (selector, labels, want) in [
            ("{}", Some("{}"), true),
            ("{}", None, true),
            (both, Some(r#"{"a":"1"}"#), true),
            (both, Some(r#"{"a":"1","b":"3"}"#), true),
            (both, Some(r#"{"a":"1","b":"2"}"#), false),
            (both, Some(r#"{"b":"3"}"#), false),
            (both, None, false),
            (r#"{"matchExpressions":[{"key":"a","operator":"Gt"}]}"#, Some(r#"{"a":"1"}"#), false),
        ] {
            let (selector, labels) = (object(selector), labels.map(object));
            let selector = StructuredLabelSelector::new(&selector);
            assert_eq!(selector.matches(labels.as_ref()), want, "{selector:?} {labels:?}");
        }
    }

    #[test]
    fn what_a_selector_is_asked_before_an_update() {
        for (text, empty, invalid) in [
            ("{}", true, false),
            (r#"{"matchLabels":{},"matchExpressions":[]}"#, true, false),
            (r#"{"matchLabels":{"a":"c d"}}"#, false, false),
            (r#"{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}"#, false, false),
            (r#"{"matchExpressions":[{"key":"k","operator":"In","values":["v","c d"]}]}"#, false, true),
        ] {
            let object = object(text);
            let selector = StructuredLabelSelector::new(&object);
            assert_eq!((selector.is_empty(), selector.has_invalid_value()), (empty, invalid), "{text}");
        }
    }
}
