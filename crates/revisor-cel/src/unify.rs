//! How types are made to fit each other: [`Substitutions`], what the checker has found out about place holders so far.
//!
//! An attempt that fails leaves no trace, so that the signatures of a function can be tried one after the other.

use std::cell::Cell;
use std::collections::HashMap;

use crate::types::{Param, Shape, Type};

/// How many types one question may look at. Place holders that stand for two others each make types that double with
/// every step; an expression of a few lines could otherwise keep the server busy for ever.
const STEPS: u32 = 20_000;

/// What place holders stand for.
#[derive(Debug, Default)]
pub(crate) struct Substitutions {
    found: HashMap<Param, Type>,
    /// What was there before each change, newest last, so that a failed attempt can be taken back.
    trail: Vec<(Param, Option<Type>)>,
    fresh: u32,
    /// What is left of [`STEPS`].
    steps: Cell<u32>,
}

impl Substitutions {
    /// A place holder that nothing is known of.
    pub(crate) fn fresh(&mut self) -> Type {
        let number = self.fresh;
        self.fresh += 1;
        Type::Param(Param::Fresh(number))
    }

    /// Whether a `from` can stand where a `to` is wanted; what follows for place holders is remembered if so.
    pub(crate) fn assign(&mut self, from: &Type, to: &Type) -> bool {
        self.attempt(|this| this.fits(from, to))
    }

    /// As [`Substitutions::assign`], for as many types.
    pub(crate) fn assign_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.attempt(|this| this.all_fit(from, to))
    }

    fn attempt(&mut self, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        debug_assert!(self.trail.is_empty(), "attempts do not nest");
        self.steps.set(STEPS);
        let fits = attempt(self);
        if !fits {
            while let Some((param, before)) = self.trail.pop() {
                match before {
                    Some(before) => self.found.insert(param, before),
                    None => self.found.remove(&param),
                };
            }
        }
        self.trail.clear();
        fits
    }

    /// Whether one more type may be looked at.
    fn step(&self) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0
    }

    fn set(&mut self, param: Param, to: Type) {
        let before = self.found.insert(param, to);
        self.trail.push((param, before));
    }

    fn fits(&mut self, from: &Type, to: &Type) -> bool {
        if !self.step() {
            return false;
        }
        if let Type::Param(param) = to {
            match self.stands_for(*param, from) {
                Match::Yes => return true,
                Match::NoItStandsForAnother => return false,
                // `to` occurs in `from`; perhaps `from` is itself a place holder.
                Match::No => {}
            }
        }
        if let Type::Param(param) = from {
            return matches!(self.stands_for(*param, to), Match::Yes);
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => takes_null(other),
            (Type::Compound(_), Type::Compound(_)) => match (from.shape(), to.shape()) {
                (Some(Shape::Type), Some(Shape::Type)) => true,
                (left, right) if left == right => self.all_fit(from.params(), to.params()),
                _ => false,
            },
            _ => from == to,
        }
    }

    fn all_fit(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len() && from.iter().zip(to).all(|(from, to)| self.fits(from, to))
    }

    /// Whether `param` can stand for `kind`.
    fn stands_for(&mut self, param: Param, kind: &Type) -> Match {
        if *kind == Type::Param(param) {
            return Match::Yes;
        }
        if let Some(known) = self.found.get(&param).cloned() {
            if known == *kind {
                return Match::Yes;
            }
            if !self.fits(kind, &known) {
                return Match::NoItStandsForAnother;
            }
            let general = most_general(kind, &known);
            if !self.occurs(param, &general) {
                self.set(param, general);
            }
            return Match::Yes;
        }
        if self.occurs(param, kind) {
            return Match::No;
        }
        self.set(param, kind.clone());
        Match::Yes
    }

    /// Whether `param` is found in `kind`, also behind other place holders: a type cannot contain itself.
    fn occurs(&self, param: Param, kind: &Type) -> bool {
        if !self.step() {
            return true;
        }
        match kind {
            Type::Param(other) if *other == param => true,
            Type::Param(other) => self.found.get(other).is_some_and(|known| self.occurs(param, known)),
            _ => kind.params().iter().any(|inner| self.occurs(param, inner)),
        }
    }

    /// `kind` with every place holder that is known replaced by what it stands for.
    pub(crate) fn resolve(&self, kind: &Type) -> Type {
        self.steps.set(STEPS);
        self.replace(kind, false)
    }

    /// As [`Substitutions::resolve`], and what is unknown becomes [`Type::Dyn`].
    pub(crate) fn resolve_fully(&self, kind: &Type) -> Type {
        self.steps.set(STEPS);
        self.replace(kind, true)
    }

    fn replace(&self, kind: &Type, unknown_to_dyn: bool) -> Type {
        if !self.step() {
            return Type::Dyn;
        }
        match kind {
            Type::Param(param) => match self.found.get(param) {
                Some(known) => self.replace(known, unknown_to_dyn),
                None if unknown_to_dyn => Type::Dyn,
                None => kind.clone(),
            },
            Type::Compound(compound) if !compound_has_params(kind) => Type::Compound(compound.clone()),
            Type::Compound(_) => rebuild(kind, |inner| self.replace(inner, unknown_to_dyn)),
            _ => kind.clone(),
        }
    }

    /// `kind`, the type of a signature, with the place holders that it names replaced by `fresh` ones.
    pub(crate) fn instantiate(&mut self, kind: &Type, fresh: &mut Vec<(char, Type)>) -> Type {
        match kind {
            Type::Param(Param::Named(name)) => match fresh.iter().find(|(known, _)| known == name) {
                Some((_, param)) => param.clone(),
                None => {
                    let param = self.fresh();
                    fresh.push((*name, param.clone()));
                    param
                }
            },
            Type::Compound(_) if compound_has_params(kind) => rebuild(kind, |inner| self.instantiate(inner, fresh)),
            _ => kind.clone(),
        }
    }
}

enum Match {
    Yes,
    No,
    NoItStandsForAnother,
}

fn rebuild(kind: &Type, inner: impl FnMut(&Type) -> Type) -> Type {
    match kind.shape() {
        Some(shape) => Type::compound(shape.clone(), kind.params().iter().map(inner).collect()),
        None => kind.clone(),
    }
}

fn compound_has_params(kind: &Type) -> bool {
    kind.params().iter().any(|inner| matches!(inner, Type::Param(_)) || compound_has_params(inner))
}

fn takes_null(kind: &Type) -> bool {
    match kind {
        Type::Null | Type::Object(_) | Type::Timestamp | Type::Duration => true,
        other => matches!(other.shape(), Some(Shape::Opaque(_))),
    }
}

/// The more general of two types that fit each other.
pub(crate) fn most_general(left: &Type, right: &Type) -> Type {
    if is_equal_or_less_specific(left, right) { left.clone() } else { right.clone() }
}

fn is_equal_or_less_specific(left: &Type, right: &Type) -> bool {
    if left.is_dyn() || matches!(left, Type::Param(_)) {
        return true;
    }
    if right.is_dyn() || matches!(right, Type::Param(_)) {
        return false;
    }
    match (left.shape(), right.shape()) {
        (Some(Shape::Type), Some(Shape::Type)) => true,
        (Some(one), Some(other)) => {
            one == other
                && left.params().len() == right.params().len()
                && left.params().iter().zip(right.params()).all(|(left, right)| is_equal_or_less_specific(left, right))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_holder_is_found_once_and_must_agree_afterwards() {
        let mut known = Substitutions::default();
        let element = known.fresh();
        assert!(known.assign(&Type::list(Type::Int), &Type::list(element.clone())));
        assert_eq!(known.resolve(&element), Type::Int);
        assert!(!known.assign(&Type::String, &element));
        assert_eq!(known.resolve(&element), Type::Int, "a failed attempt leaves no trace");
        assert!(known.assign(&Type::Dyn, &element));
        assert_eq!(known.resolve(&element), Type::Dyn, "the more general type is kept");
    }

    #[test]
    fn a_type_cannot_contain_itself() {
        let mut known = Substitutions::default();
        let element = known.fresh();
        assert!(!known.assign(&Type::list(element.clone()), &element));
        assert_eq!(known.resolve_fully(&element), Type::Dyn);
    }

    #[test]
    fn null_fits_what_can_be_absent() {
        let mut known = Substitutions::default();
        for (kind, fits) in [
            (Type::Null, true),
            (Type::object("kubernetes.Quantity"), true),
            (Type::optional(Type::Int), true),
            (Type::Timestamp, true),
            (Type::Dyn, true),
            (Type::Int, false),
            (Type::list(Type::Int), false),
            (Type::type_of(Type::Int), false),
        ] {
            assert_eq!(known.assign(&Type::Null, &kind), fits, "{kind}");
            assert_eq!(known.assign(&kind, &Type::Null), fits, "{kind}");
        }
    }
}
