//! `revisor crd check`: what a change breaks, from files, from git and from a cluster.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::custom::{define, definition, version};
use crate::harness::Server;

/// A definition of masts that are no higher than this.
fn masts(highest: u32) -> Value {
    let spec = json!({"type": "object", "properties": {
        "height": {"type": "integer", "minimum": 0, "maximum": highest}, "wood": {"type": "string"},
    }});
    definition("yard.example", "masts", json!([version("v1", true, spec)]))
}

fn properties(definition: &mut Value) -> &mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
}

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().expect("is in a folder")).expect("can be made");
    std::fs::write(file, text).expect("can be written");
}

fn run(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_revisor"));
    command.args(["crd", "check"]).args(words).current_dir(folder).env_remove("KUBECONFIG").env("HOME", folder);
    command.output().expect("the binary can be started")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The code, and class and path of every finding.
#[track_caller]
fn found(output: &Output) -> (Option<i32>, Vec<(String, String)>) {
    let shown = printed(output);
    let report: Value = serde_json::from_str(&shown)
        .unwrap_or_else(|error| panic!("{error}: {shown}{}", String::from_utf8_lossy(&output.stderr)));
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().expect("a list");
    (output.status.code(), findings.iter().map(|finding| (text(finding, "class"), text(finding, "path"))).collect())
}

fn pair(class: &str, path: &str) -> (String, String) {
    (class.to_owned(), path.to_owned())
}

#[test]
fn a_change_is_told_to_people_to_programs_and_to_github() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "old.json", &masts(30).to_string());
    write(folder.path(), "new.yaml", &format!("# masts\n---\n{}\n---\n# and nothing else\n", masts(20)));
    let json = run(folder.path(), &["old.json", "new.yaml", "-o", "json"]);
    assert_eq!(found(&json), (Some(1), vec![pair("breaks writers", ".spec.height")]));
    let report: Value = serde_json::from_str(&printed(&json)).expect("is JSON");
    let finding = &report["findings"][0];
    assert_eq!((&report["step"], &finding["step"]), (&json!("minor"), &json!("minor")));
    assert_eq!((&finding["definition"], &finding["version"]), (&json!("masts.yard.example"), &json!("v1")));
    assert_eq!(finding["witness"]["spec"], json!({"height": 21}));

    let text = printed(&run(folder.path(), &["old.json", "new.yaml"]));
    let want = "masts.yard.example\n  breaks writers (minor)\n    .spec.height [v1]: maximum is 20 now, and was 30";
    assert!(text.starts_with(want), "{text}");
    assert!(
        text.contains("\n      witness: {\"spec\":{\"height\":21}}\n") && text.ends_with("step: minor\n"),
        "{text}"
    );

    let github = printed(&run(folder.path(), &["old.json", "new.yaml", "-o", "github"]));
    let want = "::error file=new.yaml,line=3,title=breaks writers (minor)::masts.yard.example .spec.height [v1]: ";
    assert!(github.starts_with(want) && github.lines().count() == 1, "{github}");

    let wider = run(folder.path(), &["new.yaml", "old.json"]);
    assert_eq!(wider.status.code(), Some(0), "{}", printed(&wider));
}

#[test]
fn annotations_lead_to_the_line_of_the_field() {
    let folder = tempfile::tempdir().expect("a folder");
    let masts = |rigging: &str, highest: u32, scope: &str| {
        format!(
            "# masts
---
apiVersion: v1
kind: List
items:
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {{name: masts.yard.example}}
  spec:
    group: yard.example
    scope: {scope}
    names: {{plural: masts, kind: Mast}}
    versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                ropes:
                  type: array
                  items:
                    type: object
                    properties:
                      length:
                        type: integer
                        maximum: {highest}
                {rigging}: {{type: string}}
"
        )
    };
    write(folder.path(), "old.yaml", &masts("rigging", 30, "Namespaced"));
    write(folder.path(), "new.yaml", &masts("tackle", 20, "Cluster"));
    let github = printed(&run(folder.path(), &["old.yaml", "new.yaml", "-o", "github"]));
    for want in [
        "line=11,title=breaks all (major)::masts.yard.example spec.scope",
        "line=29,title=breaks writers (minor)::masts.yard.example .spec.ropes[*].length [v1]",
        // What is gone has no line; what it stood in has one.
        "line=21,title=breaks readers (minor)::masts.yard.example .spec.rigging [v1]",
        "line=32,title=additive (patch)::masts.yard.example .spec.tackle [v1]",
    ] {
        assert!(github.contains(want), "{want}: {github}");
    }
}

#[test]
fn what_is_put_in_when_a_definition_is_installed_may_be_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let unfinished = |highest: u32| {
        let mut definition = masts(highest);
        definition["spec"]["conversion"] =
            json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {}}});
        definition
    };
    write(folder.path(), "old.json", &unfinished(30).to_string());
    write(folder.path(), "new.json", &unfinished(20).to_string());
    let checked = run(folder.path(), &["old.json", "new.json"]);
    let text = printed(&checked);
    assert_eq!(checked.status.code(), Some(1), "{text}");
    assert!(text.contains(".spec.height [v1]: maximum is 20 now"), "{text}");
    assert!(
        text.contains("a server would not take it as it is: spec.conversion.webhookClientConfig: Required"),
        "{text}"
    );
}

#[test]
fn folders_and_revisions_are_compared_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let git = |words: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"])
            .args(words)
            .current_dir(folder.path())
            .output();
        assert!(done.expect("git runs").status.success(), "git {words:?}");
    };
    let ropes = definition("yard.example", "ropes", json!([version("v1", true, json!({"type": "object"}))]));
    git(&["init", "-q"]);
    write(folder.path(), "crds/masts.yaml", &masts(30).to_string());
    write(folder.path(), "crds/deep/ropes.yaml", &ropes.to_string());
    write(folder.path(), "crds/notes.txt", "not: [a definition");
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    write(folder.path(), "crds/masts.yaml", &masts(20).to_string());
    for words in
        [["HEAD:crds", "crds"], ["HEAD:crds/masts.yaml", "crds/masts.yaml"], [":crds/masts.yaml", "crds/masts.yaml"]]
    {
        let done = run(folder.path(), &[words[0], words[1], "-o", "json"]);
        assert_eq!(found(&done), (Some(1), vec![pair("breaks writers", ".spec.height")]), "{words:?}");
    }
    std::fs::remove_file(folder.path().join("crds/deep/ropes.yaml")).expect("is there");
    write(folder.path(), "crds/masts.yaml", &masts(30).to_string());
    let done = run(folder.path(), &["HEAD:crds", "crds", "-o", "json"]);
    assert_eq!(found(&done), (Some(1), vec![pair("breaks all", "metadata.name")]));
}

#[test]
fn a_declared_step_is_held_against_the_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = |semver: &str, highest: u32| {
        let mut made = masts(highest);
        made["metadata"]["annotations"] = json!({"versioning.revisor.dev/semver": semver});
        made.to_string()
    };
    write(folder.path(), "old.yaml", &made("1.2.0", 30));
    for (semver, highest, code) in [
        ("1.2.1", 20, 1),
        ("1.3.0", 20, 0),
        ("2.0.0", 20, 0),
        ("1.2.0", 20, 1),
        ("1.1.9", 30, 1),
        ("1.2.0", 30, 0),
        ("1.2.0", 40, 1),
        ("1.2.1", 40, 0),
    ] {
        write(folder.path(), "new.yaml", &made(semver, highest));
        let done = run(folder.path(), &["old.yaml", "new.yaml"]);
        assert_eq!(done.status.code(), Some(code), "{semver} {highest}: {}", printed(&done));
    }
    write(folder.path(), "new.yaml", &made("next", 30));
    let done = run(folder.path(), &["old.yaml", "new.yaml"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("no semantic version"));
}

#[test]
fn what_cannot_be_compared_is_told_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "good.yaml", &masts(30).to_string());
    write(folder.path(), "broken.yaml", "kind: A\n---\nkind: [\n");
    write(folder.path(), "other.yaml", "kind: ConfigMap\n");
    let mut invalid = masts(30);
    properties(&mut invalid)["wood"] = json!({"type": "tree", "maxLength": -1});
    invalid["spec"]["scope"] = json!("Everywhere");
    write(folder.path(), "invalid.yaml", &invalid.to_string());
    let both = format!("{}\n---\n{}\n", masts(30), masts(20));
    write(folder.path(), "twice.yaml", &both);
    for (words, want) in [
        (["good.yaml", "missing.yaml"], vec!["missing.yaml"]),
        (["good.yaml", "broken.yaml"], vec!["broken.yaml, document 2 (from line 3 on)"]),
        (["good.yaml", "other.yaml"], vec!["other.yaml", "no CustomResourceDefinition"]),
        (["good.yaml", "invalid.yaml"], vec!["invalid.yaml, document 1", "spec.scope", "\"tree\""]),
        (["good.yaml", "twice.yaml"], vec!["twice.yaml", "define the same"]),
        (["nothing:crds", "good.yaml"], vec!["nothing:crds", "git says"]),
    ] {
        let done = run(folder.path(), &words);
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{words:?}: {told}");
        assert!(want.iter().all(|part| told.contains(part)), "{words:?}: {told}");
    }
    let alone = run(folder.path(), &["good.yaml"]);
    let told = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(alone.status.code() == Some(2) && told.contains("--server"), "{told}");
}

#[test]
fn what_older_releases_wrote_is_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut new = masts(30);
    let mut old = new.clone();
    old["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
    old["spec"]["preserveUnknownFields"] = json!(false);
    let schema = old["spec"]["versions"][0]["schema"].take();
    old["spec"]["validation"] = schema;
    properties(&mut new)["height"]["maximum"] = json!(20);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [old, {"kind": "ConfigMap"}]});
    write(folder.path(), "old.yaml", &list.to_string());
    write(folder.path(), "new.yaml", &new.to_string());
    let done = run(folder.path(), &["old.yaml", "new.yaml", "-o", "json"]);
    assert_eq!(found(&done), (Some(1), vec![pair("breaks writers", ".spec.height")]));
}

#[tokio::test]
async fn a_cluster_is_compared_with_what_is_to_come_and_its_objects_are_held_against_it() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &masts(30)).await;
    for (name, spec) in [("low", json!({"height": 3})), ("high", json!({"height": 25, "wood": "pine"}))] {
        let mast = json!({"apiVersion": "yard.example/v1", "kind": "Mast", "metadata": {"name": name}, "spec": spec});
        client.post("/apis/yard.example/v1/namespaces/default/masts", &mast).await.expect(201);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut new = masts(20);
    properties(&mut new).as_object_mut().expect("an object").remove("wood");
    write(folder.path(), "new.yaml", &new.to_string());
    let kubeconfig = server.data().join("kubeconfig");
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let check = |words: &'static [&'static str]| {
        let (folder, kubeconfig) = (folder.path().to_owned(), kubeconfig.clone());
        tokio::task::spawn_blocking(move || {
            let words: Vec<&str> = words.iter().copied().chain([kubeconfig.as_str()]).collect();
            run(&folder, &words)
        })
    };
    let done = check(&["new.yaml", "-o", "json"]).await.expect("runs");
    let want = vec![pair("breaks readers", ".spec.wood"), pair("breaks writers", ".spec.height")];
    assert_eq!(found(&done), (Some(1), want));
    let live = check(&["new.yaml", "--live"]).await.expect("runs");
    let told = printed(&live);
    assert_eq!(live.status.code(), Some(1), "{told}");
    for want in [
        "1 of the 2 masts that the cluster has would no longer validate: default/high",
        "1 of the 2 masts that the cluster has would show less: default/high",
    ] {
        assert!(told.contains(want), "{told}");
    }
}
