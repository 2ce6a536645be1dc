//! What lists and single reads say: form and order of versions, the cells of `resourceVersionMatch`, pages, and versions
//! that are too old or not there yet.

use revisor_object::{Object, Value};

use super::position::{Position, text_of};
use super::probe::{Listed, Probe, Query, Reply};
use super::report::Findings;
use crate::cluster::ClusterError;

/// How many objects are also read alone.
const SAMPLES: usize = 3;

/// So many writes do not come while the check runs.
const FUTURE: u128 = 1_000_000_000;

const NOT_OLDER_THAN: (&str, &str) = ("resourceVersionMatch", "NotOlderThan");
const EXACT: (&str, &str) = ("resourceVersionMatch", "Exact");
const ONE: (&str, &str) = ("limit", "1");

/// Whether all versions are of the form that is promised.
pub(super) fn form(probe: &Probe<'_>, listed: &Listed) -> Findings {
    let mut found = Findings::default();
    let want = "a decimal number of at most 128 bits";
    match Position::parse(&listed.version) {
        Ok(_) => found.pass(),
        Err(problem) => found.fault(probe.list_path(&[]), format!("as metadata.resourceVersion {want}"), problem),
    }
    for (key, version) in &listed.objects {
        match Position::parse(version) {
            Ok(_) => found.pass(),
            Err(problem) => found.fault(probe.list_path(&[]), format!("as version of {key} {want}"), problem),
        }
    }
    found
}

/// Whether objects are older than their list, and lists older than those that are asked for later.
pub(super) async fn order(probe: &Probe<'_>, listed: &Listed, at: Position) -> Result<Findings, ClusterError> {
    let mut found = Findings::default();
    for (key, version) in &listed.objects {
        if let Ok(position) = Position::parse(version) {
            let want = format!("no object newer than the list, which is of {at}");
            found.expect(position <= at, probe.list_path(&[]), want, format!("{key} of {position}"));
        }
    }
    match probe.list(&[ONE]).await? {
        Reply::Object(list) => at_least(&mut found, &probe.list_path(&[ONE]), &list, at),
        Reply::Refused { error, .. } => found.fault(probe.list_path(&[ONE]), "a list", error),
    }
    Ok(found)
}

/// Whether objects that are read alone are as new as they must be.
pub(super) async fn get(probe: &Probe<'_>, listed: &Listed, at: Position) -> Result<Findings, ClusterError> {
    let mut found = Findings::default();
    if !probe.served.can("get") {
        found.skip("objects cannot be read alone");
    }
    let samples = listed.objects.iter().take(if probe.served.can("get") { SAMPLES } else { 0 });
    for (key, version) in samples {
        let Ok(known) = Position::parse(version) else { continue };
        for asked in [None, Some("0".to_owned()), Some(at.to_string())] {
            let query: Vec<(&str, &str)> = asked.iter().map(|asked| ("resourceVersion", &**asked)).collect();
            let path = probe.object_path(key, &query);
            match probe.get(key, &query).await? {
                // Any version will do, if any is asked for.
                Reply::Object(object) if asked.as_deref() == Some("0") => {
                    at_least(&mut found, &path, &object, Position::FIRST)
                }
                Reply::Object(object) => at_least(&mut found, &path, &object, known),
                // Somebody deleted it meanwhile.
                Reply::Refused { code: 404, .. } => {}
                Reply::Refused { error, .. } => found.fault(path, "an object", error),
            }
        }
    }
    Ok(found)
}

/// What must come back.
#[derive(Clone, Copy)]
enum Want {
    /// A list of any version.
    Any,
    /// One that is not older than the first list.
    AtLeast,
    /// One of the version of the first list.
    Exactly,
    /// An error of the client.
    Refusal,
}

/// Whether `resourceVersion` and `resourceVersionMatch` of lists mean what is documented.
pub(super) async fn matching(probe: &Probe<'_>, listed: &Listed, at: Position) -> Result<Findings, ClusterError> {
    let mut found = Findings::default();
    let now = at.to_string();
    let version = |text| ("resourceVersion", text);
    let cells: &[(&Query<'_>, Want)] = &[
        (&[ONE], Want::AtLeast),
        (&[version("0"), ONE], Want::Any),
        (&[version("0"), NOT_OLDER_THAN, ONE], Want::Any),
        (&[version(&now)], Want::AtLeast),
        (&[version(&now), ONE], Want::Exactly),
        (&[version(&now), NOT_OLDER_THAN, ONE], Want::AtLeast),
        (&[version(&now), EXACT, ONE], Want::Exactly),
        (&[version("0"), EXACT], Want::Refusal),
        (&[EXACT], Want::Refusal),
        (&[NOT_OLDER_THAN], Want::Refusal),
        (&[version(&now), ("resourceVersionMatch", "Sometimes")], Want::Refusal),
        (&[version("the-newest")], Want::Refusal),
    ];
    for (query, want) in cells {
        // Without a limit the answer may be larger than what one wants to have in memory.
        if !listed.is_whole && !query.contains(&ONE) && !matches!(want, Want::Refusal) {
            continue;
        }
        let path = probe.list_path(query);
        match (probe.list(query).await?, want) {
            (Reply::Object(list), Want::Any) => at_least(&mut found, &path, &list, Position::FIRST),
            (Reply::Object(list), Want::AtLeast) => at_least(&mut found, &path, &list, at),
            (Reply::Object(list), Want::Exactly) => exactly(&mut found, &path, &list, at),
            (Reply::Object(list), Want::Refusal) => {
                found.fault(path, "400 or 422", format!("a list of {:?}", text_of(&list)));
            }
            (Reply::Refused { code, error }, Want::Refusal) => {
                found.expect(matches!(code, 400 | 422), path, "400 or 422", error);
            }
            // History that is that short is allowed, if somebody wrote meanwhile.
            (Reply::Refused { code: 410, .. }, Want::Exactly) => found.skip("the version was compacted meanwhile"),
            (Reply::Refused { error, .. }, _) => found.fault(path, "a list", error),
        }
    }
    Ok(found)
}

/// Whether all pages of a list are of one version.
pub(super) async fn pages(probe: &Probe<'_>, listed: &Listed) -> Result<Findings, ClusterError> {
    let mut found = Findings::default();
    if let [other, ..] = listed.other_versions.as_slice() {
        let want = format!("pages of the version of the first, {}", listed.version);
        found.fault(probe.list_path(&[("continue", "…")]), want, other);
    }
    let first = match probe.list(&[ONE]).await? {
        Reply::Object(first) => first,
        Reply::Refused { error, .. } => {
            found.fault(probe.list_path(&[ONE]), "a list", error);
            return Ok(found);
        }
    };
    let token = first.at(&["metadata", "continue"]).and_then(Value::as_str).unwrap_or_default();
    if token.is_empty() {
        found.skip("there are fewer than two objects");
        return Ok(found);
    }
    let version = text_of(&first);
    let asked = probe.list_path(&[ONE, ("continue", "…")]);
    match probe.list(&[ONE, ("continue", token)]).await? {
        Reply::Object(second) => {
            let want = format!("a page of the version of the first, {version}");
            found.expect(text_of(&second) == version, &asked, want, format!("{:?}", text_of(&second)));
            let names = [&first, &second].map(|page| page.array("items").iter().filter_map(Value::as_object).count());
            found.expect(names == [1, 1], &asked, "one object on each page", format!("{names:?}"));
        }
        Reply::Refused { code: 410, .. } => found.skip("the token expired meanwhile"),
        Reply::Refused { error, .. } => found.fault(&asked, "a page", error),
    }
    for more in [("resourceVersion", version), EXACT] {
        let asked = probe.list_path(&[ONE, ("continue", "…"), more]);
        match probe.list(&[ONE, ("continue", token), more]).await? {
            Reply::Object(_) => found.fault(asked, "400 or 422, because the token has a version", "a page"),
            Reply::Refused { code: 410, .. } => found.skip("the token expired meanwhile"),
            Reply::Refused { code, error } => found.expect(matches!(code, 400 | 422), asked, "400 or 422", error),
        }
    }
    Ok(found)
}

/// Whether a list of the oldest version is that list, or is refused with 410.
pub(super) async fn gone(probe: &Probe<'_>) -> Result<Findings, ClusterError> {
    let mut found = Findings::default();
    let query = [("resourceVersion", "1"), EXACT, ONE];
    let path = probe.list_path(&query);
    match probe.list(&query).await? {
        Reply::Object(list) => exactly(&mut found, &path, &list, Position::FIRST),
        Reply::Refused { code, error } => {
            let want = "410 with the reason Expired or Gone, or a list of version 1";
            let is_gone = code == 410 && matches!(error.reason(), "Expired" | "Gone");
            found.expect(is_gone, path, want, error);
        }
    }
    Ok(found)
}

/// Whether versions that are not there yet are refused with 504.
pub(super) async fn future(probe: &Probe<'_>, listed: &Listed, at: Position) -> Result<Findings, ClusterError> {
    let mut found = Findings::default();
    let later = at.later(FUTURE).to_string();
    let want = "504 with the cause ResourceVersionTooLarge";
    let [not_older, exact] = [NOT_OLDER_THAN, EXACT].map(|rule| [("resourceVersion", &*later), rule, ONE]);
    let alone = [("resourceVersion", &*later)];
    let key = listed.objects.keys().next().filter(|_| probe.served.can("get"));
    let object = async {
        match key {
            Some(key) => probe.get(key, &alone).await.map(Some),
            None => Ok(None),
        }
    };
    // Servers wait for some seconds whether it comes, so all of them are asked at once.
    let (first, second, object) = tokio::try_join!(probe.list(&not_older), probe.list(&exact), object)?;
    let mut replies = vec![(probe.list_path(&not_older), first), (probe.list_path(&exact), second)];
    if let Some((key, reply)) = key.zip(object).filter(|(_, reply)| !matches!(reply, Reply::Refused { code: 404, .. }))
    {
        replies.push((probe.object_path(key, &alone), reply));
    }
    for (path, reply) in replies {
        match reply {
            Reply::Object(object) => found.fault(path, want, format!("200 and version {:?}", text_of(&object))),
            Reply::Refused { code, error } => {
                found.expect(code == 504 && error.is_too_large_version(), path, want, error);
            }
        }
    }
    Ok(found)
}

/// Notes whether something is not older than it may be.
pub(super) fn at_least(found: &mut Findings, path: &str, shown: &Object, least: Position) {
    match Position::of(shown) {
        Ok(position) => {
            found.expect(position >= least, path, format!("a version that is not older than {least}"), position)
        }
        Err(problem) => found.fault(path, "a resource version", problem),
    }
}

/// Notes whether something is of the version that was asked for.
pub(super) fn exactly(found: &mut Findings, path: &str, shown: &Object, want: Position) {
    match Position::of(shown) {
        Ok(position) => found.expect(position == want, path, format!("the version {want}"), position),
        Err(problem) => found.fault(path, "a resource version", problem),
    }
}
