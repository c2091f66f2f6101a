//! The published values beside the measured ones.

use serde_json::Value;

use crate::report::hosts::{Cell, Host};
use crate::report::markdown::{Table, list, one_line};
use crate::report::phrases::{Form, NULL};
use crate::report::study::{Reference, Study};

/// A published number, and the quantity of a record that it is compared with.
type Quantity = (&'static str, &'static str, Form);

/// A row of published values: the table within its section, and which cells it is set beside.
struct Arm {
    name: &'static str,
    matches: fn(&Cell<'_>) -> bool,
    quantities: &'static [Quantity],
}

const READAHEAD: [Quantity; 5] = [
    ("sqes", "sqes", Form::Count),
    ("bios", "bios", Form::Count),
    ("bios_merged", "bios_merged", Form::Count),
    ("device_requests", "device_requests", Form::Count),
    ("request_size_kib", "request_kib", Form::Hundredths),
];
/// The published system time is that of the process, whose poller is one of its threads.
const SQPOLL: [Quantity; 3] = [
    ("wall_s", "wall_s", Form::Seconds),
    ("user_s", "user_s", Form::Seconds),
    ("system_s", "process_system_s", Form::Seconds),
];
const CACHE: [Quantity; 6] = [
    ("wall_s", "wall_s", Form::Seconds),
    ("cycles", "cycles", Form::Count),
    ("instructions", "instructions", Form::Count),
    ("ipc", "ipc", Form::Hundredths),
    ("cache_misses", "cache_misses", Form::Count),
    ("miss_rate_percent", "miss_rate_percent", Form::Tenths),
];

fn asked(cell: &Cell<'_>, axis: &str, value: &str) -> bool {
    cell.asked(axis) == Some(value)
}

/// Whether a database engine asked: what is published was measured beneath one.
fn is_query(cell: &Cell<'_>) -> bool {
    cell.asked("block_bytes").is_none()
}

fn per_page(cell: &Cell<'_>, window: &str) -> bool {
    asked(cell, "window", window)
        && asked(cell, "backend", "uring")
        && asked(cell, "direct", "required")
        && (window == "0" || cell.asked("submit").is_none_or(|submit| submit == "per-page"))
}

/// Q6 of Turso, cold, on ioscope's ring.
const PULL_REQUEST: [Quantity; 1] = [("q6_s", "wall_s", Form::Seconds)];

fn turso_q6(cell: &Cell<'_>, window: &str, direct: &str) -> bool {
    asked(cell, "engine", "turso")
        && asked(cell, "query", "q06")
        && asked(cell, "backend", "uring")
        && asked(cell, "direct", direct)
        && asked(cell, "window", window)
        && (window == "0" || asked(cell, "submit", "per-page"))
}

/// What is known of a section: empty for one whose values are only listed.
fn arms(section: &str) -> Vec<Arm> {
    match section {
        "article.readahead" => vec![
            Arm { name: "window_0", matches: |cell| per_page(cell, "0"), quantities: &READAHEAD },
            Arm { name: "window_32", matches: |cell| per_page(cell, "32"), quantities: &READAHEAD },
        ],
        "article.sqpoll" => vec![
            Arm {
                name: "sqpoll",
                matches: |cell| asked(cell, "window", "32") && asked(cell, "backend", "uring-sqpoll"),
                quantities: &SQPOLL,
            },
            Arm {
                name: "plain",
                matches: |cell| asked(cell, "window", "32") && asked(cell, "backend", "uring"),
                quantities: &SQPOLL,
            },
        ],
        "article.cache" => vec![
            Arm { name: "uring_plain", matches: |cell| per_page(cell, "32"), quantities: &CACHE },
            Arm {
                name: "syscall",
                matches: |cell| {
                    let pread = asked(cell, "backend", "pread") && asked(cell, "window", "32");
                    asked(cell, "direct", "disabled") && (pread || asked(cell, "backend", "builtin"))
                },
                quantities: &CACHE,
            },
        ],
        "turso_8389" => vec![
            Arm {
                name: "buffered_window_0",
                matches: |cell| turso_q6(cell, "0", "disabled"),
                quantities: &PULL_REQUEST,
            },
            Arm {
                name: "buffered_window_32",
                matches: |cell| turso_q6(cell, "32", "disabled"),
                quantities: &PULL_REQUEST,
            },
            Arm { name: "direct_window_0", matches: |cell| turso_q6(cell, "0", "required"), quantities: &PULL_REQUEST },
            Arm {
                name: "direct_window_32",
                matches: |cell| turso_q6(cell, "32", "required"),
                quantities: &PULL_REQUEST,
            },
        ],
        _ => Vec::new(),
    }
}

/// A published number, or a range of two, as text.
pub fn number_or_range(value: &Value, form: Form) -> Option<String> {
    match value {
        Value::Array(ends) => {
            let ends: Vec<String> = ends.iter().filter_map(Value::as_f64).map(|end| form.write(end)).collect();
            (!ends.is_empty()).then(|| ends.join(" to "))
        }
        value => value.as_f64().map(|number| form.write(number)),
    }
}

/// Every section that the experiment names, on one machine.
pub fn section(study: &Study, host: &Host<'_>) -> String {
    let text: String = study.campaign.about.reference.iter().map(|reference| one(reference, host)).collect();
    if text.is_empty() {
        return text;
    }
    let data = &study.campaign.plan.data;
    let same = data.starts_with("TPC-H, scale 1,");
    let other = if same {
        String::new()
    } else {
        format!(
            "**They are of TPC-H at scale 1, and this campaign's data are {}: no count or time compares.**\n\n",
            one_line(data)
        )
    };
    format!("### Published values beside the measured ones\n\n{other}{text}")
}

fn one(reference: &Reference, host: &Host<'_>) -> String {
    let source = |name: &str| reference.source.get(name).and_then(Value::as_str);
    let mut text = format!("`{}`", reference.section);
    if let Some(source) = source("source") {
        text.push_str(&format!(": {}", one_line(source)));
    }
    let facts: Vec<String> = ["database", "query"].iter().filter_map(|name| source(name)).map(one_line).collect();
    if !facts.is_empty() {
        text.push_str(&format!(" ({})", facts.join("; ")));
    }
    text.push_str(".\n\n");

    let arms = arms(&reference.section);
    if arms.is_empty() {
        text.push_str("Published, and not set beside any cell by this version of ioscope:\n\n");
        let mut lines = Vec::new();
        leaves("", &reference.values, &mut lines);
        text.push_str(&list(lines));
        return text;
    }
    let mut table =
        Table::new(["published arm", "cell", "quantity", "published", "measured", "measured / published"], 3);
    let (mut missing, mut alone): (Vec<String>, Vec<String>) = Default::default();
    for arm in &arms {
        let published = reference.values.get(arm.name);
        let cells: Vec<&Cell<'_>> = host.cells.iter().filter(|cell| is_query(cell) && (arm.matches)(cell)).collect();
        for (name, measured, form) in arm.quantities {
            let value = published.and_then(|published| published.get(name));
            let Some(shown) = value.and_then(|value| number_or_range(value, *form)) else {
                missing.push(format!("{}.{}.{name}", reference.section, arm.name));
                continue;
            };
            if cells.is_empty() {
                alone.push(format!("{}.{name}: {shown}", arm.name));
            }
            for cell in &cells {
                let number = quantity(cell, measured);
                let ratio = number.zip(value.and_then(Value::as_f64)).filter(|(_, published)| *published > 0.0);
                table.row([
                    arm.name,
                    cell.name,
                    name,
                    &shown,
                    &number.map_or_else(|| NULL.to_owned(), |number| form.write(number)),
                    &ratio.map_or_else(String::new, |(number, published)| format!("{:.3}", number / published)),
                ]);
            }
        }
    }
    text.push_str(&table.render());
    if reference.section == "article.sqpoll" {
        text.push_str(&sqpoll_ratio(&reference.values));
    }
    alone.extend(unmatched(reference, &arms));
    if !alone.is_empty() {
        text.push_str("Also published there, and with no cell of this campaign to compare:\n\n");
        text.push_str(&list(alone));
    }
    if !missing.is_empty() {
        text.push_str(&format!("Missing in the published values, so not compared: {}.\n\n", missing.join(", ")));
    }
    text
}

/// Times of the timed runs, counts of the counted ones.
fn quantity(cell: &Cell<'_>, name: &str) -> Option<f64> {
    if name.ends_with("_s") { crate::report::statistics::median(&cell.times(name)) } else { cell.count(name) }
}

fn sqpoll_ratio(values: &Value) -> String {
    let wall = |arm: &str| values.get(arm)?.get("wall_s")?.as_f64();
    match wall("sqpoll").zip(wall("plain")) {
        Some((sqpoll, plain)) if plain > 0.0 => {
            format!("Published ratio of walls, SQPOLL to plain: {:.3}.\n\n", sqpoll / plain)
        }
        _ => String::new(),
    }
}

/// Values of a known section that no arm takes up.
fn unmatched(reference: &Reference, arms: &[Arm]) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in reference.values.as_object().into_iter().flatten() {
        let quantities = arms.iter().find(|arm| arm.name == name).map(|arm| arm.quantities);
        match (value.as_object(), quantities) {
            (Some(table), Some(taken)) => {
                for (leaf, value) in table.iter().filter(|(leaf, _)| !taken.iter().any(|(known, _, _)| known == leaf)) {
                    leaves(&format!("{name}.{leaf}"), value, &mut lines);
                }
            }
            _ => leaves(name, value, &mut lines),
        }
    }
    lines
}

/// `path: value`, for every value within.
fn leaves(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(&path, value, lines);
            }
        }
        Value::String(text) => lines.push(format!("{path}: {}", one_line(text))),
        value => lines.push(format!("{path}: {value}")),
    }
}
