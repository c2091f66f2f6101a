//! The CSV behind a figure: one row for each point, drawn or not, and for each published value.

use super::data::{FigureData, Line, Mark, Panel, Point, Runs};

/// The columns. Values are in the quantity's own unit, which its name ends in, and not in the one of the axis; `samples` holds those of all runs, parted by spaces.
const HEADER: &str = "panel,series,x_name,x,quantity,source,n,median,low_95,high_95,min,max,host,samples,note\n";

/// The file.
pub(super) fn render(data: &FigureData) -> String {
    let mut csv = HEADER.to_owned();
    for panel in &data.panels {
        for line in &panel.lines {
            for point in &line.points {
                row(&mut csv, &measured(data, panel, line, point));
            }
        }
        for mark in &panel.published {
            row(&mut csv, &published(data, panel, mark));
        }
    }
    csv
}

fn measured(data: &FigureData, panel: &Panel, line: &Line, point: &Point) -> [String; 15] {
    let (runs, note) = match point.runs {
        Runs::Timed => ("timed runs", ""),
        Runs::Counted => ("counted runs", ""),
        Runs::Sampled(_) => ("samples of a run", "run "),
    };
    let note = match (point.runs, &point.reason) {
        (_, Some(reason)) => reason.clone(),
        (Runs::Sampled(run), None) => format!("{note}{run}"),
        _ => String::new(),
    };
    let estimate = point.estimate;
    let interval = estimate.and_then(|estimate| estimate.interval);
    let least = point.samples.iter().copied().min_by(f64::total_cmp);
    let most = point.samples.iter().copied().max_by(f64::total_cmp);
    let samples = if matches!(point.runs, Runs::Sampled(_)) { &[][..] } else { &point.samples };
    [
        panel.title.clone().unwrap_or_default(),
        data.series.get(line.series).map_or(String::new(), |series| series.name.clone()),
        data.x.quantity.name.clone(),
        point.x.clone(),
        quantity(data, point.quantity),
        runs.to_owned(),
        point.samples.len().to_string(),
        number(estimate.map(|estimate| estimate.median)),
        number(interval.map(|(low, _)| low)),
        number(interval.map(|(_, high)| high)),
        number(least),
        number(most),
        point.host.clone(),
        samples.iter().map(f64::to_string).collect::<Vec<_>>().join(" "),
        note,
    ]
}

fn published(data: &FigureData, panel: &Panel, mark: &Mark) -> [String; 15] {
    let (low, high) = mark.ends;
    let single = (low == high).then_some(low);
    let range = |end| if single.is_none() { number(Some(end)) } else { String::new() };
    [
        panel.title.clone().unwrap_or_default(),
        mark.text.clone(),
        data.x.quantity.name.clone(),
        mark.x.clone(),
        quantity(data, mark.quantity),
        "published".to_owned(),
        String::new(),
        number(single),
        String::new(),
        String::new(),
        range(low),
        range(high),
        String::new(),
        String::new(),
        if mark.at.is_none() { "not drawn: x is not on the axis".to_owned() } else { String::new() },
    ]
}

fn quantity(data: &FigureData, index: usize) -> String {
    data.quantities.get(index).map_or(String::new(), |quantity| quantity.name.clone())
}

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// A row, quoted by RFC 4180 where needed.
fn row(csv: &mut String, fields: &[String]) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            csv.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            csv.push('"');
            csv.push_str(&field.replace('"', "\"\""));
            csv.push('"');
        } else {
            csv.push_str(field);
        }
    }
    csv.push('\n');
}
