//! Rows of the table that only scans have.

use super::{Entry, Rows};
use crate::experiment::record::Record;
use crate::report::grid::grouped;
use crate::report::notes;
use crate::report::statistics::median;
use crate::workload::scan::{ScanAxes, ScanResults};

type Axis = (&'static str, fn(&ScanAxes) -> String);
type Rate = (&'static str, &'static str, usize, fn(&ScanResults) -> Option<f64>);

/// Axes that have a row only where they vary or are not the default.
const AXES: [Axis; 10] = [
    ("block, bytes", |axes| axes.block_bytes.to_string()),
    ("threads", |axes| axes.threads.to_string()),
    ("refill", |axes| axes.refill.to_string()),
    ("wait", |axes| axes.wait.to_string()),
    ("think, ns", |axes| axes.think_ns.to_string()),
    ("burst, reads", |axes| axes.burst.to_string()),
    ("pause, ns", |axes| axes.pause_ns.to_string()),
    ("touch", |axes| axes.touch.to_string()),
    ("touch order", |axes| axes.touch_order.to_string()),
    ("delay, pages", |axes| axes.delay_pages.to_string()),
];

/// Results that have a row only where a cell has them: leaf name, label, decimals, value.
const RATES: [Rate; 11] = [
    ("iops", "IOPS", 0, |s| s.iops),
    ("bytes_per_s", "MiB/s", 1, |s| s.bytes_per_s.map(|bytes| bytes / f64::from(1 << 20))),
    ("iops_per_cpu_s", "IOPS per CPU-second", 0, |s| s.iops_per_cpu_s),
    ("p50_us", "latency p50, us", 1, |s| s.latency?.p50_us),
    ("p99_us", "latency p99, us", 1, |s| s.latency?.p99_us),
    ("after_pause", "after a pause p50, us", 1, |s| s.after_pause?.p50_us),
    ("think_s", "think, s", 3, |s| Some(s.think_s).filter(|&seconds| seconds > 0.0)),
    ("touch", "touch p50, ns/line", 2, |s| s.touch.as_ref()?.touch_ns_per_line_p50),
    ("touch", "touch p95, ns/line", 2, |s| s.touch.as_ref()?.touch_ns_per_line_p95),
    ("touch", "copy or prefetch, ns/line", 2, |s| s.touch.as_ref()?.touch_prepare_ns_per_line_p50),
    ("touch", "timer, ns a block", 1, |s| s.touch.as_ref().map(|touch| touch.timer_overhead_ns)),
];

impl Rows<'_> {
    /// What a scan was asked.
    pub(super) fn scan_asked(&mut self) {
        let scans: Vec<ScanAxes> =
            self.cells.iter().filter_map(|cell| cell.asked).filter_map(|asked| asked.scan).collect();
        if scans.is_empty() {
            return;
        }
        self.add_scan_axis("random reads", |axes| axes.random.map_or_else(|| "in order".to_owned(), grouped));
        if scans.iter().any(|axes| axes.random.is_some()) {
            self.add_scan_axis("depth", |axes| axes.depth.to_string());
        }
        let default = ScanAxes::default();
        for (label, value) in AXES {
            if scans.iter().any(|axes| value(axes) != value(&default)) {
                self.add_scan_axis(label, value);
            }
        }
    }

    fn add_scan_axis(&mut self, label: &str, value: impl Fn(&ScanAxes) -> String) {
        self.add(label, |cell| match cell.asked.and_then(|asked| asked.scan.as_ref()) {
            Some(axes) => Entry::Value(value(axes)),
            None => Entry::Blank,
        });
    }

    /// What a scan achieved: medians over the runs whose times are reported.
    pub(super) fn scan_rates(&mut self) {
        let of = |record: &Record, value: fn(&ScanResults) -> Option<f64>| record.scan.as_ref().and_then(value);
        for (leaf, label, decimals, value) in RATES {
            let cells = self.cells;
            if !cells.iter().flat_map(|cell| cell.for_times()).any(|record| of(record, value).is_some()) {
                continue;
            }
            self.add(label, |cell| {
                let samples: Vec<f64> = cell.for_times().iter().filter_map(|record| of(record, value)).collect();
                match (median(&samples), cell.for_times().first()) {
                    (Some(number), _) if decimals == 0 => Entry::Value(grouped(number.round() as u64)),
                    (Some(number), _) => Entry::Value(format!("{number:.decimals$}")),
                    (None, Some(record)) => match record.reasons.get(leaf) {
                        Some(_) => Entry::Null(notes::reason(record, leaf)),
                        // A part of a result that this cell has otherwise.
                        None => Entry::Blank,
                    },
                    (None, None) => Entry::Blank,
                }
            });
        }
    }
}
