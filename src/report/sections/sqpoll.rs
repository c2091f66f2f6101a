//! When SQPOLL pays on this machine: said from pairs of cells that differ in the poller only, and no further.

use std::collections::{BTreeMap, BTreeSet};

use crate::experiment::cpus::CpuList;
use crate::report::hosts::{Cell, Host};
use crate::report::markdown::{Table, plural};
use crate::report::phrases::{self, Form, NULL};
use crate::report::statistics::{Ratio, Verdict, median};

/// Axes that may differ between a polled cell and the plain one that it is set against. Their CPUs are looked at apart.
const FREE: [&str; 5] = ["backend", "sqpoll_idle_ms", "sqpoll_cpu", "threads", "cpus"];

/// A polled cell and a plain one.
struct Pair<'h, 'a> {
    polled: &'h Cell<'a>,
    plain: &'h Cell<'a>,
    /// CPUs that both are confined to, and where the poller is bound to another.
    cpus: String,
    /// Application threads of the plain cell beyond those of the polled one: the fair rival's.
    more_threads: u64,
    wall: Option<Ratio>,
    cpu: Option<Ratio>,
}

/// The guide; empty where no polled cell has a plain counterpart.
pub fn guide(host: &Host<'_>, seed: u64) -> String {
    let pairs = pairs(host, seed);
    if pairs.is_empty() {
        return String::new();
    }
    let (rivals, same): (Vec<&Pair<'_, '_>>, Vec<_>) = pairs.iter().partition(|pair| pair.more_threads > 0);
    let mut text = format!("## When SQPOLL pays on this machine ({})\n\n", host.label);
    text.push_str(
        "Each line sets a cell with the SQPOLL thread against the plain ring, the application on the same CPUs. CPU time is that of the \
         application, the poller and io-wq workers together, so that spinning is charged too. Ratios are SQPOLL to plain: \
         below 1 SQPOLL is faster, or cheaper.\n\n",
    );
    text.push_str(&table(&same));
    let mut by_cpus: Vec<(&str, Vec<&Pair<'_, '_>>)> = Vec::new();
    for pair in same {
        match by_cpus.iter_mut().find(|(cpus, _)| *cpus == pair.cpus) {
            Some((_, pairs)) => pairs.push(pair),
            None => by_cpus.push((&pair.cpus, vec![pair])),
        }
    }
    for (cpus, pairs) in by_cpus {
        text.push_str(&format!("{}\n\n", sentences(cpus, &pairs)));
    }
    if !rivals.is_empty() {
        text.push_str("Against the fair rival, which has an ordinary thread more instead of the poller:\n\n");
        text.push_str(&table(&rivals));
        text.push_str(&format!("{}\n\n", sentences("the same CPUs", &rivals)));
    }
    text.push_str(&format!(
        "This holds for the {} above, on {}, and says nothing of other devices, depths or loads.\n\n",
        plural(pairs.len(), "pair"),
        host.label
    ));
    text
}

fn pairs<'h, 'a>(host: &'h Host<'a>, seed: u64) -> Vec<Pair<'h, 'a>> {
    let axes = |cell: &Cell<'a>| -> BTreeMap<&'a str, &'a str> {
        let asked = cell.all().next().map(|run| &run.asked);
        let all = asked.into_iter().flatten().map(|(axis, value)| (axis.as_str(), value.as_str()));
        all.filter(|(axis, _)| !FREE.contains(axis)).collect()
    };
    let is = |cell: &Cell<'_>, backend: &str| cell.asked("backend") == Some(backend);
    let threads = |cell: &Cell<'_>| cell.asked("threads").and_then(|threads| threads.parse::<u64>().ok()).unwrap_or(1);
    let mut pairs = Vec::new();
    for polled in host.cells.iter().filter(|cell| is(cell, "uring-sqpoll")) {
        for plain in host.cells.iter().filter(|cell| is(cell, "uring") && axes(cell) == axes(polled)) {
            let more_threads = threads(plain).checked_sub(threads(polled));
            // The rival has one thread more for each poller; other numbers compare nothing.
            let Some(more_threads) = more_threads.filter(|more| *more == 0 || *more == threads(polled)) else {
                continue;
            };
            if !on_like_cpus(polled, plain, more_threads) {
                continue;
            }
            let mut cpus = polled.asked("cpus").map_or_else(|| "all CPUs".to_owned(), named_cpus);
            // The application's CPUs are the same in both; a poller that is bound elsewhere has one more.
            if let Some(poller) = polled.asked("sqpoll_cpu") {
                cpus.push_str(&format!(", the poller on CPU {poller}"));
            }
            pairs.push(Pair {
                polled,
                plain,
                cpus,
                more_threads,
                wall: polled.ratio(plain, "wall_s", seed),
                cpu: polled.ratio(plain, "cpu_s", seed),
            });
        }
    }
    pairs
}

/// Whether the plain cell has the CPUs of the polled one's application; the rival with a thread more, those of application
/// and poller together.
fn on_like_cpus(polled: &Cell<'_>, plain: &Cell<'_>, more_threads: u64) -> bool {
    if more_threads == 0 {
        return polled.asked("cpus") == plain.asked("cpus");
    }
    let set = |cell: &Cell<'_>| -> Option<BTreeSet<usize>> {
        let list: CpuList = cell.asked("cpus")?.parse().ok()?;
        Some(list.cpus().iter().copied().collect())
    };
    match (set(polled), set(plain)) {
        (Some(mut all), Some(rival)) => {
            all.extend(polled.asked("sqpoll_cpu").and_then(|cpu| cpu.parse::<usize>().ok()));
            all == rival
        }
        (polled, plain) => polled == plain,
    }
}

/// `one CPU (0)`, `CPUs 0-1`.
fn named_cpus(list: &str) -> String {
    match list.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("one CPU ({list})"),
        false => format!("CPUs {list}"),
    }
}

fn table(pairs: &[&Pair<'_, '_>]) -> String {
    let value = |cell: &Cell<'_>, name: &str| median(&cell.times(name));
    let any = |name: &str| pairs.iter().any(|p| value(p.polled, name).is_some() && value(p.plain, name).is_some());
    let (iops, per_cpu) = (any("iops"), any("ops_per_cpu_s"));
    let work = pairs.iter().any(|pair| value(pair.polled, "sqpoll_work_percent").is_some());
    let mut head = vec!["SQPOLL", "plain", "CPUs", "wall", "verdict", "CPU time"];
    head.extend(
        [(iops, "IOPS, SQPOLL and plain"), (per_cpu, "I/O per CPU-second, SQPOLL and plain")]
            .iter()
            .filter_map(|(shown, label)| shown.then_some(*label)),
    );
    head.extend(work.then_some("poller working, %"));
    let mut table = Table::new(head, 6);
    for pair in pairs {
        let ratio = |ratio: &Option<Ratio>| ratio.as_ref().map_or_else(|| NULL.to_owned(), phrases::ratio);
        let both = |name: &str| match (value(pair.polled, name), value(pair.plain, name)) {
            (Some(a), Some(b)) => format!("{} and {}", Form::Count.write(a), Form::Count.write(b)),
            _ => NULL.to_owned(),
        };
        let mut row = vec![
            pair.polled.name.to_owned(),
            pair.plain.name.to_owned(),
            pair.cpus.clone(),
            ratio(&pair.wall),
            pair.wall.as_ref().map_or_else(|| "no two runs of the same round".to_owned(), phrases::verdict),
            ratio(&pair.cpu),
        ];
        row.extend(iops.then(|| both("iops")));
        row.extend(per_cpu.then(|| both("ops_per_cpu_s")));
        row.extend(work.then(|| {
            let share = value(pair.polled, "sqpoll_work_percent");
            share.map_or_else(|| NULL.to_owned(), |percent| Form::Tenths.write(percent))
        }));
        table.row(row);
    }
    table.render()
}

/// What the intervals of one group of pairs allow to be said.
fn sentences(cpus: &str, pairs: &[&Pair<'_, '_>]) -> String {
    let of = |ratio: fn(&Pair<'_, '_>) -> Option<Ratio>, below: bool| {
        pairs
            .iter()
            .filter(|pair| ratio(pair).is_some_and(|r| r.verdict() == Verdict::Resolved && (r.ratio < 1.0) == below))
            .map(|pair| pair.polled.name)
            .collect::<Vec<_>>()
    };
    let (faster, slower) = (of(|pair| pair.wall, true), of(|pair| pair.wall, false));
    let total = pairs.len();
    let mut text = format!("On {cpus}: SQPOLL is faster in {} of {}", faster.len(), plural(total, "cell"));
    if !faster.is_empty() && faster.len() < total {
        text.push_str(&format!(" ({})", faster.join(", ")));
    }
    text.push_str(&format!(", slower in {}", slower.len()));
    let open = total - faster.len() - slower.len();
    if open > 0 {
        text.push_str(&format!(", and in {open} the difference is not resolved"));
    }
    text.push('.');
    let (cheaper, dearer) = (of(|pair| pair.cpu, true), of(|pair| pair.cpu, false));
    let ratios: Vec<f64> = pairs.iter().filter_map(|pair| Some(pair.cpu?.ratio)).collect();
    let range = ratios.iter().copied().reduce(f64::min).zip(ratios.iter().copied().reduce(f64::max));
    if let Some((least, most)) = range {
        let times = if ratios.len() == 1 { format!("{least:.2}") } else { format!("{least:.2} to {most:.2}") };
        text.push_str(&format!(
            " It takes {times} times the CPU time of the plain ring (less in {}, more in {}, of {total}; the rest is not \
             resolved).",
            cheaper.len(),
            dearer.len()
        ));
    }
    let both = faster.iter().filter(|name| cheaper.contains(name)).count();
    text.push_str(match (faster.len(), both) {
        (0, _) if open > 0 => " **Here no gain of SQPOLL is shown.**",
        (0, _) => " **Here SQPOLL does not pay in any cell that was measured.**",
        (fast, both) if fast == total && both == total => " **Here SQPOLL pays: it is faster and takes less CPU time.**",
        (_, 0) => {
            " **Here SQPOLL buys wall time, where it does, with CPU time; it pays only where a CPU would else be idle.**"
        }
        _ => " **Here SQPOLL pays in some of the cells: those named as faster.**",
    });
    text
}
