//! [`Normal`]: an answer without what has to differ from server to server and from run to run.
//!
//! | taken out | shown as |
//! |---|---|
//! | UIDs | `<uid>` |
//! | resource versions, where they stand and in messages | `<rv>` |
//! | that of an object, if the answer before said the same | `<rv again>` |
//! | times of today | `<now>` |
//! | ages in tables | `<age>` |
//! | the names of the run, and generated ones | `<run>`, `<generated>` |
//! | addresses and ports that the server chose | `<ip>`, `<port>` |
//! | tokens, continue tokens | `<token>`, `<continue>` |
//! | the server's own address | `<server>` |
//! | who is asking | `<user>` |

use regex::Regex;
use revisor_bench::Exchange;
use serde_json::{Value, json};

/// Headers that clients can tell servers apart by.
const HEADERS: &[&str] = &["content-type", "warning", "retry-after", "location", "cache-control", "vary"];

/// An answer that can be compared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Normal {
    /// The status code.
    pub status: u16,
    /// The headers that count, in the order of their names.
    pub headers: Vec<(String, String)>,
    /// What it brought.
    pub body: Content,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A JSON value.
    Json(Value),
    /// A JSON value in each line, as a watch sends them.
    Stream(Vec<Value>),
    /// Something else.
    Text(String),
}

impl Default for Content {
    fn default() -> Content {
        Content::Text(String::new())
    }
}

/// What is known of a server and a group.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// What the names of this run have in common.
    pub run: &'a str,
    /// The resource versions that the server told.
    pub versions: &'a [String],
    /// The last that was told of an object before.
    pub last: Option<&'a str>,
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file")
}

/// What is looked for in texts.
struct Patterns {
    uid: Regex,
    time: Regex,
    number: Regex,
    age: Regex,
    server: Regex,
    address: Regex,
}

impl Patterns {
    fn new() -> Patterns {
        Patterns {
            uid: pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            time: pattern(r"(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(\.\d+)?Z"),
            number: pattern(r"\b\d{3,}\b"),
            age: pattern(r"^\d+(ms|s|m\d*s?)$"),
            server: pattern(r"127\.0\.0\.1:\d+"),
            address: pattern(r"^10\.\d+\.\d+\.\d+$"),
        }
    }
}

impl Normal {
    /// The comparable form of an answer.
    pub fn of(exchange: &Exchange, known: Known<'_>) -> Normal {
        let cleaner = Cleaner { known, today: today(exchange), patterns: Patterns::new() };
        let mut headers: Vec<(String, String)> = exchange
            .headers
            .iter()
            .filter(|(name, _)| HEADERS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), cleaner.text(value)))
            .collect();
        headers.sort_by(|a, b| a.0.cmp(&b.0));
        Normal { status: exchange.status, headers, body: cleaner.content(&exchange.body) }
    }

    /// As it is shown.
    pub fn to_json(&self) -> Value {
        let (form, body) = match &self.body {
            Content::Json(value) => ("json", value.clone()),
            Content::Stream(values) => ("stream", Value::Array(values.clone())),
            Content::Text(text) => ("text", Value::from(text.as_str())),
        };
        json!({"status": self.status, "headers": self.headers, form: body})
    }

    /// The values of a header.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The date that the server says it is, as times have it.
fn today(exchange: &Exchange) -> Option<String> {
    let (_, date) = exchange.headers.iter().find(|(name, _)| name == "date")?;
    let parts: Vec<&str> = date.split_whitespace().collect();
    let [_, day, month, year, ..] = parts[..] else { return None };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|name| *name == month)? + 1;
    Some(format!("{year}-{month:02}-{day}"))
}

struct Cleaner<'a> {
    known: Known<'a>,
    today: Option<String>,
    patterns: Patterns,
}

impl Cleaner<'_> {
    fn content(&self, body: &[u8]) -> Content {
        if let Ok(mut value) = serde_json::from_slice::<Value>(body) {
            let version = value["metadata"]["resourceVersion"].as_str();
            let is_unchanged = version.is_some() && version == self.known.last;
            self.value("", &mut value);
            if is_unchanged {
                value["metadata"]["resourceVersion"] = "<rv again>".into();
            }
            return Content::Json(value);
        }
        let mut stream = Vec::new();
        for value in serde_json::Deserializer::from_slice(body).into_iter::<Value>() {
            match value {
                Ok(mut value) if value.is_object() => {
                    self.value("", &mut value);
                    stream.push(value);
                }
                _ => return Content::Text(self.text(&String::from_utf8_lossy(body))),
            }
        }
        Content::Stream(stream)
    }

    fn value(&self, name: &str, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.named(name, text),
            Value::Number(number)
                if matches!(name, "nodePort" | "healthCheckNodePort") && number.as_u64() > Some(0) =>
            {
                *value = "<port>".into();
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(name, item)),
            Value::Object(members) if name == "userInfo" => {
                members.clear();
                members.insert("<user>".to_owned(), Value::Null);
            }
            Value::Object(members) => {
                let generated = members.get("generateName").and_then(Value::as_str).map(str::to_owned);
                for (name, member) in members.iter_mut() {
                    self.value(name, member);
                }
                if let (Some(prefix), Some(Value::String(name))) = (generated, members.get_mut("name")) {
                    let prefix = self.text(&prefix);
                    if name.starts_with(&prefix) && name.len() == prefix.len() + 5 {
                        *name = prefix + "<generated>";
                    }
                }
            }
            _ => {}
        }
    }

    fn named(&self, name: &str, text: &str) -> String {
        match name {
            "resourceVersion" if text.len() > 1 => "<rv>".to_owned(),
            "continue" if !text.is_empty() => "<continue>".to_owned(),
            "token" if text.len() > 100 => "<token>".to_owned(),
            "clusterIP" | "clusterIPs" if self.patterns.address.is_match(text) => "<ip>".to_owned(),
            "cells" if self.patterns.age.is_match(text) => "<age>".to_owned(),
            "cells" if self.patterns.address.is_match(text) => "<ip>".to_owned(),
            _ => self.text(text),
        }
    }

    fn text(&self, text: &str) -> String {
        let text = text.replace(self.known.run, "<run>");
        let text = self.patterns.uid.replace_all(&text, "<uid>");
        let text = self.patterns.server.replace_all(&text, "<server>");
        let text = self.patterns.time.replace_all(&text, |found: &regex::Captures<'_>| {
            let is_today = self.today.as_deref() == Some(&found[1]);
            if is_today { "<now>".to_owned() } else { found[0].to_owned() }
        });
        // Numbers that stand alone; in others they would be found by chance.
        let text = self.patterns.number.replace_all(&text, |found: &regex::Captures<'_>| {
            let is_version = self.known.versions.iter().any(|version| *version == found[0]);
            if is_version { "<rv>".to_owned() } else { found[0].to_owned() }
        });
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_to_differ_is_taken_out() {
        let answer = |uid: &str, version: &str, run: &str| {
            Exchange {
            status: 201,
            headers: vec![
                ("date".to_owned(), "Tue, 17 Nov 2026 21:21:01 GMT".to_owned()),
                ("audit-id".to_owned(), uid.to_owned()),
            ],
            body: format!(
                r#"{{"metadata":{{"name":"{run}-1","uid":"{uid}","resourceVersion":"{version}","creationTimestamp":"2026-11-17T21:21:01Z"}},"message":"version {version} of 2020-01-01T00:00:00Z","cells":["5s"]}}"#
            )
            .into_bytes(),
        }
        };
        let one = answer("0b5ae28e-0b4b-4c39-b65a-000000000001", "1234", "dabc");
        let other = answer("0b5ae28e-0b4b-4c39-b65a-000000000002", "987654", "dxyz");
        let normal = |answer: &Exchange, version: &str, run: &str| {
            Normal::of(answer, Known { run, versions: &[version.to_owned()], last: None })
        };
        let ours = normal(&one, "1234", "dabc");
        assert_eq!(ours, normal(&other, "987654", "dxyz"));
        let Content::Json(body) = ours.body else { panic!("JSON") };
        assert_eq!(body["message"], "version <rv> of 2020-01-01T00:00:00Z");
    }
}
