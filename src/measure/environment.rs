//! The machine and the settings that change results.

use serde::{Deserialize, Serialize};

/// The machine and the settings that change results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Digest of all that follows: equal ids, equal settings.
    pub id: String,
}

/// A line of /proc/meminfo, in KiB.
pub(crate) fn memory_kib(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}
