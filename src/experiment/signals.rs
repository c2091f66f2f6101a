//! Signals that ask the program to stop, taken as events instead of sudden death.

use std::io;
use std::thread;

use nix::sys::signal::{SigSet, Signal};

const STOPPING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// From now on hands the number of a stopping signal to `report`, from a thread of its own. The second one ends the
/// program at once, in case that the first has no effect. A signal that whoever started us had ignored (as nohup does
/// with SIGHUP) stays so.
///
/// Threads and processes that are started later inherit the blocked signals: the terminal's Ctrl-C goes to all
/// processes of the group, and it is the runner that ends its child, not the signal.
pub fn watch(report: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let ignored = ignored_mask();
    let watched: SigSet = STOPPING.into_iter().filter(|&s| ignored & (1 << (s as u32 - 1)) == 0).collect();
    watched.thread_block()?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = next(&watched) {
            report(signal as i32);
        }
        if let Some(signal) = next(&watched) {
            std::process::exit(128 + signal as i32);
        }
    })?;
    Ok(())
}

fn next(watched: &SigSet) -> Option<Signal> {
    loop {
        match watched.wait() {
            Ok(signal) => return Some(signal),
            Err(nix::Error::EINTR) => {}
            Err(_) => return None,
        }
    }
}

/// `SigIgn` of /proc/self/status: bit n - 1 for signal n.
fn ignored_mask() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}
