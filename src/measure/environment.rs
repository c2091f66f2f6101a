//! The machine and the settings that change results.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::device::BlockDevice;
use super::{mount, perf, residency, sys};

/// Version of the crate `turso` that is linked, which its API does not tell; a test keeps it equal to Cargo.toml.
pub const TURSO_VERSION: &str = "0.8.3";

/// The machine and the settings that change results.
///
/// A value that could not be read is `None`, with the reason under the same name in `reasons`. Fields of later
/// versions are ignored when a record is read, and missing ones are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Digest of the settings that must be equal for two runs to be comparable (16 hexadecimal digits): see
    /// [`Environment::settings`].
    pub id: String,
    /// Digest of machine id and host name, which tells two machines of the same make apart without naming them.
    pub host: Option<String>,
    /// Kernel release, as `uname -r`.
    pub kernel_release: Option<String>,
    /// Architecture that this program was built for.
    pub architecture: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// CPUs that are online, as the kernel lists them.
    pub cpus_online: Option<String>,
    /// Whether CPUs share cores (simultaneous multithreading).
    pub smt: Option<bool>,
    /// Frequency governors in force, joined by `/` where CPUs differ.
    pub cpu_governor: Option<String>,
    /// Whether CPUs may run above their base frequency.
    pub cpu_boost: Option<bool>,
    /// Hypervisor, by CPUID or firmware; `none` on bare metal.
    pub hypervisor: Option<String>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Swap space, in bytes.
    pub swap_bytes: Option<u64>,
    /// The system's page size, in bytes.
    pub page_bytes: Option<u64>,
    /// Setting of transparent huge pages.
    pub transparent_hugepages: Option<String>,
    /// Setting of /proc/sys/kernel/perf_event_paranoid.
    pub perf_event_paranoid: Option<i32>,
    /// Setting of /proc/sys/kernel/io_uring_disabled.
    pub io_uring_disabled: Option<u32>,
    /// File system of the database.
    pub fs_type: Option<String>,
    /// Options of its mount and of the file system.
    pub mount_options: Option<String>,
    /// Alignment of offset and length for direct I/O that the file system reports, in bytes; 0 is no direct I/O.
    pub direct_alignment_bytes: Option<u32>,
    /// The disk beneath it.
    pub device_name: Option<String>,
    /// Mapped devices between file system and disk, topmost first, joined by ` on `; empty if there are none.
    pub device_above: Option<String>,
    /// The disk's model.
    pub device_model: Option<String>,
    /// The disk's driver.
    pub device_driver: Option<String>,
    /// I/O scheduler in force.
    pub scheduler: Option<String>,
    /// Merges that are turned off: 0 none, 1 all but simple ones, 2 all.
    pub nomerges: Option<u64>,
    /// Largest request, in KiB.
    pub max_sectors_kb: Option<u64>,
    /// Most memory segments of a request.
    pub max_segments: Option<u64>,
    /// The kernel's readahead, in KiB.
    pub read_ahead_kb: Option<u64>,
    /// Requests that the queue holds.
    pub nr_requests: Option<u64>,
    /// Logical block size, in bytes.
    pub logical_block_size: Option<u64>,
    /// Physical block size, in bytes.
    pub physical_block_size: Option<u64>,
    /// Whether the disk says that it rotates.
    pub rotational: Option<bool>,
    /// The disk's write cache: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// CPU that completes a request: 0 any, 1 the submitter's group, 2 the submitter's own.
    pub rq_affinity: Option<u64>,
    /// Size of the database file, in bytes.
    pub file_bytes: Option<u64>,
    /// Extents of the database file.
    pub file_extents: Option<u32>,
    /// Version of ioscope.
    pub ioscope_version: Option<String>,
    /// Version of the SQLite that is linked.
    pub sqlite_version: Option<String>,
    /// Version of the Turso that is linked.
    pub turso_version: Option<String>,
    /// `release` or `debug` (with debug assertions).
    pub build_profile: Option<String>,
    /// Why a value is `None`, by its name.
    pub reasons: BTreeMap<String, String>,
}

impl Environment {
    /// Reads the machine, and the file system and disk of `db` (of its folder, while it does not exist).
    ///
    /// It opens and closes `db`, which drops the POSIX locks that this process holds on it: call it before an engine
    /// opens the file or after it has closed it.
    pub fn read(db: Option<&Path>) -> Environment {
        let mut environment = Environment::default();
        environment.read_machine();
        environment.read_kernel_settings();
        environment.read_versions();
        environment.read_storage(db);
        environment.id = environment.digest();
        environment
    }

    /// The settings that the id covers, by name: machine, kernel, file system, disk and build profile.
    ///
    /// Not among them is what an experiment varies on purpose (the database file and the versions of ioscope and the
    /// engines), what changes by itself (load, free memory, time), what only permits (perf_event_paranoid,
    /// io_uring_disabled), and `host`.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        fn text<T: ToString>(value: &Option<T>) -> String {
            value.as_ref().map_or_else(|| "null".to_owned(), T::to_string)
        }
        // The kernel reserves some memory at boot, a little more or less each time.
        let memory_gib = self.memory_bytes.map(|bytes| (bytes + (1 << 29)) >> 30);
        vec![
            ("kernel_release", text(&self.kernel_release)),
            ("architecture", text(&self.architecture)),
            ("cpu_model", text(&self.cpu_model)),
            ("cpus_online", text(&self.cpus_online)),
            ("smt", text(&self.smt)),
            ("cpu_governor", text(&self.cpu_governor)),
            ("cpu_boost", text(&self.cpu_boost)),
            ("hypervisor", text(&self.hypervisor)),
            ("memory_gib", text(&memory_gib)),
            ("swap_bytes", text(&self.swap_bytes)),
            ("page_bytes", text(&self.page_bytes)),
            ("transparent_hugepages", text(&self.transparent_hugepages)),
            ("fs_type", text(&self.fs_type)),
            ("mount_options", text(&self.mount_options)),
            ("direct_alignment_bytes", text(&self.direct_alignment_bytes)),
            ("device_name", text(&self.device_name)),
            ("device_above", text(&self.device_above)),
            ("device_model", text(&self.device_model)),
            ("device_driver", text(&self.device_driver)),
            ("scheduler", text(&self.scheduler)),
            ("nomerges", text(&self.nomerges)),
            ("max_sectors_kb", text(&self.max_sectors_kb)),
            ("max_segments", text(&self.max_segments)),
            ("read_ahead_kb", text(&self.read_ahead_kb)),
            ("nr_requests", text(&self.nr_requests)),
            ("logical_block_size", text(&self.logical_block_size)),
            ("physical_block_size", text(&self.physical_block_size)),
            ("rotational", text(&self.rotational)),
            ("write_cache", text(&self.write_cache)),
            ("rq_affinity", text(&self.rq_affinity)),
            ("build_profile", text(&self.build_profile)),
        ]
    }

    /// The id that these settings have.
    pub fn digest(&self) -> String {
        let mut hash = Fnv::new();
        for (name, value) in self.settings() {
            hash.write(name.as_bytes());
            hash.write(b"=");
            hash.write(value.as_bytes());
            hash.write(b"\n");
        }
        hash.hex()
    }

    /// The value, or `None` with its reason noted.
    fn noted<T>(&mut self, name: &str, value: Result<T, String>) -> Option<T> {
        value.map_err(|reason| self.reasons.insert(name.to_owned(), reason)).ok()
    }

    fn read_machine(&mut self) {
        self.host = self.noted("host", host_digest());
        self.kernel_release = self.noted("kernel_release", read("/proc/sys/kernel/osrelease"));
        self.architecture = Some(std::env::consts::ARCH.to_owned());
        let cpuinfo = read("/proc/cpuinfo");
        self.cpu_model = self.noted("cpu_model", cpuinfo.clone().and_then(|text| cpu_model(&text)));
        self.hypervisor = self.noted("hypervisor", cpuinfo.map(|text| hypervisor(&text)));
        self.cpus_online = self.noted("cpus_online", read("/sys/devices/system/cpu/online"));
        let smt = read("/sys/devices/system/cpu/smt/active").map(|text| text == "1");
        self.smt = self.noted("smt", smt);
        self.cpu_governor = self.noted("cpu_governor", governors());
        self.cpu_boost = self.noted("cpu_boost", boost());
        let memory = |name: &str| memory_kib(name).map(|kib| kib << 10).ok_or_else(|| no_meminfo(name));
        self.memory_bytes = self.noted("memory_bytes", memory("MemTotal"));
        self.swap_bytes = self.noted("swap_bytes", memory("SwapTotal"));
        self.page_bytes = Some(residency::page_bytes());
    }

    fn read_kernel_settings(&mut self) {
        let hugepages = read("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|text| chosen(&text));
        self.transparent_hugepages = self.noted("transparent_hugepages", hugepages);
        let paranoid = perf::paranoid().ok_or_else(|| "this kernel has no perf events".to_owned());
        self.perf_event_paranoid = self.noted("perf_event_paranoid", paranoid);
        let disabled = read("/proc/sys/kernel/io_uring_disabled").and_then(|text| number(&text));
        let disabled = disabled.map_err(|why| format!("{why} (the setting came with Linux 6.6)"));
        self.io_uring_disabled = self.noted("io_uring_disabled", disabled);
    }

    fn read_versions(&mut self) {
        self.ioscope_version = Some(env!("CARGO_PKG_VERSION").to_owned());
        self.sqlite_version = Some(rusqlite::version().to_owned());
        self.turso_version = Some(TURSO_VERSION.to_owned());
        self.build_profile = Some(if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned());
    }

    fn read_storage(&mut self, db: Option<&Path>) {
        let none = || "no database was named".to_owned();
        let place = db.ok_or_else(none).and_then(existing);
        let mounted = place.clone().and_then(|place| {
            mount::of_file(&place).ok_or_else(|| format!("/proc/self/mountinfo has no mount of {}", place.display()))
        });
        self.fs_type = self.noted("fs_type", mounted.clone().map(|mount| mount.fs_type));
        self.mount_options = self.noted("mount_options", mounted.map(|mount| mount.options));
        let file = db.ok_or_else(none);
        let alignment = file.clone().and_then(|file| match sys::direct_alignment(file) {
            Ok(Some(alignment)) => Ok(alignment.offset_bytes),
            Ok(None) => Err("kernel or file system does not report it (statx STATX_DIOALIGN, Linux 6.1)".to_owned()),
            Err(error) => Err(format!("statx {}: {error}", file.display())),
        });
        self.direct_alignment_bytes = self.noted("direct_alignment_bytes", alignment);
        let opened = file.and_then(|file| File::open(file).map_err(|e| format!("{}: {e}", file.display())));
        let bytes = opened.as_ref().map_err(Clone::clone);
        let bytes = bytes.and_then(|file| file.metadata().map(|m| m.len()).map_err(|e| e.to_string()));
        self.file_bytes = self.noted("file_bytes", bytes);
        let extents = opened.and_then(|file| sys::extents(&file).map_err(|e| format!("FIEMAP: {e}")));
        self.file_extents = self.noted("file_extents", extents);
        self.read_device(place.and_then(|place| BlockDevice::of_file(&place)));
    }

    fn read_device(&mut self, device: Result<BlockDevice, String>) {
        let attribute = |name: &str| {
            let device = device.as_ref().map_err(Clone::clone)?;
            device.attribute(name).ok_or_else(|| format!("{} does not exist", device.sysfs.join(name).display()))
        };
        let queue = |name: &str| attribute(&format!("queue/{name}"));
        let count = |name: &str| queue(name).and_then(|text| number(&text));
        let device_name = device.as_ref().map(|device| device.name.clone()).map_err(Clone::clone);
        let above = device.as_ref().map(|device| device.above.join(" on ")).map_err(Clone::clone);
        let driver = device.as_ref().map_err(Clone::clone).and_then(driver);
        self.device_name = self.noted("device_name", device_name);
        self.device_above = self.noted("device_above", above);
        self.device_model = self.noted("device_model", attribute("device/model"));
        self.device_driver = self.noted("device_driver", driver);
        self.scheduler = self.noted("scheduler", queue("scheduler").and_then(|text| chosen(&text)));
        self.nomerges = self.noted("nomerges", count("nomerges"));
        self.max_sectors_kb = self.noted("max_sectors_kb", count("max_sectors_kb"));
        self.max_segments = self.noted("max_segments", count("max_segments"));
        self.read_ahead_kb = self.noted("read_ahead_kb", count("read_ahead_kb"));
        self.nr_requests = self.noted("nr_requests", count("nr_requests"));
        self.logical_block_size = self.noted("logical_block_size", count("logical_block_size"));
        self.physical_block_size = self.noted("physical_block_size", count("physical_block_size"));
        self.rotational = self.noted("rotational", count("rotational").map(|rotates: u64| rotates != 0));
        self.write_cache = self.noted("write_cache", queue("write_cache"));
        self.rq_affinity = self.noted("rq_affinity", count("rq_affinity"));
    }
}

/// A line of /proc/meminfo, in KiB.
pub fn memory_kib(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

fn no_meminfo(name: &str) -> String {
    format!("/proc/meminfo has no {name}")
}

/// The path itself, or the nearest folder above it that exists.
pub(crate) fn existing(path: &Path) -> Result<PathBuf, String> {
    let absolute = std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let found = absolute.ancestors().find(|ancestor| ancestor.exists());
    found.map(Path::to_owned).ok_or_else(|| format!("{}: nothing above it exists", path.display()))
}

/// A file of one line, trimmed.
fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|e| format!("{path}: {e}"))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("'{text}' is not the number that was expected"))
}

/// The word in brackets of `always [madvise] never`; a lone word is in force too.
fn chosen(text: &str) -> Result<String, String> {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    let lone = (!text.is_empty() && !text.contains(char::is_whitespace)).then_some(text);
    bracketed.or(lone).map(str::to_owned).ok_or_else(|| format!("'{text}' marks none as chosen"))
}

/// The model in /proc/cpuinfo: `model name` on x86, implementer and part on ARM, `uarch` on RISC-V.
fn cpu_model(cpuinfo: &str) -> Result<String, String> {
    let value = |name: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    value("model name")
        .or_else(|| Some(format!("implementer {} part {}", value("CPU implementer")?, value("CPU part")?)))
        .or_else(|| value("uarch"))
        .ok_or_else(|| "/proc/cpuinfo names no model".to_owned())
}

/// The hypervisor's CPUID signature, else what firmware says, else `none` where no flag tells of one.
fn hypervisor(cpuinfo: &str) -> String {
    let firmware = || {
        let xen = read("/sys/hypervisor/type").ok();
        let vendor = || read("/sys/class/dmi/id/sys_vendor").ok();
        xen.or_else(vendor).unwrap_or_else(|| "unnamed".to_owned())
    };
    let flagged = cpuinfo
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split_ascii_whitespace().any(|flag| flag == "hypervisor"));
    match sys::hypervisor_signature() {
        Some(signature) => signature,
        None if flagged || Path::new("/sys/hypervisor/type").exists() => firmware(),
        None => "none".to_owned(),
    }
}

fn governors() -> Result<String, String> {
    let cpus = perf::online_cpus()?;
    let file = |cpu: &usize| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let found: Result<BTreeSet<String>, String> = cpus.iter().map(|cpu| read(&file(cpu))).collect();
    found.map(|names| names.into_iter().collect::<Vec<_>>().join("/"))
}

fn boost() -> Result<bool, String> {
    let no_turbo = read("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|text| text == "0");
    no_turbo.or_else(|_| read("/sys/devices/system/cpu/cpufreq/boost").map(|text| text == "1"))
}

/// The driver that the disk's sysfs folder links to; NVMe has it one step further, at the controller.
fn driver(device: &BlockDevice) -> Result<String, String> {
    let links = ["device/driver", "device/device/driver"];
    let found = links.iter().find_map(|link| fs::read_link(device.sysfs.join(link)).ok());
    found
        .and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned()))
        .ok_or_else(|| format!("{} has no driver's link", device.sysfs.display()))
}

fn host_digest() -> Result<String, String> {
    let machine = read("/etc/machine-id").or_else(|_| read("/var/lib/dbus/machine-id"));
    let name = read("/proc/sys/kernel/hostname");
    if let (Err(reason), Err(_)) = (&machine, &name) {
        return Err(reason.clone());
    }
    let mut hash = Fnv::new();
    hash.write(machine.unwrap_or_default().as_bytes());
    hash.write(b"\n");
    hash.write(name.unwrap_or_default().as_bytes());
    Ok(hash.hex())
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo): short, and the same on every machine and in every build, which std's hashers are not.
pub(crate) struct Fnv(u64);

impl Fnv {
    pub(crate) fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests;
