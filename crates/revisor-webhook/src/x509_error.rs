//! [`X509Error`]: why a certificate is not believed, in the words of Go's library.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Why a certificate is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum X509Error {
    /// It cannot be read.
    #[error("x509: malformed certificate")]
    Malformed,
    /// It is not valid yet.
    #[error("x509: certificate has expired or is not yet valid: current time {} is before {}", rfc3339(.now), rfc3339(.bound))]
    NotYetValid {
        /// The time of the check, in seconds since 1970.
        now: i64,
        /// When it begins to be valid.
        bound: i64,
    },
    /// It is no longer valid.
    #[error("x509: certificate has expired or is not yet valid: current time {} is after {}", rfc3339(.now), rfc3339(.bound))]
    Expired {
        /// The time of the check, in seconds since 1970.
        now: i64,
        /// When it ceased to be valid.
        bound: i64,
    },
    /// It names the host only where names are no longer looked for.
    #[error("x509: certificate relies on legacy Common Name field, use SANs instead")]
    CommonNameOnly,
    /// It names no addresses, and one was asked for.
    #[error("x509: cannot validate certificate for {0} because it doesn't contain any IP SANs")]
    NoAddresses(String),
    /// It names nobody.
    #[error("x509: certificate is not valid for any names, but wanted to match {0}")]
    NoNames(String),
    /// It names others.
    #[error("x509: certificate is valid for {names}, not {wanted}")]
    OtherNames {
        /// Whom it names.
        names: String,
        /// Who was asked for.
        wanted: String,
    },
    /// It is not meant for servers.
    #[error("x509: certificate specifies an incompatible key usage")]
    NotForServers,
    /// Nobody who is trusted vouches for it.
    #[error("x509: certificate signed by unknown authority{}", hint(.candidate))]
    UnknownAuthority {
        /// The authority that it claims to be from, if it is trusted but did not sign: its name, and what Go says about
        /// the signature.
        candidate: Option<(String, &'static str)>,
    },
}

fn hint(candidate: &Option<(String, &'static str)>) -> String {
    candidate.as_ref().map_or_else(String::new, |(name, problem)| {
        format!(
            " (possibly because of {problem:?} while trying to verify candidate authority certificate {})",
            revisor_object::BadValue::from(name.as_str())
        )
    })
}

fn rfc3339(seconds: &i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(*seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    time.format(&Rfc3339).unwrap_or_default()
}
