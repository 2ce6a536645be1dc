//! [`Party`]: one of the two servers, and what its answers have told so far.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
pub use revisor_bench::Endpoint;
use revisor_bench::{Connection, Connector, Exchange};
use serde_json::Value;

use crate::group::{Group, Step};
use crate::normal::{Known, Normal};
use crate::script::WAIT;

/// How long an answer may take. Watches that are asked for end sooner by themselves.
const TIMEOUT: Duration = Duration::from_secs(40);

/// How often a server is asked for what it does not have yet.
const PATIENCE: usize = 200;

/// How long it is left alone in between.
const PAUSE: Duration = Duration::from_millis(50);

/// One of the two servers.
pub struct Party {
    connector: Connector,
    connection: Option<Connection>,
    /// What all names of this run begin with.
    run: String,
    /// What stands for the places of a text: `rv` and so on.
    filled: HashMap<&'static str, String>,
    /// The resource versions that it told in this group.
    versions: Vec<String>,
}

impl Party {
    /// The server at this address. All names begin with `run`, a short word that no other run has.
    pub fn new(endpoint: Endpoint, run: &str) -> Result<Party> {
        let connector = Connector::new(endpoint)?;
        let (filled, versions) = (HashMap::new(), Vec::new());
        Ok(Party { connector, connection: None, run: run.to_owned(), filled, versions })
    }

    /// Sends the requests of a group, whose number no other has, and answers what came back, one for each.
    pub async fn play(&mut self, group: &Group, number: u64) -> Result<Vec<Normal>> {
        // As long as any other, so that limits of lengths are met by the same groups.
        let name = format!("{}-{number:06}", self.run);
        self.filled.clear();
        self.versions.clear();
        self.filled.insert("ns", name.clone());
        self.filled.insert("name", name);
        if group.steps.iter().any(|step| step.path.contains("${ns}")) {
            self.make_namespace().await?;
        }
        let mut answers = Vec::with_capacity(group.steps.len());
        for step in &group.steps {
            if step.method == WAIT {
                self.wait(&Step::new("GET", step.path.clone())).await?;
                answers.push(Normal::default());
                continue;
            }
            let last = self.filled.get("rv").cloned();
            let exchange = self.ask(step).await?;
            let known = Known { run: &self.run, versions: &self.versions, last: last.as_deref() };
            answers.push(Normal::of(&exchange, known));
        }
        self.clean(group).await?;
        Ok(answers)
    }

    /// Some things a server learns of in time only, such as that a definition is served.
    async fn wait(&mut self, step: &Step) -> Result<()> {
        for _ in 0..PATIENCE {
            if self.ask(step).await?.status == 200 {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Without controllers nobody makes the account without which no pod is looked at any further.
    async fn make_namespace(&mut self) -> Result<()> {
        let named = |name: &str| format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}");
        let namespace = Step::new("POST", "/api/v1/namespaces").text("application/json", named("${ns}"));
        let account = Step::new("POST", "/api/v1/namespaces/${ns}/serviceaccounts");
        self.ask(&namespace).await?;
        self.ask(&account.text("application/json", named("default"))).await?;
        Ok(())
    }

    /// Removes what a group left outside of its namespace: it could be in the way of others.
    async fn clean(&mut self, group: &Group) -> Result<()> {
        for step in &group.steps {
            let path = step.path.split('?').next().unwrap_or_default();
            let is_kept = step.method == "POST" && !step.path.contains("dryRun") && !path.ends_with("reviews");
            if !is_kept || path.contains("${") {
                continue;
            }
            let named = format!("{path}/${{name}}");
            let nothing = "{\"metadata\":{\"finalizers\":null}}";
            self.ask(&Step::new("PATCH", named.clone()).text("application/merge-patch+json", nothing)).await?;
            self.ask(&Step::new("DELETE", named + "?gracePeriodSeconds=0")).await?;
        }
        Ok(())
    }

    /// Sends a request and reads all of the answer.
    async fn ask(&mut self, step: &Step) -> Result<Exchange> {
        let mut request = Vec::new();
        let body = step.body_text().map(|text| self.fill(&text));
        let headers: Vec<(String, String)> =
            step.headers.iter().map(|(name, value)| (name.clone(), self.fill(value))).collect();
        let path = self.fill(&step.path).replace(' ', "%20");
        self.connector.request_with(&mut request, &step.method, &path, &headers, body.as_deref().map(str::as_bytes));
        let exchange = self.exchange(&request).await.with_context(|| format!("{} {path}", step.method))?;
        self.learn(&exchange);
        Ok(exchange)
    }

    /// A connection that was left open may be gone by now, which is found out by using it.
    async fn exchange(&mut self, request: &[u8]) -> Result<Exchange> {
        if let Some(mut connection) = self.connection.take()
            && let Ok(Ok(exchange)) = tokio::time::timeout(TIMEOUT, connection.exchange(request)).await
        {
            self.keep(connection, &exchange);
            return Ok(exchange);
        }
        let mut connection = self.connector.connect().await?;
        let exchange = tokio::time::timeout(TIMEOUT, connection.exchange(request)).await.context("no answer")??;
        self.keep(connection, &exchange);
        Ok(exchange)
    }

    fn keep(&mut self, connection: Connection, exchange: &Exchange) {
        let closes = exchange.headers.iter().any(|(name, value)| name == "connection" && value == "close");
        self.connection = (!closes).then_some(connection);
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (place, value) in &self.filled {
            text = text.replace(&format!("${{{place}}}"), value);
        }
        text
    }

    fn learn(&mut self, exchange: &Exchange) {
        let Ok(body) = serde_json::from_slice::<Value>(&exchange.body) else { return };
        let metadata = &body["metadata"];
        for (place, field) in [("uid", "uid"), ("rv", "resourceVersion"), ("continue", "continue"), ("made", "name")] {
            if let Some(value) = metadata[field].as_str().filter(|value| !value.is_empty()) {
                self.filled.insert(place, value.to_owned());
            }
        }
        let items = body["items"].as_array().into_iter().flatten().map(|item| &item["metadata"]);
        for metadata in std::iter::once(metadata).chain(items) {
            if let Some(version) = metadata["resourceVersion"].as_str().filter(|version| version.len() > 1) {
                self.versions.push(version.to_owned());
            }
        }
    }
}
