#![allow(clippy::unwrap_used)]
use super::*;
use crate::engine::EngineKind;
use crate::experiment::plan::{Cell, Matrix, expand};
use crate::experiment::record::CacheState;
use crate::experiment::schedule::PlannedRun;
use crate::experiment::spec::{Experiment, PlanCell, Point, SQPOLL_IDLE_DEFAULT_MS, Workload};
use crate::page::config::Direct;
use crate::workload::query::Query;

const OWN_IO: &str = "the engine's own I/O, not ioscope's reader";
const NO_PMU: &str = "this machine has no PMU that perf events can use";

fn experiment(cells: Vec<Cell>) -> Experiment {
    Experiment {
        name: "query".to_owned(),
        database: "data/tpch-sf1.db".into(),
        workload: Workload::Query(Query { name: "q06".to_owned(), sql: "SELECT".to_owned() }),
        cells: cells.into_iter().map(|c| PlanCell::new(Point::Query(c), 1, None, SQPOLL_IDLE_DEFAULT_MS)).collect(),
        counters: crate::experiment::schedule::Counters::Both,
        sample: None,
        seed: 0,
    }
}

/// A plausible record: numbers follow from the cell, walls from the run.
fn record(experiment: &Experiment, cell: usize, run: u32, counted: bool) -> Record {
    let mut r = experiment.run_spec(PlannedRun { cell, run, counted, round: run }).blank_record();
    let Point::Query(point) = &experiment.cells[cell].point else { unreachable!() };
    let reader = point.has_reader();
    let window = r.asked.window;
    let base = match (reader, window) {
        (false, _) => 0.95,
        (true, 0) => 12.0,
        (true, _) => 0.65 + if r.asked.engine == Some(EngineKind::Turso) { 0.15 } else { 0.0 },
    };
    r.answer = Some("123141078.2283".to_owned());
    r.answer_ok = Some(true);
    r.effective.cache = Some(r.asked.cache);
    r.effective.page_size_bytes = Some(4096);
    r.times.wall_s = Some(base + 0.01 * f64::from(run % 4) + if counted { 0.05 } else { 0.0 });
    r.times.user_s = Some(0.58);
    r.times.system_s = Some(0.12);
    r.residency.resident_pages_before = Some(0);
    r.explain(&["sqpoll_s", "sqpoll_work_s", "sqpoll_total_s"], "no SQPOLL thread");
    r.explain(&["cycles", "instructions", "cache_references", "cache_misses"], NO_PMU);
    if reader {
        let sqes = if window == 0 { 195_207 } else { 218_212 };
        r.effective.backend = Some(r.asked.backend.to_string());
        r.effective.direct = Some(r.asked.direct);
        r.effective.pool = Some(r.asked.pool);
        r.ring.sqes = Some(sqes);
        r.ring.enter_calls = Some(if window == 0 { sqes } else { sqes / u64::from(window) });
        r.pages.pages_asked = Some(195_207);
        r.pages.pages_prefetched = Some(if window == 0 { 0 } else { sqes });
        r.pages.pages_wasted = Some(if window == 0 { 0 } else { 23_005 });
    } else {
        let leaves =
            ["backend", "direct", "pool", "sqes", "enter_calls", "pages_asked", "pages_prefetched", "pages_wasted"];
        r.explain(&leaves, OWN_IO);
    }
    if counted {
        let (bios, merged) = if window == 0 || !reader { (195_207, 0) } else { (218_212, 201_900) };
        r.ring.sqes_traced = r.ring.sqes;
        r.block.bios = Some(bios);
        r.block.bios_merged = Some(merged);
        r.block.device_requests = Some(bios - merged);
        r.block.device_bytes = Some(bios * 4096);
    } else {
        r.explain_rest("counters were off in this run");
    }
    r.explain_rest("not part of this test");
    r
}

fn records(experiment: &Experiment, timed: u32) -> Vec<Record> {
    let mut records = Vec::new();
    for cell in 0..experiment.cells.len() {
        records.push(record(experiment, cell, 1, true));
        records.extend((1..=timed).map(|run| record(experiment, cell, run, false)));
    }
    records
}

fn cells(text: &[&str]) -> Vec<Cell> {
    let matrices: Vec<Matrix> = text.iter().map(|t| Matrix::default().with(t).unwrap()).collect();
    expand(&matrices, true).cells
}

fn shown(experiment: &Experiment, records: &[Record]) -> String {
    let order: Vec<String> = experiment.cells.iter().map(|cell| cell.name.clone()).collect();
    render(records, &order, WIDTH, 0)
}

#[test]
fn the_first_command() {
    let experiment = experiment(cells(&["direct=required window=0,32"]));
    insta::assert_snapshot!(shown(&experiment, &records(&experiment, 1)));
}

#[test]
fn repeated_runs_are_compared() {
    let experiment = experiment(cells(&[
        "engine=sqlite backend=builtin",
        "engine=sqlite direct=required window=256 submit=coalesced pool=huge",
        "engine=sqlite direct=required window=256 submit=per-page pool=huge",
    ]));
    insta::assert_snapshot!(shown(&experiment, &records(&experiment, 8)));
}

#[test]
fn a_failed_cell_shows_no_times() {
    let experiment = experiment(cells(&["direct=required window=32"]));
    let mut records = records(&experiment, 2);
    records[1].error = Some("the answer is 75207768.1855, not 123141078.2283".to_owned());
    records[1].answer_ok = Some(false);
    records[4].warnings.push("sqes is 218212, and the kernel saw 218211".to_owned());
    let text = shown(&experiment, &records);
    assert!(!text.contains("0.815"), "the wall of the failed cell is shown:\n{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_pool_that_fell_back_and_an_interrupted_experiment() {
    let experiment = experiment(cells(&["engine=sqlite pool=huge window=32,256"]));
    let mut records = records(&experiment, 1);
    records.truncate(2);
    for record in &mut records {
        record.effective.pool = Some(crate::page::config::PoolKind::Normal);
    }
    insta::assert_snapshot!(shown(&experiment, &records));
}

#[test]
fn wide_matrices_continue_in_blocks_within_the_width() {
    let experiment = experiment(cells(&["window=0,16,32,64,128,256 cache=cold,warm"]));
    let text = shown(&experiment, &records(&experiment, 8));
    let table = text.lines().take_while(|line| !line.starts_with('[')).collect::<Vec<_>>();
    assert!(table.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
    let numbers: Vec<&str> =
        table.iter().filter_map(|l| l.strip_prefix("cell ")).flat_map(str::split_whitespace).collect();
    assert_eq!(numbers, (1..=24).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn answers_that_differ_are_pointed_out() {
    let experiment = experiment(cells(&["window=32"]));
    let mut records = records(&experiment, 1);
    for record in &mut records {
        record.answer_ok = None;
    }
    records[2].answer = Some("1".to_owned());
    records[3].answer = Some("1".to_owned());
    let text = shown(&experiment, &records);
    assert!(text.contains("warning: answers differ between cell 1 and cell 2"), "{text}");
    assert!(text.contains("unknown") && !text.contains("; answer"), "{text}");
}

#[test]
fn no_records_are_no_panic() {
    assert!(render(&[], &[], WIDTH, 0).contains("no run was made"));
    assert!(render(&[], &["a".to_owned()], WIDTH, 0).contains("no run"));
    let experiment = experiment(cells(&["window=32"]));
    let mut odd = record(&experiment, 0, 1, true);
    odd.times.wall_s = Some(f64::NAN);
    odd.block.bios = Some(0);
    odd.effective.cache = Some(CacheState::Warm);
    odd.effective.direct = Some(Direct::Disabled);
    assert!(render(&[odd], &[], 0, 0).contains("q06"));
}

#[test]
fn what_counting_costs_is_shown_from_enough_pairs_of_one_cell() {
    let experiment = experiment(expand(&[Matrix::default().with("window=32").unwrap()], true).cells);
    let order: Vec<String> = experiment.cells.iter().map(|cell| cell.name.clone()).collect();
    let records = |runs: u32| -> Vec<Record> {
        let of = |counted| (1..=runs).map(move |run| (run, counted));
        of(false).chain(of(true)).map(|(run, counted)| record(&experiment, 0, run, counted)).collect()
    };
    let few = render(&records(2), &order, WIDTH, 1);
    assert!(!few.contains("counters on against off"), "{few}");
    let enough = render(&records(8), &order, WIDTH, 1);
    let (_, shown) = enough.split_once("wall with counters on against off, runs of the same round paired:\n").unwrap();
    let expected = format!("  cell 1 ({}): 1.0", order[0]);
    assert!(shown.starts_with(&expected) && shown.contains("8 pairs"), "{shown}");
}
