//! Writing a custom object in its canonical form: the members of every object sorted by name, no white space, numbers as
//! the original writes them.

use revisor_object::{Object, Value, push_kept_text, push_kept_value};

use crate::Encoded;
use crate::raw::SPELLED;

/// Writes a custom object. As with all objects, `metadata.resourceVersion` is left out, and its place is told; an object
/// that is stored has a uid, which follows it.
pub fn encode_custom_object(object: &Object) -> Encoded {
    let mut bytes = Vec::with_capacity(1024);
    let mut revision_at = 0;
    let mut is_spelled = false;
    bytes.push(b'{');
    for (at, (name, value)) in object.iter().enumerate() {
        if at > 0 {
            bytes.push(b',');
        }
        is_spelled |= push_kept_text(name, &mut bytes);
        bytes.push(b':');
        match value {
            Value::Object(metadata) if name == "metadata" => {
                revision_at = write_metadata(&mut bytes, metadata, &mut is_spelled);
            }
            value => is_spelled |= push_kept_value(value, &mut bytes),
        }
    }
    bytes.push(b'}');
    if is_spelled {
        bytes.insert(0, SPELLED);
        revision_at += 1;
    }
    Encoded { bytes, revision_at }
}

fn write_metadata(bytes: &mut Vec<u8>, metadata: &Object, is_spelled: &mut bool) -> u32 {
    const REVISION: &str = "resourceVersion";
    bytes.push(b'{');
    let start = bytes.len();
    let mut revision_at = None;
    for (name, value) in metadata.iter().filter(|(name, _)| *name != REVISION) {
        // The splice brings its own comma behind it, so the one before it is written, and none after it.
        if bytes.len() > start {
            bytes.push(b',');
        }
        if revision_at.is_none() && name > REVISION {
            revision_at = Some(bytes.len() as u32);
        }
        *is_spelled |= push_kept_text(name, bytes);
        bytes.push(b':');
        *is_spelled |= push_kept_value(value, bytes);
    }
    bytes.push(b'}');
    revision_at.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::testing::parse;
    use super::*;

    #[test]
    fn members_are_sorted_with_a_place_for_the_revision() {
        for (text, want) in [
            (
                r#"{"spec":{"b":[1,{"z":1,"a":null}],"a":"é\n"},"kind":"K","apiVersion":"g/v1",
                    "metadata":{"uid":"u","resourceVersion":"7","name":"n"}}"#,
                r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n",^"uid":"u"},"spec":{"a":"é\n","b":[1,{"a":null,"z":1}]}}"#,
            ),
            (r#"{"metadata":{"uid":"u"}}"#, r#"{"metadata":{^"uid":"u"}}"#),
            (r#"{"metadata":{"name":"n"}}"#, r#"^{"metadata":{"name":"n"}}"#),
            (r#"{"f":[2.0,0.5,1e21,1e-7,123456789.0]}"#, r#"^{"f":[2,0.5,1e+21,1e-7,123456789]}"#),
        ] {
            let value = parse(text);
            let Encoded { mut bytes, revision_at } = encode_custom_object(value.as_object().expect("is an object"));
            bytes.insert(revision_at as usize, b'^');
            assert_eq!(String::from_utf8_lossy(&bytes), want);
        }
    }
}
