//! An experiment as its file defines it, resolved: every cell named, every value checked.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cpus::CpuList;
use super::duration::{SampleInterval, Timeout};
use super::plan::LeftOut;
use super::record::CacheState;
use super::schedule::Counters;
use super::spec::{Experiment, PlanCell, Workload};
use crate::dataset::Scale;

/// An experiment, resolved from its file: see [`super::file`] for the file.
#[derive(Debug, Clone)]
pub struct Definition {
    /// What is said about it.
    pub about: About,
    /// The data that is asked.
    pub dataset: DatasetChoice,
    /// What is asked.
    pub workload: Workload,
    /// How it is measured.
    pub protocol: Protocol,
    /// The cells, in the order of the file; no two with the same name.
    pub cells: Vec<PlanCell>,
    /// What is left out of the products, and why.
    pub left_out: Vec<LeftOut>,
    /// Which cells are set against which.
    pub ratios: Vec<Ratio>,
}

impl Definition {
    /// The experiment on a database.
    pub fn experiment(&self, database: PathBuf) -> Experiment {
        Experiment {
            name: self.about.name.clone(),
            database,
            workload: self.workload.clone(),
            cells: self.cells.clone(),
            counters: self.protocol.counters,
            sample: self.protocol.sample,
            seed: self.protocol.seed,
        }
    }
}

/// What a reader has to know of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// Its title, for people; the name where the file has none.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// What is expected, and why.
    pub hypothesis: Option<String>,
    /// Published values by the section of the reference that they come from (`article.readahead`), in the file's order.
    pub reference: Vec<Reference>,
    /// The figures to draw, as the file describes them.
    pub figures: Vec<Value>,
}

/// One section of the published values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// The section's path, such as `article.readahead`.
    pub section: String,
    /// Its values.
    pub values: Value,
    /// What the top of the section (`article`) says of itself, tables left out: `source`, `database` ...
    pub source: Value,
}

/// The data that is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum DatasetChoice {
    /// TPC-H, made where it is missing.
    Tpch {
        /// Scale factor.
        scale: Scale,
        /// Page size, in bytes.
        page_size_bytes: u32,
    },
    /// A database of the user's.
    File(PathBuf),
}

/// How runs are made.
#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    /// State of the page cache at the start of a run, unless a matrix has its own.
    pub cache: CacheState,
    /// Timed runs of a cell, unless its matrix has its own number.
    pub runs: u32,
    /// Rounds that are made before the others in every sitting, and kept apart from the records.
    pub warmup: u32,
    /// Seed of the order of runs, and of the bootstrap.
    pub seed: u64,
    /// How long a run may take.
    pub timeout: Timeout,
    /// CPUs that runs are confined to, unless a matrix has its own.
    pub cpus: Option<CpuList>,
    /// Which runs are counted.
    pub counters: Counters,
    /// How often a run is sampled; the counted ones only, where there are both.
    pub sample: Option<SampleInterval>,
}

/// Cells that are set against others, as quotients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ratio {
    /// What the quotients show.
    pub title: String,
    /// Each cell with its baseline.
    pub pairs: Vec<Pair>,
}

/// A cell and the one that it is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The numerator's name.
    pub cell: String,
    /// The denominator's name.
    pub baseline: String,
}
