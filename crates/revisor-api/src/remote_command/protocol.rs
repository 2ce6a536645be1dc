//! The protocols that kubelets speak on SPDY, and what they say at the end of a command (upstream: `errorDecoderV4`).

use revisor_object::{Status, StatusCause, StatusDetails};

/// The reason and the cause by which a kubelet says how a command ended that failed.
const NON_ZERO_EXIT: &str = "NonZeroExitCode";
const EXIT_CODE: &str = "ExitCode";

/// A protocol. Each has what those before it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    /// Errors are texts.
    V1,
    /// Input can end.
    V2,
    /// Terminals have sizes.
    V3,
    /// Errors are statuses.
    V4,
}

impl Protocol {
    /// What kubelets are offered, the best first.
    pub(super) const OFFERED: [&str; 5] =
        ["v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];

    /// The one that a kubelet chose. On SPDY the fifth is the fourth.
    pub(super) fn named(name: &str) -> Option<Protocol> {
        match name {
            "v5.channel.k8s.io" | "v4.channel.k8s.io" => Some(Protocol::V4),
            "v3.channel.k8s.io" => Some(Protocol::V3),
            "v2.channel.k8s.io" => Some(Protocol::V2),
            "channel.k8s.io" | "" => Some(Protocol::V1),
            _ => None,
        }
    }

    /// What was said on the stream for errors, all of it.
    pub(super) fn outcome(self, said: &[u8]) -> Outcome {
        if said.is_empty() {
            return Outcome::Succeeded;
        }
        let text = String::from_utf8_lossy(said);
        match self {
            Protocol::V1 => Outcome::Failed(format!("Error executing remote command: {text}")),
            Protocol::V2 | Protocol::V3 => Outcome::Failed(format!("error executing remote command: {text}")),
            Protocol::V4 => of_status(said, &text),
        }
    }
}

fn of_status(said: &[u8], text: &str) -> Outcome {
    let broken = |why: &str| Outcome::Failed(format!("error stream protocol error: {why}"));
    let status: Status = match serde_json::from_slice(said) {
        Ok(status) => status,
        Err(error) => return broken(&format!("{error} in {text:?}")),
    };
    match (status.status.as_ref(), status.reason.as_ref()) {
        ("Success", _) => Outcome::Succeeded,
        ("Failure", NON_ZERO_EXIT) => {
            let Some(details) = status.details else { return broken("details must be set") };
            let Some(cause) = details.causes.into_iter().find(|cause| cause.reason == EXIT_CODE) else {
                return broken(&format!("no {EXIT_CODE} cause given"));
            };
            match cause.message.parse::<u8>() {
                Ok(code) => Outcome::Exited(code),
                Err(_) => broken(&format!("invalid exit code value {:?}", cause.message)),
            }
        }
        ("Failure", _) => Outcome::Failed(status.message),
        _ => broken("unknown error"),
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded,
    /// By itself, and not well.
    Exited(u8),
    /// Not by itself, or it did not begin.
    Failed(String),
}

impl Outcome {
    /// The code that it is counted by. How a command ends is no failure of those who let it run.
    pub(super) fn code(&self) -> u16 {
        match self {
            Outcome::Succeeded | Outcome::Exited(_) => 200,
            Outcome::Failed(_) => 500,
        }
    }

    /// What a client is told: a status that does not say that it is one, as in the original.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut status = Status::success(StatusDetails::default());
        status.details = None;
        match self {
            Outcome::Succeeded => {}
            Outcome::Exited(code) => {
                let why = format!("command terminated with exit code {code}");
                let cause =
                    StatusCause { reason: EXIT_CODE.into(), message: code.to_string(), ..StatusCause::default() };
                status.status = "Failure".into();
                status.reason = NON_ZERO_EXIT.into();
                status.message = format!("command terminated with non-zero exit code: {why}");
                status.details = Some(StatusDetails { causes: vec![cause], ..StatusDetails::default() });
            }
            Outcome::Failed(why) => status = Status::internal_error(why),
        }
        let json = status.to_json();
        match json.strip_prefix(br#"{"kind":"Status","apiVersion":"v1","#) {
            Some(rest) => [b"{", rest].concat(),
            None => json,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubelets_say_at_the_end_is_understood() {
        let exit = r#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;
        let failed = |text: &str| Outcome::Failed(text.to_owned());
        for (protocol, said, want) in [
            (Protocol::V4, "", Outcome::Succeeded),
            (Protocol::V4, r#"{"metadata":{},"status":"Success"}"#, Outcome::Succeeded),
            (Protocol::V4, exit, Outcome::Exited(3)),
            (
                Protocol::V4,
                &exit.replace("\"3\"", "\"300\""),
                failed("error stream protocol error: invalid exit code value \"300\""),
            ),
            (
                Protocol::V4,
                &exit.replace("ExitCode\",\"m", "Other\",\"m"),
                failed("error stream protocol error: no ExitCode cause given"),
            ),
            (
                Protocol::V4,
                r#"{"status":"Failure","reason":"NonZeroExitCode"}"#,
                failed("error stream protocol error: details must be set"),
            ),
            (Protocol::V4, r#"{"status":"Failure","message":"no such file"}"#, failed("no such file")),
            (Protocol::V4, r#"{"status":""}"#, failed("error stream protocol error: unknown error")),
            (Protocol::V3, "gone", failed("error executing remote command: gone")),
            (Protocol::V1, "gone", failed("Error executing remote command: gone")),
        ] {
            assert_eq!(protocol.outcome(said.as_bytes()), want, "{protocol:?} {said}");
        }
        assert!(
            matches!(Protocol::V4.outcome(b"{"), Outcome::Failed(why) if why.starts_with("error stream protocol error: "))
        );
    }

    #[test]
    fn clients_are_told_in_the_words_of_the_original() {
        for (outcome, want) in [
            (Outcome::Succeeded, r#"{"metadata":{},"status":"Success"}"#),
            (
                Outcome::Exited(3),
                r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 3","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#,
            ),
            (
                Outcome::Failed("no".to_owned()),
                r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: no","reason":"InternalError","details":{"causes":[{"message":"no"}]},"code":500}"#,
            ),
        ] {
            assert_eq!(String::from_utf8_lossy(&outcome.to_json()), want);
        }
    }
}
