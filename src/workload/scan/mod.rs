//! The reader alone, without an engine: a file read in order, or at random offsets with so many reads in flight.
//!
//! [`Prepared::open`] opens descriptors, pools and rings before anything is measured; [`Prepared::run`] is the measured
//! phase; [`Finished::close`] reports and closes them; [`sample::compare`] then proves the bytes.

pub mod clock;
pub mod offsets;
mod part;
pub mod prefetch;
mod random;
pub mod report;
pub mod sample;
mod sequential;
pub mod spec;
pub mod touch;

use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use self::clock::FineClock;
use self::offsets::{Offsets, share};
use self::part::Part;
use self::random::Random;
pub use self::report::{ScanReport, ScanResults};
pub use self::spec::{Refill, ScanAxes, ScanSpec, Touch, TouchOrder};
use crate::page::direct::DirectProof;
use crate::page::report::{ReaderReport, SqpollReport};
use crate::page::{BlockReader, PageError, PageReader};

/// Why a scan could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// An axis is out of range, or two do not go together.
    #[error("{0}")]
    Config(String),
    /// The file holds nothing to read.
    #[error(
        "{path} holds {bytes} bytes, and a read takes {block_bytes}: there is nothing to read; choose another file or a smaller --block"
    )]
    Empty {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
        /// Size of a read.
        block_bytes: u32,
    },
    /// A read gave fewer bytes than the file had when the scan began.
    #[error(
        "the read of {expected} bytes at offset {offset} gave {got}: the file has become shorter while it was read"
    )]
    Short {
        /// Where.
        offset: u64,
        /// Bytes asked for.
        expected: u32,
        /// Bytes that came.
        got: usize,
    },
    /// The page reader failed.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A thread could not be bound to its CPU.
    #[error("cannot bind a thread to CPU {cpu}: {source}; choose among the CPUs that this process may run on")]
    Affinity {
        /// The CPU.
        cpu: usize,
        /// The kernel's answer.
        source: nix::Error,
    },
    /// A thread could not be started, or ended in a panic.
    #[error("thread {0} of the scan {1}")]
    Thread(u32, String),
}

/// One thread's reader.
enum Reader {
    Pages(Box<PageReader>),
    Blocks(Box<BlockReader>),
}

impl Reader {
    fn report(&self) -> ReaderReport {
        match self {
            Reader::Pages(reader) => reader.report(),
            Reader::Blocks(reader) => reader.report(),
        }
    }
}

/// One thread's work, before and after.
struct Worker {
    index: u32,
    reader: Reader,
    /// The poller when the ring had just been opened.
    poller_before: Option<SqpollReport>,
    depth: u32,
    part: Part,
}

/// A scan whose files, pools and rings are open, and of which nothing has run.
pub struct Prepared {
    spec: ScanSpec,
    total: u64,
    offsets: Option<Offsets>,
    workers: Vec<Worker>,
}

impl Prepared {
    /// Opens everything.
    ///
    /// # Errors
    /// [`ScanError`]: axes that do not go together, a file without a block, or what the reader's opening says.
    pub fn open(spec: &ScanSpec, path: &Path, proof: Option<&DirectProof>) -> Result<Prepared, ScanError> {
        let axes = &spec.axes;
        axes.check(spec.reader.backend)?;
        let bytes = std::fs::metadata(path).map_err(|source| PageError::io("stat", path, source))?.len();
        let block = u64::from(axes.block_bytes);
        let empty = || ScanError::Empty { path: path.display().to_string(), bytes, block_bytes: axes.block_bytes };
        let (total, offsets) = match axes.random {
            Some(reads) => (reads, Some(Offsets::new(axes.seed, bytes / block).ok_or_else(empty)?)),
            None => (bytes.div_ceil(block), None),
        };
        if total < u64::from(axes.threads) {
            return Err(if total == 0 {
                empty()
            } else {
                ScanError::Config(format!("{total} reads for {} threads: choose fewer --threads", axes.threads))
            });
        }
        if let Some(proof) = proof
            && !axes.block_bytes.is_multiple_of(proof.offset_alignment_bytes)
        {
            let alignment = proof.offset_alignment_bytes;
            return Err(ScanError::Config(format!(
                "block {block}: direct reads of {} need a multiple of {alignment} bytes; choose --block {alignment}",
                path.display()
            )));
        }
        let clock = axes.touch.is_probe().then(FineClock::calibrated);
        let mut workers = Vec::with_capacity(axes.threads as usize);
        for index in 0..axes.threads {
            let part = share(u64::from(axes.depth), axes.threads, index);
            let depth = ((part.end - part.start) as u32).max(1);
            let reader = if offsets.is_some() {
                let slots = random::slots(axes, depth);
                Reader::Blocks(Box::new(BlockReader::open(path, axes.block_bytes, slots, &spec.reader, proof)?))
            } else {
                let held = sequential::held_pages(axes);
                Reader::Pages(Box::new(PageReader::open_holding(path, axes.block_bytes, &spec.reader, proof, held)?))
            };
            let poller_before = reader.report().sqpoll;
            workers.push(Worker { index, reader, poller_before, depth, part: Part::new(axes, total, clock) });
        }
        Ok(Prepared { spec: spec.clone(), total, offsets, workers })
    }

    /// Reads, in threads of their own. What they opened stays open.
    ///
    /// # Errors
    /// [`ScanError`] of the first thread that failed.
    pub fn run(self) -> Result<Finished, ScanError> {
        let Prepared { spec, total, offsets, workers } = self;
        let barrier = Barrier::new(workers.len());
        let (spec_of, barrier_of) = (&spec, &barrier);
        let ended: Vec<Result<Worker, ScanError>> = std::thread::scope(|scope| {
            let handles: Vec<_> = workers
                .into_iter()
                .map(|worker| scope.spawn(move || work(worker, spec_of, total, offsets, barrier_of)))
                .collect();
            let join = |(index, handle): (usize, std::thread::ScopedJoinHandle<'_, _>)| {
                handle.join().unwrap_or_else(|_| Err(ScanError::Thread(index as u32, "panicked".to_owned())))
            };
            handles.into_iter().enumerate().map(join).collect()
        });
        let workers = ended.into_iter().collect::<Result<Vec<Worker>, ScanError>>()?;
        Ok(Finished { spec, workers })
    }
}

fn work(
    mut worker: Worker,
    spec: &ScanSpec,
    total: u64,
    offsets: Option<Offsets>,
    barrier: &Barrier,
) -> Result<Worker, ScanError> {
    let bound = bind(worker.index, &spec.thread_cpus);
    // Everybody comes here, so that nobody waits for ever.
    barrier.wait();
    bound?;
    let share = share(total, spec.axes.threads, worker.index);
    let begin = Instant::now();
    match (&mut worker.reader, offsets) {
        (Reader::Blocks(reader), Some(offsets)) => {
            Random::new(&spec.axes, offsets, worker.depth, reader, &mut worker.part).run(share)?;
        }
        (Reader::Pages(reader), None) => sequential::run(&spec.axes, reader, share, &mut worker.part)?,
        (Reader::Blocks(_), None) | (Reader::Pages(_), Some(_)) => {
            return Err(ScanError::Thread(worker.index, "has the other kind of reader".to_owned()));
        }
    }
    worker.part.span = Some((begin, Instant::now()));
    Ok(worker)
}

/// Binds the calling thread to its CPU, where there is a list.
fn bind(index: u32, cpus: &[usize]) -> Result<(), ScanError> {
    let Some(&cpu) = cpus.get(index as usize % cpus.len().max(1)) else { return Ok(()) };
    let mut set = CpuSet::new();
    let bound = set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    bound.map_err(|source| ScanError::Affinity { cpu, source })
}

/// A scan that has run, and whose rings are still open, so that pollers can be sampled.
pub struct Finished {
    spec: ScanSpec,
    workers: Vec<Worker>,
}

impl Finished {
    /// Reports, and closes everything.
    ///
    /// # Errors
    /// Nothing was read.
    pub fn close(self) -> Result<ScanReport, ScanError> {
        let mut reader: Option<ReaderReport> = None;
        let mut sum: Option<Part> = None;
        let mut samples = Vec::new();
        for worker in self.workers {
            let mut report = worker.reader.report();
            report.sqpoll = report.sqpoll.map(|poller| since(poller, worker.poller_before.as_ref()));
            reader = Some(match reader {
                Some(known) => known.plus(report),
                None => report,
            });
            let part = sum.get_or_insert_with(|| Part::new(&self.spec.axes, 1, None));
            part.adopt_clock(&worker.part);
            samples.extend(part.merge(worker.part));
        }
        match (reader, sum) {
            (Some(reader), Some(part)) if part.ops > 0 => Ok(ScanReport::new(part, reader, samples)),
            _ => Err(ScanError::Config("the scan made no read: that is no measurement".to_owned())),
        }
    }
}

/// The poller's times since its ring was opened.
fn since(now: SqpollReport, before: Option<&SqpollReport>) -> SqpollReport {
    let Some(before) = before else { return now };
    let minus = |now: Option<u64>, before: Option<u64>| now.zip(before).map(|(now, before)| now.saturating_sub(before));
    SqpollReport {
        cpu_ns: now.cpu_ns.saturating_sub(before.cpu_ns),
        work_us: minus(now.work_us, before.work_us),
        total_us: minus(now.total_us, before.total_us),
        ..now
    }
}
