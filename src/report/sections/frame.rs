//! What was asked, of what, and how: the parts around the results.

use serde_json::Value;

use crate::page::ranges;
use crate::report::grid::grouped;
use crate::report::hosts::Host;
use crate::report::markdown::{Table, list, one_line, plural};
use crate::report::run::Run;
use crate::report::study::Study;

/// B-trees that the data set's table names; the rest is summed.
const BTREES_SHOWN: usize = 8;

/// Title, question, hypothesis, and what was made of the plan.
pub fn heading(study: &Study, hosts: &[Host<'_>]) -> String {
    let about = &study.campaign.about;
    let title = if about.title.is_empty() { &about.name } else { &about.title };
    let mut text = format!("# {}\n\n", one_line(title));
    if let Some(mark) = study.campaign.quick_mark() {
        text.push_str(&format!(
            "> **{}.** Too little data and too few runs for a verdict; `ioscope reproduce` without `--quick` makes them.\n\n",
            one_line(&mark)
        ));
    }
    if !about.question.is_empty() {
        text.push_str(&format!("**Question.** {}\n\n", one_line(&about.question)));
    }
    if let Some(hypothesis) = &about.hypothesis {
        text.push_str(&format!("**Hypothesis.** {}\n\n", one_line(hypothesis)));
    }
    let timed = study.runs.iter().filter(|run| !run.counted).count();
    let counted = study.runs.len() - timed;
    let failed = hosts.iter().flat_map(|host| &host.cells).map(|cell| cell.failed.len()).sum::<usize>();
    text.push_str(&format!(
        "**Measured.** {} of {} ({} timed and {} counted runs",
        plural(study.runs.len(), "run"),
        plural(study.campaign.plan.cells.len(), "cell"),
        grouped(timed as u64),
        grouped(counted as u64)
    ));
    text.push_str(&match failed {
        0 => ", none failed)".to_owned(),
        failed => format!(", {} failed)", grouped(failed as u64)),
    });
    if hosts.len() > 1 {
        text.push_str(&format!(" on {} machines or settings, which are never pooled", hosts.len()));
    }
    text.push_str(".\n\n");
    text
}

/// Which runs were sampled while under way, and what that cost.
fn sampled(study: &Study) -> Option<String> {
    let of = |run: &Run| Some((run.number("sample_interval_s")?, run.number("sampler_cpu_s")?, run.number("wall_s")?));
    let sampled: Vec<(f64, f64, f64)> = study.runs.iter().filter_map(of).collect();
    let (interval_s, ..) = sampled.first()?;
    let share = |&(_, cpu_s, wall_s): &(f64, f64, f64)| if wall_s > 0.0 { 100.0 * cpu_s / wall_s } else { 0.0 };
    let mut shares: Vec<f64> = sampled.iter().map(share).collect();
    shares.sort_by(f64::total_cmp);
    let most = shares.last()?;
    Some(format!(
        "every {} ms in {}; the thread that took them used {:.1} % of a CPU in the median run, {most:.1} % at most, which is \
         in the run's CPU time",
        interval_s * 1000.0,
        plural(sampled.len(), "run"),
        shares.get(shares.len() / 2)?,
    ))
}

/// The figures that the experiment names.
pub fn figures(study: &Study) -> String {
    let figures = &study.campaign.about.figures;
    if figures.is_empty() {
        return String::new();
    }
    let items = figures.iter().filter_map(|figure| {
        let text = |name: &str| figure.get(name).and_then(Value::as_str).map(one_line);
        let name = text("name")?;
        let caption = text("caption").map(|caption| format!(": {caption}")).unwrap_or_default();
        Some(format!("[{}](figures/{name}.svg){caption}", text("title").unwrap_or_else(|| name.clone())))
    });
    format!("## Figures\n\n`ioscope figures` draws them from the same records:\n\n{}", list(items))
}

/// How runs were made.
pub fn protocol(study: &Study) -> String {
    let campaign = &study.campaign;
    let plan = &campaign.plan;
    let mut rows: Vec<(&str, String)> = vec![("workload", workload(&plan.workload))];
    let mut runs: Vec<u32> = plan.cells.iter().map(|cell| cell.runs).collect();
    runs.sort_unstable();
    runs.dedup();
    let runs = runs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    rows.push(("runs of each cell", runs));
    rows.push((
        "counters",
        match plan.counters.as_str() {
            "both" => "both: timed runs without tracepoints, and one counted run of each cell".to_owned(),
            "all" => "all: counters in every run, whose times include the cost of counting".to_owned(),
            other => other.to_owned(),
        },
    ));
    rows.extend(sampled(study).map(|text| ("samples", text)));
    rows.push(("order", format!("rounds of one run of each cell, shuffled (seed {})", plan.seed)));
    rows.push(("warm-up rounds", plan.warmup.to_string()));
    rows.push(("time limit of a run", plan.timeout_s.map_or_else(|| "none".to_owned(), |s| format!("{s} s"))));
    for (label, digest) in [("experiment", &campaign.experiment_digest), ("plan", &campaign.plan_digest)] {
        rows.push((label, digest.clone()));
    }
    rows.push(("ioscope", made_with(&campaign.made_with)));
    let mut table = Table::new(["protocol", ""], 2);
    rows.iter().filter(|(_, value)| !value.is_empty()).for_each(|(label, value)| table.row([*label, value]));
    let mut text = format!("## Protocol\n\n{}", table.render());
    text.push_str("A run is a process of its own. Times are medians of the timed runs, with the seeded bootstrap 95 % interval of \
        the median where there are six or more; counts are those of the counted runs. Two cells differ only where the interval \
        of their ratio, runs of the same round paired, excludes 1.\n\n");
    let changes = campaign.changes.iter().chain(campaign.sources.iter().flat_map(|source| &source.changes));
    let changes: Vec<String> = changes
        .map(|change| {
            format!("after {}: {}", plural(change.records_before, "record"), one_line(&change.what.join("; ")))
        })
        .collect();
    if !changes.is_empty() {
        text.push_str("Changes that were accepted while the campaign was under way:\n\n");
        text.push_str(&list(changes));
    }
    if !campaign.sources.is_empty() {
        text.push_str("Merged from:\n\n");
        text.push_str(&list(campaign.sources.iter().map(|source| {
            let records = plural(source.records, "record");
            format!("{}: {records}, ioscope {}", one_line(&source.folder), made_with(&source.made_with))
        })));
    }
    if !plan.left_out.is_empty() {
        text.push_str("Left out of the matrix:\n\n");
        text.push_str(&list(
            plan.left_out.iter().map(|out| format!("{}: {}", one_line(&out.what), one_line(&out.why))),
        ));
    }
    text
}

fn made_with(made_with: &crate::report::study::MadeWith) -> String {
    match made_with.binary_digest.as_str() {
        "" => made_with.ioscope_version.clone(),
        digest => format!("{} ({digest})", made_with.ioscope_version),
    }
}

/// `query q06: SELECT ...`, for whatever kind of workload.
fn workload(value: &Value) -> String {
    let Some((kind, of)) = value.as_object().and_then(|kinds| kinds.iter().next()) else {
        return value.as_str().unwrap_or_default().to_owned();
    };
    let name = of.get("name").and_then(Value::as_str).unwrap_or_default();
    let sql = of.get("sql").and_then(Value::as_str).map(|sql| format!(": `{}`", one_line(sql))).unwrap_or_default();
    format!("{kind} {name}{sql}").trim_end().to_owned()
}

/// The data that was asked, and its b-trees.
pub fn data(study: &Study) -> String {
    let identity = &study.campaign.made_with.data;
    let mut rows: Vec<(&str, String)> =
        vec![("data", study.campaign.plan.data.clone()), ("path", identity.path.clone())];
    if identity.size_bytes > 0 {
        rows.push(("size, bytes", grouped(identity.size_bytes)));
    }
    for (name, label) in
        [("generator", "made by"), ("sqlite_version", "written by SQLite"), ("schema_digest", "schema")]
    {
        let value = identity.manifest.as_ref().and_then(|manifest| manifest.get(name)).and_then(Value::as_str);
        rows.extend(value.map(|value| (label, value.to_owned())));
    }
    let mut table = Table::new(["data set", ""], 2);
    rows.iter().filter(|(_, value)| !value.is_empty()).for_each(|(label, value)| table.row([*label, value]));
    let mut text = format!("## Data set\n\n{}", table.render());

    let Some(btrees) = &study.btrees else { return text };
    let mut table = Table::new(["b-tree", "leaf pages", "interior pages", "overflow pages"], 1);
    let pages = |code: &[u64]| ranges::decode(code).map_or(0, |pages| ranges::count(&pages));
    let mut rest = [0; 3];
    for (index, btree) in btrees.btrees.iter().enumerate() {
        let counts = btree.parts().map(|(_, code)| pages(code));
        if index < BTREES_SHOWN {
            let name = if btree.name == btree.table {
                btree.name.clone()
            } else {
                format!("{} (of {})", btree.name, btree.table)
            };
            table.row(std::iter::once(name).chain(counts.map(grouped)));
        } else {
            rest.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    if btrees.btrees.len() > BTREES_SHOWN {
        let others = plural(btrees.btrees.len() - BTREES_SHOWN, "other");
        table.row(std::iter::once(others).chain(rest.map(grouped)));
    }
    text.push_str(&table.render());
    text
}
