//! Instructions per operation: a fixed script of requests over one connection, counted by callgrind.
//!
//! Times differ from run to run by as much as most changes are worth, and more on a machine that others use too.
//! Instructions of a server with one worker, asked one thing at a time, differ far less. What they cannot
//! tell is what the kernel does for the server, and how long memory takes.
//!
//! The script is the same for each kind of object; [`callgrind`] counts, [`table`] compares with what was counted before.

mod callgrind;
mod table;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use self::callgrind::Callgrind;
pub use self::table::{Count, Table};
use crate::channel::{Channel, Channels};
use crate::connection::Request;
use crate::encoding::{Encoding, EventCounter};
use crate::objects::{Kind, Namespace};
use crate::worker::{Operation, Worker};

/// How often each operation is counted. The middle count stands for all, so that what the server does by itself now and
/// then, in the midst of whatever is counted, is not taken for a part of it.
const ROUNDS: u32 = 3;

/// Operations of one round.
const ROUND: u32 = 14;

/// Objects of each kind, and so writes that are counted.
const OBJECTS: u32 = ROUNDS * ROUND;

/// Objects on a page.
const PAGE: u32 = 10;

/// Who sees each write of the phase that is about them.
const WATCHERS: usize = 10;

/// Operations before those that count: whatever is made by the first who needs it is there then.
const WARM_UP: u32 = 5;

/// The flags about instructions.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct CountOptions {
    /// Count instructions per operation under callgrind instead of measuring times, for every kind of object
    #[arg(long, conflicts_with_all = ["server", "peer", "scale", "migrate"])]
    pub instructions: bool,
    /// With --instructions: what was counted before; more than a tenth above it is an error
    #[arg(long, value_name = "FILE", requires = "instructions")]
    pub table: Option<PathBuf>,
    /// With --instructions: write what was counted into the table
    #[arg(long, requires = "table")]
    pub bless: bool,
    /// With --instructions: count this operation alone, `pods-create` say, and keep what callgrind found
    #[arg(long, value_name = "OPERATION", requires = "profile")]
    pub only: Option<String>,
    /// With --only: where to keep it
    #[arg(long, value_name = "FILE", requires = "only")]
    pub profile: Option<PathBuf>,
}

/// Counts what the script asks for.
pub async fn count(
    binary: &std::path::Path,
    options: &CountOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Count>> {
    let mut counter = Counter { callgrind: Callgrind::start(binary).await?, options, counts: Vec::new() };
    let is_wanted = |name: &str| options.only.as_deref().is_none_or(|only| only.starts_with(&format!("{name}-")));
    for (name, kind) in [("configmaps", Kind::Configmaps), ("pods", Kind::Pods), ("widgets", Kind::Widgets)] {
        if is_wanted(name) {
            progress(name);
            Script::open(name, kind, counter.callgrind.channels()?).await?.run(&mut counter).await?;
        }
    }
    if counter.counts.is_empty() {
        bail!("no operation is called {}", options.only.as_deref().unwrap_or_default());
    }
    Ok(counter.counts)
}

/// The server, and what was counted of it.
struct Counter<'a> {
    callgrind: Callgrind,
    options: &'a CountOptions,
    counts: Vec<Count>,
}

impl Counter<'_> {
    /// Counts an operation, of which one round does [`ROUND`].
    async fn count(&mut self, operation: String, mut round: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        let is_wanted = self.options.only.as_ref().is_none_or(|wanted| *wanted == operation);
        let mut counted = Vec::new();
        self.callgrind.zero().await?;
        for _ in 0..ROUNDS {
            round().await?;
            if is_wanted {
                counted.push(self.callgrind.dump(self.options.profile.as_deref()).await?);
            }
        }
        counted.sort_unstable();
        if let Some(middle) = counted.get(counted.len() / 2) {
            self.counts.push(Count { operation, instructions: middle / u64::from(ROUND) });
        }
        Ok(())
    }
}

/// The requests for one kind of object.
struct Script {
    kind: &'static str,
    channels: Channels,
    namespace: Arc<Namespace>,
    worker: Worker,
}

impl Script {
    async fn open(name: &'static str, kind: Kind, channels: Channels) -> Result<Script> {
        let namespace = Arc::new(Namespace::new(format!("count-{name}"), kind, None, Encoding::Json));
        let mut worker = Worker::connect(&channels, &namespace, 0, 1).await?;
        worker.call("POST", "/api/v1/namespaces", &namespace.manifest()).await?;
        for (path, _, need) in namespace.needs(None) {
            worker.call("POST", &path, &need).await?;
        }
        Ok(Script { kind: name, channels, namespace, worker })
    }

    async fn run(mut self, counter: &mut Counter<'_>) -> Result<()> {
        use Operation::{Apply, Create, Delete, Get, List, Table, Update};
        self.worker.create_up_to(OBJECTS + WARM_UP);
        for (name, operation) in
            [("create", Create), ("get", Get), ("update", Update), ("apply", Apply), ("list", List), ("table", Table)]
        {
            self.counted(name, operation, counter).await?;
        }
        self.pages(counter).await?;
        self.watched(counter).await?;
        self.counted("delete", Delete, counter).await
    }

    async fn counted(&mut self, name: &str, operation: Operation, counter: &mut Counter<'_>) -> Result<()> {
        self.steps(operation, WARM_UP).await?;
        counter.count(self.named(name), async || self.steps(operation, ROUND).await).await
    }

    fn named(&self, operation: &str) -> String {
        format!("{}-{operation}", self.kind)
    }

    async fn steps(&mut self, operation: Operation, times: u32) -> Result<()> {
        for _ in 0..times {
            self.worker.step(operation, 0).await?.with_context(|| format!("{operation:?} has nothing to do"))?;
        }
        Ok(())
    }

    async fn pages(&mut self, counter: &mut Counter<'_>) -> Result<()> {
        let path = format!("{}?limit={PAGE}", self.namespace.collection);
        self.worker.call("GET", &path, "").await?;
        let name = self.named("page");
        let round = async || {
            for _ in 0..ROUND {
                self.worker.call("GET", &path, "").await?;
            }
            Ok(())
        };
        counter.count(name, round).await
    }

    /// Updates that some see. What one of them costs is the difference from an update, by their number.
    async fn watched(&mut self, counter: &mut Counter<'_>) -> Result<()> {
        let revision = self.worker.revision().await?;
        let path = format!("{}?watch=true&resourceVersion={revision}", self.namespace.collection);
        let mut watchers = Vec::new();
        for _ in 0..WATCHERS {
            watchers.push(Watcher::open(&self.channels, &path).await?);
        }
        let name = self.named(&format!("update-{WATCHERS}-watchers"));
        let mut seen_updates = async |times| {
            for _ in 0..times {
                self.steps(Operation::Update, 1).await?;
                for watcher in &mut watchers {
                    watcher.see_one().await?;
                }
            }
            Ok(())
        };
        seen_updates(WARM_UP).await?;
        counter.count(name, async || seen_updates(ROUND).await).await
    }
}

/// One who watches, and is asked for each event.
struct Watcher {
    channel: Channel,
    events: EventCounter,
}

impl Watcher {
    async fn open(channels: &Channels, path: &str) -> Result<Watcher> {
        let mut channel = channels.open().await?;
        channel.open(&Request::get(path, Encoding::Json.media_type())).await?;
        Ok(Watcher { channel, events: EventCounter::new(Encoding::Json) })
    }

    async fn see_one(&mut self) -> Result<()> {
        let mut seen = 0;
        while seen == 0 {
            let events = &mut self.events;
            if !self.channel.read(&mut |bytes: &[u8]| seen += events.count(bytes)).await? {
                bail!("the server ended a watch");
            }
        }
        Ok(())
    }
}
