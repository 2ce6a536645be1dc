//! [`Records`]: the comma-separated values of a token file, with the quoting that Go's CSV reader accepts.
//!
//! Errors say where, never what: the text next to a stray quote may be a token.

/// One record and the line that it starts on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) line: usize,
    pub(super) fields: Vec<String>,
}

/// Why a record cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadQuote {
    /// A quote inside a field that does not start with one.
    Bare { line: usize },
    /// A quoted field that does not end, or goes on after its closing quote.
    Stray { line: usize },
}

/// The records of a text, in order. Empty lines are skipped; spaces belong to the fields.
pub(super) struct Records<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(text: &'a str) -> Records<'a> {
        Records { rest: text, line: 0 }
    }

    fn next_line(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        self.line += 1;
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    /// The record that starts with `line`, which was already taken.
    fn record(&mut self, mut line: &'a str) -> Result<Record, BadQuote> {
        let start = self.line;
        let mut fields = Vec::new();
        loop {
            let rest = match line.strip_prefix('"') {
                Some(inside) => {
                    let (field, rest) = self.quoted_field(inside)?;
                    fields.push(field);
                    rest
                }
                None => {
                    let (field, rest) = line.split_once(',').map_or((line, None), |(f, rest)| (f, Some(rest)));
                    if field.contains('"') {
                        return Err(BadQuote::Bare { line: self.line });
                    }
                    fields.push(field.to_owned());
                    rest
                }
            };
            match rest {
                Some(rest) => line = rest,
                None => return Ok(Record { line: start, fields }),
            }
        }
    }

    /// The field whose opening quote stands before `inside`, and what follows it on its last line, if anything.
    fn quoted_field(&mut self, mut inside: &'a str) -> Result<(String, Option<&'a str>), BadQuote> {
        let mut field = String::new();
        loop {
            let Some((text, after)) = inside.split_once('"') else {
                // The field contains a line break and goes on in the next line.
                field.push_str(inside);
                field.push('\n');
                inside = self.next_line().ok_or(BadQuote::Stray { line: self.line })?;
                continue;
            };
            field.push_str(text);
            if let Some(after) = after.strip_prefix('"') {
                field.push('"');
                inside = after;
            } else if let Some(rest) = after.strip_prefix(',') {
                return Ok((field, Some(rest)));
            } else if after.is_empty() {
                return Ok((field, None));
            } else {
                return Err(BadQuote::Stray { line: self.line });
            }
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, BadQuote>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.next_line()?;
            if !line.is_empty() {
                return Some(self.record(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_follows_the_rules_of_the_format() {
        type Want<'a> = Result<&'a [(usize, &'a [&'a str])], BadQuote>;
        let cases: &[(&str, Want<'_>)] = &[
            ("", Ok(&[])),
            ("\n\r\n\r", Ok(&[])),
            ("a,b,c", Ok(&[(1, &["a", "b", "c"])])),
            ("a,b,c\r\n\n d , e ,\n", Ok(&[(1, &["a", "b", "c"]), (3, &[" d ", " e ", ""])])),
            (r#""a,b","c""d","""#, Ok(&[(1, &["a,b", "c\"d", ""])])),
            (r#""","""#, Ok(&[(1, &["", ""])])),
            ("\"a\r\nb\",c\nd", Ok(&[(1, &["a\nb", "c"]), (3, &["d"])])),
            (" ", Ok(&[(1, &[" "])])),
            ("x\na\"b,c", Err(BadQuote::Bare { line: 2 })),
            (r#" "a",b"#, Err(BadQuote::Bare { line: 1 })),
            (r#""a"b,c"#, Err(BadQuote::Stray { line: 1 })),
            ("\"a,b\nc\n", Err(BadQuote::Stray { line: 2 })),
        ];
        for (text, want) in cases {
            let got: Result<Vec<_>, _> = Records::new(text).collect();
            let want = want.map(|records| {
                let owned = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect();
                records.iter().map(|(line, fields)| Record { line: *line, fields: owned(fields) }).collect()
            });
            assert_eq!(got, want, "{text:?}");
        }
    }
}
