//! [`Group`]: requests that belong together, and [`Step`], one of them.

use revisor_object::{Object, Value};

/// Requests that are sent one after the other to both servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// What they are about.
    pub title: String,
    /// In the order in which they are sent.
    pub steps: Vec<Step>,
}

/// One request.
///
/// Texts may have places that are filled in when it is sent: `${ns}`, the namespace of the group; `${name}`, a name that
/// nothing has yet; `${uid}`, `${rv}` and `${continue}`, those of the last answer that had one.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Headers beside those that every request has.
    pub headers: Vec<(String, String)>,
    /// What is sent along.
    pub body: Option<Body>,
}

/// What a request brings.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A value, sent as JSON, which can be made smaller.
    Value(Value),
    /// A text as it is.
    Text(String),
}

impl Step {
    /// A request without a body.
    pub fn new(method: &str, path: impl Into<String>) -> Step {
        Step { method: method.to_owned(), path: path.into(), headers: Vec::new(), body: None }
    }

    /// The request with this object as JSON.
    #[must_use]
    pub fn object(self, object: Object) -> Step {
        self.value("application/json", Value::Object(object))
    }

    /// The request with this value as JSON, under this media type.
    #[must_use]
    pub fn value(self, media_type: &str, value: Value) -> Step {
        Step { body: Some(Body::Value(value)), ..self.header("Content-Type", media_type) }
    }

    /// The request with this text.
    #[must_use]
    pub fn text(self, media_type: &str, text: impl Into<String>) -> Step {
        Step { body: Some(Body::Text(text.into())), ..self.header("Content-Type", media_type) }
    }

    /// The request with another header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Step {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The body as it is sent, before its places are filled in.
    pub fn body_text(&self) -> Option<String> {
        self.body.as_ref().map(|body| match body {
            Body::Value(value) => value.to_json(),
            Body::Text(text) => text.clone(),
        })
    }
}

impl std::fmt::Display for Step {
    /// As a script has it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        for (name, value) in &self.headers {
            write!(f, "\n{name}: {value}")?;
        }
        match self.body_text() {
            Some(text) => write!(f, "\n\n{text}"),
            None => Ok(()),
        }
    }
}
