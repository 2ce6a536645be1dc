//! Tells how far a cache of all namespaces is behind its server: `cargo run --example lag`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use revisor_client::Reflector;

/// Asks the server where it is, waits until the cache is there too, and answers how far behind it is then.
pub(crate) async fn run(client: Client) -> Result<Option<u128>, Box<dyn Error>> {
    let api: Api<Namespace> = Api::all(client);
    let (store, reflector) = Reflector::new(api.clone());
    let working = tokio::spawn(reflector.run());
    store.ready().await?;
    let lag = store.lag(&api).await?;
    println!("{:?} versions behind {}, silent for {:?}", lag.versions(), lag.server, lag.silent_for);

    // Where versions do not compare, a list that begins now does the same.
    store.refresh().await?;
    let caught_up = lag.server.since(&store.version().ok_or("there is a list")?);
    working.abort();
    Ok(caught_up)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    run(Client::try_default().await?).await.map(|_| ())
}
