//! Whether bytes are CBOR, and such as Kubernetes takes. Nothing is built of them yet, so that the lengths that they
//! claim cost nothing.

use revisor_object::MAX_DEPTH;

use super::CborError;
use super::head::{ARRAY, BYTES, Cursor, Head, MAP, PRIMITIVE, SIMPLE, TAG, TEXT, type_name_of};

/// How deeply arrays, maps and tags may nest in the original. Here the limit is that of JSON, but what is beyond this one
/// is told of as the original does.
const ORIGINAL_DEPTH: usize = 10_000;
const MAX_ELEMENTS: u64 = 2_147_483_647;
const MAX_PAIRS: u64 = 2_097_152;

/// An array or a map that is not at its end.
struct Open {
    /// How many items are left; a break ends it if it does not say.
    left: Option<u64>,
    /// How many there were, where they are not said.
    passed: u64,
    is_map: bool,
    depth: usize,
}

/// Refuses bytes that are not exactly one item (upstream: `wellformed`).
pub(super) fn check(bytes: &[u8]) -> Result<(), CborError> {
    if bytes.is_empty() {
        return Err(CborError::Empty);
    }
    let mut cursor = Cursor::new(bytes);
    let mut open: Vec<Open> = Vec::new();
    let mut deepest = 0;
    loop {
        let depth = open.last().map_or(0, |within| within.depth);
        if let Some(within) = item(&mut cursor, depth)? {
            deepest = deepest.max(within.depth);
            open.push(within);
        }
        while let Some(within) = open.last_mut() {
            if goes_on(&mut cursor, within)? {
                break;
            }
            open.pop();
        }
        if open.is_empty() {
            break;
        }
    }
    match bytes.len() - cursor.at {
        0 if deepest > MAX_DEPTH => Err(CborError::TooDeep(MAX_DEPTH)),
        0 => Ok(()),
        more => Err(CborError::More(more, cursor.at)),
    }
}

/// One item, or the start of an array or map.
fn item(cursor: &mut Cursor<'_>, mut depth: usize) -> Result<Option<Open>, CborError> {
    let mut head = head(cursor)?;
    if head.major == TAG {
        loop {
            let content = cursor.peek()?;
            if matches!(head.number, 2 | 3) {
                return Err(CborError::Unacceptable("tag", "bignum".to_owned()));
            }
            if content >> 5 != TAG {
                break;
            }
            head = self::head(cursor)?;
            depth = deeper(depth)?;
        }
        head = self::head(cursor)?;
    }
    match head.major {
        BYTES | TEXT => string(cursor, head).map(|()| None),
        ARRAY | MAP => {
            let is_map = head.major == MAP;
            let depth = deeper(depth)?;
            if let Some(count) = head.count() {
                check_count(head, count)?;
            }
            let left = head.count().map(|count| if is_map { count * 2 } else { count });
            Ok(Some(Open { left, passed: 0, is_map, depth }))
        }
        _ => Ok(None),
    }
}

fn deeper(depth: usize) -> Result<usize, CborError> {
    if depth == ORIGINAL_DEPTH { Err(CborError::TooDeep(ORIGINAL_DEPTH)) } else { Ok(depth + 1) }
}

/// A head, with what is said of numbers that JSON does not have, and of values that are written in too many bytes.
fn head(cursor: &mut Cursor<'_>) -> Result<Head, CborError> {
    let head = cursor.head()?;
    if head.major != PRIMITIVE {
        return Ok(head);
    }
    if head.info == SIMPLE && head.number < 32 {
        return Err(CborError::Other(format!("cbor: invalid simple value {} for type primitives", head.number)));
    }
    match head.float() {
        Some(number) if number.is_nan() => Err(CborError::Unacceptable("primitives", "floating-point NaN".to_owned())),
        Some(number) if number.is_infinite() => {
            Err(CborError::Unacceptable("primitives", "floating-point infinity".to_owned()))
        }
        _ => Ok(head),
    }
}

fn string(cursor: &mut Cursor<'_>, head: Head) -> Result<(), CborError> {
    let name = head.type_name();
    if !head.is_endless() {
        if i64::try_from(head.number).is_err() {
            let problem = format!("cbor: {name} length {} is too large, causing integer overflow", head.number);
            return Err(CborError::Other(problem));
        }
        return cursor.take(head.number).map(drop);
    }
    while !cursor.passes_break()? {
        let first = cursor.peek()?;
        if first >> 5 != head.major {
            let found = type_name_of(first);
            return Err(CborError::Other(format!("cbor: wrong element type {found} for indefinite-length {name}")));
        }
        if first & 0x1f == 31 {
            return Err(CborError::Other(format!("cbor: indefinite-length {name} chunk is not definite-length")));
        }
        let piece = cursor.head()?;
        string(cursor, piece)?;
    }
    Ok(())
}

/// A length is believed only as far as there are bytes for it, and told of if it is beyond all bounds.
fn check_count(head: Head, count: u64) -> Result<(), CborError> {
    let name = head.type_name();
    if i64::try_from(count).is_err() {
        let problem = format!("cbor: {name} length {count} is too large, it would cause integer overflow");
        return Err(CborError::Other(problem));
    }
    match head.major {
        ARRAY if count > MAX_ELEMENTS => {
            Err(CborError::Other(format!("cbor: exceeded max number of elements {MAX_ELEMENTS} for CBOR array")))
        }
        MAP if count > MAX_PAIRS => {
            Err(CborError::Other(format!("cbor: exceeded max number of key-value pairs {MAX_PAIRS} for CBOR map")))
        }
        _ => Ok(()),
    }
}

/// Whether another item of an array or map follows.
fn goes_on(cursor: &mut Cursor<'_>, within: &mut Open) -> Result<bool, CborError> {
    if cursor.has_next(&mut within.left)? {
        within.passed += 1;
        return Ok(true);
    }
    if within.left.is_none() && within.is_map && within.passed % 2 == 1 {
        return Err(CborError::Other("cbor: unexpected \"break\" code".to_owned()));
    }
    Ok(false)
}
