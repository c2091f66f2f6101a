//! The system calls for which no safe wrapper exists: cachestat, mincore, statx's direct-I/O alignment,
//! FIEMAP, the filter of a tracepoint counter and the CPU's hypervisor leaf.

#![expect(unsafe_code, reason = "raw system calls without a safe wrapper in std or nix")]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use perf_event::Counter;
use perf_event::hooks::sys::ioctls;

/// Number of cachestat(2), which has the same number on every architecture that Rust's standard library knows.
const SYS_CACHESTAT: libc::c_long = 451;

/// Bytes that one mincore(2) call covers: bounds the mapping and the vector of results.
const MINCORE_CHUNK_BYTES: u64 = 1 << 30;

/// A counter's raw reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Events counted while the counter was on its unit.
    pub count: u64,
    /// Time for which it was enabled, in nanoseconds.
    pub enabled_ns: u64,
    /// Time for which it was on its unit, in nanoseconds.
    pub running_ns: u64,
}

/// Reads a counter. `Counter::read_count_and_time` panics where the kernel reports running > enabled; this does not.
pub(crate) fn read_counter(counter: &Counter) -> io::Result<Reading> {
    // SAFETY: `counter` owns its descriptor and is borrowed for longer than this borrow of the descriptor.
    let descriptor = unsafe { BorrowedFd::borrow_raw(counter.as_raw_fd()) };
    let mut bytes = [0_u8; 24];
    let length = nix::unistd::read(descriptor, &mut bytes)?;
    if length != bytes.len() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("the counter gave {length} bytes of 24")));
    }
    let word = |index: usize| {
        let mut word = [0_u8; 8];
        word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
        u64::from_ne_bytes(word)
    };
    Ok(Reading { count: word(0), enabled_ns: word(1), running_ns: word(2) })
}

/// Sets the kernel's filter expression of a tracepoint counter.
pub(crate) fn set_filter(counter: &Counter, filter: &CStr) -> io::Result<()> {
    // SAFETY: the descriptor is a live perf event, and the kernel only reads the NUL-terminated string, which
    // outlives the call; the pointer is `*mut` in the binding alone.
    let result = unsafe { ioctls::SET_FILTER(counter.as_raw_fd(), filter.as_ptr().cast_mut()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What cachestat(2) says of a file, in pages of the system's page size.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CacheStat {
    /// Pages in the page cache.
    pub cached: u64,
    /// Of these, dirty.
    pub dirty: u64,
    /// Of these, under writeback.
    pub writeback: u64,
    /// Pages that have been evicted.
    pub evicted: u64,
    /// Pages that have been evicted recently.
    pub recently_evicted: u64,
}

/// cachestat(2) over the whole file (Linux 6.5 and newer; ENOSYS before; EPERM on a file of somebody else).
pub(crate) fn cachestat(file: &File) -> io::Result<CacheStat> {
    cachestat_range(file, 0, 0)
}

/// cachestat(2) over `length` bytes from `offset` on; a length of 0 reaches to the end.
pub(crate) fn cachestat_range(file: &File, offset: u64, length: u64) -> io::Result<CacheStat> {
    /// `struct cachestat_range`.
    #[repr(C)]
    struct Range {
        offset: u64,
        length: u64,
    }
    let range = Range { offset, length };
    let mut stat = CacheStat::default();
    // SAFETY: both pointers are to live `#[repr(C)]` values laid out as the kernel's structures, the second is
    // writable, and the kernel keeps neither.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), ptr::from_ref(&range), ptr::from_mut(&mut stat), 0_u32)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(stat) }
}

/// Counts resident pages of the first `length_bytes` of a file by mincore(2). The kernel reports every page as
/// resident for a file that the caller neither owns nor may write.
pub(crate) fn mincore(file: &File, length_bytes: u64, page_bytes: u64) -> io::Result<u64> {
    let mut resident = 0;
    let mut offset = 0;
    while offset < length_bytes {
        let chunk = MINCORE_CHUNK_BYTES.min(length_bytes - offset);
        resident += mincore_chunk(file, offset, chunk, page_bytes)?;
        offset += chunk;
    }
    Ok(resident)
}

fn mincore_chunk(file: &File, offset: u64, chunk_bytes: u64, page_bytes: u64) -> io::Result<u64> {
    let length = usize::try_from(chunk_bytes).map_err(io::Error::other)?;
    let start = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    let mut pages = vec![0_u8; usize::try_from(chunk_bytes.div_ceil(page_bytes)).map_err(io::Error::other)?];
    // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing; it is never dereferenced.
    let address =
        unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), start) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `address..address + length` is the mapping made above, and `pages` has one byte for each of its pages.
    let result = unsafe { libc::mincore(address, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping made above, to which no reference was ever formed.
    unsafe { libc::munmap(address, length) };
    if result < 0 {
        return Err(error);
    }
    Ok(pages.iter().filter(|&&page| page & 1 == 1).count() as u64)
}

/// Alignment that direct I/O needs, in bytes; zero means that the file does not support it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectAlignment {
    /// Alignment of the memory.
    pub memory_bytes: u32,
    /// Alignment of offset and length.
    pub offset_bytes: u32,
}

/// statx(2) with STATX_DIOALIGN (Linux 6.1 and newer); `None` where kernel or file system does not report it.
pub(crate) fn direct_alignment(path: &Path) -> io::Result<Option<DirectAlignment>> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)?;
    // SAFETY: `statx` is a plain structure of integers, for which all zeroes is a value.
    let mut stat: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated and `stat` is a live structure that the kernel fills.
    let result = unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, libc::STATX_DIOALIGN, &raw mut stat) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((stat.stx_mask & libc::STATX_DIOALIGN != 0)
        .then_some(DirectAlignment { memory_bytes: stat.stx_dio_mem_align, offset_bytes: stat.stx_dio_offset_align }))
}

/// Number of extents of a file (FS_IOC_FIEMAP with room for none: the kernel then only counts).
pub(crate) fn extents(file: &File) -> io::Result<u32> {
    /// `struct fiemap` without its trailing array.
    #[repr(C)]
    struct Fiemap {
        start: u64,
        length: u64,
        flags: u32,
        mapped_extents: u32,
        extent_count: u32,
        reserved: u32,
    }
    /// `_IOWR('f', 11, struct fiemap)`.
    const FS_IOC_FIEMAP: u32 = 0xC020_660B;
    let mut map = Fiemap { start: 0, length: u64::MAX, flags: 0, mapped_extents: 0, extent_count: 0, reserved: 0 };
    // SAFETY: `map` is laid out as the kernel's `struct fiemap`, and with `extent_count` 0 the kernel writes
    // nothing beyond it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(map.mapped_extents) }
}

/// The signature of CPUID leaf 0x4000_0000, such as `KVMKVMKVM`; `None` where there is no hypervisor or no CPUID.
#[cfg(target_arch = "x86_64")]
pub(crate) fn hypervisor_signature() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    /// Bit 31 of ECX of leaf 1: a hypervisor is present.
    const HYPERVISOR_PRESENT: u32 = 1 << 31;
    #[allow(unused_unsafe, reason = "newer toolchains make the intrinsic safe")]
    // SAFETY: every x86-64 CPU has CPUID.
    let (features, leaf) = unsafe { (__cpuid(1), __cpuid(0x4000_0000)) };
    if features.ecx & HYPERVISOR_PRESENT == 0 {
        return None;
    }
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
    let text: String = bytes.iter().filter(|byte| byte.is_ascii_graphic()).map(|&byte| char::from(byte)).collect();
    (!text.is_empty()).then_some(text)
}

/// There is no CPUID on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn hypervisor_signature() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    #[test]
    fn mincore_and_cachestat_agree_on_a_file_just_written() {
        let mut file = tempfile::tempfile_in(".").unwrap();
        file.write_all(&vec![7_u8; 10 * 4096 + 5]).unwrap();
        let length = file.metadata().unwrap().len();
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).unwrap().unwrap() as u64;
        assert_eq!(mincore(&file, length, page).unwrap(), length.div_ceil(page));
        match cachestat(&file) {
            Ok(stat) => assert_eq!(stat.cached, length.div_ceil(page)),
            Err(error) => crate::skipped!("cachestat half: {error}"),
        }
    }

    #[test]
    fn an_empty_file_has_no_resident_pages() {
        let file = tempfile::tempfile_in(".").unwrap();
        assert_eq!(mincore(&file, 0, 4096).unwrap(), 0);
    }

    #[test]
    fn a_missing_file_has_no_alignment() {
        assert!(direct_alignment(Path::new("/nonexistent/file")).is_err());
    }
}
