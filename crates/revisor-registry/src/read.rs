//! Get, list and watch.

use std::sync::Arc;

use bytes::Bytes;
use revisor_cache::{Expired, Filter, Footprint, Item, PastError, ResourceCache, Scope, Snapshot, WatchStart};
use revisor_catalog::{Custom, Feature, Resource};
use revisor_object::{CONTINUE_EXPIRED, ContinueToken, ListScope};
use revisor_store::Key;
use revisor_version::Revision;

use crate::component_status::is_found_out;
use crate::conversion::BATCH;
use crate::event_stream::EventStream;
use crate::present::{Presented, show_item_now};
use crate::read_plan::{invalid_version, parse_version, validate_list, validate_watch};
use crate::version_reports::is_reports;
use crate::{ListPlan, ListVersions, Registry, RegistryError, Selection, WatchPlan, plan_list, plan_watch};

/// How many objects of the past are read at once for one who selects among them.
const PORTION: usize = 512;

/// One object is wanted.
#[derive(Debug, Clone, Copy)]
pub struct GetRequest<'a> {
    /// Of this resource.
    pub resource: &'a Arc<Resource>,
    /// In this namespace.
    pub namespace: Option<&'a str>,
    /// With this name.
    pub name: &'a str,
    /// `resourceVersion`; unset and empty mean the same.
    pub resource_version: &'a str,
    /// `resourceVersionMatch`; unset and empty mean the same.
    pub resource_version_match: &'a str,
}

/// An object, and the version of the state that it was read from.
#[derive(Debug, Clone)]
pub struct Got {
    /// The encoded object.
    pub bytes: Bytes,
    /// The object of the cache that these bytes show, if it is one.
    pub item: Option<Arc<Item>>,
    /// The version of the state.
    pub served_at: Option<Revision>,
}

/// A collection is wanted.
#[derive(Debug, Clone, Copy)]
pub struct ListRequest<'a> {
    /// Of this resource.
    pub resource: &'a Arc<Resource>,
    /// Of this namespace, or of all.
    pub namespace: Option<&'a str>,
    /// Which of its objects.
    pub selection: &'a Selection,
    /// Of which state.
    pub versions: ListVersions<'a>,
    /// At most so many; zero or less for all.
    pub limit: i64,
}

/// A collection.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The state that it was read from.
    pub revision: Option<Revision>,
    /// Its objects.
    pub items: ListItems,
    /// Where the next page begins.
    pub continue_token: Option<String>,
    /// How many objects follow this page, if that is known.
    pub remaining: Option<u64>,
    /// What it can cost to hold on to that state; `None` if it is not one of stored objects.
    pub footprint: Option<Footprint>,
}

/// The objects of a list.
#[derive(Debug, Clone)]
pub enum ListItems {
    /// One page.
    Page(Vec<Presented>),
    /// All that the filter lets through, to be read from the snapshot as they are sent.
    All {
        /// The state.
        snapshot: Snapshot,
        /// What their keys start with.
        prefix: String,
        /// Only those after this key.
        after: Option<String>,
        /// Which of them.
        filter: SharedFilter,
    },
}

/// To look whether an object is selected takes as long as to work on so many bytes.
const BYTES_PER_OBJECT: usize = 64;

/// And to convert one, where that is not left to who sends it, as many as these.
const BYTES_PER_CONVERSION: usize = 4096;

/// A filter that can be shown in debug output.
#[derive(Clone, Default)]
pub struct SharedFilter(pub Option<Filter>);

impl SharedFilter {
    /// Whether the item is let through.
    pub fn admits(&self, item: &Item) -> bool {
        self.0.as_ref().is_none_or(|filter| filter(item))
    }
}

impl std::fmt::Debug for SharedFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Filter" } else { "NoFilter" })
    }
}

/// The changes of a collection are wanted.
#[derive(Debug, Clone, Copy)]
pub struct WatchRequest<'a> {
    /// Of this resource.
    pub resource: &'a Arc<Resource>,
    /// Of this namespace, or of all.
    pub namespace: Option<&'a str>,
    /// Only of the object with this name.
    pub name: Option<&'a str>,
    /// Which of its objects.
    pub selection: &'a Selection,
    /// From where on.
    pub versions: ListVersions<'a>,
}

/// What a watch turned out to be.
#[derive(Debug)]
pub enum Watched {
    /// A stream of changes.
    Stream(EventStream),
    /// An error that is told as the only event of the stream.
    Failed(RegistryError),
}

impl Registry {
    /// Reads one object.
    ///
    /// What hardly ever happens is boxed here and below: a future has room for all that it may come to, and that of a
    /// request is moved several times before it is polled.
    pub async fn get(&self, request: GetRequest<'_>) -> Result<Got, RegistryError> {
        let GetRequest { resource, namespace, name, resource_version, resource_version_match } = request;
        if is_found_out(resource) {
            return Box::pin(self.component_status(resource, name)).await;
        }
        if is_reports(resource) {
            return Box::pin(self.version_report(resource, name)).await;
        }
        let key = resource.key(namespace, name);
        let cache = self.cache_of(resource);
        let version = parse_version(resource_version)
            // DIFFERENCE: the original answers 500 to a version that is no number here.
            .map_err(|detail| RegistryError::BadRequest(invalid_version(resource_version, detail)))?;
        match version {
            Some(revision) => self.reach(&cache, revision).await?,
            None if resource_version.is_empty() => {
                cache.freshen().await?;
            }
            None => {}
        }
        // Beyond the original, which looks at no match here: `Exact` shows the object as it was at a version.
        if let (Some(revision), "Exact") = (version, resource_version_match) {
            let found =
                Box::pin(cache.get_at(&key, revision)).await.map_err(|error| past_error(error, expired_state))?;
            let item = found.ok_or_else(|| RegistryError::not_found(resource, name))?;
            RegistryError::check_readable(item.entry())?;
            let bytes = self.show_item(resource, &item).await?;
            return Ok(Got { bytes, item: Some(item), served_at: Some(revision) });
        }
        let reached = cache.reached();
        let item = cache.get(&key).ok_or_else(|| RegistryError::not_found(resource, name))?;
        RegistryError::check_readable(item.entry())?;
        let bytes = match resource.custom() {
            // As in the original, who wants the newest state has a webhook asked each time; lists, watches and who is
            // content with what is at hand are answered from what it said before.
            Some(custom) if resource_version.is_empty() && custom.asks_others() => {
                self.show(resource, item.bytes()).await?
            }
            _ => self.show_item(resource, &item).await?,
        };
        let served_at = reached.max(Some(item.revision()));
        Ok(Got { bytes, item: Some(item), served_at })
    }

    /// How much work it is to find the objects of a list, as if it were so many bytes: nothing if all are wanted as they
    /// are stored.
    pub fn list_weight(&self, request: &ListRequest<'_>) -> usize {
        let ListRequest { resource, selection, limit, .. } = *request;
        let count = || self.cache_of(resource).len();
        match (resource.is_certain(), selection.is_everything()) {
            (true, true) => 0,
            (true, false) => count().saturating_mul(BYTES_PER_OBJECT),
            (false, is_everything) => {
                let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0 && is_everything);
                limit.unwrap_or(usize::MAX).min(count()).saturating_mul(BYTES_PER_CONVERSION)
            }
        }
    }

    /// Reads a collection.
    pub async fn list(&self, request: ListRequest<'_>) -> Result<Listed, RegistryError> {
        self.list_for(request, Purpose::Show, request.limit > 0).await
    }

    /// The same of a collection that is to be deleted, without showing it where that may fail: to delete takes no more of
    /// an object than every version has. Only who has to be asked is asked, as in the original.
    pub(crate) async fn list_to_delete(&self, request: ListRequest<'_>) -> Result<Listed, RegistryError> {
        let asks_others = request.resource.custom().is_some_and(Custom::asks_others);
        // The original lists in pages what it deletes, whether or not the client asked for one.
        self.list_for(request, if asks_others { Purpose::Show } else { Purpose::Delete }, true).await
    }

    /// `in_pages`: a version is read as that of a list of which a page is asked for.
    async fn list_for(
        &self,
        request: ListRequest<'_>,
        purpose: Purpose,
        in_pages: bool,
    ) -> Result<Listed, RegistryError> {
        let ListRequest { resource, namespace, selection, versions, limit } = request;
        if is_found_out(resource) {
            return Ok(self.component_statuses(resource, selection).await);
        }
        if is_reports(resource) {
            return self.version_reports(resource, selection).await;
        }
        let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
        // One name is looked up rather than listed, and a lookup is never of exactly that version (upstream:
        // `Store.ListPredicate`).
        let is_lookup = selection.exact_name().is_some() && (namespace.is_some() || !resource.namespaced);
        let versions = ListVersions { has_limit: in_pages && !is_lookup, ..versions };
        let plan = plan_list(&versions)?;
        let cache = self.cache_of(resource);
        let scope = ListScope::new(&resource.qualified_name(), namespace);
        let prefix = resource.collection(namespace);
        let mut after = None;
        let mut opened = None;
        let revision = match plan {
            ListPlan::Latest => {
                cache.freshen().await?;
                None
            }
            ListPlan::Any => None,
            ListPlan::NotOlderThan(revision) => {
                self.reach(&cache, revision).await?;
                None
            }
            ListPlan::Exact(revision) => {
                self.reach(&cache, revision).await?;
                Some(revision)
            }
            ListPlan::Continue { beside_version } => {
                let token = self.sealer.open(versions.continue_token, scope);
                let token =
                    token.map_err(|error| RegistryError::BadRequest(format!("invalid continue token: {error}")))?;
                if beside_version {
                    let message = "specifying resource version is not allowed when using continue";
                    return Err(RegistryError::BadRequest(message.to_owned()));
                }
                after = Some(format!("{prefix}{}", token.start_after));
                if token.revision.is_none() {
                    cache.freshen().await?;
                }
                opened.insert(token).revision
            }
        };
        let expired = |expired| match &opened {
            Some(token) => self.expired_token(token),
            None => expired_state(expired),
        };
        let source = match revision {
            None => Source::Memory(cache.snapshot()),
            Some(revision) => {
                let held = cache.snapshot_at(revision).map_err(expired)?;
                held.map_or(Source::Store(revision), Source::Memory)
            }
        };
        // A list that left out what cannot be read would say that it is not there.
        if let Source::Memory(snapshot) = &source
            && let Some(item) = snapshot.unreadable(&prefix)
        {
            RegistryError::check_readable(item.entry())?;
        }
        let revision = source.revision();
        let mut footprint = match &source {
            Source::Memory(snapshot) => Some(snapshot.footprint()),
            Source::Store(_) => None,
        };
        let filter = SharedFilter(selection.filter(resource));
        let most = limit.unwrap_or(usize::MAX);
        let select = Select { registry: self, resource, selection, filter: &filter, purpose };
        // Whether anything stands behind the page. As in the original that need not be anything that is selected.
        let (mut page, all, goes_on) = match source {
            Source::Memory(snapshot) if limit.is_none() && resource.is_certain() => {
                let items = ListItems::All { snapshot, prefix, after, filter };
                return Ok(Listed { revision, items, continue_token: None, remaining: None, footprint });
            }
            Source::Memory(snapshot) => {
                let candidates = snapshot.range(&prefix, after.as_deref()).cloned();
                let page = select.from(candidates, most).await?;
                let counted = opened.as_ref().filter(|token| token.revision.is_some());
                let all = || match (counted.and_then(|token| token.remaining), &after) {
                    (Some(counted), _) => usize::try_from(counted).unwrap_or(usize::MAX),
                    (None, None) => snapshot.count(&prefix),
                    (None, Some(after)) => snapshot.count_after(&prefix, after),
                };
                let is_full = page.len() == most;
                let all = if is_full && selection.is_everything() { all() } else { page.len() };
                let last = page.last().filter(|_| is_full).map(|presented| presented.item.key().as_str());
                let goes_on = last.is_some_and(|last| snapshot.range(&prefix, Some(last)).next().is_some());
                (page, all, goes_on)
            }
            Source::Store(revision) => {
                let portion = limit.map(|_| if selection.is_everything() { most } else { most.max(PORTION) });
                let mut page = Vec::new();
                let mut last = after;
                loop {
                    let read = cache.page_at(revision, &prefix, last.as_deref(), portion).await;
                    let read = read.map_err(|error| past_error(error, expired))?;
                    read.items.iter().try_for_each(|item| RegistryError::check_readable(item.entry()))?;
                    last = read.items.last().map(|item| item.key().to_string());
                    page.extend(select.from(read.items.into_iter(), most - page.len()).await?);
                    if read.remaining == 0 || page.len() == most {
                        let all = page.len() + read.remaining;
                        let ends_here =
                            page.last().is_none_or(|presented| Some(presented.item.key().as_str()) == last.as_deref());
                        let goes_on = page.len() == most && (read.remaining > 0 || !ends_here);
                        let bytes = page.iter().map(|presented: &Presented| presented.item.bytes().len() as u64);
                        footprint = Some(Footprint::alone(bytes.sum()));
                        break (page, all, goes_on);
                    }
                }
            }
        };
        let items = ListItems::Page(Vec::new());
        let mut listed = Listed { revision, items, continue_token: None, remaining: None, footprint };
        if let Some(last) = page.last().filter(|_| goes_on && !is_lookup) {
            listed.remaining = selection.is_everything().then(|| all.saturating_sub(page.len()) as u64);
            let start_after = last.item.key().as_str()[prefix.len()..].to_owned();
            let token = ContinueToken { revision, start_after, remaining: listed.remaining, scope };
            listed.continue_token = Some(self.sealer.seal(&token));
        }
        if purpose == Purpose::Show {
            self.show_page(resource, &mut page).await?;
        }
        listed.items = ListItems::Page(page);
        Ok(listed)
    }

    /// Whether what a list or watch says of versions goes together, which is looked at before anything else is.
    pub fn validate_versions(&self, versions: &ListVersions<'_>, is_watch: bool) -> Result<(), RegistryError> {
        match is_watch {
            true => validate_watch(versions, self.catalog.features().has(Feature::WatchList)),
            false => validate_list(versions),
        }
    }

    /// Follows the changes of a collection.
    pub async fn watch(self: &Arc<Self>, request: WatchRequest<'_>) -> Result<Watched, RegistryError> {
        let WatchRequest { resource, namespace, name, selection, versions } = request;
        let plan = plan_watch(&versions, self.catalog.features().has(Feature::WatchList))?;
        if name.is_some_and(|name| !selection.suits_name(name)) {
            let message = "fieldSelector metadata.name doesn't match requested name";
            return Err(RegistryError::BadRequest(message.to_owned()));
        }
        let cache = self.cache_of(resource);
        let start = match plan {
            WatchPlan::LatestState => {
                cache.freshen().await?;
                WatchStart::State
            }
            WatchPlan::AnyState => WatchStart::State,
            WatchPlan::StateNotOlderThan(revision) => match self.reach(&cache, revision).await {
                Ok(()) => WatchStart::State,
                Err(error) => return Ok(Watched::Failed(error)),
            },
            WatchPlan::After(revision) => WatchStart::After(revision),
            WatchPlan::FromNow => match cache.freshen().await? {
                Some(revision) => WatchStart::After(revision),
                None => WatchStart::State,
            },
        };
        let one = name.or(selection.exact_name());
        // What can be told of an object only when it is shown is told then, and not by the cache.
        let is_shown_first = !resource.is_certain() && selection.reads_objects();
        let scope = match (one, namespace) {
            (Some(name), _) if namespace.is_some() || !resource.namespaced => {
                Scope::Object(Key::new(resource.key(namespace, name)))
            }
            (_, Some(namespace)) => Scope::Namespace(namespace.to_owned()),
            (_, None) if is_shown_first => Scope::All,
            (_, None) => selection.trigger(resource).map_or(Scope::All, Scope::Triggered),
        };
        let filter = selection.filter(resource).filter(|_| !is_shown_first);
        match cache.watch(revisor_cache::WatchRequest { scope, filter, start }) {
            Ok(watcher) => {
                let selection = is_shown_first.then(|| selection.clone());
                Ok(Watched::Stream(EventStream::new(self.clone(), resource.clone(), watcher, selection)))
            }
            Err(Expired { asked, oldest }) => Ok(Watched::Failed(RegistryError::Expired {
                message: format!("too old resource version: {asked} ({oldest})"),
                continue_token: None,
            })),
        }
    }

    /// Shows what cannot be left to whoever sends it.
    async fn show_page(&self, resource: &Arc<Resource>, page: &mut [Presented]) -> Result<(), RegistryError> {
        if resource.is_certain() {
            return Ok(());
        }
        let unseen: Vec<&mut Presented> = page.iter_mut().filter(|presented| presented.shown.is_none()).collect();
        let items: Vec<Arc<Item>> = unseen.iter().map(|presented| presented.item.clone()).collect();
        let shown = self.show_items(resource, &items).await?;
        unseen.into_iter().zip(shown).for_each(|(presented, shown)| presented.shown = Some(shown));
        Ok(())
    }

    /// Waits until the cache of a resource has come to this revision.
    async fn reach(&self, cache: &ResourceCache, revision: Revision) -> Result<(), RegistryError> {
        if cache.reached() >= Some(revision) {
            return Ok(());
        }
        // What the store has is on its way; only what it has not is worth a client's patience.
        let reached = Box::pin(cache.wait_for(revision, self.patience)).await;
        reached.map_err(|missed| RegistryError::too_large(missed.asked, missed.current))
    }

    /// The answer to a token whose snapshot is gone: another token that goes on with the newest state.
    fn expired_token(&self, token: &ContinueToken) -> RegistryError {
        let fresh = ContinueToken { revision: None, remaining: None, ..token.clone() };
        RegistryError::Expired { message: CONTINUE_EXPIRED.to_owned(), continue_token: Some(self.sealer.seal(&fresh)) }
    }
}

/// Where a list is read from.
enum Source {
    /// One of the states that are held in memory.
    Memory(Snapshot),
    /// The store, at a revision that is longer ago.
    Store(Revision),
}

impl Source {
    fn revision(&self) -> Option<Revision> {
        match self {
            Source::Memory(snapshot) => snapshot.revision(),
            Source::Store(revision) => Some(*revision),
        }
    }
}

/// What a list is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Show,
    Delete,
}

/// Which objects of a list are wanted.
struct Select<'a> {
    registry: &'a Registry,
    resource: &'a Arc<Resource>,
    selection: &'a Selection,
    filter: &'a SharedFilter,
    purpose: Purpose,
}

impl Select<'_> {
    /// Those of the candidates that are selected, and no more than `most`.
    async fn from(
        &self,
        mut candidates: impl Iterator<Item = Arc<Item>> + Send,
        most: usize,
    ) -> Result<Vec<Presented>, RegistryError> {
        let Select { resource, selection, filter, .. } = *self;
        if resource.is_certain() || !selection.reads_objects() {
            return Ok(candidates.filter(|item| filter.admits(item)).take(most).map(Presented::from).collect());
        }
        // Only what is shown can be told apart.
        let mut selected = Vec::new();
        while selected.len() < most {
            let batch: Vec<Arc<Item>> = candidates.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            let shown = self.show(&batch).await?;
            for (item, shown) in batch.into_iter().zip(shown) {
                let is_selected = match &shown {
                    Some(shown) => selection.admits(resource, &item, shown),
                    None => filter.admits(&item),
                };
                if is_selected {
                    selected.push(Presented { item, shown });
                }
            }
        }
        selected.truncate(most);
        Ok(selected)
    }

    /// The objects as they are shown. For who deletes them, those that cannot be are told apart as they are stored.
    async fn show(&self, items: &[Arc<Item>]) -> Result<Vec<Option<Bytes>>, RegistryError> {
        let Select { registry, resource, .. } = *self;
        match (registry.show_items(resource, items).await, self.purpose) {
            (Err(RegistryError::Conversion(_)), Purpose::Delete) => {
                Ok(items.iter().map(|item| show_item_now(resource, item).ok()).collect())
            }
            (shown, _) => Ok(shown?.into_iter().map(Some).collect()),
        }
    }
}

/// What is answered when the past cannot be read; `expired` says it for when it is too long ago.
fn past_error(error: PastError, expired: impl FnOnce(Expired) -> RegistryError) -> RegistryError {
    match error {
        PastError::Expired(gone) => expired(gone),
        PastError::Store(error) => error.into(),
    }
}

fn expired_state(_: Expired) -> RegistryError {
    let message = "The resourceVersion for the provided list is too old.".to_owned();
    RegistryError::Expired { message, continue_token: None }
}
