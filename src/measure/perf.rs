//! Perf counters in general: what an errno of perf_event_open(2) means, CPUs, limits, scaling.

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

use super::sys::Reading;

/// Where the kernel keeps the level of privilege that perf events need.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// What a counter watches: it decides which privilege it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// This process, user and kernel.
    Process,
    /// Every process, one CPU at a time.
    System,
}

/// The level of kernel.perf_event_paranoid; `None` where the kernel has no perf events.
pub fn paranoid() -> Option<i32> {
    fs::read_to_string(PARANOID).ok()?.trim().parse().ok()
}

/// Why a counter could not be opened, and what to do.
pub(crate) fn open_reason(error: &io::Error, scope: Scope, paranoid: Option<i32>) -> String {
    let errno = error.raw_os_error().map(Errno::from_raw);
    match errno {
        Some(Errno::EACCES | Errno::EPERM) => {
            let (what, level) = match scope {
                Scope::Process => ("counting the kernel's part of this process", 1),
                Scope::System => ("counting on whole CPUs", 0),
            };
            let now = paranoid.map_or_else(|| "unknown".to_owned(), |level| level.to_string());
            if paranoid.is_some_and(|now| now <= level) {
                // A container's seccomp filter answers EPERM whatever the level.
                return format!(
                    "perf_event_open was refused ({error}) although kernel.perf_event_paranoid is {now}: a security \
                     module or a container's seccomp filter forbids it; run outside the container or allow it there"
                );
            }
            format!(
                "{what} is not permitted (kernel.perf_event_paranoid is {now}); run as root or with CAP_PERFMON, \
                 or: sudo sysctl kernel.perf_event_paranoid={level}"
            )
        }
        Some(Errno::ENOENT | Errno::EOPNOTSUPP | Errno::ENODEV) => {
            "this CPU offers no such hardware counter: there is no PMU, which is usual in a virtual machine; \
             give the guest a virtual PMU or run on bare metal"
                .to_owned()
        }
        Some(Errno::EMFILE) => {
            "this process may open no more files (a counter is one per CPU); raise the limit: ulimit -n 65536"
                .to_owned()
        }
        Some(Errno::ENFILE) => {
            "the system may open no more files; raise the limit: sudo sysctl fs.file-max=1000000".to_owned()
        }
        Some(Errno::ENOSYS) => "this kernel has no perf events; one built with CONFIG_PERF_EVENTS has".to_owned(),
        Some(Errno::EBUSY) => "another tool holds the PMU for itself; stop it and run again".to_owned(),
        _ => format!("perf_event_open failed: {error}"),
    }
}

/// CPUs that are online, or why they are not known.
pub(crate) fn online_cpus() -> Result<Vec<usize>, String> {
    let file = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    parse_cpu_list(text.trim()).ok_or_else(|| format!("{file} says '{}'", text.trim()))
}

/// Parses a list as the kernel writes it, such as `0-3,8`.
pub fn parse_cpu_list(text: &str) -> Option<Vec<usize>> {
    /// More CPUs than any kernel supports: a longer range is nonsense and would only fill memory.
    const CPUS_MAX: usize = 1 << 16;
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Raises the soft limit of open files towards the hard one, for `more` descriptors on top of what is usual.
/// What fails here shows up as EMFILE, which has a reason of its own.
pub(crate) fn make_room_for_descriptors(more: u64) {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = more.saturating_add(512).min(hard);
    if soft < wanted {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
    }
}

/// Opens a hardware counter of this process and its later threads, user and kernel.
///
/// Each counter stands alone: inheritance does not work with PERF_FORMAT_GROUP on every kernel
/// (perf_event_open(2), `inherit`), so each is scaled by times of its own.
pub(crate) fn open_hardware(kind: Hardware) -> io::Result<Counter> {
    let mut builder = Builder::new().kind(kind);
    builder.inherit(true).include_kernel();
    builder.build()
}

/// The count that a counter would have reached on its unit all the time; `None` if it never was there.
pub(crate) fn scale(reading: Reading) -> Option<u64> {
    match reading.running_ns {
        0 => None,
        running if running >= reading.enabled_ns => Some(reading.count),
        running => {
            let scaled = u128::from(reading.count) * u128::from(reading.enabled_ns) / u128::from(running);
            Some(u64::try_from(scaled).unwrap_or(u64::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn reading(count: u64, enabled_ns: u64, running_ns: u64) -> Reading {
        Reading { count, enabled_ns, running_ns }
    }

    #[test]
    fn a_counter_that_never_ran_counted_nothing_rather_than_zero() {
        assert_eq!(scale(reading(0, 1_000, 0)), None);
        assert_eq!(scale(reading(0, 1_000, 1)), Some(0));
    }

    #[test]
    fn scaling_does_not_overflow() {
        assert_eq!(scale(reading(1 << 60, 1 << 40, 1 << 39)), Some(1 << 61));
        assert_eq!(scale(reading(u64::MAX, u64::MAX, 1)), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn a_scaled_count_is_never_smaller(count: u64, enabled: u64, running in 1_u64..) {
            prop_assert!(scale(reading(count, enabled, running)).unwrap() >= count);
        }

        #[test]
        fn no_cpu_list_panics(text in "[0-9,\\- a]{0,30}") {
            let _ = parse_cpu_list(&text);
        }
    }

    #[test]
    fn cpu_lists_are_read() {
        assert_eq!(parse_cpu_list("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpu_list("3"), Some(vec![3]));
        assert_eq!(parse_cpu_list(""), None);
        assert_eq!(parse_cpu_list("3-1"), None);
        assert_eq!(parse_cpu_list("0-99999999999"), None);
    }

    #[test]
    fn each_errno_has_its_own_remedy() {
        let reason = |errno: Errno, scope, level| open_reason(&io::Error::from(errno), scope, level);
        assert!(reason(Errno::EACCES, Scope::System, Some(2)).contains("sudo sysctl kernel.perf_event_paranoid=0"));
        assert!(reason(Errno::EACCES, Scope::Process, Some(2)).contains("sudo sysctl kernel.perf_event_paranoid=1"));
        assert!(reason(Errno::EPERM, Scope::System, Some(-1)).contains("seccomp"));
        assert!(reason(Errno::ENOENT, Scope::Process, Some(2)).contains("no PMU"));
        assert!(reason(Errno::EOPNOTSUPP, Scope::Process, Some(2)).contains("no PMU"));
        assert!(reason(Errno::EMFILE, Scope::System, Some(2)).contains("ulimit -n"));
        assert!(reason(Errno::ENOSYS, Scope::System, None).contains("CONFIG_PERF_EVENTS"));
    }
}
