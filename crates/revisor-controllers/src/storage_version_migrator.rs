//! StorageVersionMigrations: everything of a resource is stored anew that is stored otherwise than it would be today.
//!
//! The conditions are those of the original, and what they mean. How far a migration has come is not remembered
//! anywhere: what is stored tells, so it goes on after a crash, or on another server. Of several migrations of one
//! resource the oldest runs and the others wait. One that cannot be finished is tried again for as long as it comes any
//! further and for some time after that, then it fails and says which objects it could not store.
//!
//! The original takes versions off a definition's `storedVersions` also when the migration failed; here they are counted
//! (`MigrationStage::Succeeded`).

mod background;
mod migration;
mod pace;
mod pass;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use revisor_cache::{Feed, News};
use revisor_catalog::{Catalog, Resource, Verb};
use revisor_registry::{MigrationStage, Registry, RegistryError, WriteOptions};
use revisor_version::Revision;

use self::background::behind_others;
use self::migration::{Condition, Migration, Tally};
use self::pass::{Halt, Pass};
use crate::Clock;
use crate::controllers::{Controller, FIELD_MANAGER};
use crate::work_queue::{Backoff, Outcome, QueueTally, WorkQueue};

const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };

/// How often a migration is tried that comes no further: for about two minutes.
const MAX_ATTEMPTS: u32 = 8;

/// How long a resource is waited for that is not served, as in the original: a definition may be on its way.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a resource must allow, as the original lists it.
const VERBS: [Verb; 3] = [Verb::Update, Verb::Patch, Verb::List];

/// The group and the name of a resource.
type GroupResource = (String, String);

/// Migrates what is stored.
pub(crate) struct StorageVersionMigrator {
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    queue: WorkQueue<GroupResource>,
    /// How often those were tried that came no further, and what was left then, by their identity. To forget it costs
    /// some attempts.
    attempts: Mutex<HashMap<String, (u32, usize)>>,
}

impl StorageVersionMigrator {
    pub(crate) fn new(
        registry: Arc<Registry>,
        clock: Arc<dyn Clock>,
        tally: Arc<QueueTally>,
    ) -> StorageVersionMigrator {
        let queue = WorkQueue::new(clock.clone(), BACKOFF, tally);
        StorageVersionMigrator { registry, clock, queue, attempts: Mutex::default() }
    }

    /// Runs until it is dropped. Where migrations are not served there is nothing to do.
    pub(crate) async fn run(self) {
        let name = ("storagemigration.k8s.io".to_owned(), "storageversionmigrations".to_owned());
        let Some(migrations) = find(self.registry.built_in(), &name) else { return };
        let migrations = migrations.storage().clone();
        // One worker: the pace is one for all of them.
        tokio::join!(self.follow(&migrations), self.queue.work(|resource| self.work(&migrations, resource)));
    }

    async fn follow(&self, migrations: &Arc<Resource>) {
        let mut feed = Feed::open(&self.registry.cache_of(migrations), None);
        while let Some(news) = feed.next().await {
            match news {
                News::Present(item) | News::Changed { new: item, .. } | News::Gone(item) => {
                    if let Some(migration) = Migration::read(item.bytes()) {
                        self.queue.add(migration.resource);
                    }
                }
                News::Complete { .. } => {}
            }
            tokio::task::consume_budget().await;
        }
    }

    /// Works on the migration of a resource whose turn it is.
    async fn work(&self, migrations: &Arc<Resource>, resource: GroupResource) -> Outcome {
        let snapshot = self.registry.cache_of(migrations).snapshot();
        let known = snapshot.range(&migrations.prefix, None).filter_map(|item| Migration::read(item.bytes()));
        let mut waiting: Vec<Migration> = known.filter(|known| known.resource == resource && !known.is_over).collect();
        waiting.sort_by(|one, other| one.turn().cmp(&other.turn()));
        let Some(migration) = waiting.into_iter().next() else { return Outcome::Done };
        match self.migrate(migrations, &migration).await {
            Ok(outcome) => outcome,
            // It was deleted.
            Err(RegistryError::NotFound { .. }) => Outcome::Retry,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(migration = migration.name, error, "a storage version migration is held up");
                Outcome::Retry
            }
        }
    }

    async fn migrate(&self, migrations: &Arc<Resource>, migration: &Migration) -> Result<Outcome, RegistryError> {
        let Some(resource) = find(&self.registry.catalog(), &migration.resource) else {
            if migration.is_younger_than(PATIENCE, self.clock.now()) {
                return Ok(Outcome::RetryAfter(Duration::from_secs(1)));
            }
            return self.fail(migrations, migration, None, "resource does not exist in discovery".to_owned()).await;
        };
        if !VERBS.iter().all(|verb| resource.verbs.contains(verb)) {
            let why = format!(
                "resource \"{}/{}, Resource={}\" does not support discovery operations: [update patch list]",
                resource.group, resource.version, resource.plural
            );
            return self.fail(migrations, migration, None, why).await;
        }
        let Some(begun) = migration.begun.or_else(|| self.registry.cache_of(&resource).reached()) else {
            return Ok(Outcome::Done);
        };
        let run = Arc::new(Run {
            registry: self.registry.clone(),
            clock: self.clock.clone(),
            migrations: migrations.clone(),
            migration: migration.clone(),
            begun,
        });
        run.tell(Pass::new(&self.registry, &resource, begun).tally(), "").await?;
        self.tell(&resource, MigrationStage::Running(&migration.name)).await?;
        loop {
            let pass = Pass::new(&self.registry, &resource, begun);
            let running = run.clone();
            let tally = match behind_others(async move { pass.run(&running).await }).await {
                Some(Ok(tally)) => tally,
                Some(Err(Halt::Interrupted(error))) => return Err(error),
                None => return Ok(Outcome::Retry),
                Some(Err(Halt::Failed(failures))) => {
                    let (tally, trouble) = (failures.tally, failures.to_string());
                    if failures.is_final || !self.has_another_attempt(migration, tally) {
                        return self.fail(migrations, migration, Some((&resource, tally)), trouble).await;
                    }
                    run.tell(tally, &format!("; trying again: {trouble}")).await?;
                    return Ok(Outcome::Retry);
                }
            };
            // Whoever began to write before the definition was changed stores what they write as it was then.
            if self.registry.has_former_writes(&resource) {
                run.tell(tally, "; waiting for writes that began before the definition was changed").await?;
                return Ok(Outcome::RetryAfter(BACKOFF.first));
            }
            // What they and others wrote meanwhile is found by looking once more.
            if !Pass::new(&self.registry, &resource, begun).has_other_versions() {
                self.tell(&resource, MigrationStage::Succeeded).await?;
                let conditions = [Condition::completed(), Condition::succeeded(tally)];
                migration.tell(&self.registry, migrations, &conditions, Some(begun), self.clock.now()).await?;
                self.attempts().remove(&migration.uid);
                return Ok(Outcome::Done);
            }
        }
    }

    /// Says in the status of a definition how far the migration of its objects is.
    async fn tell(&self, resource: &Arc<Resource>, stage: MigrationStage<'_>) -> Result<(), RegistryError> {
        let account = Controller::StorageVersionMigrator.actor();
        let options = WriteOptions { field_manager: FIELD_MANAGER, ..account.options() };
        self.registry.tell_migration(resource, stage, options).await
    }

    /// Whether a migration that left so much is to be tried again: if it came any further, or not too often yet.
    fn has_another_attempt(&self, migration: &Migration, tally: Tally) -> bool {
        let mut all = self.attempts();
        let (attempts, left) = all.entry(migration.uid.clone()).or_insert((0, tally.left));
        *attempts = if tally.left < *left { 1 } else { *attempts + 1 };
        *left = tally.left;
        *attempts < MAX_ATTEMPTS
    }

    /// Ends a migration that cannot be finished.
    async fn fail(
        &self,
        migrations: &Arc<Resource>,
        migration: &Migration,
        begun: Option<(&Arc<Resource>, Tally)>,
        why: String,
    ) -> Result<Outcome, RegistryError> {
        tracing::warn!(migration = migration.name, why, "a storage version migration failed");
        if let Some((resource, _)) = begun {
            self.tell(resource, MigrationStage::Failed).await?;
        }
        let failed = Condition::failed(begun.map(|(_, tally)| tally), &why);
        let conditions: Vec<Condition> = begun.map(|_| Condition::completed()).into_iter().chain([failed]).collect();
        migration.tell(&self.registry, migrations, &conditions, None, self.clock.now()).await?;
        self.attempts().remove(&migration.uid);
        Ok(Outcome::Done)
    }

    fn attempts(&self) -> MutexGuard<'_, HashMap<String, (u32, usize)>> {
        self.attempts.lock().expect("no holder of the attempts panics")
    }
}

/// A migration that is at work.
struct Run {
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    migrations: Arc<Resource>,
    migration: Migration,
    /// The state that it began with.
    begun: Revision,
}

impl Run {
    /// Tells how far it is.
    async fn tell(&self, tally: Tally, trouble: &str) -> Result<(), RegistryError> {
        let running = [Condition::running(tally, trouble)];
        let Run { registry, migrations, .. } = self;
        self.migration.tell(registry, migrations, &running, Some(self.begun), self.clock.now()).await
    }
}

/// The resource with this name, in any version in which it is served.
fn find(catalog: &Catalog, (group, plural): &GroupResource) -> Option<Arc<Resource>> {
    catalog.resources().find(|resource| resource.name() == (group, plural)).cloned()
}
