//! [`PortRange`]: a range of ports, as `--service-node-port-range` takes it.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// A range of ports: `30000-32767`, `30000+2767`, or one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortRange {
    ports: RangeInclusive<u16>,
}

impl PortRange {
    /// The ports.
    pub(crate) fn ports(&self) -> RangeInclusive<u16> {
        self.ports.clone()
    }
}

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<PortRange, String> {
        let problem = || format!("expected a range of ports such as 30000-32767, not {text:?}");
        let number = |text: &str| text.trim().parse::<u16>().map_err(|_| problem());
        let (first, last) = if let Some((first, last)) = text.split_once('-') {
            (number(first)?, number(last)?)
        } else if let Some((first, more)) = text.split_once('+') {
            let first = number(first)?;
            (first, first.checked_add(number(more)?).ok_or_else(problem)?)
        } else {
            (number(text)?, number(text)?)
        };
        if first == 0 || first > last { Err(problem()) } else { Ok(PortRange { ports: first..=last }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_in_three_ways() {
        for (text, want) in [
            ("30000-32767", Some((30000, 32767))),
            ("30000+2767", Some((30000, 32767))),
            ("80", Some((80, 80))),
            ("9-8", None),
            ("0-8", None),
            ("1+65535", None),
            ("70000", None),
            ("x", None),
        ] {
            let range = text.parse::<PortRange>().ok().map(|range| (*range.ports().start(), *range.ports().end()));
            assert_eq!(range, want, "{text}");
        }
    }
}
