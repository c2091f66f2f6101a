//! Tables of all cells, the ratios that the experiment asks for, and drift.

use crate::report::drift::{Drift, ROUNDS_MIN};
use crate::report::grid::grouped;
use crate::report::hosts::{Cell, Host};
use crate::report::markdown::{Table, one_line};
use crate::report::notes::Footnotes;
use crate::report::phrases::{self, Form, NULL};
use crate::report::study::Study;

/// A quantity with a column: its name in a record, its label, how it is written, and whether a column of nothing but
/// zeros is left out.
type Column = (&'static str, &'static str, Form, bool);

/// Quantities of the timed runs.
const TIMES: [Column; 16] = [
    ("wall_s", "wall, s", Form::Seconds, false),
    ("user_s", "user, s", Form::Seconds, false),
    ("system_s", "system, s", Form::Seconds, false),
    ("sqpoll_s", "SQPOLL thread, s", Form::Seconds, false),
    ("sqpoll_work_s", "of it working, s", Form::Seconds, false),
    ("iowq_s", "io-wq, s", Form::Seconds, true),
    ("cpu_s", "all CPU, s", Form::Seconds, false),
    ("iops", "IOPS", Form::Count, false),
    ("ops_per_cpu_s", "I/O per CPU-second", Form::Count, false),
    ("ops_per_s", "operations/s", Form::Count, false),
    ("latency.p50_us", "p50, us", Form::Tenths, false),
    ("latency.p99_us", "p99, us", Form::Tenths, false),
    ("after_pause.p50_us", "p50 after a pause, us", Form::Tenths, false),
    ("touch_ns_per_line_p50", "touch, ns/line", Form::Hundredths, false),
    ("busy_retries", "busy retries", Form::Count, true),
    ("failures", "failures", Form::Count, true),
];

/// Quantities of the counted runs.
const COUNTS: [Column; 16] = [
    ("sqes", "SQEs", Form::Count, false),
    ("enter_calls", "enter calls", Form::Count, false),
    ("wakeups", "wake-ups", Form::Count, true),
    ("pread_calls", "pread calls", Form::Count, true),
    ("short_reads", "short reads", Form::Count, true),
    ("bios", "bios", Form::Count, false),
    ("merged_percent", "merged, %", Form::Tenths, false),
    ("device_requests", "device requests", Form::Count, false),
    ("request_kib", "average request, KiB", Form::Hundredths, false),
    ("pages_asked", "pages asked", Form::Count, false),
    ("pages_prefetched", "prefetched", Form::Count, true),
    ("pages_wasted", "wasted", Form::Count, true),
    ("cycles", "cycles", Form::Count, false),
    ("instructions", "instructions", Form::Count, false),
    ("cache_references", "cache references", Form::Count, false),
    ("cache_misses", "cache misses", Form::Count, false),
];

/// Times and counts of every cell.
pub fn tables(host: &Host<'_>, seed: u64) -> String {
    let mut notes = Footnotes::default();
    let with_interval = host.cells.iter().any(|cell| cell.times("wall_s").len() > 1);
    let times = table(host, &TIMES, &mut notes, true, with_interval.then_some(seed));
    let counts = table(host, &COUNTS, &mut notes, false, None);
    let both = host.cells.iter().any(|c| !c.timed.is_empty()) && host.cells.iter().any(|c| !c.counted.is_empty());
    let mut text = String::from("### All cells\n\n");
    text.push_str(if both {
        "Runs: timed + counted. Times are medians of the timed runs; the interval is that of the median wall.\n\n"
    } else {
        "Medians of the runs; the interval is that of the median wall.\n\n"
    });
    text.push_str(&times);
    if !counts.is_empty() {
        text.push_str(if both { "Counts, of the counted runs:\n\n" } else { "Counts, of the same runs:\n\n" });
        text.push_str(&counts);
    }
    let notes = notes.render();
    if !notes.is_empty() {
        for line in notes.lines() {
            text.push_str(&format!("{}  \n", one_line(line)));
        }
        text.push('\n');
    }
    text
}

fn table(
    host: &Host<'_>,
    columns: &[Column],
    notes: &mut Footnotes,
    timed: bool,
    interval_seed: Option<u64>,
) -> String {
    let median = |cell: &Cell<'_>, name: &str| {
        let samples: Vec<f64> = cell.runs(timed).iter().filter_map(|run| run.number(name)).collect();
        crate::report::statistics::median(&samples)
    };
    let shown: Vec<&Column> = columns
        .iter()
        .filter(|(name, _, _, quiet)| {
            host.cells.iter().filter_map(|cell| median(cell, name)).any(|number| !quiet || number != 0.0)
        })
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut head = vec!["cell".to_owned(), "runs".to_owned()];
    for (name, label, _, _) in &shown {
        head.push((*label).to_owned());
        if *name == "wall_s" && interval_seed.is_some() {
            head.push("95 % of the median, or (range)".to_owned());
        }
    }
    let mut table = Table::new(head, 2);
    for cell in &host.cells {
        let mut row = vec![cell.name.to_owned(), cell.how_many()];
        for (name, _, form, _) in &shown {
            row.push(match (median(cell, name), cell.runs(timed).first()) {
                (Some(number), _) => form.write(number),
                (None, Some(run)) => format!("{NULL} [{}]", notes.number(run.reason(name).to_owned())),
                (None, None) if cell.is_wrong() => "wrong answer".to_owned(),
                (None, None) => "failed".to_owned(),
            });
            if *name == "wall_s"
                && let Some(seed) = interval_seed
            {
                let summary = cell.time(name, seed);
                row.push(summary.map_or_else(String::new, |s| phrases::interval_or_range(&s, Form::Seconds)));
            }
        }
        table.row(row);
    }
    table.render()
}

/// The ratios of walls that the experiment asks for.
pub fn verdicts(study: &Study, host: &Host<'_>, seed: u64) -> String {
    let mut text = String::new();
    for ratios in &study.campaign.plan.ratios {
        let mut table = Table::new(["cell", "against", "ratio of walls", "verdict"], 4);
        for pair in &ratios.pairs {
            let ratio = match (host.cell(&pair.cell), host.cell(&pair.baseline)) {
                (Some(cell), Some(base)) => cell.ratio(base, "wall_s", seed),
                _ => None,
            };
            let (shown, verdict) = match ratio {
                Some(ratio) => (phrases::ratio(&ratio), phrases::verdict(&ratio)),
                None => (NULL.to_owned(), "no two timed runs of the same round".to_owned()),
            };
            table.row([pair.cell.clone(), pair.baseline.clone(), shown, verdict]);
        }
        if !table.is_empty() {
            text.push_str(&format!("**{}**\n\n{}", one_line(&ratios.title), table.render()));
        }
    }
    if text.is_empty() { text } else { format!("### Verdicts\n\n{text}") }
}

/// Whether walls changed while the campaign went on.
pub fn drift(host: &Host<'_>, seed: u64) -> String {
    let walls: Vec<Vec<(u32, f64)>> = host.cells.iter().map(|cell| cell.timed("wall_s")).collect();
    let text = match Drift::of(&walls, seed) {
        None => format!("Not judged: fewer than {ROUNDS_MIN} rounds of timed runs."),
        Some(drift) => {
            let interval =
                drift.interval.map_or_else(String::new, |i| format!(" (95 % {:.3} to {:.3})", i.low, i.high));
            let found = match (drift.is_drift(), drift.ratio > 1.0) {
                (false, _) => "no drift was found",
                (true, true) => {
                    "**the machine became slower while the campaign went on**; ratios of the same round are not \
                                 touched by that, medians of walls are"
                }
                (true, false) => {
                    "**the machine became faster while the campaign went on**; ratios of the same round are not \
                                  touched by that, medians of walls are"
                }
            };
            format!(
                "Walls of the last third of {} rounds against those of the first third, each divided by its cell's median: \
                 {:.3}{interval}, {} walls; permutation of the rounds: p = {:.3}. So {found}.",
                drift.rounds,
                drift.ratio,
                grouped(drift.walls as u64),
                drift.probability
            )
        }
    };
    format!("### Drift\n\n{text}\n\n")
}
