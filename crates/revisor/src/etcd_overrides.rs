//! [`Overrides`]: the resources that have an etcd of their own, as `--etcd-servers-overrides` names them.

use std::collections::BTreeSet;

use revisor_catalog::Catalog;

/// Stands for all resources of a group (upstream: `getAllResourcesAlias`).
const ALL: &str = "*";

/// Groups that are served by other parts of the original, which know of no overrides (upstream: `SimpleStorageFactory`).
const LEFT_OUT: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// A name under which others are stored. What is said of it counts for nothing: they are found by the other one
/// (upstream: `AddCohabitatingResources`).
const COHABITING: (&str, &str) = ("events.k8s.io", "events");

/// Keys that are no objects, and the name by which they are moved: ports go where services are.
const BESIDE: [(&str, &str, &str); 2] =
    [("", "services", "/registry/ranges/"), ("", "apiServerIPInfo", "/registry/masterleases/")];

/// What is wrong with an override.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon \
     separated"
)]
pub(crate) struct InvalidOverride;

/// What was given, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overrides(Vec<Override>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Override {
    group: String,
    resource: String,
    servers: Vec<String>,
}

/// An etcd that some resources have for themselves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OwnEtcd {
    /// The URLs of its members.
    pub(crate) servers: Vec<String>,
    /// What the keys begin with that it has.
    pub(crate) prefixes: Vec<String>,
}

impl Overrides {
    /// Reads overrides (upstream: `ParseEtcdServersOverrides`).
    pub(crate) fn parse(given: &[String]) -> Result<Overrides, InvalidOverride> {
        given.iter().map(|text| Override::parse(text).ok_or(InvalidOverride)).collect::<Result<_, _>>().map(Overrides)
    }

    /// The etcds that are named, in the order in which they first are. However many resources have the same members,
    /// in whichever order, it is one.
    pub(crate) fn etcds(&self, catalog: &Catalog) -> Vec<OwnEtcd> {
        let mut etcds: Vec<(BTreeSet<&String>, OwnEtcd)> = Vec::new();
        for servers in self.0.iter().map(|known| &known.servers) {
            let members = servers.iter().collect();
            if !etcds.iter().any(|(known, _)| *known == members) {
                etcds.push((members, OwnEtcd { servers: servers.clone(), prefixes: Vec::new() }));
            }
        }
        let kinds =
            catalog.stored_kinds().filter(|kind| !LEFT_OUT.contains(&&*kind.group) && kind.name() != COHABITING);
        let objects = kinds.map(|kind| (kind.name(), &*kind.prefix));
        let all = objects.chain(BESIDE.iter().map(|(group, resource, prefix)| ((*group, *resource), *prefix)));
        for ((group, resource), prefix) in all {
            let Some(place) = self.place_of(group, resource) else { continue };
            let members: BTreeSet<&String> = place.servers.iter().collect();
            let known = etcds.iter_mut().find(|(known, _)| *known == members);
            if let Some((_, etcd)) = known.filter(|(_, etcd)| !etcd.prefixes.iter().any(|known| known == prefix)) {
                etcd.prefixes.push(prefix.to_owned());
            }
        }
        etcds.into_iter().map(|(_, etcd)| etcd).collect()
    }

    /// Names that no resource has. They are taken, as by the original, and move nothing.
    pub(crate) fn unknown(&self, catalog: &Catalog) -> Vec<String> {
        let names: BTreeSet<(&str, &str)> = catalog.stored_kinds().map(|kind| kind.name()).collect();
        let is_known = |known: &&Override| match (&*known.group, &*known.resource) {
            (group, _) if LEFT_OUT.contains(&group) => false,
            (group, ALL) => names.iter().any(|(known, _)| *known == group),
            name => (names.contains(&name) && name != COHABITING) || BESIDE.iter().any(|row| (row.0, row.1) == name),
        };
        let unknown = self.0.iter().filter(|known| !is_known(known));
        unknown.map(|known| format!("{}/{}", known.group, known.resource)).collect()
    }

    /// The override that counts for a resource: the last that names it, or else the last of its whole group.
    fn place_of(&self, group: &str, resource: &str) -> Option<&Override> {
        let named = |name: &str| self.0.iter().rfind(|known| known.group == group && known.resource == name);
        named(resource).or_else(|| named(ALL))
    }
}

impl Override {
    fn parse(text: &str) -> Option<Override> {
        let (name, servers) = text.split_once('#').filter(|(_, servers)| !servers.contains('#'))?;
        let (group, resource) = name.split_once('/').filter(|(_, resource)| !resource.contains('/'))?;
        let servers: Vec<String> = servers.split(';').map(str::to_owned).collect();
        let is_good = servers.iter().all(|server| !server.is_empty());
        is_good.then(|| Override { group: group.to_owned(), resource: resource.to_owned(), servers })
    }
}

#[cfg(test)]
mod tests {
    use revisor_catalog::CatalogOptions;

    use super::*;

    fn etcds(given: &[&str]) -> Vec<(Vec<String>, Vec<String>)> {
        let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
        let catalog = Catalog::build(&CatalogOptions::default()).expect("builds");
        let etcds = Overrides::parse(&given).expect("are well formed").etcds(&catalog);
        etcds.into_iter().map(|etcd| (etcd.servers, etcd.prefixes)).collect()
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn what_is_not_of_the_form_is_refused_in_the_words_of_the_original() {
        for bad in ["/events/http://a:1", "events#http://a:1", "/events#", "/events#a;", "/a/b#c", "/a#b#c", ""] {
            assert_eq!(Overrides::parse(&[bad.to_owned()]), Err(InvalidOverride), "{bad}");
        }
        assert!(Overrides::parse(&texts(&["/events#http://a:1;http://b:2", "apps/deployments#c"])).is_ok());
    }

    #[test]
    fn resources_with_the_same_members_share_an_etcd() {
        let shared = etcds(&["/events#a;b", "apps/deployments#b;a", "/pods#c"]);
        let of_both = texts(&["/registry/events/", "/registry/deployments/"]);
        let mut found = shared[0].1.clone();
        found.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!((shared.len(), &shared[0].0, found), (2, &texts(&["a", "b"]), of_both));
        assert_eq!(shared[1], (texts(&["c"]), texts(&["/registry/pods/"])));
    }

    #[test]
    fn a_name_counts_before_its_group_and_the_last_of_the_same_name() {
        let of_group = etcds(&["apps/*#a", "apps/deployments#b", "apps/deployments#c"]);
        assert!(of_group[0].1.contains(&"/registry/replicasets/".to_owned()));
        assert_eq!(of_group[1], (texts(&["b"]), Vec::new()));
        assert_eq!(of_group[2], (texts(&["c"]), texts(&["/registry/deployments/"])));
    }

    #[test]
    fn ports_go_with_services_and_definitions_stay() {
        let of_services = etcds(&["/services#a"]);
        assert_eq!(of_services[0].1, texts(&["/registry/services/specs/", "/registry/ranges/"]));
        for unmoved in ["events.k8s.io/events", "apiextensions.k8s.io/*", "/nothing"] {
            assert_eq!(etcds(&[&format!("{unmoved}#a")]), [(texts(&["a"]), Vec::new())], "{unmoved}");
        }
    }
}
