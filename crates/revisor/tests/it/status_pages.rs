//! What the server is, behaves as and was started with can be seen: on its pages, in its metrics, and beside it.

use std::process::Command;

use serde_json::Value;

use crate::client::{Client, Reply};
use crate::harness::{GUEST_TOKEN, SILENT, Server, eventually};

const STATUSZ: &str = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz";
const FLAGZ: &str = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz";

async fn ask(client: &Client, path: &str, header: &str, value: &str) -> Reply {
    client.send(http::Method::GET, path, &[(header, value)], "").await
}

/// The lines of a metric.
async fn series(client: &Client, name: &str) -> Vec<String> {
    let reply = client.get("/metrics").await.expect(200);
    String::from_utf8_lossy(&reply.body)
        .lines()
        .filter(|line| line.starts_with(&format!("{name}{{")))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn the_versions_and_flags_in_force_are_shown() {
    let server = Server::start(&["--emulation-version=1.36", "--min-compatibility-version=1.34"]).await;
    let client = server.client();
    let status = ask(&client, "/statusz", "accept", STATUSZ).await.expect(200).json();
    assert_eq!((&status["emulationVersion"], &status["minCompatibilityVersion"]), (&"1.36".into(), &"1.34".into()));
    let stored = status["storageVersions"].as_array().expect("a list");
    let classes = stored.iter().find(|stored| stored["resource"] == "volumeattributesclasses").expect("are stored");
    assert_eq!(classes["apiVersion"], "storage.k8s.io/v1");
    let flags = ask(&client, "/flagz", "accept", FLAGZ).await.expect(200).json();
    assert_eq!(flags["flags"]["min-compatibility-version"], "[1.34]");
    assert_eq!(flags["flags"]["emulated-version"], "[1.36]");
    let tokens = flags["flags"]["token-auth-file"].as_str().expect("a file");
    assert!(!flags.to_string().contains(GUEST_TOKEN) && tokens.ends_with("tokens.csv"), "{flags}");
    let text = ask(&client, "/statusz", "accept", "text/plain").await.expect(200).text();
    assert!(text.contains("\nEmulation version: 1.36\n"), "{text}");
    ask(&client, "/flagz", "accept", "application/json").await.fails(406, "NotAcceptable");
    for path in ["/statusz", "/flagz"] {
        let index = client.get("/").await.expect(200).json();
        assert!(index["paths"].as_array().is_some_and(|paths| paths.contains(&path.into())), "{index}");
        client.apart().with_token(GUEST_TOKEN).get(path).await.fails(403, "Forbidden");
    }
    let [line] = &series(&client, "version_info").await[..] else { panic!("one version") };
    assert!(line.contains("emulation=\"1.36\",min_compat=\"1.34\"} 1"), "{line}");
    server.assert_well().await;
}

#[tokio::test]
async fn pages_come_in_cbor_where_it_is_switched_on() {
    let server = Server::start(&["--feature-gates=CBORServingAndStorage=true"]).await;
    let client = server.client();
    let kind = "v=v1beta1;g=config.k8s.io;as=Flagz";
    let reply = ask(&client, "/flagz", "accept", &format!("application/cbor;{kind}")).await.expect(200);
    assert_eq!(reply.header("content-type"), Some("application/cbor;g=config.k8s.io;v=v1beta1;as=Flagz"));
    assert_eq!(reply.body[..3], [0xd9, 0xd9, 0xf7]);
    ask(&client, "/flagz", "accept", &format!("application/vnd.kubernetes.protobuf;{kind}")).await.expect(406);
    server.assert_well().await;
}

#[tokio::test]
async fn pages_are_where_the_release_has_them() {
    let server = Server::start(&["--emulation-version=1.35"]).await;
    let client = server.client();
    for path in ["/statusz", "/flagz"] {
        assert_eq!(client.get(path).await.code, 404, "{path}");
    }
    let flags = ["--emulation-version=1.35", "--feature-gates=ComponentFlagz=true", "--allow-alpha-under-emulation"];
    let server = Server::start(&flags).await;
    let client = server.client();
    client.get("/flagz").await.expect(200);
    assert_eq!(client.get("/statusz").await.code, 404);
}

#[tokio::test]
async fn components_that_are_too_old_or_too_new_are_seen() {
    let server = Server::start(&[
        "--emulation-version=1.35",
        "--feature-gates=ComponentStatusz=true",
        "--allow-alpha-under-emulation",
    ])
    .await;
    let client = server.client();
    for agent in [
        "kubectl/v1.33.1 (linux/amd64) kubernetes/abc",
        "kubectl/v1.34.0 (linux/amd64) kubernetes/abc",
        "kubelet/v1.36.0 (linux/amd64) kubernetes/abc",
        "kubelet/v1.32.0 (linux/amd64) kubernetes/abc",
        "kube-controller-manager/v1.33.0 (linux/amd64) kubernetes/abc/leader-election",
        "curl/8.5.0",
    ] {
        ask(&client, "/api/v1/namespaces", "user-agent", agent).await.expect(200);
    }
    assert_eq!(
        series(&client, "revisor_requests_outside_skew_total").await,
        ["kube-controller-manager\",version=\"1.33", "kubectl\",version=\"1.33", "kubelet\",version=\"1.36"]
            .map(|labels| format!("revisor_requests_outside_skew_total{{component=\"{labels}\"}} 1"))
    );
    let status = ask(&client, "/statusz", "accept", STATUSZ).await.expect(200).json();
    let clients = status["clientsOutsideSkew"].as_array().expect("a list");
    let shown: Vec<&Value> = clients.iter().map(|client| &client["userAgent"]).collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert_eq!(shown[1], "kubectl/v1.33.1 (linux/amd64) kubernetes/abc");
}

#[tokio::test]
async fn a_server_says_that_it_is_there_and_takes_it_back() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let selected = format!("{leases}?labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver");
    let lease = eventually(async || client.get(&selected).await.expect(200).json()["items"].get(0).cloned()).await;
    let name = lease["metadata"]["name"].as_str().expect("a name");
    assert!(lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| holder.starts_with(name)), "{lease}");
    let status = ask(&client, "/statusz", "accept", STATUSZ).await.expect(200).json();
    assert_eq!((&status["servers"][0]["name"], &status["servers"][0]["withinSkew"]), (&name.into(), &true.into()));
    let (stopped, ended) = server.terminate().await;
    assert!(ended.success(), "{ended}");
    let server = stopped.with_flags(&SILENT).start().await;
    assert_eq!(server.client().get(leases).await.expect(200).names(), Vec::<String>::new());
}

#[test]
fn gates_and_storage_versions_are_printed() {
    for (arguments, code, said) in [
        (&["gates", "--emulation-version=1.35"][..], 0, "ComponentStatusz"),
        (&["gates", "--output=json"], 0, "\"name\": \"ComponentStatusz\""),
        (&["storage-versions", "-o", "json"], 0, "\"storageVersion\": \"apps/v1\""),
        (&["gates", "--emulation-version=1.32"], 1, "revisor: emulation version 1.32 is not between [1.33, 1.36]"),
        (&["storage-versions", "--feature-gates=No=1"], 1, "revisor: unrecognized feature gate: No"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_revisor")).args(arguments).output().expect("can be run");
        let printed = if code == 0 { &output.stdout } else { &output.stderr };
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(String::from_utf8_lossy(printed).contains(said), "{arguments:?}");
    }
}
