//! Pods: the one word that says what a pod is doing, pieced together from its containers.

use revisor_object::{Object, Value};

use super::cells;
use super::fields::{
    age, array, condition, is_going, is_true, name, number, object, objects, or, size, text, truth, value,
};
use crate::{Completion, Moment};

/// The reason of pods whose node is gone.
const NODE_LOST: &str = "NodeLost";

/// How the pod ended, if it did.
pub(crate) fn completion(pod: &Object) -> Option<Completion> {
    match text(pod, "status.phase") {
        "Succeeded" => Some(Completion { reason: "Succeeded", message: "The pod has completed successfully." }),
        "Failed" => Some(Completion { reason: "Failed", message: "The pod failed." }),
        _ => None,
    }
}

/// How often containers were started anew, and when last.
#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Moment>,
}

impl Restarts {
    fn add(&mut self, container: &Object) {
        self.count += number(container, "restartCount");
        self.last = self.last.max(Moment::parse(text(container, "lastState.terminated.finishedAt")));
    }

    fn show(self, now: Moment) -> String {
        match self.last.filter(|_| self.count != 0) {
            Some(last) => format!("{} ({} ago)", self.count, now.since(last)),
            None => self.count.to_string(),
        }
    }
}

/// What the containers of a pod say about it.
struct Summary {
    reason: String,
    restarts: Restarts,
    ready: i64,
}

pub(super) fn pod(pod: &Object, now: Moment) -> Vec<Value> {
    let restartable = objects(pod, "spec.initContainers").filter(|container| is_restartable(container)).count();
    let total = size(array(pod, "spec.containers")) + i64::try_from(restartable).unwrap_or_default();
    let summary = summary(pod);
    let reason = if is_going(pod) && text(pod, "status.reason") == NODE_LOST {
        "Unknown"
    } else if is_going(pod) && !matches!(text(pod, "status.phase"), "Failed" | "Succeeded") {
        "Terminating"
    } else {
        &summary.reason
    };
    let address = objects(pod, "status.podIPs").next().map_or("", |address| text(address, "ip"));
    cells![
        name(pod),
        format!("{}/{total}", summary.ready),
        reason,
        summary.restarts.show(now),
        age(pod, now),
        or(address, "<none>"),
        or(text(pod, "spec.nodeName"), "<none>"),
        or(text(pod, "status.nominatedNodeName"), "<none>"),
        readiness_gates(pod),
    ]
}

fn is_restartable(container: &Object) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn summary(pod: &Object) -> Summary {
    let mut reason = or(text(pod, "status.reason"), text(pod, "status.phase")).to_owned();
    let mut conditions = objects(pod, "status.conditions");
    if conditions.any(|one| text(one, "type") == "PodScheduled" && text(one, "reason") == "SchedulingGated") {
        reason = "SchedulingGated".to_owned();
    }
    let mut all = Restarts::default();
    let mut of_restartable = Restarts::default();
    let mut ready = 0;
    let mut is_initializing = false;
    for (at, container) in objects(pod, "status.initContainerStatuses").enumerate() {
        all.add(container);
        let spec = objects(pod, "spec.initContainers").rfind(|spec| name_of(spec) == name_of(container));
        let restartable = spec.is_some_and(is_restartable);
        if restartable {
            of_restartable.add(container);
        }
        let terminated = object(container, "state.terminated");
        let waiting = text(container, "state.waiting.reason");
        if terminated.is_some_and(|state| number(state, "exitCode") == 0) {
            continue;
        }
        if restartable && truth(container, "started") {
            ready += i64::from(truth(container, "ready"));
            continue;
        }
        // The first that has not done its part is what the pod waits for.
        reason = match terminated {
            Some(state) => format!("Init:{}", ending(state)),
            None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
            None => format!("Init:{at}/{}", array(pod, "spec.initContainers").len()),
        };
        is_initializing = true;
        break;
    }
    if is_initializing && !is_true(pod, "status.conditions", "Initialized") {
        return Summary { reason, restarts: all, ready };
    }
    let mut restarts = of_restartable;
    let mut has_running = false;
    let mut failure = None;
    for container in objects(pod, "status.containerStatuses").rev() {
        restarts.add(container);
        let waiting = text(container, "state.waiting.reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut reason);
        } else if let Some(state) = object(container, "state.terminated") {
            reason = ending(state);
            if number(state, "exitCode") != 0 {
                failure = Some(reason.clone());
            }
        } else if truth(container, "ready") && value(container, "state.running").is_some() {
            has_running = true;
            ready += 1;
        }
    }
    if reason == "Completed" {
        // A container that ended well does not speak for a pod that goes on.
        let is_ready = objects(pod, "status.conditions")
            .any(|condition| text(condition, "type") == "Ready" && text(condition, "status") == "True");
        if has_running && is_ready {
            reason = "Running".to_owned();
        } else if let Some(failure) = failure {
            reason = failure;
        } else if has_running {
            reason = "NotReady".to_owned();
        }
    }
    Summary { reason, restarts, ready }
}

fn name_of(container: &Object) -> &str {
    text(container, "name")
}

/// How a container ended, in one word.
fn ending(terminated: &Object) -> String {
    let reason = text(terminated, "reason");
    if !reason.is_empty() {
        return reason.to_owned();
    }
    match number(terminated, "signal") {
        0 => format!("ExitCode:{}", number(terminated, "exitCode")),
        signal => format!("Signal:{signal}"),
    }
}

fn readiness_gates(pod: &Object) -> String {
    let gates = objects(pod, "spec.readinessGates");
    let total = gates.clone().count();
    if total == 0 {
        return "<none>".to_owned();
    }
    let is_met = |gate: &&Object| {
        let condition = condition(pod, "status.conditions", text(gate, "conditionType"));
        condition.is_some_and(|condition| text(condition, "status") == "True")
    };
    format!("{}/{total}", gates.filter(is_met).count())
}
