//! The database's side: batches of rows into SQLite tables.
//!
//! Rows go in one after the other in key order, so that the pages of LINEITEM and of its primary key's index come to lie
//! between each other as they do in any database that was filled that way. What is saved is work around the rows: one
//! statement inserts [`ROWS_PER_STATEMENT`] of them, so that its cursors stay open at the end of their b-trees, where a
//! statement a row would open two cursors and search both trees from their roots each time.

use rusqlite::{Connection, Statement};

use super::batch::{Batch, Cell};
use super::tables::Table;

/// Rows that one statement inserts. A batch holds a multiple of it.
pub const ROWS_PER_STATEMENT: usize = 16;

/// Settings of the connection that fills a database: nothing has to survive a crash, since the file only gets its name
/// once it is complete and synced. Foreign keys hold by construction.
pub const LOAD_PRAGMAS: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; \
     PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -8192;";

/// Inserts batches into the tables of one connection.
#[derive(Debug)]
pub struct Loader<'c> {
    connection: &'c Connection,
    table: Option<Table>,
    many: Option<Statement<'c>>,
    one: Option<Statement<'c>>,
}

impl<'c> Loader<'c> {
    /// A loader on a connection whose tables exist and that is within a transaction.
    pub fn new(connection: &'c Connection) -> Self {
        Loader { connection, table: None, many: None, one: None }
    }

    /// Inserts the rows of one batch. Batches of one table come one after the other.
    pub fn insert(&mut self, batch: &Batch) -> rusqlite::Result<()> {
        let table = batch.table();
        if self.table != Some(table) {
            self.many = Some(self.connection.prepare(&insert_sql(table, ROWS_PER_STATEMENT))?);
            self.one = Some(self.connection.prepare(&insert_sql(table, 1))?);
            self.table = Some(table);
        }
        let (Some(many), Some(one)) = (&mut self.many, &mut self.one) else { return Ok(()) };
        let chunks = batch.cells().chunks_exact(table.columns() * ROWS_PER_STATEMENT);
        let rest = chunks.remainder();
        for cells in chunks {
            execute(many, batch, cells)?;
        }
        for cells in rest.chunks_exact(table.columns()) {
            execute(one, batch, cells)?;
        }
        Ok(())
    }
}

fn execute(statement: &mut Statement<'_>, batch: &Batch, cells: &[Cell]) -> rusqlite::Result<()> {
    for (parameter, cell) in (1..).zip(cells) {
        match *cell {
            Cell::Integer(value) => statement.raw_bind_parameter(parameter, value)?,
            Cell::Real(value) => statement.raw_bind_parameter(parameter, value)?,
            Cell::Static(value) => statement.raw_bind_parameter(parameter, value)?,
            Cell::Buffered { start_bytes, length_bytes } => {
                statement.raw_bind_parameter(parameter, batch.text(start_bytes, length_bytes))?;
            }
        }
    }
    statement.raw_execute().map(drop)
}

/// `INSERT INTO T VALUES (?, ...), ...` for a number of rows.
fn insert_sql(table: Table, rows: usize) -> String {
    let row = format!("({})", vec!["?"; table.columns()].join(","));
    format!("INSERT INTO {} VALUES {}", table.name(), vec![row; rows].join(","))
}
