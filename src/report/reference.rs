//! Published values from a file, in place of those that were kept with a campaign.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::study::Study;

/// The published values that are built in.
pub const BUILT_IN: &str = include_str!("../../experiments/reference.toml");

/// Why a file holds no published values.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", .path.display())]
pub struct ReferenceError {
    path: PathBuf,
    what: String,
}

/// Replaces the values of every section that the campaign's experiment names by those of a file. A section that the
/// file does not have is left without values: the report names them as missing.
///
/// # Errors
/// The file cannot be read, or is no TOML.
pub fn replace(study: &mut Study, path: &Path) -> Result<(), ReferenceError> {
    let fail = |what: String| ReferenceError { path: path.to_owned(), what };
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    take(study, &text).map_err(fail)
}

/// The same from a text.
pub fn take(study: &mut Study, text: &str) -> Result<(), String> {
    let all: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let all = serde_json::to_value(all).map_err(|error| error.to_string())?;
    for reference in &mut study.campaign.about.reference {
        let values = reference.section.split('.').try_fold(&all, |value, key| value.get(key));
        reference.values = values.cloned().unwrap_or_default();
        let top = reference.section.split('.').next().and_then(|key| all.get(key)).and_then(Value::as_object);
        let facts: Map<String, Value> = top
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_object())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        reference.source = Value::Object(facts);
    }
    Ok(())
}
