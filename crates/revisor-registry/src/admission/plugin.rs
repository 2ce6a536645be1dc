//! [`AdmissionPlugin`]: the plugins that there are, in the order in which they are asked, and which of them are on unless
//! somebody says otherwise (upstream: `AllOrderedPlugins`, `DefaultOffAdmissionPlugins`).

use std::fmt;

macro_rules! plugins {
    ($($name:ident: $state:ident,)+) => {
        /// A plugin of the admission chain.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum AdmissionPlugin {
            $(#[doc = concat!("`", stringify!($name), "`")] $name,)+
        }

        impl AdmissionPlugin {
            /// All of them, in the order in which they are asked.
            pub const ALL: &[AdmissionPlugin] = &[$(AdmissionPlugin::$name),+];

            /// Its name in flags.
            pub const fn name(self) -> &'static str {
                match self {
                    $(AdmissionPlugin::$name => stringify!($name),)+
                }
            }

            /// Whether it is on unless somebody says otherwise.
            pub const fn is_default(self) -> bool {
                match self {
                    $(AdmissionPlugin::$name => plugins!(@ $state),)+
                }
            }
        }
    };
    (@ on) => { true };
    (@ off) => { false };
}

plugins! {
    AlwaysAdmit: off,
    NamespaceAutoProvision: off,
    NamespaceLifecycle: on,
    NamespaceExists: off,
    LimitPodHardAntiAffinityTopology: off,
    LimitRanger: on,
    ServiceAccount: on,
    NodeRestriction: off,
    TaintNodesByCondition: on,
    AlwaysPullImages: off,
    ImagePolicyWebhook: off,
    PodSecurity: on,
    PodNodeSelector: off,
    Priority: on,
    DefaultTolerationSeconds: on,
    PodTolerationRestriction: off,
    EventRateLimit: off,
    ExtendedResourceToleration: off,
    DefaultStorageClass: on,
    StorageObjectInUseProtection: on,
    PodGroupProtection: on,
    OwnerReferencesPermissionEnforcement: off,
    PersistentVolumeClaimResize: on,
    RuntimeClass: on,
    CertificateApproval: on,
    CertificateSigning: on,
    ClusterTrustBundleAttest: on,
    CertificateSubjectRestriction: on,
    DefaultIngressClass: on,
    DenyServiceExternalIPs: off,
    PodTopologyLabels: on,
    PodGroupWorkloadExists: on,
    NodeDeclaredFeatureValidator: on,
    JobValidation: on,
    PodResizeValidator: on,
    MutatingAdmissionPolicy: on,
    MutatingAdmissionWebhook: on,
    ValidatingAdmissionPolicy: on,
    ValidatingAdmissionWebhook: on,
    ResourceQuota: on,
    AlwaysDeny: off,
}

impl AdmissionPlugin {
    /// The plugin of this name.
    pub fn named(name: &str) -> Option<AdmissionPlugin> {
        AdmissionPlugin::ALL.iter().copied().find(|plugin| plugin.name() == name)
    }
}

impl fmt::Display for AdmissionPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
