//! A run's record: what was asked, what was in force, what it answered and what it cost.
//!
//! One JSON object a line. The leaf names are stable. A quantity that was not measured is `null`, and
//! `reasons` says why under the same name; a zero always means "measured, and none".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::{EngineBackend, EngineKind};
use crate::measure::environment::Environment;
use crate::measure::sampler::{Sample, Sampling};
use crate::page::config::{Delivery, Direct, PolicyKind, PoolKind, Submit};
use crate::workload::scan::{ScanAxes, ScanResults};

/// Version of the record's layout, written into each.
pub const RECORD_SCHEMA: u32 = 1;

/// What a cell asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Who answers; `null` where ioscope's reader is asked alone, without an engine.
    pub engine: Option<EngineKind>,
    /// How the engine reads: ioscope's reader on one of its backends, or the engine's own I/O.
    pub backend: EngineBackend,
    /// Whether reads bypass the page cache.
    pub direct: Direct,
    /// How a batch becomes SQEs.
    pub submit: Submit,
    /// Which pages are read ahead.
    pub policy: PolicyKind,
    /// Pages fetched at once; 0 is no readahead.
    pub window: u32,
    /// Batches in flight while one is consumed.
    pub in_flight: u32,
    /// Unwanted pages that a run may read through.
    pub gap: u32,
    /// The memory behind the frames.
    pub pool: PoolKind,
    /// How a page comes to the engine.
    pub delivery: Delivery,
    /// State of the page cache at the start.
    pub cache: CacheState,
    /// CPUs that the whole process, and with SQPOLL the poller, is confined to (a list as in `taskset -c`).
    pub cpus: Option<String>,
    /// `sq_thread_idle` in milliseconds, for the SQPOLL backend.
    pub sqpoll_idle_ms: u32,
    /// The database file, for people; bytes that are not UTF-8 are shown as U+FFFD.
    pub database: String,
    /// The query's name: `q06` for a known TPC-H text, else the file's name; `scan` for a scan.
    pub query: String,
    /// The axes of a scan; only in its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanAxes>,
}

crate::page::config::axis! {
    /// State of the page cache, for the database file, when the measured phase starts.
    CacheState = "cache" {
        /// No page of the file is resident.
        Cold = "cold",
        /// Every page of the file is resident.
        Warm = "warm",
    }
}

/// What was in force, as the kernel and the reader themselves report it; `null` where the engine's own I/O read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Effective {
    /// Backend in force.
    pub backend: Option<String>,
    /// `required` once a transfer has proven it, else `disabled`.
    pub direct: Option<Direct>,
    /// How direct I/O was proven, in words.
    pub direct_proof: Option<String>,
    /// Alignment of offset and length that reads kept, in bytes.
    pub alignment_bytes: Option<u32>,
    /// Page size of the database, in bytes.
    pub page_size_bytes: Option<u32>,
    /// `huge` only where the kernel backs the pool with huge pages.
    pub pool: Option<PoolKind>,
    /// `zero-copy` only where a page was lent in place.
    pub delivery: Option<Delivery>,
    /// Pages lent in place.
    pub pages_lent: Option<u64>,
    /// Bytes of the pool, and how many of them huge pages back.
    pub pool_bytes: Option<u64>,
    /// Bytes of the pool that huge pages back.
    pub pool_huge_bytes: Option<u64>,
    /// Flags of the ring's setup, by name.
    pub ring_flags: Vec<String>,
    /// Entries of the submission queue.
    pub sq_entries: Option<u32>,
    /// Thread id of the SQPOLL thread.
    pub sqpoll_tid: Option<u32>,
    /// CPUs that the SQPOLL thread may run on, as the kernel lists them.
    pub sqpoll_cpus_allowed: Option<String>,
    /// CPUs that the application's threads may run on, as the kernel lists them.
    pub cpus_allowed: Option<String>,
    /// State of the page cache that residency proved.
    pub cache: Option<CacheState>,
    /// Journal mode by the database's header: `wal` or `rollback`.
    pub journal_mode: Option<String>,
    /// Version of the engine.
    pub engine_version: Option<String>,
}

/// Time, in seconds. `wall_s` runs from opening the database to the last row; the CPU times go on until
/// the database is closed, so that work still in flight is charged too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Times {
    /// Wall clock (CLOCK_MONOTONIC).
    pub wall_s: Option<f64>,
    /// User time of the application's threads.
    pub user_s: Option<f64>,
    /// System time of the application's threads, without the poller and the io-wq workers.
    pub system_s: Option<f64>,
    /// CPU time of the SQPOLL thread.
    pub sqpoll_s: Option<f64>,
    /// CPU time of the io-wq workers.
    pub iowq_s: Option<f64>,
    /// The part of the SQPOLL thread's time in which it had work (`SqWorkTime` in the ring's fdinfo).
    pub sqpoll_work_s: Option<f64>,
    /// All of the SQPOLL thread's time (`SqTotalTime` in the ring's fdinfo).
    pub sqpoll_total_s: Option<f64>,
}

/// What the ring, or its synchronous stand-in, was asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct RingCounts {
    /// SQEs that this reader submitted.
    pub sqes: Option<u64>,
    /// SQEs that the kernel saw (tracepoint io_uring:io_uring_submit_req), poller's included.
    pub sqes_traced: Option<u64>,
    /// `io_uring_enter` calls.
    pub enter_calls: Option<u64>,
    /// Of these, calls that woke a sleeping SQPOLL thread (`IORING_ENTER_SQ_WAKEUP`). The thread of a new ring sleeps
    /// until its first read, so one is the least.
    #[serde(default)]
    pub wakeups: Option<u64>,
    /// CQEs reaped.
    pub cqes: Option<u64>,
    /// `pread` calls, for the synchronous backend.
    pub pread_calls: Option<u64>,
    /// Reads that came back short before the end of the file, each submitted again for the rest.
    pub short_reads: Option<u64>,
    /// Reads submitted again after EINTR or EAGAIN.
    pub retries: Option<u64>,
}

/// Pages, as the reader saw them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct PageCounts {
    /// Pages that the engine asked for.
    pub pages_asked: Option<u64>,
    /// Of these, served from a frame read ahead.
    pub pages_from_window: Option<u64>,
    /// Pages read ahead of being asked for.
    pub pages_prefetched: Option<u64>,
    /// Pages read ahead and never asked for.
    pub pages_wasted: Option<u64>,
    /// Which pages these were, by number from 1, in counted runs: pages left out since the last range, pages of this
    /// range, and so on in turn. A page that was read for nothing twice is in it once.
    pub pages_wasted_ranges: Option<Vec<u64>>,
    /// Bytes that the reader asked the kernel for.
    pub bytes_read: Option<u64>,
}

/// The block layer, reads of the one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct BlockCounts {
    /// bios queued (block:block_bio_queue).
    pub bios: Option<u64>,
    /// bios merged into a request (block_bio_backmerge + block_bio_frontmerge).
    pub bios_merged: Option<u64>,
    /// Requests allocated (block_getrq).
    pub requests_allocated: Option<u64>,
    /// Requests issued to the driver (block_rq_issue).
    pub device_requests: Option<u64>,
    /// Bytes read from the device (diskstats sectors x 512).
    pub device_bytes: Option<u64>,
    /// Reads completed by /proc/diskstats: the cross-check of `device_requests`.
    pub diskstats_reads: Option<u64>,
    /// Reads merged by /proc/diskstats: the cross-check of `bios_merged`.
    pub diskstats_reads_merged: Option<u64>,
}

/// Hardware counters, user and kernel, of all the process's threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct HardwareCounts {
    /// CPU cycles.
    pub cycles: Option<u64>,
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// Cache references.
    pub cache_references: Option<u64>,
    /// Cache misses.
    pub cache_misses: Option<u64>,
    /// Time for which the group was enabled, in nanoseconds.
    pub hardware_enabled_ns: Option<u64>,
    /// Time for which it was on the PMU, in nanoseconds; the counts above are scaled by the quotient.
    pub hardware_running_ns: Option<u64>,
}

/// Residency of the database file in the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Residency {
    /// Resident pages (of the system's page size) right before the measured phase.
    pub resident_pages_before: Option<u64>,
    /// The same, right after it.
    pub resident_pages_after: Option<u64>,
    /// Pages of the system's page size that the file has.
    pub file_pages: Option<u64>,
}

/// One run of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the layout.
    pub schema: u32,
    /// The experiment's name.
    pub experiment: String,
    /// The cell's name, unique within the experiment.
    pub cell: String,
    /// The run's number within its cell, from 1; counted runs have numbers of their own.
    pub run: u32,
    /// Whether tracepoints and hardware counters were on: such a run's wall time is not compared.
    pub counted: bool,
    /// What was asked.
    pub asked: Asked,
    /// What was in force.
    pub effective: Effective,
    /// The answer, as text: columns separated by `|`, rows by newlines.
    pub answer: Option<String>,
    /// Whether the answer is the known one; `null` where none is known.
    pub answer_ok: Option<bool>,
    /// Why the run failed; `null` for a run that did not.
    pub error: Option<String>,
    /// Time.
    pub times: Times,
    /// Ring.
    pub ring: RingCounts,
    /// Pages.
    pub pages: PageCounts,
    /// Results of a scan; only in its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanResults>,
    /// Block layer.
    pub block: BlockCounts,
    /// Hardware counters.
    pub hardware: HardwareCounts,
    /// Residency.
    pub residency: Residency,
    /// How the samples were taken; only in records of sampled runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The run over time; only in records of sampled runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Vec<Sample>>,
    /// Why a quantity is `null`, by leaf name.
    pub reasons: BTreeMap<String, String>,
    /// Things that a reader of the numbers has to know, such as a cross-check that failed.
    pub warnings: Vec<String>,
    /// The machine and its settings.
    pub environment: Environment,
}

/// Groups of a record whose quantities need a reason where they are `null`.
const MEASURED_GROUPS: [&str; 9] =
    ["effective", "times", "ring", "pages", "scan", "block", "hardware", "residency", "sampling"];

impl Record {
    /// A record of which nothing is known yet but what was asked.
    pub fn blank(experiment: &str, cell: &str, run: u32, counted: bool, asked: Asked) -> Record {
        Record {
            schema: RECORD_SCHEMA,
            experiment: experiment.to_owned(),
            cell: cell.to_owned(),
            run,
            counted,
            asked,
            effective: Effective::default(),
            answer: None,
            answer_ok: None,
            error: None,
            times: Times::default(),
            ring: RingCounts::default(),
            pages: PageCounts::default(),
            scan: None,
            block: BlockCounts::default(),
            hardware: HardwareCounts::default(),
            residency: Residency::default(),
            sampling: None,
            samples: None,
            reasons: BTreeMap::new(),
            warnings: Vec::new(),
            environment: Environment::default(),
        }
    }

    /// Leaf names that are `null` and have no reason yet.
    pub fn unexplained(&self) -> Vec<String> {
        let Ok(serde_json::Value::Object(record)) = serde_json::to_value(self) else { return Vec::new() };
        let groups = MEASURED_GROUPS.iter().filter_map(|group| record.get(*group)?.as_object());
        let answers = record.iter().filter(|(name, _)| *name == "answer" || *name == "answer_ok");
        groups
            .flatten()
            .chain(answers)
            .filter(|(name, value)| value.is_null() && !self.reasons.contains_key(*name))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Gives every quantity that is `null` without a reason this one.
    pub fn explain_rest(&mut self, reason: &str) {
        for name in self.unexplained() {
            self.reasons.insert(name, reason.to_owned());
        }
    }

    /// Gives each of `names` that has no reason yet this one.
    pub fn explain(&mut self, names: &[&str], reason: &str) {
        for name in names {
            self.reasons.entry((*name).to_owned()).or_insert_with(|| reason.to_owned());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A record of which nothing was measured.
    pub(crate) fn blank() -> Record {
        Record::blank("e", "sqlite-uring-w32", 1, false, crate::experiment::spec::tests::asked())
    }

    #[test]
    fn the_leaf_names_are_the_documented_ones() {
        let value = serde_json::to_value(blank()).unwrap();
        fn leaves(value: &serde_json::Value, into: &mut Vec<String>) {
            for (name, value) in value.as_object().unwrap() {
                match value {
                    serde_json::Value::Object(group) if !group.is_empty() => leaves(value, into),
                    _ => into.push(name.clone()),
                }
            }
        }
        let mut names = Vec::new();
        leaves(&value, &mut names);
        for name in "experiment cell run engine backend direct submit policy window cache answer answer_ok error wall_s user_s \
             system_s sqpoll_s iowq_s sqpoll_work_s sqes sqes_traced enter_calls short_reads pages_asked pages_prefetched \
             pages_wasted bios bios_merged device_requests device_bytes cycles instructions cache_references cache_misses \
             resident_pages_before reasons"
            .split_whitespace()
        {
            assert!(names.iter().any(|n| n == name), "{name} is missing");
        }
    }

    #[test]
    fn a_null_is_unexplained_until_it_has_a_reason() {
        let mut record = blank();
        assert!(record.unexplained().contains(&"wall_s".to_owned()));
        record.times.wall_s = Some(0.0);
        record.explain(&["sqes"], "no ring");
        let unexplained = record.unexplained();
        assert!(!unexplained.contains(&"wall_s".to_owned()) && !unexplained.contains(&"sqes".to_owned()));
        record.explain_rest("it failed");
        assert_eq!(record.unexplained(), Vec::<String>::new());
        assert_eq!(record.reasons["sqes"], "no ring");
        assert_eq!(record.reasons["bios"], "it failed");
        assert!(!record.reasons.contains_key("wall_s") && !record.reasons.contains_key("error"));
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record = blank();
        record.times.wall_s = Some(0.603);
        record.effective.direct = Some(Direct::Required);
        record.explain_rest("not measured");
        let line = serde_json::to_string(&record).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }
}
