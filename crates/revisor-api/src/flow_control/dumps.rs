//! What is under way at each level, as text for people: `/debug/api_priority_and_fairness/`.

use std::fmt::Write;
use std::time::SystemTime;

use http::{Request, Response, StatusCode};
use revisor_flowcontrol::{Distinguisher, RequestReading};
use revisor_object::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::FlowControl;
use super::level::Asker;
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::{Body, answer};

/// The narrowest column.
const MIN_WIDTH: usize = 8;

/// What a request that waits has for the time at which it began.
const NEVER: &str = "0001-01-01T00:00:00Z";

impl FlowControl {
    /// The dump at a path, if there is one.
    pub(crate) fn dump(&self, path: &str, query: Option<&str>) -> Option<Response<Body>> {
        let rows = match path.strip_prefix("/debug/api_priority_and_fairness/")? {
            "dump_priority_levels" => self.priority_levels(),
            "dump_queues" => self.queues(),
            "dump_requests" => self.requests(!Query::parse(query).text("includeRequestDetails").is_empty()),
            _ => return None,
        };
        Some(answer::text(StatusCode::OK, tabulated(&rows)))
    }

    fn priority_levels(&self) -> Vec<Vec<String>> {
        let mut rows = vec![headings(&[
            "PriorityLevelName",
            "ActiveQueues",
            "IsIdle",
            "IsQuiescing",
            "WaitingRequests",
            "ExecutingRequests",
            "DispatchedRequests",
            "RejectedRequests",
            "TimedoutRequests",
            "CancelledRequests",
        ])];
        let flows = self.0.flows();
        let mut levels: Vec<_> = flows.levels.iter().collect();
        levels.sort_by(|one, two| one.spec.name.cmp(&two.spec.name));
        for level in levels {
            let queues = level.lock();
            let active = queues.set.queues().filter(|queue| queue.waiting > 0).count();
            let (waiting, executing, _) = queues.set.occupancy();
            let counts = queues.set.counts();
            rows.push(vec![
                level.spec.name.clone(),
                active.to_string(),
                queues.set.is_idle().to_string(),
                level.is_quiescing.to_string(),
                waiting.to_string(),
                executing.to_string(),
                counts.dispatched.to_string(),
                counts.rejected.to_string(),
                counts.timed_out.to_string(),
                counts.cancelled.to_string(),
            ]);
        }
        rows
    }

    fn queues(&self) -> Vec<Vec<String>> {
        let mut rows = vec![headings(&[
            "PriorityLevelName",
            "Index",
            "PendingRequests",
            "ExecutingRequests",
            "SeatsInUse",
            "NextDispatchR",
            "InitialSeatsSum",
            "MaxSeatsSum",
            "TotalWorkSum",
        ])];
        for level in &self.0.flows().levels {
            for (at, queue) in level.lock().set.queues().enumerate() {
                rows.push(vec![
                    level.spec.name.clone(),
                    at.to_string(),
                    queue.waiting.to_string(),
                    queue.executing.to_string(),
                    queue.seats_in_use.to_string(),
                    queue.next.to_string(),
                    queue.initial_seats.to_string(),
                    queue.max_seats.to_string(),
                    queue.work.to_string(),
                ]);
            }
        }
        rows
    }

    fn requests(&self, has_details: bool) -> Vec<Vec<String>> {
        let mut names = headings(&[
            "PriorityLevelName",
            "FlowSchemaName",
            "QueueIndex",
            "RequestIndexInQueue",
            // As the original spells it.
            "FlowDistingsher",
            "ArriveTime",
            "InitialSeats",
            "FinalSeats",
            "AdditionalLatency",
            "StartTime",
        ]);
        if has_details {
            names.extend(headings(&[
                "UserName",
                "Verb",
                "APIPath",
                "Namespace",
                "Name",
                "APIVersion",
                "Resource",
                "SubResource",
            ]));
        }
        let mut rows = vec![names];
        for level in &self.0.flows().levels {
            for request in level.lock().set.requests() {
                rows.push(self.request(&level.spec.name, &request, has_details));
            }
        }
        rows
    }

    fn request(&self, level: &str, request: &RequestReading<'_, Asker>, has_details: bool) -> Vec<String> {
        let Asker { user, method, uri, distinguisher, .. } = request.payload;
        let index = |index: Option<usize>| index.map_or_else(|| "-1".to_owned(), |index| index.to_string());
        let asked = Request::builder().method(method.clone()).uri(uri.clone()).body(());
        let info = asked.as_ref().ok().and_then(|asked| RequestInfo::of(asked).ok());
        let attributes = info.as_ref().map(|info| info.attributes(user));
        let target = attributes.and_then(|attributes| attributes.resource).unwrap_or_default();
        let namespace = target.namespace.unwrap_or_default();
        let flow = match distinguisher {
            None => "",
            Some(Distinguisher::ByUser) => user.name(),
            Some(Distinguisher::ByNamespace) => namespace,
        };
        let time = |moment| moment_text(self.0.clock.time_of(moment));
        let mut row = vec![
            level.to_owned(),
            request.schema.to_owned(),
            index(request.queue),
            index(request.position),
            flow.to_owned(),
            time(request.arrived),
            request.work.initial_seats.to_string(),
            request.work.final_seats.to_string(),
            Duration::from_nanos(request.work.additional_latency.as_nanos() as i64).to_string(),
            request.started.map_or_else(|| NEVER.to_owned(), time),
        ];
        if has_details {
            let dot = if target.group.is_empty() { "" } else { "/" };
            row.extend([
                user.name().to_owned(),
                attributes.map_or("", |attributes| attributes.verb).to_owned(),
                attributes.map_or("", |attributes| attributes.path).to_owned(),
                namespace.to_owned(),
                target.name.unwrap_or_default().to_owned(),
                format!("{}{dot}{}", target.group, target.version),
                target.resource.to_owned(),
                target.subresource.unwrap_or_default().to_owned(),
            ]);
        }
        row
    }
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn moment_text(time: SystemTime) -> String {
    OffsetDateTime::from(time).format(&Rfc3339).unwrap_or_default()
}

/// Rows whose cells stand below each other, with a comma behind all but the last.
fn tabulated(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let longest = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        (longest.unwrap_or_default() + 2).max(MIN_WIDTH)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == row.len() {
                text.push_str(cell);
            } else {
                let _ = write!(text, "{:<1$}", format!("{cell},"), widths[column]);
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let rows = vec![headings(&["Name", "Number", "Last"]), headings(&["a-long-name", "1", "x"])];
        assert_eq!(tabulated(&rows), "Name,        Number, Last\na-long-name, 1,      x\n");
    }
}
