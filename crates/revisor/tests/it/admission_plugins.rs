//! Admission plugins and the flags that switch them: what those notice who use the server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::client::{Client, MERGE};
use crate::custom::certified;
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, config_map};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Lets somebody do something with these resources, cluster-wide.
async fn grant(admin: &Client, user: &str, rules: Value) {
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": user}, "rules": rules});
    admin.post(&format!("{roles}/clusterroles"), &role).await.expect(201);
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    admin.post(&format!("{roles}/clusterrolebindings"), &binding).await.expect(201);
}

fn signing_request(name: &str, organization: &str) -> Value {
    let key = KeyPair::generate().expect("keys can be made");
    let mut params = CertificateParams::new(Vec::new()).expect("no names are needed");
    params.distinguished_name.push(DnType::CommonName, "anna");
    params.distinguished_name.push(DnType::OrganizationName, organization);
    let pem = params.serialize_request(&key).expect("it can be signed").pem().expect("it can be written");
    json!({
        "metadata": {"name": name},
        "spec": {"request": STANDARD.encode(pem), "signerName": CLIENT_SIGNER, "usages": ["client auth"]},
    })
}

#[tokio::test]
async fn only_who_may_act_for_a_signer_approves_and_signs() {
    let server = Server::start(&[]).await;
    let admin = server.client();
    // All that RBAC demands, and no right to the signer.
    let writing = json!({
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"],
        "verbs": ["*"],
    });
    grant(&admin, "anna", json!([writing])).await;
    let signers = |verbs: &[&str], names: &[&str]| json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": names, "verbs": verbs});
    grant(&admin, "approver", json!([writing, signers(&["approve"], &[CLIENT_SIGNER])])).await;
    grant(&admin, "signer", json!([writing, signers(&["sign"], &["kubernetes.io/*"])])).await;
    let [anna, approver, signer] = ["anna", "approver", "signer"].map(|user| admin.acting_as(user));

    let refused = anna.post(REQUESTS, &signing_request("root", "system:masters")).await.fails(403, "Forbidden");
    assert_eq!(
        refused["message"],
        "certificatesigningrequests.certificates.k8s.io \"root\" is forbidden: use of \
         kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
    let mut request = anna.post(REQUESTS, &signing_request("a", "guests")).await.expect(201).json();
    request["status"]["conditions"] =
        json!([{"type": "Approved", "status": "True", "reason": "Test", "message": "yes"}]);
    let approval = format!("{REQUESTS}/a/approval");
    for stranger in [&anna, &signer] {
        let refused = stranger.put(&approval, &request).await.fails(403, "Forbidden");
        assert_eq!(
            refused["message"],
            "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to approve requests \
             with signerName \"kubernetes.io/kube-apiserver-client\""
        );
    }
    approver.put(&approval, &request).await.expect(200);

    let status = format!("{REQUESTS}/a/status");
    let failed = json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "reason": "Test", "message": "yes"},
        {"type": "Failed", "status": "True", "reason": "Test", "message": "no"},
    ]}});
    let refused = approver.patch(&status, MERGE, &failed).await.fails(403, "Forbidden");
    assert_eq!(
        refused["message"],
        "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to sign requests with \
         signerName \"kubernetes.io/kube-apiserver-client\""
    );
    signer.patch(&status, MERGE, &failed).await.expect(200);
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:v1"}]}})
}

#[tokio::test]
async fn plugins_are_switched_by_flags() {
    let flags = [
        "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds",
        "--enable-admission-plugins=NodeRestriction,AlwaysPullImages",
        "--enable-admission-plugins=NamespaceAutoProvision,DenyServiceExternalIPs",
    ];
    let server = Server::start(&flags).await;
    let admin = server.client();
    let made = admin.post(PODS, &pod("a")).await.expect(201).json();
    assert_eq!(made["spec"].get("serviceAccountName"), None, "{made}");
    assert_eq!(made["spec"].get("tolerations"), None, "{made}");
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");

    admin.post("/api/v1/namespaces/on-demand/configmaps", &config_map("c", "1")).await.expect(201);
    admin.get("/api/v1/namespaces/on-demand").await.expect(200);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}});
    let refused = admin.post("/api/v1/namespaces/default/services", &service).await.fails(403, "Forbidden");
    assert_eq!(refused["message"], "services \"s\" is forbidden: Use of external IPs is denied by admission control");

    let resources = json!(["nodes", "pods", "pods/status", "pods/eviction", "persistentvolumeclaims/status"]);
    let rules = json!([{"apiGroups": [""], "resources": resources, "verbs": ["*"]}]);
    grant(&admin, "system:node:n", rules).await;
    let as_node = [("impersonate-user", "system:node:n"), ("impersonate-group", "system:nodes")];
    let node = async |method: Method, path: &str, body: Value| {
        let headers = [as_node[0], as_node[1], ("content-type", "application/json")];
        admin.send(method, path, &headers, body.to_string()).await
    };
    let labelled = |label: &str| json!({"metadata": {"name": "n", "labels": {label: "x"}}});
    let refused = node(Method::POST, "/api/v1/nodes", labelled("node-restriction.kubernetes.io/secure")).await;
    assert_eq!(
        refused.fails(403, "Forbidden")["message"],
        "nodes \"n\" is forbidden: node \"n\" is not allowed to set the following labels: \
         node-restriction.kubernetes.io/secure"
    );
    node(Method::POST, "/api/v1/nodes", labelled("kubernetes.io/hostname")).await.expect(201);
    let refused = node(Method::POST, "/api/v1/nodes", json!({"metadata": {"name": "other"}})).await;
    let refused = refused.fails(403, "Forbidden");
    assert_eq!(refused["message"], "nodes \"other\" is forbidden: node \"n\" is not allowed to modify node \"other\"");
    let refused = node(Method::POST, PODS, pod("b")).await.fails(403, "Forbidden");
    assert_eq!(
        refused["message"],
        "pods \"b\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n\" can only \
         create mirror pods"
    );
    let eviction = json!({"metadata": {"name": "none"}});
    let refused = node(Method::POST, &format!("{PODS}/none/eviction"), eviction).await.fails(404, "NotFound");
    assert_eq!(refused["message"], "pod \"none\" not found");
    // A kubelet tells how large a volume has become, and nothing else.
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({"metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let mut claim = admin.post(claims, &claim).await.expect(201).json();
    claim["status"]["capacity"] = json!({"storage": "1Gi"});
    let mut claim = node(Method::PUT, &format!("{claims}/c/status"), claim).await.expect(200).json();
    claim["metadata"]["labels"] = json!({"a": "b"});
    node(Method::PUT, &format!("{claims}/c/status"), claim).await.fails(403, "Forbidden");
    let flagz = admin.get("/flagz").await.expect(200).text();
    assert!(flagz.contains("disable-admission-plugins: [ServiceAccount,DefaultTolerationSeconds]"), "{flagz}");
}

#[tokio::test]
async fn owners_are_named_by_those_who_could_delete_and_hold_them() {
    let server = Server::start(&["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]).await;
    let admin = server.client();
    let owner = admin.post(CONFIG_MAPS, &config_map("owner", "1")).await.expect(201).json();
    let verbs = json!(["create", "get", "update", "patch"]);
    grant(&admin, "anna", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}])).await;
    let anna = admin.acting_as("anna");
    let owned = |name: &str, blocks: bool| {
        let mut object = config_map(name, "1");
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        }]);
        object
    };
    anna.post(CONFIG_MAPS, &owned("a", false)).await.expect(201);
    let refused = anna.post(CONFIG_MAPS, &owned("b", true)).await.fails(403, "Forbidden");
    assert_eq!(
        refused["message"],
        "configmaps \"b\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't \
         set finalizers on: , <nil>"
    );
    // Who may not delete an object may not have others delete it.
    anna.post(CONFIG_MAPS, &config_map("c", "1")).await.expect(201);
    let refused = anna.put(&format!("{CONFIG_MAPS}/c"), &owned("c", false)).await.fails(403, "Forbidden");
    assert_eq!(
        refused["message"],
        "configmaps \"c\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>"
    );
    admin.put(&format!("{CONFIG_MAPS}/c"), &owned("c", true)).await.expect(200);
}

/// Writes a configuration and returns the flag that names it.
fn config_flag(folder: &Path, plugins: &str) -> String {
    let path = folder.join("admission.yaml");
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n";
    std::fs::write(&path, format!("{head}{plugins}")).expect("a file can be written");
    format!("--admission-control-config-file={}", path.display())
}

#[tokio::test]
async fn a_file_tells_plugins_how_to_work() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plugins = "
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {enforce: baseline}
    exemptions: {usernames: [trusted], namespaces: [kube-system]}
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits: [{type: Namespace, qps: 1, burst: 1}]
- name: ResourceQuota
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ResourceQuotaConfiguration
    limitedResources: [{resource: secrets, matchContains: [secrets]}]
";
    let config = config_flag(folder.path(), plugins);
    let flags = ["--enable-admission-plugins=EventRateLimit", "--disable-admission-plugins=ServiceAccount", &config];
    let server = Server::start(&flags).await;
    let admin = server.client();
    let mut privileged = pod("p");
    privileged["spec"]["hostNetwork"] = json!(true);
    let refused = admin.post(PODS, &privileged).await.fails(403, "Forbidden");
    assert_eq!(
        refused["message"],
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    grant(&admin, "trusted", everything).await;
    admin.acting_as("trusted").post(PODS, &privileged).await.expect(201);
    admin.post("/api/v1/namespaces/kube-system/pods", &privileged).await.expect(201);

    let events = "/api/v1/namespaces/default/events";
    let event = |name: &str| {
        let object = json!({"kind": "Pod", "namespace": "default", "name": "p"});
        json!({"metadata": {"name": name}, "involvedObject": object})
    };
    admin.post(events, &event("one")).await.expect(201);
    let refused = admin.post(events, &event("two")).await.fails(429, "TooManyRequests");
    assert_eq!(refused["message"], "Too many requests: limit reached on type Namespace for key default");

    let secret = json!({"metadata": {"name": "s"}});
    let refused = admin.post("/api/v1/namespaces/default/secrets", &secret).await.fails(403, "Forbidden");
    assert_eq!(refused["message"], "secrets \"s\" is forbidden: insufficient quota to consume: count/secrets,secrets");
    admin.post(CONFIG_MAPS, &config_map("c", "1")).await.expect(201);
}

/// A webhook that lets images of one version run, for those who show the right token. Runs until it is dropped.
struct ImagePolicy {
    task: tokio::task::JoinHandle<()>,
    asked: Arc<AtomicUsize>,
}

impl Drop for ImagePolicy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ImagePolicy {
    /// Starts it and writes the kubeconfig with which it is reached.
    async fn start(kubeconfig: &Path) -> ImagePolicy {
        let (acceptor, authority) = certified("images.example.com");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let address = listener.local_addr().expect("it has an address");
        let authority = STANDARD.encode(authority);
        let text = json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {
                "server": format!("https://{address}/policy"), "certificate-authority-data": authority,
            }}],
            "users": [{"name": "u", "user": {"token": "let-me-ask"}}],
        });
        std::fs::write(kubeconfig, text.to_string()).expect("a file can be written");
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, count) = (acceptor.clone(), count.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request| {
                        count.fetch_add(1, Ordering::SeqCst);
                        judge(request)
                    });
                    // It ends when either side hangs up.
                    drop(
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await,
                    );
                });
            }
        });
        ImagePolicy { task, asked }
    }
}

async fn judge(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let is_known = request.headers().get("authorization").is_some_and(|token| token == "Bearer let-me-ask");
    let body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
    let mut review: Value = serde_json::from_slice(&body)?;
    let images = review["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let is_good = |image: &Value| image["image"].as_str().is_some_and(|image| image.ends_with(":v1"));
    let is_allowed = is_known && images.iter().all(is_good);
    review["status"] = json!({"allowed": is_allowed, "reason": if is_allowed { "" } else { "only v1" }});
    let answer = Response::builder().header("content-type", "application/json");
    answer.body(Full::new(review.to_string().into())).map_err(std::io::Error::other)
}

#[tokio::test]
async fn another_server_says_which_images_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kubeconfig = folder.path().join("kubeconfig");
    let policy = ImagePolicy::start(&kubeconfig).await;
    let told = format!(
        "- name: ImagePolicyWebhook\n  configuration: {{imagePolicy: {{kubeConfigFile: {}, retryBackoff: 1}}}}\n",
        kubeconfig.display()
    );
    let config = config_flag(folder.path(), &told);
    let flags =
        ["--enable-admission-plugins=ImagePolicyWebhook", "--disable-admission-plugins=ServiceAccount", &config];
    let server = Server::start(&flags).await;
    let admin = server.client();
    admin.post(PODS, &pod("good")).await.expect(201);
    admin.post(PODS, &pod("known")).await.expect(201);
    assert_eq!(policy.asked.load(Ordering::SeqCst), 1, "what was answered is remembered");
    let mut bad = pod("bad");
    bad["spec"]["containers"][0]["image"] = json!("i:v2");
    let refused = admin.post(PODS, &bad).await.fails(403, "Forbidden");
    assert_eq!(
        refused["message"],
        "pods \"bad\" is forbidden: image policy webhook backend denied one or more images: only v1"
    );
    drop(policy);
    let mut unknown = pod("unknown");
    unknown["spec"]["containers"][0]["image"] = json!("j:v1");
    let refused = admin.post(PODS, &unknown).await.fails(403, "Forbidden");
    assert!(refused["message"].as_str().is_some_and(|it| it.contains("/policy")), "{refused}");
}

/// One plugin that is off by default, what it is told, what is done, and what becomes of that.
struct Case {
    plugin: &'static str,
    told: &'static str,
    path: &'static str,
    object: Value,
    want: Result<(&'static str, Value), (u16, &'static str)>,
}

#[tokio::test]
async fn plugins_that_are_off_by_default_do_their_work_when_they_are_on() {
    const NAMED: &str = "/api/v1/namespaces/named/pods";
    let with_spec = |more: Value| {
        let mut pod = pod("p");
        for (name, value) in more.as_object().into_iter().flatten() {
            pod["spec"][name] = value.clone();
        }
        pod
    };
    let spread = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}]}});
    let gpu = json!([{"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "1"}}}]);
    let tolerated = json!([{"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]);
    let cases = [
        Case {
            plugin: "NamespaceExists",
            told: "",
            path: "/api/v1/namespaces/nowhere/configmaps",
            object: config_map("c", "1"),
            want: Err((404, "namespaces \"nowhere\" not found")),
        },
        Case {
            plugin: "LimitPodHardAntiAffinityTopology",
            told: "",
            path: PODS,
            object: with_spec(json!({"affinity": spread})),
            want: Err((
                403,
                "pods \"p\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but \
                 only key kubernetes.io/hostname is allowed",
            )),
        },
        Case {
            plugin: "ExtendedResourceToleration",
            told: "",
            path: PODS,
            object: with_spec(json!({"containers": gpu})),
            want: Ok(("/spec/tolerations", tolerated)),
        },
        Case {
            plugin: "AlwaysPullImages",
            told: "",
            path: PODS,
            object: with_spec(json!({})),
            want: Ok(("/spec/containers/0/imagePullPolicy", json!("Always"))),
        },
        Case {
            plugin: "PodNodeSelector",
            told: "configuration: {podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: 'pool=all', named: 'a=b'}}",
            path: PODS,
            object: with_spec(json!({})),
            want: Ok(("/spec/nodeSelector", json!({"pool": "all"}))),
        },
        Case {
            plugin: "PodNodeSelector",
            told: "configuration: {podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: 'pool=all', named: 'a=b'}}",
            path: NAMED,
            object: with_spec(json!({"nodeSelector": {"pool": "mine"}})),
            want: Err((
                403,
                "pods \"p\" is forbidden: pod node label selector conflicts with its namespace node label selector",
            )),
        },
        Case {
            plugin: "PodTolerationRestriction",
            told: "configuration: {apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration, default: [{key: x, operator: Exists}]}",
            path: PODS,
            object: with_spec(json!({})),
            want: Ok(("/spec/tolerations/0", json!({"key": "x", "operator": "Exists"}))),
        },
        Case {
            plugin: "PodTolerationRestriction",
            told: "configuration: {apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration, whitelist: [{key: x, operator: Exists}]}",
            path: PODS,
            object: with_spec(json!({"tolerations": [{"key": "y", "operator": "Exists"}]})),
            want: Err((
                500,
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its cluster whitelist",
            )),
        },
        Case {
            plugin: "DenyServiceExternalIPs",
            told: "",
            path: "/api/v1/namespaces/default/services",
            object: json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}}),
            want: Err((403, "services \"s\" is forbidden: Use of external IPs is denied by admission control")),
        },
        Case {
            plugin: "AlwaysDeny",
            told: "",
            path: CONFIG_MAPS,
            object: config_map("c", "1"),
            want: Err((403, "configmaps \"c\" is forbidden: admission control is denying all modifications")),
        },
    ];
    for Case { plugin, told, path, object, want } in cases {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = config_flag(folder.path(), &format!("- name: {plugin}\n  {told}\n"));
        let enable = format!("--enable-admission-plugins={plugin}");
        // These would add tolerations and demand an account.
        let disable = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds";
        let server = Server::start(&[&enable, disable, &config]).await;
        let admin = server.client();
        if path == NAMED {
            admin.post("/api/v1/namespaces", &json!({"metadata": {"name": "named"}})).await.expect(201);
        }
        let reply = admin.post(path, &object).await;
        match want {
            Ok((place, value)) => {
                assert_eq!(reply.expect(201).json().pointer(place), Some(&value), "{plugin}");
            }
            Err((code, message)) => {
                assert_eq!((reply.code, reply.json()["message"].as_str()), (code, Some(message)), "{plugin}");
            }
        }
    }
}

#[tokio::test]
async fn images_that_nobody_can_be_asked_about_run_if_that_is_wanted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kubeconfig = folder.path().join("kubeconfig");
    drop(ImagePolicy::start(&kubeconfig).await);
    let told = format!(
        "- name: ImagePolicyWebhook\n  configuration: {{imagePolicy: {{kubeConfigFile: {}, retryBackoff: 1, defaultAllow: true}}}}\n",
        kubeconfig.display()
    );
    let config = config_flag(folder.path(), &told);
    let flags =
        ["--enable-admission-plugins=ImagePolicyWebhook", "--disable-admission-plugins=ServiceAccount", &config];
    let server = Server::start(&flags).await;
    server.client().post(PODS, &pod("p")).await.expect(201);
}

#[tokio::test]
async fn the_older_flag_names_all_plugins() {
    let server = Server::start(&["--admission-control=NamespaceLifecycle,AlwaysPullImages"]).await;
    let made = server.client().post(PODS, &pod("a")).await.expect(201).json();
    assert_eq!(made["spec"].get("tolerations"), None, "{made}");
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");
}
