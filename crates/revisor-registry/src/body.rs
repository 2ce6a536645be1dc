//! The body of a write: JSON, YAML, protobuf or CBOR to an object that fits its type.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldNames, Object, OddMember, Parsed, Value, Warnings, clip, odd_members,
    parse_json, parse_stored, parse_yaml, repeated_yaml_keys,
};
use revisor_schema::{
    CborError, ClaimedType, Envelope, Findings, ProtobufError, ReadCbor, StructId, Types, diagnose_cbor, read_cbor_type,
};

use crate::RegistryError;

/// How many bytes are shown of a body that nobody can read.
const SUMMARY: usize = 30;

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
    /// `application/cbor`
    Cbor,
}

/// What a body should be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyType<'a> {
    pub(crate) kind: &'a str,
    /// `None` if it may be of several versions.
    pub(crate) api_version: Option<&'a str>,
    pub(crate) types: &'a Types,
    /// `None` for custom objects, of which nothing is known but that they are objects.
    pub(crate) id: Option<StructId>,
}

impl<'a> BodyType<'a> {
    fn of(resource: &'a Resource) -> BodyType<'a> {
        let (types, id) = resource.typed();
        let id = resource.custom().is_none().then_some(id);
        BodyType { kind: &resource.kind, api_version: Some(&resource.api_version), types, id }
    }

    fn read_protobuf(self, message: &[u8]) -> Result<Value, ProtobufError> {
        match self.id {
            Some(id) => self.types.read_protobuf(id, message),
            None => Err(ProtobufError::NoMessage(self.kind.to_owned())),
        }
    }
}

/// What is said of CBOR that does not get as far as a kind.
pub(crate) const UNKNOWN_TYPE: &str = "unable to determine group/version/kind";

/// Why a body cannot be read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is not the JSON that it says.
    Syntax(String),
    /// It is not the YAML that it says.
    Yaml(String),
    /// It is not the CBOR that it says, or does not tell what it is.
    Cbor(CborError),
    /// It does, but the object in it does not fit.
    CborContent {
        /// What it says that it is.
        claimed: ClaimedType,
        /// What is wrong with the object.
        problem: CborError,
    },
    /// It is, but what is around the object makes no sense.
    Envelope(ProtobufError),
    /// That does, but the object in it does not.
    Content {
        /// The kind that the envelope names.
        kind: String,
        /// And its version.
        api_version: String,
        /// What is wrong with the object.
        problem: ProtobufError,
    },
}

impl Unread {
    /// What is said of a body that should be of this kind. As the original's `transformDecodeError`: what did not get as
    /// far as a kind is unrecognized, and shown as far as it is short.
    pub(crate) fn message(&self, expected: &str, expected_version: &str, body: &[u8]) -> String {
        match self {
            Unread::Syntax(problem) => format!(
                "the object provided is unrecognized (must be of type {expected}): couldn't get version/kind; json \
                 parse error: {problem} ({})",
                summary(body)
            ),
            Unread::Yaml(problem) => format!(
                "the object provided is unrecognized (must be of type {expected}): {problem} ({})",
                summary(body)
            ),
            Unread::Cbor(problem) => format!(
                "the object provided is unrecognized (must be of type {expected}): {UNKNOWN_TYPE}: {problem} ({})",
                summary(body)
            ),
            Unread::Envelope(problem) => format!(
                "the object provided is unrecognized (must be of type {expected}): {problem} ({})",
                summary(body)
            ),
            Unread::Content { kind, api_version, problem } => {
                unfit([kind, api_version], [expected, expected_version], problem)
            }
            Unread::CborContent { claimed: ClaimedType { kind, api_version }, problem } => {
                unfit([kind, api_version], [expected, expected_version], problem)
            }
        }
    }
}

/// What is said of an object that tells what it is and is none.
pub(crate) fn unfit(
    [kind, version]: [&str; 2],
    [expected, expected_version]: [&str; 2],
    problem: impl Display,
) -> String {
    let kind = if kind.is_empty() { expected } else { kind };
    let version = if version.is_empty() { expected_version } else { version };
    let version = version.rsplit('/').next().unwrap_or_default();
    format!("{kind} in version {} cannot be handled as a {expected}: {problem}", BadValue::from(version))
}

/// The start of a body, in hexadecimal digits.
fn summary(body: &[u8]) -> String {
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let start = &body[..body.len().min(SUMMARY)];
    let more = if body.len() > SUMMARY { " ..." } else { "" };
    match start {
        [b'{', ..] => format!("{}{more}", String::from_utf8_lossy(start)),
        _ => format!("{}{more}", start.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

impl Format {
    /// Reads a body that should be of this type, and finds out what is odd about it.
    pub(crate) fn parse<'t>(self, body: &'t [u8], wanted: BodyType<'_>) -> Result<(Value, Repeated<'t>), Unread> {
        match self {
            Format::Cbor => read_cbor(body, wanted),
            Format::Json => {
                let Parsed { mut value, mut duplicates } =
                    parse_json(body).map_err(|error| Unread::Syntax(error.to_string()))?;
                if let (Some(id), false, Ok(text)) = (wanted.id, duplicates.is_empty(), std::str::from_utf8(body))
                    && let Some(read) = wanted.types.read_repeated(id, text.trim_ascii())
                {
                    value = read;
                }
                value.guard_noncharacters(body);
                refuse_untyped(&value, wanted)?;
                if let Some(id) = wanted.id {
                    wanted.types.keep_raw(id, &mut value, body);
                    // What is kept as its text is nobody's to read.
                    duplicates.retain(|path| !wanted.types.is_read_apart(id, path));
                }
                Ok((value, Repeated::Json { text: body, is_repeated: !duplicates.is_empty() }))
            }
            Format::Yaml => {
                let Parsed { mut value, duplicates } =
                    parse_yaml(body).map_err(|error| Unread::Yaml(error.to_string()))?;
                value.guard_noncharacters(body);
                refuse_untyped(&value, wanted)?;
                let repeated = match std::str::from_utf8(body) {
                    Ok(text) if !duplicates.is_empty() => Repeated::Yaml(repeated_yaml_keys(text)),
                    _ => Repeated::None,
                };
                Ok((value, repeated))
            }
            Format::Protobuf => {
                let Envelope { mut api_version, kind: found, raw } = Envelope::read(body).map_err(Unread::Envelope)?;
                // What is no version is as good as none (upstream: `FromAPIVersionAndKind`).
                if api_version.matches('/').count() > 1 {
                    api_version.clear();
                }
                // Another kind would be misread; its name alone is enough to refuse it.
                let is_other = !found.is_empty() && found != wanted.kind;
                let read = if is_other { Ok(Value::Object(Object::new())) } else { wanted.read_protobuf(raw) };
                let mut value = match read {
                    Ok(value) => value,
                    Err(problem) => return Err(Unread::Content { kind: found, api_version, problem }),
                };
                if let Some(object) = value.as_object_mut() {
                    object.insert("kind", found);
                    object.insert("apiVersion", api_version);
                }
                Ok((value, Repeated::None))
            }
        }
    }
}

/// Refuses an object of a built-in kind that says what it is in something else than texts: that is read before all others.
fn refuse_untyped(value: &Value, wanted: BodyType<'_>) -> Result<(), Unread> {
    let Some(object) = value.as_object().filter(|_| wanted.id.is_some()) else { return Ok(()) };
    for name in ["apiVersion", "kind"] {
        if let Some(odd) = object.get(name).filter(|said| !said.is_null() && said.as_str().is_none()) {
            let found = odd.type_name();
            let problem = format!("json: cannot unmarshal {found} into Go struct field .{name} of type string");
            return Err(Unread::Syntax(problem));
        }
    }
    match object.str("apiVersion") {
        Some(version) if version.matches('/').count() > 1 => {
            Err(Unread::Yaml(format!("unexpected GroupVersion string: {version}")))
        }
        _ => Ok(()),
    }
}

/// Reads a body in CBOR. What it says that it is is found out first, unless nothing is known of its type anyway; an
/// object of another type is read as it stands there, because its type is enough to refuse it.
fn read_cbor(body: &[u8], wanted: BodyType<'_>) -> Result<(Value, Repeated<'static>), Unread> {
    if wanted.id.is_none()
        && let Ok(value @ (Value::Object(_) | Value::Null)) = wanted.types.read_cbor(None, body)
    {
        return Ok((value, Repeated::None));
    }
    let claimed = read_cbor_type(body).map_err(Unread::Cbor)?;
    let is_other = |claimed: &str, wanted: &str| !claimed.is_empty() && claimed != wanted;
    let is_of_another_type = is_other(&claimed.kind, wanted.kind)
        || wanted.api_version.is_some_and(|version| is_other(&claimed.api_version, version));
    let id = wanted.id.filter(|_| !is_of_another_type);
    match wanted.types.read_cbor_strictly(id, body) {
        Ok(ReadCbor { value, unknown_field }) => {
            Ok((value, Repeated::Told(unknown_field.iter().map(CborError::to_string).collect())))
        }
        Err(problem) => Err(Unread::CborContent { claimed, problem }),
    }
}

/// Members that a text has more than once.
#[derive(Debug, Clone, Default)]
pub(crate) enum Repeated<'t> {
    /// None, or nobody is told.
    #[default]
    None,
    /// Members of this JSON, in which there may also be others to be told of.
    Json {
        /// The text.
        text: &'t [u8],
        /// Whether it has members twice.
        is_repeated: bool,
    },
    /// Keys of YAML, as one speaks of them.
    Yaml(Vec<String>),
    /// What is to be said before anything else: that of a patch, or of CBOR.
    Told(Vec<String>),
}

impl Repeated<'_> {
    /// Whether nothing occurs twice.
    fn is_none(&self) -> bool {
        match self {
            Repeated::None => true,
            Repeated::Json { is_repeated, .. } => !is_repeated,
            Repeated::Yaml(lines) | Repeated::Told(lines) => lines.is_empty(),
        }
    }

    /// All that is odd about an object, in the order in which the original's decoders come upon it: JSON is told of as
    /// it stands there, unless its schema is looked at when all of it has been read.
    fn problems(self, resource: &Resource, unknown: &FieldNames, validation: FieldValidation) -> Vec<String> {
        let is_custom = resource.custom().is_some();
        let unknown_fields = || unknown.iter().map(|path| format!("unknown field \"{path}\""));
        let mut problems: Vec<String> = match self {
            Repeated::Json { text, .. } => {
                let names: HashSet<&str> = unknown.iter().filter(|_| !is_custom).map(String::as_str).collect();
                let odd = odd_members(text, &|path| names.contains(path));
                // What is kept as its text is nobody's to read.
                let is_read = |member: &&OddMember| match member {
                    OddMember::Duplicate(path) => !resource.is_read_apart(path),
                    OddMember::Unknown(_) => true,
                };
                odd.iter().filter(is_read).map(odd_member).collect()
            }
            // Who is refused is told all of it in one.
            Repeated::Yaml(lines) if validation == FieldValidation::Strict && !lines.is_empty() => {
                vec![format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "))]
            }
            Repeated::Yaml(lines) | Repeated::Told(lines) => lines,
            Repeated::None => Vec::new(),
        };
        problems.extend(unknown_fields());
        let mut told = HashSet::new();
        problems.retain(|problem| told.insert(problem.clone()));
        if !is_custom {
            problems.truncate(MAX_ODD_FIELDS);
        }
        if unknown.left_out() > 0 {
            problems.push(format!("and {} more unknown fields", unknown.left_out()));
        }
        problems
    }
}

/// How one speaks of an odd member.
pub(crate) fn odd_member(member: &OddMember) -> String {
    match member {
        OddMember::Duplicate(path) => format!("duplicate field \"{path}\""),
        OddMember::Unknown(path) => format!("unknown field \"{path}\""),
    }
}

/// What to do about fields that are unknown or occur twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and say so.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// An object as a client sent it, fitted to its type.
#[derive(Debug, Clone)]
pub struct Decoded {
    pub(crate) object: Object,
    /// What the client should be told although its request is done.
    pub warnings: Warnings,
}

impl Decoded {
    /// Reads the body of a create or update.
    pub fn read(
        resource: &Arc<Resource>,
        format: Format,
        text: &[u8],
        validation: FieldValidation,
    ) -> Result<Decoded, RegistryError> {
        let kind = resource.kind.as_str();
        let refused = |unread: Unread| RegistryError::BadRequest(unread.message(kind, &resource.api_version, text));
        let (value, repeated) = format.parse(text, BodyType::of(resource)).map_err(refused)?;
        if !matches!(value, Value::Object(_) | Value::Null) {
            return Err(refused(Unread::Syntax(no_object(&value))));
        }
        // What is shown of a body that does not say what it is.
        let shown = |value: &Value| match format {
            Format::Json => clip(String::from_utf8_lossy(text).trim().to_owned()),
            Format::Cbor => clip(diagnose_cbor(text)),
            _ => clip(value.to_json()),
        };
        if resource.custom().is_some() && value.is_null() {
            return Err(kind_missing(kind, &shown(&value), text));
        }
        let claimed = claimed_type(&value);
        if let Some((_, found)) = claimed.as_ref().filter(|(claimed, found)| claimed == kind && resource.is_also(found))
        {
            let wanted = &resource.api_version;
            return Err(RegistryError::BadRequest(other_version(found, wanted)));
        }
        let custom_type = CustomType::of(resource, &value);
        // In CBOR, a custom object must tell its version, and nobody is told of fields that its schema does not have.
        let is_custom_cbor = custom_type.is_some() && format == Format::Cbor;
        let validation = if is_custom_cbor { FieldValidation::Ignore } else { validation };
        if let Some(claimed) = &custom_type {
            if is_custom_cbor && !claimed.kind.is_empty() && claimed.api_version.is_empty() {
                let problem = format!("Object 'apiVersion' is missing in '{}'", shown(&value));
                let sent = &claimed.kind;
                return Err(RegistryError::BadRequest(format!(
                    "{sent} in version \"\" cannot be handled as a {kind}: {problem}"
                )));
            }
            claimed.check_body(resource, || shown(&value), text)?;
        }
        let sent_kind = value.as_object().and_then(|object| object.str("kind")).filter(|kind| !kind.is_empty());
        let sent_kind = sent_kind.map(str::to_owned);
        let decoded = fit(resource, value, repeated, validation);
        let decoded = decoded.map_err(|problem| {
            let sent = sent_kind.unwrap_or_default();
            let (sent_kind, version) = claimed.unwrap_or((sent, resource.api_version.clone()));
            RegistryError::BadRequest(unfit([&sent_kind, &version], [kind, &resource.api_version], problem))
        })?;
        custom_type.map_or(Ok(()), |claimed| claimed.check(resource))?;
        Ok(decoded)
    }

    /// The object, as it was sent.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The object, for those who answer it without storing it.
    pub fn into_object(self) -> Object {
        self.object
    }

    /// Reads an object that this server has stored.
    pub(crate) fn stored(bytes: &[u8]) -> Result<Object, RegistryError> {
        match parse_json(bytes).map(|parsed| parsed.value) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err(RegistryError::Unreadable),
        }
    }

    /// The same of an object of this resource, with the texts of what is any JSON in it, and of its sets of managed fields.
    pub(crate) fn stored_as(resource: &Resource, bytes: &[u8]) -> Result<Object, RegistryError> {
        let mut value = parse_stored(bytes).map_err(|_| RegistryError::Unreadable)?;
        resource.keep_raw(&mut value, bytes);
        let Value::Object(mut object) = value else { return Err(RegistryError::Unreadable) };
        resource.read_otherwise(&mut object);
        Ok(object)
    }
}

/// What is said of JSON that is no object.
pub(crate) fn no_object(value: &Value) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
         Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        value.type_name()
    )
}

/// What is said of a custom object that does not tell what it is.
fn kind_missing(expected: &str, shown: &str, body: &[u8]) -> RegistryError {
    RegistryError::BadRequest(format!(
        "the object provided is unrecognized (must be of type {expected}): Object 'Kind' is missing in '{shown}' ({})",
        summary(body)
    ))
}

/// What is said of an object in another version of its kind.
fn other_version(found: &str, wanted: &str) -> String {
    format!("the API version in the data ({found}) does not match the expected API version ({wanted})")
}

/// The kind and version that a body claims, where it claims both.
fn claimed_type(value: &Value) -> Option<(String, String)> {
    let object = value.as_object()?;
    let text = |name| object.str(name).filter(|text| !text.is_empty()).map(str::to_owned);
    Some((text("kind")?, text("apiVersion")?))
}

/// The type that a custom object claims to be of. That of built-in ones is looked at when they are read.
pub(crate) struct CustomType {
    kind: String,
    api_version: String,
    name: String,
}

impl CustomType {
    /// What a value claims; `None` if the resource is a built-in one.
    pub(crate) fn of(resource: &Resource, value: &Value) -> Option<CustomType> {
        resource.custom()?;
        let object = value.as_object()?;
        let text = |name| object.str(name).unwrap_or_default().to_owned();
        let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(CustomType { kind: text("kind"), api_version: text("apiVersion"), name })
    }

    /// Refuses a body that cannot be read as an object of the resource.
    fn check_body(
        &self,
        resource: &Resource,
        shown: impl FnOnce() -> String,
        body: &[u8],
    ) -> Result<(), RegistryError> {
        let expected = resource.kind.as_str();
        if self.kind.is_empty() {
            return Err(kind_missing(expected, &shown(), body));
        }
        let (found, wanted) = (&self.api_version, &resource.api_version);
        if found != wanted {
            return Err(RegistryError::BadRequest(other_version(found, wanted)));
        }
        Ok(())
    }

    /// Refuses an object of another type.
    pub(crate) fn check(&self, resource: &Resource) -> Result<(), RegistryError> {
        let mut errors = FieldErrors::new();
        for (field, found, wanted) in [
            ("kind", &self.kind, resource.kind.as_str()),
            ("apiVersion", &self.api_version, resource.api_version.as_str()),
        ] {
            if found != wanted {
                errors.push(FieldError::invalid(field, found.as_str(), format!("must be {wanted}")));
            }
        }
        if errors.is_empty() {
            return Ok(());
        }
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
        Err(RegistryError::OtherType { group, kind: self.kind.clone(), name: self.name.clone(), errors })
    }
}

/// Of how many unknown and duplicate fields of a built-in kind the original's decoder tells, all in all.
const MAX_ODD_FIELDS: usize = 100;

/// Fits a value to the type of a resource. The error is what the original's decoder would say.
pub(crate) fn fit(
    resource: &Resource,
    value: Value,
    repeated: Repeated<'_>,
    validation: FieldValidation,
) -> Result<Decoded, String> {
    fit_by(resource, value, repeated, validation, Resource::conform_as_sent)
}

/// Fits an object to which a configuration was applied to the type of a resource.
pub(crate) fn fit_applied(resource: &Resource, object: Object) -> Result<Object, String> {
    let fitted =
        fit_by(resource, Value::Object(object), Repeated::None, FieldValidation::Ignore, Resource::conform_applied);
    fitted.map(|decoded| decoded.object)
}

fn fit_by(
    resource: &Resource,
    mut value: Value,
    repeated: Repeated<'_>,
    validation: FieldValidation,
    conform: impl Fn(&Resource, &mut Value) -> Result<Findings, String>,
) -> Result<Decoded, String> {
    let sent = value.as_object();
    let kind = sent.and_then(|object| object.str("kind")).unwrap_or_default();
    let version = sent.and_then(|object| object.str("apiVersion")).unwrap_or_default();
    // Custom objects of another type are refused like those with other faults.
    let is_ours = resource.custom().is_some()
        || (kind.is_empty() || kind == resource.kind) && (version.is_empty() || version == resource.api_version);
    if !is_ours {
        let kind = if kind.is_empty() { &resource.kind } else { kind };
        let version = if version.is_empty() { &resource.api_version } else { version };
        return Err(resource.other_kind(kind, version));
    }
    let findings = conform(resource, &mut value)?;
    // Nearly always there is nothing to be told.
    let is_plain = findings.unknown_fields.is_empty() && repeated.is_none();
    let problems = match validation {
        FieldValidation::Warn | FieldValidation::Strict if !is_plain => {
            repeated.problems(resource, &findings.unknown_fields, validation)
        }
        _ => Vec::new(),
    };
    if validation == FieldValidation::Strict && !problems.is_empty() {
        return Err(format!("strict decoding error: {}", problems.join(", ")));
    }
    let Value::Object(mut object) = value else { return Err("json: cannot unmarshal into an object".to_owned()) };
    object.remove("kind");
    object.remove("apiVersion");
    let warnings = if validation == FieldValidation::Warn { problems } else { Vec::new() }.into_iter().collect();
    Ok(Decoded { object, warnings })
}
