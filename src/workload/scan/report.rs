//! What a scan reports: within the process, and in the record.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::part::Part;
use super::sample::{self, Sample};
use super::touch::TouchReport;
use crate::page::report::ReaderReport;
use crate::workload::latency::Percentiles;

/// What a scan did, over all its threads.
#[derive(Debug)]
pub struct ScanReport {
    /// From the start of the first thread to the end of the last.
    pub wall: Duration,
    /// What the readers did, and the modes in force.
    pub reader: ReaderReport,
    /// Sampled blocks, to be compared with what pread gives.
    pub samples: Vec<Sample>,
    part: Part,
}

/// The results of a scan, as they stand in a record.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScanResults {
    /// Blocks read.
    pub ops: u64,
    /// Blocks a second of wall time, pauses and think time included.
    pub iops: Option<f64>,
    /// Bytes a second of wall time.
    pub bytes_per_s: Option<f64>,
    /// Blocks a second of CPU time of application, poller and io-wq workers together; `null` where one is not known.
    pub iops_per_cpu_s: Option<f64>,
    /// Batches handed over and waited for; `null` where the file is read in order.
    pub turns: Option<u64>,
    /// Time that threads computed between batches, summed over them.
    pub think_s: f64,
    /// Pauses, summed over the threads.
    pub pauses: u64,
    /// Time that threads slept in pauses, summed over them.
    pub pause_s: f64,
    /// Latencies of the reads, from handing over to being seen; `null` where the file is read in order.
    pub latency: Option<Percentiles>,
    /// Latencies of the first batch after each pause; `null` without pauses.
    pub after_pause: Option<Percentiles>,
    /// The touch probe; `null` where it was not asked for.
    pub touch: Option<TouchReport>,
}

impl ScanReport {
    pub(super) fn new(part: Part, reader: ReaderReport, samples: Vec<Sample>) -> ScanReport {
        let wall = part.span.map_or(Duration::ZERO, |(begin, end)| end.duration_since(begin));
        ScanReport { wall, reader, samples, part }
    }

    /// Blocks read.
    pub fn ops(&self) -> u64 {
        self.part.ops
    }

    /// Bytes read and delivered.
    pub fn bytes(&self) -> u64 {
        self.part.bytes
    }

    /// Sum of what was touched; the same for the same blocks touched in the same way.
    pub fn touched_sum(&self) -> u64 {
        self.part.toucher.sum()
    }

    /// The answer: a function of the file, the offsets and the block size, whatever the backend, depth and threads.
    pub fn answer(&self) -> String {
        let samples = &self.samples;
        format!("{} reads, {} sampled, checksum {:016x}", self.part.ops, samples.len(), sample::combine(samples))
    }

    /// The results for a record. `cpu_s`: CPU time of application, poller and io-wq workers together, where known.
    pub fn results(&self, cpu_s: Option<f64>) -> ScanResults {
        let part = &self.part;
        let rate = |count: u64, seconds: f64| (seconds > 0.0).then(|| count as f64 / seconds);
        let latency = Some(part.latencies.percentiles()).filter(|latency| latency.count > 0);
        ScanResults {
            ops: part.ops,
            iops: rate(part.ops, self.wall.as_secs_f64()),
            bytes_per_s: rate(part.bytes, self.wall.as_secs_f64()),
            iops_per_cpu_s: cpu_s.and_then(|seconds| rate(part.ops, seconds)),
            turns: latency.map(|_| part.turns),
            think_s: part.think.as_secs_f64(),
            pauses: part.pauses,
            pause_s: part.pause.as_secs_f64(),
            latency,
            after_pause: Some(part.after_pause.percentiles()).filter(|latency| latency.count > 0),
            touch: part.toucher.report(),
        }
    }
}
