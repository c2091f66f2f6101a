//! How an error that ends a command is told: once, with what to do, and by its exit code.

use std::io::Write;

use nix::sys::signal::Signal;

use super::exit;
use crate::dataset::DatasetError;
use crate::experiment::error_line;
use crate::experiment::file::FileError;
use crate::experiment::folder::FolderError;
use crate::experiment::merge::MergeError;
use crate::experiment::sitting::SittingError;
use crate::workload::database::DatabaseError;
use crate::workload::query::QueryFileError;

/// A command line that cannot be carried out, with what to do instead.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Usage {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub help: String,
}

/// An error of use.
pub fn usage(what: impl Into<String>, help: impl Into<String>) -> anyhow::Error {
    Usage { what: what.into(), help: help.into() }.into()
}

/// Writes `error: ...` and, where there is something to do, `help: ...` to stderr; answers the exit code.
pub fn report(error: &anyhow::Error) -> i32 {
    let (code, help) = judge(error);
    let mut text = format!("error: {}\n", error_line(error.as_ref()));
    if let Some(help) = help {
        text.push_str(&format!("help: {help}\n"));
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
    code
}

/// The folder named is wrong, or the system would not let us use it.
fn folder_code(error: &FolderError) -> i32 {
    match error {
        FolderError::Io { .. } => exit::FAILED,
        _ => exit::USAGE,
    }
}

fn judge(error: &anyhow::Error) -> (i32, Option<String>) {
    if let Some(usage) = error.downcast_ref::<Usage>() {
        return (exit::USAGE, Some(usage.help.clone()));
    }
    if let Some(database) = error.downcast_ref::<DatabaseError>() {
        return (exit::USAGE, Some(database.help().to_owned()));
    }
    if error.is::<QueryFileError>() {
        return (exit::USAGE, Some("give the path of a file with one SQL statement; tpch/queries has some".to_owned()));
    }
    if let Some(file) = error.downcast_ref::<FileError>() {
        return (exit::USAGE, Some(file.help.clone()).filter(|help| !help.is_empty()));
    }
    if let Some(folder) = error.downcast_ref::<FolderError>() {
        return (folder_code(folder), Some(folder.help().to_owned()));
    }
    if let Some(sitting) = error.downcast_ref::<SittingError>() {
        let code = if let SittingError::Folder(folder) = sitting { folder_code(folder) } else { exit::USAGE };
        return (code, Some(sitting.help().to_owned()));
    }
    if let Some(merge) = error.downcast_ref::<MergeError>() {
        let code = if let MergeError::Folder(folder) = merge { folder_code(folder) } else { exit::USAGE };
        return (code, Some(merge.help().to_owned()));
    }
    // Its texts say what to do.
    match error.downcast_ref::<DatasetError>() {
        Some(DatasetError::Interrupted { signal, .. }) => {
            (signal.parse::<Signal>().map_or(exit::FAILED, |signal| exit::interrupted(signal as i32)), None)
        }
        Some(
            DatasetError::Scale(_)
            | DatasetError::PageSize(_)
            | DatasetError::NoManifest { .. }
            | DatasetError::BadManifest { .. }
            | DatasetError::Mismatch { .. },
        ) => (exit::USAGE, None),
        _ => (exit::FAILED, None),
    }
}
