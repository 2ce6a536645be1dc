//! One channel and the objects that it alone writes, so that no two workers ever conflict.

use std::sync::Arc;

use anyhow::{Result, ensure};

use crate::channel::{Channel, Channels};
use crate::connection::Request;
use crate::encoding::Encoding;
use crate::objects::{self, Item, Namespace, PAYLOAD};

/// The form in which a table can be asked for.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// The form of what is applied. JSON is YAML.
const APPLIED: &str = "application/apply-patch+yaml";

/// Objects per page of a paged list.
const PAGE: u32 = 500;

/// How much of either end of a page is searched for its metadata.
const METADATA: usize = 4096;

/// One request of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Create the worker's next object, up to its end.
    Create,
    /// Read one of the worker's objects, in turn.
    Get,
    /// Replace one of the worker's objects, in turn, at its newest revision.
    Update,
    /// Apply one of the worker's objects, in turn, with a change: server-side, in the name of one manager.
    Apply,
    /// List all objects.
    List,
    /// List all objects as a table, as kubectl does.
    Table,
    /// Read the next page of a list, from the start again behind the last.
    Page,
    /// Delete the worker's newest object, as long as it has more than it is to keep.
    Delete,
}

/// A worker, with everything it needs to go on.
pub(crate) struct Worker {
    channel: Channel,
    namespace: Arc<Namespace>,
    items: Vec<Item>,
    /// The next object to create, and the distance to the one after it.
    next: u32,
    stride: u32,
    /// Where creating stops, and how many objects deleting leaves.
    end: u32,
    keep: usize,
    /// The item whose turn it is, and a count of all turns.
    cursor: usize,
    turn: u64,
    /// Where the walk over pages stands, and what it has read since its start.
    token: String,
    walked: u64,
    response: Vec<u8>,
}

impl Worker {
    /// Worker number `first` of `stride` workers, which creates every `stride`-th object.
    pub(crate) async fn connect(
        channels: &Channels,
        namespace: &Arc<Namespace>,
        first: u32,
        stride: u32,
    ) -> Result<Self> {
        Ok(Self {
            channel: channels.open().await?,
            namespace: namespace.clone(),
            items: Vec::new(),
            next: first,
            stride,
            end: 0,
            keep: 0,
            cursor: 0,
            turn: 0,
            token: String::new(),
            walked: 0,
            response: Vec::new(),
        })
    }

    /// Objects that this worker has created and not deleted.
    pub(crate) fn items(&self) -> usize {
        self.items.len()
    }

    /// Forgets where a walk over pages stood when the time of its phase was up. By the next phase its snapshot may be
    /// gone.
    pub(crate) fn start_walk(&mut self) {
        self.token.clear();
        self.walked = 0;
    }

    /// Lets the worker create its share of the objects below `end`.
    pub(crate) fn create_up_to(&mut self, end: u32) {
        self.end = end;
    }

    /// Lets the worker delete all but this many of its objects.
    pub(crate) fn delete_down_to(&mut self, keep: usize) {
        self.keep = keep;
    }

    /// Does one operation and says how many bytes came back; `None` if there is nothing left to do. `live` is how many
    /// objects a list must show.
    pub(crate) async fn step(&mut self, operation: Operation, live: u64) -> Result<Option<u64>> {
        match operation {
            Operation::Create => {
                if self.next >= self.end {
                    return Ok(None);
                }
                let index = self.next;
                let encoding = self.namespace.encoding;
                let body = encoding.write(self.namespace.object(index, 0, None));
                let path = self.namespace.collection.clone();
                let revision = self.write("POST", &path, encoding.media_type(), &body).await?;
                self.items.push(Item { index, revision });
                self.next += self.stride;
            }
            Operation::Get => {
                let Some(item) = self.take_turn() else { return Ok(None) };
                let path = self.namespace.path(self.items[item].index);
                self.ask("GET", &path).await?;
            }
            Operation::Update => {
                let Some(item) = self.take_turn() else { return Ok(None) };
                let Item { index, revision } = self.items[item];
                let (method, media_type, body) = self.namespace.change(index, self.turn, revision);
                let path = self.namespace.path(index);
                self.items[item].revision = self.write(method, &path, media_type, &body).await?;
            }
            Operation::Apply => {
                let Some(item) = self.take_turn() else { return Ok(None) };
                let Item { index, .. } = self.items[item];
                // Whoever created the object gives way the first time.
                let path = format!("{}?fieldManager=bench&force=true", self.namespace.path(index));
                let body = self.namespace.object(index, self.turn, None);
                self.items[item].revision = self.write("PATCH", &path, APPLIED, body.as_bytes()).await?;
            }
            Operation::Delete => {
                if self.items.len() <= self.keep {
                    return Ok(None);
                }
                let Some(item) = self.items.pop() else { return Ok(None) };
                let path = self.namespace.path(item.index);
                self.ask("DELETE", &path).await?;
            }
            Operation::List => return self.list(live, None).await.map(Some),
            Operation::Table => return self.list(live, Some(TABLE)).await.map(Some),
            Operation::Page => return self.page(live).await.map(Some),
        }
        Ok(Some(self.response.len() as u64))
    }

    /// The revision that the collection is at.
    pub(crate) async fn revision(&mut self) -> Result<u64> {
        let path = format!("{}?limit=1", self.namespace.collection);
        self.ask("GET", &path).await?;
        objects::list_revision(self.namespace.encoding, &self.response)
    }

    /// A request in JSON, whatever the load is sent and read as.
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let json = Encoding::Json.media_type();
        self.send(Request { method, path, accepts: json, media_type: json, body: body.as_bytes() }).await
    }

    /// A request of the load without a body.
    async fn ask(&mut self, method: &str, path: &str) -> Result<()> {
        let accepts = self.namespace.encoding.media_type();
        self.send(Request { method, path, accepts, media_type: accepts, body: b"" }).await
    }

    /// The object at a path.
    pub(crate) async fn read(&mut self, path: &str) -> Result<serde_json::Value> {
        self.call("GET", path, "").await?;
        Ok(serde_json::from_slice(&self.response)?)
    }

    /// Lets objects be stored in another version of their definition.
    pub(crate) async fn store_as(&mut self, definition: &str, storage: &str) -> Result<()> {
        let mut defined = self.read(definition).await?;
        for version in defined["spec"]["versions"].as_array_mut().into_iter().flatten() {
            version["storage"] = (version["name"] == storage).into();
        }
        self.call("PUT", definition, &defined.to_string()).await
    }

    async fn send(&mut self, request: Request<'_>) -> Result<()> {
        self.response.clear();
        let Self { channel, response, .. } = self;
        channel.call(&request, &mut |bytes| response.extend_from_slice(bytes)).await
    }

    async fn write(&mut self, method: &str, path: &str, media_type: &str, body: &[u8]) -> Result<u64> {
        let encoding = self.namespace.encoding;
        self.send(Request { method, path, accepts: encoding.media_type(), media_type, body }).await?;
        objects::revision(encoding, &self.response)
    }

    /// The whole list, counted and thrown away: it may be larger than what a client should keep.
    async fn list(&mut self, live: u64, form: Option<&str>) -> Result<u64> {
        let whole = self.namespace.encoding.media_type();
        let request = Request::get(&self.namespace.collection, form.unwrap_or(whole));
        let mut bytes = 0;
        self.channel.call(&request, &mut |piece| bytes += piece.len() as u64).await?;
        // A table shows less of each object.
        ensure_complete(bytes, if form.is_some() { live / 4 } else { live })?;
        Ok(bytes)
    }

    async fn page(&mut self, live: u64) -> Result<u64> {
        let mut path = format!("{}?limit={PAGE}", self.namespace.collection);
        if !self.token.is_empty() {
            path.push_str("&continue=");
            path.extend(self.token.bytes().map(escape));
        }
        self.ask("GET", &path).await?;
        let bytes = self.response.len() as u64;
        self.walked += bytes;
        let head = &self.response[..self.response.len().min(METADATA)];
        let tail = &self.response[self.response.len().saturating_sub(METADATA)..];
        self.token = objects::continue_token(self.namespace.encoding, [head, tail]).unwrap_or_default().to_owned();
        if self.token.is_empty() {
            ensure_complete(self.walked, live)?;
            self.walked = 0;
        }
        Ok(bytes)
    }

    fn take_turn(&mut self) -> Option<usize> {
        let item = self.cursor.checked_rem(self.items.len())?;
        self.cursor = item + 1;
        self.turn += 1;
        Some(item)
    }
}

/// A list that leaves objects out would look fast.
fn ensure_complete(bytes: u64, live: u64) -> Result<()> {
    ensure!(bytes >= live * PAYLOAD as u64, "a list of {live} objects has {bytes} bytes only");
    Ok(())
}

/// A byte of a token as it stands in a query.
fn escape(byte: u8) -> String {
    match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    }
}
