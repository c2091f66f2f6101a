//! Reads of single blocks, many in flight: the reader without readahead, for whoever picks the offsets himself.
#![expect(unsafe_code, reason = "borrows pool memory that no read is in flight for")]

use std::io;
use std::path::Path;

use super::PageError;
use super::accounted::Accounted;
use super::backend::{Backend, Completion, ReadRequest};
use super::config::{ReaderConfig, axis};
use super::direct::DirectProof;
use super::layout::POOL_MAX_BYTES;
use super::open::OpenFile;
use super::report::ReaderReport;

/// Block sizes, in bytes: powers of two from the smallest sector to 1 MiB.
pub const BLOCK_BYTES_MIN: u32 = 512;
/// Largest block, in bytes.
pub const BLOCK_BYTES_MAX: u32 = 1 << 20;
/// Most blocks that may be in flight or held at once: the kernel's limit on entries of a submission queue.
pub const SLOTS_MAX: u32 = 32_768;

axis! {
    /// How completions are waited for.
    WaitMode = "wait" {
        /// In the kernel: the thread sleeps in `io_uring_enter`. A plain ring submits and waits in one call.
        Sleep = "sleep",
        /// On the completion queue, in user space: the kernel is entered only where it asks for it. Burns the CPU.
        Spin = "spin",
    }
}

/// One place in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Free,
    /// Queued or in flight.
    Reading(u64),
    /// Read: offset, and how many bytes or the errno.
    Ended(u64, Result<u32, i32>),
}

/// Reads blocks of one file into slots. A slot goes from free to queued to ended, and back to free only by
/// [`BlockReader::release`]: never before its completion has been seen.
pub struct BlockReader {
    backend: Accounted,
    block_bytes: u32,
    slots: Vec<Slot>,
    free: Vec<usize>,
    queued: Vec<ReadRequest>,
    completions: Vec<Completion>,
    report: ReaderReport,
    path: String,
}

impl BlockReader {
    /// Opens `path` for reads of `block_bytes`, of which `slots` may be in flight or held at once. Of `config` only the
    /// backend, direct, the pool and the poller's settings matter.
    ///
    /// # Errors
    /// [`PageError`]: settings out of range, open(2), io_uring_setup(2), direct I/O without a proof.
    pub fn open(
        path: &Path,
        block_bytes: u32,
        slots: u32,
        config: &ReaderConfig,
        proof: Option<&DirectProof>,
    ) -> Result<BlockReader, PageError> {
        check(block_bytes, slots)?;
        let file = OpenFile::open(path, config.direct, proof)?;
        let alignment = file.alignment_bytes();
        let pool_bytes = block_bytes as usize * slots as usize;
        let (backend, report, path) = file.backend(config, pool_bytes, slots as usize)?;
        BlockReader::with_backend(backend, block_bytes, slots, ReaderReport { alignment_bytes: alignment, ..report })
            .map(|reader| BlockReader { path, ..reader })
    }

    /// A reader over any backend, with the modes of `report`. This is how faults are injected.
    ///
    /// # Errors
    /// [`PageError::Config`]: the pool is too small, the block is no multiple of the alignment, or settings are out of
    /// range.
    pub fn with_backend(
        backend: Box<dyn Backend>,
        block_bytes: u32,
        slots: u32,
        report: ReaderReport,
    ) -> Result<BlockReader, PageError> {
        check(block_bytes, slots)?;
        let alignment = report.alignment_bytes.max(1);
        if !block_bytes.is_multiple_of(alignment) {
            return Err(PageError::Config(format!(
                "block {block_bytes}: direct reads of this file need a multiple of {alignment} bytes"
            )));
        }
        let slots = slots as usize;
        if backend.pool().len() < slots * block_bytes as usize {
            let len = backend.pool().len();
            return Err(PageError::Config(format!("a pool of {len} bytes for {slots} blocks of {block_bytes}")));
        }
        if backend.capabilities().in_flight_max < slots {
            let max = backend.capabilities().in_flight_max;
            return Err(PageError::Config(format!("{slots} blocks in flight: this ring holds {max}")));
        }
        Ok(BlockReader {
            backend: Accounted::new(backend, alignment),
            block_bytes,
            slots: vec![Slot::Free; slots],
            free: (0..slots).rev().collect(),
            queued: Vec::with_capacity(slots),
            completions: Vec::with_capacity(slots),
            report,
            path: String::new(),
        })
    }

    /// Queues a read of the block at `offset`, which has to be a multiple of the block size. Answers its slot, or
    /// `None` while no slot is free.
    pub fn queue(&mut self, offset: u64) -> Option<usize> {
        debug_assert!(offset.is_multiple_of(u64::from(self.block_bytes)));
        let slot = self.free.pop()?;
        self.slots[slot] = Slot::Reading(offset);
        self.report.pages_asked += 1;
        self.queued.push(ReadRequest {
            offset,
            len: self.block_bytes,
            slot: slot * self.block_bytes as usize,
            token: slot as u64,
        });
        Some(slot)
    }

    /// Hands everything queued to the kernel as one batch, waits for at least `min` reads (or all in flight, if fewer
    /// are), and appends the slots of all that have ended to `ended`.
    ///
    /// # Errors
    /// The ring cannot be used any more. A read that failed is not an error here: [`BlockReader::block`] tells it.
    pub fn turn(&mut self, min: usize, wait: WaitMode, ended: &mut Vec<usize>) -> Result<(), PageError> {
        let mut completions = std::mem::take(&mut self.completions);
        let result = match wait {
            WaitMode::Sleep if self.queued.is_empty() => self.backend.wait(min, &mut completions),
            WaitMode::Sleep => self.backend.submit_and_wait(&self.queued, min, &mut completions),
            WaitMode::Spin => self.spin(min, &mut completions),
        };
        self.queued.clear();
        for completion in completions.drain(..) {
            let index = completion.token as usize;
            if let Slot::Reading(offset) = self.slots[index] {
                self.slots[index] = Slot::Ended(offset, completion.result);
                ended.push(index);
            }
        }
        self.completions = completions;
        result.map_err(|source| PageError::io("wait for reads of", &self.path, source))
    }

    fn spin(&mut self, min: usize, completions: &mut Vec<Completion>) -> io::Result<()> {
        if !self.queued.is_empty() {
            self.backend.submit(&self.queued)?;
        }
        let min = min.min(self.backend.in_flight());
        loop {
            self.backend.wait(0, completions)?;
            if completions.len() >= min {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    /// The bytes of an ended slot, where they lie in the pool; fewer than a block at the end of the file only.
    ///
    /// # Errors
    /// The kernel's errno; `EAGAIN` for a slot that is not ended.
    pub fn block(&self, slot: usize) -> Result<&[u8], PageError> {
        let errno = match self.slots.get(slot) {
            Some(&Slot::Ended(_, Ok(bytes))) => {
                let start = slot * self.block_bytes as usize;
                // SAFETY: the read into this slot has ended, and `queue`, which needs `&mut self`, is the only way to
                // start another; slots lie in the pool and do not overlap; `bytes` is at most a block (`Accounted`).
                return Ok(unsafe { self.backend.pool().slice(start..start + bytes as usize) });
            }
            Some(&Slot::Ended(offset, Err(errno))) => {
                let what = format!("read {} bytes at {offset} of", self.block_bytes);
                return Err(PageError::io(&what, &self.path, io::Error::from_raw_os_error(errno)));
            }
            Some(Slot::Free | Slot::Reading(_)) | None => libc::EAGAIN,
        };
        Err(PageError::io(&format!("slot {slot} of"), &self.path, io::Error::from_raw_os_error(errno)))
    }

    /// The file's offset that an ended slot was read from.
    pub fn offset(&self, slot: usize) -> Option<u64> {
        match self.slots.get(slot) {
            Some(&Slot::Ended(offset, _)) => Some(offset),
            _ => None,
        }
    }

    /// Gives an ended slot back. Any other is left as it is.
    pub fn release(&mut self, slot: usize) {
        if let Some(state @ Slot::Ended(..)) = self.slots.get_mut(slot) {
            *state = Slot::Free;
            self.free.push(slot);
        }
    }

    /// Reads queued or in flight.
    pub fn under_way(&self) -> usize {
        self.backend.in_flight() + self.queued.len()
    }

    /// Counts so far, and the modes in force.
    pub fn report(&self) -> ReaderReport {
        let mut report = self.report.clone();
        self.backend.report(&mut report);
        report
    }
}

fn check(block_bytes: u32, slots: u32) -> Result<(), PageError> {
    if !block_bytes.is_power_of_two() || !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes) {
        return Err(PageError::Config(format!(
            "block {block_bytes}: it is a power of two from {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes"
        )));
    }
    if slots == 0 || slots > SLOTS_MAX {
        return Err(PageError::Config(format!("{slots} blocks at once: it is 1 to {SLOTS_MAX}")));
    }
    if u64::from(block_bytes) * u64::from(slots) > POOL_MAX_BYTES {
        return Err(PageError::Config(format!(
            "{slots} blocks of {block_bytes} bytes at once need more than {} MiB; choose a smaller --depth or --block",
            POOL_MAX_BYTES >> 20
        )));
    }
    Ok(())
}
