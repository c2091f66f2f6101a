//! `ioscope query`: one SQL file over a matrix of engines and ways to read.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::Args;

use super::error::usage;
use super::{exit, one_shot};
use crate::dataset::{self, Progress, Scale};
use crate::engine::{EngineBackend, EngineKind};
use crate::experiment::cpus::CpuList;
use crate::experiment::duration::{SampleInterval, Timeout};
use crate::experiment::plan::{
    self, Cell, Cells, Matrix, parse_gap, parse_in_flight, parse_number, parse_value, parse_window,
};
use crate::experiment::record::CacheState;
use crate::experiment::schedule::Counters;
use crate::experiment::spec::{Experiment, PlanCell, Point, Workload};
use crate::page::config::{Delivery, Direct, PolicyKind, PoolKind, Submit};
use crate::workload::database;
use crate::workload::query::Query;

const ASKED: &str = "What is asked";
const CELLS: &str = "Cells: every flag takes a list a,b,c, and each combination is a cell";
const RUNS: &str = "Runs";
const OUTPUT: &str = "Output";

const NOTES: &str = "\
Each run is a process of its own that starts with a cold (or warm) page cache, proven by residency.
Runs are interleaved in random order. The table goes to stdout, all else to stderr.";

static AFTER_HELP: LazyLock<String> = LazyLock::new(|| format!("{NOTES}\n\n{}", exit::HELP));

/// Run an SQL query over each combination of engine and way to read, and show what each layer did
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP.as_str())]
pub struct QueryArgs {
    /// File with one SQL statement
    #[arg(value_name = "SQL", help_heading = ASKED)]
    sql: PathBuf,
    /// SQLite database to ask; opened read-only [default: data/tpch-sf{SF}.db, made when missing]
    #[arg(long, value_name = "FILE", help_heading = ASKED)]
    db: Option<PathBuf>,
    /// Scale factor of the TPC-H data that is made
    #[arg(long, value_name = "SF", default_value = "1", help_heading = ASKED, conflicts_with = "db", allow_hyphen_values = true)]
    scale: Scale,
    /// Page size of the TPC-H data that is made, in bytes
    #[arg(long, value_name = "N", default_value = "4096", help_heading = ASKED, conflicts_with = "db", value_parser = page_size)]
    page_size: u32,

    /// sqlite, turso
    #[arg(long, value_name = "LIST", default_value = "turso,sqlite", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<EngineKind>)]
    engine: Vec<EngineKind>,
    /// pread, uring, uring-sqpoll: ioscope's reader; builtin, builtin-uring: the engine's own I/O
    #[arg(long, value_name = "LIST", default_value = "uring", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<EngineBackend>)]
    backend: Vec<EngineBackend>,
    /// disabled: through the page cache; required: O_DIRECT, proven, or the run fails
    #[arg(long, value_name = "LIST", default_value = "disabled", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<Direct>)]
    direct: Vec<Direct>,
    /// cold, warm: state of the page cache at the start
    #[arg(long, value_name = "LIST", default_value = "cold", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<CacheState>)]
    cache: Vec<CacheState>,
    /// Pages fetched at once, 0 to 4096; 0 is no readahead
    #[arg(long, value_name = "LIST", default_value = "32", help_heading = CELLS, value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_window)]
    window: Vec<u32>,
    /// per-page: one SQE a page; coalesced: one SQE a contiguous run
    #[arg(long, value_name = "LIST", default_value = "per-page", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<Submit>)]
    submit: Vec<Submit>,
    /// Batches in flight while one is consumed, 1 to 16
    #[arg(long, value_name = "LIST", default_value = "4", help_heading = CELLS, value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_in_flight)]
    in_flight: Vec<u32>,
    /// Unwanted pages that a run may read through, 0 to 32
    #[arg(long, value_name = "LIST", default_value = "8", help_heading = CELLS, value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_gap)]
    gap: Vec<u32>,
    /// normal, huge: memory behind the reader's frames
    #[arg(long, value_name = "LIST", default_value = "normal", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<PoolKind>)]
    pool: Vec<PoolKind>,
    /// copy: into the engine's buffer; zero-copy: lent where it lies (SQLite, pages read ahead)
    #[arg(long, value_name = "LIST", default_value = "copy", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<Delivery>)]
    delivery: Vec<Delivery>,
    /// sequential: which pages are read ahead
    #[arg(long, value_name = "LIST", default_value = "sequential", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<PolicyKind>)]
    policy: Vec<PolicyKind>,
    /// Run these cells instead, with the flags above for what is not said: 'backend=builtin cache=warm' (repeatable)
    #[arg(long, value_name = "CELL", help_heading = CELLS)]
    cell: Vec<String>,

    /// Timed runs of each cell
    #[arg(long, value_name = "N", default_value = "1", help_heading = RUNS, allow_hyphen_values = true, value_parser = runs)]
    runs: u32,
    /// none: timed runs only; all: counters in every run; both: timed runs and one counted run of each cell; paired: every
    /// run once timed and once counted, to see what counting costs
    #[arg(long, value_name = "WHICH", default_value = "both", help_heading = RUNS, value_parser = parse_value::<Counters>)]
    counters: Counters,
    /// Read the device's and the CPU's counters this often while a run is under way, into its record (--json): 50ms; in
    /// counted runs only, where there are timed ones beside
    #[arg(long, value_name = "INTERVAL", help_heading = RUNS, value_parser = str::parse::<SampleInterval>)]
    sample: Option<SampleInterval>,
    /// CPUs to confine each run to, as taskset -c writes them; the SQPOLL thread is bound to the last one
    #[arg(long, value_name = "LIST", help_heading = RUNS)]
    cpus: Option<CpuList>,
    /// How long an SQPOLL thread spins without work before it sleeps
    #[arg(long, value_name = "MS", default_value = "1000", help_heading = RUNS, allow_hyphen_values = true, value_parser = sqpoll_idle_ms)]
    sqpoll_idle_ms: u32,
    /// Seed of the order of runs, and of the bootstrap
    #[arg(long, value_name = "N", default_value = "1", help_heading = RUNS)]
    seed: u64,
    /// End a run that takes longer, and go on: 90, 500ms, 10m, 2h, none
    #[arg(long, value_name = "DURATION", default_value = "1h", help_heading = RUNS, value_parser = str::parse::<Timeout>)]
    timeout: Timeout,

    /// Append one record a run (JSON Lines); '-' is stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    json: Option<PathBuf>,
    /// Name of the experiment in its records
    #[arg(long, value_name = "NAME", default_value = "query", help_heading = OUTPUT)]
    name: String,
}

fn runs(text: &str) -> Result<u32, plan::AxisError> {
    parse_number("runs", text, 1, 10_000)
}

fn sqpoll_idle_ms(text: &str) -> Result<u32, plan::AxisError> {
    parse_number("sqpoll-idle-ms", text, 1, 3_600_000)
}

fn page_size(text: &str) -> Result<u32, String> {
    let size = text.parse::<u32>().ok().filter(|n| n.is_power_of_two() && (512..=65536).contains(n));
    size.ok_or_else(|| format!("page size '{text}' is none of SQLite's; a power of two from 512 to 65536"))
}

/// Runs the query and answers the exit code.
pub fn run(args: &QueryArgs) -> anyhow::Result<i32> {
    let query = Query::load(&args.sql)?;
    let database = args.db.clone().unwrap_or_else(|| dataset::default_path(args.scale, args.page_size));
    let cells = cells(args, &database)?;
    if let Some(cpus) = &args.cpus {
        cpus.check_allowed().map_err(|e| usage(e.to_string(), "choose among the CPUs that this process may run on"))?;
    }
    if args.db.is_some() {
        database::check(&database)?;
    }
    let json = one_shot::open_json(args.json.as_deref())?;
    if args.db.is_none() {
        dataset::ensure(args.scale, args.page_size, &database, Progress::Bar)?;
        database::check(&database)?;
    }
    let experiment = Experiment {
        name: args.name.clone(),
        database,
        workload: Workload::Query(query),
        cells: cells
            .into_iter()
            .map(|cell| PlanCell::new(Point::Query(cell), args.runs, args.cpus.clone(), args.sqpoll_idle_ms))
            .collect(),
        counters: args.counters,
        sample: args.sample,
        seed: args.seed,
    };
    one_shot::measure(&experiment, args.timeout, args.json.as_deref(), json)
}

/// The cells asked for; what is left out of a product is told on stderr.
fn cells(args: &QueryArgs, database: &Path) -> anyhow::Result<Vec<Cell>> {
    let base = Matrix {
        engine: args.engine.clone(),
        backend: args.backend.clone(),
        direct: args.direct.clone(),
        cache: args.cache.clone(),
        policy: args.policy.clone(),
        window: args.window.clone(),
        submit: args.submit.clone(),
        in_flight: args.in_flight.clone(),
        gap: args.gap.clone(),
        pool: args.pool.clone(),
        delivery: args.delivery.clone(),
    };
    let mut matrices = Vec::new();
    for text in &args.cell {
        let matrix = base.with(text);
        let help = format!("write AXIS=VALUE,... with spaces between axes; the axes are {}", plan::AXES);
        matrices.push(matrix.map_err(|e| usage(format!("--cell '{text}': {e}"), help))?);
    }
    if matrices.is_empty() {
        matrices.push(base);
    }
    let is_utf8 = std::str::from_utf8(database.as_os_str().as_bytes()).is_ok();
    let Cells { cells, left_out } = plan::expand(&matrices, is_utf8);
    if cells.is_empty() {
        let (what, why): (Vec<&str>, Vec<&str>) = left_out.iter().map(|l| (l.what.as_str(), l.why.as_str())).unzip();
        return Err(usage(format!("this combination is not possible: {}", what.join("; ")), why.join("; ")));
    }
    for left_out in left_out {
        let _ = writeln!(io::stderr(), "left out: {}: {}", left_out.what, left_out.why);
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes() {
        assert_eq!(page_size("65536"), Ok(65536));
        for bad in ["0", "256", "4095", "131072", "4k", "-1"] {
            assert!(page_size(bad).is_err(), "{bad}");
        }
    }
}
