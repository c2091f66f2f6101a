//! An experiment in memory, and the specification of one run that is handed to a child process.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cpus::CpuList;
use super::duration::SampleInterval;
use super::plan::Cell;
use super::record::{Asked, Record};
use super::scan_plan::ScanCell;
use super::schedule::{Counters, PlannedRun};
use crate::workload::query::Query;

/// `sq_thread_idle` unless somebody says otherwise, in milliseconds.
pub const SQPOLL_IDLE_DEFAULT_MS: u32 = 1000;

/// What is asked of the machine, the same in all cells of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// One SQL statement of a database engine.
    Query(Query),
    /// The reader alone; each cell has axes of its own.
    Scan,
}

impl Workload {
    /// What the records call it.
    pub fn name(&self) -> &str {
        match self {
            Workload::Query(query) => &query.name,
            Workload::Scan => "scan",
        }
    }
}

/// Where a cell lies on the axes of its workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Of a query.
    Query(Cell),
    /// Of a scan.
    Scan(ScanCell),
}

impl Point {
    /// The name of the combination: the same one has the same name in every experiment.
    pub fn name(&self) -> String {
        match self {
            Point::Query(cell) => cell.name(),
            Point::Scan(cell) => cell.name(),
        }
    }
}

/// One cell of an experiment: a combination of values that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanCell {
    /// Its name, unique within the experiment.
    pub name: String,
    /// The values.
    pub point: Point,
    /// Timed runs (counted ones, where every run is counted).
    pub runs: u32,
    /// CPUs that its runs are confined to.
    pub cpus: Option<CpuList>,
    /// `sq_thread_idle`, in milliseconds.
    pub sqpoll_idle_ms: u32,
}

/// An experiment: what is asked, of which cells, how often.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// The database.
    pub database: PathBuf,
    /// What is asked of the cells that are not scans.
    pub workload: Workload,
    /// The cells.
    pub cells: Vec<PlanCell>,
    /// Which runs are counted.
    pub counters: Counters,
    /// How often a run is sampled while it is under way.
    pub sample: Option<SampleInterval>,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// One run, as the child process reads it from its standard input (JSON).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The experiment's name.
    pub experiment: String,
    /// The cell's name.
    pub cell: String,
    /// The run's number.
    pub run: u32,
    /// Whether counters are on.
    pub counted: bool,
    /// How often the run is sampled while it is under way.
    pub sample: Option<SampleInterval>,
    /// What is asked for.
    pub asked: Asked,
    /// What is asked.
    pub workload: Workload,
    /// The database's path, as bytes: it may not be UTF-8.
    pub database: Vec<u8>,
    /// The process that waits for the record, and without which the run has no purpose.
    pub runner_pid: Option<i32>,
}

impl RunSpec {
    /// The database's path.
    pub fn database_path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.database.clone()))
    }

    /// A record of this run of which nothing is known yet.
    pub fn blank_record(&self) -> Record {
        Record::blank(&self.experiment, &self.cell, self.run, self.counted, self.asked.clone())
    }

    /// The record of this run when it failed before anything was measured.
    pub fn failed_record(&self, error: &str) -> Record {
        let mut record = self.blank_record();
        record.error = Some(error.to_owned());
        record.explain_rest(FAILED);
        record
    }
}

/// The reason of a quantity that a failed run did not come to.
pub const FAILED: &str = "the run failed before this was known";

impl Experiment {
    /// What a cell asks for.
    pub fn asked(&self, cell: &PlanCell) -> Asked {
        let (engine, point, scan) = match &cell.point {
            Point::Query(point) => (Some(point.engine), *point, None),
            Point::Scan(scan) => (None, scan.reader, Some(scan.axes)),
        };
        Asked {
            engine,
            backend: point.backend,
            direct: point.direct,
            submit: point.submit,
            policy: point.policy,
            window: point.window,
            in_flight: point.in_flight,
            gap: point.gap,
            pool: point.pool,
            delivery: point.delivery,
            cache: point.cache,
            cpus: cell.cpus.as_ref().map(ToString::to_string),
            sqpoll_idle_ms: cell.sqpoll_idle_ms,
            database: self.database.to_string_lossy().into_owned(),
            query: self.workload_of(cell).name().to_owned(),
            scan,
        }
    }

    /// What is asked in a cell: an experiment may have scans beside its query.
    fn workload_of(&self, cell: &PlanCell) -> Workload {
        match cell.point {
            Point::Query(_) => self.workload.clone(),
            Point::Scan(_) => Workload::Scan,
        }
    }

    /// What a run of the experiment asks for.
    pub fn run_spec(&self, planned: PlannedRun) -> RunSpec {
        let cell = &self.cells[planned.cell];
        RunSpec {
            experiment: self.name.clone(),
            cell: cell.name.clone(),
            run: planned.run,
            counted: planned.counted,
            sample: self.sample.filter(|_| planned.counted || self.counters == Counters::None),
            asked: self.asked(cell),
            workload: self.workload_of(cell),
            database: self.database.as_os_str().as_bytes().to_owned(),
            runner_pid: None,
        }
    }

    /// Timed runs of each cell.
    pub fn runs(&self) -> Vec<u32> {
        self.cells.iter().map(|cell| cell.runs).collect()
    }
}

impl PlanCell {
    /// A cell under the name of its values, confined as all others are.
    pub fn new(point: Point, runs: u32, cpus: Option<CpuList>, sqpoll_idle_ms: u32) -> PlanCell {
        PlanCell { name: point.name(), point, runs, cpus, sqpoll_idle_ms }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::plan::{Matrix, expand};

    /// An experiment of two cells that no test needs to run.
    pub(crate) fn experiment() -> Experiment {
        let matrix = Matrix::default().with("engine=sqlite window=32,0").unwrap();
        let cell = |cell| PlanCell::new(Point::Query(cell), 2, None, SQPOLL_IDLE_DEFAULT_MS);
        Experiment {
            name: "e".to_owned(),
            database: PathBuf::from("/nowhere/x.db"),
            workload: Workload::Query(Query { name: "q".to_owned(), sql: "SELECT 1".to_owned() }),
            cells: expand(&[matrix], true).cells.into_iter().map(cell).collect(),
            counters: Counters::Both,
            sample: None,
            seed: 0,
        }
    }

    pub(crate) fn run_spec() -> RunSpec {
        experiment().run_spec(PlannedRun { cell: 0, run: 1, counted: false, round: 1 })
    }

    pub(crate) fn asked() -> Asked {
        run_spec().asked
    }

    #[test]
    fn runs_whose_walls_are_compared_are_not_sampled_where_others_are_counted() {
        let sampled = |counters, counted| {
            let experiment = Experiment { counters, sample: "50ms".parse().ok(), ..experiment() };
            experiment.run_spec(PlannedRun { cell: 0, run: 1, counted, round: 1 }).sample.is_some()
        };
        assert!(sampled(Counters::Both, true) && !sampled(Counters::Both, false));
        assert!(sampled(Counters::All, true) && sampled(Counters::None, false));
    }

    #[test]
    fn a_path_that_is_not_text_survives_the_way_to_the_child() {
        let path = PathBuf::from(OsString::from_vec(b"/tmp/a \xff%?.db".to_vec()));
        let experiment = Experiment { database: path.clone(), ..experiment() };
        let spec = experiment.run_spec(PlannedRun { cell: 0, run: 1, counted: false, round: 1 });
        let read: RunSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        assert_eq!(read, spec);
        assert_eq!(read.database_path(), path);
        assert_eq!(read.asked.database, "/tmp/a \u{fffd}%?.db");
    }
}
