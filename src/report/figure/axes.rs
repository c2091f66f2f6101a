//! The axes of a figure: units, scales, ticks and how their labels fit.

use super::canvas::{Align, Canvas, Spot, Stroke};
use super::chart::{LINE, TEXT};
use super::data::{FigureData, Panel};
use super::font::{Metrics, printable};
use super::palette::{GRID, INK, PAPER};
use super::scale::{BREAK_AT, Fit, Scale, Tick};
use super::spec::{FigureSpec, Kind};
use super::unit::Shown;

/// Length of a tick.
const TICK: i32 = 60;
/// From a tick of y to its label.
const BESIDE_TICK: i32 = 40;
/// Most lines of a category's label, and most room of one that reads upwards.
const CATEGORY_LINES: usize = 3;
const UPRIGHT_MAX: f64 = 4500.0;
/// Room of a label of x at the right of the plot.
const OVERHANG: i32 = 140;
/// Least distance of two labels of y.
const LABEL_PITCH: i32 = 260;
/// Stroke of an axis.
const AXIS: Stroke = Stroke { color: INK, width: 18, dash: &[] };
/// Stroke of the grid.
const GRID_LINE: Stroke = Stroke { color: GRID, width: 12, dash: &[] };

/// What all panels have in common: the x axis, and the y axis where they show the same quantity.
pub(super) struct Sheet<'a> {
    spec: &'a FigureSpec,
    data: &'a FigureData,
    /// Scale of a numeric x.
    pub x: Scale,
    x_shown: Shown,
    y: Vec<(Scale, Shown)>,
}

/// A panel's y axis.
pub(super) struct YAxis {
    /// Its scale.
    pub scale: Scale,
    ticks: Vec<Tick>,
}

impl<'a> Sheet<'a> {
    /// Units and scales.
    ///
    /// # Errors
    /// A unit that a quantity cannot be shown in.
    pub fn new(spec: &'a FigureSpec, data: &'a FigureData) -> Result<Sheet<'a>, String> {
        let measured = data.points().filter(|point| point.estimate.is_some()).filter_map(|point| point.at);
        let published = data.panels.iter().flat_map(|panel| &panel.published).filter_map(|mark| mark.at);
        let xs: Vec<f64> = measured.chain(published).collect();
        let most = |values: &[f64]| values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let is_time = spec.kind == Kind::Timeline;
        let x_fit = Fit { log: spec.log_x, from_zero: is_time, pad: if is_time { 0.0 } else { 0.035 } };
        let x_shown = data.x.quantity.unit.shown(most(&xs), spec.x_unit.as_deref())?;

        let fit = Fit { log: spec.log_y, from_zero: true, pad: 0.06 };
        let axis = |panels: &[Panel], panel: &Panel| -> Result<(Scale, Shown), String> {
            let values: Vec<f64> = panels.iter().flat_map(|panel| heights(spec, panel)).collect();
            let shown = panel.y.unit.shown(most(&values), spec.y_unit.as_deref())?;
            Ok((Scale::over(&values, fit), shown))
        };
        let own = |panel: &Panel| axis(std::slice::from_ref(panel), panel);
        let shared = |panel: &Panel| axis(&data.panels, panel);
        let y: Result<Vec<_>, String> = data
            .panels
            .iter()
            .map(|panel| if spec.panels_are_quantities() { own(panel) } else { shared(panel) })
            .collect();
        Ok(Sheet { spec, data, x: Scale::over(&xs, x_fit), x_shown, y: y? })
    }

    fn of(&self, panel: &Panel) -> &(Scale, Shown) {
        let at = self.data.panels.iter().position(|other| std::ptr::eq(other, panel)).unwrap_or(0);
        &self.y[at]
    }

    /// A panel's y axis for a plot of this height.
    pub fn y_axis(&self, panel: &Panel, height: i32) -> YAxis {
        let (scale, shown) = self.of(panel);
        YAxis { scale: scale.clone(), ticks: scale.ticks((height / 480).max(2) as usize, shown.factor) }
    }

    /// The label of a panel's y axis.
    pub fn y_label(&self, panel: &Panel) -> String {
        let label = match (&self.spec.y_label, self.spec.panels_are_quantities()) {
            (Some(label), false) => label,
            _ => &panel.y.label,
        };
        self.of(panel).1.label(label)
    }

    /// The label of the x axis.
    pub fn x_label(&self) -> String {
        self.x_shown.label(self.spec.x_label.as_deref().unwrap_or(&self.data.x.quantity.label))
    }
}

/// All that has to have a place on a panel's y axis.
fn heights(spec: &FigureSpec, panel: &Panel) -> Vec<f64> {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    if spec.kind == Kind::Stacked {
        let mut sums: Vec<(f64, f64)> = Vec::new();
        for point in points() {
            let Some((at, estimate)) = point.at.zip(point.estimate) else { continue };
            match sums.iter_mut().find(|(x, _)| *x == at) {
                Some((_, sum)) => *sum += estimate.median.max(0.0),
                None => sums.push((at, estimate.median.max(0.0))),
            }
        }
        return sums.into_iter().map(|(_, sum)| sum).collect();
    }
    let estimates = points().filter(|point| point.at.is_some()).filter_map(|point| point.estimate);
    let ends = estimates.flat_map(|estimate| {
        // An interval that reaches zero must not break a logarithmic axis.
        let interval = estimate.interval.map(|(low, high)| [low, high]).into_iter().flatten();
        interval.filter(move |end| !spec.log_y || *end > 0.0).chain([estimate.median])
    });
    let published = panel.published.iter().filter(|mark| mark.at.is_some());
    ends.chain(published.flat_map(|mark| [mark.ends.0, mark.ends.1])).collect()
}

impl YAxis {
    /// Room for its labels.
    pub fn label_width(&self, metrics: &Metrics) -> f64 {
        let labels = self.ticks.iter().filter_map(|tick| tick.label.as_ref());
        labels.map(|label| metrics.width(label, TEXT)).fold(0.0, f64::max)
    }

    /// Draws axis, grid, ticks and labels at the left of a plot.
    pub fn draw(&self, canvas: &Canvas<'_>, (from, to): (Spot, Spot)) -> Result<(), String> {
        let place = |at: f64| to.1 - (at * f64::from(to.1 - from.1)).round() as i32;
        // A label that would touch the one below it is left out; the one at a zero below a break stays.
        let mut free = i32::MAX;
        for tick in &self.ticks {
            let y = place(tick.at);
            match tick.label.as_ref().filter(|_| y <= free) {
                None => canvas.path(&[(from.0 - TICK / 2, y), (from.0, y)], AXIS)?,
                Some(label) => {
                    canvas.path(&[(from.0, y), (to.0, y)], GRID_LINE)?;
                    canvas.path(&[(from.0 - TICK, y), (from.0, y)], AXIS)?;
                    canvas.text(label, (from.0 - TICK - BESIDE_TICK, y + 88), TEXT, Align::Right, INK)?;
                    free = y - LABEL_PITCH;
                }
            }
        }
        canvas.path(&[from, (from.0, to.1)], AXIS)?;
        if self.scale.broken {
            let y = place(BREAK_AT);
            canvas.rect((from.0 - 20, y - 30), (from.0 + 20, y + 30), PAPER)?;
            for edge in [y - 30, y + 30] {
                canvas.path(&[(from.0 - 80, edge + 35), (from.0 + 80, edge - 35)], AXIS)?;
            }
        }
        Ok(())
    }
}

/// How the labels of x fit below a plot.
#[derive(Debug, Clone)]
pub(super) struct XLook {
    ticks: Vec<Tick>,
    /// Labels in lines, by tick.
    lines: Vec<Vec<String>>,
    upright: bool,
    height: i32,
    categories: usize,
    broken: bool,
}

impl XLook {
    /// Chooses ticks and labels for a plot of this width.
    pub fn fit(sheet: &Sheet<'_>, metrics: &Metrics, width: i32) -> XLook {
        match &sheet.data.x.categories {
            Some(names) => XLook::categories(names, metrics, width),
            None => XLook::numbers(sheet, metrics, width),
        }
    }

    fn numbers(sheet: &Sheet<'_>, metrics: &Metrics, width: i32) -> XLook {
        // On a logarithmic axis the ticks are the values that were asked for; on a linear one a few are enough.
        let pitch = if sheet.x.is_linear() { 1100 } else { 550 };
        let mut ticks = sheet.x.ticks((width / pitch).max(2) as usize, sheet.x_shown.factor);
        // Labels that would touch the one before them, or leave the sheet, are left out.
        // At the left they end where the labels of y begin, which come nearly as low at the foot of the axis.
        let mut end = -f64::from(TICK + BESIDE_TICK) - 90.0;
        for tick in &mut ticks {
            let Some(label) = &tick.label else { continue };
            let half = metrics.width(label, TEXT) / 2.0;
            let middle = tick.at * f64::from(width);
            if middle - half < end + 90.0 || middle + half > f64::from(width + OVERHANG) {
                tick.label = None;
            } else {
                end = middle + half;
            }
        }
        let lines = ticks.iter().map(|tick| tick.label.iter().cloned().collect()).collect();
        XLook { ticks, lines, upright: false, height: TICK + LINE, categories: 0, broken: sheet.x.broken }
    }

    fn categories(names: &[String], metrics: &Metrics, width: i32) -> XLook {
        let names: Vec<String> = names.iter().map(|name| printable(name)).collect();
        let count = names.len().max(1);
        let slot = f64::from(width) / count as f64;
        let room = slot - 80.0;
        let upright = !names.iter().all(|name| metrics.fits(name, TEXT, room, CATEGORY_LINES));
        let lines: Vec<Vec<String>> = names
            .iter()
            .map(|name| match upright {
                true => vec![metrics.cut(name, TEXT, UPRIGHT_MAX)],
                false => metrics.wrap(name, TEXT, room, CATEGORY_LINES),
            })
            .collect();
        let height = match upright {
            true => lines.iter().flatten().map(|name| metrics.width(name, TEXT)).fold(0.0, f64::max).ceil() as i32 + 60,
            false => lines.iter().map(Vec::len).max().unwrap_or(1) as i32 * LINE,
        };
        let at = |index: usize| (index as f64 + 0.5) / count as f64;
        let ticks = (0..names.len()).map(|index| Tick { at: at(index), label: None }).collect();
        XLook { ticks, lines, upright, height: TICK + height, categories: names.len(), broken: false }
    }

    /// Room below the plot, without the axis' label.
    pub fn height(&self) -> i32 {
        self.height
    }

    /// Width of a category's slot in a plot.
    pub fn slot(&self, width: i32) -> f64 {
        f64::from(width) / self.categories.max(1) as f64
    }

    /// Draws axis, ticks and, where asked for, labels below a plot.
    pub fn draw(&self, canvas: &Canvas<'_>, (from, to): (Spot, Spot), labelled: bool) -> Result<(), String> {
        let place = |at: f64| from.0 + (at * f64::from(to.0 - from.0)).round() as i32;
        canvas.path(&[(from.0, to.1), to], AXIS)?;
        for (tick, lines) in self.ticks.iter().zip(&self.lines) {
            let x = place(tick.at);
            // Bars mark their own places.
            let length = if lines.is_empty() { TICK / 2 } else { TICK };
            if self.categories == 0 {
                canvas.path(&[(x, to.1), (x, to.1 + length)], AXIS)?;
            }
            for (at, line) in lines.iter().enumerate().filter(|_| labelled) {
                if self.upright {
                    canvas.text_up(line, (x + 88, to.1 + TICK + 20), TEXT, Align::Right)?;
                } else {
                    canvas.text(line, (x, to.1 + TICK + 230 + at as i32 * LINE), TEXT, Align::Middle, INK)?;
                }
            }
        }
        if self.broken {
            let x = place(BREAK_AT);
            canvas.rect((x - 30, to.1 - 20), (x + 30, to.1 + 20), PAPER)?;
            for edge in [x - 30, x + 30] {
                canvas.path(&[(edge - 35, to.1 + 80), (edge + 35, to.1 - 80)], AXIS)?;
            }
        }
        Ok(())
    }
}
