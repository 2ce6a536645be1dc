//! What is written, compared with what the original writes.

use crate::parse_json;

use super::*;

/// A line each: a JSON document and the YAML that the original makes of it.
const DOCUMENTS: &str = include_str!("tests/documents.jsonl");

#[test]
fn documents_are_written_as_the_original_writes_them() {
    for line in DOCUMENTS.lines() {
        let case = parse_json(line.as_bytes()).expect("JSON").value;
        let case = case.as_object().expect("an object");
        let written = yaml_document(case.get("document").expect("a document"));
        assert_eq!(written, case.str("yaml").expect("a text"), "{line}");
    }
}
