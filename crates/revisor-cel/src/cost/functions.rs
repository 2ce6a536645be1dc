//! What the functions cost, by the sizes of what they are given.

use super::path::Path;
use super::range::Range;
use super::{Estimator, NEW_LIST, Node, ONE};
use crate::ast::{ExprKind, Literal};
use crate::eval::functions::MOST_ATTRIBUTE_VALUES;
use crate::types::{Shape, Type};

/// What it costs to go through a text, for each character.
pub(super) const PER_CHARACTER: f64 = 0.1;

/// What a regular expression costs, for each of its characters: an operator is thought to take four of them.
const PER_PATTERN_CHARACTER: f64 = 0.25;

/// How long the regular expression of a named format is thought to be.
const FORMAT_PATTERN: f64 = 128.0;

/// How large a named format may be.
const LARGEST_FORMAT: u64 = 64;

/// What an authorization check costs: two of them fit into an expression.
const AUTHORIZATION: Range = Range::fixed(350_000);

/// What a call costs, and the size of what comes out if that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallCost {
    pub(super) cost: Range,
    pub(super) size: Option<Range>,
}

fn costs(cost: Range) -> Option<CallCost> {
    Some(CallCost { cost, size: None })
}

fn gives(cost: Range, size: Range) -> Option<CallCost> {
    Some(CallCost { cost, size: Some(size) })
}

/// A text that is searched by a regular expression. Even an empty text costs as much as the expression.
fn matching(text: Range, pattern: Range) -> Range {
    text.plus(ONE).scaled(PER_CHARACTER).times(pattern.scaled(PER_PATTERN_CHARACTER))
}

/// The functions of the language itself, apart from those whose arguments are not all evaluated.
pub(super) fn standard(overload: &str, target: Option<&Node<'_>>, args: &[Node<'_>]) -> Option<CallCost> {
    let walk = |node: &Node<'_>| node.size_or_unknown().scaled(PER_CHARACTER);
    match (overload, target, args) {
        ("string_format", Some(target), _) => costs(walk(target)),
        ("string_to_bytes", _, [text]) => {
            let size = text.size_or_unknown();
            gives(walk(text), Range { min: size.min, max: size.max.wrapping_mul(4) })
        }
        ("bytes_to_string", _, [bytes]) => {
            let size = bytes.size_or_unknown();
            gives(walk(bytes), Range { min: size.min / 4, max: size.max })
        }
        ("strings_quote", _, [text]) => {
            let size = text.size_or_unknown();
            let quoted = Range { min: size.min.wrapping_add(2), max: size.max.wrapping_mul(2).wrapping_add(2) };
            gives(walk(text), quoted)
        }
        ("starts_with_string" | "ends_with_string", _, [part]) => costs(walk(part)),
        ("in_list", _, [_, list]) => costs(list.size_or_unknown().scaled(1.0)),
        ("matches_string", Some(text), [pattern]) => costs(matching(text.size_or_unknown(), pattern.size_or_unknown())),
        ("contains_string", Some(text), [part]) => costs(walk(text).times(walk(part))),
        (
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals",
            _,
            [left, right],
        ) => {
            let max = left.size_or_unknown().max.min(right.size_or_unknown().max);
            costs(Range { min: max.min(1), max }.scaled(PER_CHARACTER))
        }
        _ => None,
    }
}

impl<'a> Estimator<'a> {
    /// The functions on sets and lists, known by their signatures.
    pub(super) fn extension(&self, overload: &str, target: Option<&Node<'a>>, args: &[Node<'a>]) -> Option<CallCost> {
        let new_list = |factor: f64, size: Range| gives(size.scaled(factor).plus(ONE).plus(NEW_LIST), size);
        let squared = |node: &Node<'a>| {
            let size = self.size_of(node);
            size.times(size)
        };
        match (overload, target, args) {
            ("list_sets_contains_list" | "list_sets_intersects_list", _, [left, right]) => {
                costs(self.size_of(left).times(self.size_of(right)).scaled(1.0).plus(ONE))
            }
            ("list_sets_equivalent_list", _, [left, right]) => {
                costs(self.size_of(left).times(self.size_of(right)).scaled(2.0).plus(ONE))
            }
            ("list_slice", Some(list), [start, end]) => {
                let end = int_or(end, self.size_of(list).max);
                new_list(1.0, Range::fixed(end.wrapping_sub(int_or(start, 0))))
            }
            ("list_flatten", Some(list), []) => new_list(1.0, self.size_of(list)),
            ("list_flatten_int", Some(list), [depth]) => new_list(int_or(depth, u64::MAX) as f64, self.size_of(list)),
            ("lists_range", None, [count]) => new_list(1.0, Range::fixed(int_or(count, u64::MAX))),
            ("list_reverse", Some(list), []) => new_list(1.0, self.size_of(list)),
            ("list_distinct", Some(list), []) => new_list(2.0, squared(list)),
            _ => {
                let compared = match (target, args) {
                    (Some(list), []) if overload.ends_with("_sort") => list,
                    (Some(_), [keys]) if overload.ends_with("_sortByAssociatedKeys") => keys,
                    _ => return None,
                };
                let texts = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
                new_list(if texts { 2.0 + PER_CHARACTER } else { 2.0 }, squared(compared))
            }
        }
    }

    /// The functions of Kubernetes, known by their names.
    pub(super) fn library(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Node<'a>>,
        args: &[Node<'a>],
    ) -> Option<CallCost> {
        let walk = |node: &Node<'a>| self.size_of(node).scaled(PER_CHARACTER);
        match (function, target, args) {
            ("check", ..) => costs(AUTHORIZATION),
            ("includes", Some(_), _) => costs(Range { min: 0, max: MOST_ATTRIBUTE_VALUES as u64 }),
            (
                "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name" | "allowed"
                | "reason" | "error" | "errored",
                ..,
            ) => costs(ONE),
            ("fieldSelector" | "labelSelector", _, [selector]) => {
                let size = self.size_of(selector);
                // A requirement takes two characters at least, and becomes an object with a list.
                let requirements = size.scaled(0.5).scaled(50.0);
                costs(NEW_LIST.plus(size.scaled(PER_CHARACTER)).plus(requirements))
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
                costs(match self.element(target) {
                    Some(element) => {
                        let texts = matches!(element.kind, Type::String | Type::Bytes);
                        let each = if texts { ONE.plus(walk(&element)) } else { ONE };
                        self.size_of(target).times(each)
                    }
                    // Texts have some of these as well.
                    None => walk(target),
                })
            }
            ("url" | "jsonpatch.escapeKey", _, [text]) => gives(walk(text), self.size_of(text)),
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                gives(walk(text), self.size_of(text))
            }
            ("replace", Some(text), [part, with, ..]) => {
                let size = self.size_of(text);
                gives(size.scaled(2.0 * PER_CHARACTER), replaced(size, self.size_of(part), self.size_of(with)))
            }
            ("split", Some(text), _) => {
                let size = self.size_of(text);
                let most = args.get(1).and_then(int).map_or(size.max, |limit| limit as u64);
                gives(size.scaled(2.0 * PER_CHARACTER), Range { min: 0, max: most })
            }
            ("join", Some(list), _) => {
                let count = self.size_of(list);
                let mut size = match self.element(list) {
                    Some(element) => count.times(self.size_of(&element)),
                    None => Range::ZERO,
                };
                if let Some(separator) = args.first() {
                    let between = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
                    size = size.plus(self.size_of(separator).times(between));
                }
                gives(size.scaled(PER_CHARACTER), size)
            }
            ("find" | "findAll", Some(text), [pattern, ..]) => {
                let size = self.size_of(text);
                gives(matching(size, self.size_of(pattern)), Range { min: 0, max: size.max })
            }
            ("ip", ..) if overload == "cidr_ip" => costs(ONE),
            ("cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver", _, [text, ..]) => {
                costs(walk(text))
            }
            ("ip.isCanonical", _, [text, ..]) => costs(self.size_of(text).scaled(2.0 * PER_CHARACTER)),
            (
                "masked"
                | "prefixLength"
                | "family"
                | "isUnspecified"
                | "isLoopback"
                | "isLinkLocalMulticast"
                | "isLinkLocalUnicast"
                | "isGlobalUnicast",
                ..,
            ) => costs(ONE),
            ("containsIP" | "containsCIDR", _, [other, ..]) => {
                // Addresses of either version, compared byte by byte.
                let address = Range { min: 4, max: 16 };
                let mut cost = address.plus(address).scaled(PER_CHARACTER);
                if function == "containsCIDR" {
                    cost = cost.plus(address.scaled(PER_CHARACTER)).plus(ONE);
                }
                if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
                    cost = cost.plus(walk(other));
                }
                costs(cost)
            }
            ("validate", _, [text, ..]) => costs(walk(text).scaled(FORMAT_PATTERN * PER_PATTERN_CHARACTER)),
            (
                "format.named" | "sign" | "asInteger" | "isInteger" | "asApproximateFloat" | "isGreaterThan"
                | "isLessThan" | "compareTo" | "add" | "sub" | "major" | "minor" | "patch" | "getScheme"
                | "getHostname" | "getHost" | "getPort" | "getEscapedPath" | "getQuery",
                ..,
            ) => costs(ONE),
            ("_==_", _, [left, right]) if left.kind == right.kind => equality(&left.kind, right),
            _ => None,
        }
    }

    fn size_of(&self, node: &Node<'a>) -> Range {
        node.size.or_else(|| self.size_by_schema(&node.path)).unwrap_or(Range::UNKNOWN)
    }

    /// An element of a list.
    fn element(&self, list: &Node<'a>) -> Option<Node<'a>> {
        let kind = list.kind.params().first()?.clone();
        let path = if list.path.is_empty() { Path::default() } else { list.path.apart().then("@items") };
        Some(Node { expr: None, kind, path, size: None })
    }
}

/// How long a text becomes in which parts are replaced.
fn replaced(text: Range, part: Range, with: Range) -> Range {
    // So many replacements, and so much of the text beside them. An empty part is found around every character.
    let (most, kept) = if part.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if with.max <= part.min {
        (0, text.max)
    } else {
        ((text.max as f64 / part.min as f64).ceil() as u64, 0)
    };
    let max = most.saturating_mul(with.max).saturating_add(kept);
    let (least, kept) = if part.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if part.max <= with.min {
        (0, text.min)
    } else {
        ((text.min as f64 / part.max as f64).ceil() as u64, 0)
    };
    let min = least.saturating_mul(with.min).saturating_add(kept);
    Range { min, max }
}

/// What it costs to compare two values of a type that Kubernetes brings.
fn equality(kind: &Type, right: &Node<'_>) -> Option<CallCost> {
    match kind {
        Type::Object(name) => match &**name {
            "kubernetes.Quantity"
            | "kubernetes.Semver"
            | "kubernetes.authorization.Authorizer"
            | "kubernetes.authorization.PathCheck"
            | "kubernetes.authorization.GroupCheck"
            | "kubernetes.authorization.ResourceCheck"
            | "kubernetes.authorization.Decision" => costs(ONE),
            "kubernetes.NamedFormat" => costs(Range { min: 1, max: LARGEST_FORMAT }.scaled(PER_CHARACTER)),
            "kubernetes.URL" => {
                let max = right.size.map_or(1, |size| size.max);
                costs(Range { min: 1, max }.scaled(PER_CHARACTER))
            }
            _ => None,
        },
        _ => match kind.shape() {
            Some(Shape::Opaque(name)) if matches!(&**name, "net.IP" | "net.CIDR") => costs(ONE),
            _ => None,
        },
    }
}

fn int(node: &Node<'_>) -> Option<i64> {
    match node.expr?.kind {
        ExprKind::Literal(Literal::Int(number)) => Some(number),
        _ => None,
    }
}

/// The number that is written out, which counts as 0 if it is negative.
fn int_or(node: &Node<'_>, otherwise: u64) -> u64 {
    int(node).map_or(otherwise, |number| u64::try_from(number).unwrap_or(0))
}
