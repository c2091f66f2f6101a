//! Tests of making, checking and refusing data sets, on small real ones.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use rusqlite::{Connection, params_from_iter};
use tempfile::TempDir;

use super::tables::{SCHEMA_SQL, Table};
use super::*;

fn small() -> Scale {
    Scale::new(0.01).unwrap()
}

fn make(path: &Path) -> Dataset {
    ensure(small(), 4096, path, Progress::Silent).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Pages of each b-tree, as `dbstat` counts them.
fn pages(connection: &Connection, name: &str) -> i64 {
    connection.query_row("SELECT count(*) FROM dbstat WHERE name = ?1", [name], |row| row.get(0)).unwrap()
}

#[test]
fn the_layout_is_that_of_rows_inserted_one_by_one() {
    let folder = TempDir::new().unwrap();
    let (made, plain) = (folder.path().join("made.db"), folder.path().join("plain.db"));
    let dataset = make(&made);
    let source = Connection::open(&made).unwrap();
    let target = Connection::open(&plain).unwrap();
    target.execute_batch("PRAGMA page_size = 4096; PRAGMA foreign_keys = OFF; PRAGMA journal_mode = OFF;").unwrap();
    target.execute_batch(SCHEMA_SQL).unwrap();
    target.execute_batch("BEGIN").unwrap();
    for table in Table::ALL {
        let marks = vec!["?"; table.columns()].join(",");
        let mut insert = target.prepare(&format!("INSERT INTO {} VALUES ({marks})", table.name())).unwrap();
        let mut select = source.prepare(&format!("SELECT * FROM {} ORDER BY rowid", table.name())).unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values = (0..table.columns()).map(|column| row.get::<_, rusqlite::types::Value>(column).unwrap());
            insert.execute(params_from_iter(values)).unwrap();
        }
    }
    target.execute_batch("COMMIT").unwrap();
    assert_eq!((pages(&source, "LINEITEM"), pages(&source, "sqlite_autoindex_LINEITEM_1")), (1908, 213));
    drop((source, target));
    assert_eq!(dataset.manifest.size_bytes, 12_238_848);
    assert!(std::fs::read(made).unwrap() == std::fs::read(plain).unwrap(), "the two files differ");
}

#[test]
fn fractional_scales_have_the_rows_of_the_specification() {
    let folder = TempDir::new().unwrap();
    for (scale, orders, items) in [("0.01", 15_000, 60_175), ("0.025", 37_500, 150_390)] {
        let scale: Scale = scale.parse().unwrap();
        let path = folder.path().join(default_path(scale, 4096));
        let rows = ensure(scale, 4096, &path, Progress::Silent).unwrap().manifest.rows;
        assert_eq!((rows["REGION"], rows["NATION"]), (5, 25));
        assert_eq!((rows["ORDERS"], rows["LINEITEM"]), (orders, items));
        assert_eq!(rows["CUSTOMER"], orders / 10);
        assert_eq!(rows["PARTSUPP"], rows["PART"] * 4);
        assert_eq!(rows["PART"], rows["SUPPLIER"] * 20);
        let connection = Connection::open(&path).unwrap();
        let broken: i64 =
            connection.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0)).unwrap();
        let integrity: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!((broken, integrity.as_str()), (0, "ok"));
    }
}

#[test]
fn every_page_size_works() {
    let folder = TempDir::new().unwrap();
    for size in PAGE_SIZES_BYTES {
        let path = folder.path().join(default_path(small(), size));
        ensure(small(), size, &path, Progress::Silent).unwrap();
        let dataset = Dataset::open_existing(&path).unwrap();
        assert_eq!(dataset.manifest.page_size_bytes, size);
        assert_eq!(dataset.manifest.q6_revenue, "1193053.2253");
        let stored: u32 = Connection::open(&path).unwrap().query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
        assert_eq!(stored, size);
    }
    let refused = ensure(small(), 3000, &folder.path().join("x.db"), Progress::Silent).unwrap_err();
    assert!(refused.to_string().contains("512, 1024, 2048, 4096, 8192, 16384, 32768 or 65536"), "{refused}");
}

#[test]
fn default_paths_name_scale_and_page_size() {
    assert_eq!(default_path(Scale::ONE, 4096), Path::new("data/tpch-sf1.db"));
    assert_eq!(default_path(small(), 4096), Path::new("data/tpch-sf0.01.db"));
    assert_eq!(default_path(Scale::ONE, 8192), Path::new("data/tpch-sf1-p8192.db"));
}

#[test]
fn a_data_set_that_is_there_is_kept() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db");
    let made = make(&path);
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(make(&path), made);
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert_eq!(manifest_of(&path), Some(made.manifest));
    assert_eq!(names(folder.path()), ["a.db", "a.db.manifest.json"]);
}

#[test]
fn a_manifest_without_its_file_counts_as_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db");
    std::fs::write(Manifest::path_for(&path), "left by a crash").unwrap();
    std::fs::write(folder.path().join("a.db.generating-1-7"), "left by another").unwrap();
    assert!(matches!(Dataset::open_existing(&path), Err(DatasetError::Missing { .. })));
    make(&path);
    assert_eq!(names(folder.path()), ["a.db", "a.db.manifest.json"]);
}

#[test]
fn what_does_not_match_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db");
    let manifest_path = Manifest::path_for(&path);
    make(&path);
    let bytes = std::fs::read(&path).unwrap();
    let manifest = std::fs::read_to_string(&manifest_path).unwrap();
    let refusal = |scale, page_size| {
        let before = std::fs::read(&path).unwrap();
        let error = ensure(scale, page_size, &path, Progress::Silent).unwrap_err().to_string();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert!(error.contains("delete") && error.contains("--out") && error.contains("a.db"), "{error}");
        error
    };
    assert!(refusal(Scale::ONE, 4096).contains("its scale is 0.01, not 1"));
    assert!(refusal(small(), 8192).contains("its page size is 4096, not 8192"));

    for (from, to, why) in [
        ("\"manifest_version\": 1", "\"manifest_version\": 9", "it has version 9"),
        ("\"benchmark\": \"tpch\"", "\"benchmark\": \"tpcc\"", "its benchmark is tpcc, not tpch"),
        ("fnv1a64:", "fnv1a64:0", "its schema digest is"),
        ("\"page_size_bytes\": 4096", "\"page_size_bytes\": 512", "its page size is 4096, not 512"),
        ("\"scale\": 0.01", "\"scale\": 0.02", "its scale is 0.02, not 0.01"),
        ("\"ORDERS\"", "\"ORDER\"", "no row count of ORDERS"),
        ("\"rows\"", "\"lines\"", "unknown field `lines`"),
        ("{", "", "cannot be used"),
    ] {
        assert!(manifest.contains(from));
        std::fs::write(&manifest_path, manifest.replacen(from, to, 1)).unwrap();
        let error = refusal(small(), 4096);
        assert!(error.contains(why), "{error}");
    }
    std::fs::write(&manifest_path, [0xff, 0xfe]).unwrap();
    assert!(refusal(small(), 4096).contains("not UTF-8"));
    std::fs::remove_file(&manifest_path).unwrap();
    assert!(refusal(small(), 4096).contains("nothing says what made it"));
    assert_eq!(manifest_of(&path), None);

    std::fs::write(&manifest_path, &manifest).unwrap();
    std::fs::write(&path, [bytes.as_slice(), &[0]].concat()).unwrap();
    assert!(refusal(small(), 4096).contains("its size in bytes is 12238849, not 12238848"));
    std::fs::write(&path, &bytes).unwrap();
    make(&path);
    Connection::open(&path).unwrap().execute_batch("UPDATE LINEITEM SET L_TAX = 0.01 WHERE L_ORDERKEY = 1").unwrap();
    assert!(refusal(small(), 4096).contains("somebody has written to the file"));
}

#[test]
fn odd_names_work() {
    let folder = TempDir::new().unwrap();
    for name in [b"a b%20?x=1#y.db".as_slice(), b"\xff\xfe.db", b"file:a.db?mode=memory", b"-"] {
        let path = folder.path().join(OsStr::from_bytes(name));
        make(&path);
        Dataset::open_existing(&path).unwrap();
    }
    assert_eq!(names(folder.path()).len(), 8);
}

#[test]
fn places_that_will_not_do_are_named() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let below_a_file =
        ensure(small(), 4096, &folder.path().join("file/a.db"), Progress::Silent).unwrap_err().to_string();
    assert!(below_a_file.contains("file/a.db") && below_a_file.contains("--out"), "{below_a_file}");
    let a_folder = ensure(small(), 4096, folder.path(), Progress::Silent).unwrap_err().to_string();
    assert!(a_folder.contains("directory") && a_folder.contains("--out"), "{a_folder}");
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn two_at_once_end_with_one_valid_pair() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new folder/a.db");
    let made: Vec<Dataset> = std::thread::scope(|scope| {
        let both: Vec<_> = (0..2).map(|_| scope.spawn(|| make(&path))).collect();
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(made[0], made[1]);
    assert_eq!(Dataset::open_existing(&path).unwrap(), made[0]);
    assert_eq!(names(path.parent().unwrap()), ["a.db", "a.db.manifest.json"]);
}

/// A tmpfs of a few MiB, unmounted when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_is_said_and_nothing_is_left() {
    let Some(disk) = SmallDisk::mount("6m") else {
        crate::skipped!("a_full_disk_is_said_and_nothing_is_left: no privilege to mount a tmpfs");
        return;
    };
    let folder = disk.0.path();
    let path = folder.join("data/a.db");
    let refused = ensure(small(), 4096, &path, Progress::Silent).unwrap_err();
    assert!(matches!(refused, DatasetError::NotEnoughSpace { needed_mib: 14, available_mib: 6, .. }), "{refused:?}");
    assert!(names(folder).is_empty());
    // The look at the free space may be too hopeful: others write as well.
    let path = folder.join("a.db");
    let full = build::write(folder, small(), 4096, &path, Progress::Silent).unwrap_err();
    assert!(matches!(full, DatasetError::DiskFull { .. }), "{full:?}");
    assert!(full.to_string().contains("Make room"), "{full}");
    assert!(names(folder).is_empty());
}
