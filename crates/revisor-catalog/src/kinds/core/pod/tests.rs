//! The rules for pods, case by case.

use super::*;
use crate::kinds::tests::{drop_disabled_fields, object, terms};
use crate::{Feature, Requester};

fn pods() -> Pods {
    Pods { policy: terms().pods() }
}

/// What the table of fields gives every spec and every container, as far as it must be there.
const OF_SPECS: &str = r#"{"dnsPolicy":"ClusterFirst","restartPolicy":"Always","terminationGracePeriodSeconds":30}"#;
const OF_CONTAINERS: &str = r#"{"terminationMessagePolicy":"File"}"#;

fn pod(text: &str) -> Object {
    let mut pod = object(text);
    let spec = pod.object_mut("spec");
    fill(spec, OF_SPECS);
    for container in spec.array_mut("containers").into_iter().flatten().filter_map(Value::as_object_mut) {
        fill(container, OF_CONTAINERS);
    }
    pods().default(&mut pod);
    pod
}

/// Gives an object the members that it lacks.
fn fill(object: &mut Object, defaults: &str) {
    for (name, value) in crate::kinds::tests::object(defaults).iter() {
        if !object.contains(name) {
            object.insert(name, value.clone());
        }
    }
}

fn shown(errors: &[FieldError]) -> Vec<String> {
    errors
        .iter()
        .map(|error| format!("{} {}", error.kind.reason().trim_start_matches("FieldValue"), error.field))
        .collect()
}

/// What an update of `old` by setting one member of its spec is refused for.
fn refused(old: &str, member: &str, value: &str) -> Vec<String> {
    let old = pod(old);
    let mut new = old.clone();
    let value = object(&format!("{{\"value\":{value}}}")).remove("value").expect("was given");
    new.object_mut("spec").set(member, Some(value).filter(|value| !value.is_null()));
    shown(&pods().validate_update(&new, &old, Part::Whole))
}

const CIRCUMSTANCES: Circumstances<'static> =
    Circumstances { now: "1970-01-01T00:00:00Z", requester: Requester { name: "", uid: "", groups: &[], extra: &[] } };

#[test]
fn a_new_pod_waits() {
    for (spec, want) in [
        (r#"{"containers":[{"name":"c"}]}"#, r#"{"phase":"Pending","qosClass":"BestEffort"}"#),
        (
            r#"{"schedulingGates":[{"name":"g"}],"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}"#,
            r#"{"conditions":[{"lastTransitionTime":"1970-01-01T00:00:00Z","message":"Scheduling is blocked due to non-empty scheduling gates","reason":"SchedulingGated","status":"False","type":"PodScheduled"}],"phase":"Pending","qosClass":"Burstable"}"#,
        ),
    ] {
        let mut pod = pod(&format!("{{\"spec\":{spec},\"status\":{{\"phase\":\"Running\"}}}}"));
        pods().prepare_create(&mut pod, CIRCUMSTANCES);
        assert_eq!(pod.get("status").map(Value::to_json).as_deref(), Some(want), "{spec}");
    }
}

#[test]
fn labels_named_by_keys_become_part_of_selectors() {
    let mut pod = pod(r#"{"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[],
            "affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
              {"topologyKey":"z","labelSelector":{},"matchLabelKeys":["a","none"],"mismatchLabelKeys":["b"]}]}},
            "topologySpreadConstraints":[{"topologyKey":"z","labelSelector":{},"matchLabelKeys":["b"]}]}}"#);
    pods().prepare_create(&mut pod, CIRCUMSTANCES);
    let spec = Value::from(spec_of(&pod).clone()).to_json();
    for expression in [
        r#"[{"key":"a","operator":"In","values":["1"]},{"key":"b","operator":"NotIn","values":["2"]}]"#,
        r#"[{"key":"b","operator":"In","values":["2"]}]"#,
    ] {
        assert!(spec.contains(&format!("\"labelSelector\":{{\"matchExpressions\":{expression}}}")), "{spec}");
    }
}

#[test]
fn little_of_a_spec_can_change() {
    const PLAIN: &str = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i:1"}],"activeDeadlineSeconds":50,"tolerations":[{"key":"k","effect":"NoExecute","tolerationSeconds":3}]}}"#;
    const GATED: &str = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i:1"}],"nodeSelector":{"a":"b"},"schedulingGates":[{"name":"g"},{"name":"h"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}}}"#;
    let terms = |terms: &str| {
        format!(
            r#"{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{terms}]}}}}}}"#
        )
    };
    let exists = |key: &str| format!(r#"{{"key":"{key}","operator":"Exists"}}"#);
    let term = |expressions: &str| format!(r#"{{"matchExpressions":[{expressions}]}}"#);
    let narrowed = terms(&term(&format!("{},{}", exists("a"), exists("b"))));
    let changed = terms(&term(&exists("b")));
    let widened = terms(&format!("{},{}", term(&exists("a")), term(&exists("b"))));
    let (spec, none): (&[&str], &[&str]) = (&["Forbidden spec"], &[]);
    for (old, member, value, want) in [
        (PLAIN, "restartPolicy", r#""Never""#, spec),
        (PLAIN, "nodeSelector", r#"{"a":"b"}"#, spec),
        (PLAIN, "activeDeadlineSeconds", "40", none),
        (PLAIN, "activeDeadlineSeconds", "60", &["Invalid spec.activeDeadlineSeconds"]),
        (PLAIN, "activeDeadlineSeconds", "null", &["Invalid spec.activeDeadlineSeconds"]),
        (PLAIN, "tolerations", r#"[{"key":"k","effect":"NoExecute","tolerationSeconds":9},{"key":"l"}]"#, none),
        (PLAIN, "tolerations", r#"[{"key":"l"}]"#, &["Forbidden spec.tolerations"]),
        // Those that are all there are looked at twice.
        (
            PLAIN,
            "tolerations",
            r#"[{"key":"k","effect":"NoExecute","tolerationSeconds":3},{"key":"a b"}]"#,
            &["Invalid spec.tolerations[1].key", "Invalid spec.tolerations[1].key"],
        ),
        (PLAIN, "schedulingGates", r#"[{"name":"g"}]"#, &["Forbidden spec.schedulingGates[0].name"]),
        (
            PLAIN,
            "ephemeralContainers",
            r#"[{"name":"e","image":"i","imagePullPolicy":"Always","terminationMessagePolicy":"File"}]"#,
            spec,
        ),
        (GATED, "schedulingGates", r#"[{"name":"h"}]"#, none),
        (GATED, "schedulingGates", "null", none),
        (GATED, "nodeSelector", r#"{"a":"b","c":"d"}"#, none),
        (GATED, "nodeSelector", r#"{"c":"d"}"#, &["Invalid spec.nodeSelector"]),
        (GATED, "affinity", &narrowed, none),
        (
            GATED,
            "affinity",
            &changed,
            &["Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"],
        ),
        (
            GATED,
            "affinity",
            &widened,
            &["Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"],
        ),
    ] {
        assert_eq!(refused(old, member, value), want, "{member}: {value}");
    }
}

#[test]
fn statuses_make_sense() {
    let old = pod(
        r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n","restartPolicy":"OnFailure","containers":[{"name":"c","image":"i"}]},
            "status":{"qosClass":"BestEffort","observedGeneration":3,
              "conditions":[{"type":"Ready","status":"True","observedGeneration":2}],
              "containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":0}}}]}}"#,
    );
    for (status, want) in [
        (r#"{"phase":"Odd"}"#, vec![]),
        (r#"{"qosClass":"Guaranteed"}"#, vec!["Invalid status.qosClass"]),
        (r#"{"podIP":"abc"}"#, vec!["Invalid status.podIPs[0]"]),
        (r#"{"podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}"#, vec![]),
        (r#"{"podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]}"#, vec!["Invalid status.podIPs"]),
        (
            r#"{"podIPs":[{"ip":"10.0.0.1"},{"ip":"x"}]}"#,
            vec!["Invalid status.podIPs[1]", "InternalError status.podIPs", "Invalid status.podIPs"],
        ),
        (r#"{"hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.2"}]}"#, vec!["Invalid status.hostIPs[0].ip"]),
        (r#"{"nominatedNodeName":"m"}"#, vec!["Forbidden status.nominatedNodeName"]),
        (r#"{"conditions":[{"type":"no good"}]}"#, vec!["Invalid status.conditions[0].Type"]),
        (
            r#"{"containerStatuses":[{"name":"c","state":{"running":{}}}]}"#,
            vec!["Forbidden status.containerStatuses[0].state"],
        ),
        (r#"{"resourceClaimStatuses":[{"name":"x"}]}"#, vec!["Invalid status.resourceClaimStatuses[0].name"]),
    ] {
        let mut new = pod(&format!("{{\"metadata\":{{\"name\":\"p\"}},\"status\":{status}}}"));
        pods().prepare_update(&mut new, &old, Part::Subresource("status"), CIRCUMSTANCES);
        assert_eq!(shown(&pods().validate_update(&new, &old, Part::Subresource("status"))), want, "{status}");
        assert_eq!(new.at(&["status", "observedGeneration"]), Some(&Value::Int(3)), "is kept");
    }
    let mut new = pod(r#"{"status":{"conditions":[{"type":"Ready","status":"False"}]}}"#);
    pods().prepare_update(&mut new, &old, Part::Subresource("status"), CIRCUMSTANCES);
    let conditions = new.at(&["status", "conditions"]).map(Value::to_json).expect("is there");
    assert!(conditions.contains("\"observedGeneration\":2"), "{conditions}");
}

#[test]
fn a_status_brings_neither_owners_nor_an_end() {
    let old = pod(r#"{"metadata":{"name":"p","ownerReferences":[{"uid":"1"}]}}"#);
    let mut new = pod(r#"{"metadata":{"name":"p","deletionTimestamp":"2030-01-01T00:00:00Z","labels":{"a":"b"}}}"#);
    pods().prepare_update(&mut new, &old, Part::STATUS, CIRCUMSTANCES);
    assert_eq!(new.at(&["metadata", "ownerReferences"]), old.at(&["metadata", "ownerReferences"]));
    assert_eq!(new.at(&["metadata", "deletionTimestamp"]), None);
    assert!(new.at(&["metadata", "labels"]).is_some(), "labels may come with it");
}

#[test]
fn a_resize_is_about_cpu_and_memory() {
    let container = |requests: &str| {
        format!(
            r#"{{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"requests":{requests}}}}}]}}}}"#
        )
    };
    let mut old = pod(&container(r#"{"cpu":"1","memory":"1Gi"}"#));
    pods().prepare_create(&mut old, CIRCUMSTANCES);
    for (requests, want) in [
        (r#"{"cpu":"2","memory":"1Gi"}"#, vec![]),
        (r#"{"cpu":"2"}"#, vec!["Forbidden spec.containers[0].resources.requests"]),
        (r#"{"cpu":"1","memory":"1Gi","ephemeral-storage":"1Gi"}"#, vec!["Forbidden spec"]),
        ("{}", vec!["Invalid spec", "Forbidden spec.containers[0].resources.requests"]),
    ] {
        let mut new = pod(&container(requests));
        new.object_mut("spec").insert("restartPolicy", "Never");
        pods().prepare_update(&mut new, &old, Part::Subresource("resize"), CIRCUMSTANCES);
        assert_eq!(shown(&pods().validate_update(&new, &old, Part::Subresource("resize"))), want, "{requests}");
        assert_eq!(new.at(&["spec", "restartPolicy"]), old.at(&["spec", "restartPolicy"]), "all else stays");
    }
}

#[test]
fn features_decide_what_can_be_resized() {
    let with = |resources: &str, init: &str| {
        let container = r#"{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}"#;
        pod(&format!(
            r#"{{"metadata":{{"name":"p"}},"spec":{{"resources":{resources},"containers":[{container}],
                "initContainers":[{{"name":"i","image":"i","terminationMessagePolicy":"File",
                "resources":{{"requests":{{"cpu":"{init}"}}}}}}]}}}}"#
        ))
    };
    for (feature, old, new, want) in [
        (Feature::InPlacePodVerticalScalingInitContainers, with("{}", "1"), with("{}", "2"), vec!["Forbidden spec"]),
        (
            Feature::InPlacePodLevelResourcesVerticalScaling,
            with(r#"{"requests":{"cpu":"2"}}"#, "1"),
            with(r#"{"requests":{"cpu":"3"}}"#, "1"),
            vec!["Forbidden []"],
        ),
    ] {
        for (is_on, want) in [(true, vec![]), (false, want)] {
            let features = if is_on { terms().features.with(feature) } else { terms().features.without(feature) };
            let pods = Pods { policy: PodPolicy { features, ..terms().pods() } };
            let (mut old, mut new) = (old.clone(), new.clone());
            pods.prepare_create(&mut old, CIRCUMSTANCES);
            pods.prepare_update(&mut new, &old, Part::Subresource("resize"), CIRCUMSTANCES);
            assert_eq!(shown(&pods.validate_update(&new, &old, Part::Subresource("resize"))), want, "{feature:?}");
        }
    }
}

#[test]
fn features_decide_what_a_status_may_say() {
    let old = pod(r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n","restartPolicy":"Never",
            "containers":[{"name":"c","image":"i"}],"initContainers":[{"name":"s","restartPolicy":"Always"}]},
            "status":{"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":1}}}],
            "initContainerStatuses":[{"name":"s","state":{"terminated":{"exitCode":1}}}]}}"#);
    let digest = r#"{"containerStatuses":[{"name":"c","state":{"terminated":{}},
        "volumeMounts":[{"volumeStatus":{"image":{"imageRef":""}}}]}]}"#;
    let claim = r#"{"nodeAllocatableResourceClaimStatuses":[{"resourceClaimName":"x","containers":["c"],
        "resources":{"example.com/a":"1"}}]}"#;
    let node_claim = "status.nodeAllocatableResourceClaimStatuses[0]";
    for (feature, status, on, off) in [
        (
            Feature::ClearingNominatedNodeNameAfterBinding,
            r#"{"nominatedNodeName":"m"}"#,
            vec!["Forbidden status.nominatedNodeName".to_owned()],
            vec![],
        ),
        (
            Feature::StrictIPCIDRValidation,
            r#"{"podIP":"010.0.0.1"}"#,
            vec!["Invalid status.podIPs[0]".to_owned()],
            vec![],
        ),
        (
            Feature::ImageVolumeWithDigest,
            digest,
            vec![
                "Required status.containerStatuses[0].volumeMounts[0].volumeStatus.imageVolumeStatus.imageRef"
                    .to_owned(),
            ],
            vec![],
        ),
        (
            Feature::DRANodeAllocatableResources,
            claim,
            vec![
                format!("Invalid {node_claim}.resourceClaimName"),
                format!("Invalid {node_claim}.resources[example.com/a]"),
            ],
            vec![],
        ),
        (
            Feature::ContainerRestartRules,
            r#"{"initContainerStatuses":[{"name":"s","state":{"running":{}}}]}"#,
            vec![],
            vec![],
        ),
        (
            Feature::ContainerRestartRules,
            r#"{"containerStatuses":[{"name":"c","state":{"running":{}}}]}"#,
            vec!["Forbidden status.containerStatuses[0].state".to_owned()],
            vec!["Forbidden status.containerStatuses[0].state".to_owned()],
        ),
    ] {
        for (is_on, want) in [(true, on), (false, off)] {
            let features = if is_on { terms().features.with(feature) } else { terms().features.without(feature) };
            let pods = Pods { policy: PodPolicy { features, ..terms().pods() } };
            let mut new = pod(&format!(r#"{{"metadata":{{"name":"p"}},"status":{status}}}"#));
            drop_disabled_fields("core.v1.Pod", &mut new, Some(&old), features);
            pods.prepare_update(&mut new, &old, Part::STATUS, CIRCUMSTANCES);
            assert_eq!(shown(&pods.validate_update(&new, &old, Part::STATUS)), want, "{feature:?} on: {is_on}");
        }
    }
}

#[test]
fn annotations_that_mean_something_must_make_sense() {
    let spec = r#""spec":{"containers":[{"name":"c","image":"i","securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}]}"#;
    for (annotations, want) in [
        (r#"{"controller.kubernetes.io/pod-deletion-cost":"-5"}"#, vec![]),
        (
            r#"{"controller.kubernetes.io/pod-deletion-cost":"05"}"#,
            vec!["Invalid metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"],
        ),
        (r#"{"kubernetes.io/config.mirror":"x"}"#, vec!["Invalid metadata.annotations[kubernetes.io/config.mirror]"]),
        (
            r#"{"container.apparmor.security.beta.kubernetes.io/d":"odd"}"#,
            vec![
                "Invalid metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]",
                "Invalid metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]",
            ],
        ),
        (
            r#"{"container.seccomp.security.alpha.kubernetes.io/c":"unconfined"}"#,
            vec!["Forbidden spec.containers[0].securityContext.seccompProfile.type"],
        ),
        (
            r#"{"seccomp.security.alpha.kubernetes.io/pod":"localhost/../x"}"#,
            vec!["Invalid metadata.annotations.seccomp.security.alpha.kubernetes.io/pod"],
        ),
    ] {
        let pod = pod(&format!("{{\"metadata\":{{\"name\":\"p\",\"annotations\":{annotations}}},{spec}}}"));
        assert_eq!(shown(&pods().validate(&pod)), want, "{annotations}");
    }
}

#[test]
fn annotations_are_looked_at_whichever_way_a_pod_changes() {
    let old = pod(r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#);
    let mut new = old.clone();
    let annotation = "controller.kubernetes.io/pod-deletion-cost";
    new.object_mut("metadata").object_mut("annotations").insert(annotation, "odd");
    let wrong = format!("Invalid metadata.annotations[{annotation}]");
    for (part, times) in [(Part::Whole, 2), (Part::STATUS, 1), (Part::Subresource("ephemeralcontainers"), 2)] {
        let want = vec![wrong.clone(); times];
        assert_eq!(shown(&pods().validate_update(&new, &old, part)), want, "{part:?}");
        assert!(pods().validate_update(&new, &new, part).is_empty(), "{part:?}: what was wrong may stay");
    }
}

#[test]
fn annotations_that_become_fields_are_warned_of_while_they_are_seen() {
    let message = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;
    let key = "container.apparmor.security.beta.kubernetes.io/c";
    let profile = r#""securityContext":{"appArmorProfile":{"type":"Unconfined"}}"#;
    for (annotation, of_spec, of_container, is_warned) in [
        ("unconfined", "", "", true),
        ("localhost/x", "", "", true),
        ("nonsense", "", "", true),
        ("unconfined", profile, "", false),
        ("runtime/default", profile, "", true),
        ("unconfined", "", profile, false),
        ("unconfined", r#""os":{"name":"windows"}"#, "", false),
    ] {
        let comma = |text: &str| if text.is_empty() { String::new() } else { format!(",{text}") };
        let mut pod = object(&format!(
            r#"{{"metadata":{{"name":"p","annotations":{{"{key}":"{annotation}"}}}},
                "spec":{{"containers":[{{"name":"c","image":"i"{}}}]{}}}}}"#,
            comma(of_container),
            comma(of_spec),
        ));
        let want = is_warned.then(|| format!("metadata.annotations[{key}]: {message}"));
        assert_eq!(pods().warnings_as_sent(&pod), Vec::from_iter(want), "{annotation} {of_spec} {of_container}");
        pods().prepare_create(&mut pod, CIRCUMSTANCES);
        if annotation != "nonsense" {
            assert_eq!(pods().warnings_as_sent(&pod), [""; 0], "{annotation} {of_spec} {of_container}");
        }
    }
}

#[test]
fn addresses_that_are_written_oddly_are_warned_of() {
    let old = pod(r#"{"metadata":{"name":"p"}}"#);
    let new = pod(r#"{"metadata":{"name":"p"},"status":{"podIPs":[{"ip":"FD00::1"}],"hostIPs":[{"ip":"10.0.0.1"}]}}"#);
    assert_eq!(pods().subresource_warnings(&new, &old).len(), 1);
    assert_eq!(pods().subresource_warnings(&new, &new).len(), 0);
}

#[test]
fn adding_ephemeral_containers_changes_nothing_else() {
    let (part, now) = (Part::Subresource("ephemeralcontainers"), CIRCUMSTANCES);
    let old = object(r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n"},"status":{"phase":"Running"}}"#);
    let mut new = object(
        r#"{"metadata":{"name":"p","labels":{"a":"b"},"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":1},"spec":{"ephemeralContainers":[{"name":"e"}]},"status":{"phase":"Failed"}}"#,
    );
    pods().prepare_update(&mut new, &old, part, now);
    let want = r#"{"metadata":{"name":"p"},"spec":{"ephemeralContainers":[{"name":"e"}],"nodeName":"n"},"status":{"phase":"Running"}}"#;
    assert_eq!(new, object(want));
    assert!(pods().untouched(part).is_empty(), "who sends more than that manages it all the same");
}
