//! [`Canonicalizer`]: the rules that bring objects of one version into their canonical form. Unlike those of a step they
//! lead one way only, within one shape, and a value under the new name wins over one under the old.

use std::sync::Arc;

use revisor_cel::Environment;
use revisor_object::{FieldError, FieldErrors, Value};
use revisor_schema::Structural;

use crate::conversion::ConvertError;
use crate::path::{Path, Segment};
use crate::program::{Computation, Failure, Names, Read, ValueMap, find, put};
use crate::schema::VersionSchema;
use crate::spec::{Action, Canonical, Rule};
use crate::step::{Expressions, typed};

/// The rules of one version, ready.
#[derive(Debug)]
pub(crate) struct Canonicalizer {
    version: usize,
    rules: Vec<CanonicalRule>,
    /// What is written out in rules, which is worth a try.
    pub(crate) hints: Vec<Value>,
}

#[derive(Debug)]
pub(crate) struct CanonicalRule {
    pub(crate) field: String,
    /// The items that it is about; the whole object if there is no star in it.
    scope: Path,
    what: Form,
    /// Where it finds what is not canonical, and where that belongs.
    pub(crate) places: [Path; 2],
}

#[derive(Debug)]
enum Form {
    /// The value at the first place belongs to the second, as this.
    Move {
        from: Names,
        to: Names,
        as_what: As,
    },
    Add {
        to: Names,
        value: Value,
    },
    Remove {
        from: Names,
    },
    Compute(Computation),
}

#[derive(Debug)]
enum As {
    Itself,
    Other(ValueMap),
    List,
}

impl Canonicalizer {
    pub(crate) fn compile(
        entry: &Canonical,
        number: usize,
        version: &VersionSchema,
        environment: &Environment,
    ) -> Result<Canonicalizer, FieldErrors> {
        let expressions = Expressions::new(environment);
        let mut compiler =
            Compiler { version, expressions, rules: Vec::new(), errors: FieldErrors::new(), hints: Vec::new() };
        compiler.take(&entry.rules, &Path::root());
        compiler.check_overlaps();
        let Compiler { rules, errors, mut hints, expressions, .. } = compiler;
        hints.extend(expressions.constants());
        if errors.is_empty() { Ok(Canonicalizer { version: number, rules, hints }) } else { Err(errors) }
    }

    pub(crate) fn version(&self) -> usize {
        self.version
    }

    pub(crate) fn rules(&self) -> &[CanonicalRule] {
        &self.rules
    }

    /// Brings an object into its canonical form; answers whether it changed. No rule sees what another has made.
    pub(crate) fn run(&self, object: &mut Value) -> Result<bool, Failure> {
        if self.rules.iter().all(|rule| !rule.may_apply(object)) {
            return Ok(false);
        }
        let before = object.clone();
        for (number, rule) in self.rules.iter().enumerate() {
            let mut scopes = vec![&before];
            rule.every(number, rule.scope.segments(), &before, object, &mut scopes)?;
        }
        Ok(*object != before)
    }

    pub(crate) fn error(&self, failure: &Failure) -> ConvertError {
        let field = self.rules.get(failure.rule).map(|rule| rule.field.clone()).unwrap_or_default();
        ConvertError::Expression { field, message: failure.error.to_string() }
    }
}

impl CanonicalRule {
    /// Whether one value becomes a list.
    pub(crate) fn makes_list(&self) -> bool {
        matches!(self.what, Form::Move { as_what: As::List, .. })
    }

    /// Whether there is something that the rule could be about. Most objects are canonical, and are left at once.
    fn may_apply(&self, object: &Value) -> bool {
        match self.what {
            Form::Move { .. } | Form::Remove { .. } => is_anywhere(self.places[0].segments(), object),
            Form::Add { .. } | Form::Compute(_) => true,
        }
    }

    /// Applies the rule to all items that it is about: `before` as they were, `after` as they become.
    fn every<'v>(
        &self,
        number: usize,
        scope: &[Segment],
        before: &'v Value,
        after: &mut Value,
        scopes: &mut Vec<&'v Value>,
    ) -> Result<(), Failure> {
        let Some((step, rest)) = scope.split_first() else { return self.apply(number, before, after, scopes) };
        let mut into = |before: &'v Value, after: &mut Value| {
            if *step == Segment::Every {
                scopes.push(before);
            }
            let done = self.every(number, rest, before, after, scopes);
            if *step == Segment::Every {
                scopes.pop();
            }
            done
        };
        match (step, before, after) {
            (Segment::Name(name), Value::Object(before), Value::Object(after)) => {
                match (before.get(name), after.get_mut(name)) {
                    (Some(before), Some(after)) => into(before, after),
                    _ => Ok(()),
                }
            }
            (Segment::Every, Value::Array(before), Value::Array(after)) => {
                before.iter().zip(after).try_for_each(|(before, after)| into(before, after))
            }
            (Segment::Every, Value::Object(before), Value::Object(after)) => {
                before.iter().try_for_each(|(name, before)| match after.get_mut(name) {
                    Some(after) => into(before, after),
                    None => Ok(()),
                })
            }
            _ => Ok(()),
        }
    }

    fn apply(&self, number: usize, before: &Value, after: &mut Value, scopes: &[&Value]) -> Result<(), Failure> {
        let mut place = Some(std::mem::take(after));
        let done = match &self.what {
            Form::Move { from, to, as_what } => {
                if let Some(value) = find(before, from) {
                    let value = match as_what {
                        As::Itself => value.clone(),
                        As::Other(map) => map.get(value).clone(),
                        As::List => Value::Array(vec![value.clone()]),
                    };
                    let is_taken = from != to && find(before, to).is_some();
                    remove(&mut place, from);
                    if !is_taken {
                        put(&mut place, to, value);
                    }
                }
                Ok(())
            }
            Form::Add { to, value } => {
                let holder = to.split_last().and_then(|(_, holder)| find(before, holder));
                if holder.is_some_and(|holder| holder.as_object().is_some()) && find(before, to).is_none() {
                    put(&mut place, to, value.clone());
                }
                Ok(())
            }
            Form::Remove { from } => {
                remove(&mut place, from);
                Ok(())
            }
            Form::Compute(computation) => computation.run(scopes, |to, value| {
                if find(before, to).is_none() {
                    put(&mut place, to, value);
                }
            }),
        };
        *after = place.unwrap_or_default();
        done.map_err(|error| Failure { rule: number, error })
    }
}

fn remove(place: &mut Option<Value>, names: &[Box<str>]) {
    let Some((last, holders)) = names.split_last() else { return };
    let holder = holders.iter().try_fold(place.as_mut(), |at, name| Some(at?.as_object_mut()?.get_mut(name)));
    if let Some(Some(Value::Object(holder))) = holder {
        holder.remove(last);
    }
}

fn is_anywhere(segments: &[Segment], value: &Value) -> bool {
    let Some((step, rest)) = segments.split_first() else { return true };
    match (step, value) {
        (Segment::Name(name), Value::Object(object)) => object.get(name).is_some_and(|value| is_anywhere(rest, value)),
        (Segment::Every, Value::Array(items)) => items.iter().any(|item| is_anywhere(rest, item)),
        (Segment::Every, Value::Object(object)) => object.iter().any(|(_, value)| is_anywhere(rest, value)),
        _ => false,
    }
}

struct Compiler<'s> {
    version: &'s VersionSchema,
    expressions: Expressions<'s>,
    rules: Vec<CanonicalRule>,
    errors: FieldErrors,
    hints: Vec<Value>,
}

impl Compiler<'_> {
    fn take(&mut self, rules: &[Rule], at: &Path) {
        for rule in rules {
            self.rule(rule, at);
        }
    }

    fn rule(&mut self, rule: &Rule, at: &Path) {
        let names = |path: &Path| path.after(path.scope().segments().len()).names();
        let (places, what) = match &rule.action {
            Action::Move { from, to } => {
                let places = [at.join(from), at.join(to)];
                (places.clone(), Form::Move { from: names(&places[0]), to: names(&places[1]), as_what: As::Itself })
            }
            Action::List { from, to } => {
                let places = [at.join(from), at.join(to)];
                (places.clone(), Form::Move { from: names(&places[0]), to: names(&places[1]), as_what: As::List })
            }
            Action::Values { from, to, map } => {
                let places = [at.join(from), at.join(to)];
                let kind = self.version.at(&places[0]).or_else(|| self.version.at(&places[1])).and_then(|at| at.kind);
                let mut values = ValueMap::default();
                for (name, value) in map {
                    let name = typed(name, kind).unwrap_or_else(|| name.as_str().into());
                    self.hints.extend([name.clone(), value.clone()]);
                    values.add(name, value.clone());
                }
                let as_what = As::Other(values);
                (places.clone(), Form::Move { from: names(&places[0]), to: names(&places[1]), as_what })
            }
            Action::Add(filled) => {
                let path = at.join(&filled.path);
                ([path.clone(), path.clone()], Form::Add { to: names(&path), value: filled.value.clone() })
            }
            Action::Remove(filled) => {
                let path = at.join(&filled.path);
                ([path.clone(), path.clone()], Form::Remove { from: names(&path) })
            }
            Action::Compute(compute) => {
                let mut reads = Vec::new();
                for (name, path) in &compute.from {
                    let path = at.join(path);
                    let open = Structural { preserves_unknown_fields: true, ..Structural::default() };
                    let schema = Arc::new(self.version.at(&path).cloned().unwrap_or(open));
                    reads.push(Read { name: name.clone(), level: path.scope().stars(), path: names(&path), schema });
                }
                let path_of = |name: &str, places: &[(String, Path)]| {
                    places.iter().find(|(known, _)| known == name).map(|(_, path)| at.join(path)).unwrap_or_default()
                };
                let mut writes = Vec::new();
                let mut places = [Path::root(), Path::root()];
                for (name, text) in &compute.forward {
                    let path = path_of(name, &compute.to);
                    let target = self.version.at(&path).cloned().unwrap_or_default();
                    match self.expressions.compile(text, &reads, &target) {
                        Ok(program) => writes.push((names(&path), program)),
                        Err(why) => {
                            let field = format!("{}.compute.forward.{name}", rule.field);
                            self.errors.push(FieldError::invalid(field, text.as_str(), why));
                        }
                    }
                    places[1] = path;
                }
                if let Some((name, _)) = compute.from.first() {
                    places[0] = path_of(name, &compute.from);
                }
                (places, Form::Compute(Computation { reads, writes }))
            }
            Action::Each { path, rules } => return self.take(rules, &at.join(path)),
        };
        self.check(rule, &places, &what);
        let scope = places[1].scope();
        self.rules.push(CanonicalRule { field: rule.field.clone(), scope, what, places });
    }

    fn check(&mut self, rule: &Rule, places: &[Path; 2], what: &Form) {
        let [from, to] = places;
        let mut say = |path: &Path, detail: String| {
            self.errors.push(FieldError::invalid(&rule.field, path.to_string(), detail));
        };
        for place in places {
            match place.segments() {
                [] => say(place, "a rule is about a part of the object, not the whole".to_owned()),
                [Segment::Name(name), ..] if crate::schema::META.contains(&&**name) => {
                    say(place, format!("{name} is always canonical"));
                }
                _ => {}
            }
        }
        if !matches!(what, Form::Compute(_)) && from.scope() != to.scope() {
            say(from, format!("stars that do not match: {to} is not among the same items"));
        }
        if !matches!(what, Form::Remove { .. }) && self.version.at(to).is_none() {
            say(to, format!("version {} has no such field", self.version.name()));
        }
    }

    fn check_overlaps(&mut self) {
        for (at, rule) in self.rules.iter().enumerate() {
            let [from, to] = &rule.places;
            let fights = |other: &&CanonicalRule| {
                let [other_from, other_to] = &other.places;
                let overlap = |one: &Path, other: &Path| one.covers(other) || other.covers(one);
                overlap(to, other_to) || (!matches!(rule.what, Form::Compute(_)) && overlap(from, other_from))
            };
            if let Some(other) = self.rules[..at].iter().find(fights) {
                let detail = format!("{} is about the same place", other.field);
                self.errors.push(FieldError::invalid(&rule.field, to.to_string(), detail));
            }
        }
    }
}
