//! Names and the sentences about wrong ones, as the original has them.

use super::*;
use proptest::prelude::*;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const OLD_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_KEY: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

#[track_caller]
fn check(rule: impl Fn(&str) -> Problems, cases: &[(&str, &[&str])]) {
    for (text, want) in cases {
        assert_eq!(rule(text), *want, "{text:?}");
    }
}

#[test]
fn dns_names() {
    let (l63, l64, l253, l254) = ("a".repeat(63), "a".repeat(64), "a".repeat(253), "a".repeat(254));
    check(
        dns1123_label,
        &[
            ("a", &[]),
            ("0", &[]),
            ("a-1", &[]),
            (&l63, &[]),
            (&l64, &["must be no more than 63 characters"]),
            ("", &[LABEL]),
            ("A", &[LABEL]),
            ("-a", &[LABEL]),
            ("a-", &[LABEL]),
            ("a_b", &[LABEL]),
            ("é", &[LABEL]),
            ("a\n", &[LABEL]),
            ("a.b", &["must not contain dots"]),
            (".a", &[LABEL]),
        ],
    );
    check(
        dns1123_subdomain,
        &[
            ("a", &[]),
            ("a.b-c.1", &[]),
            (&l253, &[]),
            (&l254, &["must be no more than 253 characters"]),
            ("", &[SUBDOMAIN]),
            ("a..b", &[SUBDOMAIN]),
            (".a", &[SUBDOMAIN]),
            ("a.", &[SUBDOMAIN]),
            ("a.-b", &[SUBDOMAIN]),
            ("A.b", &[SUBDOMAIN]),
            (&("A".to_owned() + &l253), &["must be no more than 253 characters", SUBDOMAIN]),
        ],
    );
    check(
        dns1035_label,
        &[
            ("a", &[]),
            ("a-1", &[]),
            ("1a", &[OLD_LABEL]),
            ("", &[OLD_LABEL]),
            ("a.b", &[OLD_LABEL]),
            (&l64, &["must be no more than 63 characters"]),
        ],
    );
}

#[test]
fn labels() {
    let (l63, l64, l254) = ("a".repeat(63), "a".repeat(64), "a".repeat(254));
    check(
        qualified_name,
        &[
            ("simple", &[]),
            ("now-with_more.parts", &[]),
            ("1.2.3.4/5678", &[]),
            ("UPPER", &[]),
            (&format!("a/{l63}"), &[]),
            (&l64, &["name part must be no more than 63 bytes"]),
            ("", &["name part must be non-empty", NAME_PART]),
            ("a/", &["name part must be non-empty", NAME_PART]),
            ("/a", &["prefix part must be non-empty"]),
            ("-a", &[NAME_PART]),
            ("a b", &[NAME_PART]),
            ("a/b/c", &[LABEL_KEY]),
            (&format!("{l254}/b"), &["prefix part must be no more than 253 bytes"]),
        ],
    );
    let prefix = format!("prefix part {SUBDOMAIN}");
    assert_eq!(qualified_name("Upper/name-"), [prefix.as_str(), NAME_PART]);
    check(
        label_value,
        &[
            ("", &[]),
            ("a", &[]),
            ("A_b.c-1", &[]),
            (&l63, &[]),
            (&l64, &["must be no more than 63 bytes"]),
            ("_a", &[LABEL_VALUE]),
            ("a/b", &[LABEL_VALUE]),
            (" ", &[LABEL_VALUE]),
        ],
    );
    check(finalizer_name, &[("kubernetes", &[]), ("a/b", &[]), ("a b", &[NAME_PART])]);
    let foreign: &[&str] = &["name is neither a standard finalizer name nor is it fully qualified"];
    check(
        builtin_kind_finalizer,
        &[("kubernetes", &[]), ("orphan", &[]), ("foregroundDeletion", &[]), ("a/b", &[]), ("mine", foreign)],
    );
}

#[test]
fn path_segments_and_config_keys() {
    check(
        path_segment_name,
        &[
            ("", &[]),
            ("system:admin", &[]),
            ("...", &[]),
            (".", &["may not be '.'"]),
            ("..", &["may not be '..'"]),
            ("a/b", &["may not contain '/'"]),
            ("a%/b", &["may not contain '/'", "may not contain '%'"]),
        ],
    );
    let l254 = "a".repeat(254);
    check(
        config_map_key,
        &[
            ("a.b", &[]),
            (".hidden", &[]),
            ("-", &[]),
            ("", &[CONFIG_KEY]),
            ("a b", &[CONFIG_KEY]),
            (".", &["must not be '.'"]),
            ("..", &["must not be '..'"]),
            ("..a", &["must not start with '..'"]),
            ("../a", &[CONFIG_KEY, "must not start with '..'"]),
            (&l254, &["must be no more than 253 characters"]),
        ],
    );
}

#[test]
fn long_names_are_told_of_in_bytes_and_their_prefixes_not_at_all() {
    let l254 = "a".repeat(254);
    let rule = NameRule::LongName;
    check(
        |text| rule.check(text),
        &[("a.b-c.1", &[]), ("", &[SUBDOMAIN]), (&l254, &["must be no more than 253 bytes"])],
    );
    check(|text| rule.check_prefix(text), &[("A_", &[])]);
}

#[test]
fn prefixes_of_generated_names() {
    check(
        |text| NameRule::Dns1123Subdomain.check_prefix(text),
        &[
            ("web-", &[]),
            ("web", &[]),
            ("web--", &[]),
            // The byte before the dash is replaced together with it.
            ("web.-", &[]),
            ("é-", &[SUBDOMAIN]),
            ("-", &[SUBDOMAIN]),
            ("", &[SUBDOMAIN]),
            ("-a-", &[SUBDOMAIN]),
            ("web.", &[SUBDOMAIN]),
        ],
    );
    check(
        |text| NameRule::Dns1123Label.check_prefix(text),
        &[("web-", &[]), ("a.-", &[]), ("a.b-", &["must not contain dots"])],
    );
    check(|text| NameRule::Dns1035Label.check_prefix(text), &[("web-", &[]), ("1eb-", &[OLD_LABEL])]);
    check(
        |text| NameRule::PathSegment.check_prefix(text),
        &[("..", &[]), ("a:-", &[]), ("a/-", &["may not contain '/'"])],
    );
}

#[test]
fn rules_name_their_checks() {
    for (rule, accepts, refuses) in [
        (NameRule::Dns1123Subdomain, "1.a", "A"),
        (NameRule::LongName, "1.a", "A"),
        (NameRule::Dns1123Label, "1a", "1.a"),
        (NameRule::Dns1035Label, "a1", "1a"),
        (NameRule::PathSegment, "A b", "a/b"),
    ] {
        assert_eq!(rule.check(accepts), Problems::new(), "{rule:?}");
        assert_ne!(rule.check(refuses), Problems::new(), "{rule:?}");
    }
}

proptest! {
    #[test]
    fn nothing_panics(text in any::<String>()) {
        for rule in [NameRule::Dns1123Subdomain, NameRule::Dns1123Label, NameRule::Dns1035Label, NameRule::PathSegment] {
            rule.check_prefix(&text);
            // Every label is a subdomain is a segment.
            if rule.check(&text).is_empty() {
                prop_assert!(path_segment_name(&text).is_empty());
            }
        }
        if label_value(&text).is_empty() && !text.is_empty() {
            prop_assert!(qualified_name(&text).is_empty());
        }
        config_map_key(&text);
    }
}

const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const UNDERSCORE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const CASELESS: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
const ENVIRONMENT: &str = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')";
const RELAXED: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";

#[test]
fn special_dns_names() {
    let l254 = "a".repeat(254);
    check(
        wildcard_dns1123_subdomain,
        &[
            ("*.a", &[]),
            ("*.foo.bar.com", &[]),
            ("*", &[WILDCARD]),
            ("*.", &[WILDCARD]),
            ("*bar.com", &[WILDCARD]),
            ("*.*.com", &[WILDCARD]),
            ("a.com", &[WILDCARD]),
            ("", &[WILDCARD]),
            (&format!("*.{l254}"), &["must be no more than 253 characters"]),
        ],
    );
    check(
        dns1123_subdomain_with_underscore,
        &[
            ("a", &[]),
            ("_http._tcp.a", &[]),
            ("a_b.c", &[]),
            ("_", &[UNDERSCORE]),
            ("__a", &[UNDERSCORE]),
            ("a_", &[UNDERSCORE]),
            ("A", &[UNDERSCORE]),
            ("", &[UNDERSCORE]),
            (&l254, &["must be no more than 253 characters"]),
        ],
    );
    check(
        dns1123_subdomain_caseless,
        &[
            ("Example.COM", &[]),
            ("a_b", &[CASELESS]),
            ("", &[CASELESS]),
            ("É", &[CASELESS]),
            (&l254, &["must be no more than 253 bytes"]),
        ],
    );
}

#[test]
fn ports_headers_and_percentages() {
    const CHARSET: &str = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
    const LETTER: &str = "must contain at least one letter (a-z)";
    for (port, ok) in [(0, false), (1, true), (65535, true), (65536, false), (-1, false)] {
        assert_eq!(port_number(port).is_empty(), ok, "{port}");
    }
    check(
        port_name,
        &[
            ("http", &[]),
            ("a", &[]),
            ("2a-3", &[]),
            ("a23456789012345", &[]),
            ("a234567890123456", &["must be no more than 15 characters"]),
            ("", &[CHARSET, LETTER]),
            ("8080", &[LETTER]),
            ("A", &[CHARSET, LETTER]),
            ("a--b", &["must not contain consecutive hyphens"]),
            ("-a", &["must not begin or end with a hyphen"]),
            ("a-", &["must not begin or end with a hyphen"]),
            ("--", &[LETTER, "must not contain consecutive hyphens", "must not begin or end with a hyphen"]),
        ],
    );
    check(http_header_name, &[("X-A", &[]), ("-", &[]), ("", &[HEADER]), ("a_b", &[HEADER]), ("a b", &[HEADER])]);
    check(
        percent,
        &[
            ("0%", &[]),
            ("100%", &[]),
            ("", &[PERCENT]),
            ("%", &[PERCENT]),
            ("5", &[PERCENT]),
            ("-5%", &[PERCENT]),
            ("5%%", &[PERCENT]),
        ],
    );
}

#[test]
fn what_processes_are_told() {
    check(
        env_var_name,
        &[
            ("A", &[]),
            ("_a.b-C9", &[]),
            ("-x", &[]),
            ("", &[ENVIRONMENT]),
            ("9a", &[ENVIRONMENT]),
            ("a b", &[ENVIRONMENT]),
            (".", &["must not be '.'"]),
            ("..", &["must not be '..'"]),
            ("..a", &["must not start with '..'"]),
        ],
    );
    check(
        relaxed_env_var_name,
        &[
            ("9 a:~", &[]),
            (".", &[]),
            ("", &["environment variable name must be non-empty"]),
            ("a=b", &[RELAXED]),
            ("a\tb", &[RELAXED]),
            ("\x7f", &[RELAXED]),
            ("é", &[RELAXED]),
        ],
    );
    check(
        c_identifier,
        &[
            ("a", &[]),
            ("_A9", &[]),
            ("", &[IDENTIFIER]),
            ("9", &[IDENTIFIER]),
            ("a-b", &[IDENTIFIER]),
            ("é", &[IDENTIFIER]),
        ],
    );
    for (id, ok) in [(-1, false), (0, true), (2_147_483_647, true), (2_147_483_648, false)] {
        assert_eq!((user_id(id).is_empty(), group_id(id).is_empty()), (ok, ok), "{id}");
    }
}

#[test]
fn names_of_domains() {
    use crate::{FieldError, FieldErrors, FieldPath};
    type Rule = fn(&FieldPath<'_>, &str) -> FieldErrors;
    let long = format!("{}.com", "a".repeat(64));
    let key = r#"f: Invalid value: "a": must be a domain-prefixed key (such as "acme.io/foo")"#;
    let path =
        |text: &str| format!(r#"f: Invalid value: "{text}": must be a domain-prefixed path (such as "acme.io/foo")"#);
    let cases: &[(Rule, &str, Vec<String>)] = &[
        (fully_qualified_name, "a.b.c", vec![]),
        (fully_qualified_name, "", vec!["f: Required value".to_owned()]),
        (fully_qualified_name, "a.b.c.", vec![format!(r#"f: Invalid value: "a.b.c.": {SUBDOMAIN}"#)]),
        (
            fully_qualified_name,
            "a.b",
            vec![r#"f: Invalid value: "a.b": should be a domain with at least three segments separated by dots"#.to_owned()],
        ),
        (fully_qualified_domain_name, "a.b", vec![]),
        (fully_qualified_domain_name, "a.b.", vec![]),
        (fully_qualified_domain_name, "", vec!["f: Required value".to_owned()]),
        (fully_qualified_domain_name, ".", vec![format!(r#"f: Invalid value: "": {SUBDOMAIN}"#)]),
        (
            fully_qualified_domain_name,
            "a",
            vec![r#"f: Invalid value: "a": should be a domain with at least two segments separated by dots"#.to_owned()],
        ),
        (
            fully_qualified_domain_name,
            &long,
            vec![format!(r#"f: Invalid value: "{}": must be no more than 63 characters"#, "a".repeat(64))],
        ),
        (domain_prefixed_path, "acme.io/foo/bar", vec![]),
        (domain_prefixed_path, "", vec!["f: Required value".to_owned()]),
        (domain_prefixed_path, "a", vec![path("a")]),
        (domain_prefixed_path, "/a", vec![path("/a")]),
        (domain_prefixed_path, "a/", vec![path("a/")]),
        (
            domain_prefixed_path,
            "A/b?",
            vec![
                format!(r#"f: Invalid value: "A": {SUBDOMAIN}"#),
                r#"f: Invalid value: "b?": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"#
                    .to_owned(),
            ],
        ),
        (domain_prefixed_key, "acme.io/foo", vec![]),
        (domain_prefixed_key, "", vec!["f: Required value".to_owned()]),
        (domain_prefixed_key, "a", vec![key.to_owned()]),
        (domain_prefixed_key, "a/b/c", vec![format!(r#"f: Invalid value: "a/b/c": {LABEL_KEY}"#)]),
    ];
    for (rule, text, want) in cases {
        let errors = rule(&FieldPath::root("f"), text);
        assert_eq!(errors.iter().map(FieldError::to_string).collect::<Vec<_>>(), *want, "{text:?}");
    }
}
