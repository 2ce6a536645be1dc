//! Messages read back by the numbers of their fields, for tests.

/// One field of a message: its number, and its content.
#[derive(Debug, PartialEq)]
pub(in crate::openapi) enum Content<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    number
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Content<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let content = match key & 7 {
            0 => Content::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                Content::Double(f64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Content::Bytes(content)
            }
            other => panic!("no such wire type: {other}"),
        };
        found.push((key >> 3, content));
    }
    found
}

/// What stands at these numbers, from the outermost message inwards.
pub(in crate::openapi) fn at<'a>(bytes: &'a [u8], path: &[u64]) -> Vec<Content<'a>> {
    let (number, rest) = path.split_first().expect("a path");
    let here = fields(bytes).into_iter().filter(|(found, _)| found == number).map(|(_, content)| content);
    if rest.is_empty() {
        return here.collect();
    }
    here.flat_map(|content| match content {
        Content::Bytes(bytes) => at(bytes, rest),
        other => panic!("no message: {other:?}"),
    })
    .collect()
}
