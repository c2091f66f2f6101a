//! The data of the published application load: users and their orders, row for row.
//!
//! A template is made once and copied for each engine that writes to it; nobody writes to the template itself. It is in WAL
//! mode, checkpointed, and its indexes were built after the rows, as the published one's were.

mod build;
pub mod lcg;
mod manifest;
pub mod rows;
mod size;

use std::path::{Path, PathBuf};

pub use manifest::{AppManifest, TEMPLATE_VERSION};
pub use size::{AppSize, AppSizeError};

use super::error::DatasetError;
use super::{Manifest, Progress};

/// A template that exists and is what its manifest says.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The SQLite file.
    pub path: PathBuf,
    /// What made it.
    pub manifest: AppManifest,
    /// Whether it was there before.
    pub was_there: bool,
}

/// Where a template lies unless somebody says otherwise: `data/app-small.db`, `data/app-1000x3.db`.
pub fn default_path(size: AppSize) -> PathBuf {
    PathBuf::from(format!("data/app-{size}.db"))
}

/// Makes the template at `out` where it is missing, and checks it where it is there. One of another version of ioscope's
/// generator or of another seed is made anew; one that somebody has written to, or of another size, is refused.
///
/// Signals are held back as in [`super::ensure`].
///
/// # Errors
///
/// Everything in [`DatasetError`]; nothing half made is left.
pub fn ensure(size: AppSize, out: &Path, progress: Progress) -> Result<Template, DatasetError> {
    let found = match AppManifest::read_and_check(out) {
        Err(DatasetError::Missing { .. }) => None,
        Ok(manifest) if manifest.is_outdated() => {
            remove(out)?;
            None
        }
        found => Some(found?),
    };
    let was_there = found.is_some();
    let manifest = match found {
        Some(manifest) => manifest,
        None => build::build(size, out, progress)?,
    };
    manifest.check_asked(out, size)?;
    Ok(Template { path: out.to_owned(), manifest, was_there })
}

/// Removes an outdated template. The database first: a manifest alone counts as nothing.
fn remove(out: &Path) -> Result<(), DatasetError> {
    for path in [out.to_owned(), Manifest::path_for(out)] {
        std::fs::remove_file(&path).map_err(|error| DatasetError::io("remove the outdated", &path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
