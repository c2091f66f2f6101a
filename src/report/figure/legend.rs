//! The legend: a row or more above the panels, where it covers nothing.

use super::canvas::{Align, Canvas, Fill, Spot, Stroke};
use super::chart::{LINE, TEXT};
use super::data::FigureData;
use super::font::{Metrics, printable};
use super::palette::{self, INK};
use super::panel::{BAR_EDGE, LINE_WIDTH, MARK, PUBLISHED_MARK, TIMELINE_WIDTH};
use super::spec::{FigureSpec, Kind};

/// Room of a sample of a line.
const LINE_SAMPLE: i32 = 700;
/// Room of a sample of a fill or a mark.
const SAMPLE: i32 = 330;
/// Between sample and text, and between entries.
const AFTER_SAMPLE: i32 = 80;
const BETWEEN: i32 = 300;

/// What is shown before an entry's text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sample {
    /// Stroke of a line with these colour and dash, and a mark.
    Line { color: usize, dash: usize, mark: Option<usize> },
    /// A mark alone.
    Mark { color: usize, mark: usize },
    /// A filled bar.
    Fill(usize),
    /// A published value's mark.
    Published(usize),
}

impl Sample {
    fn width(self) -> i32 {
        if matches!(self, Sample::Line { .. }) { LINE_SAMPLE } else { SAMPLE }
    }
}

/// A legend with the place of each entry.
#[derive(Debug, Default)]
pub(super) struct Legend {
    entries: Vec<(Spot, Sample, String)>,
    rows: i32,
}

/// Places the entries in rows of at most `room`.
pub(super) fn measure(spec: &FigureSpec, data: &FigureData, metrics: &Metrics, room: f64) -> Legend {
    let published = data.published_labels();
    let has_names = data.series.len() > 1 || !spec.series.is_empty() || spec.kind == Kind::Stacked;
    let mut samples: Vec<(Sample, String)> = Vec::new();
    if has_names || !published.is_empty() {
        for (at, series) in data.series.iter().enumerate() {
            let look = series.look;
            let sample = match spec.kind {
                Kind::Line if !data.x.joined => Sample::Mark { color: look.color, mark: look.mark },
                Kind::Line => Sample::Line { color: look.color, dash: look.dash, mark: Some(look.mark) },
                Kind::Timeline => Sample::Line { color: look.color, dash: look.dash, mark: None },
                Kind::Bars | Kind::Stacked => Sample::Fill(look.mark),
            };
            let lines = data.panels.iter().flat_map(|panel| &panel.lines).filter(|line| line.series == at);
            let mut medians = lines.flat_map(|line| &line.points).filter_map(|point| point.estimate).map(|e| e.median);
            let first = medians.next();
            let name = match first {
                None => format!("{} (no data)", series.name),
                // A bar without height would be looked for in vain.
                Some(first) if spec.kind == Kind::Stacked && first == 0.0 && medians.all(|median| median == 0.0) => {
                    format!("{}: 0", series.name)
                }
                Some(_) => series.name.clone(),
            };
            samples.push((sample, name));
        }
    }
    let numbered = published.iter().enumerate();
    samples.extend(numbered.map(|(at, text)| (Sample::Published(at), (*text).to_owned())));

    let room = room as i32;
    let entries: Vec<(Sample, String, i32)> = samples
        .into_iter()
        .map(|(sample, text)| {
            let before = sample.width() + AFTER_SAMPLE;
            let text = metrics.cut(&printable(&text), TEXT, f64::from(room - before));
            let width = before + metrics.width(&text, TEXT).ceil() as i32;
            (sample, text, width)
        })
        .collect();
    let widths: Vec<i32> = entries.iter().map(|(_, _, width)| *width).collect();
    let column = widths.iter().max().map_or(0, |widest| widest + BETWEEN);
    // In columns where that takes no more rows than one entry after the other.
    let (flow, columns) = (flow(&widths, None, room), flow(&widths, Some(column), room));
    let rows = |spots: &[Spot]| spots.last().map_or(0, |(_, y)| y / LINE + 1);
    let spots = if rows(&flow) > 1 && rows(&columns) <= rows(&flow) { columns } else { flow };
    let rows = rows(&spots);
    Legend { entries: spots.into_iter().zip(entries).map(|(at, (sample, text, _))| (at, sample, text)).collect(), rows }
}

/// Places for entries of these widths, in rows of at most `room`: each after the other, or in columns.
fn flow(widths: &[i32], column: Option<i32>, room: i32) -> Vec<Spot> {
    let (mut x, mut y) = (0, 0);
    let place = |width: &i32| {
        if x > 0 && x + width > room {
            (x, y) = (0, y + LINE);
        }
        let at = (x, y);
        x += column.unwrap_or(width + BETWEEN);
        at
    };
    widths.iter().map(place).collect()
}

impl Legend {
    /// Its height with the room below it.
    pub fn height(&self) -> i32 {
        if self.rows == 0 { 0 } else { self.rows * LINE + 80 }
    }

    /// Draws it below and to the right of `origin`.
    pub fn draw(&self, canvas: &Canvas<'_>, origin: Spot) -> Result<(), String> {
        for ((x, y), sample, text) in &self.entries {
            let (x, y) = (origin.0 + x, origin.1 + y);
            let middle = y + 150;
            match *sample {
                Sample::Line { color, dash, mark } => {
                    let width = if mark.is_some() { LINE_WIDTH } else { TIMELINE_WIDTH };
                    let stroke = Stroke { color: palette::line(color), width, dash: palette::dash(dash) };
                    canvas.path(&[(x, middle), (x + LINE_SAMPLE, middle)], stroke)?;
                    if let Some(mark) = mark {
                        let at = (x + LINE_SAMPLE / 2, middle);
                        canvas.mark(palette::mark(mark), at, MARK, palette::line(color), Fill::Full)?;
                    }
                }
                Sample::Mark { color, mark } => {
                    let at = (x + SAMPLE / 2, middle);
                    canvas.mark(palette::mark(mark), at, MARK, palette::line(color), Fill::Full)?;
                }
                Sample::Fill(index) => {
                    let (from, to) = ((x, middle - 100), (x + SAMPLE, middle + 100));
                    canvas.rect(from, to, palette::fill(index))?;
                    let (hatch, color) = palette::hatch(index);
                    canvas.hatch(from, to, hatch, color)?;
                    canvas.outline(from, to, BAR_EDGE)?;
                }
                Sample::Published(index) => {
                    canvas.mark(
                        palette::published(index),
                        (x + SAMPLE / 2, middle),
                        PUBLISHED_MARK,
                        INK,
                        Fill::Empty,
                    )?;
                }
            }
            canvas.text(text, (x + sample.width() + AFTER_SAMPLE, y + 240), TEXT, Align::Left, INK)?;
        }
        Ok(())
    }
}
