//! [`Document`]: one document of a YAML stream, with its text.

use revisor_object::{Value, YamlError, parse_yaml_file};

/// One document of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'t> {
    /// The text, without the line that separates it from others.
    pub(crate) text: &'t str,
    number: usize,
    line: usize,
}

impl<'t> Document<'t> {
    /// All documents that are not empty. A line that begins with three dashes separates them, wherever it stands.
    pub(crate) fn all(stream: &'t str) -> Vec<Document<'t>> {
        let mut found: Vec<Document<'t>> = Vec::new();
        let (mut start, mut first_line) = (0, 1);
        let mut at = 0;
        for (number, line) in stream.split_inclusive('\n').enumerate() {
            let is_separator = line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty());
            if is_separator {
                found.push(Document { text: &stream[start..at], number: 0, line: first_line });
                (start, first_line) = (at + line.len(), number + 2);
            }
            at += line.len();
        }
        found.push(Document { text: &stream[start..], number: 0, line: first_line });
        let is_said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        found.retain(|document| document.text.lines().any(is_said));
        for (number, document) in found.iter_mut().enumerate() {
            document.number = number + 1;
        }
        found
    }

    /// Where it stands in the stream.
    pub(crate) fn place(&self) -> String {
        format!("document {} (from line {} on)", self.number, self.line)
    }

    /// The line of the stream on which it begins.
    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// The line of the stream on which something is said in it for the first time.
    pub(crate) fn first_line(&self) -> usize {
        self.line + self.head().lines().count()
    }

    /// What it says. Errors name the line of the stream.
    pub(crate) fn value(&self) -> Result<Value, YamlError> {
        parse_yaml_file(self.text.as_bytes()).map(|parsed| parsed.value).map_err(|error| match error {
            YamlError::Syntax { line, problem } => YamlError::Syntax { line: line + self.line - 1, problem },
            other => other,
        })
    }

    /// Whether it is written as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.text.trim_start().starts_with('{')
    }

    /// The comments and empty lines before the first key.
    pub(crate) fn head(&self) -> &'t str {
        let is_head = |line: &&str| line.trim().is_empty() || line.starts_with('#');
        let length: usize = self.text.split_inclusive('\n').take_while(is_head).map(str::len).sum();
        &self.text[..length]
    }

    /// How many lines behind that have a comment, as far as one can tell without reading texts that look like one.
    pub(crate) fn comments(&self) -> usize {
        let rest = &self.text[self.head().len()..];
        rest.lines().filter(|line| line.trim_start().starts_with('#') || line.contains(" #")).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_falls_apart_into_its_documents() {
        let stream =
            "# only a comment\n---\n# first\n\na: 1 # one\n---\n---\nb: |\n  ---- no separator\n---\n{\"c\": 1}\n";
        let found = Document::all(stream);
        let shown: Vec<_> = found.iter().map(|document| (document.text, document.place())).collect();
        assert_eq!(
            shown,
            [
                ("# first\n\na: 1 # one\n", "document 1 (from line 3 on)".to_owned()),
                ("b: |\n  ---- no separator\n", "document 2 (from line 8 on)".to_owned()),
                ("{\"c\": 1}\n", "document 3 (from line 11 on)".to_owned()),
            ]
        );
        assert_eq!((found[0].head(), found[0].comments()), ("# first\n\n", 1));
        assert!(found[2].is_json() && !found[0].is_json());
        assert!(Document::all("").is_empty());
        let broken = Document::all("a: 1\n---\nb:\n  c: [1,\n  d: 2\n");
        let error = broken[1].value().expect_err("is no YAML").to_string();
        assert!(error.starts_with("yaml: line 5: "), "the line of the stream: {error}");
    }
}
