//! Rules between versions, as their author meets them: the demonstration of the README.

use super::start;

/// Two versions of a gate. The second has a size with a height, and other names for levels.
fn gates(levels: &str) -> String {
    format!(
        r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: gates.example.com}}
spec:
  group: example.com
  scope: Cluster
  names: {{plural: gates, singular: gate, kind: Gate, listKind: GateList}}
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
              width: {{type: integer}}
              level: {{type: string, enum: {levels}}}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {{type: object, properties: {{width: {{type: integer}}, height: {{type: integer}}}}}}
              level: {{type: string, enum: [Low, High]}}
"#
    )
}

fn conversion(map: &str) -> String {
    format!(
        r#"apiVersion: versioning.revisor.dev/v1alpha1
kind: Conversion
metadata: {{name: gates.example.com}}
spec:
  steps:
  - from: v1
    to: v2
    rules:
    - move: {{from: .spec.width, to: .spec.size.width}}
    - values: {{path: .spec.level, map: {map}}}
"#
    )
}

#[tokio::test]
async fn a_wrong_rule_teaches_and_the_right_one_is_in_use() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.ok_with("apply -f -", &gates("[low, lo, high]")).await;
    let wrong = conversion("{low: Low, lo: Low, high: High}");
    let text = kubectl.refused_with("apply -f -", &wrong).await;
    assert_eq!(
        text,
        r#"The Conversion "gates.example.com" is invalid: spec.steps[0].rules[1]: Invalid value: L1: there and back again, .spec.level is not what it was
object: {"apiVersion":"example.com/v1","kind":"Gate","metadata":{"name":"x"},"spec":{"level":"low"}}
becomes: {"apiVersion":"example.com/v2","kind":"Gate","metadata":{"name":"x"},"spec":{"level":"Low"}}
back: {"apiVersion":"example.com/v1","kind":"Gate","metadata":{"name":"x"},"spec":{"level":"lo"}}
"#
    );
    kubectl.refused_with("apply --server-side --dry-run=server -f -", &wrong).await;

    kubectl.ok_with("apply -f -", &gates("[low, high]")).await;
    let text = kubectl.ok_with("apply -f -", &conversion("{low: Low, high: High}")).await;
    assert_eq!(text, "conversion.versioning.revisor.dev/gates.example.com created\n");
    let table = kubectl.squeezed("get conv").await;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "NAME VERSIONS VERDICT IN USE AGE");
    assert!(lines[1].starts_with("gates.example.com v1,v2 Proved True "), "{table}");
    kubectl.ok("wait --for=condition=InUse --timeout=30s conversion/gates.example.com").await;
    let text = kubectl.ok_with("apply -f -", &conversion("{high: High, low: Low}")).await;
    assert_eq!(text, "conversion.versioning.revisor.dev/gates.example.com unchanged\n");
}

#[tokio::test]
async fn conversions_are_found_and_explained() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.ok_with("apply -f -", &gates("[low, high]")).await;
    let resources = kubectl.squeezed("api-resources --no-headers --api-group=versioning.revisor.dev").await;
    assert!(
        resources.starts_with("conversions conv versioning.revisor.dev/v1alpha1 false Conversion\n"),
        "{resources}"
    );
    let text = kubectl.squeezed("explain conversions.spec.steps.rules").await;
    for line in [
        "FIELD: rules <[]ConversionRule>",
        "move <ConversionPlaces>",
        "each <ConversionEach>",
        "The value has another place on the other side.",
    ] {
        assert!(text.lines().any(|found| found.trim() == line), "{line}: {text}");
    }
    let text = kubectl.squeezed("explain conv.status.steps").await;
    assert!(text.contains("verdict <string> -required-\n"), "{text}");
    // Misspelled rules are found before anything is sent.
    let text = kubectl.refused_with("apply -f -", &conversion("{low: Low}").replace("move:", "mvoe:")).await;
    assert!(text.contains("unknown field \"spec.steps[0].rules[0].mvoe\""), "{text}");
    let text = kubectl.ok("auth can-i create conversions.versioning.revisor.dev").await;
    assert!(text.starts_with("yes\n"), "{text}");
}
