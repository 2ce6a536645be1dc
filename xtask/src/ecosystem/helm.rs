//! Helm, with a chart that has what charts of operators have: a definition, an object of it, access, hooks of every phase
//! and a test. kwok runs the pods.

use anyhow::{Context, Result};

use super::server::Server;
use super::steps::{
    Stage, Step,
    Wanted::{Fails, Says},
};
use super::tally::Tally;
use super::{Ground, kwok};
use crate::{go_program, kubectl};

/// The module that pins Helm, with the chart in it.
const MODULE: &str = "tests/helm";

const STEPS: [Step; 17] = [
    Step {
        what: "what lacks its definition is not installed",
        line: "helm install shop chart --skip-crds",
        wanted: Fails("ensure CRDs are installed first"),
    },
    Step {
        what: "it is installed, and waited for",
        line: "helm install shop chart --wait --timeout 60s",
        wanted: Says("STATUS: deployed"),
    },
    Step {
        what: "the definition came before its object",
        line: "kubectl get lamp shop -o jsonpath={.spec}",
        wanted: Says(r#"{"colour":"white","watts":40}"#),
    },
    Step { what: "the hook before ran, and went", line: "kubectl get pods -o name", wanted: Says("pod/shop\n") },
    Step { what: "its test passes", line: "helm test shop --timeout 60s", wanted: Says("Phase:          Succeeded") },
    Step {
        what: "it is upgraded",
        line: "helm upgrade shop chart --set watts=60 --wait --timeout 60s",
        wanted: Says("REVISION: 2"),
    },
    Step {
        what: "definitions are known to templates now",
        line: "kubectl get configmap shop -o jsonpath={.data}",
        wanted: Says(r#"{"lamps-are-served":"true","revision":"2","watts":"60"}"#),
    },
    Step {
        what: "a value that the schema refuses is refused",
        line: "helm upgrade shop chart --set watts=1000",
        wanted: Fails("spec.watts in body should be less than or equal to 100"),
    },
    Step {
        what: "a hook that fails stops an upgrade",
        line: "helm upgrade shop chart --set watts=80,migration=fails --timeout 60s",
        wanted: Fails("pre-upgrade hooks failed"),
    },
    Step {
        what: "what is there is as it was",
        line: "kubectl get lamp shop -o jsonpath={.spec.watts}",
        wanted: Says("60"),
    },
    Step {
        what: "it is rolled back",
        line: "helm rollback shop 1 --wait --timeout 60s",
        wanted: Says("Rollback was a success"),
    },
    Step { what: "the old value is back", line: "kubectl get lamp shop -o jsonpath={.spec.watts}", wanted: Says("40") },
    Step { what: "its history is told", line: "helm history shop", wanted: Says("Rollback to 1") },
    Step {
        what: "its resources are listed by kind",
        line: "helm status shop --show-resources",
        wanted: Says("==> v1/Lamp"),
    },
    Step {
        what: "it is uninstalled, and waited for",
        line: "helm uninstall shop --wait --timeout 60s",
        wanted: Says("release \"shop\" uninstalled"),
    },
    Step {
        what: "its objects are gone",
        line: "kubectl get lamps,roles,rolebindings -o jsonpath={.items}",
        wanted: Says("[]"),
    },
    Step {
        what: "definitions stay, as Helm promises",
        line: "kubectl get crd lamps.demo.example -o name",
        wanted: Says("customresourcedefinition.apiextensions.k8s.io/lamps.demo.example"),
    },
];

pub(super) fn run(ground: &Ground<'_>) -> Result<Tally> {
    let flags = |_: &str| Ok("-s -w".to_owned());
    let helm = go_program::build(ground.workspace, "helm", MODULE, "helm.sh/helm/v3/cmd/helm", flags)
        .context("Helm could not be built")?;
    let server = Server::start(ground, "helm")?;
    let _kwok = kwok::start(ground, &server)?;
    let programs = [("helm", helm), ("kubectl", kubectl::provide(ground.workspace)?)];
    let folder = ground.workspace.root().join(MODULE);
    Stage { programs: &programs, server: &server, folder: &folder }.play(&STEPS)
}
