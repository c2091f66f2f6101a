//! Reads at random offsets, so many in flight.
//!
//! One loop for every backend: refill, hand over and wait, see what came, think. Reads that ended together are replaced
//! together, in one batch: a plain ring is entered once for it, to submit and to wait; a poller sees the tail once, and
//! the kernel is entered to wait alone, or not at all where the thread spins. Every backend so does the same work between
//! two looks at the completion queue.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::ScanError;
use super::offsets::Offsets;
use super::part::Part;
use super::spec::{Refill, ScanAxes};
use crate::page::BlockReader;

/// Slots that a thread needs for `depth` reads in flight and the blocks that wait to be touched.
pub fn slots(axes: &ScanAxes, depth: u32) -> u32 {
    depth + axes.delay_pages
}

/// A block that was delivered and is not touched yet.
struct Held {
    slot: usize,
    copy: Option<usize>,
}

/// One thread's reads.
pub struct Random<'a> {
    axes: &'a ScanAxes,
    offsets: Offsets,
    depth: usize,
    reader: &'a mut BlockReader,
    part: &'a mut Part,
    /// Number of the read in each slot, and when it was handed over.
    reads: Vec<(u64, Instant)>,
    held: VecDeque<Held>,
    ended: Vec<usize>,
}

impl<'a> Random<'a> {
    /// `depth` reads in flight on `reader`, which has [`slots`] for them.
    pub fn new(
        axes: &'a ScanAxes,
        offsets: Offsets,
        depth: u32,
        reader: &'a mut BlockReader,
        part: &'a mut Part,
    ) -> Random<'a> {
        let count = slots(axes, depth) as usize;
        Random {
            axes,
            offsets,
            depth: depth as usize,
            reader,
            part,
            reads: vec![(0, Instant::now()); count],
            held: VecDeque::with_capacity(axes.delay_pages as usize + 1),
            ended: Vec::with_capacity(count),
        }
    }

    /// Makes the reads with the numbers `indices`.
    ///
    /// # Errors
    /// [`ScanError`]: a read failed or came short; the ring cannot be used.
    pub fn run(&mut self, indices: Range<u64>) -> Result<(), ScanError> {
        let burst = if self.axes.burst == 0 { u64::MAX } else { self.axes.burst };
        let think = Duration::from_nanos(self.axes.think_ns);
        let mut next = indices.start;
        let mut first_of_burst = false;
        while next < indices.end {
            let end = indices.end.min(next.saturating_add(burst));
            while next < end || self.reader.under_way() > 0 {
                next = self.refill(next, end);
                self.turn(std::mem::take(&mut first_of_burst))?;
                self.part.think(think);
            }
            if next < indices.end {
                self.part.pause(Duration::from_nanos(self.axes.pause_ns));
                first_of_burst = true;
            }
        }
        while let Some(held) = self.held.pop_front() {
            self.finish(held)?;
        }
        Ok(())
    }

    /// Queues reads until `depth` are under way; answers the number of the next.
    fn refill(&mut self, mut next: u64, end: u64) -> u64 {
        if self.axes.refill == Refill::All && self.reader.under_way() > 0 {
            return next;
        }
        let now = Instant::now();
        while next < end && self.reader.under_way() < self.depth {
            let offset = self.offsets.block(next) * u64::from(self.axes.block_bytes);
            let Some(slot) = self.reader.queue(offset) else { break };
            self.reads[slot] = (next, now);
            next += 1;
        }
        next
    }

    /// Hands over what is queued, waits, and sees what has ended.
    fn turn(&mut self, after_pause: bool) -> Result<(), ScanError> {
        let min = if self.axes.refill == Refill::All { self.reader.under_way() } else { 1 };
        self.reader.turn(min, self.axes.wait, &mut self.ended)?;
        self.part.turns += 1;
        let now = Instant::now();
        let mut ended = std::mem::take(&mut self.ended);
        for slot in ended.drain(..) {
            let latency = now.duration_since(self.reads[slot].1);
            self.part.latencies.record(latency);
            if after_pause {
                self.part.after_pause.record(latency);
            }
            let bytes = self.reader.block(slot)?;
            if bytes.len() != self.axes.block_bytes as usize {
                return Err(ScanError::Short {
                    offset: self.reader.offset(slot).unwrap_or_default(),
                    expected: self.axes.block_bytes,
                    got: bytes.len(),
                });
            }
            self.part.ops += 1;
            self.part.bytes += bytes.len() as u64;
            let copy = self.part.toucher.deliver(bytes);
            self.held.push_back(Held { slot, copy });
            if self.held.len() > self.axes.delay_pages as usize
                && let Some(oldest) = self.held.pop_front()
            {
                self.finish(oldest)?;
            }
        }
        self.ended = ended;
        Ok(())
    }

    /// Touches a block that has waited long enough, and gives its slot back.
    fn finish(&mut self, held: Held) -> Result<(), ScanError> {
        let bytes = self.reader.block(held.slot)?;
        let offset = self.reader.offset(held.slot).unwrap_or_default();
        let index = self.reads[held.slot].0;
        match held.copy {
            Some(number) => {
                self.part.toucher.touch_copy(number, bytes.len());
                self.part.sampler.see(index, offset, self.part.toucher.copy(number, bytes.len()));
            }
            None => {
                self.part.toucher.touch(bytes);
                self.part.sampler.see(index, offset, bytes);
            }
        }
        self.reader.release(held.slot);
        Ok(())
    }
}
