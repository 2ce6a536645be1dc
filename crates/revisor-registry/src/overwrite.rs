//! Changes that the server itself makes to a stored object.
//!
//! What it decides beside the write of a client, it writes like a client: [`Registry::change_as_server`] and
//! [`Registry::tell_as_server`]. What is a part of an operation that was admitted under its own name is only stored:
//! [`Registry::overwrite`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use revisor_catalog::Resource;
use revisor_object::{Object, Value, Warnings};
use revisor_store::{BoxFuture, Change, Entry, Expect, Write};

use crate::present::named_as;
use crate::write::{Proposal, encode};
use crate::{Decoded, Operation, Place, Preconditions, Registry, RegistryError, WriteOptions};

impl Registry {
    /// Changes an object in the name of the server, as by a request that it sends to itself (upstream: through the
    /// loopback client): all steps of a write are gone through, and whoever is to be asked about it is asked. Nobody is
    /// asked about what changes nothing. What the write brings about is not waited for: who brings it about may be the one
    /// who writes.
    ///
    /// Boxed, because it is done in the midst of other writes.
    pub(crate) fn change_as_server<'a>(
        &'a self,
        place: Place<'a>,
        options: WriteOptions<'a>,
        change: impl Fn(&mut Object) -> Result<(), RegistryError> + Send + Sync + 'a,
    ) -> BoxFuture<'a, Result<(), RegistryError>> {
        Box::pin(async move {
            let is_as_it_was = AtomicBool::new(false);
            let mut propose = |current: &Object| {
                let mut object = current.clone();
                change(&mut object)?;
                is_as_it_was.store(object == *current, Ordering::Relaxed);
                if object == *current {
                    return Err(RegistryError::Unreadable);
                }
                Ok(Proposal { object, warnings: Warnings::default(), is_conditional: false, managed: None })
            };
            match self.change_stored(place, options, &mut propose).await {
                Ok(_) => Ok(()),
                Err(RegistryError::Unreadable) if is_as_it_was.into_inner() => Ok(()),
                Err(error) => Err(named_as(place.resource, error)),
            }
        })
    }

    /// Changes the status of a built-in object in the name of the server. What nobody has a say in is stored at once: of
    /// what the server has worked out itself no step could change or refuse anything.
    pub(crate) async fn tell_as_server(
        &self,
        place: Place<'_>,
        options: WriteOptions<'_>,
        change: impl Fn(&mut Object) -> Result<(), RegistryError> + Send + Sync,
    ) -> Result<(), RegistryError> {
        let options = WriteOptions { subresource: Some("status"), ..options };
        if self.may_be_judged(place.resource, options.subresource, Operation::Update) {
            return self.change_as_server(place, options, change).await;
        }
        let resource = place.resource.working();
        let told = self.store_over(resource, place.namespace, place.name.unwrap_or_default(), options, |_, object| {
            let old = object.clone();
            change(object)?;
            if *object != old {
                self.record_status(resource, &old, object, options);
            }
            Ok(())
        });
        told.await.map(drop)
    }

    /// Changes an object of which `change` sees the newest state, again and again until nobody else was faster, without
    /// asking anybody: it is what was asked about already, or takes back what was not done. What stays the same is not
    /// written. Answers the version that the object has then.
    pub(crate) async fn overwrite(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        name: &str,
        dry_run: bool,
        change: impl Fn(&Entry, &mut Object) -> Result<(), RegistryError>,
    ) -> Result<String, RegistryError> {
        let options = WriteOptions { dry_run, ..WriteOptions::default() };
        self.store_over(resource, namespace, name, options, change).await
    }

    async fn store_over(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        name: &str,
        options: WriteOptions<'_>,
        change: impl Fn(&Entry, &mut Object) -> Result<(), RegistryError>,
    ) -> Result<String, RegistryError> {
        let mut attempts = self.attempts(resource, namespace, name).await?;
        loop {
            let current = attempts.current()?;
            let mut object = Decoded::stored_as(resource, current.bytes())?;
            change(&current, &mut object)?;
            let draft = encode(resource, &object);
            if options.dry_run || current.same_content(&draft) {
                return Ok(current.revision().to_string());
            }
            options.in_time()?;
            let key = attempts.key().clone();
            let write = Write { key, expect: Expect::At(current.revision()), change: Change::Put(draft) };
            let written = match options.within.charging {
                Some(charging) => charging.store(self.cache.write(write)).await,
                None => self.cache.write(write).await,
            };
            if let Some(event) = attempts.settle(written)? {
                return Ok(event.revision.to_string());
            }
        }
    }
}

/// Refuses an object that is not the one that the client means.
pub(crate) fn require(
    resource: &Arc<Resource>,
    entry: &Entry,
    object: &Object,
    preconditions: &Preconditions,
) -> Result<(), RegistryError> {
    let metadata = object.object("metadata");
    let text = |name| metadata.and_then(|metadata| metadata.str(name)).unwrap_or_default();
    let version = entry.revision().to_string();
    for (what, wanted, actual) in
        [("UID", &preconditions.uid, text("uid")), ("ResourceVersion", &preconditions.resource_version, &*version)]
    {
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != actual) {
            let why = format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {actual}");
            return Err(RegistryError::conflict(resource, text("name"), why));
        }
    }
    Ok(())
}

/// Sets a condition of a pod. Its time changes only if it was something else before.
pub(crate) fn set_condition(pod: &mut Object, condition: [(&str, &str); 4], now: &str) {
    let mut new: Object = condition
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, Value::from(value)))
        .collect();
    let status = pod.object_mut("status");
    let kind = new.get("type").cloned();
    let conditions = match status.array_mut("conditions") {
        Some(conditions) => conditions,
        None => {
            status.insert("conditions", Vec::<Value>::new());
            status.array_mut("conditions").expect("was inserted")
        }
    };
    let known = conditions.iter_mut().filter_map(Value::as_object_mut).find(|known| known.get("type") == kind.as_ref());
    match known {
        Some(known) => {
            let time = known.get("lastTransitionTime").filter(|_| known.get("status") == new.get("status")).cloned();
            new.insert("lastTransitionTime", time.unwrap_or_else(|| Value::from(now)));
            *known = new;
        }
        None => {
            new.insert("lastTransitionTime", now);
            conditions.push(Value::from(new));
        }
    }
}
