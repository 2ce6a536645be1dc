//! [`CustomConversion`]: how the objects of a definition get from one version to another. It is made once, when the
//! definition takes effect, and asked by whoever shows or stores an object (`stored.rs`); nobody else knows which way it
//! is.

use std::sync::Arc;

use revisor_object::{Object, Value};
use revisor_webhook::ConversionWebhook;

/// How the objects of a definition get from one version to another.
#[derive(Debug, Clone)]
pub enum CustomConversion {
    /// Only the name of the version changes.
    ByName,
    /// By rules that were checked.
    ByRules(Arc<revisor_convert::Conversion>),
    /// A webhook does it.
    ByWebhook(Arc<ConversionWebhook>),
    /// Nothing can do it, for this reason.
    Impossible(String),
}

/// Why an object is not in the version that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Unconverted {
    /// It is there once this webhook has converted it.
    Asks {
        /// Whom to ask.
        webhook: Arc<ConversionWebhook>,
        /// What to send.
        object: Object,
    },
    /// It cannot be.
    Failed(String),
}

impl CustomConversion {
    /// Reads `spec.conversion` of the definition with this name.
    pub(crate) fn read(conversion: &Object, definition: &str) -> CustomConversion {
        match conversion.str("strategy").unwrap_or_default() {
            // It is always there in what was written; where it is not, nobody asked for anything else.
            "" | "None" => CustomConversion::ByName,
            "Webhook" => {
                let nothing = Object::new();
                match ConversionWebhook::from_object(conversion.object("webhook").unwrap_or(&nothing)) {
                    Ok(webhook) => CustomConversion::ByWebhook(Arc::new(webhook)),
                    Err(error) => CustomConversion::Impossible(error.to_string()),
                }
            }
            other => {
                CustomConversion::Impossible(format!("unknown conversion strategy {other:?} for CRD {definition}"))
            }
        }
    }

    /// The same with rules: where nothing else is asked for, they convert.
    pub(crate) fn with_rules(&self, rules: Option<Arc<revisor_convert::Conversion>>) -> CustomConversion {
        match (self, rules) {
            (CustomConversion::ByName, Some(rules)) => CustomConversion::ByRules(rules),
            (conversion, _) => conversion.clone(),
        }
    }

    /// What metrics call this way.
    pub(crate) fn way(&self) -> &'static str {
        match self {
            CustomConversion::ByName => "name",
            CustomConversion::ByRules(_) => "rules",
            CustomConversion::ByWebhook(_) => "webhook",
            CustomConversion::Impossible(_) => "none",
        }
    }

    pub(crate) fn rules(&self) -> Option<&revisor_convert::Conversion> {
        match self {
            CustomConversion::ByRules(rules) => Some(rules),
            CustomConversion::ByName | CustomConversion::ByWebhook(_) | CustomConversion::Impossible(_) => None,
        }
    }

    /// Whether every object can be shown at once: nobody has to be asked, nothing can fail, and labels stay as they are.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            CustomConversion::ByName => true,
            CustomConversion::ByRules(rules) => !rules.computes(),
            CustomConversion::ByWebhook(_) | CustomConversion::Impossible(_) => false,
        }
    }

    /// Whether somebody else may have to be asked.
    pub(crate) fn asks_others(&self) -> bool {
        matches!(self, CustomConversion::ByWebhook(_))
    }

    /// Brings an object that shows its type to another version. What that version cannot say travels along in an
    /// annotation if rules convert it, and is lost if nothing but the name changes.
    pub(crate) fn convert(&self, mut object: Object, api_version: &str) -> Result<Object, Unconverted> {
        if object.str("apiVersion") == Some(api_version) {
            return Ok(object);
        }
        match self {
            CustomConversion::ByName => {
                object.insert("apiVersion", api_version);
                Ok(object)
            }
            CustomConversion::ByRules(rules) => into_object(rules.convert(Value::Object(object), short(api_version))),
            CustomConversion::ByWebhook(webhook) => Err(Unconverted::Asks { webhook: webhook.clone(), object }),
            CustomConversion::Impossible(why) => Err(Unconverted::Failed(why.clone())),
        }
    }
}

/// What rules made, or why they did not.
pub(super) fn into_object(made: Result<Value, revisor_convert::ConvertError>) -> Result<Object, Unconverted> {
    match made {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(Unconverted::Failed(format!("the rules made {} of an object", other.type_name()))),
        Err(error) => Err(failed(error)),
    }
}

pub(super) fn failed(error: revisor_convert::ConvertError) -> Unconverted {
    Unconverted::Failed(format!("the rules of the Conversion cannot convert the object: {error}"))
}

/// `v1` of `example.com/v1`: how rules name versions.
pub(super) fn short(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn a_strategy_that_nobody_knows_is_not_taken_for_none() {
        for (conversion, want) in [
            ("{}", "ByName"),
            (r#"{"strategy":"None"}"#, "ByName"),
            (r#"{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a"}}}"#, "ByWebhook"),
            (r#"{"strategy":"Webhook"}"#, "Impossible(\"webhook configuration must have either service or URL\")"),
            (r#"{"strategy":"Magic"}"#, r#"Impossible("unknown conversion strategy \"Magic\" for CRD a.b")"#),
        ] {
            let read = format!("{:?}", CustomConversion::read(&object(conversion), "a.b"));
            assert!(read.starts_with(want), "{conversion}: {read}");
        }
    }
}
