//! [`Controllers`]: which controllers run, in kube-controller-manager's syntax.

use std::str::FromStr;

/// The controllers that this program has.
const KNOWN: &[&str] = &[];

/// Which controllers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Controllers {
    enabled: Vec<&'static str>,
}

impl Controllers {
    /// The names of those that run.
    pub(crate) fn enabled(&self) -> &[&'static str] {
        &self.enabled
    }

    fn parse(text: &str, known: &[&'static str]) -> Result<Controllers, String> {
        let mut all = false;
        let (mut named, mut left_out) = (Vec::new(), Vec::new());
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            match item {
                "*" => all = true,
                "none" if text.trim() == "none" => {}
                "none" => return Err("\"none\" stands alone: it leaves no controller to name".to_owned()),
                _ => {
                    let (list, name) = match item.strip_prefix('-') {
                        Some(name) => (&mut left_out, name),
                        None => (&mut named, item),
                    };
                    let found = known.iter().find(|known| **known == name).ok_or_else(|| {
                        let names = if known.is_empty() { "there are none yet".to_owned() } else { known.join(", ") };
                        format!("{name:?} is not in the list of known controllers: {names}")
                    })?;
                    list.push(*found);
                }
            }
        }
        let enabled = known.iter().copied();
        let enabled = enabled.filter(|name| (all || named.contains(name)) && !left_out.contains(name)).collect();
        Ok(Controllers { enabled })
    }
}

impl FromStr for Controllers {
    type Err = String;

    fn from_str(text: &str) -> Result<Controllers, String> {
        Controllers::parse(text, KNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_named_as_kube_controller_manager_names_them() {
        for (text, want) in [
            ("*", Some(vec!["a", "b"])),
            ("none", Some(vec![])),
            ("", Some(vec![])),
            ("a", Some(vec!["a"])),
            ("*,-a", Some(vec!["b"])),
            ("-a", Some(vec![])),
            ("c", None),
            ("*,-c", None),
            ("none,a", None),
        ] {
            let parsed = Controllers::parse(text, &["a", "b"]).ok().map(|controllers| controllers.enabled);
            assert_eq!(parsed, want, "{text:?}");
        }
    }
}
