//! What an operator does with the credentials that a server issued to its administrator (`revisor credentials`).
//!
//! A server that runs reads the folder again within a second and honours what was done.

use std::path::Path;
use std::str::FromStr;
use std::time::SystemTime;

use crate::certificates::{CertificateError, Opening, lock, read_optional};
use crate::credential_file;
use crate::credential_ledger::{Credential, NotASerial, Serial};
use crate::kubeconfig::{kubeconfig_file, with_credential};

/// Which credentials to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoked {
    /// All that were issued to the administrator.
    Administrator,
    /// The one with this number, and all with its key.
    Serial(Serial),
}

impl FromStr for Revoked {
    type Err = NotASerial;

    fn from_str(text: &str) -> Result<Revoked, NotASerial> {
        match text {
            "admin" => Ok(Revoked::Administrator),
            serial => serial.parse().map(Revoked::Serial),
        }
    }
}

/// A credential, and whether it is the one that the server hands out in its kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCredential {
    /// The credential.
    pub credential: Credential,
    /// Whether it is the newest of the administrator.
    pub is_current: bool,
}

/// The credentials that the authority in `folder` is known to have issued, or to have taken back.
pub fn list_credentials(folder: &Path, now: SystemTime) -> Result<Vec<ListedCredential>, CertificateError> {
    let _lock = enter(folder)?;
    let mut opening = Opening::new(folder, now)?;
    // In a folder that is older than the list of credentials, the administrator's is not in it yet.
    let current = opening.current_admin()?;
    if let Some(current) = &current {
        opening.note(current.clone());
    }
    Ok(listed(opening.ledger.credentials(), current.as_ref()))
}

/// Makes a new key and certificate for the administrator in `folder`, puts them into the `kubeconfig` if there is one,
/// and takes back what the administrator had before if that is wanted. Answers what changed.
pub fn renew_administrator(
    folder: &Path,
    kubeconfig: &Path,
    revoke_old: bool,
    now: SystemTime,
) -> Result<Vec<ListedCredential>, CertificateError> {
    let _lock = enter(folder)?;
    let mut opening = Opening::new(folder, now)?;
    let (authority, _) = opening.authority()?;
    let old = opening.current_admin()?;
    let mut changed = match (&old, revoke_old) {
        (Some(_), true) => revoke(&mut opening, &Revoked::Administrator, folder, now)?,
        _ => Vec::new(),
    };
    let (new, certificate_pem, key_pem) = opening.new_admin(&authority)?;
    if let Some(text) = read_optional(kubeconfig)? {
        opening.new.push(kubeconfig_file(kubeconfig, with_credential(&text, &certificate_pem, &key_pem)));
    }
    if old.is_some() {
        // A key without a certificate is a renewal that was interrupted; a key with another's would be refused.
        let path = folder.join("admin.crt");
        std::fs::remove_file(&path).map_err(|source| CertificateError::io("removed", &path, source))?;
    }
    credential_file::write_all(&opening.new)?;
    changed.push(new.clone());
    Ok(listed(&changed, Some(&new)))
}

/// Takes back credentials that the authority in `folder` issued. Answers those that were not taken back before.
pub fn revoke_credentials(
    folder: &Path,
    which: &Revoked,
    now: SystemTime,
) -> Result<Vec<ListedCredential>, CertificateError> {
    let _lock = enter(folder)?;
    let mut opening = Opening::new(folder, now)?;
    let revoked = revoke(&mut opening, which, folder, now)?;
    credential_file::write_all(&opening.new)?;
    Ok(listed(&revoked, opening.current_admin()?.as_ref()))
}

fn revoke(
    opening: &mut Opening<'_>,
    which: &Revoked,
    folder: &Path,
    now: SystemTime,
) -> Result<Vec<Credential>, CertificateError> {
    let current = opening.current_admin()?;
    if let Some(current) = &current {
        opening.note(current.clone());
    }
    let serials: Vec<Serial> = match which {
        Revoked::Serial(serial) => vec![serial.clone()],
        Revoked::Administrator => {
            let Some(current) = current else {
                return Err(CertificateError::NoAdministrator { folder: folder.to_owned() });
            };
            let known = opening.ledger.credentials().iter().filter(|known| known.name == current.name);
            known.map(|known| known.serial.clone()).collect()
        }
    };
    let mut revoked = Vec::new();
    for serial in serials {
        revoked.extend(opening.ledger.revoke(&serial, now)?);
    }
    opening.write_ledger();
    Ok(revoked)
}

fn enter(folder: &Path) -> Result<std::fs::File, CertificateError> {
    if !folder.join("ca.crt").exists() {
        return Err(CertificateError::NoAuthority { folder: folder.to_owned() });
    }
    lock(folder)
}

fn listed(credentials: &[Credential], current: Option<&Credential>) -> Vec<ListedCredential> {
    let listed = |credential: &Credential| ListedCredential {
        credential: credential.clone(),
        is_current: current.is_some_and(|current| current.serial == credential.serial),
    };
    credentials.iter().map(listed).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;

    use super::*;
    use crate::{Certificates, PeerIdentity, PeerVerifier, server_names};

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn start() -> SystemTime {
        UNIX_EPOCH + 20_000 * DAY
    }

    fn open(folder: &Path, now: SystemTime) -> Certificates {
        Certificates::load_or_create(folder, &server_names([]), now).expect("the folder is fine")
    }

    fn admin(certificates: &Certificates) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(certificates.admin_certificate_pem().as_bytes()).expect("a certificate")
    }

    fn is_let_in(folder: &Path, who: &CertificateDer<'static>, now: SystemTime) -> bool {
        let trust = open(folder, now).client_trust(&[]).expect("the authority is fine");
        let peer = PeerVerifier::new(trust).peer(std::slice::from_ref(who));
        matches!(peer.identity(now), PeerIdentity::Verified(_))
    }

    fn states(folder: &Path, now: SystemTime) -> Vec<(&'static str, bool)> {
        let listed = list_credentials(folder, now).expect("the folder is fine");
        listed.iter().map(|one| (one.credential.state(now), one.is_current)).collect()
    }

    #[test]
    fn what_was_revoked_stays_so_until_it_is_renewed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        let first = admin(&open(folder, start()));
        assert!(is_let_in(folder, &first, start()));
        assert_eq!(states(folder, start()), [("valid", true)]);

        let revoked = revoke_credentials(folder, &Revoked::Administrator, start()).expect("there is one");
        assert_eq!(revoked.len(), 1);
        assert_eq!(revoked[0].credential.name, "kubernetes-admin");
        assert_eq!(revoked[0].credential.groups, ["system:masters"]);
        assert_eq!(revoked[0].credential.issued, Some(start().into()));
        assert_eq!(revoked[0].credential.expires, Some((start() + 365 * DAY).into()));
        assert_eq!(revoke_credentials(folder, &Revoked::Administrator, start()).expect("there is one"), []);
        assert_eq!(states(folder, start()), [("revoked", true)]);
        // Neither a restart nor the time brings it back.
        for later in [Duration::ZERO, 300 * DAY] {
            assert_eq!(admin(&open(folder, start() + later)), first);
            assert!(!is_let_in(folder, &first, start() + later));
        }

        let renewed =
            renew_administrator(folder, &folder.join("kubeconfig"), false, start()).expect("there is an authority");
        assert_eq!(renewed.len(), 1);
        let second = admin(&open(folder, start()));
        assert_ne!(first, second);
        assert!(is_let_in(folder, &second, start()) && !is_let_in(folder, &first, start()));
        assert_eq!(states(folder, start()), [("revoked", false), ("valid", true)]);
    }

    #[test]
    fn a_renewal_leaves_the_old_one_good_unless_told_otherwise() {
        for revoke_old in [false, true] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let folder = folder.path();
            let first = admin(&open(folder, start()));
            // Renewed by itself, for the same key: the predecessor is out there too.
            let second = admin(&open(folder, start() + 300 * DAY));
            let now = start() + 301 * DAY;
            let changed = renew_administrator(folder, &folder.join("kubeconfig"), revoke_old, now)
                .expect("there is an authority");
            assert_eq!(changed.len(), if revoke_old { 3 } else { 1 });
            for old in [first, second] {
                assert_eq!(is_let_in(folder, &old, now), !revoke_old);
            }
            assert!(is_let_in(folder, &admin(&open(folder, now)), now));
        }
    }

    #[test]
    fn a_key_is_revoked_with_what_was_issued_for_it_before_there_was_a_list() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        let first = admin(&open(folder, start()));
        std::fs::remove_file(folder.join("credentials.json")).expect("the list is there");
        let now = start() + 300 * DAY;
        let second = admin(&open(folder, now));
        assert_eq!(states(folder, now).len(), 2, "the one that was there was noted before it was renewed");
        std::fs::remove_file(folder.join("credentials.json")).expect("the list is there");
        revoke_credentials(folder, &Revoked::Administrator, now).expect("there is one");
        assert!(!is_let_in(folder, &first, now) && !is_let_in(folder, &second, now));
    }

    #[test]
    fn numbers_that_nobody_knows_can_be_revoked() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        let one = admin(&open(folder, start()));
        let serial: Serial = "0102".parse().expect("a serial");
        let revoked = revoke_credentials(folder, &Revoked::Serial(serial), start()).expect("there is room");
        assert_eq!((revoked[0].credential.name.as_str(), revoked[0].is_current), ("", false));
        assert!(is_let_in(folder, &one, start()));
        assert_eq!(states(folder, start()), [("valid", true), ("revoked", false)]);
    }

    #[test]
    fn a_folder_without_an_authority_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = list_credentials(folder.path(), start()).expect_err("it is empty").to_string();
        assert!(error.starts_with("there are no certificates in "), "{error}");
        assert!(renew_administrator(folder.path(), &folder.path().join("kubeconfig"), false, start()).is_err());
        assert!(revoke_credentials(folder.path(), &Revoked::Administrator, start()).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder is there").count(), 0);
    }
}
