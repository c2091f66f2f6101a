//! Who answers: SQLite through a shim VFS, Turso through its IO trait.

pub mod sqlite;
pub mod turso;

use std::path::PathBuf;

use crate::page::config::{ReaderConfig, axis};
use crate::page::direct::DirectProof;
use crate::page::report::ReaderReport;

axis! {
    /// The database engine.
    EngineKind = "engine" {
        /// C SQLite, bundled.
        Sqlite = "sqlite",
        /// Turso.
        Turso = "turso",
    }
}

axis! {
    /// How an engine reads its main database file.
    EngineBackend = "backend" {
        /// ioscope's reader over `pread(2)`.
        Pread = "pread",
        /// ioscope's reader over io_uring.
        Uring = "uring",
        /// ioscope's reader over io_uring with a kernel thread that polls the submission queue.
        UringSqpoll = "uring-sqpoll",
        /// The engine's own I/O: the control arm.
        Builtin = "builtin",
        /// Turso's own io_uring I/O.
        BuiltinUring = "builtin-uring",
    }
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// Everything an engine needs to open one database, read-only.
#[derive(Debug, Clone)]
pub struct EngineSpec {
    /// Who answers.
    pub kind: EngineKind,
    /// How it reads.
    pub backend: EngineBackend,
    /// The reader's settings; ignored where `backend` is the engine's own I/O.
    pub reader: ReaderConfig,
    /// The proof that `direct = required` calls for.
    pub direct_proof: Option<DirectProof>,
    /// Page size of the database, in bytes, from its header.
    pub page_size: u32,
    /// The database file.
    pub path: PathBuf,
}

/// What an engine reports when it is closed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineReport {
    /// What ioscope's reader did and which modes were in force; `None` for the engine's own I/O.
    pub reader: Option<ReaderReport>,
    /// Version of the engine.
    pub engine_version: String,
}

/// Why an engine could not open or answer.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// This combination of engine, backend and settings does not exist.
    #[error("{0}")]
    Unsupported(String),
    /// The database could not be opened.
    #[error("cannot open {path}: {what}")]
    Open {
        /// The database.
        path: String,
        /// Why, and what to do.
        what: String,
    },
    /// The engine refused or failed the statement.
    #[error("{engine}: {what}")]
    Sql {
        /// The engine.
        engine: EngineKind,
        /// Its message.
        what: String,
    },
    /// The page reader failed.
    #[error(transparent)]
    Page(#[from] crate::page::PageError),
}

/// An open database.
pub trait Engine {
    /// Runs one statement or script that answers rows, and hands each row to `sink`.
    fn query(&mut self, sql: &str, sink: &mut dyn FnMut(&[Value])) -> Result<(), EngineError>;

    /// Closes the database, waits for reads still in flight, and reports.
    fn close(self: Box<Self>) -> Result<EngineReport, EngineError>;
}

/// Opens a database read-only.
///
/// # Errors
/// [`EngineError`]: the combination does not exist, the file cannot be opened, or the reader cannot be set up.
pub fn open(spec: &EngineSpec) -> Result<Box<dyn Engine>, EngineError> {
    Ok(match spec.kind {
        EngineKind::Sqlite => Box::new(sqlite::Sqlite::open(spec)?),
        EngineKind::Turso => Box::new(turso::Turso::open(spec)?),
    })
}
