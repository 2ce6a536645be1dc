//! The rules for the conversion of autoscalers, case by case.

use super::*;

fn read(text: &str) -> Object {
    match parse_json(text.as_bytes()).expect(text).value {
        Value::Object(object) => object,
        other => panic!("{other:?}"),
    }
}

fn text_of(object: &Object) -> String {
    Value::Object(object.clone()).to_json()
}

const CPU: &str =
    r#"{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":"Resource"}"#;

#[test]
fn the_utilization_of_the_processor_has_a_field() {
    for (v1, v2) in [
        (
            r#"{"metadata":{},"spec":{"targetCPUUtilizationPercentage":80}}"#,
            format!(r#"{{"metadata":{{}},"spec":{{"metrics":[{CPU}]}}}}"#),
        ),
        (r#"{"metadata":{},"spec":{}}"#, format!(r#"{{"metadata":{{}},"spec":{{"metrics":[{CPU}]}}}}"#)),
    ] {
        let mut object = read(v1);
        v1_to_v2(&mut object);
        assert_eq!(text_of(&object), v2);
        v2_to_v1(&mut object);
        assert_eq!(text_of(&object), r#"{"metadata":{},"spec":{"targetCPUUtilizationPercentage":80}}"#);
    }
}

#[test]
fn what_the_first_version_lacks_goes_to_annotations_and_comes_back() {
    let v2 = r#"{"metadata":{"annotations":{"a":"b"}},"spec":{"behavior":{"scaleDown":{"policies":[{"periodSeconds":30,"type":"Percent","value":10}],"selectPolicy":"Max","tolerance":"100m"},"scaleUp":{"policies":[{"periodSeconds":15,"type":"Pods","value":4}],"selectPolicy":"Min","stabilizationWindowSeconds":0}},"metrics":[{"resource":{"name":"memory","target":{"averageValue":"500Mi","type":"AverageValue"}},"type":"Resource"},{"containerResource":{"container":"c","name":"cpu","target":{"averageUtilization":60,"type":"Utilization"}},"type":"ContainerResource"},{"pods":{"metric":{"name":"requests","selector":{"matchExpressions":[{"key":"k","operator":"In","values":["<v>"]}]}},"target":{"averageValue":"1k","type":"AverageValue"}},"type":"Pods"},{"object":{"describedObject":{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","name":"i"},"metric":{"name":"hits","selector":{"matchLabels":{"a":"b"}}},"target":{"type":"Value","value":"10k"}},"type":"Object"},{"external":{"metric":{"name":"queue"},"target":{"type":"Value","value":"5"}},"type":"External"}]},"status":{"conditions":[{"lastTransitionTime":"2024-01-02T03:04:05Z","message":"m","reason":"R","status":"True","type":"AbleToScale"}],"currentMetrics":[{"resource":{"current":{"averageUtilization":40,"averageValue":"400Mi"},"name":"cpu"},"type":"Resource"},{"object":{"current":{"value":"1"},"describedObject":{"kind":"Service","name":"s"},"metric":{"name":"hits"}},"type":"Object"}],"desiredReplicas":3}}"#;
    let mut object = read(v2);
    v2_to_v1(&mut object);
    for (name, want) in [
        (
            METRICS,
            r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"500Mi"}},{"type":"ContainerResource","containerResource":{"name":"cpu","targetAverageUtilization":60,"container":"c"}},{"type":"Pods","pods":{"metricName":"requests","targetAverageValue":"1k","selector":{"matchExpressions":[{"key":"k","operator":"In","values":["\u003cv\u003e"]}]}}},{"type":"Object","object":{"target":{"kind":"Ingress","name":"i","apiVersion":"networking.k8s.io/v1"},"metricName":"hits","targetValue":"10k","selector":{"matchLabels":{"a":"b"}}}},{"type":"External","external":{"metricName":"queue","targetValue":"5"}}]"#,
        ),
        (
            BEHAVIOR,
            r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Min","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":10,"PeriodSeconds":30}],"Tolerance":"100m"}}"#,
        ),
        (
            CURRENT_METRICS,
            r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":40,"currentAverageValue":"400Mi"}},{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"hits","currentValue":"1"}}]"#,
        ),
        (
            CONDITIONS,
            r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2024-01-02T03:04:05Z","reason":"R","message":"m"}]"#,
        ),
    ] {
        assert_eq!(object.at(&["metadata", "annotations", name]).and_then(Value::as_str), Some(want), "{name}");
    }
    assert_eq!(text_of(spec(&object)), "{}");
    assert_eq!(text_of(status(&object)), r#"{"currentCPUUtilizationPercentage":40,"desiredReplicas":3}"#);
    v1_to_v2(&mut object);
    assert_eq!(text_of(&object), v2);
}

#[test]
fn annotations_that_make_no_sense_are_dropped() {
    for annotations in [
        r#"{"autoscaling.alpha.kubernetes.io/metrics":"no JSON"}"#,
        r#"{"autoscaling.alpha.kubernetes.io/metrics":"{}"}"#,
        r#"{"autoscaling.alpha.kubernetes.io/metrics":"[{\"type\":\"Resource\",\"resource\":{\"name\":7}}]"}"#,
        r#"{"autoscaling.alpha.kubernetes.io/behavior":"{\"ScaleUp\":{\"Policies\":{}}}"}"#,
        r#"{"autoscaling.alpha.kubernetes.io/behavior":"{}"}"#,
        r#"{"autoscaling.alpha.kubernetes.io/scale-up-tolerance":"1"}"#,
    ] {
        let mut object = read(&format!(r#"{{"metadata":{{"annotations":{annotations}}},"spec":{{}}}}"#));
        v1_to_v2(&mut object);
        assert_eq!(text_of(&object), format!(r#"{{"metadata":{{}},"spec":{{"metrics":[{CPU}]}}}}"#), "{annotations}");
    }
}

#[test]
fn an_average_of_an_object_has_no_value_of_zero() {
    let mut object = read(
        r#"{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"[{\"type\":\"Object\",\"object\":{\"target\":{\"kind\":\"S\",\"name\":\"s\"},\"metricName\":\"m\",\"targetValue\":\"0\",\"averageValue\":\"2\"}}]"}},"spec":{}}"#,
    );
    v1_to_v2(&mut object);
    let target = spec(&object).array("metrics")[0].as_object().and_then(|metric| metric.at(&["object", "target"]));
    assert_eq!(target.map(Value::to_json).as_deref(), Some(r#"{"averageValue":"2","type":"AverageValue"}"#));
}
