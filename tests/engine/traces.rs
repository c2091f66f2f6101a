//! A query leaves the database's bytes and its folder as they were.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ioscope::engine::{EngineError, EngineKind, EngineSpec};
use ioscope::page::config::ReaderConfig;

use crate::helper::{another_process, arms, database, folder, open, rows, try_rows};

fn listing(folder: &Path) -> BTreeMap<std::ffi::OsString, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name(), std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn nothing_is_left_behind_and_nothing_is_changed() {
    for journal_mode in ["delete", "wal"] {
        let folder = folder();
        let path = folder.path().join("clean.db");
        database(&path, 4096, journal_mode);
        let before = listing(folder.path());
        assert_eq!(before.len(), 1);
        for kind in [EngineKind::Sqlite, EngineKind::Turso] {
            for arm in arms(kind) {
                let Some(mut engine) = open(&arm, &path, 4096) else { continue };
                rows(&mut *engine, "select sum(v) from t");
                assert!(try_rows(&mut *engine, "delete from t").is_err(), "{arm:?}: a write went through");
                engine.close().unwrap();
                assert!(
                    listing(folder.path()) == before,
                    "{journal_mode} {arm:?}: {:?}",
                    listing(folder.path()).keys()
                );
            }
        }
    }
}

#[test]
fn a_wal_without_its_index_is_left_as_it_was() {
    let folder = folder();
    let path = folder.path().join("crashed.db");
    database(&path, 4096, "wal");
    // A writer that dies: its frames stay in the -wal.
    let sql = "pragma wal_autocheckpoint = 0; update t set v = 5; select count(*) from t where v = 5";
    let mut writer = another_process(&path, sql);
    let copy = folder.path().join("copy");
    loop {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let answer = crate::helper::in_another_process(&path, "select count(*) from t where v = 5");
        if answer == Ok("Integer(5000)".to_owned()) {
            break;
        }
        assert!(writer.try_wait().unwrap().is_none(), "the writer ended early");
    }
    std::fs::create_dir(&copy).unwrap();
    for name in ["crashed.db", "crashed.db-wal"] {
        std::fs::copy(folder.path().join(name), copy.join(name)).unwrap();
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    let before = listing(&copy);
    for kind in [EngineKind::Sqlite, EngineKind::Turso] {
        for arm in arms(kind) {
            let Some(mut engine) = open(&arm, &copy.join("crashed.db"), 4096) else { continue };
            let seen = rows(&mut *engine, "select count(*) from t where v = 5");
            assert_eq!(format!("{seen:?}"), "[[Integer(5000)]]", "{arm:?}");
            engine.close().unwrap();
            assert!(listing(&copy) == before, "{arm:?}: {:?}", listing(&copy).keys());
        }
    }
}

#[test]
fn odd_paths_are_paths() {
    let folder = folder();
    let names: [&[u8]; 4] = [b"with space.db", b"100%25?mode=rw.db", b"file:x.db", b"\xFF\xFE latin.db"];
    for name in names {
        let path = folder.path().join(OsStr::from_bytes(name));
        database(&path, 4096, "delete");
        for kind in [EngineKind::Sqlite, EngineKind::Turso] {
            for arm in arms(kind) {
                if path.to_str().is_none() && kind == EngineKind::Turso {
                    let spec = EngineSpec {
                        kind,
                        backend: arm.backend,
                        reader: ReaderConfig::default(),
                        direct_proof: None,
                        page_size: 4096,
                        path: path.clone(),
                    };
                    let Err(error @ EngineError::Open { .. }) = ioscope::engine::open(&spec) else {
                        panic!("{arm:?}: a path that is not UTF-8 was taken");
                    };
                    assert!(error.to_string().contains("UTF-8"), "{error}");
                    continue;
                }
                let Some(mut engine) = open(&arm, &path, 4096) else { continue };
                assert_eq!(format!("{:?}", rows(&mut *engine, "select count(*) from t")), "[[Integer(5000)]]");
                engine.close().unwrap();
            }
        }
    }
}
