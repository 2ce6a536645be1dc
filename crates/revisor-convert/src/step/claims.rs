//! [`Claims`]: which places belong to which rule of a step, and what is wrong with that.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use revisor_cel::{Environment, Program};
use revisor_object::{BadValue, FieldError, FieldErrors, Value};
use revisor_schema::{JsonType, Structural};

use super::expressions::Expressions;
use super::{RulePlaces, Side};
use crate::path::{Path, Segment};
use crate::program::{Node, Read, ValueMap};
use crate::schema::{VersionSchema, below, fits};
use crate::spec::{Action, Compute, Filled, Rule, Step};

/// How many rules a step may have, those of `each` counted.
const MAX_RULES: usize = 1024;

/// What a rule claims a place for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    Link(usize),
    Fill,
    Compute,
}

/// A place of the left side and the place of the right side that is the same.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) rule: usize,
    pub(super) ends: [Path; 2],
    pub(super) kind: LinkKind,
}

#[derive(Debug)]
pub(super) enum LinkKind {
    Plain,
    /// The values of the left side by those of the right, as they are written.
    Values(Vec<(Value, Value)>),
    /// One value on the left, a list on the right.
    List,
}

/// A place that is filled in.
#[derive(Debug)]
pub(super) struct Fill {
    pub(super) rule: usize,
    pub(super) side: Side,
    pub(super) path: Path,
    pub(super) value: Value,
}

/// Expressions, ready.
#[derive(Debug)]
pub(super) struct Computed {
    pub(super) rule: usize,
    pub(super) scope: [Path; 2],
    /// For each side, what it is made of.
    pub(super) ways: [Vec<Expression>; 2],
}

#[derive(Debug)]
pub(super) struct Expression {
    /// The place that it is for.
    pub(super) path: Path,
    /// What it says. It is compiled for each program that uses it.
    pub(super) text: String,
}

/// Which places belong to which rule.
pub(super) struct Claims<'s> {
    pub(super) versions: [&'s VersionSchema; 2],
    pub(super) links: Vec<Link>,
    pub(super) fills: Vec<Fill>,
    pub(super) computed: Vec<(Computed, Compute)>,
    pub(super) expressions: Expressions<'s>,
    claims: [BTreeMap<Path, (Claim, usize)>; 2],
    rules: Vec<RulePlaces>,
    errors: FieldErrors,
    /// The scopes that programs were made for.
    pub(super) visited: RefCell<BTreeSet<[Path; 2]>>,
    /// The programs to both sides, once somebody has asked for them.
    pub(super) programs: OnceCell<[Node; 2]>,
}

impl<'s> Claims<'s> {
    pub(super) fn gather(
        step: &Step,
        versions: [&'s VersionSchema; 2],
        environment: &'s Environment,
    ) -> Result<Claims<'s>, FieldErrors> {
        let mut claims = Claims {
            versions,
            links: Vec::new(),
            fills: Vec::new(),
            computed: Vec::new(),
            expressions: Expressions::new(environment),
            claims: Default::default(),
            rules: Vec::new(),
            errors: FieldErrors::new(),
            visited: Default::default(),
            programs: OnceCell::new(),
        };
        claims.take(&step.rules, [Path::root(), Path::root()]);
        claims.check_overlaps();
        if claims.errors.is_empty() {
            claims.link_lists();
        }
        if claims.errors.is_empty() { Ok(claims) } else { Err(claims.errors) }
    }

    /// Takes rules whose paths begin at `at`. Items come last: by then it is known where their lists have gone.
    fn take(&mut self, rules: &[Rule], at: [Path; 2]) {
        for rule in rules.iter().filter(|rule| !matches!(rule.action, Action::Each { .. })) {
            if self.rules.len() == MAX_RULES {
                let detail = format!("a step has at most {MAX_RULES} rules");
                return self.errors.push(FieldError::forbidden(&rule.field, detail));
            }
            self.rules.push(RulePlaces { field: rule.field.clone(), places: Default::default() });
            self.rule(rule, &at);
        }
        for rule in rules {
            let Action::Each { path, rules } = &rule.action else { continue };
            let left = at[0].join(path);
            let field = format!("{}.each.path", rule.field);
            if !self.is_there(Side::Left, &left, &field) {
                continue;
            }
            let right = self.counterpart(Side::Left, &left).unwrap_or_else(|| at[1].join(path));
            if self.is_there(Side::Right, &right, &field) {
                self.take(rules, [left, right]);
            }
        }
    }

    fn rule(&mut self, rule: &Rule, at: &[Path; 2]) {
        let field = |name: &str| format!("{}.{name}", rule.field);
        match &rule.action {
            Action::Move { from, to } => {
                self.take_link(at, [from, to], [field("move.from"), field("move.to")], |_, _| Some(LinkKind::Plain));
            }
            Action::List { from, to } => {
                let fields = [field("list.from"), field("list.to")];
                let at_fault = fields[1].clone();
                self.take_link(at, [from, to], fields, |claims, ends| {
                    let list = claims.schema(Side::Right, &ends[1])?;
                    let is_list = list.kind == Some(JsonType::Array) && list.items.is_some();
                    if !is_list {
                        let detail = format!("is no list in version {}", claims.versions[1].name());
                        claims.errors.push(FieldError::invalid(at_fault, ends[1].to_string(), detail));
                    }
                    is_list.then_some(LinkKind::List)
                });
            }
            Action::Values { from, to, map } => {
                let to_field = if from == to { field("values.path") } else { field("values.to") };
                let at_fault = field("values.map");
                self.take_link(at, [from, to], [field("values.path"), to_field], |claims, ends| {
                    let kind = claims.schema(Side::Left, &ends[0])?.kind;
                    let mut values = Vec::new();
                    for (name, value) in map {
                        match typed(name, kind) {
                            Some(name) => values.push((name, value.clone())),
                            None => {
                                let wanted = kind.map_or("", JsonType::as_str);
                                let detail = format!("is not of type {wanted}, as {} is", ends[0]);
                                claims.errors.push(FieldError::invalid(&at_fault, name.as_str(), detail));
                            }
                        }
                    }
                    Some(LinkKind::Values(values))
                });
            }
            Action::Add(filled) => self.fill(Side::Right, filled, at, field("add.path")),
            Action::Remove(filled) => self.fill(Side::Left, filled, at, field("remove.path")),
            Action::Compute(compute) => self.compute(compute, at, &field("compute")),
            Action::Each { .. } => {}
        }
    }

    fn take_link(
        &mut self,
        at: &[Path; 2],
        paths: [&Path; 2],
        fields: [String; 2],
        kind: impl FnOnce(&mut Self, &[Path; 2]) -> Option<LinkKind>,
    ) {
        let ends = [at[0].join(paths[0]), at[1].join(paths[1])];
        let mut is_good = true;
        for side in Side::BOTH {
            let (end, field) = (&ends[side as usize], &fields[side as usize]);
            is_good &= self.is_writable(end, field) && self.is_there(side, end, field);
        }
        if ends[0].stars() != ends[1].stars() {
            let detail = format!(
                "stars that do not match: {} is in {} lists, and {} in {}",
                ends[0],
                ends[0].stars(),
                ends[1],
                ends[1].stars()
            );
            self.errors.push(FieldError::invalid(&fields[1], ends[1].to_string(), detail));
            is_good = false;
        }
        if !is_good {
            return;
        }
        let Some(kind) = kind(self, &ends) else { return };
        let link = self.links.len();
        let rule = self.rules.len() - 1;
        for side in Side::BOTH {
            is_good &= self.claim(side, &ends[side as usize], Claim::Link(link), &fields[side as usize]);
        }
        if is_good {
            self.links.push(Link { rule, ends, kind });
        }
    }

    fn fill(&mut self, side: Side, filled: &Filled, at: &[Path; 2], field: String) {
        let path = at[side as usize].join(&filled.path);
        if self.is_writable(&path, &field)
            && self.is_there(side, &path, &field)
            && self.claim(side, &path, Claim::Fill, &field)
        {
            self.fills.push(Fill { rule: self.rules.len() - 1, side, path, value: filled.value.clone() });
        }
    }

    fn compute(&mut self, compute: &Compute, at: &[Path; 2], field: &str) {
        let mut absolute = compute.clone();
        let written = [&compute.backward, &compute.forward];
        let mut is_good = true;
        let mut scopes: [Option<Path>; 2] = [None, None];
        for (side, places) in [(Side::Left, &mut absolute.from), (Side::Right, &mut absolute.to)] {
            let part = if side == Side::Left { "from" } else { "to" };
            for (name, path) in places.iter_mut() {
                *path = at[side as usize].join(path);
                let field = format!("{field}.{part}.{name}");
                is_good &= self.is_there(side, path, &field);
                let is_written = written[side as usize].iter().any(|(known, _)| known == name);
                if is_written {
                    is_good &= self.is_computable(path, &field);
                    is_good &= self.claim(side, path, Claim::Compute, &field);
                }
                let scope = path.scope();
                let deepest = scopes[side as usize].get_or_insert_with(|| scope.clone());
                if deepest.covers(&scope) {
                    *deepest = scope;
                } else if !scope.covers(deepest) || is_written {
                    let detail = format!("stars that do not match: other places of this rule are in {deepest}");
                    self.errors.push(FieldError::invalid(field, path.to_string(), detail));
                    is_good = false;
                }
            }
        }
        let scope = scopes.map(Option::unwrap_or_default);
        if is_good && scope[0].stars() != scope[1].stars() {
            let detail = format!("stars that do not match: {} on the left, {} on the right", scope[0], scope[1]);
            self.errors.push(FieldError::invalid(field, BadValue::Omitted, detail));
            is_good = false;
        }
        if !is_good {
            return;
        }
        let expressions = |written: &[(String, String)], places: &[(String, Path)]| -> Vec<Expression> {
            let path = |name: &String| places.iter().find(|(known, _)| known == name).map(|(_, path)| path.clone());
            written
                .iter()
                .filter_map(|(name, text)| Some(Expression { path: path(name)?, text: text.clone() }))
                .collect()
        };
        let ways = [expressions(&compute.backward, &absolute.from), expressions(&compute.forward, &absolute.to)];
        for (side, part, written) in
            [(Side::Left, "backward", &compute.backward), (Side::Right, "forward", &compute.forward)]
        {
            for (expression, (name, _)) in ways[side as usize].iter().zip(written) {
                let reads = self.reads(side.other(), &absolute);
                let target = self.schema(side, &expression.path).cloned().unwrap_or_default();
                if let Err(why) = self.expressions.compile(&expression.text, &reads, &target) {
                    self.errors.push(FieldError::invalid(
                        format!("{field}.{part}.{name}"),
                        expression.text.as_str(),
                        why,
                    ));
                }
            }
        }
        self.computed.push((Computed { rule: self.rules.len() - 1, scope, ways }, absolute));
    }

    /// The variables that expressions see which read one side.
    pub(super) fn reads(&self, side: Side, compute: &Compute) -> Vec<Read> {
        let places = if side == Side::Left { &compute.from } else { &compute.to };
        let read = |(name, path): &(String, Path)| {
            let schema = Arc::new(self.schema(side, path).cloned().unwrap_or_default());
            let scope = path.scope();
            let rest = path.after(scope.segments().len());
            Read { name: name.clone(), level: scope.stars(), path: rest.names(), schema }
        };
        places.iter().map(read).collect()
    }

    /// An expression that was found to be right, ready to run.
    pub(super) fn program_of(&self, text: &str, reads: &[Read], target: &Structural) -> Option<Program> {
        self.expressions.compile(text, reads, target).ok()
    }

    pub(super) fn schema(&self, side: Side, path: &Path) -> Option<&'s Structural> {
        self.versions[side as usize].at(path)
    }

    pub(super) fn claimed(&self, side: Side, path: &Path) -> Option<Claim> {
        self.claims[side as usize].get(path).map(|(claim, _)| *claim)
    }

    /// The claims below a path.
    fn claims_below<'c>(&'c self, side: Side, path: &'c Path) -> impl Iterator<Item = &'c Path> {
        let found = self.claims[side as usize].range(path.clone()..).map(|(claimed, _)| claimed);
        found.take_while(|claimed| path.covers(claimed)).filter(move |claimed| *claimed != path)
    }

    pub(super) fn has_claims_below(&self, side: Side, path: &Path) -> bool {
        self.claims_below(side, path).next().is_some()
    }

    /// The members of the object at a path in which something is claimed.
    pub(super) fn claimed_members(&self, side: Side, path: &Path) -> Vec<Box<str>> {
        let depth = path.segments().len();
        let name = |claimed: &Path| match &claimed.segments()[depth] {
            Segment::Name(name) => Some(name.clone()),
            Segment::Every => None,
        };
        self.claims_below(side, path).filter_map(name).collect()
    }

    /// Whether two places are the same, without a rule that says so.
    pub(super) fn is_same_place(&self, one: (Side, &Path, &Structural), other: (&Path, &Structural)) -> bool {
        let (side, path, schema) = one;
        self.claimed(side, path).is_none() && self.claimed(side.other(), other.0).is_none() && fits(schema, other.1)
    }

    /// The place of the other side that is the same.
    pub(super) fn counterpart(&self, side: Side, path: &Path) -> Option<Path> {
        let (mut ours, mut theirs) = (Path::root(), Path::root());
        for segment in path.segments() {
            ours = ours.then(segment.clone());
            theirs = match self.claimed(side, &ours) {
                Some(Claim::Link(link)) => match &self.links.get(link)?.kind {
                    LinkKind::Plain => self.links[link].ends[side.other() as usize].clone(),
                    LinkKind::Values(_) | LinkKind::List => return None,
                },
                Some(Claim::Fill | Claim::Compute) => return None,
                None => {
                    let theirs = theirs.then(segment.clone());
                    let (one, other) = (self.schema(side, &ours)?, self.schema(side.other(), &theirs)?);
                    if !self.is_same_place((side, &ours, one), (&theirs, other)) {
                        return None;
                    }
                    theirs
                }
            };
        }
        Some(theirs)
    }

    fn claim(&mut self, side: Side, path: &Path, claim: Claim, field: &str) -> bool {
        let rule = self.rules.len() - 1;
        if let Some((_, other)) = self.claims[side as usize].get(path) {
            let detail = format!("{} has this place of version {} already", self.rules[*other].field, self.name(side));
            self.errors.push(FieldError::invalid(field, path.to_string(), detail));
            return false;
        }
        self.claims[side as usize].insert(path.clone(), (claim, rule));
        self.rules[rule].places[side as usize].push(path.clone());
        true
    }

    fn name(&self, side: Side) -> &'s str {
        self.versions[side as usize].name()
    }

    /// Rules stand in each other only where the outer one moves something as it is.
    fn check_overlaps(&mut self) {
        let mut errors = Vec::new();
        for side in Side::BOTH {
            for (outer, (claim, rule)) in &self.claims[side as usize] {
                let is_plain = matches!(claim, Claim::Link(link)
                    if self.links.get(*link).is_some_and(|link| matches!(link.kind, LinkKind::Plain)));
                if is_plain {
                    continue;
                }
                for inner in self.claims_below(side, outer) {
                    let Some((_, other)) = self.claims[side as usize].get(inner) else { continue };
                    let detail =
                        format!("overlaps with {outer} of {} in version {}", self.rules[*rule].field, self.name(side));
                    errors.push(FieldError::invalid(&self.rules[*other].field, inner.to_string(), detail));
                }
            }
        }
        self.errors.extend(errors);
    }

    /// Sees to it that the lists whose items rules move about are the same lists.
    fn link_lists(&mut self) {
        let mut scopes: Vec<(usize, [Path; 2])> = Vec::new();
        for link in &self.links {
            scopes.push((link.rule, link.ends.each_ref().map(Path::scope)));
        }
        for (computed, _) in &self.computed {
            scopes.push((computed.rule, computed.scope.clone()));
        }
        for (rule, scope) in scopes {
            let stars = |path: &Path| -> Vec<usize> {
                let segments = path.segments().iter().enumerate();
                segments.filter(|(_, segment)| **segment == Segment::Every).map(|(at, _)| at).collect()
            };
            for (left, right) in stars(&scope[0]).into_iter().zip(stars(&scope[1])) {
                let lists = [scope[0].first(left), scope[1].first(right)];
                let found = self.counterpart(Side::Left, &lists[0]);
                if found.as_ref() == Some(&lists[1]) {
                    continue;
                }
                if found.is_some() || self.counterpart(Side::Right, &lists[1]).is_some() {
                    let detail = format!("stars that do not match: {} is not the same list as {}", lists[0], lists[1]);
                    let error = FieldError::invalid(&self.rules[rule].field, scope[0].to_string(), detail);
                    self.errors.push(error);
                    break;
                }
                let link = self.links.len();
                let is_free = Side::BOTH.iter().all(|side| self.claimed(*side, &lists[*side as usize]).is_none());
                if !is_free {
                    break;
                }
                for side in Side::BOTH {
                    self.claims[side as usize].insert(lists[side as usize].clone(), (Claim::Link(link), rule));
                }
                self.links.push(Link { rule, ends: lists, kind: LinkKind::Plain });
            }
        }
    }

    /// What is wrong with rules about items of which there are none on the other side.
    pub(super) fn unreached(&self) -> FieldErrors {
        let visited = self.visited.borrow();
        let mut errors = FieldErrors::new();
        let mut say = |rule: usize, path: &Path, side: Side| {
            let detail = format!("only version {} has the list that {path} is in", self.name(side));
            errors.push(FieldError::invalid(&self.rules[rule].field, path.to_string(), detail));
        };
        for link in self.links.iter().filter(|link| !visited.contains(&link.ends.each_ref().map(Path::scope))) {
            say(link.rule, &link.ends[0], Side::Left);
        }
        for (computed, _) in self.computed.iter().filter(|(computed, _)| !visited.contains(&computed.scope)) {
            say(computed.rule, &computed.scope[0], Side::Left);
        }
        for fill in &self.fills {
            let scope = fill.path.scope();
            if !visited.iter().any(|visited| visited[fill.side as usize] == scope) {
                say(fill.rule, &fill.path, fill.side);
            }
        }
        errors
    }

    fn is_there(&mut self, side: Side, path: &Path, field: &str) -> bool {
        let mut at = self.versions[side as usize].shape();
        for (depth, segment) in path.segments().iter().enumerate() {
            let Some(next) = below(at, segment) else {
                let place = path.first(depth);
                let version = self.name(side);
                let is_list = at.kind == Some(JsonType::Array);
                let detail = match segment {
                    Segment::Name(_) if is_list => format!("{place} is a list in version {version}: write {place}[*]"),
                    Segment::Name(name) => format!("version {version} has no field {:?} at {place}", &**name),
                    Segment::Every => format!("{place} has no items in version {version}"),
                };
                self.errors.push(FieldError::invalid(field, path.to_string(), detail));
                return false;
            };
            at = next;
        }
        true
    }

    /// Rules leave the type and the metadata of objects alone.
    fn is_writable(&mut self, path: &Path, field: &str) -> bool {
        let detail = match path.segments() {
            [] => "a rule is about a part of the object, not the whole".to_owned(),
            [Segment::Name(name), ..] if &**name == "metadata" => {
                "metadata is the same in all versions; only compute reads it, and writes labels and annotations"
                    .to_owned()
            }
            [Segment::Name(name), ..] if matches!(&**name, "apiVersion" | "kind") => {
                format!("{name} is not the rules' to convert")
            }
            _ => return true,
        };
        self.errors.push(FieldError::invalid(field, path.to_string(), detail));
        false
    }

    fn is_computable(&mut self, path: &Path, field: &str) -> bool {
        match path.segments() {
            [Segment::Name(metadata), Segment::Name(part), Segment::Name(_)]
                if &**metadata == "metadata" && matches!(&**part, "labels" | "annotations") =>
            {
                true
            }
            _ => self.is_writable(path, field),
        }
    }

    /// What its author should know: fields that look the same and are not.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.unfit(&Path::root(), self.versions[0].shape(), &Path::root(), self.versions[1].shape(), &mut found);
        let [left, right] = self.versions.map(VersionSchema::name);
        let warn = |path: Path| {
            format!(
                "{path} has different types in {left} and {right} and no rule: each version keeps a field of its own"
            )
        };
        found.into_iter().map(warn).collect()
    }

    fn unfit(&self, left: &Path, one: &Structural, right: &Path, other: &Structural, found: &mut Vec<Path>) {
        if let (Some(one), Some(other)) = (&one.items, &other.items) {
            return self.unfit(&left.every(), one, &right.every(), other, found);
        }
        for (name, member) in &one.properties {
            let (ours, theirs) = (left.member(name), right.member(name));
            let Some(same) = other.property(name) else { continue };
            if self.claimed(Side::Left, &ours).is_some() || self.claimed(Side::Right, &theirs).is_some() {
                continue;
            }
            if fits(member, same) {
                self.unfit(&ours, member, &theirs, same, found);
            } else {
                found.push(ours);
            }
        }
    }

    /// Constants that are worth a try.
    pub(super) fn hints(&self) -> Vec<Value> {
        let mut hints = self.expressions.constants();
        for link in &self.links {
            if let LinkKind::Values(values) = &link.kind {
                hints.extend(values.iter().flat_map(|(one, other)| [one.clone(), other.clone()]));
            }
        }
        hints.extend(self.fills.iter().map(|fill| fill.value.clone()));
        hints
    }

    pub(super) fn into_rules(self) -> Vec<RulePlaces> {
        self.rules
    }
}

/// A value that stands for itself in the text of a map.
pub(crate) fn typed(text: &str, kind: Option<JsonType>) -> Option<Value> {
    match kind {
        Some(JsonType::Integer) => text.parse().ok().map(Value::Int),
        Some(JsonType::Number) => text.parse().ok().map(Value::Int).or_else(|| text.parse().ok().map(Value::Float)),
        Some(JsonType::Boolean) => text.parse().ok().map(Value::Bool),
        Some(JsonType::Object | JsonType::Array) => None,
        Some(JsonType::String) | None => Some(text.into()),
    }
}

/// The map of a direction. Of several values that become one, the first comes back.
pub(super) fn value_map(values: &[(Value, Value)], to: Side) -> ValueMap {
    let mut map = ValueMap::default();
    for (left, right) in values {
        match to {
            Side::Right => map.add(left.clone(), right.clone()),
            Side::Left => map.add(right.clone(), left.clone()),
        }
    }
    map
}
