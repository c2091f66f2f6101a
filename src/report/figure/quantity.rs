//! Quantities: what a name stands for, how it is derived from a record, and which runs may give it.

use serde_json::Value;

use super::leaf::{self, Found};
use super::unit::{Family, Unit};

/// Beyond this nothing is drawn: no quantity of this field comes near it.
const DRAWABLE_MAX: f64 = 1e100;
/// Below this it is zero.
const DRAWABLE_MIN: f64 = 1e-100;

/// A quantity as it is named in a figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quantity {
    /// Its name: a leaf name, a dotted path or a derived name.
    pub name: String,
    /// What is written on an axis.
    pub label: String,
    /// Its own unit.
    pub unit: Unit,
}

/// The value of a quantity in one run, or why there is none.
pub(super) type Measured = Result<f64, String>;

/// A quantity that follows from others of the same run.
struct Derived {
    name: &'static str,
    label: &'static str,
    inputs: &'static [&'static str],
    formula: fn(&[f64]) -> f64,
}

/// Derived quantities.
const DERIVED: [Derived; 13] = [
    Derived {
        name: "merged_percent",
        label: "bios merged",
        inputs: &["bios_merged", "bios"],
        formula: |v| 100.0 * v[0] / v[1],
    },
    Derived {
        name: "average_request_kib",
        label: "average request",
        inputs: &["device_bytes", "device_requests"],
        formula: |v| v[0] / v[1] / 1024.0,
    },
    Derived { name: "cpu_s", label: "CPU time", inputs: CPU, formula: |v| v.iter().sum() },
    Derived {
        name: "iops_per_cpu_s",
        label: "reads per CPU-second",
        inputs: &["iops", "wall_s", "user_s", "system_s", "sqpoll_s", "iowq_s"],
        formula: |v| v[0] * v[1] / v[2..].iter().sum::<f64>(),
    },
    Derived {
        name: "ops_per_cpu_s",
        label: "operations per CPU-second",
        inputs: &["ops", "user_s", "system_s", "sqpoll_s", "iowq_s"],
        formula: |v| v[0] / v[1..].iter().sum::<f64>(),
    },
    Derived {
        name: "cpus_used",
        label: "CPUs used",
        inputs: &["wall_s", "user_s", "system_s", "sqpoll_s", "iowq_s"],
        formula: |v| v[1..].iter().sum::<f64>() / v[0],
    },
    Derived {
        name: "sqpoll_spin_s",
        label: "poller spinning",
        inputs: &["sqpoll_total_s", "sqpoll_work_s"],
        formula: |v| (v[0] - v[1]).max(0.0),
    },
    Derived {
        name: "read_bytes_per_s",
        label: "read throughput",
        inputs: &["bytes_read", "wall_s"],
        formula: |v| v[0] / v[1],
    },
    Derived {
        name: "sqes_per_enter",
        label: "SQEs per enter call",
        inputs: &["sqes", "enter_calls"],
        formula: |v| v[0] / v[1],
    },
    Derived {
        name: "wasted_percent",
        label: "pages wasted",
        inputs: &["pages_wasted", "pages_prefetched"],
        formula: |v| 100.0 * v[0] / v[1],
    },
    Derived {
        name: "ipc",
        label: "instructions per cycle",
        inputs: &["instructions", "cycles"],
        formula: |v| v[0] / v[1],
    },
    Derived {
        name: "miss_rate_percent",
        label: "cache misses per reference",
        inputs: &["cache_misses", "cache_references"],
        formula: |v| 100.0 * v[0] / v[1],
    },
    Derived {
        name: "misses_per_page",
        label: "cache misses per page",
        inputs: &["cache_misses", "pages_asked"],
        formula: |v| v[0] / v[1],
    },
];

/// CPU time of everything that worked for the run.
const CPU: &[&str] = &["user_s", "system_s", "sqpoll_s", "iowq_s"];

/// What is written for well-known leaf names.
const LABELS: [(&str, &str); 37] = [
    ("wall_s", "wall time"),
    ("user_s", "user time"),
    ("system_s", "system time"),
    ("sqpoll_s", "SQPOLL thread"),
    ("sqpoll_work_s", "poller working"),
    ("sqpoll_total_s", "poller, all"),
    ("iowq_s", "io-wq workers"),
    ("sqes", "SQEs"),
    ("sqes_traced", "SQEs traced"),
    ("enter_calls", "enter calls"),
    ("cqes", "CQEs"),
    ("pread_calls", "pread calls"),
    ("pages_asked", "pages asked"),
    ("pages_from_window", "pages from window"),
    ("pages_prefetched", "pages prefetched"),
    ("pages_wasted", "pages wasted"),
    ("bytes_read", "bytes read"),
    ("bios", "bios"),
    ("bios_merged", "bios merged"),
    ("requests_allocated", "requests allocated"),
    ("device_requests", "device requests"),
    ("device_bytes", "bytes from device"),
    ("cycles", "cycles"),
    ("instructions", "instructions"),
    ("cache_references", "cache references"),
    ("cache_misses", "cache misses"),
    ("iops", "IOPS"),
    ("ops_per_s", "operations"),
    ("bytes_per_s", "throughput"),
    ("requests_in_flight", "requests in flight"),
    ("cpu_percent", "CPU"),
    ("p50_us", "median latency"),
    ("p95_us", "p95 latency"),
    ("p99_us", "p99 latency"),
    ("p999_us", "p99.9 latency"),
    ("max_us", "longest latency"),
    ("window", "window"),
];

/// Units of axes of `asked`, where the name does not end in one.
const AXIS_UNITS: [(&str, &str); 2] = [("window", "pages"), ("gap", "pages")];

fn derived(name: &str) -> Option<&'static Derived> {
    DERIVED.iter().find(|derived| derived.name == name)
}

/// Names of the derived quantities.
pub(super) fn derived_names() -> impl Iterator<Item = &'static str> {
    DERIVED.iter().map(|derived| derived.name)
}

impl Quantity {
    /// The quantity of this name; `label` is written for it if given.
    pub fn new(name: &str, label: Option<&str>) -> Quantity {
        let leaf = name.rsplit('.').next().unwrap_or(name);
        let known = derived(name).map(|d| d.label).or_else(|| LABELS.iter().find(|(n, _)| *n == leaf).map(|(_, l)| *l));
        let unit = Unit::of_name(leaf);
        let label = match (label, known) {
            (Some(label), _) | (None, Some(label)) => label.to_owned(),
            (None, None) => unit.strip(leaf).replace('_', " "),
        };
        Quantity { name: name.to_owned(), label, unit }
    }

    /// Whether it is a time or a rate, which tracepoints disturb: it is taken from runs without them.
    pub fn is_timed(&self) -> bool {
        let inputs = derived(&self.name).map_or(&[][..], |derived| derived.inputs);
        let timed = |name: &str| {
            let leaf = name.rsplit('.').next().unwrap_or(name);
            matches!(Unit::of_name(leaf).family, Family::Time | Family::ByteRate | Family::Rate)
                || leaf == "iops"
                || leaf.ends_with("_per_s")
                // A time for each of something, whatever stands behind it: `touch_ns_per_line_p50`.
                || leaf.contains("_ns_per_")
        };
        timed(&self.name) || inputs.iter().any(|name| timed(name))
    }

    /// Whether it is a count as it stands in the record, whose median is a value that was observed.
    pub fn is_count(&self) -> bool {
        derived(&self.name).is_none() && !self.is_timed() && self.unit.family != Family::Percent
    }

    /// The value in one run: as it stands in the record, else derived.
    pub fn measure(&self, record: &Value) -> Measured {
        let stored = number(record, &self.name);
        let value = match (stored, derived(&self.name)) {
            (Ok(stored), _) => stored,
            (Err(reason), None) => return Err(reason),
            (Err(_), Some(derived)) => {
                let inputs: Result<Vec<f64>, String> = derived.inputs.iter().map(|name| input(record, name)).collect();
                (derived.formula)(&inputs?)
            }
        };
        drawable(value).ok_or_else(|| format!("{} is {value}", self.name))
    }

    /// Whether any record could have it.
    pub fn is_known(&self, records: &[&Value]) -> bool {
        derived(&self.name).is_some() || records.iter().any(|r| leaf::quantity(r, &self.name) != Found::Missing)
    }
}

/// The unit that an axis of `asked` is labelled with.
pub(super) fn axis_unit(name: &str) -> Unit {
    match AXIS_UNITS.iter().find(|(axis, _)| *axis == name) {
        Some((_, unit)) => Unit { family: Family::Plain, factor: 1.0, text: unit },
        None => Unit::of_name(name),
    }
}

/// A finite value within what can be drawn.
pub(super) fn drawable(value: f64) -> Option<f64> {
    match value.abs() {
        size if size > DRAWABLE_MAX || size.is_nan() => None,
        size if size < DRAWABLE_MIN => Some(0.0),
        _ => Some(value),
    }
}

fn number(record: &Value, name: &str) -> Measured {
    match leaf::quantity(record, name) {
        Found::Number(value) => Ok(value),
        Found::Null => Err(leaf::reason(record, name).unwrap_or("not measured").to_owned()),
        Found::Missing => Err(format!("the record has no `{name}`")),
        Found::Ambiguous(paths) => Err(format!("`{name}` is ambiguous: name one of {}", paths.join(", "))),
    }
}

/// An input of a derived quantity. CPU time of threads that the run cannot have had is none.
fn input(record: &Value, name: &str) -> Measured {
    let value = number(record, name);
    let backend = leaf::axis(record, "backend").and_then(Value::as_str).unwrap_or_default();
    match name {
        "sqpoll_s" if value.is_err() && !backend.contains("sqpoll") => Ok(0.0),
        "iowq_s" if value.is_err() && leaf::quantity(record, name) == Found::Missing => Ok(0.0),
        _ => value,
    }
}
