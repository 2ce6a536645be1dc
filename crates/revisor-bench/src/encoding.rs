//! [`Encoding`]: how objects are sent and read. Protobuf is written by a table of the few types that the load is made of:
//! the bench knows nothing of the servers that it measures.

use serde_json::Value;

/// How objects are sent and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Encoding {
    /// As JSON.
    #[default]
    Json,
    /// In Kubernetes' protobuf, as its own components do.
    Protobuf,
}

impl Encoding {
    /// What it is called in headers.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// An event of so many bytes that says nothing.
    pub(crate) fn event(self, bytes: u64) -> Vec<u8> {
        let length = usize::try_from(bytes).unwrap_or_default().max(8);
        let mut event = vec![b'x'; length];
        match self {
            Encoding::Json => event[length - 1] = b'\n',
            Encoding::Protobuf => event[..4].copy_from_slice(&(length as u32 - 4).to_be_bytes()),
        }
        event
    }

    /// An object that is given as JSON.
    pub(crate) fn write(self, json: String) -> Vec<u8> {
        match self {
            Encoding::Json => json.into_bytes(),
            Encoding::Protobuf => enveloped(&serde_json::from_str(&json).unwrap_or_default()),
        }
    }
}

/// What every object begins with.
const MAGIC: &[u8] = b"k8s\0";

/// How a field is written.
#[derive(Debug, Clone, Copy)]
enum Form {
    Text,
    Number,
    /// A number or a text.
    Either,
    /// A text in a message of its own.
    Quantity,
    /// A time, given as microseconds since 1970.
    Time,
    Message(&'static str),
}

/// The fields that the load has: their type, name, number and form. Those in lists and maps are written one by one.
const FIELDS: &[(&str, &str, u32, Form)] = &[
    ("ConfigMap", "metadata", 1, Form::Message("ObjectMeta")),
    ("ConfigMap", "data", 2, Form::Text),
    ("Pod", "metadata", 1, Form::Message("ObjectMeta")),
    ("Pod", "spec", 2, Form::Message("PodSpec")),
    ("ObjectMeta", "name", 1, Form::Text),
    ("ObjectMeta", "namespace", 3, Form::Text),
    ("ObjectMeta", "resourceVersion", 6, Form::Text),
    ("ObjectMeta", "labels", 11, Form::Text),
    ("ObjectMeta", "annotations", 12, Form::Text),
    ("PodSpec", "volumes", 1, Form::Message("Volume")),
    ("PodSpec", "containers", 2, Form::Message("Container")),
    ("PodSpec", "nodeName", 10, Form::Text),
    ("PodSpec", "securityContext", 14, Form::Message("PodSecurityContext")),
    ("PodSpec", "tolerations", 22, Form::Message("Toleration")),
    ("Volume", "name", 1, Form::Text),
    ("Volume", "configMap", 2, Form::Message("ConfigMapSource")),
    ("Volume", "emptyDir", 2, Form::Message("EmptyDirSource")),
    ("Container", "name", 1, Form::Text),
    ("Container", "image", 2, Form::Text),
    ("Container", "args", 4, Form::Text),
    ("Container", "ports", 6, Form::Message("ContainerPort")),
    ("Container", "env", 7, Form::Message("EnvVar")),
    ("Container", "resources", 8, Form::Message("Resources")),
    ("Container", "volumeMounts", 9, Form::Message("VolumeMount")),
    ("Container", "readinessProbe", 11, Form::Message("Probe")),
    ("Container", "securityContext", 15, Form::Message("SecurityContext")),
    ("ContainerPort", "name", 1, Form::Text),
    ("ContainerPort", "containerPort", 3, Form::Number),
    ("EnvVar", "name", 1, Form::Text),
    ("EnvVar", "value", 2, Form::Text),
    ("EnvVar", "valueFrom", 3, Form::Message("EnvVarSource")),
    ("EnvVarSource", "fieldRef", 1, Form::Message("FieldRef")),
    ("FieldRef", "fieldPath", 2, Form::Text),
    ("Resources", "limits", 1, Form::Quantity),
    ("Resources", "requests", 2, Form::Quantity),
    ("VolumeMount", "name", 1, Form::Text),
    ("VolumeMount", "mountPath", 3, Form::Text),
    ("Probe", "httpGet", 1, Form::Message("Handler")),
    ("HttpGet", "path", 1, Form::Text),
    ("HttpGet", "port", 2, Form::Either),
    ("SecurityContext", "capabilities", 1, Form::Message("Capabilities")),
    ("SecurityContext", "allowPrivilegeEscalation", 7, Form::Number),
    ("Capabilities", "drop", 2, Form::Text),
    ("PodSecurityContext", "runAsUser", 2, Form::Number),
    ("PodSecurityContext", "runAsNonRoot", 3, Form::Number),
    ("Toleration", "key", 1, Form::Text),
    ("Toleration", "operator", 2, Form::Text),
    ("Toleration", "value", 3, Form::Text),
    ("Toleration", "effect", 4, Form::Text),
    ("Node", "metadata", 1, Form::Message("ObjectMeta")),
    ("Lease", "metadata", 1, Form::Message("ObjectMeta")),
    ("Lease", "spec", 2, Form::Message("LeaseSpec")),
    ("LeaseSpec", "holderIdentity", 1, Form::Text),
    ("LeaseSpec", "leaseDurationSeconds", 2, Form::Number),
    ("LeaseSpec", "renewTime", 4, Form::Time),
    ("Binding", "metadata", 1, Form::Message("ObjectMeta")),
    ("Binding", "target", 2, Form::Message("ObjectReference")),
    ("ObjectReference", "kind", 1, Form::Text),
    ("ObjectReference", "namespace", 2, Form::Text),
    ("ObjectReference", "name", 3, Form::Text),
    ("ObjectReference", "apiVersion", 5, Form::Text),
    ("Event", "metadata", 1, Form::Message("ObjectMeta")),
    ("Event", "involvedObject", 2, Form::Message("ObjectReference")),
    ("Event", "reason", 3, Form::Text),
    ("Event", "message", 4, Form::Text),
    ("Event", "source", 5, Form::Message("EventSource")),
    ("Event", "type", 9, Form::Text),
    ("EventSource", "component", 1, Form::Text),
    ("EndpointSlice", "metadata", 1, Form::Message("ObjectMeta")),
    ("EndpointSlice", "endpoints", 2, Form::Message("Endpoint")),
    ("EndpointSlice", "ports", 3, Form::Message("EndpointPort")),
    ("EndpointSlice", "addressType", 4, Form::Text),
    ("Endpoint", "addresses", 1, Form::Text),
    ("Endpoint", "conditions", 2, Form::Message("EndpointConditions")),
    ("Endpoint", "targetRef", 4, Form::Message("ObjectReference")),
    ("Endpoint", "nodeName", 6, Form::Text),
    ("EndpointConditions", "ready", 1, Form::Number),
    ("EndpointConditions", "serving", 2, Form::Number),
    ("EndpointConditions", "terminating", 3, Form::Number),
    ("EndpointPort", "name", 1, Form::Text),
    ("EndpointPort", "protocol", 2, Form::Text),
    ("EndpointPort", "port", 3, Form::Number),
];

/// Messages that JSON does not show, and the name and number of the field that they hold: the source of a volume, and
/// what a probe does.
const WRAPPED: &[(&str, u32, Form)] = &[
    ("ConfigMapSource", 19, Form::Message("ConfigMapVolume")),
    ("EmptyDirSource", 2, Form::Message("Empty")),
    ("Handler", 2, Form::Message("HttpGet")),
];

fn enveloped(object: &Value) -> Vec<u8> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let mut names = Vec::new();
    push_bytes(1, object["apiVersion"].as_str().unwrap_or_default().as_bytes(), &mut names);
    push_bytes(2, kind.as_bytes(), &mut names);
    let mut whole = MAGIC.to_vec();
    push_bytes(1, &names, &mut whole);
    push_bytes(2, &message(kind, object), &mut whole);
    whole
}

fn message(of: &str, object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some((_, number, form)) = WRAPPED.iter().find(|(name, ..)| *name == of) {
        push(*number, *form, object, &mut out);
        return out;
    }
    // The name of what a volume shows is in a message of its own.
    if of == "ConfigMapVolume" {
        let mut name = Vec::new();
        push(1, Form::Text, &object["name"], &mut name);
        push_bytes(1, &name, &mut out);
        return out;
    }
    for (_, name, number, form) in FIELDS.iter().filter(|(holder, ..)| *holder == of) {
        match &object[*name] {
            Value::Null => {}
            Value::Array(items) => items.iter().for_each(|item| push(*number, *form, item, &mut out)),
            Value::Object(members) if !matches!(form, Form::Message(_)) => {
                for (name, value) in members {
                    let mut entry = Vec::new();
                    push_bytes(1, name.as_bytes(), &mut entry);
                    push(2, *form, value, &mut entry);
                    push_bytes(*number, &entry, &mut out);
                }
            }
            value => push(*number, *form, value, &mut out),
        }
    }
    out
}

fn push(number: u32, form: Form, value: &Value, out: &mut Vec<u8>) {
    let text = value.as_str().unwrap_or_default().as_bytes();
    match form {
        Form::Text => push_bytes(number, text, out),
        Form::Number => {
            push_varint(u64::from(number) << 3, out);
            push_varint(value.as_u64().unwrap_or_else(|| value.as_bool().unwrap_or_default().into()), out);
        }
        Form::Either => {
            let mut inner = Vec::new();
            push(1, Form::Number, &Value::from(value.is_string()), &mut inner);
            push(2, Form::Number, value, &mut inner);
            push(3, Form::Text, value, &mut inner);
            push_bytes(number, &inner, out);
        }
        Form::Quantity => {
            let mut inner = Vec::new();
            push_bytes(1, text, &mut inner);
            push_bytes(number, &inner, out);
        }
        Form::Time => {
            let micros = value.as_u64().unwrap_or_default();
            let mut inner = Vec::new();
            push(1, Form::Number, &Value::from(micros / 1_000_000), &mut inner);
            push(2, Form::Number, &Value::from(micros % 1_000_000 * 1000), &mut inner);
            push_bytes(number, &inner, out);
        }
        Form::Message(of) => push_bytes(number, &message(of, value), out),
    }
}

fn push_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    push_varint(u64::from(number) << 3 | 2, out);
    push_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The text at the end of a way of fields in an object or the start of a list.
pub(crate) fn text_at<'a>(body: &'a [u8], way: &[u64]) -> Option<&'a str> {
    let mut message = body.strip_prefix(MAGIC)?;
    for wanted in [2].iter().chain(way) {
        message = field(message, *wanted)?;
    }
    std::str::from_utf8(message).ok()
}

/// A field of a message, as much as there is of it: lists are not kept whole.
fn field(mut message: &[u8], wanted: u64) -> Option<&[u8]> {
    while !message.is_empty() {
        let tag = take_varint(&mut message)?;
        match tag & 7 {
            0 => drop(take_varint(&mut message)?),
            2 => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                let (value, rest) = message.split_at(length.min(message.len()));
                if tag >> 3 == wanted {
                    return Some(value);
                }
                message = rest;
            }
            _ => return None,
        }
    }
    None
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Counts the events of a watch as they come in.
#[derive(Debug)]
pub(crate) struct EventCounter {
    encoding: Encoding,
    /// The length of the frame, as far as it was read.
    length: Vec<u8>,
    /// How many bytes of the frame are to come.
    left: usize,
}

impl EventCounter {
    pub(crate) fn new(encoding: Encoding) -> EventCounter {
        EventCounter { encoding, length: Vec::new(), left: 0 }
    }

    /// How many events end in these bytes: in JSON each is one line, in protobuf its length stands before it.
    pub(crate) fn count(&mut self, mut bytes: &[u8]) -> u64 {
        if self.encoding == Encoding::Json {
            return bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
        let mut events = 0;
        while !bytes.is_empty() {
            if self.left == 0 {
                self.length.push(bytes[0]);
                bytes = &bytes[1..];
                if let Ok(length) = <[u8; 4]>::try_from(self.length.as_slice()) {
                    self.length.clear();
                    self.left = u32::from_be_bytes(length) as usize;
                }
                continue;
            }
            let taken = self.left.min(bytes.len());
            self.left -= taken;
            bytes = &bytes[taken..];
            events += u64::from(self.left == 0);
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_again_in_protobuf() {
        let json =
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n","resourceVersion":"42"},"data":{"k":"v"}}"#;
        let written = Encoding::Protobuf.write(json.to_owned());
        assert_eq!(
            written,
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x11\x0a\x07\x0a\x01n\x32\x0242\x12\x06\x0a\x01k\x12\x01v"
        );
        assert_eq!(text_at(&written, &[1, 6]), Some("42"));
        assert_eq!(text_at(&written, &[1, 5]), None);
        assert_eq!(Encoding::Json.write(json.to_owned()), json.as_bytes());
    }

    #[test]
    fn events_are_counted_however_they_come() {
        let frames = b"\0\0\0\x03abc\0\0\0\x01x";
        for size in 1..=frames.len() {
            let mut counter = EventCounter::new(Encoding::Protobuf);
            assert_eq!(frames.chunks(size).map(|bytes| counter.count(bytes)).sum::<u64>(), 2, "{size}");
        }
        assert_eq!(EventCounter::new(Encoding::Json).count(b"{}\n{}\n{"), 2);
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let event = encoding.event(100);
            assert_eq!((event.len(), EventCounter::new(encoding).count(&event.repeat(3))), (100, 3));
        }
    }
}
