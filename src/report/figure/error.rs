//! What can go wrong with a figure.

use std::path::PathBuf;

/// Why a figure was not drawn or not written.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// The figure's own description cannot be carried out.
    #[error("figure `{figure}`: {problem}")]
    Spec {
        /// The figure's name.
        figure: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// Runs of different cells would fall into one point.
    #[error(
        "figure `{figure}`: one point would pool runs of different cells, which differ in {axes}; name each such axis \
         in `series`, `panels` or `x`, or choose one value of it in `filter`"
    )]
    Pooled {
        /// The figure's name.
        figure: String,
        /// The axes, each with its values.
        axes: String,
    },
    /// plotters, resvg or svg2pdf failed.
    #[error("figure `{figure}` could not be drawn: {reason}")]
    Drawing {
        /// The figure's name.
        figure: String,
        /// What the crate said.
        reason: String,
    },
    /// A file could not be written; the one that was there before is untouched.
    #[error("cannot write {}: {source}; check that the folder is writable and the disk has room", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}
