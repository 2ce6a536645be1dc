//! [`Impersonation`]: acting as somebody else, for those who may.
//!
//! There are several ways to be allowed to. The narrower ones ask for two rights: to be that user, and to do as them
//! what the request does. The oldest asks for the first alone. A way that fails leaves it to the next.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Mutex;

use http::HeaderMap;
use percent_encoding::percent_decode_str;
use revisor_object::FieldPath;
use revisor_object::names::{dns1123_label, dns1123_subdomain, domain_prefixed_path};

use crate::quoted::quoted;
use crate::{Attributes, Authorizer, Claims, Decision, Forbidden, Identity, ResourceAttributes};

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// What all of them begin with.
const IMPERSONATE: &str = "impersonate-";

/// The group of what one is about oneself.
const AUTHENTICATION: &str = "authentication.k8s.io";

const MASTERS: &str = "system:masters";
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const AUTHENTICATED: &str = "system:authenticated";
const NODES: &str = "system:nodes";

/// What the token of a service account says about the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// From how many groups or values on it is asked first whether all are allowed.
const MANY: usize = 4;

/// Of how many users it is remembered which way they were allowed.
const MAX_REMEMBERED: usize = 10_000;

/// A request wants to act as somebody without saying as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoUser(Claims);

/// Whom a request wants to act as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonated(Claims);

impl Impersonated {
    /// Reads the headers of a request; `None` if it wants to act as its own user.
    pub fn read(headers: &HeaderMap) -> Result<Option<Impersonated>, NoUser> {
        // Nearly everybody acts as themselves.
        if !headers.keys().any(|name| name.as_str().starts_with(IMPERSONATE)) {
            return Ok(None);
        }
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let first = |name| headers.get(name).map(text).unwrap_or_default();
        let mut extra: Vec<(String, Vec<String>)> = Vec::new();
        for name in headers.keys() {
            let Some(key) = name.as_str().strip_prefix(EXTRA) else { continue };
            let key = percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), |key| key.into_owned());
            let values = headers.get_all(name).iter().map(text);
            match extra.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => known.extend(values),
                None => extra.push((key, values.collect())),
            }
        }
        extra.sort();
        let wanted = Claims {
            name: first(USER),
            uid: Some(first(UID)).filter(|uid| !uid.is_empty()),
            groups: headers.get_all(GROUP).iter().map(text).collect(),
            extra,
        };
        match wanted {
            Claims { ref name, .. } if !name.is_empty() => Ok(Some(Impersonated(wanted))),
            Claims { uid: None, ref groups, ref extra, .. } if groups.is_empty() && extra.is_empty() => Ok(None),
            nameless => Err(NoUser(nameless)),
        }
    }

    fn is_only_named(&self) -> bool {
        self.0.uid.is_none() && self.0.groups.is_empty() && self.0.extra.is_empty()
    }
}

/// Claims as the message shows them: the way in which Go writes a value.
fn in_go(claims: &Claims) -> String {
    let list = |texts: &[String]| {
        let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
        format!("[]string{{{}}}", texts.join(", "))
    };
    let groups = if claims.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&claims.groups) };
    let extra: Vec<_> = claims.extra.iter().map(|(key, values)| format!("{}:{}", quoted(key), list(values))).collect();
    let extra = match extra.as_slice() {
        [] => "map[string][]string(nil)".to_owned(),
        some => format!("map[string][]string{{{}}}", some.join(", ")),
    };
    let uid = quoted(claims.uid.as_deref().unwrap_or_default());
    format!("&user.DefaultInfo{{Name:{}, UID:{uid}, Groups:{groups}, Extra:{extra}}}", quoted(&claims.name))
}

/// The same as it was written where there was only the oldest way: as the things that one wants to be.
fn references_in_go(claims: &Claims) -> String {
    let groups = claims.groups.iter().map(|group| format!("{{Group  {group}    }}"));
    let extra = claims.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
    let extra = extra.map(|(key, value)| format!("{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}"));
    let uid = claims.uid.iter().map(|uid| format!("{{UID  {uid}  {AUTHENTICATION}/v1  }}"));
    let all: Vec<String> = groups.chain(extra).chain(uid).collect();
    format!("[{}]", all.join(" "))
}

/// The ways to be allowed to act as somebody else, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A service account acts as the node that its pod is on.
    AssociatedNode,
    /// As any node.
    ArbitraryNode,
    /// As a service account.
    ServiceAccount,
    /// As somebody else.
    UserInfo,
    /// As anybody, in whatever they do.
    Unconstrained,
}

impl Way {
    const ALL: [Way; 5] =
        [Way::AssociatedNode, Way::ArbitraryNode, Way::ServiceAccount, Way::UserInfo, Way::Unconstrained];

    /// What it is called in verbs; the oldest way has no name.
    fn name(self) -> Option<&'static str> {
        match self {
            Way::AssociatedNode => Some("associated-node"),
            Way::ArbitraryNode => Some("arbitrary-node"),
            Way::ServiceAccount => Some("serviceaccount"),
            Way::UserInfo => Some("user-info"),
            Way::Unconstrained => None,
        }
    }

    /// Whether it is about this user at all.
    fn is_for(self, wanted: &Impersonated, requester: &Identity) -> bool {
        let name = &*wanted.0.name;
        match self {
            Way::AssociatedNode => {
                let own = requester.extra().iter().find(|(key, _)| key == NODE_NAME).map(|(_, values)| &**values);
                wanted.is_only_named()
                    && account(requester.name()).is_some()
                    && node(name).is_some_and(|node| matches!(own, Some([own]) if own == node))
            }
            Way::ArbitraryNode => wanted.is_only_named() && node(name).is_some(),
            Way::ServiceAccount => wanted.is_only_named() && account(name).is_some(),
            Way::UserInfo => node(name).is_none() && account(name).is_none(),
            Way::Unconstrained => true,
        }
    }
}

/// Decides who may act as whom.
#[derive(Debug)]
pub struct Impersonation {
    authorizer: Authorizer,
    /// The ways that there are.
    ways: &'static [Way],
    /// The way in which each user was allowed last, by a hash of their name. It is tried first: most users know one
    /// way only, and are told what is missing for that.
    last: Mutex<HashMap<u64, Way>>,
    hasher: RandomState,
}

impl Impersonation {
    /// One that asks this authorizer. Unless it `is_constrained`, there is only the oldest way.
    pub fn new(authorizer: Authorizer, is_constrained: bool) -> Impersonation {
        let ways: &[Way] = if is_constrained { &Way::ALL } else { &[Way::Unconstrained] };
        Impersonation { authorizer, ways, last: Mutex::default(), hasher: RandomState::new() }
    }

    /// Whether there are other ways than the oldest, which is looked at otherwise then.
    fn is_constrained(&self) -> bool {
        self.ways.len() > 1
    }

    /// What is said of a request that does not say as whom it wants to act.
    pub fn nameless(&self, NoUser(claims): &NoUser) -> String {
        match self.is_constrained() {
            true => format!("requested {} without impersonating a user name", in_go(claims)),
            false => format!("requested {} without impersonating a user", references_in_go(claims)),
        }
    }

    /// Whom the user of `asked` acts as in what they ask, if they may, and the constraint within which they may, if there
    /// is one.
    pub async fn resolve(
        &self,
        wanted: &Impersonated,
        asked: &Attributes<'_>,
    ) -> Result<(Identity, Option<String>), Forbidden> {
        let requester = self.hasher.hash_one(asked.user.name());
        let last = self.last.lock().expect("no holder of the ways panics").get(&requester).copied();
        let mut refused = None;
        for way in last.into_iter().chain(self.ways.iter().copied().filter(|way| Some(*way) != last)) {
            if !way.is_for(wanted, asked.user) {
                continue;
            }
            match self.try_way(way, wanted, asked).await {
                Ok(identity) => {
                    if last != Some(way) {
                        self.remember(requester, way);
                    }
                    return Ok((identity, way.name().map(|name| format!("impersonate:{name}"))));
                }
                Err(refusal) => {
                    refused.get_or_insert(refusal);
                }
            }
        }
        // The oldest way is for everybody, so somebody refused.
        Err(refused.unwrap_or_else(|| Forbidden::of(asked, "")))
    }

    fn remember(&self, requester: u64, way: Way) {
        let mut last = self.last.lock().expect("no holder of the ways panics");
        if last.len() >= MAX_REMEMBERED {
            last.clear();
        }
        last.insert(requester, way);
    }

    async fn try_way(&self, way: Way, wanted: &Impersonated, asked: &Attributes<'_>) -> Result<Identity, Forbidden> {
        let verb = match way.name() {
            Some(name) => {
                let verb = format!("impersonate-on:{name}:{}", asked.verb);
                self.check(&Attributes { verb: &verb, ..*asked }).await?;
                format!("impersonate:{name}")
            }
            None => "impersonate".to_owned(),
        };
        let rights = Rights { impersonation: self, user: asked.user, verb: &verb, way };
        let Impersonated(claims) = wanted;
        let mut claims = claims.clone();
        rights.check_name(&mut claims).await?;
        if self.is_constrained() {
            rights.check_uid(claims.uid.as_deref()).await?;
            rights.check_groups(&wanted.0.groups).await?;
            rights.check_extra(&claims.extra).await?;
        } else {
            rights.check_groups(&wanted.0.groups).await?;
            rights.check_extra(&claims.extra).await?;
            rights.check_uid(claims.uid.as_deref()).await?;
        }
        let own = if claims.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        let has = |group: &str| claims.groups.iter().any(|known| known == group);
        if !has(own) && !has(UNAUTHENTICATED) {
            claims.groups.push(own.to_owned());
        }
        Ok(Identity::exactly(claims))
    }

    async fn check(&self, attributes: &Attributes<'_>) -> Result<(), Forbidden> {
        match self.authorizer.authorize_request(attributes).await {
            Decision::Allow => Ok(()),
            Decision::Forbidden(refusal) => {
                let reason = if self.is_constrained() { refusal.in_full() } else { refusal.reason.clone() };
                Err(Forbidden::of(attributes, &reason))
            }
        }
    }
}

/// The rights that one way asks for.
struct Rights<'a> {
    impersonation: &'a Impersonation,
    user: &'a Identity,
    verb: &'a str,
    way: Way,
}

impl Rights<'_> {
    fn is_constrained(&self) -> bool {
        self.way != Way::Unconstrained
    }

    /// The group in which users and groups are, which were of the core group once.
    fn group(&self) -> &'static str {
        if self.is_constrained() { AUTHENTICATION } else { "" }
    }

    fn attributes<'b>(&'b self, resource: ResourceAttributes<'b>) -> Attributes<'b> {
        Attributes { user: self.user, verb: self.verb, path: "", resource: Some(resource) }
    }

    async fn check(
        &self,
        resource: &str,
        group: &str,
        subresource: Option<&str>,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), Forbidden> {
        let version = "v1";
        let resource =
            ResourceAttributes { group, version, resource, subresource, namespace, name: Some(name), selectors: None };
        self.impersonation.check(&self.attributes(resource)).await
    }

    /// Checks the name, and gives nodes and service accounts the groups that they have.
    async fn check_name(&self, claims: &mut Claims) -> Result<(), Forbidden> {
        let name = claims.name.clone();
        if let Some((namespace, name)) = account(&name) {
            if claims.groups.is_empty() {
                claims.groups =
                    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
            }
            return self.check("serviceaccounts", self.group(), None, Some(namespace), name).await;
        }
        match node(&name).filter(|_| self.is_constrained()) {
            Some(node) => {
                claims.groups = vec![NODES.to_owned()];
                // Which node it is was seen before.
                let name = if self.way == Way::AssociatedNode { "*" } else { node };
                self.check("nodes", self.group(), None, None, name).await
            }
            None => self.check("users", self.group(), None, None, &name).await,
        }
    }

    async fn check_uid(&self, uid: Option<&str>) -> Result<(), Forbidden> {
        match uid {
            Some(uid) => self.check("uids", AUTHENTICATION, None, None, uid).await,
            None => Ok(()),
        }
    }

    async fn check_groups(&self, groups: &[String]) -> Result<(), Forbidden> {
        let refuse = |name, why: &str| {
            let resource = ResourceAttributes {
                group: self.group(),
                version: "v1",
                resource: "groups",
                name,
                ..ResourceAttributes::default()
            };
            Err(Forbidden::of(&self.attributes(resource), why))
        };
        if self.is_constrained() {
            if groups.iter().any(String::is_empty) {
                return refuse(None, "impersonating the empty string group is not allowed");
            }
            if groups.iter().any(|group| group == MASTERS) {
                return refuse(Some(MASTERS), "impersonating the system:masters group is not allowed");
            }
            if groups.len() >= MANY && self.check("groups", self.group(), None, None, "*").await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            self.check("groups", self.group(), None, None, group).await?;
        }
        Ok(())
    }

    async fn check_extra(&self, extra: &[(String, Vec<String>)]) -> Result<(), Forbidden> {
        let resource = "userextras";
        if self.is_constrained() {
            if let Some(why) = extra.iter().find_map(|(key, values)| problem_of_extra(key, values)) {
                let resource =
                    ResourceAttributes { group: AUTHENTICATION, version: "v1", resource, ..Default::default() };
                return Err(Forbidden::of(&self.attributes(resource), &why));
            }
            let count: usize = extra.iter().map(|(_, values)| values.len()).sum();
            if (extra.len() >= MANY || count >= MANY)
                && self.check(resource, AUTHENTICATION, Some("*"), None, "*").await.is_ok()
            {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.check(resource, AUTHENTICATION, Some(key), None, value).await?;
            }
        }
        Ok(())
    }
}

/// What the narrower ways do not allow of further facts.
fn problem_of_extra(key: &str, values: &[String]) -> Option<String> {
    let root = FieldPath::root("extra");
    let problems = domain_prefixed_path(&root.child("key"), key);
    Some(if key.is_empty() {
        "impersonating the empty string key in extra is not allowed".to_owned()
    } else if !problems.is_empty() {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let problems = if problems.len() == 1 { problems.concat() } else { format!("[{}]", problems.join(", ")) };
        format!("impersonating an invalid key in extra is not allowed: {problems}")
    } else if key != key.to_lowercase() {
        format!("impersonating a non-lowercase key in extra is not allowed: {}", quoted(key))
    } else if values.is_empty() {
        "impersonating empty values in extra is not allowed".to_owned()
    } else if values.iter().any(String::is_empty) {
        "impersonating the empty string value in extra is not allowed".to_owned()
    } else {
        return None;
    })
}

/// The namespace and name of the service account that this user is.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let is_good = dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty();
    is_good.then_some((namespace, name))
}

/// The name of the node that this user is.
fn node(user: &str) -> Option<&str> {
    user.strip_prefix("system:node:").filter(|name| dns1123_subdomain(name).is_empty())
}

#[cfg(test)]
mod tests;
