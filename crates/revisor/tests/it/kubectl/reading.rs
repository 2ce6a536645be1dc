//! What is shown: tables, YAML, single fields and descriptions.

use serde_json::json;

use super::{pod, reference, replica_set, row, start_with_controllers};

#[tokio::test]
async fn objects_are_shown_in_every_format() {
    let (_server, kubectl) = start_with_controllers().await;
    for name in ["beta", "alpha"] {
        kubectl.create(&format!("deployment {name} --image=registry.example/{name}:1 --replicas=2")).await;
    }
    let table = kubectl.squeezed("get deployments").await;
    assert!(table.starts_with("NAME READY UP-TO-DATE AVAILABLE AGE\nalpha 0/2 0 0 "), "{table}");
    let wide = kubectl.ok("get deployments -o wide").await;
    assert_eq!(row(&wide, "beta")[5..], ["beta", "registry.example/beta:1", "app=beta"], "{wide}");
    let labelled = kubectl.ok("get deployments --show-labels -L app").await;
    assert_eq!(row(&labelled, "alpha")[5..], ["alpha", "app=alpha"], "{labelled}");
    let columns = kubectl.squeezed("get deployments -o custom-columns=N:.metadata.name,R:.spec.replicas").await;
    assert_eq!(columns, "N R\nalpha 2\nbeta 2\n");
    let sorted = kubectl.ok("get deployments --sort-by=.metadata.creationTimestamp -o name").await;
    assert_eq!(sorted.lines().count(), 2, "{sorted}");
    let field = kubectl.ok("get deployment alpha -o 'jsonpath={.spec.template.spec.containers[0].image}'").await;
    assert_eq!(field, "registry.example/alpha:1");
    let template = kubectl.ok("get deployments -o 'go-template={{range .items}}{{.metadata.name}} {{end}}'").await;
    assert_eq!(template, "alpha beta ");
    let yaml = kubectl.ok("get deployment alpha -o yaml").await;
    assert!(yaml.starts_with("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  creationTimestamp: \""), "{yaml}");
    assert!(yaml.ends_with("      terminationGracePeriodSeconds: 30\nstatus: {}\n"), "{yaml}");
    assert!(!yaml.contains("managedFields"), "{yaml}");

    kubectl.ok("expose deployment alpha --port=80").await;
    assert_eq!(
        kubectl.ok("get deployments,services -l app=alpha -o name").await,
        "deployment.apps/alpha\nservice/alpha\n"
    );
    let all = kubectl.squeezed("get all").await;
    assert!(all.contains("deployment.apps/alpha 0/2 ") && all.contains("service/alpha ClusterIP "), "{all}");
    let everywhere = kubectl.squeezed("get deployments -A").await;
    assert!(
        everywhere.starts_with("NAMESPACE NAME READY ") && everywhere.contains("\ndefault beta 0/2 "),
        "{everywhere}"
    );
    let scale = kubectl.json("get deployment alpha --subresource=scale").await;
    assert_eq!((&scale["kind"], &scale["spec"]), (&json!("Scale"), &json!({"replicas": 2})));
}

#[tokio::test]
async fn a_deployment_is_described_with_all_that_belongs_to_it() {
    let (_server, kubectl) = start_with_controllers().await;
    kubectl.create("deployment web --image=registry.example/web:1 --replicas=1 --port=80").await;
    kubectl.ok("expose deployment web --port=80 --target-port=8080").await;
    let deployment = kubectl.json("get deployment web").await;
    let mut set = replica_set("web-1", "web", "registry.example/web:1");
    set["metadata"]["ownerReferences"] = json!([reference(&deployment)]);
    set["spec"]["template"] = deployment["spec"]["template"].clone();
    let (succeeded, text) = kubectl.create_from(&set.to_string()).await;
    assert!(succeeded, "{text}");
    let set = kubectl.json("get replicaset web-1").await;
    let (succeeded, text) = kubectl.create_from(&pod("web-1-a", "web", Some(&set)).to_string()).await;
    assert!(succeeded, "{text}");
    let found = json!({"kind": "Pod", "namespace": "default", "name": "web-1-a", "uid": kubectl.json("get pod web-1-a").await["metadata"]["uid"]});
    let event = json!({"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e"}, "reason": "Scheduled",
        "message": "it has a place", "type": "Normal", "involvedObject": found, "source": {"component": "scheduler"}});
    let (succeeded, text) = kubectl.create_from(&event.to_string()).await;
    assert!(succeeded, "{text}");

    for (what, lines) in [
        (
            "deployment web",
            &[
                "Name: web",
                "Selector: app=web",
                "Replicas: 1 desired | 0 updated | 0 total | 0 available | 0 unavailable",
                "RollingUpdateStrategy: 25% max unavailable, 25% max surge",
                "Image: registry.example/web:1",
                "NewReplicaSet: web-1 (0/0 replicas created)",
            ][..],
        ),
        (
            "replicaset web-1",
            &["Controlled By: Deployment/web", "Pods Status: 0 Running / 1 Waiting / 0 Succeeded / 0 Failed"],
        ),
        (
            "pod web-1-a",
            &[
                "Status: Pending",
                "Controlled By: ReplicaSet/web-1",
                "Service Account: default",
                "QoS Class: BestEffort",
                "Tolerations: node.kubernetes.io/not-ready:NoExecute op=Exists for 300s",
                "Normal Scheduled <unknown> scheduler it has a place",
            ],
        ),
        ("service web", &["Type: ClusterIP", "IP Families: IPv4", "Port: <unset> 80/TCP", "TargetPort: 8080/TCP"]),
        ("namespace default", &["Status: Active", "No resource quota."]),
        ("serviceaccount default", &["Name: default", "Image pull secrets: <none>"]),
    ] {
        let text = kubectl.squeezed(&format!("describe {what}")).await;
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "{line}: {text}");
        }
    }
}
