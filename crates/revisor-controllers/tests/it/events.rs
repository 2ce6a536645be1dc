//! Events expire, whether any controller runs or not.

use std::time::Duration;

use crate::fixture::Fixture;

const MINUTE: Duration = Duration::from_secs(60);
const DEFAULT: Option<&str> = Some("default");

async fn event(fixture: &Fixture, name: &str) {
    let text = format!(r#"{{"metadata":{{"name":"{name}"}},"involvedObject":{{"namespace":"default"}}}}"#);
    fixture.create("events", DEFAULT, &text).await;
}

#[tokio::test]
async fn an_event_that_was_there_before_the_start_lives_for_the_rest_of_its_time() {
    let fixture = Fixture::new().await;
    event(&fixture, "old").await;
    fixture.clock.advance(50 * MINUTE);
    let _controllers = fixture.start(&[]);
    fixture.clock.awaited(60 * MINUTE).await;
    fixture.clock.advance(9 * MINUTE);
    assert!(fixture.get("events", DEFAULT, "old").is_some());
    fixture.clock.advance(MINUTE);
    fixture.gone("events", DEFAULT, "old").await;
}

#[tokio::test]
async fn a_write_renews_an_event() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[]);
    event(&fixture, "a").await;
    fixture.config_map("no-event", "").await;
    fixture.clock.awaited(60 * MINUTE).await;
    fixture.clock.advance(40 * MINUTE);
    fixture.patch("events", DEFAULT, "a", r#"{"count":2}"#).await;
    fixture.clock.awaited(100 * MINUTE).await;
    event(&fixture, "b").await;
    fixture.clock.advance(60 * MINUTE);
    fixture.gone("events", DEFAULT, "a").await;
    assert!(fixture.get("configmaps", DEFAULT, "no-event").is_some());
}
