//! Expressions that look at the claims of a token, or at the user that was made of them.

use revisor_cel::{Budget, CelValue, Environment, Expr, ExprKind, List, Literal, Map, ObjectType, Program, Type};
use revisor_object::{Object, Value};
use revisor_version::Release;

use crate::Claims;

/// What expressions of an issuer may speak of.
pub(crate) struct Environments {
    claims: Environment,
    user: Environment,
}

/// What must come out of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Truth,
    Anything,
}

/// An expression.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) text: String,
    program: Program,
}

impl Environments {
    pub(crate) fn of(release: Release) -> Environments {
        let user = ObjectType::new("kubernetes.UserInfo")
            .with_field("username", Type::String)
            .with_field("uid", Type::String)
            .with_field("groups", Type::list(Type::String))
            .with_field("extra", Type::map(Type::String, Type::list(Type::String)));
        Environments {
            claims: Environment::new(release).with_variable("claims", Type::map(Type::String, Type::Dyn)),
            user: Environment::new(release)
                .with_object(user)
                .with_variable("user", Type::object("kubernetes.UserInfo")),
        }
    }

    pub(crate) fn of_claims(&self, text: &str, wanted: Wanted) -> Result<Expression, String> {
        compile(&self.claims, text, wanted)
    }

    pub(crate) fn of_user(&self, text: &str) -> Result<Expression, String> {
        compile(&self.user, text, Wanted::Truth)
    }
}

fn compile(environment: &Environment, text: &str, wanted: Wanted) -> Result<Expression, String> {
    let program = environment.compile(text).map_err(|issues| format!("compilation failed: {issues}"))?;
    if wanted == Wanted::Truth && *program.output_type() != Type::Bool {
        return Err("must evaluate to bool".to_owned());
    }
    match program.flaw() {
        Some(flaw) => Err(format!("program instantiation failed: {flaw}")),
        None => Ok(Expression { text: text.to_owned(), program }),
    }
}

impl Expression {
    /// What comes out of it for these claims.
    pub(crate) fn evaluate<'a>(&self, claims: &'a Object) -> Result<CelValue<'a>, String> {
        self.run("claims", CelValue::Map(shown(claims)?))
    }

    /// Whether it is true of a user.
    pub(crate) fn holds_for(&self, user: &Claims) -> Result<bool, String> {
        let texts = |values: &[String]| CelValue::list(values.iter().map(CelValue::text).collect());
        let extra = user.extra.iter().map(|(key, values)| (CelValue::text(key), texts(values)));
        let extra = Map::made(extra).map_err(|error| error.to_string())?;
        let members = [
            ("username", CelValue::text(&user.name)),
            ("uid", CelValue::text(user.uid.clone().unwrap_or_default())),
            ("groups", texts(&user.groups)),
            ("extra", CelValue::Map(extra)),
        ];
        let members = members.into_iter().map(|(name, value)| (CelValue::text(name), value));
        let shown = Map::made(members).map_err(|error| error.to_string())?;
        Ok(self.run("user", CelValue::Map(shown))?.as_bool() == Some(true))
    }

    fn run<'a>(&self, name: &str, value: CelValue<'a>) -> Result<CelValue<'a>, String> {
        let variables = [(name, value)];
        let value = self.program.evaluate(&variables, &mut Budget::default());
        value.map_err(|error| format!("expression '{}' resulted in error: {error}", self.text))
    }

    /// Whether it speaks of `claims.NAME`.
    pub(crate) fn selects_claim(&self, name: &str) -> bool {
        selects(self.program.root(), name)
    }
}

/// Claims as expressions see them. As in the original all numbers have a fraction.
fn shown(claims: &Object) -> Result<Map<'_>, String> {
    let members = claims.iter().map(|(name, value)| Ok((CelValue::text(name), of_json(value)?)));
    Map::made(members.collect::<Result<Vec<_>, String>>()?).map_err(|error| error.to_string())
}

fn of_json(value: &Value) -> Result<CelValue<'_>, String> {
    Ok(match value {
        Value::Null => CelValue::Null,
        Value::Bool(truth) => CelValue::from(*truth),
        Value::String(text) => CelValue::text(text.as_str()),
        Value::Array(items) => {
            CelValue::List(List::made(items.iter().map(of_json).collect::<Result<Vec<_>, String>>()?))
        }
        Value::Object(object) => CelValue::Map(shown(object)?),
        number => CelValue::Double(number.to_json().parse().map_err(|_| "a claim is no number".to_owned())?),
    })
}

/// What an expression came to, as a list of texts (`convertCELValueToStringList`).
pub(crate) fn texts(value: &CelValue<'_>) -> Result<Vec<String>, String> {
    let odd = || "expression must return a string or a list of strings".to_owned();
    match value {
        CelValue::Null => Ok(Vec::new()),
        CelValue::String(_) => {
            Ok(value.as_str().filter(|text| !text.is_empty()).map(str::to_owned).into_iter().collect())
        }
        CelValue::List(list) => {
            let mut texts = Vec::new();
            for element in list.iter() {
                let element = element.map_err(|error| error.to_string())?;
                match element.as_str() {
                    Some("") => {}
                    Some(text) => texts.push(text.to_owned()),
                    None => return Err(odd()),
                }
            }
            Ok(texts)
        }
        _ => Err(odd()),
    }
}

/// Whether `claims.NAME`, or `claims.?NAME`, is somewhere in an expression (`hasSelectExp`).
fn selects(root: &Expr, name: &str) -> bool {
    let is_claims = |expr: &Expr| matches!(&expr.kind, ExprKind::Ident(ident) if ident == "claims");
    let mut todo = vec![root];
    while let Some(expr) = todo.pop() {
        match &expr.kind {
            ExprKind::Select(select) => {
                if is_claims(&select.operand) && select.field == name {
                    return true;
                }
                todo.push(&select.operand);
            }
            ExprKind::Call(call) => {
                if call.function == "_?._"
                    && let [operand, field] = call.args.as_slice()
                    && is_claims(operand)
                    && matches!(&field.kind, ExprKind::Literal(Literal::String(field)) if field == name)
                {
                    return true;
                }
                todo.extend(call.target.as_ref());
                todo.extend(&call.args);
            }
            ExprKind::List(elements) => todo.extend(elements.iter().map(|element| &element.value)),
            ExprKind::Map(entries) => todo.extend(entries.iter().flat_map(|entry| [&entry.key, &entry.value])),
            ExprKind::Struct(made) => todo.extend(made.fields.iter().map(|field| &field.value)),
            ExprKind::Comprehension(loops) => {
                todo.extend([&loops.range, &loops.init, &loops.condition, &loops.step, &loops.result]);
            }
            ExprKind::Ident(_) | ExprKind::Literal(_) | ExprKind::Unspecified => {}
        }
    }
    false
}
