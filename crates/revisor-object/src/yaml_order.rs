//! [`KeyOrder`]: in which order a YAML text has the keys of its mappings, for those who write it again.

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use crate::json::MAX_DEPTH;
use crate::yaml::{key_text, scalar};

/// The order of the keys of one value and of all that is in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyOrder {
    keys: Vec<(String, KeyOrder)>,
    items: Vec<KeyOrder>,
}

impl KeyOrder {
    /// The order of the first document of a text; nothing is known of a text that is not YAML.
    pub fn of(text: &str) -> KeyOrder {
        let mut open: Vec<Open> = Vec::new();
        for event in Parser::new(StrInput::new(text)) {
            let Ok((event, _)) = event else { return KeyOrder::default() };
            let closed = match event {
                Event::Scalar(text, style, _, tag) => {
                    if let Some(Open { key: Key::Wanted, .. }) = open.last() {
                        let key = scalar(&text, style == ScalarStyle::Plain, tag.as_deref()).ok();
                        let name = key.and_then(|key| key_text(&key)).unwrap_or_default();
                        if let Some(last) = open.last_mut() {
                            last.key = Key::Is(name.to_string());
                        }
                        continue;
                    }
                    KeyOrder::default()
                }
                Event::Alias(_) => KeyOrder::default(),
                Event::SequenceStart(..) => {
                    open.push(Open { order: KeyOrder::default(), key: Key::None });
                    continue;
                }
                Event::MappingStart(..) => {
                    open.push(Open { order: KeyOrder::default(), key: Key::Wanted });
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                    Some(closed) => closed.order,
                    None => return KeyOrder::default(),
                },
                Event::DocumentEnd | Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => continue,
            };
            let Some(holder) = open.last_mut() else { return closed };
            match std::mem::replace(&mut holder.key, Key::Wanted) {
                Key::Is(name) => holder.order.keys.push((name, closed)),
                _ => {
                    holder.key = Key::None;
                    holder.order.items.push(closed);
                }
            }
            if open.len() > MAX_DEPTH {
                break;
            }
        }
        KeyOrder::default()
    }

    /// The keys of a mapping, as they stand.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(name, _)| name.as_str())
    }

    /// The order of the value of a key.
    pub fn member(&self, name: &str) -> Option<&KeyOrder> {
        self.keys.iter().find(|(known, _)| known == name).map(|(_, order)| order)
    }

    /// The order of an item of a sequence.
    pub fn item(&self, index: usize) -> Option<&KeyOrder> {
        self.items.get(index)
    }
}

/// A mapping or sequence whose end has not come yet.
struct Open {
    order: KeyOrder,
    key: Key,
}

enum Key {
    /// A sequence has none.
    None,
    Wanted,
    Is(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stand_as_they_were_written() {
        let order = KeyOrder::of("b: 1\na:\n- {z: 1, x: [1, {q: 2, p: 3}]}\n- 5\n---\nother: 1\n");
        assert_eq!(order.keys().collect::<Vec<_>>(), ["b", "a"]);
        let item = order.member("a").and_then(|list| list.item(0)).expect("is there");
        assert_eq!(item.keys().collect::<Vec<_>>(), ["z", "x"]);
        let inner = item.member("x").and_then(|list| list.item(1)).expect("is there");
        assert_eq!(inner.keys().collect::<Vec<_>>(), ["q", "p"]);
        assert_eq!(KeyOrder::of("a: [\n"), KeyOrder::default());
        assert_eq!(KeyOrder::of(""), KeyOrder::default());
    }
}
