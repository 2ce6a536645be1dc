//! [`PageSize`]: how many keys are asked of etcd at once by those who read all of them.
//!
//! For every page etcd walks over all keys that are left, to count them: what many small pages cost it grows with the
//! square of the number of keys. So pages are as large as is good for the memory of both sides.

/// The number of keys on the first page, when nothing is known of their values, and at most (upstream: `maxLimit` in
/// `storage/etcd3`).
const FIRST: usize = 500;
const MOST: usize = 10_000;

/// How many bytes a page should have.
const BYTES: usize = 8 << 20;

/// How much larger than the last page the next one may be: what follows may be larger than what was seen.
const GROWTH: usize = 8;

/// The size of the next page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageSize {
    keys: usize,
}

impl Default for PageSize {
    fn default() -> PageSize {
        PageSize { keys: FIRST }
    }
}

impl PageSize {
    /// How many keys to ask for.
    pub(crate) fn limit(self) -> i64 {
        i64::try_from(self.keys).unwrap_or(i64::MAX)
    }

    /// Goes by how long the keys with their values are that are on a page.
    pub(crate) fn fit(&mut self, page: impl ExactSizeIterator<Item = usize>) {
        let keys = page.len();
        let fitting = BYTES.saturating_mul(keys) / page.sum::<usize>().max(1);
        self.keys = fitting.clamp(1, MOST.min(self.keys.saturating_mul(GROWTH)));
    }

    /// Asks for less, because a page was too large to be sent. Answers whether it could be less.
    pub(crate) fn shrink(&mut self) -> bool {
        let could = self.keys > 1;
        self.keys = (self.keys / GROWTH).max(1);
        could
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_to_what_is_good_and_never_beyond() {
        let mut size = PageSize::default();
        let mut seen = Vec::new();
        for (keys, bytes) in [(500, 1600), (4000, 1600), (5242, 100), (10_000, 100), (10, 2 << 20), (1, 64 << 20)] {
            size.fit(std::iter::repeat_n(bytes, keys));
            seen.push(size.limit());
        }
        assert_eq!(seen, [4000, 5242, 10_000, 10_000, 4, 1]);
    }

    #[test]
    fn a_page_that_cannot_be_sent_becomes_smaller_down_to_one_key() {
        let mut size = PageSize::default();
        let shrunk: Vec<_> = (0..5).map(|_| (size.shrink(), size.limit())).collect();
        assert_eq!(shrunk, [(true, 62), (true, 7), (true, 1), (false, 1), (false, 1)]);
    }
}
