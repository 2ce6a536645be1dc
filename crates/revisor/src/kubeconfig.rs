//! [`Kubeconfig`]: one kubeconfig, the same for all who need one: commands that ask a cluster (`cluster/access.rs`), and
//! the server where it is told who it is to webhooks (`webhook_users.rs`).
//!
//! It finds what the file says, also in the files that it names. Which of that can be used, and for what, is decided by
//! who asks.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_object::{Object, Value};

use crate::config_file::{parse, read_at_most};

/// Above those that know hundreds of clusters with their certificates; a wrong path must not fill the memory.
const MAX_BYTES: u64 = 16 << 20;

/// One kubeconfig.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    path: PathBuf,
    object: Object,
}

impl Kubeconfig {
    /// Reads it, in YAML or JSON. One that is empty says nothing, as for kubectl.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Kubeconfig> {
        let failed = || format!("cannot read the kubeconfig {}", path.display());
        let text = read_at_most(path, MAX_BYTES).with_context(failed)?;
        let object = match text.trim_ascii() {
            [] => Object::default(),
            _ => match parse(&text).with_context(failed)?.value {
                Value::Object(object) => object,
                _ => bail!("{} is no kubeconfig", path.display()),
            },
        };
        Ok(Kubeconfig { path: path.to_owned(), object })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder in which it lies: its paths begin there.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The name of the current context, if there is one.
    pub(crate) fn current_context(&self) -> Option<&str> {
        self.object.str("current-context").filter(|name| !name.is_empty())
    }

    pub(crate) fn context(&self, name: &str) -> Option<&Object> {
        self.named("contexts", "context", name)
    }

    pub(crate) fn cluster(&self, name: &str) -> Option<&Object> {
        self.named("clusters", "cluster", name)
    }

    pub(crate) fn user(&self, name: &str) -> Option<&Object> {
        self.named("users", "user", name)
    }

    /// All users by their names; those of whom nothing is said have `None`.
    pub(crate) fn users(&self) -> impl Iterator<Item = (&str, Option<&Object>)> {
        let users = self.object.array("users").iter().filter_map(Value::as_object);
        users.map(|entry| (entry.str("name").unwrap_or_default(), entry.object("user")))
    }

    fn named(&self, list: &str, part: &str, name: &str) -> Option<&Object> {
        let mut entries = self.object.array(list).iter().filter_map(Value::as_object);
        entries.find(|entry| entry.str("name") == Some(name))?.object(part)
    }

    /// What stands in base64 in the field `NAME-data`, or in the file that the field `NAME` names.
    pub(crate) fn bytes(&self, object: &Object, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let place = self.path.display();
        if let Some(data) = object.str(&format!("{name}-data")).filter(|data| !data.is_empty()) {
            return Ok(Some(STANDARD.decode(data).with_context(|| format!("{place}: {name}-data is no base64"))?));
        }
        let Some(file) = object.str(name).filter(|file| !file.is_empty()) else { return Ok(None) };
        let file = self.folder().join(file);
        let bytes = read_at_most(&file, MAX_BYTES);
        Ok(Some(bytes.with_context(|| format!("{place}: {name}: cannot read {}", file.display()))?))
    }

    /// The certificates of a user and the key to them, in PEM.
    pub(crate) fn certificate(&self, user: &Object) -> anyhow::Result<Option<(Vec<u8>, Vec<u8>)>> {
        match (self.bytes(user, "client-certificate")?, self.bytes(user, "client-key")?) {
            (Some(chain), Some(key)) => Ok(Some((chain, key))),
            (None, None) => Ok(None),
            _ => bail!("a certificate needs its key, and a key its certificate"),
        }
    }

    /// The token of a user. What stands in the file is fresher than what was copied out of it, so it counts if it can be
    /// read, as for client-go.
    pub(crate) fn token(&self, user: &Object) -> anyhow::Result<Option<String>> {
        let copied = user.str("token").filter(|token| !token.is_empty()).map(str::to_owned);
        let Some(file) = user.str("tokenFile").filter(|file| !file.is_empty()) else { return Ok(copied) };
        let file = self.folder().join(file);
        let read = read_at_most(&file, MAX_BYTES).and_then(|token| Ok(String::from_utf8(token)?));
        match (read, copied) {
            (Ok(token), _) => Ok(Some(token.trim().to_owned())),
            (Err(_), Some(copied)) => Ok(Some(copied)),
            (Err(error), None) => Err(error).with_context(|| format!("tokenFile: cannot use {}", file.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path, text: &str) -> Kubeconfig {
        let path = folder.join("config");
        std::fs::write(&path, text).expect("is written");
        Kubeconfig::open(&path).expect("is read")
    }

    #[test]
    fn a_token_is_read_from_its_file_as_long_as_that_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = written(folder.path(), "users: [{name: u, user: {token: copied, tokenFile: token}}]");
        let user = config.user("u").expect("is there");
        assert_eq!(config.token(user).expect("a token").as_deref(), Some("copied"));
        std::fs::write(folder.path().join("token"), "fresh\n").expect("is written");
        assert_eq!(config.token(user).expect("a token").as_deref(), Some("fresh"));
    }

    #[test]
    fn json_and_nothing_at_all_are_kubeconfigs_too() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(written(folder.path(), "\n").current_context(), None);
        assert_eq!(written(folder.path(), r#"{"current-context": "c"}"#).current_context(), Some("c"));
        std::fs::write(folder.path().join("list"), "[]").expect("is written");
        let error = Kubeconfig::open(&folder.path().join("list")).expect_err("is a list");
        assert!(error.to_string().ends_with("is no kubeconfig"), "{error}");
    }
}
