//! What stands around the table: caption, footnotes, failures, warnings and comparisons.

use super::cells::CellRuns;
use super::grid::grouped;
use super::statistics::{Ratio, SAMPLES_MIN, Verdict};
use crate::engine::EngineBackend;
use crate::experiment::record::{Asked, Record};

/// Longest answer that the caption shows, in characters.
const ANSWER_SHOWN_CHARS: usize = 60;

/// An axis: how the caption writes it, the row's label, the value.
pub type QuietAxis = (&'static str, &'static str, fn(&Asked) -> String);

/// Axes of the reader that have a row only where they vary.
pub const QUIET_AXES: [QuietAxis; 5] = [
    ("submit", "submit", |asked| asked.submit.to_string()),
    ("policy", "policy", |asked| asked.policy.to_string()),
    ("batches in flight", "in flight, batches", |asked| asked.in_flight.to_string()),
    ("gap", "gap, pages", |asked| asked.gap.to_string()),
    ("delivery", "delivery", |asked| asked.delivery.to_string()),
];

/// Reasons of what was not measured, numbered as they come up.
#[derive(Debug, Default)]
pub struct Footnotes(Vec<String>);

impl Footnotes {
    /// The number of a reason, from 1; the same reason has the same number.
    pub fn number(&mut self, reason: String) -> usize {
        if let Some(at) = self.0.iter().position(|known| *known == reason) {
            return at + 1;
        }
        self.0.push(reason);
        self.0.len()
    }

    /// All of them, a line each.
    pub fn render(&self) -> String {
        self.0.iter().enumerate().map(|(i, reason)| format!("[{}] {reason}\n", i + 1)).collect()
    }
}

/// Why a quantity of a record is `null`.
pub fn reason(record: &Record, leaf: &str) -> String {
    record.reasons.get(leaf).cloned().unwrap_or_else(|| "the record gives no reason".to_owned())
}

/// Whether ioscope's reader reads ahead, and neither the engine's own I/O nor a scan at random offsets.
pub fn has_reader(asked: &Asked) -> bool {
    let random = asked.scan.is_some_and(|scan| scan.random.is_some());
    !random && !matches!(asked.backend, EngineBackend::Builtin | EngineBackend::BuiltinUring)
}

/// Whether the cells that have a reader ask for more than one value.
pub fn varies(cells: &[CellRuns<'_>], value: impl Fn(&Asked) -> String) -> bool {
    let mut values = cells.iter().filter_map(|cell| cell.asked).filter(|asked| has_reader(asked)).map(value);
    values.next().is_some_and(|first| values.any(|other| other != first))
}

/// Whether the pool has rows of its own: where cells differ in it, or got another than they asked for.
pub fn shows_pool(cells: &[CellRuns<'_>]) -> bool {
    let fell_back = |record: &Record| record.effective.pool.is_some_and(|pool| pool != record.asked.pool);
    cells.iter().flat_map(CellRuns::all).any(fell_back) || varies(cells, |asked| asked.pool.to_string())
}

/// Whether there are timed and counted runs.
pub fn has_both(cells: &[CellRuns<'_>]) -> bool {
    cells.iter().any(|cell| !cell.timed.is_empty()) && cells.iter().any(|cell| !cell.counted.is_empty())
}

/// What was asked of which database, its answer, and what all cells have in common.
pub fn caption(cells: &[CellRuns<'_>]) -> String {
    let Some(asked) = cells.iter().find_map(|cell| cell.asked) else { return "no run was made\n".to_owned() };
    let mut text = format!("{} on {}", asked.query, asked.database);
    let page_size = cells.iter().flat_map(CellRuns::all).find_map(|record| record.effective.page_size_bytes);
    if let Some(bytes) = page_size {
        text.push_str(&format!(", pages of {bytes} bytes"));
    }
    if let Some(cpus) = &asked.cpus {
        text.push_str(&format!(", confined to CPU {cpus}"));
    }
    let mut answers = cells.iter().flat_map(CellRuns::all).filter(|r| r.error.is_none()).map(|r| r.answer.as_deref());
    if let Some(Some(answer)) = answers.next()
        && answers.all(|other| other == Some(answer))
        && !answer.contains('\n')
        && answer.chars().count() <= ANSWER_SHOWN_CHARS
    {
        text.push_str(&format!("; answer {answer}"));
    }
    text.push('\n');

    if let Some(asked) = cells.iter().filter_map(|cell| cell.asked).find(|asked| has_reader(asked)) {
        let mut common: Vec<String> = QUIET_AXES
            .iter()
            .filter(|(_, _, value)| !varies(cells, value))
            .map(|(name, _, value)| format!("{name} {}", value(asked)))
            // What everybody expects is not worth the width.
            .filter(|common| common != "delivery copy")
            .collect();
        if !shows_pool(cells) {
            common.push(format!("pool {}", asked.pool));
        }
        if !common.is_empty() {
            text.push_str(&format!("with ioscope's reader: {}\n", common.join(", ")));
        }
    }
    text
}

/// How many runs stand behind times and counts.
pub fn how_counted(cells: &[CellRuns<'_>]) -> String {
    let runs = |of: fn(&CellRuns<'_>) -> usize| cells.iter().filter(|c| !c.is_failed()).map(of).max().unwrap_or(0);
    let (timed, counted) = (runs(|c| c.timed.len()), runs(|c| c.counted.len()));
    let of = |n: usize, kind: &str| match n {
        1 => format!("one {kind} run"),
        _ => format!("{n} {kind} runs (median)"),
    };
    match (timed, counted) {
        (0, 0) => String::new(),
        (timed, 0) => format!("times and counts: {} of each cell\n", of(timed, "timed")),
        (0, counted) => {
            format!(
                "times and counts: {} of each cell; the times include the cost of counting\n",
                of(counted, "counted")
            )
        }
        (timed, counted) => format!(
            "times: {} of each cell\n* counts: {} of each cell, whose times are not shown: counting costs time\n",
            of(timed, "timed"),
            of(counted, "counted")
        ),
    }
}

/// The cells that have no run, and those that failed, and why.
pub fn failures(cells: &[CellRuns<'_>]) -> String {
    let mut text = String::new();
    for (number, cell) in numbered(cells).filter(|(_, cell)| cell.asked.is_none()) {
        text.push_str(&format!("no run: cell {number} ({})\n", cell.name));
    }
    for (number, cell) in numbered(cells).filter(|(_, cell)| cell.is_failed()) {
        let runs = cell.all().count();
        let of = if runs == 1 { String::new() } else { format!(" in {} of {runs} runs", cell.failed.len()) };
        let mut reasons: Vec<&str> = Vec::new();
        for reason in cell.failed.iter().filter_map(|record| record.error.as_deref()) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        text.push_str(&format!("FAILED: cell {number} ({}){of}: {}\n", cell.name, reasons.join("; also: ")));
    }
    text
}

/// Quantities that no cell has, by reason.
pub fn not_measured(cells: &[CellRuns<'_>], leaves: &[&str]) -> String {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    let records: Vec<&Record> = cells.iter().flat_map(|cell| cell.for_counts()).copied().collect();
    for &leaf in leaves {
        let reasons: Vec<&str> = records.iter().filter_map(|r| r.reasons.get(leaf)).map(String::as_str).collect();
        if reasons.len() < records.len() {
            continue;
        }
        if let Some(&reason) = reasons.first() {
            match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(leaf),
                None => by_reason.push((reason, vec![leaf])),
            }
        }
    }
    by_reason.iter().map(|(reason, names)| format!("not measured: {}: {reason}\n", names.join(", "))).collect()
}

/// Warnings of several runs that differ in numbers only.
struct Alike<'a> {
    shape: String,
    first: &'a str,
    times: usize,
    numbers: Vec<usize>,
}

/// The records' warnings, alike ones once with their cells, and whether cells disagree about an answer that is not known.
pub fn warnings(cells: &[CellRuns<'_>]) -> String {
    let mut alike: Vec<Alike> = Vec::new();
    for (number, cell) in numbered(cells) {
        for warning in cell.all().flat_map(|record| &record.warnings) {
            let shape: String = warning.chars().filter(|c| !c.is_ascii_digit()).collect();
            match alike.iter_mut().find(|known| known.shape == shape) {
                Some(known) => {
                    known.times += 1;
                    if known.numbers.last() != Some(&number) {
                        known.numbers.push(number);
                    }
                }
                None => alike.push(Alike { shape, first: warning, times: 1, numbers: vec![number] }),
            }
        }
    }
    let mut text = String::new();
    for Alike { first, times, numbers, .. } in &alike {
        let runs = if *times == 1 { String::new() } else { format!(" ({times} runs, the first one's)") };
        text.push_str(&format!("warning: {}{runs}: {first}\n", cell_list(numbers)));
    }

    let mut answers: Vec<(&str, Vec<usize>)> = Vec::new();
    for (number, cell) in numbered(cells) {
        for answer in cell.all().filter(|r| r.error.is_none()).filter_map(|record| record.answer.as_deref()) {
            match answers.iter_mut().find(|(known, _)| *known == answer) {
                Some((_, numbers)) if numbers.contains(&number) => {}
                Some((_, numbers)) => numbers.push(number),
                None => answers.push((answer, vec![number])),
            }
        }
    }
    if answers.len() > 1 {
        let groups: Vec<String> = answers.iter().map(|(_, numbers)| cell_list(numbers)).collect();
        text.push_str(&format!("warning: answers differ between {}; --json keeps them\n", groups.join(" and ")));
    }
    text
}

/// Walls of the cells against the first one's, from pairs of the same round.
pub fn ratios(cells: &[CellRuns<'_>], seed: u64) -> String {
    let mut comparable = numbered(cells).filter(|(_, cell)| !cell.timed_walls().is_empty());
    let Some((base_number, base)) = comparable.next() else { return String::new() };
    let base_walls = base.timed_walls();
    let mut lines = String::new();
    let mut too_few = 0;
    for (number, cell) in comparable {
        match compared(number, cell.name, &cell.timed_walls(), &base_walls, seed) {
            Some(Ok(line)) => lines.push_str(&line),
            Some(Err(TooFew)) => too_few += 1,
            None => {}
        }
    }
    if !lines.is_empty() {
        lines = format!("wall against cell {base_number} ({}), runs of the same round paired:\n{lines}", base.name);
    }
    if too_few > 0 {
        lines.push_str(&format!(
            "differences in wall are not judged with fewer than {SAMPLES_MIN} timed runs of each cell (--runs)\n"
        ));
    }
    lines
}

/// Walls of the counted runs against the timed ones' of the same cell and round, where there are enough of both.
pub fn cost_of_counters(cells: &[CellRuns<'_>], seed: u64) -> String {
    let lines: String = numbered(cells)
        .filter_map(|(number, cell)| {
            compared(number, cell.name, &cell.counted_walls(), &cell.timed_walls(), seed)?.ok()
        })
        .collect();
    match lines.is_empty() {
        true => lines,
        false => format!("wall with counters on against off, runs of the same round paired:\n{lines}"),
    }
}

/// Too few pairs for an interval.
struct TooFew;

/// A cell's walls against others, of the same run each, as a line; `None` without any pair.
fn compared(
    number: usize,
    name: &str,
    walls: &[(u32, f64)],
    base: &[(u32, f64)],
    seed: u64,
) -> Option<Result<String, TooFew>> {
    let pair = |&(run, ours): &(u32, f64)| Some((ours, base.iter().find(|(r, _)| *r == run)?.1));
    let pairs: Vec<(f64, f64)> = walls.iter().filter_map(pair).collect();
    let ratio = Ratio::of_pairs(&pairs, seed)?;
    let verdict = match ratio.verdict() {
        Verdict::TooFew => return Some(Err(TooFew)),
        Verdict::Resolved => "resolved".to_owned(),
        Verdict::NotResolved { runs_needed: Some(runs) } => {
            format!("not resolved; about {} runs of each would be needed", grouped(runs as u64))
        }
        Verdict::NotResolved { runs_needed: None } => "not resolved".to_owned(),
    };
    let interval = ratio.interval?;
    Some(Ok(format!(
        "  cell {number} ({name}): {:.3}, 95 % {:.3}..{:.3}, {} pairs: {verdict}\n",
        ratio.ratio, interval.low, interval.high, ratio.pairs
    )))
}

fn numbered<'c, 'a>(cells: &'c [CellRuns<'a>]) -> impl Iterator<Item = (usize, &'c CellRuns<'a>)> {
    cells.iter().enumerate().map(|(i, cell)| (i + 1, cell))
}

fn cell_list(numbers: &[usize]) -> String {
    let list = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!("cell{} {list}", if numbers.len() == 1 { "" } else { "s" })
}
