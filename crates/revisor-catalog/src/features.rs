//! [`Features`]: the feature gates that decide what this server does, read once when the catalog is built.
//!
//! Kubernetes has many more gates. Those that govern what this server does not have are accepted and have no effect;
//! [`Feature::named`] tells them apart.

use revisor_version::FeatureGates;

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A feature that this server has, and that a gate switches on or off.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Feature {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Feature {
            /// All of them.
            pub const ALL: &[Feature] = &[$(Feature::$name),+];

            /// The name of its gate.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Feature::$name => stringify!($name),)+
                }
            }
        }
    };
}

features! {
    /// Bundles of trusted certificates are served.
    ClusterTrustBundle,
    /// Workloads and groups of pods are served, and pods can belong to one.
    GenericWorkload,
    /// Autoscalers say how far from its target a metric may be.
    HPAConfigurableTolerance,
    /// Autoscalers may scale down to nothing.
    HPAScaleToZero,
    /// What containers ask for can be changed while they run.
    InPlacePodVerticalScaling,
    /// Pods ask for certificates.
    PodCertificateRequest,
    /// Requests to rewrite stored objects are served.
    StorageVersionMigrator,
}

impl Feature {
    /// The feature that this gate switches, if this server has it.
    pub fn named(gate: &str) -> Option<Feature> {
        Feature::ALL.iter().copied().find(|feature| feature.name() == gate)
    }

    const fn bit(self) -> u128 {
        1 << self as u32
    }
}

/// Which features are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features(u128);

impl Features {
    /// The features that these gates switch on.
    pub fn of(gates: &FeatureGates) -> Features {
        let enabled = Feature::ALL.iter().filter(|feature| gates.is_enabled(feature.name()));
        Features(enabled.fold(0, |bits, feature| bits | feature.bit()))
    }

    /// Whether a feature is on.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & feature.bit() != 0
    }

    /// These features and one more.
    #[cfg(test)]
    pub(crate) const fn with(self, feature: Feature) -> Features {
        Features(self.0 | feature.bit())
    }

    /// These features without one.
    #[cfg(test)]
    pub(crate) const fn without(self, feature: Feature) -> Features {
        Features(self.0 & !feature.bit())
    }
}

#[cfg(test)]
mod tests {
    use revisor_version::Release;

    use super::*;

    #[test]
    fn every_feature_has_a_gate_and_a_bit_of_its_own() {
        let gates = FeatureGates::of(Release { major: 1, minor: 36 });
        let mut bits = 0;
        for feature in Feature::ALL {
            assert!(gates.iter().any(|(name, ..)| name == feature.name()), "{feature:?}");
            assert_eq!(bits & feature.bit(), 0, "{feature:?}");
            bits |= feature.bit();
            assert_eq!(Features::of(&gates).has(*feature), gates.is_enabled(feature.name()), "{feature:?}");
            assert_eq!(Feature::named(feature.name()), Some(*feature));
        }
        assert_eq!(Feature::named("KubeletTracing"), None);
    }

    #[test]
    fn features_are_switched_one_by_one() {
        let none = Features(0);
        let one = none.with(Feature::ClusterTrustBundle);
        assert!(one.has(Feature::ClusterTrustBundle) && !one.has(Feature::GenericWorkload));
        assert_eq!(one.without(Feature::ClusterTrustBundle), none);
    }
}
