//! What is said in the status of definitions, and of the Conversions that go with them.
//!
//! It is said by requests that the server makes to itself, about which webhooks and policies may be asked. They may be
//! behind this very server, or hang: so where somebody is asked, a task of its own says it, and others are looked at
//! meanwhile. As in the original, a definition is not in force before its status says so, and what is refused is tried
//! again and again.

use std::sync::{Arc, Weak};
use std::time::Duration;

use revisor_catalog::{Resource, TakenNames, settle_status};
use revisor_object::{Object, Value};
use tokio::task::AbortHandle;

use super::{Keeper, cleanup, group_of, identity};
use crate::conversions::Verdict;
use crate::{Operation, Place, Registry, RegistryError};

/// How long it takes at least until what was refused is tried again, and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(60));

/// Something that is being said about a definition or a Conversion, until this is dropped.
pub(super) struct Telling {
    what: What,
    task: AbortHandle,
}

#[derive(PartialEq)]
enum What {
    /// Which names a definition has, where these are taken.
    Settled(TakenNames),
    /// That a definition may go.
    LetGo,
    /// What became of a Conversion.
    Judged,
}

impl Telling {
    /// Says something until it is said, or until it is not to be said any more. What is refused is tried again.
    fn begin<F: Future<Output = Result<(), RegistryError>> + Send>(
        what: What,
        registry: Weak<Registry>,
        say: impl Fn(Arc<Registry>) -> F + Send + 'static,
    ) -> Telling {
        let task = tokio::spawn(async move {
            let mut pause = RETRY.0;
            loop {
                let Some(registry) = registry.upgrade() else { return };
                match say(registry).await {
                    Ok(()) => return,
                    Err(error) if is_end(&error) => return,
                    Err(error) => tracing::debug!(%error, "the status of a definition is not said yet"),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY.1);
            }
        });
        Telling { what, task: task.abort_handle() }
    }

    fn is_under_way(&self, what: &What) -> bool {
        self.what == *what && !self.task.is_finished()
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Keeper {
    /// Gives a definition its names, and says so in its status. The object is as it is stored, or as it is stored now.
    pub(super) async fn settle(&mut self, registry: &Arc<Registry>, name: &str, object: &mut Object) {
        let group = group_of(object).to_owned();
        self.remember_names(&group, name, object);
        let taken = self.taken(registry, &group);
        let mut settled = object.clone();
        if !settle_status(&mut settled, &taken, &registry.now()) {
            return;
        }
        if !is_asked(registry, &self.definitions) {
            match say_settled(registry, &self.definitions, name, &taken).await {
                Ok(()) => {
                    *object = settled;
                    return self.remember_names(&group, name, object);
                }
                Err(error) if is_end(&error) => return,
                Err(error) => tracing::debug!(definition = name, %error, "a definition is not in force yet"),
            }
        }
        // What goes needs no names.
        if object.at(&["metadata", "deletionTimestamp"]).is_none() {
            // Nobody else gets the names that it is about to get.
            self.remember_names(&group, name, &settled);
            self.settle_later(name, taken);
        }
    }

    fn settle_later(&mut self, name: &str, taken: TakenNames) {
        let what = What::Settled(taken.clone());
        if self.told.get(name).is_some_and(|telling| telling.is_under_way(&what)) {
            return;
        }
        let about = Arc::new((self.definitions.clone(), name.to_owned(), taken));
        let say = move |registry: Arc<Registry>| {
            let about = about.clone();
            async move { say_settled(&registry, &about.0, &about.1, &about.2).await }
        };
        self.told.insert(name.to_owned(), Telling::begin(what, self.registry.clone(), say));
    }

    /// Lets a definition go that was never in force.
    pub(super) async fn let_go(&mut self, registry: &Arc<Registry>, name: &str) {
        if !is_asked(registry, &self.definitions) {
            match cleanup::let_go(registry, &self.definitions, name).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(definition = name, %error, "a definition could not be let go yet"),
            }
        }
        if self.told.get(name).is_some_and(|telling| telling.is_under_way(&What::LetGo)) {
            return;
        }
        let about = Arc::new((self.definitions.clone(), name.to_owned()));
        let say = move |registry: Arc<Registry>| {
            let about = about.clone();
            async move { cleanup::let_go(&registry, &about.0, &about.1).await }
        };
        self.told.insert(name.to_owned(), Telling::begin(What::LetGo, self.registry.clone(), say));
    }

    /// Says in the status of a Conversion what became of it, unless it is another by now.
    pub(super) async fn tell(
        &mut self,
        registry: &Arc<Registry>,
        conversion: &Object,
        verdict: &Verdict,
        definition: Option<&Object>,
    ) {
        let name = conversion.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        if !is_asked(registry, &self.conversions) {
            match say_verdict(registry, &self.conversions, conversion, verdict, definition).await {
                Err(error) if !is_end(&error) => {
                    tracing::debug!(conversion = name, %error, "the status of a Conversion was not written");
                }
                _ => return,
            }
        }
        let about = Arc::new((self.conversions.clone(), conversion.clone(), verdict.clone(), definition.cloned()));
        let say = move |registry: Arc<Registry>| {
            let about = about.clone();
            async move { say_verdict(&registry, &about.0, &about.1, &about.2, about.3.as_ref()).await }
        };
        self.judged.insert(name.to_owned(), Telling::begin(What::Judged, self.registry.clone(), say));
    }
}

/// Whether there is nothing more to be said: what it would be said about is gone, or the store is.
pub(super) fn is_end(error: &RegistryError) -> bool {
    error.is_stop() || matches!(error, RegistryError::NotFound { .. })
}

/// Whether somebody may be asked before the status of an object is written.
fn is_asked(registry: &Registry, resource: &Arc<Resource>) -> bool {
    registry.may_be_asked(resource, Some("status"), Operation::Update)
}

/// Says in the status of a Conversion what became of it, unless it is another by now.
async fn say_verdict(
    registry: &Registry,
    conversions: &Arc<Resource>,
    conversion: &Object,
    verdict: &Verdict,
    definition: Option<&Object>,
) -> Result<(), RegistryError> {
    let name = conversion.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
    let place = Place { resource: conversions, namespace: None, name: Some(name) };
    let now = registry.now();
    let said = registry.tell_as_server(place, registry.own.options(), |current| {
        if identity(current) == identity(conversion) {
            verdict.tell(current, definition, &now);
        }
        Ok(())
    });
    said.await
}

/// Says in the status of a definition which names it has and whether it is in force.
async fn say_settled(
    registry: &Registry,
    definitions: &Arc<Resource>,
    name: &str,
    taken: &TakenNames,
) -> Result<(), RegistryError> {
    let now = registry.now();
    let place = Place { resource: definitions, namespace: None, name: Some(name) };
    let said = registry.tell_as_server(place, registry.own.options(), |current| {
        settle_status(current, taken, &now);
        Ok(())
    });
    said.await
}
