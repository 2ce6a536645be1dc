//! Credentials that a program hands out: the `exec` of a user in a kubeconfig, as clouds use it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use revisor_object::{Object, Value, parse_json};
use serde_json::json;

/// What a program handed out.
#[derive(Debug, Default)]
pub(super) struct ExecCredential {
    pub(super) token: Option<String>,
    /// Certificates and key in PEM.
    pub(super) certificate: Option<(Vec<u8>, Vec<u8>)>,
}

/// Where the cluster is, for programs that want to know (`provideClusterInfo`).
pub(super) struct ClusterInfo<'a> {
    pub(super) server: &'a str,
    pub(super) authority_data: Option<String>,
    pub(super) tls_server_name: Option<&'a str>,
    pub(super) insecure_skip_tls_verify: bool,
}

impl ExecCredential {
    /// Runs the program of an `exec`. Paths with a slash begin at `folder`, where the kubeconfig lies.
    pub(super) fn obtain(exec: &Object, folder: &Path, cluster: &ClusterInfo<'_>) -> anyhow::Result<ExecCredential> {
        let program = exec.str("command").filter(|command| !command.is_empty()).context("exec has no command")?;
        let version = exec.str("apiVersion").unwrap_or("client.authentication.k8s.io/v1");
        let mut info = json!({"kind": "ExecCredential", "apiVersion": version, "spec": {"interactive": false}});
        if exec.get("provideClusterInfo").and_then(Value::as_bool) == Some(true) {
            let mut told = json!({"server": cluster.server});
            if let Some(data) = &cluster.authority_data {
                told["certificate-authority-data"] = json!(data);
            }
            if let Some(name) = cluster.tls_server_name {
                told["tls-server-name"] = json!(name);
            }
            if cluster.insecure_skip_tls_verify {
                told["insecure-skip-tls-verify"] = json!(true);
            }
            info["spec"]["cluster"] = told;
        }
        let is_path = program.contains(std::path::MAIN_SEPARATOR);
        let mut command = Command::new(if is_path { folder.join(program) } else { program.into() });
        command.args(exec.array("args").iter().filter_map(Value::as_str)).env("KUBERNETES_EXEC_INFO", info.to_string());
        for variable in exec.array("env").iter().filter_map(Value::as_object) {
            command.env(variable.str("name").unwrap_or_default(), variable.str("value").unwrap_or_default());
        }
        let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().with_context(|| {
            let hint = exec.str("installHint").unwrap_or_default();
            format!("cannot run {program:?}, which hands out credentials\n{hint}").trim_end().to_owned()
        })?;
        if !done.status.success() {
            bail!("{program:?}, which hands out credentials, ended with {}", done.status);
        }
        ExecCredential::read(&done.stdout).with_context(|| format!("what {program:?} handed out cannot be used"))
    }

    fn read(printed: &[u8]) -> anyhow::Result<ExecCredential> {
        let Value::Object(printed) = parse_json(printed)?.value else { bail!("it is no object") };
        let status = printed.object("status").context("it has no status")?;
        let certificate = status.str("clientCertificateData").zip(status.str("clientKeyData"));
        let made = ExecCredential {
            token: status.str("token").filter(|token| !token.is_empty()).map(str::to_owned),
            certificate: certificate.map(|(chain, key)| (chain.into(), key.into())),
        };
        if made.token.is_none() && made.certificate.is_none() {
            bail!("it has neither a token nor a certificate with its key");
        }
        Ok(made)
    }
}
