//! Tables out of Markdown. Only what the rules read: pipe tables, and text in backticks.

/// A pipe table. Cells are trimmed; their markup is left in place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Row>,
}

/// A row and the line that it stands on, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) cells: Vec<String>,
}

/// All tables of a document, in order.
pub(super) fn tables(text: &str) -> Vec<Table> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut tables = Vec::new();
    let mut at = 0;
    while at + 1 < lines.len() {
        if !(lines[at].starts_with('|') && is_rule(lines[at + 1])) {
            at += 1;
            continue;
        }
        let header = cells(lines[at]);
        at += 2;
        let mut rows = Vec::new();
        while at < lines.len() && lines[at].starts_with('|') {
            rows.push(Row { line: at + 1, cells: cells(lines[at]) });
            at += 1;
        }
        tables.push(Table { header, rows });
    }
    tables
}

/// The texts between backticks, in order.
pub(super) fn code_spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The line under a header: dashes, colons and bars.
fn is_rule(line: &str) -> bool {
    line.starts_with('|') && line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// Splits at bars that are not escaped.
fn cells(line: &str) -> Vec<String> {
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'|') => {
                chars.next();
                push(&mut cells, '|');
            }
            '|' => cells.push(String::new()),
            c => push(&mut cells, c),
        }
    }
    // The bar that closes a row opens an empty cell.
    if cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

fn push(cells: &mut [String], c: char) {
    if let Some(cell) = cells.last_mut() {
        cell.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_between_prose() {
        let found =
            tables("prose | with a bar\n\n| a | b |\n|---|:-:|\n| 1 | `x\\|y` |\n| 2 |\n\nmore\n| no | rule |\n");
        assert_eq!(
            found,
            [Table {
                header: vec!["a".into(), "b".into()],
                rows: vec![
                    Row { line: 5, cells: vec!["1".into(), "`x|y`".into()] },
                    Row { line: 6, cells: vec!["2".into()] },
                ],
            }]
        );
    }

    #[test]
    fn code_spans_are_what_stands_between_backticks() {
        for (cell, want) in [("none", vec![]), ("`one`", vec!["one"]), ("`one`, and `two`", vec!["one", "two"])] {
            assert_eq!(code_spans(cell), want, "{cell}");
        }
    }
}
