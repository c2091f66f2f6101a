//! What a machine or an administrator may deny: rings, pollers, counters.
#![expect(unsafe_code, reason = "a seccomp filter is installed between fork and exec")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::{Folder, Run, SUM, SUM_SQL, has_ring};

/// Number of io_uring_setup(2), the same on every architecture.
const IO_URING_SETUP: u32 = 425;

/// Makes io_uring_setup(2) fail with `errno` in the program and its children, as a container's seccomp filter does.
fn deny_rings(command: &mut Command, errno: i32) {
    let filter = [
        // Load the system call's number; if it is io_uring_setup, answer with the errno, else allow.
        libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 },
        libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: IO_URING_SETUP },
        libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | errno as u32 },
        libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ];
    // SAFETY: between fork and exec only prctl(2) is called, which is async-signal-safe; the filter is owned by the
    // closure and outlives the calls.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.database("x.db", 4096);
    folder.file("q.sql", SUM_SQL);
    folder
}

#[test]
fn a_forbidden_or_missing_ring_is_a_failed_run_that_says_what_to_do() {
    let folder = folder();
    for (errno, what) in [(libc::EPERM, "forbids io_uring"), (libc::ENOSYS, "no io_uring"), (libc::ENOMEM, "ulimit -l")]
    {
        for backend in ["uring", "uring-sqpoll"] {
            let mut command = folder.command();
            command.args(["query", "q.sql", "--db", "x.db", "--backend", backend, "--json", "r.jsonl"]);
            deny_rings(&mut command, errno);
            let run = Run::of(command.output().unwrap());
            assert_eq!(run.code, Some(1), "{run:#?}");
            assert!(run.stdout.contains("FAILED"), "{run:#?}");
            for record in folder.records("r.jsonl") {
                let error = record.error.unwrap();
                assert!(error.contains("io_uring_setup"), "{error}");
                if !(backend == "uring-sqpoll" && errno == libc::EPERM) {
                    assert!(error.contains(what), "{errno}: {error}");
                }
                assert_eq!(record.effective.backend, None, "no other backend took its place");
            }
            std::fs::remove_file(folder.path().join("r.jsonl")).unwrap();
        }
    }
}

#[test]
fn without_rings_pread_still_answers_and_doctor_says_no() {
    let folder = folder();
    let mut command = folder.command();
    command.args(["query", "q.sql", "--db", "x.db", "--backend", "pread,builtin", "--json", "r.jsonl"]);
    deny_rings(&mut command, libc::EPERM);
    Run::of(command.output().unwrap()).ok();
    assert!(folder.records("r.jsonl").iter().all(|record| record.answer == Some(SUM.to_string())));
    let mut command = folder.command();
    command.args(["doctor", "--db", "x.db"]);
    deny_rings(&mut command, libc::EPERM);
    let run = Run::of(command.output().unwrap());
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(run.stdout.contains("io_uring"), "{run:#?}");
}

#[test]
fn a_user_without_privileges_gets_cold_runs_and_the_reasons_of_empty_columns() {
    let test = "a_user_without_privileges_gets_cold_runs_and_the_reasons_of_empty_columns";
    if !nix::unistd::geteuid().is_root() {
        ioscope::skipped!("{test}: only root can become another user");
        return;
    }
    if !has_ring(test) {
        return;
    }
    let folder = folder();
    for name in [".", "x.db", "q.sql"] {
        std::os::unix::fs::chown(folder.path().join(name), Some(65534), Some(65534)).unwrap();
    }
    let as_nobody = |arguments: &[&str]| {
        let mut command = folder.command();
        command.args(arguments).uid(65534).gid(65534);
        command.output()
    };
    if as_nobody(&["--version"]).is_ok_and(|output| output.status.success()) {
        let run = Run::of(as_nobody(&["query", "q.sql", "--db", "x.db", "--json", "r.jsonl"]).unwrap()).ok();
        let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
        for record in folder.records("r.jsonl") {
            assert_eq!(record.answer, Some(SUM.to_string()));
            assert_eq!(record.residency.resident_pages_before, Some(0), "cold without privileges");
            if record.counted && paranoid.trim().parse::<i32>().unwrap() > 0 {
                assert_eq!(record.block.bios, None);
                assert!(!record.reasons["bios"].is_empty());
                assert!(run.stdout.contains("not measured") || run.stdout.contains("-["), "{run:#?}");
            }
        }
        let doctor = Run::of(as_nobody(&["doctor", "--db", "x.db"]).unwrap());
        assert_eq!(doctor.code, Some(0), "{doctor:#?}");

        // What the page cache holds of somebody else's file may be hidden: then nothing is proven, and that is said.
        std::os::unix::fs::chown(folder.path().join("x.db"), Some(0), Some(0)).unwrap();
        let arguments =
            ["query", "q.sql", "--db", "x.db", "--backend", "uring", "--direct", "required", "--json", "o.jsonl"];
        let run = Run::of(as_nobody(&arguments).unwrap());
        for record in folder.records("o.jsonl") {
            match record.error {
                None => assert_eq!(record.answer, Some(SUM.to_string())),
                Some(error) => assert!(error.contains("only to its owner") && run.code == Some(1), "{error}"),
            }
        }
    } else {
        ioscope::skipped!("{test}: the user nobody may not run the program in the build folder");
    }
}
