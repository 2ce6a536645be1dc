//! [`JsonPath`]: the paths of printer columns, in the dialect that kubectl speaks: fields, wildcards, slices, filters,
//! unions and descent. Keys that are missing are no error; they lead nowhere.

mod parser;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Ordering;

use revisor_object::{Object, Value};

/// How many values one path may lead to on its way. Descents within descents could lead to very many.
const MAX_RESULTS: usize = 100_000;

/// A path, read once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    /// What stands in braces, and the texts between them.
    actions: Vec<Vec<Node>>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// A value that is written in the path itself.
    Literal(Value),
    /// A member of an object.
    Field(String),
    /// All members or elements.
    Wildcard,
    /// The value itself and everything below it.
    Descent,
    /// Some elements of a list.
    Slice(Slice),
    /// Elements of which something is true.
    Filter { left: Vec<Node>, operator: String, right: Vec<Node> },
    /// What several paths lead to.
    Union(Vec<Vec<Node>>),
    /// A word of templates that has no meaning in a path.
    Word,
}

/// Which elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// Whether the end was not given and only the element at the start is meant.
    is_single: bool,
    step: Option<i64>,
}

/// Why a path leads nowhere. Nobody is told: such a cell stays empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoResult;

type Results<'v> = Vec<Cow<'v, Value>>;

impl JsonPath {
    /// Reads the path of a column; `None` if it is malformed.
    pub(crate) fn parse(path: &str) -> Option<JsonPath> {
        Some(JsonPath { actions: parser::parse(&format!("{{{path}}}"))? })
    }

    /// The first value that the path leads to in `data`. For paths that do not begin with the name of a member it is
    /// copied into `whole`, once for all of them.
    pub(crate) fn first<'v>(
        &self,
        data: &'v Object,
        whole: &'v OnceCell<Value>,
    ) -> Result<Option<Cow<'v, Value>>, NoResult> {
        let mut first = None;
        for (at, action) in self.actions.iter().enumerate() {
            let results = match &action[..] {
                [Node::Field(name), rest @ ..] => walk(rest, data.get(name).map(Cow::Borrowed).into_iter().collect())?,
                nodes => walk(nodes, vec![Cow::Borrowed(whole.get_or_init(|| Value::Object(data.clone())))])?,
            };
            if at == 0 {
                first = results.into_iter().next();
            }
        }
        Ok(first)
    }
}

fn walk<'v>(nodes: &[Node], input: Results<'v>) -> Result<Results<'v>, NoResult> {
    let mut values = input;
    for node in nodes {
        values = step(node, values)?;
        if values.len() > MAX_RESULTS {
            return Err(NoResult);
        }
    }
    Ok(values)
}

fn step<'v>(node: &Node, input: Results<'v>) -> Result<Results<'v>, NoResult> {
    Ok(match node {
        Node::Literal(text @ Value::String(_)) => vec![Cow::Owned(text.clone())],
        Node::Literal(value) => input.iter().map(|_| Cow::Owned(value.clone())).collect(),
        Node::Field(name) => input.into_iter().filter_map(|value| member(value, name)).collect(),
        Node::Wildcard => input.into_iter().flat_map(children).collect(),
        Node::Descent => {
            let mut found = Vec::new();
            descend(input, &mut found)?;
            found
        }
        Node::Slice(slice) => {
            let mut found = Vec::new();
            for value in input {
                match slice.of(value)? {
                    Some(items) => found.extend(items),
                    // Asking for nothing ends the walk, whatever else there is.
                    None => return Ok(found),
                }
            }
            found
        }
        Node::Filter { left, operator, right } => {
            let mut found = Vec::new();
            for value in input {
                for item in elements(value)?.ok_or(NoResult)? {
                    if passes(&item, left, operator, right)? {
                        found.push(item);
                    }
                }
            }
            found
        }
        Node::Union(paths) => {
            let mut found = Vec::new();
            for path in paths {
                found.extend(walk(path, input.clone())?);
            }
            found
        }
        Node::Word => return Err(NoResult),
    })
}

fn member<'v>(value: Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(Value::Object(object)) => object.get(name).map(Cow::Borrowed),
        Cow::Owned(Value::Object(object)) => object.get(name).cloned().map(Cow::Owned),
        _ => None,
    }
}

/// The members or elements of a value. Texts have their bytes.
fn children(value: Cow<'_, Value>) -> Results<'_> {
    match value {
        Cow::Borrowed(Value::Object(object)) => object.iter().map(|(_, member)| Cow::Borrowed(member)).collect(),
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        value => match value.as_ref() {
            Value::Object(object) => object.iter().map(|(_, member)| Cow::Owned(member.clone())).collect(),
            Value::Array(items) => items.iter().cloned().map(Cow::Owned).collect(),
            Value::String(text) => text.bytes().map(|byte| Cow::Owned(Value::Int(byte.into()))).collect(),
            _ => Vec::new(),
        },
    }
}

fn descend<'v>(input: Results<'v>, found: &mut Results<'v>) -> Result<(), NoResult> {
    for value in input {
        let below = children(value.clone());
        if below.is_empty() {
            continue;
        }
        found.push(value);
        if found.len() > MAX_RESULTS {
            return Err(NoResult);
        }
        descend(below, found)?;
    }
    Ok(())
}

/// The elements of a list; `None` of null. Everything else has none.
fn elements(value: Cow<'_, Value>) -> Result<Option<Results<'_>>, NoResult> {
    match value.as_ref() {
        Value::Null => Ok(None),
        Value::Array(_) => Ok(Some(children(value))),
        _ => Err(NoResult),
    }
}

impl Slice {
    /// The elements that are meant; `None` if none are.
    fn of<'v>(&self, value: Cow<'v, Value>) -> Result<Option<Results<'v>>, NoResult> {
        let Some(items) = elements(value)? else { return Ok(Some(Vec::new())) };
        let length = i64::try_from(items.len()).map_err(|_| NoResult)?;
        let mut start = self.start.unwrap_or_default();
        if start < 0 {
            start += length;
        }
        let mut end = self.end.unwrap_or(length);
        if end < 0 || (end == 0 && self.is_single) {
            end += length;
        }
        if start == end {
            return Ok(None);
        }
        if !(0..length).contains(&start) || !(start..=length).contains(&end) {
            return Err(NoResult);
        }
        let step = self.step.unwrap_or(1);
        let step = usize::try_from(step).ok().filter(|step| *step > 0).ok_or(NoResult)?;
        let (skipped, taken) = (start as usize, (end - start) as usize);
        Ok(Some(items.into_iter().skip(skipped).take(taken).step_by(step).collect()))
    }
}

/// Whether an element stays.
fn passes(item: &Value, left: &[Node], operator: &str, right: &[Node]) -> Result<bool, NoResult> {
    let of = |path: &[Node]| walk(path, vec![Cow::Borrowed(item)]);
    if operator == "exists" {
        return Ok(of(left).is_ok_and(|found| !found.is_empty()));
    }
    let (lefts, rights) = (of(left)?, of(right)?);
    let (left, right) = match (lefts.as_slice(), rights.as_slice()) {
        ([], _) | (_, []) => return Ok(false),
        ([left], [right]) => (left.as_ref(), right.as_ref()),
        _ => return Err(NoResult),
    };
    let order = match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) if matches!(operator, "==" | "!=") => Some(left.cmp(right)),
        _ => return Err(NoResult),
    };
    match operator {
        "==" => Ok(order == Some(Ordering::Equal)),
        "!=" => Ok(order != Some(Ordering::Equal)),
        "<" => Ok(order == Some(Ordering::Less)),
        "<=" => Ok(matches!(order, Some(Ordering::Less | Ordering::Equal))),
        ">" => Ok(order == Some(Ordering::Greater)),
        ">=" => Ok(matches!(order, Some(Ordering::Greater | Ordering::Equal))),
        _ => Err(NoResult),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    const DATA: &str = r#"{"a":{"b":1,"c.d":"dotted","n":null},"list":[{"k":"x","v":1},{"k":"y","v":2},{"k":"z"}],
        "numbers":[10,20,30,40],"text":"hi","deep":{"one":{"k":"first"}}}"#;

    #[test]
    fn paths_lead_to_values() {
        let (data, whole) = (object(DATA), OnceCell::new());
        for (path, want) in [
            (".a.b", Some("1")),
            ("$.a.b", Some("1")),
            (".a['c\\.d']", Some("\"dotted\"")),
            (r".a.c\.d", Some("\"dotted\"")),
            (".a.n", Some("null")),
            (".a.n.x", None),
            (".a.missing", None),
            (".text.x", None),
            (".numbers[0]", Some("10")),
            (".numbers[-1]", Some("40")),
            (".numbers[1:3]", Some("20")),
            (".numbers[::2]", Some("10")),
            (".numbers[*]", Some("10")),
            (".numbers[4]", None),
            (".numbers[9223372036854775807]", None),
            (".numbers[2:2]", None),
            (".numbers[3:1]", None),
            (".numbers[0:2:0]", None),
            (".a[0]", None),
            (".list[*].k", Some("\"x\"")),
            (".list[?(@.k=='y')].v", Some("2")),
            (".list[?(@.k==\"y\")].v", Some("2")),
            (".list[?(@.v>1)].k", Some("\"y\"")),
            (".list[?(@.v>=1)].k", Some("\"x\"")),
            (".list[?(@.v!=1)].k", Some("\"y\"")),
            (".list[?(@.v<0)].k", None),
            (".list[?(@.v=='1')].k", None),
            (".list[?(@.v)].k", Some("\"x\"")),
            (".a[?(@.b)]", None),
            ("..k", Some("\"first\"")),
            (".deep.*.k", Some("\"first\"")),
            (".numbers[1,0]", Some("20")),
            (".text", Some("\"hi\"")),
            (".", None),
            ("}x{.a.b", Some("\"whole\"")),
            (".a.b}{.text", Some("1")),
            (".a range", None),
        ] {
            let parsed = JsonPath::parse(path).unwrap_or_else(|| panic!("{path} is malformed"));
            let found = parsed.first(&data, &whole).ok().flatten().map(|value| match value.as_ref() {
                Value::Object(_) => "\"whole\"".to_owned(),
                other => other.to_json(),
            });
            assert_eq!(found.as_deref(), want, "{path}");
        }
    }

    #[test]
    fn malformed_paths_are_none() {
        for path in [".a[", ".a['b]", ".a[x]", ".a[?(@.b]", ".a[?(@.b==)]", ".a\n", "....", "#", "\"x", "1.2.3"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }

    #[test]
    fn descents_within_descents_are_bounded() {
        let mut text = String::from("1");
        for _ in 0..200 {
            text = format!(r#"{{"a":{text}}}"#);
        }
        let data = object(&text);
        let path = JsonPath::parse("..a..a..a..a..a").expect("is well formed");
        assert_eq!(path.first(&data, &OnceCell::new()), Err(NoResult));
    }
}
