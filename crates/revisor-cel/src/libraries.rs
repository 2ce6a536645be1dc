//! Which functions, types and macros there are: [`Libraries`], read from the tables of this crate.
//!
//! `tables/libraries.csv` says in which releases a library is there, `tables/functions.txt` what the functions take and
//! give. What functions do is the evaluator's.

use std::collections::HashMap;

use revisor_version::Release;

use crate::macros::{MACROS, Macro};
use crate::types::{OPTIONAL, Param, Shape, Type};

const LIBRARIES: &str = include_str!("../tables/libraries.csv");
const FUNCTIONS: &str = include_str!("../tables/functions.txt");

/// Types without fields that functions know what to do with; the other named types are objects.
const OPAQUE: [&str; 3] = [OPTIONAL, "net.IP", "net.CIDR"];

/// A library that no release brings by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// `cel.bind(name, value, expression)`.
    Bindings,
    /// `jsonpatch.escapeKey(key)`.
    JsonPatch,
}

impl Library {
    fn name(self) -> &'static str {
        match self {
            Library::Bindings => "bindings",
            Library::JsonPatch => "kubernetes.jsonpatch",
        }
    }
}

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// Its name, by which the evaluator finds what to do.
    pub(crate) id: &'static str,
    /// Whether the first argument stands before the dot.
    pub(crate) method: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
}

/// What the libraries of one release bring.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    functions: HashMap<&'static str, Vec<Overload>>,
    /// The types whose names can be said, as values.
    type_names: HashMap<&'static str, Type>,
    pub(crate) macros: Vec<&'static Macro>,
    /// Whether `a.?b`, `a[?b]` and `[?a]` are taken.
    pub(crate) optionals: bool,
    /// Whether literals that functions will read are checked beforehand.
    pub(crate) literal_checks: bool,
    /// Whether format strings are checked beforehand.
    pub(crate) format_checks: bool,
}

impl Libraries {
    /// The libraries of `release` and those that are asked for.
    pub(crate) fn of(release: Release, extra: &[Library]) -> Libraries {
        let present: Vec<&str> = LIBRARIES
            .lines()
            .skip(1)
            .filter_map(|line| {
                let mut columns = line.split(',');
                let name = columns.next()?;
                let mut version = || columns.next().and_then(|text| text.parse::<Release>().ok());
                let (introduced, removed) = (version(), version());
                let there = match introduced {
                    Some(introduced) => introduced <= release && removed.is_none_or(|removed| release < removed),
                    None => extra.iter().any(|library| library.name() == name),
                };
                there.then_some(name)
            })
            .collect();
        let has = |name: &str| present.contains(&name);
        let mut libraries = Libraries {
            macros: MACROS.iter().filter(|candidate| has(candidate.library)).collect(),
            type_names: type_names()
                .into_iter()
                .filter(|(library, ..)| has(library))
                .map(|(_, name, of)| (name, Type::type_of(of)))
                .collect(),
            optionals: has("optional"),
            literal_checks: has("literal.checks"),
            format_checks: has("strings.2"),
            functions: HashMap::new(),
        };
        for line in FUNCTIONS.lines().skip(1) {
            let columns: Vec<&'static str> = line.split(' ').collect();
            let &[library, function, id, style, args, result] = columns.as_slice() else { continue };
            if has(library) {
                let args = if args == "-" { Vec::new() } else { args.split(';').map(signature_type).collect() };
                let overload = Overload { id, method: style == "member", args, result: signature_type(result) };
                libraries.functions.entry(function).or_default().push(overload);
            }
        }
        libraries
    }

    /// The signatures of a function.
    pub(crate) fn function(&self, name: &str) -> Option<(&'static str, &[Overload])> {
        self.functions.get_key_value(name).map(|(name, overloads)| (*name, overloads.as_slice()))
    }

    /// The type that a name stands for, as a value.
    pub(crate) fn type_name(&self, name: &str) -> Option<&Type> {
        self.type_names.get(name)
    }
}

fn type_names() -> Vec<(&'static str, &'static str, Type)> {
    let param = |name| Type::Param(Param::Named(name));
    vec![
        ("standard", "bool", Type::Bool),
        ("standard", "bytes", Type::Bytes),
        ("standard", "double", Type::Double),
        ("standard", "google.protobuf.Duration", Type::Duration),
        ("standard", "int", Type::Int),
        ("standard", "list", Type::list(param('A'))),
        ("standard", "map", Type::map(param('A'), param('B'))),
        ("standard", "null_type", Type::Null),
        ("standard", "string", Type::String),
        ("standard", "google.protobuf.Timestamp", Type::Timestamp),
        ("standard", "type", Type::compound(Shape::Type, vec![])),
        ("standard", "uint", Type::Uint),
        ("optional", OPTIONAL, Type::opaque(OPTIONAL, vec![])),
        ("kubernetes.ip", "net.IP", Type::opaque("net.IP", vec![])),
        ("kubernetes.cidr", "net.CIDR", Type::opaque("net.CIDR", vec![])),
    ]
}

/// A type as the table of functions writes it: `map(K,list(V))`.
fn signature_type(text: &str) -> Type {
    if let Some((name, params)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let params = split_params(params).into_iter().map(signature_type).collect();
        return match name {
            "list" => Type::compound(Shape::List, params),
            "map" => Type::compound(Shape::Map, params),
            "type" => Type::compound(Shape::Type, params),
            name => Type::opaque(name, params),
        };
    }
    match text {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        name if OPAQUE.contains(&name) => Type::opaque(name, vec![]),
        name => match (name.chars().next(), name.len()) {
            (Some(letter @ 'A'..='Z'), 1) => Type::Param(Param::Named(letter)),
            _ => Type::object(name),
        },
    }
}

/// `a,b(c,d)` as `a` and `b(c,d)`.
fn split_params(text: &str) -> Vec<&str> {
    let mut params = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                params.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    params.push(&text[start..]);
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read() {
        for line in FUNCTIONS.lines().skip(1) {
            let columns: Vec<&str> = line.split(' ').collect();
            assert_eq!(columns.len(), 6, "{line}");
            assert!(matches!(columns[3], "global" | "member"), "{line}");
            assert!(LIBRARIES.lines().any(|row| row.split(',').next() == Some(columns[0])), "{line}");
            let signature = if columns[4] == "-" { "" } else { columns[4] };
            for text in signature.split(';').filter(|text| !text.is_empty()).chain([columns[5]]) {
                let known = signature_type(text).in_messages().to_string().replace(", ", ",");
                assert_eq!(known, text, "{line}");
            }
        }
        for row in MACROS {
            assert!(LIBRARIES.lines().any(|line| line.split(',').next() == Some(row.library)), "{}", row.library);
        }
    }

    #[test]
    fn functions_come_and_go_with_releases() {
        let release = |minor| Release { major: 1, minor };
        for (function, minor, there) in [
            ("url", 23, true),
            ("quantity", 27, false),
            ("quantity", 28, true),
            ("optional.of", 27, false),
            ("format", 28, false),
            ("format", 29, true),
            ("sets.contains", 29, true),
            ("ip", 29, false),
            ("ip", 30, true),
            ("format.named", 31, true),
            ("semver", 32, false),
            ("semver", 33, true),
            ("sort", 33, false),
            ("sort", 34, true),
            ("jsonpatch.escapeKey", 36, false),
        ] {
            let libraries = Libraries::of(release(minor), &[]);
            assert_eq!(libraries.function(function).is_some(), there, "{function} in 1.{minor}");
        }
        let libraries = Libraries::of(release(36), &[Library::JsonPatch]);
        assert!(libraries.function("jsonpatch.escapeKey").is_some());
    }

    #[test]
    fn a_signature_is_there_once() {
        let libraries = Libraries::of(Release { major: 1, minor: 36 }, &[Library::JsonPatch, Library::Bindings]);
        for (function, overloads) in &libraries.functions {
            let mut ids: Vec<&str> = overloads.iter().map(|overload| overload.id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), overloads.len(), "{function}");
        }
    }
}
