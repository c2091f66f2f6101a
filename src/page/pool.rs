//! The aligned memory that the kernel reads into.
#![expect(unsafe_code, reason = "maps memory and lends it to the kernel")]

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

use super::config::PoolKind;

/// Size of a transparent huge page on x86-64 and arm64 with 4 KiB base pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// One private anonymous mapping, zeroed and populated, aligned to a huge page.
///
/// Whoever submits reads into it must not drop it before their completions have been seen.
#[derive(Debug)]
pub struct Pool {
    mapping: NonNull<libc::c_void>,
    mapping_len: usize,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for Pool {}

impl Pool {
    /// Maps `len` bytes. With [`PoolKind::Huge`] the kernel is asked for huge pages; whether it gave any is
    /// answered by [`Pool::huge_bytes`].
    ///
    /// # Errors
    /// `ENOMEM` of mmap(2), and `InvalidInput` for an empty or absurd length.
    pub fn new(len: usize, kind: PoolKind) -> io::Result<Pool> {
        let rounded = len.checked_next_multiple_of(HUGE_PAGE_BYTES).filter(|&n| n > 0);
        let mapping_len = rounded.and_then(|n| n.checked_add(HUGE_PAGE_BYTES)).and_then(NonZeroUsize::new);
        let (Some(rounded), Some(mapping_len)) = (rounded, mapping_len) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("a pool of {len} bytes")));
        };
        // SAFETY: a new anonymous mapping aliases nothing.
        let mapping = unsafe {
            mmap_anonymous(None, mapping_len, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE)?
        };
        let slack = mapping.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: the mapping is one huge page longer than `rounded`, so the aligned start and `rounded` bytes
        // behind it lie inside.
        let base = unsafe { mapping.cast::<u8>().add(slack) };
        let pool = Pool { mapping, mapping_len: mapping_len.get(), base, len: rounded };
        let advice = match kind {
            PoolKind::Normal => MmapAdvise::MADV_NOHUGEPAGE,
            PoolKind::Huge => MmapAdvise::MADV_HUGEPAGE,
        };
        // SAFETY: the range is inside our own mapping. A kernel without THP refuses the advice with EINVAL,
        // which leaves base pages: `huge_bytes` reports it.
        let _ = unsafe { madvise(base.cast(), rounded, advice) };
        // SAFETY: as above; writing zeros populates the pages before anything is timed.
        unsafe { base.as_ptr().write_bytes(0, rounded) };
        Ok(pool)
    }

    /// Bytes that may be read into, a multiple of the huge page size.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the pool holds no bytes; never true.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `len` bytes at `start` lie inside the pool.
    pub fn contains(&self, start: usize, len: usize) -> bool {
        start.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// Address of the byte at `start`, for an SQE.
    ///
    /// # Panics
    /// Never: an offset outside the pool yields its base, and `contains` is checked by every submitter.
    pub(super) fn address(&self, start: usize) -> *mut u8 {
        debug_assert!(start < self.len);
        self.base.as_ptr().wrapping_add(start)
    }

    /// The bytes of `range`.
    ///
    /// # Safety
    /// No read into any byte of `range` may be in flight while the slice lives, and `range` lies inside the pool.
    pub(super) unsafe fn slice(&self, range: Range<usize>) -> &[u8] {
        debug_assert!(self.contains(range.start, range.len()));
        // SAFETY: in bounds and without a concurrent writer by the caller's promise; initialised by `new`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(range.start), range.len()) }
    }

    /// The bytes of `range`, for a synchronous backend that fills them itself.
    ///
    /// # Safety
    /// As for [`Pool::slice`]; besides, no other slice of the range may live.
    pub(super) unsafe fn slice_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        debug_assert!(self.contains(range.start, range.len()));
        // SAFETY: as for `slice`, and `&mut self` excludes other slices.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(range.start), range.len()) }
    }

    /// Bytes of the pool that huge pages back, as /proc/self/smaps says (`AnonHugePages`); 0 where it cannot be read.
    pub fn huge_bytes(&self) -> u64 {
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        huge_bytes_in(&smaps, self.base.as_ptr() as u64, self.len as u64)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; by the type's contract nothing reads into it any more.
        let _ = unsafe { munmap(self.mapping, self.mapping_len) };
    }
}

/// Sums `AnonHugePages` over the mappings of `smaps` that overlap `start..start + len`.
fn huge_bytes_in(smaps: &str, start: u64, len: u64) -> u64 {
    let mut inside = false;
    let mut total_kib = 0;
    for line in smaps.lines() {
        if let Some((from, to)) = mapping_header(line) {
            inside = from < start + len && start < to;
        } else if inside && let Some(rest) = line.strip_prefix("AnonHugePages:") {
            total_kib += rest.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0);
        }
    }
    // The kernel may merge the pool with a neighbouring mapping; huge pages outside are not ours.
    (total_kib * 1024).min(len)
}

/// Parses `7f00-7f10 rw-p ...`, the first line of a mapping in smaps.
fn mapping_header(line: &str) -> Option<(u64, u64)> {
    let (from, to) = line.split_whitespace().next()?.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn smaps_are_summed_over_the_pools_mappings_only() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0 \nSize: 8 kB\nAnonHugePages:      2048 kB\n\
                     200000-600000 rw-p 00000000 00:00 0 \nAnonHugePages:      2048 kB\n\
                     600000-700000 rw-p 00000000 00:00 0 \nAnonHugePages:       512 kB\n";
        assert_eq!(huge_bytes_in(smaps, 0x20_0000, 4 << 20), 2 << 20);
        assert_eq!(huge_bytes_in("", 0x20_0000, 4 << 20), 0);
        assert_eq!(huge_bytes_in("nonsense\nAnonHugePages: x kB\n", 0, 1 << 30), 0);
    }

    #[test]
    fn a_pool_is_aligned_zeroed_and_bounded() {
        let mut pool = Pool::new(1, PoolKind::Normal).unwrap();
        assert_eq!(pool.len(), HUGE_PAGE_BYTES);
        assert_eq!(pool.address(0) as usize % HUGE_PAGE_BYTES, 0);
        assert!(pool.contains(0, pool.len()) && !pool.contains(1, pool.len()) && !pool.contains(usize::MAX, 2));
        // SAFETY: nothing is in flight.
        let bytes = unsafe { pool.slice_mut(4096..8192) };
        assert!(bytes.iter().all(|&b| b == 0));
        assert!(Pool::new(0, PoolKind::Normal).is_err() && Pool::new(usize::MAX, PoolKind::Huge).is_err());
    }
}
