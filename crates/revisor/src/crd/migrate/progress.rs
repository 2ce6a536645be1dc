//! [`Stage`]: how far a migration is, read from its conditions, and how that is shown while it is at work.

use revisor_object::{Object, Value};
use serde_json::json;

use crate::progress::{Progress, bar};

/// How far a migration is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nobody works on it yet.
    Waiting,
    Running {
        message: String,
    },
    Succeeded {
        message: String,
    },
    Failed {
        message: String,
    },
}

impl Stage {
    /// What the conditions of a migration say.
    pub(super) fn of(migration: &Object) -> Stage {
        let conditions = migration.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        let told = |kind: &str| {
            let mut conditions = conditions.iter().filter_map(Value::as_object);
            let is = |known: &&Object| known.str("type") == Some(kind) && known.str("status") == Some("True");
            conditions.find(is).map(|known| known.str("message").unwrap_or_default().to_owned())
        };
        match (told("Succeeded"), told("Failed"), told("Running")) {
            (Some(message), _, _) => Stage::Succeeded { message },
            (_, Some(message), _) => Stage::Failed { message },
            (_, _, Some(message)) => Stage::Running { message },
            _ => Stage::Waiting,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self, Stage::Succeeded { .. } | Stage::Failed { .. })
    }

    fn message(&self) -> &str {
        match self {
            Stage::Waiting => "",
            Stage::Running { message } | Stage::Succeeded { message } | Stage::Failed { message } => message,
        }
    }

    /// How many objects are done and left, if the server says so: `12 done, 3 left`.
    fn counts(&self) -> Option<(u64, u64)> {
        let (before, behind) = self.message().split_once(" done, ")?;
        let done = before.rsplit(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()?;
        let left = behind.split_once(" left")?.0.parse().ok()?;
        Some((done, left))
    }

    /// What became of the migration, for people.
    pub(super) fn text(&self, name: &str, stored: Option<&[String]>) -> String {
        let said = match self.message() {
            "" => String::new(),
            message => format!(": {message}"),
        };
        match self {
            Stage::Waiting => format!("{name} was made and has not begun\n"),
            Stage::Running { .. } => format!("{name} is not over yet{said}\n"),
            Stage::Failed { .. } => format!("{name} failed{said}\n"),
            Stage::Succeeded { .. } => {
                let stored = stored.map(|stored| format!("; stored versions: {}", stored.join(", ")));
                format!("{name} succeeded{said}{}\n", stored.unwrap_or_default())
            }
        }
    }

    /// The same for programs.
    pub(super) fn json(&self, name: &str, resource: &str, stored: Option<&[String]>) -> serde_json::Value {
        let outcome = match self {
            Stage::Waiting => "Waiting",
            Stage::Running { .. } => "Running",
            Stage::Succeeded { .. } => "Succeeded",
            Stage::Failed { .. } => "Failed",
        };
        let counts = self.counts();
        json!({
            "migration": name,
            "resource": resource,
            "outcome": outcome,
            "message": self.message(),
            "done": counts.map(|(done, _)| done),
            "left": counts.map(|(_, left)| left),
            "storedVersions": stored,
        })
    }
}

/// Shows how far a migration is. What became of it in the end is not shown, but told.
pub(super) fn show(progress: &mut Progress, stage: &Stage) {
    let text = match (stage, stage.counts()) {
        (Stage::Waiting, _) => "waiting for its turn".to_owned(),
        (stage, Some((done, left))) if progress.is_terminal() => bar(done, left) + &trouble(stage),
        (stage, _) => stage.message().to_owned(),
    };
    if !stage.is_over() || progress.is_terminal() {
        progress.show(text);
    }
}

/// What a running migration says beside its counts.
fn trouble(stage: &Stage) -> String {
    stage.message().split_once(" left; ").map(|(_, trouble)| format!(" ({trouble})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn stage(conditions: &[(&str, &str, &str)]) -> Stage {
        let one =
            |(kind, status, message): &(&str, &str, &str)| json!({"type": kind, "status": status, "message": message});
        let migration = json!({"status": {"conditions": conditions.iter().map(one).collect::<Vec<_>>()}});
        match parse_json(migration.to_string().as_bytes()).map(|parsed| parsed.value) {
            Ok(Value::Object(migration)) => Stage::of(&migration),
            other => panic!("no object: {other:?}"),
        }
    }

    #[test]
    fn conditions_tell_how_far_it_is() {
        let running = "The migration is running: 12 done, 3 left; trying again: a, b could not be stored anew: x";
        for (conditions, want, counts) in [
            (&[][..], "Waiting", None),
            (&[("Running", "True", running)], "Running", Some((12, 3))),
            (&[("Running", "True", "The migration is running")], "Running", None),
            (&[("Running", "False", "x"), ("Succeeded", "True", "15 done, 0 left")], "Succeeded", Some((15, 0))),
            (&[("Running", "False", "x"), ("Succeeded", "True", "")], "Succeeded", None),
            (&[("Failed", "True", "0 done, 3 left: a failed")], "Failed", Some((0, 3))),
            (&[("Failed", "True", "some done, 3 left")], "Failed", None),
        ] {
            let stage = stage(conditions);
            let told = stage.json("m", "r", None);
            assert_eq!((told["outcome"].as_str(), stage.counts()), (Some(want), counts), "{conditions:?}");
        }
    }

    #[test]
    fn what_became_of_it_is_told_in_a_line() {
        let done = stage(&[("Succeeded", "True", "15 done, 0 left")]);
        let stored = ["v2".to_owned()];
        assert_eq!(done.text("m", Some(&stored)), "m succeeded: 15 done, 0 left; stored versions: v2\n");
        assert_eq!(stage(&[("Succeeded", "True", "")]).text("m", None), "m succeeded\n");
        assert_eq!(stage(&[("Failed", "True", "x")]).text("m", None), "m failed: x\n");
        assert_eq!(stage(&[]).text("m", None), "m was made and has not begun\n");
    }
}
