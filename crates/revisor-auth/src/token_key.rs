//! The keys of tokens: [`SigningKey`] and [`VerifyingKey`], RSA or ECDSA on the curves P-256, P-384 and P-521, and the
//! compact form of what they sign. What a token says is not their business; see `service_accounts.rs`.

use std::collections::BTreeSet;
use std::fmt;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self, EcdsaKeyPair, KeyPair, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// Why a key cannot be used for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no RSA or ECDSA key in PEM that tokens could be signed or checked with")]
pub struct TokenKeyError;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Algorithm {
    #[serde(rename = "RS256")]
    Rs256,
    #[serde(rename = "ES256")]
    Es256,
    #[serde(rename = "ES384")]
    Es384,
    #[serde(rename = "ES512")]
    Es512,
}

impl Algorithm {
    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            Algorithm::Es256 => &signature::ECDSA_P256_SHA256_FIXED,
            Algorithm::Es384 => &signature::ECDSA_P384_SHA384_FIXED,
            Algorithm::Es512 => &signature::ECDSA_P521_SHA512_FIXED,
        }
    }

    /// The name of the curve, if it has one.
    fn curve(self) -> Option<&'static str> {
        match self {
            Algorithm::Rs256 => None,
            Algorithm::Es256 => Some("P-256"),
            Algorithm::Es384 => Some("P-384"),
            Algorithm::Es512 => Some("P-521"),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: Algorithm,
    #[serde(default)]
    kid: String,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ecdsa(Algorithm, EcdsaKeyPair),
}

impl Pair {
    fn read(pem: &[u8]) -> Option<Pair> {
        let key = PrivateKeyDer::from_pem_slice(pem).ok()?;
        let der = key.secret_der();
        let rsa = || RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der)).ok().map(Pair::Rsa);
        let ecdsa = |algorithm, curve| {
            EcdsaKeyPair::from_private_key_der(curve, der).ok().map(|pair| Pair::Ecdsa(algorithm, pair))
        };
        rsa()
            .or_else(|| ecdsa(Algorithm::Es256, &signature::ECDSA_P256_SHA256_FIXED_SIGNING))
            .or_else(|| ecdsa(Algorithm::Es384, &signature::ECDSA_P384_SHA384_FIXED_SIGNING))
            .or_else(|| ecdsa(Algorithm::Es512, &signature::ECDSA_P521_SHA512_FIXED_SIGNING))
    }

    fn algorithm(&self) -> Algorithm {
        match self {
            Pair::Rsa(_) => Algorithm::Rs256,
            Pair::Ecdsa(algorithm, _) => *algorithm,
        }
    }

    /// The public half, with and without what says of which sort it is.
    fn public(&self) -> Option<(PublicKeyX509Der<'static>, Vec<u8>)> {
        Some(match self {
            Pair::Rsa(pair) => (pair.public_key().as_der().ok()?, pair.public_key().as_ref().to_vec()),
            Pair::Ecdsa(_, pair) => (pair.public_key().as_der().ok()?, pair.public_key().as_ref().to_vec()),
        })
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&signature::RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
            Pair::Ecdsa(_, pair) => pair.sign(&random, message).ok().map(|signature| signature.as_ref().to_vec()),
        }
    }
}

/// Signs tokens.
pub struct SigningKey {
    pair: Pair,
    /// What is signed before the claims: the algorithm, and by which name others find the key.
    header: String,
}

impl SigningKey {
    /// The private key of a PEM file.
    pub fn from_pem(pem: &[u8]) -> Result<SigningKey, TokenKeyError> {
        let pair = Pair::read(pem).ok_or(TokenKeyError)?;
        let (public, _) = pair.public().ok_or(TokenKeyError)?;
        let kid = key_id(public.as_ref());
        let header = Header { alg: pair.algorithm(), kid };
        let header = serde_json::to_vec(&header).map_err(|_| TokenKeyError)?;
        Ok(SigningKey { pair, header: URL_SAFE_NO_PAD.encode(header) })
    }

    /// The token with these claims, which are in base64 already.
    pub(crate) fn sign(&self, claims: &str) -> Option<String> {
        let mut token = self.header.clone();
        token.push('.');
        token.push_str(claims);
        let signature = self.pair.sign(token.as_bytes())?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Some(token)
    }
}

/// Without the private key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("algorithm", &self.pair.algorithm()).finish_non_exhaustive()
    }
}

/// Checks tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    algorithm: Algorithm,
    public: Vec<u8>,
    /// The key with what says of which sort it is.
    info: Vec<u8>,
    /// The name by which tokens say that it signed them.
    id: String,
}

impl VerifyingKey {
    /// The public keys of a PEM file. A private key stands for its public half, a certificate for the key that it is of.
    pub fn from_pem(pem: &[u8]) -> Result<Vec<VerifyingKey>, TokenKeyError> {
        if let Some(pair) = Pair::read(pem) {
            let (info, _) = pair.public().ok_or(TokenKeyError)?;
            return VerifyingKey::from_info(info.as_ref()).map(|key| vec![key]).ok_or(TokenKeyError);
        }
        let infos = SubjectPublicKeyInfoDer::pem_slice_iter(pem).filter_map(Result::ok);
        let certified = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).filter_map(|certificate| {
            let (_, parsed) = x509_parser::parse_x509_certificate(&certificate).ok()?;
            VerifyingKey::from_info(parsed.public_key().raw)
        });
        let keys = infos.filter_map(|info| VerifyingKey::from_info(&info));
        let keys: Vec<VerifyingKey> = keys.chain(certified).collect();
        if keys.is_empty() { Err(TokenKeyError) } else { Ok(keys) }
    }

    /// A public key (`SubjectPublicKeyInfo`), under the name that it gives itself.
    fn from_info(der: &[u8]) -> Option<VerifyingKey> {
        VerifyingKey::named(key_id(der), der)
    }

    /// A public key (`SubjectPublicKeyInfo`) that goes by this name. `None` if tokens cannot be checked with it.
    pub(crate) fn named(id: String, der: &[u8]) -> Option<VerifyingKey> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).ok()?;
        let public = info.subject_public_key.data.to_vec();
        let algorithm = match info.parsed().ok()? {
            PublicKey::RSA(_) => Algorithm::Rs256,
            // The bytes of a point on a curve tell by their number on which.
            PublicKey::EC(_) => match (public.first(), public.len()) {
                (Some(4), 65) => Algorithm::Es256,
                (Some(4), 97) => Algorithm::Es384,
                (Some(4), 133) => Algorithm::Es512,
                _ => return None,
            },
            _ => return None,
        };
        Some(VerifyingKey { algorithm, public, info: der.to_vec(), id })
    }

    /// The name by which tokens say that it signed them.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The key as others read it who want to check tokens by themselves; `None` if it is of a sort that has no such form.
    fn json_web_key(&self) -> Option<serde_json::Value> {
        let (_, info) = SubjectPublicKeyInfo::from_der(&self.info).ok()?;
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut key = match info.parsed().ok()? {
            PublicKey::RSA(rsa) => {
                let unsigned = |number: &[u8]| text(&number[number.iter().take_while(|byte| **byte == 0).count()..]);
                json!({"kty": "RSA", "n": unsigned(rsa.modulus), "e": unsigned(rsa.exponent)})
            }
            PublicKey::EC(point) => {
                let (x, y) = point.data().get(1..)?.split_at_checked(point.data().len() / 2)?;
                json!({"kty": "EC", "crv": self.algorithm.curve(), "x": text(x), "y": text(y)})
            }
            _ => return None,
        };
        key["use"] = json!("sig");
        key["kid"] = json!(self.id);
        key["alg"] = json!(self.algorithm);
        Some(key)
    }
}

/// Claims as they stand in a token; `None` if they cannot be written.
pub(crate) fn payload(claims: &impl Serialize) -> Option<String> {
    Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(claims).ok()?))
}

/// The name by which others find a key.
fn key_id(info: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(info))
}

/// A `JWKS`: these keys for whoever wants to check tokens without asking the server.
pub(crate) fn json_web_keys(keys: &[VerifyingKey]) -> serde_json::Value {
    json!({"keys": keys.iter().filter_map(VerifyingKey::json_web_key).collect::<Vec<_>>()})
}

/// The names of the algorithms with which tokens may be signed that these keys check, in order (`getAlgs`).
pub(crate) fn algorithms(keys: &[VerifyingKey]) -> serde_json::Value {
    let names: BTreeSet<String> =
        keys.iter().filter_map(|key| json!(key.algorithm).as_str().map(str::to_owned)).collect();
    json!(names)
}

/// A part of a token in compact form, read without asking who wrote it.
fn part<T: for<'de> Deserialize<'de>>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

/// The claims of a token, which anybody could have made.
pub(crate) fn unverified<C: for<'de> Deserialize<'de>>(token: &str) -> Option<C> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_none() { part(claims) } else { None }
}

/// The name of the key that is said to have signed the token; empty if it names none. `None` if it is no token.
pub(crate) fn named_key(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        kid: String,
    }
    Some(part::<Named>(token.split('.').next()?)?.kid)
}

/// Whether one of these keys signed the token. A token that names its key is checked with keys of that name only.
pub(crate) fn is_signed(token: &str, keys: &[VerifyingKey]) -> bool {
    let Some((message, signature)) = token.rsplit_once('.') else { return false };
    let header: Option<Header> = message.split('.').next().and_then(part);
    let (Some(header), Ok(signature)) = (header, URL_SAFE_NO_PAD.decode(signature)) else { return false };
    let is_meant = |key: &&VerifyingKey| header.kid.is_empty() || header.kid == key.id;
    keys.iter().filter(is_meant).filter(|key| key.algorithm == header.alg).any(|key| {
        let public = UnparsedPublicKey::new(key.algorithm.verification(), &key.public);
        public.verify(message.as_bytes(), &signature).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pems(pair: rcgen::KeyPair) -> (String, String) {
        (pair.serialize_pem(), pair.public_key_pem())
    }

    #[test]
    fn what_one_half_signs_the_other_knows() {
        let ec = |curve| pems(rcgen::KeyPair::generate_for(curve).expect("keys can be made"));
        let rsa = pems(rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("keys can be made"));
        for (name, (private, public)) in [
            ("P-256", ec(&rcgen::PKCS_ECDSA_P256_SHA256)),
            ("P-384", ec(&rcgen::PKCS_ECDSA_P384_SHA384)),
            ("P-521", ec(&rcgen::PKCS_ECDSA_P521_SHA512)),
            ("RSA", rsa),
        ] {
            let signing = SigningKey::from_pem(private.as_bytes()).expect(name);
            let keys = VerifyingKey::from_pem(public.as_bytes()).expect(name);
            assert_eq!(VerifyingKey::from_pem(private.as_bytes()).as_ref(), Ok(&keys), "{name}");
            let token = signing.sign(&payload(&json!({"a": 1})).expect(name)).expect(name);
            assert!(is_signed(&token, &keys), "{name}");
            assert_eq!(unverified::<serde_json::Value>(&token), Some(serde_json::json!({"a": 1})), "{name}");
            let (rest, last) = token.split_at(token.len() - 2);
            let forged = format!("{rest}{}", if last == "AA" { "BB" } else { "AA" });
            assert!(!is_signed(&forged, &keys), "{name}");
            assert!(!is_signed(&token, &[]), "{name}");
        }
    }

    #[test]
    fn a_certificate_stands_for_its_key() {
        let pair = rcgen::KeyPair::generate().expect("keys can be made");
        let certificate = rcgen::CertificateParams::default().self_signed(&pair).expect("certificates can be made");
        let (_, public) = pems(pair);
        let keys = VerifyingKey::from_pem(certificate.pem().as_bytes());
        assert_eq!(keys, VerifyingKey::from_pem(public.as_bytes()));
    }

    #[test]
    fn keys_are_published_under_the_name_that_tokens_give() {
        for (curve, kind, members) in [
            (&rcgen::PKCS_ECDSA_P256_SHA256, "EC", &["crv", "x", "y"][..]),
            (&rcgen::PKCS_RSA_SHA256, "RSA", &["n", "e"]),
        ] {
            let (private, public) = pems(rcgen::KeyPair::generate_for(curve).expect("keys can be made"));
            let token = SigningKey::from_pem(private.as_bytes()).expect(kind).sign("e30").expect(kind);
            let header = URL_SAFE_NO_PAD.decode(token.split('.').next().expect("a header")).expect("is base64");
            let header: Header = serde_json::from_slice(&header).expect("is JSON");
            let published = json_web_keys(&VerifyingKey::from_pem(public.as_bytes()).expect(kind));
            let key = &published["keys"][0];
            assert_eq!((&key["kid"], &key["kty"], &key["use"]), (&json!(header.kid), &json!(kind), &json!("sig")));
            assert!(members.iter().all(|name| key[name].as_str().is_some_and(|text| !text.is_empty())), "{key}");
        }
    }

    #[test]
    fn what_is_no_key_or_token_is_refused() {
        assert_eq!(VerifyingKey::from_pem(b"hello"), Err(TokenKeyError));
        assert!(SigningKey::from_pem(b"").is_err());
        for token in ["", ".", "..", "a.b.c", "e30.e30.e30"] {
            assert!(!is_signed(token, &[]), "{token}");
        }
    }
}
