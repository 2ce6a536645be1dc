//! The flags that say which release a server behaves as.

use clap::Args;
use revisor_catalog::{BINARY, CatalogOptions};
use revisor_version::{EffectiveVersion, FeatureGates};

use crate::kube_apiserver::EMULATION_VERSION;

/// Which release the server behaves as, and which of its features are on.
#[derive(Debug, Clone, Args)]
pub(crate) struct CompatibilityFlags {
    /// The release to behave as: 1.33, 1.34, 1.35 or 1.36 [default: 1.36]
    #[arg(
        long,
        alias = "emulated-version",
        value_name = "RELEASE",
        value_delimiter = ',',
        env = EMULATION_VERSION,
        hide_env_values = true
    )]
    pub(crate) emulation_version: Vec<String>,

    /// The oldest release that must be able to read what this server stores: from 1.33 to the one to behave as
    /// [default: the one before the one to behave as, if it is not too old]
    #[arg(long, value_name = "RELEASE", value_delimiter = ',')]
    pub(crate) min_compatibility_version: Vec<String>,

    /// Whether versions that are served bring along their newer and equally or more stable ones that came after the
    /// release to behave as
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) emulation_forward_compatible: bool,

    /// Whether --runtime-config may name versions and resources that came after the release to behave as
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) runtime_config_emulation_forward_compatible: bool,

    /// Whether alpha features and alpha APIs can be had of a release that this program only behaves as. They are not
    /// made to be upgraded
    #[arg(long, value_name = "BOOL", default_value_t = false, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) allow_alpha_under_emulation: bool,

    /// Features to switch on or off: NAME=BOOL, also AllAlpha and AllBeta; `revisor gates` prints what there is and what
    /// has an effect
    #[arg(long, value_name = "GATES")]
    pub(crate) feature_gates: Vec<String>,
}

impl CompatibilityFlags {
    /// What the server is and behaves as.
    pub(crate) fn version(&self) -> anyhow::Result<EffectiveVersion> {
        Ok(EffectiveVersion::parse(BINARY, &self.emulation_version, &self.min_compatibility_version)?)
    }

    /// The features that are on.
    pub(crate) fn gates(&self) -> anyhow::Result<FeatureGates> {
        Ok(FeatureGates::parse(&self.feature_gates, self.version()?, self.allow_alpha_under_emulation)?)
    }

    /// What is served, if that is all there is to say.
    pub(crate) fn catalog_options(&self) -> anyhow::Result<CatalogOptions> {
        Ok(CatalogOptions {
            version: self.version()?,
            gates: self.gates()?,
            emulation_forward_compatible: self.emulation_forward_compatible,
            runtime_config_forward_compatible: self.runtime_config_emulation_forward_compatible,
            allow_alpha: self.allow_alpha_under_emulation,
            ..CatalogOptions::default()
        })
    }
}
