//! [`Report`]: what was found, resource by resource. How it is printed is in `output.rs`.

use std::fmt;

use crate::cluster::{ClusterError, Served};

/// How many faults of one aspect are told of one resource. A server that is wrong in one way is wrong for every object.
const TOLD: usize = 5;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aspect {
    Form,
    Order,
    Get,
    Match,
    Pages,
    Watch,
    StreamedList,
    Gone,
    Future,
    Writes,
}

impl Aspect {
    pub(super) const ALL: [Aspect; 10] = [
        Aspect::Form,
        Aspect::Order,
        Aspect::Get,
        Aspect::Match,
        Aspect::Pages,
        Aspect::Watch,
        Aspect::StreamedList,
        Aspect::Gone,
        Aspect::Future,
        Aspect::Writes,
    ];

    /// Its name in reports and above its column.
    pub(super) fn name(self) -> &'static str {
        match self {
            Aspect::Form => "form",
            Aspect::Order => "order",
            Aspect::Get => "get",
            Aspect::Match => "match",
            Aspect::Pages => "pages",
            Aspect::Watch => "watch",
            Aspect::StreamedList => "streamed",
            Aspect::Gone => "gone",
            Aspect::Future => "future",
            Aspect::Writes => "writes",
        }
    }

    /// What is demanded.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Aspect::Form => "versions are decimal numbers without leading zeros, of at most 128 bits",
            Aspect::Order => "no object is newer than its list, and no list older than the one before",
            Aspect::Get => "an object that is read alone is not older than asked for, nor than in its list",
            Aspect::Match => "resourceVersion and resourceVersionMatch of a list mean what is documented",
            Aspect::Pages => "all pages of a list are of one version",
            Aspect::Watch => "events come in order, and after the version that the watch begins at",
            Aspect::StreamedList => "a streamed list ends with a bookmark and shows what the list of its version shows",
            Aspect::Gone => "versions that are too old are answered with 410, or with their history",
            Aspect::Future => "versions that are not there yet are answered with 504",
            Aspect::Writes => "every write has a later version, which reads, lists and watches know at once",
        }
    }
}

/// Something that a server does otherwise than it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The request.
    pub(super) asked: String,
    pub(super) want: String,
    pub(super) got: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: want {}, got {}", self.asked, self.want, self.got)
    }
}

/// What is known of one aspect of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed(Vec<Fault>),
    /// It does not apply, or could not be looked at.
    Skipped(String),
}

/// What was found while an aspect was looked at.
#[derive(Debug, Default)]
pub(super) struct Findings {
    faults: Vec<Fault>,
    untold: usize,
    passed: usize,
    skipped: Option<String>,
}

impl Findings {
    pub(super) fn pass(&mut self) {
        self.passed += 1;
    }

    pub(super) fn fault(&mut self, asked: impl fmt::Display, want: impl fmt::Display, got: impl fmt::Display) {
        if self.faults.len() < TOLD {
            let (asked, want, got) = (asked.to_string(), want.to_string(), got.to_string());
            self.faults.push(Fault { asked, want, got });
        } else {
            self.untold += 1;
        }
    }

    /// Notes whether something holds.
    pub(super) fn expect(
        &mut self,
        holds: bool,
        asked: impl fmt::Display,
        want: impl fmt::Display,
        got: impl fmt::Display,
    ) {
        if holds {
            self.pass();
        } else {
            self.fault(asked, want, got);
        }
    }

    /// The part of it that could not be looked at, and why. The first reason is told.
    pub(super) fn skip(&mut self, why: impl fmt::Display) {
        self.skipped.get_or_insert_with(|| why.to_string());
    }

    pub(super) fn verdict(mut self) -> Verdict {
        if self.untold > 0
            && let Some(last) = self.faults.last_mut()
        {
            last.got = format!("{} (and {} more like it)", last.got, self.untold);
        }
        match self {
            Findings { faults, .. } if !faults.is_empty() => Verdict::Failed(faults),
            Findings { passed: 0, skipped, .. } => {
                Verdict::Skipped(skipped.unwrap_or_else(|| "there is nothing to look at".to_owned()))
            }
            _ => Verdict::Passed,
        }
    }
}

/// What is known of a resource.
#[derive(Debug)]
pub(super) struct ResourceReport {
    pub(super) name: String,
    pub(super) version: String,
    /// The service behind the aggregator that serves it; `None` for the server itself.
    pub(super) served_by: Option<String>,
    /// How many objects there are, as far as they were counted.
    pub(super) objects: usize,
    pub(super) seconds: f64,
    verdicts: Vec<(Aspect, Verdict)>,
}

impl ResourceReport {
    pub(super) fn new(served: &Served, served_by: Option<String>) -> ResourceReport {
        let version = served.version.clone();
        ResourceReport { name: served.name(), version, served_by, objects: 0, seconds: 0.0, verdicts: Vec::new() }
    }

    pub(super) fn tell(&mut self, aspect: Aspect, verdict: Verdict) {
        self.verdicts.push((aspect, verdict));
    }

    /// What is not known yet will not be known.
    pub(super) fn skip_rest(&mut self, why: impl fmt::Display) {
        for aspect in Aspect::ALL {
            if self.verdict(aspect).is_none() {
                self.verdicts.push((aspect, Verdict::Skipped(why.to_string())));
            }
        }
    }

    pub(super) fn verdict(&self, aspect: Aspect) -> Option<&Verdict> {
        self.verdicts.iter().find(|(known, _)| *known == aspect).map(|(_, verdict)| verdict)
    }

    pub(super) fn verdicts(&self) -> impl Iterator<Item = (Aspect, &Verdict)> {
        Aspect::ALL.into_iter().filter_map(|aspect| Some((aspect, self.verdict(aspect)?)))
    }

    fn has(&self, is_it: impl Fn(&Verdict) -> bool) -> bool {
        self.verdicts.iter().any(|(_, verdict)| is_it(verdict))
    }
}

/// What was found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) server: String,
    /// What the server says that it is.
    pub(super) release: String,
    pub(super) resources: Vec<ResourceReport>,
    /// What could not be asked for, and why.
    pub(super) left_out: Vec<(String, ClusterError)>,
    /// What those who run it should know.
    pub(super) notes: Vec<String>,
    pub(super) seconds: f64,
    /// Whether everything was looked at that could be.
    pub(super) is_complete: bool,
}

impl Report {
    /// Whether something is otherwise than it should be.
    pub(super) fn has_faults(&self) -> bool {
        self.resources.iter().any(|resource| resource.has(|verdict| matches!(verdict, Verdict::Failed(_))))
    }

    /// Whether anything was looked at.
    pub(super) fn has_passed(&self) -> bool {
        self.resources.iter().any(|resource| resource.has(|verdict| *verdict == Verdict::Passed))
    }

    /// How many of the verdicts passed, failed and were skipped.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let verdicts = || self.resources.iter().flat_map(ResourceReport::verdicts).map(|(_, verdict)| verdict);
        (
            verdicts().filter(|verdict| **verdict == Verdict::Passed).count(),
            verdicts().filter(|verdict| matches!(verdict, Verdict::Failed(_))).count(),
            verdicts().filter(|verdict| matches!(verdict, Verdict::Skipped(_))).count(),
        )
    }
}
