//! The tree of an expression, as the parser leaves it: macros are expanded, so that only these few kinds remain.

/// A number by which an expression is known: its position, its type and what it refers to are kept beside the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExprId(pub(crate) u32);

impl ExprId {
    /// The id as an index; ids count from 0 without gaps worth minding.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expr {
    /// Its number.
    pub id: ExprId,
    /// What it is.
    pub kind: ExprKind,
}

/// What an expression is.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// Nothing: the parser found something wrong here. A program contains none.
    Unspecified,
    /// A value that is written out.
    Literal(Literal),
    /// A name.
    Ident(String),
    /// A field of a value.
    Select(Box<Select>),
    /// A function, an operator or a method applied to values.
    Call(Box<Call>),
    /// A list that is written out.
    List(Vec<Element>),
    /// A map that is written out.
    Map(Vec<Entry>),
    /// An object that is written out.
    Struct(Box<Struct>),
    /// A fold over a list or a map.
    Comprehension(Box<Comprehension>),
}

/// A value that is written out.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    String(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// `operand.field`, or with `test` whether it is there: `has(operand.field)`.
#[derive(Debug, Clone)]
pub struct Select {
    /// Of what.
    pub operand: Expr,
    /// Which field.
    pub field: String,
    /// Whether only the presence is asked for.
    pub test: bool,
}

/// `function(arguments)` or `target.function(arguments)`.
#[derive(Debug, Clone)]
pub struct Call {
    /// What stands before the dot, if anything.
    pub target: Option<Expr>,
    /// The function; operators have names such as `_+_`.
    pub function: String,
    /// What stands between the parentheses.
    pub args: Vec<Expr>,
}

/// An element of a list.
#[derive(Debug, Clone)]
pub struct Element {
    /// Its value.
    pub value: Expr,
    /// Whether it is left out if the value is absent: `[?value]`.
    pub optional: bool,
}

/// An entry of a map.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The number of the entry itself.
    pub id: ExprId,
    /// Its key.
    pub key: Expr,
    /// Its value.
    pub value: Expr,
    /// Whether it is left out if the value is absent: `{?key: value}`.
    pub optional: bool,
}

/// `Name{field: value}`.
#[derive(Debug, Clone)]
pub struct Struct {
    /// The name of the type.
    pub name: String,
    /// The fields that are given.
    pub fields: Vec<FieldInit>,
}

/// A field of an object that is written out.
#[derive(Debug, Clone)]
pub struct FieldInit {
    /// The number of the field itself.
    pub id: ExprId,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Expr,
    /// Whether it is left out if the value is absent: `Name{?field: value}`.
    pub optional: bool,
}

/// A fold: `result` after `accumulator` began as `init` and became `step` for each element of `range`, as long as
/// `condition` held.
#[derive(Debug, Clone)]
pub struct Comprehension {
    /// What is gone through.
    pub range: Expr,
    /// The name of the element; with a second name, that of the index or key.
    pub variable: String,
    /// The name of the element or value, if there are two names.
    pub second_variable: Option<String>,
    /// The name of what is accumulated.
    pub accumulator: String,
    /// With what it begins.
    pub init: Expr,
    /// Whether to go on.
    pub condition: Expr,
    /// What it becomes with each element.
    pub step: Expr,
    /// What comes out.
    pub result: Expr,
}

impl Expr {
    /// The expressions directly inside this one.
    pub(crate) fn for_each_child<'a>(&'a self, mut each: impl FnMut(&'a Expr)) {
        match &self.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select(select) => each(&select.operand),
            ExprKind::Call(call) => {
                call.target.iter().for_each(&mut each);
                call.args.iter().for_each(each);
            }
            ExprKind::List(elements) => elements.iter().for_each(|element| each(&element.value)),
            ExprKind::Map(entries) => entries.iter().for_each(|entry| {
                each(&entry.key);
                each(&entry.value);
            }),
            ExprKind::Struct(object) => object.fields.iter().for_each(|field| each(&field.value)),
            ExprKind::Comprehension(fold) => {
                [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result].into_iter().for_each(each);
            }
        }
    }

    /// `a.b.c` as one name, if the expression is one.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Ident(name) => Some(name.clone()),
            ExprKind::Select(select) if !select.test => {
                Some(format!("{}.{}", select.operand.qualified_name()?, select.field))
            }
            _ => None,
        }
    }
}
