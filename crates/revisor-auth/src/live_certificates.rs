//! [`LiveCertificates`]: the keys and certificates of a server that runs. Files that change are read again, what expires
//! soon is renewed, and whoever uses them follows.
//!
//! The files are read, all of them, every time: they are few and short, they lie in the memory of the system, and there
//! is no way to change one that is overlooked: not by swapping links as mounted secrets do, nor by writing twice within
//! a tick of the clock. A file that cannot be used is complained of, and what it held before stays in use.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls_pki_types::{CertificateDer, ServerName};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::certificates::{CertificateError, Certificates, Holdings, ServingFiles, lock, read_required};
use crate::credential_file::write_all;
use crate::kubeconfig::{kubeconfig, kubeconfig_file};
use crate::peer::PeerVerifier;
use crate::shown_certificates::{NamedFiles, ShownCertificates};
use crate::tls_config::{ServerTls, Shown, TlsConfigs, authorities_from_pem_file};
use crate::tls_options::TlsOptions;

/// How long to wait before a renewal is tried again that failed.
const RENEWAL_RETRY: Duration = Duration::from_secs(60);

/// Where the keys and certificates of a server are, and how it speaks TLS.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// The folder of those that the server makes for itself.
    pub folder: PathBuf,
    /// The names under which the server must be reachable.
    pub names: Vec<ServerName<'static>>,
    /// What the server shows instead of a certificate of its own.
    pub serving: Option<ServingFiles>,
    /// What the server shows to those who ask for certain names.
    pub named: Vec<NamedFiles>,
    /// The authorities whose client certificates are trusted beside the server's own.
    pub client_authorities: Option<PathBuf>,
    /// How to speak TLS.
    pub tls: TlsOptions,
    /// What the folder is for.
    pub holdings: Holdings,
}

/// The keys and certificates of a server that runs.
pub struct LiveCertificates {
    options: LiveOptions,
    own: Watched<Certificates>,
    /// When the own ones are renewed next.
    renewal: SystemTime,
    serving: Option<Watched<Shown>>,
    named: Vec<Watched<Shown>>,
    client_authorities: Option<Watched<Vec<CertificateDer<'static>>>>,
    peers: PeerVerifier,
    configs: watch::Sender<TlsConfigs>,
}

impl LiveCertificates {
    /// Reads everything for the first time. Whatever cannot be used is an error.
    pub fn open(options: LiveOptions, now: SystemTime) -> Result<LiveCertificates, CertificateError> {
        let own = Watched::open(own_paths(&options), || load_own(&options, now))?;
        let serving = options.serving.as_ref().map(watch_pair).transpose()?;
        let named = options.named.iter().map(|named| watch_pair(&named.files)).collect::<Result<Vec<_>, _>>()?;
        let client_authorities = options
            .client_authorities
            .as_ref()
            .map(|path| Watched::open(vec![path.clone()], || authorities_from_pem_file(path)))
            .transpose()?;
        let others = client_authorities.as_ref().map(|watched| watched.value.as_slice()).unwrap_or_default();
        let peers = PeerVerifier::new(own.value.client_trust(others)?);
        let shown = shown(&options, &own.value, serving.as_ref(), &named)?;
        let configs = watch::Sender::new(TlsConfigs::new(&options.tls, &shown, &peers)?);
        let renewal = own.value.renewal();
        Ok(LiveCertificates { options, own, renewal, serving, named, client_authorities, peers, configs })
    }

    /// Reads what has changed and renews what has to be. Answers whether anything is different now. Blocks.
    pub fn refresh(&mut self, now: SystemTime) -> bool {
        let LiveCertificates { options, .. } = self;
        let own = self.own.refresh(now >= self.renewal, || load_own(options, now));
        self.renewal = match own {
            Refreshed::Same if now < self.renewal => self.renewal,
            Refreshed::Same | Refreshed::Changed => self.own.value.renewal().max(now + RENEWAL_RETRY),
            Refreshed::Failed => now + RENEWAL_RETRY,
        };
        let mut has_changed = own == Refreshed::Changed;
        let pairs = self.serving.iter_mut().zip(&options.serving);
        let named = self.named.iter_mut().zip(options.named.iter().map(|named| &named.files));
        for (pair, files) in pairs.chain(named) {
            has_changed |= pair.refresh(false, || Shown::read(files)) == Refreshed::Changed;
        }
        if let (Some(watched), Some(path)) = (&mut self.client_authorities, &options.client_authorities) {
            has_changed |= watched.refresh(false, || authorities_from_pem_file(path)) == Refreshed::Changed;
        }
        if has_changed && let Err(error) = self.publish() {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot use the certificates that have changed");
            return false;
        }
        has_changed
    }

    /// Lets everybody use what there is now.
    fn publish(&mut self) -> Result<(), CertificateError> {
        let others = self.client_authorities.as_ref().map(|watched| watched.value.as_slice()).unwrap_or_default();
        let trust = self.own.value.client_trust(others)?;
        let shown = shown(&self.options, &self.own.value, self.serving.as_ref(), &self.named)?;
        // First whom to trust: a handshake offers what is trusted.
        self.peers.replace(trust);
        self.configs.send_replace(TlsConfigs::new(&self.options.tls, &shown, &self.peers)?);
        Ok(())
    }

    /// The certificates that the server made for itself.
    pub fn own(&self) -> &Certificates {
        &self.own.value
    }

    /// Knows what clients' certificates are worth, from now on.
    pub fn peers(&self) -> PeerVerifier {
        self.peers.clone()
    }

    /// How the server speaks TLS, from now on.
    pub fn tls(&self) -> ServerTls {
        ServerTls::following(self.configs.subscribe())
    }

    /// The authorities of clients that others are told of: those that were named, as in the original; or else the
    /// server's own.
    pub fn client_authorities(&self) -> Vec<CertificateDer<'static>> {
        let named = self.client_authorities.as_ref().map(|watched| watched.value.clone());
        named.unwrap_or_else(|| self.own.value.authorities().to_vec())
    }

    /// The certificates that a client has to trust to reach this server, in PEM: the folder's authority, and what was
    /// brought to be shown, because that authority did not issue it.
    pub fn trust_pem(&self) -> String {
        let own = self.own.value.authority_pem();
        match &self.serving {
            None => own.to_owned(),
            Some(brought) => format!("{}\n{}", own.trim_end(), brought.value.pem),
        }
    }

    /// Puts a kubeconfig of the administrator at `path`, for a server that is reached at `server_url`, if it is not
    /// there already.
    pub fn write_kubeconfig(&self, path: &Path, server_url: &str) -> Result<(), CertificateError> {
        let text = kubeconfig(server_url, &self.trust_pem(), &self.own.value);
        // `revisor credentials renew` writes it too.
        let _lock = lock(&self.options.folder)?;
        if read_required(path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        write_all(&[kubeconfig_file(path, text)]).map_err(CertificateError::from)
    }
}

fn own_paths(options: &LiveOptions) -> Vec<PathBuf> {
    options.holdings.files().iter().map(|name| options.folder.join(name)).collect()
}

fn load_own(options: &LiveOptions, now: SystemTime) -> Result<Certificates, CertificateError> {
    Certificates::open(&options.folder, &options.names, options.holdings, now)
}

fn watch_pair(files: &ServingFiles) -> Result<Watched<Shown>, CertificateError> {
    Watched::open(vec![files.certificate.clone(), files.key.clone()], || Shown::read(files))
}

fn shown(
    options: &LiveOptions,
    own: &Certificates,
    serving: Option<&Watched<Shown>>,
    named: &[Watched<Shown>],
) -> Result<Arc<ShownCertificates>, CertificateError> {
    let default = match serving {
        Some(brought) => brought.value.pair.clone(),
        None => own.shown()?.pair,
    };
    let named = named.iter().zip(&options.named).map(|(shown, files)| (shown.value.pair.clone(), &*files.names));
    Ok(Arc::new(ShownCertificates::new(default, named)))
}

/// Files that are looked at again and again, and what was last made of them.
struct Watched<T> {
    paths: Vec<PathBuf>,
    seen: [u8; 32],
    value: T,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refreshed {
    Same,
    Changed,
    Failed,
}

impl<T: PartialEq> Watched<T> {
    fn open(
        paths: Vec<PathBuf>,
        read: impl FnOnce() -> Result<T, CertificateError>,
    ) -> Result<Watched<T>, CertificateError> {
        // Looked at before they are read: what changes in between is read again.
        let seen = digest(&paths);
        Ok(Watched { paths, seen, value: read()? })
    }

    /// Reads the files again if they have changed, or if that is `due` anyway.
    fn refresh(&mut self, due: bool, read: impl FnOnce() -> Result<T, CertificateError>) -> Refreshed {
        let seen = digest(&self.paths);
        if seen == self.seen && !due {
            return Refreshed::Same;
        }
        self.seen = seen;
        match read() {
            // Touched, or written by ourselves.
            Ok(value) if value == self.value => Refreshed::Same,
            Ok(value) => {
                self.value = value;
                tracing::info!(file = %self.paths[0].display(), "read certificates that have changed");
                Refreshed::Changed
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "cannot use certificates that have changed; the old ones stay");
                Refreshed::Failed
            }
        }
    }
}

/// What the files hold, or why they cannot be read.
fn digest(paths: &[PathBuf]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for path in paths {
        match read_required(path) {
            Ok(text) => {
                digest.update(text.len().to_le_bytes());
                digest.update(text);
            }
            Err(error) => digest.update(format!("{error:?}")),
        }
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests;
