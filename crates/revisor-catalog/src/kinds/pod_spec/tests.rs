//! What is wrong with specs, by reason and field, and what is let pass on an update.

use revisor_object::FieldPath;

use super::*;
use crate::Feature;
use crate::kinds::tests::{object, terms};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
fn strict() -> PodPolicy {
    PodPolicy { allow_privileged: false, ..terms().pods() }
}

/// The text of a container with these members beside, or in place of, those that it needs.
fn container(extra: &str) -> String {
    format!(
        r#"{{"name":"c","image":"i","imagePullPolicy":"Always","terminationMessagePolicy":"File"{}{extra}}}"#,
        if extra.is_empty() { "" } else { "," }
    )
}

/// A spec with these members beside, or in place of, those that it needs.
fn spec(extra: &str) -> Object {
    object(&format!(
        r#"{{"terminationGracePeriodSeconds":30,"restartPolicy":"Always","dnsPolicy":"ClusterFirst",
            "containers":[{}]{}{extra}}}"#,
        container(""),
        if extra.is_empty() { "" } else { "," }
    ))
}

/// A spec whose only container has these members.
fn with_container(extra: &str) -> Object {
    spec(&format!(r#""containers":[{}]"#, container(extra)))
}

/// A spec whose only volume is this, given without its name.
fn with_volume(source: &str) -> Object {
    spec(&format!(r#""volumes":[{{"name":"v",{source}}}]"#))
}

fn shown(errors: &[FieldError]) -> Vec<String> {
    errors
        .iter()
        .map(|error| format!("{} {}", error.kind.reason().trim_start_matches("FieldValue"), error.field))
        .collect()
}

#[track_caller]
fn check(spec: &Object, want: &[&str]) {
    let metadata = object(r#"{"name":"p"}"#);
    let found = shown(&validate_spec(SPEC, spec, &metadata, None, strict()));
    assert_eq!(found, want, "{}", Value::from(spec.clone()).to_json());
}

#[test]
fn a_spec_with_what_it_needs_is_fine() {
    check(&spec(""), &[]);
}

#[test]
fn containers_are_held_to_their_rules() {
    const C: &str = "spec.containers[0]";
    for (extra, want) in [
        (r#""name":"A""#, vec!["Invalid C.name"]),
        (r#""name":"","image":"""#, vec!["Required C.name", "Required C.image"]),
        (r#""terminationMessagePolicy":"x""#, vec!["NotSupported C.terminationMessagePolicy"]),
        (r#""imagePullPolicy":"x""#, vec!["NotSupported C.imagePullPolicy"]),
        (
            r#""ports":[{"containerPort":0,"protocol":"TCP"},{"containerPort":1,"hostPort":70000,"protocol":"x","name":"1"}]"#,
            vec![
                "Required C.ports[0].containerPort",
                "Invalid C.ports[1].name",
                "Invalid C.ports[1].hostPort",
                "NotSupported C.ports[1].protocol",
            ],
        ),
        (
            r#""ports":[{"containerPort":1,"hostPort":5,"protocol":"TCP"},{"containerPort":2,"hostPort":5,"protocol":"TCP"}]"#,
            vec!["Duplicate C.ports[1].hostPort"],
        ),
        (
            r#""env":[{"name":"a=b"},{"name":"x","value":"y","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},
                {"name":"x","valueFrom":{}},{"name":"x","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.labels"}}}]"#,
            vec![
                "Invalid C.env[0].name",
                "Invalid C.env[1].valueFrom",
                "Invalid C.env[2].valueFrom",
                "NotSupported C.env[3].valueFrom.fieldRef.fieldPath",
            ],
        ),
        (
            r#""envFrom":[{},{"secretRef":{"name":"A"}}]"#,
            vec!["Invalid C.envFrom", "Invalid C.envFrom[1].secretRef.name"],
        ),
        (
            r#""env":[{"name":"x","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"p","key":"k"}}}]"#,
            vec!["NotFound C.env[0].valueFrom.fileKeyRef.volumeName"],
        ),
        (
            r#""volumeMounts":[{"name":"v","mountPath":"/a","subPath":"../x"}]"#,
            vec!["NotFound C.volumeMounts[0].name", "Invalid C.volumeMounts.subPath"],
        ),
        (
            r#""livenessProbe":{"successThreshold":2,"periodSeconds":-1}"#,
            vec![
                "Required C.livenessProbe",
                "Invalid C.livenessProbe.periodSeconds",
                "Invalid C.livenessProbe.successThreshold",
            ],
        ),
        (
            r#""readinessProbe":{"httpGet":{"path":"/","port":0,"scheme":"HTTP"},"tcpSocket":{"port":1},"terminationGracePeriodSeconds":1}"#,
            vec![
                "Invalid C.readinessProbe.httpGet.port",
                "Forbidden C.readinessProbe.tcpSocket",
                "Invalid C.readinessProbe.terminationGracePeriodSeconds",
            ],
        ),
        (r#""lifecycle":{"preStop":{"sleep":{"seconds":31}}}"#, vec!["Invalid C.lifecycle.preStop.sleep"]),
        (
            r#""restartPolicyRules":[{"action":"Restart"}]"#,
            vec!["Required C.restartPolicy", "Required C.restartPolicyRules[0].exitCodes"],
        ),
        (
            r#""resources":{"limits":{"cpu":"1","foo":"1"},"requests":{"cpu":"2","example.com/x":"1500m"}}"#,
            vec![
                "Invalid C.resources.limits[foo]",
                "Invalid C.resources.limits[foo]",
                "Invalid C.resources.requests",
                "Invalid C.resources.requests[example.com/x]",
                "Required C.resources.limits",
            ],
        ),
        (
            r#""resources":{"limits":{"hugepages-2Mi":"3Mi"}}"#,
            vec!["Invalid C.resources.limits[hugepages-2Mi]", "Forbidden C.resources"],
        ),
        (r#""resources":{"claims":[{"name":"x"}]}"#, vec!["NotFound C.resources.claims[0]"]),
        (
            r#""resizePolicy":[{"resourceName":"x","restartPolicy":"y"}]"#,
            vec!["NotSupported C.resizePolicy", "NotSupported C.resizePolicy"],
        ),
        (
            r#""securityContext":{"privileged":true,"allowPrivilegeEscalation":false,"runAsUser":-1,"procMount":"Unmasked"}"#,
            vec![
                "Forbidden C.securityContext.privileged",
                "Invalid C.securityContext.runAsUser",
                "Invalid C.securityContext.procMount",
                "Invalid C.securityContext",
            ],
        ),
        (
            r#""securityContext":{"seccompProfile":{"type":"Localhost"},"appArmorProfile":{"type":"x"}}"#,
            vec![
                "Required C.securityContext.seccompProfile.localhostProfile",
                "NotSupported C.securityContext.appArmorProfile.type",
            ],
        ),
    ] {
        let want: Vec<String> = want.iter().map(|cause| cause.replace("C.", &format!("{C}."))).collect();
        check(&with_container(extra), &want.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn containers_of_all_sorts_share_their_names_and_not_their_rules() {
    let init = |extra: &str| spec(&format!(r#""initContainers":[{}]"#, container(extra)));
    check(&spec(r#""containers":[]"#), &["Required spec.containers"]);
    check(&init(""), &["Duplicate spec.initContainers[0].name"]);
    check(&init(r#""name":"i","startupProbe":{}"#), &["Forbidden spec.initContainers[0].startupProbe"]);
    check(
        &init(r#""name":"i","restartPolicy":"Always","startupProbe":{"successThreshold":1}"#),
        &["Required spec.initContainers[0].startupProbe"],
    );
    check(
        &init(r#""name":"i","resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]"#),
        &["Invalid spec.initContainers[0].resizePolicy[0].restartPolicy"],
    );
    let ephemeral = container(r#""image":" i","targetContainerName":"x","resources":{"limits":{"cpu":"1"}}"#);
    check(
        &spec(&format!(r#""ephemeralContainers":[{ephemeral}]"#)),
        &[
            "Invalid spec.ephemeralContainers[0].image",
            "Duplicate spec.ephemeralContainers[0].name",
            "NotFound spec.ephemeralContainers[0].targetContainerName",
            "Forbidden spec.ephemeralContainers[0].resources",
        ],
    );
}

#[test]
fn volumes_have_one_sound_source() {
    const V: &str = "spec.volumes[0]";
    for (source, want) in [
        (r#""emptyDir":{}"#, vec![]),
        (r#""emptyDir":{"sizeLimit":"-1"}"#, vec!["Forbidden V.emptyDir.sizeLimit"]),
        (r#""emptyDir":{},"downwardAPI":{},"cephfs":{}"#, vec!["Forbidden V.cephFS", "Forbidden V.downwarAPI"]),
        (r#""hostPath":{"path":"/../x","type":"y"}"#, vec!["Invalid V.hostPath.path", "NotSupported V.hostPath.type"]),
        (
            r#""configMap":{"defaultMode":512,"items":[{"key":"k","path":"..x"}]}"#,
            vec!["Required V.configMap.name", "Invalid V.configMap.defaultMode", "Invalid V.configMap.items[0].path"],
        ),
        (r#""secret":{}"#, vec!["Required V.secret.secretName"]),
        (
            r#""downwardAPI":{"items":[{"path":"p"},{"path":"/p","resourceFieldRef":{"resource":"limits.cpu"}}]}"#,
            vec![
                "Required V.downwardAPI",
                "Invalid V.downwardAPI.path",
                "Required V.downwardAPI.resourceFieldRef.containerName",
            ],
        ),
        (
            r#""projected":{"sources":[{"secret":{"name":"a","items":[{"key":"k","path":"p"}]}},
                {"configMap":{"items":[{"key":"k","path":"p"}]}},{"serviceAccountToken":{"path":"../t","expirationSeconds":5}}]}"#,
            vec![
                "Required V.projected.sources[1].configMap.name",
                "Invalid V.projected",
                "Invalid V.projected.sources[2].serviceAccountToken.expirationSeconds",
                "Invalid V.projected.path",
            ],
        ),
        (
            r#""projected":{"sources":[{"clusterTrustBundle":{"path":"p"}},{"podCertificate":{"signerName":"a.b/c","keyType":"x"}}]}"#,
            vec![
                "Required V.projected.sources[0].clusterTrustBundle",
                "NotSupported V.projected.sources[1].podCertificate.keyType",
                "Required V.projected.sources[1].podCertificate",
            ],
        ),
        (
            r#""projected":{"sources":[{"clusterTrustBundle":{"name":"a.b:c:d","path":"p"}},{"clusterTrustBundle":{"name":":d","path":"q"}},
                {"clusterTrustBundle":{"name":"a.b/c:d","path":"r"}}]}"#,
            vec![
                "Invalid V.projected.sources[1].clusterTrustBundle.name",
                "Invalid V.projected.sources[2].clusterTrustBundle.name",
            ],
        ),
        (r#""persistentVolumeClaim":{}"#, vec!["Required V.persistentVolumeClaim.claimName"]),
        (
            r#""csi":{"driver":"a_b","nodePublishSecretRef":{}}"#,
            vec!["Invalid V.csi.driver", "Required V.csi.nodePublishSecretRef.name"],
        ),
        (r#""ephemeral":{}"#, vec!["Required V.ephemeral.volumeClaimTemplate"]),
        (r#""image":{"pullPolicy":"Always"}"#, vec!["Required V.image.reference"]),
        (r#""nfs":{"server":"s","path":"x"}"#, vec!["Invalid V.nfs.path"]),
        (
            r#""gcePersistentDisk":{"partition":256}"#,
            vec!["Required V.persistentDisk.pdName", "Invalid V.persistentDisk.partition"],
        ),
        (r#""iscsi":{"targetPortal":"t","iqn":"iqn.2001-04.com.example:x"}"#, vec![]),
        (r#""iscsi":{"targetPortal":"t","iqn":"iqn.x","lun":256}"#, vec!["Invalid V.iscsi.iqn", "Invalid V.iscsi.lun"]),
        (r#""fc":{"targetWWNs":["a"]}"#, vec!["Required V.fc.lun"]),
        (r#""flexVolume":{"driver":"d","options":{"k8s.io/x":"y"}}"#, vec!["Invalid V.flexVolume.options[k8s.io/x]"]),
        (r#""azureDisk":{"diskName":"d","diskURI":"x","kind":"Managed"}"#, vec!["NotSupported V.azureDisk.diskURI"]),
        (r#""quobyte":{"registry":"a","volume":"v"}"#, vec!["Invalid V.quobyte.registry"]),
        (r#""storageos":{"volumeName":"A"}"#, vec!["Invalid V.storageos.volumeName"]),
        (
            r#""flocker":{"datasetName":"a/b","datasetUUID":"c"}"#,
            vec!["Invalid V.flocker", "Invalid V.flocker.datasetName"],
        ),
    ] {
        let want: Vec<String> = want.iter().map(|cause| cause.replace("V.", &format!("{V}."))).collect();
        check(&with_volume(source), &want.iter().map(String::as_str).collect::<Vec<_>>());
    }
    check(
        &spec(r#""volumes":[{"name":"a","emptyDir":{}},{"name":"a","emptyDir":{}},{"emptyDir":{}},{"name":"b"}]"#),
        &["Duplicate spec.volumes[1].name", "Required spec.volumes[2].name", "Required spec.volumes[3]"],
    );
}

#[test]
fn the_rest_of_a_spec_is_held_to_its_rules() {
    for (extra, want) in [
        (r#""restartPolicy":"x","dnsPolicy":"None""#, vec!["NotSupported restartPolicy", "Required dnsConfig"]),
        (
            r#""nodeName":"A","hostname":"a.b","activeDeadlineSeconds":0"#,
            vec!["Invalid nodeName", "Invalid activeDeadlineSeconds", "Invalid hostname"],
        ),
        (r#""hostUsers":false,"hostNetwork":true,"hostPID":true"#, vec!["Forbidden hostNetwork", "Forbidden HostPID"]),
        (r#""hostnameOverride":"a","hostNetwork":true"#, vec!["Forbidden hostnameOverride"]),
        (
            r#""tolerations":[{},{"key":"a","operator":"Lt","value":"1"},{"key":"a","tolerationSeconds":1}]"#,
            vec![
                "Invalid tolerations[0].operator",
                "NotSupported tolerations[1].operator",
                "Invalid tolerations[2].effect",
            ],
        ),
        (
            r#""dnsConfig":{"nameservers":["x","010.0.0.1"],"searches":[".","A"],"options":[{}]}"#,
            vec![
                "Invalid dnsConfig.nameservers[0]",
                "Invalid dnsConfig.nameservers[1]",
                "Invalid dnsConfig.searches[1]",
                "Required dnsConfig.options[0]",
            ],
        ),
        (
            r#""hostAliases":[{"ip":"x","hostnames":["A"]}]"#,
            vec!["Invalid hostAliases[0].ip", "Invalid hostAliases[0].hostnames[0]"],
        ),
        (
            r#""schedulingGates":[{"name":"a"},{"name":"a"}],"readinessGates":[{"conditionType":"a b"}]"#,
            vec!["Invalid readinessGates[0].conditionType", "Duplicate schedulingGates[1]"],
        ),
        (
            r#""topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"","whenUnsatisfiable":"x","minDomains":1,"matchLabelKeys":["a"]}]"#,
            vec![
                "Invalid topologySpreadConstraints[0].maxSkew",
                "Required topologySpreadConstraints[0].topologyKey",
                "NotSupported topologySpreadConstraints[0].whenUnsatisfiable",
                "Invalid topologySpreadConstraints[0].minDomains",
                "Forbidden topologySpreadConstraints[0].matchLabelKeys",
            ],
        ),
        (
            r#""resourceClaims":[{"name":"a"},{"name":"a","resourceClaimName":"A"}]"#,
            vec![
                "Invalid resourceClaims[0]",
                "Duplicate resourceClaims[1].name",
                "Invalid resourceClaims[1].resourceClaimName",
            ],
        ),
        (r#""resources":{"limits":{"cpu":"1","storage":"1"}}"#, vec!["NotSupported resources.limits[storage]"]),
        (
            r#""os":{"name":"windows"},"hostPID":true,"securityContext":{"fsGroup":1}"#,
            vec!["Forbidden hostPID", "Forbidden securityContext.fsGroup"],
        ),
        (r#""os":{"name":"x"}"#, vec!["NotSupported os"]),
        (
            r#""securityContext":{"sysctls":[{"name":"net.a"},{"name":"net.a"}],"seLinuxChangePolicy":"MountOption"}"#,
            vec!["Duplicate securityContext.sysctls[1].name", "NotSupported securityContext.seLinuxChangePolicy"],
        ),
        (
            r#""hostNetwork":true,"securityContext":{"sysctls":[{"name":"net/a"}],"windowsOptions":{"runAsUserName":"a\\b\\c"}}"#,
            vec!["Invalid securityContext.sysctls[0].name", "Invalid securityContext.windowsOptions.runAsUserName"],
        ),
        (
            r#""affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In","values":["x y"]}],"matchFields":[{"key":"b","operator":"In","values":["c"]}]}]}}}"#,
            vec![
                "Invalid affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0]",
                "Invalid affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key",
            ],
        ),
        (
            r#""affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":0,"podAffinityTerm":{"topologyKey":"a"}}]}}"#,
            vec!["Invalid affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"],
        ),
    ] {
        let want: Vec<String> = want
            .iter()
            .map(|cause| {
                cause.split_once(' ').map(|(reason, field)| format!("{reason} spec.{field}")).unwrap_or_default()
            })
            .collect();
        check(&spec(extra), &want.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn whether_anything_may_be_privileged_is_the_policys_choice() {
    let metadata = object(r#"{"name":"p"}"#);
    for (extra, want) in [
        (
            format!(r#""containers":[{}]"#, container(r#""securityContext":{"privileged":true}"#)),
            "Forbidden spec.containers[0].securityContext.privileged",
        ),
        (
            r#""hostNetwork":true,"securityContext":{"windowsOptions":{"hostProcess":true}}"#.to_owned(),
            "Forbidden spec",
        ),
    ] {
        let spec = spec(&extra);
        let lenient = terms().pods();
        assert_eq!(shown(&validate_spec(SPEC, &spec, &metadata, None, strict())), [want], "{extra}");
        assert_eq!(validate_spec(SPEC, &spec, &metadata, None, lenient), [], "{extra}");
    }
}

#[test]
fn an_update_may_keep_what_the_old_object_had() {
    let metadata = object(r#"{"name":"p"}"#);
    for extra in [
        r#""tolerations":[{"key":"a","operator":"Gt","value":"1"}]"#,
        r#""hostNetwork":true,"securityContext":{"sysctls":[{"name":"net.a"}]}"#,
        r#""securityContext":{"seLinuxChangePolicy":"MountOption"}"#,
        r#""hostUsers":false,"hostNetwork":true"#,
        r#""overhead":{"cpu":"1","hugepages-2Mi":"1Mi"}"#,
        r#""volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"/x","expirationSeconds":600}}]}}]"#,
        r#""topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchExpressions":[{"key":"a","operator":"x"}]}}]"#,
        r#""affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In","values":["x y"]}]}]}}}"#,
        r#""affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","labelSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["x y"]}]}}]}}"#,
    ] {
        let spec = spec(extra);
        assert_ne!(validate_spec(SPEC, &spec, &metadata, None, strict()), [], "{extra}");
        assert_eq!(validate_spec(SPEC, &spec, &metadata, Some(&spec), strict()), [], "{extra}");
    }
    let template = |cost: &str| {
        let annotations = format!(r#"{{"annotations":{{"controller.kubernetes.io/pod-deletion-cost":"{cost}"}}}}"#);
        let members = [("metadata", Value::from(object(&annotations))), ("spec", Value::from(spec("")))];
        members.into_iter().collect::<Object>()
    };
    for (cost, old, want) in [("5", None, 0), ("05", None, 1), ("x", Some("5"), 1), ("x", Some("y"), 0)] {
        let found = validate_template(SPEC.child("template"), &template(cost), old.map(template).as_ref(), strict());
        assert_eq!(found.len(), want, "{cost} after {old:?}");
    }
}

#[test]
fn templates_are_looked_at_under_the_names_of_the_original() {
    let template = object(&format!(
        r#"{{"metadata":{{"labels":{{"a b":"c"}},"annotations":{{"seccomp.security.alpha.kubernetes.io/pod":"x",
            "container.apparmor.security.beta.kubernetes.io/z":"localhost/a"}}}},"spec":{}}}"#,
        Value::from(spec(&format!(r#""ephemeralContainers":[{}]"#, container(r#""name":"e""#)))).to_json()
    ));
    assert_eq!(
        shown(&validate_template(FieldPath::root("template"), &template, None, strict())),
        [
            "Invalid template.labels",
            "Invalid template.annotations[container.apparmor.security.beta.kubernetes.io/z]",
            "Invalid template.annotations.seccomp.security.alpha.kubernetes.io/pod",
            "Forbidden template.spec.ephemeralContainers",
        ]
    );
}

#[test]
fn profiles_in_annotations_and_fields_must_agree() {
    for (annotation, profile, want) in [
        ("unconfined", r#"{"type":"Unconfined"}"#, vec![]),
        ("docker/default", r#"{"type":"RuntimeDefault"}"#, vec![]),
        ("unconfined", r#"{"type":"RuntimeDefault"}"#, vec!["Forbidden spec.securityContext.seccompProfile.type"]),
        (
            "localhost/a",
            r#"{"type":"Localhost","localhostProfile":"b"}"#,
            vec!["Forbidden spec.securityContext.seccompProfile.localhostProfile"],
        ),
    ] {
        let pod = object(&format!(
            r#"{{"metadata":{{"annotations":{{"seccomp.security.alpha.kubernetes.io/pod":"{annotation}"}}}},
                "spec":{{"securityContext":{{"seccompProfile":{profile}}}}}}}"#
        ));
        assert_eq!(shown(&validate_profiles_match(SPEC, &pod)), want, "{annotation} {profile}");
    }
}

#[test]
fn what_is_unwise_is_said() {
    for (extra, want) in [
        ("", vec![]),
        (
            r#""nodeSelector":{"beta.kubernetes.io/os":"linux"}"#,
            vec![r#"spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"#],
        ),
        (
            r#""volumes":[{"name":"v","gitRepo":{}}]"#,
            vec!["spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
        ),
        (
            r#""volumes":[{"name":"v","configMap":{"name":"m","items":[{"path":"a"},{"path":"a/b"}]}}]"#,
            vec![r#"volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a""#],
        ),
        (
            r#""volumes":[{"name":"v","projected":{"sources":[{},{}]}}]"#,
            vec![r#"volume "v" (Projected) has no sources provided"#],
        ),
        (
            r#""imagePullSecrets":[{"name":"a"},{"name":"a"}]"#,
            vec![r#"spec.imagePullSecrets[1].name: duplicate name "a""#],
        ),
        (
            r#""topologySpreadConstraints":[{"topologyKey":"a"}]"#,
            vec!["spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"],
        ),
        (
            r#""containers":[{"name":"c","env":[{"name":"A","value":"x"},{"name":"A","value":"y"}],
                "ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":80,"protocol":"TCP","hostPort":1}],
                "resources":{"limits":{"memory":"1500m"}}}]"#,
            vec![
                r#"spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer"#,
                r#"spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply"#,
                "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
            ],
        ),
        (
            r#""hostAliases":[{"ip":"FE80::1"}]"#,
            vec![
                r#"spec.hostAliases[0].ip: IPv6 address "FE80::1" should be in RFC 5952 canonical format ("fe80::1")"#,
            ],
        ),
    ] {
        let pod: Object = [("spec", Value::from(spec(extra)))].into_iter().collect();
        assert_eq!(template_warnings(FieldPath::none(), &pod, terms().features), want, "{extra}");
    }
    let pod = object(r#"{"spec":{"volumes":[{"name":"v","gitRepo":{}}]}}"#);
    let features = terms().features.with(Feature::GitRepoVolumeDriver);
    assert_eq!(template_warnings(FieldPath::none(), &pod, features), ["spec.volumes[0].gitRepo: deprecated in v1.11"]);
}

#[test]
fn what_a_feature_allows_is_otherwise_only_kept() {
    let metadata = object(r#"{"name":"p"}"#);
    let sleep = container(r#""lifecycle":{"preStop":{"sleep":{"seconds":0}}}"#);
    let sidecar = container(
        r#""name":"i","restartPolicy":"Always","resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}]"#,
    );
    let merged = r#""topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule",
        "matchLabelKeys":["k"],"labelSelector":{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}}]"#;
    for (feature, extra) in [
        (Feature::StrictIPCIDRValidation, String::new()),
        (Feature::SELinuxMount, r#""securityContext":{"seLinuxChangePolicy":"MountOption"}"#.to_owned()),
        (
            Feature::TaintTolerationComparisonOperators,
            r#""tolerations":[{"key":"a","operator":"Gt","value":"1"}]"#.to_owned(),
        ),
        (Feature::UserNamespacesHostNetworkSupport, r#""hostUsers":false,"hostNetwork":true"#.to_owned()),
        (
            Feature::RelaxedEnvironmentVariableValidation,
            format!(r#""containers":[{}]"#, container(r#""env":[{"name":"a b","value":"c"}]"#)),
        ),
        (
            Feature::RelaxedEnvironmentVariableValidation,
            format!(r#""containers":[{}]"#, container(r#""envFrom":[{"prefix":"a b","secretRef":{"name":"s"}}]"#)),
        ),
        (Feature::RelaxedDNSSearchValidation, r#""dnsConfig":{"searches":["."]}"#.to_owned()),
        (Feature::RelaxedDNSSearchValidation, r#""dnsConfig":{"searches":["_a.b"]}"#.to_owned()),
        (Feature::PodLifecycleSleepActionAllowZero, format!(r#""containers":[{sleep}]"#)),
        (Feature::InPlacePodVerticalScaling, format!(r#""initContainers":[{sidecar}]"#)),
        (Feature::ContainerRestartRules, format!(r#""containers":[{}]"#, container(r#""restartPolicy":"Never""#))),
        (Feature::MatchLabelKeysInPodTopologySpreadSelectorMerge, merged.to_owned()),
    ] {
        let spec = spec(&extra);
        let policy = |is_on: bool| {
            let features = terms().features;
            let features = if is_on { features.with(feature) } else { features.without(feature) };
            PodPolicy { features, ..strict() }
        };
        let found = |old, is_on| validate_spec(SPEC, &spec, &metadata, old, policy(is_on));
        assert_eq!(found(None, true), [], "{feature:?}: {extra}");
        assert_eq!(found(Some(&spec), false), [], "{feature:?}: {extra}");
        assert_eq!(found(None, false).is_empty(), extra.is_empty(), "{feature:?}: {extra}");
    }
}

#[test]
fn what_a_feature_forbids_is_otherwise_let_pass() {
    let metadata = object(r#"{"name":"p"}"#);
    for (feature, extra, want) in [
        (
            Feature::StrictIPCIDRValidation,
            r#""hostAliases":[{"ip":"010.0.0.1"}],"dnsConfig":{"nameservers":["::ffff:1.2.3.4"]}"#,
            vec!["Invalid spec.dnsConfig.nameservers[0]", "Invalid spec.hostAliases[0].ip"],
        ),
        (
            Feature::PodLevelResources,
            r#""resources":{"limits":{"example.com/a":"1"}}"#,
            vec!["NotSupported spec.resources.limits[example.com/a]"],
        ),
    ] {
        let spec = spec(extra);
        let features = terms().features;
        let found = |features| shown(&validate_spec(SPEC, &spec, &metadata, None, PodPolicy { features, ..strict() }));
        assert_eq!(found(features.with(feature)), want, "{feature:?}");
        assert!(found(features.without(feature)).is_empty(), "{feature:?}");
    }
    let cost = r#"{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"x"}}}"#;
    let features = terms().features;
    for (features, want) in [(features, 1), (features.without(Feature::PodDeletionCost), 0)] {
        let policy = PodPolicy { features, ..strict() };
        assert_eq!(validate_annotations(FieldPath::root("a"), &object(cost), None, policy).len(), want);
    }
}
