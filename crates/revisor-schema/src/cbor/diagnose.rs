//! CBOR in the notation for people (RFC 8949, section 8), in which the original shows what does not say of which kind it
//! is.

use super::CborError;
use super::head::{ARRAY, BYTES, Cursor, FALSE, MAP, NEGATIVE, NULL, TAG, TEXT, TRUE, UNSIGNED};
use super::well_formed;

/// An item as people read it; of bytes that are none, their hexadecimal digits.
pub fn diagnose_cbor(bytes: &[u8]) -> String {
    let mut out = String::new();
    let shown = well_formed::check(bytes).and_then(|()| item(&mut Cursor::new(bytes), &mut out));
    shown.map_or_else(|_| bytes.iter().map(|byte| format!("{byte:02x}")).collect(), |()| out)
}

fn item(cursor: &mut Cursor<'_>, out: &mut String) -> Result<(), CborError> {
    let head = cursor.head()?;
    match head.major {
        UNSIGNED => out.push_str(&head.number.to_string()),
        NEGATIVE => out.push_str(&(-1 - i128::from(head.number)).to_string()),
        BYTES | TEXT if head.is_endless() => {
            if cursor.passes_break()? {
                out.push_str(if head.major == BYTES { "''_" } else { "\"\"_" });
                return Ok(());
            }
            items(cursor, None, ["(_ ", ")"], out)?;
        }
        BYTES => bytes(cursor.take(head.number)?, out),
        TEXT => text(&cursor.text(head)?, '"', out),
        ARRAY => items(cursor, head.count(), [if head.is_endless() { "[_ " } else { "[" }, "]"], out)?,
        MAP => {
            out.push_str(if head.is_endless() { "{_ " } else { "{" });
            let mut left = head.count();
            let mut is_first = true;
            while cursor.has_next(&mut left)? {
                out.push_str(if std::mem::take(&mut is_first) { "" } else { ", " });
                item(cursor, out)?;
                out.push_str(": ");
                item(cursor, out)?;
            }
            out.push('}');
        }
        TAG => {
            out.push_str(&format!("{}(", head.number));
            item(cursor, out)?;
            out.push(')');
        }
        _ => match head.float() {
            Some(number) => float(number, out),
            None => match head.info {
                FALSE => out.push_str("false"),
                TRUE => out.push_str("true"),
                NULL => out.push_str("null"),
                23 => out.push_str("undefined"),
                _ => out.push_str(&format!("simple({})", head.number)),
            },
        },
    }
    Ok(())
}

fn items(
    cursor: &mut Cursor<'_>,
    mut left: Option<u64>,
    [start, end]: [&str; 2],
    out: &mut String,
) -> Result<(), CborError> {
    out.push_str(start);
    let mut is_first = true;
    while cursor.has_next(&mut left)? {
        out.push_str(if std::mem::take(&mut is_first) { "" } else { ", " });
        item(cursor, out)?;
    }
    out.push_str(end);
    Ok(())
}

fn bytes(bytes: &[u8], out: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(shown) if !shown.is_empty() => text(shown, '\'', out),
        _ => {
            out.push_str("h'");
            bytes.iter().for_each(|byte| out.push_str(&format!("{byte:02x}")));
            out.push('\'');
        }
    }
}

fn text(text: &str, quote: char, out: &mut String) {
    out.push(quote);
    for character in text.chars() {
        match character {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            _ if character == '\\' || character == quote => out.extend(['\\', character]),
            ' '..='~' => out.push(character),
            _ => {
                let mut units = [0; 2];
                character.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    out.push(quote);
}

fn float(number: f64, out: &mut String) {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        let shown = number.to_string();
        out.push_str(&shown);
        out.push_str(if shown.contains('.') { "" } else { ".0" });
        return;
    }
    let shown = format!("{number:e}");
    let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let fraction = if digits.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    out.push_str(&format!("{digits}{fraction}e{sign}{exponent}"));
}
