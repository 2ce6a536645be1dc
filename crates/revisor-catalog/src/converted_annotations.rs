//! [`Resource::converted_annotations`]: annotations that the original makes of fields only where it shows an object in a
//! version. Where it shows no more than the metadata, it takes them from the object as it has it inside, without them.

use crate::Resource;

impl Resource {
    /// The annotations that are not seen where only the metadata of an object are shown.
    pub fn converted_annotations(&self) -> &'static [&'static str] {
        match (&*self.group, &*self.plural) {
            ("apps", "daemonsets") => &["deprecated.daemonset.template.generation"],
            ("apps", "deployments") => &["deprecated.deployment.rollback.to"],
            ("autoscaling", "horizontalpodautoscalers") => &[
                "autoscaling.alpha.kubernetes.io/behavior",
                "autoscaling.alpha.kubernetes.io/conditions",
                "autoscaling.alpha.kubernetes.io/current-metrics",
                "autoscaling.alpha.kubernetes.io/metrics",
            ],
            _ => &[],
        }
    }
}
