//! [`Route`]: what a path is about.

use std::sync::Arc;

use percent_encoding::percent_decode_str;

use crate::{Catalog, Resource, Unserved};

/// What a path is about.
#[derive(Debug, Clone)]
pub enum Route {
    /// Objects of the catalog.
    Objects(ObjectRoute),
    /// The versions of the core group: `/api`.
    CoreVersions,
    /// All groups: `/apis`.
    Groups,
    /// One group: `/apis/apps`.
    Group(String),
    /// The resources of one version of a group.
    Resources {
        /// The group; empty for the core group.
        group: String,
        /// The version.
        version: String,
    },
    /// A resource that is not served, of a group that is.
    NoSuchResource {
        /// What is defined there all the same.
        unserved: Vec<Unserved>,
        /// Whether the group has custom resources only: the original knows no page there, and answers with a text
        /// instead of a `Status`.
        is_custom: bool,
    },
    /// A part that objects of a custom resource do not have: the original says that the object is not there.
    NoSuchPart {
        /// The resource.
        resource: Arc<Resource>,
        /// The object.
        name: String,
    },
    /// Anything else.
    Other,
}

/// Objects of the catalog.
#[derive(Debug, Clone)]
pub struct ObjectRoute {
    /// Of this resource.
    pub resource: Arc<Resource>,
    /// In this namespace; `None` for all, and for kinds without.
    pub namespace: Option<String>,
    /// The one with this name; `None` for the collection.
    pub name: Option<String>,
    /// This part of it.
    pub subresource: Option<String>,
    /// Whether this is a `/watch/` path of old.
    pub is_watch_path: bool,
}

impl ObjectRoute {
    /// Whether this is about objects of this resource, or a part of one.
    pub fn is_about(&self, group: &str, plural: &str) -> bool {
        self.resource.group == group && self.resource.plural == plural
    }
}

impl Route {
    /// Reads a path as it stands in the request line, without the query.
    pub fn parse(catalog: &Catalog, path: &str) -> Route {
        // As in the original, an encoded slash separates like any other. What is no UTF-8 names nothing that there is.
        let path = percent_decode_str(path).decode_utf8_lossy();
        let Some(path) = path.strip_prefix('/') else { return Route::Other };
        let segments: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let (group, rest) = match segments.as_slice() {
            ["api"] => return Route::CoreVersions,
            ["apis"] => return Route::Groups,
            ["api", rest @ ..] => ("", rest),
            ["apis", group] if catalog.has_group(group) && !group.is_empty() => {
                return Route::Group((*group).to_owned());
            }
            ["apis", group, rest @ ..] if !group.is_empty() => (*group, rest),
            _ => return Route::Other,
        };
        let [version, rest @ ..] = rest else { return Route::Other };
        let address = Address::parse(rest);
        let missing = || {
            let plural = address.as_ref().map(|address| address.plural);
            let is_about_some = plural.is_some() || rest.is_empty();
            let unserved = if is_about_some { catalog.unserved(group, version, plural) } else { Vec::new() };
            Route::NoSuchResource { unserved, is_custom: !catalog.has_built_in(group) }
        };
        if catalog.group_version(group, version).is_none() {
            // An unknown group could be anything; an unknown version of a known group is an API that is not served.
            // A definition that serves none of its versions makes no group; who asks for one is told so all the same.
            return if catalog.has_group(group) || catalog.hides_in(group) { missing() } else { Route::Other };
        }
        if rest.is_empty() {
            return Route::Resources { group: group.to_owned(), version: (*version).to_owned() };
        }
        let found = address.as_ref().and_then(|address| address.find(catalog, group, version));
        if let (None, Some(address)) = (&found, &address)
            && let Some(route) = address.without_part().find(catalog, group, version)
            && let Some(name) =
                route.name.filter(|_| address.subresource.is_some() && route.resource.custom().is_some())
        {
            return Route::NoSuchPart { resource: route.resource, name };
        }
        found.map_or_else(missing, Route::Objects)
    }
}

/// What a path says behind the version, whether there is such a thing or not.
struct Address<'p> {
    is_watch_path: bool,
    namespace: Option<&'p str>,
    plural: &'p str,
    name: Option<&'p str>,
    subresource: Option<&'p str>,
}

impl<'p> Address<'p> {
    fn parse(segments: &[&'p str]) -> Option<Address<'p>> {
        let (is_watch_path, segments) = match segments {
            ["watch", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        // `namespaces/NAME/status` is about the namespace, `namespaces/NAME/configmaps` about what is in it.
        let (namespace, segments) = match segments {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, segments),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match segments {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
            // What is behind a proxy has paths of its own.
            [plural, name, "proxy", ..] => (*plural, Some(*name), Some("proxy")),
            _ => return None,
        };
        Some(Address { is_watch_path, namespace, plural, name, subresource })
    }

    /// The same without the part of the object.
    fn without_part(&self) -> Address<'p> {
        Address { subresource: None, ..*self }
    }

    /// The objects that are there.
    fn find(&self, catalog: &Catalog, group: &str, version: &str) -> Option<ObjectRoute> {
        let Address { is_watch_path, namespace, plural, name, subresource } = *self;
        let resource = catalog.resource(group, version, plural)?;
        // A collection in a namespace without a name is the one over all namespaces.
        let namespace = namespace.filter(|namespace| !(namespace.is_empty() && name.is_none() && resource.namespaced));
        let segments = [Some(plural), name, subresource, namespace];
        let is_whole_path = segments.into_iter().flatten().all(|segment| !segment.is_empty());
        let scope_fits = match namespace {
            Some(_) => resource.namespaced,
            None => !resource.namespaced || name.is_none(),
        };
        let subresource_exists = subresource.is_none_or(|name| resource.subresource(name).is_some());
        if !is_whole_path || !scope_fits || !subresource_exists || (is_watch_path && subresource.is_some()) {
            return None;
        }
        Some(ObjectRoute {
            resource: resource.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            is_watch_path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str) -> String {
        match Route::parse(&Catalog::default(), path) {
            Route::Objects(ObjectRoute { resource, namespace, name, subresource, is_watch_path }) => format!(
                "{}{} ns={} name={} sub={}",
                if is_watch_path { "watch " } else { "" },
                resource.plural,
                namespace.unwrap_or_default(),
                name.unwrap_or_default(),
                subresource.unwrap_or_default()
            ),
            Route::CoreVersions => "core versions".to_owned(),
            Route::Groups => "groups".to_owned(),
            Route::Group(group) => format!("group {group}"),
            Route::Resources { group, version } => format!("resources {group} {version}"),
            Route::NoSuchResource { .. } => "no such resource".to_owned(),
            Route::NoSuchPart { resource, name } => format!("no such part of {} {name}", resource.plural),
            Route::Other => "other".to_owned(),
        }
    }

    #[test]
    fn paths_are_about_what_the_original_says() {
        for (path, want) in [
            ("/api", "core versions"),
            ("/api/v1", "resources  v1"),
            ("/api/v1/", "resources  v1"),
            ("/apis", "groups"),
            ("/apis/coordination.k8s.io", "group coordination.k8s.io"),
            ("/apis/nope.io", "other"),
            ("/apis/nope.io/v1/things", "other"),
            ("/apis/coordination.k8s.io/v9/leases", "no such resource"),
            ("/apis/coordination.k8s.io/v1/leases", "leases ns= name= sub="),
            ("/api/v1/configmaps", "configmaps ns= name= sub="),
            ("/api/v1/configmaps/a", "no such resource"),
            ("/api/v1/namespaces/n/configmaps", "configmaps ns=n name= sub="),
            ("/api/v1/namespaces/n/configmaps/a", "configmaps ns=n name=a sub="),
            ("/api/v1/namespaces/n/configmaps/a/b", "no such resource"),
            ("/api/v1/namespaces/n/configmaps/a%2Fb", "no such resource"),
            ("/api/v1/namespaces/n/configmaps/a%20b", "configmaps ns=n name=a b sub="),
            ("/api/v1/namespaces/n/pods/p/eviction", "pods ns=n name=p sub=eviction"),
            ("/api/v1/namespaces/n/pods/p/proxy/a//b", "pods ns=n name=p sub=proxy"),
            ("/api/v1/namespaces/n/pods/p/log/a", "no such resource"),
            ("/api/v1/namespaces/n", "namespaces ns= name=n sub="),
            ("/api/v1/namespaces/n/status", "namespaces ns= name=n sub=status"),
            ("/api/v1/namespaces/n/finalize", "namespaces ns= name=n sub=finalize"),
            ("/api/v1/namespaces/n/namespaces/m", "no such resource"),
            ("/api/v1/watch/namespaces/n/configmaps", "watch configmaps ns=n name= sub="),
            ("/api/v1/watch/namespaces/n/configmaps/a", "watch configmaps ns=n name=a sub="),
            ("/api/v1/watch/namespaces", "watch namespaces ns= name= sub="),
            ("/api/v1/watch/configmaps", "watch configmaps ns= name= sub="),
            ("/api/v1/nothings", "no such resource"),
            ("/api/v1/namespaces//configmaps", "configmaps ns= name= sub="),
            ("/api/v1/namespaces//configmaps/a", "no such resource"),
            ("/api/v1/namespaces//nodes", "no such resource"),
            ("/api/v1/%ff", "no such resource"),
            ("/api/v1/namespaces/n/configmaps/%ff", "configmaps ns=n name=\u{fffd} sub="),
            ("/api/v1/namespaces/n/configmaps//", "configmaps ns=n name= sub="),
            ("//api/v1/namespaces", "other"),
            ("/%ff", "other"),
            ("/", "other"),
            ("/foo", "other"),
            ("//", "other"),
        ] {
            assert_eq!(shown(path), want, "{path}");
        }
    }
}
