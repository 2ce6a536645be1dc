//! Events of this group as core events and back: the same fields, some under other names.

use revisor_object::Object;

use crate::conversion::Conversion;

/// The names here, and those in the core group.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Events that are stored as core events.
pub(crate) struct CoreEvents;

impl Conversion for CoreEvents {
    fn to_stored(&self, object: &mut Object) {
        for (here, there) in NAMES {
            let value = object.remove(here);
            object.set(there, value);
        }
    }

    fn to_shown(&self, object: &mut Object) {
        for (here, there) in NAMES {
            let value = object.remove(there);
            object.set(here, value);
        }
        // Core events always show these; here they are left out when they are empty.
        for name in ["reportingController", "reportingInstance"] {
            if object.str(name) == Some("") {
                object.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn both_forms_say_the_same() {
        for (new, core) in [
            ("{}", "{}"),
            (r#"{"reason":"R","series":{"count":2}}"#, r#"{"reason":"R","series":{"count":2}}"#),
            (
                r#"{"regarding":{"kind":"Pod"},"note":"n","reportingController":"c","deprecatedCount":3,
                    "deprecatedSource":{"host":"h"},"deprecatedFirstTimestamp":"f","deprecatedLastTimestamp":"l"}"#,
                r#"{"involvedObject":{"kind":"Pod"},"message":"n","reportingComponent":"c","count":3,
                    "source":{"host":"h"},"firstTimestamp":"f","lastTimestamp":"l"}"#,
            ),
        ] {
            let mut converted = object(new);
            CoreEvents.to_stored(&mut converted);
            assert_eq!(converted, object(core));
            CoreEvents.to_shown(&mut converted);
            assert_eq!(converted, object(new));
        }
    }
}
