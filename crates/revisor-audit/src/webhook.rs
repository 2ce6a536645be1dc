//! [`Webhook`]: somebody who is told of events.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use revisor_webhook::{
    ClientConfig, Credentials, Limits, Resolving, ServiceResolver, UnresolvedService, WebhookClient,
};

use crate::backend::{Counts, Plugin};

/// How long one try may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often it is tried, and by how much longer is waited each time; the original's.
const TRIES: usize = 5;
const FACTOR: f64 = 1.5;

/// What an answer has no reason to be larger than.
const MAX_ANSWER: usize = 64 * 1024;

/// Whom to tell, and how.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// Where they are.
    pub config: ClientConfig,
    /// Who the server is to them.
    pub credentials: Arc<Credentials>,
    /// How long is waited before the second try.
    pub initial_backoff: Duration,
}

#[derive(Debug)]
pub(crate) struct Webhook {
    options: WebhookOptions,
    client: WebhookClient,
}

impl Webhook {
    pub(crate) fn new(options: WebhookOptions) -> Webhook {
        Webhook { options, client: WebhookClient::new(Arc::new(NoServices), Limits::default()) }
    }

    /// Tells of these events; answers whether that was done in the end.
    pub(crate) async fn send(&self, events: &[Bytes], counts: &Counts) -> bool {
        let mut list = br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#.to_vec();
        for (at, event) in events.iter().enumerate() {
            if at > 0 {
                list.push(b',');
            }
            list.extend_from_slice(event);
        }
        list.extend_from_slice(b"]}");
        let list = Bytes::from(list);
        let WebhookOptions { config, credentials, initial_backoff } = &self.options;
        let mut backoff = *initial_backoff;
        for attempt in 1..=TRIES {
            let told = self.client.post_as(config, Some(credentials), list.clone(), TIMEOUT, MAX_ANSWER).await;
            match told {
                Ok(_) => return true,
                // Whatever it is, it may pass.
                Err(error) if attempt < TRIES => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "the audit webhook is asked again");
                    tokio::time::sleep(backoff).await;
                    backoff = backoff.mul_f64(FACTOR);
                }
                Err(error) => counts.fail(Plugin::Webhook, events.len(), &error),
            }
        }
        false
    }
}

/// The webhook is at a URL, and no service.
struct NoServices;

impl ServiceResolver for NoServices {
    fn resolve<'a>(&'a self, _: &'a str, name: &'a str, _: u16) -> Resolving<'a> {
        Box::pin(async move { Err(UnresolvedService(format!("service {name:?} not found"))) })
    }
}
