//! `--runtime-config`: what is switched on is there everywhere, what is switched off nowhere, and the versions of one
//! resource are one object.

use serde_json::{Value, json};

use crate::client::{Client, MERGE, Reply, name_of};
use crate::harness::{Process, Server};

const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const BETA_RANGES: &str = "/apis/networking.k8s.io/v1beta1/servicecidrs";

/// The names of the resources that discovery shows of a version.
async fn discovered(client: &Client, version: &str) -> Vec<String> {
    let list = client.get(version).await.expect(200).json();
    let resources = list["resources"].as_array().expect("a list").clone();
    resources.iter().map(|resource| resource["name"].as_str().expect("a name").to_owned()).collect()
}

/// The versions that discovery shows of a group.
async fn versions(client: &Client, group: &str) -> Vec<String> {
    let group = client.get(&format!("/apis/{group}")).await.expect(200).json();
    let versions = group["versions"].as_array().expect("a list").clone();
    versions.iter().map(|version| version["version"].as_str().expect("a version").to_owned()).collect()
}

/// The paths that OpenAPI describes of a version.
async fn described(client: &Client, version: &str) -> Vec<String> {
    let document = client.get(&format!("/openapi/v3{version}")).await.expect(200).json();
    document["paths"].as_object().expect("paths").keys().cloned().collect()
}

#[tokio::test]
async fn what_is_switched_off_is_nowhere() {
    let server = Server::start(&["--runtime-config=apps/v1/deployments=false,batch/v1=false"]).await;
    let client = server.client();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    for path in [deployments, "/apis/apps/v1/deployments", &format!("{deployments}/a/scale"), "/apis/batch/v1/jobs"] {
        let reply = client.get(path).await;
        assert_eq!(reply.code, 404, "{path}: {}", reply.text());
    }
    let object = json!({"metadata": {"name": "a"}});
    assert_eq!(client.post(deployments, &object).await.code, 404);

    let shown = discovered(&client, "/apis/apps/v1").await;
    assert!(shown.iter().all(|name| !name.starts_with("deployments")), "{shown:?}");
    assert!(shown.contains(&"replicasets".to_owned()), "{shown:?}");
    assert_eq!(client.get("/apis/batch").await.code, 404);
    assert_eq!(client.get("/apis/batch/v1").await.code, 404);
    let groups = client.get("/apis").await.expect(200).json();
    let groups = groups["groups"].as_array().expect("a list");
    assert!(groups.iter().all(|group| group["name"] != "batch"), "{groups:?}");

    let paths = described(&client, "/apis/apps/v1").await;
    assert!(paths.iter().all(|path| !path.contains("deployments")), "{paths:?}");
    assert!(paths.iter().any(|path| path.contains("replicasets")), "{paths:?}");
    let root = client.get("/openapi/v3").await.expect(200).json();
    assert_eq!(root["paths"]["apis/batch/v1"], Value::Null);
    server.assert_well().await;
}

#[tokio::test]
async fn a_server_starts_and_writes_without_what_it_makes_by_itself() {
    for off in [
        "scheduling.k8s.io/v1=false",
        "flowcontrol.apiserver.k8s.io/v1/flowschemas=false,rbac.authorization.k8s.io/v1=false",
        "apiregistration.k8s.io/v1=false",
        "networking.k8s.io/v1=false,storage.k8s.io/v1=false,node.k8s.io/v1=false",
        "networking.k8s.io/v1=false,networking.k8s.io/v1beta1=true",
        "v1/serviceaccounts=false,v1/limitranges=false,v1/resourcequotas=false,v1/endpoints=false,v1/services=false",
        "v1/events=false,discovery.k8s.io/v1=false",
    ] {
        let server = Server::start(&[&format!("--runtime-config={off}"), "--controllers=*"]).await;
        let client = server.client();
        let map = json!({"metadata": {"name": "a"}});
        client.post("/api/v1/namespaces/default/configmaps", &map).await.expect(201);
        let pod = json!({
            "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": false},
        });
        // Whether a pod can do without its account is for the account to say; it is an answer, not a failure.
        let reply = client.post("/api/v1/namespaces/default/pods", &pod).await;
        assert!(matches!(reply.code, 201 | 403), "{off}: {}", reply.text());
        let claim = json!({
            "metadata": {"name": "a"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        client.post("/api/v1/namespaces/default/persistentvolumeclaims", &claim).await.expect(201);
        client.delete("/api/v1/namespaces/default/configmaps/a").await.expect(200);
        server.assert_well().await;
        server.restart_in_order().await.assert_well().await;
    }
}

#[tokio::test]
async fn budgets_protect_pods_also_while_nobody_can_see_them() {
    let server = Server::start(&["--disable-admission-plugins=ServiceAccount"]).await;
    let client = server.client();
    let pods = "/api/v1/namespaces/default/pods";
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let pod = json!({"metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.post(pods, &pod).await.expect(201);
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    client.patch(&format!("{pods}/p/status"), MERGE, &running).await.expect(200);
    let budget = json!({"metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}});
    client.post(budgets, &budget).await.expect(201);
    let flags = ["--disable-admission-plugins=ServiceAccount", "--runtime-config=policy/v1=false"];
    let (stopped, _) = server.terminate().await;
    let server = stopped.with_flags(&flags).start().await;
    let client = server.client();
    client.get(budgets).await.expect(404);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    client.post(&format!("{pods}/p/eviction"), &eviction).await.fails(429, "TooManyRequests");
    client.get(&format!("{pods}/p")).await.expect(200);
}

#[tokio::test]
async fn a_server_without_what_it_cannot_do_without_does_not_start() {
    for off in ["api/ga=false", "api/all=false,v1=true", "flowcontrol.apiserver.k8s.io/v1=false"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let arguments = [
            "serve".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--data-dir={}", folder.path().join("data").display()),
            format!("--runtime-config={off}"),
        ];
        let mut process = Process::start(&arguments, &folder.path().join("log"));
        assert_eq!(process.ended().await.code(), Some(1), "{off}");
        let (printed, log) = process.said();
        assert_eq!(printed, "", "{off}");
        let key = off.split('=').next().unwrap_or_default();
        let want = format!("--runtime-config={key}=false conflicts with --enable-priority-and-fairness=true");
        assert!(log.contains(&want), "{log}");
        assert!(!folder.path().join("data").exists(), "nothing was begun");
    }
}

#[tokio::test]
async fn everything_can_be_switched_on() {
    let server = Server::start(&["--runtime-config=api/all=true", "--feature-gates=AllAlpha=true,AllBeta=true"]).await;
    let client = server.client();
    assert_eq!(versions(&client, "resource.k8s.io").await, ["v1", "v1beta2", "v1beta1", "v1alpha3"]);
    assert_eq!(versions(&client, "scheduling.k8s.io").await, ["v1", "v1alpha2"]);
    assert_eq!(
        discovered(&client, "/apis/resource.k8s.io/v1alpha3").await,
        [
            "devicetaintrules",
            "devicetaintrules/status",
            "resourcepoolstatusrequests",
            "resourcepoolstatusrequests/status"
        ]
    );
    let candidate = json!({
        "leaseName": "l", "binaryVersion": "1.36.0", "emulationVersion": "1.36.0", "strategy": "OldestEmulationVersion",
    });
    let templates = json!([{"name": "t", "schedulingPolicy": {"basic": {}}}]);
    let template = |name: &str| json!({"workload": {"workloadName": "a", "podGroupTemplateName": name}});
    let group = |name: &str| json!({"schedulingPolicy": {"basic": {}}, "podGroupTemplateRef": template(name)});
    let in_default = "/namespaces/default";
    for (version, namespace, plural, name, spec) in [
        ("coordination.k8s.io/v1alpha2", in_default, "leasecandidates", "a", candidate),
        ("scheduling.k8s.io/v1alpha2", in_default, "workloads", "a", json!({"podGroupTemplates": templates})),
        ("scheduling.k8s.io/v1alpha2", in_default, "podgroups", "a", group("t")),
        ("resource.k8s.io/v1alpha3", "", "resourcepoolstatusrequests", "a", json!({"driver": "d"})),
        (
            "storagemigration.k8s.io/v1beta1",
            "",
            "storageversionmigrations",
            "a",
            json!({"resource": {"resource": "pods"}}),
        ),
        ("internal.apiserver.k8s.io/v1alpha1", "", "storageversions", "apps.deployments", json!({})),
    ] {
        let path = format!("/apis/{version}{namespace}/{plural}");
        let made = client.post(&path, &json!({"metadata": {"name": name}, "spec": spec})).await.expect(201).json();
        assert_eq!(client.get(&format!("{path}/{name}")).await.expect(200).json(), made, "{path}");
        let paths = described(&client, &format!("/apis/{version}")).await;
        assert!(paths.iter().any(|path| path.ends_with(plural)), "{plural}: {paths:?}");
    }
    let missing = json!({"metadata": {"name": "b"}, "spec": group("other")});
    let refused = client.post("/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups", &missing).await;
    let status = refused.fails(403, "Forbidden");
    assert!(
        status["message"].as_str().expect("a message").contains("PodGroupTemplate \"other\" not found"),
        "{status}"
    );
}

#[tokio::test]
async fn versions_of_a_resource_are_one_object() {
    let server = Server::start(&["--runtime-config=networking.k8s.io/v1beta1=true"]).await;
    let client = server.client();
    let start = client.get(RANGES).await.expect(200).version();
    let from = format!("resourceVersion={start}");
    let (mut stable, mut beta) = (client.watch(RANGES, &from).await, client.watch(BETA_RANGES, &from).await);

    let range = json!({"metadata": {"name": "a"}, "spec": {"cidrs": ["10.9.0.0/24"]}});
    let made = client.post(BETA_RANGES, &range).await.expect(201);
    assert_eq!(made.json()["apiVersion"], "networking.k8s.io/v1beta1");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = client.patch(&format!("{RANGES}/a"), MERGE, &labelled).await.expect(200);
    assert_eq!(changed.json()["apiVersion"], "networking.k8s.io/v1");
    client.delete(&format!("{BETA_RANGES}/a")).await.expect(200);

    for (watch, version) in [(&mut stable, "networking.k8s.io/v1"), (&mut beta, "networking.k8s.io/v1beta1")] {
        let added = watch.expect("ADDED", "a", made.version()).await;
        let modified = watch.expect("MODIFIED", "a", changed.version()).await;
        let deleted = watch.event().await;
        assert_eq!((deleted.kind.as_str(), name_of(&deleted.object)), ("DELETED", "a"));
        for object in [added, modified, deleted.object] {
            assert_eq!(object["apiVersion"], version, "{object}");
            assert_eq!(object["spec"]["cidrs"], json!(["10.9.0.0/24"]), "{object}");
        }
    }
}

#[tokio::test]
async fn both_versions_read_the_same_and_after_a_restart() {
    let flags =
        ["--runtime-config=networking.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true,resource.k8s.io/v1alpha3=true"];
    let server = Server::start(&flags).await;
    let rules = |version: &str| format!("/apis/resource.k8s.io/{version}/devicetaintrules");
    let rule = json!({"metadata": {"name": "a"}, "spec": {"taint": {"key": "k", "effect": "NoExecute"}}});
    let range = json!({"metadata": {"name": "a"}, "spec": {"cidrs": ["10.9.0.0/24"]}});
    server.client().post(&rules("v1beta2"), &rule).await.expect(201);
    server.client().post(BETA_RANGES, &range).await.expect(201);

    let same = |one: &Reply, other: &Reply| {
        let (mut one, mut other) = (one.json(), other.json());
        assert_ne!(one["apiVersion"], other["apiVersion"]);
        for object in [&mut one, &mut other] {
            object.as_object_mut().expect("an object").remove("apiVersion");
        }
        assert_eq!(one, other);
    };
    let server = server.restart_in_order().await;
    let client = server.client();
    for (one, other) in [(RANGES.to_owned(), BETA_RANGES.to_owned()), (rules("v1alpha3"), rules("v1beta2"))] {
        let object = |path: &str| format!("{path}/a");
        same(&client.get(&object(&one)).await.expect(200), &client.get(&object(&other)).await.expect(200));
        same(&client.get(&one).await.expect(200), &client.get(&other).await.expect(200));
    }
    // What is switched off again is not shown, and what was written stays.
    let (stopped, _) = server.terminate().await;
    let server = stopped.with_flags(&[]).start().await;
    assert_eq!(server.client().get(BETA_RANGES).await.code, 404);
    server.client().get(&format!("{RANGES}/a")).await.expect(200);
    assert_eq!(server.client().get(&rules("v1beta2")).await.code, 404);
}

#[tokio::test]
async fn what_is_no_longer_served_is_no_longer_registered_after_the_next_start() {
    const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
    let registered = async |client: &Client| client.get(SERVICES).await.expect(200).names();
    let server = Server::start(&["--runtime-config=networking.k8s.io/v1beta1=true"]).await;
    let client = server.client();
    let beta = "v1beta1.networking.k8s.io".to_owned();
    assert!(registered(&client).await.contains(&beta));
    // One is a client's, one is no longer the server's, and one was changed.
    let service = |name: &str, labels: Value| {
        let (version, group) = name.split_once('.').expect("a version and a group");
        json!({"metadata": {"name": name, "labels": labels}, "spec": {
            "group": group, "version": version, "groupPriorityMinimum": 1, "versionPriority": 1,
            "service": {"namespace": "default", "name": "a"}, "insecureSkipTLSVerify": true,
        }})
    };
    client.post(SERVICES, &service("v1.mine.example", json!({"a": "b"}))).await.expect(201);
    let mark = json!({"kube-aggregator.kubernetes.io/automanaged": "true"});
    client.post(SERVICES, &service("v1.stale.example", mark)).await.expect(201);
    let changed = json!({"spec": {"versionPriority": 7}});
    client.patch(&format!("{SERVICES}/v1.apps"), MERGE, &changed).await.expect(200);

    let (stopped, _) = server.terminate().await;
    let server = stopped.with_flags(&[]).start().await;
    let names = registered(&server.client()).await;
    for (name, is_there) in [(&*beta, false), ("v1.stale.example", false), ("v1.mine.example", true), ("v1.apps", true)]
    {
        assert_eq!(names.iter().any(|known| known == name), is_there, "{name} in {names:?}");
    }
    let apps = server.client().get(&format!("{SERVICES}/v1.apps")).await.expect(200).json();
    assert_eq!(apps["spec"]["versionPriority"], 15);
    // Where nothing changed, nothing is written.
    let server = server.restart_in_order().await;
    let again = server.client().get(&format!("{SERVICES}/v1.apps")).await.expect(200).json();
    assert_eq!(again, apps);
}

#[tokio::test]
async fn budgets_protect_pods_also_when_they_are_not_served() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let pods = "/api/v1/namespaces/default/pods";
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let pod = json!({"metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let account = json!({"metadata": {"name": "default"}});
    client.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    client.post(pods, &pod).await.expect(201);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let status = json!({"status": {"phase": "Running", "conditions": ready}});
    client.patch(&format!("{pods}/p/status"), MERGE, &status).await.expect(200);
    let budget =
        json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    client.post(budgets, &budget).await.expect(201);
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1,
        "desiredHealthy": 1, "expectedPods": 1}});
    client.patch(&format!("{budgets}/b/status"), MERGE, &status).await.expect(200);

    let (stopped, _) = server.terminate().await;
    let server = stopped.with_flags(&["--controllers=none", "--runtime-config=policy/v1=false"]).start().await;
    let client = server.client();
    assert_eq!(client.get(budgets).await.code, 404, "they are not served");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    client.post(&format!("{pods}/p/eviction"), &eviction).await.fails(429, "TooManyRequests");
}
