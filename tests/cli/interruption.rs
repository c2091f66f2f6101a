//! Runs that hang, crash or are interrupted.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Folder, Run};

/// Never ends, and reads next to nothing.
const ENDLESS: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
const LIMIT: Duration = Duration::from_secs(60);

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("endless.sql", ENDLESS);
    folder.database("x.db", 4096);
    folder
}

fn start(folder: &Folder, more: &[&str]) -> Child {
    folder
        .interruptible()
        .args([
            "query",
            "endless.sql",
            "--db",
            "x.db",
            "--engine",
            "sqlite",
            "--counters",
            "none",
            "--json",
            "out.jsonl",
        ])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until `look` answers something.
fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The child process that carries out a run for `runner`, once it has taken its name.
fn run_of(runner: u32) -> Pid {
    wait_for("the run's process", || {
        let children = std::fs::read_to_string(format!("/proc/{runner}/task/{runner}/children")).ok()?;
        let pid: i32 = children.split_whitespace().next()?.parse().ok()?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name.trim() == "ioscope").then_some(Pid::from_raw(pid))
    })
}

fn is_gone(pid: Pid) -> bool {
    // A zombie that nobody has reaped yet is gone too.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn a_signal_ends_the_run_and_keeps_the_records() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let folder = folder();
        let runner = start(&folder, &["--backend", "builtin", "--runs", "2"]);
        let run = run_of(runner.id());
        kill(Pid::from_raw(runner.id() as i32), signal).unwrap();
        let output = Run::of(runner.wait_with_output().unwrap());
        assert_eq!(output.code, Some(code), "{output:#?}");
        assert!(output.stderr.contains(&format!("interrupted by {signal}: 0 of 2 runs were made")), "{output:#?}");
        assert!(output.stdout.contains("no run"), "{output:#?}");
        assert!(is_gone(run), "the run's process outlived its runner");
        assert!(!folder.path().join("out.jsonl").exists(), "an empty file of records is left");
    }
}

#[test]
fn what_was_done_before_an_interruption_is_kept_and_shown() {
    let folder = folder();
    // The first run is killed by its limit; the second is interrupted.
    let runner = start(&folder, &["--backend", "builtin", "--runs", "2", "--timeout", "1500ms"]);
    let first = run_of(runner.id());
    wait_for("the end of the first run", || is_gone(first).then_some(()));
    run_of(runner.id());
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGINT).unwrap();
    let output = Run::of(runner.wait_with_output().unwrap());
    assert_eq!(output.code, Some(130), "{output:#?}");
    assert!(output.stderr.contains("1 of 2 runs were made"), "{output:#?}");
    assert!(output.stdout.contains("FAILED: cell 1 (sqlite-builtin)"), "{output:#?}");
    let records = folder.records("out.jsonl");
    assert_eq!(records.len(), 1);
    assert!(records[0].error.as_ref().is_some_and(|error| error.contains("did not end within 1.5 s and was killed")));
    assert_eq!(records[0].unexplained(), Vec::<String>::new());
}

#[test]
fn a_run_that_is_killed_is_a_record_and_the_rest_goes_on() {
    let folder = folder();
    let runner = start(&folder, &["--backend", "builtin,pread", "--timeout", "2s"]);
    kill(run_of(runner.id()), Signal::SIGKILL).unwrap();
    let output = Run::of(runner.wait_with_output().unwrap());
    assert_eq!(output.code, Some(1), "{output:#?}");
    let errors: Vec<String> = folder.records("out.jsonl").into_iter().filter_map(|record| record.error).collect();
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0], "the run's process was killed by SIGKILL");
    assert!(errors[1].contains("did not end within 2 s"), "{errors:?}");
}

#[test]
fn a_run_does_not_outlive_its_runner() {
    let folder = folder();
    let mut runner = start(&folder, &["--backend", "builtin"]);
    let run = run_of(runner.id());
    // Not before it has tied itself to the runner, which it does before it takes its name.
    runner.kill().unwrap();
    runner.wait().unwrap();
    wait_for("the end of the orphaned run", || is_gone(run).then_some(()));
}
