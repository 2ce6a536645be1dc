//! [`Noting`]: what is written down of one request at the level Metadata, in the mode in which nobody waits for it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow};
use revisor_audit::{
    AuditPolicy, AuditedRequest, Auditor, BackendOptions, BatchOptions, LogFormat, LogOptions, Mode, Stage,
};
use revisor_auth::{Attributes, Claims, Identity, ResourceAttributes};
use tempfile::TempDir;

use crate::object;

/// An auditor with a log, and who asks.
pub struct Noting {
    auditor: Arc<Auditor>,
    user: Identity,
    _folder: TempDir,
}

impl Noting {
    /// Must be called within a tokio runtime, whose threads write the log.
    pub fn new() -> Result<Noting> {
        let policy = object(r#"{"omitStages":["RequestReceived"],"rules":[{"level":"Metadata"}]}"#)?;
        let policy = AuditPolicy::read(&policy).map_err(|errors| anyhow!("{errors:?}"))?;
        let folder = tempfile::tempdir()?;
        let log = LogOptions {
            path: folder.path().join("audit.log"),
            format: LogFormat::Json,
            max_age: 1,
            max_backups: 2,
            max_size: 100,
            compress: false,
        };
        // Room for all that is measured: what does not fit is cheap, and is not what is asked for.
        let wait = Duration::from_millis(10);
        let batch = BatchOptions { buffer_size: 200_000, max_size: 400, max_wait: wait, throttle: None };
        let auditor = Auditor::new(policy, vec![BackendOptions::Log(log, Mode::Batch(batch), None)])?;
        let claims = Claims { name: "system:serviceaccount:team-7:robot".to_owned(), ..Claims::default() };
        Ok(Noting { auditor, user: Identity::authenticated(claims), _folder: folder })
    }

    /// A request that came, was allowed and answered; whether it was written down.
    pub fn note(&self) -> bool {
        let resource = ResourceAttributes {
            version: "v1",
            resource: "configmaps",
            namespace: Some("team-7"),
            name: Some("c"),
            ..ResourceAttributes::default()
        };
        let path = "/api/v1/namespaces/team-7/configmaps/c";
        let attributes = Attributes { user: &self.user, verb: "get", path, resource: Some(resource) };
        let record = self.auditor.begin(&attributes, || AuditedRequest {
            attributes: &attributes,
            audit_id: "9c3f2f4e-7d1a-4a55-8a35-0f6f9d4f7a10",
            uri: path.to_owned(),
            user_agent: "kubectl/v1.36.3 (linux/amd64) kubernetes/abcdef0",
            source_ips: vec![[127, 0, 0, 1].into()],
            received: SystemTime::now(),
        });
        let Some(record) = record else { return false };
        record.annotate("authorization.k8s.io/decision", "allow");
        record.annotate("authorization.k8s.io/reason", "RBAC: allowed by RoleBinding \"readers/team-7\"");
        record.answered_code(200);
        record.reach(Stage::RequestReceived).detach();
        record.reach(Stage::ResponseComplete).detach();
        true
    }

    /// Ends with all that was written down.
    pub async fn close(self) {
        self.auditor.close().await;
    }
}
