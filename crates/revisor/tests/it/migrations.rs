//! StorageVersionMigrations in the whole program: also one that is killed goes on.

use serde_json::{Value, json};

use crate::client::{Client, MERGE};
use crate::custom::{DEFINITIONS, define, definition, objects, version};
use crate::harness::{Server, eventually};

const GROUP: &str = "barn.example";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";
const REPORT: &str = "/apis/versioning.revisor.dev/v1alpha1/versionreports/barns.barn.example";
const MIGRATING: [&str; 3] = [
    "--feature-gates=StorageVersionMigrator=true",
    "--runtime-config=storagemigration.k8s.io/v1beta1=true",
    "--controllers=storage-version-migrator-controller",
];

/// Barns, whose `size` is `count` in the second version.
fn barns(storage: &str) -> Value {
    let spec = |name: &str| json!({"type": "object", "properties": {name: {"type": "integer"}}});
    let versions = [("v1", "size"), ("v2", "count")];
    definition(GROUP, "barns", json!(versions.map(|(name, field)| version(name, name == storage, spec(field)))))
}

async fn define_barns(client: &Client, count: usize) {
    define(client, &barns("v1")).await;
    let rule = json!({"move": {"from": ".spec.size", "to": ".spec.count"}});
    let conversion = json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": format!("barns.{GROUP}")},
        "spec": {"steps": [{"from": "v1", "to": "v2", "rules": [rule]}]},
    });
    client.post("/apis/versioning.revisor.dev/v1alpha1/conversions", &conversion).await.expect(201);
    for number in 0..count {
        let barn = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "Barn",
            "metadata": {"name": format!("b{number}")},
            "spec": {"size": number},
        });
        client.post(&objects(GROUP, "v1", "barns"), &barn).await.expect(201);
    }
    let path = format!("{DEFINITIONS}/barns.{GROUP}");
    let mut defined = client.get(&path).await.expect(200).json();
    defined["spec"]["versions"] = barns("v2")["spec"]["versions"].clone();
    client.put(&path, &defined).await.expect(200);
}

async fn migrate(client: &Client) {
    let resource = json!({"group": GROUP, "resource": "barns"});
    let migration = json!({
        "apiVersion": "storagemigration.k8s.io/v1beta1",
        "kind": "StorageVersionMigration",
        "metadata": {"name": "m"},
        "spec": {"resource": resource},
    });
    client.post(MIGRATIONS, &migration).await.expect(201);
}

async fn condition(client: &Client, kind: &str) -> Option<Value> {
    let migration = client.get(&format!("{MIGRATIONS}/m")).await.expect(200).json();
    let conditions = migration["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind)
}

/// How many barns are stored in each version, and which versions the definition says are.
async fn stored(client: &Client) -> (Vec<u64>, Value) {
    let report = client.get(REPORT).await.expect(200).json();
    let versions = report["status"]["versions"].as_array().expect("versions").clone();
    let counts = versions.iter().map(|version| version["objects"].as_u64().expect("a number")).collect();
    let definition = client.get(&format!("{DEFINITIONS}/barns.{GROUP}")).await.expect(200).json();
    (counts, definition["status"]["storedVersions"].clone())
}

#[tokio::test]
async fn a_migration_that_is_killed_goes_on_where_it_was() {
    let server = Server::start(&MIGRATING).await;
    let client = server.client();
    define_barns(&client, 400).await;
    assert_eq!(stored(&client).await, (vec![400, 0], json!(["v1", "v2"])));
    migrate(&client).await;
    // It is at work when it says so; whether it comes to its end before it is killed is a matter of luck.
    eventually(|| async { condition(&client, "Running").await }).await;
    let server = server.restart().await;
    let client = server.client();
    let succeeded = eventually(|| async { condition(&client, "Succeeded").await }).await;
    assert_eq!((&succeeded["status"], &succeeded["message"]), (&json!("True"), &json!("400 done, 0 left")));
    assert_eq!(succeeded["reason"], "StorageVersionMigrationSucceeded");
    assert_eq!(condition(&client, "Running").await.expect("is told")["status"], "False");
    assert_eq!(stored(&client).await, (vec![0, 400], json!(["v2"])));
    let last = client.get(&format!("{}/b399", objects(GROUP, "v1", "barns"))).await.expect(200).json();
    assert_eq!(last["spec"], json!({"size": 399}));
}

/// Before 1.35 there was another version, which no later release reads. What was migrated then can be read later here,
/// and by those who go back.
#[tokio::test]
async fn releases_before_have_migrations_in_their_own_version() {
    const FIRST: &str = "/apis/storagemigration.k8s.io/v1alpha1/storageversionmigrations";
    let [gates, _, controllers] = MIGRATING;
    let flags = [
        "--emulation-version=1.34",
        "--allow-alpha-under-emulation",
        gates,
        "--runtime-config=storagemigration.k8s.io/v1alpha1=true",
        controllers,
    ];
    let server = Server::start(&flags).await;
    let client = server.client();
    define_barns(&client, 5).await;
    let (code, out, err) = server.command("crd migrate barns.barn.example --name m", &[]).await;
    assert_eq!((code, out.as_str()), (Some(0), "m succeeded: 5 done, 0 left; stored versions: v2\n"), "{err}");
    let first = client.get(&format!("{FIRST}/m")).await.expect(200).json();
    assert_eq!(first["apiVersion"], "storagemigration.k8s.io/v1alpha1");
    assert_eq!(first["spec"]["resource"], json!({"group": GROUP, "version": "v2", "resource": "barns"}));
    let times = |migration: &Value, field: &str| {
        let conditions = migration["status"]["conditions"].as_array().expect("conditions").clone();
        conditions.iter().map(|condition| condition[field].clone()).collect::<Vec<_>>()
    };
    let updated = times(&first, "lastUpdateTime");
    assert!(updated.len() == 2 && updated.iter().all(Value::is_string), "{first}");
    assert_eq!(times(&first, "lastTransitionTime"), [Value::Null, Value::Null]);
    let nameless = json!({"metadata": {"name": "n"}, "spec": {"resource": {"resource": "barns"}}});
    let refused = client.post(FIRST, &nameless).await.fails(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.resource.version", "{refused}");
    client.get(MIGRATIONS).await.expect(404);

    let server = server.kill9().with_flags(&MIGRATING).start().await;
    let client = server.client();
    let later = client.get(&format!("{MIGRATIONS}/m")).await.expect(200).json();
    assert_eq!(later["apiVersion"], "storagemigration.k8s.io/v1beta1");
    assert_eq!(later["spec"], json!({"resource": {"group": GROUP, "resource": "barns"}}));
    assert_eq!(times(&later, "lastTransitionTime"), updated);
    assert_eq!(later["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    client.get(FIRST).await.expect(404);
    let label = json!({"metadata": {"labels": {"seen": "later"}}});
    client.patch(&format!("{MIGRATIONS}/m"), MERGE, &label).await.expect(200);

    let server = server.kill9().with_flags(&flags).start().await;
    let back = server.client().get(&format!("{FIRST}/m")).await.expect(200).json();
    assert_eq!((&back["metadata"]["labels"], times(&back, "lastUpdateTime")), (&json!({"seen": "later"}), updated));
}

#[tokio::test]
async fn without_its_controller_a_migration_waits() {
    let [gates, config, _] = MIGRATING;
    let server = Server::start(&[gates, config, "--controllers=*,-storage-version-migrator-controller"]).await;
    let client = server.client();
    define_barns(&client, 3).await;
    migrate(&client).await;
    let (stopped, _) = server.terminate().await;
    let server = stopped.start().await;
    let client = server.client();
    assert_eq!(condition(&client, "Running").await, None);
    assert_eq!(stored(&client).await, (vec![3, 0], json!(["v1", "v2"])));
    let server = server.kill9().with_flags(&MIGRATING).start().await;
    let client = server.client();
    eventually(|| async { condition(&client, "Succeeded").await }).await;
    assert_eq!(stored(&client).await, (vec![0, 3], json!(["v2"])));
    // Where the feature is off, there is no such resource.
    let server = server.kill9().with_flags(&["--controllers=*"]).start().await;
    server.client().get(MIGRATIONS).await.expect(404);
}

#[tokio::test]
async fn the_command_migrates_and_tells_what_became_of_it() {
    let server = Server::start(&MIGRATING).await;
    let client = server.client();
    define_barns(&client, 30).await;
    let (code, out, err) = server.command("crd migrate barns.barn.example --name first", &[]).await;
    assert_eq!((code, out.as_str()), (Some(0), "first succeeded: 30 done, 0 left; stored versions: v2\n"), "{err}");
    assert_eq!(stored(&client).await, (vec![0, 30], json!(["v2"])));

    let (code, out, _) = server.command("crd migrate secrets -o json", &[]).await;
    let told: Value = serde_json::from_str(&out).expect("is JSON");
    assert_eq!((code, &told["outcome"], &told["left"]), (Some(0), &json!("Succeeded"), &json!(0)), "{told}");
    assert!(told["migration"].as_str().is_some_and(|name| name.starts_with("secrets-")), "{told}");

    let (code, out, _) = server.command("crd migrate componentstatuses --name odd", &[]).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(out.starts_with("odd failed: resource \"/v1, Resource=componentstatuses\" does not support"), "{out}");
    let (code, _, err) = server.command("crd migrate barns.barn.example --name first", &[]).await;
    assert!(code == Some(2) && err.contains("already exists"), "{err}");
    let (code, out, _) = server.command("crd migrate nothing.barn.example --name later --no-wait", &[]).await;
    assert_eq!((code, out.as_str()), (Some(0), "later was made and has not begun\n"));
    let (code, out, _) = server.command("crd migrate nothing.barn.example --name late --timeout 0", &[]).await;
    assert_eq!((code, out.as_str()), (Some(2), "late was made and has not begun\n"));

    let server = server.kill9().with_flags(&[]).start().await;
    let (code, _, err) = server.command("crd migrate barns.barn.example", &[]).await;
    assert!(code == Some(2) && err.contains("feature gate StorageVersionMigrator"), "{err}");
}
