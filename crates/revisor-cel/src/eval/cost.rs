//! What calls cost when they are evaluated.
//!
//! The numbers are part of the API: they decide whether an object is accepted.

use super::opaque::Opaque;
use super::value::CelValue;

/// What one step of a traversal of text costs.
const TEXT: f64 = 0.1;

/// What one character of a pattern costs.
const PATTERN: f64 = 0.25;

/// What it costs to make a list.
pub(crate) const LIST: u64 = 10;

/// What it costs to make a map.
pub(crate) const MAP: u64 = 30;

/// What it costs to make an object.
pub(crate) const STRUCTURE: u64 = 40;

/// What a call costs, given its arguments or its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CallCost {
    Fixed(u64),
    /// To read a selector: the second argument.
    Selector,
    /// To go through all of the first argument.
    Traversal,
    /// To go through the text of the first argument so many times.
    Text(f64),
    /// To make the text that comes out.
    Result,
    /// To search for the pattern in the second argument.
    Pattern,
    /// To search for the text in the second argument.
    Contains,
    /// To look at each element of the second argument.
    Elements,
    /// To compare two texts.
    Shorter,
    /// To put two texts together.
    Both,
    ContainsIp {
        reads_text: bool,
    },
    ContainsCidr {
        reads_text: bool,
    },
    Validate,
    /// To compare each with each, so many times.
    Product(f64),
    /// To make the list that comes out.
    ListMade,
    Flatten,
    /// To compare each element of this argument with each.
    SelfCompare(usize),
}

impl CallCost {
    /// What a function costs. The overload is empty if it is not known which one will be taken.
    pub(crate) fn of(function: &str, overload: &str) -> CallCost {
        match overload {
            "list_sets_contains_list" | "list_sets_intersects_list" => return CallCost::Product(1.0),
            "list_sets_equivalent_list" => return CallCost::Product(2.0),
            "list_slice" | "lists_range" | "list_reverse" => return CallCost::ListMade,
            "list_flatten" | "list_flatten_int" => return CallCost::Flatten,
            "list_distinct" => return CallCost::SelfCompare(0),
            _ if overload.starts_with("list_") && overload.ends_with("_sort") => return CallCost::SelfCompare(0),
            _ if overload.ends_with("_sortByAssociatedKeys") => return CallCost::SelfCompare(1),
            _ => {}
        }
        match function {
            "check" => CallCost::Fixed(350_000),
            "fieldSelector" | "labelSelector" => CallCost::Selector,
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => CallCost::Traversal,
            "ip" if overload == "cidr_ip" => CallCost::Fixed(1),
            "url"
            | "lowerAscii"
            | "upperAscii"
            | "substring"
            | "trim"
            | "jsonpatch.escapeKey"
            | "cidr"
            | "isIP"
            | "isCIDR"
            | "ip"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver" => CallCost::Text(1.0),
            "replace" | "split" | "ip.isCanonical" => CallCost::Text(2.0),
            "join" => CallCost::Result,
            "find" | "findAll" => CallCost::Pattern,
            "containsIP" => CallCost::ContainsIp { reads_text: overload == "cidr_contains_ip_string" },
            "containsCIDR" => CallCost::ContainsCidr { reads_text: overload == "cidr_contains_cidr_string" },
            "validate" => CallCost::Validate,
            _ => match overload {
                "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string" | "strings_quote"
                | "string_format" => CallCost::Text(1.0),
                "in_list" => CallCost::Elements,
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes" => CallCost::Shorter,
                "add_string" | "add_bytes" => CallCost::Both,
                "matches_string" => CallCost::Pattern,
                "contains_string" => CallCost::Contains,
                _ => CallCost::Fixed(1),
            },
        }
    }

    /// Whether the cost depends on what comes out, and so is known only afterwards.
    pub(crate) fn is_of_result(self) -> bool {
        matches!(self, CallCost::Result | CallCost::ListMade)
    }

    /// The cost of a call with these arguments; what failed counts as one.
    pub(crate) fn reckon(self, args: &[CelValue<'_>], result: Option<&CelValue<'_>>) -> u64 {
        let size = |at: usize| args.get(at).map_or(1, CelValue::cost_size);
        let result_size = || result.map_or(1, CelValue::cost_size);
        match self {
            CallCost::Fixed(cost) => cost,
            CallCost::Selector => {
                let length = size(1);
                LIST + scaled(length, TEXT) + scaled(scaled(length, 0.5), (LIST + STRUCTURE) as f64)
            }
            CallCost::Traversal => args.first().map_or(0, traversal),
            CallCost::Text(times) => scaled(size(0), times * TEXT),
            CallCost::Result => scaled(result_size(), 2.0 * TEXT),
            CallCost::Pattern => {
                let text = ((1.0 + size(0) as f64) * TEXT).ceil() as u64;
                text.saturating_mul(scaled(size(1), PATTERN))
            }
            CallCost::Contains => scaled(size(0), TEXT).saturating_mul(scaled(size(1), TEXT)),
            CallCost::Elements => size(1),
            CallCost::Shorter => scaled(size(0).min(size(1)), TEXT),
            CallCost::Both => scaled(size(0) + size(1), TEXT),
            CallCost::ContainsIp { reads_text } => {
                scaled(2 * size(0), TEXT) + if reads_text { scaled(size(1), TEXT) } else { 0 }
            }
            CallCost::ContainsCidr { reads_text } => {
                let compared = scaled(2 * size(0), TEXT) + scaled(size(0), TEXT) + 1;
                compared + if reads_text { scaled(size(1), TEXT) } else { 0 }
            }
            CallCost::Validate => match args.first() {
                Some(CelValue::Opaque(Opaque::Format(format))) => {
                    let text = ((1.0 + size(1) as f64) * TEXT).ceil() as u64;
                    text.saturating_mul(scaled(format.pattern_size(), PATTERN))
                }
                _ => 1,
            },
            CallCost::Product(times) => 1 + (size(0).saturating_mul(size(1)) as f64 * times) as u64,
            CallCost::ListMade => 1 + LIST + result_size(),
            CallCost::Flatten => {
                let depth = match args.get(1) {
                    Some(CelValue::Int(depth)) => *depth as f64,
                    _ => 1.0,
                };
                // A depth below zero fails, and by then it has wrapped around.
                (1 + LIST).wrapping_add((size(0) as f64 * depth) as i64 as u64)
            }
            CallCost::SelfCompare(at) => {
                let first = match args.get(at) {
                    Some(CelValue::List(list)) => list.get(0),
                    _ => None,
                };
                let of_text = matches!(first, Some(Ok(CelValue::String(_) | CelValue::Bytes(_))));
                let times = if of_text { 2.0 + TEXT } else { 2.0 };
                1 + LIST + (size(at).saturating_mul(size(at)) as f64 * times) as u64
            }
        }
    }
}

/// What `==` and `!=` cost.
pub(crate) fn of_equality(negated: bool, args: &[CelValue<'_>; 2]) -> u64 {
    match &args[0] {
        CelValue::Opaque(_) if !negated => 1,
        _ => CallCost::Shorter.reckon(args, None),
    }
}

fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// What it costs to go through all of a value.
fn traversal(value: &CelValue<'_>) -> u64 {
    match value {
        CelValue::String(text) => (text.len() as f64 * TEXT) as u64,
        CelValue::Bytes(bytes) => (bytes.len() as f64 * TEXT) as u64,
        CelValue::List(list) => list.iter().map(|element| element.map_or(1, |element| traversal(&element))).sum(),
        CelValue::Map(map) => map
            .keys()
            .into_iter()
            .map(|key| {
                let value = map.get(&key).ok().flatten();
                traversal(&key) + value.map_or(1, |value| traversal(&value))
            })
            .sum(),
        _ => 1,
    }
}
