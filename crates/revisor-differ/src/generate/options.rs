//! What queries may say.

use revisor_fuzz::Choices;

/// Options of writes.
const WRITES: &[&str] = &[
    "fieldValidation=Strict",
    "fieldValidation=Warn",
    "fieldValidation=Ignore",
    "fieldValidation=strict",
    "fieldManager=someone",
    "fieldManager=",
    "fieldManager=%00",
    "pretty=true",
    "dryRun=All",
    "dryRun=all",
    "dryRun=All&dryRun=All",
    "dryRun=",
    "force=true",
    "timeout=5s",
    "timeout=x",
    "unknown=1",
];

/// Options of lists.
const LISTS: &[&str] = &[
    "limit=1",
    "limit=0",
    "limit=-1",
    "limit=x",
    "labelSelector=a%3Db",
    "labelSelector=a+in+(b,c)",
    "labelSelector=%21a",
    "labelSelector=a+notin+()",
    "labelSelector=a+in",
    "labelSelector=a%3D%3Db,a!%3Dc",
    "labelSelector=-a%3Db",
    "labelSelector=a%3Db%20c",
    "labelSelector=a%3E1",
    "labelSelector=a%3Ex",
    "labelSelector=,",
    "fieldSelector=metadata.name%3D${name}",
    "fieldSelector=metadata.name!%3D${name}",
    "fieldSelector=metadata.namespace%3D${ns}",
    "fieldSelector=spec.x%3D1",
    "fieldSelector=status.phase%3DRunning",
    "fieldSelector=metadata.name",
    "fieldSelector=metadata.name%3D%5C",
    "fieldSelector=%3D",
    "resourceVersion=0",
    "resourceVersion=x",
    "resourceVersion=-1",
    "resourceVersion=0&resourceVersionMatch=Exact",
    "resourceVersion=0&resourceVersionMatch=NotOlderThan",
    "resourceVersionMatch=Exact",
    "resourceVersion=${rv}&resourceVersionMatch=Exact",
    "resourceVersion=${rv}&resourceVersionMatch=NotOlderThan",
    "resourceVersion=${rv}&resourceVersionMatch=exact",
    "resourceVersion=${rv}",
    "continue=x",
    "continue=x&resourceVersion=1",
    "sendInitialEvents=true",
    "sendInitialEvents=false",
    "timeoutSeconds=x",
    "timeoutSeconds=1",
    "allowWatchBookmarks=true",
    "watch=0",
    "pretty=1",
    "shardSelector=x",
];

/// Options of deletions, in a query.
const DELETES: &[&str] = &[
    "propagationPolicy=Foreground",
    "propagationPolicy=Background",
    "propagationPolicy=Orphan",
    "propagationPolicy=foreground",
    "propagationPolicy=",
    "gracePeriodSeconds=0",
    "gracePeriodSeconds=5",
    "gracePeriodSeconds=-1",
    "gracePeriodSeconds=x",
    "orphanDependents=true",
    "orphanDependents=false",
    "orphanDependents=true&propagationPolicy=Orphan",
    "dryRun=All",
    "dryRun=x",
    "ignoreStoreReadErrorWithClusterBreakingPotential=true",
    "preconditions.uid=x",
];

/// Options of deletions, in a body.
pub(super) const DELETE_BODIES: &[&str] = &[
    "{}",
    "null",
    "[]",
    "x",
    r#"{"kind":"DeleteOptions","apiVersion":"v1"}"#,
    r#"{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1"}"#,
    r#"{"kind":"DeleteOptions","apiVersion":"apps/v1"}"#,
    r#"{"kind":"DeleteOptions","apiVersion":"x/v1"}"#,
    r#"{"kind":"Pod","apiVersion":"v1"}"#,
    r#"{"preconditions":{"uid":"x"}}"#,
    r#"{"preconditions":{"uid":"${uid}"}}"#,
    r#"{"preconditions":{"resourceVersion":"1"}}"#,
    r#"{"preconditions":{"resourceVersion":"${rv}","uid":"${uid}"}}"#,
    r#"{"preconditions":{"resourceVersion":""}}"#,
    r#"{"preconditions":{"uid":""}}"#,
    r#"{"propagationPolicy":"Foreground"}"#,
    r#"{"propagationPolicy":"Orphan","orphanDependents":true}"#,
    r#"{"propagationPolicy":"x"}"#,
    r#"{"orphanDependents":true}"#,
    r#"{"gracePeriodSeconds":0}"#,
    r#"{"gracePeriodSeconds":-5}"#,
    r#"{"gracePeriodSeconds":"x"}"#,
    r#"{"gracePeriodSeconds":9223372036854775807}"#,
    r#"{"dryRun":["All"]}"#,
    r#"{"dryRun":["x","All"]}"#,
    r#"{"unknown":1}"#,
    r#"{"kind":"DeleteOptions","apiVersion":"v1","unknown":1,"gracePeriodSeconds":1,"gracePeriodSeconds":2}"#,
];

/// What readers ask for.
pub(super) const ACCEPTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
    "application/json;as=Nothing;v=v1;g=meta.k8s.io",
    "application/yaml;as=Table;v=v1;g=meta.k8s.io",
    "text/plain",
    "*/*",
    "application/*",
    "application/json;pretty=1",
    "application/json;stream=watch",
    "application/xml, application/json;q=0.1",
    "",
    "x",
];

fn some(choices: &mut Choices<'_>, of: &[&str], most: usize) -> String {
    let count = choices.below(most + 1);
    let chosen: Vec<&str> = (0..count).map(|_| *choices.of(of)).collect();
    if chosen.is_empty() { String::new() } else { format!("?{}", chosen.join("&")) }
}

pub(super) fn write(choices: &mut Choices<'_>) -> String {
    some(choices, WRITES, 1)
}

pub(super) fn list(choices: &mut Choices<'_>) -> String {
    some(choices, LISTS, 2)
}

pub(super) fn delete(choices: &mut Choices<'_>) -> String {
    some(choices, DELETES, 1)
}
