//! Members of a JSON text that its reader does not know or has seen already, in the order of the text.
//!
//! [`parse_json`](crate::parse_json) and the types notice them; in which order they stand is only looked up when somebody
//! has to be told.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::clip;

/// No more than these are named.
const MAX_NAMED: usize = 1000;

/// A member that should not be where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OddMember {
    /// Its object has it already.
    Duplicate(String),
    /// Nobody knows it. What is in it is not looked at.
    Unknown(String),
}

/// The odd members of a text that is JSON. Which are unknown is asked by path, `spec.containers[0].foo`.
pub fn odd_members(text: &[u8], is_unknown: &dyn Fn(&str) -> bool) -> Vec<OddMember> {
    let mut walk = Walk { path: String::new(), found: Vec::new(), is_unknown };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    // Where it ends early, because it nests too deeply, what was found so far is told.
    let _ = Place(&mut walk).deserialize(&mut deserializer);
    walk.found
}

struct Walk<'w> {
    path: String,
    found: Vec<OddMember>,
    is_unknown: &'w dyn Fn(&str) -> bool,
}

struct Place<'p, 'w>(&'p mut Walk<'w>);

impl<'de> DeserializeSeed<'de> for Place<'_, '_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let length = self.0.path.len();
        for at in 0.. {
            self.0.path.push_str(&format!("[{at}]"));
            let item = items.next_element_seed(Place(self.0))?;
            self.0.path.truncate(length);
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let length = self.0.path.len();
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if length > 0 {
                self.0.path.push('.');
            }
            self.0.path.push_str(&name);
            let path = clip(self.0.path.clone());
            let is_unknown = (self.0.is_unknown)(&path);
            let is_duplicate = !seen.insert(name);
            if self.0.found.len() < MAX_NAMED {
                match (is_unknown, is_duplicate) {
                    (true, _) => self.0.found.push(OddMember::Unknown(path)),
                    (false, true) => self.0.found.push(OddMember::Duplicate(path)),
                    (false, false) => {}
                }
            }
            if is_unknown {
                members.next_value::<IgnoredAny>()?;
            } else {
                members.next_value_seed(Place(self.0))?;
            }
            self.0.path.truncate(length);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_members_are_told_in_the_order_of_the_text() {
        let text = br#"{"a":{"x":1,"x":2},"u":{"v":1,"v":2},"b":[{"w":1},{"c":1,"c":{"d":1,"d":2}}],"a":1}"#;
        let unknown = |path: &str| matches!(path, "u" | "b[0].w");
        let duplicate = |path: &str| OddMember::Duplicate(path.to_owned());
        assert_eq!(
            odd_members(text, &unknown),
            [
                duplicate("a.x"),
                OddMember::Unknown("u".to_owned()),
                OddMember::Unknown("b[0].w".to_owned()),
                duplicate("b[1].c"),
                duplicate("b[1].c.d"),
                duplicate("a"),
            ]
        );
    }
}
