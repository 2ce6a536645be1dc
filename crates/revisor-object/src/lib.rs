//! What Kubernetes objects are made of: values, metadata, names, selectors, field errors and `Status`.
//!
//! Pure (invariant P1): no I/O, no clock, no randomness.

mod atoi;
mod bad_value;
mod clip;
mod continue_token;
mod cron;
mod duration;
mod field_error;
mod field_errors;
mod field_names;
mod field_path;
mod field_selector;
mod go_json;
mod int_or_string;
mod ip;
mod json;
mod json_members;
mod json_plain;
mod json_problem;
mod json_scan;
mod label_selector;
mod name_prefix;
pub mod names;
mod quantity;
mod raw_json;
mod same_text;
mod seen;
mod shape;
mod status;
mod stray_bytes;
mod structured_label_selector;
mod time_zone;
mod unified_diff;
mod url;
mod value;
mod warnings;
mod yaml;
mod yaml_characters;
mod yaml_keys;
mod yaml_lines;
mod yaml_order;
mod yaml_out;

pub use bad_value::{BadValue, GoJson, is_printable};
pub use clip::{MAX_TEXT_BYTES, clip, clip_joined, clip_shown};
pub use continue_token::{ContinueToken, ContinueTokenError, ListScope, MAX_CONTINUE_TOKEN_BYTES, TokenSealer};
pub use cron::{CronError, check_cron, cron_names_time_zone};
pub use duration::{Duration, DurationError};
pub use field_error::{FieldError, FieldErrorKind, aggregate_message};
pub use field_errors::{FieldErrors, MAX_FIELD_ERROR_BYTES, MAX_FIELD_ERRORS};
pub use field_names::FieldNames;
pub use field_path::FieldPath;
pub use field_selector::{
    FieldOperator, FieldSelector, FieldSelectorError, FieldTerm, MAX_FIELD_SELECTOR_BYTES, MAX_FIELD_TERMS,
};
pub use go_json::{
    compact_json, escape_html, push_json_text, push_json_value, push_kept_text, push_kept_value, push_plain_name,
};
pub use int_or_string::{IntOrString, ScaleError};
pub use ip::{
    Cidr, Strictness, cidr_problems, cidr_warnings, interface_address_problems, ip_problems, ip_warnings,
    legacy_cidr_problems, legacy_ip_problems, parse_cidr_sloppy, parse_ip_sloppy,
};
pub use json::{JsonError, MAX_DEPTH, Parsed, parse_json, parse_stored};
pub use json_members::{OddMember, odd_members};
pub use json_plain::plain_text_length;
pub use json_problem::json_problem;
pub use json_scan::JsonScan;
pub use label_selector::{
    LabelOperator, LabelSelector, LabelSelectorError, MAX_LABEL_REQUIREMENTS, MAX_LABEL_SELECTOR_BYTES, Requirement,
};
pub use name_prefix::name_prefix;
pub use quantity::{MAX_QUANTITY_BYTES, Notation, Quantity, QuantityError};
pub use raw_json::RawJson;
pub use seen::{ByMembers, ByValue, Seen};
pub use shape::Shape;
pub use status::{CONTINUE_EXPIRED, KindRef, ResourceRef, Status, StatusCause, StatusDetails, StatusMetadata};
pub use stray_bytes::{bytes_of_text, has_stray_bytes, shown_text, text_of_bytes};
pub use structured_label_selector::{LabelSelectorOptions, StructuredLabelSelector, StructuredSelectorError};
pub use time_zone::{is_time_zone, time_zone_problems};
pub use unified_diff::unified_diff;
pub use url::{Url, unescape_query};
pub use value::{Object, Value};
pub use warnings::Warnings;
pub use yaml::{YamlError, parse_yaml, parse_yaml_file};
pub use yaml_characters::is_yaml_text;
pub use yaml_keys::repeated_yaml_keys;
pub use yaml_lines::YamlLines;
pub use yaml_order::KeyOrder;
pub use yaml_out::{yaml_document, yaml_element};
