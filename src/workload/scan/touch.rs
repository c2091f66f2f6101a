//! The touch probe: how long the first pass over a delivered block takes.
//!
//! A block whose lines are in a near cache is passed over in a fraction of a nanosecond a line; one whose lines have to
//! come from memory takes several. So the time says where the delivery left the data, without a PMU.

use std::collections::BTreeMap;
use std::hint::black_box;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::clock::FineClock;
use super::prefetch::{LINE_BYTES, prefetch};
use super::spec::{Touch, TouchOrder};

/// Largest time a line that is told apart, in picoseconds: one second.
const LONGEST_PS: u64 = 1_000_000_000_000;
/// Buckets of the recorded histogram in each doubling.
const BUCKETS_PER_DOUBLING: f64 = 4.0;

/// What the probe found. Times are of whole blocks, divided by their lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TouchReport {
    /// First pass over a block, in nanoseconds a 64-byte line, the timer's own time subtracted: median.
    pub touch_ns_per_line_p50: Option<f64>,
    /// The same: 95th percentile.
    pub touch_ns_per_line_p95: Option<f64>,
    /// The copy or the prefetch instructions at delivery, in nanoseconds a line: median; `null` where there is neither.
    pub touch_prepare_ns_per_line_p50: Option<f64>,
    /// What timing one pass takes by itself, in nanoseconds: median. It has been subtracted.
    pub timer_overhead_ns: f64,
    /// `tsc` or `monotonic`.
    pub timer: String,
    /// Lines touched.
    pub touch_lines: u64,
    /// Blocks touched.
    pub touch_blocks: u64,
    /// Blocks by the time a line took, ascending; four buckets in each doubling, empty ones left out.
    pub touch_histogram: Vec<TouchBucket>,
}

/// One bar of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TouchBucket {
    /// Upper bound, in nanoseconds a line.
    pub below_ns_per_line: f64,
    /// Blocks.
    pub blocks: u64,
}

/// Touches the blocks of one thread.
#[derive(Debug)]
pub struct Toucher {
    touch: Touch,
    clock: Option<FineClock>,
    // Shuffled order of a block's lines; empty for the ascending one.
    order: Vec<u32>,
    // Zero, which the compiler does not know.
    zero: u64,
    copies: Vec<Vec<u8>>,
    next_copy: usize,
    pass_ps: Option<Histogram<u64>>,
    prepare_ps: Option<Histogram<u64>>,
    lines: u64,
    blocks: u64,
    sum: u64,
}

impl Toucher {
    /// For blocks of `block_bytes`, touched after `delay` further ones were delivered. `clock` is shared by the threads,
    /// so that it is calibrated once.
    pub fn new(touch: Touch, order: TouchOrder, block_bytes: usize, delay: usize, clock: Option<FineClock>) -> Toucher {
        let histogram = || Histogram::new_with_bounds(1, LONGEST_PS, 3).ok();
        let copies = if touch == Touch::Copy { delay + 1 } else { 0 };
        Toucher {
            touch,
            clock: clock.filter(|_| touch.is_probe()),
            order: if order == TouchOrder::Chained { shuffled(block_bytes / LINE_BYTES) } else { Vec::new() },
            zero: black_box(0),
            // Written once, so that no page fault falls into a run.
            copies: (0..copies).map(|_| vec![1; block_bytes]).collect(),
            next_copy: 0,
            pass_ps: histogram(),
            prepare_ps: histogram(),
            lines: 0,
            blocks: 0,
            sum: 0,
        }
    }

    /// A block is delivered, to be touched now or later. Answers the copy's number where the copy is to be touched
    /// instead of the block itself.
    pub fn deliver(&mut self, bytes: &[u8]) -> Option<usize> {
        let clock = self.clock.filter(|_| self.touch != Touch::Slot)?;
        let begin = clock.now();
        let copy = match self.touch {
            Touch::Copy => {
                let number = self.next_copy;
                let copy = &mut self.copies[number];
                let count = bytes.len().min(copy.len());
                copy[..count].copy_from_slice(&bytes[..count]);
                self.next_copy = (number + 1) % self.copies.len();
                Some(number)
            }
            Touch::Prefetch => {
                prefetch(bytes);
                None
            }
            Touch::None | Touch::Sum | Touch::Slot => return None,
        };
        record(&mut self.prepare_ps, clock.ns_between(begin, clock.now()), bytes.len());
        copy
    }

    /// The first `len` bytes of a copy.
    pub fn copy(&self, number: usize, len: usize) -> &[u8] {
        self.copies.get(number).and_then(|copy| copy.get(..len)).unwrap_or_default()
    }

    /// Touches a block in its place.
    pub fn touch(&mut self, bytes: &[u8]) {
        match self.touch {
            Touch::None => {}
            Touch::Sum => self.sum = self.sum.wrapping_add(sum(bytes)),
            Touch::Slot | Touch::Copy | Touch::Prefetch => {
                let Some(clock) = self.clock else { return };
                let begin = clock.now();
                let value = black_box(pass(black_box(bytes), &self.order, self.zero));
                let ns = clock.ns_between(begin, clock.now());
                self.note(value, ns, bytes.len());
            }
        }
    }

    /// Touches the first `len` bytes of a copy.
    pub fn touch_copy(&mut self, number: usize, len: usize) {
        let Some(clock) = self.clock else { return };
        let bytes = self.copy(number, len);
        let begin = clock.now();
        let value = black_box(pass(black_box(bytes), &self.order, self.zero));
        let ns = clock.ns_between(begin, clock.now());
        self.note(value, ns, len);
    }

    fn note(&mut self, value: u64, ns: f64, len: usize) {
        self.sum = self.sum.wrapping_add(value);
        self.lines += (len / LINE_BYTES) as u64;
        self.blocks += u64::from(len >= LINE_BYTES);
        record(&mut self.pass_ps, ns, len);
    }

    /// Sum of what was loaded; it keeps the loads from being left out, and is the same for the same blocks.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Uses the clock of another thread's probe.
    pub fn adopt_clock(&mut self, other: &Toucher) {
        self.clock = other.clock;
    }

    /// Adds what another thread's probe found.
    pub fn merge(&mut self, other: &Toucher) {
        for (mine, theirs) in [(&mut self.pass_ps, &other.pass_ps), (&mut self.prepare_ps, &other.prepare_ps)] {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                // The bounds are the same, so nothing can be out of range.
                let _ = mine.add(theirs);
            }
        }
        self.lines += other.lines;
        self.blocks += other.blocks;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// What the probe found; `None` where nothing was timed.
    pub fn report(&self) -> Option<TouchReport> {
        let clock = self.clock?;
        let pass = self.pass_ps.as_ref()?;
        let quantile = |histogram: &Histogram<u64>, quantile: f64| {
            // As for latencies: ten samples beyond it, or it is not told.
            let enough = histogram.len() as f64 * (1.0 - quantile) >= 10.0 - 1e-9;
            enough.then(|| histogram.value_at_quantile(quantile) as f64 / 1e3)
        };
        Some(TouchReport {
            touch_ns_per_line_p50: quantile(pass, 0.5),
            touch_ns_per_line_p95: quantile(pass, 0.95),
            touch_prepare_ns_per_line_p50: self.prepare_ps.as_ref().and_then(|prepare| quantile(prepare, 0.5)),
            timer_overhead_ns: clock.overhead_ns(),
            timer: clock.name().to_owned(),
            touch_lines: self.lines,
            touch_blocks: self.blocks,
            touch_histogram: buckets(pass),
        })
    }
}

/// Loads eight bytes of each line and sums them.
#[inline(never)]
fn pass(bytes: &[u8], order: &[u32], zero: u64) -> u64 {
    if order.is_empty() {
        return bytes.chunks_exact(LINE_BYTES).fold(0, |sum, line| sum.wrapping_add(word(line, 0)));
    }
    let lines = bytes.len() / LINE_BYTES;
    let (mut sum, mut last) = (0_u64, 0);
    for &line in order {
        if (line as usize) < lines {
            // The address depends on the word before, so that the loads cannot overlap.
            last = word(bytes, line as usize * LINE_BYTES + (last & zero) as usize);
            sum = sum.wrapping_add(last);
        }
    }
    sum
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    if let Some(source) = bytes.get(at..at + 8) {
        eight.copy_from_slice(source);
    }
    u64::from_le_bytes(eight)
}

/// Sums all bytes as words.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    let rest: u64 = words.remainder().iter().map(|&byte| u64::from(byte)).sum();
    words.fold(rest, |sum, eight| sum.wrapping_add(word(eight, 0)))
}

/// The lines of a block, shuffled (Fisher and Yates, with a fixed seed).
fn shuffled(lines: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for last in (1..lines).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, ((u128::from(state) * (last as u128 + 1)) >> 64) as usize);
    }
    order
}

fn record(histogram: &mut Option<Histogram<u64>>, ns: f64, len: usize) {
    let lines = len / LINE_BYTES;
    if let Some(histogram) = histogram
        && lines > 0
    {
        // A pass that took no longer than the timer itself counts as nothing.
        histogram.saturating_record((ns * 1e3 / lines as f64) as u64);
    }
}

fn buckets(histogram: &Histogram<u64>) -> Vec<TouchBucket> {
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    for value in histogram.iter_recorded() {
        let ps = value.value_iterated_to().max(1) as f64;
        *counts.entry((ps.log2() * BUCKETS_PER_DOUBLING).floor() as i32 + 1).or_default() +=
            value.count_since_last_iteration();
    }
    counts
        .into_iter()
        .map(|(bucket, blocks)| TouchBucket {
            below_ns_per_line: (f64::from(bucket) / BUCKETS_PER_DOUBLING).exp2() / 1e3,
            blocks,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn toucher(touch: Touch, order: TouchOrder, delay: usize) -> Toucher {
        Toucher::new(touch, order, 4096, delay, Some(FineClock::calibrated()))
    }

    #[test]
    fn every_line_is_touched_once_in_either_order() {
        // Lines carry powers of two in their first word, so that a line left out or touched twice shows in the sum.
        let mut bytes = vec![0; 4096];
        for line in 0..64 {
            bytes[line * 64..line * 64 + 8].copy_from_slice(&(1_u64 << line).to_le_bytes());
        }
        for order in [TouchOrder::Sequential, TouchOrder::Chained] {
            for touch in [Touch::Slot, Touch::Prefetch] {
                let mut toucher = toucher(touch, order, 0);
                assert_eq!(toucher.deliver(&bytes), None);
                toucher.touch(&bytes);
                assert_eq!(toucher.sum(), u64::MAX, "{touch} {order}");
                let report = toucher.report().unwrap();
                assert_eq!((report.touch_lines, report.touch_blocks), (64, 1));
                assert_eq!(report.touch_ns_per_line_p50, None, "one block is no median");
                assert_eq!(report.touch_histogram.iter().map(|b| b.blocks).sum::<u64>(), 1);
            }
            let mut copying = toucher(Touch::Copy, order, 0);
            let number = copying.deliver(&bytes).unwrap();
            copying.touch_copy(number, bytes.len());
            assert_eq!(copying.sum(), u64::MAX);
        }
    }

    #[test]
    fn copies_wait_as_long_as_they_are_asked_to() {
        let mut toucher = toucher(Touch::Copy, TouchOrder::Sequential, 3);
        let numbers: Vec<usize> = (0..4_u8).map(|value| toucher.deliver(&[value; 4096]).unwrap()).collect();
        for (value, &number) in numbers.iter().enumerate() {
            assert!(toucher.copy(number, 4096).iter().all(|&byte| usize::from(byte) == value));
        }
        assert_eq!(toucher.copy(99, 4096), b"");
    }

    #[test]
    fn what_is_not_a_probe_reports_nothing() {
        for touch in [Touch::None, Touch::Sum] {
            let mut toucher = toucher(touch, TouchOrder::Sequential, 0);
            assert_eq!(toucher.deliver(&[1; 4096]), None);
            toucher.touch(&[1; 4096]);
            assert_eq!(toucher.report(), None);
            assert_eq!(toucher.sum() != 0, touch == Touch::Sum);
        }
    }

    #[test]
    fn a_page_of_one_line_or_less_does_no_harm() {
        let mut toucher = toucher(Touch::Slot, TouchOrder::Chained, 0);
        for len in [0, 1, 63, 64, 65] {
            toucher.touch(&vec![1; len]);
        }
        assert_eq!(toucher.report().unwrap().touch_lines, 2);
    }

    proptest! {
        #[test]
        fn a_shuffle_of_lines_is_a_permutation(lines in 0_usize..2000) {
            let mut order = shuffled(lines);
            order.sort_unstable();
            prop_assert_eq!(order, (0..lines as u32).collect::<Vec<_>>());
        }

        #[test]
        fn buckets_hold_every_block(values in prop::collection::vec(0_u64..1_000_000, 0..200)) {
            let mut histogram = Histogram::<u64>::new_with_bounds(1, LONGEST_PS, 3).unwrap();
            values.iter().for_each(|&value| histogram.saturating_record(value));
            let buckets = buckets(&histogram);
            prop_assert_eq!(buckets.iter().map(|b| b.blocks).sum::<u64>(), values.len() as u64);
            prop_assert!(buckets.windows(2).all(|b| b[0].below_ns_per_line < b[1].below_ns_per_line));
        }
    }
}
