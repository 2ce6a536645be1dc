//! [`PolicyBook`]: the admission policies and bindings that are in force, compiled: those of manifests, then those that
//! are stored.
//!
//! As with roles (`role_book.rs`), it has no task of its own: whoever reads it brings it up to date first, so that a
//! binding counts in the next request. A policy is compiled when its specification changes, and only then.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use revisor_admission::{AdmissionEnvironment, MutatingPolicy, PolicyBinding, ValidatingPolicy};
use revisor_cache::{Delivery, Item, ResourceCache};
use revisor_catalog::{Catalog, Feature, Resource};
use revisor_object::{Object, Value};
use revisor_version::Revision;

use crate::selection::place;
use crate::{Decoded, Registry};

/// The group of policies and bindings.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// How many changes are read at once.
const STEP: usize = 256;

/// Keeps the policies and bindings that are in force. Their expressions are compiled in the environment that readers
/// pass, which is always the same.
pub(crate) struct PolicyBook {
    validating: Side<ValidatingPolicy>,
    mutating: Side<MutatingPolicy>,
}

/// A policy with all its bindings, in the order of their names.
pub(crate) struct Hook<P> {
    pub(crate) policy: Arc<P>,
    pub(crate) bindings: Vec<Arc<PolicyBinding>>,
}

impl<P> Clone for Hook<P> {
    fn clone(&self) -> Hook<P> {
        Hook { policy: self.policy.clone(), bindings: self.bindings.clone() }
    }
}

/// The policies that something binds, in the order of their names. The original has no order.
pub(crate) type Hooks<P> = Arc<[Hook<P>]>;

/// Policies of one sort with their bindings.
struct Side<P> {
    policies: Option<Followed>,
    bindings: Option<Followed>,
    compile: fn(&AdmissionEnvironment, &str, &Object) -> P,
    hooks: RwLock<InForce<P>>,
    /// What the hooks are made of. Held by the one who brings them up to date.
    known: Mutex<Known<P>>,
}

struct InForce<P> {
    of_manifests: Hooks<P>,
    all: Hooks<P>,
}

struct Known<P> {
    policies: BTreeMap<String, Compiled<P>>,
    bindings: BTreeMap<String, Arc<PolicyBinding>>,
}

/// A policy that was compiled, and by what it is told that it need not be again.
struct Compiled<P> {
    policy: Arc<P>,
    uid: String,
    generation: i64,
}

/// A resource that is followed.
struct Followed {
    resource: Arc<Resource>,
    cache: Arc<ResourceCache>,
    /// The last change that is known; zero for none.
    seen: AtomicU64,
}

impl PolicyBook {
    /// A book of what these caches hold. Of what the catalog does not serve there is nothing.
    pub(crate) fn new(catalog: &Catalog, caches: &HashMap<String, Arc<ResourceCache>>) -> PolicyBook {
        let follow = |plural: &str| {
            let is_meant = |resource: &&Arc<Resource>| resource.group == GROUP && resource.plural == plural;
            let resource = catalog.resources().find(is_meant)?.storage().clone();
            let cache = caches.get(&resource.prefix)?.clone();
            Some(Followed { resource, cache, seen: AtomicU64::new(0) })
        };
        let mutates = catalog.features().has(Feature::MutatingAdmissionPolicy);
        PolicyBook {
            validating: Side::new(
                follow("validatingadmissionpolicies"),
                follow("validatingadmissionpolicybindings"),
                ValidatingPolicy::compile,
            ),
            mutating: Side::new(
                follow("mutatingadmissionpolicies").filter(|_| mutates),
                follow("mutatingadmissionpolicybindings").filter(|_| mutates),
                MutatingPolicy::compile,
            ),
        }
    }

    /// The policies that decide about writes; `None` if there are none.
    pub(crate) fn validating(&self, environment: &AdmissionEnvironment) -> Option<Hooks<ValidatingPolicy>> {
        self.validating.read(environment)
    }

    /// The policies that change writes; `None` if there are none.
    pub(crate) fn mutating(&self, environment: &AdmissionEnvironment) -> Option<Hooks<MutatingPolicy>> {
        self.mutating.read(environment)
    }

    /// Those of manifests that decide about writes; `None` if there are none.
    pub(crate) fn static_validating(&self) -> Option<Hooks<ValidatingPolicy>> {
        self.validating.read_static()
    }

    /// Those of manifests that change writes; `None` if there are none.
    pub(crate) fn static_mutating(&self) -> Option<Hooks<MutatingPolicy>> {
        self.mutating.read_static()
    }

    /// Puts the validating policies of manifests in the place of those before.
    pub(crate) fn take_static_validating(&self, hooks: Hooks<ValidatingPolicy>) {
        self.validating.take_static(hooks);
    }

    /// The same with the mutating ones.
    pub(crate) fn take_static_mutating(&self, hooks: Hooks<MutatingPolicy>) {
        self.mutating.take_static(hooks);
    }
}

impl Registry {
    /// Compiles what was written of policies and bindings, if it was one of them. Whoever writes a large policy is polled
    /// where that keeps nobody waiting (R2); whoever writes next is not.
    pub(crate) fn compile_policies(&self, resource: &Resource) {
        if resource.group == GROUP {
            self.compile_all_policies();
        }
    }

    /// Compiles all policies that are stored, before there is anybody who would wait for it.
    pub(crate) fn compile_all_policies(&self) {
        self.policies.validating(&self.expressions);
        self.policies.mutating(&self.expressions);
    }
}

impl<P> Side<P> {
    fn new(
        policies: Option<Followed>,
        bindings: Option<Followed>,
        compile: fn(&AdmissionEnvironment, &str, &Object) -> P,
    ) -> Side<P> {
        let known = Known { policies: BTreeMap::new(), bindings: BTreeMap::new() };
        Side {
            policies,
            bindings,
            compile,
            hooks: RwLock::new(InForce { of_manifests: Arc::new([]), all: Arc::new([]) }),
            known: Mutex::new(known),
        }
    }

    fn read(&self, environment: &AdmissionEnvironment) -> Option<Hooks<P>> {
        let followed = [&self.policies, &self.bindings];
        if followed.into_iter().flatten().any(Followed::is_behind) {
            self.catch_up(environment);
        }
        let hooks = self.hooks.read().unwrap_or_else(PoisonError::into_inner);
        (!hooks.all.is_empty()).then(|| hooks.all.clone())
    }

    fn read_static(&self) -> Option<Hooks<P>> {
        let hooks = self.hooks.read().unwrap_or_else(PoisonError::into_inner);
        (!hooks.of_manifests.is_empty()).then(|| hooks.of_manifests.clone())
    }

    fn take_static(&self, of_manifests: Hooks<P>) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = stored_hooks(&known);
        self.put_in_force(of_manifests, stored);
    }

    fn put_in_force(&self, of_manifests: Hooks<P>, stored: Vec<Hook<P>>) {
        let all = of_manifests.iter().cloned().chain(stored).collect();
        *self.hooks.write().unwrap_or_else(PoisonError::into_inner) = InForce { of_manifests, all };
    }

    fn catch_up(&self, environment: &AdmissionEnvironment) {
        // What is known is whole between two entries, and an entry is made before it is put in.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let followed = [&self.policies, &self.bindings];
        if !followed.into_iter().flatten().any(Followed::is_behind) {
            return;
        }
        let mut seen = [None, None];
        let Known { policies, bindings } = &mut *known;
        if let Some(followed) = &self.policies {
            seen[0] = followed.catch_up(policies, |name, object, before| {
                let text = |name| object.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default();
                let generation = object.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
                // Its status tells nothing new.
                if let Some(before) = before
                    && generation != 0
                    && (before.generation, before.uid.as_str()) == (generation, text("uid"))
                {
                    let Compiled { policy, uid, generation } = before;
                    return Compiled { policy: policy.clone(), uid: uid.clone(), generation: *generation };
                }
                let policy = Arc::new((self.compile)(environment, name, object));
                Compiled { policy, uid: text("uid").to_owned(), generation }
            });
        }
        if let Some(followed) = &self.bindings {
            seen[1] = followed.catch_up(bindings, |name, object, _| Arc::new(PolicyBinding::read(name, object)));
        }
        let of_manifests = self.hooks.read().unwrap_or_else(PoisonError::into_inner).of_manifests.clone();
        self.put_in_force(of_manifests, stored_hooks(&known));
        // Only now: who finds nothing to bring in must find the hooks that have it.
        for (followed, seen) in followed.into_iter().zip(seen) {
            if let Some(followed) = followed {
                followed.seen.store(seen.map_or(0, Revision::get), Ordering::Release);
            }
        }
    }
}

/// The stored policies that something binds.
fn stored_hooks<P>(known: &Known<P>) -> Vec<Hook<P>> {
    let mut bound: BTreeMap<&str, Vec<Arc<PolicyBinding>>> = BTreeMap::new();
    for binding in known.bindings.values() {
        bound.entry(&binding.policy).or_default().push(binding.clone());
    }
    let hooks = bound.into_iter().filter_map(|(name, bindings)| {
        let policy = known.policies.get(name)?.policy.clone();
        Some(Hook { policy, bindings })
    });
    hooks.collect()
}

impl Followed {
    fn seen(&self) -> Option<Revision> {
        Revision::new(self.seen.load(Ordering::Acquire))
    }

    fn is_behind(&self) -> bool {
        self.cache.delivered() > self.seen()
    }

    /// Brings all changes into `known`; `read` makes an entry of an object, given the one before. Answers which change
    /// was the last. Called by one at a time.
    fn catch_up<T>(
        &self,
        known: &mut BTreeMap<String, T>,
        read: impl Fn(&str, &Object, Option<&T>) -> T,
    ) -> Option<Revision> {
        let name_of = |key: &str| place(&self.resource, key).1.to_owned();
        // What cannot be read is as good as gone.
        let object_of = |item: &Item| Decoded::stored(item.bytes()).ok();
        let mut seen = self.seen();
        while self.cache.delivered() > seen {
            seen = match self.cache.changes_after(seen, STEP) {
                Some(changes) => {
                    for change in &changes {
                        let change: &Delivery = change;
                        let name = name_of(change.key().as_str());
                        match change.new().and_then(|item| object_of(item)) {
                            Some(object) => {
                                let entry = read(&name, &object, known.get(&name));
                                known.insert(name, entry);
                            }
                            None => {
                                known.remove(&name);
                            }
                        }
                    }
                    changes.last().map(|change| change.revision()).or_else(|| self.cache.delivered())
                }
                // It was not asked for long, or never: what there is now is all that matters.
                None => {
                    let snapshot = self.cache.snapshot();
                    let items = snapshot.range(&self.resource.prefix, None);
                    let entries = items.filter_map(|item| {
                        let name = name_of(item.key().as_str());
                        let object = object_of(item)?;
                        let entry = read(&name, &object, known.get(&name));
                        Some((name, entry))
                    });
                    *known = entries.collect();
                    snapshot.revision()
                }
            };
        }
        seen
    }
}
