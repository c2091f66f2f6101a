//! The watch over one run: opened before any ring or thread exists, started and stopped around the measured phase.

mod report;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use perf_event::Counter;
use perf_event::events::Hardware;

use super::device::{BlockDevice, DiskStats};
use super::perf::{self, Scope};
use super::threads::{self, ThreadTime};
use super::tracepoint;

pub use report::Measured;
use report::{ALL_LEAVES, Report};

/// How long the device is watched before a run, to see whether anybody else uses it.
const BASELINE: Duration = Duration::from_millis(20);

/// Sectors that others may write during the baseline before it is worth a warning (2 MiB in 20 ms).
const BASELINE_WRITES_MAX_SECTORS: u64 = 4096;

/// The block tracepoints behind each count, by leaf name of the record.
const BLOCK_COUNTS: [(&str, &[&str]); 4] = [
    ("bios", &["block/block_bio_queue"]),
    ("bios_merged", &["block/block_bio_backmerge", "block/block_bio_frontmerge"]),
    ("requests_allocated", &["block/block_getrq"]),
    ("device_requests", &["block/block_rq_issue"]),
];

/// The hardware counters, by leaf name of the record.
const HARDWARE_COUNTS: [(&str, Hardware); 4] = [
    ("cycles", Hardware::CPU_CYCLES),
    ("instructions", Hardware::INSTRUCTIONS),
    ("cache_references", Hardware::CACHE_REFERENCES),
    ("cache_misses", Hardware::CACHE_MISSES),
];

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// Whether tracepoints and hardware counters are opened. They cost time: a run whose wall is compared has none.
    pub counters: bool,
    /// The database file (or, while it does not exist, its folder): it says which device is counted.
    pub file: PathBuf,
}

/// What was read when the phase began.
#[derive(Debug)]
struct Start {
    disk: Result<DiskStats, String>,
    own_read_bytes: Option<u64>,
    threads: Result<BTreeMap<i32, ThreadTime>, String>,
    usage: Result<Usage, String>,
}

/// A counter by leaf name, open on one or more CPUs, or the reason why it is not.
type Slot = (&'static str, Result<Vec<Counter>, String>);

/// Counters and clocks over one run. Open it before any ring or thread exists: perf counters are inherited by
/// threads made later, and by them only.
#[derive(Debug)]
pub struct Watch {
    device: Result<BlockDevice, String>,
    sqes: Slot,
    block: Vec<Slot>,
    hardware: Vec<Slot>,
    seen: BTreeMap<i32, ThreadTime>,
    sampled: Result<bool, String>,
    start: Option<Start>,
    warnings: Vec<String>,
}

impl Watch {
    /// Opens what can be opened and remembers why the rest cannot. Takes some 20 ms, for which it watches the
    /// device in order to see whether others use it.
    pub fn open(options: &WatchOptions) -> Watch {
        let device = BlockDevice::of_file(&options.file);
        let mut warnings = Vec::new();
        if let Ok(device) = &device {
            if !device.above.is_empty() {
                warnings.push(format!(
                    "the file lies on {}; bios and requests are counted on the disk {} beneath it",
                    device.above.join(" on "),
                    device.name
                ));
            }
            warnings.extend(baseline(device));
        }
        let (sqes, block, hardware) = if options.counters {
            warnings.extend(threads_already_there());
            open_counters(&device)
        } else {
            let no = || Err("not asked for (counters = none)".to_owned());
            (
                ("sqes_traced", no()),
                BLOCK_COUNTS.iter().map(|(leaf, _)| (*leaf, no())).collect(),
                HARDWARE_COUNTS.iter().map(|(leaf, _)| (*leaf, no())).collect(),
            )
        };
        Watch { device, sqes, block, hardware, seen: BTreeMap::new(), sampled: Ok(false), start: None, warnings }
    }

    /// The device whose reads are counted, or why there is none.
    pub fn device(&self) -> Result<&BlockDevice, &str> {
        self.device.as_ref().map_err(String::as_str)
    }

    /// Starts the measured phase: the counters last, so that starting is not counted.
    pub fn start(&mut self) {
        let mut start = Start {
            disk: self.device.as_ref().map_err(Clone::clone).and_then(BlockDevice::stats),
            own_read_bytes: own_read_bytes(),
            threads: threads::sample(Path::new(threads::TASKS)),
            usage: Err(String::new()),
        };
        self.seen.clear();
        self.sampled = Ok(false);
        for slot in self.block.iter_mut().chain([&mut self.sqes]).chain(&mut self.hardware) {
            switch(slot, Counter::enable, "enabled");
        }
        start.usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| format!("getrusage failed: {e}"));
        self.start = Some(start);
    }

    /// Reads the CPU time of io_uring's kernel threads. Call it right before the engine closes its file, while they
    /// still exist; calling it more often is harmless.
    pub fn sample_threads(&mut self) {
        match threads::sample(Path::new(threads::TASKS)) {
            Ok(threads) => {
                self.seen.extend(threads);
                if let Ok(sampled) = &mut self.sampled {
                    *sampled = true;
                }
            }
            Err(reason) => self.sampled = Err(reason),
        }
    }

    /// Ends the measured phase and reports. Call it after the engine has closed its file, so that reads in flight
    /// are counted.
    pub fn stop(mut self) -> Measured {
        let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| format!("getrusage failed: {e}"));
        for slot in self.hardware.iter_mut().chain([&mut self.sqes]).chain(&mut self.block) {
            switch(slot, Counter::disable, "disabled");
        }
        let disk = self.device.as_ref().map_err(Clone::clone).and_then(BlockDevice::stats);
        let own = own_read_bytes();

        let mut report = Report::new(std::mem::take(&mut self.warnings));
        let Some(start) = self.start.take() else {
            report.none_of(&ALL_LEAVES, "the watch was never started");
            return report.finish();
        };
        report.tracepoints(&self.sqes, &self.block);
        report.hardware(&self.hardware);
        report.disk(&start.disk, disk);
        report.cpu(&start, usage, &self.seen, &self.sampled);
        if let Ok(device) = &self.device {
            report.cross_check(device, start.own_read_bytes.zip(own));
        }
        report.finish()
    }
}

/// Opens every counter that `counters = all` asks for.
fn open_counters(device: &Result<BlockDevice, String>) -> (Slot, Vec<Slot>, Vec<Slot>) {
    let paranoid = perf::paranoid();
    let tracefs = tracepoint::tracefs();
    let id = |names: &[&str]| tracefs.clone().and_then(|root| tracepoint::event_id(&root, names));

    let sqes = id(&tracepoint::SUBMIT_EVENTS).and_then(|id| {
        let counter = tracepoint::open_for_process(id);
        counter.map(|c| vec![c]).map_err(|e| perf::open_reason(&e, Scope::Process, paranoid))
    });
    let cpus = perf::online_cpus();
    if let Ok(cpus) = &cpus {
        perf::make_room_for_descriptors(cpus.len() as u64 * 5);
    }
    let block = BLOCK_COUNTS.iter().map(|&(leaf, events)| {
        let open = || {
            let device = device.as_ref().map_err(Clone::clone)?;
            if leaf != "bios" && !device.has_requests {
                return Err(format!("{} takes bios directly: it has no requests and no merges", device.name));
            }
            let cpus = cpus.as_ref().map_err(Clone::clone)?;
            let mut counters = Vec::new();
            for event in events {
                let opened = tracepoint::open_for_device(id(&[event])?, cpus, device);
                counters.extend(opened.map_err(|e| perf::open_reason(&e, Scope::System, paranoid))?);
            }
            Ok(counters)
        };
        (leaf, open())
    });
    let block = block.collect();
    let hardware = HARDWARE_COUNTS.into_iter().map(|(leaf, kind)| {
        let counter = perf::open_hardware(kind);
        (leaf, counter.map(|c| vec![c]).map_err(|e| perf::open_reason(&e, Scope::Process, paranoid)))
    });
    (("sqes_traced", sqes), block, hardware.collect())
}

/// Switches every counter of a slot; one that cannot be switched makes the whole slot "not measured".
fn switch(slot: &mut Slot, how: fn(&mut Counter) -> std::io::Result<()>, word: &str) {
    if let Ok(counters) = &mut slot.1
        && let Err(error) = counters.iter_mut().try_for_each(how)
    {
        slot.1 = Err(format!("the counter could not be {word}: {error}"));
    }
}

/// Bytes that this process has caused to be read from storage, by all its threads, those that have ended too; `None`
/// on a kernel without CONFIG_TASK_IO_ACCOUNTING.
fn own_read_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: ")).and_then(|value| value.trim().parse().ok())
}

/// Watches the idle device for a moment: what it does then is somebody else's.
fn baseline(device: &BlockDevice) -> Option<String> {
    let before = device.stats().ok()?;
    std::thread::sleep(BASELINE);
    let after = device.stats().ok()?;
    let reads = after.reads.wrapping_sub(before.reads);
    let written = after.sectors_written.wrapping_sub(before.sectors_written);
    (reads > 0 || written > BASELINE_WRITES_MAX_SECTORS).then(|| {
        format!(
            "{} is not idle: in {} ms before the run others completed {reads} reads and wrote {} KiB",
            device.name,
            BASELINE.as_millis(),
            written / 2
        )
    })
}

/// Threads that exist already are not counted by inherited counters.
fn threads_already_there() -> Option<String> {
    let others = fs::read_dir(threads::TASKS).ok()?.count().saturating_sub(1);
    (others > 0).then(|| {
        format!(
            "{others} threads existed before the counters were opened; sqes_traced and the hardware counters miss them"
        )
    })
}

#[cfg(test)]
mod tests;
