//! The machine and the settings that change results.

use serde::{Deserialize, Serialize};

/// The machine and the settings that change results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Digest of all that follows: equal ids, equal settings.
    pub id: String,
}
