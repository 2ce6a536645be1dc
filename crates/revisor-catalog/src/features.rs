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
    /// Large answers are compressed for those who accept that.
    APIResponseCompression,
    /// Servers tell by a Lease that they are there.
    APIServerIdentity,
    /// Nodes may ask for certificates in other names than their own.
    AllowInsecureKubeletCertificateSigningRequests,
    /// Objects that cannot be read can be deleted, by those who insist on it and may.
    AllowUnsafeMalformedObjectDeletion,
    /// Requests may be anonymous at some paths only.
    AnonymousAuthConfigurableEndpoints,
    /// Nodes may list and watch only what is theirs, by their selectors.
    AuthorizeNodeWithSelectors,
    /// Who wants to be connected to a pod has to be allowed to create such a connection, whatever the method.
    AuthorizePodWebsocketUpgradeCreatePermission,
    /// Those who decide about a request are told by which selectors it is limited.
    AuthorizeWithSelectors,
    /// Definitions tell which generation their status is about.
    CRDObservedGenerationTracking,
    /// Objects are read and written in CBOR.
    CBORServingAndStorage,
    /// Drivers of volumes can take the tokens of service accounts as secrets.
    CSIServiceAccountTokenSecrets,
    /// A pod that is bound to a node is nominated for none.
    ClearingNominatedNodeNameAfterBinding,
    /// Bundles of trusted certificates are served.
    ClusterTrustBundle,
    /// Volumes of pods show bundles of trusted certificates.
    ClusterTrustBundleProjection,
    /// The server shows how it was started.
    ComponentFlagz,
    /// The server shows what it is.
    ComponentStatusz,
    /// Acting as somebody else can be allowed for single verbs.
    ConstrainedImpersonation,
    /// Containers have a restart policy of their own, with rules by exit code.
    ContainerRestartRules,
    /// Containers say which signal stops them.
    ContainerStopSignals,
    /// Leases say by which strategy a leader is chosen, and who is to follow.
    CoordinatedLeaderElection,
    /// Claims of volumes are filled from sources in other namespaces.
    CrossNamespaceVolumeDataSource,
    /// Claims of devices ask for access beside those that use the devices.
    DRAAdminAccess,
    /// Devices are shared by parts of their capacity.
    DRAConsumableCapacity,
    /// Devices have conditions that must be met before pods are bound.
    DRADeviceBindingConditions,
    /// Taints are put on devices by rules.
    DRADeviceTaintRules,
    /// Devices have taints, and claims tolerate them.
    DRADeviceTaints,
    /// Classes of devices stand for an extended resource.
    DRAExtendedResource,
    /// Attributes of devices are lists.
    DRAListTypeAttributes,
    /// Devices stand for what nodes can allocate otherwise.
    DRANodeAllocatableResources,
    /// Devices are parts that consume shared counters.
    DRAPartitionableDevices,
    /// Claims of devices ask for the first available of several.
    DRAPrioritizedList,
    /// Claims show what their drivers say of the devices.
    DRAResourceClaimDeviceStatus,
    /// Pools of devices can be asked about.
    DRAResourcePoolStatus,
    /// Who binds claims of devices, and who tells of the devices, need rights of their own.
    DRAResourceClaimGranularStatusAuthorization,
    /// Workloads and groups of pods have claims of devices.
    DRAWorkloadResourceClaims,
    /// Deployments and replica sets count the pods that are ending.
    DeploymentReplicaSetTerminatingReplicas,
    /// Pods have claims of devices.
    DynamicResourceAllocation,
    /// Variables of containers come from files in a volume.
    EnvFiles,
    /// Kubelets that say so are spoken to in WebSocket.
    ExtendWebSocketsToKubelet,
    /// Tokens of service accounts are signed by a plugin.
    ExternalServiceAccountTokenSigner,
    /// Workloads and groups of pods are served, and pods can belong to one.
    GenericWorkload,
    /// Volumes from repositories work, and warnings do not say otherwise.
    GitRepoVolumeDriver,
    /// Autoscalers say how far from its target a metric may be.
    HPAConfigurableTolerance,
    /// Autoscalers may scale down to nothing.
    HPAScaleToZero,
    /// Pods give their host a name that is not theirs.
    HostnameOverride,
    /// Volumes are images.
    ImageVolume,
    /// The status of a pod says which image a volume is.
    ImageVolumeWithDigest,
    /// What pods as a whole ask for can be changed while they run.
    InPlacePodLevelResourcesVerticalScaling,
    /// What containers ask for can be changed while they run.
    InPlacePodVerticalScaling,
    /// The same for containers that run before the others.
    InPlacePodVerticalScalingInitContainers,
    /// Jobs name the controller that looks after them.
    JobManagedBy,
    /// Jobs say when pods are replaced.
    JobPodReplacementPolicy,
    /// Services that hold keys may speak the first version of their protocol, which this server does not.
    KMSv1,
    /// Rights to parts of what kubelets serve are apart.
    KubeletFineGrainedAuthz,
    /// Nodes may read the service accounts of their pods.
    KubeletServiceAccountTokenForCredentialProviders,
    /// Names of policies and webhooks that end in `.static.k8s.io` are kept for those in files.
    ManifestBasedAdmissionControlConfig,
    /// Spread constraints name label keys whose values come from the pod.
    MatchLabelKeysInPodTopologySpread,
    /// These values become part of the selectors when a pod is made.
    MatchLabelKeysInPodTopologySpreadSelectorMerge,
    /// Rolling updates of stateful sets say how many pods may be missing.
    MaxUnavailableStatefulSet,
    /// Drivers say how often the number of volumes that fit on a node is looked up anew.
    MutableCSINodeAllocatableCount,
    /// Addresses of services come from ranges that are objects.
    MultiCIDRServiceAllocator,
    /// The nodes from which a volume can be reached may change.
    MutablePVNodeAffinity,
    /// The resources in the templates of suspended jobs may change.
    MutablePodResourcesForSuspendedJobs,
    /// What places the pods of a job may change whenever it is suspended.
    MutableSchedulingDirectivesForSuspendedJobs,
    /// Policies change what is written.
    MutatingAdmissionPolicy,
    /// Nodes declare the features that they have.
    NodeDeclaredFeatures,
    /// Descriptions of types name the values that fields can have.
    OpenAPIEnums,
    /// Of what is in a deleted namespace, pods go first.
    OrderedNamespaceDeletion,
    /// Pods ask for certificates.
    PodCertificateRequest,
    /// What it costs to delete a pod is a number.
    PodDeletionCost,
    /// Pods ask for resources as a whole.
    PodLevelResources,
    /// Hooks of containers sleep.
    PodLifecycleSleepAction,
    /// They may sleep for no time at all.
    PodLifecycleSleepActionAllowZero,
    /// The outputs of a container can be read apart.
    PodLogsQuerySplitStreams,
    /// The status of a pod says which generation it is about.
    PodObservedGenerationTracking,
    /// Pods get the labels that say where their node stands.
    PodTopologyLabelsAdmission,
    /// Ports are forwarded over WebSocket by kubelets that do not speak it.
    PortForwardWebsockets,
    /// Services prefer endpoints in the same zone or on the same node.
    PreferSameTrafficDistribution,
    /// Containers choose how much of `/proc` is masked.
    ProcMountType,
    /// Claims of volumes recover from an expansion that failed.
    RecoverVolumeExpansionFailure,
    /// Search domains of pods may be a dot or have underscores.
    RelaxedDNSSearchValidation,
    /// Names of variables are nearly any printable text.
    RelaxedEnvironmentVariableValidation,
    /// Names of services may begin with a digit.
    RelaxedServiceNameValidation,
    /// Servers behind this one are told the uids of users.
    RemoteRequestHeaderUID,
    /// The status of a pod says how its devices are.
    ResourceHealthStatus,
    /// And what is the matter with them.
    ResourceHealthStatusMessage,
    /// Rules restart all containers of a pod.
    RestartAllContainersOnContainerExits,
    /// Pods say how volumes are relabelled.
    SELinuxChangePolicy,
    /// Volumes of every sort are relabelled by mounting them so.
    SELinuxMount,
    /// The same for volumes that only one pod uses.
    SELinuxMountReadWriteOncePod,
    /// Nodes get tokens only for the audiences that their pods name.
    ServiceAccountNodeAudienceRestriction,
    /// The status of ranges of addresses is only written apart from them.
    ServiceCIDRStatusFieldWiping,
    /// Lists are thought to cost what their objects weigh, and not only their number.
    SizeBasedListCostEstimate,
    /// Servers tell by objects which versions they store.
    StorageVersionAPI,
    /// Discovery tells the versions that objects are stored in apart.
    StorageVersionHash,
    /// Requests to rewrite stored objects are served.
    StorageVersionMigrator,
    /// Addresses are not written in ways that other programs read differently.
    StrictIPCIDRValidation,
    /// A file says how requests are authenticated.
    StructuredAuthenticationConfiguration,
    /// Pods say which groups of their image count.
    SupplementalGroupsPolicy,
    /// Tolerations compare numbers.
    TaintTolerationComparisonOperators,
    /// Requests for tokens are held to the identity of the service account that they name.
    TokenRequestServiceAccountUIDValidation,
    /// Workloads and groups of pods say which parts of a topology they keep to.
    TopologyAwareWorkloadScheduling,
    /// Commands are run over WebSocket by kubelets that do not speak it.
    TranslateStreamCloseWebsocketRequests,
    /// Connections over HTTP/2 end with the first request of a client that does not say who it is.
    UnauthenticatedHTTP2DOSMitigation,
    /// Pods on the network of the host may have users of their own.
    UserNamespacesHostNetworkSupport,
    /// Pods have users of their own.
    UserNamespacesSupport,
    /// Volumes have classes of attributes that can change.
    VolumeAttributesClass,
    /// Drivers keep pods from nodes that they are missing on.
    VolumeLimitScaling,
    /// Watches can begin with the state, and say when it is complete.
    WatchList,
    /// Workloads and groups of pods have a priority, and are disrupted as a whole.
    WorkloadAwarePreemption,
    /// Jobs have groups of pods made for them.
    WorkloadWithJob,
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
