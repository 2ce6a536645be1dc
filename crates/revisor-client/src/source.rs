//! [`Source`]: the servers that a reflector asks, one after the other, and what it asks of them.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::Api;
use kube::api::{ListParams, ObjectList, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;

use crate::ResourceVersion;

/// How long a server keeps a watch open if nothing else is said. Below the five minutes after which many proxies cut.
pub(crate) const WATCH_SECONDS: u32 = 290;

/// How much later than it promised a server may end a watch before its connection counts as dead.
pub(crate) const MARGIN: Duration = Duration::from_secs(10);

/// Servers of one cluster, and which objects are asked for.
#[derive(Debug)]
pub(crate) struct Source<K> {
    apis: Vec<Api<K>>,
    current: usize,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) page_size: u32,
    pub(crate) watch_seconds: u32,
}

/// Events as they come.
pub(crate) type Events<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

impl<K: Clone + Debug + DeserializeOwned + Send + 'static> Source<K> {
    pub(crate) fn new(api: Api<K>) -> Source<K> {
        Source { apis: vec![api], current: 0, labels: None, fields: None, page_size: 500, watch_seconds: WATCH_SECONDS }
    }

    pub(crate) fn add(&mut self, api: Api<K>) {
        self.apis.push(api);
    }

    /// Turns to the next server; answers whether that is another one.
    pub(crate) fn turn(&mut self) -> bool {
        self.current = (self.current + 1) % self.apis.len();
        self.apis.len() > 1
    }

    /// One page of a list.
    pub(crate) async fn page(&self, token: Option<String>) -> kube::Result<ObjectList<K>> {
        let mut params = ListParams::default().limit(self.page_size);
        params.label_selector.clone_from(&self.labels);
        params.field_selector.clone_from(&self.fields);
        params.continue_token = token;
        self.apis[self.current].list(&params).await
    }

    /// A list as a stream, which goes on as a watch. It is at least as new as this moment.
    pub(crate) async fn streamed_list(&self) -> kube::Result<Events<K>> {
        self.open(true, "").await
    }

    /// A watch of everything after a version.
    pub(crate) async fn watch(&self, version: &ResourceVersion) -> kube::Result<Events<K>> {
        self.open(false, version.as_str()).await
    }

    async fn open(&self, send_initial_events: bool, version: &str) -> kube::Result<Events<K>> {
        let params = WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            timeout: Some(self.watch_seconds),
            bookmarks: true,
            send_initial_events,
        };
        Ok(self.apis[self.current].watch(&params, version).await?.boxed())
    }
}
