//! Figures: a pure function of run records and a [`FigureSpec`].
//!
//! Records are chosen and put together (`select`, `timeline`), set out on paper and drawn to SVG (`chart` and what it
//! uses), and that SVG is rendered to PNG and PDF (`render`); the CSV holds the points themselves. The font comes along
//! and nothing of the system is asked, so that the same records give the same bytes on every machine.

mod axes;
mod canvas;
mod cells;
mod chart;
mod csv;
mod data;
mod error;
mod estimate;
mod font;
mod leaf;
mod legend;
mod number;
mod palette;
mod panel;
mod published;
mod quantity;
mod render;
mod scale;
mod select;
mod spec;
#[cfg(test)]
mod tests;
mod timeline;
mod unit;
mod write;

use serde_json::Value;

pub use error::FigureError;
pub use spec::{FigureSpec, Kind, Published, Reference, Scalar, Values, Width};
pub use write::write;

/// What a figure needs besides its specification and the records.
#[derive(Debug, Clone, Copy, Default)]
pub struct DrawOptions<'a> {
    /// A line that is stamped on the figure, such as "quick run: SF 0.1, 3 runs".
    pub note: Option<&'a str>,
    /// Seed of the bootstrap, that of the campaign's other statistics.
    pub seed: u64,
    /// The file of published figures, which `key` of a [`Reference`] looks into.
    pub reference: Option<&'a Value>,
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Name of its files, without extension.
    pub name: String,
    /// The specification's caption, and what every reader has to know: what points and bars are, and of how many runs.
    pub caption: String,
    /// The SVG, of which PNG and PDF are renderings.
    pub svg: String,
    /// The PNG, 300 pixels an inch.
    pub png: Vec<u8>,
    /// The PDF, one page of the figure's size with its font in it.
    pub pdf: Vec<u8>,
    /// The data, one row for each point: values in the unit of the quantity's leaf name.
    pub csv: String,
    /// What could not be drawn, and why.
    pub warnings: Vec<String>,
}

/// Draws a figure of the records of a campaign: [`crate::experiment::record::Record`] as JSON, whole or with further
/// groups. Times are taken from the timed runs and counts from the counted ones; failed runs are not drawn, nor any run
/// of a cell that gave a wrong answer. Runs of two cells, or of two machines, are never pooled.
///
/// A figure without data is drawn as one that says why.
///
/// # Errors
/// [`FigureError`]: the specification does not fit the records.
pub fn draw(spec: &FigureSpec, records: &[Value], options: &DrawOptions<'_>) -> Result<Drawing, FigureError> {
    spec.check()?;
    let mut data = match spec.kind {
        Kind::Timeline => timeline::select(spec, records)?,
        _ => select::select(spec, records, options.seed, options.reference)?,
    };
    warn_of_undrawable(spec, &mut data);
    let drawing_error = |reason| FigureError::Drawing { figure: spec.name.clone(), reason };
    let metrics = font::Metrics::new().map_err(drawing_error)?;
    let notes: Vec<&str> = options.note.into_iter().chain(spec.note.as_deref()).collect();
    let svg = chart::draw(spec, &data, &notes, &metrics).map_err(|error| match error {
        chart::ChartError::Spec(problem) => spec.error(problem),
        chart::ChartError::Drawing(reason) => drawing_error(format!("plotters: {reason}")),
    })?;
    let (png, pdf) = render::render(&svg).map_err(drawing_error)?;
    Ok(Drawing {
        name: spec.name.clone(),
        caption: caption(spec, &data),
        svg,
        png,
        pdf,
        csv: csv::render(&data),
        warnings: data.warnings,
    })
}

/// Values that have no place on the axes.
fn warn_of_undrawable(spec: &FigureSpec, data: &mut data::FigureData) {
    let below_zero = |log: bool, value: Option<f64>| log && value.is_some_and(|value| value < 0.0);
    let hidden = data.points().filter(|point| {
        below_zero(spec.log_x, point.at) || below_zero(spec.log_y, point.estimate.map(|estimate| estimate.median))
    });
    let hidden = hidden.count();
    if hidden > 0 {
        data.warnings
            .push(format!("{hidden} points below zero have no place on a logarithmic axis; they are in the CSV"));
    }
    let marks = data.panels.iter().flat_map(|panel| &panel.published).filter(|mark| mark.at.is_none());
    let mut missing: Vec<String> =
        marks.map(|mark| format!("{} at x = {} is not drawn: no run has that x", mark.text, mark.x)).collect();
    data.warnings.append(&mut missing);
    data.warnings.sort();
    data.warnings.dedup();
}

/// The caption with what the drawing does not say itself.
fn caption(spec: &FigureSpec, data: &data::FigureData) -> String {
    let mut sentences: Vec<String> = Vec::new();
    let given = spec.caption.trim();
    if !given.is_empty() {
        sentences.push(if given.ends_with(['.', '!', '?']) { given.to_owned() } else { format!("{given}.") });
    }
    let drawn: Vec<&data::Point> = data.points().filter(|point| point.estimate.is_some()).collect();
    if let (Some(least), Some(most)) =
        (drawn.iter().map(|p| p.samples.len()).min(), drawn.iter().map(|p| p.samples.len()).max())
    {
        let runs = if least == most { format!("{most}") } else { format!("{least} to {most}") };
        let has_interval = drawn.iter().any(|p| p.estimate.is_some_and(|estimate| estimate.interval.is_some()));
        let has_none = drawn.iter().any(|p| p.estimate.is_some_and(|estimate| estimate.interval.is_none()));
        sentences.push(match spec.kind {
            Kind::Timeline => "Samples of one run each; of several runs, the one of the median wall time.".to_owned(),
            Kind::Stacked if most == 1 => "One run each, stacked.".to_owned(),
            Kind::Stacked => format!("Medians of {runs} runs, stacked."),
            _ if most == 1 => "One run each.".to_owned(),
            _ => format!("Medians of {runs} runs."),
        });
        match (spec.kind, has_interval, has_none) {
            (Kind::Timeline | Kind::Stacked, _, _) => {}
            (_, true, true) => sentences.push(
                "Error bars: bootstrap 95 % interval of the median; none where there are fewer than six runs."
                    .to_owned(),
            ),
            (_, true, false) => sentences.push("Error bars: bootstrap 95 % interval of the median.".to_owned()),
            (_, false, _) => sentences.push("Too few runs for intervals.".to_owned()),
        }
        let disturbed = |p: &&&data::Point| p.runs == data::Runs::Counted && data.quantities[p.quantity].is_timed();
        if drawn.iter().any(|p| disturbed(&p)) {
            sentences.push("Some times are from runs with tracepoints on, which slow them.".to_owned());
        }
    }
    if !data.published_labels().is_empty() {
        sentences.push("Open marks: published values.".to_owned());
    }
    sentences.join(" ")
}
