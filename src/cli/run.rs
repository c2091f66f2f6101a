//! `ioscope run`: the experiment of a file, its records kept in a folder.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::error::usage;
use super::exit;
use super::figures;
use crate::dataset::{self, Progress, Scale};
use crate::experiment::campaign::{self, KeptOverrides, MadeWith, Shard};
use crate::experiment::child::ChildExecutor;
use crate::experiment::definition::{DatasetChoice, Definition};
use crate::experiment::duration::{SampleInterval, shown};
use crate::experiment::estimate::{Basis, Estimator};
use crate::experiment::file::{self, Loaded, Overrides};
use crate::experiment::folder::{self, Folder};
use crate::experiment::plan::{self, parse_number};
use crate::experiment::record::Record;
use crate::experiment::runner::{Finished, Observer};
use crate::experiment::schedule::PlannedRun;
use crate::experiment::sitting::{Request, Sitting, remaining};
use crate::experiment::spec::{RunSpec, Workload};
use crate::workload::btrees::Btrees;
use crate::workload::database;

const INSTEAD: &str = "Instead of what the file says";
const SITTINGS: &str = "Sittings";

const NOTES: &str = "\
Each run is a process of its own, and its record is on the disk before the next run begins: after Ctrl-C,
a crash or a full disk, --resume makes the runs that are missing.";

static AFTER_HELP: LazyLock<String> = LazyLock::new(|| format!("{NOTES}\n\n{}", exit::HELP));

/// Run the experiment of a file, and keep its records in a folder
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP.as_str())]
pub struct RunArgs {
    /// The experiment's file (TOML); experiments/ has some
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Folder of the results [default: results/NAME, with -KofN for a shard]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Show cells, exclusions, number of runs and expected duration; run nothing
    #[arg(long)]
    list: bool,

    /// Timed runs of each cell; a matrix with fewer of its own keeps them
    #[arg(long, value_name = "N", help_heading = INSTEAD, allow_hyphen_values = true, value_parser = runs)]
    runs: Option<u32>,
    /// Scale factor of the data set
    #[arg(long, value_name = "SF", help_heading = INSTEAD, conflicts_with = "db", allow_hyphen_values = true)]
    scale: Option<Scale>,
    /// Another database; opened read-only
    #[arg(long, value_name = "FILE", help_heading = INSTEAD)]
    db: Option<PathBuf>,
    /// Read the device's and the CPU's counters this often while a counted run is under way: 50ms
    #[arg(long, value_name = "INTERVAL", help_heading = INSTEAD)]
    sample: Option<SampleInterval>,

    /// Make the runs that are missing in the folder; begin if there are none
    #[arg(long, help_heading = SITTINGS, conflicts_with = "list")]
    resume: bool,
    /// Resume even if program, data, machine or file have changed, and record that
    #[arg(long, help_heading = SITTINGS, requires = "resume")]
    accept_change: bool,
    /// Make failed runs again
    #[arg(long, help_heading = SITTINGS, requires = "resume")]
    retry_failed: bool,
    /// Make part K of N only: whole rounds of all cells; see `ioscope merge`
    #[arg(long, value_name = "K/N", help_heading = SITTINGS)]
    shard: Option<Shard>,
}

fn runs(text: &str) -> Result<u32, plan::AxisError> {
    parse_number("runs", text, 1, 10_000)
}

/// Runs the experiment and answers the exit code.
pub fn run(args: &RunArgs) -> anyhow::Result<i32> {
    let asked = Overrides { runs: args.runs, scale: args.scale, database: args.db.clone(), sample: args.sample };
    if asked.database.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
        return Err(usage("--db is empty", "give the path of a database"));
    }
    let loaded = file::load(&args.file, &asked)?;
    // A figure that cannot be drawn is told before hours of measuring, not after.
    figures::check(&loaded.definition.about.figures, &args.file)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&loaded.definition, args.shard));
    if args.list {
        return list(args, &loaded.definition, &out);
    }
    // What the command line said when the campaign was begun holds for all of it.
    let prior = if args.resume { folder::read_campaign(&out)? } else { None };
    let (overrides, loaded) = match &prior {
        Some(prior) => {
            let overrides = with_kept(&asked, &prior.overrides)?;
            let loaded = file::load(&args.file, &overrides)?;
            (overrides, loaded)
        }
        None => (asked, loaded),
    };
    let shard = args.shard.or(prior.as_ref().and_then(|prior| prior.shard));
    let Loaded { text, definition } = loaded;
    check_cpus(&definition)?;
    let database = database_path(&definition.dataset);
    if let DatasetChoice::File(path) = &definition.dataset {
        database::check(path)?;
    }
    // Locked before the data set is made, which takes its time.
    let folder = Folder::lock(&out)?;
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
        overrides: kept(&overrides),
        shard,
        made_with,
        resume: args.resume,
        accept_change: args.accept_change,
        retry_failed: args.retry_failed,
        now_unix_s: now_unix_s(),
    };
    let mut sitting = Sitting::open(folder, &request)?;
    tell_beginning(&sitting);
    if !sitting.todo.is_empty() && matches!(experiment.workload, Workload::Query(_)) {
        keep_btrees(&experiment.database, sitting.path());
    }
    let mut estimator = Estimator::new(&experiment, database_bytes);
    estimator.see_records(&experiment, &sitting.before, database_bytes);
    make_runs(&mut sitting, &definition, estimator)
}

fn default_out(definition: &Definition, shard: Option<Shard>) -> PathBuf {
    let name = &definition.about.name;
    let name = shard.map_or_else(|| name.clone(), |shard| format!("{name}-{}of{}", shard.number, shard.count));
    Path::new("results").join(name)
}

fn database_path(dataset: &DatasetChoice) -> PathBuf {
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

fn tell(text: std::fmt::Arguments<'_>) {
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

fn make_runs(sitting: &mut Sitting, definition: &Definition, estimator: Estimator) -> anyhow::Result<i32> {
    if sitting.todo.is_empty() {
        return conclude(sitting, None);
    }
    let mut executor = ChildExecutor::new(definition.protocol.timeout.0).context("cannot watch for signals")?;
    let warmup = sitting.warmup.clone();
    let mut show = Show::new(&warmup, warmup.len(), estimator);
    if !warmup.is_empty() {
        tell(format_args!("{} warm-up runs first", warmup.len()));
        let finished = sitting.warm_up(&mut executor, &mut show)?;
        if finished.interrupted.is_some() || finished.not_kept.is_some() {
            show.bar.finish_and_clear();
            return conclude(sitting, Some(finished));
        }
    }
    let todo = sitting.todo.clone();
    let mut show = show.with_runs(&todo, sitting.planned);
    let finished = sitting.run(&mut executor, &mut show);
    show.bar.finish_and_clear();
    conclude(sitting, Some(finished))
}

/// Says what came of it, and answers the exit code.
fn conclude(sitting: &Sitting, finished: Option<Finished>) -> anyhow::Result<i32> {
    let folder = sitting.path().display();
    let made: &[Record] = finished.as_ref().map_or(&[], |finished| &finished.records);
    let not_kept = usize::from(finished.as_ref().is_some_and(|f| f.not_kept.is_some()));
    let there = sitting.planned - sitting.todo.len() + made.len() - not_kept;
    let done = format!("{folder}: {there} of {} runs are recorded", sitting.planned);
    let Finished { interrupted, not_kept, records, .. } =
        finished.unwrap_or(Finished { records: Vec::new(), planned: 0, interrupted: None, not_kept: None });
    if let Some(error) = not_kept {
        let last = records.last().map_or_else(String::new, |record| format!(" of {}", record.cell));
        tell(format_args!("{done}; make room, then --resume makes the others"));
        return Err(anyhow::Error::new(error).context(format!("{folder}: the record{last} could not be written")));
    }
    if let Some(signal) = interrupted {
        let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
        tell(format_args!("interrupted by {name}: {done}; --resume makes the others"));
        return Ok(exit::interrupted(signal));
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
        text.push_str("--resume --retry-failed makes the failed ones again\n");
    }
    print(&text)?;
    Ok(if failed.is_empty() { exit::OK } else { exit::FAILED })
}

fn kind(counted: bool) -> &'static str {
    if counted { "counted" } else { "timed" }
}

/// Writes to stdout; a closed pipe is no news.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(()),
    }
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

/// Shows the plan.
fn list(args: &RunArgs, definition: &Definition, out: &Path) -> anyhow::Result<i32> {
    let database = database_path(&definition.dataset);
    let database_bytes = match (std::fs::metadata(&database), &definition.dataset) {
        (Ok(metadata), _) => metadata.len(),
        (Err(_), DatasetChoice::Tpch { scale, .. }) => (scale.get() * 1.252e9) as u64,
        (Err(error), DatasetChoice::File(path)) => {
            return Err(usage(format!("--db {}: {error}", path.display()), "give the path of a database"));
        }
    };
    let experiment = definition.experiment(database);
    let planned = campaign::runs_of(&experiment, args.shard);
    let records = folder::read_records(out)?.records;
    let mut estimator = Estimator::new(&experiment, database_bytes);
    estimator.see_records(&experiment, &records, database_bytes);
    let left = remaining(&experiment, &planned, &records);

    let mut text = format!("{}\n\n{}\n\n", definition.about.title, definition.about.question);
    text.push_str(&format!(
        "Data:     {}\nWorkload: {}\nProtocol: counters {}, seed {}, cache {}\n\n",
        definition.dataset,
        definition.workload.name(),
        definition.protocol.counters,
        definition.protocol.seed,
        definition.protocol.cache
    ));
    let width = experiment.cells.iter().map(|cell| cell.name.len()).max().unwrap_or(0);
    let mut of_model = 0;
    text.push_str(&format!("{:width$}  runs  s a run\n", "Cell"));
    for (number, cell) in experiment.cells.iter().enumerate() {
        let (each, basis) = estimator.of_cell(number);
        of_model += usize::from(basis == Basis::Model);
        let runs = planned.iter().filter(|run| run.cell == number).count();
        let mark = if basis == Basis::Model { "~" } else { " " };
        text.push_str(&format!("{:width$}  {runs:>4}  {mark}{:>6.1}\n", cell.name, each.as_secs_f64()));
    }
    text.push_str(&tail(definition));
    let cells = experiment.cells.len();
    text.push_str(&format!(
        "\n{} cells, {} runs{}, about {}",
        cells,
        planned.len(),
        args.shard.map_or_else(String::new, |shard| format!(" in shard {shard}")),
        shown(estimator.of_runs(&planned))
    ));
    if left.len() < planned.len() {
        text.push_str(&format!("; {} are still to be made, about {}", left.len(), shown(estimator.of_runs(&left))));
    }
    text.push_str(&match of_model {
        0 => format!("\nDurations are those of the records in {}.\n", out.display()),
        n if n == cells => "\nDurations (~) are those of a rough model of one scan of the file.\n".to_owned(),
        n => format!("\nDurations are those of the records in {}; of {n} cells (~) a rough model's.\n", out.display()),
    });
    print(&text)?;
    Ok(exit::OK)
}

/// What is left out, and what is set against what.
fn tail(definition: &Definition) -> String {
    let mut text = String::new();
    if !definition.left_out.is_empty() {
        text.push_str("\nLeft out:\n");
        for left_out in &definition.left_out {
            text.push_str(&format!("  {}: {}\n", left_out.what, left_out.why));
        }
    }
    let figures: Vec<&str> =
        definition.about.figures.iter().filter_map(|figure| figure.get("name").and_then(Value::as_str)).collect();
    if !figures.is_empty() {
        text.push_str(&format!("\nFigures: {}\n", figures.join(", ")));
    }
    for ratio in &definition.ratios {
        text.push_str(&format!("\nRatio: {}\n", ratio.title));
        for pair in &ratio.pairs {
            text.push_str(&format!("  {} / {}\n", pair.cell, pair.baseline));
        }
    }
    text
}
