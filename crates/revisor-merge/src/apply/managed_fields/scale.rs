//! Who manages the scale of an object: those who manage its number of replicas. A scale is written as an object of its
//! own, with managers of its own; what becomes of them is put back into the entries of the object that it is part of.

use super::{Entry, FieldSet, ManagedFields, Manager};

impl ManagedFields {
    /// The entries of the scale, whose version is `scale_version` and whose replicas are at `scale_place`. `place` says
    /// where objects of a version keep their number of replicas, if there is such a version.
    pub fn of_scale(
        &self,
        place: impl Fn(&str) -> Option<FieldSet>,
        scale_version: &str,
        scale_place: &FieldSet,
    ) -> ManagedFields {
        let mut scale = ManagedFields::default();
        for Entry { manager, time, fields } in &self.0 {
            let Some(place) = place(&manager.api_version) else { continue };
            if place.is_within(&fields.read()) {
                let manager = Manager { api_version: scale_version.to_owned(), ..manager.clone() };
                scale.put(Entry { manager, time: time.clone(), fields: scale_place.clone().into() });
            }
        }
        scale
    }

    /// The entries of the object after its scale was written, through `version`. As in the original, times are those of
    /// before, and an updater whose entry comes back from the scale stands beside itself.
    pub fn with_scale(
        self,
        mut scale: ManagedFields,
        place: impl Fn(&str) -> Option<FieldSet>,
        version: &str,
        scale_place: &FieldSet,
    ) -> ManagedFields {
        let mut kept: Vec<Entry> = Vec::new();
        for entry in &self.0 {
            let Some(place) = place(&entry.manager.api_version) else { continue };
            if !place.is_within(&entry.fields.read()) {
                kept.push(entry.clone());
            } else if let Some(at) = scale.position(&entry.manager) {
                scale.0.remove(at);
                kept.push(entry.clone());
            } else {
                let mut entry = entry.clone();
                entry.fields.subtract(&place);
                if !entry.fields.is_empty() {
                    kept.push(entry);
                }
            }
        }
        for Entry { manager, fields, .. } in scale.0 {
            if let Some(place) = place(version).filter(|_| scale_place.is_within(&fields.read())) {
                let time = self.position(&manager).and_then(|at| self.0[at].time.clone());
                kept.retain(|known| !known.manager.is_same(&manager));
                let manager = Manager { api_version: version.to_owned(), ..manager };
                kept.push(Entry { manager, time, fields: place.into() });
            }
        }
        ManagedFields(kept)
    }

    /// Adds an entry in place of the one that its manager may have.
    fn put(&mut self, entry: Entry) {
        match self.position(&entry.manager) {
            Some(at) => self.0[at] = entry,
            None => self.0.push(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Operation;
    use super::*;

    fn manager(name: &str, operation: Operation, subresource: &str) -> Manager {
        Manager {
            name: name.to_owned(),
            operation,
            api_version: "apps/v1".to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    #[test]
    fn who_manages_replicas_manages_the_scale() {
        let replicas = FieldSet::of(&[&["f:spec", "f:replicas"]]);
        let place = |version: &str| (version == "apps/v1").then(|| replicas.clone());
        let mut object = ManagedFields::default();
        object.take(&manager("all", Operation::Update, ""), FieldSet::of(&[&["f:spec", "f:replicas"], &["f:x"]]), "1");
        object.take(&manager("one", Operation::Apply, "scale"), replicas.clone(), "2");
        object.take(&manager("other", Operation::Update, ""), FieldSet::of(&[&["f:y"]]), "3");
        let names = |managed: &ManagedFields| -> Vec<String> {
            let shown = |entry: &Entry| {
                let Manager { name, api_version, .. } = &entry.manager;
                let time = entry.time.as_deref().unwrap_or("never");
                format!("{name} {api_version} {time} {}", entry.fields.clone().into_value().to_json())
            };
            managed.0.iter().map(shown).collect()
        };
        let scale = object.of_scale(place, "autoscaling/v1", &replicas);
        assert_eq!(
            names(&scale),
            [
                r#"all autoscaling/v1 1 {"f:spec":{"f:replicas":{}}}"#,
                r#"one autoscaling/v1 2 {"f:spec":{"f:replicas":{}}}"#,
            ]
        );
        // Who lost the scale loses the replicas; who did not keeps all; who is new has no time.
        let mut written = ManagedFields(scale.0[1..].to_vec());
        written.take(&manager("new", Operation::Update, "scale"), replicas.clone(), "4");
        assert_eq!(
            names(&object.with_scale(written, place, "apps/v1", &replicas)),
            [
                r#"all apps/v1 1 {"f:x":{}}"#,
                r#"one apps/v1 2 {"f:spec":{"f:replicas":{}}}"#,
                r#"other apps/v1 3 {"f:y":{}}"#,
                r#"new apps/v1 never {"f:spec":{"f:replicas":{}}}"#,
            ]
        );
    }
}
