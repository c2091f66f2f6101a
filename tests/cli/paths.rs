//! Databases of every page size, under odd names, and with a live write-ahead log.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::support::{Folder, SUM, SUM_SQL};

const BOTH: [&str; 8] =
    ["--engine", "sqlite,turso", "--backend", "pread,builtin", "--counters", "none", "--json", "out.jsonl"];

/// Asks for the sum, and expects it in every cell.
fn ask(folder: &Folder, database: OsString, cells: usize, sum: i64) {
    folder.file("q.sql", SUM_SQL);
    let mut arguments: Vec<OsString> = ["query", "q.sql", "--db"].map(OsString::from).to_vec();
    arguments.push(database.clone());
    arguments.extend(BOTH.map(OsString::from));
    let run = folder.ioscope_os(&arguments);
    assert_eq!(run.code, Some(0), "{database:?}: {run:#?}");
    let records = folder.records("out.jsonl");
    assert_eq!(records.len(), cells, "{database:?}: {run:#?}");
    for record in &records {
        assert_eq!(record.answer, Some(sum.to_string()), "{database:?}, {}", record.cell);
    }
    std::fs::remove_file(folder.path().join("out.jsonl")).unwrap();
}

#[test]
fn every_page_size_is_read_right() {
    let folder = Folder::new();
    for page_size in [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536] {
        let name = format!("p{page_size}.db");
        let database = folder.database(&name, page_size);
        ask(&folder, name.into(), 4, SUM);
        let header = std::fs::read(database).unwrap();
        assert_eq!(u32::from(u16::from_be_bytes([header[16], header[17]])), page_size % 65536 + page_size / 65536);
    }
}

#[test]
fn names_that_a_uri_or_a_shell_would_change_are_taken_as_they_are() {
    let folder = Folder::new();
    for name in ["a b.db", "50%.db", "%20.db", "who?.db", "x?mode=memory.db", "a#b.db", "file:x.db", "'q\".db", "ü.db"]
    {
        folder.database(name, 4096);
        let before = folder.contents();
        ask(&folder, name.into(), 4, SUM);
        let after = folder.contents();
        let names: Vec<_> = after.keys().filter(|n| !before.contains_key(*n) && *n != "q.sql").collect();
        assert!(names.is_empty(), "{name}: left {names:?}");
        assert_eq!(after[&OsString::from(name)], before[&OsString::from(name)], "{name}");
    }
}

#[test]
fn a_path_that_is_not_utf8_works_with_sqlite_and_is_refused_for_turso() {
    let folder = Folder::new();
    let name = OsString::from_vec(b"caf\xe9.db".to_vec());
    folder.database(&name, 4096);
    ask(&folder, name.clone(), 2, SUM);
    let arguments = ["query", "q.sql", "--engine", "turso", "--db"].map(OsString::from);
    folder.ioscope_os(&[&arguments[..], &[name]].concat()).refused(2, &["turso", "UTF-8", "help: "]);
}

#[test]
fn a_live_wal_is_read_and_nothing_is_changed() {
    let folder = Folder::new();
    let writer = rusqlite::Connection::open(folder.database("w.db", 4096)).unwrap();
    writer.pragma_update(None, "journal_mode", "wal").unwrap();
    writer.execute_batch("PRAGMA wal_autocheckpoint = 0; INSERT INTO t VALUES (5, 'new')").unwrap();
    // As another process left it: the log without its index, and no writer.
    for file in ["w.db", "w.db-wal"] {
        std::fs::copy(folder.path().join(file), folder.path().join(file.replace("w.db", "left.db"))).unwrap();
    }
    folder.file("q.sql", SUM_SQL);
    let before = folder.contents();
    assert!(before.contains_key(&OsString::from("left.db-wal")));
    ask(&folder, "left.db".into(), 4, SUM + 5);
    assert_eq!(
        folder.contents().keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>(),
        "files beside the database came or went"
    );
    for file in ["left.db", "left.db-wal"] {
        assert!(folder.contents()[&OsString::from(file)] == before[&OsString::from(file)], "{file} was changed");
    }
    // And while the writer is there.
    ask(&folder, "w.db".into(), 4, SUM + 5);
    writer.execute_batch("INSERT INTO t VALUES (7, 'newer')").unwrap();
    ask(&folder, "w.db".into(), 4, SUM + 12);
}
