//! From records to a timeline: the samples of one run for each series.

use serde_json::Value;

use super::cells::Chosen;
use super::data::{Estimate, FigureData, Line, Look, Panel, Point, Runs, SeriesName, XAxis};
use super::error::FigureError;
use super::leaf::{self, Found};
use super::quantity::{Quantity, drawable};
use super::select::SERIES_MAX;
use super::spec::FigureSpec;

/// The time of a sample.
const TIME: &str = "t_s";

/// The data of a timeline.
///
/// # Errors
/// As [`super::select::select`].
pub(super) fn select(spec: &FigureSpec, records: &[Value]) -> Result<FigureData, FigureError> {
    let chosen = Chosen::choose(spec, records)?;
    let axes: Vec<_> = spec.series.iter().map(|name| chosen.values(spec, name)).collect();
    let label = |name: &String| Quantity::new(name, spec.labels.get(name).map(String::as_str));
    let quantities: Vec<Quantity> = spec.y.iter().map(label).collect();
    let mut panels: Vec<Panel> = quantities
        .iter()
        .map(|y| Panel { title: None, y: y.clone(), lines: Vec::new(), published: Vec::new() })
        .collect();
    // A record without samples is no part of a timeline, whatever its cell.
    let sampled: Vec<&Value> = chosen.records.iter().copied().filter(|r| !samples(r).is_empty()).collect();
    let reason = if sampled.is_empty() { chosen.records.iter().find_map(|r| leaf::reason(r, "samples")) } else { None };
    check_names(spec, &sampled)?;
    let sampled = Chosen { records: sampled, hosts: chosen.hosts };

    let mut series = Vec::new();
    let mut warnings = Vec::new();
    for (place, runs) in sampled.places(spec, None, &axes, &[]).and_then(|places| merged(spec, places))? {
        let Some(run) = pick(spec, &runs) else {
            warnings
                .extend(leaf::text(runs[0], "cell").map(|cell| format!("{cell}: no run with samples can be drawn")));
            continue;
        };
        let mut words: Vec<String> = axes.iter().zip(&place.0).map(|(axis, at)| axis.say(spec, *at)).collect();
        words.extend(sampled.hosts.get(place.1).and_then(|(_, name)| name.clone()));
        let at = series.len();
        let host = leaf::host(run).to_owned();
        for (q, panel) in panels.iter_mut().enumerate() {
            let points = samples(run).iter().map(|sample| point(sample, &quantities[q], q, run, &host)).collect();
            panel.lines.push(Line { series: at, points });
        }
        series.push(SeriesName { name: spec.name_of(words), look: Look { color: at, dash: 0, mark: at } });
    }
    if series.len() > SERIES_MAX {
        return Err(spec.error(format!("there are {} series, at most {SERIES_MAX}: use `filter`", series.len())));
    }
    let x = XAxis { quantity: Quantity::new(TIME, Some("time")), categories: None, joined: true };
    let mut data = FigureData { x, quantities, series, panels, warnings, no_data: None };
    data.no_data = match super::select::no_data(spec, &sampled, &data) {
        Some(_) if sampled.records.is_empty() => Some(reason.unwrap_or("no run was sampled (`--sample`)").to_owned()),
        other => other,
    };
    Ok(data)
}

/// Series and machine of some runs.
type Key = (Vec<usize>, usize);

/// Places by series and machine alone: a series is one cell.
fn merged<'a>(
    spec: &FigureSpec,
    places: std::collections::BTreeMap<super::cells::Place, Vec<&'a Value>>,
) -> Result<Vec<(Key, Vec<&'a Value>)>, FigureError> {
    let mut merged: Vec<(Key, Vec<&'a Value>)> = Vec::new();
    for (place, runs) in places {
        let key = (place.series, place.host);
        if let Some((_, first)) = merged.iter().find(|(known, _)| *known == key) {
            let mut both = first.clone();
            both.extend(runs);
            return Err(FigureError::Pooled {
                figure: spec.name.clone(),
                axes: super::cells::differing(&both).unwrap_or_default(),
            });
        }
        merged.push((key, runs));
    }
    Ok(merged)
}

fn samples(record: &Value) -> &[Value] {
    record.get("samples").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The run that is shown: the one asked for, else that of the median wall time, one without tracepoints if there is one.
fn pick<'a>(spec: &FigureSpec, runs: &[&'a Value]) -> Option<&'a Value> {
    let good = runs.iter().copied().filter(|run| leaf::failure(run).is_none());
    let mut good: Vec<&Value> = good.filter(|run| spec.run.is_none_or(|number| leaf::run(run) == number)).collect();
    if good.iter().any(|run| !leaf::is_counted(run)) {
        good.retain(|run| !leaf::is_counted(run));
    }
    let wall = |run: &Value| match leaf::quantity(run, "wall_s") {
        Found::Number(wall) => wall,
        _ => f64::INFINITY,
    };
    good.sort_by(|a, b| wall(a).total_cmp(&wall(b)));
    good.get(good.len().checked_sub(1)? / 2).copied()
}

fn point(sample: &Value, quantity: &Quantity, index: usize, run: &Value, host: &str) -> Point {
    let at = sample.get(TIME).and_then(Value::as_f64).and_then(drawable);
    let value = sample.get(&quantity.name).and_then(Value::as_f64).and_then(drawable);
    Point {
        x: at.map_or(String::new(), |at| at.to_string()),
        at,
        quantity: index,
        host: host.to_owned(),
        runs: Runs::Sampled(leaf::run(run)),
        samples: value.into_iter().collect(),
        estimate: value.map(|median| Estimate { median, interval: None }),
        reason: value.is_none().then(|| leaf::reason(run, &quantity.name).unwrap_or("not measured").to_owned()),
    }
}

fn check_names(spec: &FigureSpec, sampled: &[&Value]) -> Result<(), FigureError> {
    let mut known: Vec<&str> = sampled
        .iter()
        .flat_map(|r| samples(r))
        .filter_map(Value::as_object)
        .flat_map(|s| s.keys())
        .map(String::as_str)
        .collect();
    known.sort_unstable();
    known.dedup();
    match spec.y.iter().find(|name| !sampled.is_empty() && !known.contains(&name.as_str())) {
        Some(name) => Err(spec.error(format!("no sample has `{name}`; there are {}", known.join(", ")))),
        None => Ok(()),
    }
}
