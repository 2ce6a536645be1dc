//! The older document as clients meet it.

use std::sync::Arc;

use revisor_catalog::Catalog;

use super::*;
use crate::custom_fixture::{defined, with_definition};
use crate::publication::Publications;

fn made() -> Value {
    let schema =
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}"#;
    let definition = defined("disco.example.com", "Gadget", schema);
    let catalog = Arc::new(with_definition(&Catalog::default(), &definition));
    serde_json::from_slice(&Publications::new("1.36").of(&catalog).swagger_json()).expect("JSON")
}

#[test]
fn one_document_holds_everything() {
    let document = made();
    assert_eq!((&document["swagger"], &document["info"]["title"]), (&json!("2.0"), &json!("Kubernetes")));
    let definitions = &document["definitions"];
    let secret = &definitions["io.k8s.api.core.v1.Secret"]["properties"];
    assert_eq!(secret["stringData"]["additionalProperties"], json!({"type": "string"}));
    assert_eq!(secret["metadata"]["$ref"], "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    assert_eq!(definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["type"], "string");
    let gadget = &definitions["com.example.disco.v1.Gadget"];
    assert_eq!(gadget["properties"]["spec"]["properties"]["size"], json!({"type": "integer"}));
    assert_eq!(gadget[schemas::KINDS], json!([{"group": "disco.example.com", "version": "v1", "kind": "Gadget"}]));
    let options =
        definitions["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"][schemas::KINDS].as_array().expect("kinds");
    for group in ["", "apps"] {
        assert!(options.contains(&json!({"group": group, "version": "v1", "kind": "DeleteOptions"})), "{group}");
    }
}

/// Every target of a reference in a document.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn all_references_lead_somewhere() {
    let document = made();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 1000, "{}", found.len());
    for target in found {
        let (_, path) = target.split_once('#').expect("points into the document");
        let name = path.rsplit('/').next().unwrap_or_default();
        let known = if path.starts_with("/parameters/") { &document["parameters"] } else { &document["definitions"] };
        assert!(known[name].is_object(), "{target}");
    }
}

#[test]
fn operations_are_said_in_the_older_words() {
    let document = made();
    let item = &document["paths"]["/apis/disco.example.com/v1/namespaces/{namespace}/gadgets/{name}/scale"];
    let put = &item["put"];
    let scale = json!({"$ref": "#/definitions/io.k8s.api.autoscaling.v1.Scale"});
    assert_eq!(put["parameters"][0], json!({"name": "body", "in": "body", "required": true, "schema": scale}));
    assert_eq!(put["responses"]["200"], json!({"description": "OK", "schema": scale}));
    assert_eq!(put["operationId"], "replaceDiscoExampleComV1NamespacedGadgetScale");
    assert_eq!(put["tags"], json!(["discoExampleCom_v1"]));
    assert_eq!(put[schemas::KINDS]["kind"], "Gadget");
    let patches = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
    assert_eq!(item["patch"]["consumes"], json!(patches), "custom resources know three patches");
    let names = |parameters: &Value| -> Vec<String> {
        let targets = parameters.as_array().into_iter().flatten().filter_map(|one| one["$ref"].as_str());
        targets.filter_map(|target| Some(target.rsplit('/').next()?.rsplit_once('-')?.0.to_owned())).collect()
    };
    assert_eq!(names(&put["parameters"]), ["dryRun", "fieldManager", "fieldValidation"]);
    assert_eq!(names(&item["patch"]["parameters"]), ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(names(&item["parameters"]), ["namespace", "pretty"]);
    assert_eq!(item["parameters"][0]["name"], "name", "what is said of one kind only stands where it is said");
}
