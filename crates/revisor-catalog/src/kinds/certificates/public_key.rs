//! [`PublicKey`]: the keys that certificates and requests carry, and whether a signature was made with theirs.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1,
    ECDSA_P521_SHA512_ASN1, ED25519, EcdsaVerificationAlgorithm, ParsedPublicKey, UnparsedPublicKey,
};
use num_bigint::BigUint;
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo, X509CertificationRequest};

/// A public key of a kind that people use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublicKey {
    Ed25519(Vec<u8>),
    Elliptic {
        curve: Curve,
        point: Vec<u8>,
    },
    Rsa {
        modulus: BigUint,
        exponent: BigUint,
    },
    /// Well known, but of no use for signatures that are accepted: DSA and X25519.
    Other,
    /// Of a kind that nobody knows.
    Unknown,
}

/// The curves that have names in the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    P224,
    P256,
    P384,
    P521,
}

impl Curve {
    fn of_identifier(identifier: &str) -> Option<Curve> {
        Some(match identifier {
            "1.3.132.0.33" => Curve::P224,
            "1.2.840.10045.3.1.7" => Curve::P256,
            "1.3.132.0.34" => Curve::P384,
            "1.3.132.0.35" => Curve::P521,
            _ => return None,
        })
    }

    /// How signatures over a digest of 256 bits are checked; none for curves that are too small.
    fn algorithm(self) -> Option<&'static EcdsaVerificationAlgorithm> {
        match self {
            Curve::P224 => None,
            Curve::P256 => Some(&ECDSA_P256_SHA256_ASN1),
            Curve::P384 => Some(&ECDSA_P384_SHA256_ASN1),
            Curve::P521 => Some(&ECDSA_P521_SHA256_ASN1),
        }
    }
}

impl PublicKey {
    /// Reads a key from DER; none if it is malformed.
    pub(super) fn from_der(der: &[u8]) -> Option<PublicKey> {
        match SubjectPublicKeyInfo::from_der(der) {
            Ok(([], info)) => PublicKey::of(&info),
            _ => None,
        }
    }

    /// Reads a key from a part of a certificate or a request; none if it is malformed.
    pub(super) fn of(info: &SubjectPublicKeyInfo<'_>) -> Option<PublicKey> {
        let bytes = &info.subject_public_key.data;
        Some(match info.algorithm.algorithm.to_id_string().as_str() {
            "1.3.101.112" => PublicKey::Ed25519((bytes.len() == 32).then(|| bytes.to_vec())?),
            "1.2.840.10045.2.1" => {
                let identifier = info.algorithm.parameters.as_ref()?.as_oid().ok()?;
                let curve = Curve::of_identifier(&identifier.to_id_string())?;
                // A point that is not on its curve is no key.
                if let Some(algorithm) = curve.algorithm() {
                    ParsedPublicKey::new(algorithm, bytes).ok()?;
                }
                PublicKey::Elliptic { curve, point: bytes.to_vec() }
            }
            "1.2.840.113549.1.1.1" => match info.parsed().ok()? {
                x509_parser::public_key::PublicKey::RSA(key) => {
                    let is_negative = |number: &[u8]| number.first().is_none_or(|first| *first >= 0x80);
                    if is_negative(key.modulus) || is_negative(key.exponent) {
                        return None;
                    }
                    PublicKey::Rsa {
                        modulus: BigUint::from_bytes_be(key.modulus),
                        exponent: BigUint::from_bytes_be(key.exponent),
                    }
                }
                _ => return None,
            },
            "1.2.840.10040.4.1" | "1.3.101.110" => PublicKey::Other,
            _ => PublicKey::Unknown,
        })
    }

    /// What the original shows of a key that is too weak, if it is.
    pub(super) fn weakness(&self) -> Option<Weakness> {
        match self {
            PublicKey::Elliptic { curve: Curve::P224, .. } => Some(Weakness::Curve("curve P-224")),
            PublicKey::Rsa { modulus, .. } => {
                let bits = modulus.bits().div_ceil(8) * 8;
                (![3072, 4096].contains(&bits)).then(|| Weakness::Modulus(format!("{bits}-bit modulus")))
            }
            PublicKey::Other | PublicKey::Unknown => Some(Weakness::Kind),
            PublicKey::Ed25519(_) | PublicKey::Elliptic { .. } => None,
        }
    }

    /// Whether a message was signed with the private key of this one: as it stands, or by its SHA-256.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            PublicKey::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok(),
            PublicKey::Elliptic { curve, point } => curve
                .algorithm()
                .is_some_and(|algorithm| UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()),
            PublicKey::Rsa { modulus, exponent } => verifies_pss(modulus, exponent, message, signature),
            PublicKey::Other | PublicKey::Unknown => false,
        }
    }
}

/// Whether a request is signed with the key that it is about.
pub(super) fn is_self_signed(request: &X509CertificationRequest<'_>) -> bool {
    let info = &request.certification_request_info;
    let Some(PublicKey::Elliptic { curve: Curve::P521, point }) = PublicKey::of(&info.subject_pki) else {
        return request.verify_signature().is_ok();
    };
    // The parser does not know how to do this for the largest curve.
    let algorithm = match request.signature_algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.10045.4.3.2" => &ECDSA_P521_SHA256_ASN1,
        "1.2.840.10045.4.3.3" => &ECDSA_P521_SHA384_ASN1,
        "1.2.840.10045.4.3.4" => &ECDSA_P521_SHA512_ASN1,
        _ => return false,
    };
    UnparsedPublicKey::new(algorithm, &point).verify(info.raw, &request.signature_value.data).is_ok()
}

/// Why a key is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Weakness {
    Curve(&'static str),
    Modulus(String),
    Kind,
}

const DIGEST: usize = 32;

/// The check of RSASSA-PSS with SHA-256 and a salt of any length (RFC 8017, 8.1.2 and 9.1.2). The library at hand only
/// takes salts as long as the digest, and clients take the longest that there is room for.
fn verifies_pss(modulus: &BigUint, exponent: &BigUint, message: &[u8], signature: &[u8]) -> bool {
    let bits = modulus.bits();
    let Ok(length) = usize::try_from((bits.saturating_sub(1)).div_ceil(8)) else { return false };
    let number = BigUint::from_bytes_be(signature);
    if signature.len() as u64 != bits.div_ceil(8) || number >= *modulus || length < DIGEST + 2 {
        return false;
    }
    let raw = number.modpow(exponent, modulus).to_bytes_be();
    if raw.len() > length {
        return false;
    }
    let mut encoded = vec![0; length - raw.len()];
    encoded.extend(raw);
    let (mask_free, trailer) = encoded.split_at_mut(length - DIGEST - 1);
    let Some((0xbc, digest)) = trailer.split_last() else { return false };
    // The bits in front that the modulus has no room for.
    let spare = (8 - (bits - 1) % 8) % 8;
    let kept = 0xff_u8 >> spare;
    if mask_free[0] & !kept != 0 {
        return false;
    }
    unmask(mask_free, digest);
    mask_free[0] &= kept;
    let Some(one) = mask_free.iter().position(|byte| *byte != 0).filter(|at| mask_free[*at] == 1) else { return false };
    let salted =
        Sha256::new().chain_update([0; 8]).chain_update(Sha256::digest(message)).chain_update(&mask_free[one + 1..]);
    salted.finalize().as_slice() == digest
}

/// Takes away what the mask generation function MGF1 makes of a seed.
fn unmask(bytes: &mut [u8], seed: &[u8]) {
    for (counter, chunk) in (0_u32..).zip(bytes.chunks_mut(DIGEST)) {
        let mask = Sha256::new().chain_update(seed).chain_update(counter.to_be_bytes()).finalize();
        for (byte, mask) in chunk.iter_mut().zip(mask) {
            *byte ^= mask;
        }
    }
}
