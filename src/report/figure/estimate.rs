//! The runs of one cell on one machine, and what is said of one quantity in them.

use serde_json::Value;

use super::data::{Estimate, Point, Runs};
use super::leaf;
use super::quantity::Quantity;
use crate::report::statistics::{Summary, median};

/// The estimate of one quantity from the runs of one cell on one machine.
pub(super) fn estimate(quantity: &Quantity, runs: &[&Value], seed: u64) -> Point {
    let mut point = Point {
        x: String::new(),
        at: None,
        quantity: 0,
        host: String::new(),
        runs: if quantity.is_timed() { Runs::Timed } else { Runs::Counted },
        samples: Vec::new(),
        estimate: None,
        reason: None,
    };
    if runs.iter().any(|run| leaf::is_wrong(run)) {
        point.reason = Some("a run of this cell gave a wrong answer".to_owned());
        return point;
    }
    let measured = |counted: bool| {
        let good = runs.iter().filter(move |run| leaf::failure(run).is_none() && leaf::is_counted(run) == counted);
        good.map(|run| quantity.measure(run)).collect::<Vec<_>>()
    };
    let preferred = measured(!quantity.is_timed());
    let other = measured(quantity.is_timed());
    point.samples = preferred.iter().flatten().copied().collect();
    if point.samples.is_empty() {
        point.samples = other.iter().flatten().copied().collect();
        if !point.samples.is_empty() {
            point.runs = if quantity.is_timed() { Runs::Counted } else { Runs::Timed };
        }
    }
    let middle = if quantity.is_count() {
        // As in the tables: a count that was observed, not the middle of two.
        let mut sorted = point.samples.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len().saturating_sub(1) / 2).copied()
    } else {
        median(&point.samples)
    };
    let interval = Summary::of(&point.samples, seed).and_then(|s| s.interval).map(|i| (i.low, i.high));
    point.estimate = middle.map(|median| Estimate { median, interval });
    if point.estimate.is_none() {
        let failed = || runs.iter().find_map(|run| leaf::failure(run)).map(str::to_owned);
        let missing = preferred.into_iter().chain(other).find_map(Result::err);
        point.reason = missing.or_else(failed).or_else(|| Some("no run".to_owned()));
    }
    point
}

/// Says which runs of a cell failed.
pub(super) fn note_failures(runs: &[&Value], warnings: &mut Vec<String>) {
    let failed: Vec<&str> = runs.iter().filter_map(|run| leaf::failure(run)).collect();
    if let (Some(first), Some(run)) = (failed.first(), runs.first()) {
        let cell = leaf::text(run, "cell").unwrap_or("a cell");
        let first = first.lines().next().unwrap_or_default();
        warnings.push(format!("{cell}: {} of {} runs failed and are not drawn ({first})", failed.len(), runs.len()));
    }
}
