//! CPU time of the kernel's io_uring threads of this process: the SQPOLL thread and the io-wq workers.
//!
//! Since Linux 5.12 they are threads of the process (`iou-sqp-PID`, `iou-wrk-PID` in /proc/self/task), so
//! RUSAGE_SELF has their time among all the rest.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nix::time::{ClockId, clock_gettime};

/// Flag of a task that io_uring created (`PF_IO_WORKER` in the kernel's sched.h). A thread may call itself
/// `iou-sqp-1`; it cannot give itself this flag.
const PF_IO_WORKER: u64 = 0x10;

/// Where this process's threads are listed.
pub(crate) const TASKS: &str = "/proc/self/task";

/// Which of io_uring's kernel threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelThread {
    /// Polls a submission queue.
    SqPoll,
    /// Carries out requests that would block.
    IoWorker,
}

/// One of io_uring's threads and its CPU time so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadTime {
    /// What it does.
    pub kind: KernelThread,
    /// CPU time so far, in nanoseconds.
    pub cpu_ns: u64,
}

/// The name and the flags of a task, from its `stat` (proc(5)).
#[derive(Debug, PartialEq, Eq)]
struct TaskStat<'a> {
    comm: &'a str,
    flags: u64,
}

/// io_uring's threads by thread id, or why they are not known. One that ends while being looked at is left out.
pub(crate) fn sample(tasks: &Path) -> Result<BTreeMap<i32, ThreadTime>, String> {
    let unreadable = |e: std::io::Error| {
        format!("{}: {e}; threads cannot be told apart without /proc (mount -t proc proc /proc)", tasks.display())
    };
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir(tasks).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read(entry.path().join("stat")) else { continue };
        let stat = String::from_utf8_lossy(&stat);
        let Some(kind) = parse_stat(&stat).and_then(kind_of) else { continue };
        match cpu_ns(tid, &entry.path()) {
            Ok(cpu_ns) => {
                threads.insert(tid, ThreadTime { kind, cpu_ns });
            }
            Err(_) if !entry.path().exists() => {}
            Err(reason) => return Err(reason),
        }
    }
    Ok(threads)
}

/// io_uring's threads of this process now, by thread id, or why they are not known.
pub fn kernel_threads() -> Result<Vec<(i32, KernelThread)>, String> {
    Ok(sample(Path::new(TASKS))?.into_iter().map(|(tid, thread)| (tid, thread.kind)).collect())
}

/// A thread's CPU time. Its clock is exact even while it runs on another CPU; `schedstat` lags by up to a tick.
fn cpu_ns(tid: i32, task: &Path) -> Result<u64, String> {
    let from_clock = clock_gettime(thread_clock(tid)).ok().and_then(|time| {
        Some(u64::try_from(time.tv_sec()).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec()).ok()?)
    });
    if let Some(ns) = from_clock {
        return Ok(ns);
    }
    let file = task.join("schedstat");
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    parse_schedstat(&text)
        .ok_or_else(|| format!("{} says '{}'; a kernel with CONFIG_SCHED_INFO has it", file.display(), text.trim()))
}

/// The CPU clock of a thread of this process: what pthread_getcpuclockid(3) computes, from a thread id
/// (`make_thread_cpuclock` with CPUCLOCK_SCHED in the kernel's posix-timers.h).
fn thread_clock(tid: i32) -> ClockId {
    const CPUCLOCK_SCHED: i32 = 2;
    const CPUCLOCK_PERTHREAD: i32 = 4;
    ClockId::from_raw((!tid << 3) | CPUCLOCK_SCHED | CPUCLOCK_PERTHREAD)
}

fn kind_of(stat: TaskStat<'_>) -> Option<KernelThread> {
    if stat.flags & PF_IO_WORKER == 0 {
        return None;
    }
    if stat.comm.starts_with("iou-sqp-") {
        Some(KernelThread::SqPoll)
    } else if stat.comm.starts_with("iou-wrk-") {
        Some(KernelThread::IoWorker)
    } else {
        None
    }
}

/// Parses `tid (comm) state ppid pgrp session tty tpgid flags ...`; comm may hold spaces and parentheses.
fn parse_stat(text: &str) -> Option<TaskStat<'_>> {
    let open = text.find('(')?;
    let close = text.rfind(')')?;
    let comm = text.get(open + 1..close)?;
    let flags = text.get(close + 1..)?.split_ascii_whitespace().nth(6)?.parse().ok()?;
    Some(TaskStat { comm, flags })
}

/// Parses `run_ns wait_ns timeslices`.
fn parse_schedstat(text: &str) -> Option<u64> {
    let mut fields = text.split_ascii_whitespace();
    let run = fields.next()?.parse().ok()?;
    fields.next()?;
    Some(run)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn stat_line(comm: &str, flags: u64) -> String {
        format!("77 ({comm}) S 1 2 3 0 -1 {flags} 104 0 1 0 5 6 0 0 20 0 1 0 90582 0 0\n")
    }

    #[test]
    fn odd_names_are_read_whole() {
        for comm in ["iou-sqp-77", "a b", "a) S 1 2", "((", ") R (", ""] {
            let line = stat_line(comm, 0x50);
            assert_eq!(parse_stat(&line), Some(TaskStat { comm, flags: 0x50 }), "{comm}");
        }
    }

    #[test]
    fn only_a_task_that_io_uring_made_is_its_thread() {
        let kind = |comm: &str, flags| kind_of(parse_stat(&stat_line(comm, flags)).unwrap());
        assert_eq!(kind("iou-sqp-77", PF_IO_WORKER), Some(KernelThread::SqPoll));
        assert_eq!(kind("iou-wrk-77", PF_IO_WORKER | 0x40), Some(KernelThread::IoWorker));
        assert_eq!(kind("iou-sqp-77", 0x40), None);
        assert_eq!(kind("worker", PF_IO_WORKER), None);
    }

    #[test]
    fn schedstat_is_run_wait_slices() {
        assert_eq!(parse_schedstat("812146 164027 2\n"), Some(812_146));
        assert_eq!(parse_schedstat("812146\n"), None);
        assert_eq!(parse_schedstat(""), None);
    }

    #[test]
    fn the_clock_of_this_thread_is_the_one_that_libc_names() {
        let tid = nix::unistd::gettid().as_raw();
        let before = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        let ours = clock_gettime(thread_clock(tid)).unwrap();
        let after = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        assert!(before <= ours && ours <= after);
    }

    #[test]
    fn a_missing_proc_is_a_reason() {
        let reason = sample(Path::new("/nonexistent/task")).unwrap_err();
        assert!(reason.contains("mount -t proc"), "{reason}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = parse_stat(&text);
            let _ = parse_schedstat(&text);
        }
    }
}
