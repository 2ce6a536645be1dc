//! Whether an expression makes sense: every name is known, every function takes what it is given.
//!
//! What is wrong has the type [`Type::Error`], which fits everything, so that the search goes on and each mistake is
//! reported once.

use crate::ast::{Call, Comprehension, Element, Entry, Expr, ExprId, ExprKind, Literal, Select, Struct};
use crate::environment::{Environment, Field, Reference};
use crate::libraries::Overload;
use crate::parser::Ast;
use crate::source::{Issue, Location, Source};
use crate::types::{Shape, Type};
use crate::unify::{Substitutions, most_general};

/// Of how many others a type may be made. Types that contain a type twice double with every step.
const HEAVIEST: u32 = 2_000;

/// A tree with what is known of its nodes, by their numbers.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) root: Expr,
    pub(crate) positions: Vec<u32>,
    pub(crate) types: Vec<Option<Type>>,
    pub(crate) references: Vec<Option<Reference>>,
}

/// Checks a tree. Names in it are replaced by the full names of what they stand for.
pub(crate) fn check(environment: &Environment, source: &Source, ast: Ast) -> Result<Checked, Vec<Issue>> {
    let Ast { mut root, positions } = ast;
    let mut checker = Checker {
        environment,
        source,
        types: vec![None; positions.len()],
        references: vec![None; positions.len()],
        positions,
        locals: Vec::new(),
        known: Substitutions::default(),
        issues: Vec::new(),
    };
    checker.check(&mut root);
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    let Checker { known, mut types, references, positions, .. } = checker;
    for kind in types.iter_mut().flatten() {
        *kind = known.resolve_fully(kind);
    }
    Ok(Checked { root, positions, types, references })
}

struct Checker<'a> {
    environment: &'a Environment,
    source: &'a Source,
    positions: Vec<u32>,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
    /// The variables of the folds around the place at hand, innermost last.
    locals: Vec<(String, Type)>,
    known: Substitutions,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn report(&mut self, id: ExprId, message: String) {
        let location =
            self.positions.get(id.index()).map_or(Location::NONE, |position| self.source.location(*position));
        self.issues.push(Issue { location, message });
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        let message = format!("expected type '{}' but found '{}'", expected.in_messages(), found.in_messages());
        self.report(id, message);
    }

    fn undeclared(&mut self, id: ExprId, name: &str) -> Type {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn refer(&mut self, id: ExprId, reference: Reference) {
        self.references[id.index()] = Some(reference);
    }

    /// The type of an expression, which is also remembered.
    fn check(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let mut kind = match &mut expr.kind {
            ExprKind::Unspecified => Type::Error,
            ExprKind::Literal(literal) => literal_type(literal),
            ExprKind::Ident(name) => self.ident(id, name),
            ExprKind::Select(_) => self.select(expr),
            ExprKind::Call(call) => self.call(id, call),
            ExprKind::List(elements) => self.list(elements),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct(object) => self.object(id, object),
            ExprKind::Comprehension(fold) => self.comprehension(fold),
        };
        if kind.weight() > HEAVIEST {
            self.report(id, "the type of this expression is too large".to_string());
            kind = Type::Error;
        }
        self.types[id.index()] = Some(kind.clone());
        kind
    }

    /// What a name stands for, and its full name.
    fn look_up(&self, name: &str) -> Option<(String, Type)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let local = self.locals.iter().rev().find(|(local, _)| local == name).map(|(_, kind)| kind.clone());
        Some((name.to_string(), local.or_else(|| self.environment.name(name))?))
    }

    fn ident(&mut self, id: ExprId, name: &mut String) -> Type {
        match self.look_up(name) {
            Some((full, kind)) => {
                *name = full.clone();
                self.refer(id, Reference::Name(full));
                kind
            }
            None => self.undeclared(id, name),
        }
    }

    fn select(&mut self, expr: &mut Expr) -> Type {
        // `a.b` may be the name of something before it is the field of something.
        if let Some((full, kind)) = expr.qualified_name().and_then(|name| self.look_up(&name)) {
            expr.kind = ExprKind::Ident(full.clone());
            self.refer(expr.id, Reference::Name(full));
            return kind;
        }
        let ExprKind::Select(select) = &mut expr.kind else { return Type::Error };
        let Select { operand, field, test } = &mut **select;
        let kind = self.field(expr.id, operand, field, false);
        if *test { Type::Bool } else { self.known.resolve(&kind) }
    }

    /// The type of a field of an expression; with `optional`, of one that may be absent.
    fn field(&mut self, id: ExprId, operand: &mut Expr, field: &str, optional: bool) -> Type {
        let operand = self.check(operand);
        let operand = self.known.resolve(&operand);
        let (target, absent) = match operand.optional_value() {
            Some(value) => (value.clone(), true),
            None => (operand, optional),
        };
        let kind = match &target {
            Type::Object(name) => self.object_field(id, name, field),
            Type::Param(_) => {
                // What it is shows later, and then it need not be anything in particular.
                self.known.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Compound(_) if matches!(target.shape(), Some(Shape::Map)) => {
                target.params().get(1).cloned().unwrap_or(Type::Dyn)
            }
            _ => {
                if !target.is_dyn_or_error() {
                    self.report(id, format!("type '{}' does not support field selection", target.in_messages()));
                }
                Type::Dyn
            }
        };
        if absent { Type::optional(kind) } else { kind }
    }

    fn object_field(&mut self, id: ExprId, object: &str, field: &str) -> Type {
        match self.environment.field(object, field) {
            Field::Of(kind) => kind,
            Field::Undefined => {
                self.report(id, format!("undefined field '{field}'"));
                Type::Error
            }
            Field::NoSuchType => {
                self.report(id, format!("unexpected failed resolution of '{object}'"));
                Type::Error
            }
        }
    }

    fn call(&mut self, id: ExprId, call: &mut Call) -> Type {
        if call.function == "_?._"
            && let [operand, Expr { kind: ExprKind::Literal(Literal::String(field)), .. }] = call.args.as_mut_slice()
        {
            let kind = self.field(id, operand, field, true);
            self.refer(id, Reference::Overloads(vec!["select_optional_field"]));
            return self.known.resolve(&kind);
        }
        let mut args: Vec<(ExprId, Type)> = Vec::with_capacity(call.args.len() + 1);
        for arg in &mut call.args {
            args.push((arg.id, self.check(arg)));
        }
        let environment = self.environment;
        let function = |name: &str| environment.libraries.function(name.strip_prefix('.').unwrap_or(name));
        let Some(target) = &mut call.target else {
            return match function(&call.function) {
                Some((name, overloads)) => {
                    call.function = name.to_string();
                    self.resolve(id, name, overloads, false, args)
                }
                None => self.undeclared(id, &call.function),
            };
        };
        // `a.b.c()` may be the function `a.b.c` before it is the method `c` of `a.b`.
        if let Some((name, overloads)) =
            target.qualified_name().and_then(|prefix| function(&format!("{prefix}.{}", call.function)))
        {
            call.target = None;
            call.function = name.to_string();
            return self.resolve(id, name, overloads, false, args);
        }
        let target = (target.id, self.check(target));
        match function(&call.function) {
            Some((name, overloads)) => {
                args.insert(0, target);
                self.resolve(id, name, overloads, true, args)
            }
            None => self.undeclared(id, &call.function),
        }
    }

    /// The type of a call, given the signatures of its function. All that fit are remembered.
    fn resolve(
        &mut self,
        id: ExprId,
        function: &str,
        overloads: &[Overload],
        method: bool,
        args: Vec<(ExprId, Type)>,
    ) -> Type {
        if matches!(function, "_&&_" | "_||_") {
            return self.logic(id, overloads, &args);
        }
        let mut kinds: Vec<Type> = args.into_iter().map(|(_, kind)| kind).collect();
        let mut result: Option<Type> = None;
        let mut fitting = Vec::new();
        for overload in overloads.iter().filter(|overload| overload.method == method) {
            let mut fresh = Vec::new();
            let wanted: Vec<Type> = overload.args.iter().map(|kind| self.known.instantiate(kind, &mut fresh)).collect();
            let given = self.known.instantiate(&overload.result, &mut fresh);
            if !self.known.assign_all(&kinds, &wanted) {
                continue;
            }
            fitting.push(overload.id);
            let given = self.known.resolve(&given);
            result = Some(match result {
                Some(before) if !before.is_dyn() && before != given => Type::Dyn,
                Some(before) => before,
                None => given,
            });
        }
        if let Some(result) = result {
            self.refer(id, Reference::Overloads(fitting));
            return result;
        }
        for kind in &mut kinds {
            *kind = self.known.resolve_fully(kind);
        }
        let mut signature = String::new();
        let mut rest = kinds.as_slice();
        if method && let [target, args @ ..] = rest {
            signature = format!("{}.", target.in_messages());
            rest = args;
        }
        let args: Vec<String> = rest.iter().map(|kind| kind.in_messages().to_string()).collect();
        let args = args.join(", ");
        self.report(id, format!("found no matching overload for '{function}' applied to '{signature}({args})'"));
        Type::Error
    }

    fn logic(&mut self, id: ExprId, overloads: &[Overload], args: &[(ExprId, Type)]) -> Type {
        let mut wrong = false;
        for (arg, kind) in args {
            if !self.known.assign(kind, &Type::Bool) {
                self.mismatch(*arg, &Type::Bool, kind);
                wrong = true;
            }
        }
        if wrong {
            return Type::Error;
        }
        self.refer(id, Reference::Overloads(overloads.iter().map(|overload| overload.id).collect()));
        Type::Bool
    }

    /// What an element that may be left out contributes.
    fn unwrap(&mut self, id: ExprId, kind: Type, optional: bool) -> Type {
        if !optional {
            return kind;
        }
        match kind.optional_value() {
            Some(value) => value.clone(),
            None => {
                if !kind.is_dyn() {
                    self.mismatch(id, &Type::optional(kind.clone()), &kind);
                }
                kind
            }
        }
    }

    /// The common type of what stands side by side. Whether there may be several is asked when all types are known.
    fn join(&mut self, before: Option<Type>, kind: Type) -> Type {
        match before {
            None => kind,
            Some(before) if self.known.assign(&before, &kind) => most_general(&before, &kind),
            Some(_) => Type::Dyn,
        }
    }

    fn list(&mut self, elements: &mut [Element]) -> Type {
        let mut common = None;
        for Element { value, optional } in elements {
            let kind = self.check(value);
            let kind = self.unwrap(value.id, kind, *optional);
            common = Some(self.join(common, kind));
        }
        Type::list(common.unwrap_or_else(|| self.known.fresh()))
    }

    fn map(&mut self, entries: &mut [Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for Entry { key, value, optional, .. } in entries {
            let kind = self.check(key);
            keys = Some(self.join(keys, kind));
            let kind = self.check(value);
            let kind = self.unwrap(value.id, kind, *optional);
            values = Some(self.join(values, kind));
        }
        let keys = keys.unwrap_or_else(|| self.known.fresh());
        Type::map(keys, values.unwrap_or_else(|| self.known.fresh()))
    }

    fn object(&mut self, id: ExprId, object: &mut Struct) -> Type {
        let Some((full, kind)) = self.look_up(&object.name) else {
            return self.undeclared(id, &object.name);
        };
        object.name = full.clone();
        self.refer(id, Reference::Name(full.clone()));
        let (result, is_type) = match (kind.shape(), kind.params()) {
            (Some(Shape::Type), [of @ Type::Object(_)]) => (of.clone(), true),
            (Some(Shape::Type), [of]) => {
                self.report(id, format!("'{}' is not a message type", of.runtime_name()));
                (Type::Error, true)
            }
            _ => {
                self.report(id, format!("'{}' is not a type", kind.runtime_name()));
                (Type::Error, false)
            }
        };
        for field in &mut object.fields {
            let value = self.check(&mut field.value);
            let wanted = match &result {
                Type::Object(name) => self.object_field(field.id, name, &field.name),
                _ if is_type => {
                    self.report(field.id, format!("undefined field '{}'", field.name));
                    Type::Error
                }
                _ => {
                    self.report(field.id, format!("unexpected failed resolution of '{full}'"));
                    Type::Error
                }
            };
            let value = self.unwrap(field.value.id, value, field.optional);
            if !self.known.assign(&wanted, &value) {
                let message = format!(
                    "expected type of field '{}' is '{}' but provided type is '{}'",
                    field.name,
                    wanted.in_messages(),
                    value.in_messages()
                );
                self.report(field.id, message);
            }
        }
        result
    }

    fn comprehension(&mut self, fold: &mut Comprehension) -> Type {
        let range = self.check(&mut fold.range);
        let accumulated = self.check(&mut fold.init);
        let range = self.known.resolve(&range);
        let two = fold.second_variable.is_some();
        let (first, second) = match (range.shape(), range.params()) {
            (Some(Shape::List), [element]) if two => (Type::Int, element.clone()),
            (Some(Shape::List), [element]) => (element.clone(), Type::Dyn),
            (Some(Shape::Map), [key, value]) => (key.clone(), value.clone()),
            // As in the original, what may be anything is no range, other than what is dynamic.
            _ if matches!(range, Type::Dyn | Type::Error | Type::Param(_)) => {
                self.known.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    range.in_messages()
                );
                self.report(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let outside = self.locals.len();
        self.locals.push((fold.accumulator.clone(), accumulated.clone()));
        self.locals.push((fold.variable.clone(), first));
        if let Some(name) = &fold.second_variable {
            self.locals.push((name.clone(), second));
        }
        self.must_be(&mut fold.condition, &Type::Bool);
        self.must_be(&mut fold.step, &accumulated);
        self.locals.truncate(outside + 1);
        let result = self.check(&mut fold.result);
        self.locals.truncate(outside);
        self.known.resolve(&result)
    }

    fn must_be(&mut self, expr: &mut Expr, wanted: &Type) {
        let kind = self.check(expr);
        if !self.known.assign(wanted, &kind) {
            self.mismatch(expr.id, wanted, &kind);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
