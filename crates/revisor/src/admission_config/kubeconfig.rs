//! Kubeconfigs that tell the server who it is to webhooks, and where one of them is. What stands in other files is read
//! with it, once.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_object::{Object, Value};
use revisor_webhook::{ClientConfig, CredentialBook, Credentials, Target};

use crate::config_file::{parse, read};

pub(crate) struct Kubeconfig {
    path: PathBuf,
    object: Object,
}

impl Kubeconfig {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Kubeconfig> {
        let parsed = read(path).and_then(|text| parse(&text));
        match parsed.with_context(|| format!("cannot read the kubeconfig {}", path.display()))?.value {
            Value::Object(object) => Ok(Kubeconfig { path: path.to_owned(), object }),
            _ => bail!("{} is no kubeconfig", path.display()),
        }
    }

    /// The credentials of all users.
    pub(crate) fn credentials(&self) -> anyhow::Result<CredentialBook> {
        let mut users = Vec::new();
        for entry in self.object.array("users").iter().filter_map(Value::as_object) {
            let (name, user) = (entry.str("name").unwrap_or_default(), entry.object("user"));
            let credentials = match user {
                Some(user) => self.of_user(name, user)?,
                None => Credentials::default(),
            };
            users.push((name.to_owned(), credentials));
        }
        let context = self.context()?;
        let current = context.and_then(|context| context.str("user")).map(str::to_owned);
        Ok(CredentialBook::new(users, current))
    }

    /// Where the cluster of the current context is, and who the server is there.
    pub(crate) fn current(&self) -> anyhow::Result<(ClientConfig, Credentials)> {
        let place = self.path.display();
        let Some(context) = self.context()? else { bail!("{place} has no current-context") };
        let named = |list: &str, part: &str, name: &str| {
            let mut entries = self.object.array(list).iter().filter_map(Value::as_object);
            entries.find(|entry| entry.str("name") == Some(name)).and_then(|entry| entry.object(part)).cloned()
        };
        let name = context.str("cluster").unwrap_or_default();
        let cluster = named("clusters", "cluster", name).with_context(|| format!("{place} has no cluster {name:?}"))?;
        let server = cluster.str("server").unwrap_or_default();
        if !server.starts_with("https://") {
            bail!("{place}: clusters[{name}].cluster.server: Invalid value: {server:?}: must be an https URL");
        }
        if cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool) == Some(true) {
            bail!("{place}: clusters[{name}].cluster.insecure-skip-tls-verify: a webhook must show who it is");
        }
        let ca_bundle = self.bytes(&cluster, "certificate-authority")?.unwrap_or_default();
        let user = context.str("user").unwrap_or_default();
        let credentials = match named("users", "user", user) {
            Some(found) => self.of_user(user, &found)?,
            None if user.is_empty() => Credentials::default(),
            None => bail!("{place} has no user {user:?}"),
        };
        Ok((ClientConfig { target: Target::Url(server.to_owned()), ca_bundle }, credentials))
    }

    fn context(&self) -> anyhow::Result<Option<&Object>> {
        let Some(name) = self.object.str("current-context").filter(|name| !name.is_empty()) else { return Ok(None) };
        let mut contexts = self.object.array("contexts").iter().filter_map(Value::as_object);
        let found = contexts.find(|entry| entry.str("name") == Some(name)).and_then(|entry| entry.object("context"));
        found.with_context(|| format!("{} has no context {name:?}", self.path.display())).map(Some)
    }

    fn of_user(&self, name: &str, user: &Object) -> anyhow::Result<Credentials> {
        let place = format!("{}: users[{name}].user", self.path.display());
        for odd in ["auth-provider", "exec", "as", "as-groups", "as-uid", "as-user-extra"] {
            if user.contains(odd) {
                bail!("{place}.{odd}: this server cannot use it for webhooks; use a token or a certificate");
            }
        }
        let certificate = match (self.bytes(user, "client-certificate")?, self.bytes(user, "client-key")?) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            _ => bail!("{place}: a certificate needs its key, and a key its certificate"),
        };
        let text = |name: &str| user.str(name).filter(|text| !text.is_empty());
        let token = match (text("token"), text("tokenFile")) {
            (Some(token), _) => Some(token.to_owned()),
            (None, Some(file)) => {
                let file = self.beside(file);
                let token = read(&file).with_context(|| format!("{place}.tokenFile: {}", file.display()))?;
                let token = String::from_utf8(token).with_context(|| format!("{place}.tokenFile: it is no text"))?;
                Some(token.trim().to_owned())
            }
            (None, None) => None,
        };
        let basic = text("username").map(|name| (name.to_owned(), text("password").unwrap_or_default().to_owned()));
        let credentials = Credentials { certificate, token, basic };
        credentials.check().with_context(|| place)?;
        Ok(credentials)
    }

    /// What stands in base64 in the field `NAME-data`, or in the file that the field `NAME` names.
    fn bytes(&self, object: &Object, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let place = self.path.display();
        if let Some(data) = object.str(&format!("{name}-data")).filter(|data| !data.is_empty()) {
            return Ok(Some(STANDARD.decode(data).with_context(|| format!("{place}: {name}-data is no base64"))?));
        }
        let Some(file) = object.str(name).filter(|file| !file.is_empty()) else { return Ok(None) };
        let file = self.beside(file);
        let bytes = read(&file).with_context(|| format!("{place}: {name}: cannot read {}", file.display()))?;
        Ok(Some(bytes))
    }

    /// A path of the kubeconfig, which begins where the kubeconfig lies.
    fn beside(&self, file: &str) -> PathBuf {
        self.path.parent().map_or_else(|| PathBuf::from(file), |folder| folder.join(file))
    }
}
