//! One sitting at a campaign: begun or resumed, and the runs that are still to be made.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use super::campaign::{
    CAMPAIGN_SCHEMA, Campaign, Change, KeptOverrides, MadeWith, Plan, RunId, Shard, digest, runs_of,
};
use super::definition::Definition;
use super::folder::{Folder, FolderError, RunLog};
use super::record::Record;
use super::records::Problem;
use super::runner::{self, Executor, Finished, Observer};
use super::schedule::{Counters, PlannedRun, schedule};
use super::spec::{Experiment, RunSpec};

/// Why a sitting cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SittingError {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// There are records already, and nobody said that they are to be continued.
    #[error("{} holds {lines} records already", .folder.display())]
    HasRecords {
        /// The folder.
        folder: PathBuf,
        /// Lines of its records.
        lines: usize,
    },
    /// Something is not as it was for the runs that are there.
    #[error("{} cannot be resumed as it was begun; changed: {}", .folder.display(), .what.join("; "))]
    Changed {
        /// The folder.
        folder: PathBuf,
        /// What changed, in words.
        what: Vec<String>,
    },
    /// The folder is for another part of the plan.
    #[error("{} holds {}, not {}", .folder.display(), shard_name(.has), shard_name(.asked))]
    OtherShard {
        /// The folder.
        folder: PathBuf,
        /// Its part.
        has: Option<Shard>,
        /// The part asked for.
        asked: Option<Shard>,
    },
    /// No run is left for it.
    #[error("shard {shard} has no runs: the plan has {rounds} rounds, and a shard is whole rounds")]
    EmptyShard {
        /// The part asked for.
        shard: Shard,
        /// Rounds of the plan.
        rounds: u32,
    },
}

fn shard_name(shard: &Option<Shard>) -> String {
    shard.map_or("all of the plan".to_owned(), |shard| format!("shard {shard}"))
}

impl SittingError {
    /// What to do.
    pub fn help(&self) -> &'static str {
        match self {
            SittingError::Folder(error) => error.help(),
            SittingError::HasRecords { .. } => {
                "--resume makes the runs that are missing; --out DIR begins anew elsewhere"
            }
            SittingError::Changed { .. } => {
                "undo the change; or --accept-change goes on and records it; or --out DIR begins anew elsewhere"
            }
            SittingError::OtherShard { .. } => "give every shard a folder of its own with --out",
            SittingError::EmptyShard { .. } => "use fewer shards, or more --runs",
        }
    }
}

/// What is asked of a sitting.
#[derive(Debug)]
pub struct Request<'a> {
    /// The experiment's file, byte for byte.
    pub text: &'a str,
    /// What it defines.
    pub definition: &'a Definition,
    /// The same, on this machine's database.
    pub experiment: &'a Experiment,
    /// What the command line says instead of the file.
    pub overrides: KeptOverrides,
    /// The part of the plan that is asked for.
    pub shard: Option<Shard>,
    /// What the runs will be made with.
    pub made_with: MadeWith,
    /// Continue what is there.
    pub resume: bool,
    /// Continue even if something has changed.
    pub accept_change: bool,
    /// Make failed runs again.
    pub retry_failed: bool,
    /// Seconds since 1970 (UTC).
    pub now_unix_s: u64,
}

/// A sitting that is about to make its runs.
#[derive(Debug)]
pub struct Sitting {
    folder: Folder,
    log: RunLog,
    experiment: Experiment,
    /// Warm-up runs, made first.
    pub warmup: Vec<PlannedRun>,
    /// The runs to make, in order.
    pub todo: Vec<PlannedRun>,
    /// The records that were there.
    pub before: Vec<Record>,
    /// What is wrong with the other lines that were there.
    pub problems: Vec<Problem>,
    /// Changes that were accepted now.
    pub changes: Vec<String>,
    /// Runs of the plan, or of this part of it.
    pub planned: usize,
}

impl Sitting {
    /// Begins or resumes a campaign in a folder.
    pub fn open(mut folder: Folder, request: &Request) -> Result<Sitting, SittingError> {
        let experiment = request.experiment;
        let whole = runs_of(experiment, None);
        let planned = runs_of(experiment, request.shard);
        if let (Some(shard), true) = (request.shard, planned.is_empty()) {
            let rounds = whole.last().map_or(0, |run| run.round + 1);
            return Err(SittingError::EmptyShard { shard, rounds });
        }
        let fresh = request.campaign();
        let path = folder.path().to_owned();
        let (campaign, mut changes) = match folder.campaign()? {
            None => (fresh, Vec::new()),
            Some(_) if !request.resume => {
                let lines = super::folder::read_records(&path)?.lines;
                if lines > 0 {
                    return Err(SittingError::HasRecords { folder: path, lines });
                }
                (fresh, Vec::new())
            }
            Some(prior) => {
                if prior.shard != request.shard {
                    return Err(SittingError::OtherShard { folder: path, has: prior.shard, asked: request.shard });
                }
                let changes = changes(&prior, &fresh);
                if !changes.is_empty() && !request.accept_change {
                    return Err(SittingError::Changed { folder: path, what: changes });
                }
                let kept = Campaign {
                    changes: prior.changes,
                    sources: prior.sources,
                    created_unix_s: prior.created_unix_s,
                    ..fresh
                };
                (kept, changes)
            }
        };
        // The plan is there before the first record is.
        let mut campaign = campaign;
        folder.write_campaign(request.text, &campaign)?;
        let (log, read) = folder.open_runs()?;
        let mut log = log;
        let mut before = read.records;
        let failed = before.iter().filter(|record| record.error.is_some()).count();
        if request.retry_failed && failed > 0 {
            before = folder.set_failed_aside(before)?;
            // The file is another one now.
            log = folder.open_runs()?.0;
            changes.push(format!("{failed} failed runs are made again; their records are in failed.jsonl"));
        }
        if !changes.is_empty() {
            let change = Change { at_unix_s: request.now_unix_s, records_before: before.len(), what: changes.clone() };
            campaign.changes.push(change);
            folder.write_campaign(request.text, &campaign)?;
        }
        let todo = remaining(experiment, &planned, &before);
        let warmup = warmup(experiment, request.definition.protocol.warmup, &todo);
        Ok(Sitting {
            folder,
            log,
            experiment: experiment.clone(),
            warmup,
            todo,
            before,
            problems: read.problems,
            changes,
            planned: planned.len(),
        })
    }

    /// The folder's path.
    pub fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Makes the warm-up runs; their records are kept apart.
    pub fn warm_up(
        &mut self,
        executor: &mut dyn Executor,
        observer: &mut dyn Observer,
    ) -> Result<Finished, FolderError> {
        let mut log = self.folder.open_warmup()?;
        let mut keeper = Keeper { log: &mut log, next: observer };
        Ok(runner::run_these(&self.experiment, &self.warmup, executor, &mut keeper))
    }

    /// Makes the runs; each record is on the disk before the next run begins.
    pub fn run(&mut self, executor: &mut dyn Executor, observer: &mut dyn Observer) -> Finished {
        let mut keeper = Keeper { log: &mut self.log, next: observer };
        runner::run_these(&self.experiment, &self.todo, executor, &mut keeper)
    }
}

impl Request<'_> {
    fn campaign(&self) -> Campaign {
        let plan = Plan::of(self.definition, self.experiment);
        Campaign {
            schema: CAMPAIGN_SCHEMA,
            about: self.definition.about.clone(),
            experiment_digest: digest(self.text.as_bytes()),
            plan_digest: plan.digest(),
            plan,
            overrides: self.overrides.clone(),
            shard: self.shard,
            made_with: self.made_with.clone(),
            changes: Vec::new(),
            sources: Vec::new(),
            created_unix_s: self.now_unix_s,
        }
    }
}

/// What has changed between a campaign and the one that would be begun now.
fn changes(prior: &Campaign, now: &Campaign) -> Vec<String> {
    let mut changes = Vec::new();
    if prior.experiment_digest != now.experiment_digest {
        changes.push("the experiment's file".to_owned());
    }
    if prior.plan_digest != now.plan_digest {
        changes.extend(prior.plan.changes_to(&now.plan));
    }
    changes.extend(prior.made_with.changes_to(&now.made_with));
    changes
}

/// The planned runs of which there is no record, in order.
pub fn remaining(experiment: &Experiment, planned: &[PlannedRun], records: &[Record]) -> Vec<PlannedRun> {
    let made: BTreeSet<RunId> = records.iter().map(RunId::of).collect();
    planned.iter().filter(|run| !made.contains(&experiment.run_id(run))).copied().collect()
}

/// Rounds of the cells that still have runs to make. A machine that was left alone is no longer warm, so every sitting
/// makes them.
fn warmup(experiment: &Experiment, rounds: u32, todo: &[PlannedRun]) -> Vec<PlannedRun> {
    let runs: Vec<u32> = (0..experiment.cells.len())
        .map(|cell| if todo.iter().any(|run| run.cell == cell) { rounds } else { 0 })
        .collect();
    schedule(&runs, Counters::None, experiment.seed)
}

/// Keeps each record, then hands it on.
struct Keeper<'a> {
    log: &'a mut RunLog,
    next: &'a mut dyn Observer,
}

impl Observer for Keeper<'_> {
    fn starting(&mut self, number: usize, total: usize, spec: &RunSpec) {
        self.next.starting(number, total, spec);
    }

    fn finished(&mut self, record: &Record) -> io::Result<()> {
        self.log.append(record)?;
        self.next.finished(record)
    }
}

#[cfg(test)]
#[path = "sitting_tests.rs"]
mod tests;
