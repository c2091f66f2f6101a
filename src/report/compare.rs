//! Two campaigns of one experiment: which cells moved.

use std::collections::BTreeSet;

use super::hosts::{Cell, Host};
use super::markdown::{Table, list, one_line, plural};
use super::phrases::{self, Form, NULL};
use super::statistics::{Ratio, Verdict};
use super::study::Study;
use crate::measure::environment::Environment;

/// Counts that are told where they moved.
const COUNTS: [(&str, &str); 4] =
    [("sqes", "SQEs"), ("bios", "bios"), ("device_requests", "device requests"), ("pages_wasted", "pages wasted")];

/// Why two campaigns are not compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// They ask different things.
    #[error("the first is of experiment '{first}' and the second of '{second}': there is nothing to compare")]
    OtherExperiment {
        /// The first one's name.
        first: String,
        /// The second one's name.
        second: String,
    },
    /// They were not made in the same way.
    #[error("the campaigns were not made in the same way: {}", .0.join("; "))]
    Differences(Vec<String>),
}

/// The comparison, as Markdown. `first` is what `second` is measured by: ratios are second to first.
///
/// # Errors
/// [`Refusal`]; differences only where they are not `accepted`.
pub fn render(first: &Study, second: &Study, accepted: bool) -> Result<String, Refusal> {
    let (a, b) = (&first.campaign, &second.campaign);
    if a.about.name != b.about.name {
        return Err(Refusal::OtherExperiment { first: a.about.name.clone(), second: b.about.name.clone() });
    }
    let (hosts_a, hosts_b) = (Host::all(first), Host::all(second));
    let differences = differences(first, second, &hosts_a, &hosts_b);
    if !differences.is_empty() && !accepted {
        return Err(Refusal::Differences(differences));
    }
    let title = if a.about.title.is_empty() { &a.about.name } else { &a.about.title };
    let mut text = format!("# {}: two campaigns\n\n", one_line(title));
    if differences.is_empty() {
        text.push_str("Made in the same way: experiment, program, data set and environment are the same.\n\n");
    } else {
        text.push_str("**Not made in the same way**, and compared because that was accepted:\n\n");
        text.push_str(&list(differences.iter().map(|difference| one_line(difference))));
    }
    let (pairs, alone) = matched(&hosts_a, &hosts_b);
    for (a, b) in &pairs {
        if pairs.len() > 1 {
            text.push_str(&format!("## {}\n\n", b.label));
        }
        text.push_str(&cells(a, b, first.campaign.plan.seed));
    }
    if !alone.is_empty() {
        text.push_str("Not compared, because only one of the campaigns has it:\n\n");
        text.push_str(&list(alone));
    }
    while text.ends_with("\n\n") {
        text.pop();
    }
    Ok(text)
}

/// Everything that was not the same, in words.
fn differences(first: &Study, second: &Study, hosts_a: &[Host<'_>], hosts_b: &[Host<'_>]) -> Vec<String> {
    let (a, b) = (&first.campaign, &second.campaign);
    let mut found = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            found.push(format!("{what}: {a} and {b}"));
        }
    };
    let or_none = |text: &str| if text.is_empty() { "not known".to_owned() } else { text.to_owned() };
    differ("experiment file", or_none(&a.experiment_digest), or_none(&b.experiment_digest));
    differ("workload", a.plan.workload.to_string(), b.plan.workload.to_string());
    differ("data set", or_none(&a.plan.data), or_none(&b.plan.data));
    let data = |study: &Study| {
        let data = &study.campaign.made_with.data;
        let header = data.manifest.as_ref().and_then(|manifest| manifest.get("header")).map(ToString::to_string);
        format!(
            "{} bytes, change counter {:?}, header {}",
            data.size_bytes,
            data.change_counter,
            header.unwrap_or_default()
        )
    };
    let (size_a, size_b) = (a.made_with.data.size_bytes, b.made_with.data.size_bytes);
    differ("database, bytes", size_a.to_string(), size_b.to_string());
    if size_a == size_b && data(first) != data(second) {
        differ("content of the database", "one state".to_owned(), "another, by its header".to_owned());
    }
    differ("counters", or_none(&a.plan.counters), or_none(&b.plan.counters));
    let samples =
        |study: &Study| study.campaign.plan.sample.map_or_else(|| "none".to_owned(), |ms| format!("every {ms} ms"));
    differ("samples", samples(first), samples(second));
    differ("warm-up rounds", a.plan.warmup.to_string(), b.plan.warmup.to_string());
    let limit = |study: &Study| study.campaign.plan.timeout_s.map_or_else(|| "none".to_owned(), |s| s.to_string());
    differ("time limit, s", limit(first), limit(second));
    differ("seed of the order", a.plan.seed.to_string(), b.plan.seed.to_string());
    differ("ioscope", or_none(&a.made_with.ioscope_version), or_none(&b.made_with.ioscope_version));
    differ("program file", or_none(&a.made_with.binary_digest), or_none(&b.made_with.binary_digest));

    let identities = |hosts: &[Host<'_>]| -> BTreeSet<(String, String)> {
        let known = hosts.iter().filter_map(|host| host.environment);
        known.map(|e| (e.host.clone().unwrap_or_default(), e.id.clone())).collect()
    };
    if identities(hosts_a) != identities(hosts_b) {
        match (hosts_a, hosts_b) {
            ([a], [b]) => {
                if let (Some(a), Some(b)) = (a.environment, b.environment) {
                    found.extend(settings(a, b));
                }
            }
            _ => found.push(format!("machines: {} and {}", labels(hosts_a), labels(hosts_b))),
        }
    }
    found
}

fn labels(hosts: &[Host<'_>]) -> String {
    hosts.iter().map(|host| host.label.as_str()).collect::<Vec<_>>().join(", ")
}

/// Settings of two environments that differ, each by name.
fn settings(a: &Environment, b: &Environment) -> Vec<String> {
    let mut found = Vec::new();
    if a.host != b.host {
        let host = |e: &Environment| e.host.clone().unwrap_or_else(|| "not known".to_owned());
        found.push(format!("machine: {} and {}", host(a), host(b)));
    }
    for ((name, a), (_, b)) in a.settings().into_iter().zip(b.settings()) {
        if a != b {
            found.push(format!("{name}: {a} and {b}"));
        }
    }
    if a.id != b.id && found.is_empty() {
        found.push(format!("environment id: {} and {}", a.id, b.id));
    }
    found
}

/// Machines of both that belong together: the only ones, or those that are the same. The others by their labels.
fn matched<'h, 'a>(a: &'h [Host<'a>], b: &'h [Host<'a>]) -> (Vec<(&'h Host<'a>, &'h Host<'a>)>, Vec<String>) {
    if let ([a], [b]) = (a, b) {
        return (vec![(a, b)], Vec::new());
    }
    let id = |host: &Host<'_>| host.environment.map(|e| (e.host.clone(), e.id.clone()));
    let mut pairs = Vec::new();
    let mut alone = Vec::new();
    for host in a {
        match b.iter().find(|other| id(other) == id(host)) {
            Some(other) => pairs.push((host, other)),
            None => alone.push(format!("first campaign: {}", host.label)),
        }
    }
    let left = b.iter().filter(|host| !a.iter().any(|other| id(other) == id(host)));
    alone.extend(left.map(|host| format!("second campaign: {}", host.label)));
    (pairs, alone)
}

fn cells(first: &Host<'_>, second: &Host<'_>, seed: u64) -> String {
    let mut table = Table::new(["cell", "runs", "ratio of walls", "verdict", "first wall, s", "second wall, s"], 4);
    let mut counts = Table::new(["cell", "count", "first", "second"], 2);
    let (mut moved, mut judged) = (Vec::new(), 0);
    let mut lists: [Vec<String>; 2] = Default::default();
    for a in &first.cells {
        let Some(b) = second.cell(a.name) else {
            lists[0].push(a.name.to_owned());
            continue;
        };
        let walls = |cell: &Cell<'_>| cell.timed("wall_s").into_iter().map(|(_, wall)| wall).collect::<Vec<f64>>();
        let (walls_a, walls_b) = (walls(a), walls(b));
        let ratio = Ratio::of_medians(&walls_b, &walls_a, seed);
        let shown = |walls: &[f64], cell: &Cell<'_>| match super::statistics::median(walls) {
            Some(wall) => Form::Seconds.write(wall),
            None if cell.is_wrong() => "wrong answer".to_owned(),
            None if !cell.failed.is_empty() => "failed".to_owned(),
            None => NULL.to_owned(),
        };
        if let Some(ratio) = &ratio {
            judged += usize::from(ratio.verdict() != Verdict::TooFew);
            if ratio.verdict() == Verdict::Resolved {
                let way = if ratio.ratio < 1.0 { "faster" } else { "slower" };
                moved.push(format!("{}: {way}, {}", a.name, phrases::ratio_of_medians(ratio)));
            }
        }
        table.row([
            a.name.to_owned(),
            format!("{} and {}", a.how_many(), b.how_many()),
            ratio.as_ref().map_or_else(|| NULL.to_owned(), phrases::ratio_of_medians),
            ratio.as_ref().map_or_else(|| "no timed runs on both sides".to_owned(), phrases::verdict),
            shown(&walls_a, a),
            shown(&walls_b, b),
        ]);
        for (name, label) in COUNTS {
            if let (Some(x), Some(y)) = (a.count(name), b.count(name))
                && x != y
            {
                counts.row([a.name, label, &Form::Count.write(x), &Form::Count.write(y)]);
            }
        }
    }
    lists[1].extend(second.cells.iter().filter(|b| first.cell(b.name).is_none()).map(|b| b.name.to_owned()));

    let mut text = String::new();
    text.push_str(&match moved.len() {
        0 if judged > 0 => {
            format!("No cell moved: of {} that could be judged none is resolved.\n\n", plural(judged, "cell"))
        }
        0 => "No cell could be judged.\n\n".to_owned(),
        count => format!("{} of {judged} that could be judged moved:\n\n{}", plural(count, "cell"), list(moved)),
    });
    text.push_str(
        "Ratios are of the medians of walls, second to first, with a bootstrap 95 % interval over the runs of both. The \
         campaigns were not made at the same time, so a change of the machine between them is in the ratio.",
    );
    if judged >= 20 {
        text.push_str(&format!(" Of {judged} cells, about {} seem to move by chance alone.", judged.div_ceil(20)));
    }
    text.push_str("\n\n");
    text.push_str(&table.render());
    if !counts.is_empty() {
        text.push_str(&format!("Counts that differ:\n\n{}", counts.render()));
    }
    for (names, what) in lists.into_iter().zip(["Only in the first campaign", "Only in the second campaign"]) {
        if !names.is_empty() {
            text.push_str(&format!("{what}:\n\n{}", list(names)));
        }
    }
    text
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
