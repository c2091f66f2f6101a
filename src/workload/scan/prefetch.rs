//! Software prefetch of a page's lines.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "issues prefetch instructions"))]

/// Bytes of a cache line on x86-64 and most arm64.
pub const LINE_BYTES: usize = 64;

/// Whether this build has prefetch instructions to issue.
pub const SUPPORTED: bool = cfg!(target_arch = "x86_64");

/// Asks for every line of `bytes` into all levels of the cache (PREFETCHT0).
#[cfg(target_arch = "x86_64")]
pub fn prefetch(bytes: &[u8]) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for line in bytes.chunks(LINE_BYTES) {
        // SAFETY: a prefetch reads nothing and never faults, and the address lies in `bytes`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
}

/// Does nothing: [`SUPPORTED`] is false here, and whoever asks for prefetches is refused.
#[cfg(not(target_arch = "x86_64"))]
pub fn prefetch(_bytes: &[u8]) {}
