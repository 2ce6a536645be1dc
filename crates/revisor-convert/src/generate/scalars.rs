//! Values without parts: numbers, texts, booleans.

use revisor_object::Value;
use revisor_schema::{Checks, JsonType, PatternWalk, Structural};

use super::Generator;

/// Texts of each format, as far as one needs to know them.
const FORMATS: [(&str, &[&str]); 27] = [
    ("bsonobjectid", &["507f1f77bcf86cd799439011"]),
    ("uri", &["http://a.example/b?c=d", "/a"]),
    ("email", &["a@b.example"]),
    ("hostname", &["a.example", "localhost"]),
    ("ipv4", &["1.2.3.4", "0.0.0.0"]),
    ("ipv6", &["::1", "2001:db8::7"]),
    ("cidr", &["10.0.0.0/8", "::/0"]),
    ("mac", &["00:1a:2b:3c:4d:5e"]),
    ("uuid", &["6ba7b810-9dad-11d1-80b4-00c04fd430c8"]),
    ("uuid3", &["a3bb189e-8bf9-3888-9912-ace4e6543002"]),
    ("uuid4", &["2b1bbbd4-5c2a-4a6b-8a55-8a4f1f3ab5f1"]),
    ("uuid5", &["a6edc906-2f9f-5fb2-a373-efac406f0ef2"]),
    ("isbn", &["0306406152", "9780306406157"]),
    ("isbn10", &["0306406152"]),
    ("isbn13", &["9780306406157"]),
    ("creditcard", &["4111111111111111"]),
    ("ssn", &["123-45-6789"]),
    ("hexcolor", &["#fff", "a1b2c3"]),
    ("rgbcolor", &["rgb(1,2,3)"]),
    ("byte", &["YQ==", "YWJj"]),
    ("password", &["p"]),
    ("date", &["2026-11-16", "1970-01-01"]),
    ("duration", &["1s", "1h30m0s", "0s", "2 days"]),
    ("datetime", &["2026-11-16T01:02:03Z", "1970-01-01T00:00:00.5+01:00"]),
    ("k8sshortname", &["a", "a-1"]),
    ("k8slongname", &["a.b", "a"]),
    ("int", &[]),
];

/// Numbers that mean something to somebody.
const NUMBERS: [i64; 14] = [0, 1, -1, 2, 3, 7, 10, 42, 59, 60, 61, 100, 1000, 65536];

/// Texts of all sorts.
const TEXTS: [&str; 14] = ["", "a", "A", "0", "7", "-1", "a b", "é", "-", "true", "50%", "a:b", "abc", "x.y/z"];

/// How many texts of a pattern are tried at its bounds.
const WALKS: usize = 12;

impl Generator<'_> {
    /// The bounds of a node without parts, and what else is worth a try.
    pub(super) fn scalars(&mut self, schema: &Structural) -> Vec<Value> {
        let nothing = Checks::default();
        let checks = schema.checks.as_deref().unwrap_or(&nothing);
        let mut found = Vec::new();
        if schema.is_int_or_string || schema.kind == Some(JsonType::Integer) {
            found.extend(self.integers(checks).into_iter().map(Value::Int));
        }
        match schema.kind {
            _ if schema.is_int_or_string => found.extend(TEXTS.map(Value::from)),
            Some(JsonType::Boolean) => found.extend([false, true].map(Value::Bool)),
            Some(JsonType::Number) => {
                found.extend(self.integers(checks).into_iter().map(Value::Int));
                let bounds = [checks.minimum, checks.maximum, Some(0.5), Some(-1.5), Some(1e9 + 0.25)];
                found.extend(bounds.into_iter().flatten().map(Value::Float));
            }
            Some(JsonType::String) => {
                found.extend(self.texts(checks).into_iter().map(Value::from));
            }
            None => {
                let open = Value::Object([("x", Value::Array(vec![Value::Int(1), Value::Null]))].into_iter().collect());
                found.extend([open, Value::from("a"), Value::Int(1), Value::Array(Vec::new())]);
            }
            _ => {}
        }
        let mut branches: Vec<Structural> = Vec::new();
        for branch in checks.any_of.iter().chain(&checks.one_of).chain(&checks.all_of) {
            let kind = branch.kind.or(schema.kind);
            if branch.checks.as_ref().is_some_and(|checks| checks.any_of.is_empty() && checks.one_of.is_empty()) {
                branches.push(Structural { kind, checks: branch.checks.clone(), ..Structural::default() });
            }
        }
        for branch in &branches {
            let allowed = branch.checks.as_ref().map(|checks| checks.allowed.clone()).unwrap_or_default();
            found.extend(allowed);
            found.extend(self.scalars(branch));
        }
        found
    }

    /// One value of a node without parts.
    pub(super) fn scalar(&mut self, schema: &Structural, is_least: bool) -> Value {
        let pattern = schema.checks.as_deref().filter(|checks| !checks.pattern.is_empty());
        if let Some(checks) = pattern.filter(|_| !is_least && schema.kind == Some(JsonType::String))
            && self.dice.below(3) == 0
            && let Some(text) = self.walked(checks)
        {
            return Value::from(text);
        }
        let candidates = self.candidates(schema);
        match (candidates.len(), schema.kind) {
            (0, Some(JsonType::String)) => Value::from(""),
            (0, Some(JsonType::Boolean)) => Value::Bool(false),
            (0, Some(JsonType::Integer | JsonType::Number)) => Value::Int(0),
            (0, _) => Value::Object(revisor_object::Object::new()),
            _ if is_least => candidates[0].clone(),
            (count, Some(JsonType::Integer)) if self.dice.below(3) == 0 => {
                // Something between two that are possible.
                let (one, other) = (&candidates[self.dice.below(count)], &candidates[self.dice.below(count)]);
                match (one.as_i64(), other.as_i64()) {
                    (Some(one), Some(other)) => {
                        let (low, high) = (one.min(other), one.max(other));
                        let span = high.saturating_sub(low).clamp(0, 1 << 40) as usize;
                        Value::Int(low.saturating_add(self.dice.below(span + 1) as i64))
                    }
                    _ => one.clone(),
                }
            }
            (count, _) => candidates[self.dice.below(count)].clone(),
        }
    }

    fn integers(&mut self, checks: &Checks) -> Vec<i64> {
        let (low, high) = match checks.format.as_str() {
            "int32" => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        let bound = |bound: Option<f64>, otherwise: i64| bound.map_or(otherwise, |bound| bound as i64);
        let (low, high) = (bound(checks.minimum, low), bound(checks.maximum, high));
        let mut found: Vec<i64> = NUMBERS.to_vec();
        found.extend([low, low.saturating_add(1), high, high.saturating_sub(1)]);
        found.extend(
            self.hints
                .iter()
                .filter_map(Value::as_i64)
                .flat_map(|hint| [hint, hint.saturating_add(1), hint.saturating_sub(1)]),
        );
        found.push(low.saturating_add(self.dice.below(1000) as i64));
        if let Some(factor) = checks.multiple_of.map(|factor| factor as i64).filter(|factor| *factor > 0) {
            let rounded: Vec<i64> = found.iter().map(|number| number / factor * factor).collect();
            found.extend(rounded);
        }
        // The smallest first, so that what is found first is simple.
        found.retain(|number| (low..=high).contains(number));
        found.sort_by_key(|number| (number.unsigned_abs(), *number < 0));
        found.dedup();
        found
    }

    fn texts(&mut self, checks: &Checks) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let format = checks.format.replace('-', "");
        if let Some((_, texts)) = FORMATS.iter().find(|(name, _)| *name == format) {
            found.extend(texts.iter().map(|text| (*text).to_owned()));
        }
        let most = checks.max_length.and_then(|most| usize::try_from(most).ok());
        let least = checks.min_length.and_then(|least| usize::try_from(least).ok()).unwrap_or(0);
        if !checks.pattern.is_empty() {
            found.extend(self.walk(checks, 0));
            found.extend(self.walk(checks, least));
            found.extend(self.walk(checks, most.unwrap_or(32)));
            found.extend((0..WALKS).filter_map(|_| self.walked(checks)));
        }
        found.extend(TEXTS.map(str::to_owned));
        found.extend(self.hints.iter().filter_map(Value::as_str).map(str::to_owned));
        found.push("a".repeat(least.min(4096)));
        found.push("b".repeat(most.unwrap_or(40).min(4096)));
        found
    }

    /// A text of a pattern, of any length that is allowed.
    fn walked(&mut self, checks: &Checks) -> Option<String> {
        let bound = |bound: Option<i64>| bound.and_then(|bound| usize::try_from(bound).ok());
        let least = bound(checks.min_length).unwrap_or(0);
        let most = bound(checks.max_length).unwrap_or(least + 24);
        let length = least + self.dice.below(most.saturating_sub(least).min(256) + 1);
        let text = self.walk(checks, length)?;
        (least..=most).contains(&text.chars().count()).then_some(text)
    }

    /// A text of a pattern of about this length.
    fn walk(&mut self, checks: &Checks, length: usize) -> Option<String> {
        let walk = self.walks.entry(checks.pattern.clone());
        let walk = walk.or_insert_with(|| PatternWalk::new(&checks.pattern).ok()).as_ref()?;
        let dice = &mut self.dice;
        walk.text(length.min(256), &mut |below| dice.below(below))
    }
}
