//! Strokes, fills, marks and text on paper, through plotters. One unit is a hundredth of a millimetre, so that plotters'
//! whole numbers place things finely enough.

use std::f64::consts::FRAC_1_SQRT_2;

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, IntoFont, RGBColor, ShapeStyle, TextStyle};

use super::font;
use super::palette::{Hatch, INK, Mark, PAPER};

/// A place on paper: x to the right, y down.
pub(super) type Spot = (i32, i32);

/// plotters' words for a failure.
pub(super) type Drawn = Result<(), String>;

/// Plotters' SVG backend divides the size of a font by this before it writes it.
const FONT_FACTOR: f64 = 1.24;

/// Which end of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    /// Its start.
    Left,
    /// Its middle.
    Middle,
    /// Its end.
    Right,
}

/// What is inside a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// Its colour.
    Full,
    /// Paper.
    Paper,
    /// Nothing: what lies below shows.
    Empty,
}

/// A line's look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stroke {
    /// Colour.
    pub color: RGBColor,
    /// Width.
    pub width: u32,
    /// Dash pattern.
    pub dash: &'static [f64],
}

impl Fill {
    fn color(self, color: RGBColor) -> Option<RGBColor> {
        match self {
            Fill::Full => Some(color),
            Fill::Paper => Some(PAPER),
            Fill::Empty => None,
        }
    }
}

impl Stroke {
    /// A solid line.
    pub fn solid(color: RGBColor, width: u32) -> Stroke {
        Stroke { color, width, dash: &[] }
    }

    fn style(self) -> ShapeStyle {
        self.color.stroke_width(self.width)
    }
}

/// A sheet of paper.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl<'a> Canvas<'a> {
    /// A white sheet whose SVG goes into `svg` when the canvas is dropped.
    pub fn new(svg: &'a mut String, width: u32, height: u32) -> Result<Canvas<'a>, String> {
        let area = SVGBackend::with_string(svg, (width, height)).into_drawing_area();
        let canvas = Canvas { area };
        canvas.rect((0, 0), (width as i32, height as i32), PAPER)?;
        Ok(canvas)
    }

    /// A line through `spots`.
    pub fn path(&self, spots: &[Spot], stroke: Stroke) -> Drawn {
        if spots.len() < 2 {
            return Ok(());
        }
        for piece in dashed(spots, stroke.dash) {
            self.area.draw(&PathElement::new(piece, stroke.style())).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// A filled rectangle.
    pub fn rect(&self, from: Spot, to: Spot, color: RGBColor) -> Drawn {
        self.area.draw(&Rectangle::new([from, to], color.filled())).map_err(|e| e.to_string())
    }

    /// A rectangle's outline.
    pub fn outline(&self, from: Spot, to: Spot, stroke: Stroke) -> Drawn {
        self.path(&[from, (to.0, from.1), to, (from.0, to.1), from], stroke)
    }

    /// A hatch over a rectangle: `from` is its upper left corner.
    pub fn hatch(&self, from: Spot, to: Spot, hatch: Hatch, color: RGBColor) -> Drawn {
        const STEP: i32 = 110;
        if hatch == Hatch::Plain {
            return Ok(());
        }
        let (width, height) = (to.0 - from.0, to.1 - from.1);
        // Lines x + y = c (mirrored for the other hatch), clipped to the rectangle.
        let mut c = STEP / 2;
        while c < width + height {
            let start = (c.min(width), c - c.min(width));
            let end = (c - c.min(height), c.min(height));
            let place = |(x, y): Spot| match hatch {
                Hatch::Rising => (from.0 + x, from.1 + y),
                _ => (to.0 - x, from.1 + y),
            };
            self.path(&[place(start), place(end)], Stroke::solid(color, 14))?;
            c += STEP;
        }
        Ok(())
    }

    /// A mark around a spot: full for what was measured, open for what was published.
    pub fn mark(&self, mark: Mark, at: Spot, radius: i32, color: RGBColor, fill: Fill) -> Drawn {
        let (x, y) = at;
        let r = f64::from(radius);
        let around = |corners: &[(f64, f64)]| -> Vec<Spot> {
            corners.iter().map(|(dx, dy)| (x + (dx * r).round() as i32, y + (dy * r).round() as i32)).collect()
        };
        let corners = match mark {
            Mark::Circle => return self.disc(at, radius, color, fill),
            Mark::Square => around(&[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)]),
            Mark::Triangle => around(&[(0.0, -1.15), (1.1, 0.8), (-1.1, 0.8)]),
            Mark::Down => around(&[(0.0, 1.15), (1.1, -0.8), (-1.1, -0.8)]),
            Mark::Diamond => around(&[(0.0, -1.25), (1.05, 0.0), (0.0, 1.25), (-1.05, 0.0)]),
            Mark::Plus => around(&PLUS),
            Mark::Cross => around(&PLUS.map(|(x, y)| ((x - y) * FRAC_1_SQRT_2, (x + y) * FRAC_1_SQRT_2))),
            Mark::Star => around(&STAR),
        };
        if let Some(color) = fill.color(color) {
            self.area.draw(&Polygon::new(corners.clone(), color.filled())).map_err(|e| e.to_string())?;
        }
        if fill != Fill::Full {
            let closed: Vec<Spot> = corners.iter().chain(corners.iter().take(2)).copied().collect();
            self.path(&closed, Stroke::solid(color, 26))?;
        }
        Ok(())
    }

    fn disc(&self, at: Spot, radius: i32, color: RGBColor, fill: Fill) -> Drawn {
        if let Some(color) = fill.color(color) {
            self.area.draw(&Circle::new(at, radius, color.filled())).map_err(|e| e.to_string())?;
        }
        if fill != Fill::Full {
            self.area.draw(&Circle::new(at, radius, color.stroke_width(26))).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// A line of text; `at` is on its baseline.
    pub fn text(&self, text: &str, at: Spot, size: f64, align: Align, color: RGBColor) -> Drawn {
        self.place(text, at, size, align, color, FontTransform::None)
    }

    /// A line of text that reads upwards; `at` is on its baseline, to its right.
    pub fn text_up(&self, text: &str, at: Spot, size: f64, align: Align) -> Drawn {
        self.place(text, at, size, align, INK, FontTransform::Rotate270)
    }

    fn place(
        &self,
        text: &str,
        (x, y): Spot,
        size: f64,
        align: Align,
        color: RGBColor,
        transform: FontTransform,
    ) -> Drawn {
        let h_pos = match align {
            Align::Left => HPos::Left,
            Align::Middle => HPos::Center,
            Align::Right => HPos::Right,
        };
        // The backend raises text at VPos::Bottom by half an ex, which is a quarter of the size.
        let down = (size / 4.0).round() as i32;
        let (x, y) = if matches!(transform, FontTransform::None) { (x, y + down) } else { (x + down, y) };
        let font = (font::FAMILIES, size * FONT_FACTOR).into_font().transform(transform);
        let style = TextStyle::from(font).color(&color).pos(Pos::new(h_pos, VPos::Bottom));
        self.area.draw(&Text::new(font::printable(text), (x, y), style)).map_err(|e| e.to_string())
    }
}

const PLUS: [(f64, f64); 12] = [
    (-0.4, -1.15),
    (0.4, -1.15),
    (0.4, -0.4),
    (1.15, -0.4),
    (1.15, 0.4),
    (0.4, 0.4),
    (0.4, 1.15),
    (-0.4, 1.15),
    (-0.4, 0.4),
    (-1.15, 0.4),
    (-1.15, -0.4),
    (-0.4, -0.4),
];

/// Points and hollows of a star, to three digits.
const STAR: [(f64, f64); 10] = [
    (0.0, -1.3),
    (0.306, -0.421),
    (1.236, -0.402),
    (0.495, 0.161),
    (0.764, 1.052),
    (0.0, 0.52),
    (-0.764, 1.052),
    (-0.495, 0.161),
    (-1.236, -0.402),
    (-0.306, -0.421),
];

/// A path cut into dashes; the whole path where there is no pattern.
fn dashed(spots: &[Spot], pattern: &[f64]) -> Vec<Vec<Spot>> {
    if pattern.is_empty() || pattern.iter().any(|length| *length < 1.0) {
        return vec![spots.to_vec()];
    }
    let mut pieces = Vec::new();
    let mut piece = vec![spots[0]];
    let (mut at, mut left) = (0, pattern[0]);
    for pair in spots.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
        let length = (dx * dx + dy * dy).sqrt();
        let mut gone = 0.0;
        while length - gone > left {
            gone += left;
            let part = gone / length;
            let spot = (from.0 + (dx * part).round() as i32, from.1 + (dy * part).round() as i32);
            if at % 2 == 0 {
                piece.push(spot);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![spot];
            }
            at = (at + 1) % (pattern.len() + pattern.len() % 2);
            left = pattern[at % pattern.len()];
        }
        left -= length - gone;
        if at % 2 == 0 {
            piece.push(to);
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_go_around_corners_and_leave_gaps() {
        let pieces = dashed(&[(0, 0), (100, 0), (100, 100)], &[60.0, 20.0]);
        assert_eq!(pieces, [vec![(0, 0), (60, 0)], vec![(80, 0), (100, 0), (100, 40)], vec![(100, 60), (100, 100)]]);
        assert_eq!(dashed(&[(0, 0), (0, 0)], &[60.0, 20.0]), [vec![(0, 0), (0, 0)]]);
        assert_eq!(dashed(&[(0, 0), (5, 5)], &[]), [vec![(0, 0), (5, 5)]]);
    }
}
