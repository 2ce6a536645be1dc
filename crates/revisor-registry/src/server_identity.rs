//! [`ServerIdentity`]: the Lease by which a server tells others that it is there, and what others tell by theirs.
//!
//! Names, labels and times are those of the original. Beside them a server says here which release it behaves as and
//! which it keeps compatible with, so that servers that get too far apart can be seen.

use std::time::Duration;

use revisor_object::{Object, Value, Warnings};
use revisor_schema::{Precision, format_timestamp};
use revisor_version::{Component, ComponentVersion, EffectiveVersion};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::{Decoded, DeleteOptions, PatchKind, Place, Registry, RegistryError};

const NAMESPACE: &str = "kube-system";

/// Tells the Leases of servers from others.
const IDENTITY: &str = "apiserver.kubernetes.io/identity";
const PROGRAM: &str = Component::KubeApiserver.name();
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The releases that a server behaves as and keeps compatible with. Beyond the original.
const EMULATION: &str = "versioning.revisor.dev/emulation-version";
const MIN_COMPATIBILITY: &str = "versioning.revisor.dev/min-compatibility-version";

/// For how long a server is believed to be there after it said so.
const DURATION: Duration = Duration::from_secs(3600);

/// How long one of its writes may take: less than until the next one is due, also while the server stops.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many servers are told of.
const MAX_SERVERS: usize = 100;

/// Who a server is among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    name: String,
    holder: String,
    hostname: String,
    version: EffectiveVersion,
}

/// A server that says, or said, that it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownServer {
    /// The name of its Lease: the same for every server of one machine.
    pub name: String,
    /// Its machine.
    pub hostname: String,
    /// This very process; empty if it does not say.
    pub holder: String,
    /// When it last said that it is there.
    pub renewed: String,
    /// The release that it behaves as, if it says so.
    pub version: Option<ComponentVersion>,
}

impl ServerIdentity {
    /// The identity of a server of this version on the machine with this name. `process` tells it from those that ran
    /// there before.
    pub fn new(hostname: &str, process: &str, version: EffectiveVersion) -> ServerIdentity {
        let name = format!("apiserver-{}", identity_hash(hostname));
        ServerIdentity { holder: format!("{name}_{process}"), name, hostname: hostname.to_owned(), version }
    }

    /// The name of its Lease.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn lease(&self, now: OffsetDateTime) -> Object {
        let mut lease = Object::new();
        let metadata = lease.object_mut("metadata");
        metadata.insert("name", self.name.as_str());
        let labels = metadata.object_mut("labels");
        labels.insert(IDENTITY, PROGRAM);
        labels.insert(HOSTNAME, self.hostname.as_str());
        let annotations = metadata.object_mut("annotations");
        annotations.insert(EMULATION, self.version.emulation().to_string());
        annotations.insert(MIN_COMPATIBILITY, self.version.min_compatibility().to_string());
        let spec = lease.object_mut("spec");
        spec.insert("holderIdentity", self.holder.as_str());
        spec.insert("leaseDurationSeconds", Value::from(DURATION.as_secs() as i64));
        spec.insert("renewTime", format_timestamp(now, Precision::Microseconds));
        lease
    }
}

/// What the original makes of the name of a machine: each part with its length before it, hashed, in base 32.
fn identity_hash(hostname: &str) -> String {
    let mut hash = Sha256::new();
    for part in [hostname, PROGRAM] {
        hash.update(u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    let bits = bytes[..16].iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
    // 128 bits are 25 letters of five bits each and one of three, which zeroes fill up.
    let letters = (0..26).map(|at| {
        let digit = if at < 25 { bits >> (123 - 5 * at) } else { bits << 2 } & 31;
        char::from(b"abcdefghijklmnopqrstuvwxyz234567"[digit as usize])
    });
    letters.collect()
}

impl Registry {
    /// Says that the server is there, in place of those that ran on its machine before.
    pub async fn take_identity(&self, identity: &ServerIdentity) -> Result<(), RegistryError> {
        self.give_up_identity(identity).await?;
        self.renew_identity(identity).await
    }

    /// Says that the server is still there.
    pub async fn renew_identity(&self, identity: &ServerIdentity) -> Result<(), RegistryError> {
        let Some(resource) = self.catalog.resource("coordination.k8s.io", "v1", "leases") else { return Ok(()) };
        let lease = identity.lease(self.environment.now());
        let place = Place { resource, namespace: Some(NAMESPACE), name: Some(&identity.name) };
        let patch = Value::from(lease.clone()).to_json();
        match self.patch(place, PatchKind::Merge, patch.as_bytes(), self.own.options_within(PATIENCE)).await {
            Err(RegistryError::NotFound { .. }) => {}
            patched => return patched.map(|_| ()),
        }
        let place = Place { name: None, ..place };
        let lease = Decoded { object: lease, warnings: Warnings::default() };
        self.create(place, lease, self.own.options_within(PATIENCE)).await.map(|_| ())
    }

    /// Says that the server is not there any more.
    pub async fn give_up_identity(&self, identity: &ServerIdentity) -> Result<(), RegistryError> {
        self.remove_identity(&identity.name).await
    }

    /// Removes the Leases of servers that are gone without saying so.
    pub async fn remove_lost_identities(&self) -> Result<(), RegistryError> {
        let now = self.environment.now();
        for lease in self.identities().filter(|lease| is_expired(lease, now)) {
            self.remove_identity(text(&lease, &["metadata", "name"])).await?;
        }
        Ok(())
    }

    /// The servers that say that they are there, by name.
    pub fn known_servers(&self) -> Vec<KnownServer> {
        let now = self.environment.now();
        let known = self.identities().filter(|lease| !is_expired(lease, now)).map(|lease| {
            let release = text(&lease, &["metadata", "annotations", EMULATION]).parse().ok();
            KnownServer {
                name: text(&lease, &["metadata", "name"]).to_owned(),
                hostname: text(&lease, &["metadata", "labels", HOSTNAME]).to_owned(),
                holder: text(&lease, &["spec", "holderIdentity"]).to_owned(),
                renewed: text(&lease, &["spec", "renewTime"]).to_owned(),
                version: release.map(|release| ComponentVersion { component: Component::KubeApiserver, release }),
            }
        });
        known.take(MAX_SERVERS).collect()
    }

    fn identities(&self) -> impl Iterator<Item = Object> {
        let leases = self.all_stored("coordination.k8s.io", "v1", "leases", Some(NAMESPACE));
        leases.into_iter().filter(|lease| text(lease, &["metadata", "labels", IDENTITY]) == PROGRAM)
    }

    async fn remove_identity(&self, name: &str) -> Result<(), RegistryError> {
        let Some(resource) = self.catalog.resource("coordination.k8s.io", "v1", "leases") else { return Ok(()) };
        let place = Place { resource, namespace: Some(NAMESPACE), name: Some(name) };
        match self.delete_for(place, &DeleteOptions::default(), self.own.options_within(PATIENCE)).await {
            Ok(_) | Err(RegistryError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether a server has not been heard of for longer than it said. One that says nothing of that is no server.
fn is_expired(lease: &Object, now: OffsetDateTime) -> bool {
    let renewed = OffsetDateTime::parse(text(lease, &["spec", "renewTime"]), &Rfc3339);
    let duration = lease.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_i64);
    let (Ok(renewed), Some(duration)) = (renewed, duration) else { return true };
    renewed.saturating_add(time::Duration::seconds(duration)) < now
}

fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_named_as_the_original_names_them() {
        for (hostname, want) in
            [("vm", "apiserver-wlv32tlttr4jl3gtroqexyxapa"), ("node-1.example", "apiserver-blxochjixcqnwp4jsg26w6etfu")]
        {
            let version = EffectiveVersion::of(revisor_version::Release { major: 1, minor: 36 });
            let identity = ServerIdentity::new(hostname, "p", version);
            assert_eq!((identity.name(), identity.holder.as_str()), (want, format!("{want}_p").as_str()), "{hostname}");
        }
    }

    #[test]
    fn servers_that_are_not_heard_of_are_lost() {
        let now = OffsetDateTime::from_unix_timestamp(10_000).expect("a time");
        for (renewed, duration, want) in [
            (Some("1970-01-01T02:46:30.000000Z"), Some(3600), false),
            (Some("1970-01-01T01:46:40.000000Z"), Some(3600), false),
            (Some("1970-01-01T01:46:39.000000Z"), Some(3600), true),
            (Some("1970-01-01T02:46:30.000000Z"), Some(i64::MAX), false),
            (Some("1970-01-01T02:46:30.000000Z"), None, true),
            (None, Some(3600), true),
        ] {
            let mut lease = Object::new();
            let spec = lease.object_mut("spec");
            if let Some(renewed) = renewed {
                spec.insert("renewTime", renewed);
            }
            if let Some(duration) = duration {
                spec.insert("leaseDurationSeconds", duration);
            }
            assert_eq!(is_expired(&lease, now), want, "{renewed:?} {duration:?}");
        }
    }
}
