//! Definitions in the manner of large projects: many versions, some of them old, with columns and conditions.

use crate::kubectl::{Kubectl, start};

const DEFINITION: &str = include_str!("permits.yaml");

const BOAT: &str = "
apiVersion: office.example/v1
kind: Permit
metadata: {name: boat}
spec:
  sealName: boat-seal
  heritable: true
  fee: 2.5
  holders: [ann, bob]
  officeRef: {name: town}
  storage: {drawer: {number: 7}}
  template: {labels: {a: b}, notes: {any: {thing: [1, two]}}}
";

async fn defined(kubectl: &Kubectl) {
    let applied = "customresourcedefinition.apiextensions.k8s.io/permits.office.example serverside-applied\n";
    assert_eq!(kubectl.ok_with("apply --server-side -f -", DEFINITION).await, applied);
    kubectl.ok("wait --for=condition=Established crd/permits.office.example").await;
    let before = kubectl.json("get crd permits.office.example").await;
    assert_eq!(kubectl.ok_with("apply --server-side -f -", DEFINITION).await, applied);
    let after = kubectl.json("get crd permits.office.example").await;
    assert_eq!(before, after, "what changes nothing is not written");
}

#[tokio::test]
async fn all_versions_show_the_same_objects() {
    let (_server, kubectl) = start(&[]).await;
    defined(&kubectl).await;
    let old_warning = "Warning: office.example/v1alpha2 Permit is old; ask for office.example/v1\n";
    let beta_warning = "Warning: office.example/v1beta1 Permit is deprecated; use office.example/v1 Permit\n";
    kubectl.ok_with("apply --server-side -f -", BOAT).await;
    let old = BOAT.replace("/v1", "/v1alpha2").replace("boat", "old");
    assert_eq!(kubectl.ok_with("create -f -", &old).await, format!("permit.office.example/old created\n{old_warning}"));
    for (version, warning) in [("v1", ""), ("v1beta1", beta_warning), ("v1alpha2", old_warning)] {
        let line = format!(
            "get permits.{version}.office.example -o 'jsonpath={{.items[*].apiVersion}} {{.items[*].spec.term}}'"
        );
        let want = format!("office.example/{version} office.example/{version} 2160h 2160h{warning}");
        assert_eq!(kubectl.ok(&line).await, want);
    }
    let text = kubectl.refused("get permits.v1alpha3.office.example").await;
    assert!(text.contains("the server doesn't have a resource type \"permits\""), "{text}");

    let versions = "get pm boat --show-managed-fields -o jsonpath={.metadata.managedFields[*].apiVersion}";
    let beta = BOAT.replace("/v1", "/v1beta1").replace("2.5", "3.5");
    let text = kubectl.ok_with("apply --server-side --force-conflicts --field-manager=older -f -", &beta).await;
    assert_eq!(text, format!("permit.office.example/boat serverside-applied\n{beta_warning}"));
    assert_eq!(kubectl.ok(versions).await, "office.example/v1 office.example/v1beta1");
    let patch = r#"[{"op":"test","path":"/apiVersion","value":"office.example/v1beta1"},{"op":"replace","path":"/spec/storage","value":{"vault":{"a":"b"}}}]"#;
    kubectl.ok(&format!("patch permits.v1beta1.office.example boat --type=json -p '{patch}'")).await;
    let fields = "get pm --sort-by=.spec.fee -o custom-columns=N:.metadata.name,F:.spec.fee,S:.spec.storage";
    assert_eq!(
        kubectl.squeezed(fields).await,
        "N F S\nold 2.5 map[drawer:map[number:7]]\nboat 3.5 map[vault:map[a:b]]\n"
    );

    // The version that is stored is changed, and no version goes in which something may be stored.
    let stored = "get crd permits.office.example -o jsonpath={.status.storedVersions}";
    assert_eq!(kubectl.ok(stored).await, r#"["v1"]"#);
    let swap = r#"[{"op":"replace","path":"/spec/versions/2/storage","value":true},{"op":"replace","path":"/spec/versions/3/storage","value":false}]"#;
    kubectl.ok(&format!("patch crd permits.office.example --type=json -p '{swap}'")).await;
    assert_eq!(kubectl.ok(stored).await, r#"["v1","v1beta1"]"#);
    let removal = r#"patch crd permits.office.example --type=json -p '[{"op":"remove","path":"/spec/versions/3"}]'"#;
    let text = kubectl.refused(removal).await;
    assert!(text.contains("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions"), "{text}");
    assert_eq!(kubectl.ok("get pm boat -o jsonpath={.apiVersion}{.spec.fee}").await, "office.example/v13.5");
}

#[tokio::test]
async fn columns_show_conditions_of_the_status() {
    let (_server, kubectl) = start(&[]).await;
    defined(&kubectl).await;
    kubectl.ok_with("create -f -", BOAT).await;
    assert_eq!(kubectl.squeezed("get pm").await, "NAME VALID SEAL EXPIRES TRIES HEIRS\nboat boat-seal true\n");
    let waiting = kubectl.begin("wait pm/boat --for=condition=Valid --timeout=20s");
    let status = r#"{"status":{"attempts":2,"expires":"2099-01-01T00:00:00Z","conditions":[{"type":"Valid","status":"True","message":"all is well"}]}}"#;
    kubectl.ok(&format!("patch pm boat --subresource=status --type=merge -p '{status}'")).await;
    assert_eq!(waiting.rest().await, "permit.office.example/boat condition met\n");
    assert_eq!(
        kubectl.squeezed("get pms -o wide").await,
        "NAME VALID SEAL OFFICE REASON EXPIRES TRIES HEIRS FEE\n\
         boat True boat-seal town all is well <invalid> 2 true 2.5\n"
    );
    kubectl.ok("wait pm/boat --for=jsonpath={.status.attempts}=2").await;
    let text = kubectl.ok("describe permit boat").await;
    assert!(text.contains("Fee:        2.5\n") && text.contains("Message:  all is well\n"), "{text}");
    kubectl.ok("delete office --all --wait=false").await;
    // What is said depends on whether it is gone already.
    kubectl.ok("wait pm/boat --for=delete --timeout=20s").await;
    kubectl.ok("delete crd permits.office.example").await;
    assert!(kubectl.refused("get permits").await.contains("the server"), "they are gone");
}

#[tokio::test]
async fn all_mistakes_are_told_at_once() {
    let (_server, kubectl) = start(&[]).await;
    defined(&kubectl).await;
    let bad = "
apiVersion: office.example/v1
kind: Permit
metadata: {name: bad}
spec:
  sealName: \"\"
  fee: 0
  term: never
  address: here
  holders: [ann, bob, ann]
  usages: [sailing, flying]
  storage: {drawer: {number: 1.5}, vault: null}
  template: {labels: {a: 1}, notes: text}
";
    let text = kubectl.refused_with("apply -f -", bad).await;
    for cause in [
        "spec.sealName: Invalid value: \"\": spec.sealName in body should be at least 1 chars long",
        "spec.storage.drawer.number: Invalid value: \"number\": spec.storage.drawer.number in body must be of type \
         integer,string: \"number\"",
        "spec.address: Invalid value: \"here\": spec.address in body must be of type ipv4: \"here\"",
        "spec.usages[1]: Unsupported value: \"flying\": supported values: \"fishing\", \"mooring\", \"sailing\"",
        "spec.template.labels.a: Invalid value: \"integer\": spec.template.labels.a in body must be of type string: \
         \"integer\"",
        "spec.template.notes: Invalid value: \"string\": spec.template.notes in body must be of type object: \"string\"",
        "spec.fee: Invalid value: 0: factor MultipleOf declared for spec.fee must be positive: 0",
        "spec.fee: Invalid value: 0: spec.fee in body should be greater than 0",
        "spec.term: Invalid value: \"never\": spec.term in body must be of type duration: \"never\"",
        "spec.officeRef: Required value",
        "spec.holders[2]: Duplicate value: \"ann\"",
    ] {
        assert!(text.lines().any(|line| line.strip_prefix("* ") == Some(cause)), "{cause}\nin {text}");
    }
    assert_eq!(text.lines().count(), 12, "nothing is told that is right: {text}");
}
