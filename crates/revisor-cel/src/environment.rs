//! [`Environment`]: what an expression may speak of, and [`Program`]: one that was found to make sense in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use revisor_version::Release;

use crate::ast::{Expr, ExprId};
use crate::checker;
use crate::eval::error::EvalError;
use crate::eval::escaping::is_reserved;
use crate::eval::plan::{self, Plan};
use crate::libraries::{Libraries, Library};
use crate::literal_checks;
use crate::parser::{self, Syntax};
use crate::schema_types::SchemaType;
use crate::source::{Issue, Location, Source};
use crate::types::{Shape, Type};

/// What an expression may speak of: libraries, variables and types with fields.
///
/// ```
/// use revisor_cel::{Environment, Type};
/// use revisor_version::Release;
///
/// let environment = Environment::new(Release { major: 1, minor: 36 }).with_variable("self", Type::list(Type::Int));
/// let program = environment.compile("self.all(x, x > 0)").unwrap();
/// assert_eq!(*program.output_type(), Type::Bool);
///
/// let issues = environment.compile("self + 'a'").unwrap_err();
/// assert_eq!(
///     issues.to_string(),
///     "ERROR: <input>:1:6: found no matching overload for '_+_' applied to '(list(int), string)'\n \
///      | self + 'a'\n | .....^"
/// );
/// ```
#[derive(Debug, Clone)]
pub struct Environment {
    release: Release,
    extra: Vec<Library>,
    pub(crate) libraries: Arc<Libraries>,
    variables: BTreeMap<String, Type>,
    objects: BTreeMap<Arc<str>, Arc<ObjectType>>,
    patch_types: bool,
    /// Schemas by the names of the types that they describe.
    schemas: Vec<(String, Arc<SchemaType>)>,
}

/// A type with fields.
#[derive(Debug, Clone)]
pub struct ObjectType {
    name: Arc<str>,
    /// Shared: every expression of an object is compiled in an environment of its own, and may add a field to the type.
    fields: Arc<BTreeMap<String, Type>>,
}

impl ObjectType {
    /// A type without fields so far.
    pub fn new(name: &str) -> ObjectType {
        ObjectType { name: name.into(), fields: Arc::default() }
    }

    /// This type with one more field.
    pub fn with_field(mut self, name: &str, kind: Type) -> ObjectType {
        self.declare(name, kind);
        self
    }

    /// Adds a field. The others are only copied if somebody else has the type as it was.
    pub fn declare(&mut self, name: &str, kind: Type) {
        Arc::make_mut(&mut self.fields).insert(name.to_string(), kind);
    }
}

/// What became of the search for a field.
pub(crate) enum Field {
    Of(Type),
    /// The type has no such field.
    Undefined,
    /// There is no such type.
    NoSuchType,
}

/// An expression that makes sense in its environment.
#[derive(Debug)]
pub struct Program {
    source: Source,
    root: Expr,
    positions: Vec<u32>,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
    plan: Result<Plan, EvalError>,
}

/// What a name or a call refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A variable or a type by its full name.
    Name(String),
    /// The signatures that may be meant; which one shows when it is evaluated.
    Overloads(Vec<&'static str>),
}

/// Why an expression is none, with the text that it was.
#[derive(Debug)]
pub struct Issues {
    issues: Vec<Issue>,
    rendered: String,
    nodes: usize,
}

impl Issues {
    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.issues.iter()
    }

    fn new(source: &Source, issues: Vec<Issue>, nodes: usize) -> Issues {
        Issues { rendered: source.render(&issues), issues, nodes }
    }

    /// Of how many nodes the expression was made until it was found to be wrong.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }
}

/// All of them with the lines that they are about.
impl std::fmt::Display for Issues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.rendered)
    }
}

impl std::error::Error for Issues {}

impl Environment {
    /// The libraries that `release` has, and no variables.
    pub fn new(release: Release) -> Environment {
        Environment {
            release,
            extra: Vec::new(),
            libraries: Arc::new(Libraries::of(release, &[])),
            variables: BTreeMap::new(),
            objects: BTreeMap::new(),
            patch_types: false,
            schemas: Vec::new(),
        }
    }

    /// This environment with a library that no release brings by itself.
    pub fn with_library(mut self, library: Library) -> Environment {
        self.extra.push(library);
        self.libraries = Arc::new(Libraries::of(self.release, &self.extra));
        self
    }

    /// This environment with one more variable. Its name may have dots in it.
    pub fn with_variable(mut self, name: &str, kind: Type) -> Environment {
        self.variables.insert(name.to_string(), kind);
        self
    }

    /// This environment with one more type, which [`Type::object`] refers to by its name.
    pub fn with_object(mut self, object: ObjectType) -> Environment {
        self.objects.insert(object.name.clone(), Arc::new(object));
        self
    }

    /// This environment with the types that describe changes: `Object` and everything below it by the path of its
    /// fields, and `JSONPatch`.
    pub fn with_patch_types(mut self) -> Environment {
        self.patch_types = true;
        let patch = ObjectType::new("JSONPatch")
            .with_field("op", Type::String)
            .with_field("path", Type::String)
            .with_field("from", Type::String)
            .with_field("value", Type::Dyn);
        self.with_object(patch)
    }

    /// This environment with the types of a schema: the value that it describes has the type `schema.kind(name)`.
    ///
    /// Expressions cannot say the names of these types.
    pub fn with_schema(mut self, name: &str, schema: &Arc<SchemaType>) -> Environment {
        self.schemas.retain(|(known, _)| known != name);
        self.schemas.push((name.to_string(), Arc::clone(schema)));
        self
    }

    /// Parses and checks an expression.
    pub fn compile(&self, text: &str) -> Result<Program, Issues> {
        let source = Source::new(text);
        let syntax = Syntax { macros: &self.libraries.macros, optionals: self.libraries.optionals };
        let ast = match parser::parse(&source, syntax) {
            Ok(ast) => ast,
            Err((issues, nodes)) => return Err(Issues::new(&source, issues, nodes)),
        };
        let nodes = ast.positions.len();
        let checked = match checker::check(self, &source, ast) {
            Ok(checked) => checked,
            Err(issues) => return Err(Issues::new(&source, issues, nodes)),
        };
        let checker::Checked { root, positions, types, references } = checked;
        let plan = Err(EvalError::failed("the expression was found to be wrong"));
        let mut program = Program { source, root, positions, types, references, plan };
        let issues = literal_checks::check(&self.libraries, &program);
        if !issues.is_empty() {
            return Err(Issues::new(&program.source, issues, nodes));
        }
        program.plan = plan::plan(&program);
        Ok(program)
    }

    /// What a name that is no local variable stands for.
    pub(crate) fn name(&self, name: &str) -> Option<Type> {
        if let Some(kind) = self.variables.get(name).or_else(|| self.libraries.type_name(name)) {
            return Some(kind.clone());
        }
        if self.objects.contains_key(name) || self.is_patched(name) {
            return Some(Type::type_of(Type::object(name)));
        }
        // Schemas bring short names for two types. They pass the check only: no program can be made of them.
        match name {
            _ if self.schemas.is_empty() => None,
            "timestamp" => Some(Type::type_of(Type::Timestamp)),
            "duration" => Some(Type::type_of(Type::Duration)),
            _ => None,
        }
    }

    /// Whether this is the name of an object that is changed, or of something in it.
    fn is_patched(&self, name: &str) -> bool {
        self.patch_types && name.strip_prefix("Object").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    pub(crate) fn field(&self, object: &str, field: &str) -> Field {
        let described =
            self.schemas.iter().find_map(|(name, schema)| schema.named(object.strip_prefix(name.as_str())?));
        if let Some(found) = described {
            // From this release on, words that are reserved may stand for fields without being escaped.
            let is_short = is_reserved(field) && self.release >= Release { major: 1, minor: 31 };
            let name = if is_short { format!("__{field}__") } else { field.to_string() };
            return match found.field(&name) {
                Some(field) => Field::Of(field.kind(&format!("{object}.{name}"))),
                None => Field::Undefined,
            };
        }
        match self.objects.get(object) {
            Some(object) => object.fields.get(field).map_or(Field::Undefined, |kind| Field::Of(kind.clone())),
            None if self.is_patched(object) => Field::Of(Type::Dyn),
            None => Field::NoSuchType,
        }
    }
}

impl Program {
    /// The type of what comes out.
    pub fn output_type(&self) -> &Type {
        self.type_of(self.root.id).unwrap_or(&Type::Dyn)
    }

    /// How to evaluate it.
    pub(crate) fn plan(&self) -> Result<&Plan, EvalError> {
        self.plan.as_ref().map_err(EvalError::clone)
    }

    /// The tree.
    pub fn root(&self) -> &Expr {
        &self.root
    }

    /// How many nodes the tree has.
    pub(crate) fn nodes(&self) -> usize {
        self.positions.len()
    }

    /// The type of a part of the tree.
    pub fn type_of(&self, id: ExprId) -> Option<&Type> {
        self.types.get(id.index())?.as_ref()
    }

    /// What a name or a call in the tree refers to.
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id.index())?.as_ref()
    }

    /// Whether something in the tree refers to this name.
    pub fn refers_to(&self, name: &str) -> bool {
        self.references.iter().flatten().any(|reference| matches!(reference, Reference::Name(found) if found == name))
    }

    /// The name of a type in the tree that passes the check, but stands for nothing when it is evaluated.
    pub(crate) fn unknown_type(&self) -> Option<&'static str> {
        ["timestamp", "duration"].into_iter().find(|short| {
            self.references.iter().zip(&self.types).any(|(reference, kind)| {
                matches!(reference, Some(Reference::Name(name)) if name == short)
                    && kind.as_ref().is_some_and(|kind| kind.shape() == Some(&Shape::Type))
            })
        })
    }

    /// Where a part of the tree stands in the expression.
    pub fn location(&self, id: ExprId) -> Location {
        self.positions.get(id.index()).map_or(Location::NONE, |position| self.source.location(*position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_nobody_shares_gets_fields_in_place() {
        let mut object = ObjectType::new("a").with_field("x", Type::Int);
        let fields = Arc::as_ptr(&object.fields);
        drop(object.clone());
        object.declare("y", Type::Int);
        assert_eq!(Arc::as_ptr(&object.fields), fields, "to declare many takes as many steps");
        let shared = object.clone();
        object.declare("z", Type::Int);
        assert_eq!((shared.fields.len(), object.fields.len()), (2, 3));
    }
}
