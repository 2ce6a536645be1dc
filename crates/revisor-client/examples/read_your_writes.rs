//! Writes a ConfigMap and reads it from a cache, which has it for sure: `cargo run --example read_your_writes`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use revisor_client::{Key, Reflector, is_newer};
use serde_json::json;

/// Writes ten times, and finds every write in the cache.
pub(crate) async fn run(client: Client) -> Result<(), Box<dyn Error>> {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let (store, reflector) = Reflector::new(api.clone());
    let working = tokio::spawn(reflector.labels("example=read-your-writes").run());

    let map = serde_json::from_value(json!({
        "metadata": {"name": "read-your-writes", "labels": {"example": "read-your-writes"}},
    }))?;
    let made = api.create(&PostParams::default(), &map).await?;
    for round in 0..10 {
        let patch = json!({"data": {"round": round.to_string()}});
        let written = api.patch("read-your-writes", &PatchParams::default(), &Patch::Merge(patch)).await?;
        store.after(&written).await?;
        let seen = store.get(&Key::of(&written)).ok_or("the cache does not have it")?;
        let shown = seen.data.as_ref().and_then(|data| data.get("round")).cloned();
        if shown != Some(round.to_string()) || is_newer(&*seen, &made) != Some(true) {
            return Err(format!("round {round}: the cache shows {shown:?}").into());
        }
    }
    println!("{}", store.metrics().to_prometheus("configmaps"));
    api.delete("read-your-writes", &DeleteParams::default()).await?;
    working.abort();
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(Client::try_default().await?).await
}
