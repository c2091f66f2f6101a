//! How long the runs of a plan will take.
//!
//! A run costs more than its wall: before it the page cache is filled and emptied again, and a process comes and goes.
//! In this sitting that is measured. Before it, records give the walls, and a model gives the rest; without records the
//! model gives all of it. The model is rough, and only for planning: one scan of the file, of the device of a small
//! virtual machine.

use std::collections::BTreeMap;
use std::time::Duration;

use super::record::{CacheState, Record};
use super::schedule::PlannedRun;
use super::spec::{Experiment, PlanCell, Point};
use crate::page::config::Direct;

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
    let gib = database_bytes as f64 / GIB;
    let point = match &cell.point {
        Point::Query(point) => point,
        // Nothing is known of a scan before its first run; a pass over the file is as good a guess as any.
        Point::Scan(_) => return around(database_bytes) + QUERY_S_PER_GIB * gib,
    };
    let waits = match (point.direct, point.cache) {
        (Direct::Required, _) if point.has_reader() => {
            database_bytes as f64 / PAGE_BYTES / f64::from(point.window + 1) * READ_S
        }
        (_, CacheState::Cold) => 0.3 * gib,
        (_, CacheState::Warm) => 0.0,
    };
    around(database_bytes) + QUERY_S_PER_GIB * gib + waits
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
