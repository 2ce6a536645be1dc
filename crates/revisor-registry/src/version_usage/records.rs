//! What servers write down of who asked for which versions: a record for each definition and server.
//!
//! Nobody is served records; they are read by the servers that share a store and told as one report. They are written
//! at a bounded pace, and only where something was counted: what a server that is killed had counted since the last
//! time is lost, and nothing else. A record says which definition it is about, so that one that is left behind by
//! another definition of the same name counts for nothing.

use futures_util::{StreamExt, stream};
use revisor_catalog::Verb;
use revisor_object::{Object, Value};
use revisor_schema::{Precision, format_timestamp};
use revisor_store::{Change, Draft, Expect, Key, StoreError, Write};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Client, Usage, UsedVersion, VersionUsage, locked};
use crate::{Decoded, Registry, RegistryError};

/// What the keys of all records begin with. No resource is stored there: groups of custom resources have a dot.
pub(crate) const RECORDS: &str = "/registry/versionusage/";

/// How many servers of a definition are remembered: those that counted last. Servers come and go with their folders.
const MAX_SERVERS: usize = 32;

/// How many records are written at once: they share a sync of the disk.
const AT_ONCE: usize = 64;

/// What one server counted for one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// The identity of the definition.
    pub(super) definition: String,
    pub(super) usage: Usage,
}

impl Record {
    fn encode(&self) -> String {
        let mut record = Object::new();
        record.insert("definition", self.definition.as_str());
        record.insert("since", moment(self.usage.since));
        record.insert("versions", self.usage.versions.iter().map(encode_version).collect::<Vec<_>>());
        Value::Object(record).to_json()
    }

    /// Nothing if these are not the bytes of a record: who asked is worth less than that the server starts.
    fn decode(bytes: &[u8]) -> Option<Record> {
        let record = Decoded::stored(bytes).ok()?;
        let versions = record.array("versions").iter().map(|version| decode_version(version.as_object()?));
        Some(Record {
            definition: record.str("definition")?.to_owned(),
            usage: Usage { since: decode_moment(&record, "since")?, versions: versions.collect::<Option<_>>()? },
        })
    }
}

fn encode_version(used: &UsedVersion) -> Value {
    let mut version = Object::new();
    version.insert("name", used.version.as_str());
    version.insert("requests", count(used.requests));
    version.insert("lastRequestTime", moment(used.last));
    let clients = used.clients.iter().map(|client| {
        let mut shown = Object::new();
        shown.insert("userAgent", client.agent.as_str());
        shown.insert("requests", count(client.requests));
        shown.insert("lastRequestTime", moment(client.last));
        shown.insert("lastVerb", client.verb.as_str());
        Value::Object(shown)
    });
    version.insert("clients", clients.collect::<Vec<_>>());
    Value::Object(version)
}

fn decode_version(version: &Object) -> Option<UsedVersion> {
    let client = |client: &Object| {
        Some(Client {
            agent: client.str("userAgent")?.to_owned(),
            requests: decode_count(client)?,
            last: decode_moment(client, "lastRequestTime")?,
            verb: Verb::parse(client.str("lastVerb")?)?,
        })
    };
    let clients = version.array("clients").iter().map(|known| client(known.as_object()?));
    Some(UsedVersion {
        version: version.str("name")?.to_owned(),
        requests: decode_count(version)?,
        last: decode_moment(version, "lastRequestTime")?,
        clients: clients.collect::<Option<_>>()?,
    })
}

fn count(requests: u64) -> Value {
    Value::from(i64::try_from(requests).unwrap_or(i64::MAX))
}

fn decode_count(counted: &Object) -> Option<u64> {
    counted.get("requests").and_then(Value::as_i64).and_then(|requests| u64::try_from(requests).ok())
}

fn moment(time: OffsetDateTime) -> Value {
    Value::from(format_timestamp(time, Precision::Microseconds))
}

fn decode_moment(object: &Object, name: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(object.str(name)?, &Rfc3339).ok()
}

/// What the keys of the records on a resource begin with: `/registry/example.com/widgets/` is the prefix of its own.
fn records_on(prefix: &str) -> String {
    format!("{RECORDS}{}", prefix.strip_prefix("/registry/").unwrap_or(prefix))
}

impl VersionUsage {
    /// What a server has written down about a resource.
    pub(super) fn record(&self, prefix: &str, server: &str) -> Option<Record> {
        let item = self.records.get(&format!("{}{server}", records_on(prefix)))?;
        Record::decode(item.bytes())
    }

    /// What the other servers have written down about a resource.
    pub(super) fn others(&self, prefix: &str) -> impl Iterator<Item = Record> {
        let (snapshot, on) = (self.records.snapshot(), records_on(prefix));
        let own = format!("{on}{}", self.server);
        let others = snapshot.range(&on, None).filter(|item| item.key().as_str() != own);
        others.filter_map(|item| Record::decode(item.bytes())).collect::<Vec<_>>().into_iter()
    }

    /// What is to be written down where, with what was counted since the last time. It counts as written.
    #[cfg(test)]
    pub(super) fn unwritten(&self) -> Vec<(Key, String)> {
        self.take_news().into_iter().map(|(prefix, record)| (self.key(&prefix), record.encode())).collect()
    }

    fn key(&self, prefix: &str) -> Key {
        Key::new(format!("{}{}", records_on(prefix), self.server))
    }

    /// What was counted since it was last written down, by the keys of the resources. It counts as written.
    fn take_news(&self) -> Vec<(String, Record)> {
        let resources = self.resources.read().expect("no holder of the resources panics");
        let mut news = Vec::new();
        for (prefix, counted) in resources.iter() {
            let mut counted = locked(counted);
            if std::mem::take(&mut counted.has_news) {
                let record = Record { definition: counted.definition.clone(), usage: counted.usage.clone() };
                news.push((prefix.clone(), record));
            }
        }
        news
    }

    fn note_unwritten(&self, prefix: &str) {
        if let Some(counted) = self.counted(prefix) {
            locked(&counted).has_news = true;
        }
    }

    /// The keys of records that nobody needs: on what is not defined any more, and on others those of the servers that
    /// counted longest ago, if they are many.
    pub(super) fn useless(&self) -> Vec<Key> {
        let snapshot = self.records.snapshot();
        let mut useless = Vec::new();
        let mut kept: Vec<(String, OffsetDateTime, Key)> = Vec::new();
        for item in snapshot.range(RECORDS, None) {
            let key = item.key();
            let on = key.as_str().rsplit_once('/').map_or("", |(on, _)| on);
            let prefix = format!("/registry/{}/", on.strip_prefix(RECORDS).unwrap_or(on));
            let record = Record::decode(item.bytes());
            let definition = self.counted(&prefix).map(|counted| locked(&counted).definition.clone());
            match record.filter(|record| Some(&record.definition) == definition.as_ref()) {
                Some(record) => {
                    let last = record.usage.versions.iter().map(|used| used.last).max();
                    kept.push((prefix, last.unwrap_or(record.usage.since), key.clone()));
                }
                None => useless.push(key.clone()),
            }
        }
        kept.sort_by(|one, other| (&one.0, other.1).cmp(&(&other.0, one.1)));
        let of_one = kept.chunk_by(|one, other| one.0 == other.0);
        useless.extend(of_one.flat_map(|kept| kept.iter().skip(MAX_SERVERS)).map(|(_, _, key)| key.clone()));
        useless
    }
}

impl Registry {
    /// Writes down who asked for which versions, as far as it was not yet.
    pub async fn write_version_usage(&self) -> Result<(), RegistryError> {
        let writes = stream::iter(self.usage.take_news()).map(async |(prefix, record)| {
            let change = Change::Put(Draft::opaque(record.encode()));
            let key = self.usage.key(&prefix);
            let written = self.cache.write(Write { key, expect: Expect::Anything, change }).await;
            if written.is_err() {
                self.usage.note_unwritten(&prefix);
            }
            written
        });
        let written: Vec<_> = writes.buffer_unordered(AT_ONCE).collect().await;
        written.into_iter().try_for_each(|written| written.map(drop)).map_err(RegistryError::from)
    }

    /// Removes what servers have written down that nobody needs any more.
    pub async fn tidy_version_usage(&self) -> Result<(), RegistryError> {
        self.remove_records(self.usage.useless()).await
    }

    /// Removes what was written down about a resource that is gone.
    pub(crate) async fn forget_version_usage(&self, prefix: &str) -> Result<(), RegistryError> {
        let snapshot = self.usage.records.snapshot();
        let records = snapshot.range(&records_on(prefix), None).map(|item| item.key().clone()).collect();
        self.remove_records(records).await
    }

    async fn remove_records(&self, keys: Vec<Key>) -> Result<(), RegistryError> {
        for key in keys {
            let write = Write { key, expect: Expect::Anything, change: Change::Delete };
            match self.cache.write(write).await {
                // Another server may have been faster.
                Ok(_) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_anything_else_is_none() {
        let at = |micros: i64| OffsetDateTime::UNIX_EPOCH + time::Duration::microseconds(micros);
        let client = |agent: &str, verb| Client { agent: agent.to_owned(), requests: 7, last: at(1_234_567), verb };
        let clients = vec![client("", Verb::DeleteCollection), client("ä \"x\"/1", Verb::Watch)];
        let used = UsedVersion { version: "v1".to_owned(), requests: 9, last: at(1_234_567), clients };
        let usage = Usage { since: at(1), versions: vec![used] };
        let record = Record { definition: "u".to_owned(), usage };
        assert_eq!(Record::decode(record.encode().as_bytes()), Some(record));
        for text in ["", "[]", "{}", r#"{"definition":"u"}"#, r#"{"definition":"u","since":"x","versions":[]}"#] {
            assert_eq!(Record::decode(text.as_bytes()), None, "{text}");
        }
    }
}
