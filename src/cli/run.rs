//! `ioscope run`: the experiment of a file, its records kept in a folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::Context;
use clap::Args;
use serde_json::Value;

use super::campaign::{self, Source, Wanted, database_path};
use super::error::usage;
use super::exit;
use crate::dataset::Scale;
use crate::experiment::campaign::{Shard, runs_of};
use crate::experiment::definition::{DatasetChoice, Definition};
use crate::experiment::duration::{SampleInterval, shown};
use crate::experiment::estimate::{Basis, Estimator};
use crate::experiment::file::Overrides;
use crate::experiment::folder;
use crate::experiment::plan::{self, parse_number};
use crate::experiment::sitting::remaining;

const INSTEAD: &str = "Instead of what the file says";
const SITTINGS: &str = "Sittings";

const NOTES: &str = "\
Each run is a process of its own, and its record is on the disk before the next run begins: after Ctrl-C, a crash or a \
full disk, --resume makes the runs that are missing.";

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
    let asked = Overrides {
        runs: args.runs,
        scale: args.scale,
        database: args.db.clone(),
        sample: args.sample,
        ..Overrides::default()
    };
    if asked.database.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
        return Err(usage("--db is empty", "give the path of a database"));
    }
    let source = Source::File(args.file.clone());
    let loaded = source.load(&asked)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&loaded.definition, args.shard));
    if args.list {
        return list(args, &loaded.definition, &out);
    }
    let wanted = Wanted {
        source,
        asked,
        out,
        shard: args.shard,
        resume: args.resume,
        accept_change: args.accept_change,
        retry_failed: args.retry_failed,
        quick: false,
        to_resume: "--resume",
        to_retry: "--resume --retry-failed",
    };
    let outcome = campaign::carry_out(&wanted)?;
    print(&outcome.text)?;
    Ok(outcome.code)
}

fn default_out(definition: &Definition, shard: Option<Shard>) -> PathBuf {
    let name = &definition.about.name;
    let name = shard.map_or_else(|| name.clone(), |shard| format!("{name}-{}of{}", shard.number, shard.count));
    Path::new("results").join(name)
}

/// Writes to stdout; a closed pipe is no news.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(()),
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
    let planned = runs_of(&experiment, args.shard);
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
