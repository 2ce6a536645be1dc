//! `serviceaccounts/token`: makes tokens for service accounts, and knows the objects that tokens are bound to.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use revisor_auth::{
    BoxFuture, LegacySecret, LegacyTokens, NewToken, ObjectLookup, SecretLookup, ServiceAccounts, TokenObject,
    TokenObjectState, TokenSubject,
};
use revisor_catalog::{Feature, ObjectRoute, Resource};
use revisor_object::{FieldError, FieldErrors, KindRef, Object, ResourceRef, Status, Value, Warnings};
use revisor_registry::{
    Decoded, Format, GroupVersionKind, Operation, Registry, RegistryError, Saved, UnstoredWrite, WriteOptions,
};
use revisor_schema::{Precision, format_timestamp};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::Api;
use crate::objects::{Refusal, note_sent, place};
use crate::representation::Representation;
use crate::reviews::take_namespace;

const MIN_SECONDS: i64 = 10 * 60;
const MAX_SECONDS: i64 = 1 << 32;

/// A token for a pod that asks for this long is meant to be replaced after about an hour. It stays good for longer, for
/// programs that read it only once.
const REPLACED_AFTER: i64 = 60 * 60 + 7;

/// The note of the audit on which token was made.
const ISSUED: &str = "authentication.kubernetes.io/issued-credential-id";

/// The objects of a registry, for those who check tokens.
#[derive(Debug, Clone)]
pub struct StoredObjects(pub Arc<Registry>);

impl ObjectLookup for StoredObjects {
    fn find(&self, plural: &str, namespace: Option<&str>, name: &str, uid: &str) -> TokenObjectState {
        let found = self.0.stored_identity(plural, namespace, name, |known, deleted| {
            if known != uid {
                return TokenObjectState::Another { uid: known.to_owned() };
            }
            let deleted = deleted.and_then(|time| OffsetDateTime::parse(time, &Rfc3339).ok());
            TokenObjectState::There { deleted_at: deleted.map(SystemTime::from) }
        });
        found.unwrap_or(TokenObjectState::Missing)
    }
}

impl SecretLookup for StoredObjects {
    fn secret(&self, namespace: &str, name: &str) -> Option<Object> {
        self.0.stored("", "v1", "secrets", Some(namespace), name)
    }
}

impl LegacyTokens for StoredObjects {
    fn account(&self, namespace: &str, name: &str) -> Option<Object> {
        self.0.stored("", "v1", "serviceaccounts", Some(namespace), name)
    }

    fn label<'a>(&'a self, secret: &'a LegacySecret, label: &'a str, value: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let LegacySecret { namespace, name, uid } = secret;
            if let Err(error) = self.0.label_secret(namespace, name, uid, label, value).await {
                tracing::error!(?error, namespace, name, "cannot note on a secret when its token was last shown");
            }
        })
    }
}

impl Api {
    /// Answers the request for a token with the request and the token in it.
    pub(crate) async fn request_token(
        &self,
        route: &ObjectRoute,
        format: Format,
        text: &[u8],
        options: WriteOptions<'_>,
        representation: &Representation,
    ) -> Result<Saved, Refusal> {
        let registry = &self.options.registry;
        let part = route.subresource.as_deref().and_then(|name| route.resource.subresource(name));
        let kind =
            part.and_then(|part| part.other_kind).and_then(|(of, kind)| registry.built_in().other_kind(of, kind));
        let (Some(kind), Some(accounts)) = (kind, self.options.authenticator.service_accounts()) else {
            return Err(Box::new(Status::method_not_allowed()).into());
        };
        let decoded = Decoded::read(kind, format, text, options.validation)?;
        let warnings = decoded.warnings.clone();
        note_sent(representation, kind, decoded.object());
        let mut request = decoded.into_object();
        kind.default(&mut request);
        take_namespace(&mut request, route.namespace.as_deref())?;
        registry.record_sender(kind, &mut request, options).await;
        let write = UnstoredWrite {
            place: place(route),
            own_kind: Some(GroupVersionKind { group: &kind.group, version: &kind.version, kind: &kind.kind }),
            operation: Operation::Create,
            options,
        };
        registry.admit_unstored(&write, &mut request).await?;
        registry.cache().freshen().await.map_err(RegistryError::from)?;
        let asked = Asked { registry, accounts, kind, now: SystemTime::now() };
        let mut warnings_of_request = Warnings::default();
        asked.complete(route, &mut request, &mut warnings_of_request)?;
        registry.validate_unstored(&write, &request).await?;
        let mut saved = asked.answer(route, request, warnings_of_request, options).await?;
        saved.warnings = warnings.into_iter().chain(saved.warnings).collect();
        Ok(saved)
    }
}

/// A request for a token while it is answered.
struct Asked<'a> {
    registry: &'a Registry,
    accounts: &'a ServiceAccounts,
    kind: &'a Arc<Resource>,
    now: SystemTime,
}

impl Asked<'_> {
    /// Fills in what a request leaves out, and refuses one that cannot be granted.
    fn complete(&self, route: &ObjectRoute, request: &mut Object, warnings: &mut Warnings) -> Result<(), Refusal> {
        let namespace = route.namespace.as_deref().unwrap_or_default();
        let name = route.name.as_deref().unwrap_or_default();
        take_namespace(request, Some(namespace))?;
        self.check_name(request, name)?;
        let account = self.find("serviceaccounts", Some(namespace), name)?;
        let uid = uid_of(&account);
        let metadata = request.object_mut("metadata");
        let named = metadata.str("uid").unwrap_or_default().to_owned();
        if named.is_empty() {
            metadata.insert("uid", &*uid);
        } else if named != uid {
            let why =
                format!("the UID in the token request ({named}) does not match the UID of the service account ({uid})");
            let gate = Feature::TokenRequestServiceAccountUIDValidation;
            if self.registry.built_in().features().has(gate) {
                return Err(self.conflict(&self.kind.group, &self.kind.kind, name, &why));
            }
            let later = "In the future, this will return a conflict error";
            warnings.push(format!("{why} but {} is not enabled. {later}", gate.name()));
        }
        metadata.insert("name", name);
        metadata.insert("creationTimestamp", self.timestamp(self.now));
        let spec = request.object_mut("spec");
        if spec.array("audiences").is_empty() {
            spec.insert("audiences", self.accounts.audiences().iter().map(|one| (&**one).into()).collect::<Vec<_>>());
        }
        let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or_default();
        request.remove("status");
        self.check_expiration(seconds)
    }

    /// Makes the token, and answers the request with it.
    async fn answer(
        &self,
        route: &ObjectRoute,
        mut request: Object,
        mut warnings: Warnings,
        options: WriteOptions<'_>,
    ) -> Result<Saved, Refusal> {
        let namespace = route.namespace.as_deref().unwrap_or_default();
        let name = route.name.as_deref().unwrap_or_default();
        let uid = uid_of(&self.find("serviceaccounts", Some(namespace), name)?);
        let spec = request.object_mut("spec");
        let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or_default();
        let mut subject = TokenSubject {
            namespace: namespace.to_owned(),
            serviceaccount: TokenObject { name: name.to_owned(), uid },
            ..TokenSubject::default()
        };
        if let Some(reference) = spec.object("boundObjectRef") {
            self.bind(&mut subject, reference)?;
        }
        let most =
            self.accounts.max_expiration().map_or(i64::MAX, |most| most.as_secs().try_into().unwrap_or(i64::MAX));
        let granted = seconds.min(most);
        if granted < seconds {
            warnings.push(format!("requested expiration of {seconds} seconds shortened to {granted} seconds"));
            spec.insert("expirationSeconds", granted);
        }
        let audiences: Vec<String> =
            spec.array("audiences").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let extended = self.extended(&subject, granted, &audiences);
        let granted = Duration::from_secs(granted.unsigned_abs());
        if extended.is_some() {
            subject.warnafter = Some(seconds_since_epoch(self.now + granted));
        }
        let lifetime = extended.unwrap_or(granted);
        let id = uuid::Uuid::new_v4().to_string();
        let note = format!("JTI={id}");
        let token = self.accounts.issue(NewToken { subject, audiences, now: self.now, lifetime, id }).await;
        let token =
            token.map_err(|why| Box::new(Status::internal_error(format!("failed to generate token: {why}"))))?;
        if let Some(notes) = options.notes {
            notes.annotate(ISSUED.to_owned(), note);
        }
        let status: Object =
            [("token", Value::from(token)), ("expirationTimestamp", self.timestamp(self.now + granted).into())]
                .into_iter()
                .collect();
        request.insert("status", status);
        Ok(Saved::new(self.kind.encode(&request).bytes.into(), true, warnings))
    }

    /// The name of a request may be left out, but not be another.
    fn check_name(&self, request: &Object, name: &str) -> Result<(), Refusal> {
        let given = request.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default();
        if given.is_empty() || given == name {
            return Ok(());
        }
        let detail = "must match the service account name if specified";
        Err(self.invalid(name, FieldErrors::from([FieldError::invalid("metadata.name", given, detail)])))
    }

    fn check_expiration(&self, seconds: i64) -> Result<(), Refusal> {
        let detail = match seconds {
            ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
            _ if seconds > MAX_SECONDS => "may not specify a duration larger than 2^32 seconds",
            _ => return Ok(()),
        };
        Err(self.invalid("", FieldErrors::from([FieldError::invalid("spec.expirationSeconds", seconds, detail)])))
    }

    /// Makes the token depend on an object.
    fn bind(&self, subject: &mut TokenSubject, reference: &Object) -> Result<(), Refusal> {
        let text = |name| reference.str(name).unwrap_or_default();
        let (kind, name, api_version) = (text("kind"), text("name"), text("apiVersion"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let namespace = Some(subject.namespace.as_str());
        let (plural, namespace) = match (group, kind) {
            ("", "Pod") => ("pods", namespace),
            ("", "Secret") => ("secrets", namespace),
            ("", "Node") => ("nodes", None),
            _ => {
                let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                return Err(Box::new(Status::bad_request(message)).into());
            }
        };
        if name.is_empty() {
            return Err(Box::new(Status::bad_request("Name parameter required.")).into());
        }
        let object = self.find(plural, namespace, name)?;
        let bound = TokenObject { name: name.to_owned(), uid: uid_of(&object) };
        if kind == "Pod" {
            let spec = |name| object.at(&["spec", name]).and_then(Value::as_str).unwrap_or_default();
            let account = &subject.serviceaccount.name;
            if spec("serviceAccountName") != account {
                let message = format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                );
                return Err(Box::new(Status::bad_request(message)).into());
            }
            let node = spec("nodeName");
            if !node.is_empty() {
                let known = self.registry.stored("", "v1", "nodes", None, node);
                let uid = known.as_ref().map(uid_of).unwrap_or_default();
                subject.node = Some(TokenObject { name: node.to_owned(), uid });
            }
        }
        let named = text("uid");
        if !named.is_empty() && named != bound.uid {
            let why = format!(
                "the UID in the bound object reference ({named}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            return Err(self.conflict(group, kind, name, &why));
        }
        match kind {
            "Pod" => subject.pod = Some(bound),
            "Secret" => subject.secret = Some(bound),
            _ => subject.node = Some(bound),
        }
        Ok(())
    }

    /// How long a token stays good that is meant to be replaced sooner, if it is one of those.
    fn extended(&self, subject: &TokenSubject, granted: i64, audiences: &[String]) -> Option<Duration> {
        let own = self.accounts.audiences();
        let is_meant = subject.pod.is_some()
            && granted == REPLACED_AFTER
            && audiences.iter().all(|audience| own.contains(audience));
        self.accounts.extended_expiration().filter(|_| is_meant)
    }

    fn find(&self, plural: &str, namespace: Option<&str>, name: &str) -> Result<Object, Refusal> {
        let found = self.registry.stored("", "v1", plural, namespace, name);
        found.ok_or_else(|| Box::new(Status::not_found(ResourceRef { group: "", resource: plural }, name)).into())
    }

    fn timestamp(&self, time: SystemTime) -> String {
        format_timestamp(time.into(), Precision::Seconds)
    }

    fn invalid(&self, name: &str, errors: FieldErrors) -> Refusal {
        let kind = KindRef { group: &self.kind.group, kind: &self.kind.kind };
        Box::new(Status::invalid(kind, name, &errors)).into()
    }

    fn conflict(&self, group: &str, kind: &str, name: &str, why: &str) -> Refusal {
        Box::new(Status::conflict(ResourceRef { group, resource: kind }, name, why)).into()
    }
}

fn uid_of(object: &Object) -> String {
    object.object("metadata").and_then(|metadata| metadata.str("uid")).unwrap_or_default().to_owned()
}

fn seconds_since_epoch(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
