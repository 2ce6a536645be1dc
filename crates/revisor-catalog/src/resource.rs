//! [`Resource`]: one resource of one API version, as the rest of the server sees it.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use compact_str::CompactString;
use revisor_merge::{Comparison, FieldSet, PatchError, strategic_merge_patch};
use revisor_object::names::NameRule;
use revisor_object::{BadValue, Object, Shape, Value};
use revisor_schema::{Encoded, Findings, Mismatch, Outline, ProtobufError, StructId, Types};

use sha2::{Digest, Sha256};

use crate::conversion::between;
use crate::disabled_fields::DisabledFields;
use crate::{Circumstances, Columns, Conversion, Custom, Part, ScalePaths, Strategy, kinds};

/// Versions that every scheme of the original still knows and that no release served that this one can behave as, so
/// that no table has their types.
const NEVER_SERVED: [(&str, &str); 2] = [("apiextensions.k8s.io", "v1beta1"), ("apiregistration.k8s.io", "v1beta1")];

/// What can be asked of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// POST to a collection.
    Create,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
    /// GET of one object.
    Get,
    /// GET of a collection.
    List,
    /// PATCH of one object.
    Patch,
    /// PUT of one object.
    Update,
    /// GET of a collection's changes.
    Watch,
}

impl Verb {
    /// The verb with this name.
    pub fn parse(name: &str) -> Option<Verb> {
        use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
        [Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch]
            .into_iter()
            .find(|verb| verb.as_str() == name)
    }

    /// The verb's name in discovery, authorization and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A part of an object with an address of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// The last segment of its path.
    pub name: &'static str,
    /// What can be asked of it.
    pub verbs: Vec<Verb>,
    /// The API version and kind that it speaks of, where that is not the resource's own; the version is empty where it
    /// is the resource's.
    pub other_kind: Option<(&'static str, &'static str)>,
}

/// What a deletion that removed the object answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteAnswer {
    /// A `Status` that says so.
    Status,
    /// The object as it last was.
    Object,
}

/// How a resource differs from the usual one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The rule for its names.
    pub names: NameRule,
    /// Whether PUT makes an object that does not exist.
    pub create_on_update: bool,
    /// Whether an update may leave out the resource version and overwrite what is there.
    pub unconditional_update: bool,
    /// Whether an object that comes without a name gets one that nobody has.
    pub names_nameless: bool,
    /// Whether a `generateName` is the whole name, because names mean something (`noopNameGenerator`).
    pub prefix_is_name: bool,
    /// Whether finalizers must belong to somebody's domain, or be one of those that all know. The original asks for it
    /// where a kind is validated by the rules of the core group, and not where only the machinery's are used.
    pub known_finalizers: bool,
    /// What a deletion answers.
    pub delete_answer: DeleteAnswer,
}

/// A field that field selectors may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectableField {
    /// Its name in a selector.
    pub name: &'static str,
    /// Another name that it had once and may still be called by; empty for none.
    pub older_name: &'static str,
    /// Where its value stands; of several places the first that has one counts.
    pub paths: &'static [&'static [&'static str]],
    /// Its value where the object does not show it.
    pub absent: &'static str,
}

/// One resource of one API version.
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: CompactString,
    /// The API version.
    pub version: CompactString,
    /// `version` or `group/version`, as objects show it.
    pub api_version: String,
    /// The kind of its objects.
    pub kind: CompactString,
    /// The kind of its lists.
    pub list_kind: String,
    /// Its name in paths.
    pub plural: CompactString,
    /// The name of one, for people.
    pub singular: String,
    /// Short names for people.
    pub short_names: Vec<CompactString>,
    /// Groups of kinds that people ask for together, such as `all`.
    pub categories: Vec<CompactString>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be asked of it.
    pub verbs: Vec<Verb>,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
    /// Where its objects keep what their scale shows, if they have one.
    pub scale: Option<ScalePaths>,
    /// Where its objects are stored: `/registry/configmaps/`.
    pub prefix: String,
    /// What field selectors may name beside the name and the namespace.
    pub selectable: Vec<SelectableField>,
    /// Whether field selectors may name the namespace. Some kinds without namespaces refuse it.
    pub selects_namespace: bool,
    /// How it differs from the usual one.
    pub rules: Rules,
    /// The rules of its kind.
    pub strategy: Arc<dyn Strategy>,
    /// How it is shown as a table.
    pub columns: Columns,
    /// The shape in which it shows its objects, to remember them by.
    pub shape: Shape,
    /// `{"kind":…,"apiVersion":…,`: what the items of a list leave out.
    pub type_prefix: String,
    /// What clients are told whenever they use the resource, if it is deprecated.
    pub deprecation: Option<DeprecationNotice>,
    /// Where it comes from, and what only such resources know.
    pub(crate) nature: Nature,
    /// What its objects lose when they are written, because its feature is off.
    pub(crate) disabled: DisabledFields,
    pub(crate) types: Arc<Types>,
    pub(crate) root: StructId,
}

/// That a resource should not be used any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeprecationNotice {
    /// What clients are told.
    pub warning: String,
    /// The release that no longer has it; empty if that is not decided.
    pub removed: String,
}

/// Where a resource comes from. A built-in one is worked on in the version in which it is stored, one that is defined at
/// run time in the version that is asked for.
pub(crate) enum Nature {
    /// The tables of the program.
    BuiltIn(BuiltIn),
    /// A definition.
    Custom(Arc<Custom>),
}

/// How the objects of a built-in resource are stored.
pub(crate) enum BuiltIn {
    /// In this very version, or also in others, those of other releases, nearly all of which differ by name only.
    Stored { variously: bool },
    /// In another version.
    Shown(Stored),
}

/// The version in which the objects of a resource are stored, and the way there.
pub(crate) struct Stored {
    pub(crate) resource: Arc<Resource>,
    pub(crate) conversion: Arc<dyn Conversion>,
}

/// Kinds that are the same in every version of every group.
const UNVERSIONED: [&str; 5] = ["Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"];

/// Kinds that every version of every group has.
const OPTIONS: [&str; 7] =
    ["WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"];

impl Resource {
    /// The type of its objects, and the table in which it is.
    pub fn typed(&self) -> (&Types, StructId) {
        (&self.types, self.root)
    }

    /// The type of its objects in the table of fields.
    pub fn root(&self) -> StructId {
        self.root
    }

    /// Reads an object of this resource from the wire format of protobuf.
    pub fn read_protobuf(&self, bytes: &[u8]) -> Result<Value, ProtobufError> {
        self.types.read_protobuf(self.root, bytes)
    }

    /// Keeps the texts of parts that are any JSON; `value` was read from `json`. What is spelled in one way and shown in
    /// another is told apart by [`revisor_schema::is_spelled`].
    pub fn keep_raw(&self, value: &mut Value, json: &[u8]) {
        self.types.keep_raw(self.root, value, json);
    }

    /// Whether a path, such as `spec.devices[0].parameters.x`, leads into one of them, or into what its type reads by code
    /// of its own.
    pub fn is_read_apart(&self, path: &str) -> bool {
        self.types.is_read_apart(self.root, path)
    }

    /// Whether there can be any of them in an object.
    pub fn has_raw(&self) -> bool {
        self.types.has_raw(self.root)
    }

    /// Lets go of these texts, for those who change an object whatever its type.
    pub fn open_raw(&self, object: &mut Object) {
        self.types.open_raw(self.root, object);
    }

    /// Gives what still says the same as in `old` the text that it had there.
    pub fn restore_raw(&self, object: &mut Object, old: &Object) {
        self.types.restore_raw(self.root, object, old);
    }

    /// Whether this is another version in which the kind of a built-in resource is known, served or not.
    pub fn is_also(&self, api_version: &str) -> bool {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let name = &self.types.get(self.root).name;
        let package = name.split('.').next().unwrap_or_default();
        self.custom().is_none()
            && group == self.group
            && version != self.version
            && (self.types.id(&format!("{package}.{version}.{}", self.kind)).is_some()
                || NEVER_SERVED.contains(&(group, version)))
    }

    /// What is said of an object of another kind, or of a version that nobody knows: whether the kind is known at all
    /// depends on the group. Upstream: `NewNotRegisteredErrForKind`, and what has no conversion.
    pub fn other_kind(&self, kind: &str, api_version: &str) -> String {
        let name = &self.types.get(self.root).name;
        // Events of both groups are of one internal type.
        let package = name.split('.').next().map_or("", |package| if package == "events" { "core" } else { package });
        if let Some(version) = self.registered_as(package, kind, api_version) {
            return format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", self.kind);
        }
        let scheme = match package {
            "apiextensions" => "pkg/apiserver/apiserver.go:55",
            "apiregistration" => "pkg/apiserver/scheme/scheme.go:28",
            _ => "pkg/api/legacyscheme/scheme.go:30",
        };
        let (kind, version) = (BadValue::from(kind), BadValue::from(api_version));
        format!("no kind {kind} is registered for version {version} in scheme {scheme:?}")
    }

    /// The version of the type that the scheme which reads objects of this resource, and is of this package, knows another
    /// kind by.
    fn registered_as<'v>(&self, package: &str, kind: &str, api_version: &'v str) -> Option<&'v str> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        // What all groups share is of one version, and some of it of none.
        let is_shared = OPTIONS.contains(&kind) && (api_version == "v1" || api_version == self.api_version);
        if UNVERSIONED.contains(&kind) || is_shared {
            return Some("v1");
        }
        let is_apart = |package: &str| matches!(package, "apiextensions" | "apiregistration");
        let other = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or_default() };
        let is_in_scheme = match is_apart(package) {
            true => group == self.group,
            false => !is_apart(other) && (!group.contains('.') || group.ends_with(".k8s.io")),
        };
        // Objects of a kind say first what they are.
        let is_kind = |kind: &str| {
            let found = self.types.id(&format!("{other}.{version}.{kind}"));
            let first = found.into_iter().flat_map(|id| self.types.get(id).fields.iter().take(2));
            first.map(|field| &*field.name).eq(["kind", "apiVersion"])
        };
        let is_list = || kind.strip_suffix("List").is_some_and(|item| is_kind(item) || (item, other) == ("", "core"));
        (is_in_scheme && (is_kind(kind) || is_list())).then_some(version)
    }

    /// What its definition says, if it is a custom resource.
    pub fn custom(&self) -> Option<&Custom> {
        match &self.nature {
            Nature::Custom(custom) => Some(custom),
            Nature::BuiltIn(_) => None,
        }
    }

    /// What its objects are stored as, where that is another built-in version.
    /// Takes out of a new object what a client may not set or what is off, and sets what a new object must have.
    pub fn prepare_create(&self, object: &mut Object, circumstances: Circumstances<'_>) {
        self.disabled.drop(object, None);
        self.strategy.prepare_create(object, circumstances);
    }

    /// Puts back what a write of this part may not change, and takes out what is off and was not used before.
    pub fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, circumstances: Circumstances<'_>) {
        self.disabled.drop(object, Some(old));
        self.strategy.prepare_update(object, old, part, circumstances);
    }

    fn stored(&self) -> Option<&Stored> {
        match &self.nature {
            Nature::BuiltIn(BuiltIn::Shown(stored)) => Some(stored),
            Nature::BuiltIn(BuiltIn::Stored { .. }) | Nature::Custom(_) => None,
        }
    }

    /// Makes a client's value fit this resource's type.
    ///
    /// # Errors
    /// What the original tells its clients of a value that cannot be made to fit.
    pub fn conform(&self, value: &mut Value) -> Result<Findings, String> {
        match &self.nature {
            Nature::Custom(custom) => custom.conform(value),
            Nature::BuiltIn(_) => self.readable(self.types.conform(self.root, value), value),
        }
    }

    /// Converts what does not fit this resource's type as the original does without JSON, after a strategic merge patch.
    ///
    /// # Errors
    /// As [`conform`](Resource::conform), in the words that are used there.
    pub fn convert_unstructured(&self, value: &mut Value) -> Result<(), String> {
        self.types.convert_unstructured(self.root, value).map_err(|mismatch| mismatch.to_string())
    }

    /// What came of making a value fit, if it can also be read.
    fn readable(&self, fitted: Result<Findings, Mismatch>, value: &Value) -> Result<Findings, String> {
        let findings = fitted.map_err(|mismatch| mismatch.to_string())?;
        match value.as_object().and_then(|object| self.strategy.unreadable(object)) {
            Some(problem) => Err(problem),
            None => Ok(findings),
        }
    }

    /// The same for what is sent to be stored: who sends a list with nothing in it owns it, though it is not stored.
    ///
    /// # Errors
    /// As [`conform`](Resource::conform).
    pub fn conform_as_sent(&self, value: &mut Value) -> Result<Findings, String> {
        match &self.nature {
            Nature::Custom(custom) => custom.conform(value),
            Nature::BuiltIn(_) => self.readable(self.types.conform_as_sent(self.root, value), value),
        }
    }

    /// Drops from an object what storing it would lose.
    pub fn forget_empty(&self, object: &mut Object) {
        if self.custom().is_none() {
            self.types.forget_empty(self.root, object);
        }
    }

    /// Makes an object to which a configuration was applied fit this resource's type. It is of its type already, but
    /// for what configurations may say and objects do not show.
    ///
    /// # Errors
    /// As [`conform`](Resource::conform).
    pub fn conform_applied(&self, value: &mut Value) -> Result<Findings, String> {
        match &self.nature {
            Nature::Custom(custom) => custom.conform_applied(value),
            Nature::BuiltIn(_) => self.readable(self.types.conform_as_applied(self.root, value), value),
        }
    }

    /// Takes a configuration that a client applies: what nobody can set is ignored, and what is said in an old way is
    /// said in the canonical one.
    ///
    /// # Errors
    /// What is to be told of a configuration that has no canonical form.
    pub fn take_config(&self, config: &mut Value) -> Result<(), String> {
        match &self.nature {
            Nature::Custom(custom) => custom.take_sent(config),
            Nature::BuiltIn(_) => Ok(()),
        }
    }

    /// Whether every object can be shown at once: nobody has to be asked, and nothing can fail.
    pub fn is_certain(&self) -> bool {
        match &self.nature {
            Nature::Custom(custom) => custom.is_certain(),
            Nature::BuiltIn(_) => true,
        }
    }

    /// The resource in the version in which its objects are stored.
    pub fn storage(self: &Arc<Self>) -> &Arc<Resource> {
        self.stored().map_or(self, |stored| &stored.resource)
    }

    /// The resource in the version in which its objects are worked on: that in which they are stored, or the one that
    /// the client speaks of if only that one knows their fields.
    pub fn working(self: &Arc<Self>) -> &Arc<Resource> {
        match &self.nature {
            Nature::Custom(_) => self,
            Nature::BuiltIn(_) => self.storage(),
        }
    }

    /// Whether there are objects to be read: some resources only answer to a POST. What is stored can be watched.
    pub fn is_stored(&self) -> bool {
        self.verbs.contains(&Verb::Watch)
    }

    /// Whether objects are stored in this very version.
    pub fn is_storage(&self) -> bool {
        match &self.nature {
            Nature::BuiltIn(BuiltIn::Stored { .. }) => true,
            Nature::BuiltIn(BuiltIn::Shown(_)) => false,
            Nature::Custom(custom) => custom.storage_version() == self.api_version,
        }
    }

    /// Whether these bytes of a stored object do not say that it is of this version: another release wrote them, or this
    /// one when it was told to behave as another. Nearly always nothing but the name differs: see `read_otherwise`.
    pub fn is_stored_otherwise(&self, stored: &[u8]) -> bool {
        let is_various = matches!(&self.nature, Nature::BuiltIn(BuiltIn::Stored { variously: true }));
        is_various && !stored.trim_ascii_start().starts_with(self.type_prefix.as_bytes())
    }

    /// Brings an object that was stored by another release to the shape in which this one stores it, where the two
    /// differ: of built-in kinds only those that were alpha.
    pub fn read_otherwise(&self, object: &mut Object) {
        match &self.nature {
            Nature::BuiltIn(BuiltIn::Shown(stored)) => stored.resource.read_otherwise(object),
            Nature::BuiltIn(BuiltIn::Stored { variously: true }) => {
                let api_version = object.str("apiVersion").unwrap_or_default();
                let (_, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
                if api_version.is_empty() || version == self.version {
                    return;
                }
                let former = kinds::conversion(&self.group, version, &self.plural);
                between(former, kinds::conversion(&self.group, &self.version, &self.plural)).to_stored(object);
            }
            Nature::BuiltIn(BuiltIn::Stored { .. }) | Nature::Custom(_) => {}
        }
    }

    /// Brings an object of this version to the shape in which it is stored.
    pub fn to_stored(&self, object: &mut Object) {
        if let Some(stored) = self.stored() {
            // What this version leaves out is filled in as this version says.
            self.types.fill_defaults(self.root, object);
            stored.conversion.to_stored(object);
        }
    }

    /// Brings a stored object to the shape of this version.
    pub fn to_shown(&self, object: &mut Object) {
        if let Some(stored) = self.stored() {
            stored.conversion.to_shown(object);
        }
    }

    /// An object of this version as another built-in version of the resource shows it. Nothing is filled in but what is
    /// always written.
    ///
    /// # Errors
    /// As [`conform`](Resource::conform).
    pub fn as_shown_by(&self, other: &Resource, object: &Object) -> Result<Object, String> {
        let conformed = |resource: &Resource, object: Object| {
            let mut value = Value::Object(object);
            resource.conform(&mut value)?;
            Ok::<Object, String>(value.as_object_mut().map(std::mem::take).unwrap_or_default())
        };
        let mut object = conformed(self, object.clone())?;
        if let Some(stored) = self.stored() {
            stored.conversion.to_stored_plainly(&mut object);
        }
        other.to_shown(&mut object);
        let mut object = conformed(other, object)?;
        other.complete(&mut object);
        Ok(object)
    }

    /// Fills in what a client may leave out.
    pub fn default(&self, object: &mut Object) {
        match &self.nature {
            Nature::Custom(custom) => custom.schema.default(object),
            Nature::BuiltIn(_) => {
                self.types.fill_defaults(self.root, object);
                self.strategy.default(object);
            }
        }
    }

    /// Gives an object every field that is always written, so that it can be compared with a stored one.
    pub fn complete(&self, object: &mut Object) {
        if let Nature::BuiltIn(_) = &self.nature {
            self.types.complete(self.root, object);
        }
    }

    /// Why an applied object is not of its type; `None` if it is.
    pub fn typed_problem(&self, object: &Object) -> Option<String> {
        self.types.typed_problems(self.root, object)
    }

    /// Applies a strategic merge patch to an object of this resource.
    pub fn strategic_merge_patch(&self, target: &mut Value, patch: Value) -> Result<(), PatchError> {
        strategic_merge_patch(&self.types, self.root, target, patch)
    }

    /// Which places a write that puts `new` in place of `old` adds, changes and removes.
    pub fn compare(&self, old: &Object, new: &Object) -> Comparison {
        Comparison::of(&self.types, self.root, old, new)
    }

    /// The places that an object fills.
    pub fn filled(&self, object: &Object) -> FieldSet {
        FieldSet::filled(&self.types, self.root, object)
    }

    /// The canonical bytes of an object of this resource. It must conform, and have a creation time if it is to be stored.
    pub fn encode(&self, object: &Object) -> Encoded {
        match &self.nature {
            Nature::Custom(custom) => custom.encode(object),
            Nature::BuiltIn(_) => self.types.encode(self.root, &self.kind, &self.api_version, object),
        }
    }

    /// What `stored` says at its top, without reading the rest, and where. Nothing of what is not stored as it would be
    /// today.
    pub fn outline(&self, stored: &[u8]) -> Option<(Outline, Object)> {
        let is_plain = matches!(self.nature, Nature::BuiltIn(BuiltIn::Stored { .. }));
        let is_current = is_plain && stored.starts_with(self.type_prefix.as_bytes());
        if is_current { self.types.outline(self.root, stored) } else { None }
    }

    /// The same of a built-in object for those who are shown it before it is stored: with the revision that it says itself.
    pub fn encode_as_it_is(&self, object: &Object) -> Vec<u8> {
        self.types.encode_as_it_is(self.root, &self.kind, &self.api_version, object)
    }

    /// Where the object `name` is stored.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> String {
        let mut key = self.collection(namespace);
        key.push_str(name);
        key
    }

    /// What the keys of a collection start with: of one namespace, or of all.
    pub fn collection(&self, namespace: Option<&str>) -> String {
        let mut key = String::with_capacity(self.prefix.len() + 64);
        key.push_str(&self.prefix);
        if let Some(namespace) = namespace {
            key.push_str(namespace);
            key.push('/');
        }
        key
    }

    /// The subresource `name`.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// What discovery shows of the version that objects are stored in, so that clients notice when it changes.
    pub fn storage_version_hash(&self) -> String {
        let stored = match &self.nature {
            // The original writes definitions down in a version that it no longer serves, and says so.
            Nature::BuiltIn(_) if self.group == "apiextensions.k8s.io" => "apiextensions.k8s.io/v1beta1",
            Nature::BuiltIn(BuiltIn::Stored { .. }) => &*self.api_version,
            Nature::BuiltIn(BuiltIn::Shown(stored)) => &stored.resource.api_version,
            Nature::Custom(custom) => custom.storage_version(),
        };
        // The core group has no name, but its place.
        let slash = if stored.contains('/') { "" } else { "/" };
        let digest = Sha256::digest(format!("{slash}{stored}/{}", self.kind));
        STANDARD.encode(&digest[..8])
    }

    /// Its group and its name in paths: what tells it apart from other resources, whatever the version.
    pub fn name(&self) -> (&str, &str) {
        (&self.group, &self.plural)
    }

    /// `configmaps` or `leases.coordination.k8s.io`: how messages name the resource.
    pub fn qualified_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("name", &self.qualified_name()).field("version", &self.version).finish()
    }
}
