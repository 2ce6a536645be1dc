//! What is counted of priority and fairness, under the original's names. Whoever counts is asked when someone wants to
//! know.

use prometheus::proto::MetricType;

use super::sampled::{Family, Reading, Sample, SampledCollector};
use crate::flow_control::{FlowFamily, FlowSample, SampleValue};

const LEVEL: &[&str] = &["priority_level"];
const SCHEMA: &[&str] = &["priority_level", "flow_schema"];
const BOUND: &[&str] = &["priority_level", "bound"];

const fn family(
    of: FlowFamily,
    name: &'static str,
    labels: &'static [&'static str],
    kind: MetricType,
    help: &'static str,
) -> Family<FlowFamily> {
    Family { of, name, help, labels, kind }
}

const COUNTER: MetricType = MetricType::COUNTER;
const GAUGE: MetricType = MetricType::GAUGE;
const HISTOGRAM: MetricType = MetricType::HISTOGRAM;

macro_rules! name {
    ($name:literal) => {
        concat!("apiserver_flowcontrol_", $name)
    };
}

const FAMILIES: &[Family<FlowFamily>] = &[
    family(
        FlowFamily::Rejected,
        name!("rejected_requests_total"),
        &["priority_level", "flow_schema", "reason"],
        COUNTER,
        "Requests that were refused because there were no seats for them, by reason",
    ),
    family(
        FlowFamily::Dispatched,
        name!("dispatched_requests_total"),
        SCHEMA,
        COUNTER,
        "Requests that got their seats",
    ),
    family(
        FlowFamily::SeatUtilization,
        name!("priority_level_seat_utilization"),
        &["priority_level", "phase"],
        HISTOGRAM,
        "Nanoseconds by the part of a level's seats that were taken",
    ),
    family(
        FlowFamily::RequestUtilization,
        name!("priority_level_request_utilization"),
        &["priority_level", "phase"],
        HISTOGRAM,
        "Nanoseconds by how many requests waited or were served, as a part of how many may",
    ),
    family(
        FlowFamily::ReadVsWrite,
        name!("read_vs_write_current_requests"),
        &["phase", "request_kind"],
        HISTOGRAM,
        "Nanoseconds by how many requests of a kind waited or were served, as a part of how many may",
    ),
    family(FlowFamily::CurrentR, name!("current_r"), LEVEL, GAUGE, "The meter of a level, when it changed last"),
    family(FlowFamily::DispatchR, name!("dispatch_r"), LEVEL, GAUGE, "The meter of a level at its last dispatch"),
    family(FlowFamily::LatestS, name!("latest_s"), LEVEL, GAUGE, "The meter of the queue that was served last"),
    family(
        FlowFamily::NextSBounds,
        name!("next_s_bounds"),
        BOUND,
        GAUGE,
        "The lowest and the highest of the meters of queues in which requests wait",
    ),
    family(
        FlowFamily::NextDiscountedSBounds,
        name!("next_discounted_s_bounds"),
        BOUND,
        GAUGE,
        "The same without the work that is in progress",
    ),
    family(FlowFamily::InqueueRequests, name!("current_inqueue_requests"), SCHEMA, GAUGE, "Requests that wait"),
    family(FlowFamily::InqueueSeats, name!("current_inqueue_seats"), SCHEMA, GAUGE, "Seats that requests wait for"),
    family(
        FlowFamily::QueueLength,
        name!("request_queue_length_after_enqueue"),
        SCHEMA,
        HISTOGRAM,
        "The lengths of queues, as requests see them that join",
    ),
    family(
        FlowFamily::ConcurrencyLimit,
        name!("request_concurrency_limit"),
        LEVEL,
        GAUGE,
        "The seats that a level is configured to have; deprecated, see nominal_limit_seats",
    ),
    family(
        FlowFamily::ExecutingRequests,
        name!("current_executing_requests"),
        SCHEMA,
        GAUGE,
        "Requests that are served, and watches that begin",
    ),
    family(FlowFamily::ExecutingSeats, name!("current_executing_seats"), SCHEMA, GAUGE, "Seats that are taken"),
    family(
        FlowFamily::ConcurrencyInUse,
        name!("request_concurrency_in_use"),
        SCHEMA,
        GAUGE,
        "Seats that are taken; deprecated, see current_executing_seats",
    ),
    family(
        FlowFamily::WaitDuration,
        name!("request_wait_duration_seconds"),
        &["priority_level", "flow_schema", "execute"],
        HISTOGRAM,
        "Seconds that requests waited for their seats",
    ),
    family(
        FlowFamily::ExecutionDuration,
        name!("request_execution_seconds"),
        &["priority_level", "flow_schema", "type"],
        HISTOGRAM,
        "Seconds for which requests were served, and watches began",
    ),
    family(
        FlowFamily::WatchCount,
        name!("watch_count_samples"),
        SCHEMA,
        HISTOGRAM,
        "Watches that writes had to be told to",
    ),
    family(
        FlowFamily::EpochAdvances,
        name!("epoch_advance_total"),
        &["priority_level", "success"],
        COUNTER,
        "How often the meter of a level was wound back",
    ),
    family(
        FlowFamily::EstimatedSeats,
        name!("work_estimated_seats"),
        SCHEMA,
        HISTOGRAM,
        "Seats that requests were thought to need",
    ),
    family(
        FlowFamily::NotAccommodated,
        name!("request_dispatch_no_accommodation_total"),
        SCHEMA,
        COUNTER,
        "How often the next request in turn found too few seats",
    ),
    family(FlowFamily::NominalLimit, name!("nominal_limit_seats"), LEVEL, GAUGE, "The seats of a level"),
    family(FlowFamily::LowerLimit, name!("lower_limit_seats"), LEVEL, GAUGE, "The seats that a level never lends"),
    family(
        FlowFamily::UpperLimit,
        name!("upper_limit_seats"),
        LEVEL,
        GAUGE,
        "The seats of a level with all that it may borrow",
    ),
    family(
        FlowFamily::DemandSeats,
        name!("demand_seats"),
        LEVEL,
        HISTOGRAM,
        "Nanoseconds by the seats that a level could use, as a part of those that it has",
    ),
    family(
        FlowFamily::DemandHighWatermark,
        name!("demand_seats_high_watermark"),
        LEVEL,
        GAUGE,
        "The most seats that a level could have used, in the last period",
    ),
    family(
        FlowFamily::DemandAverage,
        name!("demand_seats_average"),
        LEVEL,
        GAUGE,
        "The seats that a level could have used on average, in the last period",
    ),
    family(
        FlowFamily::DemandDeviation,
        name!("demand_seats_stdev"),
        LEVEL,
        GAUGE,
        "The standard deviation of the seats that a level could have used, in the last period",
    ),
    family(
        FlowFamily::DemandSmoothed,
        name!("demand_seats_smoothed"),
        LEVEL,
        GAUGE,
        "The seats that a level could have used, smoothed over periods",
    ),
    family(FlowFamily::TargetSeats, name!("target_seats"), LEVEL, GAUGE, "The seats that a level was meant to have"),
    family(
        FlowFamily::FairFraction,
        name!("seat_fair_frac"),
        &[],
        GAUGE,
        "The part of what they want that levels got when they borrowed last",
    ),
    family(
        FlowFamily::CurrentLimit,
        name!("current_limit_seats"),
        LEVEL,
        GAUGE,
        "The seats that a level has now, with those that it borrows and without those that it lends",
    ),
];

/// What is counted of priority and fairness, written down.
pub(super) fn collector(source: impl Fn() -> Vec<FlowSample> + Send + Sync + 'static) -> SampledCollector<FlowSample> {
    SampledCollector::new(FAMILIES, source)
}

impl Sample for FlowSample {
    type Family = FlowFamily;

    fn family(&self) -> &FlowFamily {
        &self.family
    }

    fn labels(&self) -> &[String] {
        &self.labels
    }

    fn reading(&self) -> Reading<'_> {
        match &self.value {
            SampleValue::Number(number) => Reading::Number(*number),
            SampleValue::Histogram(reading) => Reading::Measured {
                count: reading.count,
                sum: reading.sum,
                bounds: reading.bounds,
                cumulative: &reading.cumulative,
            },
        }
    }
}
