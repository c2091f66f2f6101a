//! The io_uring backends: entered once per batch, or polled by a kernel thread.
#![expect(unsafe_code, reason = "hands pool addresses to the kernel")]

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use io_uring::{IoUring, opcode, types};

use super::backend::{Backend, BackendCounts, Capabilities, Completion, ReadRequest, check};
use super::descriptor::Descriptor;
use super::pool::Pool;
use super::report::SqpollReport;
use super::sqpoll_thread;

/// Flags of io_uring_enter(2).
const ENTER_GETEVENTS: u32 = 1;
const ENTER_SQ_WAKEUP: u32 = 1 << 1;

/// The kernel's own limit on SQ entries (IORING_MAX_ENTRIES in io_uring/io_uring.h).
const SQ_ENTRIES_MAX: usize = 32_768;

/// How often an enter that fails with EAGAIN is tried again before it is reported: the kernel could not
/// allocate a request, which passes when reads complete.
const ENTER_RETRIES_MAX: u32 = 1_000;

/// How the ring is set up.
#[derive(Debug, Clone, Copy)]
pub struct RingSetup {
    /// Reads that may be in flight at once.
    pub in_flight_max: usize,
    /// `Some(idle_ms, cpu)` asks for an SQPOLL thread.
    pub sqpoll: Option<(u32, Option<u32>)>,
}

/// Why a ring could not be had.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// io_uring_setup(2) failed.
    #[error("io_uring_setup: {source}: {meaning}")]
    Setup {
        /// The kernel's answer.
        source: io::Error,
        /// What it means, and what to do.
        meaning: String,
    },
    /// The kernel made a ring without the poller that was asked for.
    #[error(
        "the kernel set up a ring without the SQPOLL thread that was asked for; choose `--backend uring` for a plain ring"
    )]
    NoPoller,
}

/// A ring, the file it reads and the pool it reads into.
pub struct UringBackend {
    // Dropped before the pool; `drop` waits until nothing is in flight.
    ring: Option<IoUring>,
    // Given up only when the ring could not be drained: the kernel may still write to it.
    pool: Option<Pool>,
    file: Arc<Descriptor>,
    sqpoll: bool,
    in_flight: usize,
    reaped: Vec<Completion>,
    counts: BackendCounts,
    capabilities: Capabilities,
}

impl UringBackend {
    /// Sets up a ring that reads `file` into `pool`.
    ///
    /// # Errors
    /// [`RingError`]; a poller that was asked for and not granted is an error, never a plain ring.
    pub fn new(file: Arc<Descriptor>, pool: Pool, setup: RingSetup) -> Result<UringBackend, RingError> {
        let entries = setup.in_flight_max.clamp(1, SQ_ENTRIES_MAX).next_power_of_two();
        let mut builder = IoUring::builder();
        // A CQ as large as all reads in flight never overflows.
        builder.dontfork().setup_clamp().setup_cqsize((entries * 2) as u32);
        let mut flags = vec!["IORING_SETUP_CLAMP", "IORING_SETUP_CQSIZE"];
        match setup.sqpoll {
            Some((idle_ms, cpu)) => {
                builder.setup_sqpoll(idle_ms.max(1));
                flags.push("IORING_SETUP_SQPOLL");
                if let Some(cpu) = cpu {
                    builder.setup_sqpoll_cpu(cpu);
                    flags.push("IORING_SETUP_SQ_AFF");
                }
            }
            None => {
                // Completions are posted when the thread enters the kernel anyway, not by interrupting it. (Not
                // DEFER_TASKRUN: it ties the ring to one thread, and an engine may move a connection.)
                builder.setup_coop_taskrun().setup_taskrun_flag();
                flags.extend(["IORING_SETUP_COOP_TASKRUN", "IORING_SETUP_TASKRUN_FLAG"]);
            }
        }
        let ring = builder.build(entries as u32).map_err(|source| {
            let meaning = explain_setup(&source, setup.sqpoll.is_some());
            RingError::Setup { source, meaning }
        })?;
        let sqpoll = setup.sqpoll.is_some();
        if ring.params().is_setup_sqpoll() != sqpoll {
            return Err(RingError::NoPoller);
        }
        let cq_entries = ring.params().cq_entries() as usize;
        let capabilities = Capabilities {
            name: if sqpoll { "uring-sqpoll" } else { "uring" },
            in_flight_max: setup.in_flight_max.min(cq_entries),
            ring_flags: flags.into_iter().map(str::to_owned).collect(),
            sq_entries: Some(ring.params().sq_entries()),
        };
        Ok(UringBackend {
            ring: Some(ring),
            pool: Some(pool),
            file,
            sqpoll,
            in_flight: 0,
            reaped: Vec::new(),
            counts: BackendCounts::default(),
            capabilities,
        })
    }

    /// Puts all requests into the SQ and publishes its tail once, so that a poller sees whole batches. Enters the
    /// kernel only to make room.
    fn queue(&mut self, requests: &[ReadRequest]) -> io::Result<()> {
        let fd = types::Fd(self.file.as_raw_fd());
        let mut queued = 0;
        loop {
            let (Some(ring), Some(pool)) = (&mut self.ring, &self.pool) else { return Err(closed()) };
            let mut submission = ring.submission();
            for request in &requests[queued..] {
                check(request, pool)?;
                let entry = opcode::Read::new(fd, pool.address(request.slot), request.len)
                    .offset(request.offset)
                    .build()
                    .user_data(request.token);
                // SAFETY: the address and `len` bytes behind it lie in the pool (`check`), which lives until
                // `drop` has seen every completion; the descriptor lives as long as the ring.
                if unsafe { submission.push(&entry) }.is_err() {
                    break;
                }
                queued += 1;
                self.in_flight += 1;
                self.counts.sqes += 1;
            }
            drop(submission);
            if queued == requests.len() {
                return Ok(());
            }
            self.flush(0)?;
        }
    }

    /// Makes the kernel take what is queued, and waits for `min` completions where `min > 0`.
    fn flush(&mut self, min: usize) -> io::Result<()> {
        let mut retries = 0;
        loop {
            let Some(ring) = &mut self.ring else { return Err(closed()) };
            let (to_submit, flags) = if self.sqpoll {
                // io_uring(7): the tail must be visible before the wake-up flag is read.
                fence(Ordering::SeqCst);
                let submission = ring.submission();
                // A poller that sleeps with nothing to take is left asleep.
                let wakeup = if submission.need_wakeup() && !submission.is_empty() { ENTER_SQ_WAKEUP } else { 0 };
                if submission.is_full() && min == 0 && wakeup == 0 {
                    drop(submission);
                    self.counts.enter_calls += 1;
                    ring.submitter().squeue_wait()?;
                    return Ok(());
                }
                (submission.len(), wakeup)
            } else {
                let submission = ring.submission();
                let taskrun = if submission.taskrun() { ENTER_GETEVENTS } else { 0 };
                (submission.len(), taskrun)
            };
            let flags = if min > 0 { flags | ENTER_GETEVENTS } else { flags };
            if flags == 0 && (self.sqpoll || to_submit == 0) {
                return Ok(());
            }
            self.counts.enter_calls += 1;
            self.counts.wakeups += u64::from(flags & ENTER_SQ_WAKEUP != 0);
            // SAFETY: plain integers, and no argument structure.
            let entered =
                unsafe { ring.submitter().enter::<libc::sigset_t>(to_submit as u32, min as u32, flags, None) };
            match entered {
                Ok(taken) if self.sqpoll || taken >= to_submit => return Ok(()),
                // The kernel took a part; the rest follows at once.
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The CQ is full, or no request could be allocated: completions make room.
                    Some(libc::EBUSY | libc::EAGAIN) if retries < ENTER_RETRIES_MAX => {
                        retries += 1;
                        self.reap();
                        std::thread::yield_now();
                    }
                    _ => return Err(error),
                },
            }
            if min > 0 && self.reap() >= min {
                // What was waited for is here; what is still queued goes out below without waiting.
                return self.flush(0);
            }
        }
    }

    /// Moves CQEs into `reaped`, and says how many lie there.
    fn reap(&mut self) -> usize {
        if let Some(ring) = &mut self.ring {
            for cqe in ring.completion() {
                self.in_flight -= 1;
                self.counts.cqes += 1;
                let result = u32::try_from(cqe.result()).map_err(|_| -cqe.result());
                self.reaped.push(Completion { token: cqe.user_data(), result });
            }
        }
        self.reaped.len()
    }

    fn collect(&mut self, min: usize, out: &mut Vec<Completion>) -> io::Result<()> {
        let min = min.min(self.in_flight + self.reaped.len());
        loop {
            let here = self.reap();
            if here >= min {
                break;
            }
            self.flush((min - here).min(self.in_flight))?;
        }
        out.append(&mut self.reaped);
        Ok(())
    }
}

impl Backend for UringBackend {
    fn submit(&mut self, requests: &[ReadRequest]) -> io::Result<()> {
        self.queue(requests)?;
        self.flush(0)
    }

    fn submit_and_wait(&mut self, requests: &[ReadRequest], min: usize, out: &mut Vec<Completion>) -> io::Result<()> {
        self.queue(requests)?;
        if self.sqpoll {
            // The poller is awake more often than not: then the tail alone is enough.
            self.flush(0)?;
            return self.collect(min, out);
        }
        let min = min.min(self.in_flight + self.reaped.len());
        let missing = min.saturating_sub(self.reap());
        self.flush(missing)?;
        self.collect(min, out)
    }

    fn wait(&mut self, min: usize, out: &mut Vec<Completion>) -> io::Result<()> {
        if min == 0 {
            // Runs completions that the kernel holds back until the thread enters it.
            self.flush(0)?;
        }
        self.collect(min, out)
    }

    fn in_flight(&self) -> usize {
        self.in_flight + self.reaped.len()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn counts(&self) -> BackendCounts {
        self.counts
    }

    fn pool(&self) -> &Pool {
        match &self.pool {
            Some(pool) => pool,
            // Taken by `drop` alone.
            None => unreachable!("a backend in use has its pool"),
        }
    }

    fn file_size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn sqpoll(&self) -> Option<SqpollReport> {
        let ring = self.ring.as_ref()?;
        self.sqpoll.then(|| sqpoll_thread::read(ring.as_raw_fd()))
    }
}

impl Drop for UringBackend {
    fn drop(&mut self) {
        while self.in_flight > 0 {
            self.reap();
            if self.in_flight > 0 && self.flush(1).is_err() {
                // The ring cannot be waited on, so the kernel may write to the pool at any time: it stays mapped.
                std::mem::forget(self.pool.take());
                break;
            }
        }
        self.ring = None;
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the ring is closed")
}

/// What an error of io_uring_setup(2) means here, and what to do.
fn explain_setup(error: &io::Error, sqpoll: bool) -> String {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let disabled = disabled.trim();
    match error.raw_os_error() {
        Some(libc::EPERM) if matches!(disabled, "1" | "2") => format!(
            "io_uring is forbidden here (sysctl kernel.io_uring_disabled = {disabled}); \
             allow it with `sysctl kernel.io_uring_disabled=0`, or choose `--backend pread`"
        ),
        Some(libc::EPERM) if sqpoll => "an SQPOLL thread needs privileges on kernels before 5.11, or a seccomp filter \
             forbids it; run as root or choose `--backend uring`"
            .to_owned(),
        Some(libc::EPERM | libc::EACCES) => "a seccomp filter (a container's, perhaps) forbids io_uring; \
             allow it there, or choose `--backend pread`"
            .to_owned(),
        Some(libc::ENOSYS) => {
            "this kernel has no io_uring, or a seccomp filter hides it; choose `--backend pread`".to_owned()
        }
        Some(libc::ENOMEM) => "not enough memory that may be locked; raise `ulimit -l` (RLIMIT_MEMLOCK), \
             or choose a smaller --window or --in-flight"
            .to_owned(),
        Some(libc::EINVAL) if sqpoll => "the kernel refuses this ring; the poller's CPU may be offline or outside \
             the cpuset: choose another with --cpus"
            .to_owned(),
        Some(libc::EINVAL) => {
            "the kernel is older than 5.19 and lacks a setup flag; choose `--backend pread`".to_owned()
        }
        _ => "choose `--backend pread` to run without a ring".to_owned(),
    }
}
