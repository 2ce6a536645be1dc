//! [`unified_diff`]: what is different between two texts, as the original tells it of objects that may not change.
//!
//! Which lines go together is found as Python's `difflib` does it, which the original has in Go: the longest block that
//! both have first, then what is longest on either side of it. Lines that are frequent in a long text do not begin a
//! block.

use std::collections::HashMap;
use std::fmt::Write as _;

/// How many lines around a change are shown.
const CONTEXT: usize = 3;

/// From so many lines on, frequent ones begin no block.
const LONG: usize = 200;

/// Lines that both texts have: where they begin in each, and how many there are.
#[derive(Debug, Clone, Copy)]
struct Block {
    old: usize,
    new: usize,
    size: usize,
}

/// A part of both texts, from and up to a line of each.
#[derive(Debug, Clone, Copy)]
struct Part {
    is_same: bool,
    old: (usize, usize),
    new: (usize, usize),
}

/// What is different between two texts of lines, in the unified format without the names of files. Finding it takes time
/// that grows with the square of the lines and more; who calls this has to bound them.
///
/// ```
/// use revisor_object::unified_diff;
///
/// assert_eq!(unified_diff(&["a", "b"], &["a", "c"]), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
/// ```
pub fn unified_diff<S: AsRef<str>>(old: &[S], new: &[S]) -> String {
    let old: Vec<&str> = old.iter().map(AsRef::as_ref).collect();
    let new: Vec<&str> = new.iter().map(AsRef::as_ref).collect();
    let mut text = String::new();
    for group in groups(parts(&blocks(&old, &new), old.len(), new.len())) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (old_range, new_range) = (range(first.old.0, last.old.1), range(first.new.0, last.new.1));
        // Writing to a string does not fail.
        let _ = writeln!(text, "@@ -{old_range} +{new_range} @@");
        for part in group {
            let shown = if part.is_same { ' ' } else { '-' };
            for line in &old[part.old.0..part.old.1] {
                let _ = writeln!(text, "{shown}{line}");
            }
            let added = if part.is_same { &[] } else { &new[part.new.0..part.new.1] };
            for line in added {
                let _ = writeln!(text, "+{line}");
            }
        }
    }
    text
}

/// A range of lines as the format has it, counted from one. An empty one is that after which it stands.
fn range(start: usize, end: usize) -> String {
    match end.saturating_sub(start) {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

/// The blocks that both texts have, in order.
fn blocks(old: &[&str], new: &[&str]) -> Vec<Block> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    if new.len() >= LONG {
        let most = new.len() / 100 + 1;
        places.retain(|_, found| found.len() <= most);
    }
    let mut found = Vec::new();
    // What is still to be looked at, the next last; blocks that were found wait there for what is before them.
    let mut waiting = vec![Err((0, old.len(), 0, new.len()))];
    while let Some(next) = waiting.pop() {
        let (old_start, old_end, new_start, new_end) = match next {
            Ok(block) => {
                found.push(block);
                continue;
            }
            Err(range) => range,
        };
        let block = longest(old, new, &places, (old_start, old_end), (new_start, new_end));
        if block.size == 0 {
            continue;
        }
        let (old_after, new_after) = (block.old + block.size, block.new + block.size);
        if old_after < old_end && new_after < new_end {
            waiting.push(Err((old_after, old_end, new_after, new_end)));
        }
        waiting.push(Ok(block));
        if old_start < block.old && new_start < block.new {
            waiting.push(Err((old_start, block.old, new_start, block.new)));
        }
    }
    found
}

/// The longest block within these ranges; of those that are equally long, the first.
fn longest(
    old: &[&str],
    new: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    in_old: (usize, usize),
    in_new: (usize, usize),
) -> Block {
    let mut best = Block { old: in_old.0, new: in_new.0, size: 0 };
    // How long the block is that ends with the line of before and each line of the new text.
    let mut before: HashMap<usize, usize> = HashMap::new();
    for (at, line) in old.iter().enumerate().take(in_old.1).skip(in_old.0) {
        let mut now = HashMap::new();
        let places = places.get(line).map(Vec::as_slice).unwrap_or_default();
        for place in places.iter().copied().skip_while(|place| *place < in_new.0).take_while(|place| *place < in_new.1)
        {
            let size = place.checked_sub(1).and_then(|place| before.get(&place)).copied().unwrap_or_default() + 1;
            now.insert(place, size);
            if size > best.size {
                best = Block { old: at + 1 - size, new: place + 1 - size, size };
            }
        }
        before = now;
    }
    // Frequent lines on either side belong to it too.
    while best.old > in_old.0 && best.new > in_new.0 && old[best.old - 1] == new[best.new - 1] {
        best = Block { old: best.old - 1, new: best.new - 1, size: best.size + 1 };
    }
    while best.old + best.size < in_old.1
        && best.new + best.size < in_new.1
        && old[best.old + best.size] == new[best.new + best.size]
    {
        best.size += 1;
    }
    best
}

/// Both texts as parts that are the same and parts that are not, in turn.
fn parts(blocks: &[Block], old_len: usize, new_len: usize) -> Vec<Part> {
    let mut merged: Vec<Block> = Vec::new();
    for block in blocks {
        match merged.last_mut() {
            Some(last) if last.old + last.size == block.old && last.new + last.size == block.new => {
                last.size += block.size;
            }
            _ => merged.push(*block),
        }
    }
    merged.push(Block { old: old_len, new: new_len, size: 0 });
    let mut parts = Vec::new();
    let (mut old, mut new) = (0, 0);
    for block in merged {
        if old < block.old || new < block.new {
            parts.push(Part { is_same: false, old: (old, block.old), new: (new, block.new) });
        }
        (old, new) = (block.old + block.size, block.new + block.size);
        if block.size > 0 {
            parts.push(Part { is_same: true, old: (block.old, old), new: (block.new, new) });
        }
    }
    parts
}

/// The parts in groups, each with the lines around its changes.
fn groups(mut parts: Vec<Part>) -> Vec<Vec<Part>> {
    if let Some(first) = parts.first_mut().filter(|part| part.is_same) {
        *first = end_of(*first);
    }
    if let Some(last) = parts.last_mut().filter(|part| part.is_same) {
        *last = beginning_of(*last);
    }
    let mut groups = Vec::new();
    let mut group: Vec<Part> = Vec::new();
    for part in parts {
        if part.is_same && part.old.1 - part.old.0 > 2 * CONTEXT {
            group.push(beginning_of(part));
            groups.push(std::mem::take(&mut group));
            group.push(end_of(part));
        } else {
            group.push(part);
        }
    }
    if group.iter().any(|part| !part.is_same) {
        groups.push(group);
    }
    groups
}

fn beginning_of(part: Part) -> Part {
    let end = |(start, end): (usize, usize)| (start, end.min(start + CONTEXT));
    Part { old: end(part.old), new: end(part.new), ..part }
}

fn end_of(part: Part) -> Part {
    let start = |(start, end): (usize, usize)| (start.max(end.saturating_sub(CONTEXT)), end);
    Part { old: start(part.old), new: start(part.new), ..part }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        let lines = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        unified_diff(&lines(old), &lines(new))
    }

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        for (old, new, want) in [
            ("a b c", "a b c", ""),
            ("", "a", "@@ -0,0 +1 @@\n+a\n"),
            ("a", "", "@@ -1 +0,0 @@\n-a\n"),
            ("a b c d e f", "a b c x e f", "@@ -1,6 +1,6 @@\n a\n b\n c\n-d\n+x\n e\n f\n"),
            ("1 2 3 4 5 6", "0 1 2 3 4 5 6", "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n"),
            // Two changes with more than six lines between them are told apart.
            (
                "a 1 2 3 4 5 6 7 b",
                "x 1 2 3 4 5 6 7 y",
                "@@ -1,4 +1,4 @@\n-a\n+x\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+y\n",
            ),
            ("a 1 2 3 4 5 6 b", "x 1 2 3 4 5 6 y", "@@ -1,8 +1,8 @@\n-a\n+x\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+y\n"),
            // The longest block counts, not the first.
            ("a b", "a c a b", "@@ -1,2 +1,4 @@\n+a\n+c\n a\n b\n"),
        ] {
            assert_eq!(diff(old, new), want, "{old} / {new}");
        }
    }

    #[test]
    fn frequent_lines_begin_no_block_in_a_long_text() {
        let many = |first: &str| -> Vec<String> {
            let odd = (0..150).flat_map(|at| ["null".to_owned(), format!("line {at}")]);
            std::iter::once(first.to_owned()).chain(odd).collect()
        };
        assert_eq!(unified_diff(&many("a"), &many("b")), "@@ -1,4 +1,4 @@\n-a\n+b\n null\n line 0\n null\n");
        let nothing_else = |first: &str| -> Vec<String> {
            std::iter::once(first.to_owned()).chain(vec!["null".to_owned(); 300]).collect()
        };
        // Nothing begins a block, so nothing is the same.
        let text = unified_diff(&nothing_else("a"), &nothing_else("b"));
        assert_eq!(text.matches('\n').count(), 603);
    }
}
