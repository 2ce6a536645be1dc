//! Macros: calls that the parser turns into something else. [`MACROS`] is the table of them.

use crate::ast::{Comprehension, Expr, ExprKind, Literal};
use crate::builder::Builder;

/// The name of what a macro accumulates. It cannot be written in an expression.
const ACCUMULATOR: &str = "@result";

/// The name that accumulators had earlier, which is still refused.
pub(crate) const OLD_ACCUMULATOR: &str = "__result__";

/// The name of a variable that nothing uses.
const UNUSED: &str = "#unused";

/// A call that is turned into something else.
#[derive(Debug)]
pub(crate) struct Macro {
    /// The library that brings it.
    pub(crate) library: &'static str,
    name: &'static str,
    /// Whether something stands before the dot.
    method: bool,
    arguments: usize,
    expand: fn(&mut Builder<'_>, MacroCall) -> Expansion,
}

/// A call that a macro is asked about.
pub(crate) struct MacroCall {
    /// Where the call stands.
    pub(crate) position: u32,
    pub(crate) target: Option<Expr>,
    pub(crate) args: Vec<Expr>,
}

/// What becomes of a call.
pub(crate) enum Expansion {
    /// This.
    To(Expr),
    /// Nothing, it is an ordinary call.
    Not(MacroCall),
}

const fn method(
    library: &'static str,
    name: &'static str,
    arguments: usize,
    expand: fn(&mut Builder<'_>, MacroCall) -> Expansion,
) -> Macro {
    Macro { library, name, method: true, arguments, expand }
}

/// All macros, by the library that brings them.
#[rustfmt::skip]
pub(crate) const MACROS: &[Macro] = &[
    Macro { library: "standard", name: "has", method: false, arguments: 1, expand: has },
    method("standard", "all", 2, |builder, call| quantifier(builder, call, Quantifier::All)),
    method("standard", "exists", 2, |builder, call| quantifier(builder, call, Quantifier::Exists)),
    method("standard", "exists_one", 2, |builder, call| quantifier(builder, call, Quantifier::ExistsOne)),
    method("standard", "map", 2, map),
    method("standard", "map", 3, map),
    method("standard", "filter", 2, filter),
    method("optional", "optMap", 2, |builder, call| optional_map(builder, call, false)),
    method("optional", "optFlatMap", 2, |builder, call| optional_map(builder, call, true)),
    method("comprehensions.2", "all", 3, |builder, call| quantifier(builder, call, Quantifier::All)),
    method("comprehensions.2", "exists", 3, |builder, call| quantifier(builder, call, Quantifier::Exists)),
    method("comprehensions.2", "exists_one", 3, |builder, call| quantifier(builder, call, Quantifier::ExistsOne)),
    method("comprehensions.2", "existsOne", 3, |builder, call| quantifier(builder, call, Quantifier::ExistsOne)),
    method("comprehensions.2", "transformList", 3, |builder, call| transform(builder, call, Transform::List)),
    method("comprehensions.2", "transformList", 4, |builder, call| transform(builder, call, Transform::List)),
    method("comprehensions.2", "transformMap", 3, |builder, call| transform(builder, call, Transform::Map)),
    method("comprehensions.2", "transformMap", 4, |builder, call| transform(builder, call, Transform::Map)),
    method("comprehensions.2", "transformMapEntry", 3, |builder, call| transform(builder, call, Transform::Entry)),
    method("comprehensions.2", "transformMapEntry", 4, |builder, call| transform(builder, call, Transform::Entry)),
    method("lists.3", "sortBy", 2, sort_by),
    method("bindings", "bind", 3, bind),
];

/// What becomes of a call of `name`, given the macros that there are.
pub(crate) fn expand(builder: &mut Builder<'_>, macros: &[&'static Macro], name: &str, call: MacroCall) -> Expansion {
    let fits = |candidate: &&&'static Macro| {
        candidate.name == name && candidate.method == call.target.is_some() && candidate.arguments == call.args.len()
    };
    match macros.iter().find(fits) {
        Some(found) => (found.expand)(builder, call),
        None => Expansion::Not(call),
    }
}

/// Takes the target and as many arguments as the table promises.
fn parts<const N: usize>(call: MacroCall) -> Result<(u32, Expr, [Expr; N]), MacroCall> {
    let MacroCall { position, target, args } = call;
    match (target, <[Expr; N]>::try_from(args)) {
        (Some(target), Ok(args)) => Ok((position, target, args)),
        (target, Err(args)) => Err(MacroCall { position, target, args }),
        (None, Ok(args)) => Err(MacroCall { position, target: None, args: args.into() }),
    }
}

fn has(builder: &mut Builder<'_>, mut call: MacroCall) -> Expansion {
    let position = call.position;
    let Some(arg) = call.args.pop() else { return Expansion::Not(call) };
    let at = builder.position(&arg);
    Expansion::To(match arg.kind {
        ExprKind::Select(select) => builder.select(position, select.operand, select.field, true),
        _ => builder.wrong(at, "invalid argument to has() macro"),
    })
}

/// The name that an argument is, if it is one that can be given to a variable.
fn variable(builder: &mut Builder<'_>, arg: &Expr, unless: &str) -> Result<String, Expr> {
    let at = builder.position(arg);
    match &arg.kind {
        ExprKind::Ident(name) if name == ACCUMULATOR || name == OLD_ACCUMULATOR => {
            Err(builder.wrong(at, "iteration variable overwrites accumulator variable"))
        }
        ExprKind::Ident(name) => Ok(name.clone()),
        _ => Err(builder.wrong(at, unless)),
    }
}

/// The names of one or two variables, and what is left of the arguments.
fn variables(
    builder: &mut Builder<'_>,
    args: Vec<Expr>,
    two: bool,
    unless: &str,
) -> Result<(String, Option<String>, std::vec::IntoIter<Expr>), Expr> {
    let mut args = args.into_iter();
    let (Some(first), second) = (args.next(), if two { args.next() } else { None }) else {
        return Err(builder.unspecified(0));
    };
    let Some(second) = second else {
        return Ok((variable(builder, &first, unless)?, None, args));
    };
    let name = |expr: &Expr| match &expr.kind {
        ExprKind::Ident(name) => Some(name.clone()),
        _ => None,
    };
    if let (Some(one), Some(other)) = (name(&first), name(&second))
        && one == other
    {
        let at = builder.position(&second);
        return Err(builder.wrong(at, format!("duplicate variable name: {one}")));
    }
    let first = variable(builder, &first, unless)?;
    Ok((first, Some(variable(builder, &second, unless)?), args))
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

fn quantifier(builder: &mut Builder<'_>, call: MacroCall, kind: Quantifier) -> Expansion {
    let at = call.position;
    let two = call.args.len() == 3;
    let Some(range) = call.target else { return Expansion::Not(call) };
    let (variable, second_variable, mut rest) =
        match variables(builder, call.args, two, "argument must be a simple name") {
            Ok(variables) => variables,
            Err(wrong) => return Expansion::To(wrong),
        };
    let predicate = rest.next().unwrap_or_else(|| builder.unspecified(at));
    let accumulated = builder.ident(at, ACCUMULATOR);
    let (init, condition, step, result) = match kind {
        Quantifier::All => {
            let init = builder.literal(at, Literal::Bool(true));
            let condition = builder.call(at, "@not_strictly_false", vec![accumulated]);
            let accumulated = builder.ident(at, ACCUMULATOR);
            let step = builder.call(at, "_&&_", vec![accumulated, predicate]);
            (init, condition, step, builder.ident(at, ACCUMULATOR))
        }
        Quantifier::Exists => {
            let init = builder.literal(at, Literal::Bool(false));
            let not = builder.call(at, "!_", vec![accumulated]);
            let condition = builder.call(at, "@not_strictly_false", vec![not]);
            let accumulated = builder.ident(at, ACCUMULATOR);
            let step = builder.call(at, "_||_", vec![accumulated, predicate]);
            (init, condition, step, builder.ident(at, ACCUMULATOR))
        }
        Quantifier::ExistsOne => {
            let init = builder.literal(at, Literal::Int(0));
            let condition = builder.literal(at, Literal::Bool(true));
            let one = builder.literal(at, Literal::Int(1));
            let more = builder.call(at, "_+_", vec![accumulated, one]);
            let same = builder.ident(at, ACCUMULATOR);
            let step = builder.call(at, "_?_:_", vec![predicate, more, same]);
            let (accumulated, one) = (builder.ident(at, ACCUMULATOR), builder.literal(at, Literal::Int(1)));
            (init, condition, step, builder.call(at, "_==_", vec![accumulated, one]))
        }
    };
    let accumulator = ACCUMULATOR.to_string();
    let fold = Comprehension { range, variable, second_variable, accumulator, init, condition, step, result };
    Expansion::To(builder.comprehension(at, fold))
}

/// A fold that builds up a list or a map, one `step` after the other, for the elements for which `filter` holds.
struct Building {
    range: Expr,
    variable: String,
    second_variable: Option<String>,
    init: Expr,
    filter: Option<Expr>,
    step: Expr,
}

fn build_up(builder: &mut Builder<'_>, at: u32, building: Building) -> Expr {
    let Building { range, variable, second_variable, init, filter, mut step } = building;
    if let Some(filter) = filter {
        let same = builder.ident(at, ACCUMULATOR);
        step = builder.call(at, "_?_:_", vec![filter, step, same]);
    }
    let condition = builder.literal(at, Literal::Bool(true));
    let result = builder.ident(at, ACCUMULATOR);
    let accumulator = ACCUMULATOR.to_string();
    let fold = Comprehension { range, variable, second_variable, accumulator, init, condition, step, result };
    builder.comprehension(at, fold)
}

/// `accumulated + [value]`.
fn append(builder: &mut Builder<'_>, at: u32, value: Expr) -> Expr {
    let accumulated = builder.ident(at, ACCUMULATOR);
    let list = builder.list(at, vec![value]);
    builder.call(at, "_+_", vec![accumulated, list])
}

fn map(builder: &mut Builder<'_>, call: MacroCall) -> Expansion {
    let at = call.position;
    let filtered = call.args.len() == 3;
    let Some(range) = call.target else { return Expansion::Not(call) };
    Expansion::To(match variables(builder, call.args, false, "argument is not an identifier") {
        Err(wrong) => wrong,
        Ok((variable, second_variable, mut rest)) => {
            let filter = if filtered { rest.next() } else { None };
            let value = rest.next().unwrap_or_else(|| builder.unspecified(at));
            let step = append(builder, at, value);
            let init = builder.list(at, vec![]);
            build_up(builder, at, Building { range, variable, second_variable, init, filter, step })
        }
    })
}

fn filter(builder: &mut Builder<'_>, call: MacroCall) -> Expansion {
    let (at, range, [element, predicate]) = match parts(call) {
        Ok(parts) => parts,
        Err(call) => return Expansion::Not(call),
    };
    Expansion::To(match variable(builder, &element, "argument is not an identifier") {
        Err(wrong) => wrong,
        Ok(variable) => {
            let step = append(builder, at, element);
            let init = builder.list(at, vec![]);
            let filter = Some(predicate);
            build_up(builder, at, Building { range, variable, second_variable: None, init, filter, step })
        }
    })
}

#[derive(Clone, Copy)]
enum Transform {
    List,
    Map,
    Entry,
}

fn transform(builder: &mut Builder<'_>, call: MacroCall, kind: Transform) -> Expansion {
    let at = call.position;
    let filtered = call.args.len() == 4;
    let Some(range) = call.target else { return Expansion::Not(call) };
    let (variable, second_variable, mut rest) =
        match variables(builder, call.args, true, "argument must be a simple name") {
            Ok(variables) => variables,
            Err(wrong) => return Expansion::To(wrong),
        };
    let filter = if filtered { rest.next() } else { None };
    let value = rest.next().unwrap_or_else(|| builder.unspecified(at));
    let (init, step) = match kind {
        Transform::List => (builder.list(at, vec![]), append(builder, at, value)),
        Transform::Map | Transform::Entry => {
            let mut args = vec![builder.ident(at, ACCUMULATOR)];
            if matches!(kind, Transform::Map) {
                args.push(builder.ident(at, variable.clone()));
            }
            args.push(value);
            (builder.node(at, ExprKind::Map(vec![])), builder.call(at, "cel.@mapInsert", args))
        }
    };
    Expansion::To(build_up(builder, at, Building { range, variable, second_variable, init, filter, step }))
}

/// `result` with `variable` standing for `init`: a fold over nothing.
fn with_binding(builder: &mut Builder<'_>, at: u32, variable: String, init: Expr, result: Expr) -> Expr {
    let range = builder.list(at, vec![]);
    let condition = builder.literal(at, Literal::Bool(false));
    let step = builder.ident(at, variable.clone());
    let variable_of_range = UNUSED.to_string();
    let fold = Comprehension {
        range,
        variable: variable_of_range,
        second_variable: None,
        accumulator: variable,
        init,
        condition,
        step,
        result,
    };
    builder.comprehension(at, fold)
}

fn optional_map(builder: &mut Builder<'_>, call: MacroCall, flat: bool) -> Expansion {
    let (at, target, [variable, value]) = match parts(call) {
        Ok(parts) => parts,
        Err(call) => return Expansion::Not(call),
    };
    let ExprKind::Ident(name) = variable.kind else {
        let macro_name = if flat { "optFlatMap" } else { "optMap" };
        let position = builder.position(&variable);
        let message = format!("{macro_name}() variable name must be a simple identifier");
        return Expansion::To(builder.wrong(position, message));
    };
    let copy = builder.copy(&target);
    let present = builder.member_call(at, "hasValue", target, vec![]);
    let inner = builder.member_call(at, "value", copy, vec![]);
    let mut mapped = with_binding(builder, at, name, inner, value);
    if !flat {
        mapped = builder.call(at, "optional.of", vec![mapped]);
    }
    let none = builder.call(at, "optional.none", vec![]);
    Expansion::To(builder.call(at, "_?_:_", vec![present, mapped, none]))
}

fn sort_by(builder: &mut Builder<'_>, call: MacroCall) -> Expansion {
    const INPUT: &str = "@__sortBy_input__";
    let at = call.position;
    let Some(target) = call.target else { return Expansion::Not(call) };
    if matches!(target.kind, ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct(_) | ExprKind::Unspecified) {
        let position = builder.position(&target);
        return Expansion::To(builder.wrong(
            position,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        ));
    }
    let input = builder.ident(at, INPUT);
    let issues = builder.issues.len();
    let keys = match map(builder, MacroCall { position: at, target: Some(input), args: call.args }) {
        Expansion::To(keys) if builder.issues.len() == issues => keys,
        Expansion::To(wrong) => return Expansion::To(wrong),
        Expansion::Not(call) => return Expansion::Not(call),
    };
    let input = builder.ident(at, INPUT);
    let sorted = builder.member_call(at, "@sortByAssociatedKeys", input, vec![keys]);
    Expansion::To(with_binding(builder, at, INPUT.to_string(), target, sorted))
}

fn bind(builder: &mut Builder<'_>, call: MacroCall) -> Expansion {
    let is_namespace = |target: &Expr| matches!(&target.kind, ExprKind::Ident(name) if name == "cel");
    if !call.target.as_ref().is_some_and(is_namespace) {
        return Expansion::Not(call);
    }
    let (at, _, [variable, init, result]) = match parts(call) {
        Ok(parts) => parts,
        Err(call) => return Expansion::Not(call),
    };
    let ExprKind::Ident(name) = variable.kind else {
        let position = builder.position(&variable);
        return Expansion::To(builder.wrong(position, "cel.bind() variable names must be simple identifiers"));
    };
    Expansion::To(with_binding(builder, at, name, init, result))
}
