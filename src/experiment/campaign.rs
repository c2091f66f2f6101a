//! A campaign: the runs of an experiment, planned once, made in one sitting or several, kept in a folder.
//!
//! The folder holds
//!
//! | file | content |
//! |---|---|
//! | `experiment.toml` | the experiment's file, byte for byte |
//! | `campaign.json` | a [`Campaign`]: the resolved plan, and what it was carried out with |
//! | `runs.jsonl` | one [`super::record::Record`] a line, in the order in which the runs ended |
//! | `warmup.jsonl` | records of warm-up runs; not results, and made again in every sitting |
//! | `runs.torn` | what a kill or a crash had left of a line, moved out of the way |
//! | `lock` | locked (flock) by the runner that is at work, with its process id |
//!
//! `campaign.json` and `runs.jsonl` are all that a report needs.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definition::{About, DatasetChoice, Definition, Ratio};
use super::duration::SampleInterval;
use super::plan::LeftOut;
use super::record::Record;
use super::schedule::{Counters, PlannedRun, schedule};
use super::spec::{Experiment, Workload};
use crate::dataset::Manifest;
use crate::measure::environment::{Environment, Fnv};

/// Version of the layout of `campaign.json`.
pub const CAMPAIGN_SCHEMA: u32 = 1;

/// `campaign.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Version of the layout.
    pub schema: u32,
    /// What is said about the experiment: question, hypothesis, published values, figures.
    pub about: About,
    /// Digest of the experiment's file.
    pub experiment_digest: String,
    /// Digest of `plan`: campaigns with the same one measured the same thing.
    pub plan_digest: String,
    /// What is measured, and in which order.
    pub plan: Plan,
    /// What the command line said instead of the file.
    pub overrides: KeptOverrides,
    /// The part of the plan that this folder is for; `None` is all of it.
    pub shard: Option<Shard>,
    /// What the runs are made with: in a merged folder, that of the first source.
    pub made_with: MadeWith,
    /// Changes of it that were accepted on the way, oldest first.
    pub changes: Vec<Change>,
    /// The folders that were merged into this one; empty for one that was measured.
    pub sources: Vec<Source>,
    /// When it was begun, in seconds since 1970 (UTC).
    pub created_unix_s: u64,
}

/// What is measured, and in which order: the same on every machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The data that is asked, in words: `TPC-H, scale 1, pages of 4096 bytes`, or the name of a file.
    pub data: String,
    /// What is asked.
    pub workload: Workload,
    /// Which runs are counted.
    pub counters: Counters,
    /// How often a run is sampled while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleInterval>,
    /// Rounds that are made first in every sitting, and kept apart.
    pub warmup: u32,
    /// Seed of the order, and of the bootstrap.
    pub seed: u64,
    /// How long a run may take, in seconds; `None` is without a limit.
    pub timeout_s: Option<f64>,
    /// The cells, in the order of the file.
    pub cells: Vec<PlannedCell>,
    /// What is left out, and why.
    pub left_out: Vec<LeftOut>,
    /// Which cells are set against which.
    pub ratios: Vec<Ratio>,
    /// All runs, in the order in which they are made.
    pub order: Vec<RunId>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCell {
    /// Its name: what records call `cell`.
    pub name: String,
    /// Timed runs (counted ones, where every run is counted).
    pub runs: u32,
    /// Its values by axis, under the leaf names of a record's `asked`, without `database` and `query`.
    pub axes: BTreeMap<String, Value>,
}

/// What a run is known by: no two records of a campaign have the same one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId {
    /// The cell's name.
    pub cell: String,
    /// The run's number among the cell's timed, or among its counted, runs.
    pub run: u32,
    /// Whether counters are on.
    pub counted: bool,
}

impl RunId {
    /// The run that a record is of.
    pub fn of(record: &Record) -> RunId {
        RunId { cell: record.cell.clone(), run: record.run, counted: record.counted }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} run {})", self.cell, if self.counted { "counted" } else { "timed" }, self.run)
    }
}

/// What the command line said instead of the file, kept so that `--resume` need not repeat it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptOverrides {
    /// `--runs`.
    pub runs: Option<u32>,
    /// `--scale`.
    pub scale: Option<f64>,
    /// `--db`, for people; bytes that are not UTF-8 are shown as U+FFFD.
    pub database: Option<String>,
    /// Made for a look only, with too little data and too few runs: report and figures say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// `--sample`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleInterval>,
}

/// One of several parts of a plan: whole rounds, dealt out in turn.
///
/// Rounds and not cells, because a quotient of two cells means something only where both were measured on one machine:
/// in a round every cell is, and each machine's runs are interleaved as those of the whole are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which one, from 1.
    pub number: u32,
    /// Of how many.
    pub count: u32,
}

impl Shard {
    /// Whether a run belongs to it.
    pub fn has(&self, run: &PlannedRun) -> bool {
        run.round % self.count == self.number - 1
    }
}

/// A text that is no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no shard; write K/N with K from 1 to N, such as 1/4")]
pub struct ShardError(String);

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let number = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u32>().ok()).flatten();
        let parts = text.split_once('/').and_then(|(k, n)| Some((number(k)?, number(n)?)));
        match parts {
            Some((number, count)) if (1..=count).contains(&number) => Ok(Shard { number, count }),
            _ => Err(ShardError(text.to_owned())),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// What must stay the same from the first run to the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MadeWith {
    /// Version of ioscope.
    pub ioscope_version: String,
    /// Digest of the program's file.
    pub binary_digest: String,
    /// The database.
    pub data: DataIdentity,
    /// The machine and its settings.
    pub environment: Environment,
}

/// By what a database is known again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataIdentity {
    /// Its path, for people.
    pub path: String,
    /// What made it, where that is known.
    pub manifest: Option<Manifest>,
    /// Size, in bytes.
    pub size_bytes: u64,
    /// When it was last written to, in nanoseconds since 1970.
    pub modified_unix_ns: i64,
    /// Counter of committed changes in its header (offset 24); `None` where there is no header.
    pub change_counter: Option<u32>,
}

/// A change that was accepted with `--accept-change`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// When, in seconds since 1970 (UTC).
    pub at_unix_s: u64,
    /// Lines of `runs.jsonl` that were there before it.
    pub records_before: usize,
    /// What changed, in words.
    pub what: Vec<String>,
}

/// A folder that was merged into another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its path as it was given, for people.
    pub folder: String,
    /// Its part of the plan.
    pub shard: Option<Shard>,
    /// What its runs were made with.
    pub made_with: MadeWith,
    /// Changes that were accepted there.
    pub changes: Vec<Change>,
    /// Records that came from it.
    pub records: usize,
}

/// The runs of a plan, or of one shard of it, in order.
pub fn runs_of(experiment: &Experiment, shard: Option<Shard>) -> Vec<PlannedRun> {
    let mut runs = schedule(&experiment.runs(), experiment.counters, experiment.seed);
    runs.retain(|run| shard.is_none_or(|shard| shard.has(run)));
    runs
}

impl Plan {
    /// The plan of an experiment; `definition` and `experiment` belong together.
    pub fn of(definition: &Definition, experiment: &Experiment) -> Plan {
        let cells = experiment.cells.iter().map(|cell| {
            let mut axes: BTreeMap<String, Value> = match serde_json::to_value(experiment.asked(cell)) {
                Ok(Value::Object(axes)) => axes.into_iter().collect(),
                _ => BTreeMap::new(),
            };
            axes.remove("database");
            axes.remove("query");
            // One level, as in a figure's or a table's names: no two have the same.
            if let Some(Value::Object(scan)) = axes.remove("scan") {
                axes.extend(scan);
            }
            PlannedCell { name: cell.name.clone(), runs: cell.runs, axes }
        });
        let protocol = &definition.protocol;
        Plan {
            data: definition.dataset.to_string(),
            workload: experiment.workload.clone(),
            counters: experiment.counters,
            sample: experiment.sample,
            warmup: protocol.warmup,
            seed: experiment.seed,
            timeout_s: protocol.timeout.0.map(|timeout| timeout.as_secs_f64()),
            cells: cells.collect(),
            left_out: definition.left_out.clone(),
            ratios: definition.ratios.clone(),
            order: runs_of(experiment, None).iter().map(|run| experiment.run_id(run)).collect(),
        }
    }

    /// Its digest.
    pub fn digest(&self) -> String {
        digest(&serde_json::to_vec(self).unwrap_or_default())
    }
}

impl Experiment {
    /// What a planned run is known by.
    pub fn run_id(&self, run: &PlannedRun) -> RunId {
        RunId { cell: self.cells[run.cell].name.clone(), run: run.run, counted: run.counted }
    }
}

impl fmt::Display for DatasetChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatasetChoice::Tpch { scale, page_size_bytes } => {
                write!(f, "TPC-H, scale {scale}, pages of {page_size_bytes} bytes")
            }
            // The name and not the path, which differs from machine to machine.
            DatasetChoice::File(path) => f.write_str(&path.file_name().unwrap_or_default().to_string_lossy()),
        }
    }
}

/// The digest of some bytes, with the name of its algorithm. It tells accidents apart, not forgeries.
pub fn digest(bytes: &[u8]) -> String {
    let mut hash = Fnv::new();
    hash.write(bytes);
    format!("fnv1a64:{}", hash.hex())
}
