//! Lists of indexes as texts: `1,3-5,7`.

/// An interval of indexes, both ends included.
type Interval = (i64, i64);

/// How many indexes a list names, all of them below `completions` and in order; or what is wrong with it.
pub(super) fn count(list: &str, completions: i64) -> Result<i64, String> {
    let mut total: i64 = 0;
    let mut last: Option<i64> = None;
    for text in parts(list) {
        let (first, end) = interval(text, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total = total.saturating_add(end.saturating_sub(first).saturating_add(1));
        last = Some(end);
    }
    Ok(total)
}

/// The error that two lists have an index in common. Intervals that make no sense are passed over; they are told by
/// [`count`].
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<String> {
    let read =
        |list: &'_ str| -> Vec<Interval> { parts(list).filter_map(|text| interval(text, completions).ok()).collect() };
    let (completed, failed) = (read(completed), read(failed));
    let (mut at_completed, mut at_failed) = (0, 0);
    while let (Some(one), Some(two)) = (completed.get(at_completed), failed.get(at_failed)) {
        if one.0 <= two.1 && two.0 <= one.1 {
            let shared = one.0.max(two.0);
            return Some(format!("failedIndexes and completedIndexes overlap at index: {shared}"));
        }
        if one.0 <= two.0 {
            at_completed += 1;
        } else {
            at_failed += 1;
        }
    }
    None
}

fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(move |_| !list.is_empty())
}

fn interval(text: &str, completions: i64) -> Result<Interval, String> {
    let mut limits = text.split('-');
    let (first, second) = (limits.next().unwrap_or_default(), limits.next());
    if limits.next().is_some() {
        return Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most two parts \
             separated by '-'"
        ));
    }
    let first = index(first, completions)?;
    let Some(second) = second else { return Ok((first, first)) };
    let second = index(second, completions)?;
    if first >= second {
        return Err(format!("non-increasing order, previous: {first}, current: {second}"));
    }
    Ok((first, second))
}

fn index(text: &str, completions: i64) -> Result<i64, String> {
    let index: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
    if index >= completions { Err(format!("too large index: {text:?}")) } else { Ok(index) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_counted_or_refused() {
        for (list, want) in [
            ("", Ok(0)),
            ("0", Ok(1)),
            ("1,3-5,7", Ok(5)),
            ("8", Err("too large index: \"8\"")),
            ("1,5-9", Err("too large index: \"9\"")),
            ("3,3", Err("non-increasing order, previous: 3, current: 3")),
            ("3-3", Err("non-increasing order, previous: 3, current: 3")),
            ("5-2", Err("non-increasing order, previous: 5, current: 2")),
            ("a", Err("cannot convert string to integer for index: \"a\"")),
            (",", Err("cannot convert string to integer for index: \"\"")),
            (
                "1-2-3",
                Err(
                    "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts separated by '-'",
                ),
            ),
        ] {
            assert_eq!(count(list, 8), want.map_err(str::to_owned), "{list:?}");
        }
    }

    #[test]
    fn lists_must_not_overlap() {
        for (completed, failed, want) in [
            ("", "", None),
            ("1", "", None),
            ("0-2", "3", None),
            ("0-2,6", "4,5-6", Some("failedIndexes and completedIndexes overlap at index: 6")),
            ("x,1", "1,y", Some("failedIndexes and completedIndexes overlap at index: 1")),
        ] {
            assert_eq!(overlap(completed, failed, 8), want.map(str::to_owned), "{completed:?} {failed:?}");
        }
    }
}
