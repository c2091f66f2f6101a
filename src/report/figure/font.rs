//! The font that comes along, and how wide its text is: plotters only guesses without a font library, and no system font
//! is ever looked at.

/// Liberation Sans, whose widths are those of Arial and Helvetica: where a viewer of the SVG lacks it, text keeps its place.
pub(super) static BYTES: &[u8] = include_bytes!("font/LiberationSans-Regular.ttf");
/// The families that the SVG names; the first is the one that comes along.
pub(super) const FAMILIES: &str = "Liberation Sans, Arial, Helvetica, sans-serif";
/// The family of [`BYTES`].
pub(super) const FAMILY: &str = "Liberation Sans";

/// Widths of text.
pub(super) struct Metrics {
    face: ttf_parser::Face<'static>,
}

impl Metrics {
    /// Reads the font.
    ///
    /// # Errors
    /// The parser's word for it, if the embedded file is damaged.
    pub fn new() -> Result<Metrics, String> {
        let face = ttf_parser::Face::parse(BYTES, 0).map_err(|error| format!("the embedded font: {error}"))?;
        Ok(Metrics { face })
    }

    /// Width of a line of text, in the unit of `size`. Kerning, which would make it a little narrower, is left out.
    pub fn width(&self, text: &str, size: f64) -> f64 {
        let em = f64::from(self.face.units_per_em());
        let advance = |c: char| {
            let glyph = self.face.glyph_index(c).unwrap_or(ttf_parser::GlyphId(0));
            self.face.glyph_hor_advance(glyph).map_or(em, f64::from)
        };
        text.chars().map(advance).sum::<f64>() * size / em
    }

    /// The text, cut with an ellipsis where it is wider than `room`.
    pub fn cut(&self, text: &str, size: f64, room: f64) -> String {
        if self.width(text, size) <= room {
            return text.to_owned();
        }
        let mut kept: Vec<char> = text.chars().collect();
        while !kept.is_empty() {
            kept.pop();
            let cut: String = kept.iter().collect::<String>().trim_end().to_owned() + "…";
            if self.width(&cut, size) <= room {
                return cut;
            }
        }
        String::new()
    }

    /// The text in lines of at most `room`, broken at spaces, and after `-`, `_` or `/` where a word is too wide; what
    /// does not fit into `lines` is cut.
    pub fn wrap(&self, text: &str, size: f64, room: f64, lines: usize) -> Vec<String> {
        let mut wrapped: Vec<String> = Vec::new();
        let mut line = String::new();
        for word in text.split_whitespace().flat_map(|word| self.pieces(word, size, room)) {
            let joined = format!("{line}{word}");
            if line.is_empty() || self.width(joined.trim_end(), size) <= room {
                line = joined;
            } else {
                wrapped.push(line.trim_end().to_owned());
                line = word;
            }
        }
        if !line.trim_end().is_empty() {
            wrapped.push(line.trim_end().to_owned());
        }
        if wrapped.len() > lines {
            let rest = wrapped.split_off(lines.saturating_sub(1)).join(" ");
            wrapped.push(rest);
        }
        wrapped.iter().map(|line| self.cut(line, size, room)).collect()
    }

    /// A word with the space behind it, in pieces where it does not fit.
    fn pieces(&self, word: &str, size: f64, room: f64) -> Vec<String> {
        let mut pieces: Vec<String> = if self.width(word, size) <= room {
            vec![word.to_owned()]
        } else {
            word.split_inclusive(['-', '_', '/']).map(str::to_owned).collect()
        };
        if let Some(last) = pieces.last_mut() {
            last.push(' ');
        }
        pieces
    }

    /// Whether [`Metrics::wrap`] would show all of the text.
    pub fn fits(&self, text: &str, size: f64, room: f64, lines: usize) -> bool {
        !self.wrap(text, size, room, lines).iter().any(|line| line.ends_with('…') || line.is_empty())
    }
}

/// Text without what XML does not allow or a line does not show.
pub(super) fn printable(text: &str) -> String {
    let is_printable = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect()
}
