//! Works on everything that is there now, and stops: what a migration does: `cargo run --example up_to_a_version`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use revisor_client::{Reflector, ResourceVersion};
use serde_json::json;

const LABELS: &str = "example=up-to-a-version";

/// Marks the objects that were there at a moment, and none that came later.
pub(crate) async fn run(client: Client) -> Result<(), Box<dyn Error>> {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let named = |name: &str| -> Result<ConfigMap, serde_json::Error> {
        serde_json::from_value(json!({"metadata": {"name": name, "labels": {"example": "up-to-a-version"}}}))
    };
    for name in ["old-a", "old-b"] {
        api.create(&PostParams::default(), &named(name)?).await?;
    }
    // The moment. What is written from here on is written by programs that know the new rules.
    let list = api.list_metadata(&ListParams::default().limit(1)).await?;
    let moment = ResourceVersion::new(list.metadata.resource_version.unwrap_or_default());
    api.create(&PostParams::default(), &named("new")?).await?;

    let (store, reflector) = Reflector::new(api.clone());
    let working = tokio::spawn(reflector.labels(LABELS).run());
    let mut done = Vec::new();
    for object in store.up_to(&moment).await? {
        let patch = json!({"metadata": {"annotations": {"example/migrated": "true"}}});
        api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        done.push(object.name_any());
    }
    done.sort();
    println!("worked on {done:?}, which were there at {moment}");
    working.abort();
    for name in ["old-a", "old-b", "new"] {
        api.delete(name, &DeleteParams::default()).await?;
    }
    if done != ["old-a", "old-b"] { Err(format!("worked on {done:?}").into()) } else { Ok(()) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(Client::try_default().await?).await
}
