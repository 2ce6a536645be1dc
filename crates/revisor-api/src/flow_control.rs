//! [`FlowControl`]: priority and fairness. Every request belongs to a flow of a priority level, takes seats of that level
//! while it is served, and waits for them in a queue when there are none.
//!
//! The algorithm is `revisor-flowcontrol`'s, which knows no clock; here are the clock, the locks, and those who wait. The
//! configuration is brought up to date by whoever asks, as roles are: two numbers tell whether there is anything to do.
//! On the way of a request for which there is a seat nothing is allocated: it matches a schema, takes one lock to get its
//! seat and once more to give it back.

mod dumps;
mod level;
mod reading;
mod seat;
mod work;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use revisor_auth::{Attributes, Identity};
use revisor_catalog::{Feature, Features, Resource};
use revisor_flowcontrol::{
    Arrival, Moment, PriorityLevel, Queuing, RequestDigest, ResourceDigest, Standing, Started, TimingHistogram,
    WatchTracker, WorkEstimate, borrow, flow_hash, max_seats, nominal_limits,
};
use revisor_registry::{FlowConfig, Registry};

use crate::inflight::RequestKind;
use level::{Asker, Flow, Flows, Level};
pub(crate) use reading::{FlowFamily, FlowSample, SampleValue};
pub(crate) use seat::{Seat, TrackedWatch};

/// How often levels lend and borrow.
const ADJUSTMENT: Duration = Duration::from_secs(10);

/// The longest that a request waits for seats.
const MAX_WAIT: Duration = Duration::from_secs(60);

const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

const READ_VS_WRITE: &[f64] = &[0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

/// Priority and fairness of a server.
#[derive(Debug)]
pub struct FlowControl(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    registry: Arc<Registry>,
    clock: Clock,
    /// How many requests the server serves at once.
    seats: usize,
    features: Features,
    flows: RwLock<Arc<Flows>>,
    /// Held by the one who changes the flows.
    turn: Mutex<()>,
    watches: Arc<Mutex<WatchTracker>>,
    kinds: Arc<KindTimings>,
    /// The proportion that levels got of what they wanted when they borrowed last; the bits of a number.
    fair_fraction: AtomicU64,
}

/// When it is, as the levels count it.
#[derive(Debug, Clone, Copy)]
struct Clock {
    started: Instant,
    started_at: SystemTime,
}

impl Clock {
    fn now(&self) -> Moment {
        Moment(self.started.elapsed().as_nanos() as u64)
    }

    fn time_of(&self, moment: Moment) -> SystemTime {
        self.started_at + Duration::from_nanos(moment.0)
    }
}

/// For how long how many requests of either kind waited and were served.
#[derive(Debug)]
struct KindTimings(Mutex<[[TimingHistogram; 2]; 2]>);

impl KindTimings {
    fn add(&self, kind: RequestKind, is_executing: bool, delta: f64, now: Moment) {
        let mut timings = lock(&self.0);
        timings[usize::from(kind == RequestKind::Mutating)][usize::from(is_executing)].add(delta, now);
    }
}

/// The flow that a request belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Classified {
    flows: Arc<Flows>,
    at: usize,
    hash: u64,
    work: WorkEstimate,
    watches: Option<usize>,
    is_watch: bool,
}

/// A request that finds no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoSeat {
    /// After how many seconds it may come back.
    pub(crate) retry_after: u64,
}

impl Classified {
    fn flow(&self) -> &Flow {
        &self.flows.flows[self.at]
    }

    /// Tells the client which flow served it, in a way that only says something to those who may see the schemas.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        headers.insert(PRIORITY_LEVEL_UID, self.flow().level.uid.clone());
        headers.insert(FLOW_SCHEMA_UID, self.flow().uid.clone());
    }
}

impl FlowControl {
    /// For a server that serves so many requests at once.
    pub fn new(registry: Arc<Registry>, seats: usize) -> FlowControl {
        let clock = Clock { started: Instant::now(), started_at: SystemTime::now() };
        let features = registry.built_in().features();
        let timing = || TimingHistogram::new(READ_VS_WRITE, 0.0, 1.0, clock.now());
        let control = FlowControl(Arc::new(Shared {
            registry,
            clock,
            seats,
            features,
            flows: RwLock::default(),
            turn: Mutex::default(),
            watches: Arc::default(),
            kinds: Arc::new(KindTimings(Mutex::new([[timing(), timing()], [timing(), timing()]]))),
            fair_fraction: AtomicU64::new(0),
        }));
        control.settle();
        control
    }

    /// Lets levels lend and borrow for as long as the server runs.
    pub fn keep_borrowing(&self) -> impl Future<Output = ()> + Send + 'static {
        let shared = Arc::downgrade(&self.0);
        async move {
            let mut ticks = tokio::time::interval(ADJUSTMENT);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                let Some(shared) = shared.upgrade() else { return };
                shared.adjust();
            }
        }
    }

    /// The flow of a request, and how much work it is. `resource` is what it is about, if that is known here.
    pub(crate) fn classify(
        &self,
        attributes: &Attributes<'_>,
        query: Option<&str>,
        resource: Option<&Resource>,
    ) -> Classified {
        self.settle();
        let target = attributes.resource.map(|target| ResourceDigest {
            group: target.group,
            resource: target.resource,
            subresource: target.subresource.unwrap_or_default(),
            namespace: target.namespace.unwrap_or_default(),
        });
        let digest = RequestDigest {
            user: attributes.user.name(),
            groups: attributes.user.groups(),
            verb: attributes.verb,
            path: attributes.path,
            resource: target,
        };
        let flows = Arc::clone(&self.0.flows.read().unwrap_or_else(PoisonError::into_inner));
        let at = flows.flow_of(&digest);
        let Flow { schema, level, .. } = &flows.flows[at];
        // The flow is asked for only where there is a choice of queues.
        let hash = match level.spec.queuing {
            Queuing::Queue { queues: 2.., .. } => flow_hash(&schema.name, schema.distinguisher(&digest)),
            _ => 0,
        };
        let (work, watches) = self.0.estimate(attributes, query, resource, level.max_seats);
        Classified { flows, at, hash, work, watches, is_watch: attributes.verb == "watch" }
    }

    /// Seats for a request, as soon as it is its turn; given back when they are dropped.
    ///
    /// It waits a quarter of the time that it has, at most.
    pub(crate) async fn seat(
        &self,
        classified: &Classified,
        kind: RequestKind,
        user: &Identity,
        asked: (&Method, &Uri),
        timeout: Duration,
    ) -> Result<Seat, NoSeat> {
        let (mut seat, waits) = self.start(classified, kind, user, asked)?;
        if waits {
            let until = tokio::time::Instant::now() + (timeout / 4).min(MAX_WAIT);
            if !seat.wait(until).await {
                drop(seat);
                let retry_after = classified.flow().level.lock().refuse(self.0.clock.started.elapsed());
                return Err(NoSeat { retry_after });
            }
        }
        seat.begin();
        Ok(seat)
    }

    /// The seats of a request, and whether it still has to wait for them.
    fn start(
        &self,
        classified: &Classified,
        kind: RequestKind,
        user: &Identity,
        asked: (&Method, &Uri),
    ) -> Result<(Seat, bool), NoSeat> {
        let Classified { hash, work, watches, is_watch, .. } = *classified;
        let flow = classified.flow();
        let shared = &self.0;
        let payload = Asker {
            user: user.clone(),
            method: asked.0.clone(),
            uri: asked.1.clone(),
            distinguisher: flow.schema.distinguisher,
            waker: None,
        };
        let arrival = Arrival { payload, schema: flow.tally, hash, work, watches };
        let mut queues = flow.level.lock();
        let started = queues.set.start(arrival, shared.clock.now());
        queues.wake();
        let (id, waits) = match started {
            Ok(Started::Executing(id)) => (id, false),
            Ok(Started::Waiting(id)) => (id, true),
            Err(_) => return Err(NoSeat { retry_after: queues.refuse(shared.clock.started.elapsed()) }),
        };
        let (level, kinds) = (Arc::clone(&flow.level), Arc::clone(&shared.kinds));
        Ok((Seat::new(level, id, shared.clock, is_watch, kind, kinds), waits))
    }

    /// Counts a watch that begins among those that writes are told to.
    pub(crate) fn track(&self, attributes: &Attributes<'_>, query: Option<&str>) -> Option<TrackedWatch> {
        TrackedWatch::begin(&self.0.watches, attributes, query)
    }

    /// Puts into effect what was stored since.
    fn settle(&self) {
        let shared = &self.0;
        let book = shared.registry.flow_book();
        if book.is_behind() {
            let _turn = lock(&shared.turn);
            // Somebody else may have had the turn before.
            if book.is_behind() {
                let config = book.read();
                shared.digest(&config);
                book.settle(&config);
            }
        }
    }
}

impl Clone for FlowControl {
    fn clone(&self) -> FlowControl {
        FlowControl(Arc::clone(&self.0))
    }
}

impl Shared {
    fn flows(&self) -> Arc<Flows> {
        Arc::clone(&self.flows.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Divides the seats among the levels of a configuration, and lets requests find them.
    fn digest(&self, config: &FlowConfig) {
        let old = self.flows();
        let now = self.clock.now();
        let mut specs: Vec<(&PriorityLevel, bool)> = config.levels.iter().map(|level| (level, false)).collect();
        // Levels that are no more stay until those who wait there were served.
        for level in &old.levels {
            let is_gone = !config.levels.iter().any(|known| known.name == level.spec.name);
            if is_gone && !level.lock().set.is_idle() {
                specs.push((&level.spec, true));
            }
        }
        let limits = nominal_limits(self.seats, &specs.iter().map(|(spec, _)| *spec).collect::<Vec<_>>());
        let known = |name: &str| old.levels.iter().find(|level| level.spec.name == name);
        let levels: Vec<Arc<Level>> = specs
            .iter()
            .zip(&limits)
            .map(|((spec, is_quiescing), limits)| {
                let most = max_seats(spec, *limits);
                let level = Level::new((*spec).clone(), *limits, most, *is_quiescing, known(&spec.name), now);
                Arc::new(level)
            })
            .collect();
        levels.iter().for_each(|level| level.lock().set.forget_schemas());
        let flow = |schema: &revisor_flowcontrol::FlowSchema| {
            let level = levels.iter().find(|level| level.spec.name == schema.level)?;
            let tally = level.lock().set.tally_of(&schema.name);
            Some(Flow { uid: header(&schema.uid), schema: schema.clone(), level: Arc::clone(level), tally })
        };
        let flows = config.schemas.iter().filter_map(flow).collect();
        self.divide(&levels, now);
        let room: usize = levels.iter().map(|level| level.room()).sum();
        let all: usize = limits.iter().map(|limits| limits.nominal).sum();
        for of_kind in lock(&self.kinds.0).iter_mut() {
            of_kind[0].set_denominator(room.max(1) as f64, now);
            of_kind[1].set_denominator(all.max(1) as f64, now);
        }
        *self.flows.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Flows { flows, levels });
    }

    /// Lets levels lend and borrow, and levels go that are no more.
    fn adjust(&self) {
        let _turn = lock(&self.turn);
        let flows = self.flows();
        if flows.levels.iter().any(|level| level.is_quiescing && level.lock().set.is_idle()) {
            self.digest(&self.registry.flow_book().read());
        } else {
            self.divide(&flows.levels, self.clock.now());
        }
    }

    fn divide(&self, levels: &[Arc<Level>], now: Moment) {
        let demands: Vec<_> = levels
            .iter()
            .map(|level| {
                let mut queues = level.lock();
                queues.set.demand_mut().adjust(now);
                (queues.set.demand_mut().clone(), queues.set.limit(), queues.target)
            })
            .collect();
        let mut current: Vec<(usize, f64)> = demands.iter().map(|(_, limit, target)| (*limit, *target)).collect();
        let mut standings: Vec<Standing<'_>> = levels
            .iter()
            .zip(&demands)
            .zip(&mut current)
            .map(|((level, (demand, ..)), (current, target))| Standing {
                is_exempt: level.spec.is_exempt(),
                limits: level.limits,
                demand,
                current,
                target,
            })
            .collect();
        let fraction = borrow(&mut standings);
        drop(standings);
        self.fair_fraction.store(fraction.to_bits(), Ordering::Relaxed);
        for (level, (current, target)) in levels.iter().zip(current) {
            let denominator = if current > 0 { current } else { (self.seats as f64 / 10.0).round().max(1.0) as usize };
            let mut queues = level.lock();
            queues.target = target;
            queues.set.configure(level.spec.queuing, current, denominator, now);
            queues.wake();
        }
    }

    fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever panicked was counting: what is there can be read, and the numbers go on from there.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn header(uid: &str) -> HeaderValue {
    HeaderValue::from_str(uid).unwrap_or_else(|_| HeaderValue::from_static(""))
}
