//! The config map `kube-root-ca.crt` of every namespace: what a program in it has to trust to reach the server.

use revisor_object::{Object, Value};
use tokio::sync::watch;

use crate::in_every_namespace::Wanted;

const KEY: &str = "ca.crt";
const ANNOTATION: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
     endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
     distributions of Kubernetes clusters.";

/// What the controller keeps in every namespace.
pub(crate) struct RootCa {
    pem: watch::Receiver<String>,
}

impl RootCa {
    pub(crate) fn new(pem: watch::Receiver<String>) -> RootCa {
        RootCa { pem }
    }

    fn data(&self) -> Object {
        [(KEY, Value::from(self.pem.borrow().clone()))].into_iter().collect()
    }
}

impl Wanted for RootCa {
    fn plural(&self) -> &'static str {
        "configmaps"
    }

    fn name(&self) -> &'static str {
        "kube-root-ca.crt"
    }

    fn fresh(&self) -> Object {
        let metadata: Object = [("name", Value::from(self.name()))].into_iter().collect();
        let mut object: Object = [("metadata", Value::from(metadata))].into_iter().collect();
        self.mend(&mut object);
        object
    }

    fn mend(&self, object: &mut Object) -> bool {
        let data = self.data();
        let described = object.at(&["metadata", "annotations", ANNOTATION]).and_then(Value::as_str);
        if object.object("data") == Some(&data) && described.is_some_and(|text| !text.is_empty()) {
            return false;
        }
        object.insert("data", data);
        object.object_mut("metadata").object_mut("annotations").insert(ANNOTATION, DESCRIPTION);
        true
    }

    fn changes(&self) -> Option<watch::Receiver<String>> {
        Some(self.pem.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_changed_is_mended_and_what_they_added_to_the_metadata_stays() {
        let wanted = RootCa::new(watch::channel("PEM".to_owned()).1);
        let mut object = wanted.fresh();
        assert!(!wanted.mend(&mut object), "a fresh one is as it should be");

        object.object_mut("metadata").object_mut("labels").insert("a", "b");
        object.object_mut("metadata").object_mut("annotations").insert(ANNOTATION, "mine");
        assert!(!wanted.mend(&mut object), "any description will do");

        object.object_mut("data").insert("more", "x");
        assert!(wanted.mend(&mut object));
        assert_eq!(object.object("data").map(Object::len), Some(1));
        assert_eq!(object.at(&["metadata", "labels", "a"]).and_then(Value::as_str), Some("b"));

        object.object_mut("metadata").remove("annotations");
        assert!(wanted.mend(&mut object));
        assert_eq!(object.at(&["metadata", "annotations", ANNOTATION]).and_then(Value::as_str), Some(DESCRIPTION));
    }
}
