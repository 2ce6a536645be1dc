//! The paths of a group and version, with one operation per served verb.

use revisor_catalog::{DeleteAnswer, GroupVersion, Resource, Subresource, Verb};
use revisor_schema::Types;
use serde_json::{Map, Value, json};

use super::schemas::{self, reference};
use crate::negotiate;
use crate::publication::path_of;

/// A query parameter: its name, its type, and what it asks for.
type Parameter = (&'static str, &'static str, &'static str);

const PRETTY: Parameter = ("pretty", "string", "Lay the answer out for a person.");

const READS: &[Parameter] = &[
    ("resourceVersion", "string", "The version of the state to read from; the most recent if it is not set."),
    ("resourceVersionMatch", "string", "How to read resourceVersion: Exact or NotOlderThan."),
];

const SELECTS: &[Parameter] = &[
    ("continue", "string", "Where the page before this one ended, as that page says."),
    ("fieldSelector", "string", "Only objects whose fields have these values."),
    ("labelSelector", "string", "Only objects whose labels match."),
    ("limit", "integer", "How many objects at most; the answer says how to continue."),
];

const WATCHES: &[Parameter] = &[
    ("allowWatchBookmarks", "boolean", "Send a watch events of the type BOOKMARK too, which tell how far it has come."),
    ("sendInitialEvents", "boolean", "Begin a watch with the objects that there are, and a bookmark after them."),
    ("timeoutSeconds", "integer", "For how long a watch lasts at most."),
    ("watch", "boolean", "Answer with the changes of the collection instead of a list."),
];

const WRITES: &[Parameter] = &[
    ("dryRun", "string", "All: do everything except to store the result."),
    ("fieldManager", "string", "The name of who makes the change, at most 128 printable characters."),
    (
        "fieldValidation",
        "string",
        "What becomes of unknown and repeated fields: Ignore drops them, Warn drops them with a warning and is the \
         default, Strict refuses the request.",
    ),
];

const FORCE: Parameter =
    ("force", "boolean", "Apply also what others manage, and take it over. Only an apply patch may say so.");

const DELETES: &[Parameter] = &[
    ("dryRun", "string", "All: do everything except to store the result."),
    ("gracePeriodSeconds", "integer", "How long the object may take to end; 0 is at once."),
    ("orphanDependents", "boolean", "The older way to say that dependents stay. Use propagationPolicy instead."),
    ("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground."),
];

/// Subresources that are connections to what runs elsewhere.
const CONNECTIONS: [&str; 4] = ["attach", "exec", "portforward", "proxy"];

/// All paths of a group and version.
pub(super) fn of(types: &Types, known: &GroupVersion) -> Map<String, Value> {
    let base = path_of(known);
    let mut paths = Map::new();
    for resource in &known.resources {
        let of_resource = Paths { base: &base, resource, types };
        of_resource.collect(&mut paths);
    }
    paths
}

/// The path at which the server tells its own version.
pub(super) fn of_version() -> Map<String, Value> {
    let get = json!({
        "tags": ["version"],
        "description": "Tell the version of this server.",
        "operationId": "getCodeVersion",
        "responses": {
            "200": {"description": "OK", "content": content(schemas::VERSION, &["application/json"])},
            "401": {"description": "Unauthorized"},
        },
    });
    Map::from_iter([("/version/".to_owned(), json!({"get": get}))])
}

/// The paths of one resource.
struct Paths<'a> {
    base: &'a str,
    resource: &'a Resource,
    types: &'a Types,
}

/// Where an operation stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Whether the path names a namespace.
    namespaced: bool,
    /// Whether the path is about one object.
    named: bool,
    subresource: Option<&'a Subresource>,
}

impl Paths<'_> {
    fn collect(&self, paths: &mut Map<String, Value>) {
        let Resource { plural, verbs, .. } = self.resource;
        let namespaced = self.resource.namespaced;
        let scope = if namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = Place { namespaced, named: false, subresource: None };
        let object = Place { named: true, ..collection };
        let mut add = |path: String, place: Place<'_>, operations: Map<String, Value>| {
            if !operations.is_empty() {
                paths.insert(path, self.item(place, operations));
            }
        };
        let base = self.base;
        add(format!("{base}{scope}/{plural}"), collection, self.operations(collection, verbs));
        add(format!("{base}{scope}/{plural}/{{name}}"), object, self.operations(object, verbs));
        for subresource in &self.resource.subresources {
            let part = Place { subresource: Some(subresource), ..object };
            let path = format!("{base}{scope}/{plural}/{{name}}/{}", subresource.name);
            add(path, part, self.operations(part, &subresource.verbs));
        }
        // A collection over all namespaces can be read, but not written to.
        let everywhere = Place { namespaced: false, ..collection };
        if namespaced {
            let reads: Vec<Verb> = verbs.iter().copied().filter(|verb| *verb == Verb::List).collect();
            add(format!("{base}/{plural}"), everywhere, self.operations(everywhere, &reads));
        }
        // Paths of old that new kinds do without.
        if verbs.contains(&Verb::Watch) && self.resource.custom().is_none() {
            let watch = |place| Map::from_iter([("get".to_owned(), self.watch(place))]);
            add(format!("{base}/watch{scope}/{plural}"), collection, watch(collection));
            add(format!("{base}/watch{scope}/{plural}/{{name}}"), object, watch(object));
            if namespaced {
                add(format!("{base}/watch/{plural}"), everywhere, watch(everywhere));
            }
        }
    }

    /// What stands at a path: its operations, and the parameters that they share.
    fn item(&self, place: Place<'_>, mut operations: Map<String, Value>) -> Value {
        let in_path = |name: &str, description: &str| {
            json!({
                "name": name,
                "in": "path",
                "required": true,
                "description": description,
                "schema": {"type": "string"},
            })
        };
        let mut shared = Vec::new();
        if place.named {
            shared.push(in_path("name", &format!("The name of the {}.", self.resource.kind)));
        }
        if place.namespaced {
            shared.push(in_path("namespace", "The namespace."));
        }
        shared.extend(parameters(&[&[PRETTY]]));
        operations.insert("parameters".to_owned(), Value::Array(shared));
        Value::Object(operations)
    }

    /// By method, what these verbs do at a place.
    fn operations(&self, place: Place<'_>, verbs: &[Verb]) -> Map<String, Value> {
        let here = verbs.iter().filter(|verb| match verb {
            Verb::Create => !place.named || place.subresource.is_some(),
            Verb::DeleteCollection | Verb::List => !place.named,
            Verb::Delete | Verb::Get | Verb::Patch | Verb::Update => place.named,
            // A parameter of the list.
            Verb::Watch => false,
        });
        here.map(|verb| (method(*verb).to_owned(), self.operation(place, *verb))).collect()
    }

    fn operation(&self, place: Place<'_>, verb: Verb) -> Value {
        if let Some(part) = place.subresource.filter(|part| CONNECTIONS.contains(&part.name)) {
            let text = format!("Connect to {} of a {}.", part.name, self.resource.kind);
            let answers = json!({
                "200": {"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}},
                "401": {"description": "Unauthorized"},
            });
            return self.described(place, verb, &text, Vec::new(), None, answers);
        }
        let kind = self.resource.kind.as_str();
        let other = place.subresource.and_then(|part| schemas::part_name(self.types, self.resource, part));
        let object = other.unwrap_or_else(|| schemas::kind_name(self.resource, kind));
        let list = schemas::kind_name(self.resource, &self.resource.list_kind);
        let whole = match place.subresource {
            Some(part) => format!("{} of a {kind}", part.name),
            None => format!("a {kind}"),
        };
        match verb {
            Verb::Get => {
                let answers = answers(&[(200, &object)]);
                self.described(place, verb, &format!("Read {whole}."), parameters(&[READS]), None, answers)
            }
            Verb::List | Verb::Watch => {
                let asked = parameters(&[READS, SELECTS, WATCHES]);
                let text = format!("List or watch objects of the kind {kind}.");
                self.described(place, verb, &text, asked, None, answers(&[(200, &list)]))
            }
            Verb::Create => {
                let body = body(&object, negotiate::READ, true);
                let answers = answers(&[(201, &object)]);
                self.described(place, verb, &format!("Create {whole}."), parameters(&[WRITES]), Some(body), answers)
            }
            Verb::Update => {
                let body = body(&object, negotiate::READ, true);
                let creates = self.resource.rules.create_on_update && place.subresource.is_none();
                let codes: &[(u16, &str)] = &[(200, &object), (201, &object)];
                let answers = answers(&codes[..if creates { 2 } else { 1 }]);
                self.described(place, verb, &format!("Replace {whole}."), parameters(&[WRITES]), Some(body), answers)
            }
            Verb::Patch => {
                let is_read = |patch: &&&str| self.resource.custom().is_none() || !patch.contains("strategic");
                let patches: Vec<&str> = negotiate::PATCHES.iter().filter(is_read).copied().collect();
                let body = body(&schemas::meta("Patch"), &patches, true);
                let answers = answers(&[(200, &object)]);
                let text = format!("Change parts of {whole}.");
                self.described(place, verb, &text, parameters(&[WRITES, &[FORCE]]), Some(body), answers)
            }
            Verb::Delete => {
                let body = body(&schemas::meta("DeleteOptions"), negotiate::READ, false);
                let status = schemas::meta("Status");
                let (answered, text) = match self.resource.rules.delete_answer {
                    DeleteAnswer::Object => (&object, format!("Delete {whole}. Answers with the object.")),
                    DeleteAnswer::Status => {
                        let text = format!("Delete {whole}. Answers with the object while finalizers hold it back.");
                        (&status, text)
                    }
                };
                let answers = answers(&[(200, answered)]);
                self.described(place, verb, &text, parameters(&[DELETES]), Some(body), answers)
            }
            Verb::DeleteCollection => {
                let body = body(&schemas::meta("DeleteOptions"), negotiate::READ, false);
                let text = format!("Delete a collection of {kind}. Answers with what was deleted.");
                let asked = parameters(&[READS, SELECTS, DELETES]);
                self.described(place, verb, &text, asked, Some(body), answers(&[(200, &list)]))
            }
        }
    }

    /// A watch at a path of its own.
    fn watch(&self, place: Place<'_>) -> Value {
        let text = format!("Watch objects of the kind {}. Prefer a list with the parameter watch.", self.resource.kind);
        let answers = answers(&[(200, &schemas::meta("WatchEvent"))]);
        self.described(place, Verb::Watch, &text, parameters(&[READS, SELECTS, WATCHES]), None, answers)
    }

    fn described(
        &self,
        place: Place<'_>,
        verb: Verb,
        description: &str,
        parameters: Vec<Value>,
        body: Option<Value>,
        answers: Value,
    ) -> Value {
        let Resource { group, version, kind, .. } = self.resource;
        let about =
            match place.subresource.and_then(|part| part.other_kind).filter(|_| self.resource.custom().is_none()) {
                Some((api_version, kind)) => {
                    let (group, version) = api_version.split_once('/').unwrap_or((group, version));
                    json!({"group": group, "version": version, "kind": kind})
                }
                None => json!({"group": group.as_str(), "version": version.as_str(), "kind": kind.as_str()}),
            };
        let is_connection = place.subresource.is_some_and(|part| CONNECTIONS.contains(&part.name));
        let action = match verb {
            _ if is_connection => "connect",
            Verb::Create => "post",
            Verb::Update => "put",
            Verb::Watch if !place.named => "watchlist",
            other => other.as_str(),
        };
        let mut operation = json!({
            "tags": [format!("{}_{version}", tag(group))],
            "description": description,
            "operationId": self.operation_id(place, verb),
            "parameters": parameters,
            "responses": answers,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": about,
        });
        if let Some(body) = body {
            operation["requestBody"] = body;
        }
        operation
    }

    /// A name for the operation that no other has; generators make the names of functions of it.
    fn operation_id(&self, place: Place<'_>, verb: Verb) -> String {
        let Resource { group, version, kind, namespaced, .. } = self.resource;
        let is_connection = place.subresource.is_some_and(|part| CONNECTIONS.contains(&part.name));
        let verb_name = match verb {
            _ if is_connection => "connect",
            Verb::Create => "create",
            Verb::Delete | Verb::DeleteCollection => "delete",
            Verb::Get => "read",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "replace",
            Verb::Watch => "watch",
        };
        let mut id = format!("{verb_name}{}{}", capitalised(&tag(group)), capitalised(version));
        if verb == Verb::DeleteCollection {
            id.push_str("Collection");
        }
        if is_connection {
            id.push_str(&capitalised(method(verb)));
        }
        if place.namespaced {
            id.push_str("Namespaced");
        }
        id.push_str(kind);
        if verb == Verb::Watch && !place.named {
            id.push_str("List");
        }
        if *namespaced && !place.namespaced {
            id.push_str("ForAllNamespaces");
        }
        if let Some(part) = place.subresource {
            id.push_str(&capitalised(part.name));
        }
        id
    }
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "post",
        Verb::Delete | Verb::DeleteCollection => "delete",
        Verb::Get | Verb::List | Verb::Watch => "get",
        Verb::Patch => "patch",
        Verb::Update => "put",
    }
}

/// What operations are named by: `rbacAuthorization` of `rbac.authorization.k8s.io`, `core` for the group without a
/// name.
fn tag(group: &str) -> String {
    let group = group.strip_suffix(".k8s.io").unwrap_or(group);
    let mut words = group.split(|letter: char| !letter.is_ascii_alphanumeric());
    let first = words.next().filter(|first| !first.is_empty()).unwrap_or("core");
    first.to_owned() + &words.map(capitalised).collect::<String>()
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// Query parameters, in the order of their names.
fn parameters(sets: &[&[Parameter]]) -> Vec<Value> {
    let mut all: Vec<&Parameter> = sets.iter().copied().flatten().collect();
    all.sort_unstable();
    all.iter()
        .map(|(name, kind, description)| {
            json!({"name": name, "in": "query", "description": description, "schema": {"type": kind}})
        })
        .collect()
}

fn content(schema: &str, media_types: &[&str]) -> Value {
    media_types.iter().map(|media_type| ((*media_type).to_owned(), json!({"schema": reference(schema)}))).collect()
}

fn body(schema: &str, media_types: &[&str], required: bool) -> Value {
    json!({"content": content(schema, media_types), "required": required})
}

fn answers(codes: &[(u16, &str)]) -> Value {
    let mut answers = json!({"401": {"description": "Unauthorized"}});
    for (code, schema) in codes {
        let description = if *code == 201 { "Created" } else { "OK" };
        answers[code.to_string()] =
            json!({"description": description, "content": content(schema, negotiate::ANSWERED)});
    }
    answers
}
