//! The kubeconfig of the administrator: all that kubectl and other clients need to reach this server.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::certificates::Certificates;
use crate::credential_file::{NewFile, Standing};
use crate::quoted::quoted;

const CERTIFICATE: &str = "client-certificate-data";
const KEY: &str = "client-key-data";

/// A kubeconfig that reaches the server at `server_url`, which shows what `trust_pem` vouches for, as its administrator.
///
/// Certificates and key are embedded, so that the file works wherever it is copied to. It is a secret.
pub(crate) fn kubeconfig(server_url: &str, trust_pem: &str, certificates: &Certificates) -> String {
    let server = quoted(server_url);
    let authorities = STANDARD.encode(trust_pem);
    let certificate = STANDARD.encode(certificates.admin_certificate_pem());
    let key = STANDARD.encode(certificates.admin_key_pem());
    format!(
        "apiVersion: v1
kind: Config
current-context: revisor
clusters:
- name: revisor
  cluster:
    server: {server}
    certificate-authority-data: {authorities}
contexts:
- name: revisor
  context:
    cluster: revisor
    user: revisor
users:
- name: revisor
  user:
    {CERTIFICATE}: {certificate}
    {KEY}: {key}
"
    )
}

/// The same kubeconfig with another certificate and key of the administrator.
pub(crate) fn with_credential(kubeconfig: &str, certificate_pem: &str, key_pem: &str) -> String {
    let values = [(CERTIFICATE, certificate_pem), (KEY, key_pem)];
    let replaced = |line: &str| {
        let name = line.trim_start();
        let value = values.iter().find(|(key, _)| name.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
        match value {
            Some((key, pem)) => {
                let indent = &line[..line.len() - name.len()];
                format!("{indent}{key}: {}\n", STANDARD.encode(pem))
            }
            None => format!("{line}\n"),
        }
    };
    kubeconfig.lines().map(replaced).collect()
}

/// The file at `path` with the text of a kubeconfig, readable by its owner only.
pub(crate) fn kubeconfig_file(path: &Path, text: String) -> NewFile {
    NewFile { path: path.to_owned(), text, standing: Standing::Replaced }
}
