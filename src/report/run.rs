//! One line of `runs.jsonl`, as reports see it: numbers by their leaf names, in whatever group they stand.
//!
//! Reports read records of every kind and of every older version, so they hold on to names and not to a layout.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::experiment::record::RECORD_SCHEMA;
use crate::measure::environment::Environment;
use crate::page::ranges;

/// Groups of a record in which no measured quantity stands.
const NOT_MEASURED: [&str; 6] = ["asked", "effective", "environment", "reasons", "samples", "warnings"];

/// What a report knows of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// The experiment's name.
    pub experiment: String,
    /// The cell's name.
    pub cell: String,
    /// Number within the cell, from 1; counted runs have numbers of their own.
    pub run: u32,
    /// Whether tracepoints and hardware counters were on.
    pub counted: bool,
    /// Why the run failed.
    pub error: Option<String>,
    /// Its answer.
    pub answer: Option<String>,
    /// Whether that is the known one.
    pub answer_ok: Option<bool>,
    /// What was asked, as text by axis; axes that were not asked for are left out.
    pub asked: BTreeMap<String, String>,
    /// What was in force, as text by name.
    pub effective: BTreeMap<String, String>,
    /// Why a quantity is null.
    pub reasons: BTreeMap<String, String>,
    /// What a reader of the numbers has to know.
    pub warnings: Vec<String>,
    /// The machine and its settings.
    pub environment: Environment,
    /// Pages that were read for nothing, by number.
    pub wasted: Option<Vec<Range<u64>>>,
    /// Quantities.
    numbers: BTreeMap<String, f64>,
}

/// Why a line is no run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LineError {
    /// It cannot be read; it is reported and skipped.
    #[error("{0}")]
    Malformed(String),
    /// A later version wrote it; nothing of the file is to be trusted.
    #[error("its schema is {0}, and this ioscope knows {RECORD_SCHEMA}: use a newer ioscope")]
    Newer(u64),
}

impl Run {
    /// Reads a line.
    ///
    /// # Errors
    /// [`LineError`].
    pub fn parse(line: &[u8]) -> Result<Run, LineError> {
        let malformed = |what: &str| LineError::Malformed(what.to_owned());
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) if error.is_eof() => return Err(malformed("it is cut: the JSON ends early")),
            Err(error) => return Err(LineError::Malformed(format!("it is no JSON: {error}"))),
        };
        let Value::Object(record) = value else { return Err(malformed("it is no JSON object")) };
        let schema = record.get("schema").and_then(Value::as_u64).ok_or_else(|| malformed("it has no `schema`"))?;
        if schema > u64::from(RECORD_SCHEMA) {
            return Err(LineError::Newer(schema));
        }
        let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
        let needed = |name: &str| text(name).ok_or_else(|| LineError::Malformed(format!("it has no `{name}`")));
        let run = record.get("run").and_then(Value::as_u64).and_then(|run| u32::try_from(run).ok());
        let asked = record.get("asked").and_then(Value::as_object).ok_or_else(|| malformed("it has no `asked`"))?;
        let environment = record.get("environment").cloned().unwrap_or_default();
        let strings = |name: &str| -> BTreeMap<String, String> {
            let group = record.get(name).and_then(Value::as_object);
            group.into_iter().flatten().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect()
        };
        let mut parsed = Run {
            experiment: needed("experiment")?,
            cell: needed("cell")?,
            run: run.ok_or_else(|| malformed("it has no `run`"))?,
            counted: record.get("counted").and_then(Value::as_bool).unwrap_or(false),
            error: text("error"),
            answer: text("answer"),
            answer_ok: record.get("answer_ok").and_then(Value::as_bool),
            asked: texts(asked),
            effective: record.get("effective").and_then(Value::as_object).map(texts).unwrap_or_default(),
            reasons: strings("reasons"),
            warnings: record
                .get("warnings")
                .and_then(Value::as_array)
                .map(|list| list.iter().filter_map(|w| w.as_str().map(str::to_owned)).collect())
                .unwrap_or_default(),
            environment: serde_json::from_value(environment).unwrap_or_default(),
            wasted: wasted(&record),
            numbers: BTreeMap::new(),
        };
        for (name, value) in record.iter().filter(|(name, _)| !NOT_MEASURED.contains(&name.as_str())) {
            collect(name, value, &mut parsed.numbers);
        }
        Ok(parsed)
    }

    /// A quantity by its leaf name (or by a path, joined by dots), or one that follows from others:
    /// `merged_percent`, `request_kib`, `cpu_s` (application, poller and io-wq together), `process_system_s`,
    /// `ops_per_cpu_s`, `sqpoll_work_percent`, `ipc`, `miss_rate_percent`.
    pub fn number(&self, name: &str) -> Option<f64> {
        let quotient = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        match name {
            "merged_percent" => Some(100.0 * quotient(self.number("bios_merged")?, self.number("bios")?)?),
            "request_kib" => quotient(self.number("device_bytes")? / 1024.0, self.number("device_requests")?),
            "cpu_s" => {
                let own = self.number("user_s")? + self.number("system_s")?;
                Some(own + self.number("sqpoll_s").unwrap_or(0.0) + self.number("iowq_s").unwrap_or(0.0))
            }
            // What a process's own accounting calls system time: its poller and workers are threads of it.
            "process_system_s" => {
                let threads = self.number("sqpoll_s").unwrap_or(0.0) + self.number("iowq_s").unwrap_or(0.0);
                Some(self.number("system_s")? + threads)
            }
            "ipc" => quotient(self.number("instructions")?, self.number("cycles")?),
            "miss_rate_percent" => {
                Some(100.0 * quotient(self.number("cache_misses")?, self.number("cache_references")?)?)
            }
            "ops_per_cpu_s" => quotient(self.number("ops")?, self.number("cpu_s")?),
            "sqpoll_work_percent" => Some(100.0 * quotient(self.number("sqpoll_work_s")?, self.number("sqpoll_s")?)?),
            name => self.numbers.get(name).copied().filter(|number| number.is_finite()),
        }
    }

    /// Why a quantity is not there.
    pub fn reason(&self, name: &str) -> &str {
        let leaf = name.rsplit('.').next().unwrap_or(name);
        let sources: &[&str] = match leaf {
            "merged_percent" => &["bios", "bios_merged"],
            "request_kib" => &["device_requests", "device_bytes"],
            "cpu_s" | "process_system_s" => &["user_s", "system_s"],
            "ipc" => &["instructions", "cycles"],
            "miss_rate_percent" => &["cache_misses", "cache_references"],
            "ops_per_cpu_s" => &["ops", "user_s", "system_s"],
            "sqpoll_work_percent" => &["sqpoll_work_s", "sqpoll_s"],
            _ => &[],
        };
        const OF_SCANS: [&str; 7] =
            ["iops", "ops", "ops_per_cpu_s", "iops_per_cpu_s", "turns", "latency", "after_pause"];
        let is_of_scans = leaf.starts_with("touch_")
            || OF_SCANS.iter().any(|known| leaf == *known || name.starts_with(&format!("{known}.")));
        let otherwise = match is_of_scans && !self.asked.contains_key("block_bytes") {
            true => "a query, and no scan of the reader alone",
            false => "the record gives no reason",
        };
        // Where a whole group is null its own name has the reason: `latency` for latency.p50_us, `touch` for touch_...
        let groups = name.rsplit('.').skip(1).chain(leaf.split_once('_').map(|(group, _)| group));
        std::iter::once(leaf)
            .chain(sources.iter().copied())
            .chain(groups)
            .find_map(|name| self.reasons.get(name))
            .map_or(otherwise, String::as_str)
    }

    /// Names of the quantities that begin so.
    pub fn names_with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.numbers.keys().map(String::as_str).filter(move |name| name.starts_with(prefix) && !name.contains('.'))
    }

    /// The value asked on an axis.
    pub fn asked(&self, axis: &str) -> Option<&str> {
        self.asked.get(axis).map(String::as_str)
    }
}

/// Entries of a group as text, deeper ones by their leaf names; nulls and lists are left out.
fn texts(group: &Map<String, Value>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, value) in group {
        match value {
            Value::Object(group) => all.extend(texts(group)),
            Value::String(text) => drop(all.insert(name.clone(), text.clone())),
            Value::Bool(_) | Value::Number(_) => drop(all.insert(name.clone(), value.to_string())),
            Value::Null | Value::Array(_) => {}
        }
    }
    all
}

/// Numbers by leaf name, and by path where they stand deeper; of two with one leaf name the first keeps it.
fn collect(path: &str, value: &Value, numbers: &mut BTreeMap<String, f64>) {
    match value {
        Value::Object(group) => group.iter().for_each(|(key, value)| collect(&format!("{path}.{key}"), value, numbers)),
        Value::Number(number) => {
            let Some(number) = number.as_f64() else { return };
            let leaf = path.rsplit('.').next().unwrap_or(path);
            numbers.entry(leaf.to_owned()).or_insert(number);
            numbers.entry(path.to_owned()).or_insert(number);
        }
        _ => {}
    }
}

fn wasted(record: &Map<String, Value>) -> Option<Vec<Range<u64>>> {
    let code = record.get("pages")?.get("pages_wasted_ranges")?.as_array()?;
    ranges::decode(&code.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>()?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn malformed(line: &str) -> String {
        match Run::parse(line.as_bytes()) {
            Err(LineError::Malformed(what)) => what,
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn a_record_is_read_by_names() {
        let mut record = crate::experiment::record::tests::blank();
        record.times.user_s = Some(1.5);
        record.times.system_s = Some(0.25);
        record.times.sqpoll_s = Some(2.0);
        record.block.bios = Some(200);
        record.block.bios_merged = Some(150);
        record.pages.pages_wasted_ranges = Some(vec![5, 2, 1, 1]);
        record.explain(&["wall_s"], "no clock");
        record.explain(&["latency"], "in order");
        record.explain(&["touch"], "no probe");
        let run = Run::parse(serde_json::to_string(&record).unwrap().as_bytes()).unwrap();
        assert_eq!((run.cell.as_str(), run.run, run.counted), ("sqlite-uring-w32", 1, false));
        assert_eq!(run.number("cpu_s"), Some(3.75));
        assert_eq!(run.number("times.user_s"), Some(1.5));
        assert_eq!(run.number("merged_percent"), Some(75.0));
        assert_eq!((run.number("wall_s"), run.reason("wall_s")), (None, "no clock"));
        assert_eq!((run.reason("latency.p50_us"), run.reason("touch_ns_per_line_p50")), ("in order", "no probe"));
        assert_eq!(run.reason("pages_asked"), "the record gives no reason");
        assert_eq!(run.asked("window"), Some("32"));
        assert_eq!(run.asked("cpus"), None);
        assert_eq!(run.wasted, Some(vec![5..7, 8..9]));
    }

    #[test]
    fn what_is_no_record_says_why() {
        assert_eq!(malformed("{\"schema\": 1, \"cell"), "it is cut: the JSON ends early");
        assert!(malformed("hello").starts_with("it is no JSON: "));
        assert_eq!(malformed("[]"), "it is no JSON object");
        assert_eq!(malformed("{}"), "it has no `schema`");
        assert_eq!(malformed("{\"schema\":1}"), "it has no `asked`");
        assert_eq!(malformed("{\"schema\":1,\"asked\":{}}"), "it has no `experiment`");
        assert_eq!(Run::parse(b"{\"schema\":2}"), Err(LineError::Newer(2)));
        assert!(matches!(Run::parse(b"\xff"), Err(LineError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn no_line_is_a_panic(line in ".{0,200}", cut in 0usize..3000) {
            let _ = Run::parse(line.as_bytes());
            let record = serde_json::to_string(&crate::experiment::record::tests::blank()).unwrap();
            let cut = cut.min(record.len() - 1);
            prop_assert!(matches!(Run::parse(&record.as_bytes()[..cut]), Err(LineError::Malformed(_))));
        }
    }
}
