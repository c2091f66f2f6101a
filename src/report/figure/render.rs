//! PNG and PDF from the SVG.

use resvg::{tiny_skia, usvg};

use super::font;

/// Pixels per inch of the PNG: what a printer wants of a drawing with text.
const PNG_DPI: f32 = 300.0;
/// Pixels per inch of SVG's own unit.
const SVG_DPI: f32 = 96.0;

/// The PNG and the PDF of an SVG.
///
/// # Errors
/// What usvg, resvg or svg2pdf says.
pub(super) fn render(svg: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    let mut options = usvg::Options { font_family: font::FAMILY.to_owned(), dpi: SVG_DPI, ..usvg::Options::default() };
    options.fontdb_mut().load_font_data(font::BYTES.to_vec());
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| format!("usvg: {error}"))?;
    Ok((png(&tree)?, pdf(&tree)?))
}

fn png(tree: &usvg::Tree) -> Result<Vec<u8>, String> {
    let scale = PNG_DPI / SVG_DPI;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    let mut pixmap = tiny_skia::Pixmap::new(width.round() as u32, height.round() as u32)
        .ok_or_else(|| format!("resvg: no picture of {width} x {height} pixels"))?;
    pixmap.fill(tiny_skia::Color::WHITE);
    resvg::render(tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| format!("resvg: {error}"))
}

fn pdf(tree: &usvg::Tree) -> Result<Vec<u8>, String> {
    let page = svg2pdf::PageOptions { dpi: SVG_DPI };
    svg2pdf::to_pdf(tree, svg2pdf::ConversionOptions::default(), page).map_err(|error| format!("svg2pdf: {error}"))
}
