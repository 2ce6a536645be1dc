//! Who has to be looked at after what, on a graph of config maps.

use revisor_catalog::Catalog;

use super::*;
use crate::metadata::{FOREGROUND, ORPHAN, Owner};

struct Family {
    graph: Graph,
    home: Arc<Home>,
}

impl Family {
    fn new() -> Family {
        let resource = Catalog::default().resource("", "v1", "configmaps").expect("is served").clone();
        Family { graph: Graph::default(), home: Arc::new(Home::Here(resource)) }
    }

    /// Observes an object; owners with a `!` block.
    fn see(&mut self, name: &str, owners: &[&str], finalizer: Option<&str>) -> Vec<String> {
        let owners = owners.iter().map(|owner| Owner {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: owner.trim_end_matches('!').to_owned(),
            uid: Uid::new(owner.trim_end_matches('!')),
            blocks: owner.ends_with('!'),
        });
        let metadata = Metadata {
            uid: Uid::new(name),
            is_marked: finalizer.is_some(),
            finalizers: finalizer.iter().map(|finalizer| (*finalizer).to_owned()).collect(),
            owners: owners.collect(),
        };
        texts(self.graph.observe(&self.home, &Key::new(name), &metadata))
    }

    fn lose(&mut self, name: &str) -> Vec<String> {
        texts(self.graph.remove(&Key::new(name), &Uid::new(name)))
    }
}

fn texts(uids: Vec<Uid>) -> Vec<String> {
    let mut texts: Vec<String> = uids.iter().map(Uid::to_string).collect();
    texts.sort();
    texts
}

#[test]
fn objects_without_owners_cost_nothing_and_their_dependents_are_known() {
    let mut family = Family::new();
    assert!(family.see("owner", &[], None).is_empty());
    assert!(family.graph.all().is_empty());
    assert!(family.see("a", &["owner"], None).is_empty());
    assert!(family.see("b", &["owner", "other"], None).is_empty());
    assert_eq!(family.lose("owner"), ["a", "b"]);
    assert!(family.see("b", &[], None).is_empty());
    assert_eq!(texts(family.graph.all()), ["a"]);
    assert_eq!(family.lose("owner"), ["a"], "one who names an absent owner is known until it is gone");
    assert!(family.lose("a").is_empty());
    assert!(family.graph.dependents.is_empty() && family.graph.nodes.is_empty());
}

#[test]
fn an_owner_that_waits_hears_when_it_need_not_wait_any_more() {
    let mut family = Family::new();
    family.see("a", &["owner!"], None);
    family.see("b", &["owner!"], None);
    family.see("c", &["owner!"], None);
    family.see("d", &["owner"], None);
    assert_eq!(family.see("owner", &[], Some(FOREGROUND)), ["a", "b", "c", "d", "owner"]);
    assert!(family.see("owner", &[], Some(FOREGROUND)).is_empty(), "it is told once");
    let blocking = |family: &Family| texts(family.graph.blocking_dependents_of(&Uid::new("owner")));
    assert_eq!(blocking(&family), ["a", "b", "c"]);
    assert_eq!(family.see("a", &["owner"], None), ["owner"], "unblocked");
    assert_eq!(family.see("b", &[], None), ["owner"], "released");
    assert_eq!(family.lose("c"), ["owner"], "gone");
    assert!(blocking(&family).is_empty());
    assert_eq!(family.lose("owner"), ["a", "d"]);
}

#[test]
fn an_owner_that_orphans_is_looked_at_alone() {
    let mut family = Family::new();
    family.see("a", &["owner!"], None);
    assert_eq!(family.see("owner", &[], Some(ORPHAN)), ["owner"]);
    assert!(family.see("a", &[], None).is_empty(), "it does not wait for its dependents");
    assert!(family.see("owner", &[], Some("e.com/other")).is_empty());
    assert!(family.graph.all().is_empty(), "nothing is left to do about it");
}

#[test]
fn an_owner_that_is_named_twice_blocks_if_one_of_the_two_does() {
    let mut family = Family::new();
    family.see("a", &["owner", "owner!"], None);
    assert_eq!(texts(family.graph.blocking_dependents_of(&Uid::new("owner"))), ["a"]);
    assert_eq!(family.graph.dependents_of(&Uid::new("owner")).count(), 1);
}

#[test]
fn one_of_unknown_kind_is_looked_at_again_while_it_is_there() {
    let mut family = Family::new();
    family.see("a", &["owner"], None);
    family.see("b", &["owner"], None);
    for name in ["a", "b", "stranger"] {
        family.graph.set_unresolved(&Uid::new(name));
    }
    family.lose("b");
    assert_eq!(texts(family.graph.take_unresolved()), ["a"]);
    assert!(family.graph.take_unresolved().is_empty());
}
