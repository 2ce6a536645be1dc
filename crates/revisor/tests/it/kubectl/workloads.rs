//! Workloads by command: made, scaled, changed, exposed and scaled by themselves.

use serde_json::json;

use super::{row, start, start_with_controllers};

#[tokio::test]
async fn a_deployment_is_made_and_changed_by_command() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.create("deployment web --image=registry.example/web:1 --replicas=2 --port=80").await;
    let made = kubectl.json("get deployment web").await;
    assert_eq!(made["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%", "{made}");
    assert_eq!(
        made["spec"]["template"]["spec"]["containers"][0]["ports"],
        json!([{"containerPort": 80, "protocol": "TCP"}])
    );

    assert_eq!(kubectl.ok("scale deployment web --replicas=3").await, "deployment.apps/web scaled\n");
    let text = kubectl.refused("scale deployment web --replicas=5 --current-replicas=1").await;
    assert!(text.contains("Expected replicas to be 1, was 3"), "{text}");
    let text = kubectl.ok("set image deployment/web web=registry.example/web:2").await;
    assert_eq!(text, "deployment.apps/web image updated\n");
    assert_eq!(kubectl.ok("set env deployment/web COLOUR=red").await, "deployment.apps/web env updated\n");
    let text = kubectl.ok("set resources deployment web --limits=cpu=0.2,memory=512Mi").await;
    assert_eq!(text, "deployment.apps/web resource requirements updated\n");
    kubectl.create("serviceaccount robot").await;
    let text = kubectl.ok("set serviceaccount deployment web robot").await;
    assert_eq!(text, "deployment.apps/web serviceaccount updated\n");
    assert_eq!(kubectl.ok("label deployment web tier=front").await, "deployment.apps/web labeled\n");
    let text = kubectl.refused("label deployment web tier=back").await;
    assert!(text.contains("'tier' already has a value (front), and --overwrite is false"), "{text}");
    assert_eq!(kubectl.ok("label deployment web tier-").await, "deployment.apps/web unlabeled\n");
    assert_eq!(kubectl.ok("annotate deployment web note=kept").await, "deployment.apps/web annotated\n");

    let changed = kubectl.json("get deployment web").await;
    assert_eq!(changed["metadata"]["generation"], 7, "the making, five changes of the spec, and the annotation");
    assert_eq!(changed["metadata"]["labels"], json!({"app": "web"}));
    let spec = &changed["spec"]["template"]["spec"];
    assert_eq!((&changed["spec"]["replicas"], &spec["serviceAccountName"]), (&json!(3), &json!("robot")));
    let container = &spec["containers"][0];
    assert_eq!(container["image"], "registry.example/web:2");
    assert_eq!(container["env"], json!([{"name": "COLOUR", "value": "red"}]));
    assert_eq!(container["resources"]["limits"], json!({"cpu": "200m", "memory": "512Mi"}));
    let text = kubectl.refused("set image deployment/web web=").await;
    assert!(text.contains("spec.template.spec.containers[0].image: Required value"), "{text}");
}

#[tokio::test]
async fn a_deployment_gets_a_service_and_an_autoscaler() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.create("deployment web --image=registry.example/web:1").await;
    assert_eq!(kubectl.ok("expose deployment web --port=80 --target-port=8080").await, "service/web exposed\n");
    let services = kubectl.ok("get services -o wide").await;
    let web = row(&services, "web");
    assert_eq!(web[1], "ClusterIP", "{services}");
    assert!(web[2].starts_with("10."), "an address of its own: {services}");
    assert_eq!((web[4].as_str(), web[6].as_str()), ("80/TCP", "app=web"), "{services}");
    kubectl.create("service nodeport outside --tcp=80:8080").await;
    let ports = row(&kubectl.ok("get service outside").await, "outside")[4].clone();
    assert!(ports.starts_with("80:3") && ports.ends_with("/TCP"), "a port on every node: {ports}");
    kubectl.create("service externalname elsewhere --external-name=elsewhere.example").await;
    assert_eq!(
        row(&kubectl.ok("get service elsewhere").await, "elsewhere")[1..4],
        ["ExternalName", "<none>", "elsewhere.example"]
    );
    kubectl.create("service clusterip headless --clusterip=None --tcp=80").await;
    assert_eq!(row(&kubectl.ok("get service headless").await, "headless")[2], "None");

    let text = kubectl.ok("autoscale deployment web --min=1 --max=5 --cpu=80%").await;
    assert_eq!(text, "horizontalpodautoscaler.autoscaling/web autoscaled\n");
    let autoscalers = kubectl.squeezed("get hpa").await;
    assert!(autoscalers.contains("\nweb Deployment/web cpu: <unknown>/80% 1 5 0 "), "{autoscalers}");
    let older = kubectl.json("get horizontalpodautoscalers.v1.autoscaling web").await;
    assert_eq!(older["spec"]["targetCPUUtilizationPercentage"], 80, "the older version says it its way: {older}");
    let described = kubectl.squeezed("describe hpa web").await;
    assert!(described.contains("resource cpu on pods (as a percentage of request): <unknown> / 80%\n"), "{described}");
}

#[tokio::test]
async fn a_pod_is_tried_run_and_becomes_ready() {
    let (_server, kubectl) = start_with_controllers().await;
    let run = "run p --image=registry.example/p --port=80 --labels=app=p";
    assert_eq!(kubectl.ok(&format!("{run} --dry-run=server")).await, "pod/p created (server dry run)\n");
    assert_eq!(kubectl.ok("get pods").await, "No resources found in default namespace.\n");
    assert_eq!(kubectl.ok(run).await, "pod/p created\n");
    let pods = kubectl.ok("get pods").await;
    assert_eq!(row(&pods, "p")[1..4], ["0/1", "Pending", "0"], "{pods}");

    // A kubelet would have written this.
    let waiting = kubectl.begin("wait --for=condition=Ready pod/p --timeout=30s");
    let status = json!({
        "phase": "Running",
        "podIP": "10.1.2.3",
        "podIPs": [{"ip": "10.1.2.3"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{
            "name": "p", "ready": true, "started": true, "restartCount": 2, "image": "registry.example/p", "imageID": "sha256:1",
            "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
        }],
    });
    kubectl.set_status("pod p", &status).await;
    assert_eq!(waiting.rest().await, "pod/p condition met\n");
    assert_eq!(kubectl.ok("wait --for=jsonpath={.status.phase}=Running pod/p").await, "pod/p condition met\n");
    let pods = kubectl.ok("get pods -o wide").await;
    let cells = row(&pods, "p");
    assert_eq!(cells[1..4], ["1/1", "Running", "2"], "{pods}");
    assert!(cells.contains(&"10.1.2.3".to_owned()), "{pods}");
    assert_eq!(kubectl.ok("get pods --field-selector=status.phase=Running -o name").await, "pod/p\n");
    assert_eq!(kubectl.ok("get pods --field-selector=status.phase!=Running -o name").await, "");
    let text = kubectl
        .refused(r#"patch pod p -p '{"spec":{"containers":[{"name":"p","ports":[{"containerPort":81}]}]}}'"#)
        .await;
    assert!(text.contains("pod updates may not change fields other than"), "{text}");
    let text = kubectl.ok("set image pod/p p=registry.example/p:2").await;
    assert_eq!(text, "pod/p image updated\n");
}
