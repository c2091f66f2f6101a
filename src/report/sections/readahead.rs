//! What a window does to the read path: for every campaign whose cells differ in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::differences;
use super::published::number_or_range;
use super::wasted::{self, Wasted};
use crate::report::grid::grouped;
use crate::report::hosts::{Cell, Host};
use crate::report::markdown::{Table, list};
use crate::report::phrases::{self, Form, NULL};
use crate::report::study::Study;

/// Axes that mean nothing without readahead: a cell of window 0 stands with all of their values.
const READAHEAD_AXES: [&str; 5] = ["submit", "policy", "in_flight", "gap", "pool"];
/// Axes that are never part of an arm's name.
const NOT_AN_ARM: [&str; 4] = ["window", "database", "query", "sqpoll_idle_ms"];
/// The section of published values that belongs here.
const PUBLISHED: &str = "article.readahead";
/// Owners of wasted pages that have columns of their own.
const OWNERS_SHOWN: usize = 4;

/// One line of cells that differ in their window only.
struct Arm<'h, 'a> {
    /// Its values on the axes that differ between arms.
    name: String,
    axes: BTreeMap<&'a str, &'a str>,
    /// By window.
    cells: BTreeMap<u64, &'h Cell<'a>>,
}

/// The table by engine, submit and window, and whose pages were read for nothing; empty where windows do not differ.
pub fn section(study: &Study, host: &Host<'_>, seed: u64) -> String {
    let arms = arms(host);
    let windows: BTreeSet<u64> = arms.iter().flat_map(|arm| arm.cells.keys().copied()).collect();
    if windows.len() < 2 {
        return String::new();
    }
    let published = study.campaign.about.reference.iter().find(|reference| reference.section == PUBLISHED);
    let mut text = String::from("### Readahead by window\n\n");
    text.push_str(&table(&arms, published.map(|reference| &reference.values), seed));
    if published.is_some() {
        text.push_str(
            "Published rows are of another machine, with one SQE a page and direct reads; what belongs to the data and \
             the window (SQEs, bios, merges) is comparable, walls are not.\n\n",
        );
    }
    if let Some(reference) = published {
        text.push_str(&differences(&arms, &reference.values));
    }
    text.push_str(&extra(study, &arms, published.map(|reference| &reference.values)));
    text
}

/// Why what the block layer counted is not what was published.
fn differences(arms: &[Arm<'_, '_>], published: &Value) -> String {
    let items = arms.iter().filter(|arm| is_published_arm(arm)).flat_map(|arm| {
        let row = |window: &u64| published.get(format!("window_{window}"));
        let rows = arm.cells.iter().filter_map(move |(window, cell)| Some((*window, cell, row(window)?)));
        rows.flat_map(|(window, cell, row)| differences::explained(&arm.name, window, cell, row))
    });
    let items: Vec<String> = items.collect();
    match items.is_empty() {
        true => String::new(),
        false => format!("Where they differ from the published counts:\n\n{}", list(items)),
    }
}

fn arms<'h, 'a>(host: &'h Host<'a>) -> Vec<Arm<'h, 'a>> {
    let window = |cell: &Cell<'_>| cell.asked("window").and_then(|window| window.parse::<u64>().ok());
    // A scan reads what it was told to: nothing that it reads is read in vain, and the published values are of queries.
    let is_query = |cell: &Cell<'_>| cell.asked("block_bytes").is_none();
    let has_reader = |cell: &Cell<'_>| {
        is_query(cell) && cell.asked("backend").is_some_and(|backend| !backend.starts_with("builtin"))
    };
    let axes = |cell: &Cell<'a>| -> BTreeMap<&'a str, &'a str> {
        let asked = cell.all().next().map(|run| &run.asked);
        let all = asked.into_iter().flatten().map(|(axis, value)| (axis.as_str(), value.as_str()));
        all.filter(|(axis, _)| !NOT_AN_ARM.contains(axis)).collect()
    };
    let cells: Vec<(u64, &Cell<'a>)> =
        host.cells.iter().filter(|cell| has_reader(cell)).filter_map(|cell| Some((window(cell)?, cell))).collect();
    let mut arms: Vec<Arm<'h, 'a>> = Vec::new();
    for (window, cell) in cells.iter().filter(|(window, _)| *window > 0) {
        let axes = axes(cell);
        match arms.iter_mut().find(|arm| arm.axes == axes) {
            Some(arm) => {
                arm.cells.insert(*window, cell);
            }
            None => arms.push(Arm { name: String::new(), axes, cells: BTreeMap::from([(*window, *cell)]) }),
        }
    }
    for (_, cell) in cells.iter().filter(|(window, _)| *window == 0) {
        let axes = axes(cell);
        let same = |arm: &Arm<'_, '_>| {
            arm.axes.iter().all(|(axis, value)| READAHEAD_AXES.contains(axis) || axes.get(axis) == Some(value))
        };
        for arm in arms.iter_mut().filter(|arm| same(arm)) {
            arm.cells.insert(0, cell);
        }
    }
    let all: BTreeSet<&str> = arms.iter().flat_map(|arm| arm.axes.keys().copied()).collect();
    let varying: Vec<&str> =
        all.into_iter().filter(|axis| arms.iter().any(|arm| arm.axes.get(axis) != arms[0].axes.get(axis))).collect();
    for arm in &mut arms {
        let values = varying.iter().filter_map(|axis| arm.axes.get(axis).copied());
        arm.name = values.collect::<Vec<_>>().join(" ");
        if arm.name.is_empty() {
            arm.name = arm.axes.get("engine").copied().unwrap_or("all").to_owned();
        }
    }
    arms
}

fn table(arms: &[Arm<'_, '_>], published: Option<&Value>, seed: u64) -> String {
    let head = [
        "arm",
        "window",
        "runs",
        "SQEs",
        "bios",
        "merged",
        "merged, %",
        "device requests",
        "average request, KiB",
        "pages wasted",
        "wall, s",
        "95 % of the median, or (range)",
    ];
    let mut table = Table::new(head, 1);
    for arm in arms {
        for (window, cell) in &arm.cells {
            let count =
                |name: &str, form: Form| cell.count(name).map_or_else(|| NULL.to_owned(), |number| form.write(number));
            let wall = cell.time("wall_s", seed);
            table.row([
                arm.name.clone(),
                window.to_string(),
                cell.how_many(),
                count("sqes", Form::Count),
                count("bios", Form::Count),
                count("bios_merged", Form::Count),
                count("merged_percent", Form::Tenths),
                count("device_requests", Form::Count),
                count("request_kib", Form::Hundredths),
                count("pages_wasted", Form::Count),
                wall.map_or_else(|| NULL.to_owned(), |wall| Form::Seconds.write(wall.median)),
                wall.map_or_else(String::new, |wall| phrases::interval_or_range(&wall, Form::Seconds)),
            ]);
            if let Some(row) =
                published.filter(|_| is_published_arm(arm)).and_then(|values| published_row(values, *window))
            {
                table.row(row);
            }
        }
    }
    table.render()
}

/// Whether the published runs read as this arm does: the ring, one SQE a page, past the page cache.
fn is_published_arm(arm: &Arm<'_, '_>) -> bool {
    let is = |axis: &str, value: &str| arm.axes.get(axis).is_none_or(|asked| *asked == value);
    is("backend", "uring") && is("submit", "per-page") && is("direct", "required")
}

fn published_row(values: &Value, window: u64) -> Option<Vec<String>> {
    let row = values.get(format!("window_{window}"))?;
    let shown = |name: &str, form: Form| {
        row.get(name).and_then(|v| number_or_range(v, form)).unwrap_or_else(|| NULL.to_owned())
    };
    let merged_percent = row.get("merged_percent").and_then(|v| number_or_range(v, Form::Tenths)).or_else(|| {
        let (merged, bios) = (row.get("bios_merged")?.as_f64()?, row.get("bios")?.as_f64()?);
        (bios > 0.0).then(|| Form::Tenths.write(100.0 * merged / bios))
    });
    Some(vec![
        "*published*".to_owned(),
        format!("*{window}*"),
        String::new(),
        shown("sqes", Form::Count),
        shown("bios", Form::Count),
        shown("bios_merged", Form::Count),
        merged_percent.unwrap_or_else(|| NULL.to_owned()),
        shown("device_requests", Form::Count),
        shown("request_size_kib", Form::Hundredths),
        NULL.to_owned(),
        shown("wall_s", Form::Seconds),
        String::new(),
    ])
}

/// The extra reads of each window, by the b-trees whose pages they brought.
fn extra(study: &Study, arms: &[Arm<'_, '_>], published: Option<&Value>) -> String {
    let mut found: Vec<(&Arm<'_, '_>, u64, Option<f64>, Wasted)> = Vec::new();
    let (mut has_ranges, mut reason) = (false, String::new());
    for arm in arms {
        let base = arm.cells.get(&0).and_then(|cell| cell.count("sqes"));
        // With one SQE a run, SQEs do not count pages.
        let base = base.filter(|_| arm.axes.get("submit").is_none_or(|submit| *submit == "per-page"));
        for (window, cell) in arm.cells.iter().filter(|(window, _)| **window > 0) {
            let extra = base.zip(cell.count("sqes")).map(|(base, sqes)| sqes - base);
            let Some(run) = cell.for_counts().first() else { continue };
            match (&run.wasted, run.number("pages_wasted"), &study.btrees) {
                (Some(pages), Some(total), Some(btrees)) => {
                    found.push((arm, *window, extra, wasted::by_btree(total as u64, pages, btrees)));
                }
                (None, _, _) => reason = run.reason("pages_wasted_ranges").to_owned(),
                _ => {}
            }
            has_ranges |= run.wasted.is_some();
        }
    }
    let mut text = String::from("#### Pages that were read and not used\n\n");
    if found.is_empty() {
        let why = match (&study.btrees_missing, has_ranges) {
            (Some(why), true) => why.clone(),
            _ if !reason.is_empty() => format!("the pages' numbers were not recorded: {reason}"),
            _ => "no run recorded the pages' numbers".to_owned(),
        };
        text.push_str(&format!("Whose they were is not known: {why}.\n\n"));
        return text;
    }
    text.push_str(&owners_table(&found));
    text.push_str(&list(found.iter().filter_map(|(arm, window, extra, wasted)| {
        let key = format!("window_{window}");
        let published = published.filter(|_| is_published_arm(arm));
        let sqes = |key: &str| published.and_then(|values| values.get(key)?.get("sqes")?.as_f64());
        // One sentence for a window that was published, or else for each arm's widest.
        let is_widest = arm.cells.keys().next_back() == Some(window);
        let has_published = arm.cells.keys().any(|window| sqes(&format!("window_{window}")).is_some() && *window > 0);
        if !(sqes(&key).is_some() || (is_widest && !has_published)) {
            return None;
        }
        Some(sentence(&arm.name, *window, *extra, wasted, sqes(&key).zip(sqes("window_0")).map(|(w, zero)| w - zero)))
    })));
    if found.iter().any(|(_, _, _, wasted)| wasted.shares.iter().any(|share| share.kind == "interior")) {
        text.push_str(
            "Interior pages count as wasted where the engine, descending, had asked for them alone before the window came \
             past.\n\n",
        );
    }
    text
}

fn owners_table(found: &[(&Arm<'_, '_>, u64, Option<f64>, Wasted)]) -> String {
    let mut totals: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for share in found.iter().flat_map(|(_, _, _, wasted)| &wasted.shares) {
        *totals.entry((&share.btree, share.kind)).or_default() += share.pages;
    }
    let mut owners: Vec<((&str, &str), u64)> = totals.into_iter().collect();
    owners.sort_by_key(|(owner, pages)| (std::cmp::Reverse(*pages), *owner));
    owners.truncate(OWNERS_SHOWN);
    let names = owners.iter().map(|((btree, kind), _)| format!("{btree}, {kind}"));
    let head = ["arm", "window", "SQEs above window 0", "pages wasted"].map(str::to_owned).into_iter().chain(names);
    let mut table = Table::new(head.chain(["other b-trees", "no b-tree", "repeated"].map(str::to_owned)), 1);
    for (arm, window, extra, wasted) in found {
        let of = |owner: &(&str, &str)| {
            wasted.shares.iter().find(|s| (s.btree.as_str(), s.kind) == *owner).map_or(0, |share| share.pages)
        };
        let shown: Vec<u64> = owners.iter().map(|(owner, _)| of(owner)).collect();
        let all: u64 = wasted.shares.iter().map(|share| share.pages).sum();
        let mut row = vec![
            arm.name.clone(),
            window.to_string(),
            extra.map_or_else(|| NULL.to_owned(), signed),
            grouped(wasted.total),
        ];
        row.extend(shown.iter().map(|pages| grouped(*pages)));
        row.extend([all - shown.iter().sum::<u64>(), wasted.unowned, wasted.repeated].map(grouped));
        table.row(row);
    }
    table.render()
}

/// `+23 005`.
fn signed(difference: f64) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", grouped(difference.abs().round() as u64))
}

fn sentence(arm: &str, window: u64, extra: Option<f64>, wasted: &Wasted, published_extra: Option<f64>) -> String {
    let mut text = format!("{arm}, window {window}: {} pages wasted", grouped(wasted.total));
    let mut parts: Vec<String> = Vec::new();
    let mut shown: Vec<&str> = Vec::new();
    for share in wasted.shares.iter().take(OWNERS_SHOWN) {
        if shown.contains(&share.btree.as_str()) {
            continue;
        }
        shown.push(&share.btree);
        let own: Vec<_> = wasted.shares.iter().filter(|other| other.btree == share.btree).collect();
        let pages: u64 = own.iter().map(|share| share.pages).sum();
        let kinds: Vec<String> = own
            .iter()
            .map(|share| format!("{} of {} {}", grouped(share.pages), grouped(share.of), share.kind))
            .collect();
        let what = if share.btree == share.table { String::new() } else { format!(", an index of {}", share.table) };
        parts.push(format!("{} of {}{what} ({})", grouped(pages), share.btree, kinds.join(", ")));
    }
    let named: u64 = wasted.shares.iter().filter(|s| shown.contains(&s.btree.as_str())).map(|share| share.pages).sum();
    let others = wasted.total - wasted.unowned - wasted.repeated - named;
    for (pages, what) in
        [(others, "of other b-trees"), (wasted.unowned, "in no b-tree"), (wasted.repeated, "read for nothing again")]
    {
        if pages > 0 {
            parts.push(format!("{} {what}", grouped(pages)));
        }
    }
    if !parts.is_empty() {
        text.push_str(&format!(": {}", parts.join("; ")));
    }
    text.push('.');
    if let Some(extra) = extra {
        text.push_str(&format!(" SQEs above window 0: {}", signed(extra)));
        match (wasted.total as f64 - extra) as i64 {
            0 => text.push_str(", as many"),
            saved @ 1.. => text.push_str(&format!(
                ", {} fewer, because some pages were asked for again while the window held them",
                grouped(saved.unsigned_abs())
            )),
            more => {
                text.push_str(&format!(", {} more, which brought pages that were used", grouped(more.unsigned_abs())))
            }
        }
        if let Some(published) = published_extra {
            text.push_str(&format!(
                " (published: {}, a difference of {})",
                signed(published),
                signed(extra - published)
            ));
        }
        text.push('.');
    }
    text
}
