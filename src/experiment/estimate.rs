//! How long the runs of a plan will take.
//!
//! A run costs more than its wall: before it the page cache is filled and emptied again, and a process comes and goes.
//! In this sitting that is measured. Before it, records give the walls, and a model gives the rest; without records the
//! model gives all of it. The model is rough, and only for planning: one scan of the file, of the device of a small
//! virtual machine.

use std::collections::BTreeMap;
use std::time::Duration;

use super::plan::Cell;
use super::record::{CacheState, Record};
use super::scan_plan::ScanCell;
use super::schedule::PlannedRun;
use super::spec::{Experiment, PlanCell, Point};
use crate::engine::EngineBackend;
use crate::page::config::{Direct, Submit};

/// Starting and ending a process and reading the environment, in seconds.
const PROCESS_S: f64 = 0.15;
/// Filling the page cache with a GiB, or emptying and proving it, in seconds.
const PREPARE_S_PER_GIB: f64 = 1.2;
/// What a query computes for each GiB that it scans, in seconds.
const QUERY_S_PER_GIB: f64 = 0.7;
/// One direct read that is waited for, in seconds.
const READ_S: f64 = 65e-6;
const PAGE_BYTES: f64 = 4096.0;
const GIB: f64 = (1u64 << 30) as f64;

/// What an estimate rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Runs of the same cell.
    Runs,
    /// The model.
    Model,
}

/// Estimates the runs of an experiment.
#[derive(Debug)]
pub struct Estimator {
    /// By cell: what the model says, in seconds.
    model: Vec<f64>,
    /// By cell: what its runs took, in seconds.
    seen: Vec<Vec<f64>>,
}

impl Estimator {
    /// An estimator without any run seen; `database_bytes` is the size of the database.
    pub fn new(experiment: &Experiment, database_bytes: u64) -> Estimator {
        let model = experiment.cells.iter().map(|cell| model(cell, database_bytes)).collect();
        Estimator { model, seen: vec![Vec::new(); experiment.cells.len()] }
    }

    /// Takes the walls of records into account.
    pub fn see_records(&mut self, experiment: &Experiment, records: &[Record], database_bytes: u64) {
        let by_name: BTreeMap<&str, usize> =
            experiment.cells.iter().enumerate().map(|(i, c)| (c.name.as_str(), i)).collect();
        for record in records {
            if let (Some(&cell), Some(wall_s)) = (by_name.get(record.cell.as_str()), record.times.wall_s) {
                self.seen[cell].push(wall_s + around(database_bytes));
            }
        }
    }

    /// Takes a run into account that took so long, with all that belongs to it.
    pub fn see(&mut self, cell: usize, took: Duration) {
        self.seen[cell].push(took.as_secs_f64());
    }

    /// How long a run of a cell takes. Where none was seen, the model is corrected by what the others took.
    pub fn of_cell(&self, cell: usize) -> (Duration, Basis) {
        if let Some(seen_s) = median(&self.seen[cell]) {
            return (Duration::from_secs_f64(seen_s.max(0.0)), Basis::Runs);
        }
        let ratios: Vec<f64> =
            self.model.iter().zip(&self.seen).filter_map(|(model, seen)| Some(median(seen)? / model)).collect();
        let correction = median(&ratios).unwrap_or(1.0);
        (Duration::from_secs_f64((self.model[cell] * correction).max(0.0)), Basis::Model)
    }

    /// How long these runs take together.
    pub fn of_runs(&self, runs: &[PlannedRun]) -> Duration {
        runs.iter().map(|run| self.of_cell(run.cell).0).sum()
    }
}

/// The middle one; good enough for planning.
fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// What comes before and after the wall of a run, in seconds.
fn around(database_bytes: u64) -> f64 {
    PROCESS_S + PREPARE_S_PER_GIB * database_bytes as f64 / GIB
}

fn model(cell: &PlanCell, database_bytes: u64) -> f64 {
    let point = match &cell.point {
        Point::Query(point) => point,
        Point::Scan(scan) => return scan_model(scan, database_bytes),
    };
    let gib = database_bytes as f64 / GIB;
    let waits = match (point.direct, point.cache) {
        (Direct::Required, _) if point.has_reader() => {
            database_bytes as f64 / PAGE_BYTES / pages_at_once(point) * READ_S
        }
        (_, CacheState::Cold) => 0.3 * gib,
        (_, CacheState::Warm) => 0.0,
    };
    around(database_bytes) + QUERY_S_PER_GIB * gib + waits
}

/// Pages that come with one wait for the device.
fn pages_at_once(reader: &Cell) -> f64 {
    match (reader.backend, reader.submit) {
        // Each read is waited for, whatever the window.
        (EngineBackend::Pread, Submit::PerPage) => 1.0,
        _ => f64::from(reader.window + 1),
    }
}

/// Random reads are waited for one after the other, as many at once as are in flight; a file in order is read as fast as
/// the device gives it, unless every page is waited for.
fn scan_model(scan: &ScanCell, database_bytes: u64) -> f64 {
    let axes = &scan.axes;
    let think = axes.think_ns as f64 * 1e-9;
    let reads_s = match axes.random {
        Some(reads) => {
            let batches = reads as f64 / f64::from(axes.depth.max(axes.threads).max(1));
            let pauses = if axes.pause_ns == 0 {
                0.0
            } else {
                reads as f64 / axes.burst.max(u64::from(axes.depth)).max(1) as f64
            };
            batches * (READ_S + think) + pauses * axes.pause_ns as f64 * 1e-9
        }
        None => {
            let pages = database_bytes as f64 / f64::from(axes.block_bytes.max(1));
            pages * (READ_S / pages_at_once(&scan.reader) + think) + 0.3 * database_bytes as f64 / GIB
        }
    };
    around(database_bytes) + reads_s
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::spec::tests::experiment;

    #[test]
    fn seen_runs_count_more_than_the_model_and_correct_it() {
        let experiment = experiment();
        let mut estimator = Estimator::new(&experiment, 1 << 30);
        let (model, basis) = estimator.of_cell(1);
        assert_eq!(basis, Basis::Model);
        estimator.see(0, estimator.of_cell(0).0 * 3);
        let (corrected, basis) = estimator.of_cell(1);
        assert_eq!(basis, Basis::Model);
        assert!((corrected.as_secs_f64() / model.as_secs_f64() - 3.0).abs() < 1e-6);
        estimator.see(1, Duration::from_secs(5));
        assert_eq!(estimator.of_cell(1), (Duration::from_secs(5), Basis::Runs));
    }

    #[test]
    fn records_give_walls_and_the_model_the_rest() {
        let experiment = experiment();
        let mut record = crate::experiment::spec::tests::run_spec().blank_record();
        record.times.wall_s = Some(2.0);
        let mut estimator = Estimator::new(&experiment, 0);
        estimator.see_records(&experiment, &[record], 0);
        assert_eq!(estimator.of_cell(0), (Duration::from_secs_f64(2.15), Basis::Runs));
    }
}
