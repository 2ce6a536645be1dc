//! [`PolicyBinding`]: where a policy is in force, and with which parameters.

use revisor_object::{LabelSelector, Object, StructuredLabelSelector};

use crate::match_resources::MatchResources;
use crate::rule::texts;

/// What is done about a write that a policy denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidationAction {
    /// It is not done.
    Deny,
    /// Who makes it is warned.
    Warn,
    /// It is noted in the audit log.
    Audit,
}

impl ValidationAction {
    /// The name that bindings have for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            ValidationAction::Deny => "Deny",
            ValidationAction::Warn => "Warn",
            ValidationAction::Audit => "Audit",
        }
    }

    fn parse(name: &str) -> Option<ValidationAction> {
        [ValidationAction::Deny, ValidationAction::Warn, ValidationAction::Audit]
            .into_iter()
            .find(|action| action.as_str() == name)
    }
}

/// Which objects are the parameters.
#[derive(Debug, Clone)]
pub struct ParamRef {
    /// The one with this name; empty if they are selected.
    pub name: String,
    /// In this namespace; empty for that of the write.
    pub namespace: String,
    /// Those that this selects, or why it selects nothing.
    pub selector: Option<Result<LabelSelector, String>>,
    /// Whether a write is denied for which there are none.
    pub denies_missing: bool,
}

/// Where a policy is in force.
#[derive(Debug, Clone)]
pub struct PolicyBinding {
    /// Its name.
    pub name: String,
    /// The name of the policy.
    pub policy: String,
    /// What it applies to, where that is less than the policy does.
    pub resources: Option<MatchResources>,
    /// The parameters.
    pub params: Option<ParamRef>,
    /// What is done about what the policy denies. Mutating policies deny nothing.
    pub actions: Vec<ValidationAction>,
}

impl PolicyBinding {
    /// The binding that this object describes.
    pub fn read(name: &str, object: &Object) -> PolicyBinding {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        PolicyBinding {
            name: name.to_owned(),
            policy: spec.str("policyName").unwrap_or_default().to_owned(),
            resources: spec.object("matchResources").map(MatchResources::read),
            params: spec.object("paramRef").map(|reference| ParamRef {
                name: reference.str("name").unwrap_or_default().to_owned(),
                namespace: reference.str("namespace").unwrap_or_default().to_owned(),
                selector: reference.object("selector").map(|selector| {
                    StructuredLabelSelector::new(selector).to_selector().map_err(|error| error.to_string())
                }),
                denies_missing: reference.str("parameterNotFoundAction") == Some("Deny"),
            }),
            actions: texts(spec, "validationActions").iter().filter_map(|name| ValidationAction::parse(name)).collect(),
        }
    }
}
