//! Label selectors and their errors, as the original has them.

use super::*;
use proptest::prelude::*;

fn selector(text: &str) -> LabelSelector {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn reads_and_writes_the_canonical_form() {
    for (text, want) in [
        ("", ""),
        ("  ", ""),
        ("a", "a"),
        ("!a", "!a"),
        ("a=b", "a=b"),
        ("a==b", "a==b"),
        ("a!=b", "a!=b"),
        ("a>1", "a>1"),
        ("a<1", "a<1"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("z, a", "a,z"),
        ("a in (y,x,y)", "a in (x,y)"),
        ("a notin (z)", "a notin (z)"),
        ("a in ()", "a in ()"),
        ("a in (,)", "a in ()"),
        ("a in (,x)", "a in (,x)"),
        ("a in (x,)", "a in (,x)"),
        ("a in (x,,y)", "a in (,x,y)"),
        ("in in (in, notin)", "in in (in,notin)"),
        ("notin", "notin"),
        ("in=notin", "in=notin"),
        (" a\t=\r\nb ", "a=b"),
        ("a.b/c=d", "a.b/c=d"),
        ("! a", "!a"),
        ("a=b,a=c", "a=b,a=c"),
    ] {
        assert_eq!(selector(text).to_string(), want, "{text:?}");
    }
}

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

#[test]
fn explains_what_it_cannot_read() {
    for (text, want) in [
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a (", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        (
            "a>",
            "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ] {
        assert_eq!(text.parse::<LabelSelector>(), Err(LabelSelectorError::Syntax(want.to_owned())), "{text:?}");
    }
    for (text, want) in [
        ("-a", format!("unable to parse requirement: <nil>: Invalid value: \"-a\": {NAME_PART}")),
        (
            "/",
            format!(
                "unable to parse requirement: <nil>: Invalid value: \"/\": prefix part must be non-empty; name part must be non-empty; {NAME_PART}"
            ),
        ),
        ("a\0b", format!("unable to parse requirement: <nil>: Invalid value: \"a\\x00b\": {NAME_PART}")),
        ("a=-b", format!("unable to parse requirement: values[0][a]: Invalid value: \"-b\": {VALUE}")),
        (
            "a in (-c,-b,x)",
            format!(
                "unable to parse requirement: [values[0][a]: Invalid value: \"-b\": {VALUE}, values[1][a]: Invalid value: \"-c\": {VALUE}]"
            ),
        ),
        ("a>-1", format!("unable to parse requirement: values[0][a]: Invalid value: \"-1\": {VALUE}")),
    ] {
        assert_eq!(text.parse::<LabelSelector>(), Err(LabelSelectorError::Syntax(want)), "{text:?}");
    }
}

#[test]
fn refuses_what_is_too_large() {
    let many = |count: usize| vec!["a"; count].join(",");
    assert_eq!(selector(&many(MAX_LABEL_REQUIREMENTS)).requirements().len(), MAX_LABEL_REQUIREMENTS);
    assert_eq!(many(MAX_LABEL_REQUIREMENTS + 1).parse::<LabelSelector>(), Err(LabelSelectorError::TooManyRequirements));
    let long = format!("a{}", " ".repeat(MAX_LABEL_SELECTOR_BYTES));
    assert_eq!(long.parse::<LabelSelector>(), Err(LabelSelectorError::TooLong));
    assert_eq!(selector(&long[..MAX_LABEL_SELECTOR_BYTES]).to_string(), "a");
}

#[test]
fn matches_labels() {
    let labels = |key: &str| match key {
        "tier" => Some("web"),
        "size" => Some("10"),
        "empty" => Some(""),
        _ => None,
    };
    for (text, want) in [
        ("", true),
        ("tier", true),
        ("!tier", false),
        ("none", false),
        ("!none", true),
        ("tier=web", true),
        ("tier==web", true),
        ("tier=db", false),
        ("none=web", false),
        ("none=", false),
        ("empty=", true),
        ("tier!=db", true),
        ("tier!=web", false),
        ("none!=web", true),
        ("tier in (db,web)", true),
        ("tier in (a,b)", false),
        ("none in (a)", false),
        ("tier notin (db,web)", false),
        ("tier notin (a)", true),
        ("none notin (a)", true),
        ("size>9", true),
        ("size>10", false),
        ("size<11", true),
        ("size<10", false),
        ("tier>1", false),
        ("none<1", false),
        ("tier=web,size=10", true),
        ("tier=web,size=11", false),
    ] {
        assert_eq!(selector(text).matches(labels), want, "{text:?}");
    }
}

#[test]
fn knows_the_only_value_it_allows() {
    for (text, want) in [
        ("a=b", Some("b")),
        ("a==b", Some("b")),
        ("a in (b)", Some("b")),
        ("a in (b,c)", None),
        ("a!=b", None),
        ("a", None),
        ("c=d", None),
        ("a,a=b", Some("b")),
    ] {
        assert_eq!(selector(text).exact("a"), want, "{text:?}");
    }
    assert!(selector("").is_everything());
    assert!(!selector("a").is_everything());
}

#[test]
fn requirements_count_their_values() {
    let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    for (operator, values, want) in [
        (
            LabelOperator::In,
            texts(&[]),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            LabelOperator::Equals,
            texts(&["b", "a"]),
            "values: Invalid value: [\"b\",\"a\"]: exact-match compatibility requires one single value",
        ),
        (
            LabelOperator::Exists,
            texts(&["a"]),
            "values: Invalid value: [\"a\"]: values set must be empty for exists and does not exist",
        ),
        (
            LabelOperator::LessThan,
            texts(&[]),
            "values: Invalid value: null: for 'Gt', 'Lt' operators, exactly one value is required",
        ),
    ] {
        let errors = Requirement::new("k", operator, values).expect_err("refused");
        assert_eq!(aggregate_message(&errors), want);
    }
    let requirement = Requirement::new("k", LabelOperator::In, texts(&["b", "a", "b"])).expect("valid");
    assert_eq!((requirement.key(), requirement.operator()), ("k", LabelOperator::In));
    assert_eq!(requirement.values(), ["a", "b"]);
    let errors = Requirement::new("-", LabelOperator::Exists, Vec::new()).expect_err("refused");
    assert_eq!(errors[0].field, "key");
}

proptest! {
    #[test]
    fn never_panics(text in any::<String>()) {
        if let Ok(selector) = text.parse::<LabelSelector>() {
            prop_assert_eq!(selector.to_string().parse(), Ok(selector));
        }
    }

    #[test]
    fn what_is_written_reads_the_same(text in "((a|b|in|notin|x/y|!|=|==|!=|<|>|\\(|\\)|,|1| ){0,12})") {
        if let Ok(selector) = text.parse::<LabelSelector>() {
            prop_assert_eq!(selector.to_string().parse(), Ok(selector));
        }
    }
}
