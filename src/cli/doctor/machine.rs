//! The machine: kernel, CPUs, memory, limits, privileges.

use std::fs;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{Pid, geteuid};

use super::{Check, Subject};
use crate::measure::environment::{Environment, memory_kib};

/// Since this kernel the poller and the io-wq workers are threads of the process.
const THREADS_SINCE: (u32, u32) = (5, 12);

/// Descriptors that counters take on each CPU.
const COUNTERS_PER_CPU: u64 = 5;

pub(super) fn checks(subject: &Subject) -> Vec<Check> {
    let environment = Environment::read(subject.db.as_deref().filter(|db| db.is_file()).or(Some(&subject.folder)));
    vec![
        kernel(&environment),
        privileges(),
        cpus(&environment),
        governor(&environment),
        memory(&environment, subject),
        huge_pages(&environment),
        locked_memory(&environment),
        descriptors(),
    ]
}

fn kernel(environment: &Environment) -> Check {
    let release = environment.kernel_release.clone().unwrap_or_else(|| "unknown".to_owned());
    let hypervisor = match environment.hypervisor.as_deref() {
        None | Some("none") => String::new(),
        Some(name) => format!(", in a virtual machine ({name})"),
    };
    let architecture = environment.architecture.as_deref().unwrap_or("an unknown architecture");
    let found = format!("Linux {release} on {architecture}{hypervisor}");
    match parse_release(&release) {
        Some(version) if version >= THREADS_SINCE => Check::ok("kernel", found),
        Some(_) => Check::warn(
            "kernel",
            found,
            "before Linux 5.12 the poller and the io-wq workers are no threads of the process: sqpoll_s and iowq_s miss them",
            "boot Linux 5.12 or newer (6.5 for cachestat)",
        ),
        None => Check::warn("kernel", found, "its version cannot be judged", "mount -t proc proc /proc"),
    }
}

/// Major and minor of a release such as `6.18.44-generic`.
fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn privileges() -> Check {
    let euid = geteuid();
    let effective = effective_capabilities();
    let has = |bit: u32| effective.is_some_and(|mask| mask & (1 << bit) != 0);
    let (sys_admin, perfmon) = (has(21), has(38));
    let yes = |there: bool| if there { "yes" } else { "no" };
    let found = format!("euid {euid}, CAP_PERFMON {}, CAP_SYS_ADMIN {}", yes(perfmon), yes(sys_admin));
    if perfmon || sys_admin {
        Check::ok("privileges", found)
    } else {
        Check::warn(
            "privileges",
            found,
            "counters are at the mercy of perf_event_paranoid and of tracefs's mode (see below); all else works",
            "sudo ioscope ...",
        )
    }
}

/// The effective capabilities of this process, as a mask.
fn effective_capabilities() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// The CPUs that this process may run on.
pub(super) fn allowed_cpus() -> Option<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0)).ok()?;
    Some((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

fn cpus(environment: &Environment) -> Check {
    let Some(allowed) = allowed_cpus() else {
        return Check::warn("CPUs", "not known", "a poller may compete for the only CPU", "taskset -p $$");
    };
    let model = environment.cpu_model.as_deref().unwrap_or("unknown model");
    let online = environment.cpus_online.as_deref().unwrap_or("?");
    let smt = match environment.smt {
        Some(true) => ", two or more share a core (SMT)",
        Some(false) => ", no SMT",
        None => "",
    };
    let found = format!("{} to run on, {online} online{smt}; {model}", allowed.len());
    if allowed.len() > 1 {
        Check::ok("CPUs", found)
    } else {
        Check::warn(
            "CPUs",
            found,
            "an SQPOLL thread competes with the query for the one CPU, and so does everything else that runs",
            "taskset -c 0-1 ioscope ..., or a machine with two CPUs",
        )
    }
}

fn governor(environment: &Environment) -> Check {
    match environment.cpu_governor.as_deref() {
        Some("performance") => Check::ok("CPU governor", "performance"),
        Some(other) => Check::warn(
            "CPU governor",
            other,
            "the clock follows the load: CPU times of runs that wait for the device are longer than they need be",
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        ),
        None => Check::ok("CPU governor", "none: this kernel does not set the frequency (usual in a virtual machine)"),
    }
}

fn memory(environment: &Environment, subject: &Subject) -> Check {
    let Some(available) = memory_kib("MemAvailable").map(|kib| kib << 10) else {
        return Check::warn(
            "memory",
            "not known",
            "whether a warm run is possible is not known",
            "mount -t proc proc /proc",
        );
    };
    let total = environment.memory_bytes.unwrap_or(available);
    let (what, file) = match (&subject.db, environment.file_bytes) {
        (Some(db), Some(bytes)) if db.is_file() => ("the database has", bytes),
        _ => ("a database of SF 1 has", super::storage::SF1_BYTES),
    };
    let mib = |bytes: u64| bytes >> 20;
    let found = format!("{} MiB, {} available; {what} {} MiB", mib(total), mib(available), mib(file));
    if file <= available {
        Check::ok("memory", found)
    } else {
        Check::warn(
            "memory",
            found,
            "the database does not fit the page cache: --cache warm is refused, and buffered arms read the device",
            "a smaller data set: ioscope dataset tpch --scale 0.1",
        )
    }
}

fn huge_pages(environment: &Environment) -> Check {
    match environment.transparent_hugepages.as_deref() {
        Some(setting @ ("always" | "madvise")) => Check::ok("huge pages", format!("transparent huge pages: {setting}")),
        other => Check::missing(
            "huge pages",
            format!("transparent huge pages: {}", other.unwrap_or("not in this kernel")),
            "--pool huge gets normal pages (the effective mode says so): more system time, smaller requests",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
    }
}

fn limit(resource: Resource) -> Option<(u64, u64)> {
    getrlimit(resource).ok()
}

fn shown(limit: u64, unit_shift: u32, unit: &str) -> String {
    if limit == nix::libc::RLIM_INFINITY { "unlimited".to_owned() } else { format!("{}{unit}", limit >> unit_shift) }
}

fn locked_memory(environment: &Environment) -> Check {
    const WANTED_BYTES: u64 = 8 << 20;
    let Some((soft, hard)) = limit(Resource::RLIMIT_MEMLOCK) else {
        return Check::warn("RLIMIT_MEMLOCK", "not known", "a ring may be refused with ENOMEM", "ulimit -l unlimited");
    };
    let found = format!("{} (hard: {})", shown(soft, 10, " KiB"), shown(hard, 10, " KiB"));
    let charged = environment.kernel_release.as_deref().and_then(parse_release).is_none_or(|v| v < THREADS_SINCE);
    if soft >= WANTED_BYTES || !charged || geteuid().is_root() {
        let note = if charged { "" } else { "; rings are not charged to it on this kernel" };
        Check::ok("RLIMIT_MEMLOCK", found + note)
    } else {
        Check::warn(
            "RLIMIT_MEMLOCK",
            found,
            "before Linux 5.12 rings are charged to it: a large one is refused with ENOMEM",
            "ulimit -l unlimited",
        )
    }
}

fn descriptors() -> Check {
    let Some((soft, hard)) = limit(Resource::RLIMIT_NOFILE) else {
        return Check::warn("RLIMIT_NOFILE", "not known", "counters may be refused with EMFILE", "ulimit -n 65536");
    };
    let cpus = allowed_cpus().map_or(1, |cpus| cpus.len() as u64);
    let wanted = cpus * COUNTERS_PER_CPU + 64;
    let found =
        format!("{} (hard: {}); counters take {}", shown(soft, 0, ""), shown(hard, 0, ""), cpus * COUNTERS_PER_CPU);
    if hard >= wanted {
        Check::ok("RLIMIT_NOFILE", found)
    } else {
        Check::warn("RLIMIT_NOFILE", found, "block counters are refused with EMFILE and stay null", "ulimit -n 65536")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_all_kinds_are_read() {
        assert_eq!(parse_release("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(parse_release("5.4.0-150-generic"), Some((5, 4)));
        assert_eq!(parse_release("7.0-rc1"), Some((7, 0)));
        assert_eq!(parse_release("unknown"), None);
        assert_eq!(parse_release(""), None);
    }
}
