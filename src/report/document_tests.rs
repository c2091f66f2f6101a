#![allow(clippy::unwrap_used)]
use super::*;
use crate::engine::EngineBackend;
use crate::report::fixture::{self, btrees, campaign, cells, environment, record, records, whole};
use crate::report::study::tests::study;
use crate::report::{reference, run::Run};
use crate::workload::scan::ScanAxes;
use serde_json::json;

const READAHEAD: &str = "engine=sqlite direct=required window=0,32,256";

/// The part of a report from a heading to the next of the same or a higher level.
fn part(text: &str, heading: &str) -> String {
    let level = heading.chars().take_while(|c| *c == '#').count();
    let mut lines = text.lines().skip_while(|line| *line != heading).peekable();
    assert!(lines.peek().is_some(), "no '{heading}' in:\n{text}");
    let first = lines.next().unwrap_or_default().to_owned();
    let ends = |line: &&str| {
        let hashes = line.chars().take_while(|c| *c == '#').count();
        hashes == 0 || hashes > level
    };
    std::iter::once(first.as_str()).chain(lines.take_while(ends)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_readahead_experiment() {
    let study = whole(READAHEAD, 7, &["article.readahead"]);
    insta::assert_snapshot!(render(&study));
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let once = render(&whole(READAHEAD, 7, &["article.readahead"]));
    assert_eq!(once, render(&whole(READAHEAD, 7, &["article.readahead"])));
    // Runs stand in the order in which they ended; the report does not depend on it.
    let chosen = cells(READAHEAD);
    let mut shuffled = records(&chosen, 7);
    shuffled.reverse();
    let mut study = study(&campaign(&chosen, 7, &["article.readahead"]), &shuffled, Some(btrees()));
    reference::take(&mut study, &reference::all(None).unwrap());
    assert_eq!(once, render(&study));
}

#[test]
fn sqpoll_is_judged_from_pairs_on_the_same_cpus() {
    let study = whole("engine=sqlite direct=required window=32 backend=uring,uring-sqpoll", 7, &["article.sqpoll"]);
    let text = render(&study);
    insta::assert_snapshot!(part(&text, "### Published values beside the measured ones"));
    insta::assert_snapshot!(part(&text, "## When SQPOLL pays on this machine (machine a1c0ffee)"));
    // Without the plain arm nothing is said.
    let alone = whole("engine=sqlite direct=required window=32 backend=uring-sqpoll", 7, &[]);
    assert!(!render(&alone).contains("When SQPOLL pays"));
}

#[test]
fn on_other_cpus_there_is_no_pair() {
    let mut chosen = cells("engine=sqlite direct=required window=32 backend=uring,uring-sqpoll");
    chosen[0].1.cpus = Some("0".to_owned());
    chosen[1].1.cpus = Some("0-1".to_owned());
    let text = render(&study(&campaign(&chosen, 7, &[]), &records(&chosen, 7), None));
    assert!(!text.contains("When SQPOLL pays"), "{text}");
    chosen[0].1.cpus = Some("0-1".to_owned());
    let text = render(&study(&campaign(&chosen, 7, &[]), &records(&chosen, 7), None));
    assert!(text.contains("On CPUs 0-1: SQPOLL is faster in 1 of 1 cell, slower in 0."), "{text}");
    let few = render(&study(&campaign(&chosen, 3, &[]), &records(&chosen, 3), None));
    assert!(few.contains("faster in 0 of 1 cell, slower in 0, and in 1 the difference is not resolved"), "{few}");
    assert!(few.contains("no gain of SQPOLL is shown"), "{few}");
}

#[test]
fn the_fair_rival_has_the_cpus_of_application_and_poller_together() {
    let mut chosen = cells("engine=sqlite direct=required window=32 backend=uring,uring-sqpoll");
    let axes = |threads, sqpoll_cpu| Some(ScanAxes { random: Some(100), threads, sqpoll_cpu, ..ScanAxes::default() });
    chosen[0].1.scan = axes(2, None);
    chosen[1].1.scan = axes(1, Some(1));
    chosen[1].1.cpus = Some("0".to_owned());
    for (rival, is_fair) in [("0-1", true), ("0,1", true), ("0", false), ("0-2", false)] {
        chosen[0].1.cpus = Some(rival.to_owned());
        let text = render(&study(&campaign(&chosen, 7, &[]), &records(&chosen, 7), None));
        assert_eq!(text.contains("Against the fair rival"), is_fair, "{rival}: {text}");
        assert_eq!(text.contains("one CPU (0), the poller on CPU 1"), is_fair, "{rival}: {text}");
    }
}

/// The probe's records, as a scan writes them.
fn touched(ns: f64, backend: EngineBackend, direct: &str, run: u32, name: &str) -> Run {
    let mut chosen = cells("engine=sqlite window=32").remove(0);
    chosen.0 = name.to_owned();
    chosen.1.backend = backend;
    let mut value = serde_json::to_value(record(&chosen, run, false)).unwrap();
    value["asked"]["direct"] = json!(direct);
    value["asked"]["scan"] = json!({"touch": "slot", "delay_pages": 0});
    value["scan"] = json!({"ops": 1000, "touch": {
        "touch_ns_per_line_p50": ns + 0.01 * f64::from(run), "touch_ns_per_line_p95": 2.0 * ns, "timer_overhead_ns": 20.5}});
    Run::parse(value.to_string().as_bytes()).unwrap()
}

#[test]
fn the_touch_probe_is_set_against_the_buffered_pread() {
    let mut study = whole("engine=sqlite window=32", 7, &[]);
    study.runs.clear();
    study.campaign.plan.cells.clear();
    for run in 1..=7 {
        study.runs.push(touched(1.5, EngineBackend::Pread, "disabled", run, "pread-buffered"));
        study.runs.push(touched(4.5, EngineBackend::Uring, "required", run, "uring-direct"));
    }
    let text = render(&study);
    insta::assert_snapshot!(part(&text, "### First touch of delivered pages"));
    for run in &mut study.runs {
        run.environment.hypervisor = Some("none".to_owned());
    }
    assert!(render(&study).contains("The machine is not virtual"));
}

#[test]
fn what_went_wrong_is_told_with_its_reasons() {
    let chosen = cells(READAHEAD);
    let mut all = records(&chosen, 7);
    all[4].error = Some("the child was killed by SIGKILL | out of memory?\nline two".to_owned());
    all[5].error = Some("wrong answer: 75207768.1855, not 123141078.2283".to_owned());
    all[5].answer_ok = Some(false);
    all[6].warnings.push("sqes is 53, and the kernel saw 52".to_owned());
    all[7].warnings.push("sqes is 54, and the kernel saw 52".to_owned());
    all.truncate(20);
    let mut study = study(&campaign(&chosen, 7, &[]), &all, None);
    study.skipped.push((21, "it is cut: the JSON ends early".to_owned()));
    study.btrees_missing = Some("the folder has no btrees.json".to_owned());
    let text = render(&study);
    insta::assert_snapshot!(part(&text, "## Failures, warnings and what was not measured"));
    assert!(text.contains("Whose they were is not known: the folder has no btrees.json."), "{text}");
    // A wrong answer takes the cell's numbers away, a crash only the run's.
    let cells = part(&text, "### All cells");
    assert!(
        cells.contains("wrong answer") && cells.contains("6 + 1, 1 failed") || cells.contains("5 + 1, 1 failed"),
        "{cells}"
    );
}

#[test]
fn machines_are_never_pooled() {
    let chosen = cells(READAHEAD);
    let mut all = records(&chosen, 7);
    for record in all.iter_mut().filter(|record| record.run > 3) {
        record.environment = environment(0xb2);
        record.times.wall_s = record.times.wall_s.map(|wall| wall * 100.0);
    }
    let text = render(&study(&campaign(&chosen, 7, &[]), &all, Some(btrees())));
    let (first, second) = (part(&text, "## Results: machine a1c0ffee"), part(&text, "## Results: machine b2c0ffee"));
    assert!(first.contains("| 3 + 1 |") && second.contains("| 4    |"), "{text}");
    assert!(!first.contains("1201.") && second.contains("1201.800"), "{second}");
    // Three and four runs are too few for an interval, seven would not be.
    assert!(text.contains("not judged: fewer than 6 runs of each") && !text.contains("resolved: lower"), "{text}");
    assert!(text.contains("on 2 machines or settings"), "{text}");
}

#[test]
fn a_run_that_failed_before_it_knew_its_machine_stands_with_the_only_one() {
    let chosen = cells(READAHEAD);
    let mut all = records(&chosen, 7);
    all[0].environment = crate::measure::environment::Environment::default();
    all[0].error = Some("the child did not start".to_owned());
    let text = render(&study(&campaign(&chosen, 7, &[]), &all, None));
    assert_eq!(text.matches("## Results: ").count(), 1, "{text}");
    assert!(text.contains("the child did not start"));
}

#[test]
fn published_values_that_are_missing_are_named() {
    let mut study = whole(READAHEAD, 7, &["article.readahead", "app.micro", "no.such"]);
    let table = "[article.readahead.window_0]\nsqes = 195207\n[app.micro]\nx = [1, 2]\n";
    reference::take(&mut study, &reference::parse(table).unwrap());
    let text = part(&render(&study), "### Published values beside the measured ones");
    assert!(text.contains("article.readahead.window_0.bios, "), "{text}");
    assert!(text.contains("article.readahead.window_32.sqes"), "{text}");
    assert!(text.contains("- x: [1,2]"), "{text}");
    assert!(reference::parse("= no toml").is_err());
}

#[test]
fn drift_is_found_and_told() {
    let chosen = cells(READAHEAD);
    let mut all = records(&chosen, 12);
    let steady = render(&study(&campaign(&chosen, 12, &[]), &all, None));
    assert!(steady.contains("So no drift was found."), "{}", part(&steady, "### Drift"));
    for record in &mut all {
        record.times.wall_s = record.times.wall_s.map(|wall| wall * (1.0 + 0.02 * f64::from(record.run)));
    }
    let text = render(&study(&campaign(&chosen, 12, &[]), &all, None));
    assert!(text.contains("**the machine became slower while the campaign went on**"), "{}", part(&text, "### Drift"));
}

#[test]
fn nothing_recorded_is_no_panic() {
    let empty = study(&campaign(&[], 7, &[]), &[], None);
    assert!(render(&empty).contains("No run has been recorded."));
    let chosen = cells(READAHEAD);
    let text = render(&study(&campaign(&chosen, 7, &[]), &[], None));
    assert!(text.contains("24 runs of 24 planned have no record"), "{text}");
    let minimal = study(&json!({"schema": 1, "about": {"name": "readahead"}}), &[record(&chosen[1], 1, false)], None);
    assert!(render(&minimal).contains("# readahead"));
}

#[test]
fn numbers_that_make_no_sense_are_no_panic() {
    let chosen = cells(READAHEAD);
    let mut odd = records(&chosen, 7);
    for (index, record) in odd.iter_mut().enumerate() {
        record.times.wall_s = [Some(0.0), Some(1e300), None, Some(-1.0)][index % 4];
        record.block.bios = Some(0);
        record.pages.pages_wasted_ranges = Some(vec![u64::MAX, 5]);
        record.pages.pages_wasted = Some(0);
        record.ring.sqes = Some(u64::MAX);
    }
    let text = render(&study(&campaign(&chosen, 7, &["article.readahead"]), &odd, Some(fixture::btrees())));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}
