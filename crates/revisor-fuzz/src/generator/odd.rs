//! Values that hardly anybody expects where they stand.

use revisor_object::{Object, Value};

use crate::Choices;

/// Characters of every length in UTF-8, some of which join others, turn their direction or cannot be seen.
const CHARACTERS: &[char] = &[
    'ä',
    '€',
    '😀',
    '\u{301}',
    '\u{202e}',
    '\u{200d}',
    '\u{feff}',
    '\u{0}',
    '\u{7f}',
    '\u{85}',
    '\u{2028}',
    '\u{fffd}',
    'İ',
    'ß',
    '٣',
    'ﬃ',
    '\u{10ffff}',
    '\n',
    '\t',
    '"',
    '\\',
    '\'',
    '/',
    '%',
    '.',
    '-',
    ':',
    '=',
    ',',
    '{',
    '[',
    ' ',
];

/// Texts that are odd as a whole.
const TEXTS: &[&str] = &[
    "",
    " ",
    ".",
    "..",
    "../..",
    "/",
    "//",
    "a/b/c",
    "-",
    "-a",
    "a-",
    "A",
    "%00",
    "%zz",
    "null",
    "true",
    "0",
    "-0",
    "1e400",
    "NaN",
    "0x10",
    "١٢٣",
    "𝒳",
    "\u{1f468}\u{200d}\u{1f469}",
    "a\u{0}b",
    "\"quoted\"",
    "$(A)",
    "{{.}}",
    "<a>",
    "[::1",
    "::ffff:1.2.3.4",
    "010.0.0.1",
    "1.2.3.4/33",
    "http://[",
    "https://a:99999",
    "99999999999999999999",
    "1.5e",
    "5%",
    "150%",
    "-1%",
    "Ａ",
    "e\u{301}\u{301}\u{301}",
    "iqn.200ä-04.a:b",
    "[[:]",
    "(?P<",
    "a{9999}",
    "((((",
    "self.all(x",
    "''",
    "metadata.labels['",
    "metadata.labels['ä']",
    "* * * *",
    "@every 1ä",
    "TZ= ä",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:60Z",
    "2024-02-30T00:00:00Z",
    "2024-01-01T00:00:00ä",
    "-9223372036854775808s",
    "1h1ä",
    "1Ki1",
    "9e999999999",
    "0.000000000000000000001",
    "-1",
    "+1",
    "1_000",
];

const NUMBERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    80,
    255,
    256,
    65_535,
    65_536,
    i32::MAX as i64,
    i32::MIN as i64,
    i32::MAX as i64 + 1,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    2_147_483_647_999,
];

const FRACTIONS: &[f64] = &[0.5, -0.0, 1e19, -1e19, 1e308, 5e-324, 1.000_000_000_000_1, 80.0];

/// How long the longest odd texts are, in characters.
const LONG: &[usize] = &[63, 64, 253, 254, 1024, 5000];

/// How deep odd values nest.
const DEEP: usize = 24;

/// A text that is like a good one but for one thing, or not like one at all.
pub fn odd_text(choices: &mut Choices<'_>, good: &str) -> String {
    match choices.below(5) {
        0 => (*choices.of(TEXTS)).to_owned(),
        1 => {
            let (unit, length) = (*choices.of(&["a", "ä", "😀", "a.", "1", "-"]), *choices.of(LONG));
            unit.repeat(length)
        }
        2 => {
            // Without its end, wherever that falls.
            let end = choices.below(good.len() + 1);
            good[..good.floor_char_boundary(end)].to_owned()
        }
        // One character in it is another, or one more: what counts bytes meets the middle of it.
        way => {
            let at = good.floor_char_boundary(choices.below(good.len() + 1));
            let (before, after) = good.split_at(at);
            let kept = if way == 3 { after } else { after.get(after.ceil_char_boundary(1)..).unwrap_or_default() };
            format!("{before}{}{kept}", choices.of(CHARACTERS))
        }
    }
}

pub(super) fn number(choices: &mut Choices<'_>) -> Value {
    if choices.once_in(16) { Value::Float(*choices.of(FRACTIONS)) } else { Value::Int(*choices.of(NUMBERS)) }
}

/// A value of any type at all.
pub(super) fn value(choices: &mut Choices<'_>) -> Value {
    match choices.below(8) {
        0 => Value::Null,
        1 => Value::Bool(true),
        2 => number(choices),
        3 => Value::Array(vec![Value::Null]),
        4 => Value::Object(Object::new()),
        5 => nested(choices),
        _ => Value::from(odd_text(choices, "a")),
    }
}

fn nested(choices: &mut Choices<'_>) -> Value {
    let mut value = Value::Null;
    for _ in 0..choices.below(DEEP) {
        value = if choices.once_in(2) {
            Value::Array(vec![value])
        } else {
            let mut object = Object::new();
            object.insert(&odd_text(choices, "a"), value);
            Value::Object(object)
        };
    }
    value
}
