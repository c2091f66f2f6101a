//! What did not go well: failures, missing runs, lines that cannot be read, nulls, warnings. All with their reasons.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::grid::grouped;
use crate::report::hosts::Host;
use crate::report::markdown::{Table, list, one_line, plural};
use crate::report::phrases::NULL;
use crate::report::study::Study;

/// Longest text of a failure or a warning that is shown, in characters.
const TEXT_MAX_CHARS: usize = 600;
/// Runs or lines that are named one by one.
const NAMED_MAX: usize = 12;

/// All of it, in sections of its own; what does not occur says so in one line.
pub fn section(study: &Study, hosts: &[Host<'_>]) -> String {
    let mut text = String::from("## Failures, warnings and what was not measured\n\n");
    text.push_str(&failures(hosts));
    text.push_str(&missing(study));
    text.push_str(&skipped(study));
    text.push_str(&warnings(hosts));
    text.push_str(&answers(hosts));
    text.push_str(&nulls(study));
    text
}

fn shown(text: &str) -> String {
    let text = one_line(text);
    match text.char_indices().nth(TEXT_MAX_CHARS) {
        Some((end, _)) => format!("{} [...]", &text[..end]),
        None => text,
    }
}

fn failures(hosts: &[Host<'_>]) -> String {
    let mut table = Table::new(["machine", "cell", "runs", "reason"], 4);
    for host in hosts {
        for cell in &host.cells {
            let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
            for run in &cell.failed {
                let reason = run.error.as_deref().unwrap_or("its answer is not the known one");
                let which = format!("{} {}", if run.counted { "counted" } else { "timed" }, run.run);
                match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, runs)) => runs.push(which),
                    None => by_reason.push((reason, vec![which])),
                }
            }
            for (reason, runs) in by_reason {
                table.row([host.label.as_str(), cell.name, &named(&runs), &shown(reason)]);
            }
        }
    }
    match table.is_empty() {
        true => "No run failed.\n\n".to_owned(),
        false => format!(
            "Failed runs. Their times are in no number; of a cell with a wrong answer no number is reported at all.\n\n{}",
            table.render()
        ),
    }
}

fn named(items: &[String]) -> String {
    match items.len().checked_sub(NAMED_MAX) {
        None | Some(0) => items.join(", "),
        Some(more) => format!("{} and {} more", items[..NAMED_MAX].join(", "), grouped(more as u64)),
    }
}

fn missing(study: &Study) -> String {
    let missing = study.missing_runs();
    if missing.is_empty() {
        return String::new();
    }
    let names: Vec<String> = missing
        .iter()
        .map(|id| format!("{} ({} {})", id.cell, if id.counted { "counted" } else { "timed" }, id.run))
        .collect();
    let planned = study.campaign.plan.order.len();
    format!(
        "{} of {} planned have no record: {}. `ioscope run --resume` makes what is missing of a campaign that was stopped.\n\n",
        plural(missing.len(), "run"),
        grouped(planned as u64),
        named(&names)
    )
}

fn skipped(study: &Study) -> String {
    if study.skipped.is_empty() {
        return String::new();
    }
    let lines: Vec<String> =
        study.skipped.iter().take(NAMED_MAX).map(|(line, why)| format!("line {line}: {}", shown(why))).collect();
    let more = study.skipped.len() - lines.len();
    let more = if more > 0 { vec![format!("and {} more", grouped(more as u64))] } else { Vec::new() };
    format!("Lines of runs.jsonl that are no runs, and were skipped:\n\n{}", list(lines.into_iter().chain(more)))
}

/// Warnings that differ in numbers only, once.
fn warnings(hosts: &[Host<'_>]) -> String {
    let mut alike: BTreeMap<(String, &str), (&str, usize, BTreeSet<&str>)> = BTreeMap::new();
    for host in hosts {
        for run in host.runs() {
            for warning in &run.warnings {
                let shape: String = warning.chars().filter(|c| !c.is_ascii_digit()).collect();
                let entry = alike.entry((shape, &host.label)).or_insert((warning, 0, BTreeSet::new()));
                entry.1 += 1;
                entry.2.insert(&run.cell);
            }
        }
    }
    if alike.is_empty() {
        return "No run had a warning.\n\n".to_owned();
    }
    let items = alike.iter().map(|((_, host), (first, runs, cells))| {
        let on = if hosts.len() > 1 { format!(", {host}") } else { String::new() };
        let cells: Vec<String> = cells.iter().map(|cell| (*cell).to_owned()).collect();
        let example = if *runs > 1 { ", for instance" } else { "" };
        format!("{} ({}{on}){example}: {}", plural(*runs, "run"), named(&cells), shown(first))
    });
    format!("Warnings of runs:\n\n{}", list(items))
}

/// Whether answers differ where none is known to be right.
fn answers(hosts: &[Host<'_>]) -> String {
    let mut answers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in hosts.iter().flat_map(Host::runs).filter(|run| run.error.is_none() && run.answer_ok.is_none()) {
        if let Some(answer) = &run.answer {
            answers.entry(answer).or_default().insert(&run.cell);
        }
    }
    if answers.len() < 2 {
        return String::new();
    }
    let groups = answers.values().map(|cells| named(&cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>()));
    format!("**Answers differ**, and none is known to be right. Cells that agree:\n\n{}", list(groups))
}

/// Quantities that are null, by reason. Where a whole run failed, its failure says it.
fn nulls(study: &Study) -> String {
    let mut by_reason: BTreeMap<&str, (BTreeSet<&str>, usize)> = BTreeMap::new();
    for run in study.runs.iter().filter(|run| run.error.is_none()) {
        let reasons: BTreeSet<&str> = run.reasons.values().map(String::as_str).collect();
        for (name, reason) in &run.reasons {
            by_reason.entry(reason).or_default().0.insert(name);
        }
        for reason in reasons {
            by_reason.entry(reason).or_default().1 += 1;
        }
    }
    let mut rows: Vec<_> = by_reason.into_iter().collect();
    rows.sort_by_key(|(reason, (_, runs))| (std::cmp::Reverse(*runs), *reason));
    if rows.is_empty() {
        return String::new();
    }
    let items = rows.into_iter().map(|(reason, (names, runs))| {
        let names = names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        format!("{} ({}): {names}", shown(reason), plural(runs, "run"))
    });
    format!("Quantities that were not measured ({NULL} above), by reason:\n\n{}", list(items))
}
