//! A definition that says which semantic version it is, and a change that calls for more than it declares.

use serde_json::{Value, json};

use super::{DEFINITIONS, causes, define, definition, version};
use crate::client::{Client, Reply};
use crate::harness::Server;

const SEMVER: &str = "versioning.revisor.dev/semver";
const POLICY: &str = "versioning.revisor.dev/semver-policy";

/// Changes the highest that is allowed, and what version that is called.
async fn change(client: &Client, semver: &str, highest: u32, policy: Option<&str>) -> Reply {
    let path = format!("{DEFINITIONS}/flags.ship.example");
    let mut made = client.get(&path).await.expect(200).json();
    made["metadata"]["annotations"][SEMVER] = json!(semver);
    if let Some(policy) = policy {
        made["metadata"]["annotations"][POLICY] = json!(policy);
    }
    let spec = &mut made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["n"]["maximum"] = json!(highest);
    client.put(&path, &made).await
}

#[tokio::test]
async fn a_step_that_is_too_small_is_warned_of_or_refused() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let spec = json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 100}}});
    let mut made: Value = definition("ship.example", "flags", json!([version("v1", true, spec)]));
    made["metadata"]["annotations"] = json!({SEMVER: "1.2.3"});
    define(&client, &made).await;

    assert!(change(&client, "1.2.4", 200, None).await.expect(200).warnings().is_empty());
    let reply = change(&client, "1.2.5", 100, None).await.expect(200);
    let warnings = reply.warnings();
    let want = "versioning.revisor.dev/semver: 1.2.5 after 1.2.4 is a patch step, and the change calls for a minor one";
    assert!(warnings.len() == 1 && warnings[0].contains(want) && warnings[0].contains(".spec.n"), "{warnings:?}");
    assert!(change(&client, "1.3.0", 50, None).await.expect(200).warnings().is_empty());
    let reply = change(&client, "nonsense", 50, None).await.expect(200);
    assert!(reply.warnings()[0].contains("is no semantic version"), "{:?}", reply.warnings());

    change(&client, "1.3.1", 50, Some("Enforce")).await.expect(200);
    for semver in ["1.3.1", "1.3.2", "1.2.9", "nonsense"] {
        let status = change(&client, semver, 10, None).await.fails(422, "Invalid");
        let told = causes(&status);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, format!("metadata.annotations[{SEMVER}]"));
    }
    assert!(change(&client, "1.4.0", 10, None).await.expect(200).warnings().is_empty());
    // To say less is no harm, and neither is to say nothing new.
    assert!(change(&client, "1.4.0", 10, None).await.expect(200).warnings().is_empty());
}
