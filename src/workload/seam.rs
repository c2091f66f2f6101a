//! SEAM: replaced by `answer` and `dataset` at the merge.
use std::path::Path;

use crate::engine::Value;

/// SEAM.
pub fn known_query(_sql: &str) -> Option<u8> {
    None
}

/// SEAM: the columns separated by `|`, rows by newlines.
pub fn format_rows(rows: &[Vec<Value>]) -> String {
    rows.iter()
        .map(|row| row.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join("|"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// SEAM: `None` where no answer is known, else whether it is right, and what differs.
pub fn check(_sql: &str, _rows: &[Vec<Value>], _database: &Path) -> Option<Result<(), String>> {
    None
}
