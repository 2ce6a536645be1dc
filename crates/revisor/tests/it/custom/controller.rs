//! A controller written with kube-rs on a definition that is derived from its types.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{Controller, watcher};
use kube::{Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;

use crate::harness::{Server, eventually, within};
use crate::kube_rs::client;

/// A garden with some beds, each of which is a config map.
#[derive(CustomResource, Serialize, Deserialize, Debug, Clone, JsonSchema)]
#[kube(
    group = "green.example",
    version = "v1",
    kind = "Garden",
    namespaced,
    status = "GardenStatus",
    shortname = "gd",
    category = "green",
    scale(spec_replicas_path = ".spec.beds", status_replicas_path = ".status.beds"),
    printcolumn(name = "Beds", type_ = "integer", json_path = ".spec.beds"),
    selectable = ".spec.plant"
)]
struct GardenSpec {
    #[schemars(range(min = 0, max = 20))]
    beds: i32,
    #[serde(default = "any_plant")]
    plant: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keeper: Option<Keeper>,
}

fn any_plant() -> String {
    "grass".to_owned()
}

#[derive(Serialize, Deserialize, Debug, Clone, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Keeper {
    first_name: String,
    hours: Vec<u8>,
}

#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GardenStatus {
    beds: i32,
    observed_generation: i64,
}

/// Makes the beds that are missing, and writes down what there is.
async fn reconcile(garden: Arc<Garden>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let namespace = garden.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    let manager = PatchParams::apply("gardener").force();
    let owner = garden.controller_owner_ref(&()).into_iter().collect::<Vec<_>>();
    for bed in 0..garden.spec.beds {
        let name = format!("{}-{bed}", garden.name_any());
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": owner},
            "data": {"plant": garden.spec.plant},
        });
        maps.patch(&name, &manager, &Patch::Apply(&map)).await?;
    }
    let generation = garden.metadata.generation.unwrap_or_default();
    let status = GardenStatus { beds: garden.spec.beds, observed_generation: generation };
    if garden.status.as_ref() != Some(&status) {
        let gardens: Api<Garden> = Api::namespaced((*client).clone(), &namespace);
        let patch = json!({"apiVersion": "green.example/v1", "kind": "Garden", "status": status});
        gardens.patch_status(&garden.name_any(), &manager, &Patch::Apply(&patch)).await?;
    }
    Ok(Action::await_change())
}

/// The definition, served.
async fn defined(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("gardener");
    within(definitions.patch(Garden::crd_name(), &apply, &Patch::Apply(Garden::crd()))).await.expect("is accepted");
    let established = await_condition(definitions, Garden::crd_name(), conditions::is_crd_established());
    within(established).await.expect("is watched");
}

#[tokio::test]
async fn a_controller_keeps_what_its_objects_ask_for() {
    let server = Server::start(&["--controllers=*"]).await;
    let client = client(&server).await;
    defined(&client).await;
    let gardens: Api<Garden> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let (stop, stopped) = oneshot::channel::<()>();
    let controller = Controller::new(gardens.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .graceful_shutdown_on(async move {
            // Whether it was sent or dropped, it is time to end.
            let _ = stopped.await;
        })
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), Arc::new(client.clone()));
    let running = tokio::spawn(controller.for_each(|_| std::future::ready(())));

    let keeper = Keeper { first_name: "Ann".to_owned(), hours: vec![8, 9] };
    let spec = GardenSpec { beds: 3, plant: "rose".to_owned(), keeper: Some(keeper) };
    let made = within(gardens.create(&PostParams::default(), &Garden::new("back", spec))).await.expect("is made");
    let reached = |garden: Option<&Garden>| {
        let status = garden.and_then(|garden| garden.status.clone());
        status.is_some_and(|status| status.beds == 3 && status.observed_generation == 1)
    };
    within(await_condition(gardens.clone(), "back", reached)).await.expect("is watched");

    // A bed that somebody digs up comes back.
    within(maps.delete("back-1", &DeleteParams::default())).await.expect("is deleted");
    eventually(|| async { maps.get_opt("back-1").await.ok().flatten() }).await;
    let five = Patch::Merge(json!({"spec": {"replicas": 5}}));
    within(gardens.patch_scale("back", &PatchParams::default(), &five)).await.expect("is scaled");
    let grown = |garden: Option<&Garden>| {
        garden.and_then(|garden| garden.status.as_ref()).is_some_and(|status| status.beds == 5)
    };
    within(await_condition(gardens.clone(), "back", grown)).await.expect("is watched");
    let bed = within(maps.get("back-4")).await.expect("is there");
    assert_eq!(bed.owner_references()[0].uid, made.uid().expect("everything has one"));
    let roses = ListParams::default().fields("spec.plant=rose");
    assert_eq!(within(gardens.list(&roses)).await.expect("a list").items.len(), 1);

    let unfit = GardenSpec { beds: 21, plant: String::new(), keeper: None };
    let error = within(gardens.create(&PostParams::default(), &Garden::new("unfit", unfit))).await;
    let error = error.expect_err("has too many beds");
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 422), "{error}");

    within(gardens.delete("back", &DeleteParams::background())).await.expect("is deleted");
    let uid = made.uid().expect("everything has one");
    within(await_condition(gardens, "back", conditions::is_deleted(&uid))).await.expect("is watched");
    eventually(|| async {
        let left = maps.list(&ListParams::default()).await.ok()?;
        left.items.iter().all(|map| !map.name_any().starts_with("back-")).then_some(())
    })
    .await;
    stop.send(()).expect("the controller runs");
    within(running).await.expect("it ends in order");
}
