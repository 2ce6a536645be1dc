//! [`Survey`]: every list and map of every built-in kind, written in every way.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use revisor_catalog::Resource;
use revisor_object::{Object, Value};

use crate::growth::Growth;
use crate::items::Variation;
use crate::objects::{renamed, small};
use crate::places::Place;
use crate::report::{Measured, Report};
use crate::server::{Server, Way};

/// How much is measured.
#[derive(Debug, Clone)]
pub struct Extent {
    /// How many items there are at most.
    pub items: usize,
    /// How large an object becomes at most.
    pub bytes: usize,
    /// Only what has this in its name.
    pub only: String,
    /// Only new objects, with items that differ in everything: for a first look.
    pub is_quick: bool,
}

/// Measures the built-in kinds of a server.
pub struct Survey<'a> {
    server: &'a Server,
    extent: &'a Extent,
    /// Fields that were measured in every way. Types that many kinds are made of are measured in one way in the others.
    known: HashSet<String>,
    numbers: usize,
}

/// Objects of one size for each size: what is to be measured.
struct Subject<'a> {
    resource: &'a Arc<Resource>,
    place: String,
    variation: Variation,
    /// Whether the field was not measured in another kind already. Otherwise a quarter of the items will do.
    is_new: bool,
    make: Box<dyn Fn(usize) -> Object + 'a>,
}

impl<'a> Survey<'a> {
    /// A survey of this extent.
    pub fn new(server: &'a Server, extent: &'a Extent) -> Survey<'a> {
        Survey { server, extent, known: HashSet::new(), numbers: 0 }
    }

    /// Measures all that is asked for, and tells of each kind when it is done: all of them take long.
    pub fn run(&mut self, report: &mut Report, tell: impl Fn(&str)) {
        let catalog = self.server.catalog();
        for resource in catalog.resources().filter(|resource| resource.custom().is_none()) {
            let name = format!("{} {}", resource.api_version, resource.plural);
            let (before, begun) = (report.measured().len(), Instant::now());
            self.measure_kind(&name, resource, report);
            let measured = report.measured().len() - before;
            if measured > 0 {
                tell(&format!("{name}: {measured} measured in {:.1} s", begun.elapsed().as_secs_f64()));
            }
        }
    }

    fn measure_kind(&mut self, name: &str, resource: &Arc<Resource>, report: &mut Report) {
        let (types, root) = resource.typed();
        let base = small(resource);
        let places = Place::all(types, root);
        let is_asked = |place: &Place| format!("{name} {}", place.name()).contains(&self.extent.only);
        let asked: Vec<&Place> = places.iter().filter(|place| is_asked(place)).collect();
        if asked.is_empty() {
            return;
        }
        if resource.is_stored() {
            // Updates have something to change; where this is refused, they are refused too.
            let stored = self.server.store(resource, &base);
            report.note_small(name, stored.err());
        }
        for place in &asked {
            let field = format!("{}.{} {}", types.get(place.owner).name, place.name(), place.is_status());
            let is_new = self.known.insert(field);
            for variation in Variation::ALL {
                if variation != Variation::Full && (!is_new || self.extent.is_quick) {
                    continue;
                }
                let make = |items| place.fill(types, root, &base, variation, items);
                let subject = Subject { resource, place: place.name(), variation, is_new, make: Box::new(make) };
                let in_all_ways = is_new && !self.extent.is_quick;
                self.measure(name, &subject, &ways(resource, place.is_status(), in_all_ways, variation), report);
            }
        }
        for siblings in siblings(&asked) {
            let make = |items| {
                let filled = |object: Object, place: &&Place| place.fill(types, root, &object, Variation::Full, items);
                siblings.iter().fold(base.clone(), filled)
            };
            let is_status = siblings[0].is_status();
            let parent = siblings[0].path[..siblings[0].path.len() - 1].join(".");
            let place = format!("{parent}.* ({} together)", siblings.len());
            let is_new = self.known.insert(format!("{}.* {is_status}", types.get(siblings[0].owner).name));
            let subject = Subject { resource, place, variation: Variation::Full, is_new, make: Box::new(make) };
            let in_all_ways = is_new && !self.extent.is_quick;
            self.measure(name, &subject, &ways(resource, is_status, in_all_ways, Variation::Full), report);
        }
        self.server.remove(resource, &base);
    }

    fn measure(&mut self, name: &str, subject: &Subject<'_>, ways: &[Way], report: &mut Report) {
        let Subject { resource, place, variation, is_new, make } = subject;
        let items = self.extent.items_of(|items| Value::Object(make(items)).to_json().len());
        let items = if *is_new { items } else { (items / 4).max(8) };
        for &way in ways {
            let mut is_taken = true;
            let mut growth = Growth::measure(items, |items| {
                let object = make(items);
                // Patches and applies are measured on an object that is as large, where it can be.
                self.numbers += 1;
                let large = renamed(&object, self.numbers);
                let is_change = matches!(way, Way::Update | Way::Strategic | Way::Merge | Way::Apply);
                let is_large = is_change && large != object && self.server.store(resource, &large).is_ok();
                let object = if is_large { large } else { object };
                let text = Value::Object(object.clone()).to_json();
                is_taken = self.server.send(way, resource, &object, text.as_bytes()).is_ok();
                let stored = Stored { server: self.server, resource, object, is_there: is_large };
                move || {
                    let sent = stored.server.send(way, stored.resource, &stored.object, text.as_bytes());
                    std::hint::black_box(sent.is_ok());
                }
            });
            growth.hold_against_reading(make);
            report.add(Measured {
                subject: name.to_owned(),
                place: place.clone(),
                variation: variation.name(),
                way: way.name(),
                growth,
                is_taken,
            });
        }
    }
}

/// An object that is removed again when it has been measured.
struct Stored<'a> {
    server: &'a Server,
    resource: &'a Arc<Resource>,
    object: Object,
    is_there: bool,
}

impl Drop for Stored<'_> {
    fn drop(&mut self) {
        if self.is_there {
            self.server.remove(self.resource, &self.object);
        }
    }
}

impl Extent {
    /// How many items make an object that is not too large, by the size of one with so many.
    pub fn items_of(&self, size: impl Fn(usize) -> usize) -> usize {
        let each = (size(9).saturating_sub(size(1)) / 8).max(1);
        (self.bytes / each).clamp(8, self.items)
    }
}

/// The ways in which a place is written.
fn ways(resource: &Resource, is_status: bool, is_new: bool, variation: Variation) -> Vec<Way> {
    if !resource.is_stored() {
        return vec![Way::Read];
    }
    if is_status && resource.subresource("status").is_some() {
        return if is_new && variation == Variation::Full { vec![Way::Status, Way::Table] } else { vec![Way::Status] };
    }
    match (is_new, variation) {
        (false, _) => vec![Way::Create],
        (true, Variation::Full) => {
            vec![Way::Create, Way::Update, Way::Strategic, Way::Apply, Way::Table]
        }
        (true, Variation::Distinct) => vec![Way::Create, Way::Update, Way::Strategic, Way::Merge, Way::Apply],
        (true, Variation::Equal | Variation::Wrong) => vec![Way::Create, Way::Apply],
    }
}

/// Lists and maps that stand beside each other: where each item of one looks at all of another, only both show it.
fn siblings<'a>(places: &[&'a Place]) -> Vec<Vec<&'a Place>> {
    let mut groups: Vec<Vec<&Place>> = Vec::new();
    for place in places.iter().filter(|place| place.depth == 0) {
        let parent = |place: &Place| place.path[..place.path.len() - 1].to_vec();
        match groups.iter_mut().find(|group| parent(group[0]) == parent(place)) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups.retain(|group| group.len() > 1 && &*group[0].path[0] != "metadata");
    groups
}
