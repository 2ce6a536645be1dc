//! How command lines are read.

use std::ffi::OsString;

use clap::Parser;

use super::*;

fn parse(line: &str) -> Result<Arguments, String> {
    let arguments = std::iter::once("revisor").chain(line.split_whitespace()).map(OsString::from);
    Arguments::try_parse_from(with_default_command(arguments)).map_err(|error| error.to_string())
}

#[test]
fn serve_is_what_happens_if_no_command_is_named() {
    for line in ["", "serve", "--secure-port=1", "serve --secure-port=1", "-v=4", "-v 4"] {
        let arguments = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(matches!(arguments.command, Command::Serve(_)), "{line}");
    }
    assert!(matches!(parse("version").map(|arguments| arguments.command), Ok(Command::Version)));
}

#[test]
fn flags_that_are_given_again_count_as_in_the_original() {
    let serve = |line: &str| {
        let arguments = std::iter::once("revisor").chain(line.split_whitespace()).map(OsString::from);
        let arguments = with_repeated_flags(with_default_command(arguments));
        match Arguments::try_parse_from(arguments).unwrap_or_else(|error| panic!("{line}: {error}")).command {
            Command::Serve(flags) => flags,
            other => panic!("{line}: {other:?}"),
        }
    };
    let flags = serve("--runtime-config=api/beta=true --runtime-config api/alpha=false --secure-port=1");
    assert_eq!(flags.runtime_config.to_string(), "api/alpha=false,api/beta=true");
    let flags = serve("--authorization-mode=Node --secure-port=1 --authorization-mode=RBAC --secure-port=2");
    assert_eq!((flags.authorization_mode.as_slice().len(), flags.secure_port), (2, 2));
    let flags = serve("--service-account-issuer=a --service-account-issuer=b --controllers -namespace,*");
    assert_eq!(flags.service_account_issuer, ["a", "b"]);
    let flags = serve("--service-cluster-ip-range=10.0.0.0/24 --service-cluster-ip-range=10.1.0.0/24");
    assert_eq!(flags.service_cluster_ip_range.len(), 1);
}

#[test]
fn releases_and_features_that_cannot_be_had_are_refused_with_a_sentence() {
    for (line, want) in [
        ("--emulation-version=1.30", Some("emulation version 1.30 is not between [1.33, 1.36]")),
        ("--emulated-version=kube=1.35 --emulation-forward-compatible", None),
        ("--emulated-version=1.35,1.34", Some("duplicate version flag")),
        ("--emulated-version=1.35 --emulated-version=1.34", Some("duplicate version flag")),
        ("--emulation-forward-compatible", Some("EmulationForwardCompatible cannot be set")),
        ("--feature-gates=NoSuchGate=true", Some("unrecognized feature gate: NoSuchGate")),
        ("--feature-gates=AllBeta=false --feature-gates=WatchList=true", None),
        ("--emulation-version=1.33 --runtime-config=resource.k8s.io/v1=true", Some("after the current version 1.33")),
        ("--emulation-version=1.33 --runtime-config=api/alpha=true", Some("--allow-alpha-under-emulation")),
        ("--emulation-version=1.33 --runtime-config=api/alpha=true --allow-alpha-under-emulation", None),
    ] {
        let Ok(Arguments { command: Command::Serve(flags) }) = parse(line) else { panic!("{line} is not read") };
        let built = flags.catalog_options().and_then(|options| Ok(Catalog::build(&options)?));
        let error = built.err().map(|error| error.to_string());
        assert_eq!(error.is_some(), want.is_some(), "{line}: {error:?}");
        assert!(error.unwrap_or_default().contains(want.unwrap_or_default()), "{line}");
    }
}

#[test]
fn unknown_and_contradictory_flags_are_refused_with_a_sentence() {
    for (line, want) in [
        ("--no-such-flag", "--no-such-flag"),
        ("--tls-cert-file=a", "--tls-private-key-file"),
        ("--secure-port=x", "--secure-port"),
        ("--authorization-mode=Nobody", "Nobody"),
        ("--controllers=nothing-we-know", "nothing-we-know"),
        ("--service-cluster-ip-range=10.0.0.0", "10.0.0.0"),
        ("--history=5", "--history"),
        ("--runtime-config=apps/v9=true", "apps/v9"),
        ("--event-ttl=1", "--event-ttl"),
        ("--tls-sni-cert-key=a.crt", "expected comma separated certificate and key file paths"),
        ("--tls-min-version=VersionTLS11", "use VersionTLS12 or VersionTLS13"),
        ("--tls-min-version=1.2", "unknown tls version"),
        ("--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA", "it is weak"),
        ("--tls-cipher-suites=ROT13", "possible values: TLS_AES_128_GCM_SHA256"),
        ("--strict-transport-security-directives=max-age", "allowed values: max-age=expireTime"),
        ("nonsense", "nonsense"),
    ] {
        let error = parse(line).expect_err(line);
        assert!(error.contains(want), "{line}: {error}");
    }
}
