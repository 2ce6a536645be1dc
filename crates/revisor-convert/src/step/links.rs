//! From links to programs and to what may be kept.
//!
//! Both are walks over the two shapes at once. They are made for one side at a time: the places of one side only become
//! longer on the way, so that rules which stand in each other crosswise end too.

use std::collections::BTreeSet;

use revisor_object::Value;
use revisor_schema::{ListType, Structural};

use super::Side;
use super::claims::{Claim, Claims, LinkKind, value_map};
use crate::kept::{Keep, KeepObject};
use crate::path::{Path, Segment};
use crate::program::{Computation, Move, Names, Node, ObjectNode, Scope, What};
use crate::schema::{META, is_object, is_open, member, values};

/// A place, and what stands there.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a Path,
    schema: &'a Structural,
}

impl Claims<'_> {
    /// The programs that lead to each side from the other one.
    fn programs(&self) -> &[Node; 2] {
        self.programs.get_or_init(|| Side::BOTH.map(|side| self.program(side)))
    }

    /// The same, for whoever needs them longer.
    pub(super) fn take_programs(&mut self) -> [Node; 2] {
        let known = self.programs.take();
        known.unwrap_or_else(|| Side::BOTH.map(|side| self.program(side)))
    }

    fn program(&self, to: Side) -> Node {
        let from = to.other();
        let (source, target) = (self.versions[from as usize].shape(), self.versions[to as usize].shape());
        let root = Path::root();
        self.node(to, Place { path: &root, schema: source }, Place { path: &root, schema: target })
    }

    /// What becomes of a value at `from` that is the same as the one at `at` of the side that it goes to.
    fn node(&self, to: Side, from: Place<'_>, at: Place<'_>) -> Node {
        let base = self.base(to, from, at);
        let moves = self.moves(to, from.path, at.path);
        if moves.is_empty() { base } else { Node::Scope(Box::new(Scope { base: Some(base), moves })) }
    }

    fn base(&self, to: Side, from: Place<'_>, at: Place<'_>) -> Node {
        if let (Some(source), Some(target)) = (&from.schema.items, &at.schema.items) {
            let item = self.item(to, from.path, source, at.path, target);
            return if matches!(item, Node::Same) { Node::Same } else { Node::List(Box::new(item)) };
        }
        if !is_object(from.schema) || !is_object(at.schema) {
            return Node::Same;
        }
        let mut members: Vec<(Box<str>, Option<Node>)> = Vec::new();
        for name in self.names(to, from, at) {
            let (source, target) = (from.path.member(&name), at.path.member(&name));
            let node = match (member(from.schema, &name), member(at.schema, &name)) {
                (Some(one), Some(other)) if self.is_same_place((to.other(), &source, one), (&target, other)) => {
                    Some(self.node(to, Place { path: &source, schema: one }, Place { path: &target, schema: other }))
                }
                (None, None) if from.schema.is_embedded_resource && META.contains(&&*name) => Some(Node::Same),
                _ => None,
            };
            members.push((name, node));
        }
        let others = match (values(from.schema), values(at.schema)) {
            (Some(source), Some(target)) => Some(self.item(to, from.path, source, at.path, target)),
            _ => (is_open(from.schema) && is_open(at.schema)).then_some(Node::Same),
        };
        let has_others = values(from.schema).is_some() || is_open(from.schema);
        let stays = |node: &Option<Node>| matches!(node, Some(Node::Same));
        if members.iter().all(|(_, node)| stays(node)) && (!has_others || stays(&others)) {
            return Node::Same;
        }
        Node::Object(Box::new(ObjectNode { members, others }))
    }

    /// The members of which something is known on either side.
    fn names(&self, to: Side, from: Place<'_>, at: Place<'_>) -> BTreeSet<Box<str>> {
        let known = from.schema.properties.iter().chain(&at.schema.properties).map(|(name, _)| name.clone());
        let mut names: BTreeSet<Box<str>> = known.collect();
        names.extend(self.claimed_members(to.other(), from.path));
        names.extend(self.claimed_members(to, at.path));
        if from.schema.is_embedded_resource && at.schema.is_embedded_resource {
            names.extend(META.map(Box::from));
        }
        names
    }

    /// What becomes of the items of a list, or of the values of a map.
    fn item(&self, to: Side, from: &Path, source: &Structural, at: &Path, target: &Structural) -> Node {
        let (from, at) = (from.every(), at.every());
        let claims = (self.claimed(to.other(), &from), self.claimed(to, &at));
        match claims {
            (None, None) => self.node(to, Place { path: &from, schema: source }, Place { path: &at, schema: target }),
            (Some(Claim::Link(one)), Some(Claim::Link(other))) if one == other => {
                self.visit(to, &from, &at);
                self.link(to, one)
            }
            // The items as a whole have another place, or come from one.
            _ => Node::Scope(Box::new(Scope { base: None, moves: self.moves(to, &from, &at) })),
        }
    }

    /// What becomes of a value that a rule names.
    fn link(&self, to: Side, link: usize) -> Node {
        let link = &self.links[link];
        let (from, at) = (&link.ends[to.other() as usize], &link.ends[to as usize]);
        let schemas = (self.schema(to.other(), from), self.schema(to, at));
        let (Some(source), Some(target)) = schemas else { return Node::Same };
        match &link.kind {
            LinkKind::Plain => self.node(to, Place { path: from, schema: source }, Place { path: at, schema: target }),
            LinkKind::Values(values) => Node::Values(Box::new(value_map(values, to))),
            LinkKind::List => {
                let list = if to == Side::Right { target } else { source };
                let Some(item) = &list.items else { return Node::Same };
                match to {
                    Side::Right => {
                        let every = at.every();
                        let one = Place { path: from, schema: source };
                        Node::Wrap(Box::new(self.base(to, one, Place { path: &every, schema: item })))
                    }
                    Side::Left => {
                        let every = from.every();
                        let one = Place { path: at, schema: target };
                        Node::First(Box::new(self.base(to, Place { path: &every, schema: item }, one)))
                    }
                }
            }
        }
    }

    fn visit(&self, to: Side, from: &Path, at: &Path) {
        let mut scope = [from.clone(), at.clone()];
        if to == Side::Left {
            scope.reverse();
        }
        self.visited.borrow_mut().insert(scope);
    }

    /// What the rules do whose places are in these items, or in the whole objects.
    fn moves(&self, to: Side, from: &Path, at: &Path) -> Vec<Move> {
        self.visit(to, from, at);
        let is_scope = |left: &Path, right: &Path| match to {
            Side::Right => left == from && right == at,
            Side::Left => right == from && left == at,
        };
        let rest = |path: &Path| -> Names { path.after(path.scope().segments().len()).names() };
        let mut moves = Vec::new();
        // What is moved into something that is moved too comes after it.
        let mut links: Vec<_> = self.links.iter().enumerate().collect();
        links.sort_by_key(|(_, link)| link.ends[to as usize].segments().len());
        for (number, link) in links {
            let [left, right] = link.ends.each_ref().map(Path::scope);
            let is_whole = link.ends[0] == left && link.ends[1] == right;
            if !is_scope(&left, &right) || is_whole {
                continue;
            }
            let (source, target) = (&link.ends[to.other() as usize], &link.ends[to as usize]);
            let what = What::Link { from: rest(source), to: rest(target), node: self.link(to, number) };
            moves.push(Move { rule: link.rule, what });
        }
        for (computed, compute) in self.computed.iter().filter(|(computed, _)| {
            let [left, right] = &computed.scope;
            is_scope(left, right)
        }) {
            let reads = self.reads(to.other(), compute);
            let write = |expression: &super::claims::Expression| {
                let target = self.schema(to, &expression.path)?;
                let program = self.program_of(&expression.text, &reads, target)?;
                Some((rest(&expression.path), program))
            };
            let writes: Vec<_> = computed.ways[to as usize].iter().filter_map(write).collect();
            if !writes.is_empty() {
                moves.push(Move { rule: computed.rule, what: What::Compute(Computation { reads, writes }) });
            }
        }
        for fill in self.fills.iter().filter(|fill| fill.side == to && fill.path.scope() == *at) {
            let scope = at.segments().len();
            // What both sides have must be there; what only this side has is made.
            let holders = fill.path.segments().len().saturating_sub(scope).saturating_sub(1);
            let is_shared = |steps: &usize| self.counterpart(to, &fill.path.first(scope + steps)).is_some();
            let needs = (0..=holders).rev().find(is_shared).unwrap_or(0);
            let what = What::Fill { to: rest(&fill.path), needs, value: fill.value.clone() };
            moves.push(Move { rule: fill.rule, what });
        }
        moves
    }

    /// What may be kept of the objects of a side.
    pub(super) fn keep_root(&self, side: Side) -> Keep {
        let root = Path::root();
        let ours = Place { path: &root, schema: self.versions[side as usize].shape() };
        let theirs = Place { path: &root, schema: self.versions[side.other() as usize].shape() };
        self.keep(side, ours, Some(theirs))
    }

    /// What may be kept of a value that is the same as the one at `other`; or that only this side has.
    fn keep(&self, side: Side, at: Place<'_>, other: Option<Place<'_>>) -> Keep {
        let has_claims = self.has_claims_below(side, at.path);
        let Some(other) = other else {
            let is_holder = has_claims && is_object(at.schema);
            return if is_holder { self.keep_object(side, at, None) } else { Keep::Whole };
        };
        if let (Some(ours), Some(theirs)) = (&at.schema.items, &other.schema.items) {
            let item = self.keep_item(side, at.path, ours, other.path, theirs);
            let keys = match at.schema.list_type {
                Some(ListType::Map) => at.schema.list_map_keys.clone(),
                _ => Vec::new(),
            };
            return if item == Keep::Nothing { Keep::Nothing } else { Keep::Items(Box::new(item), keys) };
        }
        if is_object(at.schema) && (is_object(other.schema) || has_claims) {
            return self.keep_object(side, at, Some(other));
        }
        Keep::Nothing
    }

    fn keep_item(&self, side: Side, at: &Path, ours: &Structural, other: &Path, theirs: &Structural) -> Keep {
        let (at, other) = (at.every(), other.every());
        let place = Place { path: &at, schema: ours };
        match self.claimed(side, &at) {
            Some(claim) => self.keep_claimed(side, place, claim),
            None => self.keep(side, place, Some(Place { path: &other, schema: theirs })),
        }
    }

    /// What may be kept of a place that a rule has.
    fn keep_claimed(&self, side: Side, at: Place<'_>, claim: Claim) -> Keep {
        let link = match claim {
            Claim::Fill => return Keep::Whole,
            Claim::Compute => return Keep::Nothing,
            Claim::Link(link) => &self.links[link],
        };
        let end = &link.ends[side.other() as usize];
        let Some(schema) = self.schema(side.other(), end) else { return Keep::Nothing };
        match (&link.kind, side) {
            (LinkKind::Values(_), _) => unless_unset(Keep::Nothing, self.made_of_defaults(side, at, end)),
            (LinkKind::Plain, _) => {
                let keep = self.keep(side, at, Some(Place { path: end, schema }));
                unless_unset(keep, self.made_of_defaults(side, at, end))
            }
            (LinkKind::List, Side::Left) => match &schema.items {
                Some(item) => {
                    let keep = self.keep(side, at, Some(Place { path: &end.every(), schema: item }));
                    unless_unset(keep, self.made_of_defaults(side, at, end))
                }
                None => Keep::Nothing,
            },
            (LinkKind::List, Side::Right) => {
                let first = at.schema.items.as_deref().map(|item| {
                    self.keep(side, Place { path: &at.path.every(), schema: item }, Some(Place { path: end, schema }))
                });
                let made = self.made_of_defaults(side, at, end).into_iter();
                let items = made.filter_map(|made| made.as_array()?.first().cloned());
                Keep::Tail(Box::new(first.unwrap_or(Keep::Nothing)), items.collect())
            }
        }
    }

    fn keep_object(&self, side: Side, at: Place<'_>, other: Option<Place<'_>>) -> Keep {
        let theirs = other.map(|other| other.schema);
        let others = match (values(at.schema), theirs.and_then(values), other) {
            (Some(ours), Some(values), Some(other)) => self.keep_item(side, at.path, ours, other.path, values),
            _ if theirs.is_some_and(is_open) && is_open(at.schema) => Keep::Nothing,
            (None, ..) if !is_open(at.schema) => Keep::Nothing,
            _ => Keep::Whole,
        };
        let mut names: BTreeSet<Box<str>> = at.schema.properties.iter().map(|(name, _)| name.clone()).collect();
        names.extend(self.claimed_members(side, at.path));
        if values(at.schema).is_some() || is_open(at.schema) {
            names.extend(theirs.into_iter().flat_map(|schema| schema.properties.iter().map(|(name, _)| name.clone())));
            names.extend(other.into_iter().flat_map(|other| self.claimed_members(side.other(), other.path)));
        }
        let mut members = Vec::new();
        for name in names {
            let path = at.path.member(&name);
            let Some(schema) = member(at.schema, &name) else {
                // Something that only the other side knows the type of.
                members.push((name, Keep::Whole));
                continue;
            };
            let place = Place { path: &path, schema };
            let keep = match (self.claimed(side, &path), other) {
                (Some(claim), _) => self.keep_claimed(side, place, claim),
                (None, None) => self.keep(side, place, None),
                (None, Some(other)) => {
                    let theirs = other.path.member(&name);
                    let same = member(other.schema, &name)
                        .filter(|same| self.is_same_place((side, &path, schema), (&theirs, same)));
                    let keep = self.keep(side, place, same.map(|schema| Place { path: &theirs, schema }));
                    let is_filled_in = schema.default.is_none() && same.is_some_and(|same| same.default.is_some());
                    let defaults = is_filled_in.then(|| self.made_of_default(side, place, &theirs)).flatten();
                    unless_unset(keep, defaults.into_iter().collect())
                }
            };
            if keep != others {
                members.push((name, keep));
            }
        }
        let is_embedded = other.is_some_and(|other| other.schema.is_embedded_resource);
        if at.schema.is_embedded_resource && is_embedded && others != Keep::Nothing {
            members.extend(META.map(|name| (Box::from(name), Keep::Nothing)));
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            members.dedup_by(|(one, _), (other, _)| one == other);
        }
        let is_own = other.is_none();
        // A shared object may be there for the sake of a member that the other side has elsewhere.
        let may_be_made = self.has_claims_below(side, at.path);
        let forced = other.is_some_and(|other| self.has_claims_below(side.other(), other.path));
        if members.is_empty() && others == Keep::Nothing && !is_own && !may_be_made && !forced {
            return Keep::Nothing;
        }
        Keep::Object(Box::new(KeepObject { members, others, is_own }))
    }

    /// What may be at a place of a side because of the defaults of the other one, although it was not set: what comes of
    /// the default at `end`, and of those of what it stands in.
    fn made_of_defaults(&self, side: Side, at: Place<'_>, end: &Path) -> Vec<Value> {
        let scope = end.scope().segments().len();
        let holders = (scope..=end.segments().len()).rev().map(|steps| end.first(steps));
        let mut made: Vec<Value> = Vec::new();
        for value in holders.filter_map(|holder| self.made_of_default(side, at, &holder)) {
            if !made.contains(&value) {
                made.push(value);
            }
        }
        made
    }

    /// What comes to a place of a side of the default that the other side has at `end`.
    fn made_of_default(&self, side: Side, at: Place<'_>, end: &Path) -> Option<Value> {
        let from = side.other();
        let schema = self.schema(from, end)?;
        let mut object = schema.default.clone().filter(|default| !default.is_null())?;
        schema.fill_defaults(&mut object);
        for (steps, segment) in end.segments().iter().enumerate().rev() {
            object = match segment {
                Segment::Name(name) => Value::Object([(&**name, object)].into_iter().collect()),
                Segment::Every if self.schema(from, &end.first(steps))?.items.is_some() => Value::Array(vec![object]),
                Segment::Every => Value::Object([("k", object)].into_iter().collect()),
            };
        }
        // An expression that fails makes nothing, here as elsewhere.
        let made = self.programs()[side as usize].run(&object).ok()?;
        let mut made = at.path.find(&made)?.clone();
        at.schema.fill_defaults(&mut made);
        Some(made)
    }
}

/// What is kept of a value that defaults of the other side may have made: that there was none. Where a rule has moved it,
/// that may be so although this side fills it in too, because what it is in was not there.
fn unless_unset(keep: Keep, defaults: Vec<Value>) -> Keep {
    if defaults.is_empty() { keep } else { Keep::Unset(Box::new(keep), defaults) }
}
