//! [`WebKey`]: a public key as issuers publish it, and the algorithms that their tokens are signed with.

use aws_lc_rs::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use revisor_object::Object;

/// How a token may be signed. Algorithms with shared secrets, and none at all, are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// RSA with PKCS #1 padding and SHA-256.
    Rs256,
    /// … SHA-384.
    Rs384,
    /// … SHA-512.
    Rs512,
    /// RSA with PSS padding and SHA-256.
    Ps256,
    /// … SHA-384.
    Ps384,
    /// … SHA-512.
    Ps512,
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
    /// ECDSA on P-521.
    Es512,
}

impl SigningAlgorithm {
    /// All of them.
    pub const ALL: [SigningAlgorithm; 9] = [
        SigningAlgorithm::Rs256,
        SigningAlgorithm::Rs384,
        SigningAlgorithm::Rs512,
        SigningAlgorithm::Es256,
        SigningAlgorithm::Es384,
        SigningAlgorithm::Es512,
        SigningAlgorithm::Ps256,
        SigningAlgorithm::Ps384,
        SigningAlgorithm::Ps512,
    ];

    /// Its name in tokens and flags.
    pub fn name(self) -> &'static str {
        match self {
            SigningAlgorithm::Rs256 => "RS256",
            SigningAlgorithm::Rs384 => "RS384",
            SigningAlgorithm::Rs512 => "RS512",
            SigningAlgorithm::Ps256 => "PS256",
            SigningAlgorithm::Ps384 => "PS384",
            SigningAlgorithm::Ps512 => "PS512",
            SigningAlgorithm::Es256 => "ES256",
            SigningAlgorithm::Es384 => "ES384",
            SigningAlgorithm::Es512 => "ES512",
        }
    }

    /// The algorithm with this name.
    pub fn named(name: &str) -> Option<SigningAlgorithm> {
        SigningAlgorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            SigningAlgorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
            SigningAlgorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
            SigningAlgorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
            SigningAlgorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
            SigningAlgorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
            SigningAlgorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
            _ => return None,
        })
    }

    fn ecdsa(self) -> Option<(&'static str, &'static dyn VerificationAlgorithm)> {
        Some(match self {
            SigningAlgorithm::Es256 => ("P-256", &signature::ECDSA_P256_SHA256_FIXED),
            SigningAlgorithm::Es384 => ("P-384", &signature::ECDSA_P384_SHA384_FIXED),
            SigningAlgorithm::Es512 => ("P-521", &signature::ECDSA_P521_SHA512_FIXED),
            _ => return None,
        })
    }
}

/// A public key.
pub(crate) struct WebKey {
    /// By which name tokens say that it signed them.
    pub(crate) id: String,
    material: Material,
}

enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    Point { curve: String, point: Vec<u8> },
}

impl WebKey {
    /// A key of a JWKS; `None` if it is of a sort that is not for signatures, or that is not known here.
    pub(crate) fn read(object: &Object) -> Option<WebKey> {
        if object.str("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(object.str(name)?.trim_end_matches('=')).ok();
        let material = match object.str("kty")? {
            "RSA" => Material::Rsa { modulus: bytes("n")?, exponent: bytes("e")? },
            "EC" => {
                let curve = object.str("crv")?.to_owned();
                let length: usize = match &*curve {
                    "P-256" => 32,
                    "P-384" => 48,
                    "P-521" => 66,
                    _ => return None,
                };
                let padded = |mut number: Vec<u8>| {
                    let missing = length.checked_sub(number.len())?;
                    number.splice(0..0, std::iter::repeat_n(0, missing));
                    Some(number)
                };
                let point = [vec![4], padded(bytes("x")?)?, padded(bytes("y")?)?].concat();
                Material::Point { curve, point }
            }
            _ => return None,
        };
        Some(WebKey { id: object.str("kid").unwrap_or_default().to_owned(), material })
    }

    /// Whether this key signed the message.
    pub(crate) fn has_signed(&self, algorithm: SigningAlgorithm, message: &[u8], signed: &[u8]) -> bool {
        match &self.material {
            Material::Rsa { modulus, exponent } => algorithm.rsa().is_some_and(|parameters| {
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, message, signed).is_ok()
            }),
            Material::Point { curve, point } => algorithm.ecdsa().is_some_and(|(wanted, verification)| {
                curve == wanted && UnparsedPublicKey::new(verification, point).verify(message, signed).is_ok()
            }),
        }
    }
}
