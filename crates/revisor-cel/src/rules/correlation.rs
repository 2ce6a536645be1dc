//! [`Correlation`]: whether the value that a rule is about is what it was.
//!
//! What was wrong before and is unchanged must not keep an object from being changed elsewhere.

use revisor_object::Value;
use revisor_schema::{Compared, Correlation as Pair, Structural};

/// Where an old value belongs to the new one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Correlation<'a> {
    /// At this place, if one does.
    here: Option<Pair<'a>>,
    /// At the nearest place above. Absent at the root, and where nothing is compared.
    above: Option<Pair<'a>>,
}

impl<'a> Correlation<'a> {
    pub(super) fn root(new: &'a Value, old: &'a Value, schema: &'a Structural) -> Correlation<'a> {
        Correlation { here: Some(Pair::new(schema, old, new)), above: None }
    }

    /// The correlation of an element, with the old one that belongs to it.
    pub(super) fn below(&self, values: Option<(&'a Value, &'a Value)>, schema: &'a Structural) -> Correlation<'a> {
        match self.here {
            None => *self,
            Some(_) => Correlation { here: values.map(|(new, old)| Pair::new(schema, old, new)), above: self.here },
        }
    }

    /// The correlation of a member, with the old one of the same name.
    pub(super) fn member(
        &self,
        name: &str,
        values: Option<(&'a Value, &'a Value)>,
        schema: &'a Structural,
    ) -> Correlation<'a> {
        // Old and new objects were brought to one version before, so these two say nothing of what the client changed.
        if self.here.is_some() && self.above.is_none() && matches!(name, "apiVersion" | "kind") {
            return Correlation::default();
        }
        self.below(values, schema)
    }

    /// Whether the value, or the nearest above it for which that can be said, is what it was.
    pub(super) fn is_unchanged(&self, compared: &mut Compared) -> bool {
        self.here.or(self.above).is_some_and(|pair| pair.is_unchanged(compared))
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn value(text: &str) -> Value {
        parse_json(text.as_bytes()).expect("is JSON").value
    }

    #[test]
    fn what_the_schema_describes_can_be_unchanged() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer"}}},
            "l":{"type":"array","items":{"type":"string"}},
            "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],
                 "items":{"type":"object","properties":{"n":{"type":"string"},"v":{"type":"integer"}}}},
            "m":{"type":"object","additionalProperties":{"type":"integer"}}}}"#;
        let schema = value(schema);
        let schema = Structural::read(schema.as_object().expect("is an object"));
        for (new, old, unchanged) in [
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#, true),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":2}}"#, false),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1.0}}"#, false),
            (r#"{"a":{"b":1,"c":1}}"#, r#"{"a":{"b":1,"c":1}}"#, false),
            (r#"{"l":["a","b"]}"#, r#"{"l":["a","b"]}"#, true),
            (r#"{"l":["a","b"]}"#, r#"{"l":["b","a"]}"#, false),
            (r#"{"k":[{"n":"a"},{"n":"b"}]}"#, r#"{"k":[{"n":"b"},{"n":"a"}]}"#, true),
            (r#"{"k":[{"n":"a","v":1}]}"#, r#"{"k":[{"n":"a","v":2}]}"#, false),
            (r#"{"m":{"x":1}}"#, r#"{"m":{"x":1}}"#, true),
            (r#"{"m":{"x":1}}"#, r#"{"m":{"y":1}}"#, false),
            (r#"{"x":1}"#, r#"{"x":1}"#, false),
            (r#"{"a":null}"#, r#"{"a":null}"#, true),
        ] {
            let (new, old) = (value(new), value(old));
            let correlation = Correlation::root(&new, &old, &schema);
            assert_eq!(correlation.is_unchanged(&mut Compared::default()), unchanged, "{new:?} {old:?}");
        }
    }
}
