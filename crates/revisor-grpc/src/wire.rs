//! Protobuf, as far as small messages need it: fields that are numbers, bytes or texts, and maps from texts to bytes.

use std::collections::BTreeMap;

/// Writes the fields of a message, in the order in which they are put.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// A message without fields.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// A number; zero is left out, as it is the default.
    #[must_use]
    pub fn number(mut self, field: u32, value: u64) -> Writer {
        if value != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(value);
        }
        self
    }

    /// Bytes or a text; nothing is left out, as it is the default.
    #[must_use]
    pub fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Writer {
        if !value.as_ref().is_empty() {
            self.delimited(field, value.as_ref());
        }
        self
    }

    /// A map, in the order of its keys.
    #[must_use]
    pub fn map(mut self, field: u32, map: &BTreeMap<String, Vec<u8>>) -> Writer {
        for (key, value) in map {
            let entry = Writer::new().bytes(1, key).bytes(2, value).finish();
            self.delimited(field, &entry);
        }
        self
    }

    /// The bytes of the message.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    fn delimited(&mut self, field: u32, value: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    /// A number.
    Number(u64),
    /// Bytes, a text or a message.
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The bytes; nothing of a number.
    pub fn as_bytes(self) -> &'a [u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => &[],
        }
    }

    /// The number; zero of bytes.
    pub fn as_number(self) -> u64 {
        match self {
            Field::Number(number) => number,
            Field::Bytes(_) => 0,
        }
    }

    /// The text.
    pub fn as_text(self) -> Result<String, &'static str> {
        String::from_utf8(self.as_bytes().to_vec()).map_err(|_| "a text is not UTF-8")
    }

    /// An entry of a map from texts to bytes.
    pub fn as_entry(self) -> Result<(String, Vec<u8>), &'static str> {
        let (mut key, mut value) = (String::new(), Vec::new());
        for field in read(self.as_bytes()) {
            match field? {
                (1, text) => key = text.as_text()?,
                (2, bytes) => value = bytes.as_bytes().to_vec(),
                _ => {}
            }
        }
        Ok((key, value))
    }
}

/// The fields of a message with their numbers, in order. After an error there are no more.
pub fn read(message: &[u8]) -> impl Iterator<Item = Result<(u32, Field<'_>), &'static str>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let next = next(&mut rest);
        if next.is_err() {
            rest = &[];
        }
        Some(next)
    })
}

fn next<'a>(rest: &mut &'a [u8]) -> Result<(u32, Field<'a>), &'static str> {
    let tag = varint(rest)?;
    let number = u32::try_from(tag >> 3).ok().filter(|number| *number != 0).ok_or("a field has no number")?;
    let value = match tag & 7 {
        0 => Field::Number(varint(rest)?),
        1 => Field::Number(u64::from_le_bytes(take(rest)?)),
        2 => {
            let length = usize::try_from(varint(rest)?).map_err(|_| "a field is too long")?;
            let (value, after) = rest.split_at_checked(length).ok_or("a field is longer than its message")?;
            *rest = after;
            Field::Bytes(value)
        }
        5 => Field::Number(u32::from_le_bytes(take(rest)?).into()),
        _ => return Err("a field has an unknown type"),
    };
    Ok((number, value))
}

fn varint(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = take(rest)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number is too long")
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], &'static str> {
    let (taken, after) = rest.split_first_chunk::<N>().ok_or("the message ends in a field")?;
    *rest = after;
    Ok(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let map = BTreeMap::from([("a.b".to_owned(), vec![1, 2]), ("c.d".to_owned(), vec![])]);
        let message = Writer::new().bytes(1, "text").number(2, 300).number(3, 0).bytes(4, "").map(5, &map).finish();
        let fields: Result<Vec<_>, _> = read(&message).collect();
        let fields = fields.expect("is a message");
        assert_eq!(fields.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 5, 5]);
        assert_eq!(fields[0].1.as_text().as_deref(), Ok("text"));
        assert_eq!(fields[1].1.as_number(), 300);
        assert_eq!(fields[2].1.as_entry(), Ok(("a.b".to_owned(), vec![1, 2])));
        assert_eq!(fields[3].1.as_entry(), Ok(("c.d".to_owned(), vec![])));
    }

    #[test]
    fn no_message_is_read_beyond_its_end() {
        let message = Writer::new().bytes(1, "text").number(2, 1 << 40).finish();
        for end in 1..message.len() {
            let fields: Vec<_> = read(&message[..end]).collect();
            assert!(end == 6 || fields.iter().any(Result::is_err), "cut at {end}");
        }
        for odd in [&[0x00, 0x01][..], &[0x0b], &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]]
        {
            assert!(read(odd).any(|field| field.is_err()), "{odd:?}");
        }
    }
}
