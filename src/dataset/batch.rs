//! Rows on their way from the generator to the database.

use super::tables::Table;

/// One value, ready to be bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Text that lives as long as the program: words of the distributions, the text pool, dates.
    Static(&'static str),
    /// Text in the batch's own buffer: start and length in bytes.
    Buffered {
        /// Where it starts.
        start_bytes: u32,
        /// How long it is.
        length_bytes: u32,
    },
}

/// Rows of one table: cells in row order, and the text that some of them point into.
///
/// Batches go round between the generator and the inserting thread, so that neither allocates in the steady state.
#[derive(Debug)]
pub struct Batch {
    table: Table,
    rows: usize,
    cells: Vec<Cell>,
    text: String,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Batch { table: Table::Region, rows: 0, cells: Vec::new(), text: String::new() }
    }

    /// Empties it for rows of `table`, and keeps its memory.
    pub fn reset(&mut self, table: Table) {
        self.table = table;
        self.rows = 0;
        self.cells.clear();
        self.text.clear();
    }

    /// The table that the rows belong to.
    pub fn table(&self) -> Table {
        self.table
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All cells, row after row.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The text of a [`Cell::Buffered`] of this batch.
    pub fn text(&self, start_bytes: u32, length_bytes: u32) -> &str {
        let start = start_bytes as usize;
        self.text.get(start..start + length_bytes as usize).unwrap_or_default()
    }

    /// Adds one row; the closure adds its cells in the order of the table's columns.
    pub fn push_row(&mut self, fill: impl FnOnce(&mut RowWriter<'_>)) {
        fill(&mut RowWriter { batch: self });
        self.rows += 1;
        debug_assert_eq!(self.cells.len(), self.rows * self.table.columns(), "a row of {}", self.table.name());
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds the cells of one row.
#[derive(Debug)]
pub struct RowWriter<'a> {
    batch: &'a mut Batch,
}

impl RowWriter<'_> {
    /// An integer.
    pub fn integer(&mut self, value: i64) -> &mut Self {
        self.batch.cells.push(Cell::Integer(value));
        self
    }

    /// A decimal with two places, given in hundredths, as SQLite would store its literal in a column of NUMERIC affinity:
    /// a whole number as an integer, any other as the nearest floating-point number. (A division of two integers below
    /// 2^53 is correctly rounded, and so is the conversion of a literal: they give the same bits.)
    pub fn hundredths(&mut self, value: i64) -> &mut Self {
        self.batch.cells.push(if value % 100 == 0 {
            Cell::Integer(value / 100)
        } else {
            Cell::Real(value as f64 / 100.0)
        });
        self
    }

    /// Text that lives as long as the program.
    pub fn text(&mut self, value: &'static str) -> &mut Self {
        self.batch.cells.push(Cell::Static(value));
        self
    }

    /// Text that is copied to the batch's own buffer: comments, which lie scattered in a pool of 300 MB. Whoever touches
    /// them first waits for memory, and that should not be the inserting thread.
    pub fn copied(&mut self, value: &str) -> &mut Self {
        let start = self.batch.text.len();
        self.batch.text.push_str(value);
        self.batch.cells.push(Cell::Buffered { start_bytes: start as u32, length_bytes: value.len() as u32 });
        self
    }

    /// Text that has to be formatted: it goes to the batch's own buffer.
    pub fn formatted(&mut self, value: impl std::fmt::Display) -> &mut Self {
        use std::fmt::Write;
        let start = self.batch.text.len();
        // Writing to a String fails only where the value's own Display does, and these do not.
        let _infallible = write!(self.batch.text, "{value}");
        let length = self.batch.text.len() - start;
        self.batch.cells.push(Cell::Buffered { start_bytes: start as u32, length_bytes: length as u32 });
        self
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_batch_gives_back_what_was_put_in() {
        let mut batch = Batch::new();
        batch.reset(Table::Region);
        batch.push_row(|row| {
            row.integer(7).formatted(format_args!("R{:03}", 7)).text("comment");
        });
        batch.push_row(|row| {
            row.integer(8).formatted(8).text("");
        });
        assert_eq!(batch.rows(), 2);
        let texts: Vec<&str> = batch
            .cells()
            .iter()
            .filter_map(|cell| match *cell {
                Cell::Buffered { start_bytes, length_bytes } => Some(batch.text(start_bytes, length_bytes)),
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["R007", "8"]);
        batch.reset(Table::Nation);
        assert_eq!((batch.rows(), batch.cells().len(), batch.table()), (0, 0, Table::Nation));
    }

    proptest! {
        /// The cell is what SQLite makes of the decimal's literal.
        #[test]
        fn hundredths_are_stored_as_their_literal_would_be(value in -999_999_999_999i64..=999_999_999_999) {
            let mut batch = Batch::new();
            batch.push_row(|row| { row.hundredths(value).integer(0).integer(0); });
            let literal = format!("{}{}.{:02}", if value < 0 { "-" } else { "" }, value.abs() / 100, value.abs() % 100);
            let connection = rusqlite::Connection::open_in_memory().unwrap();
            connection.execute_batch(&format!("CREATE TABLE T (D DECIMAL(15,2)); INSERT INTO T VALUES ({literal});")).unwrap();
            let stored: rusqlite::types::Value = connection.query_row("SELECT D FROM T", [], |row| row.get(0)).unwrap();
            let cell = match batch.cells()[0] {
                Cell::Integer(value) => rusqlite::types::Value::Integer(value),
                Cell::Real(value) => rusqlite::types::Value::Real(value),
                other => panic!("{other:?}"),
            };
            // On disk a whole number is an integer in either case; both sides read it back as one.
            prop_assert_eq!(cell, stored);
        }
    }
}
