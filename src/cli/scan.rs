//! `ioscope scan`: the reader alone, without an engine.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::Args;

use super::error::usage;
use super::{exit, one_shot};
use crate::experiment::cpus::CpuList;
use crate::experiment::duration::{SampleInterval, Timeout};
use crate::experiment::plan::{AxisError, LeftOut, parse_in_flight, parse_number, parse_value, parse_window};
use crate::experiment::record::CacheState;
use crate::experiment::scan_plan::{ScanCell, ScanMatrix, expand};
use crate::experiment::schedule::Counters;
use crate::experiment::spec::{Experiment, PlanCell, Point, SQPOLL_IDLE_DEFAULT_MS, Workload};
use crate::page::blocks::{SLOTS_MAX, WaitMode};
use crate::page::config::{BackendKind, Direct, PoolKind, Submit};
use crate::workload::scan::spec::{DELAY_MAX_PAGES, READS_MAX, THREADS_MAX, parse_span_ns};
use crate::workload::scan::{Refill, ScanAxes, Touch, TouchOrder};

const ASKED: &str = "What is asked";
const CELLS: &str = "Cells: every flag takes a list a,b,c, and each combination is a cell";
const IN_ORDER: &str = "Cells: reading the file in order (without --random)";
const PROBE: &str = "Cells: the touch probe";
const RUNS: &str = "Runs";
const OUTPUT: &str = "Output";

const NOTES: &str = "\
Random reads go to each block of the file once before any comes twice, in an order that follows from the seed alone.
With several threads each has its own descriptor and ring, and its share of the reads and of the depth; confined to
several CPUs, each is bound to one of them. A sample of the blocks is compared with what pread gives.

  ioscope scan data/tpch-sf1.db --random 200000 --depth 1,32 --backend uring,uring-sqpoll --direct required --cpus 0
  ioscope scan data/tpch-sf1.db --direct disabled,required --touch slot,copy,prefetch";

static AFTER_HELP: LazyLock<String> = LazyLock::new(|| format!("{NOTES}\n\n{}", exit::HELP));

/// Read a file without an engine: in order, or at random offsets with so many reads in flight
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP.as_str())]
pub struct ScanArgs {
    /// The file to read; any file will do
    #[arg(value_name = "FILE", help_heading = ASKED)]
    file: PathBuf,
    /// Make N reads of a block at random offsets [default: read the whole file in order]
    #[arg(long, value_name = "N", help_heading = ASKED, allow_hyphen_values = true, value_parser = reads)]
    random: Option<u64>,
    /// Seed of the random offsets, of the order of runs and of the bootstrap
    #[arg(long, value_name = "N", default_value = "1", help_heading = ASKED)]
    seed: u64,

    /// pread, uring, uring-sqpoll
    #[arg(long, value_name = "LIST", default_value = "uring", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<BackendKind>)]
    backend: Vec<BackendKind>,
    /// disabled: through the page cache; required: O_DIRECT, proven, or the run fails
    #[arg(long, value_name = "LIST", default_value = "disabled", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<Direct>)]
    direct: Vec<Direct>,
    /// cold, warm: state of the page cache at the start
    #[arg(long, value_name = "LIST", default_value = "cold", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<CacheState>)]
    cache: Vec<CacheState>,
    /// normal, huge: memory behind the blocks
    #[arg(long, value_name = "LIST", default_value = "normal", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<PoolKind>)]
    pool: Vec<PoolKind>,
    /// Bytes of a read: a power of two from 512 to 1048576
    #[arg(long, value_name = "LIST", default_value = "4096", help_heading = CELLS, value_delimiter = ',', allow_hyphen_values = true, value_parser = block)]
    block: Vec<u32>,
    /// Random reads in flight, over all threads together; pread has one in flight a thread
    #[arg(long, value_name = "LIST", default_value = "1", help_heading = CELLS, value_delimiter = ',', allow_hyphen_values = true, value_parser = depth)]
    depth: Vec<u32>,
    /// Application threads
    #[arg(long, value_name = "LIST", default_value = "1", help_heading = CELLS, value_delimiter = ',', allow_hyphen_values = true, value_parser = threads)]
    threads: Vec<u32>,
    /// each: reads that have ended are replaced at once; all: a batch follows when the one before has ended as a whole
    #[arg(long, value_name = "LIST", default_value = "each", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<Refill>)]
    refill: Vec<Refill>,
    /// sleep: wait in the kernel; spin: look at the completion queue until something has come
    #[arg(long, value_name = "LIST", default_value = "sleep", help_heading = CELLS, value_delimiter = ',', value_parser = parse_value::<WaitMode>)]
    wait: Vec<WaitMode>,
    /// Compute for so long after each batch, or each page of a file read in order: 2us, 1ms
    #[arg(long, value_name = "LIST", default_value = "0", help_heading = CELLS, value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_span_ns)]
    think: Vec<u64>,
    /// Sleep for so long after each burst of reads, with nothing in flight: 5ms
    #[arg(long, value_name = "LIST", default_value = "0", help_heading = CELLS, value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_span_ns)]
    pause: Vec<u64>,
    /// Reads of a thread between two pauses [default with --pause: the thread's share of the depth]
    #[arg(long, value_name = "N", help_heading = CELLS, allow_hyphen_values = true, value_parser = reads)]
    burst: Option<u64>,
    /// How long an SQPOLL thread spins without work before it sleeps, in whole milliseconds: 1ms, 2s
    #[arg(long, value_name = "LIST", default_value = "1000ms", help_heading = CELLS, value_delimiter = ',', allow_hyphen_values = true, value_parser = idle_ms)]
    idle: Vec<u32>,

    /// Pages fetched at once, 0 to 4096; 0 is no readahead
    #[arg(long, value_name = "LIST", default_value = "32", help_heading = IN_ORDER, value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_window)]
    window: Vec<u32>,
    /// per-page: one SQE a page; coalesced: one SQE a contiguous run
    #[arg(long, value_name = "LIST", default_value = "per-page", help_heading = IN_ORDER, value_delimiter = ',', value_parser = parse_value::<Submit>)]
    submit: Vec<Submit>,
    /// Batches in flight while one is consumed, 1 to 16
    #[arg(long, value_name = "LIST", default_value = "4", help_heading = IN_ORDER, value_delimiter = ',', allow_hyphen_values = true, value_parser = parse_in_flight)]
    in_flight: Vec<u32>,

    /// none; sum: sum all bytes; slot, copy, prefetch: time the first pass over each block where it lies, over a copy made at
    /// delivery, or after prefetch instructions at delivery
    #[arg(long, value_name = "LIST", default_value = "none", help_heading = PROBE, value_delimiter = ',', value_parser = parse_value::<Touch>)]
    touch: Vec<Touch>,
    /// sequential: lines in order; chained: shuffled, each load waiting for the one before
    #[arg(long, value_name = "LIST", default_value = "sequential", help_heading = PROBE, value_delimiter = ',', value_parser = parse_value::<TouchOrder>)]
    touch_order: Vec<TouchOrder>,
    /// Blocks that are delivered before one is touched
    #[arg(long, value_name = "LIST", default_value = "0", help_heading = PROBE, value_delimiter = ',', allow_hyphen_values = true, value_parser = delay)]
    delay_pages: Vec<u32>,

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
    /// CPU to bind the SQPOLL thread to instead; it need not be among --cpus
    #[arg(long, value_name = "N", help_heading = RUNS, allow_hyphen_values = true, value_parser = cpu)]
    sqpoll_cpu: Option<u32>,
    /// End a run that takes longer, and go on: 90, 500ms, 10m, 2h, none
    #[arg(long, value_name = "DURATION", default_value = "1h", help_heading = RUNS, value_parser = str::parse::<Timeout>)]
    timeout: Timeout,

    /// Append one record a run (JSON Lines); '-' is stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    json: Option<PathBuf>,
    /// Name of the experiment in its records
    #[arg(long, value_name = "NAME", default_value = "scan", help_heading = OUTPUT)]
    name: String,
}

fn reads(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|n| digits && (1..=READS_MAX).contains(n));
    number.ok_or_else(|| format!("'{text}' is out of range; a whole number from 1 to {READS_MAX}"))
}

fn block(text: &str) -> Result<u32, String> {
    let bytes = text.parse::<u32>().ok().filter(|n| n.is_power_of_two() && (512..=1 << 20).contains(n));
    bytes.ok_or_else(|| format!("'{text}' is no block size; a power of two from 512 to 1048576"))
}

fn depth(text: &str) -> Result<u32, AxisError> {
    parse_number("depth", text, 1, SLOTS_MAX)
}

fn threads(text: &str) -> Result<u32, AxisError> {
    parse_number("threads", text, 1, THREADS_MAX)
}

fn delay(text: &str) -> Result<u32, AxisError> {
    parse_number("delay-pages", text, 0, DELAY_MAX_PAGES)
}

fn runs(text: &str) -> Result<u32, AxisError> {
    parse_number("runs", text, 1, 10_000)
}

fn cpu(text: &str) -> Result<u32, AxisError> {
    parse_number("sqpoll-cpu", text, 0, 8191)
}

fn idle_ms(text: &str) -> Result<u32, String> {
    let ns = parse_span_ns(text)?;
    let ms = u32::try_from(ns / 1_000_000).ok().filter(|&ms| ms > 0 && ns.is_multiple_of(1_000_000));
    ms.ok_or_else(|| {
        format!("'{text}': sq_thread_idle counts whole milliseconds, and the kernel reads 0 as one second; 1ms or more")
    })
}

/// Scans and answers the exit code.
pub fn run(args: &ScanArgs) -> anyhow::Result<i32> {
    let file = args.file.display();
    let metadata = std::fs::metadata(&args.file)
        .map_err(|error| usage(format!("{file}: {error}"), "give the path of a file to read"))?;
    if !metadata.is_file() {
        return Err(usage(format!("{file} is not a regular file"), "give the path of a file to read"));
    }
    let cells = cells(args)?;
    if let Some(cpus) = &args.cpus {
        cpus.check_allowed().map_err(|e| usage(e.to_string(), "choose among the CPUs that this process may run on"))?;
    }
    let json = one_shot::open_json(args.json.as_deref())?;
    let experiment = Experiment {
        name: args.name.clone(),
        database: args.file.clone(),
        workload: Workload::Scan,
        cells,
        counters: args.counters,
        sample: args.sample,
        seed: args.seed,
    };
    one_shot::measure(&experiment, args.timeout, args.json.as_deref(), json)
}

/// The cells asked for; what is left out of the product is told on stderr.
fn cells(args: &ScanArgs) -> anyhow::Result<Vec<PlanCell>> {
    let (mut cells, mut left_out) = (Vec::new(), Vec::new());
    let matrix = ScanMatrix {
        backend: args.backend.clone(),
        direct: args.direct.clone(),
        cache: args.cache.clone(),
        pool: args.pool.clone(),
        window: args.window.clone(),
        submit: args.submit.clone(),
        in_flight: args.in_flight.clone(),
        depth: args.depth.clone(),
        threads: args.threads.clone(),
        block_bytes: args.block.clone(),
        refill: args.refill.clone(),
        wait: args.wait.clone(),
        think_ns: args.think.clone(),
        pause_ns: args.pause.clone(),
        touch: args.touch.clone(),
        touch_order: args.touch_order.clone(),
        delay_pages: args.delay_pages.clone(),
        axes: ScanAxes {
            random: args.random,
            burst: args.burst.unwrap_or(0),
            sqpoll_cpu: args.sqpoll_cpu,
            seed: args.seed,
            ..ScanAxes::default()
        },
    };
    if args.burst.is_some() && args.pause.iter().all(|&pause| pause == 0) {
        return Err(usage("--burst without --pause", "say how long to sleep after each burst, such as --pause 5ms"));
    }
    if args.sqpoll_cpu.is_some() && !args.backend.contains(&BackendKind::UringSqpoll) {
        return Err(usage("--sqpoll-cpu without uring-sqpoll", "add uring-sqpoll to --backend, or leave the CPU out"));
    }
    let (expanded, refused) = expand(&matrix);
    for cell in expanded {
        cells.extend(with_idle(args, cell));
    }
    left_out.extend(refused);
    if cells.is_empty() {
        let why: Vec<String> = left_out.iter().map(|LeftOut { why, .. }| why.clone()).collect();
        return Err(usage("this combination is not possible", why.join("; ")));
    }
    for LeftOut { what, why } in left_out {
        let _ = writeln!(io::stderr(), "left out: {what}: {why}");
    }
    Ok(cells)
}

/// One cell for each idle time, where there is a poller to be idle.
fn with_idle(args: &ScanArgs, cell: ScanCell) -> Vec<PlanCell> {
    let poller = cell.reader.backend == crate::engine::EngineBackend::UringSqpoll;
    let idles = if poller { args.idle.as_slice() } else { &[SQPOLL_IDLE_DEFAULT_MS] };
    let plan = |&idle: &u32| {
        let mut plan = PlanCell::new(Point::Scan(cell), args.runs, args.cpus.clone(), idle);
        if idle != SQPOLL_IDLE_DEFAULT_MS {
            plan.name.push_str(&format!("-idle{idle}ms"));
        }
        plan
    };
    idles.iter().map(plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_times_are_whole_milliseconds() {
        assert_eq!((idle_ms("1ms"), idle_ms("2s")), (Ok(1), Ok(2000)));
        for bad in ["0", "0ms", "500us", "1500us", "1", "", "2h"] {
            assert!(idle_ms(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_of_reads_and_block_sizes() {
        assert_eq!((reads("200000"), block("1048576")), (Ok(200_000), Ok(1 << 20)));
        assert!(["0", "-1", "+1", "1e6", ""].iter().all(|text| reads(text).is_err()));
        assert!(["0", "100", "4095", "2097152", "4k", ""].iter().all(|text| block(text).is_err()));
    }
}
