//! The paths that are about the server, and not about objects.

use std::collections::BTreeSet;
use std::time::SystemTime;

use http::{HeaderMap, Method, Request, Response};
use revisor_auth::ServiceAccounts;
use revisor_object::Status;
use time::OffsetDateTime;

use super::{Api, ApiOptions, Asked};
use crate::encoding::Encoding;
use crate::metrics::exposition;
use crate::publication::Publication;
use crate::status_pages::{Circumstances, Page};
use crate::unread_body::UnreadBody;
use crate::{Body, DebugPages, answer, issuer, negotiate};

impl Api {
    /// The server's own paths.
    pub(super) async fn serve_other(&self, asked: &Asked, request: Request<UnreadBody>) -> Response<Body> {
        let (path, query) = (request.uri().path(), request.uri().query());
        if let Some(response) = self.options.health.answer(path, query) {
            return response;
        }
        let accounts = self.options.authenticator.service_accounts();
        if let Some(response) = accounts.and_then(|accounts| issuer::answer(accounts, &request, &asked.representation))
        {
            return response;
        }
        let flow_control = self.options.inflight.flow_control();
        if let Some(response) = flow_control.and_then(|control| control.dump(path, query)) {
            return response;
        }
        if let Some(page) = self.options.pages.page(path) {
            return self.serve_page(page, asked, request.headers());
        }
        if let Some(debug) = self.options.debug.as_ref().filter(|_| DebugPages::are_at(path)) {
            return debug.answer(request).await;
        }
        if let Some(rest) = path.strip_prefix("/openapi/v3").map(str::to_owned) {
            if let Some(registration) = self.publication().document_of_another(&rest) {
                return self.serve_aggregated(&registration, request).await;
            }
            return self
                .publish(asked, request, move |publication, request| {
                    publication.openapi_v3(&rest, request, SystemTime::now())
                })
                .await;
        }
        match path {
            "/openapi/v2" => self.publish(asked, request, |publication, request| publication.openapi_v2(request)).await,
            "/version" | "/version/" => self.serve_version(asked, &request),
            "/metrics" => self.options.metrics.response(),
            "/metrics/slis" => exposition(self.options.health.indicators()),
            "/" | "/index.html" => answer::raw_json(self.paths()),
            _ => answer::no_such_page(),
        }
    }

    /// A page of the server about itself.
    fn serve_page(&self, page: Page, asked: &Asked, headers: &HeaderMap) -> Response<Body> {
        let ApiOptions { registry, metrics, pages, .. } = &self.options;
        let catalog = registry.catalog();
        pages.answer(page, headers, &asked.representation, metrics, || Circumstances {
            now: OffsetDateTime::now_utc(),
            catalog: &catalog,
            clients: self.skewed_clients.list(),
            servers: registry.known_servers(),
        })
    }

    /// `/version`, which is JSON and nothing else.
    fn serve_version(&self, asked: &Asked, request: &Request<UnreadBody>) -> Response<Body> {
        if request.method() != Method::GET {
            return asked.representation.status(&Status::method_not_allowed());
        }
        let offered = [Encoding::Json.media_type()];
        if !negotiate::passes_route(request.headers(), &offered) {
            return asked.representation.status(&negotiate::route_refusal(&offered));
        }
        answer::raw_json(self.options.version.to_string().into())
    }

    /// `/`: where a person can go from here.
    fn paths(&self) -> bytes::Bytes {
        let own = [
            "/api",
            "/apis",
            "/apis/",
            "/metrics",
            "/metrics/slis",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/",
            "/version",
        ];
        let mut paths: BTreeSet<String> = own.map(str::to_owned).into();
        paths.extend(self.options.health.paths());
        paths.extend(self.options.pages.paths().map(str::to_owned));
        if self.options.authenticator.service_accounts().is_some_and(ServiceAccounts::is_published) {
            paths.extend(issuer::PATHS.map(str::to_owned));
        }
        for known in self.options.registry.catalog().group_versions() {
            if known.group.is_empty() {
                paths.insert(format!("/api/{}", known.version));
            } else {
                paths.insert(format!("/apis/{}", known.group));
                paths.insert(format!("/apis/{}/{}", known.group, known.version));
            }
        }
        serde_json::json!({"paths": paths}).to_string().into()
    }

    /// Answers where it holds up nobody: to describe thousands of kinds for the first time takes a while.
    async fn publish(
        &self,
        asked: &Asked,
        request: Request<UnreadBody>,
        answer: impl FnOnce(&Publication, &Request<()>) -> Response<Body> + Send + 'static,
    ) -> Response<Body> {
        let publication = self.publication();
        let request = Request::from_parts(request.into_parts().0, ());
        let answered = tokio::task::spawn_blocking(move || answer(&publication, &request)).await;
        answered.unwrap_or_else(|error| asked.representation.status(&Status::internal_error(error)))
    }
}
