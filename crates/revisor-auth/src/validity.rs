//! [`Validity`]: from when until when a certificate counts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;

/// The time during which a certificate counts.
///
/// Counted in whole seconds, as certificates and the library that verifies them count: the last second of a
/// certificate belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    /// The first moment at which it counts.
    pub(crate) from: SystemTime,
    /// The first moment at which it counts no more.
    pub(crate) until: SystemTime,
}

impl Validity {
    /// What `certificate` says of itself.
    pub(crate) fn read(certificate: &CertificateDer<'_>) -> Result<Validity, x509_parser::nom::Err<X509Error>> {
        x509_parser::parse_x509_certificate(certificate).map(|(_, parsed)| Validity::of(&parsed))
    }

    /// What a certificate that was read says of itself.
    pub(crate) fn of(certificate: &X509Certificate<'_>) -> Validity {
        let validity = certificate.validity();
        let second = Duration::from_secs(1);
        Validity { from: time(validity.not_before.timestamp()), until: time(validity.not_after.timestamp()) + second }
    }

    pub(crate) fn contains(&self, now: SystemTime) -> bool {
        self.from <= now && now < self.until
    }

    /// The last second, as the certificate names it.
    pub(crate) fn expires(&self) -> SystemTime {
        self.until - Duration::from_secs(1)
    }

    /// Whether `now` lies in the last third, in which a certificate is renewed: early enough for whoever has to follow,
    /// and whatever its length.
    pub(crate) fn ends_soon(&self, now: SystemTime) -> bool {
        now >= self.renewed_from()
    }

    /// The beginning of the last third.
    pub(crate) fn renewed_from(&self) -> SystemTime {
        self.until - self.until.duration_since(self.from).unwrap_or_default() / 3
    }

    /// The time around `now` in which none of `all` begins or ends: whatever depends on them stays as it is meanwhile.
    pub(crate) fn unchanged_around(now: SystemTime, all: impl Iterator<Item = Validity>) -> Validity {
        let mut around = Validity { from: UNIX_EPOCH, until: UNIX_EPOCH + FAR };
        for moment in all.flat_map(|validity| [validity.from, validity.until]) {
            if moment <= now {
                around.from = around.from.max(moment);
            } else {
                around.until = around.until.min(moment);
            }
        }
        around
    }
}

/// Further than any certificate reaches: the year 9999 is the last that they can name.
const FAR: Duration = Duration::from_secs(253_402_300_800);

/// Certificates may begin before the epoch; that they began long ago is all that matters.
fn time(timestamp: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(timestamp).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(second)
    }

    #[test]
    fn between_two_changes_nothing_changes() {
        let all = [(10, 40), (20, 30)].map(|(from, until)| Validity { from: at(from), until: at(until) });
        for (now, from, until) in [(5, 0, 10), (10, 10, 20), (19, 10, 20), (20, 20, 30), (30, 30, 40)] {
            let around = Validity::unchanged_around(at(now), all.into_iter());
            assert_eq!(around, Validity { from: at(from), until: at(until) }, "{now}");
        }
        assert_eq!(Validity::unchanged_around(at(40), all.into_iter()).from, at(40));
    }

    #[test]
    fn the_last_third_is_for_renewal() {
        let validity = Validity { from: at(100), until: at(400) };
        assert_eq!([299, 300, 500].map(|now| validity.ends_soon(at(now))), [false, true, true]);
        assert_eq!([99, 100, 399, 400].map(|now| validity.contains(at(now))), [false, true, true, false]);
        assert_eq!(validity.expires(), at(399));
    }
}
