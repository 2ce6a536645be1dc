//! The rules for services, case by case.

use revisor_object::{FieldErrors, Object, Value, parse_json};

use super::*;
use crate::Feature;
use crate::kinds::tests::terms;

fn services() -> Services {
    Services { features: terms().features }
}

fn service(spec: &str) -> Object {
    let value = parse_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).expect("is JSON").value;
    value.as_object().expect("is an object").clone()
}

/// A Service with the defaults of the table and those of the strategy.
fn defaulted(spec: &str) -> Object {
    let mut object = service(spec);
    let members = object.object_mut("spec");
    for (name, value) in [("type", "ClusterIP"), ("sessionAffinity", "None")] {
        if !members.contains(name) {
            members.insert(name, value);
        }
    }
    for port in members.array_mut("ports").into_iter().flatten().filter_map(Value::as_object_mut) {
        if !port.contains("protocol") {
            port.insert("protocol", "TCP");
        }
    }
    services().default(&mut object);
    object
}

fn fields(errors: FieldErrors) -> Vec<String> {
    errors
        .into_iter()
        .map(|error| format!("{} {}", error.kind.reason().trim_start_matches("FieldValue"), error.field))
        .collect()
}

#[test]
fn defaults_depend_on_the_type() {
    for (spec, path, want) in [
        (r#"{"ports":[{"port":80}]}"#, &["spec", "internalTrafficPolicy"][..], Some("Cluster")),
        (r#"{"ports":[{"port":80}]}"#, &["spec", "externalTrafficPolicy"], None),
        (r#"{"externalIPs":["1.2.3.4"]}"#, &["spec", "externalTrafficPolicy"], Some("Cluster")),
        (r#"{"type":"NodePort"}"#, &["spec", "externalTrafficPolicy"], Some("Cluster")),
        (r#"{"type":"ExternalName"}"#, &["spec", "internalTrafficPolicy"], None),
    ] {
        let object = defaulted(spec);
        assert_eq!(object.at(path).and_then(Value::as_str), want, "{spec} {path:?}");
    }
    let balancer = defaulted(r#"{"type":"LoadBalancer","ports":[{"port":1},{"port":2,"targetPort":"web"}]}"#);
    assert_eq!(balancer.at(&["spec", "allocateLoadBalancerNodePorts"]), Some(&Value::Bool(true)));
    let targets: Vec<String> = balancer
        .object("spec")
        .map(|spec| spec.array("ports").iter().filter_map(Value::as_object).map(|port| port.get("targetPort")))
        .into_iter()
        .flatten()
        .map(|target| target.expect("is set").to_json())
        .collect();
    assert_eq!(targets, ["1", "\"web\""]);
    let sticky = defaulted(r#"{"sessionAffinity":"ClientIP"}"#);
    let seconds = ["spec", "sessionAffinityConfig", "clientIP"];
    assert_eq!(sticky.at(&seconds).expect("is set").to_json(), r#"{"timeoutSeconds":10800}"#);
    let loose = defaulted(r#"{"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}}}"#);
    assert_eq!(loose.at(&["spec", "sessionAffinityConfig"]), None);
}

#[test]
fn what_is_wrong_is_told_by_field() {
    for (spec, want) in [
        (r#"{"ports":[{"port":80}]}"#, vec![]),
        (r#"{}"#, vec!["Required spec.ports"]),
        (r#"{"clusterIP":"None","clusterIPs":["None"]}"#, vec![]),
        (r#"{"type":"NodePort","clusterIP":"None","clusterIPs":["None"]}"#, vec!["Invalid spec.clusterIPs[0]"]),
        (r#"{"type":"ExternalName","externalName":"a.b."}"#, vec![]),
        (
            r#"{"type":"ExternalName","ipFamilyPolicy":"SingleStack","clusterIPs":["10.0.0.1"]}"#,
            vec!["Forbidden spec.clusterIPs", "Forbidden spec.ipFamilyPolicy", "Required spec.externalName"],
        ),
        (
            r#"{"ports":[{"name":"a","port":80},{"name":"a","port":80},{"port":0,"targetPort":70000}]}"#,
            vec![
                "Duplicate spec.ports[1].name",
                "Required spec.ports[2].name",
                "Invalid spec.ports[2].port",
                "Invalid spec.ports[2].targetPort",
                "Duplicate spec.ports[1]",
            ],
        ),
        (
            r#"{"type":"NodePort","ports":[{"name":"a","port":1,"nodePort":3},{"name":"b","port":2,"nodePort":3},
                {"name":"c","port":3,"nodePort":3,"protocol":"UDP"}]}"#,
            vec!["Duplicate spec.ports[1].nodePort"],
        ),
        (
            r#"{"ports":[{"port":80,"nodePort":3}],"loadBalancerSourceRanges":[" 10.0.0.0/8 ","x"],
                "allocateLoadBalancerNodePorts":true,"loadBalancerClass":"a","healthCheckNodePort":1}"#,
            vec![
                "Forbidden spec.ports[0].nodePort",
                "Forbidden spec.LoadBalancerSourceRanges",
                "Invalid spec.LoadBalancerSourceRanges[1]",
                "Forbidden spec.allocateLoadBalancerNodePorts",
                "Forbidden spec.loadBalancerClass",
                "Invalid spec.healthCheckNodePort",
            ],
        ),
        (
            r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","ports":[{"port":80}]}"#,
            vec!["Required spec.healthCheckNodePort"],
        ),
        (
            r#"{"ports":[{"port":80}],"sessionAffinity":"X","internalTrafficPolicy":"X","trafficDistribution":"X"}"#,
            vec![
                "NotSupported spec.sessionAffinity",
                "NotSupported spec.internalTrafficPolicy",
                "NotSupported spec.trafficDistribution",
            ],
        ),
        (
            r#"{"ports":[{"port":80}],"externalIPs":["0.0.0.0","x","10.0.0.1"]}"#,
            vec!["Invalid spec.externalIPs[0]", "Invalid spec.externalIPs[1]"],
        ),
    ] {
        assert_eq!(fields(services().validate(&defaulted(spec))), want, "{spec}");
    }
}

#[test]
fn addresses_agree_with_each_other_and_with_their_families() {
    for (spec, want) in [
        (r#"{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"],"ipFamilies":["IPv4","IPv6"]}"#, vec![]),
        (r#"{"clusterIP":"10.0.0.1"}"#, vec!["Required spec.clusterIPs"]),
        (r#"{"clusterIPs":["10.0.0.1"]}"#, vec!["Invalid spec.clusterIPs"]),
        (r#"{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.2"]}"#, vec!["Invalid spec.clusterIPs"]),
        (r#"{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","10.0.0.2"]}"#, vec!["Invalid spec.clusterIPs"]),
        (r#"{"clusterIP":"None","clusterIPs":["None","10.0.0.2"]}"#, vec!["Invalid spec.clusterIPs"]),
        (
            r#"{"clusterIP":"x","clusterIPs":["x"],"ipFamilies":["IPv5"]}"#,
            vec!["NotSupported spec.ipFamilies[0]", "Invalid spec.clusterIPs[0]"],
        ),
        (
            r#"{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv6"]}"#,
            vec!["Invalid spec.clusterIPs[0]"],
        ),
        (
            r#"{"ipFamilies":["IPv4","IPv4"],"ipFamilyPolicy":"Both"}"#,
            vec!["Duplicate spec.ipFamilies[1]", "NotSupported spec.ipFamilyPolicy"],
        ),
    ] {
        assert_eq!(fields(validate_cluster_ips(&service(spec), None, terms().features)), want, "{spec}");
    }
}

#[test]
fn addresses_stay_and_a_second_one_needs_the_policy_to_go() {
    let single = r#""clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"]"#;
    let dual = r#""clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"],"ipFamilies":["IPv4","IPv6"]"#;
    let other = r#""clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"],"ipFamilies":["IPv4"]"#;
    for (old, new, policy, want) in [
        (single, single, "SingleStack", vec![]),
        (single, dual, "PreferDualStack", vec![]),
        (dual, single, "SingleStack", vec![]),
        (dual, single, "PreferDualStack", vec!["Invalid spec.ipFamilyPolicy"; 2]),
        (single, other, "SingleStack", vec!["Invalid spec.clusterIPs[0]"]),
        (dual, other, "SingleStack", vec!["Invalid spec.clusterIPs[0]"]),
    ] {
        let whole = |ips: &str| defaulted(&format!(r#"{{"ports":[{{"port":80}}],"ipFamilyPolicy":"{policy}",{ips}}}"#));
        let errors = services().validate_update(&whole(new), &whole(old), Part::Whole);
        assert_eq!(fields(errors), want, "{old} to {new}, {policy}");
    }
}

#[test]
fn another_type_sheds_what_it_has_no_use_for() {
    let balancer = r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":30001,
        "loadBalancerClass":"a.b/c","ports":[{"port":80,"nodePort":30000}],"clusterIP":"10.0.0.1",
        "clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"}"#;
    let mut old = defaulted(balancer);
    old.object_mut("status").object_mut("loadBalancer").insert("ingress", vec![Value::Null]);
    let circumstances = Circumstances { now: "", requester: crate::Requester::default() };
    let change = |name: &str| {
        let mut new = old.clone();
        new.object_mut("spec").insert("type", name);
        services().prepare_update(&mut new, &old, Part::Whole, circumstances);
        new
    };
    let cluster = change("ClusterIP");
    for name in ["externalTrafficPolicy", "healthCheckNodePort", "loadBalancerClass", "allocateLoadBalancerNodePorts"] {
        assert_eq!(cluster.at(&["spec", name]), None, "{name}");
    }
    assert_eq!(ServiceSpec::of(&cluster).node_ports().count(), 0);
    assert_eq!(ServiceSpec::of(&cluster).cluster_ip(), "10.0.0.1");
    assert_eq!(cluster.at(&["status", "loadBalancer", "ingress"]), None);

    let named = change("ExternalName");
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
        assert_eq!(named.at(&["spec", name]), None, "{name}");
    }

    let mut contrary = old.clone();
    contrary.object_mut("spec").insert("type", "ClusterIP");
    contrary.object_mut("spec").insert("healthCheckNodePort", 30009);
    services().prepare_update(&mut contrary, &old, Part::Whole, circumstances);
    assert_eq!(ServiceSpec::of(&contrary).health_check_node_port(), 30009, "what the client set stays");
}

#[test]
fn a_status_says_where_a_load_balancer_is() {
    for (of_type, ingress, want) in [
        ("LoadBalancer", r#"{"ip":"1.2.3.4","ipMode":"VIP"}"#, vec![]),
        ("LoadBalancer", r#"{"ip":"1.2.3.4"}"#, vec!["Required status.loadBalancer.ingress[0].ipMode"]),
        ("LoadBalancer", r#"{"ipMode":"VIP"}"#, vec!["Forbidden status.loadBalancer.ingress[0].ipMode"]),
        ("LoadBalancer", r#"{"hostname":"1.2.3.4"}"#, vec!["Invalid status.loadBalancer.ingress[0].hostname"]),
        ("ClusterIP", r#"{"hostname":"a"}"#, vec!["Forbidden status.loadBalancer.ingress"]),
    ] {
        let text =
            format!(r#"{{"spec":{{"type":"{of_type}"}},"status":{{"loadBalancer":{{"ingress":[{ingress}]}}}}}}"#);
        let value = parse_json(text.as_bytes()).expect("is JSON").value;
        let object = value.as_object().expect("is an object");
        let errors = services().validate_update(object, &Object::new(), Part::Subresource("status"));
        assert_eq!(fields(errors), want, "{text}");
    }
}

#[test]
fn unwise_settings_are_warned_of() {
    for (spec, want) in [
        (r#"{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"]}"#, 0),
        (r#"{"externalIPs":["1.2.3.4"]}"#, 1),
        (r#"{"clusterIP":"None","clusterIPs":["None"],"externalIPs":["1.2.3.4"],"loadBalancerIP":"1.2.3.4"}"#, 2),
        (r#"{"type":"ExternalName","externalIPs":["1.2.3.4"]}"#, 1),
        (r#"{"externalName":"a","trafficDistribution":"PreferClose"}"#, 2),
        (r#"{"clusterIP":"FD00::1","clusterIPs":["FD00::1"]}"#, 1),
    ] {
        assert_eq!(services().warnings(&defaulted(spec), None).len(), want, "{spec}");
    }
}

#[test]
fn where_traffic_goes_and_how_addresses_are_written_is_for_the_features_to_say() {
    for (feature, spec, on, off) in [
        (
            Feature::PreferSameTrafficDistribution,
            r#"{"ports":[{"port":80}],"trafficDistribution":"PreferSameNode"}"#,
            vec![],
            vec!["NotSupported spec.trafficDistribution"],
        ),
        (
            Feature::PreferSameTrafficDistribution,
            r#"{"ports":[{"port":80}],"trafficDistribution":"PreferClose"}"#,
            vec![],
            vec![],
        ),
        (
            Feature::StrictIPCIDRValidation,
            r#"{"ports":[{"port":80}],"externalIPs":["010.0.0.1"]}"#,
            vec!["Invalid spec.externalIPs[0]"],
            vec![],
        ),
        (
            Feature::StrictIPCIDRValidation,
            r#"{"ports":[{"port":80}],"clusterIP":"010.0.0.1","clusterIPs":["010.0.0.1"]}"#,
            vec!["Invalid spec.clusterIPs[0]"],
            vec![],
        ),
    ] {
        let features = terms().features;
        for (features, want) in [(features.with(feature), on), (features.without(feature), off)] {
            assert_eq!(fields(Services { features }.validate(&defaulted(spec))), want, "{feature:?}: {spec}");
        }
    }
}
