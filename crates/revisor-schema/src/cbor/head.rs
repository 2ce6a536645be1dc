//! What begins each item.

use super::CborError;

pub(super) const UNSIGNED: u8 = 0;
pub(super) const NEGATIVE: u8 = 1;
pub(super) const BYTES: u8 = 2;
pub(super) const TEXT: u8 = 3;
pub(super) const ARRAY: u8 = 4;
pub(super) const MAP: u8 = 5;
pub(super) const TAG: u8 = 6;
pub(super) const PRIMITIVE: u8 = 7;

pub(super) const FALSE: u8 = 20;
pub(super) const TRUE: u8 = 21;
pub(super) const NULL: u8 = 22;
/// Simple values beyond the first byte.
pub(super) const SIMPLE: u8 = 24;
pub(super) const HALF: u8 = 25;
pub(super) const SINGLE: u8 = 26;
pub(super) const DOUBLE: u8 = 27;
const ENDLESS: u8 = 31;

/// The byte that ends what does not say how long it is.
pub(super) const BREAK: u8 = 0xff;
/// Nothing.
pub(super) const NULL_BYTE: u8 = 0xf6;
/// Nothing that was ever said.
pub(super) const UNDEFINED_BYTE: u8 = 0xf7;

/// What begins an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) major: u8,
    pub(super) info: u8,
    /// The number that the head holds; of what has no length, nothing.
    pub(super) number: u64,
}

impl Head {
    /// Whether only a break ends it.
    pub(super) fn is_endless(self) -> bool {
        self.info == ENDLESS
    }

    /// How many items there are in it, if it says so.
    pub(super) fn count(self) -> Option<u64> {
        (!self.is_endless()).then_some(self.number)
    }

    /// What the original calls such an item.
    pub(super) fn type_name(self) -> &'static str {
        type_name(self.major)
    }

    /// A number with a fraction, if it is one.
    pub(super) fn float(self) -> Option<f64> {
        match self.info {
            HALF => Some(half(self.number as u16)),
            SINGLE => Some(f32::from_bits(self.number as u32).into()),
            DOUBLE => Some(f64::from_bits(self.number)),
            _ => None,
        }
    }
}

/// What the original calls an item that begins with this byte.
pub(super) fn type_name_of(first: u8) -> &'static str {
    type_name(first >> 5)
}

fn type_name(major: u8) -> &'static str {
    match major {
        UNSIGNED => "positive integer",
        NEGATIVE => "negative integer",
        BYTES => "byte string",
        TEXT => "UTF-8 text string",
        ARRAY => "array",
        MAP => "map",
        TAG => "tag",
        _ => "primitives",
    }
}

/// Bytes, and how far they are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    pub(super) fn peek(&self) -> Result<u8, CborError> {
        self.bytes.get(self.at).copied().ok_or(CborError::Truncated)
    }

    pub(super) fn major(&self) -> Result<u8, CborError> {
        Ok(self.peek()? >> 5)
    }

    pub(super) fn take(&mut self, length: u64) -> Result<&'a [u8], CborError> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(length).ok().and_then(|length| rest.get(..length)).ok_or(CborError::Truncated)?;
        self.at += taken.len();
        Ok(taken)
    }

    /// Whether the break that ends an item of any length is next; it is passed.
    pub(super) fn passes_break(&mut self) -> Result<bool, CborError> {
        let is_break = self.peek()? == BREAK;
        self.at += usize::from(is_break);
        Ok(is_break)
    }

    /// Whether a list or map of which so many items are left goes on.
    pub(super) fn has_next(&mut self, left: &mut Option<u64>) -> Result<bool, CborError> {
        match left {
            Some(0) => Ok(false),
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
            None => Ok(!self.passes_break()?),
        }
    }

    /// The head that is next (upstream: `wellformedHead`).
    pub(super) fn head(&mut self) -> Result<Head, CborError> {
        let first = self.take(1)?[0];
        let (major, info) = (first >> 5, first & 0x1f);
        let number = match info {
            0..24 => info.into(),
            24..28 => {
                let bytes = self.take(1 << (info - 24))?;
                bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
            }
            ENDLESS => match major {
                UNSIGNED | NEGATIVE | TAG => return Err(no_such_head(major, info)),
                PRIMITIVE => return Err(CborError::Other("cbor: unexpected \"break\" code".to_owned())),
                _ => 0,
            },
            _ => return Err(no_such_head(major, info)),
        };
        Ok(Head { major, info, number })
    }

    /// Passes over an item that is well-formed.
    pub(super) fn skip(&mut self) -> Result<(), CborError> {
        // How many items are left of each list and map that is open.
        let mut open: Vec<Option<u64>> = Vec::new();
        loop {
            let head = self.head()?;
            match head.major {
                BYTES | TEXT if !head.is_endless() => _ = self.take(head.number)?,
                BYTES | TEXT => open.push(None),
                ARRAY => open.push(head.count()),
                MAP => open.push(head.count().map(|pairs| pairs.saturating_mul(2))),
                TAG => continue,
                _ => {}
            }
            loop {
                let Some(left) = open.last_mut() else { return Ok(()) };
                if self.has_next(left)? {
                    break;
                }
                open.pop();
            }
        }
    }

    /// The bytes of a byte string or a text, in one piece or in several.
    pub(super) fn string(&mut self, head: Head) -> Result<Vec<u8>, CborError> {
        if !head.is_endless() {
            return Ok(self.take(head.number)?.to_vec());
        }
        let mut whole = Vec::new();
        while !self.passes_break()? {
            let piece = self.head()?;
            whole.extend_from_slice(self.take(piece.number)?);
        }
        Ok(whole)
    }

    /// The same of a text, every piece of which must be one.
    pub(super) fn text(&mut self, head: Head) -> Result<String, CborError> {
        let not_utf8 = || CborError::Other("cbor: invalid UTF-8 string".to_owned());
        if !head.is_endless() {
            return std::str::from_utf8(self.take(head.number)?).map(str::to_owned).map_err(|_| not_utf8());
        }
        let mut whole = Ok(String::new());
        while !self.passes_break()? {
            let piece = self.head()?;
            let text = std::str::from_utf8(self.take(piece.number)?);
            match (&mut whole, text) {
                (Ok(whole), Ok(text)) => whole.push_str(text),
                _ => whole = Err(not_utf8()),
            }
        }
        whole
    }
}

fn no_such_head(major: u8, info: u8) -> CborError {
    CborError::Other(format!("cbor: invalid additional information {info} for type {}", type_name(major)))
}

/// A number of half precision.
fn half(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 0x1f);
    let mantissa = f64::from(bits & 0x3ff);
    let size = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (mantissa + 1024.0) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}
