//! [`Identity`]: who a request is made by, as far as the server is concerned.
//!
//! How an identity is proven is not here; see `authenticator.rs`.

use std::fmt;
use std::sync::Arc;

/// The user of a request without credentials.
const ANONYMOUS: &str = "system:anonymous";
/// The group of requests without credentials.
const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of everybody who proved to be somebody.
const AUTHENTICATED: &str = "system:authenticated";
/// The group that may do everything, before any rule is looked at.
const MASTERS: &str = "system:masters";

/// What a credential says about its holder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// The name of the user.
    pub name: String,
    /// What tells this user from others that had the name before.
    pub uid: Option<String>,
    /// The groups that the user is in.
    pub groups: Vec<String>,
    /// Further facts, by key.
    pub extra: Vec<(String, Vec<String>)>,
}

/// Who a request is made by.
///
/// Cheap to clone: one certificate or token stands behind many requests, which share one allocation.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity(Arc<Known>);

#[derive(PartialEq, Eq)]
struct Known {
    claims: Claims,
    // Asked for on every request, by the authorizer and by the limits on requests in flight.
    master: bool,
}

impl Identity {
    /// The identity of a request without credentials: `system:anonymous` in `system:unauthenticated`.
    pub fn anonymous() -> Identity {
        Identity::exactly(Claims {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Claims::default()
        })
    }

    /// The identity that proven `claims` give: the claims and membership of `system:authenticated`.
    ///
    /// The group is not added when the claims are those of the anonymous user or already say whether the user is
    /// authenticated, so that an identity that was passed on is not promoted.
    pub fn authenticated(mut claims: Claims) -> Identity {
        let settled = claims.name == ANONYMOUS
            || claims.groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED);
        if !settled {
            claims.groups.push(AUTHENTICATED.to_owned());
        }
        Identity::exactly(claims)
    }

    /// The identity that `claims` describe, as they are: for questions about others.
    pub fn exactly(mut claims: Claims) -> Identity {
        claims.extra.sort();
        let master = claims.groups.iter().any(|group| group == MASTERS);
        Identity(Arc::new(Known { claims, master }))
    }

    /// The name of the user.
    pub fn name(&self) -> &str {
        &self.0.claims.name
    }

    /// What tells this user from others that had the name before, if the credential says so.
    pub fn uid(&self) -> Option<&str> {
        self.0.claims.uid.as_deref()
    }

    /// The groups that the user is in.
    pub fn groups(&self) -> &[String] {
        &self.0.claims.groups
    }

    /// Further facts about the user, ordered by key.
    pub fn extra(&self) -> &[(String, Vec<String>)] {
        &self.0.claims.extra
    }

    /// Whether the user is in `system:masters` and so may do everything.
    pub fn is_master(&self) -> bool {
        self.0.master
    }

    /// Whether this is the identity of a request without credentials.
    pub fn is_anonymous(&self) -> bool {
        self.name() == ANONYMOUS
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.claims, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_tell_whether_somebody_is_authenticated() {
        for (case, name, groups, want) in [
            ("no groups", "bob", &[][..], &["system:authenticated"][..]),
            ("own groups stay in front", "bob", &["b", "a"], &["b", "a", "system:authenticated"]),
            ("not twice", "bob", &["system:authenticated", "a"], &["system:authenticated", "a"]),
            ("not promoted", "bob", &["system:unauthenticated"], &["system:unauthenticated"]),
            ("anonymous by name", "system:anonymous", &[], &[]),
        ] {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let identity = Identity::authenticated(Claims { name: name.to_owned(), groups, ..Claims::default() });
            assert_eq!(identity.groups(), want, "{case}");
        }
    }

    #[test]
    fn anonymous_is_nobody_and_no_master() {
        let anonymous = Identity::anonymous();
        assert_eq!((anonymous.name(), anonymous.uid()), ("system:anonymous", None));
        assert_eq!(anonymous.groups(), ["system:unauthenticated"]);
        assert!(anonymous.is_anonymous() && !anonymous.is_master());
    }

    #[test]
    fn masters_are_known_by_their_group_only() {
        let named = Identity::authenticated(Claims { name: "system:masters".to_owned(), ..Claims::default() });
        assert!(!named.is_master());
        let member =
            Identity::authenticated(Claims { groups: vec!["a".to_owned(), MASTERS.to_owned()], ..Claims::default() });
        assert!(member.is_master());
    }
}
