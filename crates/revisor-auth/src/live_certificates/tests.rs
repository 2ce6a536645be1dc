//! Certificates of a server that runs: replaced, broken, renewed.

use std::net::IpAddr;
use std::time::UNIX_EPOCH;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use super::*;
use crate::{PeerIdentity, server_names};

const RUBBISH: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn start() -> SystemTime {
    UNIX_EPOCH + 20_000 * DAY
}

/// Files that somebody brings: an authority, and what it issues.
struct Brought {
    folder: TempDir,
}

impl Brought {
    fn new() -> Brought {
        Brought { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn files(&self, stem: &str) -> ServingFiles {
        ServingFiles { certificate: self.path(&format!("{stem}.crt")), key: self.path(&format!("{stem}.key")) }
    }

    fn options(&self) -> LiveOptions {
        LiveOptions {
            folder: self.path("own"),
            names: server_names([]),
            serving: None,
            named: Vec::new(),
            client_authorities: None,
            tls: TlsOptions::default(),
            holdings: Holdings::ControlPlane,
        }
    }

    /// Writes a self-signed certificate and its key.
    fn pair(&self, stem: &str) -> CertificateDer<'static> {
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = CertificateParams::default().self_signed(&key).expect("certificates can be made");
        std::fs::write(self.files(stem).certificate, certificate.pem()).expect("the folder can be written");
        std::fs::write(self.files(stem).key, key.serialize_pem()).expect("the folder can be written");
        certificate.der().clone()
    }

    /// Writes an authority, and answers a client of it.
    fn authority(&self) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.self_signed(&key).expect("certificates can be made");
        std::fs::write(self.path("clients.crt"), certificate.pem()).expect("the folder can be written");
        let issuer = Issuer::new(params, key);
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "bob");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("keys can be made");
        params.signed_by(&key, &issuer).expect("certificates can be issued").der().clone()
    }
}

fn shown(live: &LiveCertificates) -> CertificateDer<'static> {
    let shown = super::shown(&live.options, live.own(), live.serving.as_ref(), &live.named);
    shown.expect("they are fine").default_certificate().cert[0].clone()
}

fn is_let_in(live: &LiveCertificates, who: &CertificateDer<'static>, now: SystemTime) -> bool {
    let peer = live.peers().peer(std::slice::from_ref(who));
    matches!(peer.identity(now), PeerIdentity::Verified(_))
}

#[test]
fn brought_files_are_shown_and_followed() {
    let brought = Brought::new();
    let first = brought.pair("server");
    let options = LiveOptions { serving: Some(brought.files("server")), ..brought.options() };
    let mut live = LiveCertificates::open(options, start()).expect("the files are fine");
    let tls = live.tls();
    let local = IpAddr::from([127, 0, 0, 1]);
    let before = tls.config(local);
    assert_eq!(shown(&live), first);
    assert!(!live.refresh(start()), "nothing has changed");
    assert!(Arc::ptr_eq(&before, &tls.config(local)));

    let second = brought.pair("server");
    assert!(live.refresh(start()));
    assert_eq!(shown(&live), second);
    assert!(!Arc::ptr_eq(&before, &tls.config(local)), "new connections use it");
    let file = std::fs::read_to_string(brought.files("server").certificate).expect("the file is there");
    assert_eq!(live.trust_pem(), format!("{}{file}", live.own().authority_pem()), "clients have to trust both");
}

#[test]
fn files_that_cannot_be_used_leave_everything_as_it_was() {
    let brought = Brought::new();
    let (first, bob) = (brought.pair("server"), brought.authority());
    let options = LiveOptions {
        serving: Some(brought.files("server")),
        client_authorities: Some(brought.path("clients.crt")),
        ..brought.options()
    };
    let mut live = LiveCertificates::open(options, start()).expect("the files are fine");
    let trusted = live.trust_pem();
    let server = brought.files("server");
    for (case, path, text) in [
        ("no certificate", &server.certificate, Some("hello")),
        ("gone", &server.certificate, None),
        ("no key", &server.key, Some("hello")),
        ("no authority", &brought.path("clients.crt"), Some("")),
        ("rubbish", &brought.path("clients.crt"), Some(RUBBISH)),
    ] {
        let before = std::fs::read_to_string(path).expect("the file is there");
        match text {
            Some(text) => std::fs::write(path, text).expect("the file can be written"),
            None => std::fs::remove_file(path).expect("the file is there"),
        }
        assert!(!live.refresh(start()), "{case}");
        assert_eq!((shown(&live), live.trust_pem()), (first.clone(), trusted.clone()), "{case}");
        assert!(is_let_in(&live, &bob, start()), "{case}");
        std::fs::write(path, before).expect("the file can be written");
        live.refresh(start());
    }
    // A pair is replaced file by file, and only the whole one counts. What else changes counts meanwhile.
    brought.pair("other");
    std::fs::copy(brought.files("other").certificate, &server.certificate).expect("the file can be written");
    let eve = brought.authority();
    assert!(live.refresh(start()));
    assert_eq!(shown(&live), first);
    assert!(is_let_in(&live, &eve, start()) && !is_let_in(&live, &bob, start()));
    std::fs::copy(brought.files("other").key, &server.key).expect("the file can be written");
    assert!(live.refresh(start()));
    assert_ne!(shown(&live), first);
}

#[test]
fn files_that_cannot_be_used_at_the_start_are_errors() {
    let brought = Brought::new();
    brought.pair("one");
    brought.pair("other");
    let swapped = ServingFiles { key: brought.files("other").key, ..brought.files("one") };
    let missing = ServingFiles { key: brought.path("nothing.key"), ..brought.files("one") };
    let named = NamedFiles { files: missing.clone(), names: Vec::new() };
    for (options, want) in [
        (LiveOptions { serving: Some(swapped), ..brought.options() }, "other.key is not the key of"),
        (LiveOptions { serving: Some(missing), ..brought.options() }, "nothing.key cannot be read"),
        (LiveOptions { named: vec![named], ..brought.options() }, "nothing.key cannot be read"),
        (
            LiveOptions { client_authorities: Some(brought.path("one.key")), ..brought.options() },
            "one.key does not hold a usable certificate",
        ),
    ] {
        let error = LiveCertificates::open(options, start()).err().expect(want).to_string();
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn what_the_server_made_for_itself_is_renewed_while_it_runs() {
    let brought = Brought::new();
    let mut live = LiveCertificates::open(brought.options(), start()).expect("the folder is empty");
    let (server, admin, authority) =
        (shown(&live), live.own().admin_certificate_pem().to_owned(), live.own().authority_pem().to_owned());
    assert!(!live.refresh(start() + 243 * DAY), "there is time");
    assert!(live.refresh(start() + 244 * DAY));
    assert!(shown(&live) != server && live.own().admin_certificate_pem() != admin);
    assert_eq!(live.own().authority_pem(), authority);

    assert!(live.refresh(start() + 2500 * DAY));
    assert_ne!(live.own().authority_pem(), authority);
    assert_eq!(live.trust_pem(), live.own().authority_pem());
    let config = brought.path("kubeconfig");
    live.write_kubeconfig(&config, "https://127.0.0.1:1").expect("the file can be written");
    let text = std::fs::read_to_string(&config).expect("the file is there");
    assert_eq!(text, kubeconfig("https://127.0.0.1:1", &live.trust_pem(), live.own()));
}

#[test]
fn a_renewal_that_fails_is_tried_again_and_the_old_ones_stay() {
    let brought = Brought::new();
    let mut live = LiveCertificates::open(brought.options(), start()).expect("the folder is empty");
    let server = shown(&live);
    let key = brought.path("own").join("ca.key");
    let hidden = brought.path("hidden.key");
    std::fs::rename(&key, &hidden).expect("the key is there");
    let later = start() + 244 * DAY;
    assert!(!live.refresh(later));
    assert_eq!(shown(&live), server);
    std::fs::rename(&hidden, &key).expect("the key is there");
    assert!(live.refresh(later + RENEWAL_RETRY));
    assert_ne!(shown(&live), server);
}

#[test]
fn what_was_revoked_does_not_count_from_then_on() {
    let brought = Brought::new();
    let mut live = LiveCertificates::open(brought.options(), start()).expect("the folder is empty");
    let admin = crate::tls_config::certificates(Path::new(""), live.own().admin_certificate_pem());
    let admin = admin.expect("it is fine").swap_remove(0);
    let peer = live.peers().peer(std::slice::from_ref(&admin));
    assert!(matches!(peer.identity(start()), PeerIdentity::Verified(_)));
    crate::revoke_credentials(&brought.path("own"), &crate::Revoked::Administrator, start()).expect("there is one");
    assert!(live.refresh(start()));
    assert_eq!(peer.identity(start()), PeerIdentity::Refused("the certificate was revoked".into()));
}
