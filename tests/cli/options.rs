//! Help, version and the first steps.

use crate::support::{Folder, SUM_SQL};

#[test]
fn without_arguments_help_shows_the_two_usual_commands() {
    let run = Folder::new().ioscope(&[]);
    assert_eq!(run.code, Some(2), "{run:#?}");
    assert!(run.stderr.contains("ioscope doctor"), "{run:#?}");
    let command = "ioscope query tpch/queries/q06.sql --engine turso,sqlite --backend uring \\\n      --direct required --window 0,32\n";
    assert!(run.stderr.contains(command), "{run:#?}");
    assert!(!run.stderr.contains("child"), "the hidden command is shown: {run:#?}");
}

#[test]
fn help_names_every_axis_and_the_exit_codes() {
    let folder = Folder::new();
    let help = folder.ioscope(&["query", "--help"]).ok().stdout;
    assert_eq!(help, folder.ioscope(&["query", "-h"]).ok().stdout);
    for word in "--engine --backend --direct --cache --window --submit --in-flight --gap --pool --policy --db --scale \
        --page-size --runs --counters --cpus --seed --timeout --json --name 130 143"
        .split_whitespace()
    {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
    assert!(folder.ioscope(&["--help"]).ok().stdout.contains("dataset"));
}

#[test]
fn the_version_names_the_engines() {
    let version = Folder::new().ioscope(&["--version"]).ok().stdout;
    assert!(version.starts_with(&format!("ioscope {} (SQLite ", env!("CARGO_PKG_VERSION"))), "{version}");
    assert!(version.contains(rusqlite::version()) && version.contains("Turso 0."), "{version}");
}

#[test]
fn data_is_made_when_it_is_missing_and_used_when_it_is_there() {
    let folder = Folder::new();
    let q06 = concat!(env!("CARGO_MANIFEST_DIR"), "/tpch/queries/q06.sql");
    let arguments =
        ["query", q06, "--scale", "0.01", "--backend", "builtin", "--counters", "none", "--json", "out.jsonl"];
    folder.ioscope(&arguments).ok();
    let database = folder.path().join("data/tpch-sf0.01.db");
    let made = std::fs::metadata(&database).unwrap().modified().unwrap();
    let run = folder.ioscope(&arguments).ok();
    assert_eq!(std::fs::metadata(&database).unwrap().modified().unwrap(), made, "it was made twice");
    assert!(run.stdout.starts_with("q06 on data/tpch-sf0.01.db"), "{run:#?}");
    let records = folder.records("out.jsonl");
    assert_eq!(records.len(), 4);
    for record in &records {
        assert_eq!((record.answer_ok, record.error.as_deref()), (Some(true), None), "{:?}", record.answer);
        assert_eq!(record.asked.query, "q06");
    }
}

#[test]
fn a_wrong_answer_is_a_failed_run_that_shows_no_time() {
    let folder = Folder::new();
    let q06 = concat!(env!("CARGO_MANIFEST_DIR"), "/tpch/queries/q06.sql");
    let arguments =
        ["query", q06, "--scale", "0.01", "--backend", "builtin", "--counters", "none", "--json", "out.jsonl"];
    folder.ioscope(&arguments).ok();
    // The manifest knows the answer; make it expect another one.
    let manifest = folder.path().join("data/tpch-sf0.01.db.manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let right = folder.records("out.jsonl")[0].answer.clone().unwrap();
    assert!(text.contains(&right), "{right} is not in {text}");
    std::fs::write(&manifest, text.replace(&right, "75207768.1855")).unwrap();
    let run = folder.ioscope(&arguments);
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(run.stdout.contains("FAILED") && run.stdout.contains("wrong answer: "), "{run:#?}");
    let wall = run.stdout.lines().find(|line| line.starts_with("wall, s")).unwrap();
    assert_eq!(wall, "wall, s", "a time of a wrong answer is shown");
    let record = folder.records("out.jsonl").pop().unwrap();
    assert_eq!(record.answer_ok, Some(false));
    assert!(record.error.is_some_and(|error| error.contains("75207768.1855")));
}

#[test]
fn cells_can_be_named_one_by_one() {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    folder.database("x.db", 4096);
    folder
        .ioscope(&[
            "query",
            "q.sql",
            "--db",
            "x.db",
            "--engine",
            "sqlite",
            "--counters",
            "none",
            "--json",
            "out.jsonl",
            "--cell",
            "backend=builtin cache=warm",
            "--cell",
            "backend=pread window=0,8",
        ])
        .ok();
    let mut cells: Vec<String> = folder.records("out.jsonl").into_iter().map(|record| record.cell).collect();
    cells.sort();
    assert_eq!(cells, ["sqlite-builtin-warm", "sqlite-pread-w0", "sqlite-pread-w8"]);
}

#[test]
fn runs_are_confined_to_the_cpus_asked_for() {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    folder.database("x.db", 4096);
    folder
        .ioscope(&[
            "query",
            "q.sql",
            "--db",
            "x.db",
            "--engine",
            "sqlite",
            "--backend",
            "pread",
            "--counters",
            "none",
            "--cpus",
            "0",
            "--json",
            "out.jsonl",
        ])
        .ok();
    assert_eq!(folder.records("out.jsonl")[0].effective.cpus_allowed.as_deref(), Some("0"));
}
