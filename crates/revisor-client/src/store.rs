//! [`Store`]: the objects that a reflector has, and the ways to wait for it.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::metrics::Counters;
use crate::progress::{Progress, Wishes};
use crate::{Lag, Metrics, ResourceVersion};

/// How long a write whose version does not compare is looked for among the events before everything is listed anew.
const GRACE: Duration = Duration::from_secs(1);

/// Namespace and name of an object.
///
/// ```
/// use revisor_client::Key;
///
/// assert_eq!(Key::namespaced("default", "settings").to_string(), "default/settings");
/// assert_eq!(Key::cluster("node-1").to_string(), "node-1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Empty for objects of the cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// That of an object in a namespace.
    pub fn namespaced(namespace: impl Into<String>, name: impl Into<String>) -> Key {
        Key { namespace: namespace.into(), name: name.into() }
    }

    /// That of an object of the cluster.
    pub fn cluster(name: impl Into<String>) -> Key {
        Key::namespaced("", name)
    }

    /// That of an object.
    pub fn of<K: Resource>(object: &K) -> Key {
        let meta = object.meta();
        Key::namespaced(meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// Why a wait for a store ended without what was waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The reflector was dropped, so nothing will come any more.
    #[error("the reflector behind the store was stopped")]
    Stopped,
    /// The version says nothing about its place in history, or that of the store does not.
    #[error("the resource version {version:?} does not compare")]
    Incomparable {
        /// The version.
        version: String,
    },
    /// The object was never stored.
    #[error("the object has no resource version")]
    NoVersion,
}

pub(crate) type Objects<K> = HashMap<Key, Arc<K>>;

/// What a store and its reflector share.
#[derive(Debug)]
pub(crate) struct Shared<K> {
    pub(crate) objects: RwLock<Objects<K>>,
    pub(crate) wishes: Wishes,
    pub(crate) counters: Counters,
}

/// The objects that a [`Reflector`](crate::Reflector) has. Clones are cheap and show the same objects.
///
/// Every wait ends with an error when the reflector is dropped; bound it with `tokio::time::timeout` where a server may
/// be away for long.
#[derive(Debug)]
pub struct Store<K> {
    shared: Arc<Shared<K>>,
    progress: watch::Receiver<Progress>,
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Store<K> {
        Store { shared: Arc::clone(&self.shared), progress: self.progress.clone() }
    }
}

impl<K: Resource + Clone + 'static> Store<K> {
    pub(crate) fn new(shared: Arc<Shared<K>>, progress: watch::Receiver<Progress>) -> Store<K> {
        Store { shared, progress }
    }

    /// The object of this key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read(|objects| objects.get(key).cloned())
    }

    /// All objects, in no order.
    pub fn objects(&self) -> Vec<Arc<K>> {
        self.read(|objects| objects.values().cloned().collect())
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read(HashMap::len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The store has everything up to this version, and perhaps something more; `None` before the first list.
    pub fn version(&self) -> Option<ResourceVersion> {
        self.progress.borrow().version.clone()
    }

    /// Waits for the first list.
    ///
    /// # Errors
    ///
    /// [`WaitError::Stopped`].
    pub async fn ready(&self) -> Result<(), WaitError> {
        self.wait_for(|progress| progress.version.is_some()).await
    }

    /// Waits until the store has everything up to a version.
    ///
    /// A version of this resource comes with its event. One that was read elsewhere, of a list say, may need the next
    /// bookmark, which servers send about once a minute; [`refresh`](Store::refresh) is faster and costs a list.
    ///
    /// # Errors
    ///
    /// [`WaitError::Incomparable`] if nobody can tell, and [`WaitError::Stopped`].
    ///
    /// ```no_run
    /// # async fn example(store: revisor_client::Store<k8s_openapi::api::core::v1::Pod>) -> Result<(), Box<dyn std::error::Error>> {
    /// use revisor_client::ResourceVersion;
    /// use std::time::Duration;
    ///
    /// let version = ResourceVersion::new("10245");
    /// tokio::time::timeout(Duration::from_secs(5), store.at_least(&version)).await??;
    /// # Ok(()) }
    /// ```
    pub async fn at_least(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        let incomparable = || WaitError::Incomparable { version: version.to_string() };
        if !version.is_comparable() {
            return Err(incomparable());
        }
        let mut unknown = None;
        self.wait_for(|progress| match &progress.version {
            None => false,
            Some(known) => match known.partial_cmp(version) {
                Some(order) => order != Ordering::Less,
                None => {
                    unknown = Some(known.to_string());
                    true
                }
            },
        })
        .await?;
        unknown.map_or(Ok(()), |version| Err(WaitError::Incomparable { version }))
    }

    /// Waits until the store has what was written, or something that came later: read your own writes.
    ///
    /// Where versions do not compare, the object itself is waited for; if others may have overwritten it before it was
    /// seen, everything is listed anew, which is the only way to know.
    ///
    /// # Errors
    ///
    /// [`WaitError::NoVersion`] if the object does not come from a server, and [`WaitError::Stopped`].
    ///
    /// ```no_run
    /// # async fn example(api: kube::Api<k8s_openapi::api::core::v1::ConfigMap>, store: revisor_client::Store<k8s_openapi::api::core::v1::ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
    /// use kube::api::{Patch, PatchParams};
    /// use revisor_client::Key;
    ///
    /// let patch = serde_json::json!({"data": {"colour": "green"}});
    /// let written = api.patch("settings", &PatchParams::default(), &Patch::Merge(patch)).await?;
    /// store.after(&written).await?;
    /// let seen = store.get(&Key::of(&written)).expect("nobody deleted it");
    /// # Ok(()) }
    /// ```
    pub async fn after(&self, written: &K) -> Result<(), WaitError> {
        let version = ResourceVersion::of(written).ok_or(WaitError::NoVersion)?;
        match self.at_least(&version).await {
            Err(WaitError::Incomparable { .. }) => {}
            waited => return waited,
        }
        let key = Key::of(written);
        let is_seen = || self.get(&key).and_then(|seen| ResourceVersion::of(&*seen)).as_ref() == Some(&version);
        match tokio::time::timeout(GRACE, self.wait_for(|_| is_seen())).await {
            Ok(waited) => waited,
            // Somebody may have written or deleted it since. Only a list that begins now is sure to be later.
            Err(_) => self.refresh().await,
        }
    }

    /// Waits until the store has everything up to a version, and answers the objects that were last written at or before
    /// it: what is to be worked on by who has to see to everything that was there at that moment. Objects that were
    /// written since are left out; whoever wrote them had the new rules already.
    ///
    /// Where versions do not compare, everything is listed anew and all objects are answered: too many, and never too few.
    ///
    /// # Errors
    ///
    /// [`WaitError::Stopped`].
    pub async fn up_to(&self, version: &ResourceVersion) -> Result<Vec<Arc<K>>, WaitError> {
        match self.at_least(version).await {
            Ok(()) => {}
            Err(WaitError::Incomparable { .. }) => self.refresh().await?,
            Err(error) => return Err(error),
        }
        let is_meant = |object: &Arc<K>| {
            let order = ResourceVersion::of(&**object).and_then(|own| own.partial_cmp(version));
            order != Some(Ordering::Greater)
        };
        Ok(self.read(|objects| objects.values().filter(|object| is_meant(object)).cloned().collect()))
    }

    /// Has everything listed anew, and waits for that list. It begins after this call, so it has everything that was
    /// written before it, whatever versions look like.
    ///
    /// # Errors
    ///
    /// [`WaitError::Stopped`].
    pub async fn refresh(&self) -> Result<(), WaitError> {
        let wish = self.shared.wishes.make();
        self.wait_for(|progress| progress.granted >= wish).await
    }

    /// What the reflector has done so far, and how far it is.
    pub fn metrics(&self) -> Metrics {
        let progress = self.progress.borrow();
        Metrics {
            objects: self.len(),
            version: progress.version.clone(),
            silent_for: progress.heard.elapsed(),
            ..self.shared.counters.read()
        }
    }

    /// Asks the server where it is, by the smallest list there is, and compares.
    ///
    /// # Errors
    ///
    /// What the request ran into.
    ///
    /// ```no_run
    /// # async fn example(api: kube::Api<k8s_openapi::api::core::v1::Pod>, store: revisor_client::Store<k8s_openapi::api::core::v1::Pod>) -> Result<(), kube::Error> {
    /// let lag = store.lag(&api).await?;
    /// println!("{:?} versions behind, silent for {:?}", lag.versions(), lag.silent_for);
    /// # Ok(()) }
    /// ```
    pub async fn lag(&self, api: &Api<K>) -> Result<Lag, kube::Error>
    where
        K: DeserializeOwned + Debug,
    {
        let list = api.list_metadata(&ListParams::default().limit(1)).await?;
        let progress = self.progress.borrow();
        Ok(Lag {
            server: ResourceVersion::new(list.metadata.resource_version.unwrap_or_default()),
            store: progress.version.clone(),
            silent_for: progress.heard.elapsed(),
        })
    }

    async fn wait_for(&self, is_there: impl FnMut(&Progress) -> bool) -> Result<(), WaitError> {
        let mut progress = self.progress.clone();
        let waited = progress.wait_for(is_there).await;
        waited.map(|_| ()).map_err(|_| WaitError::Stopped)
    }

    fn read<T>(&self, look: impl FnOnce(&Objects<K>) -> T) -> T {
        look(&self.shared.objects.read().unwrap_or_else(PoisonError::into_inner))
    }
}
