//! ServiceAccount: every pod runs as an account of its namespace, and gets the account's token and pull secrets.

use std::sync::Arc;
use std::time::Duration;

use revisor_object::{Object, Seen, Value, parse_json};
use revisor_version::Revision;

use super::pod_fields::{MIRROR, annotations, append, objects, objects_mut, spec, text};
use super::{Admission, Attributes, Operation, Waiting, requestable};
use crate::{Registry, RegistryError};

const DEFAULT_ACCOUNT: &str = "default";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How often a write is waited for that may be the one that makes the default account, and how long each time.
const MAX_WAITS: usize = 20;
const WAIT: Duration = Duration::from_millis(50);

const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// Where the token, the certificates to trust and the name of the namespace come from. The odd second tells those who
/// count how long tokens are used that nobody asked for this one by itself.
const TOKEN_SOURCES: &str = r#"{"defaultMode":420,"sources":[
    {"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
    {"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
    {"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}]}"#;

pub(crate) struct ServiceAccount;

impl Admission for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if !attributes.is_about("", "pods") || attributes.operation != Operation::Create {
            return Ok(());
        }
        // A mirror pod runs already, with or without an account.
        if annotations(pod).contains(MIRROR) {
            return self.validate(registry, attributes, pod);
        }
        self.complete(registry, attributes, pod)
    }

    fn admit_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        pod: &'a mut Object,
    ) -> Option<Waiting<'a>> {
        let is_new_pod = attributes.is_about("", "pods") && attributes.operation == Operation::Create;
        if !is_new_pod || annotations(pod).contains(MIRROR) || !misses_default_account(registry, attributes, spec(pod))
        {
            return None;
        }
        Some(Box::pin(async move {
            await_default_account(registry, attributes.namespace).await;
            self.complete(registry, attributes, pod)
        }))
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &Object) -> Result<(), RegistryError> {
        let is_pod = attributes.resource.group.is_empty() && attributes.resource.plural == "pods";
        let is_debugged =
            attributes.operation == Operation::Update && attributes.subresource == Some("ephemeralcontainers");
        let is_made = attributes.operation == Operation::Create && attributes.subresource.is_none();
        if !is_pod || !(is_debugged || is_made) {
            return Ok(());
        }
        if is_made && annotations(pod).contains(MIRROR) {
            return validate_mirror(pod).map_err(|why| attributes.forbidden(why));
        }
        let spec = spec(pod);
        if text(spec, "serviceAccountName").is_empty() {
            let namespace = attributes.namespace.unwrap_or_default();
            let why = format!("no service account specified for pod {namespace}/{}", attributes.name);
            return Err(attributes.forbidden(why));
        }
        let account = account_of(registry, attributes, spec)?;
        let is_enforced =
            matches!(text(annotations(&account), ENFORCE_SECRETS), "1" | "t" | "T" | "true" | "TRUE" | "True");
        if !is_enforced {
            return Ok(());
        }
        let lists: &[(&str, &str)] = if is_made {
            &[("initContainers", "init container"), ("containers", "container")]
        } else {
            &[("ephemeralContainers", "ephemeral container")]
        };
        limit_secrets(spec, &account, lists, is_made).map_err(|why| attributes.forbidden(why))
    }
}

impl ServiceAccount {
    /// Gives a pod its account, and what the account has for it.
    fn complete(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        pod: &mut Object,
    ) -> Result<(), RegistryError> {
        let spec = pod.object_mut("spec");
        if text(spec, "serviceAccountName").is_empty() {
            spec.insert("serviceAccountName", DEFAULT_ACCOUNT);
            spec.insert("serviceAccount", DEFAULT_ACCOUNT);
        }
        let account = account_of(registry, attributes, spec)?;
        let automount = |object: &Object| object.get("automountServiceAccountToken").and_then(Value::as_bool);
        if automount(spec).or_else(|| automount(&account)).unwrap_or(true) {
            mount_token(registry, spec);
        }
        if spec.array("imagePullSecrets").is_empty() {
            let named = |secret: &Object| Value::from(Object::from_iter([("name", Value::from(text(secret, "name")))]));
            let secrets: Vec<Value> = objects(&account, "imagePullSecrets").map(named).collect();
            spec.set("imagePullSecrets", (!secrets.is_empty()).then_some(Value::from(secrets)));
        }
        self.validate(registry, attributes, pod)
    }
}

/// A new namespace gets its default account a moment after it is made. A pod that is faster waits for it, but not long.
async fn await_default_account(registry: &Registry, namespace: Option<&str>) {
    let Some(accounts) = registry.known("", "v1", "serviceaccounts") else { return };
    let key = accounts.key(namespace, DEFAULT_ACCOUNT);
    let cache = registry.cache_of(accounts);
    for _ in 0..MAX_WAITS {
        if cache.get(&key).is_some() {
            return;
        }
        let next = cache.reached().map_or(Revision::FIRST, Revision::next);
        // Whether there was a write or the time is up, the account is looked for again.
        let _ = cache.wait_for(next, WAIT).await;
    }
}

/// Whether a pod is to run as the default account of its namespace, and that is not there.
fn misses_default_account(registry: &Registry, attributes: &Attributes<'_>, spec: &Object) -> bool {
    let is_missing = || {
        let accounts = registry.known("", "v1", "serviceaccounts")?;
        let key = accounts.key(attributes.namespace, DEFAULT_ACCOUNT);
        registry.cache_of(accounts).get(&key).is_none().then_some(())
    };
    matches!(text(spec, "serviceAccountName"), "" | DEFAULT_ACCOUNT) && is_missing().is_some()
}

fn account_of(registry: &Registry, attributes: &Attributes<'_>, spec: &Object) -> Result<Arc<Object>, RegistryError> {
    let name = text(spec, "serviceAccountName");
    registry.read_once("", "v1", "serviceaccounts", attributes.namespace, name).ok_or_else(|| {
        let namespace = attributes.namespace.unwrap_or_default();
        let why = requestable(name).err().unwrap_or_else(|| format!("serviceaccount {name:?} not found"));
        attributes.forbidden(format!("error looking up service account {namespace}/{name}: {why}"))
    })
}

/// Mounts the volume with the token in every container that has nothing else there.
fn mount_token(registry: &Registry, spec: &mut Object) {
    let known =
        objects(spec, "volumes").map(|volume| text(volume, "name")).find(|name| name.starts_with(VOLUME_PREFIX));
    let has_volume = known.is_some();
    let name = known.map_or_else(|| registry.environment.generated_name(VOLUME_PREFIX), str::to_owned);
    let mut is_mounted = false;
    for list in ["initContainers", "containers"] {
        for container in objects_mut(spec, list) {
            if objects(container, "volumeMounts").any(|mount| text(mount, "mountPath") == MOUNT_PATH) {
                continue;
            }
            // In the order of their names.
            let mount = Object::from_iter([
                ("mountPath", Value::from(MOUNT_PATH)),
                ("name", Value::from(name.as_str())),
                ("readOnly", Value::from(true)),
            ]);
            append(container, "volumeMounts", mount);
            is_mounted = true;
        }
    }
    if is_mounted && !has_volume {
        let sources = parse_json(TOKEN_SOURCES.as_bytes()).expect("a constant that is JSON").value;
        append(spec, "volumes", Object::from_iter([("name", Value::from(name)), ("projected", sources)]));
    }
}

/// A mirror pod runs without the server, so it cannot be given what only the server can give.
fn validate_mirror(pod: &Object) -> Result<(), &'static str> {
    let spec = spec(pod);
    if !text(spec, "serviceAccountName").is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    if references_secrets(spec) {
        return Err("a mirror pod may not reference secrets");
    }
    let sources = objects(spec, "volumes").filter_map(|volume| volume.object("projected"));
    let mut sources = sources.flat_map(|projected| objects(projected, "sources"));
    if sources.any(|source| source.contains("serviceAccountToken")) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

/// Members of volumes that hold the name of a secret, and where in the volume it is.
const SECRET_REFERENCES: [(&str, &str); 10] = [
    ("azureFile", ""),
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("csi", "nodePublishSecretRef"),
    ("flexVolume", "secretRef"),
    ("iscsi", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("secret", ""),
    ("storageos", "secretRef"),
];

pub(super) fn references_secrets(spec: &Object) -> bool {
    let in_volume = |volume: &Object| {
        let direct = SECRET_REFERENCES.iter().any(|(source, reference)| {
            let source = volume.object(source);
            match *reference {
                "" => source.is_some_and(|source| !text(source, "secretName").is_empty()),
                _ => source.and_then(|source| source.object(reference)).is_some_and(|it| !text(it, "name").is_empty()),
            }
        });
        direct
            || volume
                .object("projected")
                .is_some_and(|projected| objects(projected, "sources").any(|source| source.contains("secret")))
    };
    let in_container = |container: &Object| {
        objects(container, "envFrom").any(|source| source.contains("secretRef"))
            || objects(container, "env")
                .any(|variable| variable.object("valueFrom").is_some_and(|from| from.contains("secretKeyRef")))
    };
    let containers = ["initContainers", "containers", "ephemeralContainers"];
    objects(spec, "imagePullSecrets").any(|secret| !text(secret, "name").is_empty())
        || objects(spec, "volumes").any(in_volume)
        || containers.iter().flat_map(|list| objects(spec, list)).any(in_container)
}

/// Where the account says so, a pod may only use the secrets that the account lists.
fn limit_secrets(spec: &Object, account: &Object, lists: &[(&str, &str)], is_made: bool) -> Result<(), String> {
    let account_name = account.object("metadata").map(|metadata| text(metadata, "name")).unwrap_or_default();
    let names = |list: &str| objects(account, list).map(|secret| text(secret, "name")).collect::<Seen<&str>>();
    let (secrets, pull_secrets) = (names("secrets"), names("imagePullSecrets"));
    let refused = |what: String| {
        format!("{what} is not allowed because service account {account_name} does not reference that secret")
    };
    if is_made {
        for secret in objects(spec, "volumes").filter_map(|volume| volume.object("secret")) {
            let name = text(secret, "secretName");
            if !secrets.has(&name) {
                return Err(refused(format!("volume with secret.secretName=\"{name}\"")));
            }
        }
    }
    for (list, title) in lists {
        for container in objects(spec, list) {
            let container_name = text(container, "name");
            for variable in objects(container, "env") {
                let reference = variable.object("valueFrom").and_then(|from| from.object("secretKeyRef"));
                let Some(name) = reference.map(|reference| text(reference, "name")) else { continue };
                if !secrets.has(&name) {
                    let variable = text(variable, "name");
                    return Err(refused(format!(
                        "{title} {container_name} with envVar {variable} referencing secret.secretName=\"{name}\""
                    )));
                }
            }
            for source in objects(container, "envFrom").filter_map(|source| source.object("secretRef")) {
                let name = text(source, "name");
                if !secrets.has(&name) {
                    return Err(refused(format!(
                        "{title} {container_name} with envFrom referencing secret.secretName=\"{name}\""
                    )));
                }
            }
        }
    }
    if is_made {
        for (at, secret) in objects(spec, "imagePullSecrets").enumerate() {
            let name = text(secret, "name");
            if !pull_secrets.has(&name) {
                return Err(format!(
                    "imagePullSecrets[{at}].name=\"{name}\" is not allowed because service account {account_name} \
                     does not reference that imagePullSecret"
                ));
            }
        }
    }
    Ok(())
}
