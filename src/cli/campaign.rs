//! A campaign, carried out: its folder locked, its data made, its runs made, and what came of it told.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::Signal;

use super::error::usage;
use super::exit;
use super::figures;
use crate::dataset::{self, Progress, Scale};
use crate::experiment::campaign::{KeptOverrides, MadeWith, Shard};
use crate::experiment::child::ChildExecutor;
use crate::experiment::definition::{DatasetChoice, Definition};
use crate::experiment::duration::shown;
use crate::experiment::estimate::Estimator;
use crate::experiment::file::{self, Loaded, Overrides};
use crate::experiment::folder::{self, Folder};
use crate::experiment::record::Record;
use crate::experiment::runner::{Finished, Observer};
use crate::experiment::schedule::PlannedRun;
use crate::experiment::sitting::{Request, Sitting};
use crate::experiment::spec::{RunSpec, Workload};
use crate::workload::btrees::Btrees;
use crate::workload::database;

/// Where an experiment comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of the user's.
    File(PathBuf),
    /// One of the study's own, in the program.
    BuiltIn {
        /// Its name.
        name: &'static str,
        /// Its text.
        text: &'static str,
    },
}

impl Source {
    /// Reads and resolves it, figures too: one that cannot be drawn is told before hours of measuring, not after.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn load(&self, overrides: &Overrides) -> anyhow::Result<Loaded> {
        let path = self.path();
        let loaded = match self {
            Source::File(path) => file::load(path, overrides)?,
            Source::BuiltIn { text, .. } => {
                Loaded { text: (*text).to_owned(), definition: file::parse(text, &path, overrides)? }
            }
        };
        figures::check(&loaded.definition.about.figures, &path)?;
        Ok(loaded)
    }

    /// What it is called before it is read.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Source::File(path) => path.to_string_lossy(),
            Source::BuiltIn { name, .. } => Cow::Borrowed(name),
        }
    }

    /// What errors call it.
    fn path(&self) -> PathBuf {
        match self {
            Source::File(path) => path.clone(),
            Source::BuiltIn { name, .. } => Path::new("(built in)").join(format!("{name}.toml")),
        }
    }
}

/// A campaign that somebody wants.
#[derive(Debug)]
pub struct Wanted {
    /// The experiment.
    pub source: Source,
    /// What is said instead of what it says.
    pub asked: Overrides,
    /// Folder of the results.
    pub out: PathBuf,
    /// Which part of it.
    pub shard: Option<Shard>,
    /// Make what is missing.
    pub resume: bool,
    /// Go on where something has changed.
    pub accept_change: bool,
    /// Make failed runs again.
    pub retry_failed: bool,
    /// For a look only: its report and figures say so.
    pub quick: bool,
    /// What the user adds to, or does with, his command in order to go on.
    pub to_resume: &'static str,
    /// The same in order to make failed runs again.
    pub to_retry: &'static str,
}

/// What came of a campaign.
#[derive(Debug)]
pub struct Outcome {
    /// Exit code.
    pub code: i32,
    /// The signal that ended it, if one did.
    pub interrupted: Option<i32>,
    /// What there is, for people; empty where stderr has said it.
    pub text: String,
}

/// Carries it out, with progress on stderr.
///
/// # Errors
///
/// It could not be begun or gone on with, or a record could not be kept.
pub fn carry_out(wanted: &Wanted) -> anyhow::Result<Outcome> {
    // What the command line said when the campaign was begun holds for all of it.
    let prior = if wanted.resume { folder::read_campaign(&wanted.out)? } else { None };
    let overrides = match &prior {
        Some(prior) => with_kept(&wanted.asked, &prior.overrides)?,
        None => wanted.asked.clone(),
    };
    let Loaded { text, definition } = wanted.source.load(&overrides)?;
    let shard = wanted.shard.or(prior.as_ref().and_then(|prior| prior.shard));
    check_cpus(&definition)?;
    let database = database_path(&definition.dataset);
    if let DatasetChoice::File(path) = &definition.dataset {
        database::check(path)?;
    }
    // Locked before the data set is made, which takes its time.
    let folder = Folder::lock(&wanted.out)?;
    if let DatasetChoice::Tpch { scale, page_size_bytes } = definition.dataset {
        dataset::ensure(scale, page_size_bytes, &database, Progress::Bar)?;
        database::check(&database)?;
    }
    let made_with = MadeWith::now(&database)
        .with_context(|| format!("cannot read this program and {} to know them again", database.display()))?;
    let database_bytes = made_with.data.size_bytes;
    let experiment = definition.experiment(database);
    let request = Request {
        text: &text,
        definition: &definition,
        experiment: &experiment,
        overrides: KeptOverrides { quick: wanted.quick, ..kept(&overrides) },
        shard,
        made_with,
        resume: wanted.resume,
        accept_change: wanted.accept_change,
        retry_failed: wanted.retry_failed,
        now_unix_s: now_unix_s(),
    };
    let mut sitting = Sitting::open(folder, &request)?;
    tell_beginning(&sitting);
    if !sitting.todo.is_empty() && matches!(experiment.workload, Workload::Query(_)) {
        keep_btrees(&experiment.database, sitting.path());
    }
    let mut estimator = Estimator::new(&experiment, database_bytes);
    estimator.see_records(&experiment, &sitting.before, database_bytes);
    make_runs(&mut sitting, &definition, estimator, wanted)
}

/// Where the data of an experiment lies, or will lie.
pub fn database_path(dataset: &DatasetChoice) -> PathBuf {
    match dataset {
        DatasetChoice::Tpch { scale, page_size_bytes } => dataset::default_path(*scale, *page_size_bytes),
        DatasetChoice::File(path) => path.clone(),
    }
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn kept(overrides: &Overrides) -> KeptOverrides {
    KeptOverrides {
        runs: overrides.runs,
        scale: overrides.scale.map(Scale::get),
        database: overrides.database.as_ref().map(|path| path.to_string_lossy().into_owned()),
        sample: overrides.sample,
        quick: false,
    }
}

/// What is asked for now, and for the rest what was asked for when the campaign was begun.
fn with_kept(asked: &Overrides, kept: &KeptOverrides) -> anyhow::Result<Overrides> {
    let mut overrides = asked.clone();
    overrides.runs = overrides.runs.or(kept.runs);
    overrides.sample = overrides.sample.or(kept.sample);
    if overrides.scale.is_none() && overrides.database.is_none() {
        overrides.scale = kept.scale.and_then(|scale| Scale::new(scale).ok());
        overrides.database = match &kept.database {
            Some(path) if path.contains('\u{fffd}') => {
                return Err(usage(format!("the campaign asks {path}, whose name is no text"), "repeat --db FILE"));
            }
            path => path.as_ref().map(PathBuf::from),
        };
    }
    Ok(overrides)
}

fn check_cpus(definition: &Definition) -> anyhow::Result<()> {
    for cpus in file::cpus_of(definition) {
        cpus.check_allowed().map_err(|e| usage(e.to_string(), "choose among the CPUs that this process may run on"))?;
    }
    Ok(())
}

/// Says something on stderr.
pub fn tell(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn tell_beginning(sitting: &Sitting) {
    let folder = sitting.path().display();
    for problem in &sitting.problems {
        tell(format_args!("{folder}/{}: {problem}", folder::RUNS_FILE));
    }
    for change in &sitting.changes {
        tell(format_args!("accepted: {change}"));
    }
    let (todo, planned) = (sitting.todo.len(), sitting.planned);
    if todo < planned {
        tell(format_args!("{folder}: {} of {planned} runs are there, {todo} are to be made", planned - todo));
    }
}

/// Keeps beside the records whose page is whose, so that a report can name what was read in vain. Before any run: it
/// reads the whole database.
fn keep_btrees(database: &Path, folder: &Path) {
    if let Err(error) = Btrees::ensure(database, folder) {
        tell(format_args!(
            "warning: the report will not name whose pages were read in vain: {}",
            crate::experiment::error_line(&error)
        ));
    }
}

fn make_runs(
    sitting: &mut Sitting,
    definition: &Definition,
    estimator: Estimator,
    wanted: &Wanted,
) -> anyhow::Result<Outcome> {
    if sitting.todo.is_empty() {
        return conclude(sitting, None, wanted);
    }
    let mut executor = ChildExecutor::new(definition.protocol.timeout.0).context("cannot watch for signals")?;
    let warmup = sitting.warmup.clone();
    let mut show = Show::new(&warmup, warmup.len(), estimator);
    if !warmup.is_empty() {
        tell(format_args!("{} warm-up runs first", warmup.len()));
        let finished = sitting.warm_up(&mut executor, &mut show)?;
        if finished.interrupted.is_some() || finished.not_kept.is_some() {
            show.bar.finish_and_clear();
            return conclude(sitting, Some(finished), wanted);
        }
    }
    let todo = sitting.todo.clone();
    let mut show = show.with_runs(&todo, sitting.planned);
    let finished = sitting.run(&mut executor, &mut show);
    show.bar.finish_and_clear();
    conclude(sitting, Some(finished), wanted)
}

/// Says what came of it.
fn conclude(sitting: &Sitting, finished: Option<Finished>, wanted: &Wanted) -> anyhow::Result<Outcome> {
    let folder = sitting.path().display();
    let made: &[Record] = finished.as_ref().map_or(&[], |finished| &finished.records);
    let not_kept = usize::from(finished.as_ref().is_some_and(|f| f.not_kept.is_some()));
    let there = sitting.planned - sitting.todo.len() + made.len() - not_kept;
    let done = format!("{folder}: {there} of {} runs are recorded", sitting.planned);
    let Finished { interrupted, not_kept, records, .. } =
        finished.unwrap_or(Finished { records: Vec::new(), planned: 0, interrupted: None, not_kept: None });
    if let Some(error) = not_kept {
        let last = records.last().map_or_else(String::new, |record| format!(" of {}", record.cell));
        tell(format_args!("{done}; make room, then {} makes the others", wanted.to_resume));
        return Err(anyhow::Error::new(error).context(format!("{folder}: the record{last} could not be written")));
    }
    if let Some(signal) = interrupted {
        let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
        tell(format_args!("interrupted by {name}: {done}; {} makes the others", wanted.to_resume));
        let code = exit::interrupted(signal);
        return Ok(Outcome { code, interrupted: Some(signal), text: String::new() });
    }
    let failed: Vec<&Record> = sitting.before.iter().chain(&records).filter(|record| record.error.is_some()).collect();
    let mut text = done;
    if failed.is_empty() {
        text.push('\n');
    } else {
        text.push_str(&format!(", {} of them failed:\n", failed.len()));
        for record in &failed {
            let kind = kind(record.counted);
            let error = record.error.as_deref().unwrap_or_default();
            text.push_str(&format!("  {} ({kind} run {}): {error}\n", record.cell, record.run));
        }
        text.push_str(&format!("{} makes the failed ones again\n", wanted.to_retry));
    }
    let code = if failed.is_empty() { exit::OK } else { exit::FAILED };
    Ok(Outcome { code, interrupted: None, text })
}

fn kind(counted: bool) -> &'static str {
    if counted { "counted" } else { "timed" }
}

/// Shows how the runs go on: a bar on a terminal, elsewhere a line for each run.
struct Show {
    bar: ProgressBar,
    on_terminal: bool,
    todo: Vec<PlannedRun>,
    /// Runs of the plan that were there before.
    before: usize,
    planned: usize,
    at: usize,
    began: Instant,
    estimator: Estimator,
}

impl Show {
    fn new(todo: &[PlannedRun], planned: usize, estimator: Estimator) -> Show {
        let on_terminal = io::stderr().is_terminal();
        // Drawn only when a run starts or ends: a ticking bar would take CPU from the runs.
        let bar = if on_terminal { ProgressBar::new(planned as u64) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} {bar:20} {wide_msg}") {
            bar.set_style(style);
        }
        let before = planned.saturating_sub(todo.len());
        Show { bar, on_terminal, todo: todo.to_vec(), before, planned, at: 0, began: Instant::now(), estimator }
    }

    /// The same, for other runs: what has been seen of cells is kept.
    fn with_runs(self, todo: &[PlannedRun], planned: usize) -> Show {
        self.bar.set_length(planned as u64);
        Show { todo: todo.to_vec(), before: planned.saturating_sub(todo.len()), planned, at: 0, ..self }
    }

    fn left(&self, from: usize) -> String {
        shown(self.estimator.of_runs(self.todo.get(from..).unwrap_or_default()))
    }
}

impl Observer for Show {
    fn starting(&mut self, number: usize, _: usize, spec: &RunSpec) {
        self.at = number;
        self.began = Instant::now();
        self.bar.set_position((self.before + number) as u64);
        let (kind, left) = (kind(spec.counted), self.left(number));
        self.bar.set_message(format!("{left} left: {} ({kind} run {})", spec.cell, spec.run));
    }

    fn finished(&mut self, record: &Record) -> io::Result<()> {
        if let Some(run) = self.todo.get(self.at) {
            self.estimator.see(run.cell, self.began.elapsed());
        }
        let number = self.before + self.at + 1;
        let outcome = match (&record.error, record.times.wall_s) {
            (Some(error), _) => format!("FAILED: {error}"),
            (None, Some(wall_s)) => format!("{wall_s:.3} s"),
            (None, None) => "done".to_owned(),
        };
        let what = format!("{} ({} run {}): {outcome}", record.cell, kind(record.counted), record.run);
        if !self.on_terminal {
            tell(format_args!("{number}/{} {what}; {} left", self.planned, self.left(self.at + 1)));
        } else if record.error.is_some() {
            self.bar.println(what);
        }
        Ok(())
    }
}
