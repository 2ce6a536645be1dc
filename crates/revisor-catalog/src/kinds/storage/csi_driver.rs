//! Drivers of storage: what each can do and wants to be told.

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value};

use crate::checks::{self, immutable};
use crate::{Circumstances, Feature, Features, Part, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// What a driver must say about itself, and how the original calls it in errors. Defaults say it if nobody does.
const REQUIRED: &[(&str, &str)] = &[
    ("attachRequired", "attachedRequired"),
    ("podInfoOnMount", "podInfoOnMount"),
    ("storageCapacity", "storageCapacity"),
];

const TOKENS_IN_SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to \
                                 true to prevent possible logging of tokens in volume attributes";

/// Members that are features, and what they are if nobody says it.
const GATED: &[(Feature, &str, Option<bool>)] = &[
    (Feature::SELinuxMountReadWriteOncePod, "seLinuxMount", Some(false)),
    (Feature::MutableCSINodeAllocatableCount, "nodeAllocatableUpdatePeriodSeconds", None),
    (Feature::CSIServiceAccountTokenSecrets, "serviceAccountTokenInSecrets", None),
    (Feature::VolumeLimitScaling, "preventPodSchedulingIfMissing", Some(false)),
];

pub(crate) struct CsiDrivers {
    pub(crate) features: Features,
}

impl Strategy for CsiDrivers {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        for (feature, name, default) in GATED {
            if let Some(default) = default
                && self.features.has(*feature)
                && !spec.contains(name)
            {
                spec.insert(name, *default);
            }
        }
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, _: Part<'_>, _: Circumstances<'_>) {
        // Unlike others, drivers only begin to count with their first change.
        if object.get("spec") != old.get("spec") {
            let before = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
            object.object_mut("metadata").insert("generation", before + 1);
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        let mut errors = FieldErrors::new();
        for (name, path) in REQUIRED {
            if !spec.contains(name) {
                errors.push(FieldError::required(SPEC.child(path), ""));
            }
        }
        if let Some(policy) = spec.str("fsGroupPolicy") {
            let policies = &["File", "None", "ReadWriteOnceWithFSType"];
            errors.extend(checks::one_of(SPEC.child("fsGroupPolicy"), policy, policies));
        }
        errors.extend(validate_tokens(SPEC.child("tokenRequests"), spec.array("tokenRequests")));
        for mode in spec.array("volumeLifecycleModes").iter().filter_map(Value::as_str) {
            errors.extend(checks::one_of(SPEC.child("volumeLifecycleModes"), mode, &["Persistent", "Ephemeral"]));
        }
        for (feature, name, default) in GATED {
            if default.is_some() && self.features.has(*feature) && !spec.contains(name) {
                errors.push(FieldError::required(SPEC.child(name), ""));
            }
        }
        if let Some(period) = spec.get("nodeAllocatableUpdatePeriodSeconds").and_then(Value::as_i64)
            && period < 10
        {
            let path = SPEC.child("nodeAllocatableUpdatePeriodSeconds");
            errors.push(FieldError::invalid(path, period, "must be greater than or equal to 10 seconds"));
        }
        if let Some(given) = spec.get("serviceAccountTokenInSecrets")
            && spec.array("tokenRequests").is_empty()
        {
            let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
            let path = SPEC.child("serviceAccountTokenInSecrets");
            errors.push(FieldError::invalid(path, BadValue::of(given), detail));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = self.validate(object);
        for (name, path) in [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")] {
            errors.extend(immutable(SPEC.child(path), object.at(&["spec", name]), old.at(&["spec", name])));
        }
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let tokens = |object: &Object| object.at(&["spec", "tokenRequests"]).cloned();
        let requests = tokens(object);
        let changed = old.is_none_or(|old| tokens(old) != requests);
        let in_secrets = object.at(&["spec", "serviceAccountTokenInSecrets"]).is_some();
        let is_advised = self.features.has(Feature::CSIServiceAccountTokenSecrets);
        if is_advised && requests.is_some() && changed && !in_secrets {
            vec![TOKENS_IN_SECRETS.to_owned()]
        } else {
            Vec::new()
        }
    }
}

fn validate_tokens(path: FieldPath<'_>, requests: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut audiences = Seen::default();
    for (at, request) in requests.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let audience = request.str("audience").unwrap_or_default();
        if !audiences.is_new(audience) {
            errors.push(FieldError::duplicate(path.child("audience"), audience));
            continue;
        }
        let Some(seconds) = request.get("expirationSeconds").and_then(Value::as_i64) else { continue };
        let path = path.child("expirationSeconds");
        if seconds < 600 {
            errors.push(FieldError::invalid(path, seconds, "may not specify a duration less than 10 minutes"));
        }
        if seconds > 1 << 32 {
            errors.push(FieldError::invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn members_of_features_have_defaults_where_they_may_be() {
        for (feature, name, default) in GATED {
            let bare = object(r#"{"spec":{}}"#);
            let on = CsiDrivers { features: terms().features.with(*feature) };
            let off = CsiDrivers { features: terms().features.without(*feature) };
            for (drivers, want) in [(&on, *default), (&off, None)] {
                let mut new = bare.clone();
                drivers.default(&mut new);
                assert_eq!(new.at(&["spec", name]).and_then(Value::as_bool), want, "{feature:?}");
                let is_missing = |error: &FieldError| error.field == format!("spec.{name}");
                assert_eq!(drivers.validate(&bare).iter().any(is_missing), want.is_some(), "{feature:?}");
            }
        }
    }

    #[test]
    fn tokens_are_advised_to_be_secrets_where_they_can_be() {
        let driver = object(r#"{"spec":{"tokenRequests":[{}]}}"#);
        let on = terms().features;
        for (features, want) in [(on, 1), (on.without(Feature::CSIServiceAccountTokenSecrets), 0)] {
            assert_eq!(CsiDrivers { features }.warnings(&driver, None).len(), want);
        }
    }
}
