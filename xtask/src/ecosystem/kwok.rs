//! kwok: nodes that beat and pods that run without kubelets, by watching and patching as kubelets do. It is also what lets
//! the pods of other suites come up; a policy of `tests/kwok/cluster.yaml` puts them on its node.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::Ground;
use super::server::{Running, Server};
use super::steps::{Stage, Step, Wanted::Says};
use super::tally::Tally;
use crate::go_program::{self, go, wanted_go};
use crate::{kubectl, workspace};

/// The module that pins kwok, and has the cluster that it plays.
const MODULE: &str = "tests/kwok";

/// The stages of its own that kwok has to be told.
const STAGES: [&str; 5] = [
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
];

const STEPS: [Step; 7] = [
    Step {
        what: "a node becomes ready",
        line: "kubectl wait --for=condition=Ready node/lone --timeout=60s",
        wanted: Says("node/lone condition met"),
    },
    Step {
        what: "its heartbeats are leases",
        line: "kubectl wait --namespace kube-node-lease --for=jsonpath={.spec.holderIdentity} lease/lone --timeout=60s",
        wanted: Says("condition met"),
    },
    Step {
        what: "a pod is made",
        line: "kubectl run web --image=registry.example/web:1 --port=80",
        wanted: Says("pod/web created"),
    },
    Step {
        what: "it comes up on the node",
        line: "kubectl wait --for=condition=Ready pod/web --timeout=60s",
        wanted: Says("pod/web condition met"),
    },
    Step { what: "kubectl sees it run", line: "kubectl get pod web -o wide", wanted: Says("Running") },
    Step {
        what: "it goes when it is deleted, gracefully",
        line: "kubectl delete pod web --timeout=60s",
        wanted: Says("deleted"),
    },
    Step { what: "no pod is left", line: "kubectl get pods -o jsonpath={.items}", wanted: Says("[]") },
];

pub(super) fn run(ground: &Ground<'_>) -> Result<Tally> {
    let server = Server::start(ground, "kwok")?;
    let _kwok = start(ground, &server)?;
    let programs = [("kubectl", kubectl::provide(ground.workspace)?)];
    Stage { programs: &programs, server: &server, folder: &server.folder }.play(&STEPS)
}

/// kwok beside a server that has its node.
pub(super) fn start(ground: &Ground<'_>, server: &Server) -> Result<Running> {
    let home = ground.workspace.root().join(MODULE);
    let program =
        go_program::build(ground.workspace, "kwok", MODULE, "sigs.k8s.io/kwok/cmd/kwok", |_| Ok("-s -w".to_owned()))
            .context("kwok could not be built")?;
    let mut apply = Command::new(kubectl::provide(ground.workspace)?);
    apply.arg("apply").arg("-f").arg(home.join("cluster.yaml")).env("KUBECONFIG", server.kubeconfig());
    workspace::run(&mut apply)?;

    let mut command = Command::new(program);
    command.args(["--manage-all-nodes=true", "--node-lease-duration-seconds=40"]);
    command.arg("--kubeconfig").arg(server.kubeconfig());
    let own = own_stages(ground)?;
    for stage in STAGES.map(|stage| own.join(stage)).into_iter().chain([home.join("stages.yaml")]) {
        command.arg("--config").arg(stage);
    }
    Running::start(&mut command, &server.folder.join("kwok.log"))
}

/// The folder of the stages that come with kwok's module.
fn own_stages(ground: &Ground<'_>) -> Result<PathBuf> {
    let go = go(ground.workspace, "kwok", wanted_go(&ground.workspace.read(&format!("{MODULE}/go.mod"))?)?)?;
    let folder = go_program::module_folder(&go, &ground.workspace.root().join(MODULE), "sigs.k8s.io/kwok")?;
    Ok(folder.join("kustomize").join("stage"))
}
