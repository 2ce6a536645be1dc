//! [`Range`]: a number of which only the bounds are known. Nothing overflows: what is too large is the largest number.

use crate::schema_types::LARGEST_REQUEST;

/// A cost or a size that is between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// At least this.
    pub min: u64,
    /// At most this.
    pub max: u64,
}

impl Range {
    /// Nothing.
    pub(crate) const ZERO: Range = Range::fixed(0);

    /// Anything.
    pub(crate) const UNKNOWN: Range = Range { min: 0, max: u64::MAX };

    /// The size of anything that can be in a request.
    pub const IN_REQUEST: Range = Range { min: 0, max: LARGEST_REQUEST as u64 };

    /// Exactly this.
    pub(crate) const fn fixed(number: u64) -> Range {
        Range { min: number, max: number }
    }

    pub(crate) fn plus(self, other: Range) -> Range {
        Range { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) fn times(self, other: Range) -> Range {
        Range { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// So many times the number, rounded up.
    pub(crate) fn scaled(self, factor: f64) -> Range {
        // Conversions from floats saturate.
        let scale = |number: u64| (number as f64 * factor).ceil() as u64;
        Range { min: scale(self.min), max: scale(self.max) }
    }

    /// Either of both.
    pub(crate) fn or(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overflows() {
        let most = Range::fixed(u64::MAX);
        assert_eq!(most.plus(most), most);
        assert_eq!(most.times(Range::fixed(2)), most);
        assert_eq!(most.scaled(2.0), most);
        assert_eq!(Range::fixed(11).scaled(0.1), Range::fixed(2));
        assert_eq!(Range::fixed(10).scaled(0.1), Range::fixed(1));
        assert_eq!(Range::UNKNOWN.scaled(0.1), Range { min: 0, max: 1_844_674_407_370_955_264 });
    }
}
