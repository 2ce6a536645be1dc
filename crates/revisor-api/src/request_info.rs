//! [`RequestInfo`]: what a request does to what, as authorization sees it. It looks at the request alone: whether there
//! is such a resource is not known to those who may not ask.

use std::borrow::Cow;

use http::{Method, Request};
use percent_encoding::percent_decode_str;
use revisor_auth::{Attributes, Identity, ResourceAttributes, Selectors};
use revisor_object::names::NameRule;
use revisor_object::{FieldSelector, LabelSelector};

use crate::query::Query;

/// What a request does, as far as its method, its path and its query say.
#[derive(Debug)]
pub(crate) struct RequestInfo<'a> {
    path: Cow<'a, str>,
    /// What the path is about, where nothing of it is encoded. Otherwise it is read anew where it is asked for, which
    /// hardly anybody makes necessary.
    plain: Option<Option<Parts<'a>>>,
    verb: Cow<'static, str>,
    /// The name that a selector asks for.
    selected: Option<String>,
    /// To what the request is limited.
    selectors: Option<Selectors>,
}

/// The segments of a path that is about resources.
#[derive(Debug, Clone, Copy)]
struct Parts<'p> {
    group: &'p str,
    version: &'p str,
    /// The verb, where the path begins with one.
    verb: Option<&'p str>,
    namespace: Option<&'p str>,
    resource: &'p str,
    name: Option<&'p str>,
    subresource: Option<&'p str>,
}

/// A path names a verb and nothing that it is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoResource;

impl<'a> RequestInfo<'a> {
    pub(crate) fn of<B>(request: &'a Request<B>) -> Result<RequestInfo<'a>, NoResource> {
        // As in the original, an encoded slash separates like any other.
        let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
        let plain = match &path {
            Cow::Borrowed(path) => Some(Parts::of(path)?),
            Cow::Owned(_) => None,
        };
        let parts = match plain {
            Some(parts) => parts,
            None => Parts::of(&path)?,
        };
        let Some(parts) = parts else {
            let verb = request.method().as_str().to_ascii_lowercase().into();
            return Ok(RequestInfo { path, plain, verb, selected: None, selectors: None });
        };
        let has_name = parts.name.is_some();
        let (mut selected, mut selectors) = (None, None);
        let verb = match (parts.verb, request.method()) {
            (Some(verb), _) => verb.to_owned().into(),
            (None, &Method::POST) => "create".into(),
            (None, &(Method::GET | Method::HEAD)) if has_name => "get".into(),
            (None, &(Method::GET | Method::HEAD)) => {
                let query = Query::parse(request.uri().query());
                selected = selected_name(&query);
                selectors = selectors_of(&query);
                if query.truth("watch") == Some(true) { "watch".into() } else { "list".into() }
            }
            (None, &Method::PUT) => "update".into(),
            (None, &Method::PATCH) => "patch".into(),
            (None, &Method::DELETE) if has_name => "delete".into(),
            (None, &Method::DELETE) => {
                selectors = selectors_of(&Query::parse(request.uri().query()));
                "deletecollection".into()
            }
            (None, _) => "".into(),
        };
        Ok(RequestInfo { path, plain, verb, selected, selectors })
    }

    /// What the path is about; `None` if it is a bare path.
    fn parts(&self) -> Option<Parts<'_>> {
        self.plain.unwrap_or_else(|| Parts::of(&self.path).expect("was looked at when the information was made"))
    }

    /// Whether it may last as long as its client likes, and so counts neither for seats nor for time (upstream:
    /// `BasicLongRunningRequestCheck`).
    pub(crate) fn is_long_running(&self) -> bool {
        let Some(parts) = self.parts() else { return self.path.starts_with("/debug/pprof/") };
        let is_long_part = |part: &str| matches!(part, "attach" | "exec" | "proxy" | "log" | "portforward");
        matches!(&*self.verb, "watch" | "proxy") || parts.subresource.is_some_and(is_long_part)
    }

    /// Whether changes are asked for.
    pub(crate) fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// What is asked, if it is `user` who asks.
    pub(crate) fn attributes<'s>(&'s self, user: &'s Identity) -> Attributes<'s> {
        let resource = self.parts().map(|parts| ResourceAttributes {
            group: parts.group,
            version: parts.version,
            resource: parts.resource,
            subresource: parts.subresource,
            namespace: parts.namespace,
            name: parts.name.or(self.selected.as_deref()),
            selectors: self.selectors.as_ref(),
        });
        Attributes { user, verb: &self.verb, path: &self.path, resource }
    }
}

impl<'p> Parts<'p> {
    /// The parts of a path that is about resources; `None` if it is a bare path.
    fn of(path: &'p str) -> Result<Option<Parts<'p>>, NoResource> {
        let mut segments = path.trim_matches('/').split('/');
        let group = match segments.next() {
            Some("api") => Some(""),
            Some("apis") => segments.next(),
            _ => None,
        };
        let (Some(group), Some(version), Some(mut resource)) = (group, segments.next(), segments.next()) else {
            return Ok(None);
        };
        let mut verb = None;
        if matches!(resource, "watch" | "proxy") {
            verb = Some(resource);
            resource = segments.next().ok_or(NoResource)?;
        }
        let (mut namespace, mut name, mut subresource) = (None, segments.next(), segments.next());
        if resource == "namespaces" {
            namespace = name;
            // `namespaces/NAME/status` is about the namespace, `namespaces/NAME/pods` about what is in it.
            if let Some(inner) = subresource.filter(|part| !matches!(*part, "status" | "finalize")) {
                (resource, name, subresource) = (inner, segments.next(), segments.next());
            }
        }
        let given = |text: Option<&'p str>| text.filter(|text| !text.is_empty());
        let subresource = given(subresource).filter(|_| verb != Some("proxy"));
        let (namespace, name) = (given(namespace), given(name));
        Ok(Some(Parts { group, version, verb, namespace, resource, name, subresource }))
    }
}

/// To what a request is limited. What cannot be read limits nothing, as in the original.
fn selectors_of(query: &Query<'_>) -> Option<Selectors> {
    let selectors = Selectors {
        fields: query.text("fieldSelector").parse().unwrap_or_default(),
        labels: query.text("labelSelector").parse().unwrap_or_default(),
    };
    (!selectors.is_everything()).then_some(selectors)
}

/// The one name that a list is limited to: who may get that object may be let list it. Options that cannot be read say
/// nothing.
pub(crate) fn selected_name(query: &Query<'_>) -> Option<String> {
    let selector: FieldSelector = query.text("fieldSelector").parse().ok()?;
    let name = selector.exact("metadata.name")?;
    let is_readable = query.number("limit").is_ok()
        && query.number("timeoutSeconds").is_ok()
        && query.text("labelSelector").parse::<LabelSelector>().is_ok();
    let is_name = !name.is_empty() && NameRule::PathSegment.check(name).is_empty();
    (is_readable && is_name).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `verb group/version resource/subresource namespace name`, or `verb path`.
    fn shown(method: &str, uri: &str) -> String {
        let request = Request::builder().method(method).uri(uri).body(()).expect("a request");
        let user = Identity::anonymous();
        let Ok(info) = RequestInfo::of(&request) else { return "about nothing".to_owned() };
        let Attributes { verb, path, resource, .. } = info.attributes(&user);
        let Some(resource) = resource else { return format!("{verb} {path}") };
        let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
        format!(
            "{verb} {}/{} {}/{} {} {}",
            resource.group,
            resource.version,
            resource.resource,
            or_dash(resource.subresource),
            or_dash(resource.namespace),
            or_dash(resource.name)
        )
    }

    #[test]
    fn requests_are_about_what_the_original_says() {
        for (method, uri, want) in [
            ("GET", "/", "get /"),
            ("GET", "/healthz", "get /healthz"),
            ("POST", "/metrics", "post /metrics"),
            ("GET", "/api", "get /api"),
            ("GET", "/api/v1", "get /api/v1"),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
            ("GET", "/apis/apps/v1/", "get /apis/apps/v1/"),
            ("GET", "/apis/nobody.knows/v1/things", "list nobody.knows/v1 things/- - -"),
            ("GET", "/api/v1/pods", "list /v1 pods/- - -"),
            ("HEAD", "/api/v1/pods", "list /v1 pods/- - -"),
            ("GET", "/api/v1/pods?watch=1", "watch /v1 pods/- - -"),
            ("GET", "/api/v1/pods?watch=false", "list /v1 pods/- - -"),
            ("GET", "/api/v1/pods?watch=1&limit=x", "watch /v1 pods/- - -"),
            ("GET", "/api/v1/namespaces/n/pods", "list /v1 pods/- n -"),
            ("GET", "/api/v1/namespaces/n/pods/p", "get /v1 pods/- n p"),
            ("GET", "/api/v1/namespaces/n/pods/p?watch=1", "get /v1 pods/- n p"),
            ("GET", "/api/v1/namespaces/n/pods/p/log", "get /v1 pods/log n p"),
            ("POST", "/api/v1/namespaces/n/pods/p/proxy/a/b", "create /v1 pods/proxy n p"),
            ("POST", "/api/v1/namespaces/n/pods", "create /v1 pods/- n -"),
            ("PUT", "/api/v1/namespaces/n/pods/p", "update /v1 pods/- n p"),
            ("PATCH", "/apis/apps/v1/namespaces/n/deployments/d/scale", "patch apps/v1 deployments/scale n d"),
            ("DELETE", "/api/v1/namespaces/n/pods/p", "delete /v1 pods/- n p"),
            ("DELETE", "/api/v1/namespaces/n/pods", "deletecollection /v1 pods/- n -"),
            ("OPTIONS", "/api/v1/namespaces/n/pods", " /v1 pods/- n -"),
            ("GET", "/api/v1/namespaces", "list /v1 namespaces/- - -"),
            ("GET", "/api/v1/namespaces/n", "get /v1 namespaces/- n n"),
            ("PUT", "/api/v1/namespaces/n/finalize", "update /v1 namespaces/finalize n n"),
            ("GET", "/api/v1/watch", "about nothing"),
            ("GET", "/apis/a.b/v1/proxy/", "about nothing"),
            ("GET", "/api/v1/watch/pods", "watch /v1 pods/- - -"),
            ("GET", "/api/v1/watch/namespaces/n/pods/p", "watch /v1 pods/- n p"),
            ("GET", "/api/v1/namespaces/n/pods/a%20b", "get /v1 pods/- n a b"),
            ("GET", "/api/v1/namespaces/n%2Fpods%2Fp", "get /v1 pods/- n p"),
            ("GET", "/api/v1/namespaces//pods", "list /v1 pods/- - -"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da", "list /v1 pods/- - a"),
            ("GET", "/api/v1/pods?fieldSelector=a%3Db,metadata.name%3D%3Da&watch=1", "watch /v1 pods/- - a"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name!%3Da", "list /v1 pods/- - -"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da%2Fb", "list /v1 pods/- - -"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da&limit=x", "list /v1 pods/- - -"),
            ("DELETE", "/api/v1/namespaces/n/pods?fieldSelector=metadata.name%3Da", "deletecollection /v1 pods/- n -"),
        ] {
            assert_eq!(shown(method, uri), want, "{method} {uri}");
        }
    }
}
