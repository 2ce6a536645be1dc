//! Encryption at rest in the whole program: nothing secret is plain on disk, keys are replaced while the server runs, and
//! what cannot be read any more stops a start or a reload, and nothing else.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::custom::{define, definition, objects, version};
use crate::harness::{Process, Server, eventually};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const GROUP: &str = "vault.example";

/// A file with a configuration that can be written anew.
struct Config(TempDir);

impl Config {
    fn new(resources: Value) -> Config {
        let config = Config(tempfile::tempdir().expect("a temporary folder"));
        config.write(resources);
        config
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("keys.yaml")
    }

    fn write(&self, resources: Value) {
        let text = json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": resources,
        });
        // At once, so that nobody sees half of it.
        let new = self.0.path().join("new.yaml");
        std::fs::write(&new, text.to_string()).expect("can be written");
        std::fs::rename(new, self.path()).expect("can be renamed");
    }

    fn flag(&self) -> String {
        format!("--encryption-provider-config={}", self.path().display())
    }
}

fn keys(names: &[(&str, u8)]) -> Value {
    let key = |(name, byte): &(&str, u8)| json!({"name": name, "secret": STANDARD.encode([*byte; 32])});
    json!({"keys": names.iter().map(key).collect::<Vec<_>>()})
}

fn secrets(providers: Value) -> Value {
    json!([{"resources": ["secrets", format!("*.{GROUP}")], "providers": providers}])
}

async fn create(client: &Client, name: &str, text: &str) {
    let secret = json!({"metadata": {"name": name}, "stringData": {"k": text}});
    client.post(SECRETS, &secret).await.expect(201);
}

async fn read(client: &Client, name: &str) -> String {
    let secret = client.get(&format!("{SECRETS}/{name}")).await.expect(200).json();
    let data = STANDARD.decode(secret["data"]["k"].as_str().expect("is there")).expect("is base64");
    String::from_utf8(data).expect("is text")
}

/// Whether a text is in any file of a folder, as it is or in base64.
fn is_in(folder: &Path, text: &str) -> bool {
    let encoded = STANDARD.encode(text);
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    std::fs::read_dir(folder).expect("can be listed").any(|item| {
        let path = item.expect("can be listed").path();
        if path.is_dir() {
            return is_in(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        holds(&bytes, text) || holds(&bytes, &encoded)
    })
}

#[tokio::test]
async fn secrets_and_custom_objects_are_never_plain_on_disk_and_survive_a_restart() {
    for (provider, prefix) in [
        ("aesgcm", "k8s:enc:aesgcm:v1:a:"),
        ("aescbc", "k8s:enc:aescbc:v1:a:"),
        ("secretbox", "k8s:enc:secretbox:v1:a:"),
    ] {
        let config = Config::new(secrets(json!([{provider: keys(&[("a", 1)])}, {"identity": {}}])));
        let server = Server::start(&[&config.flag()]).await;
        let client = server.client();
        let spec = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        define(&client, &definition(GROUP, "notes", json!([version("v1", true, spec)]))).await;
        let note = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Note", "metadata": {"name": "n"},
            "spec": {"text": "hidden-in-a-note"},
        });
        client.post(&objects(GROUP, "v1", "notes"), &note).await.expect(201);
        create(&client, "s", "hidden-in-a-secret").await;
        let map = json!({"metadata": {"name": "c"}, "data": {"k": "seen-by-all"}});
        client.post("/api/v1/namespaces/default/configmaps", &map).await.expect(201);
        let server = server.restart_in_order().await;
        assert_eq!(read(&server.client(), "s").await, "hidden-in-a-secret");
        let note = server.client().get(&format!("{}/n", objects(GROUP, "v1", "notes"))).await.expect(200).json();
        assert_eq!(note["spec"]["text"], "hidden-in-a-note");
        let data = server.data();
        assert!(is_in(&data, "seen-by-all") && is_in(&data, prefix), "{provider}");
        for hidden in ["hidden-in-a-secret", "hidden-in-a-note"] {
            assert!(!is_in(&data, hidden), "{provider}: {hidden}");
        }
    }
}

#[tokio::test]
async fn keys_are_replaced_while_the_server_runs_and_a_migration_encrypts_anew() {
    let config = Config::new(secrets(json!([{"secretbox": keys(&[("one", 1)])}])));
    let flags = [
        &*config.flag(),
        "--encryption-provider-config-automatic-reload=true",
        "--feature-gates=StorageVersionMigrator=true",
        "--runtime-config=storagemigration.k8s.io/v1beta1=true",
        "--controllers=storage-version-migrator-controller",
    ];
    let server = Server::start(&flags).await;
    let client = server.client();
    create(&client, "s", "hidden").await;
    client.get("/readyz/kms-providers").await.expect(200);

    // Without the key of what is stored nobody could start again: it is not taken, and that is told.
    let reloads = async |status: &str| {
        let text = String::from_utf8_lossy(&client.get("/metrics").await.expect(200).body).into_owned();
        let name = "apiserver_encryption_config_controller_automatic_reloads_total";
        text.lines().any(|line| line.starts_with(name) && line.contains(&format!("status=\"{status}\"")))
    };
    config.write(secrets(json!([{"secretbox": keys(&[("two", 2)])}])));
    eventually(|| async { reloads("failure").await.then_some(()) }).await;
    config.write(secrets(json!([{"secretbox": keys(&[("two", 2), ("one", 1)])}])));
    eventually(|| async { reloads("success").await.then_some(()) }).await;

    let before = client.get(&format!("{SECRETS}/s")).await.expect(200).json();
    let migration = json!({
        "apiVersion": "storagemigration.k8s.io/v1beta1", "kind": "StorageVersionMigration",
        "metadata": {"name": "m"}, "spec": {"resource": {"group": "", "resource": "secrets"}},
    });
    let migrations = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";
    client.post(migrations, &migration).await.expect(201);
    eventually(|| async {
        let migration = client.get(&format!("{migrations}/m")).await.expect(200).json();
        let conditions = migration["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions
            .iter()
            .any(|condition| condition["type"] == "Succeeded" && condition["status"] == "True")
            .then_some(())
    })
    .await;
    let after = client.get(&format!("{SECRETS}/s")).await.expect(200).json();
    assert_ne!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"], "was written anew");
    let patched = client.get(&format!("{SECRETS}/s")).await.expect(200).json();
    let unchanged = client.put(&format!("{SECRETS}/s"), &patched).await.expect(200).json();
    assert_eq!(unchanged["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"], "is not stale any more");

    config.write(secrets(json!([{"secretbox": keys(&[("two", 2)])}])));
    let server = server.restart_in_order().await;
    assert_eq!(read(&server.client(), "s").await, "hidden");
    let log = server.process.log();
    assert!(log.contains("stored objects could not be read any more"), "{log}");
    assert!(!log.contains(&STANDARD.encode([2; 32])), "keys are not for the log");
}

#[tokio::test]
async fn a_server_without_the_keys_or_with_a_bad_file_does_not_start() {
    let config = Config::new(secrets(json!([{"aescbc": keys(&[("one", 1)])}])));
    let server = Server::start(&[&config.flag()]).await;
    create(&server.client(), "s", "hidden").await;
    let arguments = server.arguments();
    let _stopped = server.kill9();
    let log = config.0.path().join("log");
    let refused = async |config: Value, want: &str| {
        let file = Config::new(config);
        std::fs::copy(file.path(), config_path(&arguments)).expect("can be copied");
        let mut process = Process::start(&arguments, &log);
        assert!(!process.ended().await.success());
        let (_, said) = process.said();
        assert!(said.contains(want), "{want}: {said}");
        std::fs::remove_file(&log).expect("can be removed");
    };
    refused(secrets(json!([{"aescbc": keys(&[("two", 2)])}])), "unable to transform key \"/registry/secrets/").await;
    refused(secrets(json!([{"identity": {}}])), "no matching prefix found").await;
    refused(json!([]), "at least one resources is required").await;
    refused(secrets(json!([{"aescbc": {"keys": [{"name": "a", "secret": "c2hvcnQ="}]}}])), "REDACTED").await;
    let kms = json!([{"kms": {"name": "old", "endpoint": "unix:///nowhere"}}]);
    refused(secrets(kms), "KMSv1 is deprecated").await;
}

fn config_path(arguments: &[String]) -> String {
    let flag = arguments.iter().find_map(|flag| flag.strip_prefix("--encryption-provider-config="));
    flag.expect("was given").to_owned()
}

#[tokio::test]
async fn a_store_that_is_encrypted_as_a_whole_shows_nothing_and_opens_with_its_keys_only() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, data) = (folder.path().join("store.keys"), folder.path().join("log"));
    let write = |keys: &[u8]| {
        let lines: Vec<String> = keys.iter().map(|byte| STANDARD.encode([*byte; 32])).collect();
        std::fs::write(&path, lines.join("\n")).expect("can be written");
    };
    write(&[1]);
    let flag = format!("--store-key-file={}", path.display());
    let server = Server::start(&[&flag]).await;
    let map = |name: &str| json!({"metadata": {"name": name}, "data": {"k": "a-hidden-text"}});
    let maps = "/api/v1/namespaces/default/configmaps";
    server.client().post(maps, &map("a-hidden-name")).await.expect(201);
    let server = server.restart().await;
    server.client().get(&format!("{maps}/a-hidden-name")).await.expect(200);
    for hidden in ["a-hidden-text", "a-hidden-name", "/registry/configmaps"] {
        assert!(!is_in(&server.data().join("store"), hidden), "{hidden}");
    }

    // Who has not the key gets nothing, and changes nothing.
    let arguments = server.arguments();
    let (stopped, _) = server.terminate().await;
    let refused = async |keys: Option<&[u8]>, why: &str| {
        keys.iter().for_each(|keys| write(keys));
        let given = arguments.iter().filter(|argument| keys.is_some() || !argument.starts_with("--store-key-file"));
        let mut process = Process::start(&given.cloned().collect::<Vec<_>>(), &data);
        assert!(!process.ended().await.success(), "{why}");
        let (_, log) = process.said();
        assert!(log.contains(why), "{why}: {log}");
    };
    refused(Some(&[2]), "which the key file does not have").await;
    refused(None, "and no key is given").await;

    // With a new key before the old one all is encrypted anew, and the old one can go.
    write(&[2, 1]);
    let server = stopped.start().await;
    server.client().get(&format!("{maps}/a-hidden-name")).await.expect(200);
    server.client().post(maps, &map("another")).await.expect(201);
    let (stopped, _) = server.terminate().await;
    write(&[2]);
    let server = stopped.start().await;
    for name in ["a-hidden-name", "another"] {
        server.client().get(&format!("{maps}/{name}")).await.expect(200);
    }
}
