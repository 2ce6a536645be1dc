//! Objects of every kind, through every kind of write and read.

use std::sync::Arc;

use futures_util::StreamExt;
use http::Method;
use revisor_catalog::{Catalog, CatalogOptions, Resource, Verb};
use revisor_fuzz::{Choices, Generator};
use revisor_object::{Object, Value};
use revisor_schema::Types;
use serde_json::json;

use super::{assert_unhurt, check, seed};
use crate::client::{APPLY, Client, JSON_PATCH, MERGE, Reply, STRATEGIC};
use crate::custom::define;
use crate::harness::Server;

/// How many objects of each kind are sent.
const EACH: u64 = 2;

/// How many clients send them.
const CLIENTS: usize = 4;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

/// A kind of which objects are made.
struct Kind {
    path: String,
    kind: String,
    api_version: String,
    types: Arc<Types>,
    id: revisor_schema::StructId,
    has_patch: bool,
}

impl Kind {
    fn built_in(catalog: &Catalog, resource: &Resource) -> Kind {
        let root = if resource.group.is_empty() { "/api" } else { "/apis" };
        let namespace = if resource.namespaced { "/namespaces/default" } else { "" };
        Kind {
            path: format!("{root}/{}{namespace}/{}", resource.api_version, resource.plural),
            kind: resource.kind.to_string(),
            api_version: resource.api_version.clone(),
            types: catalog.types().clone(),
            id: resource.root(),
            has_patch: resource.verbs.contains(&Verb::Patch),
        }
    }

    /// Sends objects in all ways that there are; answers whether one was made.
    async fn try_out(&self, client: &Client, number: u64) -> bool {
        let mut generator = Generator::new(&self.types, Choices::seeded(number));
        let object = generator.object(self.id, &self.kind, &self.api_version);
        let sent = text(&object);
        let send = async |method: Method, query: &str, media_type: &str, accept: &str, body: &str| -> Reply {
            let headers = [("content-type", media_type), ("accept", accept)];
            let reply = client.send(method, &format!("{}{query}", self.path), &headers, body.to_owned()).await;
            check(&reply, body);
            reply
        };
        send(Method::POST, "?dryRun=All&fieldValidation=Strict", "application/json", TABLE, &sent).await;
        send(Method::POST, "?dryRun=All", "application/yaml", "application/yaml", &sent).await;
        let made = send(Method::POST, "?fieldManager=odd", "application/json", "application/json", &sent).await;
        if !self.has_patch {
            return made.code == 201;
        }
        // What was refused is tried on an object that is not there, or that is somebody else's.
        let name = match made.code {
            201 => made.json()["metadata"]["name"].as_str().unwrap_or("a").to_owned(),
            _ => "a".to_owned(),
        };
        let at = |query: &str| format!("/{name}{query}");
        let changed = text(&generator.changed(self.id, &object));
        send(Method::PUT, &at("?dryRun=All"), "application/json", "application/json", &changed).await;
        send(Method::PUT, &at(""), "application/json", "application/yaml", &changed).await;
        let force = at("?fieldManager=other&force=true");
        send(Method::PATCH, &force, APPLY, "application/json", &changed).await;
        send(Method::PATCH, &at(""), MERGE, "application/json", &changed).await;
        send(Method::PATCH, &at(""), STRATEGIC, TABLE, &changed).await;
        let spec = object.get("spec").unwrap_or(&Value::Null).to_json();
        let operations = format!(r#"[{{"op":"replace","path":"/spec","value":{spec}}}]"#);
        send(Method::PATCH, &at(""), JSON_PATCH, METADATA, &operations).await;
        send(Method::PATCH, &at("/status"), MERGE, "application/json", &changed).await;
        send(Method::GET, &at(""), "application/json", TABLE, "").await;
        send(Method::GET, "?labelSelector=a", "application/json", "application/yaml", "").await;
        if made.code == 201 {
            let mut events = client.watch(&self.path, &format!("resourceVersion={}", made.version() - 1)).await;
            assert!(events.event().await.object.is_object());
        }
        send(Method::DELETE, &at("?gracePeriodSeconds=0"), "application/json", "application/json", "").await;
        made.code == 201
    }
}

fn text(object: &Object) -> String {
    Value::Object(object.clone()).to_json()
}

/// The types of custom objects whose schema says the same.
const CUSTOM: &str = "\
type,field,shape,presence,number,merge,list,required,default
Oddity,spec,Spec,given,,,,yes,
Spec,text,string,given,,,,,
Spec,format,time,given,,,,,
Spec,count,int64,given,,,,,
Spec,ratio,double,given,,,,,
Spec,flag,bool,given,,,,,
Spec,either,intorstring,given,,,,,
Spec,anything,any,given,,,,,
Spec,names,list:string,given,,,,,
Spec,items,list:Item,given,,,,,
Spec,map,map:string,given,,,,,
Item,name,string,given,,,,yes,
Item,value,any,given,,,,,
Item,spec,Spec,given,,,,,
";

fn oddities() -> serde_json::Value {
    let kept = json!({"x-kubernetes-preserve-unknown-fields": true});
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "pattern": "^[a-z€]*$", "maxLength": 40}, "value": kept,
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let spec = json!({"type": "object", "properties": {
        "text": {"type": "string", "minLength": 1, "default": "ä"},
        "format": {"type": "string", "format": "date-time"},
        "count": {"type": "integer", "format": "int32", "minimum": 0, "multipleOf": 2},
        "ratio": {"type": "number", "maximum": 1e10, "nullable": true},
        "flag": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": true},
        "anything": kept,
        "names": {"type": "array", "maxItems": 20, "items": {"type": "string", "maxLength": 300}, "x-kubernetes-list-type": "set"},
        "items": {"type": "array", "maxItems": 20, "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "map": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "string", "maxLength": 300}},
    }, "x-kubernetes-validations": [
        {"rule": "!has(self.text) || self.text.size() < 9 || self.text.substring(1, 3) != self.text.lowerAscii()"},
        {"rule": "!has(self.map) || self.map.all(k, k.matches('^.') && self.map[k].indexOf('ä') < 1)", "messageExpression": "'no: %s'.format([self.map])"},
    ]});
    let columns = json!([
        {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
        {"name": "First", "type": "string", "jsonPath": ".spec.items[?(@.name=='a')].value"},
        {"name": "Far", "type": "integer", "jsonPath": ".spec.names[9223372036854775807]"},
    ]);
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "oddities.odd.example"},
        "spec": {"group": "odd.example", "scope": "Namespaced", "names": {"plural": "oddities", "kind": "Oddity"}, "versions": [{
            "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "additionalPrinterColumns": columns, "selectableFields": [{"jsonPath": ".spec.text"}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": kept}}},
        }]},
    })
}

#[tokio::test]
async fn objects_of_every_kind_are_answered_whatever_is_in_them() {
    let flags = ["--runtime-config=api/all=true", "--feature-gates=AllAlpha=true,AllBeta=true"];
    let server = Server::start(&flags).await;
    let catalog = Catalog::build(&CatalogOptions::everything()).expect("there is everything that there is");
    let resources = catalog.resources().filter(|resource| resource.verbs.contains(&Verb::Create));
    let mut kinds: Vec<Kind> = resources.map(|resource| Kind::built_in(&catalog, resource)).collect();
    assert!(kinds.len() > 80, "{}", kinds.len());
    define(&server.client(), &oddities()).await;
    let types = Arc::new(Types::parse(CUSTOM).expect("the table is well formed"));
    // As many as of some built-in kinds together: they have a schema, rules and columns of their own.
    kinds.extend((0..10).map(|_| Kind {
        path: "/apis/odd.example/v1/namespaces/default/oddities".to_owned(),
        kind: "Oddity".to_owned(),
        api_version: "odd.example/v1".to_owned(),
        id: types.id("Oddity").expect("is in the table"),
        types: types.clone(),
        has_patch: true,
    }));
    let seed = seed();
    let tries = kinds.iter().zip(0..).flat_map(|(kind, at)| (0..EACH).map(move |turn| (kind, seed + at * EACH + turn)));
    let client = server.client();
    let tries = futures_util::stream::iter(tries).map(|(kind, number)| kind.try_out(&client, number));
    let made = tries.buffer_unordered(CLIENTS).filter(|made| std::future::ready(*made)).count().await;
    // Where all are refused, nothing behind the refusal is tried.
    assert!(made > kinds.len() / 4, "{made} of {}", kinds.len() as u64 * EACH);
    assert_unhurt(&server).await;
}
