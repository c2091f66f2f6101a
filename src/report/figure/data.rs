//! What a figure shows, before anything has a place on paper.

use std::cmp::Ordering;

use serde_json::Value;

use super::quantity::Quantity;
use super::spec::Scalar;

/// Everything that is drawn, and the file beside it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FigureData {
    /// The x axis.
    pub x: XAxis,
    /// The quantities, in the order of the specification.
    pub quantities: Vec<Quantity>,
    /// The series, in the order of the legend.
    pub series: Vec<SeriesName>,
    /// The small multiples; at least one.
    pub panels: Vec<Panel>,
    /// Things that a reader has to know, such as runs that failed.
    pub warnings: Vec<String>,
    /// Why there is nothing to draw.
    pub no_data: Option<String>,
}

/// The x axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct XAxis {
    /// Its quantity: label and unit.
    pub quantity: Quantity,
    /// Its categories, where x is not a number.
    pub categories: Option<Vec<String>>,
    /// Whether lines join its points: not between categories, nor along x where that was measured and no order is given.
    pub joined: bool,
}

/// A series in the legend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeriesName {
    /// What the legend says.
    pub name: String,
    /// Its look.
    pub look: Look,
}

/// Which of the palette's colours, dash patterns and marks a series has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Look {
    /// Colour.
    pub color: usize,
    /// Dash pattern.
    pub dash: usize,
    /// Shape of the marks; for bars the hatching.
    pub mark: usize,
}

/// One of the small multiples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Panel {
    /// Its title.
    pub title: Option<String>,
    /// Its y axis: a quantity whose label and unit stand for all of the panel's.
    pub y: Quantity,
    /// Its lines or rows of bars.
    pub lines: Vec<Line>,
    /// The published values.
    pub published: Vec<Mark>,
}

/// The points of one series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// Which series.
    pub series: usize,
    /// Points by ascending x.
    pub points: Vec<Point>,
}

/// One point.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    /// x as it was asked for.
    pub x: String,
    /// Where it stands: the number, or the category's index. `None`: x was not measured.
    pub at: Option<f64>,
    /// Which quantity.
    pub quantity: usize,
    /// The machine.
    pub host: String,
    /// The runs that gave it.
    pub runs: Runs,
    /// Their values, by run.
    pub samples: Vec<f64>,
    /// What is drawn.
    pub estimate: Option<Estimate>,
    /// Why nothing is.
    pub reason: Option<String>,
}

/// Which runs a point is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// Runs without tracepoints.
    Timed,
    /// Runs with them.
    Counted,
    /// A sample within this run.
    Sampled(u64),
}

/// A median and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    /// The median.
    pub median: f64,
    /// The 95 % interval; `None` with too few runs.
    pub interval: Option<(f64, f64)>,
}

/// A published value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    /// x as it was given.
    pub x: String,
    /// Where it stands; `None`: at no place of this x axis.
    pub at: Option<f64>,
    /// Which quantity.
    pub quantity: usize,
    /// Lower and upper end, equal for a single value.
    pub ends: (f64, f64),
    /// Which of the published labels.
    pub label: usize,
    /// What is published.
    pub text: String,
    /// The series it is compared with.
    pub series: Option<usize>,
}

/// A value of an axis, comparable and printable.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AxisValue {
    /// Not asked for.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
}

impl AxisValue {
    /// From a record; a name that is missing counts as `null`.
    pub fn of(value: Option<&Value>) -> AxisValue {
        match value {
            Some(Value::Bool(yes)) => AxisValue::Bool(*yes),
            Some(Value::Number(number)) => AxisValue::Number(number.as_f64().unwrap_or(f64::NAN)),
            Some(Value::String(text)) => AxisValue::Text(text.clone()),
            _ => AxisValue::Null,
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        if let AxisValue::Number(number) = self { Some(*number) } else { None }
    }

    /// As it is written.
    pub fn text(&self) -> String {
        match self {
            AxisValue::Null => "null".to_owned(),
            AxisValue::Bool(yes) => yes.to_string(),
            AxisValue::Number(number) => number.to_string(),
            AxisValue::Text(text) => text.clone(),
        }
    }

    /// Whether a file means this value.
    pub fn is(&self, scalar: &Scalar) -> bool {
        self.text() == AxisValue::from(scalar).text()
    }

    /// null, booleans, numbers by size, then text.
    pub fn order(&self, other: &AxisValue) -> Ordering {
        let rank = |value: &AxisValue| match value {
            AxisValue::Null => 0,
            AxisValue::Bool(_) => 1,
            AxisValue::Number(_) => 2,
            AxisValue::Text(_) => 3,
        };
        match (self, other) {
            (AxisValue::Number(a), AxisValue::Number(b)) => a.total_cmp(b),
            (AxisValue::Bool(a), AxisValue::Bool(b)) => a.cmp(b),
            (AxisValue::Text(a), AxisValue::Text(b)) => natural(a, b),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

/// Text by letters, and the numbers in it by size: `w8` before `w16`.
fn natural(a: &str, b: &str) -> Ordering {
    let is_digit = |c: char| c.is_ascii_digit();
    let (mut left, mut right) = (a, b);
    loop {
        let number = |text: &str| text.find(|c| !is_digit(c)).unwrap_or(text.len());
        match (number(left), number(right)) {
            (l, r) if l > 0 && r > 0 => {
                let (digits, others) = (left[..l].trim_start_matches('0'), right[..r].trim_start_matches('0'));
                let order = digits.len().cmp(&others.len()).then_with(|| digits.cmp(others));
                if order.is_ne() {
                    return order;
                }
                (left, right) = (&left[l..], &right[r..]);
            }
            _ => {
                let (mut l, mut r) = (left.chars(), right.chars());
                match (l.next(), r.next()) {
                    (Some(c), Some(d)) if c == d => (left, right) = (l.as_str(), r.as_str()),
                    (Some(c), Some(d)) => return c.cmp(&d),
                    // Equal but for leading zeros: still an order.
                    (None, None) => return a.cmp(b),
                    (c, d) => return c.cmp(&d),
                }
            }
        }
    }
}

impl From<&Scalar> for AxisValue {
    fn from(scalar: &Scalar) -> AxisValue {
        match scalar {
            Scalar::Bool(yes) => AxisValue::Bool(*yes),
            Scalar::Number(number) => AxisValue::Number(*number),
            Scalar::Text(text) => AxisValue::Text(text.clone()),
        }
    }
}

impl FigureData {
    /// All points of all panels.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points)
    }

    /// The labels of published values, by their number.
    pub fn published_labels(&self) -> Vec<&str> {
        let mut labels: Vec<(usize, &str)> =
            self.panels.iter().flat_map(|p| &p.published).map(|mark| (mark.label, mark.text.as_str())).collect();
        labels.sort_unstable();
        labels.dedup();
        labels.into_iter().map(|(_, text)| text).collect()
    }
}
