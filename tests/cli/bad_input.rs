//! Input that cannot be right: one clear error, its exit code, and nothing changed.

use std::os::unix::fs::PermissionsExt;

use crate::support::{Folder, SUM_SQL};

#[test]
fn a_database_that_is_none_is_refused_before_anything_runs() {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    let whole = std::fs::read(folder.database("whole.db", 4096)).unwrap();
    std::fs::create_dir(folder.path().join("folder.db")).unwrap();
    folder.file("empty.db", "");
    folder.file("text.db", "this is no database, but a text of more than a hundred bytes ".repeat(3));
    folder.file("cut.db", &whole[..whole.len() - 4096]);
    folder.file("header.db", &whole[..50]);
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    folder.file("pagesize.db", with(17, 3));
    folder.file("version.db", with(19, 9));

    let before = folder.contents();
    for (database, why) in [
        ("none.db", "no such file"),
        ("folder.db", "it is a directory"),
        ("empty.db", "the file is empty"),
        ("text.db", "not an SQLite database"),
        ("cut.db", "truncated: the header says"),
        ("header.db", "truncated: 50 bytes"),
        ("pagesize.db", "the page size is 4099; a power of two from 512 to 65536 is allowed"),
        ("version.db", "the read version is 9"),
        ("whole.db/x", "Not a directory"),
    ] {
        let run = folder.ioscope(&["query", "q.sql", "--db", database, "--json", "out.jsonl"]);
        run.refused(2, &[why, database, "help: "]);
    }
    assert_eq!(folder.contents(), before, "nothing is changed and nothing is left");
}

#[test]
fn an_sql_file_that_is_none_is_refused() {
    let folder = Folder::new();
    folder.database("x.db", 4096);
    folder.file("empty.sql", "  -- nothing\n;");
    folder.file("latin.sql", b"SELECT '\xe4'");
    let before = folder.contents();
    for (sql, why) in [
        ("none.sql", "No such file"),
        (".", "it is a directory"),
        ("empty.sql", "it holds no SQL statement"),
        ("latin.sql", "it is not UTF-8"),
    ] {
        folder.ioscope(&["query", sql, "--db", "x.db"]).refused(2, &[why, sql, "help: "]);
    }
    assert_eq!(folder.contents(), before);
}

#[test]
fn an_unknown_value_is_answered_with_the_known_ones() {
    let folder = Folder::new();
    for (flag, value, known) in [
        ("--engine", "duckdb", "unknown engine 'duckdb'; known: sqlite, turso"),
        ("--engine", "sqlite,tursO", "did you mean 'turso'?"),
        ("--backend", "io_uring", "known: pread, uring, uring-sqpoll, builtin, builtin-uring"),
        ("--backend", "uring_sqpoll", "did you mean 'uring-sqpoll'?"),
        ("--direct", "optional", "known: disabled, required"),
        ("--submit", "merged", "known: per-page, coalesced"),
        ("--pool", "large", "known: normal, huge"),
        ("--policy", "oracle", "known: sequential"),
        ("--cache", "hot", "known: cold, warm"),
        ("--counters", "some", "known: none, all, both"),
        ("--window", "4097", "window '4097' is out of range; a whole number from 0 to 4096"),
        ("--window", "-1", "window '-1' is out of range"),
        ("--window", "0,,32", "window '' is out of range"),
        ("--window", "many", "window 'many' is out of range"),
        ("--in-flight", "0", "a whole number from 1 to 16"),
        ("--gap", "33", "a whole number from 0 to 32"),
        ("--runs", "0", "a whole number from 1 to 10000"),
        ("--sqpoll-idle-ms", "0", "a whole number from 1 to"),
        ("--page-size", "1000", "a power of two from 512 to 65536"),
        ("--scale", "0", "scale 0 is out of range"),
        ("--scale", "-1", "scale -1 is out of range"),
        ("--scale", "NaN", "scale"),
        ("--scale", "big", "not a number"),
        ("--timeout", "soon", "is no duration"),
        ("--cpus", "1-0", "is not a list of CPUs"),
        ("--seed", "x", "invalid digit"),
    ] {
        folder.ioscope(&["query", "q.sql", flag, value]).refused(2, &[flag, known]);
    }
    folder.ioscope(&["query", "q.sql", "--widnow", "3"]).refused(2, &["--window"]);
    folder.ioscope(&["query", "q.sql", "--db", "x.db", "--scale", "1"]).refused(2, &["cannot be used with"]);
    folder.ioscope(&["query", "q.sql", "--db", ""]).refused(2, &["--db <FILE>"]);
    folder.ioscope(&["qurey"]).refused(2, &["query"]);
    assert!(folder.contents().is_empty());
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    folder.database("x.db", 4096);
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus > 1000 {
        ioscope::skipped!("a_cpu_that_is_not_there_is_refused: {cpus} CPUs");
        return;
    }
    folder
        .ioscope(&["query", "q.sql", "--db", "x.db", "--cpus", "1023"])
        .refused(2, &["CPU 1023 cannot be used; this process may run on", "help: "]);
}

#[test]
fn combinations_that_make_no_sense_are_refused_with_the_reason() {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    folder.database("x.db", 4096);
    for (arguments, why) in [
        (&["--engine", "sqlite", "--backend", "builtin-uring"][..], "SQLite has no io_uring of its own"),
        (&["--backend", "builtin", "--direct", "required"], "an engine's own I/O goes through the page cache"),
        (&["--direct", "required", "--cache", "warm"], "direct reads bypass the page cache"),
        (&["--cell", "backend"], "'backend' is not of the form AXIS=VALUE"),
        (&["--cell", "bakcend=uring"], "did you mean 'backend'?"),
        (&["--cell", "window=-3"], "window '-3' is out of range"),
    ] {
        let arguments = [&["query", "q.sql", "--db", "x.db"], arguments].concat();
        folder.ioscope(&arguments).refused(2, &[why, "help: "]);
    }
}

#[test]
fn records_are_not_appended_to_what_is_no_file_of_records() {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    folder.database("x.db", 4096);
    let before = folder.contents();
    for (json, why) in [
        ("q.sql", "its first line is no JSON object"),
        ("x.db", "its first line is no JSON object"),
        (".", "--json ."),
        ("none/out.jsonl", "--json none/out.jsonl"),
    ] {
        folder.ioscope(&["query", "q.sql", "--db", "x.db", "--json", json]).refused(2, &[why, "help: "]);
    }
    assert_eq!(folder.contents(), before);
}

#[test]
fn sql_that_fails_is_a_failed_run_and_a_write_changes_nothing() {
    let folder = Folder::new();
    folder.database("x.db", 4096);
    for (sql, word) in [
        ("SELECT nothing FROM t", "nothing"),
        ("SELEC 1", "SELEC"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("DELETE FROM t", ""),
        ("CREATE TABLE u(x)", ""),
        ("DROP TABLE t", ""),
    ] {
        folder.file("q.sql", sql);
        let before = folder.contents();
        let run = folder.ioscope(&["query", "q.sql", "--db", "x.db", "--backend", "pread", "--counters", "none"]);
        assert_eq!(run.code, Some(1), "{sql}: {run:#?}");
        for cell in ["cell 1 (turso-pread-w32)", "cell 2 (sqlite-pread-w32)"] {
            let line = run.stdout.lines().find(|line| line.starts_with("FAILED: ") && line.contains(cell));
            let line = line.unwrap_or_else(|| panic!("{sql}: {cell} did not fail: {run:#?}"));
            assert!(line.contains(word), "{line}");
        }
        assert_eq!(folder.contents(), before, "{sql}");
    }
}

#[test]
fn tmpfs_is_refused_for_direct_reads_and_says_what_to_do() {
    let Ok(shm) = tempfile::tempdir_in("/dev/shm") else {
        ioscope::skipped!("tmpfs_is_refused_for_direct_reads_and_says_what_to_do: no /dev/shm");
        return;
    };
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    let database = shm.path().join("x.db");
    std::fs::copy(folder.database("x.db", 4096), &database).unwrap();
    let run = folder.ioscope(&[
        "query",
        "q.sql",
        "--db",
        database.to_str().unwrap(),
        "--backend",
        "pread",
        "--direct",
        "required",
        "--counters",
        "none",
        "--json",
        "out.jsonl",
    ]);
    assert_eq!(run.code, Some(1), "{run:#?}");
    for record in folder.records("out.jsonl") {
        let error = record.error.clone().unwrap();
        assert!(error.contains("direct I/O on") && error.contains("--direct disabled"), "{error}");
        assert_eq!(record.times.wall_s, None);
        assert_eq!(record.unexplained(), Vec::<String>::new());
    }
}

#[test]
fn a_database_that_may_not_be_read_is_refused() {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    let database = folder.database("x.db", 4096);
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&database).is_ok() {
        ioscope::skipped!("a_database_that_may_not_be_read_is_refused: root may read everything");
        return;
    }
    folder.ioscope(&["query", "q.sql", "--db", "x.db"]).refused(2, &["Permission denied", "help: "]);
}

#[test]
fn a_hot_journal_is_refused() {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    folder.database("x.db", 4096);
    folder.file("x.db-journal", [&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7][..], &[0; 600]].concat());
    let before = folder.contents();
    folder.ioscope(&["query", "q.sql", "--db", "x.db"]).refused(2, &["a rollback journal beside it", "help: "]);
    assert_eq!(folder.contents(), before);
}

#[test]
fn a_child_without_a_specification_says_so() {
    let folder = Folder::new();
    folder.ioscope(&["child"]).refused(1, &["standard input is not the specification of a run"]);
}
