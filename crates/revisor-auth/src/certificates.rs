//! [`Certificates`]: the keys and certificates that the program needs, kept in one folder.
//!
//! | file | what | made when |
//! |---|---|---|
//! | `ca.crt`, `ca.key` | the authority that both sides trust | there is none; renewed before it expires |
//! | `apiserver.crt`, `apiserver.key` | what the server shows | there is none; renewed before it expires, and for new names |
//! | `admin.crt`, `admin.key` | what the administrator shows | there is none; renewed before it expires, unless it was revoked |
//! | `credentials.json` | what was issued to administrators, and what of it was revoked | there is none, and with every certificate of an administrator |
//! | `sa.key`, `sa.pub` | what the tokens of service accounts are signed and checked with | there is none |
//!
//! A folder may hold less ([`Holdings`]): whoever only has to show a certificate gets no administrator and signs no tokens.
//!
//! A private key that is there is never replaced unasked: to renew is to issue a new certificate for the same key, which
//! is the replacement of one file and so cannot be interrupted half-way. That holds for the authority too: with its old
//! key, the new certificate vouches for all that the old one did. A key takes its place before its certificate, so a key
//! without one is a start that was interrupted, and is used. Nothing is written before everything is known to fit
//! together: a folder that is refused stays as it is.
//!
//! [`crate::LiveCertificates`] opens the folder again whenever something in it changes or has to be renewed;
//! `credentials.rs` is what an operator does with it.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rcgen::{KeyPair, PublicKeyData};
use rustls_pki_types::{CertificateDer, ServerName};

use crate::certificate_authority::{Authority, Purpose};
use crate::client_trust::ClientTrust;
use crate::credential_file::{self, NewFile, Standing, WriteError};
use crate::credential_ledger::{Credential, CredentialLedger, TooManyCredentials};
use crate::tls_config::{Shown, certificates, private_key};

/// Far above any real chain of certificates; a wrong path must not fill the memory.
const MAX_BYTES: u64 = 1 << 20;

const END_OF_CERTIFICATE: &str = "-----END CERTIFICATE-----";

/// The files of the folder.
const FILES: [&str; 9] =
    ["admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "ca.crt", "ca.key", LEDGER, "sa.key", "sa.pub"];

/// What a folder is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holdings {
    /// All that a control plane needs.
    ControlPlane,
    /// An authority and the certificate that is shown, for those who are only called.
    Serving,
}

impl Holdings {
    /// The files that are looked at.
    pub(crate) fn files(self) -> &'static [&'static str] {
        match self {
            Holdings::ControlPlane => &FILES,
            Holdings::Serving => &["apiserver.crt", "apiserver.key", "ca.crt", "ca.key"],
        }
    }
}

/// The file that remembers what was issued.
const LEDGER: &str = "credentials.json";

/// The keys and certificates of one server.
#[derive(Clone, PartialEq)]
pub struct Certificates {
    folder: PathBuf,
    authority_pem: String,
    authorities: Vec<CertificateDer<'static>>,
    server: PemPair,
    ledger: CredentialLedger,
    renewal: SystemTime,
    /// What only a control plane has.
    issued: Issued,
}

/// What only a control plane issues; empty for others.
#[derive(Clone, PartialEq, Default)]
struct Issued {
    admin: PemPair,
    service_account_key_pem: String,
    service_account_public_pem: String,
}

/// A certificate and its key, as they stand in their files.
#[derive(Clone, PartialEq, Default)]
struct PemPair {
    certificate: String,
    key: String,
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
    #[error("the certificate authority {} has expired and was not made here; renew it, or remove its folder to have everything made anew", path.display())]
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
    /// There is no authority whose credentials could be looked after.
    #[error("there are no certificates in {}; a server that is started on the folder makes them", folder.display())]
    NoAuthority {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// There is no administrator whose credential could be taken back.
    #[error("there is no credential of the administrator in {}", folder.display())]
    NoAdministrator {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// What was taken back cannot be remembered.
    #[error(transparent)]
    Ledger(#[from] TooManyCredentials),
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

/// The certificate and the key for the server to show that somebody else put into its folder: they are used as they are,
/// as in the original. Those that the authority beside them issued are the server's own.
pub fn brought_serving_files(folder: &Path) -> Option<ServingFiles> {
    let files = ServingFiles { certificate: folder.join("apiserver.crt"), key: folder.join("apiserver.key") };
    let first = |path: &Path| {
        let pem = read_optional(path).ok().flatten()?;
        certificates(path, &pem).ok()?.into_iter().next()
    };
    let shown = first(&files.certificate).filter(|_| files.key.exists())?;
    let is_own = first(&folder.join("ca.crt")).is_some_and(|authority| {
        let parsed = x509_parser::parse_x509_certificate(&authority).ok();
        let (Some((_, authority)), Ok((_, shown))) = (parsed, x509_parser::parse_x509_certificate(&shown)) else {
            return false;
        };
        shown.verify_signature(Some(authority.public_key())).is_ok()
    });
    (!is_own).then_some(files)
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
    /// Takes what is in `folder`, makes what is not, and renews what is in the last third of its life or lacks one of
    /// `names`, under which the server must be reachable.
    pub fn load_or_create(
        folder: &Path,
        names: &[ServerName<'static>],
        now: SystemTime,
    ) -> Result<Certificates, CertificateError> {
        Certificates::open(folder, names, Holdings::ControlPlane, now)
    }

    /// The same of a folder that is for this.
    pub(crate) fn open(
        folder: &Path,
        names: &[ServerName<'static>],
        holdings: Holdings,
        now: SystemTime,
    ) -> Result<Certificates, CertificateError> {
        std::fs::create_dir_all(folder).map_err(|source| CertificateError::io("made", folder, source))?;
        // Of two servers that start in one folder, the second finds what the first made.
        let _lock = lock(folder)?;
        let mut opening = Opening::new(folder, now)?;
        let (authority, authority_pem) = opening.authority()?;
        let (server, server_renewal) = opening.pair("apiserver", &authority, Purpose::Server(names))?;
        let (issued, admin_renewal) = match holdings {
            Holdings::ControlPlane => opening.issued(&authority)?,
            Holdings::Serving => (Issued::default(), None),
        };
        credential_file::write_all(&opening.new)?;
        let renewals = [Some(server_renewal), admin_renewal, authority.renewal()];
        Ok(Certificates {
            folder: folder.to_owned(),
            authority_pem,
            authorities: authority.certificates().to_vec(),
            server,
            ledger: opening.ledger,
            renewal: renewals.into_iter().flatten().min().unwrap_or(server_renewal),
            issued,
        })
    }

    /// When something has to be renewed next.
    pub(crate) fn renewal(&self) -> SystemTime {
        self.renewal
    }

    /// The certificates of the authority, in PEM.
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The authorities whose client certificates this server trusts.
    pub fn authorities(&self) -> &[CertificateDer<'static>] {
        &self.authorities
    }

    /// Trust in what the authority issued and nobody took back, and in what `others` issued.
    pub fn client_trust(&self, others: &[CertificateDer<'static>]) -> Result<ClientTrust, CertificateError> {
        let all = self.authorities.iter().chain(others).cloned().collect();
        Ok(ClientTrust::new(all)?.without(self.ledger.revocations(), &self.authorities))
    }

    /// The certificate that the server shows, and its key.
    pub(crate) fn shown(&self) -> Result<Shown, CertificateError> {
        let (certificate, key) = (self.folder.join("apiserver.crt"), self.folder.join("apiserver.key"));
        Shown::new(&ServingFiles { certificate, key }, self.server.certificate.clone(), &self.server.key)
    }

    /// The certificate of the administrator, in PEM.
    pub fn admin_certificate_pem(&self) -> &str {
        &self.issued.admin.certificate
    }

    /// The private key of the administrator, in PEM.
    pub fn admin_key_pem(&self) -> &str {
        &self.issued.admin.key
    }

    /// The key that tokens of service accounts are signed with, in PEM.
    pub fn service_account_key_pem(&self) -> &str {
        &self.issued.service_account_key_pem
    }

    /// The key that tokens of service accounts are checked with, in PEM.
    pub fn service_account_public_pem(&self) -> &str {
        &self.issued.service_account_public_pem
    }
}

/// Without the private keys.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Keeps all others out of the folder while it is being opened or changed, for as long as it is held. Nobody waits for
/// anything else meanwhile.
pub(crate) fn lock(folder: &Path) -> Result<File, CertificateError> {
    let lock = File::open(folder).map_err(|source| CertificateError::io("read", folder, source))?;
    lock.lock().map_err(|source| CertificateError::io("locked", folder, source))?;
    Ok(lock)
}

/// A folder that is being opened, and what has to be written into it.
pub(crate) struct Opening<'a> {
    folder: &'a Path,
    now: SystemTime,
    pub(crate) ledger: CredentialLedger,
    pub(crate) new: Vec<NewFile>,
}

/// A private key, parsed and as it stands in its file.
struct OpenKey {
    pair: KeyPair,
    pem: String,
}

impl Opening<'_> {
    /// Looks into the folder. Whoever does holds its [`lock`].
    pub(crate) fn new(folder: &Path, now: SystemTime) -> Result<Opening<'_>, CertificateError> {
        let path = folder.join(LEDGER);
        let ledger = match read_optional(&path)? {
            Some(text) => CredentialLedger::parse(&text)
                .map_err(|source| CertificateError::malformed(&path, "list of credentials", source))?,
            None => CredentialLedger::default(),
        };
        Ok(Opening { folder, now, ledger, new: Vec::new() })
    }

    /// The authority, made or renewed if need be.
    pub(crate) fn authority(&mut self) -> Result<(Authority, String), CertificateError> {
        let (certificate_path, key_path) = (self.folder.join("ca.crt"), self.folder.join("ca.key"));
        let key = self.key(&certificate_path, &key_path)?;
        let found = read_optional(&certificate_path)?;
        let pem = match &found {
            Some(pem) if !Authority::needs_renewal(&certificate_path, pem, self.now)? => pem.clone(),
            _ => {
                // Others may stand behind it in the file, put there to be trusted too.
                let others = found.as_deref().and_then(|old| old.split_once(END_OF_CERTIFICATE));
                let others = others.map_or("", |(_, others)| others.trim_start());
                Authority::certificate_pem(&key.pair, self.now)? + others
            }
        };
        let public = key.pair.der_bytes().to_vec();
        if let Some(found) = &found {
            let old = certificates(&certificate_path, found)?;
            check_belongs(&public, &old[0], &certificate_path, &key_path)?;
        }
        let authority = Authority::open(&certificate_path, &pem, key.pair, self.now)?;
        if found.as_ref() != Some(&pem) {
            self.add(&certificate_path, &pem, Standing::Replaced);
            if found.is_some() {
                tracing::info!(file = %certificate_path.display(), "renewing a certificate");
            }
        }
        Ok((authority, pem))
    }

    /// A certificate of the authority and its key, and when it is to be renewed.
    fn pair(
        &mut self,
        stem: &str,
        authority: &Authority,
        purpose: Purpose<'_>,
    ) -> Result<(PemPair, SystemTime), CertificateError> {
        let certificate_path = self.folder.join(format!("{stem}.crt"));
        let key_path = self.folder.join(format!("{stem}.key"));
        let key = self.key(&certificate_path, &key_path)?;
        if let Some(certificate) = read_optional(&certificate_path)? {
            let chain = certificates(&certificate_path, &certificate)?;
            check_belongs(key.pair.der_bytes(), &chain[0], &certificate_path, &key_path)?;
            if let Some(renewal) = authority.serves_until(purpose, &certificate_path, &chain, self.now)? {
                return Ok((PemPair { certificate, key: key.pem }, renewal));
            }
            tracing::info!(file = %certificate_path.display(), "renewing a certificate");
        }
        let certificate = authority.issue(purpose, &key.pair, self.now)?;
        let issued = certificates(&certificate_path, &certificate)?;
        let renewal = authority.serves_until(purpose, &certificate_path, &issued, self.now)?;
        self.add(&certificate_path, &certificate, Standing::Replaced);
        Ok((PemPair { certificate, key: key.pem }, renewal.unwrap_or(self.now)))
    }

    /// What a control plane issues, and when it is to be renewed.
    fn issued(&mut self, authority: &Authority) -> Result<(Issued, Option<SystemTime>), CertificateError> {
        let (admin, renewal) = self.admin(authority)?;
        let (service_account_key_pem, service_account_public_pem) = self.service_account_keys()?;
        Ok((Issued { admin, service_account_key_pem, service_account_public_pem }, renewal))
    }

    /// What the administrator shows, and when it is to be renewed: never once it was revoked, for a credential that was
    /// taken back must not come again by itself.
    fn admin(&mut self, authority: &Authority) -> Result<(PemPair, Option<SystemTime>), CertificateError> {
        let path = self.folder.join("admin.crt");
        if let Some(certificate) = read_optional(&path)? {
            let current = self.credential(&path, &certificate)?;
            self.note(current.clone());
            if self.ledger.credentials().iter().any(|known| known.serial == current.serial && known.revoked.is_some()) {
                tracing::warn!(
                    "the administrator's credential was revoked; `revisor credentials renew` makes a new one"
                );
                let key = read_required(&self.folder.join("admin.key"))?;
                return Ok((PemPair { certificate, key }, None));
            }
        }
        let (admin, renewal) = self.pair("admin", authority, Purpose::Administrator)?;
        let current = self.credential(&path, &admin.certificate)?;
        self.note(current);
        Ok((admin, Some(renewal)))
    }

    /// A new key and certificate for the administrator, in the place of those that are there: what it says, and both in
    /// PEM.
    pub(crate) fn new_admin(
        &mut self,
        authority: &Authority,
    ) -> Result<(Credential, String, String), CertificateError> {
        let (certificate_path, key_path) = (self.folder.join("admin.crt"), self.folder.join("admin.key"));
        let key = self.new_key(&key_path, Standing::Replaced)?;
        let certificate = authority.issue(Purpose::Administrator, &key.pair, self.now)?;
        let credential = self.credential(&certificate_path, &certificate)?;
        self.note(credential.clone());
        self.add(&certificate_path, &certificate, Standing::Replaced);
        Ok((credential, certificate, key.pem))
    }

    /// The credential of the administrator that is there; `None` if there is none.
    pub(crate) fn current_admin(&self) -> Result<Option<Credential>, CertificateError> {
        let path = self.folder.join("admin.crt");
        read_optional(&path)?.map(|pem| self.credential(&path, &pem)).transpose()
    }

    fn credential(&self, path: &Path, pem: &str) -> Result<Credential, CertificateError> {
        let chain = certificates(path, pem)?;
        Credential::of(&chain[0]).map_err(|source| CertificateError::malformed(path, "certificate", source))
    }

    /// Remembers a credential, if it is not known.
    pub(crate) fn note(&mut self, credential: Credential) {
        if self.ledger.add(credential, self.now) {
            self.write_ledger();
        }
    }

    /// The ledger is to be written as it is now, in the place of what was to be written before.
    pub(crate) fn write_ledger(&mut self) {
        let path = self.folder.join(LEDGER);
        self.new.retain(|file| file.path != path);
        self.add(&path, &self.ledger.to_text(), Standing::Replaced);
    }

    fn service_account_keys(&mut self) -> Result<(String, String), CertificateError> {
        let (public_path, key_path) = (self.folder.join("sa.pub"), self.folder.join("sa.key"));
        let key = self.key(&public_path, &key_path)?;
        // The file may hold further keys, whose tokens are still around, so one that is there is not touched.
        let public = match read_optional(&public_path)? {
            Some(public) => public,
            None => {
                let public = key.pair.public_key_pem();
                self.add(&public_path, &public, Standing::Kept);
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
            None => self.new_key(key_path, Standing::Kept),
        }
    }

    fn new_key(&mut self, key_path: &Path, standing: Standing) -> Result<OpenKey, CertificateError> {
        // ECDSA on P-256: made in microseconds, and quick in handshakes on both sides.
        let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(CertificateError::Crypto)?;
        let pem = pair.serialize_pem();
        self.add(key_path, &pem, standing);
        Ok(OpenKey { pair, pem })
    }

    fn add(&mut self, path: &Path, text: &str, standing: Standing) {
        self.new.push(NewFile { path: path.to_owned(), text: text.to_owned(), standing });
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

/// The same; `None` if there is no such file.
pub(crate) fn read_optional(path: &Path) -> Result<Option<String>, CertificateError> {
    match credential_file::read(path, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CertificateError::io("read", path, source)),
    }
}

#[cfg(test)]
mod tests;
