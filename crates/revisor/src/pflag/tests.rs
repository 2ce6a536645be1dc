//! Command lines, and what is said of those that are wrong.

use super::*;

fn known(name: &str) -> Option<FlagType> {
    let value = match name {
        "profiling" => FlagType::Bool,
        "audit-log-maxage" => FlagType::Int,
        "kubelet-port" => FlagType::Uint,
        "event-ttl" => FlagType::Duration,
        "bind-address" => FlagType::Ip,
        "goaway-chance" => FlagType::Float,
        "authorization-mode" => FlagType::Texts,
        "runtime-config" => FlagType::Map,
        "service-account-issuer" => FlagType::TextArray,
        "service-cluster-ip-range" | "etcd-prefix" => FlagType::Text,
        "allow-metric-labels" => FlagType::StringMap,
        "vmodule" => FlagType::Modules,
        "tls-curve-preferences" => FlagType::Ints,
        "v" => FlagType::Level,
        "version" => FlagType::Version,
        _ => return None,
    };
    Some(value)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn told(line: &str) -> Vec<String> {
    let parsed = parse(words(line), known).unwrap_or_else(|problem| panic!("{line}: {problem}"));
    let gathered = gather(parsed.given, |name| known(name).expect("was parsed"));
    gathered.into_iter().map(|Given { name, value }| format!("{name}={value}")).collect()
}

#[test]
fn flags_are_read_as_the_original_reads_them() {
    for (line, want) in [
        ("--profiling", &["profiling=true"][..]),
        ("--profiling=0", &["profiling=0"]),
        ("--etcd-prefix /x --profiling", &["etcd-prefix=/x", "profiling=true"]),
        ("--etcd_prefix=/x", &["etcd-prefix=/x"]),
        ("--etcd-prefix=", &["etcd-prefix="]),
        ("--etcd-prefix=a=b", &["etcd-prefix=a=b"]),
        ("--etcd-prefix --x", &["etcd-prefix=--x"]),
        ("-v 4", &["v=4"]),
        ("-v4 -v=5", &["v=5"]),
        ("--v=2", &["v=2"]),
        ("--audit-log-maxage=0x10", &["audit-log-maxage=0x10"]),
        ("--version", &["version=true"]),
        ("--authorization-mode=Node --authorization-mode RBAC", &["authorization-mode=Node,RBAC"]),
        ("--runtime-config=a=true --v=1 --runtime-config=b=false", &["runtime-config=a=true,b=false", "v=1"]),
        (
            "--service-account-issuer=a --service-account-issuer=b",
            &["service-account-issuer=a", "service-account-issuer=b"],
        ),
        ("--service-cluster-ip-range=a --service-cluster-ip-range=b", &["service-cluster-ip-range=b"]),
    ] {
        assert_eq!(told(line), want, "{line}");
    }
    let parsed = parse(words("--profiling x -- --y --help"), known).expect("is fine");
    assert_eq!((parsed.others, parsed.wants_help), (words("x --y --help"), false));
    assert!(parse(words("-h"), known).is_ok_and(|parsed| parsed.wants_help));
}

#[test]
fn what_is_wrong_is_said_in_the_words_of_the_original() {
    for (line, want) in [
        ("--foo", "unknown flag: --foo"),
        ("--foo=1", "unknown flag: --foo"),
        ("-x", "unknown shorthand flag: 'x' in -x"),
        ("--audit-log-maxage", "flag needs an argument: --audit-log-maxage"),
        (
            "--audit-log-maxage=x",
            r#"invalid argument "x" for "--audit-log-maxage" flag: strconv.ParseInt: parsing "x": invalid syntax"#,
        ),
        (
            "--profiling=maybe",
            r#"invalid argument "maybe" for "--profiling" flag: strconv.ParseBool: parsing "maybe": invalid syntax"#,
        ),
        ("--event-ttl=5", r#"invalid argument "5" for "--event-ttl" flag: time: missing unit in duration "5""#),
        ("--bind-address=x", r#"invalid argument "x" for "--bind-address" flag: failed to parse IP: "x""#),
        (
            "--goaway-chance=x",
            r#"invalid argument "x" for "--goaway-chance" flag: strconv.ParseFloat: parsing "x": invalid syntax"#,
        ),
        (
            "--allow-metric-labels=x",
            r#"invalid argument "x" for "--allow-metric-labels" flag: x must be formatted as key=value"#,
        ),
        (
            "--tls-curve-preferences=a",
            r#"invalid argument "a" for "--tls-curve-preferences" flag: strconv.ParseInt: parsing "a": invalid syntax"#,
        ),
        ("-v=x", r#"invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax"#),
        ("--vmodule=x", r#"invalid argument "x" for "--vmodule" flag: "x" does not have the pattern=N format"#),
        (
            "--kubelet-port=-1",
            r#"invalid argument "-1" for "--kubelet-port" flag: strconv.ParseUint: parsing "-1": invalid syntax"#,
        ),
    ] {
        assert_eq!(parse(words(line), known), Err(want.to_owned()), "{line}");
    }
}
