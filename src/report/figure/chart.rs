//! A figure's place on paper: title, stamp, legend, and the panels' rectangles. Everything is measured before anything is
//! drawn, so that nothing covers anything else.

use super::axes::{Sheet, XLook};
use super::canvas::{Align, Canvas, Spot, Stroke};
use super::data::{FigureData, Panel};
use super::font::{Metrics, printable};
use super::legend::{self, Legend};
use super::palette::{GRID, INK, SOFT, STAMP};
use super::panel::{self, Frame};
use super::spec::{FigureSpec, Kind, Width};

/// Size of a title, in hundredths of a millimetre (8.5 pt).
const TITLE: f64 = 300.0;
/// Size of all other text (7.1 pt).
pub(super) const TEXT: f64 = 250.0;
/// From one line of such text to the next.
pub(super) const LINE: i32 = 320;
const TITLE_LINE: i32 = 380;
/// Rim of the sheet.
const RIM: i32 = 150;
/// Between panels.
const GAP: i32 = 350;
/// Least height of a panel's plot.
const PLOT_MIN: i32 = 900;
/// Least width of it.
const PLOT_WIDTH_MIN: i32 = 1500;

/// Why a chart could not be drawn.
pub(super) enum ChartError {
    /// The specification asks for what cannot be.
    Spec(String),
    /// plotters failed.
    Drawing(String),
}

impl From<String> for ChartError {
    fn from(reason: String) -> Self {
        ChartError::Drawing(reason)
    }
}

/// The SVG of a figure.
pub(super) fn draw(
    spec: &FigureSpec,
    data: &FigureData,
    notes: &[&str],
    metrics: &Metrics,
) -> Result<String, ChartError> {
    let width = (spec.width.mm() * 100.0).round() as i32;
    let head = Head::measure(spec, data, notes, metrics, width - 2 * RIM);
    let mut svg = String::new();
    let height = match &data.no_data {
        Some(reason) => {
            let height = spec.height_mm.map_or(head.height + 2500, |mm| (mm * 100.0) as i32).max(head.height + 1500);
            let canvas = Canvas::new(&mut svg, width as u32, height as u32)?;
            head.draw(&canvas, metrics, width)?;
            no_data(&canvas, metrics, reason, (RIM, RIM + head.height), (width - RIM, height - RIM))?;
            height
        }
        None => {
            let layout = Layout::plan(spec, data, metrics, &head, width)?;
            let canvas = Canvas::new(&mut svg, width as u32, layout.height as u32)?;
            head.draw(&canvas, metrics, width)?;
            layout.draw(&canvas, spec, data, metrics)?;
            layout.height
        }
    };
    Ok(with_size_on_paper(&svg, spec, width, height))
}

/// What stands above the panels.
struct Head {
    title: Vec<String>,
    notes: Vec<String>,
    legend: Legend,
    height: i32,
}

impl Head {
    fn measure(spec: &FigureSpec, data: &FigureData, notes: &[&str], metrics: &Metrics, room: i32) -> Head {
        let room = f64::from(room);
        let title = metrics.wrap(&printable(&spec.title), TITLE, room, 4);
        let notes: Vec<String> =
            notes.iter().flat_map(|note| metrics.wrap(&printable(note), TEXT, room - 160.0, 3)).collect();
        let legend =
            if data.no_data.is_none() { legend::measure(spec, data, metrics, room) } else { Legend::default() };
        let mut height = title.len() as i32 * TITLE_LINE + legend.height();
        if !notes.is_empty() {
            height += notes.len() as i32 * LINE + 140;
        }
        Head { title, notes, legend, height: height + 60 }
    }

    fn draw(&self, canvas: &Canvas<'_>, metrics: &Metrics, width: i32) -> Result<(), String> {
        let mut y = RIM;
        for line in &self.title {
            canvas.text(line, (RIM, y + 260), TITLE, Align::Left, INK)?;
            y += TITLE_LINE;
        }
        if !self.notes.is_empty() {
            let widest = self.notes.iter().map(|note| metrics.width(note, TEXT)).fold(0.0, f64::max).ceil() as i32;
            let bottom = y + self.notes.len() as i32 * LINE + 40;
            canvas.outline((RIM, y), ((RIM + widest + 160).min(width - RIM), bottom), Stroke::solid(STAMP, 20))?;
            for (at, note) in self.notes.iter().enumerate() {
                canvas.text(note, (RIM + 80, y + 250 + at as i32 * LINE), TEXT, Align::Left, STAMP)?;
            }
            y = bottom + 100;
        }
        self.legend.draw(canvas, (RIM, y))
    }
}

/// Where the panels are.
struct Layout<'a> {
    height: i32,
    sheet: Sheet<'a>,
    frames: Vec<Frame>,
    /// Baselines of the x axis' label, with the middle of what it stands under.
    x_labels: Vec<Spot>,
}

impl<'a> Layout<'a> {
    fn plan(
        spec: &'a FigureSpec,
        data: &'a FigureData,
        metrics: &Metrics,
        head: &Head,
        width: i32,
    ) -> Result<Layout<'a>, ChartError> {
        let count = data.panels.len() as i32;
        let columns = columns(spec, count);
        let rows = (count + columns - 1) / columns;
        let cell = (width - 2 * RIM - (columns - 1) * GAP) / columns;
        let sheet = Sheet::new(spec, data).map_err(ChartError::Spec)?;
        let headers: Vec<Vec<String>> =
            data.panels.iter().map(|panel| header(&sheet, panel, metrics, f64::from(cell))).collect();
        let header_height = headers.iter().map(|lines| lines.len() as i32 * LINE).max().unwrap_or(0) + 110;

        // How many ticks fit depends on the plot's height, and that on the labels below, which depend on its width: the
        // ticks are chosen for the height that the plot has with labels of one line.
        let natural = match (spec.kind, rows) {
            (Kind::Timeline, _) => 1500,
            (_, 1) if spec.width == Width::Page && columns == 1 => 5500,
            (_, 1) => 3800,
            _ => 2600,
        };
        let asked = spec.height_mm.map(|mm| (mm * 100.0).round() as i32);
        let fixed = |below: i32| 2 * RIM + head.height + rows * header_height + (rows - 1) * (GAP + 40) + below;
        let guess = asked.map_or(natural, |height| (height - fixed(700)) / rows);
        let y_axes: Vec<_> = data.panels.iter().map(|panel| sheet.y_axis(panel, guess)).collect();
        let left = y_axes.iter().map(|axis| axis.label_width(metrics)).fold(0.0, f64::max).ceil() as i32 + 110;
        let plot_width = cell - left;
        if plot_width < PLOT_WIDTH_MIN {
            return Err(ChartError::Spec(
                "the labels of y leave no room for the plot: use width = \"page\"".to_owned(),
            ));
        }
        let x_look = XLook::fit(&sheet, metrics, plot_width);
        let below = x_look.height() + LINE + 60;
        // Where panels stand below each other in one column, time or x is labelled once.
        let labelled_rows = if columns == 1 { 1 } else { rows };
        let plot = match asked {
            None => natural,
            Some(height) => (height - fixed(0) - labelled_rows * below) / rows,
        };
        if plot < PLOT_MIN {
            let least = fixed(0) + labelled_rows * below + rows * PLOT_MIN;
            return Err(ChartError::Spec(format!(
                "`height_mm` is too small: it needs at least {}",
                (least + 99) / 100
            )));
        }
        let height = asked.unwrap_or(fixed(0) + labelled_rows * below + rows * plot);

        let mut frames = Vec::new();
        let mut x_labels = Vec::new();
        for (at, (y_axis, header)) in y_axes.into_iter().zip(headers).enumerate() {
            let (row, column) = (at as i32 / columns, at as i32 % columns);
            let pitch = header_height + plot + GAP + 40 + if labelled_rows > 1 { below } else { 0 };
            let x = RIM + column * (cell + GAP);
            let top = RIM + head.height + row * pitch + header_height;
            // The last row may be shorter: the panel above a hole has nothing below it.
            let is_last = at as i32 + columns >= count;
            let has_labels = labelled_rows > 1 || is_last;
            let plot_box = ((x + left, top), (x + cell, top + plot));
            if has_labels {
                x_labels.push(((x + left + x + cell) / 2, top + plot + x_look.height() + LINE - 20));
            }
            frames.push(Frame {
                header,
                header_at: (x, top - header_height),
                plot: plot_box,
                y_axis,
                x: x_look.clone(),
                has_labels,
            });
        }
        Ok(Layout { height, sheet, frames, x_labels })
    }

    fn draw(&self, canvas: &Canvas<'_>, spec: &FigureSpec, data: &FigureData, metrics: &Metrics) -> Result<(), String> {
        for (frame, panel) in self.frames.iter().zip(&data.panels) {
            for (at, line) in frame.header.iter().enumerate() {
                let (x, y) = frame.header_at;
                canvas.text(line, (x, y + 240 + at as i32 * LINE), TEXT, Align::Left, INK)?;
            }
            panel::draw(canvas, spec, data, panel, &self.sheet, frame)?;
        }
        let label = self.sheet.x_label();
        for at in &self.x_labels {
            let room = self.frames.first().map_or(0, |frame| frame.plot.1.0 - frame.plot.0.0 + 600);
            canvas.text(&metrics.cut(&printable(&label), TEXT, f64::from(room)), *at, TEXT, Align::Middle, INK)?;
        }
        Ok(())
    }
}

/// Panels side by side.
fn columns(spec: &FigureSpec, count: i32) -> i32 {
    match (spec.kind, spec.width) {
        (Kind::Timeline, _) | (_, Width::Column) => 1,
        (_, Width::Page) if count == 4 => 2,
        (_, Width::Page) => count.clamp(1, 3),
    }
}

/// A panel's title and the label of its y axis: it stands above the axis, where it can be read without turning the page.
fn header(sheet: &Sheet<'_>, panel: &Panel, metrics: &Metrics, room: f64) -> Vec<String> {
    let label = printable(&sheet.y_label(panel));
    let wrap = |text: &str| metrics.wrap(text, TEXT, room, 2);
    let Some(title) = panel.title.as_deref().map(printable) else { return wrap(&label) };
    let both = format!("{title}: {label}");
    if metrics.width(&both, TEXT) <= room { vec![both] } else { [wrap(&title), wrap(&label)].concat() }
}

fn no_data(canvas: &Canvas<'_>, metrics: &Metrics, reason: &str, from: Spot, to: Spot) -> Result<(), String> {
    canvas.outline(from, to, Stroke::solid(GRID, 20))?;
    let room = f64::from(to.0 - from.0 - 400);
    let most = ((to.1 - from.1) / LINE).max(1) as usize;
    let lines = metrics.wrap(&printable(&format!("no data: {reason}")), TEXT, room, most.min(6));
    let top = (from.1 + to.1 - lines.len() as i32 * LINE) / 2;
    for (at, line) in lines.iter().enumerate() {
        canvas.text(line, ((from.0 + to.0) / 2, top + 240 + at as i32 * LINE), TEXT, Align::Middle, SOFT)?;
    }
    Ok(())
}

/// The SVG with its size in millimetres and its title for those who do not see it.
fn with_size_on_paper(svg: &str, spec: &FigureSpec, width: i32, height: i32) -> String {
    let escape = |text: &str| printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let rest = svg.split_once('>').map_or("", |(_, rest)| rest);
    let mm = |units: i32| f64::from(units) / 100.0;
    format!(
        "<svg width=\"{}mm\" height=\"{}mm\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" \
         role=\"img\" stroke-linejoin=\"round\">\n<title>{}</title>\n<desc>{}</desc>{rest}",
        mm(width),
        mm(height),
        escape(&spec.title),
        escape(&spec.caption),
    )
}
