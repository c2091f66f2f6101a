//! Records, put together by cell.

use crate::experiment::record::{Asked, Record};

/// The runs of one cell.
#[derive(Debug)]
pub struct CellRuns<'a> {
    /// The cell's name.
    pub name: &'a str,
    /// What it asks for; `None` for a cell of which no run was made.
    pub asked: Option<&'a Asked>,
    /// Runs that did not fail and had no counters on, by number.
    pub timed: Vec<&'a Record>,
    /// Runs that did not fail and had counters on, by number.
    pub counted: Vec<&'a Record>,
    /// Runs that failed.
    pub failed: Vec<&'a Record>,
}

impl<'a> CellRuns<'a> {
    /// Groups records by cell: the cells named in `order` first, others as they come.
    pub fn group(records: &'a [Record], order: &'a [String]) -> Vec<CellRuns<'a>> {
        let empty = |name| CellRuns { name, asked: None, timed: Vec::new(), counted: Vec::new(), failed: Vec::new() };
        let mut cells: Vec<CellRuns<'a>> = order.iter().map(|name| empty(name.as_str())).collect();
        for record in records {
            let at = cells.iter().position(|cell| cell.name == record.cell).unwrap_or_else(|| {
                cells.push(empty(&record.cell));
                cells.len() - 1
            });
            let cell = &mut cells[at];
            cell.asked.get_or_insert(&record.asked);
            match (&record.error, record.counted) {
                (Some(_), _) => cell.failed.push(record),
                (None, false) => cell.timed.push(record),
                (None, true) => cell.counted.push(record),
            }
        }
        for cell in &mut cells {
            cell.timed.sort_by_key(|record| record.run);
            cell.counted.sort_by_key(|record| record.run);
        }
        cells
    }

    /// The runs whose times are reported: timed ones, or counted ones where there are no others. None for a cell with
    /// a failed run: its other runs may have done the wrong thing faster.
    pub fn for_times(&self) -> &[&'a Record] {
        match () {
            () if self.is_failed() => &[],
            () if self.timed.is_empty() => &self.counted,
            () => &self.timed,
        }
    }

    /// The runs whose counts are reported: counted ones, or timed ones where there are no others.
    pub fn for_counts(&self) -> &[&'a Record] {
        match () {
            () if self.is_failed() => &[],
            () if self.counted.is_empty() => &self.timed,
            () => &self.counted,
        }
    }

    /// Whether a run of the cell failed.
    pub fn is_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// All runs, failed ones last.
    pub fn all(&self) -> impl Iterator<Item = &'a Record> {
        self.timed.iter().chain(&self.counted).chain(&self.failed).copied()
    }

    /// Walls of the timed runs, with the run's number: what cells are compared by.
    pub fn timed_walls(&self) -> Vec<(u32, f64)> {
        self.walls(&self.timed)
    }

    /// Walls of the counted runs, with the run's number: against those of the timed runs they show what counting costs.
    pub fn counted_walls(&self) -> Vec<(u32, f64)> {
        self.walls(&self.counted)
    }

    fn walls(&self, runs: &[&Record]) -> Vec<(u32, f64)> {
        if self.is_failed() {
            return Vec::new();
        }
        runs.iter().filter_map(|record| Some((record.run, record.times.wall_s?))).collect()
    }
}
