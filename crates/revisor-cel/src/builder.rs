//! [`Builder`]: makes the nodes of the tree, and keeps it within bounds.

use crate::ast::{Call, Comprehension, Element, Entry, Expr, ExprId, ExprKind, FieldInit, Literal, Select, Struct};
use crate::source::{Issue, Source};

/// How deep operators, selections and calls may nest.
pub(crate) const DEEPEST: u16 = 250;

/// How many nodes a tree may have. Only macros that use an operand twice make more of them than there are characters.
const MOST: usize = 300_000;

/// Makes the nodes of the tree.
pub(crate) struct Builder<'a> {
    source: &'a Source,
    /// Where each node stands, by its number.
    pub(crate) positions: Vec<u32>,
    /// How deep each node nests, by its number.
    heights: Vec<u16>,
    /// What is wrong with the meaning of what was well written.
    pub(crate) issues: Vec<Issue>,
    /// Whether a node was left out because it nests too deep.
    pub(crate) too_deep: bool,
    /// Whether nodes were left out because there are too many.
    pub(crate) too_many: bool,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(source: &'a Source) -> Builder<'a> {
        Builder {
            source,
            positions: Vec::new(),
            heights: Vec::new(),
            issues: Vec::new(),
            too_deep: false,
            too_many: false,
        }
    }

    /// The number of a new node at `position`.
    pub(crate) fn id(&mut self, position: u32) -> ExprId {
        if self.positions.len() >= MOST {
            self.too_many = true;
            return ExprId(0);
        }
        self.positions.push(position);
        self.heights.push(0);
        ExprId(self.positions.len() as u32 - 1)
    }

    pub(crate) fn position(&self, expr: &Expr) -> u32 {
        self.positions[expr.id.index()]
    }

    /// A node at `position`. Its height is that of what is in it.
    pub(crate) fn node(&mut self, position: u32, kind: ExprKind) -> Expr {
        if self.too_many {
            return Expr { id: ExprId(0), kind: ExprKind::Unspecified };
        }
        let expr = Expr { id: self.id(position), kind };
        let mut height = 0;
        expr.for_each_child(|child| height = height.max(self.heights[child.id.index()]));
        self.heights[expr.id.index()] = height;
        expr
    }

    /// The node, one deeper than what is in it; left out if that is too deep.
    pub(crate) fn deepen(&mut self, expr: Expr) -> Expr {
        let height = &mut self.heights[expr.id.index()];
        if *height >= DEEPEST {
            self.too_deep = true;
            *height = 0;
            return Expr { id: expr.id, kind: ExprKind::Unspecified };
        }
        *height += 1;
        expr
    }

    pub(crate) fn unspecified(&mut self, position: u32) -> Expr {
        self.node(position, ExprKind::Unspecified)
    }

    /// Says what is wrong at `position`.
    pub(crate) fn wrong(&mut self, position: u32, message: impl Into<String>) -> Expr {
        self.issues.push(Issue { location: self.source.location(position), message: message.into() });
        self.unspecified(position)
    }

    pub(crate) fn literal(&mut self, position: u32, literal: Literal) -> Expr {
        self.node(position, ExprKind::Literal(literal))
    }

    pub(crate) fn ident(&mut self, position: u32, name: impl Into<String>) -> Expr {
        self.node(position, ExprKind::Ident(name.into()))
    }

    pub(crate) fn select(&mut self, position: u32, operand: Expr, field: String, test: bool) -> Expr {
        self.node(position, ExprKind::Select(Box::new(Select { operand, field, test })))
    }

    pub(crate) fn call(&mut self, position: u32, function: &str, args: Vec<Expr>) -> Expr {
        let call = Call { target: None, function: function.to_string(), args };
        self.node(position, ExprKind::Call(Box::new(call)))
    }

    pub(crate) fn member_call(&mut self, position: u32, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        let call = Call { target: Some(target), function: function.to_string(), args };
        self.node(position, ExprKind::Call(Box::new(call)))
    }

    pub(crate) fn list(&mut self, position: u32, values: Vec<Expr>) -> Expr {
        let elements = values.into_iter().map(|value| Element { value, optional: false }).collect();
        self.node(position, ExprKind::List(elements))
    }

    pub(crate) fn comprehension(&mut self, position: u32, comprehension: Comprehension) -> Expr {
        self.node(position, ExprKind::Comprehension(Box::new(comprehension)))
    }

    /// Terms joined by one operator, as a balanced tree: a thousand alternatives nest ten deep.
    pub(crate) fn balanced(&mut self, function: &str, terms: Vec<Expr>, operators: &[u32]) -> Expr {
        let mut terms: Vec<Option<Expr>> = terms.into_iter().map(Some).collect();
        self.balance(function, &mut terms, operators)
    }

    fn balance(&mut self, function: &str, terms: &mut [Option<Expr>], operators: &[u32]) -> Expr {
        if operators.is_empty() {
            return terms.first_mut().and_then(Option::take).unwrap_or_else(|| self.unspecified(0));
        }
        let middle = operators.len() / 2;
        let (left, right) = terms.split_at_mut(middle + 1);
        let left = self.balance(function, left, &operators[..middle]);
        let right = self.balance(function, right, &operators[middle + 1..]);
        self.call(operators[middle], function, vec![left, right])
    }

    /// The same expression again, with numbers of its own.
    pub(crate) fn copy(&mut self, expr: &Expr) -> Expr {
        let position = self.position(expr);
        if self.too_many {
            return self.unspecified(position);
        }
        let kind = match &expr.kind {
            ExprKind::Unspecified => ExprKind::Unspecified,
            ExprKind::Literal(literal) => ExprKind::Literal(literal.clone()),
            ExprKind::Ident(name) => ExprKind::Ident(name.clone()),
            ExprKind::Select(select) => ExprKind::Select(Box::new(Select {
                operand: self.copy(&select.operand),
                field: select.field.clone(),
                test: select.test,
            })),
            ExprKind::Call(call) => ExprKind::Call(Box::new(Call {
                target: call.target.as_ref().map(|target| self.copy(target)),
                function: call.function.clone(),
                args: call.args.iter().map(|arg| self.copy(arg)).collect(),
            })),
            ExprKind::List(elements) => ExprKind::List(
                elements
                    .iter()
                    .map(|element| Element { value: self.copy(&element.value), optional: element.optional })
                    .collect(),
            ),
            ExprKind::Map(entries) => ExprKind::Map(
                entries
                    .iter()
                    .map(|entry| Entry {
                        id: self.id(self.positions[entry.id.index()]),
                        key: self.copy(&entry.key),
                        value: self.copy(&entry.value),
                        optional: entry.optional,
                    })
                    .collect(),
            ),
            ExprKind::Struct(object) => ExprKind::Struct(Box::new(Struct {
                name: object.name.clone(),
                fields: object
                    .fields
                    .iter()
                    .map(|field| FieldInit {
                        id: self.id(self.positions[field.id.index()]),
                        name: field.name.clone(),
                        value: self.copy(&field.value),
                        optional: field.optional,
                    })
                    .collect(),
            })),
            ExprKind::Comprehension(fold) => ExprKind::Comprehension(Box::new(Comprehension {
                range: self.copy(&fold.range),
                variable: fold.variable.clone(),
                second_variable: fold.second_variable.clone(),
                accumulator: fold.accumulator.clone(),
                init: self.copy(&fold.init),
                condition: self.copy(&fold.condition),
                step: self.copy(&fold.step),
                result: self.copy(&fold.result),
            })),
        };
        let height = self.heights[expr.id.index()];
        let copy = self.node(position, kind);
        self.heights[copy.id.index()] = height;
        copy
    }
}
