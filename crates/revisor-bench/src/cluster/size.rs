//! [`ClusterSize`]: how large a cluster is, and what follows from that.

use std::fmt;
use std::str::FromStr;

/// Pods behind one service, and so endpoints in one slice.
pub(super) const PODS_PER_SERVICE: u32 = 50;

/// The most nodes: each has two connections, and servers have bounds.
const MOST_NODES: u32 = 4_500;
const MOST_PODS: u32 = 500_000;

/// How many nodes and pods a cluster has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterSize {
    /// The nodes.
    pub nodes: u32,
    /// The pods on all of them.
    pub pods: u32,
}

impl ClusterSize {
    pub(super) fn services(self) -> u32 {
        self.pods.div_ceil(PODS_PER_SERVICE)
    }

    /// A cluster of so many percent of this one, if there may be one.
    pub(super) fn grown(self, percent: u32) -> Option<ClusterSize> {
        let of = |count: u32| (u64::from(count) * u64::from(percent)).div_ceil(100);
        let (nodes, pods) = (u32::try_from(of(self.nodes)).ok()?, u32::try_from(of(self.pods)).ok()?);
        (nodes <= MOST_NODES && pods <= MOST_PODS).then_some(ClusterSize { nodes, pods })
    }
}

impl fmt::Display for ClusterSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} nodes, {} pods", self.nodes, self.pods)
    }
}

impl FromStr for ClusterSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ClusterSize, String> {
        let sizes = text.split_once('x').and_then(|(nodes, pods)| Some((nodes.parse().ok()?, pods.parse().ok()?)));
        let Some((nodes, pods)) = sizes else { return Err("is not of the form NODESxPODS, as 1000x30000 is".into()) };
        if !(1..=MOST_NODES).contains(&nodes) || !(nodes..=MOST_PODS).contains(&pods) {
            return Err(format!("has to be of 1 to {MOST_NODES} nodes, and of as many to {MOST_PODS} pods"));
        }
        Ok(ClusterSize { nodes, pods })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_grow() {
        let size: ClusterSize = "1000x30000".parse().expect("a size");
        assert_eq!((size.nodes, size.pods, size.services()), (1000, 30_000, 600));
        assert_eq!(size.grown(150), Some(ClusterSize { nodes: 1500, pods: 45_000 }));
        assert_eq!(ClusterSize { nodes: 4000, pods: 4000 }.grown(150), None);
        for text in ["", "1000", "0x10", "10x9", "x", "axb", "10000x20000", "10x1000000"] {
            assert!(text.parse::<ClusterSize>().is_err(), "{text}");
        }
    }
}
