//! Definitions in the manner of networking projects: what a harbour may be is said by rules across its fields.

use crate::kubectl::{Kubectl, start};

const DEFINITIONS: &str = include_str!("harbours.yaml");

const NORTH: &str = "
apiVersion: sea.example/v1
kind: Harbour
metadata: {name: north}
spec:
  authority: town
  master: first
  berths:
  - {name: first, quay: 1, cargo: Grain}
  - {name: second, quay: 2, cargo: Oil, seal: {keys: [k]}}
";

async fn defined(kubectl: &Kubectl) {
    let text = kubectl.ok_with("apply -f -", DEFINITIONS).await;
    let said = |word: &str| {
        ["harbours", "passages"]
            .map(|name| format!("customresourcedefinition.apiextensions.k8s.io/{name}.sea.example {word}\n"))
            .concat()
    };
    assert_eq!(text, said("created"));
    let text = kubectl.ok("wait --for=condition=Established crd/harbours.sea.example crd/passages.sea.example").await;
    assert_eq!(text, said("condition met"));
    assert_eq!(kubectl.ok_with("apply -f -", DEFINITIONS).await, said("unchanged"));
}

#[tokio::test]
async fn rules_across_fields_are_all_told() {
    let (_server, kubectl) = start(&[]).await;
    defined(&kubectl).await;
    let broken = "
apiVersion: sea.example/v1
kind: Harbour
metadata: {name: south}
spec:
  authority: town
  master: nobody
  tide: Low
  berths:
  - {name: first, quay: 1, cargo: Grain, seal: {mode: Open}}
  - {name: second, quay: 1, cargo: Oil, flag: red, seal: {}}
  - {name: third, quay: 1, cargo: Grain, seal: {mode: Closed, keys: [a]}}
";
    assert_eq!(
        kubectl.refused_with("apply -f -", broken).await,
        "The Harbour \"south\" is invalid: \n\
         * spec.master: Required value: the master must have a berth\n\
         * spec.berths: Invalid value: quay, cargo and flag together must be unique\n\
         * spec.berths: Invalid value: no flag may be asked for where oil is loaded\n\
         * spec.berths[0]: Invalid value: a seal is not possible for Grain\n\
         * spec.berths[1].seal: Invalid value: a closed seal needs keys or options\n\
         * spec.berths[2]: Invalid value: a seal is not possible for Grain\n"
    );
    let mistyped = "
apiVersion: sea.example/v1
kind: Harbour
metadata: {name: east}
spec:
  authority: \"\"
  berths:
  - {name: First, quay: 0, cargo: Coal}
  - {name: First, quay: high, cargo: Oil}
  - {quay: 10000, cargo: Oil}
";
    let text = kubectl.refused_with("apply -f - --validate=false", mistyped).await;
    for cause in [
        "spec.authority: Invalid value: \"\": spec.authority in body should be at least 1 chars long",
        "spec.berths[0].quay: Invalid value: 0: spec.berths[0].quay in body should be greater than or equal to 1",
        "spec.berths[0].cargo: Unsupported value: \"Coal\": supported values: \"Grain\", \"Wood\", \"Oil\", \"Gas\"",
        "spec.berths[1].quay: Invalid value: \"string\": spec.berths[1].quay in body must be of type integer: \"string\"",
        "spec.berths[2].name: Required value",
        "spec.berths[1]: Duplicate value: {\"name\":\"First\"}",
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct \
         the existing errors to complete validation",
    ] {
        assert!(text.lines().any(|line| line.strip_prefix("* ") == Some(cause)), "{cause}\nin {text}");
    }
    assert_eq!(text.lines().count(), 11, "one line for each mistake: {text}");

    let legs = "{apiVersion: sea.example/v1, kind: Passage, metadata: {name: p}, spec: {harbour: north, legs: \
                [{turn: 3}, {wait: 25h}, {turn: 1, wait: 1h}, {}]}}";
    assert_eq!(
        kubectl.refused_with("create -f -", legs).await,
        "The Passage \"p\" is invalid: \n\
         * spec.legs[1].wait: Invalid value: \"25h\": nobody waits for more than a day\n\
         * spec.legs[2]: Invalid value: exactly one of turn and wait must be given\n\
         * spec.legs[3]: Invalid value: exactly one of turn and wait must be given\n"
    );
}

#[tokio::test]
async fn rules_of_change_hold_for_every_kind_of_change() {
    let (_server, kubectl) = start(&[]).await;
    defined(&kubectl).await;
    assert_eq!(kubectl.ok_with("apply -f -", NORTH).await, "harbour.sea.example/north created\n");
    let invalid = "The Harbour \"north\" is invalid: ";
    for (change, problem) in [
        (r#"--type=merge -p '{"spec":{"authority":"state"}}'"#, "spec.authority: Forbidden: the authority stays"),
        (r#"--type=merge -p '{"spec":{"tide":"Low"}}'"#, "spec: Invalid value: the tide cannot be given or taken away"),
        (
            r#"--type=json -p '[{"op":"remove","path":"/spec/berths/0"}]'"#,
            "spec.master: Required value: the master must have a berth",
        ),
    ] {
        let text = kubectl.refused(&format!("patch harbour north {change}")).await;
        assert_eq!(text, format!("{invalid}{problem}\n"));
    }
    for (line, problem) in [
        ("apply -f -", "spec.authority: Forbidden: the authority stays"),
        ("replace -f -", "spec.authority: Forbidden: the authority stays"),
        ("apply --server-side --force-conflicts -f -", "spec.authority: Forbidden: the authority stays"),
    ] {
        let text = kubectl.refused_with(line, &NORTH.replace("town", "state")).await;
        assert!(text.contains(problem), "{line}: {text}");
    }
    let text = kubectl.refused(r#"patch hb north --type=strategic -p '{"spec":{"master":"second"}}'"#).await;
    assert!(text.contains("accepted media types include: application/json-patch+json"), "{text}");
    kubectl.ok(r#"patch hb north --type=merge -p '{"spec":{"master":"second"}}'"#).await;
    let found = kubectl.json("get hb north").await;
    assert_eq!((&found["spec"]["master"], &found["metadata"]["generation"]), (&"second".into(), &2.into()));
    assert_eq!(found["spec"]["berths"][1]["seal"]["mode"], "Closed", "defaults are filled in: {found}");
    assert_eq!(found["spec"]["berths"][0]["guests"]["from"], "Same", "also those within defaults: {found}");
}

#[tokio::test]
async fn objects_are_found_under_every_name_and_waited_for() {
    let (_server, kubectl) = start(&[]).await;
    defined(&kubectl).await;
    kubectl.ok_with("apply -f -", NORTH).await;
    let status = r#"{"status":{"ships":3,"conditions":[{"type":"Open","status":"True"}]}}"#;
    kubectl.ok(&format!("patch hb north --subresource=status --type=merge -p '{status}'")).await;
    let met = "harbour.sea.example/north condition met\n";
    assert_eq!(kubectl.ok("wait hb/north --for=condition=Open").await, met);
    assert_eq!(kubectl.ok("wait hb/north --for=jsonpath={.status.ships}=3").await, met);
    for name in ["hb", "harbour", "harbours", "harbours.sea.example", "harbours.v1.sea.example", "harbour/north"] {
        let text = kubectl.squeezed(&format!("get {name} -o wide")).await;
        assert!(text.starts_with("NAME AUTHORITY OPEN QUAYS AGE\nnorth town True 1 "), "{name}: {text}");
    }

    let passage = |name: &str, rest: &str| {
        format!("{{apiVersion: sea.example/v1, kind: Passage, metadata: {{name: {name}}}, spec: {{{rest}}}}}")
    };
    kubectl.ok_with("create -f -", &passage("p", "harbour: north, legs: [{turn: 3}, {wait: 2h}]")).await;
    kubectl.ok_with("create -f -", &passage("q", "harbour: south, ships: 3")).await;
    let text = kubectl.refused_with("create -f -", &passage("r", "harbour: south, ship: 3")).await;
    assert!(text.contains("strict decoding error: unknown field \"spec.ship\""), "{text}");
    assert_eq!(kubectl.ok("scale passage p --replicas=4").await, "passage.sea.example/p scaled\n");
    assert_eq!(kubectl.squeezed("get passages").await, "NAME HARBOUR SHIPS\np north 4\nq south 3\n");
    let of_south = "get passages --field-selector spec.harbour=south -o name";
    assert_eq!(kubectl.ok(of_south).await, "passage.sea.example/q\n");
    let text = kubectl.refused("get passages --field-selector spec.ships=4").await;
    assert!(text.contains("field label not supported: spec.ships"), "{text}");
    let all = kubectl.ok("get sea -o name").await;
    assert_eq!(all, "harbour.sea.example/north\npassage.sea.example/p\npassage.sea.example/q\n");

    kubectl.ok("delete passages --all").await;
    assert_eq!(kubectl.ok("delete hb north").await, "harbour.sea.example \"north\" deleted from default namespace\n");
    kubectl.ok_with("delete -f -", DEFINITIONS).await;
    let text = kubectl.refused("get hb").await;
    assert!(text.contains("the server could not find the requested resource"), "{text}");
}

#[tokio::test]
async fn berths_are_owned_one_by_one() {
    let (_server, kubectl) = start(&[]).await;
    assert!(kubectl.ok_with("apply --server-side -f -", DEFINITIONS).await.ends_with("serverside-applied\n"));
    let applied = "harbour.sea.example/north serverside-applied\n";
    assert_eq!(kubectl.ok_with("apply --server-side -f -", NORTH).await, applied);
    assert_eq!(kubectl.ok_with("apply --server-side --field-manager=other -f -", NORTH).await, applied);
    let moved = NORTH.replace("quay: 1,", "quay: 7,");
    let text = kubectl.refused_with("apply --server-side --field-manager=other -f -", &moved).await;
    let conflict = "Apply failed with 1 conflict: conflict with \"kubectl\": .spec.berths[name=\"first\"].quay";
    assert!(text.contains(conflict), "{text}");
    let forced = "apply --server-side --field-manager=other --force-conflicts -f -";
    assert_eq!(kubectl.ok_with(forced, &moved).await, applied);
    let third = "{apiVersion: sea.example/v1, kind: Harbour, metadata: {name: north}, spec: {berths: \
                 [{name: third, quay: 3, cargo: Wood}]}}";
    assert_eq!(kubectl.ok_with("apply --server-side --field-manager=third -f -", third).await, applied);
    let quays = "get hb north -o jsonpath={.spec.berths[*].quay}";
    assert_eq!(kubectl.ok(quays).await, "7 2 3");
}

#[tokio::test]
async fn definitions_are_explained() {
    let (_server, kubectl) = start(&[]).await;
    defined(&kubectl).await;
    let text = kubectl.squeezed("explain harbour.spec.berths").await;
    assert!(text.starts_with("GROUP: sea.example\nKIND: Harbour\nVERSION: v1\n\nFIELD: berths <[]Object>\n"), "{text}");
    assert!(text.contains("Where ships lie.\n"), "{text}");
    assert!(text.contains("cargo <string> -required-\nenum: Grain, Wood, Oil, Gas\n"), "{text}");
    let whole = kubectl.squeezed("explain harbour --recursive").await;
    for line in ["A harbour with its berths.", "ownerReferences <[]OwnerReference>", "options <map[string]string>"] {
        assert!(whole.lines().any(|found| found == line), "{line}: {whole}");
    }
    let text = kubectl.squeezed("explain passage.spec --api-version=sea.example/v1").await;
    assert!(text.contains("harbour <string> -required-\n") && text.contains("ships <integer>\n"), "{text}");
    kubectl.ok_with("delete -f -", DEFINITIONS).await;
    assert!(kubectl.refused("explain harbour").await.contains("couldn't find resource"), "it is gone");
}
