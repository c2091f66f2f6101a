//! What stands inside a panel: lines, bars, error bars, published values.

use super::axes::{Sheet, XLook, YAxis};
use super::canvas::{Align, Canvas, Fill, Spot, Stroke};
use super::chart::TEXT;
use super::data::{Estimate, FigureData, Line, Mark, Panel, Point};
use super::palette::{self, INK, SOFT};
use super::spec::{FigureSpec, Kind};

/// Width of a series' line.
pub(super) const LINE_WIDTH: u32 = 34;
/// Width of a line through samples.
pub(super) const TIMELINE_WIDTH: u32 = 26;
/// Radius of a measured point's mark.
pub(super) const MARK: i32 = 68;
/// Radius of a published value's mark.
pub(super) const PUBLISHED_MARK: i32 = 95;
/// Edge of a bar.
pub(super) const BAR_EDGE: Stroke = Stroke { color: INK, width: 12, dash: &[] };
/// Half the width of an error bar's cap.
const CAP: i32 = 50;
/// From one point to the next where they stand side by side: their error bars' caps do not touch.
const SIDE_STEP: i32 = 115;
/// Share of a category's slot that bars fill, and the widest bar.
const FILLED: f64 = 0.8;
const BAR_MAX: f64 = 900.0;

/// Where a panel is.
pub(super) struct Frame {
    /// Lines above the plot.
    pub header: Vec<String>,
    /// Upper left corner of the header.
    pub header_at: Spot,
    /// Upper left and lower right corner of the plot.
    pub plot: (Spot, Spot),
    /// The y axis.
    pub y_axis: YAxis,
    /// The x axis.
    pub x: XLook,
    /// Whether the x axis is labelled.
    pub has_labels: bool,
}

/// Draws a panel.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    spec: &FigureSpec,
    data: &FigureData,
    panel: &Panel,
    sheet: &Sheet<'_>,
    frame: &Frame,
) -> Result<(), String> {
    frame.y_axis.draw(canvas, frame.plot)?;
    // Marks on an axis stand before it, bars on it.
    let axis_first = matches!(spec.kind, Kind::Line | Kind::Timeline);
    if axis_first {
        frame.x.draw(canvas, frame.plot, frame.has_labels)?;
    }
    let pen = Pen { canvas, spec, data, panel, sheet, frame };
    match spec.kind {
        Kind::Line | Kind::Timeline => pen.lines()?,
        Kind::Bars => pen.bars()?,
        Kind::Stacked => pen.stacks()?,
    }
    if !axis_first {
        frame.x.draw(canvas, frame.plot, frame.has_labels)?;
    }
    pen.published()
}

struct Pen<'a, 'c> {
    canvas: &'a Canvas<'c>,
    spec: &'a FigureSpec,
    data: &'a FigureData,
    panel: &'a Panel,
    sheet: &'a Sheet<'a>,
    frame: &'a Frame,
}

impl Pen<'_, '_> {
    fn is_categorical(&self) -> bool {
        self.data.x.categories.is_some()
    }

    fn x(&self, at: f64) -> Option<i32> {
        let (from, to) = self.frame.plot;
        let width = to.0 - from.0;
        let share = if self.is_categorical() {
            (at + 0.5) * self.frame.x.slot(width) / f64::from(width)
        } else {
            self.sheet.x.place(at)?
        };
        Some(from.0 + (share * f64::from(width)).round() as i32)
    }

    fn y(&self, value: f64) -> Option<i32> {
        let (from, to) = self.frame.plot;
        let share = self.frame.y_axis.scale.place(value)?;
        Some(to.1 - (share * f64::from(to.1 - from.1)).round() as i32)
    }

    fn lines(&self) -> Result<(), String> {
        let with_marks = self.spec.kind == Kind::Line;
        let shifts = self.shifts();
        // Lines first, so that no line crosses a mark; a series' marks come with its error bars.
        for (line, shifts) in self.panel.lines.iter().zip(&shifts) {
            self.stroke(line, shifts)?;
        }
        for (line, shifts) in self.panel.lines.iter().zip(&shifts).filter(|_| with_marks) {
            let look = self.data.series[line.series].look;
            let color = palette::line(look.color);
            for (point, shift) in line.points.iter().zip(shifts) {
                let Some((at, estimate)) = self.spot(point, *shift) else { continue };
                self.error_bar(at.0, estimate, Stroke::solid(color, 24))?;
                self.canvas.mark(palette::mark(look.mark), at, MARK, color, Fill::Full)?;
            }
        }
        Ok(())
    }

    fn spot(&self, point: &Point, shift: i32) -> Option<(Spot, Estimate)> {
        let estimate = point.estimate?;
        Some(((self.x(point.at?)? + shift, self.y(estimate.median)?), estimate))
    }

    /// How far each point of each line stands beside its x: points whose error bars would cover each other stand side by
    /// side. Points without error bars stay: two equal curves set apart along x would look like two different ones where
    /// they are steep. Where x was measured it is not touched.
    fn shifts(&self) -> Vec<Vec<i32>> {
        let mut shifts: Vec<Vec<i32>> = self.panel.lines.iter().map(|line| vec![0; line.points.len()]).collect();
        if self.spec.kind != Kind::Line || !(self.data.x.joined || self.is_categorical()) {
            return shifts;
        }
        let mut extents: Vec<Extent> = Vec::new();
        for (line, points) in self.panel.lines.iter().enumerate() {
            for (at, point) in points.points.iter().enumerate() {
                let Some(((x, y), estimate)) = self.spot(point, 0) else { continue };
                let Some((low, high)) = estimate.interval else { continue };
                let (top, bottom) = (self.y(high).unwrap_or(y), self.y(low).unwrap_or(y));
                extents.push(Extent { x, top: top.min(y - MARK), bottom: bottom.max(y + MARK), line, at });
            }
        }
        for (line, at, shift) in side_by_side(&mut extents) {
            shifts[line][at] = shift;
        }
        shifts
    }

    /// The pieces of a line: broken where a point is missing, and where an axis is broken.
    fn stroke(&self, line: &Line, shifts: &[i32]) -> Result<(), String> {
        let look = self.data.series[line.series].look;
        let is_timeline = self.spec.kind == Kind::Timeline;
        let width = if is_timeline { TIMELINE_WIDTH } else { LINE_WIDTH };
        let stroke = Stroke { color: palette::line(look.color), width, dash: palette::dash(look.dash) };
        if !self.data.x.joined {
            return Ok(());
        }
        let mut piece: Vec<Spot> = Vec::new();
        let mut before: Option<&Point> = None;
        for (point, shift) in line.points.iter().zip(shifts) {
            let joined = before.is_some_and(|before| self.joins(before, point));
            if !joined {
                self.piece(&piece, stroke, is_timeline)?;
                piece.clear();
            }
            let spot = self.spot(point, *shift);
            piece.extend(spot.map(|(at, _)| at));
            before = spot.map(|_| point);
        }
        self.piece(&piece, stroke, is_timeline)
    }

    fn piece(&self, piece: &[Spot], stroke: Stroke, is_timeline: bool) -> Result<(), String> {
        match piece {
            // A lone sample would not be seen.
            [only] if is_timeline => self.canvas.mark(palette::mark(0), *only, 25, stroke.color, Fill::Full),
            _ => self.canvas.path(&thinned(piece), stroke),
        }
    }

    fn joins(&self, a: &Point, b: &Point) -> bool {
        let x = a.at.zip(b.at).is_some_and(|(a, b)| self.sheet.x.joins(a, b));
        let y = a.estimate.zip(b.estimate).is_some_and(|(a, b)| self.frame.y_axis.scale.joins(a.median, b.median));
        x && y
    }

    fn error_bar(&self, x: i32, estimate: Estimate, stroke: Stroke) -> Result<(), String> {
        let Some((low, high)) = estimate.interval else { return Ok(()) };
        let bottom = self.frame.plot.1.1;
        let (Some(high), low) = (self.y(high), self.y(low).unwrap_or(bottom)) else { return Ok(()) };
        self.whisker(x, low, high, stroke)
    }

    fn whisker(&self, x: i32, low: i32, high: i32, stroke: Stroke) -> Result<(), String> {
        self.canvas.path(&[(x, low), (x, high)], stroke)?;
        for y in [low, high] {
            self.canvas.path(&[(x - CAP, y), (x + CAP, y)], stroke)?;
        }
        Ok(())
    }

    /// Left edge and width of a series' bar in a slot.
    fn bar(&self, at: f64, series: usize) -> Option<(i32, i32)> {
        let width = self.frame.plot.1.0 - self.frame.plot.0.0;
        let count = if self.spec.kind == Kind::Bars { self.panel.lines.len().max(1) } else { 1 };
        let bar = (self.frame.x.slot(width) * FILLED / count as f64).min(BAR_MAX);
        let left = f64::from(self.x(at)?) - bar * count as f64 / 2.0;
        let series = if self.spec.kind == Kind::Bars { series } else { 0 };
        Some(((left + bar * series as f64).round() as i32, bar.round().max(1.0) as i32))
    }

    fn fill(&self, from: Spot, to: Spot, look: usize) -> Result<(), String> {
        self.canvas.rect(from, to, palette::fill(look))?;
        let (hatch, color) = palette::hatch(look);
        self.canvas.hatch(from, to, hatch, color)?;
        self.canvas.outline(from, to, BAR_EDGE)
    }

    fn bars(&self) -> Result<(), String> {
        let Some(zero) = self.y(0.0) else { return Ok(()) };
        for line in &self.panel.lines {
            let look = self.data.series[line.series].look.mark;
            for point in &line.points {
                let Some((left, width)) = point.at.and_then(|at| self.bar(at, line.series)) else { continue };
                let Some(y) = point.estimate.and_then(|estimate| self.y(estimate.median)) else {
                    self.missing(left + width / 2, zero, width)?;
                    continue;
                };
                self.fill((left, y.min(zero)), (left + width, y.max(zero)), look)?;
                if let Some(estimate) = point.estimate {
                    // Dark on light and light on dark: a white rim keeps the bar visible inside its own fill.
                    self.error_bar(left + width / 2, estimate, Stroke::solid(palette::PAPER, 44))?;
                    self.error_bar(left + width / 2, estimate, Stroke::solid(INK, 24))?;
                }
            }
        }
        Ok(())
    }

    fn missing(&self, x: i32, y: i32, room: i32) -> Result<(), String> {
        if room < 380 {
            return Ok(());
        }
        self.canvas.text("n/a", (x, y - 60), TEXT, Align::Middle, SOFT)
    }

    fn stacks(&self) -> Result<(), String> {
        let mut tops: Vec<(f64, f64)> = Vec::new();
        for line in &self.panel.lines {
            let look = self.data.series[line.series].look.mark;
            for point in &line.points {
                let Some((at, estimate)) = point.at.zip(point.estimate) else { continue };
                let from = tops.iter().find(|(x, _)| *x == at).map_or(0.0, |(_, top)| *top);
                let to = from + estimate.median.max(0.0);
                tops.retain(|(x, _)| *x != at);
                tops.push((at, to));
                let Some((left, width)) = self.bar(at, 0) else { continue };
                if let (Some(low), Some(high)) = (self.y(from), self.y(to))
                    && low > high
                {
                    self.fill((left, high), (left + width, low), look)?;
                }
            }
        }
        Ok(())
    }

    fn published(&self) -> Result<(), String> {
        self.panel.published.iter().try_for_each(|mark| self.published_mark(mark))
    }

    fn published_mark(&self, mark: &Mark) -> Result<(), String> {
        let middle = mark.at.and_then(|at| match (self.spec.kind, mark.series) {
            (Kind::Bars, Some(series)) => self.bar(at, series).map(|(left, width)| left + width / 2),
            _ => self.x(at),
        });
        let (Some(x), Some(low), Some(high)) = (middle, self.y(mark.ends.0), self.y(mark.ends.1)) else {
            return Ok(());
        };
        let color = match (self.spec.kind, mark.series) {
            (Kind::Line, Some(series)) => palette::line(self.data.series[series].look.color),
            _ => INK,
        };
        // Over a line an open mark must not hide what was measured; over a bar it needs paper to be seen.
        let fill = if self.spec.kind == Kind::Bars { Fill::Paper } else { Fill::Empty };
        // A range that its mark covers would only be a smudge in it.
        if low - high > 2 * PUBLISHED_MARK {
            self.whisker(x, low, high, Stroke::solid(color, 26))?;
        }
        self.canvas.mark(palette::published(mark.label), (x, (low + high) / 2), PUBLISHED_MARK, color, fill)
    }
}

/// What a point covers at its x, with its error bar.
#[derive(Debug, Clone, Copy)]
struct Extent {
    x: i32,
    top: i32,
    bottom: i32,
    line: usize,
    at: usize,
}

/// Lines, points and shifts of the points that would cover each other: around their x, in the order of the lines.
fn side_by_side(extents: &mut [Extent]) -> Vec<(usize, usize, i32)> {
    extents.sort_by_key(|extent| (extent.x, extent.top, extent.line));
    let mut xs: Vec<i32> = extents.iter().map(|extent| extent.x).collect();
    xs.dedup();
    // Half of the way to the next x stays free.
    let pitch = xs.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(i32::MAX);
    let mut shifts = Vec::new();
    let mut rest = &*extents;
    while let Some(first) = rest.first() {
        let (mut count, mut bottom) = (1, first.bottom);
        while let Some(next) = rest.get(count).filter(|next| next.x == first.x && next.top < bottom) {
            (count, bottom) = (count + 1, bottom.max(next.bottom));
        }
        let (group, after) = rest.split_at(count);
        rest = after;
        let mut group: Vec<&Extent> = group.iter().collect();
        group.sort_by_key(|extent| extent.line);
        let step = f64::from((pitch / 2 / count as i32).min(SIDE_STEP));
        let place = |rank: usize| ((rank as f64 - (count - 1) as f64 / 2.0) * step).round() as i32;
        shifts.extend(group.iter().enumerate().map(|(rank, extent)| (extent.line, extent.at, place(rank))));
    }
    shifts
}

/// A line of many samples without those that would fall into the same tenth of a millimetre: of each run of them the
/// first, the lowest, the highest and the last stay, so that no peak is lost.
fn thinned(spots: &[Spot]) -> Vec<Spot> {
    let mut thin: Vec<Spot> = Vec::new();
    for run in spots.chunk_by(|a, b| a.0.div_euclid(10) == b.0.div_euclid(10)) {
        if run.len() <= 4 {
            thin.extend(run);
            continue;
        }
        let lowest = (0..run.len()).min_by_key(|at| run[*at].1).unwrap_or(0);
        let highest = (0..run.len()).max_by_key(|at| run[*at].1).unwrap_or(0);
        let mut kept = [0, lowest.min(highest), lowest.max(highest), run.len() - 1].to_vec();
        kept.dedup();
        thin.extend(kept.into_iter().map(|at| run[at]));
    }
    thin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(line: usize, x: i32, top: i32, bottom: i32) -> Extent {
        Extent { x, top, bottom, line, at: 0 }
    }

    #[test]
    fn points_that_would_cover_each_other_stand_side_by_side_in_the_order_of_the_lines() {
        let mut extents = [extent(2, 0, 0, 50), extent(0, 0, 40, 90), extent(1, 0, 80, 99), extent(3, 0, 100, 120)];
        let mut shifts = side_by_side(&mut extents);
        shifts.sort_unstable();
        // The first three are a chain; the last one is free of them.
        assert_eq!(shifts, [(0, 0, -SIDE_STEP), (1, 0, 0), (2, 0, SIDE_STEP), (3, 0, 0)]);
    }

    #[test]
    fn they_stay_nearer_to_their_own_x_than_to_the_next() {
        let mut extents: Vec<Extent> = (0..4).flat_map(|line| [0, 200].map(|x| extent(line, x, 0, 50))).collect();
        assert!(side_by_side(&mut extents).iter().all(|(_, _, shift)| shift.abs() < 100));
        assert_eq!(side_by_side(&mut [extent(0, 0, 0, 50), extent(1, 300, 0, 50)]), [(0, 0, 0), (1, 0, 0)]);
        assert_eq!(side_by_side(&mut []), []);
    }
}
