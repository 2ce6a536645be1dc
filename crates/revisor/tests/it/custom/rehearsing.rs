//! Whoever changes a definition is told what that does to the objects that are there.

use serde_json::{Value, json};

use super::{define, definition, objects, version};
use crate::client::{APPLY, Client, MERGE, Reply};
use crate::harness::Server;

const GROUP: &str = "loft.example";
const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sails.loft.example";

fn sails() -> Value {
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "colour": {"type": "string"},
        "reefs": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "integer"}}}},
    }});
    definition(GROUP, "sails", json!([version("v1", true, spec)]))
}

async fn make(client: &Client, namespace: &str, name: &str, spec: Value) {
    let sail = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Sail", "metadata": {"name": name}, "spec": spec});
    client.post(&format!("/apis/{GROUP}/v1/namespaces/{namespace}/sails"), &sail).await.expect(201);
}

/// The properties of the spec in a version of a definition.
fn properties(definition: &mut Value, at: usize) -> &mut Value {
    &mut definition["spec"]["versions"][at]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
}

/// Changes the definition as it is there.
async fn change(client: &Client, query: &str, change: impl FnOnce(&mut Value)) -> Reply {
    let mut definition = client.get(PATH).await.expect(200).json();
    change(&mut definition);
    client.put(&format!("{PATH}?{query}"), &definition).await.expect(200)
}

fn warned(text: &str) -> String {
    format!("299 - \"{text}\"")
}

/// Sails with a second version like the first, which is not stored.
fn sails_of_two_versions() -> Value {
    let mut two = sails();
    let mut second = two["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    two["spec"]["versions"].as_array_mut().expect("a list").push(second);
    two
}

#[tokio::test]
async fn whoever_changes_a_definition_is_told_what_it_does_to_objects() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &sails()).await;
    client.post("/api/v1/namespaces", &json!({"metadata": {"name": "other"}})).await.expect(201);
    for (namespace, name, spec) in [
        ("default", "a", json!({"size": 1, "colour": "red"})),
        ("default", "b", json!({"size": 8, "reefs": [{"at": 1}, {"at": 9}]})),
        ("default", "c", json!({"size": 8})),
        ("default", "d", json!({"size": 9, "colour": "red"})),
        ("other", "e", json!({"size": 9})),
    ] {
        make(&client, namespace, name, spec).await;
    }
    let invalid = warned("4 of 5 sails would no longer validate: .spec.size (default/b, default/c, default/d)");
    let less = warned("2 of 5 sails would show less: .spec.colour (default/a, default/d)");

    // Nothing is told of changes that change nothing for what is there.
    let harmless = change(&client, "dryRun=All", |sails| {
        properties(sails, 0)["size"]["maximum"] = json!(9);
        properties(sails, 0)["hue"] = json!({"type": "string", "default": "grey"});
    });
    assert!(harmless.await.warnings().is_empty());
    let labelled = client.patch(PATH, MERGE, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    assert!(labelled.warnings().is_empty());

    // In whichever way it is changed, and also if it is only tried.
    let smaller = |sails: &mut Value| properties(sails, 0)["size"]["maximum"] = json!(5);
    assert_eq!(change(&client, "dryRun=All", smaller).await.warnings(), [invalid.as_str()]);
    let plainer = |sails: &mut Value| _ = properties(sails, 0).as_object_mut().expect("is one").remove("colour");
    assert_eq!(change(&client, "dryRun=All", plainer).await.warnings(), [less.as_str()]);
    let mut both = sails();
    smaller(&mut both);
    plainer(&mut both);
    let versions = json!({"spec": {"versions": both["spec"]["versions"]}});
    let patched = client.patch(&format!("{PATH}?dryRun=All"), MERGE, &versions).await.expect(200);
    assert_eq!(patched.warnings(), [invalid.as_str(), less.as_str()]);
    let applied = client.patch(&format!("{PATH}?dryRun=All&fieldManager=m&force=true"), APPLY, &both).await.expect(200);
    assert_eq!(applied.warnings(), [invalid.as_str(), less.as_str()]);
    let in_lists = change(&client, "dryRun=All", |sails| {
        properties(sails, 0)["reefs"]["items"]["properties"]["at"]["maximum"] = json!(3);
    });
    let text = "1 of 5 sails would no longer validate: .spec.reefs[*].at (default/b)";
    assert_eq!(in_lists.await.warnings(), [warned(text)]);
    let ruled = change(&client, "dryRun=All", |sails| {
        let rules = json!([{"rule": "!has(self.colour) || self.size < 5", "message": "too bright"}]);
        sails["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
            rules;
    });
    let text = "1 of 5 sails would no longer validate: .spec (default/d)";
    assert_eq!(ruled.await.warnings(), [warned(text)]);

    // It is advice: what is done is done. What was wrong before is not told again.
    assert_eq!(change(&client, "", smaller).await.warnings(), [invalid.as_str()]);
    let path = format!("{}/b", objects(GROUP, "v1", "sails"));
    client.patch(&path, MERGE, &json!({"spec": {"size": 7}})).await.fails(422, "Invalid");
    client.patch(&path, MERGE, &json!({"spec": {"size": 8, "colour": "blue"}})).await.expect(200);
    let less = warned("3 of 5 sails would show less: .spec.colour (default/a, default/b, default/d)");
    assert_eq!(change(&client, "", plainer).await.warnings(), [less.as_str()]);
}

#[tokio::test]
async fn a_change_of_versions_is_told_by_what_they_show() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut two = sails_of_two_versions();
    _ = properties(&mut two, 1).as_object_mut().expect("is one").remove("colour");
    define(&client, &two).await;
    make(&client, "default", "a", json!({"size": 1, "colour": "red"})).await;
    make(&client, "default", "b", json!({"size": 2})).await;

    let stored_as = |at: usize| {
        move |sails: &mut Value| {
            for (version, is_stored) in [(at, true), (1 - at, false)] {
                sails["spec"]["versions"][version]["storage"] = json!(is_stored);
            }
        }
    };
    let told = warned("1 of 2 sails would show less once they are written: .spec.colour at v1 (default/a)");
    assert_eq!(change(&client, "dryRun=All", stored_as(1)).await.warnings(), [told]);
    let dropped = |sails: &mut Value| sails["spec"]["versions"][0]["served"] = json!(false);
    let told = warned("1 of 2 sails would show less: .spec.colour at v1 (default/a)");
    assert_eq!(change(&client, "dryRun=All", dropped).await.warnings(), [told]);
    let dropped = |sails: &mut Value| sails["spec"]["versions"][1]["served"] = json!(false);
    assert!(change(&client, "dryRun=All", dropped).await.warnings().is_empty());
}

/// What rules carry over is shown, whatever it is called and whichever version is stored.
#[tokio::test]
async fn what_rules_carry_over_is_not_missed() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut two = sails_of_two_versions();
    let renamed = properties(&mut two, 1).as_object_mut().expect("is one");
    let size = renamed.remove("size").expect("is there");
    renamed.insert("area".to_owned(), size);
    define(&client, &two).await;
    let rules = json!([{"move": {"from": ".spec.size", "to": ".spec.area"}}]);
    let conversion = json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1", "kind": "Conversion",
        "metadata": {"name": format!("sails.{GROUP}")},
        "spec": {"steps": [{"from": "v1", "to": "v2", "rules": rules}]},
    });
    client.post("/apis/versioning.revisor.dev/v1alpha1/conversions", &conversion).await.expect(201);
    make(&client, "default", "a", json!({"size": 9, "colour": "red"})).await;
    make(&client, "default", "b", json!({"size": 2})).await;

    let swapped = change(&client, "dryRun=All", |sails| {
        sails["spec"]["versions"][0]["storage"] = json!(false);
        sails["spec"]["versions"][1]["storage"] = json!(true);
    });
    assert_eq!(swapped.await.warnings(), [""; 0]);
    let plainer = change(&client, "dryRun=All", |sails| {
        _ = properties(sails, 1).as_object_mut().expect("is one").remove("colour");
        sails["spec"]["versions"][0]["storage"] = json!(false);
        sails["spec"]["versions"][1]["storage"] = json!(true);
    });
    let told = warned("1 of 2 sails would show less: .spec.colour at v2 (default/a)");
    assert_eq!(plainer.await.warnings(), [told]);
    let smaller = change(&client, "dryRun=All", |sails| {
        properties(sails, 0)["size"]["maximum"] = json!(5);
        properties(sails, 1)["area"]["maximum"] = json!(5);
    });
    let fields = "1 by .spec.size at v1 (default/a), 1 by .spec.area at v2 (default/a)";
    assert_eq!(smaller.await.warnings(), [warned(&format!("1 of 2 sails would no longer validate: {fields}"))]);
}
