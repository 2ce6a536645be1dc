//! Manifests that can be used, and what is wrong with others.

use revisor_catalog::{Catalog, CatalogOptions};

use super::*;

const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p.static.k8s.io}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: 'false'}]
";

const BINDING: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b.static.k8s.io}
spec: {policyName: p.static.k8s.io, validationActions: [Deny]}
";

const WEBHOOK: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w.static.k8s.io}
webhooks:
- name: one.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: 'https://example.com/x'}
  rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
";

fn read(plugin: AdmissionPlugin, texts: &[&str]) -> Result<StaticManifests, String> {
    let catalog = Catalog::build(&CatalogOptions::default()).expect("a catalog");
    let files: Vec<String> = (0..texts.len()).map(|at| format!("/m/{at}.yaml")).collect();
    let documents: Vec<_> =
        files.iter().zip(texts).map(|(file, text)| ManifestDocument { file, text: text.as_bytes() }).collect();
    StaticManifests::read(&catalog, plugin, &documents).map_err(|error| error.to_string())
}

#[test]
fn policies_and_webhooks_are_taken_alone_and_in_lists() {
    use AdmissionPlugin::{MutatingAdmissionWebhook, ValidatingAdmissionPolicy, ValidatingAdmissionWebhook};
    let indented = |text: &str| text.replace('\n', "\n  ");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}\n- {}", indented(BINDING), indented(POLICY));
    let untyped = indented(WEBHOOK.split_once("metadata").map(|(_, rest)| rest).expect("has metadata"));
    let typed = format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfigurationList\nitems:\n- metadata{untyped}"
    );
    for (case, plugin, texts, want) in [
        ("nothing", ValidatingAdmissionPolicy, vec![], 0),
        ("a policy that nothing binds", ValidatingAdmissionPolicy, vec![POLICY], 0),
        ("a policy and its binding", ValidatingAdmissionPolicy, vec![BINDING, POLICY], 1),
        ("the same in a list", ValidatingAdmissionPolicy, vec![&*list], 1),
        ("a webhook", ValidatingAdmissionWebhook, vec![WEBHOOK], 1),
        ("a list of its kind", ValidatingAdmissionWebhook, vec![&*typed], 1),
        ("no webhook that changes anything", MutatingAdmissionWebhook, vec![], 0),
    ] {
        assert_eq!(read(plugin, &texts).map(|manifests| manifests.len()), Ok(want), "{case}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_file() {
    use AdmissionPlugin::{
        AlwaysPullImages, MutatingAdmissionWebhook, ValidatingAdmissionPolicy, ValidatingAdmissionWebhook,
    };
    let in_first = |problem: &str| format!("error loading /m/0.yaml: {problem}");
    let without_suffix = WEBHOOK.replace("w.static.k8s.io", "w");
    let of_service = WEBHOOK.replace("url: 'https://example.com/x'", "service: {namespace: a, name: b}");
    let misspelt = WEBHOOK.replace("sideEffects", "sideEfects");
    let param = format!("{POLICY}  paramKind: {{apiVersion: v1, kind: ConfigMap}}\n");
    let uncompiled = POLICY.replace("'false'", "'object.'");
    let stored = BINDING.replace("policyName: p.static.k8s.io", "policyName: p");
    let missing = BINDING.replace("policyName: p.static.k8s.io", "policyName: q.static.k8s.io");
    for (plugin, texts, want) in [
        (AlwaysPullImages, vec![], "AlwaysPullImages takes no manifests".to_owned()),
        (ValidatingAdmissionWebhook, vec!["a: ["], in_first("couldn't get version/kind; ")),
        (ValidatingAdmissionWebhook, vec!["a: 1"], in_first("Object 'Kind' is missing")),
        (ValidatingAdmissionWebhook, vec!["kind: a\nkind: b"], in_first("strict decoding error: duplicate field")),
        (
            MutatingAdmissionWebhook,
            vec![WEBHOOK],
            in_first(
                "unsupported resource type admissionregistration.k8s.io/v1, Kind=ValidatingWebhookConfiguration",
            ),
        ),
        (ValidatingAdmissionWebhook, vec![&*misspelt], in_first("strict decoding error: unknown field")),
        (
            ValidatingAdmissionWebhook,
            vec![&*without_suffix],
            in_first("\"w\" in file \"/m/0.yaml\" must have a name ending with \".static.k8s.io\""),
        ),
        (
            ValidatingAdmissionWebhook,
            vec![&*of_service],
            in_first(
                "webhook \"one.example.com\" in \"w.static.k8s.io\" (file \"/m/0.yaml\"): clientConfig.service is not \
                 supported for static manifests; use clientConfig.url instead",
            ),
        ),
        (
            ValidatingAdmissionWebhook,
            vec![WEBHOOK, WEBHOOK],
            "error loading /m/1.yaml: duplicate name \"w.static.k8s.io\" found in file \"/m/1.yaml\" (previously seen in \
             \"/m/0.yaml\")"
                .to_owned(),
        ),
        (
            ValidatingAdmissionPolicy,
            vec![&*param],
            in_first(
                "ValidatingAdmissionPolicy \"p.static.k8s.io\": spec.paramKind is not supported for static manifests",
            ),
        ),
        (
            ValidatingAdmissionPolicy,
            vec![&*uncompiled],
            in_first("ValidatingAdmissionPolicy \"p.static.k8s.io\": spec.validations[0].expression: Invalid value: "),
        ),
        (
            ValidatingAdmissionPolicy,
            vec![&*stored],
            in_first("binding \"b.static.k8s.io\": spec.policyName \"p\" must end with \".static.k8s.io\""),
        ),
        (
            ValidatingAdmissionPolicy,
            vec![POLICY, &*missing],
            "binding \"b.static.k8s.io\" references policy \"q.static.k8s.io\" which does not exist in the manifest \
             directory"
                .to_owned(),
        ),
    ] {
        let error = read(plugin, &texts).expect_err(&want);
        assert!(error.starts_with(&want), " got {error}\nwant {want}");
    }
}
