//! Colours, dash patterns, marks and hatches. Each series differs from the others in more than its colour.

use plotters::style::RGBColor;

/// Axes and text.
pub(super) const INK: RGBColor = RGBColor(0x20, 0x20, 0x20);
/// Secondary text.
pub(super) const SOFT: RGBColor = RGBColor(0x50, 0x50, 0x50);
/// Grid.
pub(super) const GRID: RGBColor = RGBColor(0xDD, 0xDD, 0xDD);
/// Paper.
pub(super) const PAPER: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);
/// The stamp of a note.
pub(super) const STAMP: RGBColor = RGBColor(0xB0, 0x3A, 0x00);

/// Lines: Okabe and Ito's colours that are dark enough on white for a thin line, neighbours apart in lightness.
const LINES: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0xCC, 0x79, 0xA7),
];

/// Fills: the same colours and the two light ones, neighbours apart in lightness.
const FILLS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x30, 0x30, 0x30),
    RGBColor(0x8C, 0xCB, 0xF0),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xF0, 0xE4, 0x42),
    RGBColor(0xCC, 0x79, 0xA7),
];

/// Dash patterns in hundredths of a millimetre: on, off, on, off ...; empty is a solid line.
const DASHES: [&[f64]; 5] = [&[], &[160.0, 80.0], &[50.0, 60.0], &[200.0, 70.0, 50.0, 70.0], &[320.0, 90.0]];

/// Shapes of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle that stands on its side.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A triangle that stands on its tip.
    Down,
    /// An upright cross.
    Plus,
    /// A cross that lies.
    Cross,
    /// A star of five.
    Star,
}

/// Marks of measured points, filled.
const MARKS: [Mark; 6] = [Mark::Circle, Mark::Square, Mark::Triangle, Mark::Down, Mark::Plus, Mark::Cross];
/// Marks of published values, open.
const PUBLISHED: [Mark; 4] = [Mark::Diamond, Mark::Star, Mark::Square, Mark::Circle];

/// Hatches on fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hatch {
    /// None.
    Plain,
    /// From lower left to upper right.
    Rising,
    /// From upper left to lower right.
    Falling,
}

/// Colour of a line.
pub(super) fn line(index: usize) -> RGBColor {
    LINES[index % LINES.len()]
}

/// Colour of a fill.
pub(super) fn fill(index: usize) -> RGBColor {
    FILLS[index % FILLS.len()]
}

/// Hatch of a fill, and its colour.
pub(super) fn hatch(index: usize) -> (Hatch, RGBColor) {
    match index {
        0 | 2 | 3 | 5 => (Hatch::Plain, PAPER),
        1 => (Hatch::Rising, INK),
        4 => (Hatch::Falling, PAPER),
        _ if index.is_multiple_of(2) => (Hatch::Rising, PAPER),
        _ => (Hatch::Falling, INK),
    }
}

/// Dash pattern of a line.
pub(super) fn dash(index: usize) -> &'static [f64] {
    DASHES[index % DASHES.len()]
}

/// Mark of a measured point.
pub(super) fn mark(index: usize) -> Mark {
    MARKS[index % MARKS.len()]
}

/// Mark of a published value.
pub(super) fn published(index: usize) -> Mark {
    PUBLISHED[index % PUBLISHED.len()]
}
