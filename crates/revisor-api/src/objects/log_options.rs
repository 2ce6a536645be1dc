//! [`LogOptions`]: which part of a container's output a client asks for (upstream: `PodLogOptions`).

use revisor_object::{FieldError, FieldErrors};
use revisor_registry::RegistryError;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::query::Query;

/// The outputs that can be asked for.
const STREAMS: [&str; 3] = ["All", "Stderr", "Stdout"];

/// Where what is wrong with two of them together stands, as the original prints a path without a name.
const NOWHERE: &str = "[]";

/// What a client asks for.
#[derive(Debug, Clone)]
pub(super) struct LogOptions {
    pub(super) container: String,
    /// Whether whoever answers is believed.
    pub(super) skips_verification: bool,
    /// What the kubelet is told, in the order of names.
    query: Vec<(&'static str, String)>,
    errors: FieldErrors,
}

impl LogOptions {
    /// Reads a query. `has_streams` says whether outputs can be asked for apart.
    pub(super) fn read(query: &Query<'_>, has_streams: bool) -> Result<LogOptions, RegistryError> {
        let mut errors = FieldErrors::new();
        let mut told = Vec::new();
        for name in ["follow", "previous", "timestamps"] {
            if query.truth(name) == Some(true) {
                told.push((name, "true".to_owned()));
            }
        }
        for (name, least, detail) in
            [("tailLines", 0, "must be greater than or equal to 0"), ("limitBytes", 1, "must be greater than 0")]
        {
            let number = query.number(name)?;
            if let Some(number) = number.filter(|number| *number < least) {
                errors.push(FieldError::invalid(name, number, detail));
            }
            told.extend(number.map(|number| (name, number.to_string())));
        }
        let (seconds, since) = (query.number("sinceSeconds")?, since_time(query)?);
        match (seconds, &since) {
            (Some(_), Some(_)) => {
                let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                errors.push(FieldError::forbidden(NOWHERE, detail));
            }
            (Some(seconds), None) if seconds < 1 => {
                errors.push(FieldError::invalid("sinceSeconds", seconds, "must be greater than 0"));
            }
            _ => {}
        }
        told.extend(seconds.map(|seconds| ("sinceSeconds", seconds.to_string())));
        told.extend(since.map(|since| ("sinceTime", since)));
        let stream = query.all("stream").next();
        if has_streams {
            let stream = stream.unwrap_or(STREAMS[0]);
            if !STREAMS.contains(&stream) {
                errors.push(FieldError::not_supported("stream", stream, &STREAMS));
            }
            if stream != STREAMS[0] && query.number("tailLines")?.is_some() {
                let detail = "`tailLines` and specific `stream` are mutually exclusive for now";
                errors.push(FieldError::forbidden(NOWHERE, detail));
            }
            told.push(("stream", stream.to_owned()));
        } else if stream.is_some() {
            errors.push(FieldError::forbidden("stream", "may not be specified"));
        }
        told.sort_unstable();
        Ok(LogOptions {
            container: query.text("container").to_owned(),
            skips_verification: query.truth("insecureSkipTLSVerifyBackend") == Some(true),
            query: told,
            errors,
        })
    }

    /// What is wrong with it.
    pub(super) fn errors(&self) -> &FieldErrors {
        &self.errors
    }

    /// What the kubelet is told.
    pub(super) fn query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish()
    }
}

/// From when on, as the kubelet is told it.
fn since_time(query: &Query<'_>) -> Result<Option<String>, RegistryError> {
    let text = query.text("sinceTime");
    if text.is_empty() || text == "null" {
        return Ok(None);
    }
    let bad = || {
        let layout = "2006-01-02T15:04:05Z07:00";
        RegistryError::BadRequest(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
    };
    let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| bad())?;
    let time = time.to_offset(time::UtcOffset::UTC).replace_nanosecond(0).map_err(|_| bad())?;
    time.format(&Rfc3339).map(Some).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelet_is_told_what_the_client_asks_for() {
        for (query, want) in [
            ("", ""),
            ("follow=true&container=c&timestamps=1&previous=false", "follow=true&timestamps=true"),
            ("tailLines=0&limitBytes=7", "limitBytes=7&tailLines=0"),
            ("sinceTime=2026-01-02T03:04:05.6%2B01:00", "sinceTime=2026-01-02T02%3A04%3A05Z"),
            ("sinceSeconds=5", "sinceSeconds=5"),
        ] {
            let options = LogOptions::read(&Query::parse(Some(query)), false).expect(query);
            assert_eq!(options.query(), want, "{query}");
            assert!(options.errors().is_empty(), "{query}");
        }
        let options = LogOptions::read(&Query::parse(Some("stream=Stderr")), true).expect("is read");
        assert_eq!(options.query(), "stream=Stderr");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (query, has_streams, want) in [
            ("tailLines=-1&limitBytes=0", false, 2),
            ("sinceSeconds=0", false, 1),
            ("sinceSeconds=5&sinceTime=2026-01-02T03:04:05Z", false, 1),
            ("stream=Stdout", false, 1),
            ("stream=Nothing", true, 1),
            ("stream=Stdout&tailLines=5", true, 1),
        ] {
            let options = LogOptions::read(&Query::parse(Some(query)), has_streams).expect(query);
            assert_eq!(options.errors().len(), want, "{query}");
        }
        let query = Query::parse(Some("sinceSeconds=5&sinceTime=2026-01-02T03:04:05Z"));
        let together = LogOptions::read(&query, false).expect("is read");
        let fields: Vec<String> = together.errors().iter().map(|error| error.field.to_string()).collect();
        assert_eq!(fields, ["[]"]);
        for query in ["tailLines=x", "sinceTime=yesterday"] {
            assert!(LogOptions::read(&Query::parse(Some(query)), false).is_err(), "{query}");
        }
    }
}
