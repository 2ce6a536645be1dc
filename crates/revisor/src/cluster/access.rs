//! [`Access`]: where a cluster is, whom to believe that it is there, and who one is: from flags, kubeconfigs and the
//! account of a pod, in the order in which kubectl asks them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use revisor_object::{Object, Value};
use revisor_webhook::{Identity, tls_client_config, unverified_tls_client_config};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::exec_credential::{ClusterInfo, ExecCredential};
use super::proxy::Proxy;
use super::{ClusterFlags, escaped};
use crate::kubeconfig::Kubeconfig;

/// Where pods find their account.
const POD_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// All that is needed to ask a cluster something.
#[derive(Debug, Default)]
pub(crate) struct Access {
    /// The URL, without a slash at its end.
    pub(super) server: String,
    /// Certificates in PEM; `None` for those that the machine trusts.
    authority: Option<Vec<u8>>,
    is_insecure: bool,
    pub(super) tls_server_name: Option<String>,
    /// Who passes connections on to the server.
    pub(super) proxy: Option<Proxy>,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) impersonation: Vec<(HeaderName, HeaderValue)>,
    /// Certificates and key in PEM.
    certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl ClusterFlags {
    pub(super) fn access(&self) -> anyhow::Result<Access> {
        let configs = Kubeconfigs::find(self.kubeconfig.as_deref())?;
        let mut access = match configs.context(self.context.as_deref())? {
            Some(context) => Access::of_context(&configs, context, self)?,
            None if self.server.is_some() => Access::default(),
            None => Access::of_pod()?.context(
                "there is no cluster to ask: name one with --server, or a kubeconfig with --kubeconfig or KUBECONFIG",
            )?,
        };
        if let Some(server) = &self.server {
            access.server = server.clone();
        }
        if let Some(file) = &self.certificate_authority {
            access.authority = Some(read(file)?);
            access.is_insecure = false;
        }
        if self.insecure_skip_tls_verify {
            access.is_insecure = true;
        }
        if let Some(token) = &self.token {
            access.authorization = Some(bearer(token)?);
            access.certificate = None;
        }
        access.server.truncate(access.server.trim_end_matches('/').len());
        access.check_server()?;
        Ok(access)
    }
}

impl Access {
    /// The client's side of TLS; `None` where none is spoken.
    pub(super) fn tls(&self) -> anyhow::Result<Option<rustls::ClientConfig>> {
        if self.server.starts_with("http://") {
            return Ok(None);
        }
        let identity = self.certificate.as_ref().map(|(chain, key)| identity(chain, key)).transpose()?;
        Ok(Some(if self.is_insecure {
            unverified_tls_client_config(identity)?
        } else {
            tls_client_config(self.authority.as_deref(), identity)?
        }))
    }

    /// Host and port, as the header `Host` carries them.
    pub(super) fn authority(&self) -> &str {
        let rest = self.server.split_once("://").map_or(self.server.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }

    /// What stands before the path of every request; clusters behind a proxy have something there.
    pub(super) fn base_path(&self) -> &str {
        let rest = self.server.split_once("://").map_or(self.server.as_str(), |(_, rest)| rest);
        rest.find('/').map_or("", |at| &rest[at..])
    }

    /// Whom to dial.
    pub(super) fn host_and_port(&self) -> (&str, u16) {
        let default = if self.server.starts_with("http://") { 80 } else { 443 };
        let authority = self.authority();
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        (host, port.and_then(|port| port.parse().ok()).unwrap_or(default))
    }

    fn check_server(&self) -> anyhow::Result<()> {
        let uri: Result<http::Uri, _> = self.server.parse();
        let is_good = uri.is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
        });
        if !is_good {
            bail!("{:?} is no URL of a server: it begins with https:// and a host", self.server);
        }
        Ok(())
    }

    fn of_context(configs: &Kubeconfigs, context: &Object, flags: &ClusterFlags) -> anyhow::Result<Access> {
        let mut access = Access::default();
        if let Some(name) = context.str("cluster").filter(|name| !name.is_empty()) {
            let (config, cluster) = configs.cluster(name)?;
            access.server = cluster.str("server").unwrap_or_default().to_owned();
            if let Some(url) = cluster.str("proxy-url").filter(|url| !url.is_empty()) {
                let proxy = Proxy::parse(url).with_context(|| format!("the proxy-url of the cluster {name:?}"))?;
                access.proxy = Some(proxy);
            }
            access.authority = config.bytes(cluster, "certificate-authority")?;
            access.is_insecure = cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool) == Some(true);
            access.tls_server_name = cluster.str("tls-server-name").map(str::to_owned);
        }
        if flags.token.is_some() {
            return Ok(access);
        }
        if let Some(name) = context.str("user").filter(|name| !name.is_empty()) {
            let (config, user) = configs.user(name)?;
            access.take_user(config, user).with_context(|| format!("the user {name:?} of the kubeconfig"))?;
        }
        Ok(access)
    }

    fn take_user(&mut self, config: &Kubeconfig, user: &Object) -> anyhow::Result<()> {
        if user.object("auth-provider").is_some() {
            bail!("it has an auth-provider, which Kubernetes no longer has: use exec");
        }
        self.certificate = config.certificate(user)?;
        let token = config.token(user)?;
        if let Some(token) = token {
            self.authorization = Some(bearer(&token)?);
        } else if let Some(name) = user.str("username").filter(|name| !name.is_empty()) {
            let password = user.str("password").unwrap_or_default();
            self.authorization = Some(secret(&format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))))?);
        } else if let Some(exec) = user.object("exec") {
            let info = ClusterInfo {
                server: &self.server,
                authority_data: self.authority.as_ref().map(|pem| STANDARD.encode(pem)),
                tls_server_name: self.tls_server_name.as_deref(),
                insecure_skip_tls_verify: self.is_insecure,
            };
            let made = ExecCredential::obtain(exec, config.folder(), &info)?;
            self.authorization = made.token.map(|token| bearer(&token)).transpose()?;
            self.certificate = made.certificate.or(self.certificate.take());
        }
        let mut show = |header: &str, value: &str| -> anyhow::Result<()> {
            self.impersonation.push((HeaderName::from_bytes(header.as_bytes())?, HeaderValue::from_str(value)?));
            Ok(())
        };
        for (field, header) in [("as", "impersonate-user"), ("as-uid", "impersonate-uid")] {
            if let Some(name) = user.str(field).filter(|name| !name.is_empty()) {
                show(header, name)?;
            }
        }
        for group in user.array("as-groups").iter().filter_map(Value::as_str) {
            show("impersonate-group", group)?;
        }
        for (key, values) in user.object("as-user-extra").iter().flat_map(|extra| extra.iter()) {
            let header = format!("impersonate-extra-{}", escaped(key));
            for value in values.as_array().into_iter().flatten().filter_map(Value::as_str) {
                show(&header, value)?;
            }
        }
        Ok(())
    }

    /// The account of the pod that this program runs in, if it does.
    fn of_pod() -> anyhow::Result<Option<Access>> {
        let folder = Path::new(POD_ACCOUNT);
        let (Ok(host), Ok(port)) = (std::env::var("KUBERNETES_SERVICE_HOST"), std::env::var("KUBERNETES_SERVICE_PORT"))
        else {
            return Ok(None);
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let token = String::from_utf8(read(&folder.join("token"))?)?;
        Ok(Some(Access {
            server: format!("https://{host}:{port}"),
            authority: Some(read(&folder.join("ca.crt"))?),
            authorization: Some(bearer(token.trim())?),
            ..Access::default()
        }))
    }
}

/// The kubeconfigs to ask; the first that says something counts.
struct Kubeconfigs(Vec<Kubeconfig>);

impl Kubeconfigs {
    fn find(named: Option<&Path>) -> anyhow::Result<Kubeconfigs> {
        if let Some(path) = named {
            return Ok(Kubeconfigs(vec![Kubeconfig::open(path)?]));
        }
        let listed = std::env::var_os("KUBECONFIG").filter(|listed| !listed.is_empty());
        let paths: Vec<PathBuf> = match listed {
            Some(listed) => std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect(),
            None => std::env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect(),
        };
        // Files that are not there are passed over, as kubectl does.
        let found: anyhow::Result<_> =
            paths.iter().filter(|path| path.exists()).map(|path| Kubeconfig::open(path)).collect();
        found.map(Kubeconfigs)
    }

    /// The context of this name, or the current one; `None` if there is none and none was asked for.
    fn context(&self, name: Option<&str>) -> anyhow::Result<Option<&Object>> {
        let Some(name) = name.or_else(|| self.0.iter().find_map(Kubeconfig::current_context)) else { return Ok(None) };
        let found = self.0.iter().find_map(|config| config.context(name));
        found.with_context(|| format!("the kubeconfig has no context {name:?}")).map(Some)
    }

    fn cluster(&self, name: &str) -> anyhow::Result<(&Kubeconfig, &Object)> {
        let found = self.0.iter().find_map(|config| Some((config, config.cluster(name)?)));
        found.with_context(|| format!("the kubeconfig has no cluster {name:?}"))
    }

    fn user(&self, name: &str) -> anyhow::Result<(&Kubeconfig, &Object)> {
        let found = self.0.iter().find_map(|config| Some((config, config.user(name)?)));
        found.with_context(|| format!("the kubeconfig has no user {name:?}"))
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn bearer(token: &str) -> anyhow::Result<HeaderValue> {
    secret(&format!("Bearer {token}"))
}

fn secret(text: &str) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(text).context("credentials with characters that no header may have")?;
    value.set_sensitive(true);
    Ok(value)
}

fn identity(chain: &[u8], key: &[u8]) -> anyhow::Result<Identity> {
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.context("the client's certificate is no PEM")?;
    Ok((chain, PrivateKeyDer::from_pem_slice(key).context("the client's key is no PEM")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(folder: &Path, text: &str) -> ClusterFlags {
        let file = folder.join("config");
        std::fs::write(&file, text).expect("is written");
        ClusterFlags { kubeconfig: Some(file), ..ClusterFlags::default() }
    }

    const CONFIG: &str = "
current-context: one
contexts:
- {name: one, context: {cluster: a, user: t}}
- {name: two, context: {cluster: b, user: f}}
- {name: lost, context: {cluster: c, user: t}}
clusters:
- {name: a, cluster: {server: 'https://a.example.com:6443/', insecure-skip-tls-verify: true}}
- {name: b, cluster: {server: 'https://[::1]/k8s/clusters/x', certificate-authority-data: UEVN}}
users:
- {name: t, user: {token: secret, as: anna, as-groups: [g, h], as-user-extra: {example.com/Team: [x]}}}
- {name: f, user: {tokenFile: token}}
";

    #[test]
    fn a_context_says_where_and_who() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("token"), "from-file\n").expect("is written");
        let access = flags(folder.path(), CONFIG).access().expect("can be used");
        assert_eq!((access.authority(), access.base_path()), ("a.example.com:6443", ""));
        assert_eq!(access.host_and_port(), ("a.example.com", 6443));
        assert_eq!(access.authorization.as_ref().map(HeaderValue::as_bytes), Some(&b"Bearer secret"[..]));
        let shown: Vec<_> =
            access.impersonation.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let want = [
            ("impersonate-user", &b"anna"[..]),
            ("impersonate-group", b"g"),
            ("impersonate-group", b"h"),
            ("impersonate-extra-example.com%2fteam", b"x"),
        ];
        assert_eq!(shown, want);
        assert!(access.is_insecure && access.authority.is_none());

        let two = ClusterFlags { context: Some("two".into()), ..flags(folder.path(), CONFIG) };
        let access = two.access().expect("can be used");
        assert_eq!(access.host_and_port(), ("::1", 443));
        assert_eq!(access.base_path(), "/k8s/clusters/x");
        assert_eq!(access.authorization.as_ref().map(HeaderValue::as_bytes), Some(&b"Bearer from-file"[..]));
        assert_eq!(access.authority.as_deref(), Some(&b"PEM"[..]));

        let other = ClusterFlags { server: Some("http://h:1/".into()), token: Some("t".into()), ..two };
        let access = other.access().expect("can be used");
        assert_eq!((access.server.as_str(), access.host_and_port()), ("http://h:1", ("h", 1)));
        assert_eq!(access.authorization.as_ref().map(HeaderValue::as_bytes), Some(&b"Bearer t"[..]));
        assert!(access.tls().expect("needs none").is_none());
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let known = flags(folder.path(), CONFIG);
        for (context, server, want) in [
            (Some("nobody"), None, "no context \"nobody\""),
            (Some("lost"), None, "no cluster \"c\""),
            (None, Some("example.com"), "begins with https://"),
        ] {
            let flags = ClusterFlags {
                context: context.map(str::to_owned),
                server: server.map(str::to_owned),
                ..known.clone()
            };
            let error = format!("{:#}", flags.access().expect_err("cannot be used"));
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn a_program_hands_out_a_token() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = r#"echo '{"status":{"token":"'$PREFIX-$(echo $KUBERNETES_EXEC_INFO | grep -c a.example.com)'"}}'"#;
        let config = format!(
            "{}- name: e\n  user:\n    exec:\n      command: sh\n      args: ['-c', {}]\n      env: [{{name: PREFIX, value: p}}]\n      provideClusterInfo: true\n",
            CONFIG.replace("user: t}", "user: e}"),
            Value::from(script).to_json()
        );
        let access = flags(folder.path(), &config).access().expect("can be used");
        assert_eq!(access.authorization.as_ref().map(HeaderValue::as_bytes), Some(&b"Bearer p-1"[..]));
        let failing = config.replace("command: sh", "command: no-such-program");
        let error = format!("{:#}", flags(folder.path(), &failing).access().expect_err("there is no program"));
        assert!(error.contains("no-such-program"), "{error}");
    }
}
