//! [`SemanticVersion`]: versions as semver.org defines them, as far as objects carry them.

use std::cmp::Ordering;

/// A version that can be compared with others. What stands behind a `+` has no part in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SemanticVersion<'a> {
    numbers: [u64; 3],
    /// Empty for what is released.
    pre_release: &'a str,
}

impl<'a> SemanticVersion<'a> {
    /// Reads a version with all of its three numbers.
    pub(crate) fn parse(text: &'a str) -> Option<SemanticVersion<'a>> {
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (core, pre_release) = text.split_once('-').map_or((text, None), |(core, rest)| (core, Some(rest)));
        let numbers: Vec<u64> = core.split('.').map(number).collect::<Option<_>>()?;
        let is_pre_release =
            |part: &str| number(part).is_some() || is_word(part) && part.bytes().any(|byte| !byte.is_ascii_digit());
        let is_good = pre_release.is_none_or(|parts| parts.split('.').all(is_pre_release))
            && build.is_none_or(|parts| parts.split('.').all(is_word));
        let numbers = numbers.try_into().ok().filter(|_| is_good)?;
        Some(SemanticVersion { numbers, pre_release: pre_release.unwrap_or_default() })
    }
}

impl Ord for SemanticVersion<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_pre_release = || match (self.pre_release, other.pre_release) {
            ("", "") => Ordering::Equal,
            // What is released comes after what led to it.
            ("", _) => Ordering::Greater,
            (_, "") => Ordering::Less,
            (one, two) => one.split('.').map(Part::of).cmp(two.split('.').map(Part::of)),
        };
        self.numbers.cmp(&other.numbers).then_with(by_pre_release)
    }
}

impl PartialOrd for SemanticVersion<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A part of what stands behind the dash: numbers come before words.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(u64),
    Word(&'a str),
}

impl<'a> Part<'a> {
    fn of(text: &'a str) -> Part<'a> {
        number(text).map_or(Part::Word(text), Part::Number)
    }
}

/// A number without zeros in front of it.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_plain.then(|| text.parse().ok())?
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for (text, is_good) in [
            ("1.2.3", true),
            ("0.0.0", true),
            ("1.2.3-alpha.1+build.5", true),
            ("1.2.3-0a", true),
            ("1.2.3+001", true),
            ("1.2.3-a-b", true),
            ("1.2", false),
            ("01.2.3", false),
            ("1.2.3-01", false),
            ("1.2.3-", false),
            ("1.2.3+", false),
            ("1.2.99999999999999999999", false),
            ("one", false),
            ("", false),
        ] {
            assert_eq!(SemanticVersion::parse(text).is_some(), is_good, "{text}");
        }
    }

    #[test]
    fn versions_are_in_order() {
        let order = ["0.0.0", "1.2.3-1", "1.2.3-2", "1.2.3-10", "1.2.3-a", "1.2.3-a.1", "1.2.3", "1.2.10", "1.10.0"];
        let versions = order.map(|text| SemanticVersion::parse(text).expect("is a version"));
        assert!(versions.is_sorted_by(|one, two| one < two), "{versions:?}");
        assert_eq!(SemanticVersion::parse("1.2.3+a"), SemanticVersion::parse("1.2.3+b"));
    }
}
