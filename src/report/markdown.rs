//! Markdown that is also readable as text: tables with padded columns.

/// A table.
#[derive(Debug, Default)]
pub struct Table {
    head: Vec<String>,
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table whose first `left` columns are aligned to the left, and the others to the right.
    pub fn new<T: Into<String>>(head: impl IntoIterator<Item = T>, left: usize) -> Table {
        Table { head: head.into_iter().map(Into::into).collect(), left, rows: Vec::new() }
    }

    /// Adds a row; missing entries are blank.
    pub fn row<T: Into<String>>(&mut self, entries: impl IntoIterator<Item = T>) {
        let mut row: Vec<String> = entries.into_iter().map(Into::into).collect();
        row.resize(self.head.len(), String::new());
        self.rows.push(row);
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table, with a blank line after it; nothing for a table without rows.
    pub fn render(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let head: Vec<String> = self.head.iter().map(|entry| escape(entry)).collect();
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|entry| escape(entry)).collect()).collect();
        let width =
            |column: usize| rows.iter().chain([&head]).map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let mut text = String::new();
        let mut line = |row: &[String]| {
            for (column, (entry, &width)) in row.iter().zip(&widths).enumerate() {
                if column < self.left {
                    text.push_str(&format!("| {entry:<width$} "));
                } else {
                    text.push_str(&format!("| {entry:>width$} "));
                }
            }
            text.push_str("|\n");
        };
        line(&head);
        let rule = |(column, &width): (usize, &usize)| match column < self.left {
            true => "-".repeat(width),
            false => format!("{}:", "-".repeat(width - 1)),
        };
        line(&widths.iter().enumerate().map(rule).collect::<Vec<_>>());
        rows.iter().for_each(|row| line(row));
        text.push('\n');
        text
    }
}

/// Text on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text on one line that does not end a table's entry.
fn escape(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

/// A list, each item on a line of its own, with a blank line after it; nothing for no items.
pub fn list(items: impl IntoIterator<Item = String>) -> String {
    let mut text: String = items.into_iter().map(|item| format!("- {item}\n")).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// `1 run`, `2 runs`.
pub fn plural(count: usize, what: &str) -> String {
    format!("{} {what}{}", super::grid::grouped(count as u64), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_table_is_readable_as_it_stands() {
        let mut table = Table::new(["cell", "wall, s"], 1);
        table.row(["a | b", "0.5"]);
        table.row(["c"]);
        assert_eq!(
            table.render(),
            "| cell   | wall, s |\n| ------ | ------: |\n| a \\| b |     0.5 |\n| c      |         |\n\n"
        );
        assert_eq!(Table::new(["cell"], 1).render(), "");
    }

    proptest! {
        #[test]
        fn every_row_has_the_same_number_of_bars(entries in proptest::collection::vec(".{0,12}", 1..20)) {
            let mut table = Table::new(["a", "b", "c"], 1);
            entries.chunks(3).for_each(|row| table.row(row.iter().map(String::as_str)));
            for line in table.render().trim_end().split('\n') {
                prop_assert_eq!(line.replace("\\|", "").matches('|').count(), 4, "{}", line);
            }
        }
    }
}
