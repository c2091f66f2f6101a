//! Text in columns: quantities as rows, cells as columns, in as many blocks as the width asks for.

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What the row shows.
    pub label: String,
    /// One entry per column.
    pub entries: Vec<String>,
}

/// Spaces between two columns.
const GAP: usize = 3;

/// Renders rows: labels to the left, entries to the right of their columns. Columns that do not fit into `width`
/// characters continue in another block below, with the labels repeated; a block has at least one column.
pub fn render(rows: &[Row], width: usize) -> String {
    let columns = rows.iter().map(|row| row.entries.len()).max().unwrap_or(0);
    let length = |text: &str| text.chars().count();
    let label_width = rows.iter().map(|row| length(&row.label)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.entries.get(column)).map(|e| length(e)).max().unwrap_or(0))
        .collect();

    let mut text = String::new();
    let mut first = 0;
    while first < columns {
        let mut used = label_width;
        let mut end = first;
        while end < columns && (end == first || used + GAP + widths[end] <= width) {
            used += GAP + widths[end];
            end += 1;
        }
        if first > 0 {
            text.push('\n');
        }
        for row in rows {
            let mut line = format!("{:label_width$}", row.label);
            for (column, width) in widths.iter().enumerate().take(end).skip(first) {
                let entry = row.entries.get(column).map_or("", String::as_str);
                line.push_str(&format!("{:GAP$}{entry:>width$}", ""));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        first = end;
    }
    text
}

/// A count with its digits in groups of three: `195 207`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_in_groups_of_three() {
        let shown: Vec<String> = [0, 7, 999, 1000, 195_207, 1_251_397_632].into_iter().map(grouped).collect();
        assert_eq!(shown, ["0", "7", "999", "1 000", "195 207", "1 251 397 632"]);
    }

    #[test]
    fn columns_that_do_not_fit_continue_below() {
        let row = |label: &str, entries: [&str; 3]| Row {
            label: label.to_owned(),
            entries: entries.iter().map(|e| (*e).to_owned()).collect(),
        };
        let rows = [row("engine", ["turso", "sqlite", "sqlite"]), row("wall, s", ["12.5", "0.6", ""])];
        let lines = |width| render(&rows, width).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(80), ["engine    turso   sqlite   sqlite", "wall, s    12.5      0.6"]);
        assert_eq!(
            lines(26),
            ["engine    turso   sqlite", "wall, s    12.5      0.6", "", "engine    sqlite", "wall, s"]
        );
        assert_eq!(lines(1).len(), 3 * 2 + 2);
    }

    proptest! {
        #[test]
        fn grouping_loses_no_digit(count: u64) {
            prop_assert_eq!(grouped(count).replace(' ', ""), count.to_string());
        }

        #[test]
        fn no_line_is_wider_than_asked(entries in proptest::collection::vec("[a-z0-9]{0,9}", 1..12), width in 40usize..120) {
            let rows = [Row { label: "label".to_owned(), entries: entries.clone() }];
            let text = render(&rows, width);
            prop_assert!(text.lines().all(|line| line.chars().count() <= width));
            for entry in entries {
                prop_assert!(text.contains(&entry));
            }
        }
    }
}
