//! [`StrictTransportSecurity`]: what browsers are told about how to come back
//! (`--strict-transport-security-directives`).

use std::str::FromStr;

use http::HeaderValue;

/// One directive, as the original understands them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportDirective(String);

/// Why a text is not a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotADirective {
    /// It is empty.
    #[error("empty value in strict-transport-security-directives")]
    Empty,
    /// It is none that there is.
    #[error(
        "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, \
         preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
    )]
    Unknown,
}

impl FromStr for TransportDirective {
    type Err = NotADirective;

    fn from_str(text: &str) -> Result<TransportDirective, NotADirective> {
        if text.trim().is_empty() {
            return Err(NotADirective::Empty);
        }
        let is_age = || text.strip_prefix("max-age=").is_some_and(|age| !age.contains('='));
        // The original does not look at the age; what cannot stand in a header could not be sent.
        let is_sendable = text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
        if ["includeSubDomains", "preload"].contains(&text) || (is_age() && is_sendable) {
            return Ok(TransportDirective(text.to_owned()));
        }
        Err(NotADirective::Unknown)
    }
}

/// The directives that go out with every answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrictTransportSecurity(HeaderValue);

impl StrictTransportSecurity {
    /// These directives; `None` if there are none.
    pub fn new(directives: &[TransportDirective]) -> Option<StrictTransportSecurity> {
        let texts: Vec<&str> = directives.iter().map(|directive| directive.0.as_str()).collect();
        if texts.is_empty() {
            return None;
        }
        HeaderValue::from_str(&texts.join("; ")).ok().map(StrictTransportSecurity)
    }

    /// The value of the header.
    pub(crate) fn value(&self) -> &HeaderValue {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_read_as_the_original_reads_them() {
        for (text, want) in [
            ("max-age=31536000", Ok(())),
            ("max-age=soon", Ok(())),
            ("includeSubDomains", Ok(())),
            ("preload", Ok(())),
            ("", Err(NotADirective::Empty)),
            (" ", Err(NotADirective::Empty)),
            ("includesubdomains", Err(NotADirective::Unknown)),
            ("max-age", Err(NotADirective::Unknown)),
            ("max-age=1=2", Err(NotADirective::Unknown)),
            ("max-age=1\r\nx: y", Err(NotADirective::Unknown)),
        ] {
            assert_eq!(text.parse::<TransportDirective>().map(|_| ()), want, "{text:?}");
        }
    }

    #[test]
    fn all_go_into_one_header() {
        let read = |texts: &[&str]| -> Vec<TransportDirective> {
            texts.iter().map(|text| text.parse().expect("a directive")).collect()
        };
        assert_eq!(StrictTransportSecurity::new(&[]), None);
        let both = StrictTransportSecurity::new(&read(&["max-age=5", "preload"])).expect("there are some");
        assert_eq!(both.value(), "max-age=5; preload");
    }
}
