//! Certificates of clients: whom they name, and when they count.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName as Subject, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair,
};

use super::*;

const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];
const UID: [u64; 8] = [1, 3, 6, 1, 4, 1, 57683, 2];

fn certificate(attributes: &[(DnType, &str)]) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    params.distinguished_name = Subject::new();
    for (kind, value) in attributes {
        params.distinguished_name.push(kind.clone(), *value);
    }
    let key = KeyPair::generate().expect("keys can be made");
    params.self_signed(&key).expect("certificates can be made").der().clone()
}

#[test]
fn subjects_become_identities() {
    type Want<'a> = Result<Option<(&'a str, Option<&'a str>, &'a [&'a str])>, &'a str>;
    let cn = DnType::CommonName;
    // Made by number because the builder keeps one value per kind, while real subjects have several groups.
    let (o, o2, uid) = (DnType::OrganizationName, DnType::CustomDnType(ORGANIZATION.to_vec()), DnType::from_oid(&UID));
    let cases: &[(&[(DnType, &str)], Want<'_>)] = &[
        (&[(cn.clone(), "bob")], Ok(Some(("bob", None, &["system:authenticated"])))),
        (
            &[(o.clone(), "dev"), (cn.clone(), "bob"), (o2, "ops")],
            Ok(Some(("bob", None, &["dev", "ops", "system:authenticated"]))),
        ),
        (&[(cn.clone(), "bob"), (uid.clone(), "7")], Ok(Some(("bob", Some("7"), &["system:authenticated"])))),
        (&[(o, "dev")], Ok(None)),
        (&[(cn.clone(), "")], Ok(None)),
        (&[(cn, "bob"), (uid, "")], Err("the uid in the subject of the certificate is empty")),
    ];
    for (attributes, want) in cases {
        let got = named_by(&certificate(attributes));
        let got = got.as_ref().map(Option::as_ref).map_err(String::as_str);
        assert_eq!(got.map(|who| who.map(|who| (who.name(), who.uid()))), want.map(|w| w.map(|w| (w.0, w.1))));
        if let (Ok(Some(got)), Ok(Some((_, _, groups)))) = (got, want) {
            assert_eq!(got.groups(), *groups);
        }
    }
}

#[test]
fn an_identity_says_which_certificate_was_shown() {
    let leaf = certificate(&[(DnType::CommonName, "bob")]);
    let identity = named_by(&leaf).expect("the certificate is fine").expect("it names somebody");
    let [(key, values)] = identity.extra() else { panic!("one extra: {identity:?}") };
    assert_eq!(key, "authentication.kubernetes.io/credential-id");
    let digest = values[0].strip_prefix("X509SHA256=").expect("the digest is labelled");
    assert!(digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit()), "{digest}");
}

#[test]
fn rubbish_is_refused() {
    assert!(named_by(&CertificateDer::from(vec![0x30, 0x03, 1])).is_err());
}

#[test]
fn without_authorities_certificates_say_nothing() {
    let verifier = PeerVerifier::new(ClientTrust::default());
    let leaf = certificate(&[(DnType::CommonName, "bob")]);
    assert_eq!(verifier.peer(&[leaf]).identity(SystemTime::now()), PeerIdentity::Unknown);
    assert!(verifier.during_handshake().is_none());
}

/// An authority and a client of it, each valid from some second to another.
struct Pki {
    issuer: Issuer<'static, KeyPair>,
    authority: CertificateDer<'static>,
}

fn valid(params: &mut CertificateParams, (from, until): (u64, u64)) {
    (params.not_before, params.not_after) = (at(from).into(), at(until).into());
}

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(second)
}

impl Pki {
    fn new(period: (u64, u64)) -> Pki {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        valid(&mut params, period);
        let key = KeyPair::generate().expect("keys can be made");
        let authority = params.self_signed(&key).expect("certificates can be made").der().clone();
        Pki { issuer: Issuer::new(params, key), authority }
    }

    fn issue(&self, mut params: CertificateParams, period: (u64, u64)) -> (CertificateDer<'static>, KeyPair) {
        valid(&mut params, period);
        let key = KeyPair::generate().expect("keys can be made");
        (params.signed_by(&key, &self.issuer).expect("certificates can be issued").der().clone(), key)
    }

    fn client(&self, period: (u64, u64)) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "bob");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params, period).0
    }
}

fn trust(authorities: &[&Pki]) -> ClientTrust {
    ClientTrust::new(authorities.iter().map(|pki| pki.authority.clone()).collect()).expect("authorities are fine")
}

/// When a client is believed, asked on one connection in this order.
#[track_caller]
fn check(case: &str, peer: &Peer, want: &[(u64, bool)]) {
    for (second, believed) in want {
        let got = peer.identity(at(*second));
        assert_eq!(matches!(got, PeerIdentity::Verified(_)), *believed, "{case} at {second}: {got:?}");
    }
}

#[test]
fn every_certificate_of_a_chain_must_be_valid_at_each_request() {
    let (short, long) = (Pki::new((100, 200)), Pki::new((1, 1000)));
    let verifier = PeerVerifier::new(trust(&[&short, &long]));
    let spans = [(99, false), (100, true), (200, true), (201, false), (150, true), (900, false)];
    check("an authority that ends", &verifier.peer(&[short.client((1, 1000))]), &spans);
    check("a client that ends", &verifier.peer(&[long.client((100, 200))]), &spans);

    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "intermediate");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let (certificate, key) = long.issue(params.clone(), (100, 200));
    let intermediate = Pki { issuer: Issuer::new(params, key), authority: certificate.clone() };
    let chain = [intermediate.client((1, 1000)), certificate];
    check("an intermediate that ends", &verifier.peer(&chain), &spans);

    let reason = verifier.peer(&[short.client((1, 1000))]).identity(at(500));
    assert_eq!(
        reason,
        PeerIdentity::Refused("the authority of the certificate has expired, or is not valid yet".into())
    );
}

#[test]
fn an_authority_that_was_renewed_counts_for_what_it_issued_before() {
    let old = Pki::new((1, 200));
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    valid(&mut params, (150, 1000));
    let renewed = params.self_signed(old.issuer.key()).expect("certificates can be made").der().clone();
    let both = ClientTrust::new(vec![old.authority.clone(), renewed]).expect("authorities are fine");
    let peer = PeerVerifier::new(both).peer(&[old.client((1, 1000))]);
    check("either of two", &peer, &[(100, true), (180, true), (500, true), (1001, false)]);
}

#[test]
fn whom_the_server_trusts_counts_on_open_connections() {
    let (one, other) = (Pki::new((1, 1000)), Pki::new((1, 1000)));
    let verifier = PeerVerifier::new(trust(&[&one]));
    let (mine, others) = (verifier.peer(&[one.client((1, 1000))]), verifier.peer(&[other.client((1, 1000))]));
    check("trusted", &mine, &[(10, true)]);
    check("not trusted", &others, &[(10, false)]);
    verifier.replace(trust(&[&other]));
    check("trusted no more", &mine, &[(10, false)]);
    check("trusted by now", &others, &[(10, true)]);
    verifier.replace(trust(&[]));
    assert_eq!(others.identity(at(10)), PeerIdentity::Unknown, "nobody is asked for certificates");
}

#[tokio::test]
async fn an_answer_that_lasts_is_told_when_the_trust_is_gone() {
    let (one, other) = (Pki::new((1, 1000)), Pki::new((1, 1000)));
    let verifier = PeerVerifier::new(trust(&[&one]));
    let peer = |pki: &Pki| Arc::new(verifier.peer(&[pki.client((1, 1000))]));
    assert!(peer(&other).distrusted(|| at(10)).is_none(), "nobody believes it anyway");
    assert!(Arc::new(verifier.peer(&[])).distrusted(|| at(10)).is_none(), "there is no certificate");
    let mut lost = Box::pin(peer(&one).distrusted(|| at(10)).expect("it is believed"));
    verifier.replace(trust(&[&one, &other]));
    let early = tokio::time::timeout(Duration::ZERO, &mut lost).await;
    assert!(early.is_err(), "it is still believed");
    verifier.replace(trust(&[&other]));
    lost.await;
}
