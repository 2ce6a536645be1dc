//! What a definition says beside its schemas: names, scope, versions, subresources, columns, selectable fields.

use revisor_convert::{Generator, Path};
use revisor_object::{Object, Value};

use crate::crd::{Crd, Version};
use crate::keywords::was;
use crate::{Class, Finding};

/// What differs between two definitions beside their schemas.
pub(crate) fn compare(old: &Crd, new: &Crd) -> Vec<Finding> {
    let mut facets = Facets { old, new, findings: Vec::new() };
    facets.names();
    facets.versions();
    facets.stored_versions();
    facets.conversion();
    for version in new.versions.iter().filter(|version| version.is_served) {
        if let Some(before) = old.version(&version.name).filter(|before| before.is_served) {
            facets.subresources(before, version);
            facets.columns(before, version);
            facets.selectable_fields(before, version);
            facets.deprecation(before, version);
        }
    }
    facets.findings
}

struct Facets<'a> {
    old: &'a Crd,
    new: &'a Crd,
    findings: Vec<Finding>,
}

impl Facets<'_> {
    fn push(&mut self, version: Option<&Version>, path: &str, class: Class, message: String) {
        let finding = self.old.finding(version, path, class, message);
        self.findings.push(finding);
    }

    fn names(&mut self) {
        let text = |crd: &Crd, path: &[&str]| crd.spec.at(path).and_then(Value::as_str).map(str::to_owned);
        for (path, is_everything) in [
            (&["group"][..], true),
            (&["scope"], true),
            (&["names", "kind"], true),
            (&["names", "plural"], true),
            (&["names", "listKind"], false),
            (&["names", "singular"], false),
        ] {
            let (before, after) = (text(self.old, path), text(self.new, path));
            // What is left out is filled in by the server, and is no change by itself.
            let is_said = before.is_some() && after.is_some();
            if before != after && (is_everything || is_said) {
                let name = path.last().copied().unwrap_or_default();
                let message = was(name, before.as_deref(), after.as_deref());
                let class = if is_everything { Class::BreaksAll } else { Class::BreaksReaders };
                self.push(None, &format!("spec.{}", path.join(".")), class, message);
            }
        }
        for list in ["shortNames", "categories"] {
            let of = |crd: &Crd| texts(crd.spec.object("names"), list);
            let (before, after) = (of(self.old), of(self.new));
            for name in before.iter().filter(|name| !after.contains(name)) {
                let message = format!("{name:?} is gone: who calls the resource so does not find it");
                self.push(None, &format!("spec.names.{list}"), Class::BreaksReaders, message);
            }
            for name in after.iter().filter(|name| !before.contains(name)) {
                self.push(None, &format!("spec.names.{list}"), Class::Additive, format!("{name:?} is new"));
            }
        }
    }

    fn versions(&mut self) {
        for before in &self.old.versions {
            let path = format!("spec.versions[{}]", before.name);
            match self.new.version(&before.name) {
                None if before.is_served => {
                    let message = "the version is gone: nobody can read or write it".to_owned();
                    self.push(Some(before), &path, Class::BreaksAll, message);
                }
                None => {
                    self.push(Some(before), &path, Class::Additive, "the version is gone; it was not served".into())
                }
                Some(after) if before.is_served && !after.is_served => {
                    let message = "the version is no longer served: nobody can read or write it".to_owned();
                    self.push(Some(before), &format!("{path}.served"), Class::BreaksAll, message);
                }
                Some(after) => {
                    if after.is_served && !before.is_served {
                        self.push(
                            Some(before),
                            &format!("{path}.served"),
                            Class::Additive,
                            "the version is served".into(),
                        );
                    }
                    if after.is_storage && !before.is_storage {
                        let message = "objects are stored in this version now".to_owned();
                        self.push(Some(before), &format!("{path}.storage"), Class::Additive, message);
                    }
                }
            }
        }
        for after in self.new.versions.iter().filter(|after| self.old.version(&after.name).is_none()) {
            let path = format!("spec.versions[{}]", after.name);
            self.push(Some(after), &path, Class::Additive, "the version is new".to_owned());
        }
    }

    fn stored_versions(&mut self) {
        let stored =
            if self.old.stored_versions.is_empty() { &self.new.stored_versions } else { &self.old.stored_versions };
        for name in stored.iter().filter(|name| self.new.version(name).is_none()) {
            let message = format!(
                "{name} stands in status.storedVersions, and there is no such version any more: objects may be stored in \
                 it, and the server refuses the definition"
            );
            self.push(self.old.version(name), "status.storedVersions", Class::BreaksAll, message);
        }
    }

    fn conversion(&mut self) {
        let strategy = |crd: &Crd| {
            let conversion = crd.spec.object("conversion");
            conversion.and_then(|conversion| conversion.str("strategy")).unwrap_or("None").to_owned()
        };
        let (before, after) = (strategy(self.old), strategy(self.new));
        if before != after {
            let message = format!(
                "objects are converted by strategy {after} now, and were by {before}; what that loses is told of each field"
            );
            self.push(None, "spec.conversion.strategy", Class::Additive, message);
        } else if self.old.spec.get("conversion") != self.new.spec.get("conversion") && before == "Webhook" {
            self.push(None, "spec.conversion.webhook", Class::Additive, "the webhook is reached otherwise".to_owned());
        }
    }

    fn subresources(&mut self, before: &Version, after: &Version) {
        let of = |version: &Version, name: &str| {
            version.object.object("subresources").and_then(|all| all.get(name)).cloned()
        };
        let path = |name: &str| format!("spec.versions[{}].subresources.{name}", before.name);
        match (of(before, "status").is_some(), of(after, "status").is_some()) {
            (false, true) => {
                let message = "there is a subresource status now: who writes the status with the rest is ignored";
                self.push(Some(before), &path("status"), Class::BreaksWriters, message.to_owned());
                self.show(before, &Path::root().member("status"), &Value::Object(Object::new()));
            }
            (true, false) => {
                let message = "there is no subresource status any more: who writes to it gets 404".to_owned();
                self.push(Some(before), &path("status"), Class::BreaksWriters, message);
                self.show(before, &Path::root().member("status"), &Value::Object(Object::new()));
            }
            _ => {}
        }
        match (of(before, "scale"), of(after, "scale")) {
            (None, Some(_)) => {
                self.push(Some(before), &path("scale"), Class::Additive, "there is a subresource scale now".to_owned());
            }
            (Some(_), None) => {
                let message = "there is no subresource scale any more: who scales gets 404".to_owned();
                self.push(Some(before), &path("scale"), Class::BreaksWriters, message);
                self.show(before, &Path::root(), &Value::Null);
            }
            (Some(old), Some(new)) if old != new => {
                for name in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
                    let text = |scale: &Value| scale.as_object().and_then(|scale| scale.str(name)).map(str::to_owned);
                    let (from, to) = (text(&old), text(&new));
                    let class = if from.is_none() { Class::Additive } else { Class::BreaksReaders };
                    if from != to {
                        let message = was(name, from.as_deref(), to.as_deref());
                        self.push(Some(before), &format!("{}.{name}", path("scale")), class, message);
                        if class != Class::Additive {
                            self.show_at(before, from.as_deref().unwrap_or_default());
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn columns(&mut self, before: &Version, after: &Version) {
        let of = |version: &Version| -> Vec<Object> {
            let columns = version.object.array("additionalPrinterColumns").iter();
            columns.filter_map(Value::as_object).cloned().collect()
        };
        let name = |column: &Object| column.str("name").unwrap_or_default().to_owned();
        let path = format!("spec.versions[{}].additionalPrinterColumns", before.name);
        let (old, new) = (of(before), of(after));
        for column in &old {
            let title = name(column);
            match new.iter().find(|other| name(other) == title) {
                None => {
                    let message = format!("the column {title} is gone");
                    self.push(Some(before), &path, Class::BreaksReaders, message);
                    self.show_at(before, column.str("jsonPath").unwrap_or_default());
                }
                Some(other)
                    if (column.str("jsonPath"), column.str("type")) != (other.str("jsonPath"), other.str("type")) =>
                {
                    let message = format!("the column {title} shows something else");
                    self.push(Some(before), &path, Class::BreaksReaders, message);
                    self.show_at(before, column.str("jsonPath").unwrap_or_default());
                }
                Some(other) if column != other => {
                    let message = format!("the column {title} is described otherwise");
                    self.push(Some(before), &path, Class::Additive, message);
                }
                Some(_) => {}
            }
        }
        for column in new.iter().filter(|column| old.iter().all(|other| name(other) != name(column))) {
            self.push(Some(before), &path, Class::Additive, format!("the column {} is new", name(column)));
        }
    }

    fn selectable_fields(&mut self, before: &Version, after: &Version) {
        let of = |version: &Version| -> Vec<String> {
            let fields = version.object.array("selectableFields").iter();
            fields.filter_map(|field| Some(field.as_object()?.str("jsonPath")?.to_owned())).collect()
        };
        let path = format!("spec.versions[{}].selectableFields", before.name);
        let (old, new) = (of(before), of(after));
        for field in old.iter().filter(|field| !new.contains(field)) {
            let message = format!("objects can no longer be selected by {field}");
            self.push(Some(before), &path, Class::BreaksReaders, message);
            self.show_at(before, field);
        }
        for field in new.iter().filter(|field| !old.contains(field)) {
            self.push(Some(before), &path, Class::Additive, format!("objects can be selected by {field}"));
        }
    }

    fn deprecation(&mut self, before: &Version, after: &Version) {
        let of = |version: &Version| {
            [version.object.get("deprecated"), version.object.get("deprecationWarning")].map(Option::<&Value>::cloned)
        };
        if of(before) != of(after) {
            let path = format!("spec.versions[{}].deprecated", before.name);
            self.push(Some(before), &path, Class::Additive, "who uses the version is warned otherwise".to_owned());
        }
    }

    /// Lets an object that has something at a simple JSON path be the witness of the last finding.
    fn show_at(&mut self, version: &Version, json_path: &str) {
        let path: Path = json_path.parse().unwrap_or_default();
        let at = crate::stage::schema_at(&version.structural, &path).cloned();
        let mut generator = Generator::new(version.schema(self.old), &[], 1);
        let value = at.filter(|_| !path.is_root()).and_then(|schema| generator.values(&schema).into_iter().next());
        match value {
            Some(value) => self.show(version, &path, &value),
            None => self.show(version, &Path::root(), &Value::Null),
        }
    }

    fn show(&mut self, version: &Version, path: &Path, value: &Value) {
        let small = crate::reduction::reduced(&version.structural, path, &Default::default());
        let small = version.with_structural(small, self.old);
        let mut generator = Generator::new(&small, &[], 1);
        generator.look_at_most(40_000);
        let witness = generator.holding(path, value).or_else(|| generator.holding(&Path::root(), value));
        let whole = version.schema(self.old);
        if let Some(last) = self.findings.last_mut() {
            last.witness = witness.filter(|witness| whole.is_valid(witness));
        }
    }
}

fn texts(object: Option<&Object>, name: &str) -> Vec<String> {
    let list = object.map(|object| object.array(name)).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
