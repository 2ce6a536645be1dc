//! A server that answers what a test has written down.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::stream;

use super::*;
use crate::elsewhere::{AnswerElsewhere, Asking, ContentElsewhere, Emptying, Opening, ResourcesElsewhere};
use crate::{Sleep, SystemClock};

/// What a server says, one after the other; then nothing more.
#[derive(Default)]
struct Script {
    lists: Mutex<VecDeque<(u16, &'static str)>>,
    watches: Mutex<VecDeque<Result<&'static str, u16>>>,
    /// What it was asked for.
    asked: Mutex<Vec<String>>,
    end: tokio::sync::Notify,
}

impl Elsewhere for Script {
    fn empty<'a>(&'a self, _: &'a str) -> Emptying<'a> {
        Box::pin(std::future::ready(ContentElsewhere::default()))
    }

    fn resources(&self) -> ResourcesElsewhere {
        ResourcesElsewhere::default()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        watch::Sender::default().subscribe()
    }

    fn ask<'a>(&'a self, request: RequestElsewhere<'a>) -> Asking<'a> {
        let ActionElsewhere::Show(Some((_, after))) = request.action else { panic!("{request:?}") };
        self.asked.lock().expect("is free").push(format!("list {after}"));
        let next = self.lists.lock().expect("is free").pop_front();
        Box::pin(async move {
            let Some((code, body)) = next else { return Err("there is no more".to_owned()) };
            Ok(AnswerElsewhere { code, body: Bytes::from_static(body.as_bytes()) })
        })
    }

    fn watch<'a>(&'a self, _: &'a ResourceElsewhere, after: &'a str, _: &'a Actor) -> Opening<'a> {
        self.asked.lock().expect("is free").push(format!("watch {after}"));
        let next = self.watches.lock().expect("is free").pop_front();
        Box::pin(async move {
            match next {
                Some(Ok(text)) => {
                    // In pieces that end anywhere.
                    let pieces = text.as_bytes().chunks(7).map(|piece| Ok(Bytes::copy_from_slice(piece)));
                    Ok(Ok(stream::iter(pieces.collect::<Vec<_>>()).boxed()))
                }
                Some(Err(code)) => Ok(Err(code)),
                None => {
                    self.end.notify_one();
                    std::future::pending().await
                }
            }
        })
    }
}

/// A clock by which no time passes for those who wait.
struct Hasty(SystemClock);

impl Clock for Hasty {
    fn now(&self) -> time::OffsetDateTime {
        self.0.now()
    }

    fn uptime(&self) -> Duration {
        self.0.uptime()
    }

    fn sleep_until(&self, _: Duration) -> Sleep {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn what_went_while_nobody_looked_is_told() {
    let script = Script::default();
    *script.lists.lock().expect("is free") = VecDeque::from([
        (500, "{}"),
        (200, r#"{"metadata":{"continue":"x y"},"items":[{"metadata":{"namespace":"n","name":"a","uid":"1"}}]}"#),
        (410, "{}"),
        (200, r#"{"metadata":{"continue":"more"},"items":[{"metadata":{"namespace":"n","name":"a","uid":"1"}}]}"#),
        (200, r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"namespace":"m","name":"b","uid":"2"}}]}"#),
        (200, r#"{"metadata":{"resourceVersion":"20"},"items":null}"#),
    ]);
    *script.watches.lock().expect("is free") = VecDeque::from([
        Ok(concat!(
            r#"{"type":"ADDED","object":{"metadata":{"namespace":"n","name":"c","uid":"3","resourceVersion":"8"}}}"#,
            "\n",
            r#"{"type":"DELETED","object":{"metadata":{"namespace":"n","name":"a","uid":"1","resourceVersion":"9"}}}"#,
            "\n",
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}"#,
            "\n",
        )),
        Err(503),
        Ok("{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n"),
    ]);
    let resource = ResourceElsewhere {
        group: "e.io".to_owned(),
        version: "v1".to_owned(),
        plural: "lamps".to_owned(),
        kind: "Lamp".to_owned(),
        namespaced: true,
        verbs: Vec::new(),
    };
    let (roster, actor, clock) = (Roster::default(), Actor::controller("x"), Hasty(SystemClock::start()));
    let follow = Follow { elsewhere: &script, resource: &resource, actor: &actor, clock: &clock, roster: &roster };
    let mut told = Vec::new();
    let mut counts = Vec::new();
    let following = follow.run(|news| {
        counts.push(roster.count("elsewhere/e.io/lamps/n/"));
        told.push(match news {
            NewsElsewhere::Present(key, _) => format!("+{key}"),
            NewsElsewhere::Gone(key, _) => format!("-{key}"),
        });
    });
    tokio::select! {
        () = following => panic!("it goes on"),
        () = script.end.notified() => {}
    }
    told[5..].sort();
    let [a, b, c] = ["n/a", "m/b", "n/c"].map(|place| format!("elsewhere/e.io/lamps/{place}"));
    let want = [
        format!("+{a}"),
        format!("+{a}"),
        format!("+{b}"),
        format!("+{c}"),
        format!("-{a}"),
        format!("-{b}"),
        format!("-{c}"),
    ];
    assert_eq!(told, want);
    // Before everything is listed nobody can say how many there are.
    assert_eq!(counts[..5], [None, None, None, Some(2), Some(1)]);
    assert_eq!(roster.count("elsewhere/"), Some(0));
    let asked = script.asked.lock().expect("is free").clone();
    let want =
        ["list ", "list ", "list x y", "list ", "list more", "watch 7", "watch 12", "watch 12", "list ", "watch 20"];
    assert_eq!(asked, want);
}
