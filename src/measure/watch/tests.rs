#![allow(clippy::unwrap_used)]
//! The watch against real I/O. What needs privilege or a feature skips with its reason.

use super::report::{charge, differ, less_often_running, thread_seconds};
use super::*;
use crate::measure::KernelThread;
use crate::measure::sys::Reading;

#[test]
fn system_time_that_ticks_missed_comes_out_of_user_time() {
    assert_eq!(charge(1.0, 0.75, 0.25), (1.0, 0.5));
    assert_eq!(charge(1.0, 0.25, 0.5), (0.75, 0.0));
    assert_eq!(charge(0.0, 0.0, 0.0), (0.0, 0.0));
}

#[test]
fn only_more_than_the_edges_is_a_difference() {
    assert!(!differ(0, 8));
    assert!(differ(0, 9));
    assert!(!differ(16_300, 16_250));
    assert!(differ(16_300, 16_000));
}

#[test]
fn threads_are_charged_from_where_they_stood_at_the_start() {
    let time = |kind, cpu_ns| ThreadTime { kind, cpu_ns };
    let before = BTreeMap::from([(7, time(KernelThread::SqPoll, 1_000_000_000))]);
    let after = BTreeMap::from([
        (7, time(KernelThread::SqPoll, 1_500_000_000)),
        (8, time(KernelThread::SqPoll, 250_000_000)),
        (9, time(KernelThread::IoWorker, 125_000_000)),
    ]);
    assert_eq!(thread_seconds(&before, &after, KernelThread::SqPoll), 0.75);
    assert_eq!(thread_seconds(&before, &after, KernelThread::IoWorker), 0.125);
}

#[test]
fn the_counter_that_was_least_on_the_pmu_is_the_one_reported() {
    let reading = |enabled_ns, running_ns| Reading { count: 1, enabled_ns, running_ns };
    let (full, half) = (reading(100, 100), reading(1000, 500));
    assert_eq!(less_often_running(full, half), half);
    assert_eq!(less_often_running(half, full), half);
    assert_eq!(less_often_running(half, reading(0, 0)), half);
}

/// The warnings about counts of one disk, given bytes that the process itself read.
fn cross_checked(measured: Measured, own_bytes: u64) -> Vec<String> {
    let device = BlockDevice {
        name: "sda".to_owned(),
        major: 8,
        minor: 0,
        sysfs: PathBuf::new(),
        above: Vec::new(),
        has_requests: true,
    };
    let mut report = Report::new(Vec::new());
    report.measured = measured;
    report.cross_check(&device, Some((0, own_bytes)));
    report.finish().warnings
}

fn agreeing() -> Measured {
    Measured {
        bios_merged: Some(900),
        requests_allocated: Some(110),
        device_requests: Some(100),
        diskstats_reads: Some(100),
        // Ten requests were merged into others after they had been allocated.
        diskstats_reads_merged: Some(910),
        device_bytes: Some(10 << 20),
        ..Measured::default()
    }
}

#[test]
fn counts_that_agree_warn_of_nothing() {
    assert_eq!(cross_checked(agreeing(), 10 << 20), Vec::<String>::new());
}

#[test]
fn counts_that_differ_name_both_numbers() {
    let requests = cross_checked(Measured { diskstats_reads: Some(150), ..agreeing() }, 10 << 20);
    assert!(requests.len() == 1 && requests[0].contains("100 read") && requests[0].contains("150"), "{requests:?}");
    let merges = cross_checked(Measured { diskstats_reads_merged: Some(800), ..agreeing() }, 10 << 20);
    assert!(merges.len() == 1 && merges[0].contains("910 read merges") && merges[0].contains("800"), "{merges:?}");
}

#[test]
fn what_others_read_from_the_disk_is_told() {
    let foreign = cross_checked(agreeing(), 4 << 20);
    assert!(foreign.len() == 1 && foreign[0].contains("somebody else's"), "{foreign:?}");
}

/// A loop device of its own over a file in memory: nobody else reads it, so counts are exact.
struct LoopDevice {
    path: PathBuf,
    _backing: tempfile::NamedTempFile,
}

impl LoopDevice {
    const BYTES: u64 = 4 << 20;

    /// Attaches one, or says why the test has to be skipped.
    fn attach(test: &str) -> Option<LoopDevice> {
        let skip = |reason: &str| crate::skipped!("{test}: {reason}");
        if !nix::unistd::geteuid().is_root() {
            skip("a loop device needs root");
            return None;
        }
        let backing = tempfile::NamedTempFile::new_in("/dev/shm").ok()?;
        backing.as_file().set_len(Self::BYTES).unwrap();
        match std::process::Command::new("losetup").args(["--find", "--show"]).arg(backing.path()).output() {
            Ok(output) if output.status.success() => {
                let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
                Some(LoopDevice { path, _backing: backing })
            }
            Ok(output) => {
                skip(&format!("losetup: {}", String::from_utf8_lossy(&output.stderr).trim()));
                None
            }
            Err(error) => {
                skip(&format!("losetup: {error}"));
                None
            }
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

fn open_direct(path: &Path) -> fs::File {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).unwrap()
}

/// Reads `count` blocks of 4 KiB, every second one so that none can merge with its neighbour.
fn read_direct(path: &Path, count: u64) {
    use std::os::unix::fs::FileExt;
    let file = open_direct(path);
    let mut memory = vec![0_u8; 8192];
    let start = memory.as_ptr().align_offset(4096);
    for block in 0..count {
        file.read_exact_at(&mut memory[start..start + 4096], block * 8192).unwrap();
    }
}

fn watch(file: &Path) -> Watch {
    let mut watch = Watch::open(&WatchOptions { counters: true, file: file.to_owned() });
    watch.start();
    watch
}

fn finish(mut watch: Watch) -> Measured {
    watch.sample_threads();
    watch.stop()
}

/// Whether the block layer was counted; says why the test is skipped where it was not.
fn counted(test: &str, leaf: &str, measured: &Measured) -> bool {
    let reason = measured.reasons.get(leaf);
    if let Some(reason) = reason {
        crate::skipped!("{test}: {leaf}: {reason}");
    }
    reason.is_none()
}

#[test]
fn direct_reads_are_bios_and_requests_one_for_one() {
    const TEST: &str = "direct_reads_are_bios_and_requests_one_for_one";
    let Some(device) = LoopDevice::attach(TEST) else { return };
    let watch = watch(&device.path);
    read_direct(&device.path, 100);
    let m = finish(watch);
    if !counted(TEST, "bios", &m) {
        return;
    }
    assert_eq!(m.bios, Some(100));
    assert_eq!(m.bios_merged, Some(0));
    assert_eq!(m.requests_allocated, Some(100));
    assert_eq!(m.device_requests, Some(100));
    assert_eq!(m.diskstats_reads, Some(100));
    assert_eq!(m.diskstats_reads_merged, Some(0));
    assert_eq!(m.device_bytes, Some(100 * 4096));
}

#[test]
fn writes_and_reads_of_another_device_are_not_counted() {
    const TEST: &str = "writes_and_reads_of_another_device_are_not_counted";
    use std::os::unix::fs::FileExt;
    let (Some(device), Some(other)) = (LoopDevice::attach(TEST), LoopDevice::attach(TEST)) else { return };
    let watch = watch(&device.path);
    read_direct(&other.path, 50);
    let writer = fs::OpenOptions::new().write(true).open(&device.path).unwrap();
    writer.write_all_at(&[1; 65536], 0).unwrap();
    writer.sync_all().unwrap();
    let m = finish(watch);
    if !counted(TEST, "bios", &m) {
        return;
    }
    assert_eq!((m.bios, m.device_requests, m.diskstats_reads, m.device_bytes), (Some(0), Some(0), Some(0), Some(0)));
}

#[test]
fn buffered_reads_of_cached_pages_are_no_bios() {
    const TEST: &str = "buffered_reads_of_cached_pages_are_no_bios";
    let Some(device) = LoopDevice::attach(TEST) else { return };
    // Kept open: the last close of a block device drops its pages.
    let file = fs::File::open(&device.path).unwrap();
    let read_all = || std::io::copy(&mut &file, &mut std::io::sink()).unwrap();
    assert_eq!(read_all(), LoopDevice::BYTES);
    std::io::Seek::rewind(&mut &file).unwrap();
    let watch = watch(&device.path);
    assert_eq!(read_all(), LoopDevice::BYTES);
    let m = finish(watch);
    if counted(TEST, "bios", &m) {
        assert_eq!((m.bios, m.device_bytes), (Some(0), Some(0)));
    }
}

/// Reads `count` contiguous blocks of 4 KiB, `batch` SQEs at a time; `None` where the ring cannot be had.
fn read_by_ring(path: &Path, count: u32, batch: u32, sqpoll: bool, test: &str) -> Option<()> {
    use std::os::fd::AsRawFd;
    let file = open_direct(path);
    let mut memory = vec![0_u8; 4096 * (batch as usize + 1)];
    let start = memory.as_ptr().align_offset(4096);
    let mut builder = io_uring::IoUring::builder();
    if sqpoll {
        builder.setup_sqpoll(50);
    }
    let mut ring = match builder.build(batch.next_power_of_two()) {
        Ok(ring) => ring,
        Err(error) => {
            crate::skipped!("{test}: io_uring: {error}");
            return None;
        }
    };
    let fd = io_uring::types::Fd(file.as_raw_fd());
    for first in (0..count).step_by(batch as usize) {
        for slot in 0..batch.min(count - first) {
            let frame = &mut memory[start + slot as usize * 4096..][..4096];
            let entry = io_uring::opcode::Read::new(fd, frame.as_mut_ptr(), 4096)
                .offset(u64::from(first + slot) * 4096)
                .build();
            push(&mut ring, &entry);
        }
        let wanted = batch.min(count - first) as usize;
        ring.submit_and_wait(wanted).unwrap();
        let mut reaped = 0;
        while reaped < wanted {
            for completion in ring.completion() {
                assert_eq!(completion.result(), 4096);
                reaped += 1;
            }
        }
    }
    Some(())
}

#[expect(unsafe_code, reason = "a ring takes pointers")]
fn push(ring: &mut io_uring::IoUring, entry: &io_uring::squeue::Entry) {
    // SAFETY: the buffer of each entry outlives its completion, which the caller waits for.
    unsafe { ring.submission().push(entry).unwrap() };
}

#[test]
fn the_kernel_counts_every_sqe_of_a_ring_with_and_without_a_poller() {
    const TEST: &str = "the_kernel_counts_every_sqe_of_a_ring_with_and_without_a_poller";
    let Some(device) = LoopDevice::attach(TEST) else { return };
    for sqpoll in [false, true] {
        let watch = watch(&device.path);
        if read_by_ring(&device.path, 1000, 32, sqpoll, TEST).is_none() {
            continue;
        }
        let m = finish(watch);
        if counted(TEST, "sqes_traced", &m) {
            assert_eq!(m.sqes_traced, Some(1000), "sqpoll: {sqpoll}");
        }
        if counted(TEST, "bios", &m) {
            assert_eq!(m.bios, Some(1000), "sqpoll: {sqpoll}");
            let merged = m.bios_merged.unwrap();
            assert_eq!(m.requests_allocated, Some(1000 - merged), "sqpoll: {sqpoll}");
            assert_eq!(m.device_requests, m.diskstats_reads, "sqpoll: {sqpoll}");
            assert!(sqpoll || merged > 900, "a plugged batch of neighbours merges: {m:?}");
        }
    }
}

#[test]
fn a_poller_is_charged_apart_from_the_application() {
    const TEST: &str = "a_poller_is_charged_apart_from_the_application";
    let mut watch = Watch::open(&WatchOptions { counters: false, file: PathBuf::from(".") });
    watch.start();
    let ring: io_uring::IoUring = match io_uring::IoUring::builder().setup_sqpoll(1000).build(8) {
        Ok(ring) => ring,
        Err(error) => {
            crate::skipped!("{TEST}: io_uring: {error}");
            return;
        }
    };
    std::thread::sleep(Duration::from_millis(100));
    watch.sample_threads();
    drop(ring);
    let m = watch.stop();
    let sqpoll_s = m.sqpoll_s.unwrap();
    assert!(sqpoll_s > 0.0, "a poller that spins for 100 ms uses CPU: {m:?}");
    assert!(!m.reasons.contains_key("iowq_s") && m.user_s.is_some() && m.system_s.is_some());
}

#[test]
fn workers_of_io_wq_are_charged_apart_from_the_application() {
    use std::os::fd::AsRawFd;
    const TEST: &str = "workers_of_io_wq_are_charged_apart_from_the_application";
    let mut watch = Watch::open(&WatchOptions { counters: false, file: PathBuf::from(".") });
    watch.start();
    let mut ring = match io_uring::IoUring::new(8) {
        Ok(ring) => ring,
        Err(error) => {
            crate::skipped!("{TEST}: io_uring: {error}");
            return;
        }
    };
    let file = fs::File::open("/dev/zero").unwrap();
    let mut memory = vec![0_u8; 1 << 20];
    for _ in 0..20 {
        let entry = io_uring::opcode::Read::new(io_uring::types::Fd(file.as_raw_fd()), memory.as_mut_ptr(), 1 << 20)
            .build()
            .flags(io_uring::squeue::Flags::ASYNC);
        push(&mut ring, &entry);
        ring.submit_and_wait(1).unwrap();
        assert_eq!(ring.completion().next().unwrap().result(), 1 << 20);
    }
    watch.sample_threads();
    drop(ring);
    let m = watch.stop();
    assert!(m.iowq_s.unwrap() > 0.0, "workers that clear 20 MiB use CPU: {m:?}");
}

#[test]
fn without_counters_each_null_has_a_reason_and_clocks_are_measured() {
    let mut watch = Watch::open(&WatchOptions { counters: false, file: PathBuf::from(".") });
    watch.start();
    let m = finish(watch);
    assert_eq!((m.sqes_traced, m.bios, m.cycles, m.hardware_running_ns), (None, None, None, None));
    for leaf in ["sqes_traced", "bios", "bios_merged", "requests_allocated", "device_requests", "cycles"] {
        assert_eq!(m.reasons[leaf], "not asked for (counters = none)", "{leaf}");
    }
    assert!(m.user_s.is_some() && m.system_s.is_some());
    assert!(m.iowq_s.is_some() && m.sqpoll_s.is_some());
}

#[test]
fn every_null_has_a_reason_and_every_reason_a_null() {
    for (counters, started) in [(true, true), (false, true), (true, false)] {
        let mut watch = Watch::open(&WatchOptions { counters, file: PathBuf::from("/dev/shm") });
        if started {
            watch.start();
        }
        let m = watch.stop();
        let nulls = nulls(&m);
        let reasons: Vec<&str> = m.reasons.keys().map(String::as_str).collect();
        assert_eq!(nulls, reasons);
    }
}

/// The leaves that are `None`, in order of name.
fn nulls(m: &Measured) -> Vec<&'static str> {
    let counts = [
        ("sqes_traced", m.sqes_traced),
        ("bios", m.bios),
        ("bios_merged", m.bios_merged),
        ("requests_allocated", m.requests_allocated),
        ("device_requests", m.device_requests),
        ("device_bytes", m.device_bytes),
        ("diskstats_reads", m.diskstats_reads),
        ("diskstats_reads_merged", m.diskstats_reads_merged),
        ("cycles", m.cycles),
        ("instructions", m.instructions),
        ("cache_references", m.cache_references),
        ("cache_misses", m.cache_misses),
        ("hardware_enabled_ns", m.hardware_enabled_ns),
        ("hardware_running_ns", m.hardware_running_ns),
    ];
    let times = [("user_s", m.user_s), ("system_s", m.system_s), ("sqpoll_s", m.sqpoll_s), ("iowq_s", m.iowq_s)];
    let mut names: Vec<&str> = counts.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
    names.extend(times.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name));
    names.sort_unstable();
    names
}
