//! What a user gets: the table, the records, and how they agree.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Folder, Run, SUM, SUM_SQL, has_ring, records};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    folder.database("x.db", 4096);
    folder
}

#[test]
fn records_have_the_documented_names_and_a_reason_for_every_null() {
    let folder = folder();
    let arguments = [
        "query",
        "q.sql",
        "--db",
        "x.db",
        "--backend",
        "pread,builtin,uring",
        "--window",
        "0,8",
        "--cache",
        "cold,warm",
        "--json",
        "out.jsonl",
    ];
    if !has_ring("records_have_the_documented_names_and_a_reason_for_every_null") {
        return;
    }
    folder.ioscope(&arguments).ok();
    let text = std::fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let names = "schema experiment cell run counted asked effective answer answer_ok error times ring pages block hardware \
            residency reasons warnings environment";
        let mut names: Vec<&str> = names.split_whitespace().collect();
        names.sort_unstable();
        let mut found: Vec<&String> = value.as_object().unwrap().keys().collect();
        found.sort_unstable();
        assert_eq!(found, names);
    }
    let records = records(&text);
    assert_eq!(records.len(), 2 * (2 * 2 + 2 + 2 * 2) * 2, "timed and counted runs of each cell");
    for record in records {
        assert_eq!(record.error, None, "{}", record.cell);
        assert_eq!(record.unexplained(), Vec::<String>::new(), "{} has nulls without a reason", record.cell);
        assert_eq!(record.answer, Some(SUM.to_string()));
        assert!(record.times.wall_s.unwrap() > 0.0);
        assert!(!record.environment.id.is_empty());
        let (before, all) = (record.residency.resident_pages_before.unwrap(), record.residency.file_pages.unwrap());
        match record.asked.cache.as_str() {
            "cold" => assert_eq!(before, 0, "{}", record.cell),
            _ => assert_eq!(before, all, "{}", record.cell),
        }
        if record.asked.backend.as_str() == "builtin" {
            assert_eq!((record.ring.sqes, record.pages.pages_wasted), (None, None));
        } else {
            assert_eq!(record.effective.backend.as_deref(), Some(record.asked.backend.as_str()));
            assert!(record.pages.pages_asked.unwrap() > 0);
        }
        if !record.counted {
            assert_eq!(record.ring.sqes_traced, None);
        } else if let (Some(ours), Some(traced)) = (record.ring.sqes, record.ring.sqes_traced) {
            assert_eq!(ours, traced, "{}", record.cell);
        }
    }
}

#[test]
fn records_are_appended() {
    let folder = folder();
    let arguments = [
        "query",
        "q.sql",
        "--db",
        "x.db",
        "--engine",
        "sqlite",
        "--backend",
        "builtin",
        "--counters",
        "none",
        "--json",
        "o",
    ];
    folder.ioscope(&arguments).ok();
    let first = std::fs::read_to_string(folder.path().join("o")).unwrap();
    folder.ioscope(&[&arguments[..], &["--name", "second", "--runs", "2"]].concat()).ok();
    let both = std::fs::read_to_string(folder.path().join("o")).unwrap();
    assert!(both.starts_with(&first));
    let records = records(&both);
    let runs: Vec<(&str, u32)> = records.iter().map(|r| (r.experiment.as_str(), r.run)).collect();
    assert_eq!(runs, [("query", 1), ("second", 1), ("second", 2)]);
}

#[test]
fn counters_decide_which_runs_there_are() {
    let folder = folder();
    for (counters, timed, counted) in [("none", 2, 0), ("all", 0, 2), ("both", 2, 1), ("paired", 2, 2)] {
        let name = format!("{counters}.jsonl");
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
                "--runs",
                "2",
                "--counters",
                counters,
                "--json",
                &name,
            ])
            .ok();
        let records = folder.records(&name);
        let is_counted = records.iter().filter(|record| record.counted).count();
        assert_eq!((records.len() - is_counted, is_counted), (timed, counted), "{counters}");
    }
}

#[test]
fn the_runs_that_are_sampled_are_those_whose_walls_are_not_compared() {
    let folder = folder();
    for (counters, expected) in [("none", [(false, true)].as_slice()), ("both", &[(true, true), (false, false)])] {
        let name = format!("{counters}.jsonl");
        let arguments = ["query", "q.sql", "--db", "x.db", "--engine", "sqlite", "--backend", "pread", "--json", &name];
        folder.ioscope(&[&arguments[..], &["--counters", counters, "--sample", "1ms"]].concat()).ok();
        let records = folder.records(&name);
        let sampled: Vec<(bool, bool)> = records.iter().map(|r| (r.counted, r.samples.is_some())).collect();
        assert_eq!(sampled, expected, "{counters}");
        for record in records.iter().filter(|record| record.samples.is_some()) {
            let (samples, sampling) = (record.samples.as_ref().unwrap(), record.sampling.as_ref().unwrap());
            assert!(!samples.is_empty() && samples.is_sorted_by(|a, b| a.t_s < b.t_s), "{samples:?}");
            assert_eq!(sampling.sample_interval_s, 0.001);
            assert!(sampling.sampler_cpu_s.unwrap() > 0.0);
            assert_eq!(record.unexplained(), Vec::<String>::new());
        }
    }
    for bad in ["0", "none", "2m"] {
        folder
            .ioscope(&["query", "q.sql", "--db", "x.db", "--sample", bad])
            .refused(2, &["is no interval of samples; from 1ms to 1m"]);
    }
}

#[test]
fn the_same_seed_is_the_same_order_of_runs() {
    let folder = folder();
    let order = |seed: &str, name: &str| {
        folder
            .ioscope(&[
                "query",
                "q.sql",
                "--db",
                "x.db",
                "--backend",
                "pread",
                "--window",
                "0,1,2",
                "--counters",
                "none",
                "--runs",
                "2",
                "--seed",
                seed,
                "--json",
                name,
            ])
            .ok();
        folder.records(name).into_iter().map(|record| (record.cell, record.run)).collect::<Vec<_>>()
    };
    let first = order("7", "a");
    assert_eq!(order("7", "b"), first);
    assert!(order("8", "c") != first || order("9", "d") != first);
}

#[test]
fn the_table_shows_what_the_records_say() {
    let folder = folder();
    let run = folder
        .ioscope(&[
            "query",
            "q.sql",
            "--db",
            "x.db",
            "--backend",
            "pread",
            "--window",
            "0,8",
            "--counters",
            "none",
            "--json",
            "-",
        ])
        .ok();
    // With records on stdout the table is on stderr.
    let records = records(&run.stdout);
    assert_eq!(records.len(), 4);
    let row = |label: &str| -> Vec<String> {
        let line = run.stderr.lines().find(|line| line.starts_with(label));
        let line = line.unwrap_or_else(|| panic!("no row {label} in\n{}", run.stderr));
        line[label.len()..].split("  ").map(str::trim).filter(|e| !e.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(row("engine"), ["turso", "turso", "sqlite", "sqlite"]);
    assert_eq!(row("window, pages"), ["0", "8", "0", "8"]);
    for (column, cell) in ["turso-pread-w0", "turso-pread-w8", "sqlite-pread-w0", "sqlite-pread-w8"].iter().enumerate()
    {
        let record = records.iter().find(|record| record.cell == *cell).unwrap();
        assert_eq!(row("wall, s")[column], format!("{:.3}", record.times.wall_s.unwrap()));
        assert_eq!(row("pages asked")[column], record.pages.pages_asked.unwrap().to_string());
        assert_eq!(row("pread calls")[column].replace(' ', ""), record.ring.pread_calls.unwrap().to_string());
        assert!(row("bios")[column].starts_with("-["), "counters were off");
    }
    assert!(run.stderr.lines().any(|line| line.starts_with('[') && line.contains("not asked for")), "{}", run.stderr);
}

#[test]
fn a_product_says_what_it_leaves_out_and_runs_the_rest() {
    let folder = folder();
    let run = folder.ioscope(&[
        "query",
        "q.sql",
        "--db",
        "x.db",
        "--backend",
        "builtin-uring,builtin,pread",
        "--engine",
        "sqlite",
        "--counters",
        "none",
        "--direct",
        "disabled,required",
    ]);
    assert!(run.stderr.contains("left out: sqlite x builtin-uring: SQLite has no io_uring of its own"), "{run:#?}");
    assert!(run.stderr.contains("left out: builtin x direct required: "), "{run:#?}");
    let engines = run.stdout.lines().find(|line| line.starts_with("engine")).unwrap();
    assert_eq!(engines.split_whitespace().count() - 1, 3, "{run:#?}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = folder();
    let mut child = folder
        .command()
        .args(["query", "q.sql", "--db", "x.db", "--backend", "builtin", "--counters", "none"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_under_the_records_ends_the_experiment_with_its_reason() {
    if !std::path::Path::new("/dev/full").exists() {
        ioscope::skipped!("a_full_disk_under_the_records_ends_the_experiment_with_its_reason: no /dev/full");
        return;
    }
    let folder = folder();
    let run = folder.ioscope(&[
        "query",
        "q.sql",
        "--db",
        "x.db",
        "--backend",
        "builtin",
        "--counters",
        "none",
        "--json",
        "/dev/full",
    ]);
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(run.stderr.contains("error: --json /dev/full") && run.stderr.contains("1 of 2 runs were made"), "{run:#?}");
    assert!(run.stdout.contains("wall, s"), "what was measured is shown: {run:#?}");
}

#[test]
fn a_query_leaves_the_folder_as_it_was() {
    let folder = folder();
    let before = folder.contents();
    folder.ioscope(&["query", "q.sql", "--db", "x.db", "--backend", "pread,builtin"]).ok();
    assert!(folder.contents() == before, "{:?}", folder.contents().keys());
}

#[test]
fn nothing_that_a_pipe_does_not_want_is_written() {
    let folder = folder();
    let mut child = folder
        .command()
        .args(["query", "q.sql", "--db", "x.db", "--backend", "builtin", "--counters", "none"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "no progress without a terminal");
    assert!(!stdout.contains(['\x1b', '\r']) && stdout.ends_with('\n'));
}
