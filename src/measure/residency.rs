//! Residency of a file in the page cache: reading it, and making a file cold or warm with proof.
//!
//! Everything here opens the file, and closing *any* descriptor of a file drops all of the process's POSIX locks on
//! it (fcntl(2)), an engine's among them. So call these only before an engine opens the file and after it has closed it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::unistd::{AccessFlags, SysconfVar, access, sysconf};

use super::{mount, sys};

/// How often the file is sent away before giving up.
const ATTEMPTS_MAX: u32 = 6;

/// Pause before a second attempt; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Bytes that one `read` asks for while the page cache is filled.
const FILL_BYTES: usize = 1 << 20;

/// How many of a file's pages are in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residency {
    /// Pages that are resident, of the system's page size.
    pub resident: u64,
    /// Pages that the file has.
    pub total: u64,
}

/// Proof of a state of the page cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The residency that was seen last.
    pub residency: Residency,
    /// How it was seen: `cachestat` or `mincore`.
    pub method: &'static str,
    /// How often the file was sent away, or read, until it was as wanted.
    pub attempts: u32,
}

/// Why residency could not be read, or a state of the page cache not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ResidencyError {
    /// A system call failed.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel tells residency only to those who own the file or may write it.
    #[error(
        "the page cache of {path} cannot be seen: the kernel tells it only to the file's owner and to those who may \
         write the file; run as its owner, or copy the file"
    )]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// Pages stayed in the page cache.
    #[error(
        "{path} is not cold: {resident} of {total} pages stayed in the page cache after {attempts} attempts; {why}"
    )]
    StaysResident {
        /// The file.
        path: PathBuf,
        /// Pages that stayed.
        resident: u64,
        /// Pages that the file has.
        total: u64,
        /// How often it was sent away.
        attempts: u32,
        /// Why that may be, and what to do.
        why: String,
    },
    /// Not every page came into the page cache.
    #[error(
        "{path} is not warm: {resident} of {total} pages are in the page cache after it was read {attempts} times; \
         {available_mib} MiB of memory are available for {file_mib} MiB of file: free memory, or use a smaller data set"
    )]
    NotResident {
        /// The file.
        path: PathBuf,
        /// Pages that are resident.
        resident: u64,
        /// Pages that the file has.
        total: u64,
        /// How often it was read.
        attempts: u32,
        /// Memory that the kernel calls available, in MiB.
        available_mib: u64,
        /// The file's size, in MiB.
        file_mib: u64,
    },
}

/// Counts the file's pages in the page cache: cachestat(2), or mincore(2) on kernels before 6.5.
///
/// Opens and closes the file: see the module's warning on POSIX locks.
pub fn resident_pages(path: &Path) -> Result<Residency, ResidencyError> {
    let file = open(path)?;
    look(&file, path).map(|(residency, _)| residency)
}

/// Makes a file cold: writes its dirty pages back, fills the page cache with the whole file, sends it away by
/// POSIX_FADV_DONTNEED, and proves that no page is left. Filling comes first so that every arm of a comparison finds
/// memory in the same state. Direct reads get it too, though they bypass the page cache: what lies beneath a virtual disk
/// may have one, and arms that differ in what was read just before do not compare. Needs no privilege on a file of one's own, and touches no other file's pages.
///
/// Opens and closes the file: see the module's warning on POSIX locks.
pub fn make_cold(path: &Path) -> Result<Proof, ResidencyError> {
    let file = open(path)?;
    look(&file, path)?;
    file.sync_all().map_err(io_error("sync", path))?;
    fill(&file, path)?;
    let mut pause = FIRST_PAUSE;
    let mut attempts = 0;
    loop {
        attempts += 1;
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
            .map_err(|errno| io_error("send away the pages of", path)(errno.into()))?;
        let (residency, method) = look(&file, path)?;
        if residency.resident == 0 {
            return Ok(Proof { residency, method, attempts });
        }
        if attempts == ATTEMPTS_MAX {
            let Residency { resident, total } = residency;
            let why = why_resident(&file, path);
            return Err(ResidencyError::StaysResident { path: path.to_owned(), resident, total, attempts, why });
        }
        std::thread::sleep(pause);
        pause *= 2;
        file.sync_all().map_err(io_error("sync", path))?;
    }
}

/// Makes a file warm: reads it whole, and proves that every page is resident.
///
/// Opens and closes the file: see the module's warning on POSIX locks.
pub fn make_warm(path: &Path) -> Result<Proof, ResidencyError> {
    /// A second reading brings back what was evicted by accident; a third would not help a file that does not fit.
    const READINGS_MAX: u32 = 2;
    let file = open(path)?;
    let mut attempts = 0;
    loop {
        attempts += 1;
        fill(&file, path)?;
        let (residency, method) = look(&file, path)?;
        let Residency { resident, total } = residency;
        if resident >= total {
            return Ok(Proof { residency, method, attempts });
        }
        if attempts == READINGS_MAX {
            return Err(ResidencyError::NotResident {
                path: path.to_owned(),
                resident,
                total,
                attempts,
                available_mib: super::environment::memory_kib("MemAvailable").unwrap_or(0) >> 10,
                file_mib: length(&file, path)? >> 20,
            });
        }
    }
}

fn open(path: &Path) -> Result<File, ResidencyError> {
    let file = File::open(path).map_err(io_error("open", path))?;
    let kind = file.metadata().map_err(io_error("stat", path))?.file_type();
    if kind.is_file() {
        Ok(file)
    } else {
        Err(io_error("read the page cache of", path)(io::Error::other("it is not a regular file")))
    }
}

fn length(file: &File, path: &Path) -> Result<u64, ResidencyError> {
    file.metadata().map(|metadata| metadata.len()).map_err(io_error("stat", path))
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ResidencyError {
    let path = path.to_owned();
    move |source| ResidencyError::Io { doing, path, source }
}

/// Reads the whole file through the page cache.
fn fill(file: &File, path: &Path) -> Result<(), ResidencyError> {
    use std::os::unix::fs::FileExt;
    let mut buffer = vec![0_u8; FILL_BYTES];
    let mut offset = 0;
    loop {
        match file.read_at(&mut buffer, offset) {
            Ok(0) => return Ok(()),
            Ok(length) => offset += length as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(io_error("read", path)(error)),
        }
    }
}

fn look(file: &File, path: &Path) -> Result<(Residency, &'static str), ResidencyError> {
    let length = length(file, path)?;
    let page_bytes = page_bytes();
    let total = length.div_ceil(page_bytes);
    match sys::cachestat(file) {
        Ok(stat) => return Ok((Residency { resident: stat.cached, total }, "cachestat")),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) && !is_ours(file, path) => {
            return Err(ResidencyError::NotOurs { path: path.to_owned() });
        }
        // ENOSYS before Linux 6.5, EPERM from a container's seccomp filter, EOPNOTSUPP on hugetlbfs: mincore is older.
        Err(_) => {}
    }
    // mincore calls every page of somebody else's file resident: that would be no measurement.
    if !is_ours(file, path) {
        return Err(ResidencyError::NotOurs { path: path.to_owned() });
    }
    let resident = sys::mincore(file, length, page_bytes).map_err(io_error("read the residency of", path))?;
    Ok((Residency { resident, total }, "mincore"))
}

/// Whether the kernel tells us the truth about this file's residency (`can_do_mincore` in mm/mincore.c).
fn is_ours(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let euid = nix::unistd::geteuid();
    euid.is_root()
        || file.metadata().is_ok_and(|metadata| metadata.uid() == euid.as_raw())
        || access(path, AccessFlags::W_OK).is_ok()
}

/// The system's page size, in bytes.
pub fn page_bytes() -> u64 {
    sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(4096)
}

/// Why pages may have stayed, as far as it can be seen, and what to do.
fn why_resident(file: &File, path: &Path) -> String {
    let fs_type = mount::of_file(path).map(|mount| mount.fs_type).unwrap_or_default();
    if matches!(fs_type.as_str(), "tmpfs" | "ramfs" | "hugetlbfs") {
        return format!("{fs_type} keeps its files in memory and nowhere else: put the file on a disk");
    }
    if let Ok(stat) = sys::cachestat(file)
        && stat.dirty + stat.writeback > 0
    {
        return format!(
            "{} of them are dirty or being written back, so somebody writes the file: stop the writer",
            stat.dirty + stat.writeback
        );
    }
    let users = mapped_by(path);
    if users.is_empty() {
        "another process may have the file mapped or locked in memory: find it with `fuser -v` and stop it".to_owned()
    } else {
        format!("mapped by {}: stop it", users.join(", "))
    }
}

/// Processes that have the file mapped, as `name (pid)`, among those that we may look at.
fn mapped_by(path: &Path) -> Vec<String> {
    let Ok(path) = std::fs::canonicalize(path) else { return Vec::new() };
    let Some(wanted) = path.to_str() else { return Vec::new() };
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut found = Vec::new();
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let mut maps = Vec::new();
        let read = File::open(process.path().join("maps")).and_then(|mut file| file.read_to_end(&mut maps));
        if read.is_ok() && String::from_utf8_lossy(&maps).lines().any(|line| line.ends_with(wanted)) {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(format!("{} ({pid})", name.trim()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    /// A file of `length` bytes in the working folder (the build's disk), never in /tmp, which may be a tmpfs.
    fn file_of(length: usize) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.write_all(&vec![1_u8; length]).unwrap();
        file
    }

    fn on_memory(test: &str) -> bool {
        let fs_type = mount::of_file(Path::new(".")).map(|mount| mount.fs_type).unwrap_or_default();
        let skip = matches!(fs_type.as_str(), "tmpfs" | "ramfs" | "overlay");
        if skip {
            crate::skipped!("{test}: the working folder is on {fs_type}");
        }
        skip
    }

    #[test]
    fn a_file_just_written_gets_cold_and_warm_again() {
        if on_memory("a_file_just_written_gets_cold_and_warm_again") {
            return;
        }
        let file = file_of(3 << 20 | 17);
        let total = (3_u64 << 20 | 17).div_ceil(page_bytes());
        let cold = make_cold(file.path()).unwrap();
        assert_eq!(cold.residency, Residency { resident: 0, total });
        assert_eq!(resident_pages(file.path()).unwrap().resident, 0);
        let warm = make_warm(file.path()).unwrap();
        assert_eq!(warm.residency, Residency { resident: total, total });
        assert_eq!(resident_pages(file.path()).unwrap(), warm.residency);
    }

    #[test]
    fn an_empty_file_is_both_cold_and_warm() {
        let file = file_of(0);
        assert_eq!(make_cold(file.path()).unwrap().residency, Residency { resident: 0, total: 0 });
        assert_eq!(make_warm(file.path()).unwrap().residency, Residency { resident: 0, total: 0 });
    }

    #[test]
    fn a_file_on_tmpfs_cannot_be_cold_and_the_error_says_why() {
        let shm = Path::new("/dev/shm");
        if mount::of_file(shm).is_none_or(|mount| mount.fs_type != "tmpfs") {
            crate::skipped!("a_file_on_tmpfs_cannot_be_cold_and_the_error_says_why: /dev/shm is no tmpfs");
            return;
        }
        let mut file = tempfile::NamedTempFile::new_in(shm).unwrap();
        file.write_all(&[1; 8192]).unwrap();
        let error = make_cold(file.path()).unwrap_err().to_string();
        assert!(error.contains("tmpfs keeps its files in memory"), "{error}");
    }

    #[test]
    fn what_is_no_file_is_refused() {
        assert!(matches!(make_cold(Path::new("/nonexistent")), Err(ResidencyError::Io { doing: "open", .. })));
        let error = make_cold(Path::new(".")).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}
