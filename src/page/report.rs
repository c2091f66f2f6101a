//! What a reader did, and the modes that were in force while it did it.

/// Counts and effective modes of one reader, or the sum over several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReaderReport {
    /// `pread`, `uring` or `uring-sqpoll`, as the kernel set it up.
    pub backend: String,
    /// Whether the descriptor is open with `O_DIRECT` and a transfer has proven it.
    pub direct: bool,
    /// How direct I/O was proven, in words.
    pub direct_proof: Option<String>,
    /// Alignment of offset and length that reads kept, in bytes.
    pub alignment_bytes: u32,
    /// Flags of the ring's setup, by name (`IORING_SETUP_COOP_TASKRUN` ...).
    pub ring_flags: Vec<String>,
    /// Entries of the submission queue.
    pub sq_entries: Option<u32>,
    /// Bytes of the pool.
    pub pool_bytes: u64,
    /// Bytes of the pool that huge pages back.
    pub pool_huge_bytes: u64,
    /// SQEs submitted; 0 for `pread`, which has no ring.
    pub sqes: u64,
    /// `io_uring_enter` calls.
    pub enter_calls: u64,
    /// Of these, calls that had to wake a sleeping SQPOLL thread (`IORING_ENTER_SQ_WAKEUP`).
    pub wakeups: u64,
    /// CQEs reaped.
    pub cqes: u64,
    /// `pread` calls.
    pub pread_calls: u64,
    /// Short reads before the end of the file, each submitted again for the rest.
    pub short_reads: u64,
    /// Reads submitted again after EINTR or EAGAIN.
    pub retries: u64,
    /// Pages asked for.
    pub pages_asked: u64,
    /// Of these, served from a frame read ahead.
    pub pages_from_window: u64,
    /// Pages read ahead.
    pub pages_prefetched: u64,
    /// Pages read ahead and never asked for.
    pub pages_wasted: u64,
    /// Pages lent where they lie in the pool, rather than copied.
    pub pages_lent: u64,
    /// Bytes asked of the kernel.
    pub bytes_read: u64,
    /// The SQPOLL thread, sampled right before the ring was closed.
    pub sqpoll: Option<SqpollReport>,
}

impl ReaderReport {
    /// The sum of two readers' counts, with the modes of the first. Pollers' times are summed; their thread is the
    /// first one's.
    #[must_use]
    pub fn plus(self, other: ReaderReport) -> ReaderReport {
        let sqpoll = match (self.sqpoll, other.sqpoll) {
            (Some(a), Some(b)) => Some(SqpollReport {
                cpu_ns: a.cpu_ns + b.cpu_ns,
                work_us: a.work_us.zip(b.work_us).map(|(a, b)| a + b),
                total_us: a.total_us.zip(b.total_us).map(|(a, b)| a + b),
                ..a
            }),
            (a, b) => a.or(b),
        };
        ReaderReport {
            pool_bytes: self.pool_bytes + other.pool_bytes,
            pool_huge_bytes: self.pool_huge_bytes + other.pool_huge_bytes,
            sqes: self.sqes + other.sqes,
            enter_calls: self.enter_calls + other.enter_calls,
            wakeups: self.wakeups + other.wakeups,
            cqes: self.cqes + other.cqes,
            pread_calls: self.pread_calls + other.pread_calls,
            short_reads: self.short_reads + other.short_reads,
            retries: self.retries + other.retries,
            pages_asked: self.pages_asked + other.pages_asked,
            pages_from_window: self.pages_from_window + other.pages_from_window,
            pages_prefetched: self.pages_prefetched + other.pages_prefetched,
            pages_wasted: self.pages_wasted + other.pages_wasted,
            pages_lent: self.pages_lent + other.pages_lent,
            bytes_read: self.bytes_read + other.bytes_read,
            sqpoll,
            ..self
        }
    }
}

/// The SQPOLL thread of one ring.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SqpollReport {
    /// Thread id.
    pub tid: u32,
    /// CPUs it may run on, as the kernel lists them.
    pub cpus_allowed: String,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// `SqWorkTime` of the ring's fdinfo, in microseconds; `None` on kernels without it.
    pub work_us: Option<u64>,
    /// `SqTotalTime` of the ring's fdinfo, in microseconds; `None` on kernels without it.
    pub total_us: Option<u64>,
}
