//! `ioscope scan`: the reader alone, through the same child, record and table as a query.

use ioscope::engine::EngineBackend;

use crate::support::{Folder, has_ring};

/// A file of 300 pages that is no database.
fn folder_with_file() -> Folder {
    let folder = Folder::new();
    let bytes: Vec<u8> = (0..300 * 4096_u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    folder.file("data.bin", bytes);
    folder
}

#[test]
fn random_reads_are_a_cell_for_each_combination_and_a_record_for_each_run() {
    let folder = folder_with_file();
    if !has_ring("random_reads_are_a_cell_for_each_combination_and_a_record_for_each_run") {
        return;
    }
    let run = folder
        .ioscope(&[
            "scan",
            "data.bin",
            "--random",
            "1200",
            "--depth",
            "1,8",
            "--backend",
            "pread,uring,uring-sqpoll",
            "--runs",
            "2",
            "--counters",
            "none",
            "--idle",
            "10ms",
            "--json",
            "runs.jsonl",
        ])
        .ok();
    assert!(run.stderr.contains("left out: scan-pread-random-n1200-qd8: depth 8 with pread"), "{run:#?}");
    assert!(run.stdout.contains("IOPS per CPU-second") && run.stdout.contains("latency p50, us"), "{run:#?}");
    assert!(!run.stdout.contains("engine"), "a scan has no engine: {run:#?}");
    assert!(!run.stdout.contains("window"), "random reads have no window: {run:#?}");

    let records = folder.records("runs.jsonl");
    assert_eq!(records.len(), 2 * 5);
    for record in &records {
        assert_eq!((record.error.as_deref(), record.answer_ok), (None, Some(true)), "{record:#?}");
        assert_eq!(record.answer, records[0].answer, "the same reads in every cell");
        assert_eq!(record.unexplained(), Vec::<String>::new());
        let (asked, results) = (record.asked.scan.unwrap(), record.scan.as_ref().unwrap());
        assert_eq!((asked.random, record.asked.engine, record.asked.query.as_str()), (Some(1200), None, "scan"));
        assert_eq!(results.ops, 1200);
        assert_eq!(results.latency.unwrap().count, 1200);
        assert!(results.latency.unwrap().p999_us.is_none() && record.reasons.contains_key("p999_us"));
        let wall = record.times.wall_s.unwrap();
        assert!((results.iops.unwrap() * wall - 1200.0).abs() < 1.0);
        assert!((results.bytes_per_s.unwrap() * wall - 1200.0 * 4096.0).abs() < 4096.0);
        let times = &record.times;
        let cpu = times.user_s.unwrap() + times.system_s.unwrap() + times.sqpoll_s.unwrap() + times.iowq_s.unwrap();
        assert!(results.iops_per_cpu_s.is_none_or(|rate| (rate * cpu - 1200.0).abs() < 1.0));
        let poller = record.asked.backend == EngineBackend::UringSqpoll;
        assert_eq!(record.ring.wakeups.is_some(), poller);
        assert_eq!(record.effective.sqpoll_tid.is_some(), poller);
        assert_eq!(record.cell.ends_with("-idle10ms"), poller, "{}", record.cell);
    }
}

#[test]
fn the_poller_is_bound_where_it_was_asked_to_be_and_the_record_says_so() {
    let folder = folder_with_file();
    if !has_ring("the_poller_is_bound_where_it_was_asked_to_be_and_the_record_says_so") {
        return;
    }
    let scan = |more: &[&str]| {
        let arguments = ["scan", "data.bin", "--random", "100", "--backend", "uring-sqpoll", "--counters", "none"];
        folder.ioscope(&[&arguments, more].concat())
    };
    scan(&["--cpus", "0", "--json", "same.jsonl"]).ok();
    let same = &folder.records("same.jsonl")[0];
    assert_eq!(same.effective.cpus_allowed.as_deref(), Some("0"));
    assert_eq!(same.effective.sqpoll_cpus_allowed.as_deref(), Some("0"));
    if std::thread::available_parallelism().unwrap().get() < 2 {
        ioscope::skipped!("a poller on a second CPU: this machine has one");
        return;
    }
    scan(&["--cpus", "0", "--sqpoll-cpu", "1", "--json", "other.jsonl"]).ok();
    let other = &folder.records("other.jsonl")[0];
    assert_eq!(other.effective.cpus_allowed.as_deref(), Some("0"));
    assert_eq!(other.effective.sqpoll_cpus_allowed.as_deref(), Some("1"));
    assert_eq!(other.asked.scan.unwrap().sqpoll_cpu, Some(1));
}

#[test]
fn a_file_in_order_with_the_touch_probe_has_its_times_in_record_and_table() {
    let folder = folder_with_file();
    let run = folder
        .ioscope(&[
            "scan",
            "data.bin",
            "--backend",
            "pread",
            "--touch",
            "slot,copy,prefetch",
            "--window",
            "0,8",
            "--delay-pages",
            "5",
            "--counters",
            "none",
            "--json",
            "runs.jsonl",
        ])
        .ok();
    assert!(run.stdout.contains("touch p50, ns/line") && run.stdout.contains("window, pages"), "{run:#?}");
    let records = folder.records("runs.jsonl");
    assert_eq!(records.len(), 6);
    for record in &records {
        assert_eq!((record.error.as_deref(), record.answer_ok), (None, Some(true)), "{record:#?}");
        assert_eq!(record.unexplained(), Vec::<String>::new());
        let results = record.scan.as_ref().unwrap();
        let touch = results.touch.as_ref().unwrap();
        assert_eq!((results.ops, touch.touch_lines), (300, 300 * 64));
        assert!(touch.touch_ns_per_line_p50.is_some() && touch.timer_overhead_ns > 0.0);
        assert!(results.latency.is_none() && record.reasons.contains_key("latency"));
    }
}

#[test]
fn bad_input_is_one_error_that_says_what_to_do() {
    let folder = folder_with_file();
    folder.file("empty.bin", b"");
    let refused = |arguments: &[&str], parts: &[&str]| {
        folder.ioscope(&[&["scan"], arguments].concat()).refused(2, parts);
    };
    refused(&["none.bin"], &["none.bin", "No such file", "give the path of a file"]);
    refused(&["."], &["is not a regular file"]);
    refused(&["data.bin", "--random", "0"], &["out of range"]);
    refused(&["data.bin", "--depth", "8"], &["not possible", "depth without --random", "add --random N"]);
    refused(&["data.bin", "--random", "9", "--depth", "2", "--backend", "pread"], &["one pread in flight"]);
    refused(&["data.bin", "--random", "9", "--idle", "0ms"], &["whole milliseconds"]);
    refused(&["data.bin", "--random", "9", "--burst", "3"], &["--burst without --pause"]);
    refused(&["data.bin", "--random", "9", "--sqpoll-cpu", "0"], &["--sqpoll-cpu without uring-sqpoll"]);
    refused(&["data.bin", "--random", "9", "--threads", "2"], &["each thread needs a read in flight"]);
    refused(&["data.bin", "--random", "9", "--think", "2"], &["no span of time"]);
    refused(&["data.bin", "--touch", "hard"], &["unknown touch 'hard'; known: none, sum, slot, copy, prefetch"]);
    refused(&["data.bin", "--block", "4095"], &["power of two"]);
    let run = folder.ioscope(&["scan", "empty.bin", "--random", "5", "--backend", "pread", "--counters", "none"]);
    assert_eq!(run.code, Some(1), "{run:#?}");
    assert!(run.stdout.contains("there is nothing to read"), "{run:#?}");
}
