//! [`Certificates`]: the keys and certificates that the program needs, kept in one folder.
//!
//! | file | what | made when |
//! |---|---|---|
//! | `ca.crt`, `ca.key` | the authority that both sides trust | there is none |
//! | `apiserver.crt`, `apiserver.key` | what the server shows | there is none; renewed before it expires, and for new names |
//! | `admin.crt`, `admin.key` | what the administrator shows | there is none; renewed before it expires |
//! | `sa.key`, `sa.pub` | what the tokens of service accounts are signed and checked with | there is none |
//!
//! A private key that is there is never replaced: to renew is to issue a new certificate for the same key, which is
//! the replacement of one file and so cannot be interrupted half-way. A key takes its place before its certificate,
//! so a key without one is a start that was interrupted, and is used. Nothing is written before everything is known
//! to fit together: a folder that is refused stays as it is.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rcgen::{KeyPair, PublicKeyData};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::certificate_authority::{Authority, Purpose};
use crate::credential_file::{self, Access, NewFile, WriteError};
use crate::tls_config::{certificates, private_key};

/// Far above any real chain of certificates; a wrong path must not fill the memory.
const MAX_BYTES: u64 = 1 << 20;

/// The keys and certificates of one server.
#[derive(Clone)]
pub struct Certificates {
    trust_pem: String,
    roots: RootCertStore,
    chain: Vec<CertificateDer<'static>>,
    key: KeyHolder,
    admin: PemPair,
    service_account_key_pem: String,
    service_account_public_pem: String,
}

/// A certificate and its key, as they stand in their files.
#[derive(Clone)]
struct PemPair {
    certificate: String,
    key: String,
}

/// The private key of the server. Wrapped because the library's type does not clone by itself.
struct KeyHolder(PrivateKeyDer<'static>);

impl Clone for KeyHolder {
    fn clone(&self) -> KeyHolder {
        KeyHolder(self.0.clone_key())
    }
}

/// A certificate and a key that the user brings for the server to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServingFiles {
    /// The chain of certificates, the server's own first.
    pub certificate: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
}

/// Why certificates cannot be used or made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file or folder cannot be read, written or made.
    #[error("{} cannot be {action}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file was read and does not hold what it should.
    #[error("{} does not hold a usable {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// One file of a pair is there without the other that is needed.
    #[error("{} is there, but {} is missing; put it back, or remove both to have them made anew", present.display(), missing.display())]
    Missing {
        /// The file that is there.
        present: PathBuf,
        /// The file that is not.
        missing: PathBuf,
    },
    /// A key and a certificate that do not belong together.
    #[error("{} is not the key of {}", key.display(), certificate.display())]
    Mismatch {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// A certificate that the authority in the same folder did not issue for this use.
    #[error("{} was not issued for this use by ca.crt beside it; remove it to have it made anew", path.display())]
    Foreign {
        /// The certificate.
        path: PathBuf,
        /// What does not fit.
        #[source]
        source: rustls::Error,
    },
    /// The authority has expired, and everything that it issued with it.
    #[error("the certificate authority {} has expired; remove its folder to have everything made anew", path.display())]
    AuthorityExpired {
        /// The certificate of the authority.
        path: PathBuf,
    },
    /// Only one of two flags that go together was given.
    #[error("--tls-cert-file and --tls-private-key-file must be given together, {0} is missing")]
    HalfServingFiles(&'static str),
    /// A name that no certificate can be made for.
    #[error("{0} is not a name that a certificate can hold")]
    Name(String),
    /// A key or certificate cannot be made.
    #[error("a key or certificate cannot be made")]
    Crypto(#[source] rcgen::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

impl CertificateError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> CertificateError {
        CertificateError::Io { action, path: path.to_owned(), source }
    }

    pub(crate) fn malformed(
        path: &Path,
        what: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> CertificateError {
        CertificateError::Malformed { path: path.to_owned(), what, source: source.into() }
    }
}

impl From<WriteError> for CertificateError {
    fn from(WriteError { path, source }: WriteError) -> CertificateError {
        CertificateError::Io { action: "written", path, source }
    }
}

impl ServingFiles {
    /// The files that `--tls-cert-file` and `--tls-private-key-file` name; `None` without either.
    pub fn from_flags(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Option<ServingFiles>, CertificateError> {
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(ServingFiles { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(CertificateError::HalfServingFiles("--tls-private-key-file")),
            (None, Some(_)) => Err(CertificateError::HalfServingFiles("--tls-cert-file")),
        }
    }
}

/// The names under which the server can be reached: those that every cluster uses inside, and `addresses`: what it
/// binds to, the first address of the services, and whatever else leads to it.
pub fn server_names(addresses: impl IntoIterator<Item = IpAddr>) -> Vec<ServerName<'static>> {
    const NAMES: [&str; 5] = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let local = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
    let mut names: Vec<_> =
        NAMES.into_iter().map(|name| ServerName::try_from(name).expect("the names are well-formed")).collect();
    for address in local.into_iter().chain(addresses) {
        let name = ServerName::from(address);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Certificates {
    /// Takes what is in `folder`, makes what is not, and renews what expires soon or lacks one of `names`, under
    /// which the server must be reachable.
    pub fn load_or_create(
        folder: &Path,
        names: &[ServerName<'static>],
        now: SystemTime,
    ) -> Result<Certificates, CertificateError> {
        std::fs::create_dir_all(folder).map_err(|source| CertificateError::io("made", folder, source))?;
        // Held until the end of this function: of two servers that start in one folder, the second finds what the
        // first made. Nothing else takes the lock, so the wait is as short as this function.
        let lock = File::open(folder).map_err(|source| CertificateError::io("read", folder, source))?;
        lock.lock().map_err(|source| CertificateError::io("locked", folder, source))?;

        let mut opening = Opening { folder, now, new: Vec::new() };
        let (authority, ca_pem) = opening.authority()?;
        let server = opening.pair("apiserver", &authority, Purpose::Server(names))?;
        let admin = opening.pair("admin", &authority, Purpose::Administrator)?;
        let (service_account_key_pem, service_account_public_pem) = opening.service_account_keys()?;
        credential_file::write_all(&opening.new)?;
        Ok(Certificates {
            trust_pem: ca_pem,
            roots: authority.roots().clone(),
            chain: certificates(&folder.join("apiserver.crt"), &server.certificate)?,
            key: KeyHolder(private_key(&folder.join("apiserver.key"), &server.key)?),
            admin,
            service_account_key_pem,
            service_account_public_pem,
        })
    }

    /// The same, but the server shows what the user brought.
    ///
    /// Those certificates join what kubeconfigs trust, because the authority of the folder did not issue them.
    pub fn with_serving_files(mut self, files: &ServingFiles) -> Result<Certificates, CertificateError> {
        let chain_pem = read_required(&files.certificate)?;
        self.chain = certificates(&files.certificate, &chain_pem)?;
        self.key = KeyHolder(private_key(&files.key, &read_required(&files.key)?)?);
        if !self.trust_pem.ends_with('\n') {
            self.trust_pem.push('\n');
        }
        self.trust_pem.push_str(&chain_pem);
        Ok(self)
    }

    /// The certificates that a client has to trust to reach this server, in PEM.
    pub fn trust_pem(&self) -> &str {
        &self.trust_pem
    }

    /// The authorities whose client certificates this server trusts.
    pub fn client_roots(&self) -> &RootCertStore {
        &self.roots
    }

    /// The certificates that the server shows, its own first.
    pub fn server_chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }

    /// The private key of the server's certificate.
    pub fn server_key(&self) -> PrivateKeyDer<'static> {
        self.key.0.clone_key()
    }

    /// The certificate of the administrator, in PEM.
    pub fn admin_certificate_pem(&self) -> &str {
        &self.admin.certificate
    }

    /// The private key of the administrator, in PEM.
    pub fn admin_key_pem(&self) -> &str {
        &self.admin.key
    }

    /// The key that tokens of service accounts are signed with, in PEM.
    pub fn service_account_key_pem(&self) -> &str {
        &self.service_account_key_pem
    }

    /// The key that tokens of service accounts are checked with, in PEM.
    pub fn service_account_public_pem(&self) -> &str {
        &self.service_account_public_pem
    }
}

/// Without the private keys.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}

/// A folder that is being opened, and what has to be written into it.
struct Opening<'a> {
    folder: &'a Path,
    now: SystemTime,
    new: Vec<NewFile>,
}

/// A private key, parsed and as it stands in its file.
struct OpenKey {
    pair: KeyPair,
    pem: String,
}

impl Opening<'_> {
    fn authority(&mut self) -> Result<(Authority, String), CertificateError> {
        let (certificate_path, key_path) = (self.folder.join("ca.crt"), self.folder.join("ca.key"));
        let key = self.key(&certificate_path, &key_path)?;
        let pem = match read_optional(&certificate_path)? {
            Some(pem) => pem,
            None => {
                let pem = Authority::certificate_pem(&key.pair, self.now)?;
                self.add(&certificate_path, &pem, Access::Public);
                pem
            }
        };
        let public = key.pair.der_bytes().to_vec();
        let authority = Authority::open(&certificate_path, &pem, key.pair, self.now)?;
        check_belongs(&public, authority.certificate(), &certificate_path, &key_path)?;
        Ok((authority, pem))
    }

    fn pair(&mut self, stem: &str, authority: &Authority, purpose: Purpose<'_>) -> Result<PemPair, CertificateError> {
        let certificate_path = self.folder.join(format!("{stem}.crt"));
        let key_path = self.folder.join(format!("{stem}.key"));
        let key = self.key(&certificate_path, &key_path)?;
        if let Some(certificate) = read_optional(&certificate_path)? {
            let chain = certificates(&certificate_path, &certificate)?;
            check_belongs(key.pair.der_bytes(), &chain[0], &certificate_path, &key_path)?;
            if authority.still_serves(purpose, &certificate_path, &chain, self.now)? {
                return Ok(PemPair { certificate, key: key.pem });
            }
            tracing::info!(file = %certificate_path.display(), "renewing a certificate");
        }
        let certificate = authority.issue(purpose, &key.pair, self.now)?;
        self.add(&certificate_path, &certificate, Access::Public);
        Ok(PemPair { certificate, key: key.pem })
    }

    fn service_account_keys(&mut self) -> Result<(String, String), CertificateError> {
        let (public_path, key_path) = (self.folder.join("sa.pub"), self.folder.join("sa.key"));
        let key = self.key(&public_path, &key_path)?;
        // The file may hold further keys, whose tokens are still around, so one that is there is not touched.
        let public = match read_optional(&public_path)? {
            Some(public) => public,
            None => {
                let public = key.pair.public_key_pem();
                self.add(&public_path, &public, Access::Public);
                public
            }
        };
        Ok((key.pem, public))
    }

    /// The private key at `key_path`; a new one when neither it nor its public counterpart is there.
    fn key(&mut self, public_path: &Path, key_path: &Path) -> Result<OpenKey, CertificateError> {
        match read_optional(key_path)? {
            Some(pem) => {
                let der = private_key(key_path, &pem)?;
                let pair = KeyPair::try_from(&der)
                    .map_err(|source| CertificateError::malformed(key_path, "private key", source))?;
                Ok(OpenKey { pair, pem })
            }
            None if public_path.exists() => {
                Err(CertificateError::Missing { present: public_path.to_owned(), missing: key_path.to_owned() })
            }
            None => {
                // ECDSA on P-256: made in microseconds, and quick in handshakes on both sides.
                let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(CertificateError::Crypto)?;
                let pem = pair.serialize_pem();
                self.add(key_path, &pem, Access::Private);
                Ok(OpenKey { pair, pem })
            }
        }
    }

    fn add(&mut self, path: &Path, text: &str, access: Access) {
        self.new.push(NewFile { path: path.to_owned(), text: text.to_owned(), access });
    }
}

fn check_belongs(
    public_key: &[u8],
    certificate: &CertificateDer<'_>,
    certificate_path: &Path,
    key_path: &Path,
) -> Result<(), CertificateError> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
        .map_err(|source| CertificateError::malformed(certificate_path, "certificate", source))?;
    if parsed.public_key().subject_public_key.data.as_ref() != public_key {
        return Err(CertificateError::Mismatch { certificate: certificate_path.to_owned(), key: key_path.to_owned() });
    }
    Ok(())
}

/// The text of the file at `path`.
pub(crate) fn read_required(path: &Path) -> Result<String, CertificateError> {
    credential_file::read(path, MAX_BYTES).map_err(|source| CertificateError::io("read", path, source))
}

fn read_optional(path: &Path) -> Result<Option<String>, CertificateError> {
    match credential_file::read(path, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CertificateError::io("read", path, source)),
    }
}

#[cfg(test)]
mod tests;
