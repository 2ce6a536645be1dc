//! [`Opaque`]: values that only functions of a library can look into.

use core::net::IpAddr;
use std::sync::Arc;

use revisor_object::{Cidr, Quantity, Url};

use super::authorization::{Authorization, Decision};
use super::functions::named_format::NamedFormat;
use super::functions::semver::Semver;
use crate::types::Type;

/// A value that only functions of a library can look into.
#[derive(Debug, Clone)]
pub enum Opaque<'a> {
    /// An amount of a resource.
    Quantity {
        /// How much.
        quantity: Arc<Quantity>,
        /// How many powers of ten its digits are multiplied by, if it was written in no more digits than fit. Only
        /// what needs no fraction to be written is taken for an integer.
        scale: Option<i32>,
        /// Whether it was computed from others. Then it can only stand on the left of a comparison, as everywhere.
        computed: bool,
    },
    /// A URL.
    Url(Arc<Url>),
    /// An IP address.
    Ip(IpAddr),
    /// A range of IP addresses.
    Cidr(Cidr),
    /// A version.
    Semver(Arc<Semver>),
    /// A format that texts can be checked against.
    Format(NamedFormat),
    /// Somebody whose permissions can be asked for, or a question about them that is being put together.
    Authorization(Arc<Authorization<'a>>),
    /// The answer to such a question.
    Decision(Arc<Decision>),
}

impl Opaque<'_> {
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Opaque::Quantity { .. } => "kubernetes.Quantity",
            Opaque::Url(_) => "kubernetes.URL",
            Opaque::Ip(_) => "net.IP",
            Opaque::Cidr(_) => "net.CIDR",
            Opaque::Semver(_) => "kubernetes.Semver",
            Opaque::Format(_) => "kubernetes.NamedFormat",
            Opaque::Authorization(authorization) => authorization.type_name(),
            Opaque::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    pub(crate) fn kind(&self) -> Type {
        match self {
            Opaque::Ip(_) | Opaque::Cidr(_) => Type::opaque(self.type_name(), vec![]),
            _ => Type::object(self.type_name()),
        }
    }

    /// How large the value counts when costs are reckoned: addresses by their bytes.
    pub(crate) fn cost_size(&self) -> usize {
        match self {
            Opaque::Ip(IpAddr::V4(_)) => 4,
            Opaque::Ip(IpAddr::V6(_)) => 16,
            Opaque::Cidr(cidr) => usize::from(cidr.prefix()).div_ceil(8),
            _ => 1,
        }
    }

    /// Whether both are the same; `None` if they cannot be compared.
    pub(crate) fn equals(&self, other: &Opaque<'_>) -> Option<bool> {
        Some(match (self, other) {
            (Opaque::Quantity { quantity, .. }, Opaque::Quantity { quantity: other, computed: false, .. }) => {
                quantity == other
            }
            (Opaque::Url(one), Opaque::Url(other)) => one.to_string() == other.to_string(),
            (Opaque::Ip(one), Opaque::Ip(other)) => one == other,
            (Opaque::Cidr(one), Opaque::Cidr(other)) => one.addr() == other.addr() && one.prefix() == other.prefix(),
            (Opaque::Semver(one), Opaque::Semver(other)) => one.cmp_precedence(other).is_eq(),
            (Opaque::Format(one), Opaque::Format(other)) => one == other,
            _ => return None,
        })
    }
}
