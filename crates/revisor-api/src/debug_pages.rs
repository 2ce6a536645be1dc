//! [`DebugPages`]: `/debug/pprof/*` and `/debug/flags/*`, for those who want to know what the server is doing.
//!
//! They are the original's as far as there is something to tell. What threads take of the processor can be profiled, in the
//! format of pprof.
//! What only Go's runtime has (goroutines, its heap, its traces) is answered with a status that says so.

mod cpu_profile;
mod profile_message;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tokio::time::Instant;

use crate::answer::{no_such_page, text};
use crate::query::Query;
use crate::request_body::read_body;
use crate::{Body, RequestBodyError};

/// How long a profile is taken for if the client does not say.
const DEFAULT_SECONDS: u64 = 30;

/// The longest value of a flag that is read.
const MAX_VALUE: usize = 1024;

/// How long a client may take to send one.
const VALUE_TIME: Duration = Duration::from_secs(10);

/// Tells `go tool pprof` that the text is an error, and not a profile.
const ERROR_MARK: HeaderName = HeaderName::from_static("x-go-pprof");

/// Sets how much is logged: answers what was done, or why it was not.
pub type SetVerbosity = Arc<dyn Fn(&str) -> Result<String, String> + Send + Sync>;

/// Answers requests for what the server is doing.
#[derive(Clone)]
pub struct DebugPages {
    set_verbosity: SetVerbosity,
    longest_profile: Duration,
    command_line: Option<String>,
}

impl DebugPages {
    /// Pages that set how much is logged by `set_verbosity`, and profile for no longer than `longest_profile`.
    pub fn new(set_verbosity: SetVerbosity, longest_profile: Duration) -> DebugPages {
        DebugPages { set_verbosity, longest_profile, command_line: None }
    }

    /// The same, which also tell how the program was started. As in the original, that is told on a socket of this machine
    /// only.
    #[must_use]
    pub fn with_command_line(self, command_line: String) -> DebugPages {
        DebugPages { command_line: Some(command_line), ..self }
    }

    /// Whether a path is about this.
    pub(crate) fn are_at(path: &str) -> bool {
        ["/debug/pprof", "/debug/flags"]
            .into_iter()
            .any(|page| path.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    /// The answer to a request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        match head.uri.path() {
            "/debug/pprof" => redirect("/debug/pprof/"),
            "/debug/pprof/" => page(index()),
            "/debug/pprof/profile" => self.profile(&Query::parse(head.uri.query())).await,
            // There are no addresses in profiles.
            "/debug/pprof/symbol" => text(StatusCode::OK, "num_symbols: 0\n"),
            "/debug/pprof/trace" => {
                error(StatusCode::NOT_IMPLEMENTED, "Could not enable tracing: there is no runtime of Go to be traced")
            }
            "/debug/pprof/cmdline" => match &self.command_line {
                Some(line) => text(StatusCode::OK, line.clone()),
                None => unknown_profile(),
            },
            "/debug/flags/v" if head.method == Method::PUT => self.set_verbosity(body).await,
            "/debug/flags/v" => text(StatusCode::NOT_ACCEPTABLE, "unsupported http method"),
            path if path.starts_with("/debug/flags") => page(FLAGS.to_owned()),
            path if path.starts_with("/debug/pprof/") => unknown_profile(),
            _ => no_such_page(),
        }
    }

    /// A profile of what the processor does, for as long as the client says (upstream: `pprof.Profile`).
    async fn profile(&self, query: &Query<'_>) -> Response<Body> {
        let seconds = query.text("seconds").parse().ok().filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_SECONDS);
        let time = Duration::from_secs(seconds);
        if time >= self.longest_profile {
            return error(StatusCode::BAD_REQUEST, "profile duration exceeds server's request timeout");
        }
        match cpu_profile::take(time).await {
            Ok(profile) => {
                let mut response = Response::new(Body::from(profile));
                let headers = response.headers_mut();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
                headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"profile\""));
                headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
                response
            }
            Err(problem) => {
                let message = format!("Could not enable CPU profiling: {problem}");
                error(StatusCode::INTERNAL_SERVER_ERROR, &message)
            }
        }
    }

    /// Sets how much is logged (upstream: `StringFlagPutHandler`).
    async fn set_verbosity<B>(&self, body: B) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let unreadable =
            |problem: RequestBodyError| text(StatusCode::BAD_REQUEST, format!("error reading request body: {problem}"));
        let value = match read_body(body, MAX_VALUE, Instant::now() + VALUE_TIME).await {
            Ok(value) => value,
            Err(problem) => return unreadable(problem),
        };
        match (self.set_verbosity)(&String::from_utf8_lossy(&value)) {
            Ok(done) => text(StatusCode::OK, done),
            Err(problem) => text(StatusCode::BAD_REQUEST, problem),
        }
    }
}

impl std::fmt::Debug for DebugPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DebugPages").field("longest_profile", &self.longest_profile).finish_non_exhaustive()
    }
}

/// What there is, and what it is for.
const PROFILES: [(&str, &str); 3] = [
    ("cmdline", "How the program was started; on the debug socket only"),
    ("profile", "What threads take of the processor, for 30 seconds or as many as ?seconds= says; for go tool pprof"),
    ("symbol", "The names of addresses; profiles have none"),
];

const FLAGS: &str = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n\
                     <table>\n<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";

fn index() -> String {
    let rows: String = PROFILES
        .iter()
        .map(|(name, purpose)| format!("<tr><td><a href=\"{name}\">{name}</a></td><td>{purpose}</td></tr>\n"))
        .collect();
    format!(
        "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n<table>\n{rows}</table>\n</body>\n\
         </html>\n"
    )
}

fn page(html: String) -> Response<Body> {
    let mut response = text(StatusCode::OK, html);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

fn redirect(to: &'static str) -> Response<Body> {
    let mut response = page(format!("<a href=\"{to}\">Found</a>.\n\n"));
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    response
}

fn unknown_profile() -> Response<Body> {
    error(StatusCode::NOT_FOUND, "Unknown profile")
}

fn error(code: StatusCode, problem: &str) -> Response<Body> {
    let mut response = text(code, format!("{problem}\n"));
    response.headers_mut().insert(ERROR_MARK, HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;

    #[tokio::test]
    async fn pages_are_the_originals_as_far_as_there_is_something_to_tell() {
        let set: SetVerbosity = Arc::new(|value| match value.parse::<u8>() {
            Ok(level) => Ok(format!("now {level}")),
            Err(error) => Err(error.to_string()),
        });
        let pages = DebugPages::new(set, Duration::from_secs(2));
        let local = pages.clone().with_command_line("revisor\0serve".to_owned());
        for (pages, method, path, body, code, want) in [
            (&pages, "GET", "/debug/pprof", "", 302, "Found"),
            (&pages, "GET", "/debug/pprof/", "", 200, "<a href=\"profile\">"),
            (&pages, "GET", "/debug/pprof/symbol", "", 200, "num_symbols: 0\n"),
            (&pages, "GET", "/debug/pprof/trace", "", 501, "no runtime of Go"),
            (&pages, "GET", "/debug/pprof/heap", "", 404, "Unknown profile\n"),
            (&pages, "GET", "/debug/pprof/cmdline", "", 404, "Unknown profile\n"),
            (&local, "GET", "/debug/pprof/cmdline", "", 200, "revisor\0serve"),
            (&pages, "GET", "/debug/pprof/profile", "", 400, "exceeds"),
            (&pages, "GET", "/debug/pprof/profile?seconds=3", "", 400, "exceeds"),
            (&pages, "GET", "/debug/pprof/profile?seconds=-1", "", 400, "exceeds"),
            (&pages, "GET", "/debug/flags", "", 200, "<tr>v<br>"),
            (&pages, "GET", "/debug/flags/w", "", 200, "<tr>v<br>"),
            (&pages, "GET", "/debug/flags/v", "", 406, "unsupported http method"),
            (&pages, "PUT", "/debug/flags/v", "4", 200, "now 4"),
            (&pages, "PUT", "/debug/flags/v", "loud", 400, "invalid digit"),
            (&pages, "PUT", "/debug/flags/v", &"9".repeat(2000), 400, "error reading request body"),
            (&pages, "GET", "/elsewhere", "", 404, "404 page not found\n"),
        ] {
            let request = Request::builder().method(method).uri(path);
            let request = request.body(Full::new(Bytes::from(body.to_owned()))).expect("a request");
            let response = pages.answer(request).await;
            assert_eq!(response.status(), code, "{method} {path}");
            let told = response.into_body().collect().await.expect("a body never fails").to_bytes();
            let told = String::from_utf8_lossy(&told);
            assert!(told.contains(want), "{method} {path}: {told}");
        }
    }

    #[test]
    fn paths_are_known_by_their_first_parts() {
        for (path, want) in [
            ("/debug/pprof", true),
            ("/debug/pprof/", true),
            ("/debug/flags/v", true),
            ("/debug/pprofx", false),
            ("/debug/api_priority_and_fairness/dump_queues", false),
        ] {
            assert_eq!(DebugPages::are_at(path), want, "{path}");
        }
    }
}
