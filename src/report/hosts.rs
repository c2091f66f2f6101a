//! Runs by the machine that made them, and by cell: runs of different machines never meet in one number.

use super::run::Run;
use super::statistics::{Ratio, Summary, median};
use super::study::Study;
use crate::measure::environment::Environment;

/// The runs of one machine under one set of settings.
#[derive(Debug)]
pub struct Host<'a> {
    /// How a report calls it.
    pub label: String,
    /// The machine and its settings, by its first run; `None` where no run came to read it.
    pub environment: Option<&'a Environment>,
    /// The cells that have runs here, in the plan's order.
    pub cells: Vec<Cell<'a>>,
}

/// The runs of one cell on one machine.
#[derive(Debug)]
pub struct Cell<'a> {
    /// Its name.
    pub name: &'a str,
    /// Runs that did not fail and had no counters on, by number.
    pub timed: Vec<&'a Run>,
    /// Runs that did not fail and had counters on, by number.
    pub counted: Vec<&'a Run>,
    /// Runs that failed.
    pub failed: Vec<&'a Run>,
}

/// What belongs to one machine: its digest, and that of its settings.
type Key<'a> = (&'a str, &'a str);

fn key(run: &Run) -> Key<'_> {
    (run.environment.host.as_deref().unwrap_or(""), &run.environment.id)
}

impl<'a> Host<'a> {
    /// All machines of a study, in the order of their first runs. Runs that failed before they knew their machine stand
    /// with the only one there is, or else by themselves.
    pub fn all(study: &'a Study) -> Vec<Host<'a>> {
        let mut groups: Vec<(Key<'a>, Vec<&'a Run>)> = Vec::new();
        for run in &study.runs {
            match groups.iter_mut().find(|(known, _)| *known == key(run)) {
                Some((_, runs)) => runs.push(run),
                None => groups.push((key(run), vec![run])),
            }
        }
        if let [(("", ""), _), _] | [_, (("", ""), _)] = groups.as_slice() {
            groups.sort_by_key(|(key, _)| *key == ("", ""));
            let lost = groups.pop().map(|(_, runs)| runs).unwrap_or_default();
            groups.iter_mut().for_each(|(_, runs)| runs.extend(lost.iter()));
        }
        let hosts: Vec<&str> = groups.iter().map(|((host, _), _)| *host).collect();
        let several = |host: &str| hosts.iter().filter(|other| **other == host).count() > 1;
        groups
            .iter()
            .map(|((host, id), runs)| {
                let short = |digest: &str| digest.chars().take(8).collect::<String>();
                let label = match (*host, several(host)) {
                    ("", _) => "unknown machine".to_owned(),
                    (host, false) => format!("machine {}", short(host)),
                    (host, true) => format!("machine {}, settings {}", short(host), short(id)),
                };
                let environment = runs.iter().map(|run| &run.environment).find(|e| e.id == *id && !e.id.is_empty());
                Host { label, environment, cells: cells(study, runs) }
            })
            .collect()
    }

    /// A cell by its name.
    pub fn cell(&self, name: &str) -> Option<&Cell<'a>> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// All runs made here.
    pub fn runs(&self) -> impl Iterator<Item = &'a Run> {
        self.cells.iter().flat_map(Cell::all)
    }
}

fn cells<'a>(study: &'a Study, runs: &[&'a Run]) -> Vec<Cell<'a>> {
    let empty = |name| Cell { name, timed: Vec::new(), counted: Vec::new(), failed: Vec::new() };
    let mut cells: Vec<Cell<'a>> = study.campaign.plan.cells.iter().map(|cell| empty(cell.name.as_str())).collect();
    for run in runs {
        let at = cells.iter().position(|cell| cell.name == run.cell).unwrap_or_else(|| {
            cells.push(empty(&run.cell));
            cells.len() - 1
        });
        let cell = &mut cells[at];
        match (run.error.is_some() || run.answer_ok == Some(false), run.counted) {
            (true, _) => cell.failed.push(run),
            (false, false) => cell.timed.push(run),
            (false, true) => cell.counted.push(run),
        }
    }
    cells.retain(|cell| cell.all().next().is_some());
    for cell in &mut cells {
        for runs in [&mut cell.timed, &mut cell.counted, &mut cell.failed] {
            runs.sort_by_key(|run| (run.counted, run.run));
        }
    }
    cells
}

impl<'a> Cell<'a> {
    /// All runs, failed ones last.
    pub fn all(&self) -> impl Iterator<Item = &'a Run> {
        self.timed.iter().chain(&self.counted).chain(&self.failed).copied()
    }

    /// Whether a run gave a wrong answer: then the others may have done the wrong thing faster, and no number of the
    /// cell is reported.
    pub fn is_wrong(&self) -> bool {
        self.failed.iter().any(|run| run.answer_ok == Some(false))
    }

    /// The runs whose times are reported: timed ones, or counted ones where there are no others.
    pub fn for_times(&self) -> &[&'a Run] {
        match () {
            () if self.is_wrong() => &[],
            () if self.timed.is_empty() => &self.counted,
            () => &self.timed,
        }
    }

    /// The runs whose counts are reported: counted ones, or timed ones where there are no others.
    pub fn for_counts(&self) -> &[&'a Run] {
        match () {
            () if self.is_wrong() => &[],
            () if self.counted.is_empty() => &self.timed,
            () => &self.counted,
        }
    }

    /// The runs whose times, or whose counts, are reported.
    pub fn runs(&self, times: bool) -> &[&'a Run] {
        if times { self.for_times() } else { self.for_counts() }
    }

    /// What was asked on an axis.
    pub fn asked(&self, axis: &str) -> Option<&'a str> {
        self.all().next().and_then(|run| run.asked(axis))
    }

    /// Samples of a quantity, of the runs whose times are reported.
    pub fn times(&self, name: &str) -> Vec<f64> {
        self.for_times().iter().filter_map(|run| run.number(name)).collect()
    }

    /// The summary of these.
    pub fn time(&self, name: &str, seed: u64) -> Option<Summary> {
        Summary::of(&self.times(name), seed)
    }

    /// The median of a quantity over the runs whose counts are reported.
    pub fn count(&self, name: &str) -> Option<f64> {
        median(&self.for_counts().iter().filter_map(|run| run.number(name)).collect::<Vec<_>>())
    }

    /// A quantity of the timed runs, with the run's number: what cells are compared by.
    pub fn timed(&self, name: &str) -> Vec<(u32, f64)> {
        if self.is_wrong() {
            return Vec::new();
        }
        self.timed.iter().filter_map(|run| Some((run.run, run.number(name)?))).collect()
    }

    /// The ratio of a quantity to another cell's, runs of the same round paired.
    pub fn ratio(&self, base: &Cell<'_>, name: &str, seed: u64) -> Option<Ratio> {
        let base = base.timed(name);
        let pair = |(run, ours): (u32, f64)| Some((ours, base.iter().find(|(other, _)| *other == run)?.1));
        Ratio::of_pairs(&self.timed(name).into_iter().filter_map(pair).collect::<Vec<_>>(), seed)
    }

    /// How many runs stand behind its numbers: `7 + 1` is seven timed and one counted.
    pub fn how_many(&self) -> String {
        let made = match (self.timed.len(), self.counted.len()) {
            (timed, 0) => timed.to_string(),
            (timed, counted) => format!("{timed} + {counted}"),
        };
        match self.failed.len() {
            0 => made,
            failed => format!("{made}, {failed} failed"),
        }
    }
}
