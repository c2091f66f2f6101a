//! The block device under a file: the disk whose requests are counted.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::stat::{SFlag, major, minor};

use super::mount;

/// Where the kernel lists block devices by number.
const SYS_DEV_BLOCK: &str = "/sys/dev/block";

/// How many stacked devices are walked before giving up.
const STACK_MAX: usize = 16;

/// A whole disk, as sysfs shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// Name in /sys/block, such as `nvme0n1`.
    pub name: String,
    /// Major number of the whole disk.
    pub major: u32,
    /// Minor number of the whole disk.
    pub minor: u32,
    /// Its folder in sysfs.
    pub sysfs: PathBuf,
    /// Mapped devices (device mapper, single-disk md) that lie between the file and this disk, topmost first.
    pub above: Vec<String>,
    /// Whether the device takes requests (blk-mq); pmem, zram and the like take bios only.
    pub has_requests: bool,
}

/// Reads and their sizes, as the device's `stat` counts them (the fields of /proc/diskstats).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskStats {
    /// Reads completed.
    pub reads: u64,
    /// Reads merged before they were issued.
    pub reads_merged: u64,
    /// Sectors read, of 512 bytes whatever the device's own block size.
    pub sectors_read: u64,
    /// Writes completed.
    pub writes: u64,
    /// Sectors written.
    pub sectors_written: u64,
}

/// Reads under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadStats {
    /// Reads that the device was given and has not completed.
    pub reads_in_flight: u64,
}

impl BlockDevice {
    /// The disk under `path` (or the disk that `path` itself is, for a block device), or why there is none whose requests could be counted, and what to do.
    pub fn of_file(path: &Path) -> Result<BlockDevice, String> {
        let stat = nix::sys::stat::stat(path).map_err(|e| format!("cannot stat {}: {e}", path.display()))?;
        let is_device = SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits()) == SFlag::S_IFBLK;
        let number = if is_device { stat.st_rdev } else { stat.st_dev };
        let (major, minor) = (major(number), minor(number));
        if major == 0 {
            let kind = mount::of_file(path).map_or_else(|| "this file system".to_owned(), |mount| mount.fs_type);
            return Err(format!(
                "{kind} gives its files the anonymous device 0:{minor}, which has no requests of its own; \
                 put the file on a file system that lies on one block device (ext4, xfs) to count them"
            ));
        }
        Self::resolve(Path::new(SYS_DEV_BLOCK), major as u32, minor as u32)
    }

    /// The disk under the device `major:minor`, in a sysfs whose list of block devices is at `list`.
    fn resolve(list: &Path, major: u32, minor: u32) -> Result<BlockDevice, String> {
        let entry = list.join(format!("{major}:{minor}"));
        let mut folder = fs::canonicalize(&entry)
            .map_err(|e| format!("{}: {e}; sysfs must be mounted (mount -t sysfs sysfs /sys)", entry.display()))?;
        let mut above = Vec::new();
        for _ in 0..STACK_MAX {
            if folder.join("partition").exists() {
                folder.pop();
            }
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let slaves = below(&folder);
            match slaves.as_slice() {
                [] => return Self::at(folder, name, above),
                [slave] => {
                    above.push(name);
                    folder = slave.clone();
                }
                several => {
                    return Err(format!(
                        "{name} spreads over {} devices and has no requests of its own; \
                         put the file on a file system that lies on one disk to count them",
                        several.len()
                    ));
                }
            }
        }
        Err(format!("more than {STACK_MAX} devices are stacked under {major}:{minor}"))
    }

    fn at(sysfs: PathBuf, name: String, above: Vec<String>) -> Result<BlockDevice, String> {
        let file = sysfs.join("dev");
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let number = text.trim().split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (major, minor) = number.ok_or_else(|| format!("{} says '{}'", file.display(), text.trim()))?;
        let has_requests = sysfs.join("mq").is_dir();
        Ok(BlockDevice { name, major, minor, sysfs, above, has_requests })
    }

    /// The number by which block tracepoints name the disk (the kernel's own dev_t: major << 20 | minor).
    pub fn kernel_dev(&self) -> u32 {
        self.major << 20 | self.minor
    }

    /// An attribute below the device's folder, trimmed, such as `queue/scheduler`; `None` where it does not exist.
    pub fn attribute(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.sysfs.join(name)).ok().map(|text| text.trim().to_owned())
    }

    /// What the device has counted since boot, or why it has not.
    pub fn stats(&self) -> Result<DiskStats, String> {
        if self.attribute("queue/iostats").as_deref() == Some("0") {
            return Err(format!(
                "{} keeps no statistics; echo 1 | sudo tee /sys/block/{}/queue/iostats",
                self.name, self.name
            ));
        }
        let file = self.sysfs.join("stat");
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        parse_stat(&text).ok_or_else(|| format!("{} says '{}'", file.display(), text.trim()))
    }

    /// Reads under way at this moment (the first number of `inflight`), or why they are not known.
    pub fn in_flight(&self) -> Result<ReadStats, String> {
        let file = self.sysfs.join("inflight");
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let first = text.split_ascii_whitespace().next().and_then(|reads| reads.parse().ok());
        let reads_in_flight = first.ok_or_else(|| format!("{} says '{}'", file.display(), text.trim()))?;
        Ok(ReadStats { reads_in_flight })
    }
}

/// The devices that a mapped device lies on, in order of name.
fn below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder.join("slaves")) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.flatten().filter_map(|entry| fs::canonicalize(entry.path()).ok()).collect();
    found.sort();
    found
}

/// Parses a device's `stat` (Documentation/block/stat.rst).
fn parse_stat(text: &str) -> Option<DiskStats> {
    let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let &[reads, reads_merged, sectors_read, _, writes, _, sectors_written, ..] = fields.as_slice() else {
        return None;
    };
    Some(DiskStats { reads, reads_merged, sectors_read, writes, sectors_written })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::symlink;

    use super::*;

    /// A sysfs with a disk, its partition, a crypt device on the partition, a mirror on two disks and a bio-only disk.
    fn fake_sysfs() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let device = |path: &str, dev: &str| {
            let folder = root.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("dev"), format!("{dev}\n")).unwrap();
            fs::create_dir_all(root.path().join("list")).unwrap();
            symlink(&folder, root.path().join("list").join(dev)).unwrap();
            folder
        };
        let disk = device("nvme0n1", "259:0");
        fs::create_dir(disk.join("mq")).unwrap();
        fs::write(disk.join("stat"), "  10  2  800  5  7 1 56 9 0 3 4 0 0 0 0 1 2\n").unwrap();
        let partition = device("nvme0n1/nvme0n1p2", "259:2");
        fs::write(partition.join("partition"), "2\n").unwrap();
        let crypt = device("dm-0", "253:0");
        fs::create_dir(crypt.join("slaves")).unwrap();
        symlink(&partition, crypt.join("slaves/nvme0n1p2")).unwrap();
        let second = device("sda", "8:0");
        let mirror = device("md0", "9:0");
        fs::create_dir(mirror.join("slaves")).unwrap();
        symlink(&disk, mirror.join("slaves/nvme0n1")).unwrap();
        symlink(&second, mirror.join("slaves/sda")).unwrap();
        device("pmem0", "260:1");
        root
    }

    fn resolve(root: &tempfile::TempDir, major: u32, minor: u32) -> Result<BlockDevice, String> {
        BlockDevice::resolve(&root.path().join("list"), major, minor)
    }

    #[test]
    fn a_partition_is_counted_on_its_whole_disk() {
        let root = fake_sysfs();
        let device = resolve(&root, 259, 2).unwrap();
        assert_eq!((device.name.as_str(), device.major, device.minor), ("nvme0n1", 259, 0));
        assert_eq!(device.kernel_dev(), 259 << 20);
        assert!(device.has_requests);
        assert!(device.above.is_empty());
        let stats = device.stats().unwrap();
        assert_eq!((stats.reads, stats.reads_merged, stats.sectors_read), (10, 2, 800));
        assert_eq!((stats.writes, stats.sectors_written), (7, 56));
    }

    #[test]
    fn a_mapped_device_on_one_disk_is_counted_on_that_disk() {
        let root = fake_sysfs();
        let device = resolve(&root, 253, 0).unwrap();
        assert_eq!(device.name, "nvme0n1");
        assert_eq!(device.above, ["dm-0"]);
    }

    #[test]
    fn reads_under_way_are_the_first_number() {
        let root = fake_sysfs();
        let device = resolve(&root, 259, 0).unwrap();
        assert!(device.in_flight().unwrap_err().contains("inflight"));
        fs::write(device.sysfs.join("inflight"), "       5        2\n").unwrap();
        assert_eq!(device.in_flight(), Ok(ReadStats { reads_in_flight: 5 }));
        fs::write(device.sysfs.join("inflight"), "\n").unwrap();
        assert!(device.in_flight().unwrap_err().contains("says ''"));
    }

    #[test]
    fn a_device_on_several_disks_has_no_requests_of_its_own() {
        let root = fake_sysfs();
        let reason = resolve(&root, 9, 0).unwrap_err();
        assert!(reason.contains("md0 spreads over 2 devices"), "{reason}");
    }

    #[test]
    fn a_device_without_queues_takes_bios_only() {
        let root = fake_sysfs();
        assert!(!resolve(&root, 260, 1).unwrap().has_requests);
    }

    #[test]
    fn statistics_turned_off_are_a_reason_and_not_zero() {
        let root = fake_sysfs();
        let device = resolve(&root, 259, 0).unwrap();
        fs::create_dir(device.sysfs.join("queue")).unwrap();
        fs::write(device.sysfs.join("queue/iostats"), "0\n").unwrap();
        assert!(device.stats().unwrap_err().contains("iostats"));
    }

    #[test]
    fn a_file_on_tmpfs_names_its_file_system() {
        let path = Path::new("/dev/shm");
        if mount::of_file(path).is_none_or(|mount| mount.fs_type != "tmpfs") {
            crate::skipped!("a_file_on_tmpfs_names_its_file_system: /dev/shm is no tmpfs");
            return;
        }
        let reason = BlockDevice::of_file(path).unwrap_err();
        assert!(reason.starts_with("tmpfs gives its files the anonymous device"), "{reason}");
    }

    #[test]
    fn nonsense_in_stat_is_refused() {
        assert_eq!(parse_stat(""), None);
        assert_eq!(parse_stat("1 2 x 4 5 6 7"), None);
    }
}
