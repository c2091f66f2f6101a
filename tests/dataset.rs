//! `ioscope dataset` as a user types it, and what is left of it when it is stopped.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ioscope::dataset::{Dataset, DatasetError, Progress, Scale, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

fn ioscope(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ioscope"));
    command.args(["dataset", "tpch"]).args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn said(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_data_set_is_made_at_its_usual_place_and_then_kept() {
    let folder = TempDir::new().unwrap();
    for end in ["(made, checked)", "(already there, checked)"] {
        let output = ioscope(folder.path(), &["--scale", "0.01"]).output().unwrap();
        let (stdout, stderr) = said(&output);
        assert!(output.status.success(), "{stderr}");
        assert_eq!(
            stdout,
            format!(
                "data/tpch-sf0.01.db: TPC-H, scale 0.01, 12238848 bytes in pages of 4096, 86805 rows, \
                 Q6 = 1193053.2253 {end}\n"
            )
        );
        assert_eq!(stderr, "", "silent where standard error is no terminal");
    }
    assert_eq!(names(&folder.path().join("data")), ["tpch-sf0.01.db", "tpch-sf0.01.db.manifest.json"]);
}

#[test]
fn nonsense_is_refused_with_one_error_and_nothing_is_made() {
    let folder = TempDir::new().unwrap();
    for (arguments, why) in [
        (["--scale", "0"], "must be above 0 and at most 100"),
        (["--scale", "-1"], "must be above 0 and at most 100"),
        (["--scale", "NaN"], "must be above 0 and at most 100"),
        (["--scale", "1e9"], "at most 100"),
        (["--scale", "0.001"], "too small"),
        (["--scale", "big"], "not a number"),
        (["--page-size", "4097"], "512, 1024, 2048, 4096, 8192, 16384, 32768, 65536"),
        (["--page-size", "131072"], "512, 1024, 2048, 4096, 8192, 16384, 32768, 65536"),
        (["--out", "/proc/version/a.db"], "/proc/version"),
    ] {
        let output = ioscope(folder.path(), &arguments).output().unwrap();
        let (stdout, stderr) = said(&output);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {:?}", output.status);
        assert!(stderr.contains(why), "{arguments:?}: {stderr}");
        assert_eq!(stdout, "");
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_limit_on_file_size_is_an_error_and_not_a_death() {
    let folder = TempDir::new().unwrap();
    let output = Command::new("sh")
        // In blocks of 512 bytes: 4 MB.
        .args(["-c", "ulimit -f 8000; exec \"$0\" dataset tpch --scale 0.01 --out a.db", env!("CARGO_BIN_EXE_ioscope")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let (_, stderr) = said(&output);
    assert_eq!((output.status.code(), output.status.signal()), (Some(1), None), "{stderr}");
    assert!(stderr.contains("a.db") && stderr.contains("ulimit -f"), "{stderr}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_signal_leaves_nothing_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let folder = TempDir::new().unwrap();
        let child = ioscope(folder.path(), &["--scale", "5"]).spawn().unwrap();
        wait_until_written(&folder.path().join("data"));
        kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let (_, stderr) = said(&output);
        assert!(!output.status.success(), "{stderr}");
        assert!(stderr.contains(&format!("stopped by {signal}")), "{stderr}");
        assert!(names(folder.path()).is_empty());
    }
}

#[test]
fn what_a_killed_process_left_is_cleared_away() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db");
    let mut child = ioscope(folder.path(), &["--scale", "5", "--out", "a.db"]).spawn().unwrap();
    wait_until_written(folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(folder.path()).len(), 1);
    assert!(matches!(Dataset::open_existing(&path), Err(DatasetError::Missing { .. })));
    ensure(Scale::new(0.01).unwrap(), 4096, &path, Progress::Silent).unwrap();
    assert_eq!(names(folder.path()), ["a.db", "a.db.manifest.json"]);
}

/// Waits until a file in the folder has more than a megabyte: rows are being written.
fn wait_until_written(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        let sizes = std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| entry.metadata().ok());
        if sizes.map(|metadata| metadata.len()).max().unwrap_or(0) > 1 << 20 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing was written in a minute");
}
