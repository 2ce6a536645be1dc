//! The secrets of type `kubernetes.io/service-account-token`: they are filled with a token of their account, and go when it
//! goes. The rules are those of the original (`pkg/controller/serviceaccount/tokens_controller.go`).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_cache::{Feed, Filter, Item, News};
use revisor_catalog::Resource;
use revisor_object::{Object, Value, parse_json};
use revisor_registry::{
    Actor, Decoded, DeleteOptions, FieldValidation, Format, Place, Preconditions, Registry, RegistryError, WriteOptions,
};
use tokio::sync::watch;

use crate::Clock;
use crate::controllers::{Controller, FIELD_MANAGER};
use crate::metadata::{place, text_at};
use crate::work_queue::{Backoff, Outcome, QueueTally, WorkQueue};

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

const BACKOFF: Backoff = Backoff { first: Duration::from_millis(5), longest: Duration::from_secs(300) };

/// For which account and secret a token is to be made.
#[derive(Debug, Clone, Copy)]
pub struct SecretToken<'a> {
    /// The namespace of both.
    pub namespace: &'a str,
    /// The account.
    pub account: &'a str,
    /// What tells it from others that had its name.
    pub account_uid: &'a str,
    /// The secret.
    pub secret: &'a str,
}

/// Makes the tokens of secrets; `None` if the key fails.
pub type TokenMaker = Arc<dyn Fn(SecretToken<'_>) -> Option<String> + Send + Sync>;

/// Looks after the secrets with tokens.
pub(crate) struct ServiceAccountTokens {
    registry: Arc<Registry>,
    queue: WorkQueue<Task>,
    account: Actor,
    maker: TokenMaker,
    root_ca: watch::Receiver<String>,
}

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Task {
    /// A secret that holds a token, or should.
    Secret { namespace: String, name: String },
    /// What refers to a secret that is gone.
    Reference { namespace: String, account: String, secret: String },
    /// The secrets of an account that is gone.
    Account { namespace: String, name: String, uid: String },
}

/// The two resources that matter.
struct Scene {
    accounts: Arc<Resource>,
    secrets: Arc<Resource>,
}

impl ServiceAccountTokens {
    pub(crate) fn new(
        registry: Arc<Registry>,
        clock: Arc<dyn Clock>,
        tally: Arc<QueueTally>,
        maker: TokenMaker,
        root_ca: watch::Receiver<String>,
    ) -> ServiceAccountTokens {
        let account = Controller::ServiceAccountToken.actor();
        ServiceAccountTokens { registry, queue: WorkQueue::new(clock, BACKOFF, tally), account, maker, root_ca }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let core = |plural| self.registry.built_in().resource("", "v1", plural).cloned();
        let (Some(accounts), Some(secrets)) = (core("serviceaccounts"), core("secrets")) else { return };
        let scene = Scene { accounts, secrets };
        tokio::join!(
            self.follow_secrets(&scene),
            self.follow_accounts(&scene),
            self.follow_certificates(&scene),
            self.queue.work(|task| self.work(&scene, task))
        );
    }

    async fn follow_secrets(&self, scene: &Scene) {
        let filter: Filter = Arc::new(|item| text_at(item.bytes(), &["type"]) == TYPE);
        let mut feed = Feed::open(&self.registry.cache_of(&scene.secrets), Some(filter));
        while let Some(news) = feed.next().await {
            match news {
                News::Present(item) | News::Changed { new: item, .. } => self.queue.add(secret_task(scene, &item)),
                News::Gone(item) => {
                    let (namespace, secret) = place(&scene.secrets, item.key().as_str());
                    self.queue.add(Task::Reference {
                        namespace: namespace.unwrap_or_default().to_owned(),
                        account: text_at(item.bytes(), &["metadata", "annotations", ACCOUNT_NAME]),
                        secret: secret.to_owned(),
                    });
                }
                News::Complete { .. } => {}
            }
            tokio::task::consume_budget().await;
        }
    }

    async fn follow_accounts(&self, scene: &Scene) {
        let mut feed = Feed::open(&self.registry.cache_of(&scene.accounts), None);
        while let Some(news) = feed.next().await {
            match news {
                News::Gone(item) => {
                    let (namespace, name) = place(&scene.accounts, item.key().as_str());
                    self.queue.add(Task::Account {
                        namespace: namespace.unwrap_or_default().to_owned(),
                        name: name.to_owned(),
                        uid: text_at(item.bytes(), &["metadata", "uid"]),
                    });
                }
                // Accounts may be gone that nobody heard of.
                News::Complete { again: true } => self.look_everywhere(scene),
                News::Present(_) | News::Changed { .. } | News::Complete { again: false } => {}
            }
            tokio::task::consume_budget().await;
        }
    }

    /// Every secret has the certificates of the server, also when they change.
    async fn follow_certificates(&self, scene: &Scene) {
        let mut certificates = self.root_ca.clone();
        while certificates.changed().await.is_ok() {
            self.look_everywhere(scene);
        }
    }

    fn look_everywhere(&self, scene: &Scene) {
        for item in self.tokens_in(scene, &scene.secrets.prefix) {
            self.queue.add(secret_task(scene, &item));
        }
    }

    /// The secrets with tokens whose keys begin so.
    fn tokens_in(&self, scene: &Scene, prefix: &str) -> Vec<Arc<Item>> {
        let snapshot = self.registry.cache_of(&scene.secrets).snapshot();
        let items = snapshot.range(prefix, None);
        items.filter(|item| text_at(item.bytes(), &["type"]) == TYPE).cloned().collect()
    }

    async fn work(&self, scene: &Scene, task: Task) -> Outcome {
        let worked = match &task {
            Task::Secret { namespace, name } => self.look_after(scene, namespace, name).await,
            Task::Reference { namespace, account, secret } => {
                self.remove_reference(scene, namespace, account, secret).await
            }
            Task::Account { namespace, name, uid } => self.delete_tokens(scene, namespace, name, uid).await,
        };
        match worked {
            // Somebody was faster: what they did comes as an event.
            Ok(()) | Err(RegistryError::NotFound { .. }) => Outcome::Done,
            Err(RegistryError::Conflict { .. }) => Outcome::Retry,
            Err(error) => {
                tracing::warn!(?task, ?error, "cannot look after the token of a service account");
                Outcome::Retry
            }
        }
    }

    /// Fills a secret, or deletes it if it is of an account that is not there (`syncSecret`).
    async fn look_after(&self, scene: &Scene, namespace: &str, name: &str) -> Result<(), RegistryError> {
        let Some(secret) = self.read(&scene.secrets, namespace, name)? else { return Ok(()) };
        let annotation = |key| secret.at(&["metadata", "annotations", key]).and_then(Value::as_str).unwrap_or_default();
        let (account, wanted_uid) = (annotation(ACCOUNT_NAME), annotation(ACCOUNT_UID));
        let found = self.read(&scene.accounts, namespace, account)?;
        let uid = found.as_ref().and_then(|found| found.at(&["metadata", "uid"])).and_then(Value::as_str);
        match uid.filter(|uid| wanted_uid.is_empty() || wanted_uid == *uid) {
            None => self.delete(scene, namespace, name, &secret).await,
            Some(uid) => {
                let token = SecretToken { namespace, account, account_uid: uid, secret: name };
                let Some(filled) = self.filled(&secret, token) else { return Ok(()) };
                self.update(&scene.secrets, namespace, name, filled).await
            }
        }
    }

    /// The secret with all that it should have; `None` if it has that already (`generateTokenIfNeeded`).
    fn filled(&self, secret: &Object, token: SecretToken<'_>) -> Option<Object> {
        let data = |key| secret.at(&["data", key]).and_then(Value::as_str).unwrap_or_default();
        let certificates = STANDARD.encode(&*self.root_ca.borrow());
        let needs_certificates = !certificates.is_empty() && data("ca.crt") != certificates;
        let (needs_namespace, needs_token) = (data("namespace").is_empty(), data("token").is_empty());
        if !needs_certificates && !needs_namespace && !needs_token {
            return None;
        }
        let made = if needs_token {
            let Some(made) = (self.maker)(token) else {
                tracing::error!(secret = token.secret, "the key of service accounts signs nothing");
                return None;
            };
            Some(made)
        } else {
            None
        };
        let mut secret = secret.clone();
        let data = secret.object_mut("data");
        if needs_certificates {
            data.insert("ca.crt", certificates);
        }
        if needs_namespace {
            data.insert("namespace", STANDARD.encode(token.namespace));
        }
        if let Some(made) = made {
            data.insert("token", STANDARD.encode(made));
        }
        let annotations = secret.object_mut("metadata").object_mut("annotations");
        annotations.insert(ACCOUNT_NAME, token.account);
        annotations.insert(ACCOUNT_UID, token.account_uid);
        Some(secret)
    }

    /// Takes a secret that is gone out of its account (`removeSecretReference`).
    async fn remove_reference(
        &self,
        scene: &Scene,
        namespace: &str,
        account: &str,
        secret: &str,
    ) -> Result<(), RegistryError> {
        let Some(mut found) = self.read(&scene.accounts, namespace, account)? else { return Ok(()) };
        let is_other = |reference: &&Value| reference.as_object().and_then(|one| one.str("name")) != Some(secret);
        let kept: Vec<Value> = found.array("secrets").iter().filter(is_other).cloned().collect();
        if kept.len() == found.array("secrets").len() || self.read(&scene.secrets, namespace, secret)?.is_some() {
            return Ok(());
        }
        found.insert("secrets", kept);
        self.update(&scene.accounts, namespace, account, found).await
    }

    /// Deletes the secrets of an account that is gone (`syncServiceAccount`).
    async fn delete_tokens(&self, scene: &Scene, namespace: &str, name: &str, uid: &str) -> Result<(), RegistryError> {
        let again = self.read(&scene.accounts, namespace, name)?;
        if again.is_some_and(|again| again.at(&["metadata", "uid"]).and_then(Value::as_str) == Some(uid)) {
            return Ok(());
        }
        for item in self.tokens_in(scene, &format!("{}{namespace}/", scene.secrets.prefix)) {
            let annotation = |key| text_at(item.bytes(), &["metadata", "annotations", key]);
            let of = annotation(ACCOUNT_UID);
            if annotation(ACCOUNT_NAME) != name || !(of.is_empty() || of == uid) {
                continue;
            }
            let (_, secret) = place(&scene.secrets, item.key().as_str());
            if let Some(found) = self.read(&scene.secrets, namespace, secret)? {
                self.delete(scene, namespace, secret, &found).await?;
            }
        }
        Ok(())
    }

    async fn delete(&self, scene: &Scene, namespace: &str, name: &str, secret: &Object) -> Result<(), RegistryError> {
        let place = Place { resource: &scene.secrets, namespace: Some(namespace), name: Some(name) };
        let uid = secret.at(&["metadata", "uid"]).and_then(Value::as_str).map(str::to_owned);
        let preconditions = Preconditions { uid, ..Preconditions::default() };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        match self.registry.delete_for(place, &options, self.account.options()).await {
            // Another one has the name by now, which is none of our business.
            Ok(_) | Err(RegistryError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn read(&self, resource: &Arc<Resource>, namespace: &str, name: &str) -> Result<Option<Object>, RegistryError> {
        let Some(item) = self.registry.cache_of(resource).get(&resource.key(Some(namespace), name)) else {
            return Ok(None);
        };
        match parse_json(item.bytes()).map(|parsed| parsed.value) {
            Ok(Value::Object(object)) => Ok(Some(object)),
            _ => Err(RegistryError::Unreadable),
        }
    }

    async fn update(
        &self,
        resource: &Arc<Resource>,
        namespace: &str,
        name: &str,
        object: Object,
    ) -> Result<(), RegistryError> {
        let text = Value::Object(object).to_json();
        let decoded = Decoded::read(resource, Format::Json, text.as_bytes(), FieldValidation::Ignore)?;
        // It names its version, so that a change in between is not overwritten but looked at again.
        let place = Place { resource, namespace: Some(namespace), name: Some(name) };
        let options = WriteOptions { field_manager: FIELD_MANAGER, ..self.account.options() };
        self.registry.update(place, decoded, options).await.map(drop)
    }
}

fn secret_task(scene: &Scene, item: &Item) -> Task {
    let (namespace, name) = place(&scene.secrets, item.key().as_str());
    Task::Secret { namespace: namespace.unwrap_or_default().to_owned(), name: name.to_owned() }
}
