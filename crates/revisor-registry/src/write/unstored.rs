//! [`UnstoredWrite`]: a request with an object of its own that is not stored: a binding, an eviction, a request for a
//! token, a review, a connection. It passes both passes of admission like every other write.

use revisor_admission::GroupVersionKind;
use revisor_object::Object;

use super::{Place, WriteOptions};
use crate::admission::{Attributes, Operation, OperationOptions};
use crate::{Registry, RegistryError};

/// A request whose object is not stored.
#[derive(Debug, Clone, Copy)]
pub struct UnstoredWrite<'a> {
    /// Where it goes.
    pub place: Place<'a>,
    /// The kind of its object, where that is not the resource's.
    pub own_kind: Option<GroupVersionKind<'a>>,
    /// What it does.
    pub operation: Operation,
    /// Who makes it, and how.
    pub options: WriteOptions<'a>,
}

impl<'a> UnstoredWrite<'a> {
    fn attributes(&self) -> Attributes<'a> {
        let Place { resource, namespace, name } = self.place;
        let attributes = self.options.attributes(resource, namespace, name.unwrap_or_default(), None);
        let options = match self.operation {
            Operation::Connect => OperationOptions::None,
            _ => attributes.options,
        };
        Attributes { own_kind: self.own_kind, operation: self.operation, options, ..attributes }
    }
}

impl Registry {
    /// The mutating pass over a request whose object is not stored.
    pub async fn admit_unstored(&self, write: &UnstoredWrite<'_>, object: &mut Object) -> Result<(), RegistryError> {
        self.admit(&write.attributes(), object).await.map(drop)
    }

    /// The validating pass over it.
    pub async fn validate_unstored(&self, write: &UnstoredWrite<'_>, object: &Object) -> Result<(), RegistryError> {
        self.validate_admission(&write.attributes(), object).await?;
        write.options.in_time()
    }
}
