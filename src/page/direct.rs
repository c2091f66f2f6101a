//! Proof that a file's reads bypass the page cache.
//!
//! open(2) with `O_DIRECT` proves nothing: tmpfs takes the flag and buffers, btrfs falls back for checksummed files.
//! What proves it is a transfer of pages that are not resident, and that are still not resident afterwards.
#![expect(unsafe_code, reason = "reads into aligned pool memory")]

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::PageError;
use super::config::PoolKind;
use super::descriptor::FileId;
use super::pool::Pool;
use crate::measure::sys;

/// Alignment assumed where neither kernel nor file system reports one: that of 4 KiB sectors, which suits all others.
const ASSUMED_ALIGNMENT_BYTES: u32 = 4096;
/// Bytes of one test read; a whole number of base pages, so that residency can tell.
const TEST_BYTES: u64 = 4096;
/// Places in the file that are tried until one is not resident.
const PLACES: u64 = 16;

/// Evidence, obtained by a transfer, that `O_DIRECT` reads of one file bypass the page cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectProof {
    /// Device and inode of the file.
    pub file: FileId,
    /// Alignment that offset and length need, in bytes.
    pub offset_alignment_bytes: u32,
    /// Alignment that the memory needs, in bytes.
    pub memory_alignment_bytes: u32,
    /// How it was proven, in words.
    pub how: String,
}

/// Proves direct I/O on `path`, before a run is measured. Sends the file away from the page cache on the way.
///
/// Opens and closes the file, which drops POSIX locks: no connection of this process may have it open.
///
/// # Errors
/// [`PageError::Direct`] says why direct I/O cannot be had or cannot be proven, and what to do.
pub fn prove(path: &Path) -> Result<DirectProof, PageError> {
    let context = |what: &'static str| move |source: io::Error| PageError::io(what, path, source);
    let refuse = |what: String| PageError::Direct { path: path.display().to_string(), what };
    let reported = sys::direct_alignment(path).map_err(context("statx"))?;
    if reported.is_some_and(|alignment| alignment.offset_bytes == 0) {
        return Err(refuse(
            "the file system reports that this file has none (statx, STATX_DIOALIGN); \
             put the file on ext4 or XFS, or run with `--direct disabled`"
                .to_owned(),
        ));
    }
    let (offset_alignment_bytes, memory_alignment_bytes) =
        reported.map_or((ASSUMED_ALIGNMENT_BYTES, ASSUMED_ALIGNMENT_BYTES), |a| (a.offset_bytes, a.memory_bytes));
    let buffered = File::open(path).map_err(context("open"))?;
    let mut options = File::options();
    let direct =
        options.read(true).custom_flags(libc::O_DIRECT).open(path).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => refuse(
                "the file system refuses O_DIRECT; put the file on ext4 or XFS, or run with `--direct disabled`"
                    .to_owned(),
            ),
            _ => context("open")(error),
        })?;
    let metadata = buffered.metadata().map_err(context("stat"))?;
    // Dirty pages would stay resident.
    buffered.sync_data().map_err(context("sync"))?;
    posix_fadvise(&buffered, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .map_err(|errno| context("send away the pages of")(errno.into()))?;
    let length = TEST_BYTES.max(u64::from(offset_alignment_bytes));
    let mut pool = Pool::new(length as usize, PoolKind::Normal).map_err(context("map memory for"))?;
    let last = metadata.len().saturating_sub(1) / length;
    for place in 0..PLACES {
        let offset = last * place / (PLACES - 1) * length;
        let resident = || {
            resident_at(&buffered, offset, length).map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => refuse(
                    "it cannot be proven: the kernel shows what the page cache holds of a file only to its owner and to who \
                     may write to it (cachestat); run as one of these or as root, use a copy of your own, or run with \
                     `--direct disabled`"
                        .to_owned(),
                ),
                _ => context("read the residency of")(error),
            })
        };
        if resident()? > 0 {
            continue;
        }
        // SAFETY: nothing is in flight, and this is the only borrow.
        let buffer = unsafe { pool.slice_mut(0..length as usize) };
        let bytes = direct.read_at(buffer, offset).map_err(|error| {
            refuse(format!(
                "a direct read of {length} bytes at {offset} failed ({error}); run with `--direct disabled`"
            ))
        })?;
        if bytes == 0 {
            continue;
        }
        let cached = resident()?;
        if cached > 0 {
            return Err(refuse(format!(
                "a read through O_DIRECT left {cached} page(s) in the page cache, so the file system buffers it; \
                 put the file on ext4 or XFS, or run with `--direct disabled`"
            )));
        }
        let source = if reported.is_some() { "reported by statx" } else { "assumed, statx reports none" };
        return Ok(DirectProof {
            file: (metadata.dev(), metadata.ino()),
            offset_alignment_bytes,
            memory_alignment_bytes,
            how: format!(
                "{bytes} bytes read through O_DIRECT at offset {offset} were not resident before nor after; \
                 alignment {offset_alignment_bytes} bytes, {source}"
            ),
        });
    }
    Err(refuse(
        "it cannot be proven: the file's pages stay in the page cache (a file system in memory such as tmpfs, or a \
         process that has the file mapped); put the file on a disk, or run with `--direct disabled`"
            .to_owned(),
    ))
}

/// Resident pages among `length` bytes at `offset`. Before Linux 6.5, where cachestat(2) is missing, mincore(2) looks
/// from the start of the file to there.
fn resident_at(file: &File, offset: u64, length: u64) -> io::Result<u64> {
    match sys::cachestat_range(file, offset, length) {
        Ok(stat) => Ok(stat.cached),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            sys::mincore(file, offset + length, crate::measure::residency::page_bytes())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    #[test]
    fn tmpfs_takes_the_flag_and_is_refused() {
        let Ok(mut file) = tempfile::NamedTempFile::new_in("/dev/shm") else {
            crate::skipped!("tmpfs_takes_the_flag_and_is_refused: no /dev/shm");
            return;
        };
        file.write_all(&[1; 1 << 20]).unwrap();
        let error = prove(file.path()).unwrap_err();
        assert!(matches!(error, PageError::Direct { .. }), "{error}");
        assert!(error.to_string().contains("--direct disabled"), "{error}");
    }

    #[test]
    fn a_disk_file_is_proven_though_it_was_just_written() {
        let mut file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.write_all(&[1; (1 << 20) + 100]).unwrap();
        match prove(file.path()) {
            Ok(proof) => assert!(proof.offset_alignment_bytes.is_power_of_two() && !proof.how.is_empty()),
            // Where the working folder is on a file system without direct I/O, the error says so.
            Err(error) => assert!(matches!(error, PageError::Direct { .. }), "{error}"),
        }
    }

    #[test]
    fn an_empty_file_and_a_missing_one_are_errors() {
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        assert!(matches!(prove(file.path()), Err(PageError::Direct { .. })));
        assert!(matches!(prove(Path::new("/nonexistent")), Err(PageError::Io { .. })));
    }
}
