//! What one thread of a scan did.

use std::time::{Duration, Instant};

use super::clock::FineClock;
use super::sample::{Sample, Sampler};
use super::spec::ScanAxes;
use super::touch::Toucher;
use crate::workload::latency::Latencies;

/// One thread's counts and times, as they grow.
#[derive(Debug)]
pub struct Part {
    /// Blocks read.
    pub ops: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Batches handed over and waited for.
    pub turns: u64,
    /// Time spent computing between batches.
    pub think: Duration,
    /// Pauses made.
    pub pauses: u64,
    /// Time spent asleep in them.
    pub pause: Duration,
    /// From handing a read over to seeing that it has ended.
    pub latencies: Latencies,
    /// The same, of the first batch after each pause only.
    pub after_pause: Latencies,
    /// When the thread began and when it ended.
    pub span: Option<(Instant, Instant)>,
    pub(super) toucher: Toucher,
    pub(super) sampler: Sampler,
}

impl Part {
    /// For a scan of `total` blocks over all threads.
    pub fn new(axes: &ScanAxes, total: u64, clock: Option<FineClock>) -> Part {
        let toucher =
            Toucher::new(axes.touch, axes.touch_order, axes.block_bytes as usize, axes.delay_pages as usize, clock);
        Part {
            ops: 0,
            bytes: 0,
            turns: 0,
            think: Duration::ZERO,
            pauses: 0,
            pause: Duration::ZERO,
            latencies: Latencies::new(),
            after_pause: Latencies::new(),
            span: None,
            toucher,
            sampler: Sampler::new(total),
        }
    }

    /// Takes over the clock of another thread's part, so that the sum can report in its terms.
    pub(super) fn adopt_clock(&mut self, other: &Part) {
        self.toucher.adopt_clock(&other.toucher);
    }

    /// Computes for `think`: spins on the clock.
    pub(super) fn think(&mut self, think: Duration) {
        if think.is_zero() {
            return;
        }
        let begin = Instant::now();
        let spent = loop {
            let spent = begin.elapsed();
            if spent >= think {
                break spent;
            }
            std::hint::spin_loop();
        };
        self.think += spent;
    }

    /// Sleeps for `pause`.
    pub(super) fn pause(&mut self, pause: Duration) {
        let begin = Instant::now();
        std::thread::sleep(pause);
        self.pause += begin.elapsed();
        self.pauses += 1;
    }

    /// Adds another thread's counts and times.
    pub(super) fn merge(&mut self, other: Part) -> Vec<Sample> {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.turns += other.turns;
        self.think += other.think;
        self.pauses += other.pauses;
        self.pause += other.pause;
        self.latencies.merge(&other.latencies);
        self.after_pause.merge(&other.after_pause);
        self.toucher.merge(&other.toucher);
        self.span = match (self.span, other.span) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (a, b) => a.or(b),
        };
        other.sampler.into_samples()
    }
}
