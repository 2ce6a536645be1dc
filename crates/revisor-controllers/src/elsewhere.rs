//! [`Elsewhere`]: objects that other servers keep, as far as controllers have to do with them.
//!
//! Whoever reaches those servers implements the trait; `follow` keeps up with the objects of one resource on top of it.

mod follow;

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use revisor_catalog::Resource;
use revisor_registry::Actor;
use tokio::sync::watch;

pub(crate) use follow::{Follow, NewsElsewhere, Roster};

/// The most resources of other servers that a controller follows: each costs a request that stays open.
const MOST_RESOURCES: usize = 500;

/// What is left of a namespace elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentElsewhere {
    /// Groups and versions of which nobody knows what they have: `metrics.k8s.io/v1beta1`.
    pub undiscovered: Vec<String>,
    /// How many objects there are of each resource that has some.
    pub remaining: Vec<(String, usize)>,
    /// What could not be deleted, and why.
    pub errors: Vec<String>,
}

/// A resource whose objects another server keeps.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceElsewhere {
    /// Its group, which is never empty.
    pub group: String,
    /// The version that its server prefers.
    pub version: String,
    /// Its name.
    pub plural: String,
    /// The kind of its objects.
    pub kind: String,
    /// Whether they live in namespaces.
    pub namespaced: bool,
    /// What can be done with them.
    pub verbs: Vec<String>,
}

impl ResourceElsewhere {
    pub(crate) fn can(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|known| known == verb))
    }

    /// What the keys of its objects begin with. Keys of this server begin otherwise.
    pub(crate) fn prefix(&self) -> String {
        format!("elsewhere/{}/{}/", self.group, self.plural)
    }

    /// How a quota calls the number of its objects.
    pub(crate) fn count_limit(&self) -> String {
        format!("count/{}.{}", self.plural, self.group)
    }
}

/// What other servers have, as far as they say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourcesElsewhere {
    /// The resources, each in one version.
    pub resources: Vec<Arc<ResourceElsewhere>>,
    /// The groups of which a version does not say now what it has.
    pub undiscovered: HashSet<String>,
}

impl ResourcesElsewhere {
    /// Those with all of these verbs that this server does not have itself, in a bounded number.
    pub(crate) fn usable(&self, own: &[Arc<Resource>], verbs: &[&str]) -> Vec<Arc<ResourceElsewhere>> {
        let own: HashSet<(&str, &str)> = own.iter().map(|resource| (&*resource.group, &*resource.plural)).collect();
        let is_usable =
            |it: &&Arc<ResourceElsewhere>| it.can(verbs) && !own.contains(&(it.group.as_str(), it.plural.as_str()));
        let usable: Vec<_> = self.resources.iter().filter(is_usable).cloned().collect();
        if usable.len() > MOST_RESOURCES {
            tracing::warn!(
                resources = usable.len(),
                most = MOST_RESOURCES,
                "not all that other servers have is followed"
            );
        }
        usable.into_iter().take(MOST_RESOURCES).collect()
    }
}

/// What is asked of another server.
#[derive(Debug, Clone, Copy)]
pub struct RequestElsewhere<'a> {
    /// The resource.
    pub resource: &'a ResourceElsewhere,
    /// The namespace; nothing for all of them, and for objects that have none.
    pub namespace: Option<&'a str>,
    /// The object; nothing for the collection.
    pub name: Option<&'a str>,
    /// What is to be done.
    pub action: ActionElsewhere<'a>,
    /// In whose name.
    pub actor: &'a Actor,
}

/// What is to be done with objects of another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionElsewhere<'a> {
    /// To show them, as far as their metadata goes. Of a collection, up to so many after a token that came with others.
    Show(Option<(usize, &'a str)>),
    /// To delete one, with these options.
    Delete(&'a str),
    /// To change one by this merge patch.
    Patch(&'a str),
}

/// What another server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerElsewhere {
    /// The status code.
    pub code: u16,
    /// The body.
    pub body: Bytes,
}

/// A namespace that is being emptied.
pub type Emptying<'a> = Pin<Box<dyn Future<Output = ContentElsewhere> + Send + 'a>>;

/// An answer that is waited for; or why there is none.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<AnswerElsewhere, String>> + Send + 'a>>;

/// A watch that is being opened: its events, one per line, in pieces as they come; or the status code of a refusal.
pub type Opening<'a> = Pin<Box<dyn Future<Output = Result<Result<EventsElsewhere, u16>, String>> + Send + 'a>>;

/// The bytes of a watch.
pub type EventsElsewhere = BoxStream<'static, Result<Bytes, String>>;

/// Reaches what other servers keep. Everything takes no longer than a request may.
pub trait Elsewhere: Send + Sync {
    /// Deletes everything in a namespace, and says what is left.
    fn empty<'a>(&'a self, namespace: &'a str) -> Emptying<'a>;

    /// What there is now.
    fn resources(&self) -> ResourcesElsewhere;

    /// Tells when that may have changed.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Asks for one thing.
    fn ask<'a>(&'a self, request: RequestElsewhere<'a>) -> Asking<'a>;

    /// Watches all objects of a resource after a version of the collection. It ends by itself after some minutes.
    fn watch<'a>(&'a self, resource: &'a ResourceElsewhere, after: &'a str, actor: &'a Actor) -> Opening<'a>;
}

/// Waits until other servers have something else. Without any, that never comes.
pub(crate) async fn next_change(changes: &mut Option<watch::Receiver<u64>>) -> bool {
    match changes {
        Some(receiver) => receiver.changed().await.is_ok(),
        None => false,
    }
}
