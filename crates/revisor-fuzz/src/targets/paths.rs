//! The paths of requests.

use revisor_catalog::Route;

use super::resources::catalog;

/// Any path is about something, and what it names has no slash in it.
pub(super) fn route(data: &[u8]) {
    let Ok(path) = std::str::from_utf8(data) else { return };
    let Route::Objects(route) = Route::parse(&catalog(), path) else { return };
    for part in [&route.namespace, &route.name, &route.subresource].into_iter().flatten() {
        assert!(!part.is_empty() && !part.contains('/'), "{path}: {part}");
    }
    assert!(route.namespace.is_none() || route.resource.namespaced, "{path}");
}
