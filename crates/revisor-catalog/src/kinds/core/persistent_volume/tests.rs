//! The rules for persistent volumes, case by case.

use super::*;
use crate::kinds::tests::{object, terms};

fn volumes() -> PersistentVolumes {
    PersistentVolumes { features: terms().features }
}

fn volume(rest: &str) -> Object {
    object(&format!(
        r#"{{"metadata":{{"name":"v"}},"spec":{{"accessModes":["ReadWriteOnce"],"capacity":{{"storage":"1Gi"}}{rest}}}}}"#
    ))
}

fn causes(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
}

#[test]
fn each_source_is_checked() {
    for (source, want) in [
        (r#""hostPath":{"path":"/a"}"#, vec![]),
        (
            r#""hostPath":{"path":"/a/../b","type":"Odd"}"#,
            vec!["Invalid spec.hostPath.path", "NotSupported spec.hostPath.type"],
        ),
        (r#""hostPath":{"path":"/a"},"cephfs":{"monitors":["a"]}"#, vec!["Forbidden spec.cephFS"]),
        (
            r#""gcePersistentDisk":{"partition":300}"#,
            vec!["Required spec.persistentDisk.pdName", "Invalid spec.persistentDisk.partition"],
        ),
        (r#""nfs":{"server":"s","path":"p"}"#, vec!["Invalid spec.nfs.path"]),
        (r#""iscsi":{"targetPortal":"p","iqn":"iqn.2001-04.com.example:storage","lun":0}"#, vec![]),
        (
            r#""iscsi":{"targetPortal":"p","iqn":"iqn.2001-4.com.example:storage","lun":256}"#,
            vec!["Invalid spec.iscsi.iqn", "Invalid spec.iscsi.lun"],
        ),
        // A name in which a character lies where the year ends.
        (
            r#""iscsi":{"targetPortal":"p","iqn":"iqn.200ä-04.com.example:storage","lun":0}"#,
            vec!["Invalid spec.iscsi.iqn"],
        ),
        (
            r#""iscsi":{"targetPortal":"p","iqn":"eui.0123456789abcdef","lun":0,"chapAuthSession":true}"#,
            vec!["Required spec.iscsi.secretRef"],
        ),
        (r#""fc":{"targetWWNs":["a"],"wwids":["b"]}"#, vec!["Invalid spec.fc.targetWWNs", "Required spec.fc.lun"]),
        (r#""quobyte":{"registry":"a:1,b","volume":"v"}"#, vec!["Invalid spec.quobyte.registry"]),
        (
            r#""flexVolume":{"driver":"d","options":{"x.k8s.io/a":"b","notk8s.io":"c"}}"#,
            vec!["Invalid spec.flexVolume.options[x.k8s.io/a]"],
        ),
        (
            r#""azureDisk":{"diskName":"d","diskURI":"https://a","kind":"Managed"}"#,
            vec!["NotSupported spec.azureDisk.diskURI"],
        ),
        (r#""local":{"path":"/a"}"#, vec!["Required spec.nodeAffinity"]),
        (r#""csi":{"driver":"Bad Driver!"}"#, vec!["Invalid spec.csi.driver", "Required spec.csi.volumeHandle"]),
        (
            r#""csi":{"driver":"d","volumeHandle":"h","nodeStageSecretRef":{},"nodeExpandSecretRef":{"name":"n"}}"#,
            vec!["Required spec.csi.nodeExpandSecretRef.namespace"],
        ),
    ] {
        let want: Vec<String> = want.iter().map(|cause| format!("FieldValue{cause}")).collect();
        assert_eq!(causes(&volumes().validate(&volume(&format!(",{source}")))), want, "{source}");
    }
}

#[test]
fn the_root_folder_is_never_recycled() {
    for (path, is_root) in [("/", true), ("//./", true), ("/a/..", true), ("/a", false), ("a/..", false), ("", false)] {
        assert_eq!(sources::is_root(path), is_root, "{path}");
    }
    let new = volume(r#","hostPath":{"path":"/"},"persistentVolumeReclaimPolicy":"Recycle""#);
    assert_eq!(causes(&volumes().validate(&new)), ["FieldValueForbidden spec.persistentVolumeReclaimPolicy"]);
}

#[test]
fn the_source_is_immutable() {
    let driver = |rest: &str| volume(&format!(r#","csi":{{"driver":"d","volumeHandle":"h"{rest}}}"#));
    let secret = r#","controllerExpandSecretRef":{"name":"a","namespace":"b"}"#;
    let update = |new: &Object, old: &Object| causes(&volumes().validate_update(new, old, Part::Whole));
    assert!(update(&driver(secret), &driver("")).is_empty());
    assert_eq!(update(&driver(""), &driver(secret)), ["FieldValueForbidden spec.persistentvolumesource"]);
    assert_eq!(update(&driver(r#","fsType":"x""#), &driver("")), ["FieldValueForbidden spec.persistentvolumesource"]);
}

#[test]
fn an_affinity_only_changes_to_newer_labels() {
    let with = |key: &str, value: &str| {
        let terms = format!(r#"[{{"matchExpressions":[{{"key":"{key}","operator":"In","values":["{value}"]}}]}}]"#);
        volume(&format!(
            r#","nfs":{{"server":"s","path":"/p"}},"nodeAffinity":{{"required":{{"nodeSelectorTerms":{terms}}}}}"#
        ))
    };
    let old = with("beta.kubernetes.io/os", "a");
    let update = |new: &Object| causes(&volumes().validate_update(new, &old, Part::Whole));
    assert!(update(&with("kubernetes.io/os", "a")).is_empty());
    assert_eq!(update(&with("kubernetes.io/arch", "a")), ["FieldValueInvalid nodeAffinity"]);
    assert_eq!(update(&with("beta.kubernetes.io/os", "b")), ["FieldValueInvalid nodeAffinity"]);
    // To a key without a successor, none at all is one; what is wrong with it is told once.
    let old = with("zone", "a");
    let told = causes(&volumes().validate_update(&with("", "a"), &old, Part::Whole));
    assert!(!told.contains(&"FieldValueInvalid nodeAffinity".to_owned()), "{told:?}");
}

#[test]
fn a_status_is_stored_without_a_word_about_the_spec() {
    let volume = volume(r#","nfs":{"server":"s","path":"/p"},"persistentVolumeReclaimPolicy":"Recycle""#);
    assert_eq!(volumes().warnings(&volume, Some(&volume)).len(), 1);
    assert_eq!(volumes().subresource_warnings(&volume, &volume), [""; 0]);
}

#[test]
fn the_time_of_a_transition_is_kept() {
    let at = |phase: &str, time: Option<&str>| {
        let mut volume = volume("");
        volume.object_mut("status").insert("phase", phase);
        volume.object_mut("status").set("lastPhaseTransitionTime", time.map(Value::from));
        volume
    };
    let circumstances = Circumstances { now: "now", requester: crate::Requester::default() };
    for (name, new, want) in [
        ("the same phase keeps it", at("Pending", None), "before"),
        ("another phase sets it", at("Bound", Some("before")), "now"),
        ("a given one stays", at("Bound", Some("given")), "given"),
    ] {
        let mut new = new;
        let old = at("Pending", Some("before"));
        volumes().prepare_update(&mut new, &old, Part::Subresource("status"), circumstances);
        let time = new.at(&["status", "lastPhaseTransitionTime"]).and_then(Value::as_str);
        assert_eq!(time, Some(want), "{name}");
    }
}

#[test]
fn features_decide_what_of_a_volume_can_be_changed() {
    let classed = volume(r#","csi":{"driver":"d.io","volumeHandle":"h"},"volumeAttributesClassName":"gold""#);
    let on = terms().features;
    let off = on.without(Feature::VolumeAttributesClass);
    let silver = volume(r#","csi":{"driver":"d.io","volumeHandle":"h"},"volumeAttributesClassName":"silver""#);
    for (features, want) in [(on, vec![]), (off, vec!["FieldValueForbidden spec.volumeAttributesClassName"])] {
        let errors = PersistentVolumes { features }.validate_update(&silver, &classed, Part::Whole);
        assert_eq!(causes(&errors), want);
    }
    let at = |zone: &str| {
        volume(&format!(
            r#","hostPath":{{"path":"/a"}},"nodeAffinity":{{"required":{{"nodeSelectorTerms":[{{"matchExpressions":
                [{{"key":"zone","operator":"In","values":["{zone}"]}}]}}]}}}}"#
        ))
    };
    let mutable = on.with(Feature::MutablePVNodeAffinity);
    for (features, want) in [(mutable, vec![]), (on, vec!["FieldValueInvalid nodeAffinity"])] {
        let errors = PersistentVolumes { features }.validate_update(&at("a"), &at("b"), Part::Whole);
        assert_eq!(causes(&errors), want);
    }
}
