//! io_uring: whether a ring can be had, what it offers, and whether it polls.

use std::fs;
use std::io;

use io_uring::{IoUring, Parameters, Probe, opcode};
use nix::errno::Errno;

use super::Check;
use crate::measure::{self, KernelThread};

/// `sq_thread_idle` of the rings that are set up here, in milliseconds.
const IDLE_MS: u32 = 50;

/// What it costs that no ring polls.
const SQPOLL_COST: &str = "the backend uring-sqpoll is refused";

/// What it costs that a poller cannot be bound.
const SQ_AFF_COST: &str = "--cpus cannot confine the poller: the arm on one CPU is refused under uring-sqpoll";

/// The kernel's switch.
const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

pub(super) fn checks() -> Vec<Check> {
    let setup = setup();
    if setup.needed {
        let without = |name, cost| Check::missing(name, "no ring", cost, "see io_uring above");
        let (sqpoll, sq_affinity) = (without("SQPOLL", SQPOLL_COST), without("SQ_AFF", SQ_AFF_COST));
        return vec![setup, sqpoll, sq_affinity];
    }
    vec![setup, sqpoll(), sq_affinity()]
}

fn setup() -> Check {
    let switch = match fs::read_to_string(DISABLED) {
        Ok(value) => format!("io_uring_disabled = {}", value.trim()),
        Err(_) => "no switch io_uring_disabled".to_owned(),
    };
    let ring = match IoUring::new(8) {
        Ok(ring) => ring,
        Err(error) => {
            return Check::needed(
                "io_uring",
                format!("a ring cannot be set up: {error} ({switch})"),
                "no backend but pread and builtin runs",
                setup_remedy(&error),
            );
        }
    };
    let mut probe = Probe::new();
    let reads = ring.submitter().register_probe(&mut probe).map(|()| probe.is_supported(opcode::Read::CODE));
    let features = features(ring.params()).join(" ");
    match reads {
        Ok(true) => Check::ok("io_uring", format!("a ring was set up ({switch}); features: {features}")),
        Ok(false) => Check::needed(
            "io_uring",
            format!("a ring was set up ({switch}), but it cannot read (IORING_OP_READ came with Linux 5.6)"),
            "no backend but pread and builtin runs",
            "boot a newer kernel",
        ),
        Err(error) => Check::warn(
            "io_uring",
            format!("a ring was set up ({switch}), but does not tell its operations: {error}; features: {features}"),
            "whether it can read is seen only when it does",
            "boot Linux 5.6 or newer, or allow io_uring_register in the container's seccomp profile",
        ),
    }
}

/// What mends a ring that cannot be set up.
fn setup_remedy(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM | Errno::EACCES) => {
            "sudo sysctl kernel.io_uring_disabled=0\n\
             in a container: run it with a seccomp profile that allows io_uring (docker run --security-opt seccomp=unconfined)"
        }
        Some(Errno::ENOSYS) => {
            "boot a kernel with CONFIG_IO_URING (Linux 5.6 or newer), or allow io_uring_setup in the seccomp profile"
        }
        Some(Errno::ENOMEM) => "ulimit -l unlimited (kernels before 5.12 charge rings to RLIMIT_MEMLOCK)",
        Some(Errno::EMFILE | Errno::ENFILE) => "ulimit -n 65536",
        _ => "see io_uring_setup(2) for this error",
    }
    .to_owned()
}

/// The features of the kernel's io_uring, by the names of its header.
fn features(params: &Parameters) -> Vec<&'static str> {
    let all = [
        (params.is_feature_single_mmap(), "SINGLE_MMAP"),
        (params.is_feature_nodrop(), "NODROP"),
        (params.is_feature_submit_stable(), "SUBMIT_STABLE"),
        (params.is_feature_rw_cur_pos(), "RW_CUR_POS"),
        (params.is_feature_cur_personality(), "CUR_PERSONALITY"),
        (params.is_feature_fast_poll(), "FAST_POLL"),
        (params.is_feature_poll_32bits(), "POLL_32BITS"),
        (params.is_feature_sqpoll_nonfixed(), "SQPOLL_NONFIXED"),
        (params.is_feature_ext_arg(), "EXT_ARG"),
        (params.is_feature_native_workers(), "NATIVE_WORKERS"),
        (params.is_feature_resource_tagging(), "RSRC_TAGS"),
        (params.is_feature_skip_cqe_on_success(), "CQE_SKIP"),
        (params.is_feature_linked_file(), "LINKED_FILE"),
        (params.is_feature_recvsend_bundle(), "RECVSEND_BUNDLE"),
        (params.is_feature_min_timeout(), "MIN_TIMEOUT"),
        (params.is_feature_no_iowait(), "NO_IOWAIT"),
    ];
    all.into_iter().filter(|(there, _)| *there).map(|(_, name)| name).collect()
}

fn sqpoll() -> Check {
    let others = poller_tids().unwrap_or_default();
    let ring: IoUring = match IoUring::builder().setup_sqpoll(IDLE_MS).build(8) {
        Ok(ring) => ring,
        Err(error) => return Check::missing("SQPOLL", format!("refused: {error}"), SQPOLL_COST, sqpoll_remedy(&error)),
    };
    let tid = patiently(|| new_poller(&others)).transpose();
    drop(ring);
    match tid {
        Ok(None) => Check::warn(
            "SQPOLL",
            "a polling ring was set up, but its thread is none of this process's",
            "the poller's CPU time cannot be charged: sqpoll_s would be wrong",
            "boot Linux 5.12 or newer, where the poller is a thread of the process",
        ),
        Ok(Some(tid)) => Check::ok("SQPOLL", format!("a polling ring was set up; its thread was {tid}")),
        Err(reason) => Check::warn(
            "SQPOLL",
            format!("a polling ring was set up, but its thread cannot be looked for: {reason}"),
            "the poller's CPU time cannot be charged: sqpoll_s stays null",
            "mount -t proc proc /proc",
        ),
    }
}

fn sqpoll_remedy(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM | Errno::EACCES) => {
            "run as root or with CAP_SYS_NICE, or boot Linux 5.13 or newer, which asks for no privilege".to_owned()
        }
        _ => setup_remedy(error),
    }
}

/// Binds a poller to one CPU and reads back where it may run.
fn sq_affinity() -> Check {
    let Some(cpu) = super::machine::allowed_cpus().and_then(|cpus| cpus.last().copied()) else {
        return Check::missing("SQ_AFF", "this process's CPUs are not known", SQ_AFF_COST, "mount -t proc proc /proc");
    };
    let others = poller_tids().unwrap_or_default();
    let ring: IoUring = match IoUring::builder().setup_sqpoll(IDLE_MS).setup_sqpoll_cpu(cpu as u32).build(8) {
        Ok(ring) => ring,
        Err(error) => return Check::missing("SQ_AFF", format!("refused: {error}"), SQ_AFF_COST, sqpoll_remedy(&error)),
    };
    let tid = patiently(|| new_poller(&others)).and_then(Result::ok);
    let mut allowed = None;
    // The thread binds itself after it has named itself.
    patiently(|| {
        allowed = cpus_allowed(tid?);
        (allowed.as_deref() == Some(&*cpu.to_string())).then_some(())
    });
    drop(ring);
    match allowed {
        Some(list) if list == cpu.to_string() => {
            Check::ok("SQ_AFF", format!("a poller bound to CPU {cpu} stays there"))
        }
        Some(list) => Check::warn(
            "SQ_AFF",
            format!("a poller bound to CPU {cpu} may run on {list}"),
            SQ_AFF_COST,
            "look for a cpuset or a tool that moves threads",
        ),
        None => Check::warn(
            "SQ_AFF",
            format!("a poller bound to CPU {cpu} was set up, but its mask cannot be read"),
            SQ_AFF_COST,
            "boot Linux 5.12 or newer, where the poller is a thread of the process",
        ),
    }
}

/// Thread ids of this process's pollers.
fn poller_tids() -> Result<Vec<i32>, String> {
    let threads = measure::kernel_threads()?;
    Ok(threads.into_iter().filter(|(_, kind)| *kind == KernelThread::SqPoll).map(|(tid, _)| tid).collect())
}

/// A poller that is none of `others`: those of rings that are gone live on for a moment.
fn new_poller(others: &[i32]) -> Option<Result<i32, String>> {
    poller_tids().map(|tids| tids.into_iter().find(|tid| !others.contains(tid))).transpose()
}

/// Asks again for up to 50 ms: a new thread needs a moment to set itself up.
fn patiently<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..50 {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    None
}

fn cpus_allowed(tid: i32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/self/task/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(|list| list.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_setup_has_its_own_remedy() {
        let remedy = |errno: Errno| setup_remedy(&io::Error::from(errno));
        assert!(remedy(Errno::EPERM).contains("io_uring_disabled=0"));
        assert!(remedy(Errno::ENOSYS).contains("CONFIG_IO_URING"));
        assert!(remedy(Errno::ENOMEM).contains("ulimit -l"));
        assert!(remedy(Errno::EMFILE).contains("ulimit -n"));
    }
}
