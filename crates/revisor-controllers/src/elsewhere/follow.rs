//! [`Follow`]: keeps up with all objects of a resource that another server keeps, by lists and watches as any client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::StreamExt;
use revisor_registry::Actor;
use revisor_store::Key;
use sonic_rs::JsonValueTrait;
use tokio::sync::watch;

use super::{ActionElsewhere, Elsewhere, RequestElsewhere, ResourceElsewhere};
use crate::Clock;
use crate::metadata::{Metadata, text_at};
use crate::uid::Uid;

/// How many objects are asked for at once.
const PAGE: usize = 500;

/// The most objects of one resource that are kept in mind. One that has more is not followed.
const MOST_OBJECTS: usize = 500_000;

/// The longest line of a watch: an object is smaller.
const MOST_LINE: usize = 16 << 20;

/// How long to wait before a server is asked again: first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What happened elsewhere.
pub(crate) enum NewsElsewhere<'a> {
    /// An object is there, new or changed.
    Present(&'a Key, &'a Metadata),
    /// An object is gone.
    Gone(&'a Key, &'a Uid),
}

/// The objects of a resource that another server was last known to have.
pub(crate) struct Roster {
    known: Mutex<HashMap<Uid, Key>>,
    /// Whether it was asked for all of them, and whether it has answered.
    asked: watch::Sender<Option<bool>>,
}

impl Default for Roster {
    fn default() -> Roster {
        Roster { known: Mutex::default(), asked: watch::Sender::new(None) }
    }
}

impl Roster {
    /// Whether an object with this identity is there, under this key.
    pub(crate) fn has(&self, uid: &Uid, key: &str) -> bool {
        self.known().get(uid).is_some_and(|known| known.as_str() == key)
    }

    /// How many objects have keys that begin like this; nothing before it is known.
    pub(crate) fn count(&self, prefix: &str) -> Option<usize> {
        let is_listed = *self.asked.borrow() == Some(true);
        is_listed.then(|| self.known().values().filter(|key| key.as_str().starts_with(prefix)).count())
    }

    /// Whether the server was asked for its objects once.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.borrow().is_some()
    }

    /// Waits for that.
    pub(crate) async fn asked(&self) {
        // The sender is in this value.
        let _ = self.asked.subscribe().wait_for(Option::is_some).await;
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Uid, Key>> {
        self.known.lock().expect("no holder of the roster panics")
    }

    fn note(&self, is_listed: bool) {
        self.asked.send_if_modified(|asked| {
            let was = *asked;
            *asked = Some(is_listed || was == Some(true));
            *asked != was
        });
    }
}

/// Follows the objects of a resource.
pub(crate) struct Follow<'a> {
    pub(crate) elsewhere: &'a dyn Elsewhere,
    pub(crate) resource: &'a ResourceElsewhere,
    pub(crate) actor: &'a Actor,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) roster: &'a Roster,
}

/// Why a list or a watch came to its end.
enum End {
    /// The server has ended it, as it does from time to time.
    Over,
    /// What was asked for is too old: everything has to be listed again.
    Expired,
    /// It did not work.
    Failed(String),
    /// There is more than can be kept in mind.
    TooMuch,
}

/// An object as it came.
struct Seen {
    key: Key,
    metadata: Metadata,
}

impl Follow<'_> {
    /// Tells of all objects, and of what becomes of them. It only ends when there are too many.
    pub(crate) async fn run(&self, mut tell: impl FnMut(NewsElsewhere<'_>)) {
        let mut version: Option<String> = None;
        let mut failures = 0;
        loop {
            let end = match &mut version {
                None => match self.list(&mut tell).await {
                    Ok(listed) => {
                        self.roster.note(true);
                        version = Some(listed);
                        failures = 0;
                        continue;
                    }
                    Err(end) => end,
                },
                Some(version) => {
                    let before = version.clone();
                    let end = self.watch(version, &mut tell).await;
                    if *version != before {
                        failures = 0;
                    }
                    end
                }
            };
            match end {
                End::Over => {}
                End::Expired => version = None,
                End::Failed(why) => {
                    tracing::debug!(resource = self.resource.prefix(), why, "cannot follow objects of another server");
                    self.roster.note(false);
                    failures += 1;
                }
                End::TooMuch => {
                    tracing::warn!(
                        resource = self.resource.prefix(),
                        most = MOST_OBJECTS,
                        "another server has too many objects to be followed"
                    );
                    return self.roster.note(false);
                }
            }
            let (first, longest) = PAUSES;
            let pause = first.saturating_mul(2_u32.saturating_pow(u32::min(failures, 10))).min(longest);
            self.clock.sleep_until(self.clock.uptime().saturating_add(pause)).await;
        }
    }

    /// Tells of all objects that are there, then of those that were and are not any more. Answers the version of the list.
    async fn list(&self, tell: &mut impl FnMut(NewsElsewhere<'_>)) -> Result<String, End> {
        let mut listed: HashMap<Uid, Key> = HashMap::new();
        let mut after = String::new();
        loop {
            let action = ActionElsewhere::Show(Some((PAGE, &after)));
            let (resource, actor) = (self.resource, self.actor);
            let request = RequestElsewhere { resource, namespace: None, name: None, action, actor };
            let answer = self.elsewhere.ask(request).await.map_err(End::Failed)?;
            match answer.code {
                200 => {}
                410 => return Err(End::Expired),
                code => return Err(End::Failed(format!("the list came with status {code}"))),
            }
            let items = sonic_rs::get(&answer.body, ["items"]).ok();
            let items = items.as_ref().map_or("[]", |items| items.as_raw_str());
            // A list of nothing may say `null`.
            let items = if items == "null" { "[]" } else { items };
            for item in sonic_rs::to_array_iter(items) {
                let item = item.map_err(|error| End::Failed(error.to_string()))?;
                let Some(seen) = self.seen(item.as_raw_str().as_bytes()) else { continue };
                listed.insert(seen.metadata.uid.clone(), seen.key.clone());
                if listed.len() > MOST_OBJECTS {
                    return Err(End::TooMuch);
                }
                self.present(&seen, tell);
            }
            after = text_at(&answer.body, &["metadata", "continue"]);
            if after.is_empty() {
                let gone: Vec<(Uid, Key)> = {
                    let known = self.roster.known();
                    let gone = known.iter().filter(|(uid, _)| !listed.contains_key(*uid));
                    gone.map(|(uid, key)| (uid.clone(), key.clone())).collect()
                };
                for (uid, key) in gone {
                    self.gone(&key, &uid, tell);
                }
                return Ok(text_at(&answer.body, &["metadata", "resourceVersion"]));
            }
        }
    }

    /// Tells of changes after a version, which moves on with them.
    async fn watch(&self, version: &mut String, tell: &mut impl FnMut(NewsElsewhere<'_>)) -> End {
        let mut pieces = match self.elsewhere.watch(self.resource, version, self.actor).await {
            Ok(Ok(pieces)) => pieces,
            Ok(Err(410)) => return End::Expired,
            Ok(Err(code)) => return End::Failed(format!("the watch came with status {code}")),
            Err(why) => return End::Failed(why),
        };
        let mut line = Vec::new();
        while let Some(piece) = pieces.next().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(why) => return End::Failed(why),
            };
            for part in piece.split_inclusive(|byte| *byte == b'\n') {
                if line.len() + part.len() > MOST_LINE {
                    return End::Failed("an event is too long".to_owned());
                }
                line.extend_from_slice(part);
                if line.ends_with(b"\n") {
                    if let Err(end) = self.event(&line, version, tell) {
                        return end;
                    }
                    line.clear();
                }
            }
            if self.roster.known().len() > MOST_OBJECTS {
                return End::TooMuch;
            }
            tokio::task::consume_budget().await;
        }
        End::Over
    }

    fn event(&self, line: &[u8], version: &mut String, tell: &mut impl FnMut(NewsElsewhere<'_>)) -> Result<(), End> {
        let object = sonic_rs::get(line, ["object"]).map_err(|error| End::Failed(error.to_string()))?;
        let object = object.as_raw_str().as_bytes();
        let kind = text_at(line, &["type"]);
        match kind.as_str() {
            "ADDED" | "MODIFIED" => {
                if let Some(seen) = self.seen(object) {
                    self.present(&seen, tell);
                }
            }
            "DELETED" => {
                if let Some(seen) = self.seen(object) {
                    self.gone(&seen.key, &seen.metadata.uid, tell);
                }
            }
            "ERROR" => {
                let code = sonic_rs::get(object, ["code"]).ok().and_then(|code| code.as_i64());
                return Err(if code == Some(410) { End::Expired } else { End::Failed("the watch failed".to_owned()) });
            }
            _ => {}
        }
        let moved = text_at(object, &["metadata", "resourceVersion"]);
        if !moved.is_empty() {
            *version = moved;
        }
        Ok(())
    }

    fn present(&self, seen: &Seen, tell: &mut impl FnMut(NewsElsewhere<'_>)) {
        self.roster.known().insert(seen.metadata.uid.clone(), seen.key.clone());
        tell(NewsElsewhere::Present(&seen.key, &seen.metadata));
    }

    fn gone(&self, key: &Key, uid: &Uid, tell: &mut impl FnMut(NewsElsewhere<'_>)) {
        self.roster.known().remove(uid);
        tell(NewsElsewhere::Gone(key, uid));
    }

    fn seen(&self, object: &[u8]) -> Option<Seen> {
        let metadata = Metadata::read(object)?;
        let (namespace, name) = (text_at(object, &["metadata", "namespace"]), text_at(object, &["metadata", "name"]));
        let place = if self.resource.namespaced { format!("{namespace}/{name}") } else { name };
        Some(Seen { key: Key::new(Arc::<str>::from(format!("{}{place}", self.resource.prefix()))), metadata })
    }
}

#[cfg(test)]
mod tests;
