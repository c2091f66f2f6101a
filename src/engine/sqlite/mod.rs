//! C SQLite, on ioscope's reader through a shim VFS, or on its own.

mod vfs;
mod wal_files;

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, OpenFlags};

use crate::page::config::Delivery;

use super::{Engine, EngineBackend, EngineError, EngineKind, EngineReport, EngineSpec, Value};
use vfs::Shim;
use wal_files::WalFiles;

/// A `mmap_size` that makes SQLite call xFetch; how large does not matter beyond that.
const MMAP_SIZE_BYTES: i64 = 1 << 30;

/// An open connection.
pub struct Sqlite {
    // Dropped before the shim, whose VFS it uses.
    connection: Option<Connection>,
    shim: Option<Shim>,
    wal_files: Option<WalFiles>,
}

impl Sqlite {
    /// Opens the database read-only.
    ///
    /// # Errors
    /// [`EngineError`]
    pub fn open(spec: &EngineSpec) -> Result<Sqlite, EngineError> {
        let shim = match spec.backend {
            EngineBackend::Builtin => None,
            EngineBackend::Pread | EngineBackend::Uring | EngineBackend::UringSqpoll => Some(
                Shim::register(spec.reader.clone(), spec.page_size, spec.direct_proof.clone())
                    .map_err(|what| open_error(&spec.path, what))?,
            ),
            EngineBackend::BuiltinUring => {
                return Err(EngineError::Unsupported("SQLite has no io_uring I/O of its own".to_owned()));
            }
        };
        // Neither URI parsing nor a mutex: the path is a path, and one thread uses the connection.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // An absolute path cannot be taken for a URI (a build option turns them on everywhere).
        let path = std::path::absolute(&spec.path).map_err(|error| open_error(&spec.path, error.to_string()))?;
        let mut engine = Sqlite { connection: None, shim, wal_files: Some(WalFiles::before(&path)) };
        let opened = match &engine.shim {
            Some(shim) => Connection::open_with_flags_and_vfs(&path, flags, shim.name()),
            None => Connection::open_with_flags(&path, flags),
        };
        let connection = opened.map_err(|error| engine.explain(error, Some(&spec.path)))?;
        // Closing must not write to the user's file.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .map_err(|error| engine.explain(error, Some(&spec.path)))?;
        if engine.shim.is_some() && spec.reader.delivery == Delivery::ZeroCopy {
            // SQLite asks for pages in place only where it may map a file; the shim never maps one.
            connection
                .pragma_update(None, "mmap_size", MMAP_SIZE_BYTES)
                .map_err(|error| engine.explain(error, Some(&spec.path)))?;
        }
        engine.connection = Some(connection);
        Ok(engine)
    }

    /// SQLite's error, with the reader's own message where a reader failed.
    fn explain(&self, error: rusqlite::Error, opening: Option<&Path>) -> EngineError {
        if let Some(page) = self.shim.as_ref().and_then(|shim| shim.take_outcome().1) {
            return EngineError::Page(page);
        }
        match opening {
            Some(path) => open_error(path, error.to_string()),
            None => EngineError::Sql { engine: EngineKind::Sqlite, what: error.to_string() },
        }
    }
}

fn open_error(path: &Path, what: String) -> EngineError {
    EngineError::Open { path: path.display().to_string(), what }
}

/// Runs every statement of `sql`.
fn run(connection: &Connection, sql: &str, sink: &mut dyn FnMut(&[Value])) -> rusqlite::Result<()> {
    let mut batch = Batch::new(connection, sql);
    let mut row_values = Vec::new();
    while let Some(mut statement) = batch.next()? {
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            row_values.clear();
            for column in 0..columns {
                row_values.push(value(row.get_ref(column)?));
            }
            sink(&row_values);
        }
    }
    Ok(())
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

impl Engine for Sqlite {
    fn query(&mut self, sql: &str, sink: &mut dyn FnMut(&[Value])) -> Result<(), EngineError> {
        let Some(connection) = &self.connection else {
            return Err(EngineError::Unsupported("the connection is closed".to_owned()));
        };
        run(connection, sql, sink).map_err(|error| self.explain(error, None))
    }

    fn close(mut self: Box<Self>) -> Result<EngineReport, EngineError> {
        if let Some(connection) = self.connection.take()
            && let Err((_, error)) = connection.close()
        {
            return Err(self.explain(error, None));
        }
        let reader = self.shim.as_ref().and_then(|shim| shim.take_outcome().0);
        Ok(EngineReport { reader, engine_version: rusqlite::version().to_owned() })
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        drop(self.connection.take());
        if let Some(files) = self.wal_files.take() {
            files.sweep();
        }
    }
}
