//! What a scan is asked to do.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ScanError;
use super::prefetch;
use crate::page::blocks::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, SLOTS_MAX, WaitMode};
use crate::page::config::{BackendKind, ReaderConfig, axis};

axis! {
    /// When reads that have ended are replaced by new ones.
    Refill = "refill" {
        /// At once: so many reads are always in flight. Whatever a reap finds ended is replaced as one batch.
        Each = "each",
        /// When all have ended: a batch is submitted, waited for as a whole and followed by the next.
        All = "all",
    }
}

axis! {
    /// What is done with the bytes of a block.
    Touch = "touch" {
        /// Nothing.
        None = "none",
        /// All of them are summed.
        Sum = "sum",
        /// The first pass over them, where they lie in the pool, is timed.
        Slot = "slot",
        /// They are copied into a second buffer when they are delivered; the first pass over the copy is timed.
        Copy = "copy",
        /// Each line is prefetched by an instruction when it is delivered; the first pass is timed.
        Prefetch = "prefetch",
    }
}

impl Touch {
    /// Whether the first pass is timed.
    pub fn is_probe(self) -> bool {
        matches!(self, Touch::Slot | Touch::Copy | Touch::Prefetch)
    }
}

axis! {
    /// In which order a timed pass loads a block's lines.
    TouchOrder = "touch-order" {
        /// Ascending, the loads independent of each other: as a query that goes over a page. The hardware prefetches.
        Sequential = "sequential",
        /// Shuffled, each load waiting for the one before: what one miss costs.
        Chained = "chained",
    }
}

/// Most threads.
pub const THREADS_MAX: u32 = 1024;
/// Most blocks that may wait before they are touched.
pub const DELAY_MAX_PAGES: u32 = 16_384;
/// Most reads of one scan.
pub const READS_MAX: u64 = 1 << 40;
/// Longest think time and pause.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// Reads a span of time: `100ns`, `2us`, `5ms`, `1s`, or 0. Answers nanoseconds.
///
/// # Errors
/// What the text is not.
pub fn parse_span_ns(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let ns = match unit {
        "ns" => Some(1),
        "us" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "" if number == "0" => Some(1),
        _ => None,
    };
    let span = number.parse::<u64>().ok().zip(ns).and_then(|(number, ns)| number.checked_mul(ns));
    span.filter(|&ns| u128::from(ns) <= WAIT_MAX.as_nanos())
        .ok_or_else(|| format!("'{text}' is no span of time up to 60s; write it as 100ns, 2us, 5ms or 1s"))
}

/// A span of time as [`parse_span_ns`] reads it, in the largest unit that keeps it whole.
pub fn span_text(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.into_iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

/// The axes of a scan, as they stand in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanAxes {
    /// Number of reads at random offsets; `null` reads the whole file in order.
    pub random: Option<u64>,
    /// Bytes of a read, and of a page where the file is read in order.
    pub block_bytes: u32,
    /// Random reads in flight, over all threads together; 1 where the file is read in order, whose reads in flight follow
    /// from window and in_flight.
    pub depth: u32,
    /// Application threads, each with its own descriptor and ring, its share of the reads and of the depth.
    pub threads: u32,
    /// When reads that have ended are replaced.
    pub refill: Refill,
    /// How completions are waited for.
    pub wait: WaitMode,
    /// Nanoseconds for which a thread computes (spins on the clock) after each batch that it reaped, or after each
    /// page where the file is read in order: an application's work.
    pub think_ns: u64,
    /// Nanoseconds for which a thread sleeps after each burst, with nothing in flight.
    pub pause_ns: u64,
    /// Reads of a thread between two pauses; 0 where there are none.
    pub burst: u64,
    /// What is done with a block's bytes.
    pub touch: Touch,
    /// In which order a timed pass loads the lines.
    pub touch_order: TouchOrder,
    /// Blocks that are delivered before one is touched.
    pub delay_pages: u32,
    /// CPU that the SQPOLL thread is bound to, where it is not the last of `cpus`.
    pub sqpoll_cpu: Option<u32>,
    /// Seed of the random offsets.
    pub seed: u64,
}

impl Default for ScanAxes {
    fn default() -> Self {
        ScanAxes {
            random: None,
            block_bytes: 4096,
            depth: 1,
            threads: 1,
            refill: Refill::Each,
            wait: WaitMode::Sleep,
            think_ns: 0,
            pause_ns: 0,
            burst: 0,
            touch: Touch::None,
            touch_order: TouchOrder::Sequential,
            delay_pages: 0,
            sqpoll_cpu: None,
            seed: 1,
        }
    }
}

/// A scan as it is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanSpec {
    /// The axes.
    pub axes: ScanAxes,
    /// The reader's settings; where reads are random only backend, direct, pool and the poller's.
    pub reader: ReaderConfig,
    /// CPUs that the threads are bound to, one each in turn; empty leaves them to the scheduler.
    pub thread_cpus: Vec<usize>,
}

impl ScanAxes {
    /// Checks the axes, each alone and together, for one backend.
    ///
    /// # Errors
    /// [`ScanError::Config`] names the axis, what is wrong, and what to do.
    pub fn check(&self, backend: BackendKind) -> Result<(), ScanError> {
        self.ranges()?;
        let refuse = |message: String| Err(ScanError::Config(message));
        if self.random.is_none() {
            self.in_order()?;
        }
        if backend == BackendKind::Pread && self.depth > self.threads {
            return refuse(format!(
                "depth {} with pread: a thread has one pread in flight; choose --depth {1}, or --threads {0}",
                self.depth, self.threads
            ));
        }
        if self.depth < self.threads && self.random.is_some() {
            return refuse(format!(
                "depth {} for {} threads: each thread needs a read in flight; choose --depth {1} or more",
                self.depth, self.threads
            ));
        }
        if (self.pause_ns > 0) != (self.burst > 0) {
            return refuse("pause and burst belong together: --burst N reads, then --pause DURATION".to_owned());
        }
        if self.sqpoll_cpu.is_some() && backend != BackendKind::UringSqpoll {
            return refuse(format!("sqpoll-cpu with backend {backend}: only uring-sqpoll has a poller"));
        }
        if self.touch == Touch::Prefetch && !prefetch::SUPPORTED {
            return refuse("touch prefetch: this build knows prefetch instructions on x86-64 only".to_owned());
        }
        if self.delay_pages > 0 && !self.touch.is_probe() {
            return refuse(format!("delay-pages {}: it needs --touch slot, copy or prefetch", self.delay_pages));
        }
        Ok(())
    }

    fn ranges(&self) -> Result<(), ScanError> {
        let range = |axis: &str, value: u64, min: u64, max: u64| {
            if (min..=max).contains(&value) {
                return Ok(());
            }
            Err(ScanError::Config(format!("{axis} {value}: it is {min} to {max}")))
        };
        let block = u64::from(self.block_bytes);
        if !self.block_bytes.is_power_of_two() || !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&self.block_bytes) {
            return Err(ScanError::Config(format!(
                "block {block}: it is a power of two from {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes"
            )));
        }
        range("random", self.random.unwrap_or(1), 1, READS_MAX)?;
        range("depth", u64::from(self.depth), 1, u64::from(SLOTS_MAX))?;
        range("threads", u64::from(self.threads), 1, u64::from(THREADS_MAX))?;
        range("think", self.think_ns, 0, WAIT_MAX.as_nanos() as u64)?;
        range("pause", self.pause_ns, 0, WAIT_MAX.as_nanos() as u64)?;
        range("burst", self.burst, 0, READS_MAX)?;
        range("delay-pages", u64::from(self.delay_pages), 0, u64::from(DELAY_MAX_PAGES))
    }

    /// What does not go with reading the file in order.
    fn in_order(&self) -> Result<(), ScanError> {
        let only = |axis: &str, why: &str| {
            Err(ScanError::Config(format!("{axis} without --random: {why}; add --random N, or leave it out")))
        };
        if self.block_bytes > 65_536 {
            return Err(ScanError::Config(format!(
                "block {}: a page of a file that is read in order has at most 65536 bytes; add --random N, or choose a \
                 smaller one",
                self.block_bytes
            )));
        }
        if self.depth > 1 {
            return only("depth", "what is in flight follows from --window and --in-flight");
        }
        if self.refill != Refill::Each || self.wait != WaitMode::Sleep {
            return only("refill or wait", "the page reader decides when to submit and to wait");
        }
        if self.pause_ns > 0 || self.burst > 0 {
            return only("pause or burst", "a sequential scan has no bursts");
        }
        Ok(())
    }

    /// The cell's name: values that are the default are not mentioned.
    pub fn name(&self) -> String {
        let default = ScanAxes::default();
        let mut parts = vec![if self.random.is_some() { "random".to_owned() } else { "sequential".to_owned() }];
        if let Some(reads) = self.random {
            parts.push(format!("n{reads}"));
            parts.push(format!("qd{}", self.depth));
        }
        let mut add = |differs: bool, part: String| {
            if differs {
                parts.push(part);
            }
        };
        add(self.block_bytes != default.block_bytes, format!("b{}", self.block_bytes));
        add(self.threads != default.threads, format!("t{}", self.threads));
        add(self.refill != default.refill, format!("refill-{}", self.refill));
        add(self.wait != default.wait, self.wait.to_string());
        add(self.think_ns > 0, format!("think{}", span_text(self.think_ns)));
        add(self.burst > 0, format!("burst{}-pause{}", self.burst, span_text(self.pause_ns)));
        add(self.touch != default.touch, format!("touch-{}", self.touch));
        add(self.touch_order != default.touch_order, self.touch_order.to_string());
        add(self.delay_pages > 0, format!("delay{}", self.delay_pages));
        if let Some(cpu) = self.sqpoll_cpu {
            add(true, format!("poller{cpu}"));
        }
        add(self.seed != default.seed, format!("seed{}", self.seed));
        parts.join("-")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn random(change: impl FnOnce(&mut ScanAxes)) -> ScanAxes {
        let mut axes = ScanAxes { random: Some(1000), ..ScanAxes::default() };
        change(&mut axes);
        axes
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_what_to_do() {
        use BackendKind::{Pread, Uring, UringSqpoll};
        let cases = [
            (random(|a| a.depth = 8), Pread, "one pread in flight"),
            (random(|a| (a.depth, a.threads) = (1, 2)), Uring, "each thread needs a read in flight"),
            (random(|a| a.pause_ns = 5), Uring, "pause and burst belong together"),
            (random(|a| a.burst = 5), Uring, "pause and burst belong together"),
            (random(|a| a.sqpoll_cpu = Some(1)), Uring, "only uring-sqpoll has a poller"),
            (random(|a| a.delay_pages = 1), Uring, "it needs --touch slot, copy or prefetch"),
            (random(|a| a.random = Some(0)), Uring, "random 0: it is 1 to"),
            (random(|a| a.depth = 0), Uring, "depth 0: it is 1 to 32768"),
            (random(|a| a.threads = 0), Uring, "threads 0: it is 1 to 1024"),
            (random(|a| a.block_bytes = 4095), Uring, "block 4095: it is a power of two"),
            (random(|a| a.block_bytes = 0), Uring, "block 0: it is a power of two"),
            (random(|a| a.think_ns = u64::MAX), Uring, "think 18446744073709551615"),
            (ScanAxes { depth: 2, ..ScanAxes::default() }, Uring, "depth without --random"),
            (ScanAxes { wait: WaitMode::Spin, ..ScanAxes::default() }, Uring, "refill or wait without --random"),
            (ScanAxes { block_bytes: 1 << 20, ..ScanAxes::default() }, Uring, "at most 65536 bytes"),
        ];
        for (axes, backend, expected) in cases {
            let error = axes.check(backend).unwrap_err().to_string();
            assert!(error.contains(expected), "{error} does not say {expected}");
        }
        random(|a| (a.depth, a.threads) = (2, 2)).check(Pread).unwrap();
        random(|a| (a.depth, a.sqpoll_cpu) = (128, Some(1))).check(UringSqpoll).unwrap();
        ScanAxes { threads: 2, touch: Touch::Copy, delay_pages: 8, ..ScanAxes::default() }.check(Pread).unwrap();
    }

    #[test]
    fn names_mention_what_is_not_the_default() {
        assert_eq!(ScanAxes::default().name(), "sequential");
        assert_eq!(random(|a| a.depth = 32).name(), "random-n1000-qd32");
        let axes = random(|a| {
            (a.threads, a.think_ns, a.burst, a.pause_ns, a.sqpoll_cpu) = (2, 2000, 64, 5_000_000, Some(1));
        });
        assert_eq!(axes.name(), "random-n1000-qd1-t2-think2us-burst64-pause5ms-poller1");
    }

    #[test]
    fn spans_of_time() {
        for (text, ns) in
            [("0", 0), ("0ms", 0), ("100ns", 100), ("2us", 2000), ("5ms", 5_000_000), ("60s", 60_000_000_000)]
        {
            assert_eq!(parse_span_ns(text), Ok(ns), "{text}");
            assert_eq!(parse_span_ns(&span_text(ns)), Ok(ns), "{text}");
        }
        assert_eq!(span_text(1_500_000), "1500us");
        for bad in ["", "2", "us", "-1us", "1.5ms", "61s", "1h", "99999999999999999999s"] {
            assert!(parse_span_ns(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn axes_are_read_as_they_were_written() {
        let axes = random(|a| a.touch = Touch::Prefetch);
        let text = serde_json::to_string(&axes).unwrap();
        assert!(text.contains("\"random\":1000") && text.contains("\"touch\":\"prefetch\""), "{text}");
        assert_eq!(serde_json::from_str::<ScanAxes>(&text).unwrap(), axes);
    }
}
