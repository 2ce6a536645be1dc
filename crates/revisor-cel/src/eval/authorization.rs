//! What expressions ask about permissions: [`Authorizer`], which callers bring, and the questions put to it.

use std::fmt;

/// Who knows what somebody may do. Callers hand one to expressions as [`Authorization::authorizer`].
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Whether what is described may be done.
    fn authorize(&self, question: &Question) -> Decision;
}

/// May somebody do something?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The service account that is meant; if none, the one who sent the request.
    pub service_account: Option<ServiceAccount>,
    /// What is done.
    pub verb: String,
    /// With what.
    pub target: Target,
}

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Where it is.
    pub namespace: String,
    /// Its name there.
    pub name: String,
}

/// What something is done with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A path that is no resource.
    Path(String),
    /// A resource.
    Resource(ResourceTarget),
}

/// A resource that something is done with; empty where nothing was said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceTarget {
    /// Its group.
    pub group: String,
    /// Its name, in the plural.
    pub resource: String,
    /// A part of it.
    pub subresource: String,
    /// Where.
    pub namespace: String,
    /// Which one.
    pub name: String,
    /// Which ones, by their fields.
    pub field_selector: String,
    /// Which ones, by their labels.
    pub label_selector: String,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: String,
    /// What went wrong while it was decided.
    pub error: Option<String>,
}

/// A question that an expression is putting together.
#[derive(Debug, Clone)]
pub struct Authorization<'a> {
    authorizer: &'a dyn Authorizer,
    service_account: Option<ServiceAccount>,
    stage: Stage,
}

#[derive(Debug, Clone)]
enum Stage {
    Authorizer,
    Group(String),
    Target(Target),
}

impl<'a> Authorization<'a> {
    /// The one whose permissions are asked for, without a question yet.
    pub fn authorizer(authorizer: &'a dyn Authorizer) -> Authorization<'a> {
        Authorization { authorizer, service_account: None, stage: Stage::Authorizer }
    }

    /// A question about a resource, with only the verb missing.
    pub fn resource(authorizer: &'a dyn Authorizer, target: ResourceTarget) -> Authorization<'a> {
        Authorization { authorizer, service_account: None, stage: Stage::Target(Target::Resource(target)) }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match &self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Group(_) => "kubernetes.authorization.GroupCheck",
            Stage::Target(Target::Path(_)) => "kubernetes.authorization.PathCheck",
            Stage::Target(Target::Resource(_)) => "kubernetes.authorization.ResourceCheck",
        }
    }

    fn at(&self, stage: Stage) -> Authorization<'a> {
        Authorization { authorizer: self.authorizer, service_account: self.service_account.clone(), stage }
    }

    pub(crate) fn of_service_account(&self, account: ServiceAccount) -> Option<Authorization<'a>> {
        let asked = self.at(Stage::Authorizer);
        matches!(self.stage, Stage::Authorizer).then_some(Authorization { service_account: Some(account), ..asked })
    }

    pub(crate) fn with_path(&self, path: &str) -> Option<Authorization<'a>> {
        let stage = Stage::Target(Target::Path(path.to_owned()));
        matches!(self.stage, Stage::Authorizer).then(|| self.at(stage))
    }

    pub(crate) fn with_group(&self, group: &str) -> Option<Authorization<'a>> {
        matches!(self.stage, Stage::Authorizer).then(|| self.at(Stage::Group(group.to_owned())))
    }

    pub(crate) fn with_resource(&self, resource: &str) -> Option<Authorization<'a>> {
        let Stage::Group(group) = &self.stage else { return None };
        let target =
            ResourceTarget { group: group.clone(), resource: resource.to_owned(), ..ResourceTarget::default() };
        Some(self.at(Stage::Target(Target::Resource(target))))
    }

    /// This question with something more said about the resource.
    pub(crate) fn narrowed(&self, narrow: impl FnOnce(&mut ResourceTarget)) -> Option<Authorization<'a>> {
        let Stage::Target(Target::Resource(target)) = &self.stage else { return None };
        let mut target = target.clone();
        narrow(&mut target);
        Some(self.at(Stage::Target(Target::Resource(target))))
    }

    pub(crate) fn check(&self, verb: &str) -> Option<Decision> {
        let Stage::Target(target) = &self.stage else { return None };
        let (service_account, verb) = (self.service_account.clone(), verb.to_owned());
        Some(self.authorizer.authorize(&Question { service_account, verb, target: target.clone() }))
    }
}
