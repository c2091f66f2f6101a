//! How a template comes into being: space, temporary file, rows, indexes, check, sync, manifest, name.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, Statement, ToSql};

use super::manifest::AppManifest;
use super::rows::{CURRENCY, Row, Rows, User};
use super::size::AppSize;
use crate::dataset::build::{check_space, expect, in_folder, open, publish};
use crate::dataset::error::DatasetError;
use crate::dataset::interrupt::Interrupts;
use crate::dataset::load::{LOAD_PRAGMAS, ROWS_PER_STATEMENT};
use crate::dataset::manifest::header_of;
use crate::dataset::temporary::Temporary;
use crate::dataset::{DEFAULT_PAGE_SIZE_BYTES, Progress};

const SCHEMA_SQL: &str = include_str!("schema.sql");
const INDEXES_SQL: &str = include_str!("indexes.sql");
/// For the sorter of the indexes, in KiB; it spills to temporary files beyond.
const INDEX_PRAGMAS: &str = "PRAGMA cache_size = -262144; PRAGMA threads = 2;";
/// As the published template is left: in WAL mode, with nothing in the log.
const FINISH_SQL: &str = "PRAGMA locking_mode = NORMAL; PRAGMA journal_mode = WAL; PRAGMA wal_checkpoint(TRUNCATE);";
/// Rows between two looks at signals and the bar.
const ROWS_BETWEEN_LOOKS: u64 = 4096;

/// Makes a template that does not exist yet and returns its manifest; on any error nothing of it is left.
pub(super) fn build(size: AppSize, out: &Path, progress: Progress) -> Result<AppManifest, DatasetError> {
    in_folder(out, |folder| {
        check_space(folder, size.bytes(), out)?;
        let interrupts =
            Interrupts::hold().map_err(|error| DatasetError::io("hold back signals for", out, error.into()))?;
        let database = Temporary::create(out).map_err(|error| DatasetError::io("create a file beside", out, error))?;
        let amount_cents = fill(database.path(), size, out, progress, &interrupts)?;
        verify(database.path(), size, amount_cents, out)?;
        database.file().sync_all().map_err(|error| DatasetError::io("sync", out, error))?;
        let metadata = database.file().metadata();
        let size_bytes = metadata.map_err(|error| DatasetError::io("look at", database.path(), error))?.len();
        let header = header_of(database.path())?;
        let manifest = AppManifest::new(size, DEFAULT_PAGE_SIZE_BYTES, amount_cents, size_bytes, header);
        publish(folder, database, manifest, out, AppManifest::read_and_check)
    })
}

/// Inserts all rows and builds the indexes; returns the sum of the orders' amounts.
fn fill(
    database: &Path,
    size: AppSize,
    out: &Path,
    progress: Progress,
    interrupts: &Interrupts,
) -> Result<i64, DatasetError> {
    let sqlite = |error| DatasetError::sqlite("fill", out, error);
    let stopped = || match interrupts.signal() {
        Some(signal) => Err(DatasetError::Interrupted { signal: signal.as_str(), path: out.to_owned() }),
        None => Ok(()),
    };
    let connection = open(database, out, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let run = |sql: &str| connection.execute_batch(sql).map_err(sqlite);
    run(&format!("PRAGMA page_size = {DEFAULT_PAGE_SIZE_BYTES};"))?;
    run(LOAD_PRAGMAS)?;
    run(SCHEMA_SQL)?;
    run("BEGIN")?;
    let bar = progress.bar(size.rows(), format!("app {size}"));
    let mut amount_cents = 0;
    {
        let mut users = Inserter::new(&connection, "users", 7, u64::from(size.users())).map_err(sqlite)?;
        let mut orders = Inserter::new(&connection, "orders", 7, size.orders()).map_err(sqlite)?;
        let (mut rows, mut text) = (Rows::new(size), String::new());
        let mut done = 0_u64;
        while let Some(row) = rows.next() {
            match row {
                Row::User(user) => insert_user(&mut users, &user, &mut text),
                Row::Order(order) => {
                    amount_cents += order.amount_cents;
                    orders
                        .bind(1, order.id)
                        .and_then(|()| orders.bind(2, order.user_id))
                        .and_then(|()| orders.bind(3, order.status))
                        .and_then(|()| orders.bind(4, order.amount_cents))
                        .and_then(|()| orders.bind(5, CURRENCY))
                        .and_then(|()| orders.bind(6, order.created_at))
                        .and_then(|()| orders.bind(7, rows.metadata()))
                        .and_then(|()| orders.end_row())
                }
            }
            .map_err(sqlite)?;
            done += 1;
            if done.is_multiple_of(ROWS_BETWEEN_LOOKS) {
                bar.set_position(done);
                stopped()?;
            }
        }
    }
    run("COMMIT")?;
    run(INDEX_PRAGMAS)?;
    for index in INDEXES_SQL.split_inclusive(';').map(str::trim).filter(|sql| !sql.is_empty()) {
        stopped()?;
        run(index)?;
    }
    bar.finish_and_clear();
    run(FINISH_SQL)?;
    connection.close().map_err(|(_, error)| sqlite(error))?;
    Ok(amount_cents)
}

fn insert_user(users: &mut Inserter<'_>, user: &User, text: &mut String) -> rusqlite::Result<()> {
    users.bind(1, user.id)?;
    User::email(user.id, text);
    users.bind(2, text.as_str())?;
    User::name(user.id, text);
    users.bind(3, text.as_str())?;
    users.bind(4, user.plan)?;
    users.bind(5, user.country)?;
    users.bind(6, user.created_at)?;
    users.bind(7, user.last_seen_at)?;
    users.end_row()
}

/// Inserts rows of one table, of which the number is known: several by one statement, after what does not fill one.
struct Inserter<'c> {
    one: Statement<'c>,
    many: Statement<'c>,
    columns: usize,
    singly: u64,
    filled: usize,
}

impl<'c> Inserter<'c> {
    fn new(connection: &'c Connection, table: &str, columns: usize, rows: u64) -> rusqlite::Result<Self> {
        let row = format!("({})", vec!["?"; columns].join(","));
        let sql = |rows: usize| format!("INSERT INTO {table} VALUES {}", vec![row.as_str(); rows].join(","));
        Ok(Inserter {
            one: connection.prepare(&sql(1))?,
            many: connection.prepare(&sql(ROWS_PER_STATEMENT))?,
            columns,
            singly: rows % ROWS_PER_STATEMENT as u64,
            filled: 0,
        })
    }

    /// Binds a column of the row, from 1.
    fn bind(&mut self, column: usize, value: impl ToSql) -> rusqlite::Result<()> {
        match self.singly {
            0 => self.many.raw_bind_parameter(self.filled * self.columns + column, value),
            _ => self.one.raw_bind_parameter(column, value),
        }
    }

    fn end_row(&mut self) -> rusqlite::Result<()> {
        if self.singly > 0 {
            self.singly -= 1;
            return self.one.raw_execute().map(drop);
        }
        self.filled += 1;
        if self.filled < ROWS_PER_STATEMENT {
            return Ok(());
        }
        self.filled = 0;
        self.many.raw_execute().map(drop)
    }
}

/// Compares the database with what was generated.
fn verify(database: &Path, size: AppSize, amount_cents: i64, out: &Path) -> Result<(), DatasetError> {
    // Able to write, so that closing removes the log that WAL mode made; nothing is written.
    let connection = open(database, out, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let asked = [
        ("the number of users", "SELECT count(*) FROM users", i64::from(size.users())),
        ("the number of orders", "SELECT count(*) FROM orders", size.orders() as i64),
        ("the sum of all amounts", "SELECT coalesce(sum(amount_cents), 0) FROM orders", amount_cents),
    ];
    for (what, sql, expected) in asked {
        let found: i64 = connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(|error| DatasetError::sqlite("check", out, error))?;
        expect(out, || what.to_owned(), &expected.to_string(), &found.to_string())?;
    }
    Ok(())
}
