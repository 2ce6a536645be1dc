//! [`TlsOptions`]: which versions of TLS the server speaks, and with which ciphers, in the words of the original.
//!
//! The original knows more of both than can be had here. What it calls insecure, and what the library left out because
//! it is, is refused with a sentence: a server that quietly spoke something else would be a surprise either way.

use std::str::FromStr;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{SupportedProtocolVersion, version};

use crate::tls_config::crypto_provider;

/// The ciphers of TLS 1.3. They can be named, and are there whether they are or not, as in the original.
const OF_TLS13: [&str; 3] = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// The ciphers of TLS 1.2 that there are. Two of them have shorter names, which the original also understands.
const OF_TLS12: [&str; 6] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// What the original has beside them: old ways that are known to be weak.
const NOT_HERE: [&str; 16] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// The oldest version of TLS to speak (`--tls-min-version`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MinTlsVersion {
    /// 1.2, and 1.3 with those who know it.
    #[default]
    Tls12,
    /// 1.3 only.
    Tls13,
}

/// A cipher that the server may use (`--tls-cipher-suites`), by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CipherSuite(&'static str);

/// How the server speaks TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    min_version: MinTlsVersion,
    /// Those of TLS 1.2 to use; all if this is empty.
    cipher_suites: Vec<CipherSuite>,
    is_http1_only: bool,
}

/// Why the server cannot speak TLS so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsOptionsError {
    /// A version that the original knows and that nobody should use.
    #[error("{0} is not supported: TLS 1.0 and 1.1 are broken; use VersionTLS12 or VersionTLS13")]
    OldVersion(String),
    /// A version that nobody knows.
    #[error("unknown tls version {0:?}; possible values: VersionTLS12, VersionTLS13")]
    Version(String),
    /// A cipher that the original knows and that is not here.
    #[error("cipher suite {0} is not supported: it is weak; possible values: {list}", list = known())]
    WeakCipher(String),
    /// A cipher that nobody knows.
    #[error("Cipher suite {0} not supported or doesn't exist; possible values: {list}", list = known())]
    Cipher(String),
    /// Ciphers with which HTTP/2 cannot be spoken.
    #[error(
        "--tls-cipher-suites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of \
         TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)"
    )]
    NoHttp2,
}

fn known() -> String {
    let mut names: Vec<&str> = OF_TLS13.into_iter().chain(OF_TLS12).collect();
    names.sort_unstable();
    names.join(", ")
}

impl FromStr for MinTlsVersion {
    type Err = TlsOptionsError;

    fn from_str(text: &str) -> Result<MinTlsVersion, TlsOptionsError> {
        match text {
            // As in the original, nothing is the default.
            "" | "VersionTLS12" => Ok(MinTlsVersion::Tls12),
            "VersionTLS13" => Ok(MinTlsVersion::Tls13),
            "VersionTLS10" | "VersionTLS11" => Err(TlsOptionsError::OldVersion(text.to_owned())),
            _ => Err(TlsOptionsError::Version(text.to_owned())),
        }
    }
}

impl FromStr for CipherSuite {
    type Err = TlsOptionsError;

    fn from_str(text: &str) -> Result<CipherSuite, TlsOptionsError> {
        let name = match text {
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            name => name,
        };
        match OF_TLS13.into_iter().chain(OF_TLS12).find(|known| *known == name) {
            Some(known) => Ok(CipherSuite(known)),
            None if NOT_HERE.contains(&name) => Err(TlsOptionsError::WeakCipher(text.to_owned())),
            None => Err(TlsOptionsError::Cipher(text.to_owned())),
        }
    }
}

impl TlsOptions {
    /// TLS from this version on, with these ciphers; all if none is named.
    pub fn new(min_version: MinTlsVersion, cipher_suites: Vec<CipherSuite>) -> Result<TlsOptions, TlsOptionsError> {
        let needs_http2 = min_version == MinTlsVersion::Tls12 && !cipher_suites.is_empty();
        let speaks_http2 = |suite: &CipherSuite| OF_TLS12.contains(&suite.0) && suite.0.ends_with("AES_128_GCM_SHA256");
        if needs_http2 && !cipher_suites.iter().any(speaks_http2) {
            return Err(TlsOptionsError::NoHttp2);
        }
        Ok(TlsOptions { min_version, cipher_suites, is_http1_only: false })
    }

    /// The same without HTTP/2 (`--disable-http2-serving`).
    pub fn without_http2(self) -> TlsOptions {
        TlsOptions { is_http1_only: true, ..self }
    }

    /// What clients may agree on to speak, the best first.
    pub(crate) fn protocols(&self) -> Vec<Vec<u8>> {
        let all = [&b"h2"[..], b"http/1.1"];
        let offered = if self.is_http1_only { &all[1..] } else { &all[..] };
        offered.iter().map(|protocol| protocol.to_vec()).collect()
    }

    /// The versions to speak, the best first.
    pub(crate) fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        match self.min_version {
            MinTlsVersion::Tls12 => vec![&version::TLS13, &version::TLS12],
            MinTlsVersion::Tls13 => vec![&version::TLS13],
        }
    }

    /// The cryptography, without the ciphers that are not wanted. Those of TLS 1.3 are not for choosing.
    pub(crate) fn provider(&self) -> Arc<CryptoProvider> {
        let mut provider = crypto_provider();
        if !self.cipher_suites.is_empty() {
            let is_wanted = |name: &str| self.cipher_suites.iter().any(|wanted| wanted.0 == name);
            Arc::make_mut(&mut provider)
                .cipher_suites
                .retain(|suite| suite.tls13().is_some() || is_wanted(&format!("{:?}", suite.suite())));
        }
        provider
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_named_as_the_original_names_them() {
        for (text, want) in [
            ("", Ok(MinTlsVersion::Tls12)),
            ("VersionTLS12", Ok(MinTlsVersion::Tls12)),
            ("VersionTLS13", Ok(MinTlsVersion::Tls13)),
            ("VersionTLS10", Err(TlsOptionsError::OldVersion("VersionTLS10".into()))),
            ("VersionTLS11", Err(TlsOptionsError::OldVersion("VersionTLS11".into()))),
            ("TLS12", Err(TlsOptionsError::Version("TLS12".into()))),
        ] {
            assert_eq!(text.parse::<MinTlsVersion>(), want, "{text}");
        }
    }

    #[test]
    fn ciphers_are_named_as_the_original_names_them() {
        for (text, want) in [
            ("TLS_AES_128_GCM_SHA256", Ok("TLS_AES_128_GCM_SHA256")),
            ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", Ok("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", Ok("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256")),
            ("TLS_RSA_WITH_RC4_128_SHA", Err("cipher suite TLS_RSA_WITH_RC4_128_SHA is not supported: it is weak; ")),
            (
                "ROT13",
                Err("Cipher suite ROT13 not supported or doesn't exist; possible values: TLS_AES_128_GCM_SHA256"),
            ),
        ] {
            match (text.parse::<CipherSuite>(), want) {
                (Ok(suite), Ok(want)) => assert_eq!(suite.0, want),
                (Err(error), Err(want)) => assert!(error.to_string().starts_with(want), "{error}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }

    #[test]
    fn every_cipher_that_can_be_named_is_there_and_all_are_there_unless_some_are_named() {
        let names = |options: &TlsOptions| {
            let mut names: Vec<String> =
                options.provider().cipher_suites.iter().map(|suite| format!("{:?}", suite.suite())).collect();
            names.sort();
            names
        };
        let of_tls13 = ["TLS13_AES_128_GCM_SHA256", "TLS13_AES_256_GCM_SHA384", "TLS13_CHACHA20_POLY1305_SHA256"];
        let mut all: Vec<&str> = of_tls13.into_iter().chain(OF_TLS12).collect();
        all.sort_unstable();
        assert_eq!(names(&TlsOptions::default()), all);

        let one = CipherSuite("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
        let options = TlsOptions::new(MinTlsVersion::Tls12, vec![one]).expect("HTTP/2 can be spoken");
        let mut want = of_tls13.to_vec();
        want.push(one.0);
        want.sort_unstable();
        assert_eq!(names(&options), want);
    }

    #[test]
    fn http2_needs_one_of_two_ciphers_unless_only_newer_versions_are_spoken() {
        let without = vec![CipherSuite("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")];
        let error = TlsOptions::new(MinTlsVersion::Tls12, without.clone()).expect_err("HTTP/2 cannot be spoken");
        assert_eq!(error, TlsOptionsError::NoHttp2);
        assert!(TlsOptions::new(MinTlsVersion::Tls13, without).is_ok());
    }
}
