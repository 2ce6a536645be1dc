//! Changes that the server itself makes to a stored object, past the rules for what clients may change.

use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_object::{Object, Value};
use revisor_store::{Change, Entry, Expect, Write};

use crate::write::encode;
use crate::{Decoded, Preconditions, Registry, RegistryError};

impl Registry {
    /// Changes an object of which `change` sees the newest state, again and again until nobody else was faster. What
    /// stays the same is not written. Answers the version that the object has then.
    pub(crate) async fn overwrite(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        name: &str,
        dry_run: bool,
        change: impl Fn(&Entry, &mut Object) -> Result<(), RegistryError>,
    ) -> Result<String, RegistryError> {
        let mut attempts = self.attempts(resource, namespace, name).await?;
        loop {
            let current = attempts.current()?;
            let mut object = Decoded::stored_as(resource, current.bytes())?;
            change(&current, &mut object)?;
            let draft = encode(resource, &object);
            if dry_run || current.same_content(&draft) {
                return Ok(current.revision().to_string());
            }
            let key = attempts.key().clone();
            let write = Write { key, expect: Expect::At(current.revision()), change: Change::Put(draft) };
            if let Some(event) = attempts.settle(self.cache.write(write).await)? {
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
