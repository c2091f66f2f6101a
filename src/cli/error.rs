//! How an error that ends a command is told: once, with what to do, and by its exit code.

use std::io::Write;

use nix::sys::signal::Signal;

use super::exit;
use crate::dataset::DatasetError;
use crate::experiment::error_line;
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
