//! What is counted of priority and fairness, asked for at each scrape.

use std::sync::atomic::Ordering;

use revisor_flowcontrol::{HistogramReading, QueueSet, SchemaTally};

use super::level::{Asker, Level};
use super::{FlowControl, lock};

/// What a number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlowFamily {
    Rejected,
    Dispatched,
    SeatUtilization,
    RequestUtilization,
    ReadVsWrite,
    CurrentR,
    DispatchR,
    LatestS,
    NextSBounds,
    NextDiscountedSBounds,
    InqueueRequests,
    InqueueSeats,
    QueueLength,
    ConcurrencyLimit,
    ExecutingRequests,
    ExecutingSeats,
    ConcurrencyInUse,
    WaitDuration,
    ExecutionDuration,
    WatchCount,
    EpochAdvances,
    EstimatedSeats,
    NotAccommodated,
    NominalLimit,
    LowerLimit,
    UpperLimit,
    DemandSeats,
    DemandHighWatermark,
    DemandAverage,
    DemandDeviation,
    DemandSmoothed,
    TargetSeats,
    FairFraction,
    CurrentLimit,
}

/// A number, or a histogram.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SampleValue {
    Number(f64),
    Histogram(HistogramReading),
}

/// One of what is counted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlowSample {
    pub(crate) family: FlowFamily,
    pub(crate) labels: Vec<String>,
    pub(crate) value: SampleValue,
}

/// Gathers samples of one level.
struct Gathering<'a> {
    samples: &'a mut Vec<FlowSample>,
    level: &'a str,
}

impl Gathering<'_> {
    fn add(&mut self, family: FlowFamily, labels: &[&str], value: SampleValue) {
        let labels = std::iter::once(self.level).chain(labels.iter().copied()).map(str::to_owned).collect();
        self.samples.push(FlowSample { family, labels, value });
    }

    fn number(&mut self, family: FlowFamily, labels: &[&str], number: f64) {
        self.add(family, labels, SampleValue::Number(number));
    }

    fn histogram(&mut self, family: FlowFamily, labels: &[&str], reading: Option<HistogramReading>) {
        if let Some(reading) = reading {
            self.add(family, labels, SampleValue::Histogram(reading));
        }
    }
}

impl FlowControl {
    /// All that is counted.
    pub(crate) fn samples(&self) -> Vec<FlowSample> {
        let mut samples = Vec::new();
        for level in &self.0.flows().levels {
            let mut gathering = Gathering { samples: &mut samples, level: &level.spec.name };
            self.gather_level(level, &mut gathering);
            for tally in level.lock().set.tallies() {
                gather_schema(tally, &mut gathering);
            }
        }
        let now = self.0.clock.now();
        let mut kinds = lock(&self.0.kinds.0);
        for (kind, of_kind) in ["readOnly", "mutating"].into_iter().zip(kinds.iter_mut()) {
            for (phase, timing) in ["waiting", "executing"].into_iter().zip(of_kind) {
                let mut gathering = Gathering { samples: &mut samples, level: phase };
                gathering.histogram(FlowFamily::ReadVsWrite, &[kind], timing.reading(now));
            }
        }
        let fraction = f64::from_bits(self.0.fair_fraction.load(Ordering::Relaxed));
        let (family, value) = (FlowFamily::FairFraction, SampleValue::Number(fraction));
        samples.push(FlowSample { family, labels: Vec::new(), value });
        samples
    }

    fn gather_level(&self, level: &Level, samples: &mut Gathering<'_>) {
        let mut queues = level.lock();
        for (family, number) in [
            (FlowFamily::NominalLimit, level.limits.nominal),
            (FlowFamily::ConcurrencyLimit, level.limits.nominal),
            (FlowFamily::LowerLimit, level.limits.lower),
            (FlowFamily::UpperLimit, level.limits.upper),
            (FlowFamily::CurrentLimit, queues.set.limit()),
        ] {
            samples.number(family, &[], number as f64);
        }
        samples.number(FlowFamily::TargetSeats, &[], queues.target);
        gather_queues(&mut queues.set, self.0.clock.now(), samples);
    }
}

fn gather_queues(set: &mut QueueSet<Asker>, now: revisor_flowcontrol::Moment, samples: &mut Gathering<'_>) {
    let [waiting, executing, seats, demand] = set.timings(now);
    samples.histogram(FlowFamily::RequestUtilization, &["waiting"], waiting);
    samples.histogram(FlowFamily::RequestUtilization, &["executing"], executing);
    samples.histogram(FlowFamily::SeatUtilization, &["executing"], seats);
    samples.histogram(FlowFamily::DemandSeats, &[], demand);
    samples.number(FlowFamily::CurrentR, &[], set.meter().as_f64());
    if let Some([r, s, min, max, discounted_min, discounted_max]) = set.dispatch_meters() {
        samples.number(FlowFamily::DispatchR, &[], r);
        samples.number(FlowFamily::LatestS, &[], s);
        for (bound, plain, discounted) in [("min", min, discounted_min), ("max", max, discounted_max)] {
            samples.number(FlowFamily::NextSBounds, &[bound], plain);
            samples.number(FlowFamily::NextDiscountedSBounds, &[bound], discounted);
        }
    }
    let epochs = set.counts().epochs;
    if epochs > 0 {
        samples.number(FlowFamily::EpochAdvances, &["true"], epochs as f64);
    }
    let demand = set.demand_mut();
    for (family, number) in [
        (FlowFamily::DemandHighWatermark, demand.high_watermark as f64),
        (FlowFamily::DemandAverage, demand.average),
        (FlowFamily::DemandDeviation, demand.deviation),
        (FlowFamily::DemandSmoothed, demand.smoothed),
    ] {
        samples.number(family, &[], number);
    }
}

fn gather_schema(tally: &SchemaTally, samples: &mut Gathering<'_>) {
    let schema = tally.schema.as_str();
    for (reason, count) in ["concurrency-limit", "queue-full", "time-out"].into_iter().zip(tally.rejected) {
        if count > 0 {
            samples.number(FlowFamily::Rejected, &[schema, reason], count as f64);
        }
    }
    // What was never used is not told of.
    if tally.dispatched > 0 {
        samples.number(FlowFamily::Dispatched, &[schema], tally.dispatched as f64);
        samples.number(FlowFamily::ExecutingRequests, &[schema], tally.executing as f64);
        samples.number(FlowFamily::ExecutingSeats, &[schema], tally.seats as f64);
        samples.number(FlowFamily::ConcurrencyInUse, &[schema], tally.seats as f64);
    }
    if let Some(lengths) = tally.queue_lengths.reading() {
        samples.number(FlowFamily::InqueueRequests, &[schema], tally.waiting.0 as f64);
        samples.number(FlowFamily::InqueueSeats, &[schema], tally.waiting.1 as f64);
        samples.add(FlowFamily::QueueLength, &[schema], SampleValue::Histogram(lengths));
    }
    if tally.not_accommodated > 0 {
        samples.number(FlowFamily::NotAccommodated, &[schema], tally.not_accommodated as f64);
    }
    for (label, waits) in ["true", "false"].into_iter().zip(&tally.waits) {
        samples.histogram(FlowFamily::WaitDuration, &[schema, label], waits.reading());
    }
    for (label, executions) in ["regular", "watch"].into_iter().zip(&tally.executions) {
        samples.histogram(FlowFamily::ExecutionDuration, &[schema, label], executions.reading());
    }
    samples.histogram(FlowFamily::WatchCount, &[schema], tally.watch_counts.reading());
    samples.histogram(FlowFamily::EstimatedSeats, &[schema], tally.estimated_seats.reading());
}
