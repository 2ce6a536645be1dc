//! Who the server is to webhooks, and where one of them is, as a kubeconfig says it. What stands in other files is read
//! with it, once.

use anyhow::{Context, bail};
use revisor_object::{Object, Value};
use revisor_webhook::{ClientConfig, CredentialBook, Credentials, Target};

use crate::kubeconfig::Kubeconfig;

/// The credentials of all users.
pub(crate) fn credential_book(config: &Kubeconfig) -> anyhow::Result<CredentialBook> {
    let mut users = Vec::new();
    for (name, user) in config.users() {
        let credentials = user.map(|user| credentials(config, name, user)).transpose()?;
        users.push((name.to_owned(), credentials.unwrap_or_default()));
    }
    let current = current_context(config)?.and_then(|context| context.str("user")).map(str::to_owned);
    Ok(CredentialBook::new(users, current))
}

/// Where the cluster of the current context is, and who the server is there.
pub(crate) fn current_webhook(config: &Kubeconfig) -> anyhow::Result<(ClientConfig, Credentials)> {
    let place = config.path().display();
    let Some(context) = current_context(config)? else { bail!("{place} has no current-context") };
    let name = context.str("cluster").unwrap_or_default();
    let cluster = config.cluster(name).with_context(|| format!("{place} has no cluster {name:?}"))?;
    let server = cluster.str("server").unwrap_or_default();
    if !server.starts_with("https://") {
        bail!("{place}: clusters[{name}].cluster.server: Invalid value: {server:?}: must be an https URL");
    }
    if cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool) == Some(true) {
        bail!("{place}: clusters[{name}].cluster.insecure-skip-tls-verify: a webhook must show who it is");
    }
    for odd in ["proxy-url", "tls-server-name"] {
        if cluster.str(odd).is_some_and(|text| !text.is_empty()) {
            bail!("{place}: clusters[{name}].cluster.{odd}: this server cannot use it for webhooks");
        }
    }
    let ca_bundle = config.bytes(cluster, "certificate-authority")?.unwrap_or_default();
    let user = context.str("user").unwrap_or_default();
    let credentials = match config.user(user) {
        Some(found) => credentials(config, user, found)?,
        None if user.is_empty() => Credentials::default(),
        None => bail!("{place} has no user {user:?}"),
    };
    Ok((ClientConfig { target: Target::Url(server.to_owned()), ca_bundle }, credentials))
}

fn current_context(config: &Kubeconfig) -> anyhow::Result<Option<&Object>> {
    let Some(name) = config.current_context() else { return Ok(None) };
    let found = config.context(name);
    found.with_context(|| format!("{} has no context {name:?}", config.path().display())).map(Some)
}

fn credentials(config: &Kubeconfig, name: &str, user: &Object) -> anyhow::Result<Credentials> {
    let place = format!("{}: users[{name}].user", config.path().display());
    for odd in ["auth-provider", "exec", "as", "as-groups", "as-uid", "as-user-extra"] {
        if user.contains(odd) {
            bail!("{place}.{odd}: this server cannot use it for webhooks; use a token or a certificate");
        }
    }
    let text = |name: &str| user.str(name).filter(|text| !text.is_empty());
    let credentials = Credentials {
        certificate: config.certificate(user).with_context(|| place.clone())?,
        token: config.token(user).with_context(|| place.clone())?,
        basic: text("username").map(|name| (name.to_owned(), text("password").unwrap_or_default().to_owned())),
    };
    credentials.check().with_context(|| place)?;
    Ok(credentials)
}
