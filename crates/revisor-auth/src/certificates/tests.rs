//! Certificates on a real folder: made, kept, renewed, refused.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use tempfile::TempDir;

use super::*;
use crate::{kubeconfig, roots_from_pem_file, write_kubeconfig};

const FILES: [&str; 8] =
    ["admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "ca.crt", "ca.key", "sa.key", "sa.pub"];
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
fn an_empty_folder_gets_everything_with_private_keys_private() {
    let folder = folder();
    // Folders on the way are made too.
    let folder = folder.path().join("deep/pki");
    open(&folder, &[], start());
    let names: Vec<_> = contents(&folder).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, FILES);
    for name in FILES {
        let mode = std::fs::metadata(folder.join(name)).expect("the file is there").permissions().mode() & 0o777;
        assert_eq!(mode, if name.ends_with(".key") { 0o600 } else { 0o644 }, "{name}");
    }
}

#[test]
fn what_is_there_is_kept_until_it_expires_soon() {
    let folder = folder();
    open(folder.path(), &[], start());
    let first = contents(folder.path());
    for (case, later, want) in [
        ("at once", Duration::ZERO, &[][..]),
        ("31 days before the end", 334 * DAY, &[]),
        ("29 days before the end", 336 * DAY, &["admin.crt", "apiserver.crt"]),
        ("after the end", 1000 * DAY, &["admin.crt", "apiserver.crt"]),
    ] {
        let before = contents(folder.path());
        open(folder.path(), &[], start() + later);
        assert_eq!(changed(&before, &contents(folder.path())), want, "{case}");
    }
    // The authority and all keys have stayed through two renewals.
    assert_eq!(changed(&first, &contents(folder.path())), ["admin.crt", "apiserver.crt"]);
}

#[test]
fn a_certificate_from_the_future_is_renewed() {
    let folder = folder();
    open(folder.path(), &[], start() + 10 * DAY);
    let before = contents(folder.path());
    open(folder.path(), &[], start());
    assert_eq!(changed(&before, &contents(folder.path())), ["admin.crt", "apiserver.crt"]);
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
        let chain = certificates.server_chain();
        let (_, parsed) = x509_parser::parse_x509_certificate(&chain[0]).expect("the certificate is fine");
        parsed.raw_serial().to_vec()
    };
    let first = serial(open(folder.path(), &[], start()));
    let second = serial(open(folder.path(), &[], start() + 360 * DAY));
    assert_ne!(first, second);
    assert!(first.len() == 16 && second.len() == 16, "{first:?} {second:?}");
}

#[test]
fn nothing_outlives_the_authority() {
    let folder = folder();
    open(folder.path(), &[], start());
    let late = open(folder.path(), &[], start() + 3600 * DAY);
    let chain = late.server_chain();
    let (_, leaf) = x509_parser::parse_x509_certificate(&chain[0]).expect("the certificate is fine");
    let end = (start() + 3650 * DAY).duration_since(UNIX_EPOCH).expect("the end is after the epoch");
    assert_eq!(leaf.validity().not_after.timestamp(), i64::try_from(end.as_secs()).expect("the end is near"));

    let error = Certificates::load_or_create(folder.path(), &server_names([]), start() + 3651 * DAY);
    let error = error.expect_err("the authority has expired").to_string();
    assert!(error.contains("ca.crt has expired"), "{error}");
}

#[test]
fn an_interrupted_start_goes_on_where_it_was() {
    for missing in [
        &["ca.crt", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key", "sa.key", "sa.pub"][..],
        &["apiserver.crt"],
        &["admin.crt", "admin.key"],
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
            (0..4).map(|_| scope.spawn(|| open(folder.path(), &[], start()).trust_pem().to_owned())).collect();
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
fn brought_files_replace_what_the_server_shows() {
    let (mine, other) = (folder(), folder());
    let own = open(mine.path(), &[], start());
    let brought = open(other.path(), &[], start());
    let files =
        ServingFiles { certificate: other.path().join("apiserver.crt"), key: other.path().join("apiserver.key") };
    let replaced = own.clone().with_serving_files(&files).expect("the files are fine");
    assert_eq!(replaced.server_chain(), brought.server_chain());
    assert_eq!(replaced.server_key(), brought.server_key());
    assert_eq!(replaced.admin_certificate_pem(), own.admin_certificate_pem());
    // Clients have to trust both: the folder's authority for what it issues, and what the server shows.
    let shown = text(&files.certificate);
    assert_eq!(replaced.trust_pem(), format!("{}{shown}", own.trust_pem()));

    let missing = ServingFiles { certificate: files.certificate, key: other.path().join("nothing.key") };
    let error = own.with_serving_files(&missing).expect_err("the key is not there").to_string();
    assert!(error.ends_with("nothing.key cannot be read"), "{error}");
}

#[test]
fn authorities_can_be_read_from_a_file() {
    let (mine, other) = (folder(), folder());
    open(mine.path(), &[], start());
    open(other.path(), &[], start());
    let bundle = mine.path().join("bundle.pem");
    let both = text(&mine.path().join("ca.crt")) + &text(&other.path().join("ca.crt"));
    std::fs::write(&bundle, both).expect("the file can be written");
    assert_eq!(roots_from_pem_file(&bundle).expect("the file is fine").len(), 2);
    let error = roots_from_pem_file(&mine.path().join("ca.key")).expect_err("a key is no certificate").to_string();
    assert!(error.ends_with("ca.key does not hold a usable certificate"), "{error}");
}

#[test]
fn nothing_that_is_secret_is_shown() {
    let folder = folder();
    let certificates = open(folder.path(), &[], start());
    assert_eq!(format!("{certificates:?}"), "Certificates { chain: 1, .. }");
}

#[test]
fn a_kubeconfig_embeds_everything_and_is_private() {
    let folder = folder();
    let certificates = open(folder.path(), &[], start());
    let config = kubeconfig("https://127.0.0.1:6443", &certificates);
    let path = folder.path().join("admin.kubeconfig");
    write_kubeconfig(&path, &config).expect("the file can be written");
    assert_eq!(text(&path), config);
    let mode = std::fs::metadata(&path).expect("the file is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);

    let value = |key: &str| {
        let line = config.lines().find_map(|line| line.trim_start().strip_prefix(key)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("{key} is in {config}")).to_owned()
    };
    let data = |key: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(value(key)).expect("the data is base64");
        String::from_utf8(bytes).expect("PEM is text")
    };
    assert_eq!(value("server"), r#""https://127.0.0.1:6443""#);
    assert_eq!(value("current-context"), "revisor");
    assert_eq!(data("certificate-authority-data"), text(&folder.path().join("ca.crt")));
    assert_eq!(data("client-certificate-data"), text(&folder.path().join("admin.crt")));
    assert_eq!(data("client-key-data"), text(&folder.path().join("admin.key")));
}
