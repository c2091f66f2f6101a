//! Looks things up in a record by their leaf names, in whatever group they stand.

use serde_json::{Map, Value};

/// Groups that hold no measured quantity.
const NOT_MEASURED: [&str; 6] = ["asked", "effective", "environment", "reasons", "samples", "warnings"];

/// What a record says of a quantity.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    /// A number.
    Number(f64),
    /// There is such a name, and no number under it.
    Null,
    /// There is no such name.
    Missing,
    /// The name stands at several places, which are these.
    Ambiguous(Vec<String>),
}

/// The quantity `name` of a record: a leaf name, or the end of a dotted path.
pub(super) fn quantity(record: &Value, name: &str) -> Found {
    let mut hits = Vec::new();
    if let Value::Object(record) = record {
        for (key, value) in record.iter().filter(|(key, _)| !NOT_MEASURED.contains(&key.as_str())) {
            walk(key, value, name, &mut hits);
        }
    }
    match hits.as_slice() {
        [] => Found::Missing,
        [(_, value)] => value.as_f64().map_or(Found::Null, Found::Number),
        several => match several.iter().find(|(path, _)| path == name) {
            Some((_, value)) => value.as_f64().map_or(Found::Null, Found::Number),
            None => Found::Ambiguous(several.iter().map(|(path, _)| path.clone()).collect()),
        },
    }
}

fn walk<'a>(path: &str, value: &'a Value, name: &str, hits: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(group) => {
            for (key, value) in group {
                walk(&format!("{path}.{key}"), value, name, hits);
            }
        }
        Value::Array(_) => {}
        leaf => {
            let is_end = path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
            if is_end {
                hits.push((path.to_owned(), leaf));
            }
        }
    }
}

/// Why `name` is null, where the record says so.
pub(super) fn reason<'a>(record: &'a Value, name: &str) -> Option<&'a str> {
    let leaf = name.rsplit('.').next().unwrap_or(name);
    record.get("reasons")?.get(leaf)?.as_str()
}

/// What stands at the top of every record and is no quantity either.
const HEAD: [&str; 6] = ["schema", "run", "counted", "answer", "answer_ok", "error"];

/// Names of all quantities of a record that are numbers or null, for an error that lists them.
pub(super) fn quantity_names(record: &Value) -> Vec<String> {
    fn collect(value: &Value, key: &str, names: &mut Vec<String>) {
        match value {
            Value::Object(group) => group.iter().for_each(|(key, value)| collect(value, key, names)),
            Value::Number(_) | Value::Null => names.push(key.to_owned()),
            _ => {}
        }
    }
    let mut names = Vec::new();
    if let Value::Object(record) = record {
        let is_other = |key: &str| NOT_MEASURED.contains(&key) || HEAD.contains(&key);
        for (key, value) in record.iter().filter(|(key, _)| !is_other(key)) {
            collect(value, key, &mut names);
        }
    }
    names
}

/// The value of an axis: what was asked under this name, else any value outside `reasons` and `samples`.
pub(super) fn axis<'a>(record: &'a Value, name: &str) -> Option<&'a Value> {
    let record = record.as_object()?;
    let asked = record.get("asked").and_then(|asked| first(asked, name));
    asked.or_else(|| {
        let others =
            record.iter().filter(|(key, _)| !["asked", "reasons", "samples", "warnings"].contains(&key.as_str()));
        others.into_iter().find_map(|(key, value)| if key == name { leaf(value) } else { first(value, name) })
    })
}

fn first<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let group = value.as_object()?;
    match group.get(name).and_then(leaf) {
        Some(value) => Some(value),
        None => group.values().find_map(|value| first(value, name)),
    }
}

fn leaf(value: &Value) -> Option<&Value> {
    (!value.is_object() && !value.is_array()).then_some(value)
}

/// Names of the axes that a record was asked for.
pub(super) fn axis_names(record: &Value) -> Vec<String> {
    fn collect(group: &Map<String, Value>, names: &mut Vec<String>) {
        for (key, value) in group {
            match value {
                Value::Object(group) => collect(group, names),
                Value::Array(_) => {}
                _ => names.push(key.clone()),
            }
        }
    }
    let mut names = Vec::new();
    if let Some(Value::Object(asked)) = record.get("asked") {
        collect(asked, &mut names);
    }
    names
}

/// The machine that a record is from.
pub(super) fn host(record: &Value) -> &str {
    record.get("environment").and_then(|e| e.get("host")).and_then(Value::as_str).unwrap_or("unknown")
}

/// Text of a top-level entry.
pub(super) fn text<'a>(record: &'a Value, name: &str) -> Option<&'a str> {
    record.get(name)?.as_str()
}

/// The number of a run within its cell.
pub(super) fn run(record: &Value) -> u64 {
    record.get("run").and_then(Value::as_u64).unwrap_or(0)
}

/// Whether tracepoints and hardware counters were on.
pub(super) fn is_counted(record: &Value) -> bool {
    record.get("counted").and_then(Value::as_bool).unwrap_or(false)
}

/// Whether the run came to an answer that is not the known one.
pub(super) fn is_wrong(record: &Value) -> bool {
    record.get("answer_ok").and_then(Value::as_bool) == Some(false)
}

/// Why a run failed.
pub(super) fn failure(record: &Value) -> Option<&str> {
    text(record, "error").or_else(|| is_wrong(record).then_some("its answer is wrong"))
}
