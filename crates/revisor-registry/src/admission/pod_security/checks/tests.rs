//! What is said about pods at each level.

use revisor_object::{Value, parse_json};

use super::*;

fn shown(level: Level, minor: Option<u32>, spec: &str) -> Vec<String> {
    let pod = match parse_json(format!("{{\"spec\":{spec}}}").as_bytes()).expect("is JSON").value {
        Value::Object(object) => object,
        other => panic!("no object: {other:?}"),
    };
    let found = violations(level, minor, &pod);
    found.into_iter().map(|Violation { reason, detail }| format!("{reason} ({detail})")).collect()
}

#[test]
fn each_level_forbids_what_it_should() {
    use Level::{Baseline, Restricted};
    let careful = r#"{"containers":[{"name":"c","securityContext":{"allowPrivilegeEscalation":false,
        "capabilities":{"drop":["ALL"]},"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}}]}"#;
    let plain = r#"{"containers":[{"name":"a"},{"name":"b"}]}"#;
    for (level, minor, spec, want) in [
        (Baseline, None, plain, vec![]),
        (Restricted, None, careful, vec![]),
        (
            Baseline,
            None,
            r#"{"hostNetwork":true,"containers":[{"name":"c","securityContext":{"privileged":true}}]}"#,
            vec![
                "host namespaces (hostNetwork=true)",
                r#"privileged (container "c" must not set securityContext.privileged=true)"#,
            ],
        ),
        (
            Restricted,
            None,
            plain,
            vec![
                r#"allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false)"#,
                r#"unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"])"#,
                r#"runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true)"#,
                r#"seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#,
            ],
        ),
        (
            Restricted,
            Some(0),
            plain,
            vec![r#"runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true)"#],
        ),
        (
            Baseline,
            None,
            r#"{"volumes":[{"name":"v","hostPath":{"path":"/"}}],"containers":[{"name":"c","ports":[{"hostPort":80}]}]}"#,
            vec![r#"hostPath volumes (volume "v")"#, r#"hostPort (container "c" uses hostPort 80)"#],
        ),
        (
            Baseline,
            Some(28),
            r#"{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"}],"seLinuxOptions":{"type":"x","user":"u"}},"containers":[]}"#,
            vec![
                r#"seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "x"; user may not be set)"#,
                "forbidden sysctls (net.ipv4.tcp_rmem)",
            ],
        ),
    ] {
        assert_eq!(shown(level, minor, spec), want, "{level:?} {minor:?} {spec}");
    }
}
