//! Every row of the table of disabled fields, and what it drops.

use super::*;
use crate::kinds::tests::{object, terms};
use crate::rows::FIELDS;

fn types() -> Arc<Types> {
    Arc::new(Types::parse(FIELDS).expect("is well formed"))
}

/// What becomes of an object of a kind with only this feature off.
fn dropped(types: &Arc<Types>, kind: &str, feature: Feature, given: &str, old: Option<&str>) -> Object {
    let all = Feature::ALL.iter().fold(terms().features, |features, feature| features.with(*feature));
    let kind = types.id(kind).expect("is a kind");
    let old = old.map(object);
    let mut new = object(given);
    DisabledFields::of(types, kind, all).drop(&mut new, old.as_ref());
    assert_eq!(new, object(given), "{feature:?} is on");
    DisabledFields::of(types, kind, all.without(feature)).drop(&mut new, old.as_ref());
    new
}

/// A feature, an object that uses it, and what is left of that without the feature.
#[track_caller]
fn check(kind: &str, cases: &[(Feature, &str, &str)]) {
    let types = types();
    for (feature, given, want) in cases {
        for (old, want) in [(None, want), (Some("{}"), want), (Some(*given), given)] {
            let left = dropped(&types, kind, *feature, given, old);
            assert_eq!(left, object(want), "{feature:?}, old: {old:?}");
        }
    }
}

#[test]
fn every_row_names_a_feature_and_fields_that_there_are() {
    let types = types();
    let lines = TABLE.lines().skip(1).count();
    assert_eq!(rows().count(), lines, "a row is not well formed");
    for row in rows() {
        assert!(Feature::named(row.feature).is_some(), "{}", row.feature);
        let name = |version: &str| format!("{}.{version}.{}", row.package, row.name);
        let versions = ["v2", "v1", "v1alpha2"];
        let id = versions.iter().find_map(|version| types.id(&name(version))).expect(row.name);
        for path in paths_of(row.fields).chain(paths_of(row.in_use).filter(|_| !row.in_use.is_empty())) {
            assert!(leads_somewhere(&types, id, &path), "{}: {path:?}", row.name);
        }
    }
}

fn leads_somewhere(types: &Types, id: StructId, path: &[Step]) -> bool {
    let [Step::Member(name), rest @ ..] = path else { return false };
    let Some(field) = types.get(id).field(name) else { return false };
    match (rest, &field.shape) {
        ([], _) | ([Step::Each], Shape::List(_) | Shape::Map(_)) => true,
        ([Step::Each, rest @ ..], Shape::List(of) | Shape::Map(of)) => {
            matches!(**of, Shape::Struct(id) if leads_somewhere(types, id, rest))
        }
        (rest, Shape::Struct(id)) => leads_somewhere(types, *id, rest),
        _ => false,
    }
}

#[test]
fn specs_of_pods_are_found_in_everything_with_a_template() {
    let types = types();
    for (kind, place) in [
        ("core.v1.Pod", r#"{"spec":S}"#),
        ("core.v1.PodTemplate", r#"{"template":{"spec":S}}"#),
        ("core.v1.ReplicationController", r#"{"spec":{"template":{"spec":S}}}"#),
        ("apps.v1.Deployment", r#"{"spec":{"template":{"spec":S}}}"#),
        ("apps.v1.ReplicaSet", r#"{"spec":{"template":{"spec":S}}}"#),
        ("apps.v1.StatefulSet", r#"{"spec":{"template":{"spec":S}}}"#),
        ("apps.v1.DaemonSet", r#"{"spec":{"template":{"spec":S}}}"#),
        ("batch.v1.Job", r#"{"spec":{"template":{"spec":S}}}"#),
        ("batch.v1.CronJob", r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":S}}}}}"#),
    ] {
        for (feature, given) in [
            (Feature::HostnameOverride, r#"{"hostnameOverride":"a"}"#),
            (Feature::ImageVolume, r#"{"volumes":[{"name":"i","image":{}}]}"#),
        ] {
            let left = dropped(&types, kind, feature, &place.replace('S', given), None);
            assert_eq!(left, object(&place.replace('S', "{}")), "{kind} {feature:?}");
        }
    }
}

#[test]
fn templates_of_claims_are_not_claims() {
    let given = r#"{"spec":{"volumeClaimTemplates":[{"spec":{"volumeAttributesClassName":"a"}}]}}"#;
    let left = dropped(&types(), "apps.v1.StatefulSet", Feature::VolumeAttributesClass, given, None);
    assert_eq!(left, object(given));
}

#[test]
fn features_of_pod_specs() {
    let specs = [
        (Feature::UserNamespacesSupport, r#"{"hostUsers":false}"#, "{}"),
        (
            Feature::SupplementalGroupsPolicy,
            r#"{"securityContext":{"fsGroup":1,"supplementalGroupsPolicy":"Merge"}}"#,
            r#"{"securityContext":{"fsGroup":1}}"#,
        ),
        (Feature::PodLevelResources, r#"{"resources":{"limits":{"cpu":"1"}}}"#, "{}"),
        (
            Feature::ProcMountType,
            r#"{"containers":[{"securityContext":{"procMount":"Unmasked"}},{"securityContext":{}}]}"#,
            r#"{"containers":[{"securityContext":{"procMount":"Default"}},{"securityContext":{}}]}"#,
        ),
        (
            Feature::MatchLabelKeysInPodTopologySpread,
            r#"{"topologySpreadConstraints":[{"maxSkew":1,"matchLabelKeys":["a"]}]}"#,
            r#"{"topologySpreadConstraints":[{"maxSkew":1}]}"#,
        ),
        (
            Feature::DynamicResourceAllocation,
            r#"{"resourceClaims":[{"name":"a"}],"containers":[{"resources":{"claims":[{"name":"a"}]}}]}"#,
            r#"{"containers":[{"resources":{}}]}"#,
        ),
        (
            Feature::ClusterTrustBundleProjection,
            r#"{"volumes":[{"projected":{"sources":[{"clusterTrustBundle":{}},{"secret":{}}]}}]}"#,
            r#"{"volumes":[{"projected":{"sources":[{},{"secret":{}}]}}]}"#,
        ),
        (
            Feature::PodCertificateRequest,
            r#"{"volumes":[{"projected":{"sources":[{"podCertificate":{}},{"secret":{}}]}}]}"#,
            r#"{"volumes":[{"projected":{"sources":[{},{"secret":{}}]}}]}"#,
        ),
        (Feature::GenericWorkload, r#"{"schedulingGroup":{"podGroupName":"g"}}"#, "{}"),
        (
            Feature::InPlacePodVerticalScaling,
            r#"{"containers":[{"name":"a","resizePolicy":[{"resourceName":"cpu"}]}]}"#,
            r#"{"containers":[{"name":"a"}]}"#,
        ),
        (
            Feature::ContainerRestartRules,
            r#"{"initContainers":[{"restartPolicy":"Always"},{"restartPolicy":"Never","restartPolicyRules":[{}]}],
                "containers":[{"restartPolicy":"Always","restartPolicyRules":[{}]}]}"#,
            r#"{"initContainers":[{"restartPolicy":"Always"},{}],"containers":[{}]}"#,
        ),
        (Feature::HostnameOverride, r#"{"hostnameOverride":"a"}"#, "{}"),
        (
            Feature::EnvFiles,
            r#"{"containers":[{"env":[{"name":"A","valueFrom":{"fileKeyRef":{}}}]}]}"#,
            r#"{"containers":[{"env":[{"name":"A","valueFrom":{}}]}]}"#,
        ),
        (
            Feature::PodLifecycleSleepAction,
            r#"{"containers":[{"lifecycle":{"preStop":{"sleep":{"seconds":1}}}},
                {"lifecycle":{"postStart":{"exec":{},"sleep":{}}}},{"lifecycle":{"stopSignal":"SIGTERM"}}]}"#,
            r#"{"containers":[{},{"lifecycle":{"postStart":{"exec":{}}}},{"lifecycle":{"stopSignal":"SIGTERM"}}]}"#,
        ),
        (
            Feature::ImageVolume,
            r#"{"volumes":[{"name":"i","image":{}},{"name":"e","emptyDir":{}}],
                "containers":[{"volumeMounts":[{"name":"i"}]},{"volumeMounts":[{"name":"e"},{"name":"i"}]}]}"#,
            r#"{"volumes":[{"name":"e","emptyDir":{}}],"containers":[{},{"volumeMounts":[{"name":"e"}]}]}"#,
        ),
        (
            Feature::SELinuxChangePolicy,
            r#"{"securityContext":{"seLinuxChangePolicy":"Recursive"}}"#,
            r#"{"securityContext":{}}"#,
        ),
        (
            Feature::ContainerStopSignals,
            r#"{"containers":[{"lifecycle":{"stopSignal":"SIGTERM"}},{"lifecycle":{"stopSignal":"SIGTERM","preStop":{}}}]}"#,
            r#"{"containers":[{},{"lifecycle":{"preStop":{}}}]}"#,
        ),
    ];
    let of_pod = |spec: &str| format!(r#"{{"spec":{spec}}}"#);
    for (feature, given, want) in specs {
        check("core.v1.Pod", &[(feature, &of_pod(given), &of_pod(want))]);
    }
}

#[test]
fn features_of_pod_statuses() {
    let types = types();
    let of_container = |member: &str| format!(r#"{{"containerStatuses":[{{"name":"a"{member}}}]}}"#);
    let none = "{}".to_owned();
    for (feature, given, want, using_spec) in [
        (
            Feature::InPlacePodLevelResourcesVerticalScaling,
            r#"{"phase":"Running","resources":{},"allocatedResources":{}}"#.to_owned(),
            r#"{"phase":"Running"}"#.to_owned(),
            "{}",
        ),
        (
            Feature::InPlacePodVerticalScaling,
            of_container(r#","resources":{},"allocatedResources":{}"#),
            of_container(""),
            r#"{"containers":[{"resizePolicy":[{}]}]}"#,
        ),
        (
            Feature::DynamicResourceAllocation,
            r#"{"resourceClaimStatuses":[{}]}"#.to_owned(),
            none.clone(),
            r#"{"resourceClaims":[{}]}"#,
        ),
        (Feature::DRAExtendedResource, r#"{"extendedResourceClaimStatus":{}}"#.to_owned(), none.clone(), "{}"),
        (Feature::ResourceHealthStatus, of_container(r#","allocatedResourcesStatus":[{}]"#), of_container(""), "{}"),
        (
            Feature::ResourceHealthStatusMessage,
            of_container(r#","allocatedResourcesStatus":[{"resources":[{"message":"m"}]}]"#),
            of_container(r#","allocatedResourcesStatus":[{"resources":[{}]}]"#),
            "{}",
        ),
        (
            Feature::SupplementalGroupsPolicy,
            of_container(r#","user":{}"#),
            of_container(""),
            r#"{"securityContext":{"supplementalGroupsPolicy":"Merge"}}"#,
        ),
        (
            Feature::PodObservedGenerationTracking,
            r#"{"observedGeneration":1,"conditions":[{"observedGeneration":1}]}"#.to_owned(),
            r#"{"conditions":[{}]}"#.to_owned(),
            "{}",
        ),
        (
            Feature::ImageVolumeWithDigest,
            of_container(r#","volumeMounts":[{"volumeStatus":{}}]"#),
            of_container(r#","volumeMounts":[{}]"#),
            "{}",
        ),
        (
            Feature::DRANodeAllocatableResources,
            r#"{"nodeAllocatableResourceClaimStatuses":[{}]}"#.to_owned(),
            none.clone(),
            "{}",
        ),
    ] {
        let pod = |status: &str, spec: &str| format!(r#"{{"spec":{spec},"status":{status}}}"#);
        let given_in = pod(&given, using_spec);
        let unused = dropped(&types, "core.v1.Pod", feature, &pod(&given, "{}"), Some(&pod("{}", "{}")));
        assert_eq!(unused, object(&pod(&want, "{}")), "{feature:?}");
        let used = dropped(&types, "core.v1.Pod", feature, &given_in, Some(&given_in));
        assert_eq!(used, object(&given_in), "{feature:?} in use");
    }
}

#[test]
fn features_of_devices() {
    check(
        "resource.v1.ResourceSlice",
        &[
            (Feature::DRADeviceTaints, r#"{"spec":{"devices":[{"taints":[{}]}]}}"#, r#"{"spec":{"devices":[{}]}}"#),
            (
                Feature::DRAPartitionableDevices,
                r#"{"spec":{"sharedCounters":[{}],"perDeviceNodeSelection":true,"nodeName":"kept",
                    "devices":[{"consumesCounters":[{}],"nodeName":"n","nodeSelector":{},"allNodes":true}]}}"#,
                r#"{"spec":{"nodeName":"kept","devices":[{}]}}"#,
            ),
            (
                Feature::DRADeviceBindingConditions,
                r#"{"spec":{"devices":[{"bindingConditions":["a"],"bindingFailureConditions":["b"],"bindsToNode":true}]}}"#,
                r#"{"spec":{"devices":[{}]}}"#,
            ),
            (
                Feature::DRAResourceClaimDeviceStatus,
                r#"{"spec":{"devices":[{"bindingConditions":["a"]}]}}"#,
                r#"{"spec":{"devices":[{}]}}"#,
            ),
            (
                Feature::DRAConsumableCapacity,
                r#"{"spec":{"devices":[{"allowMultipleAllocations":true,"capacity":{"m":{"value":"1","requestPolicy":{}}}}]}}"#,
                r#"{"spec":{"devices":[{"capacity":{"m":{"value":"1"}}}]}}"#,
            ),
            (
                Feature::DRANodeAllocatableResources,
                r#"{"spec":{"devices":[{"nodeAllocatableResourceMappings":{"cpu":{}}}]}}"#,
                r#"{"spec":{"devices":[{}]}}"#,
            ),
            (
                Feature::DRAListTypeAttributes,
                r#"{"spec":{"devices":[{"attributes":{"a":{"ints":[1]},"b":{"int":1}}}]}}"#,
                r#"{"spec":{"devices":[{"attributes":{"a":{},"b":{"int":1}}}]}}"#,
            ),
        ],
    );
}

#[test]
fn features_of_claims_for_devices() {
    let specs = [
        (
            Feature::DRAPrioritizedList,
            r#"{"devices":{"requests":[{"name":"a","firstAvailable":[{}]}]}}"#,
            r#"{"devices":{"requests":[{"name":"a"}]}}"#,
        ),
        (
            Feature::DRADeviceTaints,
            r#"{"devices":{"requests":[{"exactly":{"tolerations":[{}]}},{"firstAvailable":[{"tolerations":[{}]}]}]}}"#,
            r#"{"devices":{"requests":[{"exactly":{}},{"firstAvailable":[{}]}]}}"#,
        ),
        (
            Feature::DRAAdminAccess,
            r#"{"devices":{"requests":[{"exactly":{"adminAccess":true}}]}}"#,
            r#"{"devices":{"requests":[{"exactly":{}}]}}"#,
        ),
        (
            Feature::DRAConsumableCapacity,
            r#"{"devices":{"constraints":[{"distinctAttribute":"a.b/c"}],
                "requests":[{"exactly":{"capacity":{}}},{"firstAvailable":[{"capacity":{}}]}]}}"#,
            r#"{"devices":{"constraints":[{}],"requests":[{"exactly":{}},{"firstAvailable":[{}]}]}}"#,
        ),
    ];
    for (feature, given, want) in specs {
        for (kind, place) in [
            ("resource.v1.ResourceClaim", r#"{"spec":S}"#),
            ("resource.v1.ResourceClaimTemplate", r#"{"spec":{"spec":S}}"#),
        ] {
            check(kind, &[(feature, &place.replace('S', given), &place.replace('S', want))]);
        }
    }
    let result =
        |members: &str| format!(r#"{{"status":{{"allocation":{{"devices":{{"results":[{{{members}}}]}}}}}}}}"#);
    for (feature, members) in [
        (Feature::DRAAdminAccess, r#""adminAccess":true"#),
        (Feature::DRAConsumableCapacity, r#""shareID":"a","consumedCapacity":{}"#),
        (Feature::DRADeviceBindingConditions, r#""bindingConditions":["a"],"bindingFailureConditions":["b"]"#),
    ] {
        check("resource.v1.ResourceClaim", &[(feature, &result(members), &result(""))]);
    }
    check(
        "resource.v1.ResourceClaim",
        &[(Feature::DRAResourceClaimDeviceStatus, r#"{"status":{"devices":[{"driver":"d"}]}}"#, r#"{"status":{}}"#)],
    );
}

#[test]
fn features_of_others() {
    check(
        "apiextensions.v1.CustomResourceDefinition",
        &[(
            Feature::CRDObservedGenerationTracking,
            r#"{"status":{"observedGeneration":2,"conditions":[{"type":"a","observedGeneration":2}]}}"#,
            r#"{"status":{"conditions":[{"type":"a"}]}}"#,
        )],
    );
    check(
        "apps.v1.StatefulSet",
        &[(
            Feature::MaxUnavailableStatefulSet,
            r#"{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}}}"#,
            r#"{"spec":{"updateStrategy":{"rollingUpdate":{}}}}"#,
        )],
    );
    check(
        "autoscaling.v2.HorizontalPodAutoscaler",
        &[(
            Feature::HPAConfigurableTolerance,
            r#"{"spec":{"behavior":{"scaleUp":{"tolerance":"200m"}}}}"#,
            r#"{"spec":{"behavior":{"scaleUp":{}}}}"#,
        )],
    );
    check(
        "discovery.v1.EndpointSlice",
        &[(
            Feature::PreferSameTrafficDistribution,
            r#"{"endpoints":[{"hints":{"forNodes":[{"name":"n"}],"forZones":[]}}]}"#,
            r#"{"endpoints":[{"hints":{"forZones":[]}}]}"#,
        )],
    );
    check(
        "coordination.v1.Lease",
        &[(
            Feature::CoordinatedLeaderElection,
            r#"{"spec":{"holderIdentity":"a","preferredHolder":"b","strategy":"OldestEmulationVersion"}}"#,
            r#"{"spec":{"holderIdentity":"a"}}"#,
        )],
    );
    check(
        "resource.v1.DeviceClass",
        &[(Feature::DRAExtendedResource, r#"{"spec":{"extendedResourceName":"a.b/c"}}"#, r#"{"spec":{}}"#)],
    );
    for kind in ["apps.v1.Deployment", "apps.v1.ReplicaSet"] {
        let given = r#"{"status":{"replicas":3,"terminatingReplicas":2}}"#;
        check(kind, &[(Feature::DeploymentReplicaSetTerminatingReplicas, given, r#"{"status":{"replicas":3}}"#)]);
    }
    let replacement =
        (Feature::JobPodReplacementPolicy, r#"{"spec":{"podReplacementPolicy":"Failed"}}"#, r#"{"spec":{}}"#);
    check("batch.v1.Job", &[replacement]);
    let class = (Feature::VolumeAttributesClass, r#"{"spec":{"volumeAttributesClassName":"gold"}}"#, r#"{"spec":{}}"#);
    check("core.v1.PersistentVolume", &[class]);
    check(
        "core.v1.PersistentVolumeClaim",
        &[
            class,
            (
                Feature::VolumeAttributesClass,
                r#"{"status":{"modifyVolumeStatus":{},"currentVolumeAttributesClassName":"gold"}}"#,
                r#"{"status":{}}"#,
            ),
            (
                Feature::RecoverVolumeExpansionFailure,
                r#"{"status":{"allocatedResources":{"storage":"1"},"allocatedResourceStatuses":{"storage":"x"}}}"#,
                r#"{"status":{}}"#,
            ),
        ],
    );
    for (feature, name) in [
        (Feature::SELinuxMountReadWriteOncePod, "seLinuxMount"),
        (Feature::MutableCSINodeAllocatableCount, "nodeAllocatableUpdatePeriodSeconds"),
        (Feature::CSIServiceAccountTokenSecrets, "serviceAccountTokenInSecrets"),
        (Feature::VolumeLimitScaling, "preventPodSchedulingIfMissing"),
    ] {
        check("storage.v1.CSIDriver", &[(feature, &format!(r#"{{"spec":{{"{name}":20}}}}"#), r#"{"spec":{}}"#)]);
    }
    check(
        "storage.v1.VolumeAttachment",
        &[(
            Feature::MutableCSINodeAllocatableCount,
            r#"{"status":{"attachError":{"errorCode":8,"message":"full"}}}"#,
            r#"{"status":{"attachError":{"message":"full"}}}"#,
        )],
    );
}
