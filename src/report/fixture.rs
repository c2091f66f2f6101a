//! Campaigns made up for tests: numbers follow from the cell, walls also from the run.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::study::Study;
use super::study::tests::study;
use crate::engine::EngineBackend;
use crate::experiment::plan::{Matrix, expand};
use crate::experiment::record::{Asked, CacheState, Record};
use crate::measure::environment::Environment;
use crate::page::config::Direct;
use crate::page::ranges;
use crate::workload::btrees::{Btree, Btrees};

pub const NO_PMU: &str = "this machine has no PMU that perf events can use";

/// A machine; another `number` is another one.
pub fn environment(number: u8) -> Environment {
    let mut environment = Environment {
        host: Some(format!("{number:02x}c0ffee00c0ffee")),
        kernel_release: Some("6.18.5".to_owned()),
        architecture: Some("x86_64".to_owned()),
        cpu_model: Some("AMD EPYC 7B13".to_owned()),
        cpus_online: Some("0-1".to_owned()),
        hypervisor: Some("KVM".to_owned()),
        memory_bytes: Some(4 << 30),
        page_bytes: Some(4096),
        fs_type: Some("ext4".to_owned()),
        device_name: Some("vda".to_owned()),
        scheduler: Some("mq-deadline".to_owned()),
        nomerges: Some(0),
        max_sectors_kb: Some(1280),
        file_bytes: Some(4096 * 60),
        build_profile: Some("release".to_owned()),
        ioscope_version: Some("0.1.0".to_owned()),
        ..Environment::default()
    };
    environment.reasons.insert("cpu_governor".to_owned(), "this machine scales no frequencies".to_owned());
    environment.id = environment.digest();
    environment
}

/// Cells of the product of some axes, with their names: `"engine=sqlite window=0,32"`.
pub fn cells(text: &str) -> Vec<(String, Asked)> {
    let plan = expand(&[Matrix::default().with(text).unwrap()], true);
    plan.cells
        .iter()
        .map(|cell| {
            let mut asked = crate::experiment::spec::tests::asked();
            asked.engine = Some(cell.engine);
            asked.backend = cell.backend;
            asked.direct = cell.direct;
            asked.submit = cell.submit;
            asked.policy = cell.policy;
            asked.window = cell.window;
            asked.in_flight = cell.in_flight;
            asked.gap = cell.gap;
            asked.pool = cell.pool;
            asked.cache = cell.cache;
            asked.database = "data/tpch-sf1.db".to_owned();
            asked.query = "q06".to_owned();
            (cell.name(), asked)
        })
        .collect()
}

/// A plausible record.
pub fn record(cell: &(String, Asked), run: u32, counted: bool) -> Record {
    let (name, asked) = cell;
    let mut r = Record::blank("readahead", name, run, counted, asked.clone());
    let reader = !matches!(asked.backend, EngineBackend::Builtin | EngineBackend::BuiltinUring);
    let polled = asked.backend == EngineBackend::UringSqpoll;
    let base = match (reader, asked.window) {
        (false, _) => 0.95,
        (true, 0) => 12.0,
        (true, window) => 0.6 + 1.6 / f64::from(window),
    } * if polled { 0.9 } else { 1.0 };
    // Runs of a round share most of their noise.
    let noise = [0.0, 0.004, -0.003, 0.001, 0.006, -0.002, 0.003][run as usize % 7];
    r.answer = Some("123141078.2283".to_owned());
    r.answer_ok = Some(true);
    r.environment = environment(0xa1);
    r.effective.cache = Some(CacheState::Cold);
    r.times.wall_s = Some(base * (1.0 + noise) + if counted { 0.05 } else { 0.0 });
    r.times.user_s = Some(0.58);
    r.times.system_s = Some(0.12);
    r.times.iowq_s = Some(0.0);
    if polled {
        r.times.sqpoll_s = Some(1.25 * base);
        r.times.sqpoll_work_s = Some(0.25 * base);
    } else {
        r.explain(&["sqpoll_s", "sqpoll_work_s", "sqpoll_total_s"], "no SQPOLL thread");
    }
    r.explain(&["cycles", "instructions", "cache_references", "cache_misses"], NO_PMU);
    if reader {
        // Table pages 2 to 41 are asked for; index pages lie among them, one after every fourth.
        let wasted = if asked.window == 0 { 0 } else { 12 };
        r.effective.backend = Some(asked.backend.to_string());
        r.effective.direct = Some(Direct::Required);
        r.ring.sqes = Some(41 + wasted - if wasted > 0 { 1 } else { 0 });
        r.ring.enter_calls = Some(if asked.window == 0 { 41 } else { 4 });
        r.pages.pages_asked = Some(41);
        r.pages.pages_prefetched = Some(wasted * 4);
        r.pages.pages_wasted = Some(wasted);
        if counted {
            let pages = if wasted > 0 {
                vec![6..7, 11..12, 16..17, 21..22, 26..27, 31..32, 36..37, 41..42, 2..3, 52..54]
            } else {
                Vec::new()
            };
            r.pages.pages_wasted_ranges = Some(ranges::encode(&ranges::merge(pages)));
            let bios = r.ring.sqes.unwrap();
            let merged = if asked.window == 0 { 0 } else { bios - 4 };
            r.ring.sqes_traced = r.ring.sqes;
            r.block.bios = Some(bios);
            r.block.bios_merged = Some(merged);
            r.block.device_requests = Some(bios - merged);
            r.block.device_bytes = Some(bios * 4096);
        }
    }
    if !counted {
        r.explain_rest("counters were off in this run");
    }
    r.explain_rest("not part of this test");
    r
}

/// Seven timed runs, or so many, and a counted one, round by round.
pub fn records(cells: &[(String, Asked)], timed: u32) -> Vec<Record> {
    let counted = cells.iter().map(|cell| record(cell, 1, true));
    counted.chain((1..=timed).flat_map(|run| cells.iter().map(move |cell| record(cell, run, false)))).collect()
}

/// The b-trees of the database that the records asked.
pub fn btrees() -> Btrees {
    let index: Vec<_> = (1..=8).map(|n| n * 5 + 1..n * 5 + 2).collect();
    let table: Vec<_> = (1..=8).map(|n| n * 5 - 3..n * 5 + 1).collect();
    let leaves = table.iter().cloned().map(|r| if r.start == 2 { 3..6 } else { r }).collect::<Vec<_>>();
    Btrees {
        schema: 1,
        file_bytes: 4096 * 60,
        page_size_bytes: 4096,
        btrees: vec![
            Btree {
                name: "LINEITEM".to_owned(),
                table: "LINEITEM".to_owned(),
                leaf_pages: ranges::encode(&leaves),
                interior_pages: ranges::encode(&[2..3]),
                overflow_pages: Vec::new(),
            },
            Btree {
                name: "sqlite_autoindex_LINEITEM_1".to_owned(),
                table: "LINEITEM".to_owned(),
                leaf_pages: ranges::encode(&index),
                interior_pages: Vec::new(),
                overflow_pages: Vec::new(),
            },
            Btree {
                name: "ORDERS".to_owned(),
                table: "ORDERS".to_owned(),
                leaf_pages: ranges::encode(&[52..53]),
                interior_pages: Vec::new(),
                overflow_pages: Vec::new(),
            },
        ],
    }
}

/// `campaign.json` of these cells.
pub fn campaign(cells: &[(String, Asked)], timed: u32, sections: &[&str]) -> Value {
    let mut order: Vec<Value> =
        cells.iter().map(|(name, _)| json!({"cell": name, "run": 1, "counted": true})).collect();
    for run in 1..=timed {
        order.extend(cells.iter().map(|(name, _)| json!({"cell": name, "run": run, "counted": false})));
    }
    let reference: Vec<Value> = sections.iter().map(|section| json!({"section": section})).collect();
    let pairs: Vec<Value> =
        cells.iter().skip(1).map(|(name, _)| json!({"cell": name, "baseline": cells[0].0})).collect();
    let mut campaign = json!({
        "schema": 1,
        "about": {
            "name": "readahead",
            "title": "Readahead by the engine",
            "question": "What does a window of readahead do to the requests that the device sees?",
            "hypothesis": "Requests fall with the window until it reaches what a plug holds.",
            "reference": reference,
            "figures": [],
        },
        "experiment_digest": "fnv1a64:0123456789abcdef",
        "plan_digest": "fnv1a64:1123456789abcdef",
        "plan": {
            "data": "TPC-H, scale 1, pages of 4096 bytes",
            "workload": {"query": {"name": "q06", "sql": "SELECT sum(L_EXTENDEDPRICE * L_DISCOUNT)\nFROM LINEITEM"}},
            "counters": "both",
            "warmup": 0,
            "seed": 1,
            "timeout_s": 600.0,
            "cells": cells.iter().map(|(name, _)| json!({"name": name, "runs": timed, "axes": {}})).collect::<Vec<_>>(),
            "left_out": [{"what": "sqlite x builtin-uring", "why": "SQLite has no io_uring of its own"}],
            "ratios": [{"title": "Walls against the first cell", "pairs": pairs}],
            "order": order,
        },
        "made_with": {
            "ioscope_version": "0.1.0",
            "binary_digest": "fnv1a64:2123456789abcdef",
            "data": {"path": "data/tpch-sf1.db", "size_bytes": 245760, "change_counter": 7, "manifest": {
                "generator": "tpchgen 4.0.0", "schema_digest": "fnv1a64:d8fd93a958867e08", "header": "53", "sqlite_version": "3.54.1"}},
            "environment": {},
        },
        "changes": [],
        "sources": [],
    });
    if sections.is_empty() {
        campaign["about"]["reference"] = json!([]);
    }
    campaign
}

/// A whole study of these cells, with the published values that are built in.
pub fn whole(text: &str, timed: u32, sections: &[&str]) -> Study {
    let cells = cells(text);
    let mut study = study(&campaign(&cells, timed, sections), &records(&cells, timed), Some(btrees()));
    super::reference::take(&mut study, &super::reference::all(None).unwrap());
    study
}

/// Writes the campaign that tests/report.rs reports on: `cargo test -- --ignored write_the_stored_campaign`, after a change
/// of the record's layout.
#[test]
#[ignore = "writes into tests/"]
fn write_the_stored_campaign() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/readahead");
    std::fs::create_dir_all(&folder).unwrap();
    let cells = cells("engine=sqlite direct=required window=0,32,256");
    let mut campaign = campaign(&cells, 6, &["article.readahead"]);
    let mut study = study(&campaign, &[], None);
    super::reference::take(&mut study, &super::reference::all(None).unwrap());
    let reference = &study.campaign.about.reference[0];
    campaign["about"]["reference"] =
        json!([{"section": reference.section, "values": reference.values, "source": reference.source}]);
    std::fs::write(folder.join("campaign.json"), format!("{campaign}\n")).unwrap();
    let lines: Vec<String> = records(&cells, 6).iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect();
    std::fs::write(folder.join("runs.jsonl"), lines.concat()).unwrap();
    btrees().save(&folder).unwrap();
}
