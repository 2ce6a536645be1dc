//! [`FieldLines`]: on which line of its file the schema of a field stands.

use revisor_check::Finding;
use revisor_object::YamlLines;

use super::super::files::Origin;

/// The lines of one definition.
pub(super) struct FieldLines<'c> {
    lines: YamlLines,
    origin: &'c Origin,
    /// The names of its versions, in order.
    versions: &'c [String],
}

impl<'c> FieldLines<'c> {
    pub(super) fn of(origin: &'c Origin, versions: &'c [String]) -> FieldLines<'c> {
        FieldLines { lines: YamlLines::of(&origin.text), origin, versions }
    }

    /// The line of the field that a finding is about; of what is not there any more, that of what it stood in.
    pub(super) fn line(&self, finding: &Finding) -> Option<usize> {
        let mut found = self.lines.get(&self.origin.pointer);
        let mut pointer = self.origin.pointer.clone();
        for step in self.pointer_steps(finding) {
            // Some steps can be written in two ways, and the first that is there is meant.
            let Some((next, line)) = step.iter().find_map(|way| {
                let next = format!("{pointer}/{way}");
                self.lines.get(&next).map(|line| (next, line))
            }) else {
                break;
            };
            (pointer, found) = (next, Some(line));
        }
        found.map(|line| line + self.origin.first_line - 1)
    }

    /// The steps from the definition to the field, each with the ways in which it may be written.
    fn pointer_steps(&self, finding: &Finding) -> Vec<Vec<String>> {
        let plain = |name: &str| vec![name.replace('~', "~0").replace('/', "~1")];
        if !finding.path.starts_with('.') {
            // `spec.versions[v1].additionalPrinterColumns`
            return finding.path.split('.').map(|part| self.place_step(part)).collect();
        }
        let index = finding.version.as_ref().and_then(|name| self.versions.iter().position(|known| known == name));
        let mut steps: Vec<Vec<String>> = vec![plain("spec")];
        // In v1beta1 one schema may stand for all versions.
        let index = index.unwrap_or_default();
        let schema = [format!("versions/{index}/schema/openAPIV3Schema"), "validation/openAPIV3Schema".to_owned()];
        steps.push(schema.into());
        for step in path_steps(&finding.path) {
            match step {
                PathStep::Member(name) => {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    steps.push(vec![format!("properties/{name}")]);
                }
                PathStep::Each => steps.push(vec!["items".to_owned(), "additionalProperties".to_owned()]),
            }
        }
        steps
    }

    /// A step of a place in the definition.
    fn place_step(&self, part: &str) -> Vec<String> {
        let named = part.split_once('[').and_then(|(list, rest)| Some((list, rest.strip_suffix(']')?)));
        match named {
            Some((list, name)) => {
                let index = self.versions.iter().position(|known| known == name);
                index.map(|index| format!("{list}/{index}")).into_iter().chain([list.to_owned()]).collect()
            }
            None => vec![part.replace('~', "~0").replace('/', "~1")],
        }
    }
}

/// A step of a path of a field.
#[derive(Debug, PartialEq, Eq)]
enum PathStep<'p> {
    Member(&'p str),
    /// All items of a list, or all values of a map.
    Each,
}

/// The steps of `.spec.ports[*]['odd name']`.
fn path_steps(path: &str) -> Vec<PathStep<'_>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let (step, behind) = match first {
            '.' => {
                let end = rest[1..].find(['.', '[']).map_or(rest.len(), |end| end + 1);
                (&rest[1..end], &rest[end..])
            }
            '[' => {
                let quote = rest[1..].chars().next().filter(|quote| matches!(quote, '\'' | '"'));
                let end = match quote {
                    Some(quote) => rest[2..].find(&format!("{quote}]")).map(|end| end + 3),
                    None => rest.find(']'),
                };
                let Some(end) = end else { break };
                (rest[1..end].trim_matches(['\'', '"']), &rest[end + 1..])
            }
            _ => break,
        };
        steps.push(if step == "*" { PathStep::Each } else { PathStep::Member(step) });
        rest = behind;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fall_apart_into_steps() {
        use PathStep::{Each, Member};
        for (path, want) in [
            (".spec.ports[*].name", vec![Member("spec"), Member("ports"), Each, Member("name")]),
            (".spec.labels.*", vec![Member("spec"), Member("labels"), Each]),
            (".a['b.c/d'].e", vec![Member("a"), Member("b.c/d"), Member("e")]),
            ("", vec![]),
            (".a[", vec![Member("a")]),
        ] {
            assert_eq!(path_steps(path), want, "{path}");
        }
    }
}
