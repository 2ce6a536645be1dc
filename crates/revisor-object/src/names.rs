//! The rules for names, keys and values of labels, with the texts in which Kubernetes explains a breach.
//!
//! Clients and tests compare these texts, so they are part of the API, down to the regular expression that each of
//! them quotes. Nothing here runs that expression: the rules are simple enough for a loop over bytes.
//!
//! Some texts count "characters" and others "bytes" for the same limit. Kubernetes says "characters" for the names of
//! objects and "bytes" for everything about labels, and so do these functions.
//!
//! This file has the rules that nearly every object meets; `network.rs`, `process.rs` and `domain.rs` have those of
//! single fields. Which rule holds for the name of which kind is the catalog's.

/// What is wrong with a name, one sentence each. Empty if nothing is.
pub type Problems = Vec<&'static str>;

// Fragments of the texts. They are macros because only literals can be concatenated at compile time.
macro_rules! label_pattern {
    () => {
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    };
}
macro_rules! subdomain_breach {
    () => {
        concat!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must ",
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '",
            label_pattern!(),
            "(\\.",
            label_pattern!(),
            ")*')"
        )
    };
}
macro_rules! qualified_pattern {
    () => {
        "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
    };
}
macro_rules! qualified_breach {
    () => {
        concat!(
            "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric ",
            "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '",
            qualified_pattern!(),
            "')"
        )
    };
}

mod domain;
mod network;
mod process;

pub use domain::{domain_prefixed_key, domain_prefixed_path, fully_qualified_domain_name, fully_qualified_name};
pub use network::{
    dns1123_subdomain_caseless, dns1123_subdomain_with_underscore, http_header_name, percent, port_name, port_number,
    wildcard_dns1123_subdomain,
};
pub use process::{c_identifier, env_var_name, group_id, relaxed_env_var_name, user_id};

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;

const AT_MOST_63_CHARACTERS: &str = "must be no more than 63 characters";
const AT_MOST_253_BYTES: &str = "must be no more than 253 bytes";
const AT_MOST_253_CHARACTERS: &str = "must be no more than 253 characters";

/// The rule that the names of one kind follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameRule {
    /// [`dns1123_subdomain`], the rule of most kinds.
    Dns1123Subdomain,
    /// The same as the original's declarative validation has it (`validate.LongName`), which counts bytes in its words
    /// and does not look at `generateName`.
    LongName,
    /// [`dns1123_label`], where the name becomes one segment of a DNS name.
    Dns1123Label,
    /// [`dns1035_label`], where it must begin with a letter too.
    Dns1035Label,
    /// [`path_segment_name`], where any text will do that fits into a path.
    PathSegment,
    /// [`config_map_key`], where capitals and underscores are fine too.
    ConfigMapKey,
    /// None here: the kind itself checks its names, which depend on more than the text or are put together.
    OfKind,
}

impl NameRule {
    /// What is wrong with this name.
    pub fn check(self, name: &str) -> Problems {
        match self {
            NameRule::Dns1123Subdomain => dns1123_subdomain(name),
            NameRule::LongName => long_name(name),
            NameRule::Dns1123Label => dns1123_label(name),
            NameRule::Dns1035Label => dns1035_label(name),
            NameRule::PathSegment => path_segment_name(name),
            NameRule::ConfigMapKey => config_map_key(name),
            NameRule::OfKind => Problems::new(),
        }
    }

    /// What is wrong with this text as the beginning of a generated name (`generateName`).
    ///
    /// A dash at its end is no fault, because more follows. Kubernetes checks the text with its last two bytes
    /// replaced by a letter, so the byte before the dash goes unchecked as well.
    pub fn check_prefix(self, prefix: &str) -> Problems {
        match self {
            NameRule::PathSegment => return path_segment_prefix(prefix),
            NameRule::LongName => return Problems::new(),
            // A dash may stand at its end anyway.
            NameRule::ConfigMapKey => return config_map_key(prefix),
            _ => {}
        }
        match prefix.as_bytes() {
            [kept @ .., _, b'-'] => {
                // Cutting a character in half cannot turn a bad name into a good one: what is left of it is still
                // not ASCII, and stays so after the replacement.
                let mut masked = String::from_utf8_lossy(kept).into_owned();
                masked.push('a');
                self.check(&masked)
            }
            _ => self.check(prefix),
        }
    }
}

/// Checks a segment of a DNS name: lower case letters, digits and inner dashes, at most 63.
///
/// ```
/// use revisor_object::names::dns1123_label;
/// assert!(dns1123_label("web-1").is_empty());
/// assert_eq!(dns1123_label("web.1"), ["must not contain dots"]);
/// ```
pub fn dns1123_label(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.len() > LABEL_MAX {
        problems.push(AT_MOST_63_CHARACTERS);
    }
    if !is_dns1123_label(text) {
        problems.push(if is_dns1123_subdomain(text) {
            "must not contain dots"
        } else {
            concat!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start ",
                "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '",
                label_pattern!(),
                "')"
            )
        });
    }
    problems
}

/// What is wrong with a text as a name of domains with dots between them, where it is declared to be one
/// (`validate.LongName`).
pub fn long_name(text: &str) -> Problems {
    subdomain_problems(text, AT_MOST_253_BYTES)
}

/// Checks a DNS name: labels joined by dots, at most 253.
///
/// ```
/// use revisor_object::names::dns1123_subdomain;
/// assert!(dns1123_subdomain("example.com").is_empty());
/// assert_eq!(dns1123_subdomain("Example.com").len(), 1);
/// ```
pub fn dns1123_subdomain(text: &str) -> Problems {
    subdomain_problems(text, AT_MOST_253_CHARACTERS)
}

fn subdomain_problems(text: &str, too_long: &'static str) -> Problems {
    let mut problems = Problems::new();
    if text.len() > SUBDOMAIN_MAX {
        problems.push(too_long);
    }
    if !is_dns1123_subdomain(text) {
        problems.push(subdomain_breach!());
    }
    problems
}

/// Checks a segment of a DNS name by the older rule, which wants a letter first.
///
/// ```
/// use revisor_object::names::dns1035_label;
/// assert!(dns1035_label("web-1").is_empty());
/// assert_eq!(dns1035_label("1-web").len(), 1);
/// ```
pub fn dns1035_label(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.len() > LABEL_MAX {
        problems.push(AT_MOST_63_CHARACTERS);
    }
    if !is_dns1123_label(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        problems.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        );
    }
    problems
}

/// Checks the key of a label or annotation: a name, and optionally a DNS name and a slash before it.
///
/// ```
/// use revisor_object::names::qualified_name;
/// assert!(qualified_name("example.com/My_Name").is_empty());
/// assert_eq!(qualified_name("/x"), ["prefix part must be non-empty"]);
/// ```
pub fn qualified_name(text: &str) -> Problems {
    let mut problems = Problems::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, rest)) if rest.contains('/') => {
            problems.push(concat!(
                "a valid label key ",
                qualified_breach!(),
                " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            return problems;
        }
        Some(("", name)) => {
            problems.push("prefix part must be non-empty");
            name
        }
        Some((prefix, name)) => {
            if prefix.len() > SUBDOMAIN_MAX {
                problems.push("prefix part must be no more than 253 bytes");
            }
            if !is_dns1123_subdomain(prefix) {
                problems.push(concat!("prefix part ", subdomain_breach!()));
            }
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty");
    } else if name.len() > LABEL_MAX {
        problems.push("name part must be no more than 63 bytes");
    }
    if !is_qualified(name) {
        problems.push(concat!("name part ", qualified_breach!()));
    }
    problems
}

/// Checks the value of a label, which may be empty.
///
/// ```
/// use revisor_object::names::label_value;
/// assert!(label_value("").is_empty());
/// assert_eq!(label_value("two words").len(), 1);
/// ```
pub fn label_value(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.len() > LABEL_MAX {
        problems.push("must be no more than 63 bytes");
    }
    if !text.is_empty() && !is_qualified(text) {
        problems.push(concat!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must ",
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used ",
            "for validation is '(",
            qualified_pattern!(),
            ")?')"
        ));
    }
    problems
}

/// Checks a name that need only fit into one segment of a path.
///
/// ```
/// use revisor_object::names::path_segment_name;
/// assert!(path_segment_name("system:node").is_empty());
/// assert_eq!(path_segment_name(".."), ["may not be '..'"]);
/// ```
pub fn path_segment_name(text: &str) -> Problems {
    match text {
        "." => vec!["may not be '.'"],
        ".." => vec!["may not be '..'"],
        _ => path_segment_prefix(text),
    }
}

/// Checks the beginning of such a name. Only what no continuation can mend is a fault.
fn path_segment_prefix(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.contains('/') {
        problems.push("may not contain '/'");
    }
    if text.contains('%') {
        problems.push("may not contain '%'");
    }
    problems
}

/// Checks a key of a ConfigMap or Secret, which becomes the name of a file.
///
/// ```
/// use revisor_object::names::config_map_key;
/// assert!(config_map_key("tls.crt").is_empty());
/// assert_eq!(config_map_key("..data"), ["must not start with '..'"]);
/// ```
pub fn config_map_key(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.len() > SUBDOMAIN_MAX {
        problems.push(AT_MOST_253_CHARACTERS);
    }
    if text.is_empty() || !text.bytes().all(is_inner_qualified) {
        problems.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        );
    }
    problems.extend(parent_directory_problem(text));
    problems
}

/// What is wrong with a text that becomes the name of a file but leads out of its directory.
fn parent_directory_problem(text: &str) -> Option<&'static str> {
    match text {
        "." => Some("must not be '.'"),
        ".." => Some("must not be '..'"),
        _ if text.starts_with("..") => Some("must not start with '..'"),
        _ => None,
    }
}

/// Checks the name of a finalizer.
///
/// ```
/// use revisor_object::names::finalizer_name;
/// assert!(finalizer_name("example.com/cleanup").is_empty());
/// assert_eq!(finalizer_name("a b").len(), 1);
/// ```
pub fn finalizer_name(text: &str) -> Problems {
    qualified_name(text)
}

/// Checks what built-in kinds ask of a finalizer beyond [`finalizer_name`]: without a prefix, only the names that
/// Kubernetes itself uses.
///
/// ```
/// use revisor_object::names::builtin_kind_finalizer;
/// assert!(builtin_kind_finalizer("orphan").is_empty());
/// assert_eq!(builtin_kind_finalizer("mine").len(), 1);
/// ```
pub fn builtin_kind_finalizer(text: &str) -> Problems {
    if text.contains('/') || matches!(text, "kubernetes" | "orphan" | "foregroundDeletion") {
        return Problems::new();
    }
    vec!["name is neither a standard finalizer name nor is it fully qualified"]
}

fn is_dns1123_label(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(text, alphanumeric, |byte| alphanumeric(byte) || byte == b'-')
}

fn is_dns1123_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns1123_label)
}

fn is_qualified(text: &str) -> bool {
    is_framed(text, |byte| byte.is_ascii_alphanumeric(), is_inner_qualified)
}

fn is_inner_qualified(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Not empty, with `edge` for the first and last byte and `inner` for those between.
fn is_framed(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => edge(*only),
        [first, middle @ .., last] => edge(*first) && edge(*last) && middle.iter().all(|byte| inner(*byte)),
    }
}

#[cfg(test)]
mod tests;
