//! Managers that know an object in different versions.

use revisor_object::{Object, Value, parse_json};
use revisor_schema::{StructId, Types};

use super::conflict::describe_conflicts;
use super::field_set::FieldSet;
use super::managed_fields::{ManagedFields, Manager, Operation};
use super::server_side_apply::{Application, ApplyError, server_side_apply};
use super::versions::{Replacement, Unconvertible, Versions};

const TABLE: &str = "type,field,shape,presence,number,merge,list,required,default
One,size,int32,given,,
One,colour,string,given,,
One,tags,list:string,nonzero,,,set
Two,size,int32,given,,
Two,color,string,given,,
Two,tags,list:string,nonzero,,,set
";

/// A kind whose first version calls a colour what the second calls a color. From the version `broken` there is no way.
struct Colours(Types);

impl Colours {
    fn new() -> Colours {
        Colours(Types::parse(TABLE).expect("a good table"))
    }
}

impl Versions for Colours {
    fn type_in(&self, version: &str) -> Result<(&Types, StructId), Unconvertible> {
        let name = match version {
            "one" => "One",
            "two" | "broken" => "Two",
            _ => return Err(Unconvertible::NoSuchVersion),
        };
        Ok((&self.0, self.0.id(name).expect("is there")))
    }

    fn convert(&self, object: &Object, from: &str, to: &str) -> Result<Object, Unconvertible> {
        let mut object = object.clone();
        match (from, to) {
            ("broken", _) | (_, "broken") => return Err(Unconvertible::Failed("no way".to_owned())),
            ("one", "two") => {
                let colour = object.remove("colour");
                object.set("color", colour);
            }
            ("two", "one") => {
                let color = object.remove("color");
                object.set("colour", color);
            }
            _ => return Err(Unconvertible::NoSuchVersion),
        }
        Ok(object)
    }
}

fn object(text: &str) -> Object {
    match parse_json(text.as_bytes()).expect("is JSON").value {
        Value::Object(object) => object,
        other => panic!("{other:?} is no object"),
    }
}

fn manager(name: &str, operation: Operation, version: &str) -> Manager {
    Manager { name: name.to_owned(), operation, api_version: version.to_owned(), subresource: String::new() }
}

/// An object that is kept in version one, and its managers.
struct Kept {
    versions: Colours,
    object: Object,
    managed: ManagedFields,
}

impl Kept {
    fn new() -> Kept {
        Kept { versions: Colours::new(), object: Object::new(), managed: ManagedFields::default() }
    }

    fn shown(&self, version: &str) -> Object {
        if version == "one" {
            return self.object.clone();
        }
        self.versions.convert(&self.object, "one", version).expect("there is a way")
    }

    fn keep(&mut self, object: Object, version: &str) {
        self.object =
            if version == "one" { object } else { self.versions.convert(&object, version, "one").expect("is a way") };
    }

    /// Applies a configuration; answers what became of it.
    fn apply(&mut self, name: &str, version: &str, config: &str, force: bool) -> String {
        let (manager, live, allowed) = (manager(name, Operation::Apply, version), self.shown(version), FieldSet::new());
        let application =
            Application { config: &object(config), manager: &manager, force, allowed: &allowed, now: "t" };
        match server_side_apply(&self.versions, &live, self.managed.clone(), application, |set| set) {
            Ok(applied) => {
                self.managed = applied.managed;
                self.keep(applied.object, version);
                self.state()
            }
            Err(ApplyError::Conflicts(conflicts)) => describe_conflicts(&conflicts),
            Err(ApplyError::Unconvertible(why)) => why,
        }
    }

    fn update(&mut self, name: &str, version: &str, new: &str) -> String {
        let (old, new) = (self.shown(version), object(new));
        let write = Replacement { versions: &self.versions, version, old: &old, new: &new };
        let updated = self.managed.update(&manager(name, Operation::Update, version), write, "t", |set| set);
        self.keep(new, version);
        updated.map_or_else(|why| why, |()| self.state())
    }

    fn state(&self) -> String {
        let entries = self.managed.clone().into_value().unwrap_or(Value::Array(Vec::new()));
        let managers: Vec<String> = entries
            .as_array()
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_object)
            .map(|entry| {
                let text = |name: &str| entry.str(name).unwrap_or_default().to_owned();
                let fields = entry.get("fieldsV1").map(Value::to_json).unwrap_or_default();
                format!("{}@{} {fields}", text("manager"), text("apiVersion"))
            })
            .collect();
        format!("{} {}", Value::Object(self.object.clone()).to_json(), managers.join(" "))
    }

    /// Adds an entry as if somebody had written in a version.
    fn credit(&mut self, name: &str, version: &str, place: &str) {
        self.managed.take(&manager(name, Operation::Update, version), FieldSet::of(&[&[place]]), "t");
    }
}

#[test]
fn a_place_is_the_same_by_any_name() {
    let mut kept = Kept::new();
    for (name, version, config, force, want) in [
        (
            "a",
            "one",
            r#"{"colour":"red","size":1}"#,
            false,
            r#"{"colour":"red","size":1} a@one {"f:colour":{},"f:size":{}}"#,
        ),
        ("b", "two", r#"{"color":"blue"}"#, false, r#"Apply failed with 1 conflict: conflict with "a": .colour"#),
        // Who agrees shares.
        (
            "b",
            "two",
            r#"{"color":"red","tags":["x"]}"#,
            false,
            r#"{"colour":"red","size":1,"tags":["x"]} a@one {"f:colour":{},"f:size":{}} b@two {"f:color":{},"f:tags":{"v:\"x\"":{}}}"#,
        ),
        // What one gives up stays as long as the other manages it.
        (
            "a",
            "one",
            r#"{"size":1}"#,
            false,
            r#"{"colour":"red","size":1,"tags":["x"]} a@one {"f:size":{}} b@two {"f:color":{},"f:tags":{"v:\"x\"":{}}}"#,
        ),
        (
            "a",
            "one",
            r#"{"size":1,"colour":"green"}"#,
            true,
            r#"{"colour":"green","size":1,"tags":["x"]} a@one {"f:colour":{},"f:size":{}} b@two {"f:tags":{"v:\"x\"":{}}}"#,
        ),
        // What was applied in another version and is applied no longer goes.
        (
            "a",
            "two",
            r#"{"size":1}"#,
            false,
            r#"{"size":1,"tags":["x"]} a@two {"f:size":{}} b@two {"f:tags":{"v:\"x\"":{}}}"#,
        ),
        ("b", "one", r#"{"size":1}"#, false, r#"{"size":1} a@two {"f:size":{}} b@one {"f:size":{}}"#),
    ] {
        assert_eq!(kept.apply(name, version, config, force), want, "{name} applies {config} as {version}");
    }
}

#[test]
fn updates_take_what_others_know_by_another_name() {
    let mut kept = Kept::new();
    kept.apply("a", "one", r#"{"colour":"red","size":1}"#, false);
    assert_eq!(
        kept.update("u", "two", r#"{"color":"blue","size":1}"#),
        r#"{"colour":"blue","size":1} a@one {"f:size":{}} u@two {"f:color":{}}"#
    );
    assert_eq!(kept.update("u", "one", r#"{"size":1}"#), r#"{"size":1} a@one {"f:size":{}}"#);
}

#[test]
fn who_wrote_in_a_version_that_is_no_more_is_forgotten() {
    let mut kept = Kept::new();
    kept.credit("x", "gone", "f:size");
    assert_eq!(kept.apply("a", "one", r#"{"size":1}"#, false), r#"{"size":1} a@one {"f:size":{}}"#);
    kept.credit("x", "gone", "f:size");
    assert_eq!(kept.update("u", "one", r#"{"size":2}"#), r#"{"size":2} u@one {"f:size":{}}"#);
}

#[test]
fn a_version_without_a_way_to_it_fails_the_write() {
    let mut kept = Kept::new();
    kept.credit("x", "broken", "f:size");
    assert_eq!(kept.apply("a", "one", r#"{"size":1}"#, false), "no way");
    assert_eq!(kept.update("u", "one", r#"{"size":2}"#), "no way");
}
