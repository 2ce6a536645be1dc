//! Rules between versions, as their author meets them.

use super::{start, walk};

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
async fn the_walk_through_versions_goes_as_it_says() {
    let (_server, kubectl) = start(&[]).await;
    walk::follow(&kubectl, "### From two versions to one object").await;
}

#[tokio::test]
async fn what_is_written_again_is_what_is_there() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.ok_with("apply -f -", &gates("[low, high]")).await;
    kubectl.ok_with("apply -f -", &conversion("{low: Low, high: High}")).await;
    kubectl.ok("wait --for=condition=InUse --timeout=30s conversion/gates.example.com").await;
    let text = kubectl.ok_with("apply -f -", &conversion("{high: High, low: Low}")).await;
    assert_eq!(text, "conversion.versioning.revisor.dev/gates.example.com unchanged\n");
    let wrong = conversion("{low: Low, high: Low}");
    let text = kubectl.refused_with("apply --server-side --dry-run=server --force-conflicts -f -", &wrong).await;
    assert!(text.contains("spec.steps[0].rules[1]: Invalid value: L1: "), "{text}");
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
