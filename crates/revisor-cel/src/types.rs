//! [`Type`]: what is known of a value before there is one.
//!
//! How types are made to fit each other is in `unify.rs`; which types have names that can be said in an expression is
//! the environment's.

use std::fmt;
use std::sync::Arc;

/// The type of an expression, a variable or a field.
///
/// Cheap to clone: what is inside a list, a map or another compound is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Anything; what it is shows when the expression is evaluated.
    Dyn,
    /// Anything that an object's author chose, as the attributes of a device are. Behaves as [`Type::Dyn`].
    Any,
    /// What an expression has that is wrong. It fits everything, so that one mistake is reported once.
    Error,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A signed number of 64 bits.
    Int,
    /// An unsigned number of 64 bits.
    Uint,
    /// A floating point number of 64 bits.
    Double,
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A length of time.
    Duration,
    /// A type with fields, by the name under which the environment has it.
    Object(Arc<str>),
    /// A place holder in the signature of a function, or for a type that is still to be found.
    Param(Param),
    /// A type that is made of others.
    Compound(Arc<Compound>),
}

/// The name of a place holder for a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Param {
    /// As a signature names it: `A`, `K`, `V`.
    Named(char),
    /// Made for one use of a signature, or for the elements of an empty list.
    Fresh(u32),
}

/// A type that is made of others.
#[derive(Debug, PartialEq, Eq)]
pub struct Compound {
    shape: Shape,
    params: Vec<Type>,
    weight: u32,
}

/// How the types in a compound belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A list; the one parameter is the type of its elements.
    List,
    /// A map; the parameters are the types of its keys and values.
    Map,
    /// A type as a value; the parameter, if any, says which.
    Type,
    /// A type without fields that functions know what to do with.
    Opaque(Arc<str>),
}

/// The name of the opaque type of values that may be absent.
pub(crate) const OPTIONAL: &str = "optional_type";

impl Type {
    /// A list of `element`s.
    pub fn list(element: Type) -> Type {
        Type::compound(Shape::List, vec![element])
    }

    /// A map from `key` to `value`.
    pub fn map(key: Type, value: Type) -> Type {
        Type::compound(Shape::Map, vec![key, value])
    }

    /// A value that may be absent.
    pub fn optional(value: Type) -> Type {
        Type::opaque(OPTIONAL, vec![value])
    }

    /// The type `of` as a value.
    pub fn type_of(of: Type) -> Type {
        Type::compound(Shape::Type, vec![of])
    }

    /// The type called `name`, whose fields the environment knows.
    pub fn object(name: &str) -> Type {
        Type::Object(name.into())
    }

    /// The opaque type called `name`.
    pub fn opaque(name: &str, params: Vec<Type>) -> Type {
        Type::compound(Shape::Opaque(name.into()), params)
    }

    pub(crate) fn compound(shape: Shape, params: Vec<Type>) -> Type {
        let weight = params.iter().fold(1, |sum: u32, param| sum.saturating_add(param.weight()));
        Type::Compound(Arc::new(Compound { shape, params, weight }))
    }

    /// In how many types this one falls apart, counted where they are shared as well: what it costs to walk it.
    pub(crate) fn weight(&self) -> u32 {
        match self {
            Type::Compound(compound) => compound.weight,
            _ => 1,
        }
    }

    /// The types that this one is made of.
    pub fn params(&self) -> &[Type] {
        match self {
            Type::Compound(compound) => &compound.params,
            _ => &[],
        }
    }

    /// How this type is made of others, if it is.
    pub fn shape(&self) -> Option<&Shape> {
        match self {
            Type::Compound(compound) => Some(&compound.shape),
            _ => None,
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any | Type::Error)
    }

    /// What an optional holds; `None` for every other type.
    pub(crate) fn optional_value(&self) -> Option<&Type> {
        match self.shape() {
            Some(Shape::Opaque(name)) if &**name == OPTIONAL => self.params().first(),
            _ => None,
        }
    }

    /// Whether both are the same but for the names of place holders.
    pub(crate) fn is_equivalent(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Param(_), Type::Param(_)) => true,
            (Type::Compound(left), Type::Compound(right)) => {
                left.shape == right.shape
                    && left.params.len() == right.params.len()
                    && left.params.iter().zip(&right.params).all(|(left, right)| left.is_equivalent(right))
            }
            _ => self == other,
        }
    }

    /// The name of the type itself, without what it is made of.
    pub(crate) fn runtime_name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Any => "google.protobuf.Any",
            Type::Error => "error",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Duration => "google.protobuf.Duration",
            Type::Object(name) => name,
            Type::Param(_) => "",
            Type::Compound(compound) => match &compound.shape {
                Shape::List => "list",
                Shape::Map => "map",
                Shape::Type => "type",
                Shape::Opaque(name) => name,
            },
        }
    }

    /// The type as messages about expressions write it.
    pub(crate) fn in_messages(&self) -> InMessages<'_> {
        InMessages(self)
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Named(name) => write!(f, "{name}"),
            Param::Fresh(number) => write!(f, "_var{number}"),
        }
    }
}

/// The declared name, as messages about the result of a whole expression write it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Param(param) => write!(f, "<{param}>"),
            _ => write_with_params(f, self.runtime_name(), self.params(), |f, param| write!(f, "{param}")),
        }
    }
}

/// See [`Type::in_messages`].
pub(crate) struct InMessages<'a>(&'a Type);

impl fmt::Display for InMessages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            Type::Any => "any",
            Type::Duration => "duration",
            Type::Timestamp => "timestamp",
            Type::Error => "!error!",
            Type::Null => "null",
            Type::Param(param) => return write!(f, "{param}"),
            other => other.runtime_name(),
        };
        write_with_params(f, name, self.0.params(), |f, param| write!(f, "{}", param.in_messages()))
    }
}

fn write_with_params(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    params: &[Type],
    each: impl Fn(&mut fmt::Formatter<'_>, &Type) -> fmt::Result,
) -> fmt::Result {
    f.write_str(name)?;
    for (index, param) in params.iter().enumerate() {
        f.write_str(if index == 0 { "(" } else { ", " })?;
        each(f, param)?;
    }
    if params.is_empty() { Ok(()) } else { f.write_str(")") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_for_messages_and_for_results() {
        for (kind, in_messages, as_result) in [
            (Type::Int, "int", "int"),
            (Type::Null, "null", "null_type"),
            (Type::Timestamp, "timestamp", "google.protobuf.Timestamp"),
            (Type::list(Type::Duration), "list(duration)", "list(google.protobuf.Duration)"),
            (Type::map(Type::String, Type::Dyn), "map(string, dyn)", "map(string, dyn)"),
            (Type::optional(Type::Error), "optional_type(!error!)", "optional_type(error)"),
            (Type::type_of(Type::Param(Param::Fresh(3))), "type(_var3)", "type(<_var3>)"),
            (Type::opaque("net.IP", vec![]), "net.IP", "net.IP"),
            (Type::Any, "any", "google.protobuf.Any"),
        ] {
            assert_eq!(kind.in_messages().to_string(), in_messages);
            assert_eq!(kind.to_string(), as_result);
        }
    }

    #[test]
    fn the_weight_of_a_type_counts_what_is_shared_as_often_as_it_is_reached() {
        let mut kind = Type::Int;
        for _ in 0..100 {
            kind = Type::map(kind.clone(), kind);
        }
        assert_eq!(kind.weight(), u32::MAX);
    }
}
