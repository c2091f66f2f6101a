//! Storage: the database or its folder, direct I/O on that file system, and the disk beneath it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};

use super::{Check, Subject};
use crate::measure::device::BlockDevice;
use crate::measure::residency::{self, Residency, ResidencyError};
use crate::measure::{direct_alignment, mount};

/// Bytes of the database of scale factor 1.
pub(super) const SF1_BYTES: u64 = 1_251_397_632;

/// Bytes that are read to try direct I/O.
const SAMPLE_BYTES: u64 = 1 << 20;

/// Block of one direct read, unless the file system wants more.
const BLOCK_BYTES: u64 = 4096;

/// First bytes of a SQLite database.
const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    let mut checks = vec![database(subject), free_space(subject), file_system(subject), direct(subject)];
    match BlockDevice::of_file(subject.place()) {
        Ok(device) => checks.extend(disk(&device)),
        Err(reason) => {
            let (found, remedy) = super::counters::split(&reason);
            checks.push(Check::missing("device", found, "every count of the block layer stays null", remedy));
        }
    }
    checks
}

fn database(subject: &Subject) -> Check {
    const NAME: &str = "database";
    const COST: &str = "there is nothing to ask";
    let Some(db) = &subject.db else {
        return Check::ok(
            NAME,
            format!("none was named (--db FILE); looking at the folder {}", subject.folder.display()),
        );
    };
    let shown = db.display();
    let header = File::open(db).and_then(|file| {
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut header = Vec::new();
        let bytes = file.metadata()?.len();
        file.take(SQLITE_MAGIC.len() as u64).read_to_end(&mut header)?;
        Ok((header, bytes))
    });
    match header {
        Ok((header, bytes)) if header == SQLITE_MAGIC => Check::ok(NAME, format!("{shown}, {} MiB", bytes >> 20)),
        Ok(_) => {
            Check::needed(NAME, format!("{shown} is not a SQLite database"), COST, "name a SQLite database with --db")
        }
        Err(error) => Check::needed(
            NAME,
            format!("{shown}: {error}"),
            COST,
            match error.kind() {
                io::ErrorKind::NotFound => format!("ioscope dataset tpch --scale 1 --out {shown}"),
                io::ErrorKind::PermissionDenied => format!("run as the file's owner, or: chmod a+r {shown}"),
                _ => "name a SQLite database with --db".to_owned(),
            },
        ),
    }
}

/// Room for a data set, which matters only where none was named.
fn free_space(subject: &Subject) -> Check {
    const NAME: &str = "free space";
    let folder = subject.folder.display();
    let free = match statvfs(&subject.folder) {
        Ok(stat) => stat.blocks_available().saturating_mul(stat.fragment_size()),
        Err(errno) => {
            return Check::warn(NAME, format!("{folder}: {errno}"), "whether a data set fits is not known", "df -h .");
        }
    };
    let found = format!("{} MiB in {folder}; a database of SF 1 needs {} MiB", free >> 20, SF1_BYTES.div_ceil(1 << 20));
    if subject.db.as_deref().is_some_and(Path::is_file) {
        return Check::ok(NAME, format!("{} MiB in {folder}; the database is there", free >> 20));
    }
    let writable = access(&subject.folder, AccessFlags::W_OK | AccessFlags::X_OK);
    match (free > SF1_BYTES, writable) {
        (true, Ok(())) => Check::ok(NAME, found),
        (false, _) => Check::warn(
            NAME,
            found,
            "the data set of SF 1 cannot be made here",
            "ioscope dataset tpch --scale 0.1, or --out on a larger disk",
        ),
        (true, Err(errno)) => Check::warn(
            NAME,
            format!("{found}; not writable: {errno}"),
            "no data set can be made here",
            "run as the folder's owner, or name a folder of your own: ioscope dataset tpch --out FILE",
        ),
    }
}

fn file_system(subject: &Subject) -> Check {
    match mount::of_file(subject.place()) {
        Some(mount) => Check::ok("file system", format!("{} on {} ({})", mount.fs_type, mount.source, mount.options)),
        None => Check::warn(
            "file system",
            "not known",
            "records do not say which file system was measured",
            "mount -t proc proc /proc",
        ),
    }
}

/// A file to try direct I/O on: an unnamed one in the folder, or the database itself where the folder is not writable.
pub(super) struct Sample {
    path: PathBuf,
    what: &'static str,
    /// Whether it may be sent out of the page cache: the user's database stays where it is.
    own: bool,
    /// Keeps an unnamed file alive.
    _file: Option<File>,
}

impl Sample {
    /// Writes the unnamed file, or falls back on the database.
    pub(super) fn new(subject: &Subject) -> Result<Sample, String> {
        let write = || -> io::Result<File> {
            let mut file = tempfile::tempfile_in(&subject.folder)?;
            file.write_all(&vec![0x5a; SAMPLE_BYTES as usize])?;
            file.sync_all()?;
            Ok(file)
        };
        match (write(), &subject.db) {
            (Ok(file), _) => {
                let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
                Ok(Sample { path, what: "a new file in its folder", own: true, _file: Some(file) })
            }
            (Err(_), Some(db)) if db.is_file() => {
                Ok(Sample { path: db.clone(), what: "the database", own: false, _file: None })
            }
            (Err(error), _) => Err(format!("no file can be written in {}: {error}", subject.folder.display())),
        }
    }

    /// Where it can be opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads up to 1 MiB with O_DIRECT, block by block; the bytes read and how many reads it took.
    pub(super) fn read_direct(&self, alignment_bytes: u64) -> io::Result<(u64, u64)> {
        let block = alignment_bytes.max(BLOCK_BYTES);
        let length = usize::try_from(block).map_err(io::Error::other)?;
        let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_DIRECT).open(&self.path)?;
        let mut memory = vec![0_u8; length * 2];
        let start = memory.as_ptr().align_offset(length);
        let frame = memory.get_mut(start..start + length).ok_or_else(|| io::Error::other("no aligned memory"))?;
        let (mut bytes, mut reads) = (0, 0);
        while bytes < SAMPLE_BYTES {
            let read = file.read_at(frame, bytes)? as u64;
            reads += u64::from(read > 0);
            bytes += read;
            if read < block {
                break;
            }
        }
        Ok((bytes, reads))
    }
}

fn direct(subject: &Subject) -> Check {
    const NAME: &str = "O_DIRECT";
    const COST: &str = "--direct required is refused: every read goes through the page cache";
    const REMEDY: &str = "put the database on ext4 or xfs on a disk: ioscope dataset tpch --out FILE";
    let sample = match Sample::new(subject) {
        Ok(sample) => sample,
        Err(reason) => {
            return Check::needed(NAME, format!("could not be tried: {reason}"), COST, "name a database: --db FILE");
        }
    };
    let alignment = direct_alignment(sample.path()).ok().flatten();
    let reported = match alignment {
        Some(found) if found.offset_bytes == 0 => "statx says that it is not supported".to_owned(),
        Some(found) => {
            format!("statx: offsets aligned to {}, memory to {} bytes", found.offset_bytes, found.memory_bytes)
        }
        None => "statx does not report an alignment".to_owned(),
    };
    let before = if sample.own {
        residency::make_cold(sample.path()).map(|proof| proof.residency)
    } else {
        residency::resident_pages(sample.path())
    };
    match sample.read_direct(alignment.map_or(0, |found| found.offset_bytes.into())) {
        Err(error) => {
            Check::needed(NAME, format!("a read of {} failed: {error}; {reported}", sample.what), COST, REMEDY)
        }
        Ok((0, _)) => {
            Check::needed(NAME, format!("{} is empty; {reported}", sample.what), COST, "name a database: --db FILE")
        }
        Ok((bytes, _)) => {
            let found = format!("{} KiB read from {}; {reported}", bytes >> 10, sample.what);
            let residency =
                before.and_then(|before| residency::resident_pages(sample.path()).map(|after| (before, after)));
            judge(residency, &found, COST, REMEDY)
        }
    }
}

/// Whether residency before and after a direct read proves that it bypassed the page cache.
fn judge(residency: Result<(Residency, Residency), ResidencyError>, found: &str, cost: &str, remedy: &str) -> Check {
    const NAME: &str = "O_DIRECT";
    match residency {
        Ok((before, after)) if after.resident > before.resident => Check::needed(
            NAME,
            format!(
                "{found}, but {} of its pages came into the page cache: it is buffered",
                after.resident - before.resident
            ),
            cost,
            remedy,
        ),
        Ok((before, after)) if before.resident < before.total => Check::ok(
            NAME,
            format!(
                "{found}; bypassed the page cache ({} of {} pages resident before and {} after)",
                before.resident, before.total, after.resident
            ),
        ),
        Ok(_) => Check::warn(
            NAME,
            format!("{found}, but the whole file is in the page cache already, so that nothing is proven"),
            "whether reads bypass the page cache is not known until a cold run proves it",
            "run in a folder that you may write, or with --cache cold",
        ),
        Err(ResidencyError::StaysResident { why, .. }) => {
            Check::needed(NAME, format!("{found}, but its pages stay in the page cache: {why}"), cost, remedy)
        }
        Err(reason) => Check::warn(
            NAME,
            format!("{found}, but residency does not prove it: {reason}"),
            "neither direct I/O nor a cold or warm start can be proven on this file",
            "run as the file's owner, or copy the file",
        ),
    }
}

fn disk(device: &BlockDevice) -> Vec<Check> {
    let queue = |name: &str| device.attribute(&format!("queue/{name}"));
    let name = &device.name;
    let model = device.attribute("device/model").map_or_else(String::new, |model| format!(", {model}"));
    let rotates = if queue("rotational").as_deref() == Some("1") { ", says that it rotates" } else { "" };
    let above =
        if device.above.is_empty() { String::new() } else { format!(", beneath {}", device.above.join(" on ")) };
    let mut checks = vec![match device.stats() {
        Ok(_) if device.has_requests => {
            Check::ok("device", format!("{name} ({}:{}){model}{rotates}{above}", device.major, device.minor))
        }
        Ok(_) => Check::missing(
            "device",
            format!("{name}{model}: takes bios directly, without requests"),
            "bios_merged, requests_allocated and device_requests stay null",
            "put the database on a disk with a request queue (NVMe, SCSI, virtio)",
        ),
        Err(reason) => {
            let (found, remedy) = super::counters::split(&reason);
            Check::missing("device", found, "device_bytes and the cross-check of requests stay null", remedy)
        }
    }];
    let Some(scheduler) = queue("scheduler") else { return checks };
    let chosen =
        scheduler.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(&*scheduler, |(word, _)| word);
    checks.push(Check::ok("scheduler", format!("{chosen} (of: {})", scheduler.replace(['[', ']'], ""))));
    let number = |name: &str| queue(name).and_then(|text| text.parse::<u64>().ok());
    checks.push(match number("nomerges") {
        Some(0) => Check::ok("nomerges", "0: the block layer merges"),
        other => Check::warn(
            "nomerges",
            other.map_or_else(|| "not known".to_owned(), |value| value.to_string()),
            "the block layer merges little or nothing: with --submit per-page every page is a request of its own",
            format!("echo 0 | sudo tee /sys/block/{name}/queue/nomerges"),
        ),
    });
    // A window of 32 pages of 4096 bytes.
    checks.push(match number("max_sectors_kb") {
        Some(kib) if kib >= 128 => Check::ok("max_sectors_kb", kib.to_string()),
        other => Check::warn(
            "max_sectors_kb",
            other.map_or_else(|| "not known".to_owned(), |value| value.to_string()),
            "a window of 32 pages is split into several requests",
            format!(
                "echo {} | sudo tee /sys/block/{name}/queue/max_sectors_kb",
                queue("max_hw_sectors_kb").unwrap_or_else(|| "1280".to_owned())
            ),
        ),
    });
    checks.push(Check::ok(
        "read_ahead_kb",
        format!(
            "{} (the kernel's readahead: buffered arms only)",
            queue("read_ahead_kb").unwrap_or_else(|| "?".to_owned())
        ),
    ));
    let iopoll = match queue("io_poll").as_deref() {
        Some("1") => "offered by the device; ioscope does not use it",
        _ => "not offered by the device; ioscope does not need it",
    };
    checks.push(Check::ok("IOPOLL", iopoll));
    checks
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::doctor::State;

    fn residency(resident: u64) -> Residency {
        Residency { resident, total: 256 }
    }

    fn judged(before: u64, after: u64) -> Check {
        judge(Ok((residency(before), residency(after))), "read", "cost", "remedy")
    }

    #[test]
    fn only_residency_proves_direct_io() {
        assert_eq!(judged(0, 0).state, State::Ok);
        assert_eq!(judged(10, 10).state, State::Ok);
        assert_eq!(judged(256, 256).state, State::Warn);
        let buffered = judged(0, 256);
        assert!(buffered.state == State::Missing && buffered.needed);
    }

    #[test]
    fn a_file_system_in_memory_has_no_direct_io() {
        let shm = Path::new("/dev/shm");
        if mount::of_file(shm).is_none_or(|mount| mount.fs_type != "tmpfs") {
            crate::skipped!("a_file_system_in_memory_has_no_direct_io: /dev/shm is no tmpfs");
            return;
        }
        let check = direct(&Subject { db: None, folder: shm.to_owned() });
        assert!(check.state == State::Missing && check.needed, "{check:?}");
    }

    #[test]
    fn what_is_no_database_is_refused_with_its_kind() {
        let root = tempfile::tempdir().unwrap();
        let subject = |db: PathBuf| Subject { db: Some(db), folder: root.path().to_owned() };
        let text = root.path().join("a.txt");
        std::fs::write(&text, "hello").unwrap();
        assert!(database(&subject(text)).found.contains("is not a SQLite database"));
        assert!(database(&subject(root.path().to_owned())).found.contains("not a regular file"));
        assert!(database(&subject(root.path().join("none.db"))).remedy.starts_with("ioscope dataset tpch"));
    }
}
