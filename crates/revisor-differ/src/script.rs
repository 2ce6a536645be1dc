//! Scripts: groups of requests as people write them.
//!
//! ```text
//! ## what the group is about
//! POST /api/v1/namespaces/${ns}/configmaps?fieldValidation=Strict
//! Content-Type: application/yaml
//! <<
//! metadata: {name: "${name}"}
//! >>
//! GET /api/v1/namespaces/${ns}/configmaps/${name}
//! ```
//!
//! A request `WAIT` asks for its path until both servers have it. A line with `//` at its start is a comment. A body stands between `<<` and `>>`, or, if it is one line, behind `<< `;
//! it is JSON unless a header says otherwise.

use revisor_object::parse_json;

use crate::group::{Body, Group, Step};

/// What people wrote: the areas in which generated requests seldom hit.
pub const SCRIPT: &str = include_str!("../tables/script.txt");

/// Why a text is no script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for ScriptError {}

/// Not a method: both servers are asked for the path until they have it.
pub const WAIT: &str = "WAIT";

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", WAIT];

/// Reads the groups of a script.
pub fn parse(text: &str) -> Result<Vec<Group>, ScriptError> {
    let mut groups: Vec<Group> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let error = |problem| ScriptError { line: at + 1, problem };
        if line.trim().is_empty() || line.starts_with("//") {
            continue;
        }
        if let Some(title) = line.strip_prefix("## ") {
            groups.push(Group { title: title.to_owned(), steps: Vec::new() });
            continue;
        }
        let group = groups.last_mut().ok_or_else(|| error("a request before the first title"))?;
        if let Some((method, path)) = line.split_once(' ')
            && METHODS.contains(&method)
        {
            group.steps.push(Step::new(method, path));
            continue;
        }
        let step = group.steps.last_mut().ok_or_else(|| error("not a request"))?;
        if line == "<<" {
            let mut body = String::new();
            loop {
                match lines.next() {
                    Some((_, ">>")) => break,
                    Some((_, line)) => body = body + line + "\n",
                    None => return Err(error("a body without an end")),
                }
            }
            add_body(step, body);
        } else if let Some(body) = line.strip_prefix("<< ") {
            add_body(step, body.to_owned());
        } else if let Some((name, value)) = line.split_once(": ") {
            step.headers.push((name.to_owned(), value.to_owned()));
        } else {
            return Err(error("neither a request, a header nor a body"));
        }
    }
    Ok(groups)
}

/// A body that says the same when it is read and written is a value, which can be made smaller.
fn add_body(step: &mut Step, text: String) {
    if !step.headers.iter().any(|(name, _)| name == "Content-Type") {
        let media_type = if step.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        step.headers.push(("Content-Type".to_owned(), media_type.to_owned()));
    }
    let is_plain = |parsed: &revisor_object::Value| parsed.to_json().len() == text.trim().len();
    step.body = Some(match parse_json(text.as_bytes()) {
        Ok(parsed) if is_plain(&parsed.value) => Body::Value(parsed.value),
        _ => Body::Text(text),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_what_its_groups_show() {
        let text = "## one\n// why\nPOST /a?b=c\nContent-Type: application/yaml\n<<\na: 1\nb: 2\n>>\nGET /a\n## two\nPATCH /a\n<< {\"a\":1}\n";
        let groups = parse(text).expect("a script");
        let titles: Vec<&str> = groups.iter().map(|group| group.title.as_str()).collect();
        assert_eq!(titles, ["one", "two"]);
        assert_eq!(groups[0].steps[0].to_string(), "POST /a?b=c\nContent-Type: application/yaml\n\na: 1\nb: 2\n");
        assert_eq!(groups[0].steps[1].to_string(), "GET /a");
        assert_eq!(groups[1].steps[0].to_string(), "PATCH /a\nContent-Type: application/merge-patch+json\n\n{\"a\":1}");
    }

    #[test]
    fn what_is_no_script_is_told_by_line() {
        for (text, line) in [("GET /a", 1), ("## a\nGET /a\nx", 3), ("## a\nPOST /a\n<<\n{}", 3), ("## a\nfoo: bar", 2)]
        {
            assert_eq!(parse(text).map_err(|error| error.line), Err(line), "{text}");
        }
    }
}
