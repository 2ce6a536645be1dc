//! What the functions of the libraries do. [`find`] is the table of them; each file has those of a library or two.
//!
//! Functions are found by name once, when an expression is planned. Which of its signatures is meant shows in the values
//! that it is given.

mod arithmetic;
mod authz;
mod conversions;
mod format;
mod lists;
pub(crate) mod named_format;
mod network;
mod optional;
mod quantity;
mod regex;
pub(crate) mod semver;
mod text;
mod time;
pub(crate) mod url;

use ::regex::Regex;
use revisor_object::Duration;

use super::error::{Budget, EvalError};
use super::value::CelValue;

pub(crate) use conversions::{TIMESTAMP_SECONDS, display, double_text};
pub(crate) use format::quoted;
pub(crate) use lists::MOST_ATTRIBUTE_VALUES;
pub(crate) use time::parse_timestamp;

/// What a function may use beside its arguments.
pub(crate) struct Scope<'s> {
    pub(crate) budget: &'s mut Budget,
    /// The pattern that is its second argument, if it was written out.
    pub(crate) pattern: Option<&'s Regex>,
}

/// Carries out a call. The arguments may be taken.
pub(crate) type Function = for<'a> fn(&mut Scope<'_>, &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError>;

/// What a function gives that was handed something it does not take.
fn mismatch<'a>() -> Result<CelValue<'a>, EvalError> {
    Err(EvalError::no_such_overload())
}

/// The functions, with their names.
#[rustfmt::skip]
const FUNCTIONS: &[(&str, Function)] = &[
    ("!_", arithmetic::not),
    ("-_", arithmetic::negate),
    ("@in", arithmetic::contains),
    ("_in_", arithmetic::contains),
    ("in", arithmetic::contains),
    ("@not_strictly_false", arithmetic::not_strictly_false),
    ("__not_strictly_false__", arithmetic::not_strictly_false),
    ("_+_", arithmetic::add),
    ("_-_", arithmetic::subtract),
    ("_*_", arithmetic::multiply),
    ("_/_", arithmetic::divide),
    ("_%_", arithmetic::modulo),
    ("_<_", |_, args| arithmetic::ordered("_<_", args, |order| order.is_lt())),
    ("_<=_", |_, args| arithmetic::ordered("_<=_", args, |order| order.is_le())),
    ("_>_", |_, args| arithmetic::ordered("_>_", args, |order| order.is_gt())),
    ("_>=_", |_, args| arithmetic::ordered("_>=_", args, |order| order.is_ge())),
    ("size", conversions::size),
    ("bool", conversions::to_bool),
    ("bytes", conversions::to_bytes),
    ("double", conversions::to_double),
    ("duration", conversions::to_duration),
    ("dyn", conversions::to_dyn),
    ("int", conversions::to_int),
    ("string", conversions::to_string),
    ("timestamp", conversions::to_timestamp),
    ("type", conversions::to_type),
    ("uint", conversions::to_uint),
    ("getDate", |scope, args| time::part(scope, args, time::Part::Date)),
    ("getDayOfMonth", |scope, args| time::part(scope, args, time::Part::DayOfMonth)),
    ("getDayOfWeek", |scope, args| time::part(scope, args, time::Part::DayOfWeek)),
    ("getDayOfYear", |scope, args| time::part(scope, args, time::Part::DayOfYear)),
    ("getFullYear", |scope, args| time::part(scope, args, time::Part::FullYear)),
    ("getHours", |scope, args| time::part(scope, args, time::Part::Hours)),
    ("getMilliseconds", |scope, args| time::part(scope, args, time::Part::Milliseconds)),
    ("getMinutes", |scope, args| time::part(scope, args, time::Part::Minutes)),
    ("getMonth", |scope, args| time::part(scope, args, time::Part::Month)),
    ("getSeconds", |scope, args| time::part(scope, args, time::Part::Seconds)),
    ("contains", text::contains),
    ("startsWith", text::starts_with),
    ("endsWith", text::ends_with),
    ("charAt", text::char_at),
    ("indexOf", text::index_of),
    ("lastIndexOf", text::last_index_of),
    ("join", text::join),
    ("lowerAscii", text::lower_ascii),
    ("upperAscii", text::upper_ascii),
    ("replace", text::replace),
    ("split", text::split),
    ("substring", text::substring),
    ("trim", text::trim),
    ("strings.quote", text::quote),
    ("jsonpatch.escapeKey", text::escape_key),
    ("format", format::format),
    ("matches", regex::matches),
    ("find", regex::find),
    ("findAll", regex::find_all),
    ("isSorted", lists::is_sorted),
    ("max", |_, args| lists::extreme(args, "max", std::cmp::Ordering::Less)),
    ("min", |_, args| lists::extreme(args, "min", std::cmp::Ordering::Greater)),
    ("sum", |scope, args| lists::sum(scope, args, CelValue::Int(0))),
    ("sort", lists::sort),
    ("@sortByAssociatedKeys", lists::sort_by_keys),
    ("distinct", lists::distinct),
    ("flatten", lists::flatten),
    ("lists.range", lists::range),
    ("reverse", lists::reverse),
    ("slice", lists::slice),
    ("first", |_, args| lists::end(args, false)),
    ("last", |_, args| lists::end(args, true)),
    ("includes", lists::includes),
    ("sets.contains", lists::set_contains),
    ("sets.equivalent", lists::set_equivalent),
    ("sets.intersects", lists::set_intersects),
    ("optional.none", |_, _| Ok(CelValue::none())),
    ("optional.of", optional::of),
    ("optional.ofNonZeroValue", optional::of_non_zero),
    ("optional.unwrap", optional::unwrap),
    ("unwrapOpt", optional::unwrap),
    ("hasValue", optional::has_value),
    ("value", optional::value),
    ("cel.@mapInsert", optional::map_insert),
    ("url", url::url),
    ("isURL", url::is_url),
    ("getScheme", |_, args| url::part(args, |url| url.scheme.clone())),
    ("getHost", |_, args| url::part(args, |url| url.host.clone())),
    ("getHostname", |_, args| url::part(args, |url| url.hostname().to_owned())),
    ("getPort", |_, args| url::part(args, |url| url.port().to_owned())),
    ("getEscapedPath", |_, args| url::part(args, revisor_object::Url::escaped_path)),
    ("getQuery", url::query),
    ("quantity", quantity::quantity),
    ("isQuantity", quantity::is_quantity),
    ("sign", quantity::sign),
    ("isInteger", quantity::is_integer),
    ("asInteger", quantity::as_integer),
    ("asApproximateFloat", quantity::as_float),
    ("add", |_, args| quantity::combine(args, false)),
    ("sub", |_, args| quantity::combine(args, true)),
    ("compareTo", quantity::compare_to),
    ("isGreaterThan", |_, args| quantity::ordered(args, std::cmp::Ordering::Greater)),
    ("isLessThan", |_, args| quantity::ordered(args, std::cmp::Ordering::Less)),
    ("semver", semver::semver),
    ("isSemver", semver::is_semver),
    ("major", |_, args| semver::part(args, |version| version.major)),
    ("minor", |_, args| semver::part(args, |version| version.minor)),
    ("patch", |_, args| semver::part(args, |version| version.patch)),
    ("ip", network::ip),
    ("isIP", network::is_ip),
    ("ip.isCanonical", network::is_canonical),
    ("family", network::family),
    ("isUnspecified", |_, args| network::ip_is(args, network::is_unspecified)),
    ("isLoopback", |_, args| network::ip_is(args, network::is_loopback)),
    ("isLinkLocalMulticast", |_, args| network::ip_is(args, network::is_link_local_multicast)),
    ("isLinkLocalUnicast", |_, args| network::ip_is(args, network::is_link_local_unicast)),
    ("isGlobalUnicast", |_, args| network::ip_is(args, network::is_global_unicast)),
    ("cidr", network::cidr),
    ("isCIDR", network::is_cidr),
    ("containsIP", network::contains_ip),
    ("containsCIDR", network::contains_cidr),
    ("masked", network::masked),
    ("prefixLength", network::prefix_length),
    ("format.named", named_format::named),
    ("validate", named_format::validate),
    ("format.byte", |_, _| named_format::constant("byte")),
    ("format.date", |_, _| named_format::constant("date")),
    ("format.datetime", |_, _| named_format::constant("datetime")),
    ("format.dns1035Label", |_, _| named_format::constant("dns1035Label")),
    ("format.dns1035LabelPrefix", |_, _| named_format::constant("dns1035LabelPrefix")),
    ("format.dns1123Label", |_, _| named_format::constant("dns1123Label")),
    ("format.dns1123LabelPrefix", |_, _| named_format::constant("dns1123LabelPrefix")),
    ("format.dns1123Subdomain", |_, _| named_format::constant("dns1123Subdomain")),
    ("format.dns1123SubdomainPrefix", |_, _| named_format::constant("dns1123SubdomainPrefix")),
    ("format.labelValue", |_, _| named_format::constant("labelValue")),
    ("format.qualifiedName", |_, _| named_format::constant("qualifiedName")),
    ("format.uri", |_, _| named_format::constant("uri")),
    ("format.uuid", |_, _| named_format::constant("uuid")),
    ("serviceAccount", authz::service_account),
    ("path", authz::path),
    ("group", |_, args| authz::step(args, |asked, text| Ok(asked.with_group(text)))),
    ("resource", authz::resource),
    ("subresource", |_, args| authz::narrow(args, |target, text| target.subresource = text)),
    ("namespace", |_, args| authz::narrow(args, |target, text| target.namespace = text)),
    ("name", |_, args| authz::narrow(args, |target, text| target.name = text)),
    ("fieldSelector", |_, args| authz::narrow(args, |target, text| target.field_selector = text)),
    ("labelSelector", |_, args| authz::narrow(args, |target, text| target.label_selector = text)),
    ("check", authz::check),
    ("allowed", |_, args| authz::answer(args, |decision| CelValue::Bool(decision.allowed))),
    ("reason", |_, args| authz::answer(args, |decision| CelValue::text(decision.reason.clone()))),
    ("errored", |_, args| authz::answer(args, |decision| CelValue::Bool(decision.error.is_some()))),
    ("error", |_, args| authz::answer(args, |decision| CelValue::text(decision.error.clone().unwrap_or_default()))),
];

/// The function with this name. The overload is empty if it is not known which one will be taken.
pub(crate) fn find(name: &str, overload: &str) -> Option<(&'static str, Function)> {
    let (name, function) = FUNCTIONS.iter().find(|(known, _)| *known == name).copied()?;
    // The sum of nothing is of the type that the elements would have had.
    Some(match overload {
        "list_uint_sum_uint" => (name, |scope, args| lists::sum(scope, args, CelValue::Uint(0))),
        "list_double_sum_double" => (name, |scope, args| lists::sum(scope, args, CelValue::Double(0.0))),
        "list_duration_sum_duration" => {
            (name, |scope, args| lists::sum(scope, args, CelValue::Duration(Duration::from_nanos(0))))
        }
        _ => (name, function),
    })
}

/// Whether a function takes whatever has an answer for it, rather than what its signatures say.
pub(crate) fn is_operator(name: &str) -> bool {
    name.contains('_') && !name.starts_with("cel.") || matches!(name, "@in" | "in" | "size" | "type" | "dyn" | "sort")
}

/// Whether a function says which types it was given that it does not take.
pub(crate) fn names_types(name: &str) -> bool {
    let silent = matches!(name, "contains" | "startsWith" | "endsWith" | "matches" | "containsIP");
    !silent && !is_operator(name)
}

/// Whether a function converts its argument, and so can be carried out beforehand if that is a constant.
pub(crate) fn is_conversion(name: &str) -> bool {
    matches!(name, "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that the planner turns into steps of their own.
    const STEPS: [&str; 10] = ["_&&_", "_||_", "_==_", "_!=_", "_?_:_", "_[_]", "_[?_]", "_?._", "or", "orValue"];

    #[test]
    fn every_function_that_is_declared_can_be_carried_out() {
        for line in include_str!("../../tables/functions.txt").lines().skip(1) {
            let name = line.split(' ').nth(1).expect("the second column is the name");
            assert!(STEPS.contains(&name) || find(name, "").is_some(), "{name}");
        }
    }
}
