//! ServiceCIDRs: the ranges from which services get their addresses, one per family.

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value, cidr_problems, parse_cidr_sloppy};

use crate::checks::problems;
use crate::strategy::spec_and_metadata_or_status;
use crate::{Feature, Features, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const IMMUTABLE: &str = "field is immutable";

pub(crate) struct ServiceCidrs {
    pub(crate) features: Features,
}

impl Strategy for ServiceCidrs {
    fn untouched(&self, part: Part<'_>) -> Places {
        // Earlier releases let the status be written with the rest.
        if part == Part::Whole && !self.features.has(Feature::ServiceCIDRStatusFieldWiping) {
            return &[];
        }
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_ranges(ranges(object))
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part != Part::Whole {
            return FieldErrors::new();
        }
        let path = SPEC.child("cidrs");
        let (new, was) = (ranges(object), ranges(old));
        let changed = |at: usize| FieldError::invalid(path.index(at), BadValue::of(&new[at]), IMMUTABLE);
        match (was.len(), new.len()) {
            (before, now) if before == now => (0..now).filter(|at| new[*at] != was[*at]).map(changed).collect(),
            // The other family may join.
            (1, 2) => {
                let mut errors: FieldErrors = (new[0] != was[0]).then(|| changed(0)).into_iter().collect();
                errors.extend(validate_ranges(new));
                errors
            }
            _ => {
                let shown = if new.is_empty() { BadValue::of(&Value::Null) } else { BadValue::of(&new) };
                FieldErrors::from([FieldError::invalid(path, shown, IMMUTABLE)])
            }
        }
    }
}

fn ranges(object: &Object) -> &[Value] {
    object.object("spec").map(|spec| spec.array("cidrs")).unwrap_or_default()
}

fn validate_ranges(ranges: &[Value]) -> FieldErrors {
    let path = SPEC.child("cidrs");
    if ranges.is_empty() {
        return FieldErrors::from([FieldError::required(path, "at least one CIDR required")]);
    }
    if ranges.len() > 2 {
        // The original shows its own idea of the spec.
        let shown = format!(r#"{{"CIDRs":{}}}"#, Value::from(ranges.to_vec()).to_json());
        return FieldErrors::from([FieldError::invalid(path, BadValue::Text(shown), "may only hold up to 2 values")]);
    }
    let texts = || ranges.iter().map(|range| range.as_str().unwrap_or_default());
    let mut errors: FieldErrors =
        texts().enumerate().flat_map(|(at, range)| problems(path.index(at), range, cidr_problems(range))).collect();
    let families: Vec<bool> = texts().filter_map(parse_cidr_sloppy).map(|range| range.network().is_ipv6()).collect();
    if matches!(families.as_slice(), [one, two] if one == two) {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(path, BadValue::of(&ranges), detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::terms;
    use revisor_object::parse_json;

    fn cidrs() -> ServiceCidrs {
        ServiceCidrs { features: terms().features }
    }

    fn object(ranges: &str) -> Object {
        let text = format!(r#"{{"spec":{{"cidrs":{ranges}}}}}"#);
        let value = parse_json(text.as_bytes()).expect("is JSON").value;
        value.as_object().expect("is an object").clone()
    }

    fn fields(errors: FieldErrors) -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn there_is_one_range_per_family() {
        for (ranges, want) in [
            (r#"["10.0.0.0/24"]"#, vec![]),
            (r#"["10.0.0.0/24","2001:db8::/108"]"#, vec![]),
            ("[]", vec!["spec.cidrs"]),
            (r#"["10.0.0.0/24","10.1.0.0/24"]"#, vec!["spec.cidrs"]),
            (r#"["10.0.0.1/24","x"]"#, vec!["spec.cidrs[0]", "spec.cidrs[1]"]),
            (r#"["10.0.0.0/24","2001:db8::/108","10.1.0.0/24"]"#, vec!["spec.cidrs"]),
        ] {
            assert_eq!(fields(cidrs().validate(&object(ranges))), want, "{ranges}");
        }
    }

    #[test]
    fn ranges_stay_but_the_other_family_may_join() {
        for (old, new, want) in [
            (r#"["10.0.0.0/24"]"#, r#"["10.0.0.0/24"]"#, vec![]),
            (r#"["10.0.0.0/24"]"#, r#"["10.0.0.0/24","2001:db8::/108"]"#, vec![]),
            (r#"["10.0.0.0/24"]"#, r#"["10.1.0.0/24"]"#, vec!["spec.cidrs[0]"]),
            (r#"["10.0.0.0/24"]"#, r#"["2001:db8::/108","10.0.0.0/24"]"#, vec!["spec.cidrs[0]"]),
            (r#"["10.0.0.0/24","2001:db8::/108"]"#, r#"["10.0.0.0/24"]"#, vec!["spec.cidrs"]),
            (r#"["10.0.0.0/24"]"#, "[]", vec!["spec.cidrs"]),
        ] {
            let errors = cidrs().validate_update(&object(new), &object(old), Part::Whole);
            assert_eq!(fields(errors), want, "{old} to {new}");
        }
    }

    #[test]
    fn the_status_is_apart_where_the_feature_is_on() {
        for (is_on, want) in [(true, None), (false, Some("True"))] {
            let features = terms().features;
            let gate = Feature::ServiceCIDRStatusFieldWiping;
            let features = if is_on { features.with(gate) } else { features.without(gate) };
            let mut new = object("[]");
            new.object_mut("status").insert("ready", "True");
            let nobody = crate::Circumstances { now: "", requester: crate::Requester::default() };
            ServiceCidrs { features }.prepare_create(&mut new, nobody);
            assert_eq!(new.at(&["status", "ready"]).and_then(Value::as_str), want);
        }
    }
}
