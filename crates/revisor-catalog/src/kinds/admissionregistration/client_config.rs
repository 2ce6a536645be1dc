//! How a webhook is reached: by the address of a server, or as a service of the cluster.

use revisor_object::names::{dns1123_subdomain, port_number};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Url, Value};

use crate::checks::required;

/// What is wrong with the client's configuration of a webhook.
pub(in crate::kinds) fn validate_client_config(path: FieldPath<'_>, config: Option<&Object>) -> FieldErrors {
    let url = config.and_then(|config| config.str("url"));
    let service = config.and_then(|config| config.object("service"));
    match (url, service) {
        (Some(url), None) => validate_url(path.child("url"), url),
        (None, Some(service)) => validate_service(path.child("service"), service),
        _ => FieldErrors::from([FieldError::required(path, "exactly one of url or service is required")]),
    }
}

fn validate_url(path: FieldPath<'_>, text: &str) -> FieldErrors {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(problem) => {
            let detail = format!("url must be a valid URL: parse {text:?}: {problem}{FORM}");
            return FieldErrors::from([FieldError::required(path, detail)]);
        }
    };
    let mut errors = FieldErrors::new();
    let mut invalid = |value: &str, detail: String| errors.push(FieldError::invalid(path, value, detail));
    if url.scheme != "https" {
        invalid(&url.scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        invalid("", format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        invalid(user, "user information is not permitted in the URL".to_owned());
    }
    if !url.fragment.is_empty() {
        invalid(&url.fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !url.query.is_empty() {
        invalid(&url.query, "query parameters are not permitted in the URL".to_owned());
    }
    errors
}

fn validate_service(path: FieldPath<'_>, service: &Object) -> FieldErrors {
    let text = |name| service.str(name).unwrap_or_default();
    let mut errors = FieldErrors::new();
    // The original mixes these two up, and clients see it.
    errors.extend(required(path.child("name"), text("namespace")));
    errors.extend(required(path.child("namespace"), text("name")));
    let port = service.get("port").and_then(Value::as_i64).unwrap_or_default();
    let problems = port_number(port);
    if !problems.is_empty() {
        let detail = format!("port is not valid: {}", problems.join(", "));
        errors.push(FieldError::invalid(path.child("port"), port, detail));
    }
    validate_path(path.child("path"), text("path"), &mut errors);
    errors
}

fn validate_path(path: FieldPath<'_>, text: &str, errors: &mut FieldErrors) {
    if matches!(text, "" | "/") {
        return;
    }
    let mut invalid = |detail: String| errors.push(FieldError::invalid(path, text, detail));
    if text == "//" {
        return invalid("segment[0] may not be empty".to_owned());
    }
    if !text.starts_with('/') {
        invalid("must start with a '/'".to_owned());
    }
    // Where there is no slash in front, the first letter is passed over in its place.
    let rest = &text[text.chars().next().map_or(0, char::len_utf8)..];
    for (at, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            invalid(format!("segment[{at}] may not be empty"));
            continue;
        }
        for problem in dns1123_subdomain(step) {
            invalid(format!("segment[{at}]: {problem}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn a_webhook_is_reached_in_one_way() {
        let url = "FieldValueInvalid c.url";
        let at_path = "FieldValueInvalid c.service.path";
        for (config, want) in [
            (r#"{"url":"https://a.example/x"}"#, &[][..]),
            (r#"{"service":{"namespace":"n","name":"s","port":443,"path":"/a/b/"}}"#, &[]),
            ("{}", &["FieldValueRequired c"]),
            (r#"{"url":"https://a","service":{}}"#, &["FieldValueRequired c"]),
            (r#"{"url":"http://a"}"#, &[url]),
            (r#"{"url":"https:///x"}"#, &[url]),
            (r#"{"url":"https://u@a"}"#, &[url]),
            (r##"{"url":"https://a?b#c"}"##, &[url, url]),
            (r#"{"url":"a"}"#, &[url, url]),
            (r#"{"url":"https://a b"}"#, &["FieldValueRequired c.url"]),
            (r#"{"service":{"name":"s","port":443}}"#, &["FieldValueRequired c.service.name"]),
            (r#"{"service":{"namespace":"n","port":443}}"#, &["FieldValueRequired c.service.namespace"]),
            (r#"{"service":{"namespace":"n","name":"s","port":0}}"#, &["FieldValueInvalid c.service.port"]),
            (r#"{"service":{"namespace":"n","name":"s","port":1,"path":"//"}}"#, &[at_path]),
            (r#"{"service":{"namespace":"n","name":"s","port":1,"path":"ab"}}"#, &[at_path]),
            (r#"{"service":{"namespace":"n","name":"s","port":1,"path":"/a//B"}}"#, &[at_path, at_path]),
        ] {
            let parsed = object(config);
            check(config, &validate_client_config(FieldPath::root("c"), Some(&parsed)), want);
        }
    }
}
