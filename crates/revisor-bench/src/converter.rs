//! What a conversion webhook for the widgets answers.

use serde_json::{Value, json};

use crate::widgets;

/// The answer to a ConversionReview.
pub(crate) fn review(mut review: Value) -> Value {
    let request = review["request"].take();
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let mut objects = match request.get("objects") {
        Some(Value::Array(objects)) => objects.clone(),
        _ => Vec::new(),
    };
    for object in &mut objects {
        widgets::rename(&mut object["spec"], wanted.ends_with(widgets::OTHER));
        object["apiVersion"] = json!(wanted);
    }
    json!({
        "apiVersion": review["apiVersion"],
        "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::widgets::{Conversion, spec};

    #[test]
    fn objects_are_converted_there_and_back() {
        let [old, new] = [None, Some(Conversion::Webhook)].map(|conversion| spec(7, conversion));
        for (wanted, from, to) in [("g/v2", &old, &new), ("g/v1", &new, &old)] {
            let answer = review(json!({"apiVersion": "apiextensions.k8s.io/v1", "request": {
                "uid": "u", "desiredAPIVersion": wanted, "objects": [{"apiVersion": "g/v", "spec": from}],
            }}));
            let response = &answer["response"];
            assert_eq!((&response["uid"], &response["result"]["status"]), (&json!("u"), &json!("Success")));
            assert_eq!(response["convertedObjects"], json!([{"apiVersion": wanted, "spec": to}]));
        }
    }
}
