//! What the runner costs the run that it watches: the measured phase of Q6 on SQLite's own VFS, warm, inside the runner
//! against the same run alone, started by hand and waited for by nobody but the shell's part of this program.
//!
//! `cargo run --release --example harness_cost -- FILE PAIRS`
#![expect(clippy::unwrap_used, reason = "a yardstick, not a tool")]

use std::io::Write;
use std::process::{Command, Stdio};

use ioscope::dataset::queries;
use ioscope::experiment::child::{CHILD_COMMAND, ChildExecutor};
use ioscope::experiment::plan::{Matrix, expand};
use ioscope::experiment::record::Record;
use ioscope::experiment::runner::{self, Observer};
use ioscope::experiment::schedule::{Counters, PlannedRun};
use ioscope::experiment::spec::{Experiment, PlanCell, Point, RunSpec, SQPOLL_IDLE_DEFAULT_MS, Workload};
use ioscope::report::statistics::Ratio;
use ioscope::workload::query::Query;

/// Keeps nothing and shows nothing.
struct Quiet;

impl Observer for Quiet {
    fn starting(&mut self, _: usize, _: usize, _: &RunSpec) {}

    fn finished(&mut self, _: &Record) -> std::io::Result<()> {
        Ok(())
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args_os().collect();
    // The runner starts this very program for a run.
    if arguments.get(1).is_some_and(|first| first == CHILD_COMMAND) {
        std::process::exit(ioscope::cli::run(arguments));
    }
    let (Some(file), Some(pairs)) = (arguments.get(1), arguments.get(2)) else {
        eprintln!("usage: harness_cost FILE PAIRS");
        std::process::exit(2);
    };
    let pairs: u32 = pairs.to_str().unwrap().parse().unwrap();
    let matrix = Matrix::default().with("engine=sqlite backend=builtin cache=warm").unwrap();
    let cell = expand(&[matrix], true).cells.remove(0);
    let experiment = Experiment {
        name: "harness-cost".to_owned(),
        database: file.into(),
        workload: Workload::Query(Query { name: "q06".to_owned(), sql: queries::query(6).unwrap().to_owned() }),
        cells: vec![PlanCell::new(Point::Query(cell), 1, None, SQPOLL_IDLE_DEFAULT_MS)],
        counters: Counters::None,
        sample: None,
        seed: 1,
    };
    let mut executor = ChildExecutor::new(None).unwrap();
    let mut inside = || {
        let finished = runner::run(&experiment, &mut executor, &mut Quiet);
        wall_s(&finished.records[0])
    };
    let spec =
        serde_json::to_vec(&experiment.run_spec(PlannedRun { cell: 0, run: 1, counted: false, round: 0 })).unwrap();
    let alone = || {
        let mut child = Command::new("/proc/self/exe")
            .arg(CHILD_COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&spec).unwrap();
        wall_s(&serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap())
    };
    let mut walls = Vec::new();
    for pair in 0..pairs {
        // Neither is always the one that comes second.
        let (inside_s, alone_s) = if pair % 2 == 0 {
            let inside_s = inside();
            (inside_s, alone())
        } else {
            let alone_s = alone();
            (inside(), alone_s)
        };
        eprintln!("{:>3}: {inside_s:.3} s inside the runner, {alone_s:.3} s alone", pair + 1);
        walls.push((inside_s, alone_s));
    }
    let ratio = Ratio::of_pairs(&walls, 1).unwrap();
    match ratio.interval {
        Some(interval) => println!(
            "wall inside the runner against alone: {:.3}, 95 % {:.3}..{:.3}, {} pairs",
            ratio.ratio, interval.low, interval.high, ratio.pairs
        ),
        None => println!("wall inside the runner against alone: {:.3}, {} pairs", ratio.ratio, ratio.pairs),
    }
}

fn wall_s(record: &Record) -> f64 {
    assert_eq!(record.error, None);
    record.times.wall_s.unwrap()
}
