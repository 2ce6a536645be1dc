//! [`Accept`]: what a client says that it accepts: the clauses of the header, in the order in which they count.
//!
//! The rules are the original's. Quality sorts, but an exact type always comes before a wildcard, and a quality of zero
//! excludes nothing.

use http::HeaderMap;
use http::header::ACCEPT;
use smallvec::SmallVec;

/// What the original looks at: the first header of this name only.
pub(crate) fn accept(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The clauses of a header. Most clients send one or two.
pub(crate) struct Accept<'a>(SmallVec<[Clause<'a>; 2]>);

impl<'a> Accept<'a> {
    pub(crate) fn parse(header: &'a str) -> Accept<'a> {
        let mut clauses: SmallVec<[Clause<'a>; 2]> = header.split(',').filter_map(Clause::parse).collect();
        sort(&mut clauses);
        Accept(clauses)
    }

    /// Those that come first count first.
    pub(crate) fn clauses(&self) -> &[Clause<'a>] {
        &self.0
    }
}

/// One clause of the header.
#[derive(Debug, Clone)]
pub(crate) struct Clause<'a> {
    main: &'a str,
    sub: &'a str,
    quality: f32,
    parameters: SmallVec<[(&'a str, &'a str); 3]>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Clause<'a>> {
        let mut parts = text.trim_matches(' ').split(';');
        let media_type = parts.next()?;
        let (main, sub) = media_type.split_once('/').unwrap_or((media_type, ""));
        let main = main.trim_matches(' ');
        let sub = if main == "*" && sub.is_empty() { "*" } else { sub };
        if sub.is_empty() || sub.contains('/') {
            return None;
        }
        let mut clause = Clause { main, sub: sub.trim_matches(' '), quality: 1.0, parameters: SmallVec::new() };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            if value.is_empty() || value.contains('=') {
                continue;
            }
            match name.trim_matches(' ') {
                "q" => clause.quality = value.parse().unwrap_or_default(),
                name => clause.parameters.push((name, value.trim_matches(' '))),
            }
        }
        Some(clause)
    }

    /// Whether the clause is about this type, by its name or by a wildcard.
    pub(crate) fn covers(&self, media_type: &str) -> bool {
        let (main, sub) = media_type.split_once('/').unwrap_or_default();
        (self.main == main && (self.sub == sub || self.sub == "*")) || (self.main == "*" && self.sub == "*")
    }

    /// The same, where also `*/sub` is a wildcard.
    pub(crate) fn covers_part(&self, media_type: &str) -> bool {
        let (main, sub) = media_type.split_once('/').unwrap_or_default();
        [main, "*"].contains(&self.main) && [sub, "*"].contains(&self.sub)
    }

    /// Of two parameters with one name the last counts.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Whether this clause comes before the other. This is no order: each of two can come before the other.
    fn precedes(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality || (self.main != "*" && other.main == "*") || (self.sub != "*" && other.sub == "*")
    }
}

/// As many clauses are sorted as the original sorts them. Since they have no order, the outcome depends on the way.
const SORTED_BY_INSERTION: usize = 12;

fn sort(clauses: &mut [Clause<'_>]) {
    if clauses.len() > SORTED_BY_INSERTION {
        clauses.sort_by(|one, other| {
            let wildcards = |clause: &Clause<'_>| (clause.main == "*", clause.sub == "*");
            other.quality.total_cmp(&one.quality).then_with(|| wildcards(one).cmp(&wildcards(other)))
        });
        return;
    }
    for last in 1..clauses.len() {
        let mut at = last;
        while at > 0 && clauses[at].precedes(&clauses[at - 1]) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
}
