//! Where delivered data lie: the touch probe, and the hardware's counts where there is a PMU.

use std::collections::BTreeMap;

use crate::report::hosts::{Cell, Host};
use crate::report::markdown::{Table, one_line};
use crate::report::phrases::{self, Form, NULL};
use crate::report::statistics::median;

/// The probe's leaf.
const TOUCH: &str = "touch_ns_per_line_p50";
/// Axes by which arms of the probe differ: cells are set against the buffered pread arm that agrees on all others.
const ARM_AXES: [&str; 7] = ["backend", "direct", "touch", "submit", "in_flight", "pool", "sqpoll_idle_ms"];

/// The first touch of delivered pages by arm; empty without records of the probe.
pub fn section(host: &Host<'_>, seed: u64) -> String {
    let cells: Vec<&Cell<'_>> = host.cells.iter().filter(|cell| !cell.times(TOUCH).is_empty()).collect();
    if cells.is_empty() {
        return String::new();
    }
    let mut text = String::from("### First touch of delivered pages\n\n");
    text.push_str(&touch_table(&cells, seed));
    text.push_str(&arms(&cells, seed));
    text.push_str(&hardware(&cells));
    match host.environment.and_then(|environment| environment.hypervisor.as_deref()) {
        Some("none") => text.push_str("The machine is not virtual, so no host copies the data on its way to the disk's driver.\n\n"),
        Some(hypervisor) => text.push_str(&format!(
            "Confounder: this machine is virtual (hypervisor {}). The host moves the data of a virtual disk with its own CPUs and may leave \
             lines in a cache that guest and host share; a direct read is then not as cold as a device's own DMA makes it. \
             That cannot be told apart from inside the guest.\n\n",
            one_line(hypervisor)
        )),
        None => text.push_str("Whether a hypervisor moves the disk's data is not known, and so neither whether it warms a shared cache.\n\n"),
    }
    text
}

fn touch_table(cells: &[&Cell<'_>], seed: u64) -> String {
    let head = [
        "cell",
        "runs",
        "touch, ns/line",
        "95 % of the median, or (range)",
        "95th percentile",
        "prepare, ns/line",
        "timer's own, ns",
    ];
    let mut table = Table::new(head, 2);
    for cell in cells {
        let other = |name: &str| {
            median(&cell.times(name)).map_or_else(|| NULL.to_owned(), |number| Form::Hundredths.write(number))
        };
        let Some(touch) = cell.time(TOUCH, seed) else { continue };
        table.row([
            cell.name.to_owned(),
            cell.how_many(),
            Form::Hundredths.write(touch.median),
            phrases::interval_or_range(&touch, Form::Hundredths),
            other("touch_ns_per_line_p95"),
            other("touch_prepare_ns_per_line_p50"),
            other("timer_overhead_ns"),
        ]);
    }
    format!(
        "Time of the first pass over a page after its delivery, per line of 64 bytes, the timer's own time subtracted; \
         `prepare` is the copy or the prefetch at delivery.\n\n{}",
        table.render()
    )
}

/// Every arm against the buffered pread arm that it agrees with in everything else.
fn arms(cells: &[&Cell<'_>], seed: u64) -> String {
    let rest = |cell: &Cell<'_>| -> BTreeMap<String, String> {
        let asked = cell.all().next().map(|run| run.asked.clone()).unwrap_or_default();
        asked.into_iter().filter(|(axis, _)| !ARM_AXES.contains(&axis.as_str())).collect()
    };
    let is_base = |cell: &Cell<'_>| {
        cell.asked("backend") == Some("pread")
            && cell.asked("direct") == Some("disabled")
            && cell.asked("touch").is_none_or(|touch| touch == "slot")
    };
    let mut table = Table::new(["cell", "against", "ratio of touch times", "verdict"], 4);
    for cell in cells.iter().filter(|cell| !is_base(cell)) {
        let base = cells.iter().find(|base| is_base(base) && rest(base) == rest(cell));
        let Some((base, ratio)) = base.and_then(|base| Some((base, cell.ratio(base, TOUCH, seed)?))) else { continue };
        table.row([cell.name, base.name, &phrases::ratio(&ratio), &phrases::verdict(&ratio)]);
    }
    match table.is_empty() {
        true => "No arm has a buffered pread arm beside it that agrees in everything else.\n\n".to_owned(),
        false => format!("Against the buffered pread, whose copy has just written the lines:\n\n{}", table.render()),
    }
}

fn hardware(cells: &[&Cell<'_>]) -> String {
    let mut table =
        Table::new(["cell", "cycles", "instructions", "IPC", "cache references", "cache misses", "missed, %"], 1);
    for cell in cells.iter().filter(|cell| cell.count("cycles").is_some() || cell.count("cache_misses").is_some()) {
        let columns = [
            ("cycles", Form::Count),
            ("instructions", Form::Count),
            ("ipc", Form::Hundredths),
            ("cache_references", Form::Count),
            ("cache_misses", Form::Count),
            ("miss_rate_percent", Form::Tenths),
        ];
        let values = columns.map(|(name, form)| cell.count(name).map_or_else(|| NULL.to_owned(), |n| form.write(n)));
        table.row(std::iter::once(cell.name.to_owned()).chain(values));
    }
    if table.is_empty() {
        let counted = cells.iter().flat_map(|cell| cell.for_counts()).find(|run| run.counted);
        let reason = counted.map_or("no run had counters on", |run| run.reason("cache_misses"));
        return format!("Hardware counts: none, because {reason}. The probe's times stand alone.\n\n");
    }
    table.render()
}
