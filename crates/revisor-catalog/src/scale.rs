//! [`ScalePaths`]: where objects keep what their `scale` subresource shows.

use revisor_object::{BadValue, FieldError, FieldErrors, Object, StructuredLabelSelector, Value};

/// Where objects of a resource keep what their scale shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// How many replicas are wanted.
    pub replicas: Vec<String>,
    /// How many there are.
    pub observed_replicas: Vec<String>,
    /// How the replicas are found.
    pub selector: ScaleSelector,
}

/// Where and in which form objects keep the selector of their replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScaleSelector {
    /// `{matchLabels, matchExpressions}`
    Structured(Vec<String>),
    /// `{label: value}`
    Labels(Vec<String>),
    /// As a text.
    Text(Vec<String>),
    /// Nowhere.
    None,
}

impl ScalePaths {
    /// Where objects of a built-in resource with these subresources keep what their scale shows.
    pub(crate) fn of_built_in<'a>(group: &str, mut subresources: impl Iterator<Item = &'a str>) -> Option<ScalePaths> {
        let path = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let selector = path(["spec", "selector"]);
        subresources.any(|name| name == "scale").then(|| ScalePaths {
            replicas: path(["spec", "replicas"]),
            observed_replicas: path(["status", "replicas"]),
            // Replication controllers are older than structured selectors.
            selector: if group.is_empty() {
                ScaleSelector::Labels(selector)
            } else {
                ScaleSelector::Structured(selector)
            },
        })
    }

    /// How many replicas are wanted; `None` if the object does not say.
    pub fn replicas(&self, object: &Object) -> Option<i64> {
        at(object, &self.replicas)?.as_i64()
    }

    /// How many replicas there are.
    pub fn observed_replicas(&self, object: &Object) -> i64 {
        at(object, &self.observed_replicas).and_then(Value::as_i64).unwrap_or_default()
    }

    /// The text of the selector that finds the replicas.
    ///
    /// # Errors
    /// What is wrong with a selector that cannot be evaluated.
    pub fn selector(&self, object: &Object) -> Result<String, String> {
        match &self.selector {
            ScaleSelector::None => Ok(String::new()),
            ScaleSelector::Text(path) => Ok(at(object, path).and_then(Value::as_str).unwrap_or_default().to_owned()),
            ScaleSelector::Labels(path) => {
                let labels = at(object, path).and_then(Value::as_object).into_iter().flat_map(Object::iter);
                let terms = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
                Ok(terms.collect::<Vec<_>>().join(","))
            }
            ScaleSelector::Structured(path) => {
                // A selector that is not there finds nothing, and that has no text.
                let Some(selector) = at(object, path).and_then(Value::as_object) else { return Ok(String::new()) };
                let selector = StructuredLabelSelector::new(selector).to_selector();
                selector.map(|selector| selector.to_string()).map_err(|error| error.to_string())
            }
        }
    }

    /// What is wrong with the places of a custom object that its scale shows. A write of its status is not asked for
    /// what is wanted.
    pub(crate) fn problems(&self, object: &Object, is_status: bool) -> FieldErrors {
        let wanted = Some(&self.replicas).filter(|_| !is_status);
        let mut errors: FieldErrors = wanted
            .into_iter()
            .chain([&self.observed_replicas])
            .filter_map(|path| count_problem(object, path))
            .collect();
        if let ScaleSelector::Text(path) = &self.selector {
            let problem = match look_up(object, path) {
                Ok(found) => {
                    found.filter(|found| found.as_str().is_none()).map(|found| not_of_type(path, found, "string"))
                }
                Err(problem) => Some(problem),
            };
            errors.extend(problem.map(|problem| FieldError::invalid(dotted(path), "", problem)));
        }
        errors
    }

    /// Where objects say how many replicas are wanted, as definitions write it: `.spec.replicas`.
    pub fn replicas_path(&self) -> String {
        dotted(&self.replicas)
    }

    /// Sets how many replicas are wanted.
    pub fn set_replicas(&self, object: &mut Object, replicas: i64) {
        let Some((last, parents)) = self.replicas.split_last() else { return };
        let parent = parents.iter().fold(object, |object, name| object.object_mut(name));
        parent.insert(last, replicas);
    }
}

/// What is wrong with a number of replicas.
fn count_problem(object: &Object, path: &[String]) -> Option<FieldError> {
    let found = match look_up(object, path) {
        Ok(found) => found?,
        Err(problem) => return Some(FieldError::invalid(dotted(path), 0_i64, problem)),
    };
    let Some(count) = found.as_i64() else {
        return Some(FieldError::invalid(dotted(path), 0_i64, not_of_type(path, found, "int64")));
    };
    if count < 0 {
        return Some(FieldError::invalid(dotted(path), count, "should be a non-negative integer"));
    }
    let most = i64::from(i32::MAX);
    (count > most).then(|| FieldError::invalid(dotted(path), count, format!("should be less than or equal to {most}")))
}

/// `.spec.replicas`
fn dotted(path: &[String]) -> String {
    format!(".{}", path.join("."))
}

fn not_of_type(path: &[String], found: &Value, wanted: &str) -> String {
    let shown = match found {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Float(number) => BadValue::from(*number).to_string(),
        other => other.to_json(),
    };
    let kind = found.go_type();
    format!("{} accessor error: {shown} is of the type {kind}, expected {wanted}", dotted(path))
}

/// What stands at a path, or why nothing can stand there. Upstream: `NestedFieldNoCopy`.
fn look_up<'o>(object: &'o Object, path: &[String]) -> Result<Option<&'o Value>, String> {
    let Some((first, rest)) = path.split_first() else { return Ok(None) };
    let mut found = object.get(first);
    for (at, name) in rest.iter().enumerate() {
        found = match found {
            Some(Value::Object(parent)) => parent.get(name),
            None | Some(Value::Null) => return Ok(None),
            Some(other) => return Err(not_of_type(&path[..at + 2], other, "map[string]interface{}")),
        };
    }
    Ok(found)
}

fn at<'o>(object: &'o Object, path: &[String]) -> Option<&'o Value> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(object, |object, name| object.object(name))?;
    parent.get(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn what_stands_in_the_way_of_a_number_is_told() {
        let paths = ScalePaths {
            replicas: ["spec", "replicas"].map(str::to_owned).to_vec(),
            observed_replicas: ["status", "replicas"].map(str::to_owned).to_vec(),
            selector: ScaleSelector::Text(["status", "a", "b"].map(str::to_owned).to_vec()),
        };
        let problems = paths.problems(&object(r#"{"spec":"x","status":{"a":1}}"#), false);
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected \
                 map[string]interface{}",
                ".status.a.b: Invalid value: \"\": .status.a.b accessor error: 1 is of the type int64, expected \
                 map[string]interface{}",
            ]
        );
        assert!(paths.problems(&object(r#"{"spec":null,"status":{"a":null}}"#), false).is_empty());
    }

    #[test]
    fn a_scale_is_read_from_its_places() {
        let deployment = ScalePaths::of_built_in("apps", ["scale"].into_iter()).expect("has a scale");
        let controller = ScalePaths::of_built_in("", ["scale"].into_iter()).expect("has a scale");
        assert_eq!(ScalePaths::of_built_in("apps", ["status"].into_iter()), None);
        for (paths, text, replicas, observed, selector) in [
            (
                &deployment,
                r#"{"spec":{"replicas":2,"selector":{"matchLabels":{"b":"2","a":"1"}}},"status":{"replicas":1}}"#,
                Some(2),
                1,
                Ok("a=1,b=2"),
            ),
            (&deployment, "{}", None, 0, Ok("")),
            (
                &deployment,
                r#"{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}}"#,
                None,
                0,
                Err(r#""Near" is not a valid label selector operator"#),
            ),
            (&controller, r#"{"spec":{"replicas":0,"selector":{"b":"2","a":"1"}}}"#, Some(0), 0, Ok("a=1,b=2")),
        ] {
            let object = object(text);
            assert_eq!(paths.replicas(&object), replicas, "{text}");
            assert_eq!(paths.observed_replicas(&object), observed, "{text}");
            assert_eq!(paths.selector(&object), selector.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
        let mut object = object("{}");
        deployment.set_replicas(&mut object, 3);
        assert_eq!(Value::Object(object).to_json(), r#"{"spec":{"replicas":3}}"#);
    }
}
