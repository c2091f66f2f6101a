//! Databases, engines, and a second process that writes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ioscope::engine::{self, Engine, EngineBackend, EngineError, EngineKind, EngineSpec, Value};
use ioscope::page::config::{BackendKind, Delivery, Direct, ReaderConfig, Submit};
use ioscope::page::direct::{DirectProof, prove};
use rusqlite::Connection;
use tempfile::TempDir;

/// A folder on the build's disk: /tmp may be in memory, where there is no direct I/O.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A database of some 300 pages with a table and an index.
pub fn database(path: &Path, page_size: u32, journal_mode: &str) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(&format!("pragma page_size = {page_size}; pragma journal_mode = {journal_mode};"))
        .unwrap();
    connection
        .execute_batch(
            "create table t(id integer primary key, v integer, filler text); create index tv on t(v);
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
             insert into t select i, i * 7 % 1000, hex(zeroblob(100)) from n;",
        )
        .unwrap();
}

/// One way to read: reader backend, direct, submit, window.
#[derive(Debug, Clone)]
pub struct Arm {
    pub kind: EngineKind,
    pub backend: EngineBackend,
    pub direct: Direct,
    pub submit: Submit,
    pub window: u32,
    pub delivery: Delivery,
}

/// Every reader backend, direct and submit, with and without readahead; and the engine's own I/O.
pub fn arms(kind: EngineKind) -> Vec<Arm> {
    let mut arms = vec![Arm {
        kind,
        backend: EngineBackend::Builtin,
        direct: Direct::Disabled,
        submit: Submit::PerPage,
        window: 0,
        delivery: Delivery::Copy,
    }];
    for backend in [EngineBackend::Pread, EngineBackend::Uring, EngineBackend::UringSqpoll] {
        for &direct in Direct::ALL {
            for (submit, window) in [(Submit::PerPage, 0), (Submit::PerPage, 32), (Submit::Coalesced, 64)] {
                arms.push(Arm { kind, backend, direct, submit, window, delivery: Delivery::Copy });
                if kind == EngineKind::Sqlite && window > 0 {
                    arms.push(Arm { kind, backend, direct, submit, window, delivery: Delivery::ZeroCopy });
                }
            }
        }
    }
    if kind == EngineKind::Turso {
        arms.push(Arm { backend: EngineBackend::BuiltinUring, ..arms[0].clone() });
    }
    arms
}

/// Opens an arm, or notes why this machine lacks it.
pub fn open(arm: &Arm, path: &Path, page_size: u32) -> Option<Box<dyn Engine>> {
    let proof: Option<DirectProof> = match arm.direct {
        Direct::Disabled => None,
        Direct::Required => match prove(path) {
            Ok(proof) => Some(proof),
            Err(error) => {
                ioscope::skipped!("{arm:?}: {error}");
                return None;
            }
        },
    };
    open_proven(arm, path, page_size, proof)
}

/// As [`open`], with a proof from before: proving opens and closes the file, and with it drops this process's locks.
pub fn open_proven(arm: &Arm, path: &Path, page_size: u32, proof: Option<DirectProof>) -> Option<Box<dyn Engine>> {
    let backend = match arm.backend {
        EngineBackend::Pread => BackendKind::Pread,
        EngineBackend::UringSqpoll => BackendKind::UringSqpoll,
        _ => BackendKind::Uring,
    };
    let reader = ReaderConfig {
        backend,
        direct: arm.direct,
        submit: arm.submit,
        window: arm.window,
        delivery: arm.delivery,
        sqpoll_idle_ms: 10,
        ..ReaderConfig::default()
    };
    let spec = EngineSpec {
        kind: arm.kind,
        backend: arm.backend,
        reader,
        direct_proof: proof,
        page_size,
        path: path.to_owned(),
    };
    match engine::open(&spec) {
        Ok(engine) => Some(engine),
        Err(EngineError::Page(ioscope::page::PageError::Ring(error))) => {
            ioscope::skipped!("{arm:?}: {error}");
            None
        }
        Err(error) => panic!("{arm:?}: {error}"),
    }
}

/// All rows of a query.
pub fn rows(engine: &mut dyn Engine, sql: &str) -> Vec<Vec<Value>> {
    try_rows(engine, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// All rows of a query, or its error.
pub fn try_rows(engine: &mut dyn Engine, sql: &str) -> Result<Vec<Vec<Value>>, EngineError> {
    let mut rows = Vec::new();
    engine.query(sql, &mut |row| rows.push(row.to_vec()))?;
    Ok(rows)
}

/// What plain SQLite answers, in a process of its own: here, its descriptors would meddle with our locks.
pub fn in_another_process(path: &Path, sql: &str) -> Result<String, String> {
    let output = another_process(path, sql).wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().find_map(|line| line.split_once("ANSWER ").map(|(_, answer)| answer.to_owned()));
    let answer = answer.unwrap_or_else(|| panic!("{text}"));
    match answer.split_once(' ') {
        Some(("ok", rest)) => Ok(rest.to_owned()),
        Some((_, rest)) => Err(rest.to_owned()),
        None => Ok(String::new()),
    }
}

/// Starts this test program again, to run `sql` on `path`; it ends when its standard input does.
pub fn another_process(path: &Path, sql: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper::the_other_process", "--nocapture", "--include-ignored"])
        .env("IOSCOPE_TEST_DATABASE", path)
        .env("IOSCOPE_TEST_SQL", sql)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The second process. As a test of its own it has no database and does nothing.
#[test]
fn the_other_process() {
    let Some(path) = std::env::var_os("IOSCOPE_TEST_DATABASE").map(PathBuf::from) else { return };
    let sql = std::env::var("IOSCOPE_TEST_SQL").unwrap();
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let mut batch = rusqlite::Batch::new(&connection, &sql);
    let mut run = || -> rusqlite::Result<String> {
        use rusqlite::fallible_iterator::FallibleIterator;
        let mut last = String::new();
        while let Some(mut statement) = batch.next()? {
            let columns = statement.column_count();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let cells: Vec<String> = (0..columns).map(|c| format!("{:?}", row.get_ref(c).unwrap())).collect();
                last = cells.join(",");
            }
        }
        Ok(last)
    };
    match run() {
        Ok(last) => println!("\nANSWER ok {last}"),
        Err(error) => println!("\nANSWER error {error}"),
    }
    // Keeps the connection until the parent closes the pipe, or ends.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}
