//! Scans of the reader alone: the right bytes, exact numbers of reads, the same reads whatever the axes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::Write;
use std::path::Path;

use ioscope::page::PageError;
use ioscope::page::blocks::WaitMode;
use ioscope::page::config::{BackendKind, Direct, ReaderConfig, Submit};
use ioscope::page::direct::{DirectProof, prove};
use ioscope::workload::scan::sample::{Sample, combine, compare};
use ioscope::workload::scan::{Prepared, Refill, ScanAxes, ScanError, ScanReport, ScanSpec, Touch, TouchOrder};
use tempfile::NamedTempFile;

/// A file on the build's disk whose words are their places, scrambled.
fn file_of(len: usize) -> (NamedTempFile, Vec<u8>) {
    let mut bytes = vec![0_u8; len];
    for (place, word) in bytes.chunks_mut(8).enumerate() {
        let scrambled = (place as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        word.copy_from_slice(&scrambled.to_le_bytes()[..word.len()]);
    }
    let mut file = NamedTempFile::new_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    file.write_all(&bytes).unwrap();
    file.as_file().sync_all().unwrap();
    (file, bytes)
}

fn spec(backend: BackendKind, direct: Direct, axes: ScanAxes) -> ScanSpec {
    let reader = ReaderConfig { backend, direct, sqpoll_idle_ms: 10, ..ReaderConfig::default() };
    ScanSpec { axes, reader, thread_cpus: Vec::new() }
}

/// Runs a scan, or says why this machine cannot.
fn scan(path: &Path, spec: &ScanSpec, proof: Option<&DirectProof>) -> Option<ScanReport> {
    if spec.reader.direct == Direct::Required && proof.is_none() {
        return None;
    }
    match Prepared::open(spec, path, proof) {
        Ok(prepared) => Some(prepared.run().unwrap().close().unwrap()),
        Err(error @ ScanError::Page(PageError::Ring(_))) => {
            ioscope::skipped!("scans over {}: {error}", spec.reader.backend);
            None
        }
        Err(error) => panic!("{spec:?}: {error}"),
    }
}

fn proof_for(path: &Path) -> Option<DirectProof> {
    prove(path).map_err(|error| ioscope::skipped!("direct scans: {error}")).ok()
}

fn random(reads: u64) -> ScanAxes {
    ScanAxes { random: Some(reads), ..ScanAxes::default() }
}

/// Sum of the bytes as the workload sums them.
fn sum_of(bytes: &[u8], block: usize) -> u64 {
    bytes.chunks(block).fold(0, |sum: u64, block| {
        let words = block.chunks_exact(8);
        let rest: u64 = words.remainder().iter().map(|&byte| u64::from(byte)).sum();
        words.fold(sum.wrapping_add(rest), |sum, word| sum.wrapping_add(u64::from_le_bytes(word.try_into().unwrap())))
    })
}

#[test]
fn the_same_seed_makes_the_same_reads_whatever_the_backend_the_depth_and_the_threads() {
    let (file, bytes) = file_of(4096 * 300 + 777);
    let proof = proof_for(file.path());
    // One pass over the 300 whole blocks: the sum of all of them.
    let expected_sum = sum_of(&bytes[..4096 * 300], 4096);
    let mut answers = std::collections::BTreeSet::new();
    for &backend in BackendKind::ALL {
        for &direct in Direct::ALL {
            for (depth, threads, refill, wait) in [
                (1, 1, Refill::Each, WaitMode::Sleep),
                (2, 2, Refill::Each, WaitMode::Sleep),
                (16, 1, Refill::Each, WaitMode::Spin),
                (16, 1, Refill::All, WaitMode::Sleep),
                (33, 4, Refill::All, WaitMode::Spin),
                (300, 3, Refill::Each, WaitMode::Sleep),
            ] {
                if backend == BackendKind::Pread && depth > threads {
                    continue;
                }
                let axes = ScanAxes { depth, threads, refill, wait, touch: Touch::Sum, ..random(300) };
                let Some(report) = scan(file.path(), &spec(backend, direct, axes), proof.as_ref()) else { continue };
                assert_eq!((report.ops(), report.bytes()), (300, 300 * 4096), "{backend} {axes:?}");
                assert_eq!(report.touched_sum(), expected_sum, "{backend} {axes:?}");
                assert_eq!(compare(file.path(), &report.samples).unwrap(), Ok(report.samples.len() as u64));
                let again = report.reader.short_reads + report.reader.retries;
                let ring = if backend == BackendKind::Pread { 0 } else { 300 + again };
                assert_eq!(report.reader.sqes, ring);
                assert_eq!(report.reader.pages_asked, 300);
                assert_eq!(report.reader.backend, backend.as_str());
                assert_eq!(report.reader.direct, direct == Direct::Required);
                let results = report.results(Some(2.0));
                assert_eq!(results.latency.unwrap().count, 300);
                assert_eq!(results.iops_per_cpu_s, Some(150.0));
                assert!(results.iops.unwrap() > 0.0 && results.turns.unwrap() <= 300);
                answers.insert(report.answer());
            }
        }
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    let other = ScanAxes { seed: 2, ..random(300) };
    let report = scan(file.path(), &spec(BackendKind::Pread, Direct::Disabled, other), None).unwrap();
    assert!(!answers.contains(&report.answer()), "another seed samples other blocks");
}

#[test]
fn a_file_read_in_order_is_read_whole_and_once() {
    for len in [4096 * 200, 4096 * 199 + 777, 5] {
        let (file, bytes) = file_of(len);
        let proof = proof_for(file.path());
        for &backend in BackendKind::ALL {
            for &direct in Direct::ALL {
                for (window, submit, threads) in
                    [(0, Submit::PerPage, 1), (32, Submit::PerPage, 2), (64, Submit::Coalesced, 1)]
                {
                    if (len / 4096) < threads as usize && threads > 1 {
                        continue;
                    }
                    let axes = ScanAxes { threads, touch: Touch::Sum, ..ScanAxes::default() };
                    let mut spec = spec(backend, direct, axes);
                    (spec.reader.window, spec.reader.submit) = (window, submit);
                    let Some(report) = scan(file.path(), &spec, proof.as_ref()) else { continue };
                    assert_eq!((report.ops(), report.bytes()), (len.div_ceil(4096) as u64, len as u64), "{spec:?}");
                    assert_eq!(report.touched_sum(), sum_of(&bytes, 4096), "{spec:?}");
                    assert!(compare(file.path(), &report.samples).unwrap().is_ok());
                    let results = report.results(None);
                    assert_eq!((results.latency, results.turns, results.iops_per_cpu_s), (None, None, None));
                }
            }
        }
    }
}

#[test]
fn a_probe_touches_every_line_of_every_page_in_its_order_of_delivery() {
    let (file, bytes) = file_of(4096 * 400);
    let proof = proof_for(file.path());
    // The probe loads the first word of each line.
    let expected =
        bytes.chunks(64).fold(0_u64, |sum, line| sum.wrapping_add(u64::from_le_bytes(line[..8].try_into().unwrap())));
    for &backend in BackendKind::ALL {
        for touch in [Touch::Slot, Touch::Copy, Touch::Prefetch] {
            for (direct, order, delay, window, depth) in [
                (Direct::Disabled, TouchOrder::Sequential, 0, 32, None),
                (Direct::Required, TouchOrder::Chained, 0, 0, None),
                (Direct::Required, TouchOrder::Sequential, 100, 32, None),
                (Direct::Disabled, TouchOrder::Chained, 399, 8, None),
                (Direct::Disabled, TouchOrder::Chained, 1000, 0, None),
                (Direct::Required, TouchOrder::Sequential, 0, 0, Some(8)),
                (Direct::Disabled, TouchOrder::Sequential, 50, 0, Some(8)),
            ] {
                let depth = depth.map(|depth| if backend == BackendKind::Pread { 1 } else { depth });
                let axes = ScanAxes {
                    random: depth.map(|_| 400),
                    depth: depth.unwrap_or(1),
                    touch,
                    touch_order: order,
                    delay_pages: delay,
                    ..ScanAxes::default()
                };
                let mut spec = spec(backend, direct, axes);
                spec.reader.window = window;
                let Some(report) = scan(file.path(), &spec, proof.as_ref()) else { continue };
                assert_eq!(report.touched_sum(), expected, "{spec:?}");
                assert!(compare(file.path(), &report.samples).unwrap().is_ok(), "{spec:?}");
                let touched = report.results(None).touch.unwrap();
                assert_eq!((touched.touch_lines, touched.touch_blocks), (400 * 64, 400));
                assert!(touched.touch_ns_per_line_p50.is_some() && touched.touch_ns_per_line_p95.is_some());
                assert_eq!(touched.touch_prepare_ns_per_line_p50.is_some(), touch != Touch::Slot);
                assert_eq!(touched.touch_histogram.iter().map(|bar| bar.blocks).sum::<u64>(), 400);
            }
        }
    }
}

#[test]
fn bursts_and_think_time_are_as_many_and_as_long_as_asked() {
    let (file, _) = file_of(4096 * 100);
    let axes = ScanAxes { depth: 4, threads: 2, burst: 10, pause_ns: 2_000_000, think_ns: 50_000, ..random(100) };
    let Some(report) = scan(file.path(), &spec(BackendKind::Uring, Direct::Disabled, axes), None) else { return };
    let results = report.results(None);
    // Fifty reads of a thread are five bursts, with four pauses between them.
    assert_eq!(results.pauses, 8);
    assert!(results.pause_s >= 8.0 * 0.002);
    assert!(results.think_s >= results.turns.unwrap() as f64 * 50e-6);
    let after = results.after_pause.unwrap();
    assert!(after.count >= 8 && after.count <= 16, "{after:?}");
    assert_eq!(results.latency.unwrap().count, 100);
}

#[test]
fn a_poller_that_fell_asleep_in_a_pause_is_woken_and_the_wake_ups_are_counted() {
    let (file, _) = file_of(4096 * 100);
    let axes = ScanAxes { depth: 4, burst: 20, pause_ns: 200_000_000, ..random(100) };
    let mut asleep = spec(BackendKind::UringSqpoll, Direct::Disabled, axes);
    asleep.reader.sqpoll_idle_ms = 1;
    let Some(report) = scan(file.path(), &asleep, None) else { return };
    // It sleeps after 1 ms without work, and four pauses are 200 ms long.
    assert!(report.reader.wakeups >= 4, "{:?}", report.reader);
    assert!(report.reader.wakeups <= report.reader.enter_calls);
    assert!(report.reader.sqpoll.is_some());
}

#[test]
fn what_cannot_be_scanned_is_refused_with_the_reason() {
    let (file, _) = file_of(4096 * 3);
    let (empty, _) = file_of(0);
    let refused = |path: &Path, spec: &ScanSpec| Prepared::open(spec, path, None).err().unwrap().to_string();
    let pread = |axes| spec(BackendKind::Pread, Direct::Disabled, axes);
    assert!(refused(empty.path(), &pread(random(1))).contains("there is nothing to read"));
    assert!(refused(empty.path(), &pread(ScanAxes::default())).contains("there is nothing to read"));
    let large = ScanAxes { block_bytes: 16_384, ..random(1) };
    assert!(refused(file.path(), &pread(large)).contains("holds 12288 bytes, and a read takes 16384"));
    let many = ScanAxes { threads: 4, depth: 4, ..random(3) };
    assert!(refused(file.path(), &pread(many)).contains("3 reads for 4 threads"));
    assert!(refused(Path::new("/nonexistent"), &pread(random(1))).contains("No such file"));
    let unproven = spec(BackendKind::Pread, Direct::Required, random(1));
    assert!(refused(file.path(), &unproven).contains("not proven"));
    let nowhere = ScanSpec { thread_cpus: vec![1023], ..pread(random(1)) };
    let error = Prepared::open(&nowhere, file.path(), None).unwrap().run().err().unwrap();
    assert!(error.to_string().contains("cannot bind a thread to CPU 1023"), "{error}");
}

#[test]
fn a_file_that_shrinks_under_the_scan_is_an_error_and_not_an_answer() {
    let (file, _) = file_of(4096 * 64);
    for axes in [random(64), ScanAxes::default()] {
        let prepared = Prepared::open(&spec(BackendKind::Pread, Direct::Disabled, axes), file.path(), None).unwrap();
        file.as_file().set_len(4096 * 10).unwrap();
        let error = prepared.run().err().unwrap().to_string();
        assert!(error.contains("the file has become shorter"), "{error}");
        file.as_file().set_len(4096 * 64).unwrap();
    }
}

#[test]
fn wrong_bytes_are_found_out() {
    let (file, bytes) = file_of(4096 * 64);
    let report = scan(file.path(), &spec(BackendKind::Pread, Direct::Disabled, random(64)), None).unwrap();
    let samples: Vec<Sample> = report.samples;
    let before = combine(&samples);
    let mut changed = bytes.clone();
    changed[4096 * 5] ^= 1;
    std::fs::write(file.path(), &changed).unwrap();
    let mismatch = compare(file.path(), &samples).unwrap().unwrap_err();
    assert_eq!((mismatch.wrong, mismatch.checked, mismatch.offset), (1, 64, 4096 * 5));
    assert_eq!(combine(&samples), before);
}
