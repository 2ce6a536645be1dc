//! How custom objects are stored: in one version, with what other versions say beyond it beside them.
//!
//! What lies [`Beneath`] an object is in an annotation of the stored bytes. No version shows it and nobody can send it;
//! whatever converts the object, it is there again after the object was written (V3). Only a webhook sees it: as on every
//! other cluster the annotation goes with the object that it is asked for, and comes back with its answer, which may hold
//! another one or none. The steps of a read: take away the annotation, bring the object into its canonical form, bring it up to the schema of its version, convert it. Those of a
//! write, in its own version before it is validated: ignore the annotation, bring it into its canonical form, prune; and
//! after that: convert it, put back what lies beneath.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use revisor_convert::{KEPT_ANNOTATION, Opened, Stored, read_kept, take_annotation};
use revisor_object::{Object, Value};
use revisor_schema::{JsonType, Structural};

use super::conversion::{CustomConversion, Unconverted, failed, into_object, short};
use super::{Custom, Family};

/// What is stored of an object and its version does not show.
#[derive(Debug, Default)]
pub enum Beneath {
    /// Nothing, and the object is stored in the version that is to be stored.
    #[default]
    Nothing,
    /// The annotation as it is: nobody reads it at present but a webhook, if one is asked.
    Annotation(Value),
    /// Everything, by rules: what is stored, and what is kept beside it.
    Stored(Opened),
    /// Everything, whatever converts it: the object is worked on as it is stored, in this version.
    Itself(String, Option<Value>),
    /// An annotation that cannot be read, and why. The object is shown without it, and only written in the version that
    /// is stored, where nothing else belongs to it.
    Damaged(Value, String),
}

/// What is to be stored of an object, and what is seen of it then.
#[derive(Debug)]
pub struct LaidDown {
    /// As it is stored.
    pub stored: Object,
    /// As the version shows it through which it was written, where that is known and not the same.
    pub shown: Option<Object>,
}

impl From<Object> for LaidDown {
    fn from(stored: Object) -> LaidDown {
        LaidDown { stored, shown: None }
    }
}

impl Custom {
    /// Whether every object can be shown at once: nobody has to be asked, nothing can fail, and labels stay as they are.
    pub fn is_certain(&self) -> bool {
        self.family.conversion.is_certain()
    }

    /// Whether versions differ by nothing but their names and schemas.
    pub fn is_by_name(&self) -> bool {
        matches!(self.family.conversion, CustomConversion::ByName)
    }

    /// Whether somebody else may have to be asked for an object in another version.
    pub fn asks_others(&self) -> bool {
        self.family.conversion.asks_others()
    }

    /// A stored object as this version shows it.
    pub fn show(&self, stored: Object) -> Result<Object, Unconverted> {
        self.open(stored, false).0
    }

    /// The same, and what lies beneath it, for who is going to put another in its place.
    pub fn show_to_write(&self, stored: Object) -> (Result<Object, Unconverted>, Beneath) {
        self.open(stored, true)
    }

    /// A stored object as it is, for who needs no more of it than every version has.
    pub fn take_stored(&self, mut stored: Object) -> (Object, Beneath) {
        let annotation = take_annotation(&mut stored);
        let version = stored.str("apiVersion").unwrap_or_default().to_owned();
        (stored, Beneath::Itself(version, annotation))
    }

    fn open(&self, mut stored: Object, is_written: bool) -> (Result<Object, Unconverted>, Beneath) {
        let annotation = take_annotation(&mut stored);
        match self.family.conversion.rules() {
            Some(rules) => self.open_by_rules(rules, stored, annotation, is_written),
            None => {
                self.family.settle(&mut stored);
                let beneath = annotation.map_or(Beneath::Nothing, Beneath::Annotation);
                if self.asks_others() && stored.str("apiVersion") != Some(&*self.api_version) {
                    stored = with_annotation(stored, &beneath);
                }
                (self.show_settled(stored), beneath)
            }
        }
    }

    fn open_by_rules(
        &self,
        rules: &revisor_convert::Conversion,
        mut stored: Object,
        annotation: Option<Value>,
        is_written: bool,
    ) -> (Result<Object, Unconverted>, Beneath) {
        let managed = take_managed_fields(&mut stored);
        let (shown, beneath) = self.open_unmanaged(rules, stored, annotation, is_written);
        (shown.map(|shown| with_managed_fields(shown, managed)), beneath)
    }

    fn open_unmanaged(
        &self,
        rules: &revisor_convert::Conversion,
        stored: Object,
        annotation: Option<Value>,
        is_written: bool,
    ) -> (Result<Object, Unconverted>, Beneath) {
        let kept = annotation.as_ref().map_or_else(|| Ok(BTreeMap::new()), read_kept);
        let (kept, damage) = match (kept, annotation) {
            (Ok(kept), _) => (kept, None),
            (Err(error), annotation) => {
                let name = stored.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
                tracing::warn!(kind = %self.family.kind, name, %error, "what is kept beside an object cannot be read");
                (BTreeMap::new(), annotation.map(|annotation| Beneath::Damaged(annotation, error.to_string())))
            }
        };
        let (version, object) = match self.settle_by_rules(rules, stored) {
            Ok(settled) => settled,
            Err(unconverted) => return (Err(unconverted), damage.unwrap_or_default()),
        };
        let stored = Stored { object, kept };
        let is_plain = stored.kept.is_empty() && version == self.storage_version();
        let (shown, beneath) = match version == self.api_version {
            true if is_plain || !is_written => (into_object(Ok(stored.object)), Beneath::Nothing),
            true => (into_object(Ok(stored.object.clone())), Beneath::Stored(stored.into())),
            false => self.read_by_rules(rules, stored, &version, is_written),
        };
        (shown, damage.unwrap_or(beneath))
    }

    /// The canonical form of a stored object, as the schema of its version has it today, and that version.
    fn settle_by_rules(
        &self,
        rules: &revisor_convert::Conversion,
        mut stored: Object,
    ) -> Result<(String, Value), Unconverted> {
        if self.family.schema(stored.str("apiVersion").unwrap_or_default()).is_none() {
            // The definition has no such version any more, and so no rule has: all that is left is its name.
            stored.insert("apiVersion", self.storage_version());
        }
        let version = stored.str("apiVersion").unwrap_or_default().to_owned();
        let mut object = Value::Object(stored);
        rules.canonicalize(short(&version), &mut object).map_err(failed)?;
        if let Value::Object(object) = &mut object {
            self.family.settle(object);
        }
        Ok((version, object))
    }

    /// An object of another version, read by rules.
    fn read_by_rules(
        &self,
        rules: &revisor_convert::Conversion,
        stored: Stored,
        from: &str,
        is_written: bool,
    ) -> (Result<Object, Unconverted>, Beneath) {
        let (version, mut beneath) = (short(&self.api_version), Beneath::Nothing);
        let shown = self.converted(from, || {
            let made = if is_written {
                let (made, opened) = rules.open(stored, version).map_err(failed)?;
                beneath = Beneath::Stored(opened);
                made
            } else {
                rules.read(&stored, version).map_err(failed)?
            };
            self.take_in_by_rules(rules, made)
        });
        (shown, beneath)
    }

    /// Brings what rules made into the shape of this version.
    fn take_in_by_rules(&self, rules: &revisor_convert::Conversion, mut made: Value) -> Result<Object, Unconverted> {
        rules.canonicalize(short(&self.api_version), &mut made).map_err(failed)?;
        let mut shown = into_object(Ok(made))?;
        // Rules answer what lies beneath an object beside it.
        let _ = self.take_in(&mut shown);
        Ok(shown)
    }

    /// What is shown of an object that is as the schema of its version says.
    fn show_settled(&self, settled: Object) -> Result<Object, Unconverted> {
        let version = settled.str("apiVersion").unwrap_or_default().to_owned();
        if version == self.api_version {
            return Ok(settled);
        }
        self.converted(&version, || {
            let mut shown = self.family.conversion.convert(settled, &self.api_version)?;
            // Nobody else has converted it, so that nothing new lies beneath it.
            let _ = self.take_in(&mut shown);
            Ok(shown)
        })
    }

    /// Does a conversion from another version to this one, and counts it.
    fn converted(
        &self,
        from: &str,
        convert: impl FnOnce() -> Result<Object, Unconverted>,
    ) -> Result<Object, Unconverted> {
        let begun = Instant::now();
        let converted = convert();
        if converted.is_ok() {
            self.count(from, &self.api_version, begun.elapsed());
        }
        converted
    }

    /// Counts a conversion from one API version to another.
    pub fn count(&self, from: &str, to: &str, time: Duration) {
        self.family.tally.count(short(from), short(to), self.family.conversion.way(), time);
    }

    /// Brings an object that came from another version into the shape of this one. Answers what lies beneath it now, if
    /// somebody else has converted it.
    pub fn take_in(&self, converted: &mut Object) -> Beneath {
        let annotation = take_annotation(converted);
        converted.insert("apiVersion", self.api_version.as_str());
        self.family.shape(&self.schema, converted);
        annotation.map_or(Beneath::Nothing, Beneath::Annotation)
    }

    /// Brings an object to another version, for those who compare what managers see of it.
    pub fn convert(&self, object: Object, api_version: &str) -> Result<Object, Unconverted> {
        let schema = self.family.schema(object.str("apiVersion").unwrap_or_default());
        let (Some(_), Some(schema)) = (self.family.conversion.rules(), schema) else {
            return self.family.conversion.convert(object, api_version);
        };
        let mut object = Value::Object(object);
        empty_nulls(schema.structural(), &mut object);
        self.family.conversion.convert(into_object(Ok(object))?, api_version)
    }

    /// What is to be stored when an object of this version, which shows its type, takes the place of what lies beneath.
    /// Upholds V3.
    pub fn lay_down(&self, mut object: Object, beneath: &Beneath) -> Result<LaidDown, Unconverted> {
        if let Beneath::Itself(version, _) = beneath {
            object.insert("apiVersion", version.as_str());
            return Ok(with_annotation(object, beneath).into());
        }
        let is_storage = self.storage_version() == self.api_version;
        match (&self.family.conversion, beneath) {
            // In its own version it was made to fit when it was read.
            (_, Beneath::Nothing) if is_storage => Ok(object.into()),
            (_, Beneath::Annotation(_) | Beneath::Damaged(..)) if is_storage => {
                Ok(with_annotation(object, beneath).into())
            }
            (_, Beneath::Damaged(_, why)) => Err(Unconverted::Failed(format!(
                "what other versions keep beside the object cannot be read and would be lost: {why}"
            ))),
            (CustomConversion::ByRules(rules), _) => self.lay_down_by_rules(rules, object, beneath),
            // The webhook gets what lies beneath along with the object, and answers what is to lie there.
            (conversion @ CustomConversion::ByWebhook(_), _) => {
                let converted = conversion.convert(with_annotation(object, beneath), self.storage_version())?;
                Ok(self.lay_down_converted(converted).into())
            }
            (conversion @ (CustomConversion::ByName | CustomConversion::Impossible(_)), _) => {
                let begun = Instant::now();
                let converted = conversion.convert(object, self.storage_version())?;
                let stored = with_annotation(self.lay_down_converted(converted), beneath);
                self.count(&self.api_version, self.storage_version(), begun.elapsed());
                Ok(stored.into())
            }
        }
    }

    fn lay_down_by_rules(
        &self,
        rules: &revisor_convert::Conversion,
        mut object: Object,
        beneath: &Beneath,
    ) -> Result<LaidDown, Unconverted> {
        let begun = Instant::now();
        let managed = take_managed_fields(&mut object);
        let old = match beneath {
            Beneath::Stored(old) => Some(old),
            Beneath::Nothing | Beneath::Annotation(_) | Beneath::Damaged(..) | Beneath::Itself(..) => None,
        };
        let written = rules.replace(old, Value::Object(object), short(self.storage_version())).map_err(failed)?;
        let annotation = written.stored.annotation();
        let mut stored = into_object(Ok(written.stored.object))?;
        let shown = match written.shown {
            Some(shown) => Some(with_managed_fields(self.take_in_by_rules(rules, shown)?, managed.clone())),
            None => None,
        };
        if self.storage_version() != self.api_version {
            self.family.shape(&self.family.versions[self.family.storage].1, &mut stored);
            self.count(&self.api_version, self.storage_version(), begun.elapsed());
        }
        let mut stored = with_managed_fields(stored, managed);
        if let Some(annotation) = annotation {
            self.family.tally.count_kept(annotation.len());
            stored.object_mut("metadata").object_mut("annotations").insert(KEPT_ANNOTATION, annotation);
        }
        Ok(LaidDown { stored, shown })
    }

    /// The same of an object that somebody else has brought to the version that is stored.
    pub fn lay_down_converted(&self, mut converted: Object) -> Object {
        let (version, schema) = &self.family.versions[self.family.storage];
        converted.insert("apiVersion", version.as_str());
        self.family.shape(schema, &mut converted);
        converted
    }

    /// Takes what a client sent: what it cannot set is ignored, and what it says in an old way is said in the canonical
    /// one.
    pub(crate) fn take_sent(&self, value: &mut Value) -> Result<(), String> {
        value.as_object_mut().and_then(take_annotation);
        match self.family.conversion.rules() {
            Some(rules) => rules.canonicalize(short(&self.api_version), value).map(drop).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }
}

impl Family {
    /// Brings a stored object of any version up to what the schema of that version says today: what it no longer has
    /// goes, what it now fills in comes.
    fn settle(&self, stored: &mut Object) {
        let version = stored.str("apiVersion").unwrap_or_default();
        if let Some(schema) = self.schema(version).cloned() {
            self.shape(&schema, stored);
            schema.default(stored);
        }
    }
}

/// Takes away who manages what, which is often as large as the object and which no rule reads: it need not be copied with
/// every version of it.
fn take_managed_fields(object: &mut Object) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

fn with_managed_fields(mut object: Object, managed: Option<Value>) -> Object {
    if let Some(managed) = managed {
        object.object_mut("metadata").insert("managedFields", managed);
    }
    object
}

/// The object with the annotation that nobody reads at present, or nobody can.
fn with_annotation(mut object: Object, beneath: &Beneath) -> Object {
    if let Beneath::Annotation(annotation) | Beneath::Damaged(annotation, _) | Beneath::Itself(_, Some(annotation)) =
        beneath
    {
        object.object_mut("metadata").object_mut("annotations").insert(KEPT_ANNOTATION, annotation.clone());
    }
    object
}

/// What is left of an object or a list, from which managers took away everything, is null where that is none of its
/// values. To rules it is an empty one: what is kept for its parts is not gone with them.
fn empty_nulls(schema: &Structural, value: &mut Value) {
    match (value, schema.kind) {
        (value @ Value::Null, Some(JsonType::Object)) if !schema.nullable => *value = Value::Object(Object::new()),
        (value @ Value::Null, Some(JsonType::Array)) if !schema.nullable => *value = Value::Array(Vec::new()),
        (Value::Object(object), _) => {
            for (name, property) in &schema.properties {
                if let Some(member) = object.get_mut(name) {
                    empty_nulls(property, member);
                }
            }
        }
        (Value::Array(items), _) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| empty_nulls(schema, item));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
