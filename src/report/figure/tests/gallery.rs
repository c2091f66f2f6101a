//! Figures as the experiments have them, to be looked at: `FIGURES_OUT=DIR cargo test gallery` keeps the files.

use serde_json::{Value, json};

use super::sample;
use crate::report::figure::{DrawOptions, Drawing, FigureSpec, draw, write};

/// A specification as it comes from a file.
pub(super) fn spec(value: Value) -> FigureSpec {
    serde_json::from_value(value).unwrap()
}

/// The figures by name, each with its records.
pub(super) fn gallery() -> Vec<(FigureSpec, Vec<Value>)> {
    let (readahead, sqpoll, scan, sampled) = (sample::readahead(), sample::sqpoll(), sample::scan(), sample::sampled());
    vec![
        (
            spec(json!({
                "name": "wall-by-window", "title": "Q6, cold, direct: wall time by window", "kind": "line", "x": "window",
                "y": "wall_s", "series": ["engine", "submit"], "log_x": true, "log_y": true,
                "labels": { "turso": "Turso", "sqlite": "SQLite", "per-page": "one SQE a page", "coalesced": "one a run" },
            })),
            readahead.clone(),
        ),
        (
            spec(json!({
                "name": "layers-by-window", "title": "What becomes of the pages: SQEs, bios, requests", "kind": "line",
                "x": "window", "y": ["sqes", "bios", "bios_merged", "device_requests"], "log_x": true, "log_y": true,
                "filter": { "engine": "turso", "submit": "per-page" },
                "reference": [
                    { "x": 0, "key": "article.readahead.window_0.sqes", "quantity": "sqes", "label": "SQEs" },
                    { "x": 32, "key": "article.readahead.window_32.sqes", "quantity": "sqes", "label": "SQEs" },
                    { "x": 0, "key": "article.readahead.window_0.device_requests", "quantity": "device_requests", "label": "device requests" },
                    { "x": 32, "key": "article.readahead.window_32.device_requests", "quantity": "device_requests", "label": "device requests" },
                ],
            })),
            readahead.clone(),
        ),
        (
            spec(json!({
                "name": "readahead-page", "title": "Readahead under Q6: what each layer did", "kind": "line", "x": "window",
                "y": ["wall_s", "merged_percent", "average_request_kib"], "panels": "quantity", "series": ["engine", "submit"],
                "log_x": true, "width": "page",
                "reference": [{ "x": 32, "key": "article.readahead.window_32.merged_percent", "quantity": "merged_percent" }],
            })),
            readahead.clone(),
        ),
        (
            spec(json!({
                "name": "merged-panels", "title": "Share of bios merged", "kind": "line", "x": "window", "y": "merged_percent",
                "panels": "engine", "series": "submit", "log_x": true,
                "reference": [{ "x": 32, "y": [91, 93], "panel": "turso" }],
                "note": "second note",
            })),
            readahead,
        ),
        (
            spec(json!({
                "name": "sqpoll-bars", "title": "Q6 at window 32: wall time with and without a poller", "kind": "bars",
                "x": "cpus", "y": "wall_s", "series": "backend", "x_label": "CPUs of the process",
                "labels": { "uring": "plain", "uring-sqpoll": "SQPOLL", "0": "one", "0-1": "two" },
                "reference": [
                    { "x": "0-1", "y": 2.62, "series": "plain" }, { "x": "0-1", "y": 3.1, "series": "SQPOLL" },
                ],
            })),
            sqpoll.clone(),
        ),
        (
            spec(json!({
                "name": "sqpoll-cpu", "title": "Where the CPU time goes", "kind": "stacked", "x": ["backend", "cpus"],
                "y": ["user_s", "system_s", "sqpoll_s"], "y_label": "CPU time",
                "labels": { "uring": "plain", "uring-sqpoll": "SQPOLL", "0": "one CPU", "0-1": "two CPUs" },
            })),
            sqpoll,
        ),
        (
            spec(json!({
                "name": "scan-page", "title": "Random 4 KiB reads by queue depth", "kind": "line", "x": "depth",
                "y": ["iops", "iops_per_cpu_s"], "panels": "quantity", "series": "arm", "log_x": true, "width": "page",
                "x_label": "queue depth",
            })),
            scan.clone(),
        ),
        (
            spec(json!({
                "name": "scan-bars", "title": "Throughput by queue depth", "kind": "bars", "x": "depth", "y": "bytes_per_s",
                "series": "arm", "filter": { "depth": [1, 32, 128] }, "y_unit": "MiB/s",
            })),
            scan.clone(),
        ),
        (
            spec(json!({
                "name": "iops-against-cpu", "title": "IOPS against CPU", "kind": "line", "x": "cpus_used", "y": "iops",
                "series": "arm",
            })),
            scan.clone(),
        ),
        (
            spec(json!({
                "name": "many-categories", "title": "Every cell by its name", "kind": "bars", "x": "cell", "y": "iops",
                "series": [], "width": "page",
            })),
            scan,
        ),
        (
            spec(json!({
                "name": "timeline", "title": "Q6 over time", "kind": "timeline", "series": "engine",
                "y": ["requests_in_flight", "bytes_per_s", "merged_percent", "cpu_percent"],
            })),
            sampled.clone(),
        ),
        (
            spec(json!({
                "name": "no-data", "title": "Cycles by engine", "kind": "bars", "x": "engine", "y": "cycles",
            })),
            sampled
                .into_iter()
                .map(|mut record| {
                    record["hardware"] = json!({ "cycles": null });
                    record["reasons"] =
                        json!({ "cycles": "this machine has no PMU: perf_event_open says ENOENT for cycles" });
                    record
                })
                .collect(),
        ),
    ]
}

/// Draws as a quick campaign would.
pub(super) fn drawn(spec: &FigureSpec, records: &[Value]) -> Drawing {
    let reference = sample::reference();
    let note = (spec.name != "timeline").then_some("quick run: SF 0.1, 3 runs");
    draw(spec, records, &DrawOptions { note, seed: 1, reference: Some(&reference) }).unwrap()
}

#[test]
fn the_gallery_is_drawn_and_kept_where_asked() {
    let out = std::env::var_os("FIGURES_OUT").map(std::path::PathBuf::from);
    for (spec, records) in gallery() {
        let drawing = drawn(&spec, &records);
        assert!(drawing.svg.starts_with("<svg width=") && drawing.svg.trim_end().ends_with("</svg>"), "{}", spec.name);
        assert!(drawing.png.starts_with(b"\x89PNG") && drawing.pdf.starts_with(b"%PDF"), "{}", spec.name);
        if let Some(out) = &out {
            write(&drawing, out).unwrap();
            eprintln!("{}: {} {:?}", spec.name, drawing.caption, drawing.warnings);
        }
    }
}
