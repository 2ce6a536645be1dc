//! [`Columns`]: how a resource is shown as a table: its columns, and what stands in them for one object.
//!
//! The columns of built-in kinds are rows of `tables/columns.csv`; what stands in them is computed by the kind's printer.
//! Those of other kinds come from their definition. Writing the table down is the API layer's.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use compact_str::CompactString;
use revisor_object::{Object, Value, parse_json};

use crate::Moment;
use crate::custom_columns::{self, PrinterColumn};
use crate::printers::{self, Printer};

const TABLE: &str = include_str!("../tables/columns.csv");

/// What the documentation of fields says that columns show: its name in the table and the text as a JSON string.
const DESCRIPTIONS: &str = include_str!(concat!(env!("OUT_DIR"), "/column_descriptions.tsv"));

/// What is said of the names of all objects, and of the times at which they were made.
const NAME: &str = "=io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta#name";
const CREATED: &str = "=io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta#creationTimestamp";

/// The columns of a resource that says nothing about them (upstream: `defaultTableConvertor`).
const USUAL: [(&str, &str, &str, &str); 2] = [("Name", "string", "name", NAME), ("Created At", "date", "", CREATED)];

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What stands above it.
    pub name: String,
    /// The type of what stands in it, as OpenAPI names it.
    pub kind: String,
    /// More about the type.
    pub format: String,
    /// Zero for columns that are always shown.
    pub priority: i64,
    /// What stands in it, for people.
    pub description: String,
}

/// How a resource is shown as a table.
#[derive(Clone)]
pub struct Columns {
    /// Made when a table is asked for: most resources are never shown as one.
    header: OnceLock<Header>,
    cells: Cells,
    completion: Option<fn(&Object) -> Option<Completion>>,
    rank: Option<fn(&Object) -> i64>,
}

/// What stands above a table.
#[derive(Clone)]
struct Header {
    columns: Vec<Column>,
    definitions: String,
}

/// Where the header and the cells of a row come from.
#[derive(Clone)]
enum Cells {
    BuiltIn { group: CompactString, plural: CompactString, printer: Printer },
    Custom(Arc<[PrinterColumn]>),
}

/// How an object ended that does nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// In one word.
    pub reason: &'static str,
    /// For people.
    pub message: &'static str,
}

impl Columns {
    /// The columns of a built-in resource.
    pub fn of(group: &str, plural: &str) -> Columns {
        let is_pods = group.is_empty() && plural == "pods";
        let is_flow_schemas = group == "flowcontrol.apiserver.k8s.io" && plural == "flowschemas";
        Columns {
            header: OnceLock::new(),
            cells: Cells::BuiltIn { group: group.into(), plural: plural.into(), printer: printers::of(group, plural) },
            completion: is_pods.then_some(printers::pod_completion),
            rank: is_flow_schemas.then_some(printers::flow_schema_rank),
        }
    }

    /// The columns of a custom resource: its name, and those that its definition asks for.
    pub fn of_custom(asked: &[PrinterColumn]) -> Columns {
        Columns { header: OnceLock::new(), cells: Cells::Custom(asked.into()), completion: None, rank: None }
    }

    fn header(&self) -> &Header {
        self.header.get_or_init(|| {
            let columns = match &self.cells {
                Cells::BuiltIn { group, plural, .. } => built_in(group, plural),
                Cells::Custom(asked) => {
                    let name = USUAL.into_iter().take(1).map(Column::usual);
                    name.chain(asked.iter().map(|asked| asked.column.clone())).collect()
                }
            };
            Header { definitions: definitions(&columns), columns }
        })
    }

    /// The columns, from left to right.
    pub fn columns(&self) -> &[Column] {
        &self.header().columns
    }

    /// The columns as a JSON array, as tables show them.
    pub fn definitions(&self) -> &str {
        &self.header().definitions
    }

    /// What stands in the columns for this object.
    pub fn cells(&self, object: &Object, now: Moment) -> Vec<Value> {
        match &self.cells {
            Cells::BuiltIn { printer, .. } => printer(object, now),
            Cells::Custom(columns) => custom_columns::cells(columns, object, now),
        }
    }

    /// How the object ended, if it did and its kind is one that ends.
    pub fn completion(&self, object: &Object) -> Option<Completion> {
        self.completion.and_then(|of| of(object))
    }

    /// What comes before the name in the order of the rows; `None` where they are in the order of the list.
    pub fn rank(&self, object: &Object) -> Option<i64> {
        self.rank.map(|of| of(object))
    }

    /// Whether they are those that the original shows where nobody chose any (upstream: `NewDefaultTableConvertor`).
    pub fn are_default(&self) -> bool {
        let is_built_in = matches!(self.cells, Cells::BuiltIn { .. });
        is_built_in && self.columns().last().is_some_and(|column| column.name == "Created At")
    }

    /// Whether rows have an order of their own.
    pub fn is_ranked(&self) -> bool {
        self.rank.is_some()
    }
}

impl Column {
    fn of_line(line: &str) -> Column {
        let mut parts = line.splitn(7, ',').skip(2);
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let (name, kind, format) = (part(), part(), part());
        let priority = part().parse().unwrap_or_default();
        Column { name, kind, format, priority, description: described(&part()) }
    }

    fn usual((name, kind, format, description): (&str, &str, &str, &str)) -> Column {
        let [name, kind, format] = [name, kind, format].map(str::to_owned);
        Column { name, kind, format, priority: 0, description: described(description) }
    }

    /// What is said of a column that shows when an object was made.
    pub(crate) fn of_creation() -> String {
        described(CREATED)
    }
}

/// What the table of columns says of a built-in resource.
fn built_in(group: &str, plural: &str) -> Vec<Column> {
    let of_resource = |line: &&str| {
        let rest = line.strip_prefix(group).and_then(|rest| rest.strip_prefix(','));
        rest.and_then(|rest| rest.strip_prefix(plural)).is_some_and(|rest| rest.starts_with(','))
    };
    let columns: Vec<Column> = TABLE.lines().skip(1).filter(of_resource).map(Column::of_line).collect();
    if columns.is_empty() { USUAL.map(Column::usual).to_vec() } else { columns }
}

/// What a description of the table says: itself, or what the documentation says of the field that it names.
fn described(description: &str) -> String {
    let Some(name) = description.strip_prefix('=') else { return description.to_owned() };
    let mut known = DESCRIPTIONS.lines().filter_map(|line| line.split_once('\t'));
    let text = known.find(|(known, _)| *known == name).and_then(|(_, text)| parse_json(text.as_bytes()).ok());
    text.and_then(|text| text.value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn definitions(columns: &[Column]) -> String {
    let mut json = String::from("[");
    for (at, column) in columns.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let text = |text: &str| Value::from(text).to_json();
        let (name, kind, format) = (text(&column.name), text(&column.kind), text(&column.format));
        let (description, priority) = (text(&column.description), column.priority);
        // Writing to a string does not fail.
        let _ = write!(
            json,
            "{comma}{{\"name\":{name},\"type\":{kind},\"format\":{format},\"description\":{description},\
             \"priority\":{priority}}}"
        );
    }
    json.push(']');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_whole() {
        for line in TABLE.lines().skip(1) {
            let parts: Vec<&str> = line.splitn(7, ',').collect();
            assert_eq!(parts.len(), 7, "{line}");
            assert!(["string", "integer", "boolean", "date"].contains(&parts[3]), "{line}");
            assert!(["", "name"].contains(&parts[4]) && ["0", "1"].contains(&parts[5]), "{line}");
            assert!(parts[6].ends_with('.') || parts[6].starts_with('=') && !described(parts[6]).is_empty(), "{line}");
        }
    }

    #[test]
    fn every_resource_has_a_cell_for_each_of_its_columns() {
        let now = Moment::parse("2026-11-15T20:05:00Z").expect("a time");
        let mut resources: Vec<(&str, &str)> = TABLE.lines().skip(1).filter_map(|line| line.split_once(',')).collect();
        resources.dedup_by(|one, two| one.0 == two.0 && one.1.split(',').next() == two.1.split(',').next());
        for (group, rest) in resources {
            let plural = rest.split(',').next().expect("split yields one part at least");
            let columns = Columns::of(group, plural);
            // As the original has it, the age of an address stands beside the table.
            let beside = usize::from(plural == "ipaddresses");
            let cells = columns.cells(&Object::new(), now);
            assert_eq!(cells.len(), columns.columns().len() + beside, "{group}/{plural}: {cells:?}");
        }
    }

    #[test]
    fn a_resource_without_columns_has_a_name_and_a_time() {
        let columns = Columns::of("example.com", "things");
        let names: Vec<&str> = columns.columns().iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["Name", "Created At"]);
        let definitions = columns.definitions();
        assert!(
            definitions.starts_with(r#"[{"name":"Name","type":"string","format":"name","description":"Name must be"#)
        );
        let times =
            r#","priority":0},{"name":"Created At","type":"date","format":"","description":"CreationTimestamp is"#;
        assert!(definitions.contains(times) && definitions.ends_with(r#","priority":0}]"#), "{definitions}");
    }
}
