//! Tracepoints as perf counters: finding their ids in tracefs, opening and filtering them.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use perf_event::hooks::sys::bindings::PERF_TYPE_TRACEPOINT;
use perf_event::{Builder, Counter};

use super::device::BlockDevice;
use super::{mount, sys};

/// Where tracefs is mounted since Linux 4.1.
pub const TRACEFS: &str = "/sys/kernel/tracing";
/// Where it lies within debugfs.
pub const TRACEFS_OLD: &str = "/sys/kernel/debug/tracing";

/// The names that the event "an SQE was submitted" has had: since Linux 6.3, and before.
pub const SUBMIT_EVENTS: [&str; 2] = ["io_uring/io_uring_submit_req", "io_uring/io_uring_submit_sqe"];

/// Finds tracefs by what is mounted; the folder, or why there is none and what to do.
pub fn tracefs() -> Result<PathBuf, String> {
    let mounts = mount::all();
    let mounted = |point: &str| mounts.iter().any(|m| m.fs_type == "tracefs" && m.point == Path::new(point));
    if mounted(TRACEFS) {
        return Ok(PathBuf::from(TRACEFS));
    }
    if mounted(TRACEFS_OLD) || fs::metadata(Path::new(TRACEFS_OLD).join("events")).is_ok() {
        return Ok(PathBuf::from(TRACEFS_OLD));
    }
    match mounts.into_iter().find(|m| m.fs_type == "tracefs") {
        Some(elsewhere) => Ok(elsewhere.point),
        None => Err(format!("tracefs is not mounted; sudo mount -t tracefs tracefs {TRACEFS}")),
    }
}

/// The id of the first of `names` (as `group/event`) that this kernel has, or why none can be used and what to do.
pub fn event_id(tracefs: &Path, names: &[&str]) -> Result<u64, String> {
    for name in names {
        let file = tracefs.join("events").join(name).join("id");
        match fs::read_to_string(&file) {
            Ok(text) => {
                return text.trim().parse().map_err(|_| format!("{} says '{}'", file.display(), text.trim()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(&file, tracefs, &error)),
        }
    }
    let known = names.first().copied().unwrap_or_default();
    Err(format!(
        "this kernel has no tracepoint {}; a kernel with CONFIG_EVENT_TRACING and that subsystem has it",
        known.replace('/', ":")
    ))
}

fn unreadable(file: &Path, tracefs: &Path, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied {
        format!(
            "tracefs at {} may be read by root alone; run as root, or give your group access: \
             sudo mount -o remount,mode=750,gid=$(id -g) {}",
            tracefs.display(),
            tracefs.display()
        )
    } else {
        format!("{}: {error}", file.display())
    }
}

/// Counts an event of this process, its later threads and the kernel's workers for it.
pub(crate) fn open_for_process(id: u64) -> io::Result<Counter> {
    let mut builder = Builder::new();
    builder.inherit(true).include_kernel();
    set_tracepoint(&mut builder, id);
    builder.build()
}

/// Counts an event of every process, one counter for each of `cpus`; only reads of `device`.
pub(crate) fn open_for_device(id: u64, cpus: &[usize], device: &BlockDevice) -> io::Result<Vec<Counter>> {
    // `rwbs` starts with the operation unless a flush precedes it, which no read has; "*R*" would let "ZR"
    // (zone reset) pass.
    let filter = CString::new(format!("dev == {} && rwbs ~ \"R*\"", device.kernel_dev())).map_err(io::Error::other)?;
    cpus.iter()
        .map(|&cpu| {
            let mut builder = Builder::new().any_pid().one_cpu(cpu);
            builder.include_kernel();
            set_tracepoint(&mut builder, id);
            let counter = builder.build()?;
            sys::set_filter(&counter, &filter)?;
            Ok(counter)
        })
        .collect()
}

fn set_tracepoint(builder: &mut Builder<'_>, id: u64) {
    let attrs = builder.attrs_mut();
    attrs.type_ = PERF_TYPE_TRACEPOINT;
    attrs.config = id;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_first_name_that_exists_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("events/io_uring/io_uring_submit_sqe");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("id"), "42\n").unwrap();
        assert_eq!(event_id(root.path(), &SUBMIT_EVENTS), Ok(42));
    }

    #[test]
    fn a_missing_event_is_named() {
        let root = tempfile::tempdir().unwrap();
        let reason = event_id(root.path(), &["block/block_bio_queue"]).unwrap_err();
        assert!(reason.contains("no tracepoint block:block_bio_queue"), "{reason}");
    }

    #[test]
    fn a_tracefs_for_root_alone_says_how_to_open_it() {
        let error = io::Error::from(io::ErrorKind::PermissionDenied);
        let reason = unreadable(Path::new("/t/events/x/id"), Path::new("/t"), &error);
        assert!(reason.contains("sudo mount -o remount,mode=750"), "{reason}");
    }
}
