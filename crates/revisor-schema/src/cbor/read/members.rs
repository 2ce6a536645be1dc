//! Reading the members of structs.

use std::collections::HashSet;

use revisor_object::{BadValue, Value, text_of_bytes};

use super::super::CborError;
use super::super::head::{BYTES, NEGATIVE, TEXT, UNSIGNED};
use super::{Reader, mismatch};
use crate::Field;

/// How the members of a struct are read.
pub(super) struct Members<'n, O, R> {
    /// The original's name of the type.
    pub(super) name: &'n str,
    /// The field with a name.
    pub(super) of: O,
    /// Reads the value of a field.
    pub(super) read: R,
}

/// A field that can be named.
pub(super) trait FieldName {
    fn name(&self) -> &str;
}

impl FieldName for &Field {
    fn name(&self) -> &str {
        &self.name
    }
}

impl FieldName for String {
    fn name(&self) -> &str {
        self
    }
}

/// The key of a member.
struct Key {
    /// The name, if it is one.
    text: Option<String>,
    /// How the original shows it.
    shown: String,
}

impl Reader<'_, '_> {
    /// The members of a struct (upstream: `parseMapToStruct`).
    pub(super) fn members<F: FieldName>(
        &mut self,
        Members { name: of_type, of, mut read }: Members<
            '_,
            impl Fn(&str) -> Option<F>,
            impl FnMut(&mut Self, &F) -> Result<(), CborError>,
        >,
    ) -> Result<(), CborError> {
        let mut left = self.cursor.head()?.count();
        let (mut found, mut others): (Vec<String>, HashSet<String>) = Default::default();
        let (mut fault, mut at) = (None, 0);
        while self.cursor.has_next(&mut left)? {
            let this = at;
            at += 1;
            let key = match self.key(&mut fault)? {
                Some(key) => key,
                None => {
                    self.cursor.skip()?;
                    continue;
                }
            };
            let field = key.text.as_deref().and_then(&of);
            let is_new = match &field {
                Some(field) if found.iter().any(|name| name == field.name()) => false,
                Some(field) => {
                    found.push(field.name().to_owned());
                    true
                }
                None if self.is_strict => {
                    self.cursor.skip()?;
                    self.pass_rest(&mut left)?;
                    return Err(CborError::UnknownField(this));
                }
                None => others.insert(key.shown.clone()),
            };
            if !is_new {
                self.cursor.skip()?;
                self.pass_rest(&mut left)?;
                return Err(CborError::Duplicate(key.shown, this));
            }
            let Some(field) = field else {
                self.cursor.skip()?;
                continue;
            };
            if let Err(mut error) = read(self, &field) {
                if let CborError::Mismatch(mismatch) = &mut error {
                    mismatch.field = Some(format!("{of_type}.{}", field.name()));
                }
                fault.get_or_insert(error);
            }
        }
        fault.map_or(Ok(()), Err)
    }

    /// The key of a member of a struct; `None` if nothing can be made of it.
    fn key(&mut self, fault: &mut Option<CborError>) -> Result<Option<Key>, CborError> {
        let head = self.peek_head()?;
        let text = match head.major {
            TEXT => self.text(),
            BYTES => {
                self.cursor.head()?;
                self.cursor.string(head).map(|bytes| text_of_bytes(&bytes).into_owned())
            }
            UNSIGNED => {
                self.cursor.head()?;
                return Ok(Some(Key { text: None, shown: (head.number as i64).to_string() }));
            }
            NEGATIVE => {
                self.cursor.head()?;
                if let Ok(number) = i64::try_from(head.number) {
                    return Ok(Some(Key { text: None, shown: (!number).to_string() }));
                }
                let why = format!("-1-{} overflows Go's int64", head.number);
                fault.get_or_insert(mismatch(head.type_name(), "int64", Some(why)));
                return Ok(None);
            }
            _ => {
                let found = head.type_name();
                let why = format!("map key is of type {found} and cannot be used to match struct field name");
                fault.get_or_insert(mismatch(found, "string", Some(why)));
                return Ok(match self.any() {
                    Ok(Value::Array(_) | Value::Object(_)) | Err(_) => None,
                    Ok(Value::Null) => Some(Key { text: None, shown: "<nil>".to_owned() }),
                    Ok(Value::String(text)) => {
                        Some(Key { text: None, shown: BadValue::from(text.as_str()).to_string() })
                    }
                    Ok(other) => Some(Key { text: None, shown: other.to_json() }),
                });
            }
        };
        match text {
            Ok(text) => Ok(Some(Key { shown: BadValue::from(text.as_str()).to_string(), text: Some(text) })),
            Err(error) => {
                fault.get_or_insert(error);
                Ok(None)
            }
        }
    }
}
