//! Certificates on a real folder: made, kept, renewed, refused.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use tempfile::TempDir;

use super::*;
use crate::kubeconfig::{kubeconfig, with_credential};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Some moment; that it is not today shows that the clock comes from outside.
fn start() -> SystemTime {
    UNIX_EPOCH + 20_000 * DAY
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[track_caller]
fn open(folder: &Path, addresses: &[IpAddr], now: SystemTime) -> Certificates {
    Certificates::load_or_create(folder, &server_names(addresses.iter().copied()), now).expect("the folder is fine")
}

#[track_caller]
fn refuse(folder: &Path) -> String {
    let error = Certificates::load_or_create(folder, &server_names([]), start()).expect_err("the folder is not fine");
    error.to_string()
}

fn contents(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the folder can be read").path())
        .map(|path| (path.file_name().expect("files have names").to_string_lossy().into_owned(), text(&path)))
        .collect();
    files.sort();
    files
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the file can be read")
}

fn changed(before: &[(String, String)], after: &[(String, String)]) -> Vec<String> {
    after.iter().filter(|file| !before.contains(file)).map(|(name, _)| name.clone()).collect()
}

#[test]
fn who_only_serves_gets_only_what_is_shown() {
    let folder = folder();
    let open = || Certificates::open(folder.path(), &server_names([]), Holdings::Serving, start());
    let made = open().expect("the folder is empty");
    let names: Vec<_> = contents(folder.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, Holdings::Serving.files());
    assert!(made.shown().is_ok() && made.admin_key_pem().is_empty() && made.service_account_key_pem().is_empty());
    assert_eq!(open().expect("is there").authority_pem(), made.authority_pem());
}

#[test]
fn an_empty_folder_gets_everything_and_all_of_it_private() {
    let folder = folder();
    // Folders on the way are made too.
    let folder = folder.path().join("deep/pki");
    open(&folder, &[], start());
    let names: Vec<_> = contents(&folder).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, FILES);
    for name in FILES {
        let mode = std::fs::metadata(folder.join(name)).expect("the file is there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
}

#[test]
fn what_is_there_is_kept_until_the_last_third_of_its_life() {
    let folder = folder();
    open(folder.path(), &[], start());
    let first = contents(folder.path());
    for (case, later, want) in [
        ("at once", Duration::ZERO, &[][..]),
        ("122 days before the end", 243 * DAY, &[]),
        ("121 days before the end", 244 * DAY, &["admin.crt", "apiserver.crt", LEDGER]),
        ("after the end", 1000 * DAY, &["admin.crt", "apiserver.crt", LEDGER]),
    ] {
        let before = contents(folder.path());
        open(folder.path(), &[], start() + later);
        assert_eq!(changed(&before, &contents(folder.path())), want, "{case}");
    }
    // The authority and all keys have stayed through two renewals.
    assert_eq!(changed(&first, &contents(folder.path())), ["admin.crt", "apiserver.crt", LEDGER]);
}

#[test]
fn a_certificate_from_the_future_is_renewed() {
    let folder = folder();
    open(folder.path(), &[], start() + 10 * DAY);
    let before = contents(folder.path());
    open(folder.path(), &[], start());
    assert_eq!(changed(&before, &contents(folder.path())), ["admin.crt", "apiserver.crt", LEDGER]);
}

#[test]
fn a_new_name_renews_the_server_certificate_only() {
    let folder = folder();
    let service = IpAddr::from([10, 0, 0, 1]);
    open(folder.path(), &[], start());
    let before = contents(folder.path());
    open(folder.path(), &[service], start());
    assert_eq!(changed(&before, &contents(folder.path())), ["apiserver.crt"]);
    // Fewer names are no reason.
    let before = contents(folder.path());
    open(folder.path(), &[], start());
    assert_eq!(changed(&before, &contents(folder.path())), [""; 0]);
}

#[test]
fn renewed_certificates_have_new_serial_numbers() {
    let folder = folder();
    let serial = |certificates: Certificates| {
        let leaf = server_certificate(&certificates);
        let (_, parsed) = x509_parser::parse_x509_certificate(&leaf).expect("the certificate is fine");
        parsed.raw_serial().to_vec()
    };
    let first = serial(open(folder.path(), &[], start()));
    let second = serial(open(folder.path(), &[], start() + 360 * DAY));
    assert_ne!(first, second);
    assert!(first.len() == 16 && second.len() == 16, "{first:?} {second:?}");
}

fn server_certificate(certificates: &Certificates) -> CertificateDer<'static> {
    let shown = certificates.shown().expect("the pair is fine");
    shown.pair.cert[0].clone()
}

/// Trust in the authority alone.
fn trust(certificates: &Certificates) -> crate::PeerVerifier {
    crate::PeerVerifier::new(certificates.client_trust(&[]).expect("the authority is fine"))
}

#[test]
fn the_authority_is_renewed_for_its_key_in_the_last_third_of_its_life() {
    let folder = folder();
    let first = open(folder.path(), &[], start());
    let before = contents(folder.path());
    let kept = open(folder.path(), &[], start() + 2432 * DAY);
    assert_eq!(kept.authority_pem(), first.authority_pem());
    // Trusted beside the authority, by whoever put it there.
    let other = self::folder();
    let beside = open(other.path(), &[], start()).authority_pem().to_owned();
    std::fs::write(folder.path().join("ca.crt"), first.authority_pem().to_owned() + &beside).expect("can be written");

    for later in [2434 * DAY, 3700 * DAY] {
        let now = start() + later;
        let admin_before = open(folder.path(), &[], now - DAY);
        let renewed = open(folder.path(), &[], now);
        assert_ne!(renewed.authority_pem(), first.authority_pem());
        assert_eq!(renewed.authorities().len(), 2);
        assert!(renewed.authority_pem().ends_with(&beside), "{}", renewed.authority_pem());
        let changed = changed(&before, &contents(folder.path()));
        assert!(!changed.iter().any(|name| name.ends_with(".key")), "{changed:?}");
        // What the old certificate vouched for, the new one does.
        let admin = certificates(Path::new(""), admin_before.admin_certificate_pem()).expect("a certificate");
        let peer = trust(&renewed).peer(&admin);
        assert!(matches!(peer.identity(now), crate::PeerIdentity::Verified(_)), "{later:?}");
    }
}

#[test]
fn nothing_outlives_an_authority_that_was_brought_and_it_is_left_alone() {
    let folder = folder();
    let key = KeyPair::generate().expect("keys can be made");
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, "of the company");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (start().into(), (start() + 3650 * DAY).into());
    let pem = params.self_signed(&key).expect("certificates can be made").pem();
    std::fs::write(folder.path().join("ca.crt"), &pem).expect("the folder can be written");
    std::fs::write(folder.path().join("ca.key"), key.serialize_pem()).expect("the folder can be written");
    let late = open(folder.path(), &[], start() + 3600 * DAY);
    assert_eq!(late.authority_pem(), pem);
    let leaf = server_certificate(&late);
    let validity = crate::validity::Validity::read(&leaf).expect("the certificate is fine");
    assert_eq!(validity.expires(), start() + 3650 * DAY);
    // It cannot last longer, so it is not issued again and again.
    let before = contents(folder.path());
    open(folder.path(), &[], start() + 3649 * DAY);
    assert_eq!(changed(&before, &contents(folder.path())), [""; 0]);

    let error = Certificates::load_or_create(folder.path(), &server_names([]), start() + 3651 * DAY);
    let error = error.expect_err("the authority has expired").to_string();
    assert!(error.contains("ca.crt has expired"), "{error}");
}

#[test]
fn an_interrupted_start_goes_on_where_it_was() {
    for missing in [
        &["ca.crt", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key", LEDGER, "sa.key", "sa.pub"][..],
        &["apiserver.crt"],
        &["admin.crt", "admin.key", LEDGER],
        &[LEDGER],
        &["sa.pub"],
    ] {
        let folder = folder();
        open(folder.path(), &[], start());
        let before = contents(folder.path());
        for name in missing {
            std::fs::remove_file(folder.path().join(name)).expect("the file is there");
        }
        open(folder.path(), &[], start());
        let after = contents(folder.path());
        assert_eq!(after.len(), FILES.len(), "{missing:?}");
        let kept: Vec<_> =
            changed(&before, &after).into_iter().filter(|name| !missing.contains(&name.as_str())).collect();
        assert_eq!(kept, [""; 0], "{missing:?}");
    }
}

#[test]
fn a_lost_public_key_is_the_same_again() {
    let folder = folder();
    let first = open(folder.path(), &[], start());
    std::fs::remove_file(folder.path().join("sa.pub")).expect("the file is there");
    let second = open(folder.path(), &[], start());
    assert_eq!(first.service_account_public_pem(), second.service_account_public_pem());
    assert!(second.service_account_public_pem().starts_with("-----BEGIN PUBLIC KEY-----\n"));
    assert!(second.service_account_key_pem().starts_with("-----BEGIN PRIVATE KEY-----\n"));
}

#[test]
fn what_does_not_fit_together_is_an_error_that_names_the_file() {
    let other = folder();
    open(other.path(), &[], start());
    let copy = |from: &str| text(&other.path().join(from));
    for (case, file, contents, want) in [
        ("lost key", "ca.key", None, "ca.key is missing"),
        ("lost key", "apiserver.key", None, "apiserver.key is missing"),
        ("lost key", "sa.key", None, "sa.key is missing"),
        ("another's key", "ca.key", Some(copy("ca.key")), "ca.key is not the key of"),
        ("another's key", "admin.key", Some(copy("admin.key")), "admin.key is not the key of"),
        ("no certificate", "ca.crt", Some("hello".to_owned()), "ca.crt does not hold a usable certificate"),
        ("no key", "apiserver.key", Some("hello".to_owned()), "apiserver.key does not hold a usable private key"),
        ("empty", "admin.crt", Some(String::new()), "admin.crt does not hold a usable certificate"),
        ("no list", LEDGER, Some("{".to_owned()), "credentials.json does not hold a usable list of credentials"),
        ("too long", "sa.key", Some("x".repeat(2 << 20)), "sa.key cannot be read"),
    ] {
        let folder = folder();
        open(folder.path(), &[], start());
        let path = folder.path().join(file);
        match &contents {
            Some(contents) => std::fs::write(&path, contents).expect("the file can be written"),
            None => std::fs::remove_file(&path).expect("the file is there"),
        }
        let before = self::contents(folder.path());
        let error = refuse(folder.path());
        assert!(error.contains(want), "{case}: {error}");
        assert_eq!(before, self::contents(folder.path()), "{case}: a refused folder is left alone");
    }
}

#[test]
fn certificates_of_another_authority_are_not_replaced_unasked() {
    for stem in ["apiserver", "admin"] {
        let (mine, other) = (folder(), folder());
        open(mine.path(), &[], start());
        open(other.path(), &[], start());
        for end in ["crt", "key"] {
            let name = format!("{stem}.{end}");
            std::fs::copy(other.path().join(&name), mine.path().join(&name)).expect("the file can be copied");
        }
        let error = refuse(mine.path());
        assert!(error.contains(&format!("{stem}.crt was not issued for this use")), "{error}");
    }
}

#[test]
fn a_certificate_for_another_use_is_refused() {
    let folder = folder();
    open(folder.path(), &[], start());
    for end in ["crt", "key"] {
        let (from, to) = (format!("admin.{end}"), format!("apiserver.{end}"));
        std::fs::copy(folder.path().join(from), folder.path().join(to)).expect("the file can be copied");
    }
    assert!(refuse(folder.path()).contains("apiserver.crt was not issued for this use"));
}

#[test]
fn two_starts_at_once_agree() {
    let folder = folder();
    let authorities: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> =
            (0..4).map(|_| scope.spawn(|| open(folder.path(), &[], start()).authority_pem().to_owned())).collect();
        starts.into_iter().map(|start| start.join().expect("no start fails")).collect()
    });
    assert!(authorities.windows(2).all(|two| two[0] == two[1]));
}

#[test]
fn serving_files_come_in_twos() {
    let path = |name: &str| Some(PathBuf::from(name));
    let both = ServingFiles { certificate: "c".into(), key: "k".into() };
    for (certificate, key, want) in [
        (None, None, Ok(None)),
        (path("c"), path("k"), Ok(Some(both))),
        (
            path("c"),
            None,
            Err("--tls-cert-file and --tls-private-key-file must be given together, --tls-private-key-file is missing"),
        ),
        (
            None,
            path("k"),
            Err("--tls-cert-file and --tls-private-key-file must be given together, --tls-cert-file is missing"),
        ),
    ] {
        let got = ServingFiles::from_flags(certificate, key).map_err(|error| error.to_string());
        assert_eq!(got.as_ref().map_err(String::as_str), want.as_ref().map_err(|error| *error));
    }
}

#[test]
fn nothing_that_is_secret_is_shown() {
    let folder = folder();
    let certificates = open(folder.path(), &[], start());
    assert_eq!(format!("{certificates:?}"), format!("Certificates {{ folder: {:?}, .. }}", folder.path()));
}

#[test]
fn a_kubeconfig_embeds_everything() {
    let folder = folder();
    let certificates = open(folder.path(), &[], start());
    let config = kubeconfig("https://127.0.0.1:6443", certificates.authority_pem(), &certificates);
    let value = |config: &str, key: &str| {
        let line = config.lines().find_map(|line| line.trim_start().strip_prefix(key)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("{key} is in {config}")).to_owned()
    };
    let data = |config: &str, key: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(value(config, key)).expect("the data is base64");
        String::from_utf8(bytes).expect("PEM is text")
    };
    assert_eq!(value(&config, "server"), r#""https://127.0.0.1:6443""#);
    assert_eq!(value(&config, "current-context"), "revisor");
    assert_eq!(data(&config, "certificate-authority-data"), text(&folder.path().join("ca.crt")));
    assert_eq!(data(&config, "client-certificate-data"), text(&folder.path().join("admin.crt")));
    assert_eq!(data(&config, "client-key-data"), text(&folder.path().join("admin.key")));

    let other = with_credential(&config, "CERTIFICATE", "KEY");
    assert_eq!(data(&other, "client-certificate-data"), "CERTIFICATE");
    assert_eq!(data(&other, "client-key-data"), "KEY");
    let same = with_credential(&other, certificates.admin_certificate_pem(), certificates.admin_key_pem());
    assert_eq!(same, config, "and nothing else");
}
