//! [`Layout`]: how the keys of one resource are made up.

/// The keys of a resource are `<prefix><namespace>/<name>` if it is namespaced and `<prefix><name>` if not.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) prefix: Box<str>,
    pub(crate) namespaced: bool,
}

impl Layout {
    /// The namespace that `key` is in, if the resource has namespaces and the key is one of its own.
    pub(crate) fn namespace_of<'a>(&self, key: &'a str) -> Option<&'a str> {
        if !self.namespaced {
            return None;
        }
        let (namespace, _name) = key.strip_prefix(&*self.prefix)?.split_once('/')?;
        Some(namespace)
    }

    /// The prefix of the keys of `namespace`.
    pub(crate) fn namespace_prefix(&self, namespace: &str) -> String {
        format!("{}{namespace}/", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_read_from_keys() {
        let layout = |namespaced| Layout { prefix: "/registry/pods/".into(), namespaced };
        for (name, namespaced, key, namespace) in [
            ("an object", true, "/registry/pods/a/x", Some("a")),
            ("a whole namespace", true, "/registry/pods/a/", Some("a")),
            ("a name with a slash", true, "/registry/pods/a/x/y", Some("a")),
            ("the whole resource", true, "/registry/pods/", None),
            ("no slash after the namespace", true, "/registry/pods/a", None),
            ("another resource", true, "/registry/nodes/a/x", None),
            ("a resource without namespaces", false, "/registry/pods/a/x", None),
        ] {
            assert_eq!(layout(namespaced).namespace_of(key), namespace, "{name}");
        }
        assert_eq!(layout(true).namespace_prefix("a"), "/registry/pods/a/");
    }
}
