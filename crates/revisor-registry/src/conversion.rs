//! From the stored shape of an object to the one in which it is worked on or shown, and back.
//!
//! For built-in kinds the first two are the same. Custom objects may be stored in any version that their definition ever
//! had, and are worked on in the version that the client speaks of. What can be converted here is converted at once
//! (`present.rs`); what somebody else has to convert is waited for. Whether it takes the one or the other only the
//! conversion of the definition knows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use revisor_cache::Item;
use revisor_catalog::{Beneath, Custom, LaidDown, Resource, Unconverted};
use revisor_object::Object;
use revisor_store::{Draft, Entry};
use revisor_version::Revision;
use revisor_webhook::ConversionWebhook;

use crate::present::{encode_shown, remembered, show_item_now, show_now};
use crate::write::encode;
use crate::{Decoded, Registry, RegistryError, Saved};

/// How many objects are sent to a webhook at a time, so that neither side has to hold all of a large list at once.
pub(crate) const BATCH: usize = 500;

/// How long a webhook may take.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// A stored object that is to be changed.
pub(crate) struct Current {
    /// As it is worked on, without its type.
    pub(crate) object: Object,
    /// What is stored of it beside that.
    pub(crate) beneath: Beneath,
}

/// An object that is to be stored.
#[derive(Debug)]
pub(crate) struct Drafted {
    pub(crate) stored: Draft,
    /// As the version shows it through which it is written, where that is known already. To read it again would come to
    /// the same.
    shown: Option<Shown>,
}

/// How a draft is shown by the version through which it is written.
#[derive(Debug)]
enum Shown {
    AsStored,
    Otherwise(Draft),
}

impl Drafted {
    fn as_stored(stored: Draft) -> Drafted {
        Drafted { stored, shown: None }
    }

    /// What is shown of it, where that is known already: at a revision, or without one if it is not stored. `stored` is
    /// the same as it is stored.
    pub(crate) fn shown(&self, stored: &Bytes, revision: Option<Revision>) -> Option<Bytes> {
        match self.shown.as_ref()? {
            Shown::AsStored => Some(stored.clone()),
            Shown::Otherwise(shown) => {
                Some(revision.map_or_else(|| shown.bytes().clone(), |revision| shown.at_revision(revision)))
            }
        }
    }

    /// Whether what is said to be shown is what a read of what is stored shows.
    fn tells_the_truth(&self, resource: &Resource) -> bool {
        let at = Revision::FIRST;
        let stored = self.stored.at_revision(at);
        let Some(shown) = self.shown(&stored, Some(at)) else { return true };
        show_now(resource, &stored).is_ok_and(|read| read == shown)
    }
}

impl Registry {
    /// The object that is stored, in the version in which it is worked on.
    pub(crate) async fn read_stored(&self, resource: &Arc<Resource>, stored: &Entry) -> Result<Current, RegistryError> {
        let object = Decoded::stored_as(resource, stored.bytes())?;
        let Some(custom) = resource.custom() else { return Ok(Current { object, beneath: Beneath::Nothing }) };
        let (mut object, beneath) = if stored.is_shown_as(resource.shape) {
            (object, Beneath::Nothing)
        } else {
            match custom.show_to_write(object) {
                (Ok(object), beneath) => (object, beneath),
                (Err(unconverted), _) => self.take_in(custom, resource, unconverted).await?,
            }
        };
        object.remove("apiVersion");
        object.remove("kind");
        Ok(Current { object, beneath })
    }

    /// The same for who deletes it. That takes no more of an object than every version has, so what cannot be converted
    /// is taken as it is stored: rules that fail keep nobody from cleaning up. Only who has to be asked is waited for, as
    /// in the original.
    pub(crate) async fn read_to_delete(
        &self,
        resource: &Arc<Resource>,
        stored: &Entry,
    ) -> Result<Current, RegistryError> {
        match (self.read_stored(resource, stored).await, resource.custom()) {
            (Err(RegistryError::Conversion(_)), Some(custom)) if !custom.asks_others() => {
                let (object, beneath) = custom.take_stored(Decoded::stored(stored.bytes())?);
                Ok(Current { object, beneath })
            }
            (current, _) => current,
        }
    }

    /// The bytes in which an object is stored that takes the place of what lies beneath.
    pub(crate) async fn draft(
        &self,
        resource: &Arc<Resource>,
        mut object: Object,
        beneath: &Beneath,
    ) -> Result<Drafted, RegistryError> {
        let Some(custom) = resource.custom() else { return Ok(Drafted::as_stored(encode(resource, &object))) };
        object.insert("apiVersion", resource.api_version.as_str());
        object.insert("kind", resource.kind.as_str());
        let is_laid_bare = matches!(beneath, Beneath::Nothing);
        let LaidDown { stored, shown } = match custom.lay_down(object, beneath) {
            Ok(laid_down) => laid_down,
            Err(unconverted) => {
                let converted = self.await_one(custom, unconverted, custom.storage_version()).await?;
                custom.lay_down_converted(converted).into()
            }
        };
        let shown = match shown {
            Some(shown) => Some(Shown::Otherwise(encode(resource, &shown))),
            // What was made to fit the version in which it is stored is read as it is.
            None if is_laid_bare && custom.storage_version() == resource.api_version => Some(Shown::AsStored),
            None => None,
        };
        let stored = encode(resource, &stored);
        let stored = if matches!(shown, Some(Shown::AsStored)) { stored.shown_as(resource.shape) } else { stored };
        let drafted = Drafted { stored, shown };
        debug_assert!(drafted.tells_the_truth(resource), "what was written is not what is read: {drafted:?}");
        Ok(drafted)
    }

    /// The bytes of a stored object in the version of `resource`.
    pub(crate) async fn show(&self, resource: &Arc<Resource>, stored: &Bytes) -> Result<Bytes, RegistryError> {
        match (show_now(resource, stored), resource.custom()) {
            (Ok(shown), _) => Ok(shown),
            (Err(unconverted), Some(custom)) => {
                let (object, _) = self.take_in(custom, resource, unconverted).await?;
                Ok(encode_shown(resource, &object, stored))
            }
            (Err(unconverted), None) => Err(failed(unconverted)),
        }
    }

    /// Shows what was written in the version of `resource`.
    pub(crate) async fn show_saved(&self, resource: &Arc<Resource>, saved: &mut Saved) -> Result<(), RegistryError> {
        saved.bytes = match saved.shown.take() {
            Some(shown) => shown,
            None => self.show(resource, &saved.bytes).await?,
        };
        Ok(())
    }

    /// The bytes of an object of the cache in the version of `resource`.
    pub(crate) async fn show_item(&self, resource: &Arc<Resource>, item: &Item) -> Result<Bytes, RegistryError> {
        if let Some(shown) = remembered(resource, item) {
            return Ok(shown);
        }
        let shown = self.show(resource, item.bytes()).await?;
        item.keep_shown(resource.shape, shown.clone());
        Ok(shown)
    }

    /// The bytes of objects of the cache in the version of `resource`. What has to be asked for is asked for together.
    pub(crate) async fn show_items(
        &self,
        resource: &Arc<Resource>,
        items: &[Arc<Item>],
    ) -> Result<Vec<Bytes>, RegistryError> {
        let mut shown: Vec<Bytes> = Vec::with_capacity(items.len());
        let mut missing = Vec::new();
        for (at, item) in items.iter().enumerate() {
            shown.push(match show_item_now(resource, item) {
                Ok(bytes) => bytes,
                Err(unconverted) => {
                    missing.push((at, unconverted));
                    Bytes::new()
                }
            });
        }
        let Some(custom) = resource.custom() else { return Ok(shown) };
        while !missing.is_empty() {
            let (places, unconverted): (Vec<usize>, Vec<Unconverted>) =
                missing.drain(..missing.len().min(BATCH)).unzip();
            let converted = self.await_converted(custom, unconverted, &resource.api_version).await?;
            for (at, mut object) in places.into_iter().zip(converted) {
                let _ = custom.take_in(&mut object);
                let bytes = encode_shown(resource, &object, items[at].bytes());
                items[at].keep_shown(resource.shape, bytes.clone());
                shown[at] = bytes;
            }
        }
        Ok(shown)
    }

    /// An object that could not be shown at once, when it has come, and what came beneath it.
    async fn take_in(
        &self,
        custom: &Custom,
        resource: &Resource,
        unconverted: Unconverted,
    ) -> Result<(Object, Beneath), RegistryError> {
        let mut object = self.await_one(custom, unconverted, &resource.api_version).await?;
        let beneath = custom.take_in(&mut object);
        Ok((object, beneath))
    }

    /// Waits for one object that somebody else converts.
    pub(crate) async fn await_one(
        &self,
        custom: &Custom,
        unconverted: Unconverted,
        api_version: &str,
    ) -> Result<Object, RegistryError> {
        let converted = self.await_converted(custom, vec![unconverted], api_version).await?;
        converted.into_iter().next().ok_or(RegistryError::Unreadable)
    }

    /// Waits for objects that somebody else converts. If one of them cannot be converted, none is.
    pub(crate) async fn await_converted(
        &self,
        custom: &Custom,
        unconverted: Vec<Unconverted>,
        api_version: &str,
    ) -> Result<Vec<Object>, RegistryError> {
        let mut asked: Option<Arc<ConversionWebhook>> = None;
        let mut objects = Vec::with_capacity(unconverted.len());
        for one in unconverted {
            match one {
                // All are objects of one definition, which has one webhook.
                Unconverted::Asks { webhook, object } => {
                    asked = Some(webhook);
                    objects.push(object);
                }
                Unconverted::Failed(_) => return Err(failed(one)),
            }
        }
        let Some(webhook) = asked else { return Ok(objects) };
        let from: Vec<String> =
            objects.iter().map(|object| object.str("apiVersion").unwrap_or_default().to_owned()).collect();
        let (uid, begun) = (self.environment.uid(), Instant::now());
        // Boxed: a call over the network needs much room, and every read and write would have it.
        let call = Box::pin(self.webhooks.convert(&webhook, &uid, api_version, objects, WEBHOOK_TIMEOUT));
        let converted = call.await;
        let converted = converted.map_err(|error| RegistryError::Conversion(error.to_string()))?;
        let each = begun.elapsed() / u32::try_from(from.len()).unwrap_or(u32::MAX).max(1);
        from.iter().for_each(|from| custom.count(from, api_version, each));
        Ok(converted)
    }
}

/// The error of who cannot wait, or need not.
pub(crate) fn failed(unconverted: Unconverted) -> RegistryError {
    RegistryError::Conversion(match unconverted {
        Unconverted::Failed(why) => why,
        Unconverted::Asks { .. } => "the object has to be converted by a webhook first".to_owned(),
    })
}
