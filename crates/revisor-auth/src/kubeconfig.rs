//! The kubeconfig of the administrator: all that kubectl and other clients need to reach this server.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::certificates::{CertificateError, Certificates};
use crate::credential_file::{Access, NewFile, write_all};
use crate::quoted::quoted;

/// A kubeconfig that reaches the server at `server_url` as its administrator.
///
/// Certificates and key are embedded, so that the file works wherever it is copied to. It is a secret.
pub fn kubeconfig(server_url: &str, certificates: &Certificates) -> String {
    let server = quoted(server_url);
    let authorities = STANDARD.encode(certificates.trust_pem());
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
    client-certificate-data: {certificate}
    client-key-data: {key}
"
    )
}

/// Puts the text of a kubeconfig at `path`, readable by its owner only.
pub fn write_kubeconfig(path: &Path, text: &str) -> Result<(), CertificateError> {
    let file = NewFile { path: path.to_owned(), text: text.to_owned(), access: Access::Private };
    write_all(&[file]).map_err(CertificateError::from)
}
