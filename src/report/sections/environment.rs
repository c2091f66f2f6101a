//! The machines and the settings that change results.

use crate::measure::environment::Environment;
use crate::report::grid::grouped;
use crate::report::hosts::Host;
use crate::report::markdown::{Table, list};
use crate::report::phrases::NULL;

/// Settings under the names of a report; a name with no entry here stands as it is.
const LABELS: [(&str, &str); 31] = [
    ("kernel_release", "kernel"),
    ("architecture", "architecture"),
    ("cpu_model", "CPU"),
    ("cpus_online", "CPUs online"),
    ("smt", "CPUs share cores (SMT)"),
    ("cpu_governor", "frequency governor"),
    ("cpu_boost", "boost"),
    ("hypervisor", "hypervisor"),
    ("memory_gib", "memory, GiB"),
    ("swap_bytes", "swap, bytes"),
    ("page_bytes", "system page, bytes"),
    ("transparent_hugepages", "transparent huge pages"),
    ("fs_type", "file system"),
    ("mount_options", "mount options"),
    ("direct_alignment_bytes", "alignment of direct I/O, bytes"),
    ("device_name", "device"),
    ("device_above", "mapped over it"),
    ("device_model", "device model"),
    ("device_driver", "driver"),
    ("scheduler", "I/O scheduler"),
    ("nomerges", "nomerges"),
    ("max_sectors_kb", "largest request, KiB"),
    ("max_segments", "segments of a request"),
    ("read_ahead_kb", "kernel readahead, KiB"),
    ("nr_requests", "requests of the queue"),
    ("logical_block_size", "logical block, bytes"),
    ("physical_block_size", "physical block, bytes"),
    ("rotational", "rotational"),
    ("write_cache", "write cache"),
    ("rq_affinity", "rq_affinity"),
    ("build_profile", "build"),
];

/// One column for each machine; a value that could not be read has its reason below.
pub fn section(hosts: &[Host<'_>]) -> String {
    let known: Vec<(&str, &Environment)> =
        hosts.iter().filter_map(|host| Some((host.label.as_str(), host.environment?))).collect();
    if known.is_empty() {
        return "## Environment\n\nNo run came so far as to read it.\n\n".to_owned();
    }
    let mut table =
        Table::new(std::iter::once("setting").chain(known.iter().map(|(label, _)| *label)), known.len() + 1);
    let settings: Vec<Vec<(&str, String)>> = known.iter().map(|(_, environment)| values(environment)).collect();
    for (row, (name, _)) in settings[0].iter().enumerate() {
        let label = LABELS.iter().find(|(known, _)| known == name).map_or(*name, |(_, label)| *label);
        let entries = settings.iter().map(|values| match values.get(row) {
            Some((_, value)) if value != "null" => value.as_str(),
            _ => NULL,
        });
        let entries: Vec<&str> = entries.collect();
        if entries.iter().any(|entry| *entry != NULL) {
            table.row(std::iter::once(label).chain(entries));
        }
    }
    let mut reasons: Vec<String> = Vec::new();
    for (label, environment) in &known {
        let names = settings[0].iter().map(|(name, _)| if *name == "memory_gib" { "memory_bytes" } else { name });
        for (name, reason) in names.filter_map(|name| Some((name, environment.reasons.get(name)?))) {
            let on = if known.len() > 1 { format!(" ({label})") } else { String::new() };
            reasons.push(format!("{name}{on}: {reason}"));
        }
    }
    let mut text = format!("## Environment\n\n{}", table.render());
    if !reasons.is_empty() {
        text.push_str(&format!("{} not known:\n\n{}", NULL, list(reasons)));
    }
    text
}

/// What is shown: the settings that the id covers, and what the versions and the file were.
fn values(environment: &Environment) -> Vec<(&'static str, String)> {
    fn text<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(|| "null".to_owned(), |value| value.to_string())
    }
    let mut values = vec![("environment id", environment.id.clone())];
    values.extend(environment.settings());
    values.extend([
        ("perf_event_paranoid", text(environment.perf_event_paranoid)),
        ("database file, bytes", text(environment.file_bytes.map(grouped))),
        ("extents of the file", text(environment.file_extents)),
        ("SQLite", text(environment.sqlite_version.as_ref())),
        ("Turso", text(environment.turso_version.as_ref())),
        ("ioscope", text(environment.ioscope_version.as_ref())),
    ]);
    values
}
