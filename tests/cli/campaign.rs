//! `ioscope run` and `ioscope merge`: campaigns that are begun, killed, resumed, shared and put together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ioscope::experiment::record::Record;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Folder, Run, SUM_SQL, records};

/// Four cells without a ring, of three timed runs and a counted one each.
const TINY: &str = "\
name = \"tiny\"
question = \"Does it work?\"
workload = { kind = \"query\", sql = \"q.sql\" }
protocol = { runs = 3, timeout = \"1m\" }
[[matrix]]
engine = [\"sqlite\", \"turso\"]
backend = [\"pread\", \"builtin\"]
window = 8
";
const RUNS: usize = 16;
/// Never ends.
const ENDLESS: &str = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
const LIMIT: Duration = Duration::from_secs(60);

fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("q.sql", SUM_SQL);
    folder.file("tiny.toml", TINY);
    folder.database("x.db", 4096);
    folder
}

/// The runs of which there are records: cell, number, counted.
type Runs = BTreeSet<(String, u32, bool)>;

fn stored(folder: &Folder, out: &str) -> Vec<Record> {
    records(&std::fs::read_to_string(folder.path().join(out).join("runs.jsonl")).unwrap_or_default())
}

/// The runs of the records, none of which may be there twice.
fn runs(records: &[Record]) -> Runs {
    let runs: Runs = records.iter().map(|r| (r.cell.clone(), r.run, r.counted)).collect();
    assert_eq!(runs.len(), records.len(), "a run was made twice");
    runs
}

fn start(folder: &Folder, more: &[&str]) -> Child {
    let mut command = folder.interruptible();
    command.args(["run", "tiny.toml", "--db", "x.db", "--out", "out"]).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < LIMIT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The processes that a runner has started and that have taken their name.
fn runs_of(runner: u32) -> Vec<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{runner}/task/{runner}/children")).unwrap_or_default();
    let pids = children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok());
    let named = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|n| n.trim() == "ioscope");
    pids.filter(named).map(Pid::from_raw).collect()
}

fn is_gone(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn a_campaign_from_the_plan_to_the_records() {
    let folder = folder();
    let before = folder.contents();
    let listed = folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--list"]).ok();
    assert!(listed.stdout.contains("sqlite-pread-w8"), "{listed:#?}");
    assert!(listed.stdout.contains("4 cells, 16 runs, about "), "{listed:#?}");
    assert!(listed.stdout.contains("rough model"), "{listed:#?}");
    assert_eq!(folder.contents(), before, "--list changes nothing");

    let run = folder.ioscope(&["run", "tiny.toml", "--db", "x.db"]).ok();
    assert_eq!(run.stdout, "results/tiny: 16 of 16 runs are recorded\n");
    assert!(run.stderr.lines().last().unwrap().starts_with("16/16 "), "{run:#?}");
    let made = stored(&folder, "results/tiny");
    assert_eq!(runs(&made).len(), RUNS);
    assert!(made.iter().all(|record| record.error.is_none() && record.unexplained().is_empty()));
    assert!(made[..4].iter().all(|record| record.counted), "the counted round comes first");
    let out = folder.path().join("results/tiny");
    assert_eq!(std::fs::read_to_string(out.join("experiment.toml")).unwrap(), TINY);
    let campaign: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("campaign.json")).unwrap()).unwrap();
    let order: Runs = campaign["plan"]["order"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| {
            (
                run["cell"].as_str().unwrap().to_owned(),
                run["run"].as_u64().unwrap() as u32,
                run["counted"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(order, runs(&made));

    let listed = folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--list"]).ok();
    assert!(listed.stdout.contains("0 are still to be made"), "{listed:#?}");
    assert!(listed.stdout.contains("Durations are those of the records in results/tiny"), "{listed:#?}");
    folder
        .ioscope(&["run", "tiny.toml", "--db", "x.db"])
        .refused(2, &["results/tiny holds 16 records already", "--resume", "--out DIR"]);
    let again = folder.ioscope(&["run", "tiny.toml", "--resume"]).ok();
    assert_eq!(again.stdout, "results/tiny: 16 of 16 runs are recorded\n", "--db is remembered");
    assert_eq!(stored(&folder, "results/tiny"), made);
}

#[test]
fn the_runner_killed_at_any_moment_loses_nothing_but_the_run_under_way() {
    let folder = folder();
    folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "undisturbed"]).ok();
    let undisturbed = runs(&stored(&folder, "undisturbed"));
    // Moments that are spread over the time of a few runs, from the first milliseconds on.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    for kill_number in 0..10 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut runner = start(&folder, &["--resume"]);
        std::thread::sleep(Duration::from_millis(state % 600));
        let children = runs_of(runner.id());
        runner.kill().unwrap();
        runner.wait().unwrap();
        for child in children {
            wait_for("the end of the orphaned run", || is_gone(child).then_some(()));
        }
        // Half of a line, as a kill inside of write(2) or a lost page would leave it.
        if kill_number % 3 == 2 {
            let file = folder.path().join("out/runs.jsonl");
            if let Ok(text) = std::fs::read(&file) {
                std::fs::write(&file, &text[..text.len() - (state as usize % 500).min(text.len())]).unwrap();
            }
        }
    }
    // The lock went with the runner: at once there is a way on.
    let last = folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "out", "--resume"]).ok();
    assert_eq!(last.stdout, "out: 16 of 16 runs are recorded\n");
    assert_eq!(runs(&stored(&folder, "out")), undisturbed);
}

#[test]
fn the_run_and_the_lock_end_with_a_runner_that_is_killed() {
    let folder = folder();
    folder.file("q.sql", ENDLESS);
    let mut runner = start(&folder, &[]);
    let run = wait_for("the run's process", || runs_of(runner.id()).first().copied());
    folder
        .ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "out", "--resume"])
        .refused(2, &["out is in use by another runner, process", &runner.id().to_string()]);
    folder.ioscope(&["merge", "out", "--out", "merged"]).refused(2, &["out is in use by another runner"]);
    runner.kill().unwrap();
    runner.wait().unwrap();
    // Whoever comes next finds the folder free, whether or not the run is gone already.
    let mut next = start(&folder, &["--resume"]);
    let other = wait_for("the next run's process", || runs_of(next.id()).first().copied());
    wait_for("the end of the orphaned run", || is_gone(run).then_some(()));
    next.kill().unwrap();
    next.wait().unwrap();
    wait_for("the end of the other run", || is_gone(other).then_some(()));
}

#[test]
fn a_signal_ends_a_campaign_that_can_be_resumed() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let folder = folder();
        let runner = start(&folder, &[]);
        let file = folder.path().join("out/runs.jsonl");
        wait_for("two records", || {
            std::fs::read_to_string(&file).is_ok_and(|text| text.lines().count() >= 2).then_some(())
        });
        kill(Pid::from_raw(runner.id() as i32), signal).unwrap();
        let output = Run::of(runner.wait_with_output().unwrap());
        assert_eq!(output.code, Some(code), "{output:#?}");
        assert!(output.stderr.contains(&format!("interrupted by {signal}: out: ")), "{output:#?}");
        let made = stored(&folder, "out");
        assert!((2..RUNS).contains(&made.len()));
        let resumed = folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "out", "--resume"]).ok();
        let there = format!("{} of 16 runs are there", made.len());
        assert!(resumed.stderr.contains(&there), "{resumed:#?}");
        assert_eq!(runs(&stored(&folder, "out")).len(), RUNS);
        assert_eq!(stored(&folder, "out")[..made.len()], made);
    }
}

#[test]
fn a_torn_line_is_told_and_made_again() {
    let folder = folder();
    folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "out"]).ok();
    let file = folder.path().join("out/runs.jsonl");
    let text = std::fs::read(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 100]).unwrap();
    let resumed = folder.ioscope(&["run", "tiny.toml", "--out", "out", "--resume"]).ok();
    assert!(resumed.stderr.contains("out/runs.jsonl: line 16 is cut short"), "{resumed:#?}");
    assert_eq!(runs(&stored(&folder, "out")).len(), RUNS);
    assert!(folder.path().join("out/runs.torn").exists());
}

#[test]
fn what_changed_is_named_and_goes_on_when_accepted() {
    let folder = folder();
    let arguments = ["run", "tiny.toml", "--db", "x.db", "--out", "out", "--resume"];
    folder.ioscope(&arguments[..6]).ok();
    let database = rusqlite::Connection::open(folder.path().join("x.db")).unwrap();
    database.execute_batch("INSERT INTO t VALUES (0, '')").unwrap();
    drop(database);
    folder.file("tiny.toml", TINY.replace("runs = 3", "runs = 4"));
    folder.ioscope(&arguments).refused(
        2,
        &[
            "cannot be resumed as it was begun",
            "the experiment's file",
            "number of runs 16 then, 20 now",
            "the data: it has been written to",
            "--accept-change",
        ],
    );
    assert_eq!(stored(&folder, "out").len(), RUNS);
    let accepted = folder.ioscope(&[&arguments[..], &["--accept-change"]].concat()).ok();
    assert!(accepted.stderr.contains("accepted: the data: it has been written to"), "{accepted:#?}");
    assert_eq!(runs(&stored(&folder, "out")).len(), RUNS + 4);
}

#[test]
fn a_wrong_answer_or_a_broken_query_is_a_record_and_the_rest_goes_on() {
    let folder = folder();
    folder.file("q.sql", "SELECT nothing FROM nowhere");
    let failed = folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--runs", "1"]);
    assert_eq!(failed.code, Some(1), "{failed:#?}");
    assert!(failed.stdout.contains("8 of 8 runs are recorded, 8 of them failed"), "{failed:#?}");
    folder.file("q.sql", SUM_SQL);
    let again = ["run", "tiny.toml", "--resume", "--accept-change", "--retry-failed"];
    assert_eq!(folder.ioscope(&again).ok().stdout, "results/tiny: 8 of 8 runs are recorded\n");
    assert_eq!(runs(&stored(&folder, "results/tiny")).len(), 8);
}

#[test]
fn a_full_disk_loses_the_record_that_does_not_fit_and_nothing_else() {
    const TEST: &str = "a_full_disk_loses_the_record_that_does_not_fit_and_nothing_else";
    let folder = folder();
    let out = folder.path().join("small");
    std::fs::create_dir(&out).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&out).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        ioscope::skipped!("{TEST}: a small tmpfs cannot be mounted here");
        return;
    }
    let _unmount = Unmount(&out);
    let full = folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "small"]);
    assert_eq!(full.code, Some(1), "{full:#?}");
    assert!(full.stderr.contains("could not be written: No space left on device"), "{full:#?}");
    let file = out.join("runs.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with('\n') && !text.is_empty(), "nothing half is left");
    let made = runs(&records(&text)).len();
    assert!(full.stderr.contains(&format!("small: {made} of 16 runs are recorded")), "{full:#?}");
    let grown = Command::new("mount").args(["-o", "remount,size=4m"]).arg(&out).status().unwrap();
    assert!(grown.success());
    folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "small", "--resume"]).ok();
    assert_eq!(runs(&stored(&folder, "small")).len(), RUNS);
}

struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn shards_are_merged_into_the_whole() {
    let folder = folder();
    for shard in ["1/2", "2/2"] {
        folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--shard", shard]).ok();
    }
    let (a, b) = ("results/tiny-1of2", "results/tiny-2of2");
    let half = folder.ioscope(&["merge", a, "--out", "half"]).ok();
    assert!(half.stderr.contains("still missing: ") && half.stderr.contains("and 3 more"), "{half:#?}");
    let merged = folder.ioscope(&["merge", a, b, "--out", "whole"]).ok();
    assert_eq!(merged.stdout, "whole: 16 of 16 runs, of one host\n");
    assert_eq!(merged.stderr, "");
    let made = stored(&folder, "whole");
    assert_eq!(runs(&made).len(), RUNS);
    // Whole rounds: each shard has as many runs of every cell.
    for shard in [a, b] {
        let mut by_cell = BTreeMap::new();
        for record in stored(&folder, shard) {
            *by_cell.entry(record.cell).or_insert(0) += 1;
        }
        assert_eq!(by_cell.into_values().collect::<Vec<_>>(), [2, 2, 2, 2]);
    }
    folder.ioscope(&["merge", a, b, "--out", "whole"]).refused(2, &["whole holds a campaign already"]);
    folder.ioscope(&["merge", "nowhere", "--out", "x"]).refused(2, &["nowhere is no results folder"]);
    folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "again", "--shard", "1/2"]).ok();
    folder.ioscope(&["merge", a, "again", "--out", "x"]).refused(2, &["was made twice"]);
    folder.file("tiny.toml", TINY.replace("window = 8", "window = 9"));
    folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "other", "--shard", "2/2"]).ok();
    folder.ioscope(&["merge", a, "other", "--out", "x"]).refused(2, &["are of different experiments"]);
    assert!(!folder.path().join("x").exists());
}

#[test]
fn gnu_parallel_spreads_a_campaign_over_two_shards() {
    const TEST: &str = "gnu_parallel_spreads_a_campaign_over_two_shards";
    let is_gnu = Command::new("parallel").arg("--version").output();
    if !is_gnu.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).starts_with("GNU parallel")) {
        ioscope::skipped!("{TEST}: GNU parallel is missing (apt-get install parallel)");
        return;
    }
    let folder = folder();
    // Each has a copy, as each machine would: two shards that read one file on one machine warm it for each other.
    for shard in ["1", "2"] {
        std::fs::create_dir(folder.path().join(shard)).unwrap();
        std::fs::copy(folder.path().join("x.db"), folder.path().join(shard).join("x.db")).unwrap();
    }
    let ioscope = env!("CARGO_BIN_EXE_ioscope");
    let spread = Command::new("parallel")
        .args(["--will-cite", "--jobs", "2", "--halt", "soon,fail=1"])
        .args([&format!("'{ioscope}'"), "run", "tiny.toml", "--db", "{}/x.db", "--shard", "{}/2", ":::", "1", "2"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .output();
    let spread = Run::of(spread.unwrap()).ok();
    assert!(spread.stdout.contains("results/tiny-1of2: 8 of 8"), "{spread:#?}");
    let merged = folder.ioscope(&["merge", "results/tiny-1of2", "results/tiny-2of2", "--out", "results/tiny"]).ok();
    assert_eq!(merged.stdout, "results/tiny: 16 of 16 runs, of one host\n");
    assert_eq!(runs(&stored(&folder, "results/tiny")).len(), RUNS);
}

#[test]
fn a_file_that_is_no_experiment_is_refused_and_leaves_nothing() {
    let folder = folder();
    let refused = |name: &str, text: &str, parts: &[&str]| {
        folder.file(name, text);
        let before = folder.contents();
        folder.ioscope(&["run", name, "--db", "x.db"]).refused(2, parts);
        assert_eq!(folder.contents(), before);
    };
    refused("a.toml", "name = ", &["a.toml, line 1: "]);
    refused("b.toml", &TINY.replace("window", "windw"), &["line 8: unknown key 'windw'", "did you mean 'window'?"]);
    refused(
        "c.toml",
        &TINY.replace("\"turso\"", "\"turbo\""),
        &["line 6: unknown engine 'turbo'", "did you mean 'turso'?"],
    );
    refused("d.toml", &TINY.replace("runs = 3", "runs = 0"), &["line 4: runs = 0 is out of range"]);
    refused("e.toml", &TINY[..TINY.find("[[").unwrap()], &["there is no [[matrix]]"]);
    refused("f.toml", &TINY.replace("q.sql", "missing.sql"), &["line 3: query missing.sql: No such file"]);
    refused("g.toml", &TINY.replace("pread\"", "pread\"], cpus = [\"9999"), &["line 7"]);
    let figure = |text: &str| format!("{TINY}[[figure]]\n{text}\n");
    refused("h.toml", &figure("name = \"f\"\nkindd = \"line\""), &["h.toml: figure f: ", "unknown field `kindd`"]);
    let bars = "name = \"f\"\ntitle = \"t\"\nkind = \"bars\"\nx = \"window\"\ny = \"wall_s\"\nlog_y = true";
    refused("i.toml", &figure(bars), &["i.toml: ", "figure `f`", "logarithmic"]);
    folder.ioscope(&["run", "nowhere.toml"]).refused(2, &["nowhere.toml: No such file"]);
    folder.ioscope(&["run", "tiny.toml", "--db", "nowhere.db"]).refused(2, &["nowhere.db"]);
    folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--runs", "0"]).refused(2, &["runs '0' is out of range"]);
    folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--shard", "3/2"]).refused(2, &["'3/2' is no shard"]);
    folder
        .ioscope(&["run", "tiny.toml", "--db", "x.db", "--shard", "9/9"])
        .refused(2, &["the plan has 4 rounds", "fewer shards, or more --runs"]);
    folder.ioscope(&["run", "tiny.toml", "--db", "x.db", "--out", "."]).refused(2, &["is no results folder"]);
    assert!(!folder.path().join("results").read_dir().is_ok_and(|mut entries| entries.next().is_some()));
}
