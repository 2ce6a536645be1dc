//! [`Filling`]: items of every type, as many as are wanted, distinct or not, good or not.
//!
//! What is made does not have to be valid, only so good that most rules come to be asked: names are guessed from those
//! of fields.

use revisor_object::{Object, Value};
use revisor_schema::{Presence, Shape, StructId, Topology, Types};

/// In which way the items of a list or map differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variation {
    /// Each has its own values, and as few as can be.
    Distinct,
    /// Each has its own values in all fields.
    Full,
    /// All are the same.
    Equal,
    /// All are different, and none can be right.
    Wrong,
}

impl Variation {
    /// All of them.
    pub const ALL: [Variation; 4] = [Variation::Distinct, Variation::Full, Variation::Equal, Variation::Wrong];

    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Variation::Distinct => "distinct",
            Variation::Full => "full",
            Variation::Equal => "equal",
            Variation::Wrong => "wrong",
        }
    }
}

/// How lists and maps are filled.
#[derive(Debug, Clone, Copy)]
pub struct Filling {
    /// How the items differ.
    pub variation: Variation,
    /// How many there are.
    pub items: usize,
}

/// How deep the parts of an item are filled that it does not need.
const FULL_DEPTH: usize = 2;

/// Values of text fields by the end of their names, the longest first. `#` is the number of the item, `@` four numbers
/// of an address.
const TEXTS: &[(&str, &str)] = &[
    ("apiVersion", "v1"),
    ("apiVersions", "v#"),
    ("apiGroup", "rbac.authorization.k8s.io"),
    ("apiGroups", "g#.example.com"),
    ("cidr", "10.@/32"),
    ("podCIDRs", "10.@/32"),
    ("clusterIPs", "10.@"),
    ("devicePath", "/dev/d#"),
    ("driver", "d#.example.com"),
    ("effect", "NoSchedule"),
    ("expression", "object.metadata.name != 'x#'"),
    ("fieldPath", "metadata.name"),
    ("fieldsType", "FieldsV1"),
    ("finalizers", "example.com/f#"),
    ("hostnames", "h#.example.com"),
    ("hostIP", "10.@"),
    ("image", "registry.example.com/i#"),
    ("ip", "10.@"),
    ("ips", "10.@"),
    ("key", "k#"),
    ("kind", "User"),
    ("matchLabelKeys", "k#"),
    ("manager", "m#"),
    ("mountPath", "/m#"),
    ("name", "n#"),
    ("nodeID", "node#"),
    ("operation", "Update"),
    ("operations", "CREATE"),
    ("operator", "Exists"),
    ("path", "/p#"),
    ("pathType", "Prefix"),
    ("port", "p#"),
    ("protocol", "TCP"),
    ("request", "r#"),
    ("scopeName", "Terminating"),
    ("status", "True"),
    ("timeZone", "UTC"),
    ("topologyKey", "k#"),
    ("type", "T#"),
    ("uid", "u#"),
    ("verbs", "v#"),
    ("whenUnsatisfiable", "DoNotSchedule"),
];

impl Filling {
    /// A list or map with its items.
    pub fn collection(&self, types: &Types, name: &str, shape: &Shape) -> Value {
        let at = |index| if self.variation == Variation::Equal { 0 } else { index };
        match shape {
            Shape::Map(element) => {
                let members = (0..self.items).map(|index| {
                    let key = if self.variation == Variation::Wrong {
                        format!("Not a key {index}")
                    } else {
                        format!("k{index}")
                    };
                    (key, self.value(types, name, element, at(index)))
                });
                let members: Vec<(String, Value)> = members.collect();
                Value::Object(members.iter().map(|(key, value)| (key.as_str(), value.clone())).collect())
            }
            Shape::List(element) => {
                Value::Array((0..self.items).map(|index| self.value(types, name, element, at(index))).collect())
            }
            _ => Value::Null,
        }
    }

    /// A value of a shape, that of the item with this number.
    pub fn value(&self, types: &Types, name: &str, shape: &Shape, index: usize) -> Value {
        self.value_at(types, name, shape, index, 0)
    }

    fn value_at(&self, types: &Types, name: &str, shape: &Shape, index: usize, depth: usize) -> Value {
        match shape {
            Shape::String => self.text(name, index).into(),
            Shape::Bool => true.into(),
            Shape::Int32 | Shape::Int64 | Shape::IntOrString => Value::Int(1 + (index % 65_535) as i64),
            Shape::Double => Value::Float(index as f64 + 0.5),
            Shape::Bytes => "AAAA".into(),
            Shape::Time => "2026-01-01T00:00:00Z".into(),
            Shape::MicroTime => "2026-01-01T00:00:00.000000Z".into(),
            Shape::Duration => "1m0s".into(),
            Shape::Quantity => (index + 1).to_string().into(),
            Shape::Any if name == "fieldsV1" => {
                let step = format!("f:k{index}");
                let place: Object = [(step.as_str(), Value::Object(Object::new()))].into_iter().collect();
                Value::Object([("f:data", Value::Object(place))].into_iter().collect())
            }
            Shape::Any | Shape::Raw => Value::Object([("any", Value::Int(index as i64))].into_iter().collect()),
            Shape::List(element) => Value::Array(vec![self.value_at(types, name, element, index, depth)]),
            Shape::Map(element) => {
                let key = format!("k{index}");
                Value::Object([(key.as_str(), self.value_at(types, name, element, index, depth))].into_iter().collect())
            }
            Shape::Struct(id) | Shape::Either(_, id) => Value::Object(self.object(types, *id, index, depth)),
        }
    }

    /// An object of a type: what it cannot be without, what tells it apart from others, and where it is to be full, the
    /// rest.
    fn object(&self, types: &Types, of: StructId, index: usize, depth: usize) -> Object {
        let of = types.get(of);
        let mut object = Object::new();
        for field in &of.fields {
            let is_simple = !matches!(
                field.shape,
                Shape::List(_) | Shape::Map(_) | Shape::Struct(_) | Shape::Either(..) | Shape::Any | Shape::Raw
            );
            let is_needed = matches!(field.presence, Presence::Always | Presence::Nullable) || field.required;
            let tells_apart =
                is_simple && matches!(&*field.name, "name" | "key" | "uid" | "type" | "ip" | "topologyKey");
            let is_wanted = match self.variation {
                Variation::Full | Variation::Equal => depth < FULL_DEPTH && (is_simple || depth + 1 < FULL_DEPTH),
                Variation::Distinct | Variation::Wrong => false,
            };
            let is_open = field.topology == Topology::Usual || depth < FULL_DEPTH;
            if depth < 6 && is_open && (is_needed || tells_apart || is_wanted) {
                object.insert(&field.name, self.value_at(types, &field.name, &field.shape, index, depth + 1));
            }
        }
        object
    }

    fn text(&self, name: &str, index: usize) -> String {
        if self.variation == Variation::Wrong {
            return format!("Not valid! {index}");
        }
        let lower = name.to_ascii_lowercase();
        let fits = |(known, _): &&(&str, &str)| lower.ends_with(&known.to_ascii_lowercase());
        let pattern =
            TEXTS.iter().filter(fits).max_by_key(|(known, _)| known.len()).map_or("v#", |(_, pattern)| pattern);
        let address = format!("{}.{}.{}", index >> 16 & 255, index >> 8 & 255, index & 255);
        pattern.replace('#', &index.to_string()).replace('@', &address)
    }
}
