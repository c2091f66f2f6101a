//! `ioscope report` and `ioscope compare` as a user types them, on folders of stored records.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A stored campaign, checked in.
fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/readahead")
}

/// A copy of it that may be changed.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(stored()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    folder
}

fn ioscope(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ioscope"));
    // Neither the locale nor anything else of the surroundings matters.
    command.args(arguments).env_clear().current_dir("/").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The arguments are refused with exit code 2 and an error that holds all of these texts, and nothing is printed.
fn refused(arguments: &[&str], expected: &[&str]) {
    let output = ioscope(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(output.stdout.is_empty() && error.contains("help: "), "{arguments:?}: {error}");
    for part in expected {
        assert!(error.contains(part), "{arguments:?}: no '{part}' in {error}");
    }
}

#[test]
fn the_report_of_stored_records_is_what_it_was() {
    let folder = stored();
    let output = ioscope(&["report", folder.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    insta::assert_snapshot!(text(&output.stdout));

    let copied = copy();
    let out = copied.path().join("report.md");
    let again = ioscope(&["report", copied.path().to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(again.status.success() && again.stdout.is_empty());
    assert_eq!(std::fs::read(out).unwrap(), output.stdout);
}

#[test]
fn a_cut_line_is_told_and_the_rest_reported() {
    let folder = copy();
    let path = folder.path().join("runs.jsonl");
    let runs = std::fs::read(&path).unwrap();
    std::fs::write(&path, &runs[..runs.len() - 100]).unwrap();
    let output = ioscope(&["report", folder.path().to_str().unwrap()]);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("runs.jsonl, line 21 is skipped: it is cut"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("- line 21: it is cut"));
    assert!(text(&output.stdout).contains("1 run of 21 planned have no record"), "{}", text(&output.stdout));
}

#[test]
fn what_cannot_be_reported_is_one_clear_error() {
    let folder = copy();
    let path = folder.path().to_str().unwrap();
    refused(&["report", "/no/such/folder"], &["/no/such/folder is no folder"]);
    refused(&["report", path, "--reference", "/no/such.toml"], &["/no/such.toml: No such file"]);
    refused(&["report", path, "--out", "/no/such/report.md"], &["--out /no/such/report.md", "No such file"]);
    let runs = std::fs::read_to_string(folder.path().join("runs.jsonl")).unwrap();
    std::fs::write(folder.path().join("runs.jsonl"), runs.replacen("\"schema\":1", "\"schema\":7", 1)).unwrap();
    refused(&["report", path], &["runs.jsonl: line 1: its schema is 7", "newer ioscope"]);
    std::fs::remove_file(folder.path().join("runs.jsonl")).unwrap();
    refused(&["report", path], &["has no runs.jsonl"]);
    std::fs::write(folder.path().join("campaign.json"), "{\"schema\":").unwrap();
    std::fs::write(folder.path().join("runs.jsonl"), "").unwrap();
    refused(&["report", path], &["campaign.json: it is no JSON"]);
    std::fs::remove_file(folder.path().join("campaign.json")).unwrap();
    refused(&["report", path], &["has no campaign.json"]);
}

#[test]
fn campaigns_are_compared_and_differences_refused() {
    let (first, second) = (stored(), copy());
    let (a, b) = (first.to_str().unwrap(), second.path().to_str().unwrap());
    let output = ioscope(&["compare", a, b]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Made in the same way"), "{}", text(&output.stdout));

    let path = second.path().join("campaign.json");
    let campaign = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, campaign.replace("\"ioscope_version\":\"0.1.0\"", "\"ioscope_version\":\"0.2.0\"")).unwrap();
    refused(&["compare", a, b], &["ioscope: 0.1.0 and 0.2.0", "--accept-differences"]);
    let output = ioscope(&["compare", a, b, "--accept-differences"]);
    assert!(output.status.success() && text(&output.stdout).contains("- ioscope: 0.1.0 and 0.2.0"));

    std::fs::write(&path, campaign.replace("\"name\":\"readahead\"", "\"name\":\"other\"")).unwrap();
    refused(&["compare", a, b, "--accept-differences"], &["experiment 'readahead'", "'other'", "nothing to compare"]);
}

/// The files in a folder, by name.
fn files(folder: &Path) -> std::collections::BTreeMap<std::ffi::OsString, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap())).collect()
}

/// An experiment's file with two figures of what is stored.
const FIGURES: &str = "\
name = \"readahead\"
question = \"?\"
workload = { kind = \"query\", sql = \"tpch/q06\" }
[[matrix]]
engine = \"sqlite\"
[[figure]]
name = \"sqes\"
title = \"SQEs\"
kind = \"line\"
x = \"window\"
y = \"sqes\"
log_x = true
[[figure]]
name = \"wall\"
title = \"Wall time\"
kind = \"bars\"
x = \"window\"
y = \"wall_s\"
";

#[test]
fn figures_of_stored_records_are_the_same_bytes_each_time() {
    let folder = copy();
    let experiment = folder.path().join("figures.toml");
    std::fs::write(&experiment, FIGURES).unwrap();
    let (path, experiment) = (folder.path().to_str().unwrap(), experiment.to_str().unwrap().to_owned());
    // The stored campaign is older than its experiment's figures.
    refused(&["figures", path], &["names no figure", "[[figure]]"]);
    let draw = |out: &Path, more: &[&str]| {
        let arguments = [&["figures", path, "--file", &experiment, "--out", out.to_str().unwrap()], more].concat();
        let output = ioscope(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let named: Vec<PathBuf> = text(&output.stdout).lines().map(PathBuf::from).collect();
        assert!(named.iter().all(|path| path.is_file()), "{named:?}");
        (named.len(), files(out))
    };
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (count, drawn) = draw(first.path(), &[]);
    assert_eq!((count, drawn.len()), (2 * 4, 2 * 4));
    assert_eq!(draw(second.path(), &[]).1, drawn);
    let only = tempfile::tempdir().unwrap();
    let names: Vec<String> =
        draw(only.path(), &["--only", "sqes"]).1.keys().map(|name| name.to_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["sqes.csv", "sqes.pdf", "sqes.png", "sqes.svg"]);
    refused(&["figures", path, "--file", &experiment, "--only", "sqse"], &["no figure 'sqse'", "sqes"]);
    refused(&["figures", path, "--file", "/no/such.toml"], &["/no/such.toml: No such file"]);
    let report = text(&ioscope(&["report", path, "--file", &experiment]).stdout);
    assert!(report.contains("[Wall time](figures/wall.svg)"), "{report}");

    // A part of a study has its figures too: what was published of an arm that it lacks is left out, and said.
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/readahead.toml");
    let out = tempfile::tempdir().unwrap();
    let output = ioscope(&["figures", path, "--file", whole.to_str().unwrap(), "--out", out.path().to_str().unwrap()]);
    let told = text(&output.stderr);
    assert!(
        output.status.success() && told.contains("it belongs to the panel `turso`, and there are sqlite"),
        "{told}"
    );
    assert_eq!(files(out.path()).len(), 7 * 4);
}

#[test]
fn a_quick_look_is_marked_in_report_and_figures() {
    let folder = copy();
    let experiment = folder.path().join("figures.toml");
    std::fs::write(&experiment, FIGURES).unwrap();
    let path = folder.path().join("campaign.json");
    let mut campaign: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    campaign["overrides"] = serde_json::json!({ "quick": true, "runs": 3, "scale": 0.1 });
    std::fs::write(&path, campaign.to_string()).unwrap();
    let folder = folder.path().to_str().unwrap();
    let mark = "quick look, scale 0.1, 3 runs: no result";
    let report = ioscope(&["report", folder]);
    assert!(text(&report.stdout).contains(&format!("> **{mark}.**")), "{}", text(&report.stdout));
    let drawn = tempfile::tempdir().unwrap();
    let arguments =
        ["figures", folder, "--file", experiment.to_str().unwrap(), "--out", drawn.path().to_str().unwrap()];
    assert!(ioscope(&arguments).status.success());
    for (name, bytes) in files(drawn.path()).iter().filter(|(name, _)| name.to_str().unwrap().ends_with(".svg")) {
        assert!(text(bytes).contains(mark), "{name:?} is not marked");
    }
}
