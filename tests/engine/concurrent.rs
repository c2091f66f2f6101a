//! Another process writes, checkpoints, vacuums and truncates between scans, and the next scan is right.

use ioscope::engine::{EngineKind, Value};
use ioscope::page::config::Delivery;

use crate::helper::{another_process, arms, database, folder, in_another_process, open, rows, try_rows};

/// Order matters: growth, updates in place, moves of pages by VACUUM, and a file that shrinks.
const WRITES: [&str; 6] = [
    "update t set v = v + 1",
    "insert into t select id + 100000, v, filler from t where id < 3000",
    "update t set v = v + 13 where id % 3 = 0; pragma wal_checkpoint(truncate)",
    "delete from t where id % 2 = 0",
    "vacuum; pragma wal_checkpoint(truncate)",
    "delete from t where id > 100; vacuum; pragma wal_checkpoint(restart); update t set v = 4",
];

const SCAN: &str = "select count(*), sum(v), sum(length(filler)), sum(id) from t not indexed";
const INDEX: &str = "select count(*), sum(v) from t indexed by tv where v >= 0";

fn as_text(rows: &[Vec<Value>]) -> String {
    rows.iter().flatten().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(",")
}

#[test]
fn every_scan_sees_what_was_committed_before_it() {
    for journal_mode in ["delete", "wal", "truncate"] {
        for arm in arms(EngineKind::Sqlite) {
            let folder = folder();
            let path = folder.path().join("shared.db");
            database(&path, 4096, journal_mode);
            let Some(mut engine) = open(&arm, &path, 4096) else { continue };
            for write in WRITES {
                for scan in [SCAN, INDEX] {
                    let expected = in_another_process(&path, scan).unwrap();
                    let seen = as_text(&rows(&mut *engine, scan));
                    assert_eq!(seen, expected, "{journal_mode} {arm:?}: {scan} before {write}");
                }
                in_another_process(&path, write).unwrap();
            }
            let expected = in_another_process(&path, SCAN).unwrap();
            assert_eq!(as_text(&rows(&mut *engine, SCAN)), expected, "{journal_mode} {arm:?}: in the end");
            engine.close().unwrap();
        }
    }
}

#[test]
fn a_live_wal_is_read_and_left_alone() {
    let folder = folder();
    let path = folder.path().join("live.db");
    database(&path, 4096, "wal");
    let write = "pragma wal_autocheckpoint = 0; update t set v = 5 where id <= 1000; \
                 insert into t values (900000, 1, 'x'); select count(*) from t";
    let mut writer = another_process(&path, write);
    let expected = loop {
        // The writer holds its connection open; its frames lie in the -wal.
        if std::fs::metadata(folder.path().join("live.db-wal")).is_ok_and(|m| m.len() > 0) {
            let seen = in_another_process(&path, SCAN);
            if let Ok(seen) = seen
                && seen.starts_with("Integer(5001)")
            {
                break seen;
            }
        }
        assert!(writer.try_wait().unwrap().is_none(), "the writer ended early");
        std::thread::yield_now();
    };
    let wal = std::fs::read(folder.path().join("live.db-wal")).unwrap();
    let main = std::fs::read(&path).unwrap();
    for kind in [EngineKind::Sqlite, EngineKind::Turso] {
        for arm in arms(kind) {
            let Some(mut engine) = open(&arm, &path, 4096) else { continue };
            assert_eq!(as_text(&rows(&mut *engine, SCAN.trim_end_matches(" not indexed"))), expected, "{arm:?}");
            engine.close().unwrap();
        }
    }
    assert_eq!(std::fs::read(folder.path().join("live.db-wal")).unwrap(), wal, "the -wal has changed");
    assert_eq!(std::fs::read(&path).unwrap(), main, "the database has changed");
    drop(writer.stdin.take());
    writer.wait().unwrap();
}

#[test]
fn every_page_size_is_read_and_both_engines_agree() {
    for page_size in [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536] {
        let folder = folder();
        let path = folder.path().join("sizes.db");
        database(&path, page_size, "delete");
        let expected = in_another_process(&path, SCAN).unwrap();
        for kind in [EngineKind::Sqlite, EngineKind::Turso] {
            for arm in arms(kind) {
                let Some(mut engine) = open(&arm, &path, page_size) else { continue };
                let seen = as_text(&rows(&mut *engine, SCAN.trim_end_matches(" not indexed")));
                assert_eq!(seen, expected, "page size {page_size}: {arm:?}");
                let report = engine.close().unwrap();
                if let Some(reader) = report.reader {
                    assert!(reader.pages_asked > 0, "{arm:?}");
                    assert_eq!(reader.pages_lent > 0, arm.delivery == Delivery::ZeroCopy, "{page_size}: {arm:?}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_ends_too_early_is_an_error_and_not_an_answer() {
    let folder = folder();
    let path = folder.path().join("cut.db");
    database(&path, 4096, "delete");
    let len = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(len / 2 + 100).unwrap();
    for kind in [EngineKind::Sqlite, EngineKind::Turso] {
        for arm in arms(kind) {
            let Some(mut engine) = open(&arm, &path, 4096) else { continue };
            assert!(try_rows(&mut *engine, "select sum(length(filler)) from t").is_err(), "{arm:?}");
        }
    }
}
