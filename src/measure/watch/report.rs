//! What a watch reports: values with reasons beside them, and cross-checks of one source against another.

use std::collections::BTreeMap;

use nix::sys::resource::Usage;
use nix::sys::time::TimeValLike;
use perf_event::Counter;

use super::{Slot, Start};
use crate::measure::device::{BlockDevice, DiskStats};
use crate::measure::threads::{KernelThread, ThreadTime};
use crate::measure::{perf, sys};

/// What a run cost. Each `None` has its reason under the same name in `reasons`; a zero was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// SQEs that the kernel took from rings of this process, the SQPOLL thread's included.
    pub sqes_traced: Option<u64>,
    /// Read bios queued to the device, whoever queued them.
    pub bios: Option<u64>,
    /// Read bios merged into a request that existed already, at its back or front.
    pub bios_merged: Option<u64>,
    /// Read requests allocated.
    pub requests_allocated: Option<u64>,
    /// Read requests issued to the driver.
    pub device_requests: Option<u64>,
    /// Bytes read from the device (sectors of 512 bytes in its statistics).
    pub device_bytes: Option<u64>,
    /// Reads completed, in the device's statistics.
    pub diskstats_reads: Option<u64>,
    /// Reads merged, in the device's statistics.
    pub diskstats_reads_merged: Option<u64>,
    /// CPU cycles, scaled to the time for which the counter was enabled; so are the three that follow.
    pub cycles: Option<u64>,
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// Cache references.
    pub cache_references: Option<u64>,
    /// Cache misses.
    pub cache_misses: Option<u64>,
    /// Time for which the hardware counter that was least on the PMU was enabled, in nanoseconds, over all threads.
    pub hardware_enabled_ns: Option<u64>,
    /// Time for which that counter was on the PMU, in nanoseconds.
    pub hardware_running_ns: Option<u64>,
    /// User time of the process, in seconds; io_uring's kernel threads have none.
    pub user_s: Option<f64>,
    /// System time of the process without io_uring's kernel threads, in seconds.
    pub system_s: Option<f64>,
    /// CPU time of SQPOLL threads, in seconds.
    pub sqpoll_s: Option<f64>,
    /// CPU time of io-wq workers, in seconds. A worker that idled away (after 5 s) before the last call of
    /// [`Watch::sample_threads`] is counted only as far as it was sampled; the rest is in `system_s`.
    pub iowq_s: Option<f64>,
    /// Why a quantity is `None`, by its name.
    pub reasons: BTreeMap<String, String>,
    /// What a reader of the numbers has to know.
    pub warnings: Vec<String>,
}

/// The leaf names of everything that [`Measured`] holds.
pub(super) const ALL_LEAVES: [&str; 18] = [
    "sqes_traced",
    "bios",
    "bios_merged",
    "requests_allocated",
    "device_requests",
    "device_bytes",
    "diskstats_reads",
    "diskstats_reads_merged",
    "cycles",
    "instructions",
    "cache_references",
    "cache_misses",
    "hardware_enabled_ns",
    "hardware_running_ns",
    "user_s",
    "system_s",
    "sqpoll_s",
    "iowq_s",
];

/// A report that is being written: values into fields, reasons beside them.
pub(super) struct Report {
    pub(super) measured: Measured,
}

impl Report {
    /// An empty report that begins with warnings.
    pub(super) fn new(warnings: Vec<String>) -> Report {
        Report { measured: Measured { warnings, ..Measured::default() } }
    }

    /// What was written into it.
    pub(super) fn finish(self) -> Measured {
        self.measured
    }

    /// Notes one reason for several values that are missing.
    pub(super) fn none_of(&mut self, leaves: &[&str], reason: &str) {
        for leaf in leaves {
            self.measured.reasons.insert((*leaf).to_owned(), reason.to_owned());
        }
    }

    /// The value, or `None` with its reason noted.
    fn value<T>(&mut self, leaf: &str, value: Result<T, String>) -> Option<T> {
        value.map_err(|reason| self.none_of(&[leaf], &reason)).ok()
    }

    pub(super) fn tracepoints(&mut self, sqes: &Slot, block: &[Slot]) {
        self.measured.sqes_traced = self.value(sqes.0, total(&sqes.1));
        for (leaf, counters) in block {
            let count = self.value(leaf, total(counters));
            let field = match *leaf {
                "bios" => &mut self.measured.bios,
                "bios_merged" => &mut self.measured.bios_merged,
                "requests_allocated" => &mut self.measured.requests_allocated,
                _ => &mut self.measured.device_requests,
            };
            *field = count;
        }
    }

    pub(super) fn hardware(&mut self, hardware: &[Slot]) {
        let mut least: Option<sys::Reading> = None;
        for (leaf, counters) in hardware {
            let reading = counters.as_ref().map_err(Clone::clone).and_then(|counters| {
                let counter = counters.first().ok_or("not opened")?;
                sys::read_counter(counter).map_err(|e| format!("the counter could not be read: {e}"))
            });
            if let Ok(reading) = reading {
                least = Some(least.map_or(reading, |known| less_often_running(known, reading)));
            }
            let count = reading.and_then(|reading| {
                perf::scale(reading).ok_or_else(|| {
                    "the counter was never on the PMU, which other counters held (the NMI watchdog takes one: \
                     sudo sysctl kernel.nmi_watchdog=0)"
                        .to_owned()
                })
            });
            let count = self.value(leaf, count);
            let field = match *leaf {
                "cycles" => &mut self.measured.cycles,
                "instructions" => &mut self.measured.instructions,
                "cache_references" => &mut self.measured.cache_references,
                _ => &mut self.measured.cache_misses,
            };
            *field = count;
        }
        let Some(least) = least else {
            let reason = hardware.first().and_then(|slot| slot.1.as_ref().err()).cloned();
            let reason = reason.unwrap_or_else(|| "no hardware counter could be read".to_owned());
            self.none_of(&["hardware_enabled_ns", "hardware_running_ns"], &reason);
            return;
        };
        self.measured.hardware_enabled_ns = Some(least.enabled_ns);
        self.measured.hardware_running_ns = Some(least.running_ns);
        if least.running_ns < least.enabled_ns {
            self.measured.warnings.push(format!(
                "hardware counters shared the PMU: one was on it for {} of {} ns; counts are scaled estimates",
                least.running_ns, least.enabled_ns
            ));
        }
    }

    pub(super) fn disk(&mut self, before: &Result<DiskStats, String>, after: Result<DiskStats, String>) {
        match before.clone().and_then(|before| after.map(|after| (before, after))) {
            Ok((before, after)) => {
                self.measured.diskstats_reads = Some(after.reads.wrapping_sub(before.reads));
                self.measured.diskstats_reads_merged = Some(after.reads_merged.wrapping_sub(before.reads_merged));
                self.measured.device_bytes = Some(after.sectors_read.wrapping_sub(before.sectors_read) * 512);
            }
            Err(reason) => self.none_of(&["diskstats_reads", "diskstats_reads_merged", "device_bytes"], &reason),
        }
    }

    pub(super) fn cpu(
        &mut self,
        start: &Start,
        usage: Result<Usage, String>,
        seen: &BTreeMap<i32, ThreadTime>,
        sampled: &Result<bool, String>,
    ) {
        let usage = start.usage.clone().and_then(|before| usage.map(|after| (before, after)));
        let Ok((before, after)) = usage else {
            let reason = usage.err().unwrap_or_default();
            self.none_of(&["user_s", "system_s", "sqpoll_s", "iowq_s"], &reason);
            return;
        };
        let user_s = seconds(after.user_time()) - seconds(before.user_time());
        let system_s = seconds(after.system_time()) - seconds(before.system_time());
        let threads = match (&start.threads, sampled) {
            (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
            (_, Ok(false)) => Err("the threads were not sampled before the run ended".to_owned()),
            (Ok(before), Ok(true)) => Ok(before),
        };
        match threads {
            Ok(before) => {
                let cpu_s = |kind| thread_seconds(before, seen, kind);
                let (sqpoll_s, iowq_s) = (cpu_s(KernelThread::SqPoll), cpu_s(KernelThread::IoWorker));
                let (user_s, system_s) = charge(user_s, system_s, sqpoll_s + iowq_s);
                self.measured.user_s = Some(user_s);
                self.measured.system_s = Some(system_s);
                self.measured.sqpoll_s = Some(sqpoll_s);
                self.measured.iowq_s = Some(iowq_s);
            }
            Err(reason) => {
                self.measured.user_s = Some(user_s);
                self.none_of(&["system_s", "sqpoll_s", "iowq_s"], &reason);
            }
        }
    }

    /// Compares the tracepoints with the device's statistics, and both with what this process itself read.
    pub(super) fn cross_check(&mut self, device: &BlockDevice, own_read_bytes: Option<(u64, u64)>) {
        let m = &mut self.measured;
        if let (Some(traced), Some(stat)) = (m.device_requests, m.diskstats_reads)
            && differ(traced, stat)
        {
            m.warnings.push(format!(
                "{}: {traced} read requests by tracepoint, {stat} in its statistics; requests in flight at the edges \
                 or a driver that splits them can explain a few, not more",
                device.name
            ));
        }
        // The statistics count merges of two requests too; those are requests allocated and never issued.
        if let (Some(bios), Some(allocated), Some(issued), Some(stat)) =
            (m.bios_merged, m.requests_allocated, m.device_requests, m.diskstats_reads_merged)
        {
            let traced = bios + allocated.saturating_sub(issued);
            if differ(traced, stat) {
                m.warnings
                    .push(format!("{}: {traced} read merges by tracepoint, {stat} in its statistics", device.name));
            }
        }
        if let (Some((before, after)), Some(device_bytes)) = (own_read_bytes, m.device_bytes) {
            let own = after.saturating_sub(before);
            let foreign = device_bytes.saturating_sub(own);
            if foreign > (256 << 10).max(device_bytes / 500) {
                m.warnings.push(format!(
                    "{}: {device_bytes} bytes were read and this process read {own} of them; the rest is somebody \
                     else's and is in the counts of the block layer",
                    device.name
                ));
            }
        }
    }
}

/// The sum of a slot's counters. A tracepoint needs no unit of the PMU, so nothing is scaled.
fn total(counters: &Result<Vec<Counter>, String>) -> Result<u64, String> {
    let counters = counters.as_ref().map_err(Clone::clone)?;
    counters.iter().try_fold(0, |sum, counter| {
        let reading = sys::read_counter(counter).map_err(|e| format!("the counter could not be read: {e}"))?;
        Ok(sum + reading.count)
    })
}

/// Of two readings, the one whose counter was on the PMU for the smaller share of its time.
pub(super) fn less_often_running(a: sys::Reading, b: sys::Reading) -> sys::Reading {
    let share = |r: sys::Reading, of: sys::Reading| u128::from(r.running_ns) * u128::from(of.enabled_ns);
    if share(b, a) < share(a, b) { b } else { a }
}

/// Whether two counts of the same thing differ by more than what the edges of a phase explain.
pub(super) fn differ(a: u64, b: u64) -> bool {
    a.abs_diff(b) > (a.max(b) / 200).max(8)
}

/// Takes the kernel threads' time out of the system time. The kernel divides a process's exact CPU time into user
/// and system by ticks; where system falls short of what is taken out, the rest comes out of user, so that the sum stays.
pub(super) fn charge(user_s: f64, system_s: f64, kernel_threads_s: f64) -> (f64, f64) {
    let rest = system_s - kernel_threads_s;
    if rest >= 0.0 { (user_s, rest) } else { ((user_s + rest).max(0.0), 0.0) }
}

pub(super) fn thread_seconds(
    before: &BTreeMap<i32, ThreadTime>,
    after: &BTreeMap<i32, ThreadTime>,
    kind: KernelThread,
) -> f64 {
    let spent = |(tid, thread): (&i32, &ThreadTime)| {
        thread.cpu_ns.saturating_sub(before.get(tid).map_or(0, |known| known.cpu_ns))
    };
    let ns: u64 = after.iter().filter(|(_, thread)| thread.kind == kind).map(spent).sum();
    ns as f64 / 1e9
}

fn seconds(time: nix::sys::time::TimeVal) -> f64 {
    time.num_microseconds() as f64 / 1e6
}
