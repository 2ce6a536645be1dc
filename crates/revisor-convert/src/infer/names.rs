//! How much alike the names of two fields are: `caCertRefs` and `caCertificateRefs`, `host` and `hosts`.

/// Words that say what a number counts. Two names that differ in them are never one field, whatever else they share.
const UNITS: [&str; 19] = [
    "nanosecond",
    "microsecond",
    "millisecond",
    "milli",
    "ms",
    "second",
    "sec",
    "minute",
    "min",
    "hour",
    "day",
    "byte",
    "kb",
    "mb",
    "gb",
    "mib",
    "gib",
    "percent",
    "ratio",
];

/// How much alike texts must be, letter by letter, to count.
const LEAST_LETTERS: f64 = 0.75;

/// From 0 for names that have nothing in common to 1 for those that say the same.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    if one == other {
        return 1.0;
    }
    let (ours, theirs) = (words(one), words(other));
    if ours.is_empty() || theirs.is_empty() || units(&ours) != units(&theirs) {
        return 0.0;
    }
    let mut left: Vec<&String> = theirs.iter().collect();
    let mut common = 0.0;
    for word in &ours {
        let likes = left.iter().map(|other| alike(word, other));
        let best = likes.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
        if let Some((at, like)) = best.filter(|(_, like)| *like > 0.0) {
            common += like;
            left.remove(at);
        }
    }
    let by_words = 2.0 * common / (ours.len() + theirs.len()) as f64;
    let by_letters = Some(by_letters(one, other)).filter(|like| *like >= LEAST_LETTERS);
    // Only the same name is worth all of it.
    by_words.max(by_letters.unwrap_or_default()).min(0.99)
}

/// Whether two names differ in nothing but what they count in.
pub(super) fn differ_in_units(one: &str, other: &str) -> bool {
    let (ours, theirs) = (words(one), words(other));
    let rest =
        |words: &[String]| words.iter().filter(|word| !UNITS.contains(&word.as_str())).cloned().collect::<Vec<_>>();
    units(&ours) != units(&theirs) && !rest(&ours).is_empty() && rest(&ours) == rest(&theirs)
}

fn units(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).filter(|word| UNITS.contains(word)).collect()
}

/// The words of a name in camel case, in small letters and in the singular.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let begins = letter.is_uppercase()
            && (before.is_some_and(|before| !before.is_uppercase())
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words.into_iter().map(singular).collect()
}

fn singular(mut word: String) -> String {
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.len() > 4 && (word.ends_with("sses") || word.ends_with("xes") || word.ends_with("ches")) {
        word.truncate(word.len() - 2);
    } else if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

fn alike(one: &str, other: &str) -> f64 {
    if one == other {
        return 1.0;
    }
    let is_short_for = |short: &str, long: &str| short.len() >= 3 && long.starts_with(short);
    if is_short_for(one, other) || is_short_for(other, one) { 0.8 } else { 0.0 }
}

/// The share of letters that do not have to be changed.
fn by_letters(one: &str, other: &str) -> f64 {
    let letters = |name: &str| name.chars().flat_map(char::to_lowercase).collect::<Vec<char>>();
    let (one, other) = (letters(one), letters(other));
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, theirs) in other.iter().enumerate() {
            let change = diagonal + usize::from(letter != theirs);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    let changes = row.last().copied().unwrap_or_default();
    1.0 - changes as f64 / one.len().max(other.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_alike_as_their_words() {
        for (one, other, least, most) in [
            ("caCertRefs", "caCertificateRefs", 0.9, 0.99),
            ("wellKnownCACerts", "wellKnownCACertificates", 0.9, 0.99),
            ("host", "hosts", 0.9, 0.99),
            ("policy", "policies", 0.9, 0.99),
            ("colour", "color", 0.8, 0.9),
            ("service_name", "serviceName", 0.99, 0.99),
            ("secretName", "secretRef", 0.5, 0.6),
            ("tls", "validation", 0.0, 0.0),
            ("timeoutSeconds", "timeoutMilliseconds", 0.0, 0.0),
            ("timeoutSeconds", "timeout", 0.0, 0.0),
            ("a", "a", 1.0, 1.0),
            ("", "a", 0.0, 0.0),
        ] {
            let like = likeness(one, other);
            assert!((least..=most).contains(&like), "{one} and {other}: {like}");
            assert!((like - likeness(other, one)).abs() < 1e-9, "{one} and {other}");
        }
        assert!(differ_in_units("timeoutSeconds", "timeout") && differ_in_units("sizeMb", "sizeGb"));
        assert!(!differ_in_units("timeout", "timeout") && !differ_in_units("seconds", "minutes"));
    }
}
