//! [`YamlLines`]: on which line of a YAML or JSON text a value stands, for those who are to go there.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use crate::json::MAX_DEPTH;
use crate::yaml::{key_text, scalar};

/// The lines of all values of the first document of a text, by their JSON pointers (`/spec/versions/0/name`). The line of
/// a member is that of its name.
#[derive(Debug, Default)]
pub struct YamlLines(HashMap<String, usize>);

/// A mapping or sequence whose end has not come yet.
enum Open {
    Sequence { next: usize },
    Mapping { expects_key: bool },
}

impl YamlLines {
    /// Finds them. What follows a mistake is not known.
    pub fn of(text: &str) -> YamlLines {
        let mut lines = HashMap::new();
        let mut open: Vec<Open> = Vec::new();
        // The pointer to what is open, and where each of its steps begins.
        let (mut pointer, mut steps) = (String::new(), Vec::new());
        for event in Parser::new(StrInput::new(text)) {
            let Ok((event, span)) = event else { break };
            let line = span.start.line();
            if let Event::Scalar(text, style, _, tag) = &event
                && let Some(Open::Mapping { expects_key: expects_key @ true }) = open.last_mut()
            {
                *expects_key = false;
                let key = scalar(text, *style == ScalarStyle::Plain, tag.as_deref()).ok();
                let name = key.as_ref().and_then(key_text).unwrap_or_default();
                descend(&mut pointer, &mut steps, &name.replace('~', "~0").replace('/', "~1"));
                lines.insert(pointer.clone(), line);
                continue;
            }
            if let (
                Event::Scalar(..) | Event::Alias(_) | Event::SequenceStart(..) | Event::MappingStart(..),
                Some(Open::Sequence { next }),
            ) = (&event, open.last_mut())
            {
                descend(&mut pointer, &mut steps, &next.to_string());
                lines.insert(pointer.clone(), line);
                *next += 1;
            }
            match event {
                Event::Scalar(..) | Event::Alias(_) => ascend(&mut pointer, &mut steps, &mut open),
                Event::SequenceStart(..) => open.push(Open::Sequence { next: 0 }),
                Event::MappingStart(..) => open.push(Open::Mapping { expects_key: true }),
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    ascend(&mut pointer, &mut steps, &mut open);
                }
                Event::DocumentEnd | Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            }
            if open.len() > MAX_DEPTH {
                break;
            }
        }
        YamlLines(lines)
    }

    /// The line of what a JSON pointer leads to, counted from 1.
    pub fn get(&self, pointer: &str) -> Option<usize> {
        self.0.get(pointer).copied()
    }
}

fn descend(pointer: &mut String, steps: &mut Vec<usize>, name: &str) {
    steps.push(pointer.len());
    pointer.push('/');
    pointer.push_str(name);
}

/// A value is over: behind it comes the next member or item of what is open.
fn ascend(pointer: &mut String, steps: &mut Vec<usize>, open: &mut [Open]) {
    if let Some(end) = steps.pop() {
        pointer.truncate(end);
    }
    if let Some(Open::Mapping { expects_key }) = open.last_mut() {
        *expects_key = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_line() {
        let text = "a: 1\nb:\n- c: x\n  d/e: {f: 1,\n    g: [1,\n      2]}\n- last\nh: &x {i: 1}\nj: *x\n";
        let lines = YamlLines::of(text);
        for (pointer, want) in [
            ("/a", Some(1)),
            ("/b", Some(2)),
            ("/b/0", Some(3)),
            ("/b/0/c", Some(3)),
            ("/b/0/d~1e", Some(4)),
            ("/b/0/d~1e/g", Some(5)),
            ("/b/0/d~1e/g/1", Some(6)),
            ("/b/1", Some(7)),
            ("/h/i", Some(8)),
            ("/j", Some(9)),
            ("/j/i", None),
            ("/b/2", None),
        ] {
            assert_eq!(lines.get(pointer), want, "{pointer}");
        }
        let json = YamlLines::of("{\n  \"a\": [\n    {\"b\": 1},\n    2\n  ]\n}");
        assert_eq!((json.get("/a/0/b"), json.get("/a/1")), (Some(3), Some(4)));
        assert_eq!(YamlLines::of("a: [1\nb: 2").get("/a"), Some(1));
        assert_eq!(YamlLines::of(&"[".repeat(100_000)).get("/x"), None);
    }
}
