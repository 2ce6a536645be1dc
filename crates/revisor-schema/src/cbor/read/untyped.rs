//! Reading what can be anything: custom objects, and any JSON in others.

use revisor_object::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::super::CborError;
use super::super::head::{ARRAY, BYTES, FALSE, Head, MAP, NEGATIVE, NULL, PRIMITIVE, TAG, TEXT, TRUE, UNSIGNED};
use super::{Reader, mismatch, overflow, unrecognized};
use crate::Shape;
use crate::timestamp::{Precision, parse_timestamp, timestamp_problem};

impl Reader<'_, '_> {
    /// Whatever there is (upstream: `parse`).
    pub(super) fn any(&mut self) -> Result<Value, CborError> {
        self.pass_itself()?;
        self.check_tags()?;
        match self.cursor.major()? {
            ARRAY => self.list(&Shape::Any, None),
            MAP => self.map(&Shape::Any, None),
            TAG => self.any_tagged(),
            _ => self.any_scalar(),
        }
    }

    fn any_tagged(&mut self) -> Result<Value, CborError> {
        match self.cursor.head()?.number {
            tag @ (0 | 1) => self.time(tag).map(Value::from),
            tag => self.tagged(tag, Reader::any),
        }
    }

    fn any_scalar(&mut self) -> Result<Value, CborError> {
        let head = self.peek_head()?;
        match head.major {
            BYTES => self.byte_text().map(Value::from),
            TEXT => self.text().map(Value::from),
            UNSIGNED | NEGATIVE => {
                self.cursor.head()?;
                match i64::try_from(head.number) {
                    Ok(number) if head.major == NEGATIVE => Ok(Value::Int(!number)),
                    Ok(number) => Ok(Value::Int(number)),
                    Err(_) => Err(mismatch(head.type_name(), "int64", Some(overflow(head, "Go's int64")))),
                }
            }
            _ => {
                self.cursor.head()?;
                self.primitive(head)
            }
        }
    }

    fn primitive(&self, head: Head) -> Result<Value, CborError> {
        match (head.float(), head.info) {
            (None, FALSE) => Ok(Value::Bool(false)),
            (None, TRUE) => Ok(Value::Bool(true)),
            (None, NULL) => Ok(Value::Null),
            (None, _) => Err(unrecognized(head)),
            (Some(number), _) => {
                // Where nothing is known of types, a whole number is an integer.
                let is_whole = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
                let is_integer = self.is_untyped && is_whole && (number != 0.0 || number.is_sign_positive());
                Ok(if is_integer { Value::Int(number as i64) } else { Value::Float(number) })
            }
        }
    }

    /// A time, behind the tag that says so, as the text that JSON would have.
    fn time(&mut self, tag: u64) -> Result<String, CborError> {
        let head = self.peek_head()?;
        if tag == 0 {
            let text = self.text()?;
            let time = parse_timestamp(&text, Precision::Seconds).and(OffsetDateTime::parse(&text, &Rfc3339).ok());
            return time.and_then(|time| time.format(&Rfc3339).ok()).ok_or_else(|| {
                let problem = timestamp_problem(&text, Precision::Seconds);
                CborError::Other(format!("cbor: cannot set {text} for time.Time: {problem}"))
            });
        }
        self.cursor.head()?;
        let time = match (head.float(), i64::try_from(head.number)) {
            (Some(seconds), _) if head.major == PRIMITIVE => {
                let nanoseconds = i128::from(seconds.trunc() as i64) * 1_000_000_000;
                OffsetDateTime::from_unix_timestamp_nanos(nanoseconds + (seconds.fract() * 1e9) as i128)
            }
            (_, Ok(seconds)) => {
                OffsetDateTime::from_unix_timestamp(if head.major == NEGATIVE { !seconds } else { seconds })
            }
            (_, Err(_)) => return Err(mismatch(head.type_name(), "time.Time", Some(overflow(head, "Go's int64")))),
        };
        time.ok().and_then(|time| time.format(&Rfc3339).ok()).ok_or_else(|| {
            CborError::Other(
                "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: \
                 Time.MarshalText: year outside of range [0,9999]"
                    .to_owned(),
            )
        })
    }
}
