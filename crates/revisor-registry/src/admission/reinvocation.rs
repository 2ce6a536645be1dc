//! [`Reinvocation`]: who is asked again in a second mutating pass, because somebody changed the object after them.
//!
//! As in the original there is at most one second pass. All plugins of the server take part in it; of webhooks and
//! policies those that want to (`IfNeeded`) and after whose call something changed.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use revisor_object::Object;

/// What is known of the mutating passes over one object (upstream: `ReinvocationContext`).
#[derive(Default)]
pub(crate) struct Reinvocation {
    is_second: AtomicBool,
    is_wanted: AtomicBool,
    plugins: Mutex<HashMap<&'static str, Invoked>>,
}

/// What one plugin has called.
#[derive(Default)]
struct Invoked {
    /// Those that were called and want to be called again if something changes.
    eligible: HashSet<String>,
    /// Those of them after whose call something changed.
    due: HashSet<String>,
    /// The object as the plugin left it.
    left: Option<Object>,
}

impl Reinvocation {
    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Invoked>> {
        // Each set is whole whenever it can be seen.
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one of those who were called changed the object.
    pub(crate) fn has_changed(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Whether this is the second pass.
    pub(crate) fn is_second(&self) -> bool {
        self.is_second.load(Ordering::Relaxed)
    }

    /// Goes over to the second pass, if somebody wants one.
    pub(crate) fn begin_second(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && !self.is_second.swap(true, Ordering::Relaxed)
    }

    /// A plugin begins a pass. What others changed since its last one makes all due that it called.
    pub(crate) fn begin(&self, plugin: &'static str, object: &Object) {
        if !self.is_second() {
            return;
        }
        if let Some(invoked) = self.lock().get_mut(plugin)
            && invoked.left.as_ref().is_some_and(|left| left != object)
        {
            invoked.due.extend(invoked.eligible.drain());
        }
    }

    /// Whether one of those whom a plugin calls is to be called in this pass.
    pub(crate) fn is_due(&self, plugin: &'static str, id: &str) -> bool {
        !self.is_second() || self.lock().get(plugin).is_some_and(|invoked| invoked.due.contains(id))
    }

    /// One of those whom a plugin calls was called, and may have changed the object.
    pub(crate) fn called(&self, plugin: &'static str, id: &str, has_changed: bool, is_eligible: bool) {
        if !has_changed && !is_eligible {
            return;
        }
        let mut plugins = self.lock();
        let invoked = plugins.entry(plugin).or_default();
        if has_changed {
            invoked.due.extend(invoked.eligible.drain());
            self.is_wanted.store(true, Ordering::Relaxed);
        }
        if is_eligible {
            invoked.eligible.insert(id.to_owned());
        }
    }

    /// All whom a plugin called and who want to be called again are to be, whatever changed since.
    pub(crate) fn reinvoke_all(&self, plugin: &'static str) {
        if let Some(invoked) = self.lock().get_mut(plugin) {
            invoked.due.extend(invoked.eligible.drain());
        }
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// A plugin ends a pass.
    pub(crate) fn end(&self, plugin: &'static str, object: &Object) {
        if let Some(invoked) = self.lock().get_mut(plugin).filter(|_| !self.is_second()) {
            invoked.left = Some(object.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::Value;

    use super::*;

    const PLUGIN: &str = "plugin";

    #[test]
    fn only_those_are_asked_again_after_whom_something_changed() {
        let object = Object::new();
        let first = |calls: &[(&str, bool, bool)]| {
            let passes = Reinvocation::default();
            passes.begin(PLUGIN, &object);
            for (id, has_changed, is_eligible) in calls {
                assert!(passes.is_due(PLUGIN, id));
                passes.called(PLUGIN, id, *has_changed, *is_eligible);
            }
            passes.end(PLUGIN, &object);
            passes
        };
        let unchanged = first(&[("a", false, true), ("b", false, true)]);
        assert!(!unchanged.begin_second(), "nothing changed");

        let changed = first(&[("a", false, true), ("b", true, true), ("c", false, false)]);
        assert!(changed.begin_second());
        changed.begin(PLUGIN, &object);
        assert_eq!(["a", "b", "c"].map(|id| changed.is_due(PLUGIN, id)), [true, false, false]);
        assert!(!changed.begin_second(), "there is no third pass");

        let wanted_by_all = first(&[("a", true, true), ("b", false, false)]);
        wanted_by_all.reinvoke_all(PLUGIN);
        assert!(wanted_by_all.begin_second());
        wanted_by_all.begin(PLUGIN, &object);
        assert_eq!(["a", "b"].map(|id| wanted_by_all.is_due(PLUGIN, id)), [true, false]);

        let changed_by_others = first(&[("a", true, true)]);
        assert!(changed_by_others.begin_second());
        changed_by_others.begin(PLUGIN, &Object::from_iter([("a", Value::from(1))]));
        assert!(changed_by_others.is_due(PLUGIN, "a"));
    }
}
