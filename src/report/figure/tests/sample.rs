//! Made-up records, as like to real ones as the tests need.

use serde_json::{Value, json};

/// One host's digest.
pub(super) const HOST: &str = "3f9a1c77e0b24d55";

/// A number between 0 and 1 that follows from `key`.
pub(super) fn noise(key: u64) -> f64 {
    crate::experiment::random::SplitMix64::new(key).next_u64() as f64 / u64::MAX as f64
}

/// A record with nothing but what is given.
pub(super) fn record(cell: &str, run: u64, counted: bool, asked: &Value, groups: &Value) -> Value {
    let mut record = json!({
        "schema": 1, "experiment": "e", "cell": cell, "run": run, "counted": counted, "asked": asked, "effective": {},
        "answer": "1", "answer_ok": true, "error": null, "reasons": {}, "warnings": [],
        "environment": { "id": "c0ffee", "host": HOST },
    });
    for (name, group) in groups.as_object().unwrap() {
        record[name] = group.clone();
    }
    record
}

/// The windows of the readahead experiment.
pub(super) const WINDOWS: [u64; 11] = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// Q6 by engine, submit and window: 7 timed runs (3 at window 0) and 2 counted ones.
pub(super) fn readahead() -> Vec<Value> {
    let mut records = Vec::new();
    for (e, engine) in ["turso", "sqlite"].into_iter().enumerate() {
        for (s, submit) in ["per-page", "coalesced"].into_iter().enumerate() {
            for window in WINDOWS {
                if window == 0 && submit == "coalesced" {
                    continue;
                }
                readahead_cell(&mut records, (e, engine), (s, submit), window);
            }
        }
    }
    records
}

fn readahead_cell(records: &mut Vec<Value>, (e, engine): (usize, &str), (s, submit): (usize, &str), window: u64) {
    let asked = json!({
        "engine": engine, "backend": "uring", "direct": "required", "submit": submit, "policy": "sequential",
        "window": window, "in_flight": 4, "cpus": null, "query": "q06", "database": "data/tpch-sf1.db",
    });
    let cell = format!("{engine}-uring-{submit}-w{window}");
    let pages = if window == 0 { 195_207 } else { 195_207 + (23_005 * window.min(32)) / 32 };
    let width = window.clamp(1, 32) as f64;
    let sqes = if submit == "coalesced" { (pages as f64 / (window.max(1) as f64)) as u64 } else { pages };
    let requests = (pages as f64 / width * 1.08) as u64;
    let base = [2.4, 0.62][e] + if window == 0 { 11.0 } else { 9.0 / window as f64 } + [0.5, 0.0][s];
    let timed = if window == 0 { 3 } else { 7 };
    for run in 1..=timed + 2 {
        let counted = run > timed;
        let wall = base * (0.97 + 0.08 * noise(run + 100 * window + 7 * e as u64 + 3 * s as u64));
        let block = match counted {
            true => json!({
                "bios": pages + 300, "bios_merged": pages.saturating_sub(requests), "device_requests": requests,
                "device_bytes": pages * 4096,
            }),
            false => json!({ "bios": null, "bios_merged": null, "device_requests": null, "device_bytes": null }),
        };
        let groups = json!({
            "times": { "wall_s": wall * if counted { 1.06 } else { 1.0 }, "user_s": wall * 0.6, "system_s": wall * 0.2,
                       "sqpoll_s": 0.0, "iowq_s": 0.0 },
            "ring": { "sqes": sqes, "enter_calls": sqes / window.max(1) },
            "pages": { "pages_asked": 195_400, "pages_prefetched": pages, "pages_wasted": pages - 195_207 },
            "block": block,
        });
        records.push(record(&cell, run - if counted { timed } else { 0 }, counted, &asked, &groups));
    }
}

/// Q6 by backend and CPUs, 9 timed runs each; the poller's time where there is one.
pub(super) fn sqpoll() -> Vec<Value> {
    let mut records = Vec::new();
    for (b, backend) in ["uring", "uring-sqpoll"].into_iter().enumerate() {
        for (c, cpus) in ["0", "0-1"].into_iter().enumerate() {
            let asked = json!({ "engine": "turso", "backend": backend, "cpus": cpus, "window": 32 });
            for run in 1..=9 {
                let wall = [[2.9, 2.8], [3.9, 2.7]][b][c] * (0.95 + 0.1 * noise(run * 31 + b as u64 * 7 + c as u64));
                let times = json!({
                    "wall_s": wall, "user_s": 1.4, "system_s": ([1.3, 0.2][b]),
                    "sqpoll_s": if b == 1 { json!(wall * [0.55, 0.95][c]) } else { json!(0.0) },
                    "sqpoll_work_s": if b == 1 { json!(1.2) } else { Value::Null },
                    "sqpoll_total_s": if b == 1 { json!(wall * [0.55, 0.95][c]) } else { Value::Null },
                    "iowq_s": 0.0,
                });
                let mut made = record(&format!("{backend}-{cpus}"), run, false, &asked, &json!({ "times": times }));
                if b == 0 {
                    made["reasons"] =
                        json!({ "sqpoll_work_s": "no SQPOLL thread", "sqpoll_total_s": "no SQPOLL thread" });
                }
                records.push(made);
            }
        }
    }
    records
}

/// Random reads by queue depth and arm, 7 runs each.
pub(super) fn scan() -> Vec<Value> {
    let mut records = Vec::new();
    let arms = ["plain", "sqpoll, same CPU", "sqpoll, second CPU", "two threads"];
    for (a, arm) in arms.into_iter().enumerate() {
        for depth in [1u64, 2, 4, 8, 16, 32, 64, 128] {
            let asked = json!({ "arm": arm, "depth": depth, "think_us": 0 });
            for run in 1..=7 {
                let most = [90e3, 55e3, 130e3, 170e3][a];
                let iops =
                    most * (1.0 - 0.88f64.powi(depth as i32)) * (0.93 + 0.14 * noise(run * 17 + depth * 5 + a as u64));
                let wall = 5.0;
                let groups = json!({
                    "scan": { "iops": iops, "bytes_per_s": iops * 4096.0 },
                    "times": { "wall_s": wall, "user_s": 0.8, "system_s": 3.0, "sqpoll_s": ([0.0, 2.0, 5.0, 0.0][a]), "iowq_s": 0.0 },
                });
                records.push(record(&format!("{arm} {depth}"), run, false, &asked, &groups));
            }
        }
    }
    records
}

/// One run of each engine, sampled 200 times.
pub(super) fn sampled() -> Vec<Value> {
    let sample = |e: u64, i: u64| {
        let stall = (90..96).contains(&i);
        json!({
            "t_s": (i as f64) * 0.05,
            "requests_in_flight": if stall { 0.0 } else { (4.0 * noise(i * 3 + e)).round() },
            "bytes_per_s": if stall { json!(0.0) } else { json!((600.0 + 900.0 * noise(i + 1000 * e)) * 1048576.0) },
            "merged_percent": if stall { Value::Null } else { json!(88.0 + 8.0 * noise(i * 11 + e)) },
            "cpu_percent": if stall { 12.0 } else { 90.0 + 60.0 * noise(i * 7 + e) },
        })
    };
    let mut records = Vec::new();
    for (e, engine) in ["turso", "sqlite"].into_iter().enumerate() {
        let count = [200, 120][e];
        for run in 1..=3 {
            let groups = json!({
                "times": { "wall_s": 6.0 + run as f64 },
                "samples": (0..count).map(|i| sample(e as u64 + 10 * run, i)).collect::<Vec<_>>(),
            });
            records.push(record(engine, run, false, &json!({ "engine": engine }), &groups));
        }
    }
    records
}

/// A share of the file of published figures.
pub(super) fn reference() -> Value {
    json!({ "article": { "readahead": {
        "window_0": { "sqes": 195_207, "device_requests": 196_000, "bios_merged": 140 },
        "window_32": { "sqes": 218_212, "device_requests": 16_300, "merged_percent": [91.0, 93.0], "note": "about" },
    } } })
}
