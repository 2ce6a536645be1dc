//! Priority and fairness as Kubernetes has it, without a server, a clock or a thread: which flow a request belongs to,
//! how much work it is, when it is its turn, and how many seats each priority level has.
//!
//! Everything here is a value that is told what time it is. Who waits, and how they are woken, is the business of the
//! API; which objects are stored that of the registry.

mod allocation;
mod flow_schema;
mod histogram;
mod levels;
mod moment;
mod priority_level;
mod queue_set;
mod retry_after;
mod seat_demand;
mod seat_seconds;
mod shuffle_sharding;
mod tally;
mod watch_tracker;
mod work_estimate;

pub use flow_schema::{Distinguisher, FlowSchema, RequestDigest, ResourceDigest};
pub use histogram::{Histogram, HistogramReading, TimingHistogram};
pub use levels::{Limits, Standing, borrow, max_seats, nominal_limits};
pub use moment::Moment;
pub use priority_level::{PriorityLevel, Queuing, Shares};
pub use queue_set::{Arrival, Counts, Finished, QueueReading, QueueSet, Rejection, RequestId, RequestReading, Started};
pub use retry_after::RetryAfter;
pub use seat_demand::SeatDemand;
pub use seat_seconds::SeatSeconds;
pub use shuffle_sharding::{Dealer, flow_hash};
pub use tally::SchemaTally;
pub use watch_tracker::{WatchKey, WatchTracker};
pub use work_estimate::{ListWork, StoredObjects, WorkEstimate};
