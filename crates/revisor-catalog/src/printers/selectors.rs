//! Labels and label selectors as tables show them.

use revisor_object::{Object, Value};

use super::fields::{object, objects, or, text, texts};

/// `a=b,c=d`, or `<none>`.
pub(super) fn labels(labels: Option<&Object>) -> String {
    let pairs: Vec<String> = labels.iter().flat_map(|labels| labels.iter()).map(pair).collect();
    or(&pairs.join(","), "<none>").to_owned()
}

fn pair((name, value): (&str, &Value)) -> String {
    format!("{name}={}", value.as_str().unwrap_or_default())
}

/// A selector in the notation of queries; `None` if it makes no sense.
pub(super) fn query(selector: Option<&Object>) -> Option<String> {
    let Some(selector) = selector else { return Some(String::new()) };
    let mut terms: Vec<(&str, String)> = Vec::new();
    for (name, value) in object(selector, "matchLabels").iter().flat_map(|labels| labels.iter()) {
        terms.push((name, pair((name, value))));
    }
    for expression in objects(selector, "matchExpressions") {
        let name = text(expression, "key");
        let mut values = texts(expression, "values");
        values.sort_unstable();
        let term = match (text(expression, "operator"), values.is_empty()) {
            ("In", false) => format!("{name} in ({})", values.join(",")),
            ("NotIn", false) => format!("{name} notin ({})", values.join(",")),
            ("Exists", true) => name.to_owned(),
            ("DoesNotExist", true) => format!("!{name}"),
            _ => return None,
        };
        terms.push((name, term));
    }
    terms.sort_by_key(|(name, _)| *name);
    Some(terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(","))
}

/// A selector in the notation of queries, or what stands for none.
pub(super) fn selector(selector: Option<&Object>) -> String {
    query(selector).map_or_else(|| "<error>".to_owned(), |query| or(&query, "<none>").to_owned())
}

/// A selector as the original's structs are shown in its logs, which is what the table of policy bindings has.
pub(super) fn structure(selector: &Object) -> String {
    let mut labels = String::new();
    for (name, value) in object(selector, "matchLabels").iter().flat_map(|labels| labels.iter()) {
        labels += &format!("{name}: {},", value.as_str().unwrap_or_default());
    }
    let mut expressions = String::new();
    for expression in objects(selector, "matchExpressions") {
        expressions += &format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            text(expression, "key"),
            text(expression, "operator"),
            texts(expression, "values").join(" ")
        );
    }
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
