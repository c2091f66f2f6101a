//! What the one-shot commands share: an experiment built from flags, carried out by the runner, shown as a table.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::Signal;

use super::error::usage;
use super::exit;
use super::json::JsonLines;
use crate::experiment::child::ChildExecutor;
use crate::experiment::duration::Timeout;
use crate::experiment::record::Record;
use crate::experiment::runner::{self, Finished, Observer};
use crate::experiment::spec::{Experiment, RunSpec};
use crate::report::table;

/// Opens what `--json` names, before anything is measured.
pub fn open_json(path: Option<&Path>) -> anyhow::Result<Option<JsonLines>> {
    let open = |path| JsonLines::open(path).map_err(|e| usage(e.to_string(), "choose another file, or '-' for stdout"));
    path.map(open).transpose()
}

/// Carries out an experiment, shows its table and answers the exit code.
pub fn measure(
    experiment: &Experiment,
    timeout: Timeout,
    json_path: Option<&Path>,
    mut json: Option<JsonLines>,
) -> anyhow::Result<i32> {
    let mut executor = ChildExecutor::new(timeout.0).context("cannot watch for signals")?;
    let mut observer = Keeper { bar: progress(), json: json.as_mut() };
    let finished = runner::run(experiment, &mut executor, &mut observer);
    observer.bar.finish_and_clear();
    show(experiment, &finished, matches!(json, Some(JsonLines::Stdout)))?;
    conclude(json_path, finished)
}

fn progress() -> ProgressBar {
    // Drawn on a terminal only, and only when a run starts or ends: a ticking bar would take CPU from the runs.
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    bar
}

/// Shows progress and keeps the records.
struct Keeper<'a> {
    bar: ProgressBar,
    json: Option<&'a mut JsonLines>,
}

impl Observer for Keeper<'_> {
    fn starting(&mut self, number: usize, total: usize, spec: &RunSpec) {
        let kind = if spec.counted { "counted" } else { "timed" };
        self.bar.set_message(format!("{}/{total} {} ({kind} run {})", number + 1, spec.cell, spec.run));
    }

    fn finished(&mut self, record: &Record) -> io::Result<()> {
        self.json.as_mut().map_or(Ok(()), |json| json.append(record))
    }
}

fn show(experiment: &Experiment, finished: &Finished, on_stderr: bool) -> anyhow::Result<()> {
    let order: Vec<String> = experiment.cells.iter().map(|cell| cell.name.clone()).collect();
    let text = table::render(&finished.records, &order, table::WIDTH, experiment.seed);
    let written = if on_stderr {
        io::stderr().write_all(text.as_bytes())
    } else {
        io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush())
    };
    match written {
        // The reader of the pipe has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write the table"),
    }
}

fn conclude(json: Option<&Path>, finished: Finished) -> anyhow::Result<i32> {
    let done = format!("{} of {} runs were made", finished.records.len(), finished.planned);
    if let Some(error) = finished.not_kept {
        if error.kind() == ErrorKind::BrokenPipe {
            return Ok(exit::OK);
        }
        let file = json.unwrap_or(Path::new("-")).display();
        return Err(
            anyhow::Error::new(error).context(format!("--json {file}: the last record could not be kept; {done}"))
        );
    }
    if let Some(signal) = finished.interrupted {
        let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
        let _ = writeln!(io::stderr(), "interrupted by {name}: {done}");
        return Ok(exit::interrupted(signal));
    }
    let failed = finished.records.iter().any(|record| record.error.is_some());
    Ok(if failed { exit::FAILED } else { exit::OK })
}
