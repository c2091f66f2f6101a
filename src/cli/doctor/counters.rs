//! Counters: tracefs, the tracepoints, the PMU. They are opened, and read around a real direct read.

use super::storage::Sample;
use super::{Check, State, Subject};
use crate::measure::perf;
use crate::measure::tracepoint::{self, SUBMIT_EVENTS};
use crate::measure::{Measured, Watch, WatchOptions, direct_alignment};

/// The tracepoints of the block layer that are counted.
const BLOCK_EVENTS: [&str; 5] = [
    "block/block_bio_queue",
    "block/block_bio_backmerge",
    "block/block_bio_frontmerge",
    "block/block_getrq",
    "block/block_rq_issue",
];

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    let sample = Sample::new(subject).ok();
    let file = sample.as_ref().map_or(subject.place(), Sample::path).to_owned();
    let mut watch = Watch::open(&WatchOptions { counters: true, file });
    watch.start();
    let reads = sample.as_ref().and_then(|sample| {
        let alignment = direct_alignment(sample.path()).ok().flatten();
        sample.read_direct(alignment.map_or(0, |found| found.offset_bytes.into())).ok()
    });
    watch.sample_threads();
    let measured = watch.stop();
    let tracefs = tracefs();
    let mut traced = vec![submissions(&measured), block_layer(&measured, reads.map(|(_, reads)| reads))];
    for check in traced.iter_mut().filter(|check| check.state == State::Missing && check.found == tracefs.found) {
        check.found = "no tracefs".to_owned();
        check.remedy = "see tracefs above".to_owned();
    }
    [vec![tracefs, paranoid(&measured)], traced, vec![pmu(&measured)]].concat()
}

/// A reason's finding and its remedy, which stand around the first semicolon.
pub(super) fn split(reason: &str) -> (String, String) {
    let (found, remedy) = reason.split_once("; ").unwrap_or((reason, "no command mends this"));
    (found.to_owned(), remedy.to_owned())
}

fn reason(measured: &Measured, leaf: &str) -> (String, String) {
    split(measured.reasons.get(leaf).map_or("not measured", String::as_str))
}

fn tracefs() -> Check {
    let found = tracepoint::tracefs().and_then(|root| {
        tracepoint::event_id(&root, &SUBMIT_EVENTS)?;
        for event in BLOCK_EVENTS {
            tracepoint::event_id(&root, &[event])?;
        }
        Ok(root)
    });
    match found {
        Ok(root) => Check::ok("tracefs", format!("{}, with all {} events", root.display(), BLOCK_EVENTS.len() + 1)),
        Err(reason) => {
            let (found, remedy) = split(&reason);
            Check::missing(
                "tracefs",
                found,
                "no tracepoint can be counted: SQEs, bios, merges and requests stay null",
                remedy,
            )
        }
    }
}

fn paranoid(measured: &Measured) -> Check {
    const NAME: &str = "perf_event_paranoid";
    match perf::paranoid() {
        None => Check::missing(
            NAME,
            "this kernel has no perf events",
            "no tracepoint and no hardware event can be counted",
            "boot a kernel with CONFIG_PERF_EVENTS",
        ),
        Some(level) if level <= 0 => Check::ok(NAME, format!("{level}: anybody may count on whole CPUs")),
        Some(level) if measured.bios.is_some() => {
            Check::ok(NAME, format!("{level}, from which this process is exempt: counters on whole CPUs were opened"))
        }
        Some(level) => Check::warn(
            NAME,
            level.to_string(),
            "without privilege block events are not counted above 0, and the kernel's part of this process not above 1",
            "sudo sysctl kernel.perf_event_paranoid=0",
        ),
    }
}

fn submissions(measured: &Measured) -> Check {
    const NAME: &str = "SQE tracepoint";
    if measured.sqes_traced.is_some() {
        return Check::ok(NAME, "opened");
    }
    let (found, remedy) = reason(measured, "sqes_traced");
    Check::missing(NAME, found, "sqes_traced stays null: the reader's own count of SQEs has no second witness", remedy)
}

fn block_layer(measured: &Measured, reads: Option<u64>) -> Check {
    const NAME: &str = "block tracepoints";
    const COST: &str = "bios, bios_merged, requests_allocated and device_requests stay null";
    let (Some(bios), Some(requests)) = (measured.bios, measured.device_requests) else {
        let leaf = if measured.bios.is_none() { "bios" } else { "device_requests" };
        let (found, remedy) = reason(measured, leaf);
        return Check::missing(NAME, found, COST, remedy);
    };
    match reads {
        None => Check::ok(NAME, "opened; no direct read was possible to try them on"),
        Some(reads) if bios >= reads && requests > 0 => {
            let stat = measured.diskstats_reads.map_or_else(|| "unknown".to_owned(), |reads| reads.to_string());
            let others = if bios > reads { "; others read at the same time" } else { "" };
            let counted = format!("{bios} bios and {requests} requests ({stat} by diskstats)");
            Check::ok(NAME, format!("around {reads} direct reads {counted} were counted{others}"))
        }
        Some(reads) => Check::warn(
            NAME,
            format!("{reads} direct reads were counted as {bios} bios and {requests} requests"),
            "the counts of the block layer are not to be trusted on this device",
            "put the database on a disk of its own (ext4 or xfs, no multipath)",
        ),
    }
}

fn pmu(measured: &Measured) -> Check {
    const NAME: &str = "PMU";
    let counts = [
        ("cycles", measured.cycles),
        ("instructions", measured.instructions),
        ("cache_references", measured.cache_references),
        ("cache_misses", measured.cache_misses),
    ];
    let absent: Vec<&str> = counts.iter().filter(|(_, count)| count.is_none()).map(|(leaf, _)| *leaf).collect();
    match absent.first() {
        None => Check::ok(NAME, "cycles, instructions, cache references and misses were counted"),
        Some(first) => {
            let (found, remedy) = reason(measured, first);
            Check::missing(NAME, found, format!("stay null: {}", absent.join(", ")), remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_events_that_miss_our_own_reads_are_not_trusted() {
        let measured = |bios, requests| Measured {
            bios: Some(bios),
            device_requests: Some(requests),
            diskstats_reads: Some(requests),
            ..Measured::default()
        };
        assert_eq!(block_layer(&measured(256, 256), Some(256)).state, State::Ok);
        assert_eq!(block_layer(&measured(0, 0), Some(256)).state, State::Warn);
        assert_eq!(block_layer(&Measured::default(), Some(256)).state, State::Missing);
    }

    #[test]
    fn a_reason_is_split_into_finding_and_remedy() {
        assert_eq!(split("no PMU; buy one; now"), ("no PMU".to_owned(), "buy one; now".to_owned()));
        assert_eq!(split("no PMU").1, "no command mends this");
    }
}
