//! Values of which it is known how the original quotes them.

use revisor_object::parse_json;

use super::*;
use crate::Catalog;

/// The value at a path of a resource, as it was sent and as it is quoted.
const QUOTED: &[(&str, &str, &str, &str, &str)] = &[
    (
        "policy",
        "poddisruptionbudgets",
        "spec",
        r#"{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}},"maxUnavailable":"5%"}"#,
        r#"{"MinAvailable":1,"Selector":{"matchLabels":{"a":"b"}},"MaxUnavailable":"5%","UnhealthyPodEvictionPolicy":null}"#,
    ),
    (
        "rbac.authorization.k8s.io",
        "rolebindings",
        "roleRef",
        r#"{"apiGroup":"g","kind":"Role","name":"r"}"#,
        r#"{"APIGroup":"g","Kind":"Role","Name":"r"}"#,
    ),
    (
        "networking.k8s.io",
        "ipaddresses",
        "spec.parentRef",
        r#"{"name":"t","resource":"things"}"#,
        r#"{"Group":"","Resource":"things","Namespace":"","Name":"t"}"#,
    ),
    (
        "node.k8s.io",
        "runtimeclasses",
        "scheduling.tolerations[1]",
        r#"{"effect":"NoExecute","key":"k","operator":"Equal","tolerationSeconds":3,"value":"v"}"#,
        r#"{"Key":"k","Operator":"Equal","Value":"v","Effect":"NoExecute","TolerationSeconds":3}"#,
    ),
    // The item, where the list is named.
    (
        "storage.k8s.io",
        "csinodes",
        "spec.drivers",
        r#"{"name":"d","nodeID":"n","topologyKeys":["a"]}"#,
        r#"{"Name":"d","NodeID":"n","TopologyKeys":["a"],"Allocatable":null}"#,
    ),
    ("networking.k8s.io", "ingressclasses", "spec.controller", "null", r#""""#),
    // Nothing is nothing where the original can tell.
    ("storage.k8s.io", "storageclasses", "reclaimPolicy", "null", "null"),
    // The whole, where one of its fields is named.
    (
        "flowcontrol.apiserver.k8s.io",
        "flowschemas",
        "spec.distinguisherMethod.type",
        r#"{"type":"a"}"#,
        r#"{"Type":"a"}"#,
    ),
    (
        "",
        "pods",
        "spec.securityContext.seccompProfile.localhostProfile",
        r#"{"localhostProfile":"a","type":"Unconfined"}"#,
        r#"{"Type":"Unconfined","LocalhostProfile":"a"}"#,
    ),
    (
        "",
        "resourcequotas",
        "spec.scopeSelector.matchExpressions",
        r#"{"matchExpressions":[{"operator":"Exists","scopeName":"BestEffort"}]}"#,
        r#"{"MatchExpressions":[{"ScopeName":"BestEffort","Operator":"Exists","Values":null}]}"#,
    ),
    // A field of the spec that is named as if it were the object's, or that of its metadata.
    (
        "",
        "nodes",
        "metadata.taints[1]",
        r#"{"effect":"NoExecute","key":"a"}"#,
        r#"{"Key":"a","Value":"","Effect":"NoExecute","TimeAdded":null}"#,
    ),
    (
        "",
        "persistentvolumes",
        "nodeAffinity",
        r#"{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"<","operator":"Exists"}]}]}}"#,
        r#"{"Required":{"NodeSelectorTerms":[{"MatchExpressions":[{"Key":"\u003c","Operator":"Exists","Values":null}],"MatchFields":null}]}}"#,
    ),
    // What is in the metadata stands beside what is in the template, and what is in the spec stands in its context.
    (
        "",
        "podtemplates",
        "template",
        r#"{"metadata":{"labels":{"a":"b"}},"spec":{"hostNetwork":true,"securityContext":{}}}"#,
        r#"{"labels":{"a":"b"},"Spec":{"Volumes":null,"InitContainers":null,"Containers":null,"EphemeralContainers":null,"RestartPolicy":"","TerminationGracePeriodSeconds":null,"ActiveDeadlineSeconds":null,"DNSPolicy":"","NodeSelector":null,"ServiceAccountName":"","AutomountServiceAccountToken":null,"NodeName":"","SecurityContext":{"HostNetwork":true,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"SupplementalGroups":null,"SupplementalGroupsPolicy":null,"FSGroup":null,"FSGroupChangePolicy":null,"Sysctls":null,"SeccompProfile":null,"AppArmorProfile":null,"SELinuxChangePolicy":null},"ImagePullSecrets":null,"Hostname":"","Subdomain":"","SetHostnameAsFQDN":null,"Affinity":null,"SchedulerName":"","Tolerations":null,"HostAliases":null,"PriorityClassName":"","Priority":null,"PreemptionPolicy":null,"DNSConfig":null,"ReadinessGates":null,"RuntimeClassName":null,"Overhead":null,"EnableServiceLinks":null,"TopologySpreadConstraints":null,"OS":null,"SchedulingGates":null,"ResourceClaims":null,"Resources":null,"HostnameOverride":null,"SchedulingGroup":null}}"#,
    ),
    // What is quoted by a rule of its own stays.
    ("", "services", "spec.ports[0]", r#"{"Name":"","Protocol":"TCP"}"#, r#"{"Name":"","Protocol":"TCP"}"#),
];

#[test]
fn values_are_quoted_as_the_original_holds_them() {
    let catalog = Catalog::default();
    for (group, plural, path, sent, want) in QUOTED {
        let resource = catalog.resource(group, "v1", plural).expect("is served");
        let value: Value = serde_json::from_str(sent).expect("JSON");
        let errors = FieldErrors::from([FieldError::invalid(*path, value, "is wrong")]);
        let quoted: Vec<String> =
            resource.quoting_internal_values(errors).iter().map(|error| error.bad_value.to_string()).collect();
        assert_eq!(quoted, [*want], "{plural} {path}");
    }
}

#[test]
fn every_row_of_the_table_is_about_fields_that_clients_see() {
    let catalog = Catalog::default();
    let types = &catalog.resource("", "v1", "pods").expect("is served").types;
    for (name, members) in &internal_types() {
        let (group, short_name) = name.split_once('.').expect("a group and a name");
        let versions = ["v1", "v2", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"];
        let id = versions.iter().find_map(|version| types.id(&format!("{group}.{version}.{short_name}")));
        let id = id.unwrap_or_else(|| panic!("{name} is known"));
        for member in members {
            if let Member::Own { json, .. } = member {
                let fields = &types.get(id).fields;
                assert!(fields.iter().any(|field| field.name.eq_ignore_ascii_case(json)), "{name} {json}");
            }
        }
    }
}

#[test]
fn no_more_is_written_than_is_told() {
    let catalog = Catalog::default();
    let pods = catalog.stored_kind("", "pods").expect("there are pods");
    let many = Value::Array(vec![Value::Object(Map::new()); 100_000]);
    let error = FieldError::invalid("spec.containers", many, "too many");
    let quoted = pods.quoting_internal_values([error].into_iter().collect());
    let Some(BadValue::Text(text)) = quoted.iter().next().map(|error| &error.bad_value) else { panic!("is quoted") };
    assert!((MAX_TEXT_BYTES..4 * MAX_TEXT_BYTES).contains(&text.len()), "{} bytes", text.len());
}

#[test]
fn changes_are_told_line_by_line() {
    let catalog = Catalog::default();
    let object = |text: &str| match parse_json(text.as_bytes()).expect("JSON").value {
        revisor_object::Value::Object(object) => object,
        _ => panic!("an object"),
    };
    for (plural, path, old, new, want) in [
        (
            "pods",
            "spec.ephemeralContainers",
            r#"{"name":"e","image":"i"}"#,
            r#"{"name":"e","image":"j"}"#,
            "@@ -1,6 +1,6 @@\n {\n  \"Name\": \"e\",\n- \"Image\": \"i\",\n+ \"Image\": \"j\",\n  \"Command\": null,\n  \"Args\": null,\n  \"WorkingDir\": \"\",\n",
        ),
        (
            "persistentvolumes",
            "spec.persistentvolumesource",
            r#"{"capacity":{"storage":"1Gi"},"hostPath":{"path":"/x","type":""},"volumeMode":"Filesystem"}"#,
            r#"{"capacity":{"storage":"2Gi"},"hostPath":{"path":"/y","type":""},"volumeMode":"Filesystem"}"#,
            "@@ -2,7 +2,7 @@\n  \"GCEPersistentDisk\": null,\n  \"AWSElasticBlockStore\": null,\n  \"HostPath\": {\n-  \"Path\": \"/x\",\n+  \"Path\": \"/y\",\n   \"Type\": \"\"\n  },\n  \"Glusterfs\": null,\n",
        ),
    ] {
        let resource = catalog.resource("", "v1", plural).expect("is served");
        let error = FieldError::changed(path, &object(old), &object(new), "may not change");
        let told = resource.quoting_internal_values(FieldErrors::from([error]));
        let texts: Vec<String> = told.iter().map(|error| error.detail.clone()).collect();
        assert_eq!(texts, [format!("may not change\n{want}")], "{plural}");
    }
    // More than can be compared is not told.
    let pods = catalog.resource("", "v1", "pods").expect("is served");
    let many = |image: &str| {
        object(&serde_json::json!({ "containers": vec![serde_json::json!({ "image": image }); 500] }).to_string())
    };
    let error = FieldError::changed("spec", &many("a"), &many("b"), "may not change");
    let told = pods.quoting_internal_values(FieldErrors::from([error]));
    assert_eq!(told.iter().map(|error| error.detail.as_str()).collect::<Vec<_>>(), ["may not change\n"]);
}
