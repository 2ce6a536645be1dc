//! What requests can ask for beside their path: tables of query parameters, and where documents say them.
//!
//! A parameter that all operations of a path have is said once, of the path; so are those which are parts of it.

use serde_json::{Value, json};

/// A query parameter: its name, its type, and what it asks for.
pub(super) type Parameter = (&'static str, &'static str, &'static str);

pub(super) const PRETTY: &[Parameter] = &[("pretty", "string", "Lay the answer out for a person.")];

const RESOURCE_VERSION: Parameter =
    ("resourceVersion", "string", "The version of the state to read from; the most recent if it is not set.");

/// Of a single object.
pub(super) const READS: &[Parameter] = &[RESOURCE_VERSION];

/// Of lists and watches.
pub(super) const LISTS: &[Parameter] = &[
    ("allowWatchBookmarks", "boolean", "Send a watch events of the type BOOKMARK too, which tell how far it has come."),
    ("watch", "boolean", "Answer with the changes of the collection instead of a list."),
];

/// Of everything that is about a part of a collection.
pub(super) const SELECTS: &[Parameter] = &[
    ("continue", "string", "Where the page before this one ended, as that page says."),
    ("fieldSelector", "string", "Only objects whose fields have these values."),
    ("labelSelector", "string", "Only objects whose labels match."),
    ("limit", "integer", "How many objects at most; the answer says how to continue."),
    RESOURCE_VERSION,
    ("resourceVersionMatch", "string", "How to read resourceVersion: Exact or NotOlderThan."),
    ("sendInitialEvents", "boolean", "Begin a watch with the objects that there are, and a bookmark after them."),
    ("shardSelector", "string", "Only objects of a shard, where the server knows shards."),
    ("timeoutSeconds", "integer", "For how long a watch lasts at most."),
];

pub(super) const WRITES: &[Parameter] = &[
    ("dryRun", "string", "All: do everything except to store the result."),
    ("fieldManager", "string", "The name of who makes the change, at most 128 printable characters."),
    (
        "fieldValidation",
        "string",
        "What becomes of unknown and repeated fields: Ignore drops them, Warn drops them with a warning and is the \
         default, Strict refuses the request.",
    ),
];

pub(super) const FORCE: &[Parameter] =
    &[("force", "boolean", "Apply also what others manage, and take it over. Only an apply patch may say so.")];

pub(super) const DELETES: &[Parameter] = &[
    ("dryRun", "string", "All: do everything except to store the result."),
    ("gracePeriodSeconds", "integer", "How long the object may take to end; 0 is at once."),
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "Remove also an object that cannot be read any more, without regard to what holds it back.",
    ),
    ("orphanDependents", "boolean", "The older way to say that dependents stay. Use propagationPolicy instead."),
    ("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground."),
];

const CONTAINER: Parameter = ("container", "string", "The container that is meant; needed if there are several.");
const STDERR: Parameter = ("stderr", "boolean", "Connect the error output.");
const STDIN: Parameter = ("stdin", "boolean", "Connect the input.");
const STDOUT: Parameter = ("stdout", "boolean", "Connect the output.");
const TTY: Parameter = ("tty", "boolean", "Connect a terminal.");

/// Of the log of a container.
pub(super) const LOG: &[Parameter] = &[
    CONTAINER,
    ("follow", "boolean", "Go on with what is logged later."),
    ("insecureSkipTLSVerifyBackend", "boolean", "Trust the node without a look at its certificate."),
    ("limitBytes", "integer", "How many bytes at most."),
    ("previous", "boolean", "The log of the container that ran before this one."),
    ("sinceSeconds", "integer", "Only what was logged in so many last seconds."),
    ("stream", "string", "Which output: All, Stdout or Stderr."),
    ("tailLines", "integer", "Only so many last lines."),
    ("timestamps", "boolean", "Begin each line with its time."),
];

/// What the subresource of a pod, node or service that is no object can be asked for.
pub(super) fn of_connection(subresource: &str) -> &'static [Parameter] {
    match subresource {
        "attach" => &[CONTAINER, STDERR, STDIN, STDOUT, TTY],
        "exec" => &[
            ("command", "string", "The command to run, one word per parameter. No shell reads it."),
            CONTAINER,
            STDERR,
            STDIN,
            STDOUT,
            TTY,
        ],
        "log" => LOG,
        "portforward" => &[("ports", "integer", "The ports to forward.")],
        "proxy" => &[("path", "string", "The path to ask there.")],
        _ => &[],
    }
}

/// All parameters that do not depend on what a request is about.
pub(super) fn all() -> impl Iterator<Item = Value> {
    let connections = ["attach", "exec", "log", "portforward", "proxy"].map(of_connection);
    let sets = [PRETTY, READS, LISTS, SELECTS, WRITES, FORCE, DELETES].into_iter().chain(connections);
    let in_path = [("namespace", NAMESPACE), ("path", PATH)];
    let in_path = in_path.map(|(name, description)| part(&(name, description.to_owned())));
    sets.flatten().map(shown).chain(in_path)
}

/// What the parts of a path are that mean the same everywhere.
pub(super) const NAMESPACE: &str = "The namespace.";
pub(super) const PATH: &str = "The path to ask there.";

/// The parts of a path that requests choose: their names, and what they are.
pub(super) type PathPart = (&'static str, String);

/// What is said of a path: its parts, and what all of these lists have in common; in the order of the names.
pub(super) fn shared(parts: &[PathPart], asked: &[&[Parameter]]) -> Vec<Value> {
    let in_path = parts.iter().map(|of| ((of.0, "path"), part(of)));
    let first = asked.first().copied().unwrap_or_default();
    let common = first.iter().filter(|parameter| asked.iter().all(|of_one| of_one.contains(parameter)));
    let in_query = common.map(|parameter| ((parameter.0, "query"), shown(parameter)));
    let mut all: Vec<((&str, &str), Value)> = in_path.chain(in_query).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, shown)| shown).collect()
}

/// What is left to say of one operation, where these are the lists of all operations of its path.
pub(super) fn own(of_one: &[Parameter], asked: &[&[Parameter]]) -> Vec<Value> {
    let is_shared = |parameter: &Parameter| asked.iter().all(|list| list.contains(parameter));
    let mut rest: Vec<&Parameter> = of_one.iter().filter(|parameter| !is_shared(parameter)).collect();
    rest.sort_unstable();
    rest.into_iter().map(shown).collect()
}

fn part((name, description): &PathPart) -> Value {
    let schema = json!({"type": "string", "uniqueItems": true});
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema})
}

fn shown((name, kind, description): &Parameter) -> Value {
    json!({
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": kind, "uniqueItems": true},
    })
}
