//! JSON as Go writes it: members in the order of their type, not of their names. Clients compare annotations as texts.

use revisor_object::{BadValue, Object, Value};

/// A member of an object, if it is written at all.
pub(super) struct Member<'a> {
    name: &'a str,
    text: Option<String>,
}

impl<'a> Member<'a> {
    /// A member whose value is this JSON.
    pub(super) fn given(name: &'a str, text: String) -> Member<'a> {
        Member { name, text: Some(text) }
    }

    /// A member that is left out.
    pub(super) fn absent(name: &'a str) -> Member<'a> {
        Member { name, text: None }
    }

    /// A member that is left out where there is no value.
    pub(super) fn of(name: &'a str, value: Option<&Value>) -> Member<'a> {
        Member { name, text: value.filter(|value| !value.is_null()).map(json) }
    }

    /// A quantity that is zero where there is no value.
    pub(super) fn quantity(name: &'a str, value: Option<&Value>) -> Member<'a> {
        Member::given(name, value.map_or_else(|| "\"0\"".to_owned(), json))
    }

    /// A text that is empty where there is no value.
    pub(super) fn text(name: &'a str, value: Option<&Value>) -> Member<'a> {
        Member::given(name, value.map_or_else(|| "\"\"".to_owned(), json))
    }

    /// A label selector, left out where there is none.
    pub(super) fn selector(name: &'a str, value: Option<&Value>) -> Member<'a> {
        let Some(selector) = value.and_then(Value::as_object) else { return Member::absent(name) };
        Member::given(
            name,
            object(["matchLabels", "matchExpressions"].map(|part| Member::of(part, selector.get(part)))),
        )
    }

    /// A reference to another object.
    pub(super) fn reference(name: &'a str, reference: &Object) -> Member<'a> {
        let members = [
            Member::text("kind", reference.get("kind")),
            Member::text("name", reference.get("name")),
            Member::of("apiVersion", reference.get("apiVersion")),
        ];
        Member::given(name, object(members))
    }
}

/// The JSON of a value, with what HTML reads as markup escaped.
pub(super) fn json(value: &Value) -> String {
    match value {
        // Texts by themselves are quoted by another rule there.
        Value::String(_) => {
            let listed = BadValue::of(&[value]).to_string();
            listed[1..listed.len() - 1].to_owned()
        }
        value => BadValue::of(value).to_string(),
    }
}

/// The JSON of an object with these members.
pub(super) fn object<'a>(members: impl IntoIterator<Item = Member<'a>>) -> String {
    let written = members.into_iter().filter_map(|member| Some(format!("\"{}\":{}", member.name, member.text?)));
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}

/// The JSON of a list of these.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}
