//! A `ConversionReview`: the question, and the answer to it.
//!
//! What is no review is refused. What is one is answered, whatever it asks for: with all objects, or with none and the
//! reason. Lists are converted by several threads; what comes out is text at once, never a tree of the whole answer.

use revisor_convert::{Conversion, KEPT_ANNOTATION, VersionSchema};
use revisor_object::{Object, Value, parse_json};

use super::rule_book::{RuleBook, split};
use super::tally::Tally;
use crate::serve::THREAD_STACK;

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// How many bytes the annotations of an object may have, keys and values. The servers of other clusters refuse more.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// How many objects a thread is worth.
const OBJECTS_PER_THREAD: usize = 64;

/// What is asked for.
pub(super) struct Review {
    uid: String,
    desired: String,
    objects: Vec<Value>,
}

impl Review {
    /// Reads a review, or says why it is none.
    pub(super) fn read(body: &[u8]) -> Result<Review, String> {
        let parsed = parse_json(body).map_err(|error| format!("the body is no JSON: {error}"))?;
        let Value::Object(mut review) = parsed.value else {
            return Err(format!("the body is no {KIND}"));
        };
        let (api_version, kind) = (review.str("apiVersion"), review.str("kind"));
        if (api_version, kind) != (Some(API_VERSION), Some(KIND)) {
            let (version, kind) = (api_version.unwrap_or_default(), kind.unwrap_or_default());
            return Err(format!("the body is no {KIND} of {API_VERSION}, but {kind:?} of {version:?}"));
        }
        let Some(Value::Object(mut request)) = review.remove("request") else {
            return Err("request is missing".to_owned());
        };
        let text = |name: &str| match request.str(name) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(format!("request.{name} is missing")),
        };
        let (uid, desired) = (text("uid")?, text("desiredAPIVersion")?);
        let objects = match request.remove("objects") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(objects)) => objects,
            Some(_) => return Err("request.objects is no list".to_owned()),
        };
        Ok(Review { uid, desired, objects })
    }

    /// How many threads it is worth.
    pub(super) fn threads(&self, most: usize) -> usize {
        (self.objects.len() / OBJECTS_PER_THREAD).clamp(1, most)
    }

    /// The answer: all objects, or none and why. Uses so many threads.
    pub(super) fn answer(self, book: &RuleBook, threads: usize, tally: &Tally) -> Vec<u8> {
        let Review { uid, desired, objects } = self;
        let number = objects.first().and_then(|object| definition_of(book, object));
        let definition = number.map(|number| &*book.entries()[number].definition);
        let name = definition.map(|definition| definition.name()).unwrap_or_default();
        // Only versions that are known become labels: nobody can make the program remember what they send.
        let versions = definition.map(|definition| definition.versions()).unwrap_or_default();
        let version = versions.iter().find(|version| version.api_version() == desired).map_or("", VersionSchema::name);
        let timer = tally.review(name, version);
        let shares = convert_in_shares(book, &desired, objects, threads);
        timer.observe_duration();
        let failed: usize = shares.iter().map(|share| share.failed).sum();
        let head = format!(r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","response":{{"uid":{}"#, json_text(&uid));
        if failed > 0 {
            tally.failed(name, version);
            let mut message = shares.into_iter().find_map(|share| share.problem).unwrap_or_default();
            if failed > 1 {
                message.push_str(&format!(" (and {} objects more)", failed - 1));
            }
            tracing::warn!(definition = name, desired, failed, message, "objects cannot be converted");
            let result = format!(r#"{{"status":"Failure","message":{}}}"#, json_text(&message));
            return format!(r#"{head},"result":{result},"convertedObjects":[]}}}}"#).into_bytes();
        }
        let mut answer = head.into_bytes();
        answer.reserve(shares.iter().map(|share| share.text.len() + 1).sum::<usize>() + 64);
        answer.extend_from_slice(br#","result":{"status":"Success"},"convertedObjects":["#);
        for (number, share) in shares.iter().enumerate() {
            if number > 0 {
                answer.push(b',');
            }
            answer.extend_from_slice(&share.text);
            for count in &share.counts {
                let definition = &book.entries()[count.entry].definition;
                tally.converted(definition.name(), definition.versions()[count.from].name(), version, count.objects);
            }
        }
        answer.extend_from_slice(b"]}}");
        answer
    }
}

/// What one thread has done.
#[derive(Default)]
struct Share {
    /// The objects, with commas between them.
    text: Vec<u8>,
    counts: Vec<Count>,
    failed: usize,
    /// Of the first that failed.
    problem: Option<String>,
}

/// How many objects of a version of a definition were converted.
struct Count {
    entry: usize,
    from: usize,
    objects: u64,
}

fn convert_in_shares(book: &RuleBook, desired: &str, objects: Vec<Value>, threads: usize) -> Vec<Share> {
    if threads <= 1 {
        return vec![Share::convert(book, desired, objects)];
    }
    let size = objects.len().div_ceil(threads);
    let mut objects = objects.into_iter();
    std::thread::scope(|scope| {
        let begin = |part: Vec<Value>| {
            let builder = std::thread::Builder::new().stack_size(THREAD_STACK);
            builder.spawn_scoped(scope, move || Share::convert(book, desired, part))
        };
        let parts = std::iter::from_fn(|| Some(objects.by_ref().take(size).collect::<Vec<_>>()));
        let running: Vec<_> = parts.take_while(|part| !part.is_empty()).map(begin).collect();
        // What could not even begin, or has panicked, fails the review and nothing else.
        let lost = || Share { failed: 1, problem: Some("a thread failed".to_owned()), ..Share::default() };
        let ended = running.into_iter().map(|thread| thread.ok().and_then(|thread| thread.join().ok()));
        ended.map(|share| share.unwrap_or_else(lost)).collect()
    })
}

impl Share {
    fn convert(book: &RuleBook, desired: &str, objects: Vec<Value>) -> Share {
        let mut share = Share::default();
        for object in objects {
            match convert(book, desired, object) {
                Ok((converted, entry, from)) => share.take(&converted, entry, from),
                Err(problem) => {
                    share.failed += 1;
                    share.problem.get_or_insert(problem);
                }
            }
        }
        share
    }

    fn take(&mut self, converted: &Value, entry: usize, from: usize) {
        if !self.text.is_empty() {
            self.text.push(b',');
        }
        self.text.extend_from_slice(converted.to_json().as_bytes());
        match self.counts.iter_mut().find(|count| count.entry == entry && count.from == from) {
            Some(count) => count.objects += 1,
            None => self.counts.push(Count { entry, from, objects: 1 }),
        }
    }
}

/// The number of the definition of an object.
fn definition_of(book: &RuleBook, object: &Value) -> Option<usize> {
    let object = object.as_object()?;
    let (group, _) = split(object.str("apiVersion")?);
    book.number_of(group, object.str("kind")?)
}

/// An object in the desired version, its definition, and the version that it was in.
fn convert(book: &RuleBook, desired: &str, mut value: Value) -> Result<(Value, usize, usize), String> {
    let Value::Object(object) = &value else { return Err(format!("{} is no object", value.type_name())) };
    let name = shown(object);
    let Some(number) = definition_of(book, &value) else {
        return Err(format!("{name}: no definition of its kind is known here"));
    };
    let entry = &book.entries()[number];
    let versions = entry.definition.versions();
    let is = |api_version: &str| versions.iter().position(|version| version.api_version() == api_version);
    let own = object.str("apiVersion").unwrap_or_default();
    let unknown = |version: &str| format!("{name}: {} has no version {version:?}", entry.definition.name());
    let (Some(from), Some(to)) = (is(own), is(desired)) else {
        return Err(unknown(if is(own).is_none() { own } else { desired }));
    };
    let Some(conversion) = &entry.conversion else {
        return Err(format!("{name}: there is no Conversion of {}", entry.definition.name()));
    };
    value =
        convert_by(conversion, value, &versions[from], &versions[to]).map_err(|error| format!("{name}: {error}"))?;
    let bytes = annotation_bytes(&value);
    if bytes > MAX_ANNOTATIONS {
        return Err(format!(
            "{name}: what {} cannot say would have to be kept in annotations, which would have {bytes} bytes together; \
             {MAX_ANNOTATIONS} are allowed",
            versions[to].name()
        ));
    }
    Ok((value, number, from))
}

fn convert_by(
    conversion: &Conversion,
    mut value: Value,
    from: &VersionSchema,
    to: &VersionSchema,
) -> Result<Value, revisor_convert::ConvertError> {
    conversion.canonicalize(from.name(), &mut value)?;
    if from.name() != to.name() {
        // What its version does not know is nothing that a version could keep.
        from.prune(&mut value);
        value = conversion.convert(value, to.name())?;
        conversion.canonicalize(to.name(), &mut value)?;
    }
    Ok(value)
}

/// How many bytes all annotations have, if something is kept in one of them: without it they are somebody else's.
fn annotation_bytes(value: &Value) -> usize {
    let annotations = value.as_object().and_then(|object| object.at(&["metadata", "annotations"]));
    match annotations {
        Some(Value::Object(all)) if all.contains(KEPT_ANNOTATION) => {
            all.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
        }
        _ => 0,
    }
}

/// An object, as people call it.
fn shown(object: &Object) -> String {
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (object.str("kind").unwrap_or_default(), text(&["metadata", "name"]));
    match text(&["metadata", "namespace"]) {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

fn json_text(text: &str) -> String {
    Value::from(text).to_json()
}

#[cfg(test)]
mod tests;
