//! The databases that are asked, made when they are missing.
//!
//! TPC-H in SQLite files: [`ensure`] makes one, or takes the one that is there after checking that it is the one that is
//! wanted; [`app::ensure`] does the same for the tables of an application. Generation (crate `tpchgen`) and insertion overlap; the layout of the pages is that of rows inserted one after the
//! other in key order. [`DatasetError`] says what went wrong, and then nothing half made is left.

pub mod app;
pub mod batch;
mod build;
mod error;
pub mod generate;
mod interrupt;
pub mod load;
mod manifest;
pub mod queries;
mod scale;
pub mod tables;
mod temporary;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

pub use error::DatasetError;
pub use manifest::{MANIFEST_VERSION, Manifest};
pub use scale::{Scale, ScaleError};

/// The page sizes that SQLite knows, in bytes.
pub const PAGE_SIZES_BYTES: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

/// The page size of the published experiment, and SQLite's own default, in bytes.
pub const DEFAULT_PAGE_SIZE_BYTES: u32 = 4096;

/// A data set that exists and is what its manifest says.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The SQLite file.
    pub path: PathBuf,
    /// What made it.
    pub manifest: Manifest,
}

impl Dataset {
    /// Takes a data set that exists.
    ///
    /// # Errors
    ///
    /// Where the file or its manifest is missing, the manifest cannot be understood or is of another version, or the
    /// file is not the one that the manifest describes: size, header, page size, schema.
    pub fn open_existing(path: &Path) -> Result<Self, DatasetError> {
        Ok(Dataset { path: path.to_owned(), manifest: Manifest::read_and_check(path)? })
    }
}

/// Whether progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A bar on standard error where that is a terminal, else nothing.
    Bar,
    /// Nothing.
    Silent,
}

impl Progress {
    /// A bar over so many rows.
    fn bar(self, rows: u64, what: String) -> ProgressBar {
        if self == Progress::Silent {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(rows);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {human_pos} rows, {eta} left") {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar
    }
}

/// Where a data set lies unless somebody says otherwise: `data/tpch-sf0.01.db`, `data/tpch-sf1-p8192.db`.
pub fn default_path(scale: Scale, page_size_bytes: u32) -> PathBuf {
    PathBuf::from(if page_size_bytes == DEFAULT_PAGE_SIZE_BYTES {
        format!("data/tpch-sf{scale}.db")
    } else {
        format!("data/tpch-sf{scale}-p{page_size_bytes}.db")
    })
}

/// Makes the data set at `out` where it is missing, and checks it where it is there.
///
/// Signals that end the process (SIGINT, SIGTERM, SIGHUP) are held back in the calling thread while it is being made and come
/// out as [`DatasetError::Interrupted`]; call it before starting other threads.
///
/// # Errors
///
/// Everything in [`DatasetError`]; nothing half made is left.
pub fn ensure(scale: Scale, page_size_bytes: u32, out: &Path, progress: Progress) -> Result<Dataset, DatasetError> {
    if !PAGE_SIZES_BYTES.contains(&page_size_bytes) {
        return Err(DatasetError::PageSize(page_size_bytes));
    }
    let manifest = match Manifest::read_and_check(out) {
        Err(DatasetError::Missing { .. }) => build::build(scale, page_size_bytes, out, progress)?,
        other => other?,
    };
    manifest.check_asked(out, scale, page_size_bytes)?;
    Ok(Dataset { path: out.to_owned(), manifest })
}

/// The manifest of a database that happens to be one of ours, unchanged; `None` for any other.
pub fn manifest_of(path: &Path) -> Option<Manifest> {
    Manifest::read_and_check(path).ok()
}
