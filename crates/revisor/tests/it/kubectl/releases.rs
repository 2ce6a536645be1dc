//! A bit of everything, with the oldest kubectl that is to work and with a current one: what they say is the same.

use std::path::PathBuf;

use super::{oldest_program, program, squeezed, start_program};

const MANIFEST: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: 'registry.example/web:1', ports: [{containerPort: 80}]}]}
";

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.releases.example.com}
spec:
  group: releases.example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {replicas: {type: integer, description: How many.}}}}
";

const THING: &str = "{\"apiVersion\":\"releases.example.com/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"one\"},\"spec\":{\"replicas\":1}}";

/// What to do, what to read meanwhile, and what is said then; with every run of blanks as one.
const STORY: &[(&str, &str, &str)] = &[
    ("apply -f -", MANIFEST, "deployment.apps/web created\n"),
    ("apply -f -", MANIFEST, "deployment.apps/web unchanged\n"),
    ("apply --server-side --force-conflicts -f -", MANIFEST, "deployment.apps/web serverside-applied\n"),
    ("get deployments web -o 'jsonpath={.spec.replicas}'", "", "2\n"),
    ("get deployments web -o 'go-template={{.metadata.name}}'", "", "web\n"),
    ("get deployments -o custom-columns=N:.metadata.name,R:.spec.replicas", "", "N R\nweb 2\n"),
    (
        "get deployments,configmaps -l app=web --chunk-size=1 --sort-by=.metadata.name -o name",
        "",
        "deployment.apps/web\n",
    ),
    ("get deployments --field-selector=metadata.name=other -o name", "", ""),
    ("scale deployment web --replicas=3 --current-replicas=2", "", "deployment.apps/web scaled\n"),
    ("patch deployment web -p '{\"spec\":{\"paused\":true}}'", "", "deployment.apps/web patched\n"),
    ("patch deployment web --type=merge -p '{\"spec\":{\"paused\":null}}'", "", "deployment.apps/web patched\n"),
    (
        "patch deployment web --subresource=scale --type=json -p '[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":4}]'",
        "",
        "scale.autoscaling/web patched\n",
    ),
    ("set image deployment/web c=registry.example/web:2", "", "deployment.apps/web image updated\n"),
    ("set env deployment/web A=b", "", "deployment.apps/web env updated\n"),
    ("set resources deployment/web --limits=cpu=200m", "", "deployment.apps/web resource requirements updated\n"),
    ("rollout restart deployment/web", "", "deployment.apps/web restarted\n"),
    ("rollout pause deployment/web", "", "deployment.apps/web paused\n"),
    ("rollout resume deployment/web", "", "deployment.apps/web resumed\n"),
    (
        "wait deployment/web '--for=jsonpath={.spec.replicas}=4' --timeout=30s",
        "",
        "deployment.apps/web condition met\n",
    ),
    ("expose deployment web --port=80", "", "service/web exposed\n"),
    ("label deployment web x=y", "", "deployment.apps/web labeled\n"),
    ("annotate deployment web x=y", "", "deployment.apps/web annotated\n"),
    ("create configmap a --from-literal=k=v", "", "configmap/a created\n"),
    ("create ingress i --rule=a.example/x=web:80", "", "ingress.networking.k8s.io/i created\n"),
    (
        "api-resources --api-group=apps -o name",
        "",
        "controllerrevisions.apps\ndaemonsets.apps\ndeployments.apps\nreplicasets.apps\nstatefulsets.apps\n",
    ),
    ("apply -f -", DEFINITION, "customresourcedefinition.apiextensions.k8s.io/things.releases.example.com created\n"),
    (
        "wait crd/things.releases.example.com --for=condition=Established --timeout=30s",
        "",
        "customresourcedefinition.apiextensions.k8s.io/things.releases.example.com condition met\n",
    ),
    ("apply -f -", THING, "thing.releases.example.com/one created\n"),
    ("scale things one --replicas=5", "", "thing.releases.example.com/one scaled\n"),
    ("get things -o name --ignore-not-found", "", "thing.releases.example.com/one\n"),
];

/// What is refused, and what must be said about it.
const REFUSALS: &[(&str, &str, &str)] = &[
    ("apply -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndat: {}\n", "unknown field \"dat\""),
    ("scale deployment web --replicas=3 --current-replicas=2", "", "Expected replicas to be 2, was 4"),
    ("patch things one -p '{}'", "", "application/strategic-merge-patch+json is not supported"),
    ("label deployment web x=z", "", "'x' already has a value (y), and --overwrite is false"),
    ("explain nosuch", "", "the server doesn't have a resource type \"nosuch\""),
    ("get things two", "", "things.releases.example.com \"two\" not found"),
];

/// What is explained, and the beginning of a line that says so.
const EXPLAINED: &[(&str, &str)] = &[
    ("deployment.spec.replicas", "FIELD: replicas <integer>"),
    ("pod.spec.containers.resources.limits", "FIELD: limits <map[string]Quantity>"),
    ("thing.spec", " replicas\t<integer>"),
];

async fn does_it_all(program: PathBuf) {
    let (_server, kubectl) = start_program(program, &["--controllers=*"]).await;
    for (line, input, want) in STORY {
        let (succeeded, text) = kubectl.run_with(line, input).await;
        let said: String =
            text.lines().filter(|line| !line.starts_with("Warning: ")).map(|line| format!("{line}\n")).collect();
        assert!(succeeded, "kubectl {line}: {text}");
        assert_eq!(squeezed(&said), *want, "kubectl {line}");
    }
    for (line, input, want) in REFUSALS {
        let text = kubectl.refused_with(line, input).await;
        assert!(text.contains(want), "kubectl {line}: {text}");
    }
    for (what, want) in EXPLAINED {
        let text = kubectl.ok(&format!("explain {what}")).await;
        assert!(
            text.lines().any(|line| squeezed(line).starts_with(squeezed(want).trim_end())),
            "explain {what}: {text}"
        );
    }
    let changed = MANIFEST.replace("replicas: 2", "replicas: 7");
    let differences = kubectl.refused_with("diff -f -", &changed).await;
    assert!(differences.lines().any(|line| line == "+  replicas: 7"), "{differences}");
    let shown = kubectl.ok("get deployments web --subresource=scale").await;
    assert!(squeezed(&shown).starts_with("NAME DESIRED AVAILABLE AGE\nweb 4 0 "), "{shown}");
}

#[tokio::test]
async fn the_oldest_kubectl_works() {
    does_it_all(oldest_program()).await;
}

#[tokio::test]
async fn a_current_kubectl_does_the_same() {
    does_it_all(program()).await;
}
