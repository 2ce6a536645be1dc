//! [`Behind`]: what API servers behind this one keep, as controllers see it.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use revisor_aggregator::{Aggregator, RemoteAction, RemoteContent, RemotePlace, RemoteUser};
use revisor_controllers::{
    ActionElsewhere, AnswerElsewhere, Asking, ContentElsewhere, Elsewhere, Emptying, Opening, RequestElsewhere,
    ResourceElsewhere, ResourcesElsewhere,
};
use revisor_registry::Actor;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

/// API servers behind this one.
pub(crate) struct Behind(pub(crate) Arc<Aggregator>);

impl Elsewhere for Behind {
    fn empty<'a>(&'a self, namespace: &'a str) -> Emptying<'a> {
        Box::pin(async move {
            let RemoteContent { undiscovered, remaining, errors } = self.0.empty_namespace(namespace).await;
            ContentElsewhere { undiscovered, remaining, errors }
        })
    }

    /// Of a resource in several versions, the one of the preferred version (upstream: `ServerPreferredResources`).
    fn resources(&self) -> ResourcesElsewhere {
        let view = self.0.view();
        let mut versions = view.remote_versions();
        versions.retain(|version| !version.group.is_empty());
        versions.sort_by_key(|it| std::cmp::Reverse(view.version_priority(&it.group, &it.version)));
        let (mut found, mut seen) = (ResourcesElsewhere::default(), HashSet::new());
        for version in &versions {
            if version.discovery["freshness"] != "Current" {
                found.undiscovered.insert(version.group.clone());
                continue;
            }
            for resource in version.discovery["resources"].as_array().into_iter().flatten() {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let resource = ResourceElsewhere {
                    group: version.group.clone(),
                    version: version.version.clone(),
                    plural: text(&resource["resource"]),
                    kind: text(&resource["responseKind"]["kind"]),
                    namespaced: resource["scope"] == "Namespaced",
                    verbs: resource["verbs"].as_array().into_iter().flatten().map(text).collect(),
                };
                if seen.insert((resource.group.clone(), resource.plural.clone())) {
                    found.resources.push(Arc::new(resource));
                }
            }
        }
        found
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }

    fn ask<'a>(&'a self, request: RequestElsewhere<'a>) -> Asking<'a> {
        let RequestElsewhere { resource, namespace, name, action, actor } = request;
        let place = RemotePlace { namespace, name, ..place(resource) };
        let action = match action {
            ActionElsewhere::Show(page) => RemoteAction::Show(page),
            ActionElsewhere::Delete(options) => RemoteAction::Delete(options),
            ActionElsewhere::Patch(patch) => RemoteAction::Patch(patch),
        };
        Box::pin(async move {
            let (code, body) = self.0.ask(place, action, user(actor)).await?;
            Ok(AnswerElsewhere { code: code.as_u16(), body })
        })
    }

    fn watch<'a>(&'a self, resource: &'a ResourceElsewhere, after: &'a str, actor: &'a Actor) -> Opening<'a> {
        Box::pin(async move {
            let (body, longest) = match self.0.watch(place(resource), after, user(actor)).await? {
                Ok(opened) => opened,
                Err(code) => return Ok(Err(code.as_u16())),
            };
            let end = Instant::now() + longest;
            let pieces = stream::unfold(body, move |mut body| async move {
                loop {
                    let frame = match tokio::time::timeout_at(end, body.frame()).await {
                        Ok(frame) => frame?.map_err(|error| error.to_string()),
                        Err(_) => Err("it does not end".to_owned()),
                    };
                    match frame.map(|frame| frame.into_data()) {
                        Ok(Ok(piece)) => return Some((Ok(piece), body)),
                        // Trailers say nothing.
                        Ok(Err(_)) => {}
                        Err(why) => return Some((Err(why), body)),
                    }
                }
            });
            Ok(Ok(pieces.boxed()))
        })
    }
}

fn place(resource: &ResourceElsewhere) -> RemotePlace<'_> {
    let ResourceElsewhere { group, version, plural, .. } = resource;
    RemotePlace { group, version, plural, namespace: None, name: None }
}

fn user(actor: &Actor) -> RemoteUser<'_> {
    let requester = actor.requester();
    RemoteUser { name: requester.name, uid: None, groups: requester.groups, extra: &[] }
}
