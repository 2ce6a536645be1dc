//! [`Answer`]: what a webhook said, before anyone made sense of it.

use bytes::Bytes;
use http::StatusCode;
use revisor_object::{JsonError, Value, json_syntax_problem, parse_json, parse_yaml};

/// How Go prints the type into which the head of an object is read.
const HEAD: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The largest body that is read as YAML, which takes far longer than JSON. Webhooks answer in JSON; what is
/// not JSON is as a rule a short text that says why.
const MAX_YAML_BYTES: usize = 1 << 20;

/// An answer with a status from 200 to 206.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The content type, as it was given; that of JSON where none was.
    pub content_type: String,
    /// The body, not larger than the limit.
    pub body: Bytes,
}

/// Why an answer is not an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is no body.
    #[error("0-length response with status code: {} and content type: {content_type}", .status.as_u16())]
    Empty {
        /// The status.
        status: StatusCode,
        /// The content type.
        content_type: String,
    },
    /// The body is neither JSON nor YAML.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Malformed(String),
    /// The body is something else than an object.
    #[error("couldn't get version/kind; json parse error: json: cannot unmarshal {0} into Go value of type {HEAD}")]
    NotAnObject(&'static str),
}

impl Answer {
    /// The body as an object: JSON, or YAML when it does not begin with a brace. `null` is an object without members.
    ///
    /// What the content type says does not matter.
    pub fn object(&self) -> Result<revisor_object::Object, AnswerError> {
        if self.body.is_empty() {
            return Err(AnswerError::Empty { status: self.status, content_type: self.content_type.clone() });
        }
        object(&self.body)
    }
}

/// The object in a body that is not empty.
pub(crate) fn object(body: &[u8]) -> Result<revisor_object::Object, AnswerError> {
    let parsed = if body.trim_ascii_start().first() == Some(&b'{') {
        parse_json(body).map_err(|error| match error {
            JsonError::TooDeep => error.to_string(),
            error => json_syntax_problem(body).unwrap_or_else(|| error.to_string()),
        })
    } else if body.len() > MAX_YAML_BYTES {
        Err(format!("yaml: document of more than {MAX_YAML_BYTES} bytes"))
    } else {
        parse_yaml(body).map_err(|error| error.to_string())
    };
    match parsed.map_err(AnswerError::Malformed)?.value {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(revisor_object::Object::new()),
        other => Err(AnswerError::NotAnObject(other.type_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_an_object_in_json_or_yaml() {
        for (body, want) in [
            (r#" {"a":1}"#, r#"{"a":1}"#),
            ("a: 1\n", r#"{"a":1}"#),
            ("null", "{}"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (
                "this is not json",
                "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
            ),
            ("{\"a\":", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
            ("", "0-length response with status code: 200 and content type: t"),
        ] {
            let answer =
                Answer { status: StatusCode::OK, content_type: "t".into(), body: Bytes::from_static(body.as_bytes()) };
            let found = answer.object().map_or_else(|error| error.to_string(), |object| Value::from(object).to_json());
            assert_eq!(found, want, "{body}");
        }
        let large = " ".repeat(2 << 20);
        let error = object(large.as_bytes()).expect_err("it is too large").to_string();
        assert_eq!(error, "couldn't get version/kind; json parse error: yaml: document of more than 1048576 bytes");
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000));
        let error = object(deep.as_bytes()).expect_err("it nests too deeply").to_string();
        assert_eq!(error, "couldn't get version/kind; json parse error: exceeded max depth of 512");
    }
}
