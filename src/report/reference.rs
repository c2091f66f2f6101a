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
    take(study, &all(Some(path))?);
    Ok(())
}

/// All published values: of a file, or those that are built in.
///
/// # Errors
/// The file cannot be read, or is no TOML.
pub fn all(path: Option<&Path>) -> Result<Value, ReferenceError> {
    let place = path.unwrap_or(Path::new("the published values that are built in"));
    let fail = |what: String| ReferenceError { path: place.to_owned(), what };
    let text = match path {
        Some(path) => std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?,
        None => BUILT_IN.to_owned(),
    };
    parse(&text).map_err(fail)
}

/// All published values, with the sections that were kept with a campaign in place of the built-in ones.
///
/// # Errors
/// As for [`all`].
pub fn with_stored(study: &Study) -> Result<Value, ReferenceError> {
    let mut values = all(None)?;
    for reference in &study.campaign.about.reference {
        let mut place = &mut values;
        for key in reference.section.split('.') {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[key];
        }
        *place = reference.values.clone();
    }
    Ok(values)
}

/// Values from TOML.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let all: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    serde_json::to_value(all).map_err(|error| error.to_string())
}

/// The sections that the campaign's experiment names, from all published values.
pub(super) fn take(study: &mut Study, all: &Value) {
    for reference in &mut study.campaign.about.reference {
        let values = reference.section.split('.').try_fold(all, |value, key| value.get(key));
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
}
