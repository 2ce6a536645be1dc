//! Files that tell plugins how to work, good ones and bad ones.

use revisor_registry::{EventLimit, EventLimitType};

use super::*;

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";

fn load_text(text: &str, enabled: &[AdmissionPlugin]) -> Result<AdmissionConfig, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("admission.yaml");
    std::fs::write(&file, text).expect("is written");
    std::fs::write(
        folder.path().join("limits.yaml"),
        "kind: Configuration\napiVersion: eventratelimit.admission.k8s.io/v1alpha1\nlimits: [{type: Namespace, qps: 1, burst: 2}]",
    )
    .expect("is written");
    let certificate = folder.path().join("kubeconfig");
    std::fs::write(
        &certificate,
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: 'https://images.example.com/x'}}]\nusers: [{name: u, user: {token: secret}}, {name: '*.svc', user: {username: a, password: b}}]",
    )
    .expect("is written");
    let named = folder.path().display().to_string();
    let text = text.replace("FOLDER", &named);
    std::fs::write(&file, text).expect("is written");
    let loaded = load(Some(&file), enabled, AdmissionConfig::default(), true);
    loaded.map_err(|error| format!("{error:#}").replace(&named, "FOLDER"))
}

#[test]
fn plugins_are_told_in_the_file_and_in_others() {
    use AdmissionPlugin::{EventRateLimit, ImagePolicyWebhook, MutatingAdmissionWebhook, PodNodeSelector, PodSecurity};
    let text = format!(
        "{HEAD}plugins:
- name: EventRateLimit
  path: limits.yaml
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults: {{enforce: baseline, enforce-version: v1.30}}
    exemptions: {{usernames: [anna], namespaces: [kube-system], runtimeClasses: [kata]}}
- name: PodNodeSelector
  configuration: {{podNodeSelectorPluginConfig: {{clusterDefaultNodeSelector: 'a=b'}}}}
- name: ImagePolicyWebhook
  configuration: {{imagePolicy: {{kubeConfigFile: FOLDER/kubeconfig, allowTTL: 50, denyTTL: -1, defaultAllow: true}}}}
- name: MutatingAdmissionWebhook
  configuration: {{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: FOLDER/kubeconfig}}
- name: NotEvenAPlugin
  configuration: {{a: b}}
"
    );
    let enabled = [EventRateLimit, ImagePolicyWebhook, MutatingAdmissionWebhook, PodNodeSelector, PodSecurity];
    let config = load_text(&text, &enabled).expect("can be used");
    let limit = EventLimit { kind: EventLimitType::Namespace, qps: 1, burst: 2, cache_size: 4096 };
    assert_eq!(config.event_limits, [limit]);
    assert_eq!(config.pod_security.exempt_users, ["anna"]);
    assert_eq!(config.pod_node_selectors.get("clusterDefaultNodeSelector").map(String::as_str), Some("a=b"));
    let policy = config.image_policy.expect("is told");
    assert_eq!((policy.allow_ttl.as_secs(), policy.deny_ttl.as_secs(), policy.default_allow), (50, 0, true));
    assert_eq!(policy.credentials.token.as_deref(), Some("secret"));
    let hook = revisor_webhook::Target::Url("https://hook.ns.svc/x".to_owned());
    let found = config.mutating_webhook_credentials.find(&hook).expect("is told");
    assert_eq!(found.basic, Some(("a".to_owned(), "b".to_owned())));

    // Who is switched off is not asked what it was told.
    assert_eq!(load_text(&text, &[]), Ok(AdmissionConfig::default()));
    let old = "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: 'c=d'}";
    let config = load_text(old, &[PodNodeSelector]).expect("older files have no kind");
    assert_eq!(config.pod_node_selectors.len(), 1);
}

#[test]
fn what_is_wrong_is_told_with_file_plugin_and_field() {
    use AdmissionPlugin::{
        EventRateLimit, ImagePolicyWebhook, PodNodeSelector, PodSecurity, PodTolerationRestriction, ResourceQuota,
        ValidatingAdmissionPolicy, ValidatingAdmissionWebhook,
    };
    const READ: &str = "unable to read admission control configuration from \"FOLDER/admission.yaml\": ";
    let told =
        |name: &str, configuration: &str| format!("{HEAD}plugins: [{{name: {name}, configuration: {configuration}}}]");
    let security = |more: &str| {
        told(
            "PodSecurity",
            &format!("{{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, {more}}}"),
        )
    };
    let as_configured =
        |name: &str| format!("couldn't init admission plugin {name:?} as FOLDER/admission.yaml configures it: ");
    for (text, plugin, want) in [
        ("[]".to_owned(), PodSecurity, format!("{READ}couldn't get version/kind")),
        (
            "kind: Pod\napiVersion: v1".to_owned(),
            PodSecurity,
            format!("{READ}no kind \"Pod\" is registered for version \"v1\""),
        ),
        (format!("{HEAD}plugin: []"), PodSecurity, format!("{READ}strict decoding error: unknown field \"plugin\"")),
        (
            format!("{HEAD}plugins: [{{name: PodSecurity, path: nowhere.yaml}}]"),
            PodSecurity,
            "Couldn't open admission plugin configuration FOLDER/nowhere.yaml: ".to_owned(),
        ),
        (
            security("defaults: {enforce: strict, audit-version: '1.2'}, exemptions: {namespaces: [a, a, B]}"),
            PodSecurity,
            format!(
                "{}[defaults.enforce: Invalid value: \"strict\": must be one of privileged, baseline, restricted, \
                 defaults.audit-version: Invalid value: \"1.2\": must be \"latest\" or \"v1.x\", \
                 exemptions.namespaces[1]: Duplicate value: \"a\", exemptions.namespaces[2]: Invalid value: \"B\"",
                as_configured("PodSecurity")
            ),
        ),
        (
            security("default: {}"),
            PodSecurity,
            format!("{}strict decoding error: unknown field \"default\"", as_configured("PodSecurity")),
        ),
        (
            HEAD.to_owned(),
            EventRateLimit,
            "couldn't init admission plugin \"EventRateLimit\": limits: Invalid value: ".to_owned(),
        ),
        (
            told(
                "EventRateLimit",
                "{apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [{type: Pod, qps: 0, burst: 1, cacheSize: -1}]}",
            ),
            EventRateLimit,
            format!(
                "{}[limits[0].type: Unsupported value: \"Pod\": supported values: \"Server\", \"Namespace\", \"User\", \
                 \"SourceAndObject\", limits[0].qps: Invalid value: 0: must be positive, limits[0].cacheSize: Invalid \
                 value: -1: must not be negative]",
                as_configured("EventRateLimit")
            ),
        ),
        (
            HEAD.to_owned(),
            ImagePolicyWebhook,
            "couldn't init admission plugin \"ImagePolicyWebhook\": no config specified".to_owned(),
        ),
        (
            told("ImagePolicyWebhook", "{imagePolicy: {kubeConfigFile: /x, allowTTL: 9999}}"),
            ImagePolicyWebhook,
            format!(
                "{}imagePolicy.allowTTL: valid value is between 1s and 1800s, got 9999",
                as_configured("ImagePolicyWebhook")
            ),
        ),
        (
            told("ImagePolicyWebhook", "{imagePolicy: {kubeConfigFile: FOLDER/none}}"),
            ImagePolicyWebhook,
            format!(
                "{}imagePolicy.kubeConfigFile: cannot read the kubeconfig FOLDER/none: ",
                as_configured("ImagePolicyWebhook")
            ),
        ),
        (
            told("PodNodeSelector", "{podNodeSelectorPluginConfig: {default: 'a in (b)'}}"),
            PodNodeSelector,
            format!(
                "{}podNodeSelectorPluginConfig[default]: Invalid value: \"a in (b)\": invalid selector: [a in (b)]",
                as_configured("PodNodeSelector")
            ),
        ),
        (
            told(
                "PodTolerationRestriction",
                "{apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration, default: [{operator: Exists, effect: Never}]}",
            ),
            PodTolerationRestriction,
            format!(
                "{}invalid config: podtolerationrestriction.default[0].effect: Unsupported value: \"Never\"",
                as_configured("PodTolerationRestriction")
            ),
        ),
        (
            told(
                "ResourceQuota",
                "{apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration, limitedResources: [{matchContains: [a]}]}",
            ),
            ResourceQuota,
            format!("{}limitedResources[0].resource: Required value", as_configured("ResourceQuota")),
        ),
        (
            told(
                "ValidatingAdmissionWebhook",
                "{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: some/file}",
            ),
            ValidatingAdmissionWebhook,
            format!(
                "{}kubeConfigFile: Invalid value: \"some/file\": must be an absolute file path",
                as_configured("ValidatingAdmissionWebhook")
            ),
        ),
        (
            told(
                "ValidatingAdmissionPolicy",
                "{apiVersion: apiserver.config.k8s.io/v1, kind: ValidatingAdmissionPolicyConfiguration, staticManifestsDir: /etc/x}",
            ),
            ValidatingAdmissionPolicy,
            format!(
                "{}staticManifestsDir: Invalid value: \"/etc/x\": unable to read: ",
                as_configured("ValidatingAdmissionPolicy")
            ),
        ),
        (
            told(
                "ValidatingAdmissionPolicy",
                "{apiVersion: apiserver.config.k8s.io/v1, kind: ValidatingAdmissionPolicyConfiguration, staticManifestsDir: FOLDER/kubeconfig}",
            ),
            ValidatingAdmissionPolicy,
            format!(
                "{}staticManifestsDir: Invalid value: \"FOLDER/kubeconfig\": must be a directory",
                as_configured("ValidatingAdmissionPolicy")
            ),
        ),
        (
            told(
                "ValidatingAdmissionWebhook",
                "{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, staticManifestsDir: x}",
            ),
            ValidatingAdmissionWebhook,
            format!(
                "{}staticManifestsDir: Invalid value: \"x\": must be an absolute file path",
                as_configured("ValidatingAdmissionWebhook")
            ),
        ),
    ] {
        let error = load_text(&text, &[plugin]).expect_err(&text);
        assert!(error.starts_with(&want), "{text}\n got {error}\nwant {want}");
    }
}

#[test]
fn manifests_are_read_where_the_feature_is_on() {
    use AdmissionPlugin::{MutatingAdmissionPolicy, MutatingAdmissionWebhook};
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("admission.yaml");
    let manifests = folder.path().display();
    let text = format!(
        "{HEAD}plugins:
- name: MutatingAdmissionWebhook
  configuration: {{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, staticManifestsDir: {manifests}}}
- name: MutatingAdmissionPolicy
  configuration: {{apiVersion: apiserver.config.k8s.io/v1, kind: MutatingAdmissionPolicyConfiguration, staticManifestsDir: {manifests}}}
"
    );
    std::fs::write(&file, text).expect("is written");
    let enabled = [MutatingAdmissionPolicy, MutatingAdmissionWebhook];
    let config = load(Some(&file), &enabled, AdmissionConfig::default(), true).expect("can be used");
    let told: Vec<_> = config.manifest_folders.into_keys().collect();
    assert_eq!(told, enabled);
    let refused = load(Some(&file), &enabled, AdmissionConfig::default(), false).expect_err("the feature is off");
    let want = "staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig \
                feature gate to be enabled";
    assert!(format!("{refused:#}").ends_with(want), "{refused:#}");
}
