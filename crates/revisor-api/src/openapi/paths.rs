//! The paths of a group and version, with one operation per served verb, and those of discovery.

use revisor_catalog::{DeleteAnswer, GroupVersion, Resource, Subresource, Verb};
use revisor_schema::Types;
use serde_json::{Map, Value, json};

use super::general;
use super::parameters::{self, DELETES, FORCE, LISTS, LOG, PRETTY, Parameter, PathPart, READS, SELECTS, WRITES};
use super::schemas::{self, meta, reference};
use crate::content_type;
use crate::encoding::Encoding;
use crate::publication::path_of;

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
    // Of what is defined later, discovery tells without being described itself.
    if known.resources.iter().any(|resource| resource.custom().is_none()) {
        let words = format!("{}{}", capitalised(&tag(&known.group)), capitalised(&known.version));
        let id = format!("get{words}APIResources");
        let tag = format!("{}_{}", tag(&known.group), known.version);
        let get = information("Tell which resources there are.", &id, &tag, &meta("APIResourceList"));
        paths.insert(format!("{base}/"), json!({"get": get}));
    }
    paths
}

/// The path at which the versions of a group are told.
pub(super) fn of_group(group: &str) -> Map<String, Value> {
    let tag = tag(group);
    let id = format!("get{}APIGroup", capitalised(&tag));
    let get = information("Tell what there is of a group.", &id, &tag, &meta("APIGroup"));
    Map::from_iter([(format!("/apis/{group}/"), json!({"get": get}))])
}

/// The path at which the versions of the group without a name are told.
pub(super) fn of_core() -> Map<String, Value> {
    let get = information("Tell which versions there are.", "getCoreAPIVersions", "core", &meta("APIVersions"));
    Map::from_iter([("/api/".to_owned(), json!({"get": get}))])
}

/// The path at which the groups are told.
pub(super) fn of_groups() -> Map<String, Value> {
    let get = information("Tell which groups there are.", "getAPIVersions", "apis", &meta("APIGroupList"));
    Map::from_iter([("/apis/".to_owned(), json!({"get": get}))])
}

/// The path at which the server tells its own version.
pub(super) fn of_version() -> Map<String, Value> {
    let content = content(general::VERSION, &["application/json"]);
    let get = plain("Tell the version of this server.", "getCodeVersion", "version", content);
    Map::from_iter([("/version/".to_owned(), json!({"get": get}))])
}

/// The path at which whoever checks the tokens of service accounts learns who issues them.
pub(super) fn of_issuer() -> Map<String, Value> {
    let text = "Tell who issues the tokens of service accounts.";
    let content = json!({"application/json": {"schema": {"type": "string"}}});
    let get = plain(text, "getServiceAccountIssuerOpenIDConfiguration", "WellKnown", content);
    Map::from_iter([("/.well-known/openid-configuration/".to_owned(), json!({"get": get}))])
}

/// The path at which the keys of the issuer are.
pub(super) fn of_keys() -> Map<String, Value> {
    let text = "Tell the keys by which the tokens of service accounts are checked.";
    let content = json!({"application/jwk-set+json": {"schema": {"type": "string"}}});
    let get = plain(text, "getServiceAccountIssuerOpenIDKeyset", "openid", content);
    Map::from_iter([("/openid/v1/jwks/".to_owned(), json!({"get": get}))])
}

fn information(text: &str, id: &str, tag: &str, schema: &str) -> Value {
    plain(text, id, tag, content(schema, &Encoding::media_types(Encoding::ALL)))
}

fn plain(text: &str, id: &str, tag: &str, content: Value) -> Value {
    json!({
        "tags": [tag],
        "description": text,
        "operationId": id,
        "responses": {
            "200": {"description": "OK", "content": content},
            "401": {"description": "Unauthorized"},
        },
    })
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
    /// Whether the path goes on behind a connection.
    goes_on: bool,
}

impl Place<'_> {
    fn is_connection(&self) -> bool {
        self.subresource.is_some_and(|part| CONNECTIONS.contains(&part.name))
    }
}

/// What can be done at a place.
struct Operation {
    method: &'static str,
    asked: Vec<Parameter>,
    described: Value,
}

impl Paths<'_> {
    fn collect(&self, paths: &mut Map<String, Value>) {
        let Resource { plural, verbs, .. } = self.resource;
        let namespaced = self.resource.namespaced;
        let scope = if namespaced { "/namespaces/{namespace}" } else { "" };
        let collection = Place { namespaced, named: false, subresource: None, goes_on: false };
        let object = Place { named: true, ..collection };
        let mut add = |path: String, place: Place<'_>, operations: Vec<Operation>| {
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
            if !part.is_connection() {
                add(path, part, self.operations(part, &subresource.verbs));
                continue;
            }
            add(path.clone(), part, self.connections(part, subresource));
            if subresource.name == "proxy" {
                let part = Place { goes_on: true, ..part };
                add(format!("{path}/{{path}}"), part, self.connections(part, subresource));
            }
        }
        // A collection over all namespaces can be read, but not written to.
        let everywhere = Place { namespaced: false, ..collection };
        if namespaced {
            let reads: Vec<Verb> = verbs.iter().copied().filter(|verb| *verb == Verb::List).collect();
            add(format!("{base}/{plural}"), everywhere, self.operations(everywhere, &reads));
        }
        // Paths of old that new kinds do without.
        if verbs.contains(&Verb::Watch) && self.resource.custom().is_none() {
            add(format!("{base}/watch{scope}/{plural}"), collection, vec![self.watch(collection)]);
            add(format!("{base}/watch{scope}/{plural}/{{name}}"), object, vec![self.watch(object)]);
            if namespaced {
                add(format!("{base}/watch/{plural}"), everywhere, vec![self.watch(everywhere)]);
            }
        }
    }

    /// What stands at a path: its operations, and the parameters that they share.
    fn item(&self, place: Place<'_>, operations: Vec<Operation>) -> Value {
        let mut parts: Vec<PathPart> = Vec::new();
        if place.named {
            parts.push(("name", format!("The name of the {}.", self.resource.kind)));
        }
        if place.namespaced {
            parts.push(("namespace", parameters::NAMESPACE.to_owned()));
        }
        if place.goes_on {
            parts.push(("path", parameters::PATH.to_owned()));
        }
        let asked: Vec<&[Parameter]> = operations.iter().map(|operation| &*operation.asked).collect();
        let mut shown = Map::new();
        for operation in &operations {
            let mut described = operation.described.clone();
            let own = parameters::own(&operation.asked, &asked);
            if !own.is_empty() {
                described["parameters"] = Value::Array(own);
            }
            shown.insert(operation.method.to_owned(), described);
        }
        let shared = parameters::shared(&parts, &asked);
        if !shared.is_empty() {
            shown.insert("parameters".to_owned(), Value::Array(shared));
        }
        Value::Object(shown)
    }

    /// What these verbs do at a place.
    fn operations(&self, place: Place<'_>, verbs: &[Verb]) -> Vec<Operation> {
        let here = verbs.iter().filter(|verb| match verb {
            Verb::Create => !place.named || place.subresource.is_some(),
            Verb::DeleteCollection | Verb::List => !place.named,
            Verb::Delete | Verb::Get | Verb::Patch | Verb::Update => place.named,
            // A parameter of the list.
            Verb::Watch => false,
        });
        here.map(|verb| self.operation(place, *verb)).collect()
    }

    /// How something that runs elsewhere can be reached.
    fn connections(&self, place: Place<'_>, part: &Subresource) -> Vec<Operation> {
        // What is passed on whole is passed on whatever its method is.
        let others: &[&str] = if part.name == "proxy" { &["head", "options"] } else { &[] };
        let methods = part.verbs.iter().map(|verb| method(*verb)).chain(others.iter().copied());
        let text = format!("Connect to {} of a {}.", part.name, self.resource.kind);
        let answers = json!({
            "200": {"description": "OK", "content": {"*/*": {"schema": {"type": "string"}}}},
            "401": {"description": "Unauthorized"},
        });
        methods
            .map(|method| {
                let mut words = self.words(place, "connect", &capitalised(method), "");
                if place.goes_on {
                    words.push_str("WithPath");
                }
                Operation {
                    method,
                    asked: parameters::of_connection(part.name).to_vec(),
                    described: self.described(place, "connect", words, &text, None, answers.clone()),
                }
            })
            .collect()
    }

    fn operation(&self, place: Place<'_>, verb: Verb) -> Operation {
        let is_custom = self.resource.custom().is_some();
        let kind = self.resource.kind.as_str();
        let other = place.subresource.and_then(|part| schemas::part_name(self.types, self.resource, part));
        let object = other.unwrap_or_else(|| schemas::kind_name(self.resource, kind));
        let list = schemas::kind_name(self.resource, &self.resource.list_kind);
        let status = meta("Status");
        let whole = match place.subresource {
            Some(part) => format!("{} of a {kind}", part.name),
            None => format!("a {kind}"),
        };
        let answered = if is_custom { Encoding::TEXTS } else { Encoding::ALL };
        let answers = |codes: &[u16], schema: &str, is_streamed| answers(codes, schema, answered, is_streamed);
        // What built-in kinds are sent as is no business of the description.
        let texts = Encoding::media_types(Encoding::TEXTS);
        let sent: &[&str] = if is_custom { &texts } else { &["*/*"] };
        let options = || body(&meta("DeleteOptions"), sent, false);
        let (sets, text, body, answers): (&[&[Parameter]], String, Option<Value>, Value) = match verb {
            Verb::Get if place.subresource.is_some_and(|part| part.name == "log") => {
                let sets: &[&[Parameter]] = &[LOG, PRETTY];
                let content: Map<String, Value> = Encoding::media_types(Encoding::ALL)
                    .iter()
                    .chain(&["text/plain"])
                    .map(|media_type| ((*media_type).to_owned(), json!({"schema": {"type": "string"}})))
                    .collect();
                let answers = json!({
                    "200": {"description": "OK", "content": content},
                    "401": {"description": "Unauthorized"},
                });
                (sets, format!("Read {whole}."), None, answers)
            }
            Verb::Get => {
                let sets: &[&[Parameter]] = if is_custom { &[PRETTY, READS] } else { &[PRETTY] };
                (sets, format!("Read {whole}."), None, answers(&[200], &object, false))
            }
            Verb::List | Verb::Watch => {
                let text = format!("List or watch objects of the kind {kind}.");
                (&[PRETTY, LISTS, SELECTS], text, None, answers(&[200], &list, !is_custom))
            }
            Verb::Create => {
                let body = body(&object, sent, true);
                let answers = answers(&[200, 201, 202], &object, false);
                (&[PRETTY, WRITES], format!("Create {whole}."), Some(body), answers)
            }
            Verb::Update => {
                let body = body(&object, sent, true);
                (&[PRETTY, WRITES], format!("Replace {whole}."), Some(body), answers(&[200, 201], &object, false))
            }
            Verb::Patch => {
                let patches = if is_custom { content_type::CUSTOM_PATCHES } else { content_type::PATCHES };
                let codes: &[u16] = if is_custom { &[200] } else { &[200, 201] };
                let body = body(&meta("Patch"), patches, true);
                let answers = answers(codes, &object, false);
                (&[PRETTY, WRITES, FORCE], format!("Change parts of {whole}."), Some(body), answers)
            }
            Verb::Delete => {
                let (answered, text) = match self.resource.rules.delete_answer {
                    DeleteAnswer::Object => (&object, format!("Delete {whole}. Answers with the object.")),
                    DeleteAnswer::Status => {
                        let text = format!("Delete {whole}. Answers with the object while finalizers hold it back.");
                        (&status, text)
                    }
                };
                (&[PRETTY, DELETES], text, Some(options()), answers(&[200, 202], answered, false))
            }
            Verb::DeleteCollection => {
                let text = format!("Delete a collection of {kind}. Answers with what was deleted.");
                let sets: &[&[Parameter]] = &[PRETTY, SELECTS, DELETES];
                // Those who send options with this may do so for all kinds, but only for built-in ones are they told.
                let sets = if is_custom { &[PRETTY, LISTS, SELECTS] } else { sets };
                let body = (!is_custom).then(options);
                (sets, text, body, answers(&[200], &status, false))
            }
        };
        let (word, action) = match verb {
            Verb::Create => ("create", "post"),
            Verb::Delete => ("delete", "delete"),
            Verb::DeleteCollection => ("delete", "deletecollection"),
            Verb::Get => ("read", "get"),
            Verb::List | Verb::Watch => ("list", "list"),
            Verb::Patch => ("patch", "patch"),
            Verb::Update => ("replace", "put"),
        };
        let middle = if verb == Verb::DeleteCollection { "Collection" } else { "" };
        let words = self.words(place, word, middle, "");
        Operation {
            method: method(verb),
            asked: sets.concat(),
            described: self.described(place, action, words, &text, body, answers),
        }
    }

    /// A watch at a path of its own.
    fn watch(&self, place: Place<'_>) -> Operation {
        let text = format!("Watch objects of the kind {}. Prefer a list with the parameter watch.", self.resource.kind);
        let (action, end) = if place.named { ("watch", "") } else { ("watchlist", "List") };
        let words = self.words(place, "watch", "", end);
        Operation {
            method: "get",
            asked: [PRETTY, LISTS, SELECTS].concat(),
            described: self.described(
                place,
                action,
                words,
                &text,
                None,
                answers(&[200], &meta("WatchEvent"), Encoding::ALL, true),
            ),
        }
    }

    fn described(
        &self,
        place: Place<'_>,
        action: &str,
        operation_id: String,
        description: &str,
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
        let mut operation = json!({
            "tags": [format!("{}_{version}", tag(group))],
            "description": description,
            "operationId": operation_id,
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
    fn words(&self, place: Place<'_>, verb: &str, middle: &str, end: &str) -> String {
        let Resource { group, version, kind, namespaced, .. } = self.resource;
        let mut id = format!("{verb}{}{}{middle}", capitalised(&tag(group)), capitalised(version));
        if place.namespaced {
            id.push_str("Namespaced");
        }
        id.push_str(kind);
        id.push_str(end);
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

fn content(schema: &str, media_types: &[&str]) -> Value {
    media_types.iter().map(|media_type| ((*media_type).to_owned(), json!({"schema": reference(schema)}))).collect()
}

fn body(schema: &str, media_types: &[&str], required: bool) -> Value {
    let mut body = json!({"content": content(schema, media_types)});
    if required {
        body["required"] = json!(true);
    }
    body
}

fn answers(codes: &[u16], schema: &str, encodings: &[Encoding], is_streamed: bool) -> Value {
    let mut media_types = Encoding::media_types(encodings);
    if is_streamed {
        media_types.extend(Encoding::stream_types(encodings));
    }
    let mut answers = json!({"401": {"description": "Unauthorized"}});
    for code in codes {
        let description = match code {
            201 => "Created",
            202 => "Accepted",
            _ => "OK",
        };
        answers[code.to_string()] = json!({"description": description, "content": content(schema, &media_types)});
    }
    answers
}
