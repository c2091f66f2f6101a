//! The table of a query experiment, for people: what was asked, what was in force, and what each layer did.

#[path = "table_scan.rs"]
mod scan;

use super::cells::CellRuns;
use super::grid::{self, Row, grouped};
use super::notes::{self, Footnotes};
use super::statistics::{Summary, median, median_count};
use crate::experiment::record::{Asked, Record};

/// Characters that a line of the table may have.
pub const WIDTH: usize = 100;

/// The table and all that belongs to it, as text. `order` names the cells in the order of their columns; the seed is
/// that of the bootstrap.
pub fn render(records: &[Record], order: &[String], width: usize, seed: u64) -> String {
    let cells = CellRuns::group(records, order);
    let mut rows = Rows { cells: &cells, rows: Vec::new(), footnotes: Footnotes::default(), seed };
    rows.asked_and_in_force();
    rows.answers();
    rows.times();
    rows.counts();
    let Rows { rows, footnotes, .. } = rows;

    let mut text = notes::caption(&cells);
    text.push('\n');
    text.push_str(&grid::render(&rows, width));
    for block in [
        footnotes.render(),
        notes::how_counted(&cells),
        notes::failures(&cells),
        notes::not_measured(&cells, &HIDEABLE_LEAVES),
        notes::warnings(&cells),
        notes::ratios(&cells, seed),
        notes::cost_of_counters(&cells, seed),
    ] {
        if !block.is_empty() {
            text.push('\n');
            text.push_str(&block);
        }
    }
    text
}

type Count = fn(&Record) -> Option<u64>;
type Time = fn(&Record) -> Option<f64>;

/// Times that always have a row.
const TIMES: [(&str, &str, Time); 4] = [
    ("user_s", "user, s", |r| r.times.user_s),
    ("system_s", "system, s", |r| r.times.system_s),
    ("sqpoll_s", "SQPOLL thread, s", |r| r.times.sqpoll_s),
    ("sqpoll_work_s", "  of it working, s", |r| r.times.sqpoll_work_s),
];

/// Counts that have a row only where one of the cells has them.
const OPTIONAL_COUNTS: [(&str, &str, Count); 4] = [
    ("cycles", "cycles", |r| r.hardware.cycles),
    ("instructions", "instructions", |r| r.hardware.instructions),
    ("cache_references", "cache references", |r| r.hardware.cache_references),
    ("cache_misses", "cache misses", |r| r.hardware.cache_misses),
];

/// Leaves whose rows are left out where no cell has them; a note says why instead.
const HIDEABLE_LEAVES: [&str; 5] = ["sqes_traced", "cycles", "instructions", "cache_references", "cache_misses"];

/// The rows as they grow.
struct Rows<'a> {
    cells: &'a [CellRuns<'a>],
    rows: Vec<Row>,
    footnotes: Footnotes,
    seed: u64,
}

/// One entry before it is text.
enum Entry {
    /// A value.
    Value(String),
    /// Not measured, for this reason.
    Null(String),
    /// Nothing to say: the cell failed, or has no run.
    Blank,
}

impl Rows<'_> {
    fn add(&mut self, label: impl Into<String>, entry: impl Fn(&CellRuns<'_>) -> Entry) {
        let entries = self
            .cells
            .iter()
            .map(|cell| match entry(cell) {
                Entry::Value(text) => text,
                Entry::Null(reason) => format!("-[{}]", self.footnotes.number(reason)),
                Entry::Blank => String::new(),
            })
            .collect();
        self.rows.push(Row { label: label.into(), entries });
    }

    fn asked_and_in_force(&mut self) {
        let numbers = (1..=self.cells.len()).map(|n| n.to_string()).collect();
        self.rows.push(Row { label: "cell".to_owned(), entries: numbers });
        if self.cells.iter().filter_map(|cell| cell.asked).any(|asked| asked.engine.is_some()) {
            self.add_asked("engine", |asked| asked.engine.map_or_else(String::new, |engine| engine.to_string()));
        }
        self.scan_asked();

        self.add_asked("backend  asked", |asked| asked.backend.to_string());
        self.add_in_force("backend", |r| r.effective.backend.clone());
        self.add_asked("direct   asked", |asked| asked.direct.to_string());
        self.add_in_force("direct", |r| r.effective.direct.map(|d| d.to_string()));
        self.add_asked("cache    asked", |asked| asked.cache.to_string());
        self.add_in_force("cache", |r| r.effective.cache.map(|c| c.to_string()));

        if notes::shows_pool(self.cells) {
            self.add_reader_asked("pool     asked", |asked| asked.pool.to_string());
            self.add_in_force("pool", |r| r.effective.pool.map(|p| p.to_string()));
        }
        if self.cells.iter().filter_map(|cell| cell.asked).any(|asked| asked.scan.is_none() || notes::has_reader(asked))
        {
            self.add_reader_asked("window, pages", |asked| asked.window.to_string());
        }
        for (_, label, value) in notes::QUIET_AXES {
            if notes::varies(self.cells, value) {
                self.add_reader_asked(label, value);
            }
        }
    }

    fn add_asked(&mut self, label: &str, value: impl Fn(&Asked) -> String) {
        self.add(label, |cell| match cell.asked {
            Some(asked) => Entry::Value(value(asked)),
            None => Entry::Blank,
        });
    }

    /// An axis of ioscope's reader: nothing to say for an engine's own I/O.
    fn add_reader_asked(&mut self, label: &str, value: impl Fn(&Asked) -> String) {
        self.add(label, |cell| match cell.asked {
            Some(asked) if notes::has_reader(asked) => Entry::Value(value(asked)),
            _ => Entry::Blank,
        });
    }

    fn add_in_force(&mut self, leaf: &'static str, value: impl Fn(&Record) -> Option<String>) {
        self.add("         in force", |cell| {
            let mut values: Vec<String> = cell.all().filter_map(&value).collect();
            values.sort();
            values.dedup();
            match cell.all().next() {
                None => Entry::Blank,
                Some(_) if !values.is_empty() => Entry::Value(values.join(", ")),
                // The caption below the table says why a cell failed; no need to repeat it on every row.
                Some(_) if cell.is_failed() => Entry::Blank,
                Some(record) => Entry::Null(notes::reason(record, leaf)),
            }
        });
    }

    fn answers(&mut self) {
        self.add("answer", |cell| {
            let mut verdicts = cell.all().map(|record| record.answer_ok);
            Entry::Value(match () {
                () if cell.is_failed() => "FAILED".to_owned(),
                () if cell.asked.is_none() => "no run".to_owned(),
                () if verdicts.all(|ok| ok == Some(true)) => "ok".to_owned(),
                () => "unknown".to_owned(),
            })
        });
    }

    fn times(&mut self) {
        let seed = self.seed;
        self.scan_rates();
        let walls = |cell: &CellRuns<'_>| {
            let walls: Vec<f64> = cell.for_times().iter().filter_map(|record| record.times.wall_s).collect();
            Summary::of(&walls, seed)
        };
        self.add_time("wall_s", "wall, s", |record| record.times.wall_s);
        let summaries: Vec<Summary> = self.cells.iter().filter_map(walls).collect();
        let of_summary = |text: fn(&Summary) -> Option<String>| {
            move |cell: &CellRuns<'_>| walls(cell).and_then(|s| text(&s)).map_or(Entry::Blank, Entry::Value)
        };
        if summaries.iter().any(|s| s.count > 1) {
            self.add("  min..max, s", of_summary(|s| (s.count > 1).then(|| format!("{:.3}..{:.3}", s.min, s.max))));
            self.add("  spread, %", of_summary(|s| s.spread().filter(|_| s.count > 1).map(percent)));
        }
        if summaries.iter().any(|s| s.interval.is_some()) {
            self.add("  95 % of median, s", of_summary(|s| s.interval.map(|i| format!("{:.3}..{:.3}", i.low, i.high))));
        }
        for (leaf, label, value) in TIMES {
            self.add_time(leaf, label, value);
        }
        if self.cells.iter().flat_map(|c| c.for_times()).any(|r| r.times.iowq_s.is_some_and(|s| s > 0.0)) {
            self.add_time("iowq_s", "io-wq workers, s", |record| record.times.iowq_s);
        }
    }

    fn counts(&mut self) {
        let cells = self.cells;
        let has = |count: Count| cells.iter().flat_map(|c| c.for_counts()).any(|r| count(r).is_some_and(|n| n > 0));
        let short_reads: Count = |r| r.ring.short_reads;
        let preads: Count = |r| r.ring.pread_calls;
        let traced: Count = |r| r.ring.sqes_traced;
        let (has_short_reads, has_preads, has_traced) = (has(short_reads), has(preads), has(traced));

        self.add_count("sqes", "SQEs", |r| r.ring.sqes);
        if has_traced {
            self.add_count("sqes_traced", "SQEs seen by the kernel", traced);
        }
        self.add_count("enter_calls", "enter calls", |r| r.ring.enter_calls);
        let wakeups: Count = |r| r.ring.wakeups;
        if has(wakeups) {
            self.add_count("wakeups", "  of them wake-ups", wakeups);
        }
        if has_preads {
            self.add_count("pread_calls", "pread calls", preads);
        }
        if has_short_reads {
            self.add_count("short_reads", "short reads", short_reads);
        }
        self.add_count("bios", "bios", |r| r.block.bios);
        self.add_quotient("merged, %", ["bios", "bios_merged"], |r| {
            quotient(r.block.bios_merged?, r.block.bios?).map(percent)
        });
        self.add_count("device_requests", "device requests", |r| r.block.device_requests);
        self.add_quotient("average request, KiB", ["device_requests", "device_bytes"], |r| {
            quotient(r.block.device_bytes?, r.block.device_requests?).map(|bytes| format!("{:.1}", bytes / 1024.0))
        });
        self.add_count("device_bytes", "bytes from the device", |r| r.block.device_bytes);
        self.add_count("pages_asked", "pages asked", |r| r.pages.pages_asked);
        self.add_count("pages_prefetched", "pages prefetched", |r| r.pages.pages_prefetched);
        self.add_count("pages_wasted", "pages wasted", |r| r.pages.pages_wasted);
        self.add_count("resident_pages_before", "resident pages before", |r| r.residency.resident_pages_before);
        for (leaf, label, count) in OPTIONAL_COUNTS {
            if self.cells.iter().flat_map(|c| c.for_counts()).any(|r| count(r).is_some()) {
                self.add_count(leaf, label, count);
            }
        }
    }

    fn add_time(&mut self, leaf: &'static str, label: &str, time: Time) {
        self.add(label, |cell| {
            let runs = cell.for_times();
            let samples: Vec<f64> = runs.iter().filter_map(|record| time(record)).collect();
            match (median(&samples), runs.first()) {
                (Some(seconds), _) => Entry::Value(format!("{seconds:.3}")),
                (None, Some(record)) => Entry::Null(notes::reason(record, leaf)),
                (None, None) => Entry::Blank,
            }
        });
    }

    fn add_count(&mut self, leaf: &'static str, label: &str, count: Count) {
        self.add(self.starred(label), |cell| {
            let runs = cell.for_counts();
            let samples: Vec<u64> = runs.iter().filter_map(|record| count(record)).collect();
            match (median_count(&samples), runs.first()) {
                (Some(number), _) => Entry::Value(grouped(number)),
                (None, Some(record)) => Entry::Null(notes::reason(record, leaf)),
                (None, None) => Entry::Blank,
            }
        });
    }

    /// A quotient of two counts of the same run: the first counted one.
    fn add_quotient(&mut self, label: &str, leaves: [&'static str; 2], value: impl Fn(&Record) -> Option<String>) {
        self.add(self.starred(label), |cell| match cell.for_counts().first() {
            None => Entry::Blank,
            Some(record) => match value(record) {
                Some(text) => Entry::Value(text),
                None => Entry::Null(
                    leaves
                        .iter()
                        .find_map(|leaf| record.reasons.get(*leaf).cloned())
                        .unwrap_or_else(|| "there was none to divide by".to_owned()),
                ),
            },
        });
    }

    /// A star marks counts that stem from other runs than the times.
    fn starred(&self, label: &str) -> String {
        if notes::has_both(self.cells) { format!("{label} *") } else { label.to_owned() }
    }
}

fn quotient(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn percent(fraction: f64) -> String {
    format!("{:.1}", fraction * 100.0)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
