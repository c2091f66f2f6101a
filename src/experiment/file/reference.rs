//! Published values that an experiment is set beside.

use std::path::Path;

use serde_json::{Map, Value};
use toml::Spanned;

use super::Fault;
use crate::experiment::definition::Reference;
use crate::experiment::plan::nearest;

/// The published values that are built in.
const BUILT_IN: &str = include_str!("../../../experiments/reference.toml");

/// The sections asked for, from `reference.toml` beside the experiment's file, or from the one that is built in.
pub fn sections(wanted: &[Spanned<String>], experiment: &Path) -> Result<Vec<Reference>, Fault> {
    let Some(first) = wanted.first() else { return Ok(Vec::new()) };
    let beside = experiment.parent().unwrap_or(Path::new("")).join("reference.toml");
    let (text, place) = match std::fs::read_to_string(&beside) {
        Ok(text) => (text, beside.display().to_string()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            (BUILT_IN.to_owned(), "the published values that are built in".to_owned())
        }
        Err(error) => {
            let what = format!("{}: {error}", beside.display());
            return Err(Fault::new(Some(first.span()), what, "make it readable, or take `reference` out"));
        }
    };
    let all: toml::Table = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| super::line_of(&text, span.start));
        let what = format!("{place}, line {line}: {}", error.message());
        Fault::new(Some(first.span()), what, "mend that file, or take `reference` out")
    })?;
    let all = serde_json::to_value(all).unwrap_or_default();
    wanted.iter().map(|section| find(&all, section, &place)).collect()
}

fn find(all: &Value, wanted: &Spanned<String>, place: &str) -> Result<Reference, Fault> {
    let section = wanted.get_ref();
    let found = section.split('.').try_fold(all, |value, key| value.get(key)).filter(|value| value.is_object());
    let Some(values) = found else {
        let mut known = Vec::new();
        list(all, "", &mut known);
        let near = nearest(section, known.iter().map(String::as_str));
        let what = format!("{place} has no section '{section}'; known: {}{near}", known.join(", "));
        return Err(Fault::new(Some(wanted.span()), what, "name one of these sections, or add it there"));
    };
    let top = section.split('.').next().and_then(|key| all.get(key)).and_then(Value::as_object);
    let source: Map<String, Value> = top
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_object())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Ok(Reference { section: section.clone(), values: values.clone(), source: Value::Object(source) })
}

/// Paths of the tables of the upper two levels.
fn list(value: &Value, prefix: &str, into: &mut Vec<String>) {
    for (key, value) in value.as_object().into_iter().flatten().filter(|(_, value)| value.is_object()) {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        into.push(path.clone());
        if !path.contains('.') {
            list(value, &path, into);
        }
    }
}
