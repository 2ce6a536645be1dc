//! [`CustomConversion`]: how the objects of a definition get from one version to another. It is made once, when the
//! definition takes effect, and what it cannot do it says whenever it is asked.

use std::sync::Arc;

use revisor_object::Object;
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
