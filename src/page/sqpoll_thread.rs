//! The SQPOLL thread of a ring, as /proc shows it.

use std::fs;
use std::os::fd::RawFd;

use super::report::SqpollReport;

/// Reads the poller of the ring behind `ring_fd`. What /proc does not tell stays zero or `None`.
pub fn read(ring_fd: RawFd) -> SqpollReport {
    let fdinfo = fs::read_to_string(format!("/proc/self/fdinfo/{ring_fd}")).unwrap_or_default();
    let mut report = parse_fdinfo(&fdinfo);
    let task = format!("/proc/self/task/{}", report.tid);
    if let Ok(schedstat) = fs::read_to_string(format!("{task}/schedstat")) {
        report.cpu_ns = schedstat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    }
    if let Ok(status) = fs::read_to_string(format!("{task}/status")) {
        report.cpus_allowed = field(&status, "Cpus_allowed_list").unwrap_or_default().to_owned();
    }
    report
}

/// Parses the ring's fdinfo (io_uring/fdinfo.c): `SqThread`, and since Linux 6.9 `SqWorkTime` and `SqTotalTime` in
/// microseconds.
fn parse_fdinfo(text: &str) -> SqpollReport {
    let number = |name| field(text, name).and_then(|value| value.parse().ok());
    SqpollReport {
        tid: field(text, "SqThread").and_then(|value| value.parse().ok()).unwrap_or(0),
        work_us: number("SqWorkTime"),
        total_us: number("SqTotalTime"),
        ..SqpollReport::default()
    }
}

/// The value of the first line `name:` of a /proc file.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fdinfo_with_and_without_the_time_split() {
        let report = parse_fdinfo("pos:\t0\nSqThread:\t42\nSqThreadCpu:\t1\nSqTotalTime:\t900\nSqWorkTime:\t30\n");
        assert_eq!((report.tid, report.work_us, report.total_us), (42, Some(30), Some(900)));
        let report = parse_fdinfo("SqThread:\t-1\n");
        assert_eq!((report.tid, report.work_us, report.total_us), (0, None, None));
    }
}
