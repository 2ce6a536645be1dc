//! The kinds that `kubectl create` knows by itself. It sends them as protobuf.

use serde_json::json;

use super::{start, start_with_controllers};

#[tokio::test]
async fn jobs_and_their_schedules_are_made() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.create("job once --image=registry.example/job -- work hard").await;
    kubectl.create("cronjob often --image=registry.example/job '--schedule=*/5 * * * *' -- work").await;
    kubectl.create("job now --from=cronjob/often").await;
    let rows = kubectl.squeezed("get jobs,cronjobs").await;
    assert!(rows.contains("job.batch/once Running 0/1 "), "{rows}");
    assert!(rows.contains("cronjob.batch/often */5 * * * * <none> False 0 <none> "), "{rows}");
    let job = kubectl.json("get job once").await;
    let uid = &job["metadata"]["uid"];
    assert_eq!(&job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"], uid, "{job}");
    assert_eq!(job["spec"]["template"]["spec"]["containers"][0]["command"], json!(["work", "hard"]));
    let now = kubectl.json("get job now").await;
    assert_eq!(now["metadata"]["ownerReferences"][0]["name"], "often", "{now}");
    assert_eq!(now["metadata"]["annotations"], json!({"cronjob.kubernetes.io/instantiate": "manual"}));
    let described = kubectl.squeezed("describe cronjob often").await;
    assert!(described.contains("Schedule: */5 * * * *\nConcurrency Policy: Allow\n"), "{described}");

    let done = json!({"startTime": "2026-01-02T03:04:05Z", "completionTime": "2026-01-02T03:04:15Z", "succeeded": 1,
        "uncountedTerminatedPods": {}, "conditions": [
            {"type": "SuccessCriteriaMet", "status": "True"},
            {"type": "Complete", "status": "True"}]});
    kubectl.set_status("job once", &done).await;
    assert_eq!(kubectl.ok("wait --for=condition=complete job/once").await, "job.batch/once condition met\n");
    let rows = kubectl.squeezed("get job once").await;
    assert!(rows.contains("\nonce Complete 1/1 10s "), "{rows}");
    let text = kubectl.refused("create cronjob never --image=registry.example/job --schedule=never").await;
    assert!(text.contains("spec.schedule: Invalid value: \"never\""), "{text}");
}

#[tokio::test]
async fn limits_and_budgets_are_made() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.create("quota q --hard=cpu=1.5,pods=2").await;
    assert_eq!(kubectl.json("get quota q").await["spec"]["hard"], json!({"cpu": "1500m", "pods": "2"}));
    let text = kubectl.refused("create quota r --hard=cpu=1 --scopes=BestEffort").await;
    assert!(
        text.contains("spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"),
        "{text}"
    );
    kubectl
        .set_status("quota q", &json!({"hard": {"cpu": "1500m", "pods": "2"}, "used": {"cpu": "1", "pods": "1"}}))
        .await;
    let described = kubectl.squeezed("describe quota q").await;
    assert!(described.contains("\ncpu 1 1500m\npods 1 2\n"), "{described}");

    kubectl.create("poddisruptionbudget budget --selector=app=web --min-available=50%").await;
    let rows = kubectl.squeezed("get pdb").await;
    assert!(rows.contains("\nbudget 50% N/A 0 "), "{rows}");
    kubectl.create("priorityclass urgent --value=1000 --description=soon").await;
    let rows = kubectl.squeezed("get priorityclass urgent").await;
    assert!(rows.contains("\nurgent 1000 false "), "{rows}");
    let text = kubectl.refused("create priorityclass urgent --value=2000").await;
    assert!(text.contains("\"urgent\" already exists"), "{text}");
    kubectl.create("ingress door --rule=example.com/path=web:80 --class=main").await;
    let rows = kubectl.squeezed("get ingress").await;
    assert!(rows.contains("\ndoor main example.com 80 "), "{rows}");
}

#[tokio::test]
async fn rights_are_made_and_asked_for() {
    let (_server, kubectl) = start_with_controllers().await;
    kubectl.create("role reader --verb=get,list --resource=pods,pods/log").await;
    kubectl.create("rolebinding readers --role=reader --user=jane --serviceaccount=default:robot").await;
    kubectl.create("clusterrole nodes --verb=get --resource=nodes").await;
    kubectl.create("clusterrolebinding nodes --clusterrole=nodes --group=operators").await;
    let described = kubectl.squeezed("describe role reader").await;
    assert!(described.contains("\npods [] [] [get list]\n"), "{described}");
    let described = kubectl.squeezed("describe rolebinding readers").await;
    assert!(described.contains("\nUser jane\nServiceAccount robot default\n"), "{described}");
    let rows = kubectl.squeezed("get rolebindings -o wide").await;
    assert!(rows.contains("\nreaders Role/reader ") && rows.contains(" jane default/robot\n"), "{rows}");
    let text = kubectl.refused(r#"patch rolebinding readers --type=merge -p '{"roleRef":{"name":"other"}}'"#).await;
    assert!(text.contains("roleRef: Invalid value") && text.contains("cannot change roleRef"), "{text}");

    assert_eq!(kubectl.ok("auth can-i create pods").await, "yes\n");
    let who = kubectl.squeezed("auth whoami").await;
    assert!(who.contains("\nGroups [system:masters system:authenticated]\n"), "{who}");
    kubectl.create("serviceaccount robot").await;
    let token = kubectl.ok("create token robot --duration=10m").await;
    assert_eq!(token.trim().split('.').count(), 3, "a signed token: {token}");
    let text = kubectl.refused("create token nobody").await;
    assert!(text.contains("serviceaccounts \"nobody\" not found"), "{text}");
}
